package rivergateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
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

const (
	machines    = 8
	orderCount  = 120
	insertEvery = 100 * time.Millisecond
	deployEvery = 700 * time.Millisecond
	killEvery   = 20 // times that a point is reached
)

// The points of a run at which a process is killed.
var points = []string{
	"working",   // the engine has begun the run
	"received",  // the gateway has the request
	"committed", // and has created the invoice
	"telling",   // the merchant has written the event
	"ended",     // its transaction has ended, and the engine has not recorded the end of the run
}

// Processes work the orders of a merchant over a gateway that loses responses and refuses requests, while they
// are killed at every point of a run, and deployed. No order is created twice, none is forgotten, and of each the
// merchant receives one event, and it is true. RIVERGATEWAY_PROOF, such as 1h, repeats it for that long.
func TestProof(t *testing.T) {
	duration, _ := time.ParseDuration(os.Getenv("RIVERGATEWAY_PROOF"))
	begun := time.Now()
	for round := 0; round == 0 || time.Since(begun) < duration && !t.Failed(); round++ {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			p := newProof(t)
			p.run()
			p.check()
		})
	}
}

// A proof is the gateway, the merchant and the parent of the processes.
type proof struct {
	t     *testing.T
	pool  *pgxpool.Pool
	river *river.Client[pgx.Tx]
	task  process

	mu      sync.Mutex
	running map[string]*os.Process
	dying   map[string]bool // killed, or being stopped
	reached map[string]int  // by point
	kills   map[string]int  // by point
	commits map[string]int  // by order
	started int
	deploys int
	calm    bool // no more faults and kills
	over    bool // no process is started again
}

func newProof(t *testing.T) *proof {
	t.Helper()
	dsn := newDatabase(t)
	p := &proof{
		t: t, pool: openPool(t, dsn), running: map[string]*os.Process{}, dying: map[string]bool{},
		reached: map[string]int{}, kills: map[string]int{}, commits: map[string]int{},
	}
	var err error
	p.river, err = river.NewClient(riverpgxv5.New(p.pool), &river.Config{})
	check(t, err)
	gw := httptest.NewServer(p)
	t.Cleanup(gw.Close)
	p.task = process{DSN: dsn, URL: gw.URL}
	return p
}

// run inserts the orders, lets the processes work until every job has ended, and stops them.
func (p *proof) run() {
	var all, deploying sync.WaitGroup
	for range machines {
		all.Go(p.machine)
	}
	chaos, end := context.WithCancel(p.t.Context())
	deploying.Go(func() { p.deploy(chaos) })
	tick := time.NewTicker(insertEvery)
	defer tick.Stop()
	for n := range orderCount {
		<-tick.C
		check(p.t, pgx.BeginFunc(p.t.Context(), p.pool, func(tx pgx.Tx) error {
			_, err := InsertInvoiceTx(p.t.Context(), p.river, tx, request(orderName(n)), InsertOptions{})
			return err
		}))
	}
	end()
	deploying.Wait()
	p.locked(func() { p.calm = true })
	p.drain()
	p.locked(func() { p.over = true; p.stopAll() })
	all.Wait()
}

func orderName(n int) string { return fmt.Sprintf("order-%03d", n) }

func (p *proof) locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// machine runs one process after the other.
func (p *proof) machine() {
	for {
		var name string
		var errs bytes.Buffer
		var cmd *exec.Cmd
		p.locked(func() { // the gateway does not respond to the process until it is recorded
			if p.over {
				return
			}
			p.started++
			name = fmt.Sprint("machine-", p.started)
			cmd = p.start(name, &errs)
		})
		if cmd == nil {
			return
		}
		err := cmd.Wait()
		p.locked(func() {
			delete(p.running, name)
			status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !p.dying[name] || err != nil && !status.Signaled() {
				p.t.Errorf("%s: %v\n%s", name, err, &errs)
				p.over = true
			}
		})
	}
}

