package rivergateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
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
	machines   = 4
	orderCount = 60
)

// The points of a run at which processes are killed, and stopped by a deploy.
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
			p := &proof{
				shop: newShop(t), running: map[string]*os.Process{}, ending: map[string]bool{},
				reached: map[string]int{}, ends: map[string]int{}, commits: map[string]int{},
			}
			gw := httptest.NewServer(p)
			defer gw.Close()
			p.url = gw.URL
			p.run()
			p.check()
		})
	}
}

// A proof is the gateway, the merchant and the parent of the processes.
type proof struct {
	*shop
	url string // of the gateway

	mu            sync.Mutex
	running       map[string]*os.Process
	ending        map[string]bool // killed, or being stopped
	reached, ends map[string]int  // by point: how often, and how many processes ended there
	commits       map[string]int  // by order
	over          bool            // no process is started again
}

func (p *proof) locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// run inserts the orders, lets the processes work until every job has ended, and stops them.
func (p *proof) run() {
	var all sync.WaitGroup
	defer all.Wait()
	defer p.locked(func() {
		p.over = true
		for name := range p.running {
			p.end(name, syscall.SIGTERM)
		}
	})
	for n := range machines {
		all.Go(func() { p.machine(n) })
	}
	for n := range orderCount {
		p.insert(request(orderName(n)), InsertOptions{})
	}
	p.drain()
}

func orderName(n int) string { return fmt.Sprintf("order-%03d", n) }

// machine runs one process after the other.
func (p *proof) machine(number int) {
	for restart := 0; ; restart++ {
		name := fmt.Sprintf("machine-%d-%d", number, restart)
		var errs bytes.Buffer
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "GOMAXPROCS=2", processEnv+"="+strings.Join([]string{name, p.url, dsn}, " "))
		cmd.Stderr = &errs
		p.locked(func() { // the gateway does not respond to the process until it is recorded
			if p.over {
				cmd = nil
			} else if err := cmd.Start(); err != nil {
				p.t.Error(err)
				cmd = nil
			} else {
				p.running[name] = cmd.Process
			}
		})
		if cmd == nil {
			return
		}
		err := cmd.Wait()
		p.locked(func() {
			delete(p.running, name)
			if status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); !p.ending[name] || err != nil && !status.Signaled() {
				p.t.Errorf("%s: %v\n%s", name, err, &errs)
				p.over = true
			}
		})
	}
}

// end ends a process, and reports whether nothing else does. It is called with the lock.
func (p *proof) end(name string, by syscall.Signal) bool {
	if p.running[name] == nil || p.ending[name] {
		return false
	}
	p.ending[name] = true
	if err := p.running[name].Signal(by); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	return true
}

// drain waits until every job has ended. It rescues the jobs of processes that were killed by the rule of River, which
// does so every 30 seconds (see TestEngine_rescue).
func (p *proof) drain() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for left := 1; left > 0 && !p.t.Failed(); <-tick.C {
		p.exec(`UPDATE river_job SET state = CASE WHEN told THEN 'cancelled'::river_job_state ELSE 'available' END,
			finalized_at = CASE WHEN told THEN now() END
			FROM (SELECT id AS stuck, metadata ? 'cancel_attempted_at' AS told FROM river_job) AS job
			WHERE id = stuck AND state = 'running' AND attempted_at < now() - interval '` + proofRescue + `'`)
		check(p.t, pool.QueryRow(p.t.Context(), `SELECT count(*) FROM river_job WHERE finalized_at IS NULL`).Scan(&left))
	}
}

// ServeHTTP is the gateway, to which the processes also report their progress.
func (p *proof) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if point, ok := strings.CutPrefix(req.URL.Path, "/progress/"); ok {
		p.reach(point, req)
		return
	}
	var body struct{ OrderID string }
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil || body.OrderID == "" {
		p.t.Errorf("%s %s: %v", req.Method, req.URL, err)
	}
	n := p.reach("received", req)
	switch n % 10 {
	case 2: // cut before
		panic(http.ErrAbortHandler)
	case 4:
		respond(w, http.StatusUnprocessableEntity)
		return
	case 6:
		respond(w, http.StatusTooManyRequests)
		return
	}
	p.locked(func() { p.commits[body.OrderID]++ })
	p.reach("committed", req)
	switch n % 10 {
	case 7: // cut after
		panic(http.ErrAbortHandler)
	case 9:
		respond(w, http.StatusInternalServerError)
	default:
		respond(w, http.StatusCreated)
	}
}

func respond(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	message := map[bool]string{true: "Operation was successful.", false: "No"}[status == http.StatusCreated]
	_, _ = fmt.Fprintf(w, `{"message":%q,"result":{},"meta":{}}`, message)
}

