package sqlguard

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/clocks"
)

// A clock is that of a process: it stands still between the statements.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

// A lease ends by what the clock of the process said before the statement. The client sends nothing
// after it has expired, also if the driver ignored the end of its context.
func TestGuard_Begin_expires(t *testing.T) {
	const lease = 8*time.Second + time.Microsecond // which is truncated
	g, connector := lossyGuard(t, WithLease(lease))
	c := &clock{at: time.Now()}
	start := c.at
	g.now = c.now
	connector.after = func(driver.Rows) { c.advance(time.Minute) }
	granted, err := g.Begin(t.Context(), orderOf(order))
	if err != nil || granted.State != gateway.OrderFree || granted.Expires != start.Add(8*time.Second) || granted.Known != nil {
		t.Errorf("%+v, %v", granted, err)
	}
	check(t, g.ends(t.Context(), order, gateway.OutcomeNotSent))

	g.now = func() time.Time { return time.Now().Add(-time.Minute) }
	s := &service{}
	_, err = s.client(t, g).CreateInvoice(t.Context(), invoice)
	if s.sent > 0 || !gateway.SafeToRetry(err) || !strings.Contains(err.Error(), "the lease of the order has expired") {
		t.Error(err, s.sent)
	}
	g.wantState(t, StateFree, 2)
}

// End tries again until its time is over by either clock: the monotonic one stands still while the
// machine is suspended, and the wall clock can be set back.
func TestGuard_End_clocks(t *testing.T) {
	for name, tt := range map[string]struct {
		monotonic, wall time.Duration // by which the clocks advance between two readings
		again           bool          // whether the statement is sent again
	}{
		"neither is over":             {mostRetryEnd / 2, mostRetryEnd / 2, true},
		"the machine was suspended":   {0, mostRetryEnd, false},
		"the wall clock was set back": {mostRetryEnd, -time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, connector := lossyGuard(t)
			check(t, g.begins(t.Context(), order))
			next := time.Now()
			g.now = func() time.Time {
				now := next
				next = clocks.Later(t, now, tt.monotonic, tt.wall)
				return now
			}
			lost := errors.New("connection reset")
			connector.refuse(1, lost)
			want := lost
			if tt.again {
				want = nil
			}
			wantError(t, g.ends(t.Context(), order, gateway.OutcomeSucceeded), want)
		})
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
			err := g.begins(t.Context(), order)
			if err == nil || !strings.Contains(err.Error(), b.says) || len(g.tokens) > 0 {
				t.Fatal(err)
			}
			w.awaitWaiting(t, 0) // the server has ended the statements as well
			end()
			o, err := g.Order(t.Context(), "", order)
			if err != nil || o.State != StateFree {
				t.Errorf("%+v, %v", o, err)
			}
			if err := patient.begins(t.Context(), order); err != nil {
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
			go func() { result <- g.begins(context.Background(), order) }()
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
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	db := w.open(t)
	const query = `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'`
	for got := -1; got != want; {
		if err := db.QueryRowContext(ctx, query, w.table).Scan(&got); err != nil {
			t.Fatalf("%d statements wait for a lock, want %d: %v", got, want, err)
		}
	}
}

// hour is the busy_timeout of a test, in milliseconds.
const hour = 3_600_000

func newBusySQLite(t *testing.T) testDB {
	t.Helper()
	return newSQLiteWith(t, fmt.Sprintf("_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)", hour))
}

// wantBusyTimeout compares the busy_timeout of the connection that the handle uses next.
func (g *Guard) wantBusyTimeout(t *testing.T, want int) {
	t.Helper()
	var got int
	if err := g.db.QueryRow(`PRAGMA busy_timeout`).Scan(&got); err != nil || got != want {
		t.Errorf("busy_timeout is %d, %v, want %d", got, err, want)
	}
}

// In SQLite, where only one connection writes at a time, Begin ends before the
// busy_timeout, which the connection has afterwards as before.
func TestGuard_Begin_busy(t *testing.T) {
	w := newBusySQLite(t)
	g := w.guard(t, WithLease(time.Second))
	g.db.SetMaxOpenConns(1)
	end := w.lockWith(t, `DELETE FROM `+w.table)
	err := g.begins(t.Context(), order)
	if err == nil || len(g.tokens) > 0 {
		t.Fatal(err)
	}
	g.wantBusyTimeout(t, hour)
	end()
	g.wantState(t, StateFree)
	if err := w.guard(t).begins(t.Context(), order); err != nil {
		t.Error(err)
	}
}

// A connection whose busy_timeout cannot be restored is closed: the handle uses it no more.
func TestGuard_Begin_busy_not_restored(t *testing.T) {
	g, connector := lossyGuardOf(t, newBusySQLite(t))
	g.db.SetMaxOpenConns(1)
	connector.broken = fmt.Sprintf("PRAGMA busy_timeout = %d", hour)
	check(t, g.begins(t.Context(), order))
	g.wantBusyTimeout(t, hour)
}
