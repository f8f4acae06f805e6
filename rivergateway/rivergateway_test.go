package rivergateway

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
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

	fails      error              // of OnInvoice and OnWithdrawal
	isShutDown bool               // the jobs, before a run
	results    chan InvoiceResult // that OnInvoice received, committed or not
}

func newShop(t *testing.T, opts ...sqlguard.Option) *shop {
	s := &shop{t: t, gw: gatewaytest.NewServer(), guard: must(sqlguard.New(db, opts...)), results: make(chan InvoiceResult, 9)}
	t.Cleanup(s.gw.Close)
	s.exec(`DELETE FROM river_job; DELETE FROM gateway_orders; DELETE FROM results`)
	t.Cleanup(func() {
		if job := s.text(`SELECT river_job::text FROM river_job WHERE strpos(river_job::text, $1) > 0`, s.gw.APIKey); job != "" {
			t.Errorf("a job has the key: %s", job)
		}
	})
	s.cfg = Config{
		Guard: s.guard, Pool: pool, BaseURL: s.gw.URL, APIKey: func() string { return s.gw.APIKey },
		Options:   []gateway.Option{gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1})},
		OnInvoice: s.onInvoice, OnWithdrawal: s.onWithdrawal, Final: []gateway.WithdrawalStatus{"CANCELED"},
	}
	return s
}

// What the merchant's table has after an outcome, or a status.
const again, withoutRecord = " again", " without a record"

// onInvoice is a function of the merchant, which writes its event into a table.
func (s *shop) onInvoice(ctx context.Context, tx pgx.Tx, r InvoiceResult) error {
	s.results <- r
	told := r.Outcome.String()
	if r.Invoice != nil && r.Invoice.Replayed {
		told += again
	}
	err := s.tell(ctx, tx, r.JobID, r.OrderID, r.OrderID, told, r.Outcome != isCreated, r.Reason)
	if err != nil && r.Invoice != nil {
		panic("a\ufffdb")
	}
	return err
}

func (s *shop) onWithdrawal(ctx context.Context, tx pgx.Tx, r WithdrawalResult) error {
	told := string(r.Status)
	if r.Withdrawal == nil {
		told += withoutRecord
	}
	return s.tell(ctx, tx, r.JobID, r.WithdrawRequestID, "A-17", told, r.Withdrawal == nil, r.Reason)
}

// tell writes the result of an order. It checks that the job has the identifier, and that there is a reason if one is due.
func (s *shop) tell(ctx context.Context, tx pgx.Tx, job int64, id, order, told string, isDue bool, reason string) error {
	var args string
	must(0, tx.QueryRow(ctx, `SELECT args FROM river_job WHERE id = $1`, job).Scan(&args))
	if !strings.Contains(args, `"`+id+`"`) || (reason != "") != isDue {
		s.t.Errorf("the job with %s told %s of %s: %q", args, told, id, reason)
	}
	must(tx.Exec(ctx, `INSERT INTO results VALUES ($1, $2)`, order, told))
	return s.fails
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

// runJob runs a job once, without the rest of the engine, and returns its row and the error that the engine records.
func (s *shop) runJob(job *rivertype.JobRow) (*rivertype.JobRow, error) {
	s.t.Helper()
	job = must(queue.JobGet(s.t.Context(), job.ID))
	conn := must(pool.Acquire(s.t.Context()))
	defer conn.Release()
	jobs := must(New(s.cfg))
	if s.isShutDown {
		must(0, jobs.Shutdown(s.t.Context()))
	}
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
	n := len(slices.DeleteFunc(s.gw.Requests(), func(r gatewaytest.Request) bool { return r.Method != http.MethodPost }))
	if got := s.committed("A-17"); got != told || order.State != state || n != sent {
		s.t.Errorf("told %q, want %q; the order is %s, want %s; %d were sent, want %d", got, told, order.State, state, n, sent)
	}
}

// A row is a run of a job, after an earlier one whose function failed, unless first is nil. It has the state of the job
// with attempts left and after the last one, unless that is empty; the result that the merchant gets when the job ends;
// the state of the order in the guard; and how many invoices were sent in all.
type row struct {
	first, prepare func(s *shop)
	state, last    rivertype.JobState
	told           string
	order          gateway.OrderState
	sent           int
}

func runAll(t *testing.T, rows map[string]row, insert func(*shop, InsertOptions) *rivertype.JobRow) {
	for name, test := range rows {
		for attempts, want := range map[int]rivertype.JobState{25: test.state, 1: test.last} {
			if want == "" {
				continue
			}
			t.Run(name+map[int]string{1: ", at the last attempt"}[attempts], func(t *testing.T) {
				s, o := newShop(t), InsertOptions{Job: river.InsertOpts{MaxAttempts: attempts}}
				job := insert(s, o)
				if test.first != nil {
					test.first(s)
					s.runFailing(job)
				}
				test.prepare(s)
				job, err := s.runJob(job)
				told := ""
				if job.State == completed || job.State == cancelled {
					told = test.told
				}
				s.checkOrder(told, test.order, test.sent)
				outcome, output := strings.TrimSuffix(strings.TrimSuffix(told, withoutRecord), again), string(job.Output())
				if job.State != want || strings.Contains(output, `"delivered": true`) != (told != "") || !strings.Contains(output, outcome) {
					t.Errorf("the job is %s, want %s, and has %s: %v", job.State, want, output, err)
				}
			})
		}
	}
}

const rawInvoice = `{"b":"\u0000","a":1e99999, "z":1.500}` // PostgreSQL would change it as JSON, or refuse it

// runFailing runs a job whose function fails, so that nothing of it is committed. The result of an invoice is stored.
func (s *shop) runFailing(job *rivertype.JobRow) {
	s.fails = errors.New("a\x00b")
	job, err := s.runJob(job)
	if s.committed("A-17") != "" || job.Errors[0].Error != "a\ufffdb" {
		s.t.Errorf("told %q, %+v: %v", s.committed("A-17"), job.Errors, err)
	}
	for range len(s.results) {
		r := <-s.results
		stored, _ := undelivered(job)
		hasResponse := r.StatusCode == 502 && len(r.Body) > 0 && !r.SentAt.IsZero()
		if !reflect.DeepEqual(stored.stored(), r.stored()) || hasResponse != (r.Outcome == isUnknown) || r.Invoice != nil && string(r.Invoice.Raw) != rawInvoice {
			s.t.Errorf("told %+v, stored %+v", r, stored)
		}
	}
	s.fails = nil
	must(queue.JobRetry(s.t.Context(), job.ID))
}

func newEngine(pool *pgxpool.Pool, jobs *Jobs, cfg river.Config) *river.Client[pgx.Tx] {
	cfg.Workers, cfg.Queues = river.NewWorkers(), map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}}
	cfg.Logger, cfg.TestOnly = slog.New(slog.DiscardHandler), true
	must(0, jobs.AddWorkers(cfg.Workers))
	return must(river.NewClient(riverpgxv5.New(pool), &cfg))
}

