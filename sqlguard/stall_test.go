package sqlguard

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// A clock is that of a process: it stands still between the statements.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

// A lease that may be over is not granted, whatever the database returns: not even
// by a driver that ignores the end of its context.
func TestGuard_Begin_late(t *testing.T) {
	const lease = 8 * time.Second // of which Begin may take 2
	for name, tt := range map[string]struct {
		before  gateway.Outcome // of an earlier invoice
		took    time.Duration
		refused string
		want    error
		state   State
	}{
		"in time":                        {took: 2*time.Second - 1, state: StateInFlight},
		"a quarter of the lease":         {took: 2 * time.Second, refused: "lease of 8s may be over", state: StateFree},
		"longer than the lease":          {took: time.Minute, refused: "the database took 1m0s", state: StateFree},
		"late, and refused for a reason": {before: gateway.OutcomeSucceeded, took: time.Minute, refused: "already created", want: gateway.ErrOrderCreated, state: StateCreated},
	} {
		t.Run(name, func(t *testing.T) {
			g, connector := lossyGuard(t, WithLease(lease))
			c := &clock{at: time.Now()}
			g.now = c.now
			if tt.before != gateway.OutcomeUnknown {
				g.once(t, order, tt.before)
			}
			connector.after = func(driver.Rows) { c.advance(tt.took) }
			err := g.Begin(t.Context(), order, false)
			if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) || !errors.Is(err, tt.want) && tt.want != nil {
				t.Fatal(err)
			}
			if errors.Is(err, gateway.ErrOrderInFlight) || errors.Is(err, gateway.ErrOrderOutcomeUnknown) {
				t.Error(err)
			}
			g.wantState(t, tt.state)
			if len(g.tokens) > 0 != (tt.state == StateInFlight) {
				t.Errorf("held: %v", g.tokens)
			}
		})
	}
}

// If a late Begin cannot be withdrawn, the order is listed after its lease.
func TestGuard_Begin_late_not_withdrawn(t *testing.T) {
	g, connector := lossyGuard(t)
	c := &clock{at: time.Now()}
	g.now = c.now
	connector.after = func(driver.Rows) { c.advance(time.Hour) }
	connector.refuse(2, errors.New("connection reset"))
	if err := g.Begin(t.Context(), order, false); err == nil || !strings.Contains(err.Error(), "may be over") {
		t.Fatal(err)
	}
	wantError(t, g.Begin(t.Context(), order, true), gateway.ErrOrderInFlight)
	check(t, g.endLeases(t.Context()))
	if pending, err := g.Pending(t.Context(), 0); err != nil || len(pending) != 1 || pending[0].ID != order {
		t.Fatal(pending, err)
	}
}

// The longest time that a Begin may take is a quarter of the lease, and 10 seconds.
func TestWithLease_patience(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		time.Second: 250 * time.Millisecond, 40 * time.Second: 10 * time.Second, 5 * time.Minute: 10 * time.Second,
	} {
		if got := (config{lease: lease}).patience(); got != want {
			t.Errorf("of %v: %v, want %v", lease, got, want)
		}
	}
}

// A blockade is a transaction of somebody else, which a Begin waits for.
type blockade struct {
	name string
	text string // of the statement that takes the lock
	free bool   // whether the order was begun before, and is free
	says string // what the error of the database contains
}

func blockades(table string) []blockade {
	return []blockade{
		{"the row is locked", `UPDATE ` + table + ` SET note = 'mine'`, true, "lock timeout"},
		{"the row is being inserted", `INSERT INTO ` + table + ` (order_id, attempts, begun_at, lease_until) VALUES ('` + order + `', 0, now(), now())`, false, "lock timeout"},
		{"the table is locked", `LOCK TABLE ` + table + ` IN EXCLUSIVE MODE`, true, context.DeadlineExceeded.Error()},
	}
}

// lock takes the lock of a blockade, and returns its end. The guard has prepared its
// statements: to prepare one waits too, but is not part of it.
func (b blockade) lock(t *testing.T, w testDB, g *Guard) (end func()) {
	t.Helper()
	if b.free {
		g.once(t, order, gateway.OutcomeRejected)
	}
	return w.lockWith(t, b.text)
}

func (w testDB) lockWith(t *testing.T, text string) (end func()) {
	t.Helper()
	tx := w.begin(t)
	execute(t, tx, text)
	return func() { _ = tx.Rollback() }
}

// Begin ends while the database still waits for a lock, and the statement does not
// take the order afterwards.
func TestGuard_Begin_locked(t *testing.T) {
	w := newPostgres(t)
	for _, b := range blockades(w.table) {
		t.Run(b.name, func(t *testing.T) {
			g := w.guard(t, WithLease(8*time.Second))
			execute(t, g.db, `DELETE FROM `+w.table)
			patient := w.guard(t)
			end := b.lock(t, w, patient)
			err := g.Begin(t.Context(), order, false)
			if err == nil || !strings.Contains(err.Error(), b.says) || len(g.tokens) > 0 {
				t.Fatal(err)
			}
			w.awaitWaiting(t, 0) // the server has ended the statements as well
			end()
			o, err := g.Order(t.Context(), "", order)
			if err != nil || o.State != StateFree {
				t.Errorf("%+v, %v", o, err)
			}
			if err := patient.Begin(t.Context(), order, false); err != nil {
				t.Error(err)
			}
		})
	}
}

// The lease begins when the row is written, not when the statement arrived.
func TestGuard_Begin_lease_after_the_lock(t *testing.T) {
	w := newPostgres(t)
	for _, b := range blockades(w.table) {
		if !b.free {
			continue // the row is made before the wait: the clock of the process decides
		}
		t.Run(b.name, func(t *testing.T) {
			g := w.guard(t)
			execute(t, g.db, `DELETE FROM `+w.table)
			end := b.lock(t, w, g)
			result := make(chan error)
			go func() { result <- g.Begin(context.Background(), order, false) }()
			w.awaitWaiting(t, 1)
			var released time.Time
			check(t, g.db.QueryRow(`SELECT clock_timestamp()`).Scan(&released))
			end()
			check(t, <-result)
			if o, err := g.Order(t.Context(), "", order); err != nil || o.Begun.Before(released) {
				t.Errorf("released at %v: %+v, %v", released, o, err)
			}
		})
	}
}

// awaitWaiting waits until that many statements of this table wait for a lock.
func (w testDB) awaitWaiting(t *testing.T, want int) {
	t.Helper()
	db := w.open(t)
	const query = `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'`
	for got := -1; got != want; {
		check(t, db.QueryRowContext(t.Context(), query, w.table).Scan(&got))
		runtime.Gosched()
	}
}

// In SQLite, where only one connection writes at a time, Begin ends before the
// busy_timeout, which the connection has afterwards as before.
func TestGuard_Begin_busy(t *testing.T) {
	const hour = 3_600_000
	w := newSQLiteWith(t, fmt.Sprintf("_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)", hour))
	g := w.guard(t, WithLease(time.Second))
	g.db.SetMaxOpenConns(1)
	end := w.lockWith(t, `DELETE FROM `+w.table)
	err := g.Begin(t.Context(), order, false)
	if err == nil || len(g.tokens) > 0 {
		t.Fatal(err)
	}
	var timeout int
	if err := g.db.QueryRow(`PRAGMA busy_timeout`).Scan(&timeout); err != nil || timeout != hour {
		t.Errorf("busy_timeout is %d, %v", timeout, err)
	}
	end()
	g.wantState(t, StateFree)
	if err := w.guard(t).Begin(t.Context(), order, false); err != nil {
		t.Error(err)
	}
}
