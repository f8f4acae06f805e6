package sqlguard

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

const (
	stalledLease = 6 * time.Second
	stallTime    = stalledLease + time.Second
	stallPause   = time.Second     // of a process that began an order as a stall ended
	stallSoon    = 2 * time.Second // how long after the stall that is
	stallEvery   = 50              // calls of Begin
	stallCalls   = racers / 2      // calls of Begin during a stall, at least
)

// A stall keeps the database from responding. end lets it go on.
type stall func(t *testing.T, w testDB) (end func())

func lockTable(t *testing.T, w testDB) func() {
	if w.dialect == SQLite {
		return w.lockWith(t, `UPDATE `+w.table+` SET note = note`)
	}
	return w.lockWith(t, `LOCK TABLE `+w.table+` IN EXCLUSIVE MODE`)
}

func lockRows(t *testing.T, w testDB) func() {
	return w.lockWith(t, `UPDATE `+w.table+` SET note = note`)
}

func suspend(t *testing.T, w testDB) func() {
	resume, ours, err := suspendPostgres()
	if err != nil {
		t.Error(err)
	}
	if !ours {
		t.Log("the server is not of these tests: its table is locked instead")
		return lockTable(t, w)
	}
	t.Cleanup(resume)
	return resume
}

// TestGuard_race_stalled is the race with a database that stalls for longer than the
// lease, and a merchant who looks up what is unknown while the race goes on, and sends
// what does not exist. SQLGUARD_ROUNDS repeats it.
func TestGuard_race_stalled(t *testing.T) {
	inSQLite := orderCount / 2 // which is slow under the race detector
	if os.Getenv("SQLGUARD_ROUNDS") != "" {
		inSQLite = orderCount
	}
	rounds, _ := strconv.Atoi(os.Getenv("SQLGUARD_ROUNDS"))
	for round := range max(1, rounds) {
		t.Run(fmt.Sprintf("PostgreSQL/%d", round), func(t *testing.T) {
			raceStalled(t, newPostgres(t), round, orderCount, suspend, lockTable, lockRows)
		})
		t.Run(fmt.Sprintf("SQLite/%d", round), func(t *testing.T) {
			raceStalled(t, newSQLite(t), round, inSQLite, lockTable)
		})
	}
}

func raceStalled(t *testing.T, w testDB, round, orders int, stalls ...stall) {
	r := newStalledRace(t, w, grantSafe, stalls...)
	r.seed, r.job.Orders = uint64(round)*racers, orders
	r.run()
	if t.Failed() {
		return
	}
	r.logRace()
	t.Logf("Begin failed %d times", r.counts[failed])
	if r.counts[failed] == 0 {
		t.Error("no Begin failed while the database stalled")
	}
	g := w.guard(t)
	r.checkPending(g)
	r.finish(g)
}

// The controls show that the race notices: with leases that are over when they are
// granted, and without a guard, orders are created twice.
func TestGuard_race_stalled_controls(t *testing.T) {
	t.Run("leases from the arrival of the statement", func(t *testing.T) {
		mustDouble(t, func() *race {
			r := newStalledRace(t, newPostgres(t), grantStale, lockTable)
			r.every = 1
			r.run()
			return r.race
		})
	})
	t.Run("no guard", func(t *testing.T) {
		mustDouble(t, func() *race {
			r := newRace(t, newSQLite(t))
			r.job.Grant, r.job.Orders = grantAll, 10
			r.run()
			return r
		})
	})
}

// mustDouble runs races until an order was created twice: which process is the first after a
// stall is left to chance.
func mustDouble(t *testing.T, run func() *race) {
	t.Helper()
	const races = 5
	for range races {
		r, doubled := run(), 0
		for _, n := range r.commits {
			if n > 1 {
				doubled++
			}
		}
		t.Logf("%d of %d orders were created more than once", doubled, len(r.commits))
		if doubled > 0 || t.Failed() {
			return
		}
	}
	t.Errorf("%d races did not notice", races)
}

