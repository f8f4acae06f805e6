package sqlguard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

const (
	racers     = 16
	orderCount = 200
	maxKills   = 4 // at one point
)

// TestGuard_race lets processes race for orders over a gateway that loses
// responses and refuses requests, and kills them at every point of the protocol.
// No order is created twice, and none is lost.
func TestGuard_race(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		r := newRace(t, w)
		r.run()
		if t.Failed() {
			return
		}
		r.logRace()
		if r.results["refused: in flight"] == 0 || r.results["unknown"] == 0 || r.results["rejected"] == 0 {
			t.Error("the race did not reach every kind of result")
		}
		if n := r.results[withoutInvoice]; n > 0 {
			t.Errorf("%d calls got no invoice", n)
		}
		g := w.guard(t)
		r.checkInFlight(g)
		r.checkPending(g)
		r.finish(g)
	})
}

// A race is the gateway of the race and the parent of its processes.
type race struct {
	t    *testing.T
	job  job
	seed uint64

	mu        sync.Mutex
	processes map[string]*os.Process
	killed    map[string]bool
	started   int
	counts    map[string]int            // by point
	kills     map[string]int            // by point
	commits   map[string]int            // by order
	results   map[string]int            // of the processes that were not killed
	faultsOff bool                      // no more faults and kills
	reached   func(point string, n int) // called at each point, if it is set
}

func newRace(t *testing.T, w testDB) *race {
	r := &race{
		t: t, processes: map[string]*os.Process{}, killed: map[string]bool{},
		counts: map[string]int{}, kills: map[string]int{}, commits: map[string]int{}, results: map[string]int{},
	}
	gw := httptest.NewServer(r)
	t.Cleanup(gw.Close)
	r.job = job{Driver: w.driver, DSN: w.dsn, Table: w.table, URL: gw.URL, Orders: orderCount, Timeout: 2 * time.Minute}
	return r
}

// run lets the processes race until each has exited by itself.
func (r *race) run() {
	var all sync.WaitGroup
	for n := range racers {
		all.Go(func() { r.racer(n) })
	}
	all.Wait()
}

// racer runs a process until it exits by itself: one that is killed is replaced
// by another.
func (r *race) racer(n int) {
	for generation := 0; ; generation++ {
		name := fmt.Sprintf("racer-%d.%d", n, generation)
		out, errs := &bytes.Buffer{}, &bytes.Buffer{}
		cmd, err := r.start(name, r.seed+uint64(n), out, errs)
		if err != nil {
			r.t.Error(err)
			return
		}
		if err = cmd.Wait(); err != nil && r.wasKilled(name) {
			continue
		}
		results := map[string]int{}
		if err := errors.Join(err, json.Unmarshal(out.Bytes(), &results)); err != nil {
			r.t.Errorf("%s: %v\n%s", name, err, errs)
			return
		}
		r.set(func() {
			for word, n := range results {
				r.results[word] += n
			}
		})
		return
	}
}

func (r *race) start(name string, seed uint64, out, errs *bytes.Buffer) (*exec.Cmd, error) {
	r.mu.Lock() // the gateway does not respond to the process until it is recorded
	defer r.mu.Unlock()
	j := r.job
	j.Name, j.Seed = name, seed
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", jobEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r.processes[name] = cmd.Process
	r.started++
	return cmd, nil
}

func (r *race) wasKilled(name string) (killed bool) {
	r.set(func() { killed = r.killed[name] })
	return killed
}

// set reads or changes what the lock is for.
func (r *race) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *race) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	process := req.UserAgent()
	switch req.URL.Path {
	case "/progress/" + beginning, "/progress/" + ending:
		point := req.URL.Path[len("/progress/"):]
		n := r.killAt(point, req)
		r.report(point, n)
		w.WriteHeader(http.StatusNoContent)
		_ = http.NewResponseController(w).Flush()
		if n%70 == 60 { // the process has its response: it dies within the statement, or close to it
			r.kill(process, point+", responded")
		}
	case "/progress/" + taken, "/progress/" + ended, "/progress/" + failed:
		point := req.URL.Path[len("/progress/"):]
		r.report(point, r.killAt(point, req))
		w.WriteHeader(http.StatusNoContent)
	default:
		r.createInvoice(w, req)
	}
}

