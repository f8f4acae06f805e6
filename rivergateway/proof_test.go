package rivergateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
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

	"github.com/cryptogw/gateway/sqlguard"
)

const (
	machines    = 16
	orderCount  = 200
	insertEvery = 100 * time.Millisecond
	deployEvery = 700 * time.Millisecond
	restartAt   = 50 // orders
	maxKills    = 6  // at one point
)

// TestProof lets 16 processes work the orders of a merchant over a gateway that loses
// responses and refuses requests, while the processes are killed at every point of a run,
// deployed, and the database is restarted. No order is created twice and none is
// forgotten, but those of a naive worker beside it are. RIVERGATEWAY_PROOF, such as 1h,
// repeats it for that long.
func TestProof(t *testing.T) {
	duration, _ := time.ParseDuration(os.Getenv("RIVERGATEWAY_PROOF"))
	begun := time.Now()
	for round := 0; round == 0 || time.Since(begun) < duration && !t.Failed(); round++ {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			p := newProof(t)
			p.run()
			p.check()
			p.finish()
			p.log()
			p.checkNaive()
		})
	}
}

// A proof is the gateway, the merchant and the parent of the processes.
type proof struct {
	t     *testing.T
	pool  *pgxpool.Pool
	guard *sqlguard.Guard
	river *river.Client[pgx.Tx]
	task  process
	begun time.Time
	lines []string // of the log

	mu        sync.Mutex
	processes map[string]*os.Process
	dying     map[string]bool // killed, or being stopped
	counts    map[string]int  // by point
	kills     map[string]int  // by point
	commits   map[string]int  // by order, of both kinds
	started   int
	deploys   int
	restarts  int
	calm      bool // no more faults, kills, deploys and restarts
	over      bool // no process is started again
}

func newProof(t *testing.T) *proof {
	t.Helper()
	p := &proof{
		t: t, begun: time.Now(), processes: map[string]*os.Process{}, dying: map[string]bool{},
		counts: map[string]int{}, kills: map[string]int{}, commits: map[string]int{},
	}
	dsn := newDatabase(t)
	p.pool = openPool(t, dsn)
	db := stdlib.OpenDBFromPool(p.pool)
	t.Cleanup(func() { check(t, db.Close()) })
	var err error
	p.guard, err = sqlguard.New(db, sqlguard.WithLease(proofLease))
	check(t, err)
	p.river, err = river.NewClient(riverpgxv5.New(p.pool), &river.Config{})
	check(t, err)
	_, err = p.pool.Exec(t.Context(), `CREATE TABLE orders (id text PRIMARY KEY)`)
	check(t, err)
	gw := httptest.NewServer(p)
	t.Cleanup(gw.Close)
	p.task = process{DSN: dsn, URL: gw.URL}
	return p
}

// run lets the processes work until every job has ended, and stops them.
func (p *proof) run() {
	p.set(func() { p.over = false })
	var all, others sync.WaitGroup
	for n := range machines {
		all.Go(func() { p.machine(n) })
	}
	chaos, end := context.WithCancel(p.t.Context())
	others.Go(func() { p.deploy(chaos) })
	p.merchant()
	end()
	others.Wait()
	p.set(func() { p.calm = true })
	p.drain()
	p.set(func() { p.over = true })
	p.stopAll()
	all.Wait()
}

func (p *proof) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *proof) get(f func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f()
}

// machine runs one process after the other.
func (p *proof) machine(n int) {
	for !p.get(func() bool { return p.over }) {
		p.mu.Lock() // the gateway does not respond to the process until it is recorded
		p.started++
		name, errs := fmt.Sprintf("machine-%d.%d", n, p.started), &bytes.Buffer{}
		cmd, err := p.start(name, errs)
		p.mu.Unlock()
		if err != nil {
			p.t.Error(err)
			return
		}
		err = cmd.Wait()
		p.mu.Lock()
		delete(p.processes, name)
		p.mu.Unlock()
		if !p.get(func() bool { return p.dying[name] }) {
			p.t.Errorf("%s: %v\n%s", name, err, errs)
			return
		}
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err != nil && (!ok || !status.Signaled()) {
			p.t.Errorf("%s: %v\n%s", name, err, errs)
		}
	}
}

func (p *proof) start(name string, errs *bytes.Buffer) (*exec.Cmd, error) {
	task := p.task
	task.Name = name
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "GOMAXPROCS=2", processEnv+"="+string(text))
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.processes[name] = cmd.Process
	return cmd, nil
}