func (p *proof) start(name string, errs *bytes.Buffer) *exec.Cmd {
	task := p.task
	task.Name = name
	text, err := json.Marshal(task)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "GOMAXPROCS=2", processEnv+"="+string(text))
	cmd.Stderr = errs
	if err := errors.Join(err, cmd.Start()); err != nil {
		p.t.Error(err)
		return nil
	}
	p.running[name] = cmd.Process
	return cmd
}

// deploy stops one process after the other, with StopAndCancel.
func (p *proof) deploy(ctx context.Context) {
	tick := time.NewTicker(deployEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.locked(func() {
				for name := range p.running { // in random order
					if p.stop(name) {
						p.deploys++
						return
					}
				}
			})
		case <-ctx.Done():
			return
		}
	}
}

// stop asks a process to stop. It is called with the lock.
func (p *proof) stop(name string) bool {
	if p.dying[name] {
		return false
	}
	p.dying[name] = true
	if err := p.running[name].Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	return true
}

func (p *proof) stopAll() {
	for name := range p.running {
		p.stop(name)
	}
}

// drain waits until every job has ended. Only the engine's leader rescues the jobs of processes that were killed,
// when it is elected and then every 30 seconds: deploys of all processes elect another.
func (p *proof) drain() {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		<-tick.C
		var left int
		check(p.t, p.pool.QueryRow(p.t.Context(), `SELECT count(*) FROM river_job WHERE finalized_at IS NULL`).Scan(&left))
		switch {
		case left == 0:
			return
		case n%50 == 0:
			p.locked(p.stopAll)
		case n == 1500:
			p.t.Fatalf("%d jobs have not ended", left)
		}
	}
}

// ServeHTTP is the gateway, to which the processes also report their progress.
func (p *proof) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if point, ok := strings.CutPrefix(req.URL.Path, "/progress/"); ok {
		p.killAt(point, req)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var body struct{ OrderID string }
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil || body.OrderID == "" {
		p.t.Errorf("%s %s: %v", req.Method, req.URL, err)
	}
	n := p.killAt("received", req)
	switch n % 10 {
	case 2: // cut before
		panic(http.ErrAbortHandler)
	case 4:
		respond(w, http.StatusUnprocessableEntity, "Not now")
		return
	case 6:
		respond(w, http.StatusTooManyRequests, "Later")
		return
	}
	p.locked(func() { p.commits[body.OrderID]++ })
	p.killAt("committed", req)
	switch n % 10 {
	case 7: // cut after
		panic(http.ErrAbortHandler)
	case 9:
		respond(w, http.StatusInternalServerError, "Internal Server Error")
	default:
		respond(w, http.StatusCreated, "Operation was successful.")
	}
}