// reach counts how often a point has been reached, and returns the count. At every tenth time it ends the process, by turns
// with a kill, before a response, and with a deploy.
func (p *proof) reach(point string, req *http.Request) (n int) {
	killed := false
	p.locked(func() {
		p.reached[point]++
		n = p.reached[point]
		by := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[p.ends[point]%2]
		if n/10 > p.ends[point] && p.end(req.UserAgent(), by) {
			p.ends[point]++
			killed = by == syscall.SIGKILL
		}
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
	p.exec(`UPDATE gateway_orders SET lease_until = begun_at`)
	counts := map[string]int{}
	for n := range orderCount {
		id := orderName(n)
		order, err := p.guard.Order(p.t.Context(), "", id)
		check(p.t, err)
		created, told, isTrue := p.commits[id], committed(p.t, id), false
		switch told {
		case "succeeded":
			isTrue = created == 1 && order.State == gateway.OrderCreated
		case "unknown":
			isTrue = created <= 1 && order.State == gateway.OrderUnknown || created == 1 && order.State == gateway.OrderCreated
		case "rejected", "not sent":
			isTrue = created == 0 && order.State == gateway.OrderFree
		}
		if !isTrue {
			p.t.Errorf("%s: told %q, the guard has it %s, and the gateway created %d", id, told, order.State, created)
		}
		counts[told]++
	}
	p.t.Logf("told %v; processes that ended: %v", counts, p.ends)
	if counts["succeeded"] == 0 || counts["unknown"] == 0 || counts["rejected"] == 0 {
		p.t.Error("not every outcome was reached")
	}
	for _, point := range points {
		if p.ends[point] < 2 {
			p.t.Errorf("%s: no process was killed, or none was deployed", point)
		}
	}
}

// processEnv is the environment variable with the name of a process of the proof, the URL of the gateway and the DSN.
const processEnv = "RIVERGATEWAY_PROCESS"

// Times are short, and in the order of the defaults: a call is shorter than a run, a run than a rescue, and a rescue
// than the lease.
const (
	proofCall   = time.Second
	proofRun    = 2 * time.Second
	proofRescue = "2500 milliseconds"
	proofLease  = 4 * time.Second
)

// A process is one machine of the merchant.
type process struct{ name, url string }

// work works the jobs until the process is stopped, as a deploy does, or killed.
func work(text string) {
	stopped, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	fields := strings.Fields(text)
	p := process{fields[0], fields[1]}
	pool := must(pgxpool.New(context.Background(), fields[2]+"&pool_max_conns=6"))
	defer pool.Close()
	jobs := must(New(Config{
		Guard: must(sqlguard.New(stdlib.OpenDBFromPool(pool), sqlguard.WithLease(proofLease))), Pool: pool, BaseURL: p.url, APIKey: "a-key-for-tests",
		Options: []gateway.Option{
			gateway.WithUserAgent(p.name), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: proofCall}),
		},
		OnInvoice: p.onInvoice, RunTimeout: proofRun,
	}))
	jobs.inFlight = time.Second
	workers := river.NewWorkers()
	must(0, jobs.AddWorkers(workers))
	engine := must(river.NewClient(riverpgxv5.New(pool), &river.Config{
		ID: p.name, Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
		Logger: slog.New(slog.DiscardHandler), TestOnly: true, FetchPollInterval: 200 * time.Millisecond,
		RetryPolicy: retrySoon{}, Middleware: []rivertype.Middleware{river.WorkerMiddlewareFunc(p.reportRun)},
	}))
	must(0, engine.Start(context.Background()))
	<-stopped.Done()
	must(0, engine.StopAndCancel(context.Background()))
}

type retrySoon struct{}

func (retrySoon) NextRetry(*rivertype.JobRow) time.Time {
	return time.Now().Add(200 * time.Millisecond)
}

// onInvoice is the merchant's function.
func (p process) onInvoice(ctx context.Context, tx pgx.Tx, r InvoiceResult) error {
	outcome := r.Outcome.String()
	if r.Outcome == gateway.OutcomeSucceeded && len(r.Invoice.Raw) == 0 {
		outcome += ", without the response" // never
	}
	_, err := tx.Exec(ctx, `INSERT INTO results VALUES ($1, $2)`, r.OrderID, outcome)
	if err == nil {
		p.report("telling")
	}
	return err
}

func (p process) reportRun(ctx context.Context, _ *rivertype.JobRow, run func(context.Context) error) error {
	p.report("working")
	err := run(ctx)
	p.report("ended")
	return err
}

// report reports the progress of the process, and waits for the response, which does not arrive if the process is
// killed.
func (p process) report(point string) {
	req := must(http.NewRequest(http.MethodGet, p.url+"/progress/"+point, nil))
	req.Header.Set("User-Agent", p.name)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err) // the parent has died
	}
	_ = resp.Body.Close()
}