// A stalledRace is a race with a database that stalls.
type stalledRace struct {
	*race
	w      testDB
	stalls []stall
	due    chan struct{} // the next stall
	parked chan struct{} // one for each process that is held before Begin
	held   chan struct{} // closed to let them go on; nil if none is held
	ended  time.Time     // the last stall
	every  int           // which of the unknown orders the merchant looks up
}

func newStalledRace(t *testing.T, w testDB, grant string, stalls ...stall) *stalledRace {
	r := &stalledRace{race: newRace(t, w), w: w, stalls: stalls, every: 2, due: make(chan struct{}, 1), parked: make(chan struct{})}
	r.job.Lease, r.job.Grant, r.job.Timeout = stalledLease, grant, 10*time.Minute
	r.reached = r.atPoint
	return r
}

// atPoint holds the processes before Begin until the database stalls. Those that began
// an order as it went on pause, for less than their lease permits.
func (r *stalledRace) atPoint(point string, n int) {
	switch {
	case point == beginning:
		if n%stallEvery == 0 {
			select {
			case r.due <- struct{}{}:
			default:
			}
		}
		r.park()
	case point == taken && r.justEnded():
		time.Sleep(stallPause)
	}
}

func (r *stalledRace) park() {
	r.mu.Lock()
	held := r.held
	r.mu.Unlock()
	if held != nil {
		select {
		case r.parked <- struct{}{}:
		case <-held:
		}
		<-held
	}
}

func (r *stalledRace) justEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.ended) < stallSoon
}

func (r *stalledRace) run() {
	ctx, stop := context.WithCancel(r.t.Context())
	var others sync.WaitGroup
	others.Go(func() { r.stall(ctx) })
	others.Go(func() { r.merchant(ctx) })
	r.race.run()
	stop()
	others.Wait()
}

// stall lets the database stall, one stall after the other, with calls of Begin that
// wait for it.
func (r *stalledRace) stall(ctx context.Context) {
	for i, begin := range r.stalls {
		held := make(chan struct{})
		select {
		case <-r.due:
		case <-ctx.Done():
		}
		r.set(func() { r.held = held })
		for range stallCalls {
			select {
			case <-r.parked:
			case <-ctx.Done():
				close(held)
				r.t.Errorf("the race was over before stall %d", i)
				return
			}
		}
		end := begin(r.t, r.w)
		r.set(func() { r.held = nil })
		close(held)
		time.Sleep(stallTime)
		r.set(func() { r.ended = time.Now() })
		end()
	}
}

// merchant looks up orders that are unknown, and sends them if they do not exist. The
// others remain unknown.
func (r *stalledRace) merchant(ctx context.Context) {
	g := r.w.guard(r.t, WithLease(stalledLease))
	client, err := gateway.New(r.job.URL, "a-key-for-tests", gateway.WithOrderGuard(g), gateway.WithUserAgent("merchant"),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: stalledLease / 4}))
	if err != nil {
		r.t.Error(err)
		return
	}
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return
		}
		pending, _ := g.Pending(ctx, PendingQuery{}) // fails while the database stalls
		for _, o := range pending {
			var n int
			if _, err := fmt.Sscanf(o.ID, "order-%d", &n); err == nil && n%r.every == 0 {
				r.resolve(ctx, g, client, o, n)
			}
		}
	}
}

func (r *stalledRace) resolve(ctx context.Context, g *Guard, client *gateway.Client, o Order, n int) {
	found := Resolution{Exists: r.exists(o.ID), By: "the merchant"}
	if err := g.Resolve(ctx, o, found); err != nil || found.Exists {
		return
	}
	invoice, err := createInvoice(ctx, client, n)
	if word, _ := classify(invoice, err); word == failed && !gateway.SafeToRetry(err) {
		r.t.Error(err)
	}
}

func (r *race) exists(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.commits[id] > 0
}