func respond(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"message":%q,"result":{},"meta":{}}`, message)
}

// killAt counts how often a point has been reached, and at certain counts kills the process that reached it,
// which gets no response. It returns the count, or 0 when there are no more faults.
func (p *proof) killAt(point string, req *http.Request) (n int) {
	killed := false
	p.locked(func() {
		if p.calm {
			return
		}
		p.reached[point]++
		n = p.reached[point]
		name := req.UserAgent()
		process := p.running[name]
		if process == nil || n%killEvery != killEvery/2 || p.dying[name] {
			return
		}
		if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.t.Errorf("%s: %v", name, err)
		}
		p.dying[name], killed = true, true
		p.kills[point]++
	})
	if killed {
		<-req.Context().Done()
		panic(http.ErrAbortHandler)
	}
	return n
}

// check compares what the merchant was told of each order with what the guard has and what the gateway did, when
// no lease is left.
func (p *proof) check() {
	ctx := p.t.Context()
	_, err := p.pool.Exec(ctx, `UPDATE gateway_orders SET lease_until = begun_at`)
	check(p.t, err)
	db := stdlib.OpenDBFromPool(p.pool)
	defer func() { _ = db.Close() }()
	guard, err := sqlguard.New(db)
	check(p.t, err)
	told := map[string]int{}
	for n := range orderCount {
		id := orderName(n)
		order, err := guard.Order(ctx, "", id)
		check(p.t, err)
		rows, err := p.pool.Query(ctx, `SELECT outcome FROM results WHERE order_id = $1`, id)
		check(p.t, err)
		results, err := pgx.CollectRows(rows, pgx.RowTo[string])
		check(p.t, err)
		sent, isTrue := p.commits[id], false
		switch result := strings.Join(results, ", "); result {
		case "succeeded":
			isTrue = sent == 1 && order.State == gateway.OrderCreated
		case "unknown":
			isTrue = sent <= 1 && order.State == gateway.OrderUnknown || sent == 1 && order.State == gateway.OrderCreated
		case "rejected", "not sent":
			isTrue = sent == 0 && order.State == gateway.OrderFree
		}
		if !isTrue {
			p.t.Errorf("%s: told %q, the guard has it %s, and the gateway created %d", id, results, order.State, sent)
		}
		told[strings.Join(results, ", ")]++
	}
	p.t.Logf("%d orders, told %v; of %d processes %v were killed and %d deployed", orderCount, told, p.started, p.kills, p.deploys)
	if told["unknown"] == 0 || told["rejected"] == 0 || len(p.kills) != len(points) || p.deploys == 0 {
		p.t.Error("not every kind of end was reached")
	}
}

// processEnv is the environment variable with the task of a process of the proof.
const processEnv = "RIVERGATEWAY_PROCESS"

// A process is one machine of the merchant: it works the jobs until it is stopped, as a deploy does, or killed.
type process struct {
	DSN  string
	URL  string // of the gateway
	Name string
}

// Times are short, and in the order of the defaults: a call is shorter than a run, a run than a rescue, and a
// call than the lease.
const (
	proofLease  = 8 * time.Second
	proofCall   = 2 * time.Second
	proofRun    = 4 * time.Second
	proofRescue = 5 * time.Second
	proofRetry  = 200 * time.Millisecond
)

// must ends the process after an error, which its parent reports.
func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func work(text string) {
	var p process
	must(0, json.Unmarshal([]byte(text), &p))
	stopped, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	pool := must(pgxpool.New(context.Background(), p.DSN+"&pool_max_conns=6"))
	defer pool.Close()
	engine := p.engine(pool)
	must(0, engine.Start(context.Background()))
	<-stopped.Done()
	must(0, engine.StopAndCancel(context.Background()))
}

func (p process) engine(pool *pgxpool.Pool) *river.Client[pgx.Tx] {
	jobs := must(New(Config{
		Guard: must(sqlguard.New(stdlib.OpenDBFromPool(pool), sqlguard.WithLease(proofLease))), Pool: pool, BaseURL: p.URL, APIKey: "a-key-for-tests",
		Options: []gateway.Option{
			gateway.WithUserAgent(p.Name), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: proofCall}),
		},
		OnInvoice: p.onInvoice, RunTimeout: proofRun,
	}))
	jobs.inFlight = time.Second
	workers := river.NewWorkers()
	must(0, jobs.AddWorkers(workers))
	return must(river.NewClient(riverpgxv5.New(pool), &river.Config{
		ID: p.Name, Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
		Logger: slog.New(slog.DiscardHandler), TestOnly: true, JobTimeout: proofRun, RescueStuckJobsAfter: proofRescue,
		RetryPolicy: retrySoon{}, Middleware: []rivertype.Middleware{p.middleware()},
		FetchPollInterval: 500 * time.Millisecond,
	}))
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
		p.report("telling")
	}
	return err
}

func (p process) middleware() rivertype.WorkerMiddleware {
	return river.WorkerMiddlewareFunc(func(ctx context.Context, _ *rivertype.JobRow, doInner func(context.Context) error) error {
		p.report("working")
		err := doInner(ctx)
		p.report("ended")
		return err
	})
}

// report reports the progress of the process, and waits for the response, which does not arrive if the process is
// killed.
func (p process) report(point string) {
	req := must(http.NewRequest(http.MethodGet, p.URL+"/progress/"+point, nil))
	req.Header.Set("User-Agent", p.Name)
	_ = must(http.DefaultClient.Do(req)).Body.Close()
}