// start starts the engine until the test ends. Events are of the jobs whose run has ended.
func (s *shop) start(cfg river.Config) (*river.Client[pgx.Tx], <-chan *river.Event) {
	e := newEngine(pool, must(New(s.cfg)), cfg)
	events, cancel := e.Subscribe(river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed, river.EventKindJobInterrupted)
	s.t.Cleanup(cancel)
	must(0, e.Start(context.Background()))
	s.t.Cleanup(func() { must(0, e.StopAndCancel(context.Background())) })
	return e, events
}

// Workers without a shared guard cannot be made, also not by an option of the client.
func TestNew(t *testing.T) {
	s := newShop(t)
	for name, change := range map[string]func(*Config){
		"Guard":      func(c *Config) { c.Guard = nil },
		"Pool":       func(c *Config) { c.Pool = nil },
		"RunTimeout": func(c *Config) { c.RunTimeout = -1 },
		"Final":      func(c *Config) { c.Final = []gateway.WithdrawalStatus{"CANCELED", "PENDING"} },
		"baseURL":    func(c *Config) { c.BaseURL = "ftp://gateway.example" },
		"apiKey":     func(c *Config) { c.APIKey = nil },
	} {
		cfg := s.cfg
		change(&cfg)
		_, err := New(cfg)
		if refusal, ok := errors.AsType[*gateway.ArgumentError](err); !ok || refusal.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("GATEWAY_BASE_URL", s.gw.URL)
	t.Setenv("GATEWAY_API_KEY", s.gw.APIKey)
	s.cfg.BaseURL, s.cfg.APIKey = "", nil
	with(gateway.WithOrderGuard(new(gateway.MemoryGuard)))(s)
	_, _ = s.runJob(s.insert("A-17", InsertOptions{}))
	s.checkOrder("succeeded", created, 1)
}

// A program that prints or logs its Config, or its Jobs, shows no key, also not in a field of its own.
func TestConfig_secret(t *testing.T) {
	s := newShop(t)
	jobs := must(New(s.cfg))
	for _, value := range []any{s.cfg, &s.cfg, map[string]*Config{"river": &s.cfg}, struct{ river Config }{s.cfg}, jobs, *jobs, struct{ jobs Jobs }{*jobs}} {
		var shown strings.Builder
		_, _ = fmt.Fprintf(&shown, "%[1]v %+[1]v %#[1]v %[1]s %[1]q %[1]d %[1]x", value)
		slog.New(slog.NewTextHandler(&shown, nil)).Info("the program starts", "value", value)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("the program starts", "value", value)
		if text := shown.String(); strings.Contains(text, s.gw.APIKey) || strings.Contains(text, fmt.Sprintf("%x", s.gw.APIKey)) {
			t.Errorf("%T is shown as %s", value, text)
		}
	}
}

// A deploy, or the deadline of a run, cuts no invoice that is being sent: the engine waits for its outcome. Before that,
// or after a refusal for now, the job goes back to the queue without an attempt, and the next process sends it.
func TestEngine_stopped(t *testing.T) {
	const before = "before it is sent"
	impatient := gateway.WithHTTPClient(&http.Client{Timeout: 100 * time.Millisecond})
	for name, test := range map[string]struct {
		run     time.Duration // its timeout, and then Stop; 0 for StopAndCancel
		prepare func(*shop)
		state   rivertype.JobState
		told    string
		order   gateway.OrderState
	}{
		before:                               {0, all(), failed, "", free},
		"a success":                          {0, all(), completed, "succeeded", created},
		"a success after the run's timeout":  {time.Second, all(), completed, "succeeded", created},
		"a success after a client's timeout": {time.Second, with(impatient), completed, "succeeded again", created},
		"a refusal for now":                  {0, refused(429), failed, "", free},
		"no response":                        {0, inject(lost), cancelled, "unknown", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, sqlguard.WithMerchants())
			working, ended := make(chan struct{}), make(chan struct{})
			end := sync.OnceFunc(func() { close(ended) })
			hold := sync.OnceFunc(func() { close(working); <-ended })
			gw := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body := must(io.ReadAll(req.Body))
				req.Body = io.NopCloser(bytes.NewReader(body))
				hold()
				s.gw.Handler().ServeHTTP(w, req)
			}))
			t.Cleanup(gw.Close)
			s.cfg.BaseURL, s.cfg.RunTimeout, s.cfg.APIKey = gw.URL+"/gateway", test.run, func() string { return "another-key" }
			options := append(make([]gateway.CallOption, 0, 2), gateway.WithAPIKey(s.gw.APIKey))
			s.cfg.Merchant = func(ctx context.Context, _ string) ([]gateway.CallOption, error) {
				if context.AfterFunc(ctx, end); name == before {
					hold()
				}
				return options, nil
			}
			test.prepare(s)
			engine, events := s.start(river.Config{})
			s.insert("A-17", InsertOptions{Merchant: "shop-a", Job: river.InsertOpts{MaxAttempts: 1}})
			select {
			case <-working:
			case ended := <-events:
				t.Fatalf("%s: %v", ended.Job.State, ended.Job.Errors)
			}
			if test.run > 0 {
				must(0, engine.Stop(context.Background()))
			} else {
				must(0, engine.StopAndCancel(context.Background()))
			}
			job, order := (<-events).Job, must(s.guard.Order(t.Context(), "shop-a", "A-17"))
			if told := s.committed("A-17"); job.State != test.state || told != test.told || order.State != test.order || (job.Attempt == 0) != (told == "") {
				t.Fatalf("%s at attempt %d, told %q, the order is %s", job.State, job.Attempt, told, order.State)
			}
			if test.told == "" {
				_, events = s.start(river.Config{})
				if job := (<-events).Job; job.State != completed || s.committed("A-17") != "succeeded" {
					t.Errorf("then %s", job.State)
				}
			}
			if r := <-s.results; r.Merchant != "shop-a" || options[:2][1] != nil {
				t.Errorf("told %+v, with options %v", r, options[:2])
			}
		})
	}
}

