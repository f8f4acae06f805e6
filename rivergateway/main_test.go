package rivergateway

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertest"
	"github.com/riverqueue/river/rivertype"
	"github.com/shopspring/decimal"
	"go.uber.org/goleak"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/postgrestest"
	"github.com/cryptogw/gateway/sqlguard"
)

// The database of all tests, with the tables of River, of the guard and of a merchant.
var (
	dsn   string
	pool  *pgxpool.Pool
	db    *sql.DB
	queue *river.Client[pgx.Tx] // inserts only
)

func TestMain(m *testing.M) {
	if text := os.Getenv(processEnv); text != "" {
		work(text) // this is a process of the proof
		os.Exit(0)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // clients warn of what the tests cause
	code := withDatabase(m.Run)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func withDatabase(run func() int) int {
	ctx := context.Background()
	server := must(postgrestest.Start("fsync=off", "shared_buffers=64MB"))
	defer server.Stop()
	dsn = server.DSN("postgres")
	pool = must(pgxpool.New(ctx, dsn))
	defer pool.Close()
	db = stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	queue = must(river.NewClient(riverpgxv5.New(pool), &river.Config{}))
	must(must(rivermigrate.New(riverpgxv5.New(pool), nil)).Migrate(ctx, rivermigrate.DirectionUp, nil))
	must(0, must(sqlguard.New(db, sqlguard.WithoutDurability())).Migrate(ctx))
	must(pool.Exec(ctx, `CREATE TABLE results (order_id text NOT NULL, outcome text NOT NULL)`))
	return run()
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A shop is a merchant with a guard and a gateway, and no orders in the database.
type shop struct {
	t     *testing.T
	guard *sqlguard.Guard
	gw    *gatewaytest.Server
	cfg   Config

	rescue time.Duration // RescueStuckJobsAfter; 0 for the default

	told    sync.Mutex      // OnInvoice runs for several orders at once
	results []InvoiceResult // in all runs of OnInvoice, committed or not
}

func newShop(t *testing.T, opts ...sqlguard.Option) *shop {
	t.Helper()
	s := &shop{t: t, gw: gatewaytest.NewServer()}
	t.Cleanup(s.gw.Close)
	s.exec(`DELETE FROM river_job; DELETE FROM gateway_orders; DELETE FROM results`)
	t.Cleanup(func() {
		jobs := must(pool.Query(context.Background(), `SELECT river_job::text FROM river_job`))
		for _, job := range must(pgx.CollectRows(jobs, pgx.RowTo[string])) {
			if strings.Contains(job, s.gw.APIKey) {
				t.Errorf("a job has the key: %s", job)
			}
		}
	})
	var err error
	s.guard, err = sqlguard.New(db, opts...)
	check(t, err)
	s.cfg = Config{
		Guard: s.guard, Pool: pool, BaseURL: s.gw.URL, APIKey: s.gw.APIKey,
		Options: []gateway.Option{gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1})}, OnInvoice: s.onInvoice,
	}
	return s
}

// onInvoice is the merchant's function. It records its event in its own table.
func (s *shop) onInvoice(ctx context.Context, tx pgx.Tx, r InvoiceResult) error {
	s.told.Lock()
	s.results = append(s.results, r)
	s.told.Unlock()
	_, err := tx.Exec(ctx, `INSERT INTO results VALUES ($1, $2)`, r.OrderID, r.Outcome.String())
	return err
}

// committed returns what the merchant's table has of an order.
func committed(t *testing.T, orderID string) string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT outcome FROM results WHERE order_id = $1`, orderID)
	check(t, err)
	outcomes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(t, err)
	return strings.Join(outcomes, ", ")
}

func (s *shop) exec(text string) {
	s.t.Helper()
	_, err := pool.Exec(s.t.Context(), text)
	check(s.t, err)
}

func (s *shop) with(opts ...gateway.Option) { s.cfg.Options = append(s.cfg.Options, opts...) }

func (s *shop) jobs() *Jobs {
	s.t.Helper()
	jobs, err := New(s.cfg)
	check(s.t, err)
	return jobs
}

func request(orderID string) gateway.InvoiceRequest {
	ten := decimal.RequireFromString("10.50")
	return gateway.InvoiceRequest{OrderID: orderID, Price: ten, Amount: ten, BaseCurrency: "usd"}
}

// insert inserts the job of an order, as a merchant does.
func (s *shop) insert(r gateway.InvoiceRequest, o InsertOptions) *rivertype.JobRow {
	s.t.Helper()
	return s.inserted(func(tx pgx.Tx) (*rivertype.JobInsertResult, error) {
		return InsertInvoiceTx(s.t.Context(), queue, tx, r, o)
	})
}

func (s *shop) inserted(insert func(tx pgx.Tx) (*rivertype.JobInsertResult, error)) (job *rivertype.JobRow) {
	s.t.Helper()
	check(s.t, pgx.BeginFunc(s.t.Context(), pool, func(tx pgx.Tx) error {
		result, err := insert(tx)
		if err == nil {
			job = result.Job
		}
		return err
	}))
	return job
}

// The state of a job after a run.
const (
	completed = rivertype.JobStateCompleted
	cancelled = rivertype.JobStateCancelled
	failed    = rivertype.JobStateAvailable // it runs again
	snoozed   = rivertype.JobStateScheduled
)

// run runs a job once, without the rest of the engine, and returns its row and the error that the engine records.
func run[T river.JobArgs](s *shop, worker river.Worker[T], job *rivertype.JobRow) (*rivertype.JobRow, error) {
	s.t.Helper()
	job, err := queue.JobGet(s.t.Context(), job.ID)
	check(s.t, err)
	conn, err := pool.Acquire(s.t.Context())
	check(s.t, err)
	defer conn.Release()
	w := rivertest.NewWorker(s.t, riverpgxv5.New(pool), &river.Config{}, worker)
	result, err := w.WorkJob(s.t.Context(), s.t, autocommit{poolConn: conn}, job)
	if result == nil {
		s.t.Fatal(err)
	}
	job, err2 := queue.JobGet(s.t.Context(), job.ID)
	check(s.t, err2)
	return job, err
}

func (s *shop) runInvoice(job *rivertype.JobRow) (*rivertype.JobRow, error) {
	s.t.Helper()
	return run[invoiceArgs](s, &invoiceWorker{Jobs: s.jobs()}, job)
}

// An autocommit is a transaction for rivertest whose statements commit, as those of the engine do. A job in a
// transaction of its own would wait for another.
type (
	autocommit struct {
		*poolConn
		rest
	}
	poolConn = pgxpool.Conn
	rest     struct{ pgx.Tx }
)
