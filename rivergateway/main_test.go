package rivergateway

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

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
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // clients warn of what the tests cause
	ctx := context.Background()
	server := must(postgrestest.Start("fsync=off", "shared_buffers=64MB"))
	dsn = server.DSN("postgres")
	pool = must(pgxpool.New(ctx, dsn))
	db = stdlib.OpenDBFromPool(pool)
	queue = must(river.NewClient(riverpgxv5.New(pool), &river.Config{}))
	must(must(rivermigrate.New(riverpgxv5.New(pool), nil)).Migrate(ctx, rivermigrate.DirectionUp, nil))
	must(0, must(sqlguard.New(db, sqlguard.WithoutDurability())).Migrate(ctx))
	must(pool.Exec(ctx, `CREATE TABLE results (order_id text NOT NULL, outcome text NOT NULL)`))
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.Cleanup(func(code int) {
		server.Stop()
		os.Exit(code)
	}))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// A shop is a merchant with a guard and a gateway, and no orders in the database.
type shop struct {
	t     *testing.T
	guard *sqlguard.Guard
	gw    *gatewaytest.Server
	cfg   Config

	told    sync.Mutex      // OnInvoice runs for several orders at once
	results []InvoiceResult // of all runs of OnInvoice, committed or not
}

func newShop(t *testing.T, opts ...sqlguard.Option) *shop {
	s := &shop{t: t, gw: gatewaytest.NewServer(), guard: must(sqlguard.New(db, opts...))}
	t.Cleanup(s.gw.Close)
	s.exec(`DELETE FROM river_job; DELETE FROM gateway_orders; DELETE FROM results`)
	t.Cleanup(func() {
		if job := s.text(`SELECT river_job::text FROM river_job WHERE strpos(river_job::text, $1) > 0`, s.gw.APIKey); job != "" {
			t.Errorf("a job has the key: %s", job)
		}
	})
	s.cfg = Config{
		Guard: s.guard, Pool: pool, BaseURL: s.gw.URL, APIKey: func() string { return s.gw.APIKey },
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
func (s *shop) committed(orderID string) string {
	return s.text(`SELECT outcome FROM results WHERE order_id = $1`, orderID)
}

// text returns the texts of a query, with commas.
func (s *shop) text(query, arg string) string {
	rows := must(pool.Query(context.Background(), query, arg))
	return strings.Join(must(pgx.CollectRows(rows, pgx.RowTo[string])), ", ")
}

func (s *shop) exec(text string) { must(pool.Exec(context.Background(), text)) }

func request(orderID string) gateway.InvoiceRequest {
	ten := decimal.RequireFromString("10.50")
	return gateway.InvoiceRequest{OrderID: orderID, Price: ten, Amount: ten, BaseCurrency: "usd"}
}

// insert inserts the job of an order, as a merchant does.
func (s *shop) insert(orderID string, o InsertOptions) *rivertype.JobRow {
	return must(inTx(nil, InsertInvoiceTx, request(orderID), o)).Job
}

type inserting[T any] = func(context.Context, *river.Client[pgx.Tx], pgx.Tx, T, InsertOptions) (*rivertype.JobInsertResult, error)

// inTx inserts a job in a transaction, which fails with an error unless that is nil.
func inTx[T any](fails error, insert inserting[T], of T, o InsertOptions) (r *rivertype.JobInsertResult, err error) {
	err = pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
		r, err = insert(context.Background(), queue, tx, of, o)
		return errors.Join(err, fails)
	})
	return r, err
}

// The state of a job after a run.
const (
	completed = rivertype.JobStateCompleted
	cancelled = rivertype.JobStateCancelled
	discarded = rivertype.JobStateDiscarded
	failed    = rivertype.JobStateAvailable // it runs again at once
	retryable = rivertype.JobStateRetryable // it runs again later
	snoozed   = rivertype.JobStateScheduled
)

// run runs a job once, without the rest of the engine, and returns its row and the error that the engine records.
func (s *shop) run(job *rivertype.JobRow) (*rivertype.JobRow, error) {
	s.t.Helper()
	job = must(queue.JobGet(s.t.Context(), job.ID))
	conn := must(pool.Acquire(s.t.Context()))
	defer conn.Release()
	jobs := must(New(s.cfg))
	work := rivertest.NewWorker(s.t, riverpgxv5.New(pool), &river.Config{}, &invoiceWorker{Jobs: jobs}).WorkJob
	if job.Kind != (invoiceArgs{}).Kind() {
		work = rivertest.NewWorker(s.t, riverpgxv5.New(pool), &river.Config{}, &withdrawalWorker{Jobs: jobs}).WorkJob
	}
	result, err := work(s.t.Context(), s.t, autocommit{poolConn: conn}, job)
	if result == nil {
		s.t.Fatal(err)
	}
	return must(queue.JobGet(s.t.Context(), job.ID)), err
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

// checkOrder compares what the merchant's table and the guard have of an order, and how many invoices were sent.
func (s *shop) checkOrder(told string, state gateway.OrderState, sent int) {
	s.t.Helper()
	order := must(s.guard.Order(s.t.Context(), "", "A-17"))
	if got, n := s.committed("A-17"), len(s.gw.Requests()); got != told || order.State != state || n != sent {
		s.t.Errorf("told %q, want %q; the order is %s, want %s; %d were sent, want %d", got, told, order.State, state, n, sent)
	}
}
