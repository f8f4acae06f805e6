package rivergateway

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
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
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/sqlguard"
)

// The points of a run at which processes end: the engine has begun it, the gateway has the request, and has carried it
// out, the merchant has written the event, and its transaction has ended, but the engine has not recorded that.
var points = []string{"working", "received", "done", "telling", "ended"}

// How a process ends: by a kill, or by a deploy that calls StopAndCancel or Stop.
var ends = []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT}

// Times are short. A call takes longer than the deadline of a run, which has no effect on it, and less than a rescue,
// and that less than the lease.
const (
	runDeadline = 300 * time.Millisecond
	longestCall = time.Second
	rescueAfter = "2500 milliseconds"
	shortLease  = 4 * time.Second
)

// Processes work the orders of a merchant, over a gateway that loses responses, refuses requests and is slow, with a
// merchant's function that fails now and then. They are ended at every point of a run. No order is created twice, none
// is forgotten, and of each the merchant receives one event, and it is true.
func TestProof(t *testing.T) {
	p := &proof{shop: newShop(t), ending: map[string]bool{}, reached: map[string]int{}, ended: map[string]int{}}
	gw := httptest.NewServer(p)
	defer gw.Close()
	for n := range orderCount {
		p.insert(orderName(n), InsertOptions{})
	}
	working, stop := context.WithCancel(t.Context())
	var machines sync.WaitGroup
	for range 4 {
		machines.Go(func() { p.machine(working, gw.URL) })
	}
	p.drain()
	stop()
	machines.Wait()
	p.check()
}

const orderCount = 60

func orderName(n int) string { return fmt.Sprintf("order-%03d", n) }

// A proof is the gateway, the merchant and the parent of the processes.
type proof struct {
	*shop
	mu             sync.Mutex
	ending         map[string]bool // processes that were killed or stopped
	reached, ended map[string]int  // by point: how often, and how many processes ended there
}