// With the settings of the README, a job whose process died is run again after 90 seconds. By default
// River leaves it alone for the 9 minutes that a run may take. A job whose merchant was told that it is cancelled is
// not run again.
func TestEngine_rescue(t *testing.T) {
	for run, rescued := range map[time.Duration]int{90 * time.Second: 2, 0: 1} {
		t.Run(run.String(), func(t *testing.T) {
			s := newShop(t)
			s.cfg.RunTimeout = run
			job, told := s.insert("A-17", InsertOptions{}), s.insert("told", InsertOptions{})
			s.insert("old", InsertOptions{})
			s.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '100 seconds'`)
			s.exec(`UPDATE river_job SET attempted_at = now() - interval '2 days' WHERE args->>'orderId' IN ('old', 'told')`)
			must(queue.JobCancel(t.Context(), told.ID))
			_, events := s.start(river.Config{RescueStuckJobsAfter: 90 * time.Second})
			for range rescued {
				if job := (<-events).Job; job.State != completed {
					t.Errorf("%s is %s", job.EncodedArgs, job.State)
				}
			}
			job, told = must(queue.JobGet(t.Context(), job.ID)), must(queue.JobGet(t.Context(), told.ID))
			if (job.State == completed) != (rescued == 2) || told.State != cancelled || len(s.gw.Requests()) != rescued {
				t.Errorf("%s; %s, %d sent", job.State, told.State, len(s.gw.Requests()))
			}
		})
	}
}