// merchant inserts the orders, each with its job in one transaction. What fails, and what
// it rolls back, it does again. It also restarts the database.
func (p *proof) merchant() {
	tick := time.NewTicker(insertEvery)
	defer tick.Stop()
	for n := range orderCount {
		<-tick.C
		if n%10 == 3 {
			_ = p.insert(n, errors.New("the merchant's transaction is rolled back"))
		}
		for err := p.insert(n, nil); err != nil; err = p.insert(n, nil) {
			if !p.get(func() bool { return p.restarts > 0 }) {
				p.t.Error(err)
				return
			}
			<-tick.C
		}
		if n%restartAt == restartAt/2 {
			signal := []string{"QUIT", "INT"}[n/restartAt%2]
			check(p.t, shared.server.Restart(signal))
			p.set(func() { p.restarts++ })
		}
	}
}

func (p *proof) insert(n int, rollBack error) error {
	return pgx.BeginFunc(p.t.Context(), p.pool, func(tx pgx.Tx) error {
		_, err1 := tx.Exec(p.t.Context(), `INSERT INTO orders VALUES ($1) ON CONFLICT DO NOTHING`, orderName(n))
		_, err2 := InsertInvoiceTx(p.t.Context(), p.river, tx, request(orderName(n)), InsertOptions{})
		_, err3 := p.river.InsertTx(p.t.Context(), tx, naiveArgs{naiveName(n)}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
		return errors.Join(err1, err2, err3, rollBack)
	})
}

func orderName(n int) string { return fmt.Sprintf("order-%03d", n) }
func naiveName(n int) string { return fmt.Sprintf("naive-%03d", n) }

// deploy stops one process after the other, with StopAndCancel.
func (p *proof) deploy(ctx context.Context) {
	for tick := time.NewTicker(deployEvery); ; {
		select {
		case <-tick.C:
			p.set(func() {
				for name := range p.processes { // in random order
					if p.stop(name) {
						p.deploys++
						break
					}
				}
			})
		case <-ctx.Done():
			tick.Stop()
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
	if err := p.processes[name].Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	return true
}

func (p *proof) stopAll() {
	p.set(func() {
		for name := range p.processes {
			p.stop(name)
		}
	})
}

// drain waits until every job has ended. Only the engine's leader rescues the jobs of
// processes that were killed, when it is elected and then every 30 seconds: deploys of all
// processes elect another.
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
			p.stopAll()
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
	n := p.killAt(received, req)
	time.Sleep(20 * time.Millisecond) // as a service takes, so that deploys and restarts meet calls
	if p.get(func() bool { return p.calm }) {
		n = 0
	}
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
	p.set(func() { p.commits[body.OrderID]++ })
	if n == 0 {
		respond(w, http.StatusCreated, "Operation was successful.")
		return
	}
	p.killAt(committed, req)
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

// killAt counts how often a point has been reached, and kills the process that reached it
// at certain counts. A killed process gets no response.
func (p *proof) killAt(point string, req *http.Request) (n int) {
	turn := map[string]int{working: 5, received: 13, committed: 21, telling: 29, ended: 37}[point]
	killed := p.get(func() bool {
		p.counts[point]++
		n = p.counts[point]
		name := req.UserAgent()
		process := p.processes[name]
		if process == nil || p.calm || n%40 != turn || p.kills[point] == maxKills || p.dying[name] {
			return false
		}
		if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.t.Errorf("%s: %v", name, err)
		}
		p.dying[name] = true
		p.kills[point]++
		return true
	})
	if killed {
		<-req.Context().Done()
		panic(http.ErrAbortHandler)
	}
	return n
}

// An orderState is what each party has of an order.
type orderState struct {
	id      string
	results []string
	state   sqlguard.State
	sent    int // how many invoices exist
}

// read returns what each party has of the orders, when no lease is left.
func (p *proof) read() (orders []orderState, pending map[string]sqlguard.Order) {
	ctx := p.t.Context()
	_, err := p.pool.Exec(ctx, `UPDATE gateway_orders SET lease_until = begun_at`)
	check(p.t, err)
	list, err := p.guard.Pending(ctx, sqlguard.PendingQuery{})
	check(p.t, err)
	pending = map[string]sqlguard.Order{}
	for _, order := range list {
		pending[order.ID] = order
	}
	rows, err := p.pool.Query(ctx, `SELECT id, array_remove(array_agg(outcome), NULL) FROM orders LEFT JOIN results ON id = order_id GROUP BY id ORDER BY id`)
	check(p.t, err)
	orders, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (o orderState, err error) {
		return o, row.Scan(&o.id, &o.results)
	})
	check(p.t, err)
	for i := range orders {
		o := &orders[i]
		order, err := p.guard.Order(ctx, "", o.id)
		check(p.t, err)
		o.state, o.sent = order.State, p.commits[o.id]
	}
	if len(orders) != orderCount {
		p.t.Errorf("%d orders, want %d", len(orders), orderCount)
	}
	return orders, pending
}

// check compares what the merchant was told of each order with what the guard has and
// what the gateway did.
func (p *proof) check() {
	orders, pending := p.read()
	results, states := map[string]int{}, map[string]int{}
	for _, o := range orders {
		_, listed := pending[o.id]
		if len(o.results) != 1 || o.sent > 1 || listed != (o.state == sqlguard.StateUnknown) {
			p.t.Errorf("doubled, forgotten or told twice: %+v", o)
			continue
		}
		results[o.results[0]]++
		states[string(o.state)]++
		right := false
		switch o.results[0] {
		case "succeeded": // the guard may not have been told before the database stopped
			right = o.sent == 1 && (listed || o.state == sqlguard.StateCreated)
		case "unknown":
			right = listed || o.sent == 1 && o.state == sqlguard.StateCreated
		case "rejected", "not sent":
			right = o.sent == 0 && o.state == sqlguard.StateFree
		}
		if !right {
			p.t.Errorf("%+v, pending: %v", o, listed)
		}
	}
	p.logf("%d orders: told %v; the guard has %v; %d are pending", len(orders), results, states, len(pending))
	if results["unknown"] == 0 || results["rejected"] == 0 || len(p.kills) != 5 || p.deploys == 0 || p.restarts == 0 {
		p.t.Errorf("not every kind of end was reached: told %v, killed %v, %d deploys, %d restarts", results, p.kills, p.deploys, p.restarts)
	}
}

// finish is the work of a person: to look up what is pending, and to insert again what
// does not exist. Then every order has one invoice.
func (p *proof) finish() {
	orders, unknown := p.read()
	for _, o := range unknown {
		found := sqlguard.Resolution{Exists: p.commits[o.ID] == 1, By: "the test", Margin: 1}
		check(p.t, p.guard.Resolve(p.t.Context(), o, found))
	}
	again := 0
	for n, o := range orders {
		if o.sent == 0 {
			check(p.t, p.insert(n, nil))
			again++
		}
	}
	var all sync.WaitGroup
	p.set(func() { p.over = false })
	all.Go(func() { p.machine(machines) })
	p.drain()
	p.set(func() { p.over = true })
	p.stopAll()
	all.Wait()
	orders, pending := p.read()
	for _, o := range orders {
		if o.sent != 1 || o.state != sqlguard.StateCreated {
			p.t.Errorf("at the end: %+v", o)
		}
	}
	p.logf("%d were looked up, and %d inserted again: %d are pending, and each of the %d orders has one invoice",
		len(unknown), again, len(pending), len(orders))
}

// checkNaive verifies that the faults are such that a naive worker doubles orders.
func (p *proof) checkNaive() {
	doubled, most := 0, 0
	for id, n := range p.commits {
		if strings.HasPrefix(id, "naive") && n > 1 {
			doubled, most = doubled+1, max(most, n)
		}
	}
	p.t.Logf("beside them, the naive worker: %d of %d orders were created more than once, one %d times", doubled, orderCount, most)
	if doubled == 0 {
		p.t.Error("the proof did not notice a naive worker")
	}
}

func (p *proof) logf(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

func (p *proof) log() {
	kills := 0
	for _, n := range p.kills {
		kills += n
	}
	p.t.Logf("%d processes, of which %d were killed (%s) and %d deployed; %d restarts of the database; in %v",
		p.started, kills, counted(p.kills), p.deploys, p.restarts, time.Since(p.begun).Round(time.Second))
	p.t.Logf("points reached: %s", counted(p.counts))
	for _, line := range p.lines {
		p.t.Log(line)
	}
}

func counted(counts map[string]int) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", key, counts[key]))
	}
	return strings.Join(parts, ", ")
}