// machine runs one process after the other.
func (p *proof) machine(working context.Context, url string) {
	for working.Err() == nil && !p.t.Failed() {
		cmd := exec.CommandContext(working, os.Args[0])
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "GOMAXPROCS=2", processEnv+"="+url+" "+p.gw.APIKey+" "+dsn)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		text, err := cmd.CombinedOutput()
		if exit, _ := errors.AsType[*exec.ExitError](err); err != nil && working.Err() == nil && (exit == nil || exit.Exited()) {
			p.t.Errorf("%v\n%s", err, text)
		}
	}
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
			WHERE id = stuck AND state = 'running' AND attempted_at < now() - interval '` + rescueAfter + `'`)
		must(0, pool.QueryRow(p.t.Context(), `SELECT count(*) FROM river_job WHERE finalized_at IS NULL`).Scan(&left))
	}
}

// ServeHTTP is the gateway, to which the processes also report their progress.
func (p *proof) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if point, ok := strings.CutPrefix(req.URL.Path, "/progress/"); ok {
		if n := p.reach(point, req); point == "telling" && n%7 == 0 {
			w.WriteHeader(http.StatusTeapot) // the merchant's function fails
		}
		return
	}
	n := p.reach("received", req)
	faults := map[int]gatewaytest.Fault{
		2: gatewaytest.FaultReset(), 4: gatewaytest.FaultRefuse(422, "No"), 6: gatewaytest.FaultRefuse(429, "No"),
		7: gatewaytest.FaultCommitThenDrop(), 9: gatewaytest.FaultTruncate(9),
	}
	if fault, ok := faults[n%10]; ok {
		p.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, fault) // of this request, or of another one
	}
	defer p.reach("done", req)
	if p.gw.Handler().ServeHTTP(w, req); n%10 == 5 {
		time.Sleep(2 * runDeadline)
	}
}

// reach counts how often a point has been reached, and returns the count. At every tenth time it ends the process whose
// number is the User-Agent. A process that is killed gets no response.
func (p *proof) reach(point string, req *http.Request) (n int) {
	p.mu.Lock()
	p.reached[point]++
	n = p.reached[point]
	by := ends[p.ended[point]%len(ends)]
	name := req.UserAgent()
	isEnd := n/10 > p.ended[point] && !p.ending[name]
	if isEnd {
		p.ended[point]++
		p.ending[name] = true
		must(0, syscall.Kill(must(strconv.Atoi(name)), by))
	}
	p.mu.Unlock()
	if isEnd && by == syscall.SIGKILL {
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
		order := must(p.guard.Order(p.t.Context(), "", id))
		created, told, isTrue := len(p.gw.InvoicesFor(id)), p.committed(id), false
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
	p.t.Logf("told %v; processes that ended: %v", counts, p.ended)
	if counts["succeeded"] == 0 || counts["unknown"] == 0 || counts["rejected"] == 0 {
		p.t.Error("not every outcome was reached")
	}
	for _, point := range points {
		if p.ended[point] < len(ends) {
			p.t.Errorf("%s: no process was killed, or none was deployed", point)
		}
	}
}

// processEnv is the environment variable with the URL and the key of the gateway, and the DSN, for a process of the proof.
const processEnv = "RIVERGATEWAY_PROCESS"

// A process is one machine of the merchant.
type process struct{ name, url string }

// work works the jobs until the process is stopped, as a deploy does, or killed.
func work(text string) {
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM, syscall.SIGINT)
	fields := strings.Fields(text)
	p := process{strconv.Itoa(os.Getpid()), fields[0]}
	pool := must(pgxpool.New(context.Background(), fields[2]+"&pool_max_conns=6"))
	defer pool.Close()
	jobs := must(New(Config{
		Guard: must(sqlguard.New(stdlib.OpenDBFromPool(pool), sqlguard.WithLease(shortLease))), Pool: pool,
		BaseURL: p.url + "/gateway", APIKey: func() string { return fields[1] },
		Options: []gateway.Option{
			gateway.WithUserAgent(p.name), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: longestCall}),
		},
		OnInvoice: p.onInvoice, RunTimeout: runDeadline,
	}))
	jobs.inFlight = time.Second
	workers := river.NewWorkers()
	must(0, jobs.AddWorkers(workers))
	engine := must(river.NewClient(riverpgxv5.New(pool), &river.Config{
		ID: p.name, Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
		Logger: slog.New(slog.DiscardHandler), TestOnly: true, FetchPollInterval: 200 * time.Millisecond,
		RetryPolicy: p, Middleware: []rivertype.Middleware{river.WorkerMiddlewareFunc(p.reportRun)},
	}))
	must(0, engine.Start(context.Background()))
	if <-stopped == syscall.SIGINT {
		must(0, engine.Stop(context.Background()))
	} else {
		must(0, engine.StopAndCancel(context.Background()))
	}
}

// NextRetry implements [river.ClientRetryPolicy].
func (process) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(200 * time.Millisecond) }

// onInvoice is the merchant's function.
func (p process) onInvoice(ctx context.Context, tx pgx.Tx, r InvoiceResult) error {
	outcome := r.Outcome.String()
	if r.Outcome == isCreated && len(r.Invoice.Raw) == 0 {
		outcome += ", without the response" // never
	}
	must(tx.Exec(ctx, `INSERT INTO results VALUES ($1, $2)`, r.OrderID, outcome))
	return p.report("telling")
}

func (p process) reportRun(ctx context.Context, _ *rivertype.JobRow, run func(context.Context) error) error {
	_ = p.report("working")
	defer func() { _ = p.report("ended") }()
	return run(ctx)
}

// report reports the progress of the process, and waits for the response, which does not arrive if the process is
// killed. It returns an error if the merchant's function is to fail.
func (p process) report(point string) error {
	req := must(http.NewRequest(http.MethodGet, p.url+"/progress/"+point, nil))
	req.Header.Set("User-Agent", p.name)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err) // the parent has died
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}