func (r *race) report(point string, n int) {
	if r.reached != nil {
		r.reached(point, n)
	}
}

// createInvoice is the endpoint. About every tenth request meets each kind of
// fault.
func (r *race) createInvoice(w http.ResponseWriter, req *http.Request) {
	var body struct{ OrderID string }
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil || body.OrderID == "" {
		r.t.Errorf("%s %s: %v", req.Method, req.URL, err)
	}
	n := r.killAt(received, req)
	r.set(func() {
		if r.faultsOff {
			n = 0
		}
	})
	switch n % 10 {
	case 2: // cut before
		panic(http.ErrAbortHandler)
	case 4:
		respond(w, http.StatusUnprocessableEntity, "Not now", "{}")
		return
	case 6:
		respond(w, http.StatusServiceUnavailable, "Try later", "{}")
		return
	}
	r.set(func() { r.commits[body.OrderID]++ })
	if n == 0 {
		respond(w, http.StatusCreated, "Operation was successful.", resultOf(body.OrderID))
		return
	}
	r.killAt(committed, req)
	switch n % 10 {
	case 7: // cut after
		panic(http.ErrAbortHandler)
	case 9:
		respond(w, http.StatusInternalServerError, "Internal Server Error", "{}")
	default:
		respond(w, http.StatusCreated, "Operation was successful.", resultOf(body.OrderID))
	}
}

// resultOf is the invoice of an order.
func resultOf(id string) string { return `{ "of":"` + id + `", "n": 1.10 }` }

