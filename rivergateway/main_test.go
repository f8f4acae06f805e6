package rivergateway

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertest"
	"github.com/riverqueue/river/rivertype"
	"github.com/shopspring/decimal"
	"go.uber.org/goleak"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/sqlguard"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(processEnv); text != "" {
		work(text) // this is a process of the proof
		os.Exit(0)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // clients warn of what the tests cause
	code := m.Run()
	stopPostgres()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// A shop is a merchant with a database, a guard and a gateway.
type shop struct {
	t     *testing.T
	pool  *pgxpool.Pool
	guard *sqlguard.Guard
	gw    *gatewaytest.Server
	river *river.Client[pgx.Tx] // inserts only
	cfg   Config

	rescue time.Duration // RescueStuckJobsAfter; 0 for the default

	told    sync.Mutex      // OnInvoice runs for several orders at once
	results []InvoiceResult // in all runs of OnInvoice, committed or not
}

func newShop(t *testing.T, opts ...sqlguard.Option) *shop {
	t.Helper()
	pool := openPool(t, newDatabase(t))
	s := &shop{t: t, pool: pool, gw: gatewaytest.NewServer()}
	t.Cleanup(s.gw.Close)
	var err error
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { check(t, db.Close()) })
	s.guard, err = sqlguard.New(db, opts...)
	check(t, err)
	s.river, err = river.NewClient(riverpgxv5.New(pool), &river.Config{})
	check(t, err)
	s.cfg = Config{
		Guard: s.guard, Pool: pool, BaseURL: s.gw.URL, APIKey: s.gw.APIKey,
		Options:   []gateway.Option{gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1})},
		OnInvoice: s.onInvoice,
	}
	return s
}

func openPool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	check(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// onInvoice is the merchant's function. It records its event in its own table.
func (s *shop) onInvoice(ctx context.Context, tx pgx.Tx, r InvoiceResult) error {
	s.told.Lock()
	s.results = append(s.results, r)
	s.told.Unlock()
	_, err := tx.Exec(ctx, `INSERT INTO results VALUES ($1, $2, $3)`, r.OrderID, r.Outcome.String(), r.Invoice != nil)
	return err
}

// committed returns what the merchant's table has of an order, in texts.
func (s *shop) committed(orderID string) []string {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), `SELECT outcome FROM results WHERE order_id = $1`, orderID)
	check(s.t, err)
	outcomes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(s.t, err)
	return outcomes
}

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
		return InsertInvoiceTx(s.t.Context(), s.river, tx, r, o)
	})
}

func (s *shop) inserted(insert func(tx pgx.Tx) (*rivertype.JobInsertResult, error)) (job *rivertype.JobRow) {
	s.t.Helper()
	check(s.t, s.inTx(func(tx pgx.Tx) error {
		result, err := insert(tx)
		if err == nil {
			job = result.Job
		}
		return err
	}))
	return job
}

func (s *shop) inTx(do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(s.t.Context(), s.pool, do)
}

// run runs a job once, without the rest of the engine, and returns its row, what the
// engine does with it, and the error that it records.
func run[T river.JobArgs](s *shop, worker river.Worker[T], job *rivertype.JobRow) (*rivertype.JobRow, river.EventKind, error) {
	s.t.Helper()
	job, err := s.river.JobGet(s.t.Context(), job.ID)
	check(s.t, err)
	w := rivertest.NewWorker(s.t, riverpgxv5.New(s.pool), &river.Config{}, worker)
	conn, err := s.pool.Acquire(s.t.Context())
	check(s.t, err)
	defer conn.Release()
	result, err := w.WorkJob(s.t.Context(), s.t, autocommit{conn: conn.Conn()}, job)
	if result == nil {
		s.t.Fatal(err)
	}
	job, err2 := s.river.JobGet(s.t.Context(), job.ID)
	check(s.t, err2)
	return job, result.EventKind, err
}

func (s *shop) runInvoice(job *rivertype.JobRow) (*rivertype.JobRow, river.EventKind, error) {
	s.t.Helper()
	return run[invoiceArgs](s, &invoiceWorker{Jobs: s.jobs()}, job)
}

// autocommit is what rivertest needs as a transaction. Each statement commits, as those of
// the engine do: what a job does in a transaction of its own would wait for another.
type autocommit struct {
	pgx.Tx
	conn *pgx.Conn
}

func (a autocommit) Conn() *pgx.Conn { return a.conn }

func (a autocommit) Begin(ctx context.Context) (pgx.Tx, error) { return a.conn.Begin(ctx) }

func (a autocommit) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return a.conn.Exec(ctx, sql, args...)
}

func (a autocommit) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return a.conn.Query(ctx, sql, args...)
}

func (a autocommit) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return a.conn.QueryRow(ctx, sql, args...)
}
