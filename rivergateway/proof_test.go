package rivergateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
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

// endOf returns where and how a process ends.
func endOf(n int) string {
	return fmt.Sprint(points[n%len(points)], " ", int(ends[n/len(points)%len(ends)]))
}

// Times are short. A call takes longer than the deadline of a run, which has no effect on it, and less than a rescue,
// and that less than the lease.
const (
	runDeadline = 300 * time.Millisecond
	longestCall = time.Second
	rescueAfter = "2500 milliseconds"
	shortLease  = 4 * time.Second
	orderCount  = 60
)

// Processes work the orders of a merchant, over a gateway that loses responses, refuses requests and is slow. They are
// ended at every point of a run. No order is created twice, none is forgotten, and of each the merchant receives one
// event, and it is true.
func TestProof(t *testing.T) {
	p := &proof{shop: newShop(t)}
	gw := httptest.NewServer(p)
	defer gw.Close()
	for n := range orderCount {
		p.insert(fmt.Sprint(n), InsertOptions{})
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

// A proof is the gateway, the merchant and the parent of the processes.
type proof struct {
	*shop
	begun, received atomic.Int32 // processes, and requests
	ended           sync.Map     // where and how processes ended
}

// machine runs one process after the other. Each ends at another point, or in another way.
func (p *proof) machine(working context.Context, url string) {
	for working.Err() == nil && !p.t.Failed() {
		end := endOf(int(p.begun.Add(1)))
		cmd := exec.CommandContext(working, os.Args[0])
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "GOMAXPROCS=2", processEnv+"="+url+" "+p.gw.APIKey+" "+dsn+" "+end)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		text, err := cmd.CombinedOutput()
		if exit, _ := errors.AsType[*exec.ExitError](err); err != nil && working.Err() == nil && (exit == nil || exit.Exited()) {
			p.t.Errorf("%v\n%s", err, text)
		}
		if working.Err() == nil {
			p.ended.Store(end, true)
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

// ServeHTTP is the gateway. A process whose User-Agent has a point of the gateway ends there.
func (p *proof) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n := p.received.Add(1)
	reach(req.UserAgent(), "received")
	faults := map[int32]gatewaytest.Fault{
		2: gatewaytest.FaultReset(), 4: gatewaytest.FaultRefuse(422, "No"), 6: gatewaytest.FaultRefuse(429, "No"),
		7: gatewaytest.FaultCommitThenDrop(), 9: gatewaytest.FaultTruncate(9),
	}
	if fault, ok := faults[n%10]; ok {
		p.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, fault) // of this request, or of another one
	}
	defer reach(req.UserAgent(), "done")
	if p.gw.Handler().ServeHTTP(w, req); n%10 == 5 {
		time.Sleep(2 * runDeadline)
	}
}

// reach ends the process with this name, which is its number, the point at which it ends, and the signal, at that point.
func reach(name, point string) {
	fields := strings.Fields(name)
	if fields[1] != point {
		return
	}
	by := syscall.Signal(must(strconv.Atoi(fields[2])))
	if _, isEnding := ending.LoadOrStore(name, by); !isEnding {
		must(0, syscall.Kill(must(strconv.Atoi(fields[0])), by))
	}
	if by == syscall.SIGKILL {
		panic(http.ErrAbortHandler)
	}
}

var ending sync.Map // processes, by name

// True words about an order, with what the guard has of it and how many invoices the gateway created.
var truths = []string{
	"succeeded: created, 1", "unknown: unknown, 0", "unknown: unknown, 1", "unknown: created, 1", "rejected: free, 0", "not sent: free, 0",
}

// check compares what the merchant was told of each order with the truth, when no lease is left.
func (p *proof) check() {
	p.exec(`UPDATE gateway_orders SET lease_until = begun_at`)
	counts := map[string]int{}
	for n := range orderCount {
		id := fmt.Sprint(n)
		told := p.committed(id)
		counts[told]++
		if is := fmt.Sprintf("%s: %s, %d", told, must(p.guard.Order(p.t.Context(), "", id)).State, len(p.gw.InvoicesFor(id))); !slices.Contains(truths, is) {
			p.t.Errorf("order %s: told %s", id, is)
		}
	}
	p.t.Logf("told %v by %d processes", counts, p.begun.Load())
	if counts["succeeded"] == 0 || counts["unknown"] == 0 || counts["rejected"] == 0 {
		p.t.Error("not every outcome was reached")
	}
	for n := range len(points) * len(ends) {
		if _, ok := p.ended.Load(endOf(n)); !ok {
			p.t.Errorf("no process has ended at %s", endOf(n))
		}
	}
}

// processEnv is the environment variable with the URL and the key of the gateway, the DSN, and where and how a process of
// the proof ends.
const processEnv = "RIVERGATEWAY_PROCESS"

// work is one machine of the merchant: it works jobs until it is stopped, as by a deploy, or killed.
func work(text string) {
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM, syscall.SIGINT)
	fields := strings.Fields(text)
	name := fmt.Sprint(os.Getpid(), " ", fields[3], " ", fields[4])
	pool := must(pgxpool.New(context.Background(), fields[2]+"&pool_max_conns=6"))
	defer pool.Close()
	jobs := must(New(Config{
		Guard: must(sqlguard.New(stdlib.OpenDBFromPool(pool), sqlguard.WithLease(shortLease))), Pool: pool,
		BaseURL: fields[0] + "/gateway", APIKey: func() string { return fields[1] }, RunTimeout: runDeadline,
		Options: []gateway.Option{
			gateway.WithUserAgent(name), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: longestCall}),
		},
		OnInvoice: func(ctx context.Context, tx pgx.Tx, r InvoiceResult) error {
			must(tx.Exec(ctx, `INSERT INTO results VALUES ($1, $2)`, r.OrderID, r.Outcome.String()))
			reach(name, "telling")
			return nil
		},
	}))
	jobs.inFlight = time.Second
	engine := newEngine(pool, jobs, river.Config{
		ID: name, FetchPollInterval: 200 * time.Millisecond, RetryPolicy: soon{},
		Middleware: []rivertype.Middleware{river.WorkerMiddlewareFunc(func(ctx context.Context, _ *rivertype.JobRow, run func(context.Context) error) error {
			reach(name, "working")
			defer reach(name, "ended")
			return run(ctx)
		})},
	})
	must(0, engine.Start(context.Background()))
	if <-stopped == syscall.SIGINT {
		must(0, engine.Stop(context.Background()))
	} else {
		must(0, engine.StopAndCancel(context.Background()))
	}
	must(0, jobs.Shutdown(context.Background()))
}

// Soon is when a job runs again.
type soon struct{}

func (soon) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(200 * time.Millisecond) }