func respond(w http.ResponseWriter, status int, message, result string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"message":%q,"result":%s,"meta":{}}`, message, result)
}

// killAt counts how often a point has been reached, and kills the process that
// reached it at certain counts.
func (r *race) killAt(point string, req *http.Request) (n int) {
	turn, kills := map[string]int{beginning: 5, taken: 10, received: 20, committed: 30, ending: 40, ended: 50}[point]
	r.set(func() {
		r.counts[point]++
		n = r.counts[point]
	})
	due := n%70 >= turn && n%70 < turn+5 // several times: a process may be dead already
	if kills && due && r.kill(req.UserAgent(), point) {
		r.hang(req)
	}
	return n
}

// kill is kill -9. It reports whether the process was killed, now or before.
func (r *race) kill(name, point string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	process, known := r.processes[name]
	if known && !r.killed[name] && !r.faultsOff && r.kills[point] < maxKills {
		if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			r.t.Errorf("%s: %v", name, err)
		}
		r.killed[name] = true
		r.kills[point]++
	}
	return r.killed[name]
}

// hang never responds to a request of a killed process.
func (r *race) hang(req *http.Request) {
	<-req.Context().Done()
	panic(http.ErrAbortHandler)
}

func (r *race) logRace() {
	sum := 0
	for _, n := range r.kills {
		sum += n
	}
	r.t.Logf("%d processes, of which %d were killed: %v", r.started, sum, r.kills)
	r.t.Logf("points reached: %v", r.counts)
	r.t.Logf("results of the others: %v", r.results)
	if len(r.kills) < 8 {
		r.t.Error("the race did not reach every kind of kill")
	}
}

// states groups the orders by state, and compares each with what the gateway has
// created.
func (r *race) states(g *Guard) map[State][]string {
	r.t.Helper()
	states := map[State][]string{}
	for n := range r.job.Orders {
		o, err := g.Order(r.t.Context(), "", orderName(n))
		check(r.t, err)
		states[o.State] = append(states[o.State], o.ID)
		created := r.commits[o.ID]
		switch {
		case created > 1:
			r.t.Errorf("%s was created %d times", o.ID, created)
		case o.State == StateCreated && created == 0:
			r.t.Errorf("%s is lost: %+v", o.ID, o)
		case o.State == StateFree && created == 1:
			r.t.Errorf("%s could be created again: %+v", o.ID, o)
		case o.Attempts == 0:
			r.t.Errorf("no process tried %s", o.ID)
		}
	}
	return states
}

// checkInFlight verifies that the orders of killed processes are refused.
func (r *race) checkInFlight(g *Guard) {
	states := r.states(g)
	r.t.Logf("before the leases end: %s", sizes(states))
	for _, id := range states[StateInFlight] {
		if err := g.resubmits(r.t.Context(), id); !errors.Is(err, errInFlight) {
			r.t.Errorf("%s: %v", id, err)
		}
	}
	if len(states[StateInFlight]) == 0 {
		r.t.Error("no process was killed while it held an order")
	}
}

// checkPending ends the leases, and verifies that Pending returns the orders that
// killed processes held.
func (r *race) checkPending(g *Guard) {
	check(r.t, g.endLeases(r.t.Context()))
	states := r.states(g)
	r.t.Logf("after the leases have ended: %s", sizes(states))
	pending, err := g.Pending(r.t.Context(), PendingQuery{})
	check(r.t, err)
	listed := map[string]bool{}
	existing := 0
	for _, o := range pending {
		listed[o.ID] = true
		existing += r.commits[o.ID]
	}
	r.t.Logf("%d are pending, and %d of them exist", len(pending), existing)
	unknown := states[StateUnknown]
	if len(pending) != len(unknown) || len(listed) != len(unknown) || len(states[StateInFlight]) > 0 {
		r.t.Errorf("pending are %v, unknown are %v", slices.Sorted(maps.Keys(listed)), unknown)
	}
	for _, id := range unknown {
		if err := g.begins(r.t.Context(), id); !listed[id] || !errors.Is(err, errUnknown) {
			r.t.Errorf("%s: listed: %v, %v", id, listed[id], err)
		}
	}
}

// finish resolves the pending orders, and creates those that do not exist.
func (r *race) finish(g *Guard) {
	pending, err := g.Pending(r.t.Context(), PendingQuery{})
	check(r.t, err)
	for _, o := range pending {
		found := Resolution{Exists: r.commits[o.ID] == 1, By: "the test"}
		if err := g.Resolve(r.t.Context(), o, found); err != nil {
			r.t.Error(err)
		}
	}
	r.set(func() { r.faultsOff = true })
	client, err := gateway.New(r.job.URL, "a-key-for-tests", gateway.WithOrderGuard(g))
	check(r.t, err)
	late := 0
	for n := range r.job.Orders {
		switch invoice, err := client.CreateInvoice(r.t.Context(), request(n)); {
		case err != nil:
			r.t.Error(err)
		case !invoice.Replayed:
			late++
		case string(invoice.Raw) != resultOf(invoice.OrderID):
			o, err := g.Order(r.t.Context(), "", invoice.OrderID)
			if err != nil || o.Resolved.IsZero() { // by a person who did not keep it
				r.t.Errorf("%+v, %v: the invoice is %q", o, err, invoice.Raw)
			}
		}
	}
	states := r.states(g)
	r.t.Logf("resolved %d, then created %d: %s", len(pending), late, sizes(states))
	if len(states[StateCreated]) != r.job.Orders || len(r.commits) != r.job.Orders {
		r.t.Errorf("%d orders are created, and %d exist", len(states[StateCreated]), len(r.commits))
	}
}

func sizes(states map[State][]string) string {
	return fmt.Sprintf("%d created, %d unknown, %d in flight, %d free",
		len(states[StateCreated]), len(states[StateUnknown]), len(states[StateInFlight]), len(states[StateFree]))
}
