package rivergateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// processEnv is the environment variable with the task of a process of the proof.
const processEnv = "RIVERGATEWAY_PROCESS"

// A process is one machine of the merchant: it works the jobs until it is stopped, as a
// deploy does, or killed.
type process struct {
	DSN  string
	URL  string // of the gateway, to which the process also reports its progress
	Name string
}

// Times are short, so that the proof takes a minute. Their order is that of the defaults:
// a call is shorter than a run, a run than a rescue, and a call than the lease.
const (
	proofLease   = 8 * time.Second
	proofCall    = 2 * time.Second
	proofRun     = 4 * time.Second
	proofRescue  = 5 * time.Second
	proofRetry   = 200 * time.Millisecond
	proofWorkers = 2 // jobs at a time in each process
)

// The points of a run at which a process may be killed.
const (
	working   = "working"   // the engine has begun the run
	received  = "received"  // the gateway has the request
	committed = "committed" // and has created the invoice
	telling   = "telling"   // the merchant has written what it is told
	ended     = "ended"     // its transaction has ended, and the engine has not recorded the end of the run
)

func work(text string) int {
	var p process
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		err = p.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (p process) run() error {
	stopped, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	pool, err := pgxpool.New(context.Background(), p.DSN+"&pool_max_conns=6")
	if err != nil {
		return err
	}
	defer pool.Close()
	engine, err := p.engine(pool)
	if err != nil {
		return err
	}
	for { // the database may be restarting
		if err = engine.Start(context.Background()); err == nil || stopped.Err() != nil {
			break
		}
		time.Sleep(proofRetry)
	}
	<-stopped.Done()
	bounded, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return engine.StopAndCancel(bounded)
}

func (p process) engine(pool *pgxpool.Pool) (*river.Client[pgx.Tx], error) {
	guard, err := sqlguard.New(stdlib.OpenDBFromPool(pool), sqlguard.WithLease(proofLease))
	if err != nil {
		return nil, err
	}
	jobs, err := New(Config{
		Guard: guard, Pool: pool, BaseURL: p.URL, APIKey: "a-key-for-tests",
		Options: []gateway.Option{
			gateway.WithUserAgent(p.Name), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: proofCall}),
		},
		OnInvoice: p.onInvoice, RunTimeout: proofRun,
	})
	if err != nil {
		return nil, err
	}
	jobs.inFlight = time.Second
	workers := river.NewWorkers()
	if err := jobs.AddWorkers(workers); err != nil {
		return nil, err
	}
	river.AddWorker(workers, naiveWorker{process: p})
	return river.NewClient(riverpgxv5.New(pool), &river.Config{
		ID: p.Name, Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: proofWorkers}},
		Logger: slog.New(slog.DiscardHandler), TestOnly: true, JobTimeout: proofRun, RescueStuckJobsAfter: proofRescue,
		RetryPolicy: retrySoon{}, Middleware: []rivertype.Middleware{p.middleware()},
		FetchPollInterval: 500 * time.Millisecond,
	})
}

type retrySoon struct{}

func (retrySoon) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(proofRetry) }

// onInvoice is the merchant's function.
func (p process) onInvoice(ctx context.Context, tx pgx.Tx, r InvoiceResult) error {
	outcome := r.Outcome.String()
	if r.Outcome == gateway.OutcomeSucceeded && len(r.Invoice.Raw) == 0 {
		outcome += ", without the response" // never
	}
	_, err := tx.Exec(ctx, `INSERT INTO results VALUES ($1, $2, $3)`, r.OrderID, outcome, r.Invoice != nil)
	if err == nil {
		p.report(telling)
	}
	return err
}

func (p process) middleware() rivertype.WorkerMiddleware {
	return river.WorkerMiddlewareFunc(func(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
		if job.Kind != (invoiceArgs{}).Kind() {
			return doInner(ctx)
		}
		p.report(working)
		err := doInner(ctx)
		p.report(ended)
		return err
	})
}

// report reports the progress of the process, and waits for the response, which does not
// arrive if the process is killed.
func (p process) report(point string) {
	req, err := http.NewRequest(http.MethodGet, p.URL+"/progress/"+point, nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("User-Agent", p.Name)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	_ = resp.Body.Close()
}

// A naiveWorker is what a merchant writes without a client: it sends the order, and
// returns whatever fails, so that the engine tries again.
type naiveWorker struct {
	river.WorkerDefaults[naiveArgs]
	process
}

type naiveArgs struct {
	OrderID string `json:"orderId" river:"unique"`
}

func (naiveArgs) Kind() string { return "naive" }

func (w naiveWorker) Work(ctx context.Context, job *river.Job[naiveArgs]) error {
	body, err := json.Marshal(map[string]string{"apiKey": "a-key-for-tests", "orderId": job.Args.OrderID, "price": "10.50", "amount": "10.50"})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+"/api/invoice/create", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", w.Name)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}
