package sqlguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

const day = 24 * time.Hour

// growOld makes the orders older, all if none is named. The lease of one in flight stays.
func (w testDB) growOld(t *testing.T, db *sql.DB, d time.Duration, ids ...string) {
	t.Helper()
	older := "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', %[1]s, '-%[2]s')"
	if w.dialect == PostgreSQL {
		older = "%[1]s - interval '%[2]s'"
	}
	var set []string
	for _, column := range []string{"begun_at", "ended_at", "unknown_since", "created_at", "resolved_at"} {
		set = append(set, column+" = "+fmt.Sprintf(older, column, interval(d)))
	}
	where := ""
	if len(ids) > 0 {
		where = ` WHERE order_id IN ('` + strings.Join(ids, `', '`) + `')`
	}
	if _, err := db.Exec(`UPDATE ` + w.table + ` SET ` + strings.Join(set, ", ") + where); err != nil {
		t.Error(err)
	}
}

// fill adds created orders that ended one second after the other, the last of them at
// a time before now.
func (w testDB) fill(t *testing.T, db *sql.DB, n int, ago time.Duration) {
	t.Helper()
	text := `INSERT INTO %[1]s (order_id, attempts, begun_at, lease_until, ended_at, outcome, created_at)
		SELECT 'old-' || i, 1, at, at, at, 'succeeded', at FROM (
			SELECT i, now() - (%[2]d - i + %[3]d) * interval '1 second' AS at FROM generate_series(1, %[2]d) AS i) AS made`
	if w.dialect == SQLite {
		text = `WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < %[2]d),
		made AS (SELECT i, strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', '-' || (%[2]d - i + %[3]d) || ' seconds') AS at FROM numbers)
		INSERT INTO %[1]s (order_id, attempts, begun_at, lease_until, ended_at, outcome, created_at)
		SELECT 'old-' || i, 1, at, at, at, 'succeeded', at FROM made`
	}
	execute(t, db, fmt.Sprintf(text, w.table, n, int(ago.Seconds())))
}

// wantCount compares the number of orders that the table has.
func (w testDB) wantCount(t *testing.T, db *sql.DB, want int) {
	t.Helper()
	var n int
	check(t, db.QueryRow(`SELECT count(*) FROM `+w.table).Scan(&n))
	if n != want {
		t.Errorf("%d orders are left, want %d", n, want)
	}
}

func (g *Guard) wantPruned(t *testing.T, age time.Duration, want int) {
	t.Helper()
	if n, err := g.Prune(t.Context(), age); err != nil || n != want {
		t.Errorf("pruned %d, %v, want %d", n, err, want)
	}
}

// begin begins a transaction, which ends with the test at the latest.
func (w testDB) begin(t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := w.open(t).BeginTx(context.Background(), nil)
	check(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// pruned are histories of an order, and whether it may be deleted when all of it is old.
var pruned = map[string]struct {
	actions string
	deleted bool
}{
	"created":                         {"a begins, a succeeds", true},
	"rejected":                        {"a begins, a is rejected", true},
	"not sent":                        {"a begins, a sends nothing", true},
	"found":                           {"a begins, a learns nothing, anna looks it up, anna finds one", true},
	"not found":                       {"a begins, a learns nothing, anna looks it up, anna finds none", true},
	"not found after a crash":         {"a begins, time ends, anna looks it up, anna finds none", true},
	"in flight":                       {"a begins", false},
	"resubmitted, in flight":          {"a begins, a learns nothing, b resubmits", false},
	"late success, another in flight": {"a begins, time ends, b resubmits, a succeeds", false},
	"crashed":                         {"a begins, time ends", false},
	"unknown":                         {"a begins, a learns nothing", false},
	"resubmitted, rejected":           {"a begins, a learns nothing, b resubmits, b is rejected", false},
	"not found, then late unknown":    {"a begins, time ends, anna looks it up, anna finds none, a learns nothing", false},
}

// Prune deletes an order that is created or free once nothing has changed for the
// age, and no other, however old it is.
func TestGuard_Prune(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		for name, tt := range pruned {
			t.Run(name, func(t *testing.T) {
				p := newScenario(t, w)
				p.doAll(t, tt.actions)
				w.growOld(t, p.a.db, 29*day)
				p.prunes(t, 30*day, false)
				w.growOld(t, p.a.db, 2*day)
				p.prunes(t, 30*day, tt.deleted)
				w.growOld(t, p.a.db, 100_000*day)
				p.prunes(t, day, false) // what is left stays
			})
		}
	})
}

// prunes compares what a Prune does to the order.
func (p *scenario) prunes(t *testing.T, age time.Duration, deleted bool) {
	t.Helper()
	before, err := p.b.Order(t.Context(), "", order)
	check(t, err)
	want := 0
	if deleted {
		want, before = 1, Order{ID: order, State: StateFree}
	}
	n, err := p.a.Prune(t.Context(), age)
	if err != nil || n != want {
		t.Fatalf("pruned %d, %v, want %d", n, err, want)
	}
	if after, err := p.b.Order(t.Context(), "", order); err != nil || !reflect.DeepEqual(after, before) {
		t.Fatalf("%+v, %v, want %+v", after, err, before)
	}
}

// The age is that of the last change: an order that was resolved, or for which a late success was
// reported, is as young as that, whenever it was begun.
func TestGuard_Prune_last_change(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		for first, last := range map[string]string{
			"a begins, a learns nothing, anna looks it up":           "anna finds one",
			"a begins, time ends, anna looks it up, anna finds none": "a succeeds",
			"a begins, a learns nothing":                             "a resubmits, a succeeds",
		} {
			t.Run(last, func(t *testing.T) {
				p := newScenario(t, w)
				p.doAll(t, first)
				w.growOld(t, p.a.db, 90*day)
				p.doAll(t, last)
				p.prunes(t, 30*day, false)
				w.growOld(t, p.a.db, 31*day)
				p.prunes(t, 30*day, true)
			})
		}
	})
}

// A pruned order is as one that was never begun, for every merchant.
func TestGuard_Prune_forgets(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t, WithMerchants())
		client := (&service{}).client(t, g)
		opts := [][]gateway.CallOption{{}, {gateway.WithMerchant("shop-a")}, {gateway.WithMerchant("shop-b")}}
		for range 2 {
			for _, opt := range opts {
				if _, err := client.CreateInvoice(t.Context(), invoice, opt...); err != nil {
					t.Fatal(err)
				}
				if again, err := client.CreateInvoice(t.Context(), invoice, opt...); err != nil || !again.Replayed {
					t.Fatal(again, err)
				}
			}
			w.growOld(t, g.db, 400*day)
			g.wantPruned(t, 365*day, len(opts))
		}
	})
}

// An age below a day is an error that names it, and nothing is deleted. The longest is
// longer than any order is old.
func TestGuard_Prune_age(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		w.fill(t, g.db, 3, 200*365*day)
		for _, age := range []time.Duration{math.MinInt64, -day, 0, 30, day - 1} {
			n, err := g.Prune(t.Context(), age)
			var argument *gateway.ArgumentError
			if n != 0 || !errors.As(err, &argument) || argument.Name != "age" || !errors.Is(err, gateway.ErrInvalidArgument) {
				t.Errorf("%v: %d, %v", age, n, err)
			}
		}
		g.wantPruned(t, math.MaxInt64, 0)
		w.wantCount(t, g.db, 3)
		g.wantPruned(t, day, 3)
	})
}

// All are deleted, in batches, and those that are younger stay.
func TestGuard_Prune_batches(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g, connector := lossyGuardOf(t, w)
		w.fill(t, g.db, 1500, 10*day)
		g.once(t, order, gateway.OutcomeSucceeded)
		var begins []string // of the batches, each where the last one ended
		connector.observe = func(query string, args []driver.NamedValue) {
			if strings.HasPrefix(query, "DELETE") {
				begins = append(begins, args[0].Value.(string))
			}
		}
		g.wantPruned(t, 9*day, 1500)
		w.wantCount(t, g.db, 1)
		if len(begins) != 3 || !slices.IsSorted(begins) || len(slices.Compact(begins)) != 3 { // the last deletes none
			t.Errorf("the batches begin at %q", begins)
		}
		g.wantState(t, StateCreated)
	})
}

// More orders than a batch has may have ended at one time.
func TestGuard_Prune_at_one_time(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		w.fill(t, g.db, 1500, 10*day)
		execute(t, g.db, `UPDATE `+w.table+` SET ended_at = (SELECT min(ended_at) FROM `+w.table+`), begun_at = (SELECT min(begun_at) FROM `+w.table+`)`)
		g.wantPruned(t, 9*day, 1500)
	})
}

// Prune stops when its context ends or the database fails, and returns how many it had
// deleted by then.
func TestGuard_Prune_stopped(t *testing.T) {
	lost := errors.New("connection reset")
	inBoth(t, func(t *testing.T, w testDB) {
		for name, tt := range map[string]struct {
			stop    func(c *lossyConnector, cancel func())
			deleted int
			want    error
		}{
			"its context ends":        {endAtDelete, 1000, context.Canceled},
			"the database fails":      {func(c *lossyConnector, _ func()) { c.refuse(3, lost) }, 1000, lost},
			"it fails from the start": {func(c *lossyConnector, _ func()) { c.refuse(1, lost) }, 0, lost},
		} {
			t.Run(name, func(t *testing.T) {
				g, connector := lossyGuardOf(t, w)
				execute(t, g.db, `DELETE FROM `+w.table)
				w.fill(t, g.db, 1500, 10*day)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				tt.stop(connector, cancel)
				if n, err := g.Prune(ctx, day); n != tt.deleted || !errors.Is(err, tt.want) {
					t.Errorf("%d, %v", n, err)
				}
				w.wantCount(t, g.db, 1500-tt.deleted)
			})
		}
	})
}

// endAtDelete ends a context as the second batch is sent.
func endAtDelete(c *lossyConnector, cancel func()) {
	batches := 0
	c.observe = func(query string, _ []driver.NamedValue) {
		if strings.HasPrefix(query, "DELETE") {
			batches++
		}
		if batches == 2 {
			cancel()
		}
	}
}

// Several at once delete each order once, and all.
func TestGuard_Prune_at_once(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		const orders = 2500
		guards := []*Guard{w.guard(t), w.guard(t), w.guard(t)}
		w.fill(t, guards[0].db, orders, 10*day)
		var total atomic.Int64
		var all sync.WaitGroup
		for _, g := range guards {
			all.Go(func() {
				n, err := g.Prune(t.Context(), day)
				if err != nil {
					t.Error(err)
				}
				total.Add(int64(n))
			})
		}
		all.Wait()
		w.wantCount(t, guards[0].db, 0)
		if total.Load() != orders {
			t.Errorf("%d were deleted", total.Load())
		}
	})
}

// In PostgreSQL a Prune does not wait for the batch of another, nor for a Begin, and
// deletes what they do not hold.
func TestGuard_Prune_skips_locked(t *testing.T) {
	w := newPostgres(t)
	g := w.guard(t)
	w.fill(t, g.db, 1500, 10*day)
	tx := w.begin(t)
	others, err := readTexts(tx.Query(g.stmts.prune, "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z"))
	if err != nil || len(others) != 1000 {
		t.Fatal(len(others), err)
	}
	g.wantPruned(t, day, 500)
	check(t, tx.Rollback())
	g.wantPruned(t, day, 1000)
}

// An order that a Begin has changed before a Prune locks it stays: in PostgreSQL the
// Prune skips it until the Begin has committed, and is in flight then.
func TestGuard_Prune_after_Begin(t *testing.T) {
	w := newPostgres(t)
	g := w.guard(t)
	g.once(t, order, gateway.OutcomeRejected)
	w.growOld(t, g.db, 10*day)
	tx := w.begin(t)
	v, err := readVerdict(tx.Query(g.stmts.begin, g.beginArgs(key{order: order}, "token", orderOf(order))...))
	if err != nil || v.text != begun {
		t.Fatal(v, err)
	}
	for range 2 { // while the Begin is about to commit, and after it
		g.wantPruned(t, day, 0)
		_ = tx.Commit()
	}
	g.wantState(t, StateInFlight, 2)
}

// A Begin that comes while a Prune deletes the order waits for it if the order is free, and holds it
// afterwards. One that is created is refused without waiting.
func TestGuard_Prune_before_Begin(t *testing.T) {
	for name, tt := range map[string]struct {
		end      func(*sql.Tx) error
		attempts int
	}{"committed": {(*sql.Tx).Commit, 1}, "rolled back": {(*sql.Tx).Rollback, 2}} {
		t.Run(name, func(t *testing.T) {
			w := newPostgres(t)
			g := w.guard(t)
			w.fill(t, g.db, 1, 10*day)
			g.once(t, order, gateway.OutcomeRejected)
			w.growOld(t, g.db, 10*day)
			tx := w.begin(t)
			deleted, err := readTexts(tx.Query(g.stmts.prune, "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z"))
			if err != nil || len(deleted) != 2 {
				t.Fatal(deleted, err)
			}
			wantError(t, g.begins(t.Context(), "old-1"), errCreated)
			result := make(chan error)
			go func() { result <- g.begins(context.Background(), order) }()
			w.awaitWaiting(t, 1)
			check(t, tt.end(tx))
			check(t, <-result)
			g.wantState(t, StateInFlight, tt.attempts)
		})
	}
}

// While others prune without pause, an order that was begun is in flight until it is ended,
// although everything in the table is old.
func TestGuard_Prune_beside_Begin(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		pruner := w.guard(t)
		var total atomic.Int64
		var working, pruning sync.WaitGroup
		for i := range 3 {
			g := w.guard(t)
			working.Go(func() { w.beginOld(t, g, fmt.Sprint("order-", i%2)) })
		}
		done := make(chan struct{})
		for range 2 {
			pruning.Go(func() {
				for ended := false; !ended; {
					select {
					case <-done:
						ended = true // once more
					default:
					}
					n, err := pruner.Prune(t.Context(), day)
					if err != nil {
						t.Error(err)
					}
					total.Add(int64(n))
				}
			})
		}
		working.Wait()
		close(done)
		pruning.Wait()
		if total.Load() == 0 {
			t.Error("nothing was pruned")
		}
	})
}

// beginOld begins and ends an order again and again, and makes it old whenever it is
// free.
func (w testDB) beginOld(t *testing.T, g *Guard, id string) {
	for range 50 {
		if err := g.begins(t.Context(), id); errors.Is(err, errInFlight) {
			continue
		} else if err != nil {
			t.Error(err)
		}
		if o, err := g.Order(t.Context(), "", id); err != nil || o.State != StateInFlight {
			t.Errorf("%+v, %v", o, err)
		}
		w.growOld(t, g.db, 2*day, id)
		if err := g.ends(t.Context(), id, gateway.OutcomeRejected); err != nil {
			t.Error(err)
		}
		w.growOld(t, g.db, 2*day, id)
	}
}

// A merchant may partition the table by the order. Rows of several partitions then have the
// same place in their partition: what is unknown stays in all of them.
func TestGuard_Prune_partitioned(t *testing.T) {
	w := newPostgres(t)
	db, created := w.open(t), PostgreSQL.schema(w.table)[0]
	execute(t, db, created+` PARTITION BY HASH (merchant, order_id)`)
	for i := range 4 {
		text := fmt.Sprintf(`CREATE TABLE %s_%d PARTITION OF %[1]s FOR VALUES WITH (MODULUS 4, REMAINDER %[2]d)`, w.table, i)
		execute(t, db, text)
	}
	g := w.guard(t)
	for i := range 100 {
		id, outcome := fmt.Sprint(i), gateway.OutcomeUnknown
		if i%2 == 0 {
			outcome = gateway.OutcomeSucceeded
		}
		g.once(t, id, outcome)
	}
	w.growOld(t, g.db, 10*day)
	g.wantPruned(t, day, 50)
	if pending, err := g.Pending(t.Context(), PendingQuery{}); err != nil || len(pending) != 50 {
		t.Errorf("%d are pending, %v", len(pending), err)
	}
	w.wantCount(t, g.db, 50)
}

// Where order ids begin with a month, a partition of a month is dropped as a whole. An order of it
// is refused from then on: nothing is sent.
func TestPartitions_by_month(t *testing.T) {
	w := newPostgres(t)
	db := w.open(t)
	execute(t, db, PostgreSQL.schema(w.table)[0]+` PARTITION BY RANGE (order_id)`)
	for i, month := range []string{"2026-10", "2026-11"} {
		execute(t, db, fmt.Sprintf(`CREATE TABLE %s_%d PARTITION OF %[1]s FOR VALUES FROM ('%[3]s') TO ('%[3]s~')`, w.table, i, month))
	}
	g, ctx := w.guard(t), t.Context()
	for _, id := range []string{"2026-10-1", "2026-11-1"} {
		check(t, g.begins(ctx, id))
		check(t, recorded(g.End(ctx, orderOf(id), successOf(id))))
		wantError(t, g.begins(ctx, id), errCreated)
	}
	g.once(t, "2026-11-2", gateway.OutcomeUnknown)
	execute(t, db, `DROP TABLE `+w.table+`_0`)
	for _, id := range []string{"2026-10-1", "2026-10-2", "2027-01-1"} {
		if state := sqlState(g.begins(ctx, id)); state != "23514" { // no partition
			t.Errorf("%s is not refused: %s", id, state)
		}
	}
	wantError(t, g.begins(ctx, "2026-11-1"), errCreated)
	if pending, err := g.Pending(ctx, PendingQuery{}); err != nil || len(pending) != 1 {
		t.Errorf("%d are pending, %v", len(pending), err)
	}
}

// Pending returns the orders that have been unknown longest, the oldest first, or all, and
// PendingSummary how many there are.
func TestGuard_Pending(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		g.once(t, "created", gateway.OutcomeSucceeded)
		check(t, g.begins(t.Context(), "held"))
		if s, err := g.PendingSummary(t.Context()); err != nil || s != (PendingSummary{}) {
			t.Errorf("%+v, %v", s, err)
		}
		for _, id := range []string{"c", "a", "b"} {
			g.once(t, id, gateway.OutcomeUnknown)
			w.growOld(t, g.db, time.Minute)
		}
		all, err := g.Pending(t.Context(), PendingQuery{})
		if err != nil || len(all) != 3 || all[0].ID != "c" || all[1].ID != "a" {
			t.Fatalf("%+v, %v", all, err)
		}
		if s, err := g.PendingSummary(t.Context()); err != nil || s != (PendingSummary{3, all[0].Since}) {
			t.Errorf("%+v, %v", s, err)
		}
		for n, want := range map[int]int{1: 1, 2: 2, 3: 3, math.MaxInt: 3} {
			if first, err := g.Pending(t.Context(), PendingQuery{Most: n}); err != nil || !reflect.DeepEqual(first, all[:want]) {
				t.Errorf("%d: %+v, %v", n, first, err)
			}
		}
		none, err := g.Pending(t.Context(), PendingQuery{Most: -1})
		if refusal, ok := errors.AsType[*gateway.ArgumentError](err); len(none) > 0 || !ok || refusal.Name != "q.Most" {
			t.Errorf("%+v, %v", none, err)
		}
	})
}

// Pages have every order once, in the order of Pending, also those that became unknown at the same moment.
func TestGuard_Pending_pages(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t, WithMerchants())
		for i := range 12 {
			o := orderOf(fmt.Sprint("order-", i%4))
			o.Merchant = []string{"", "b", "a"}[i/4]
			check(t, granted(g.Begin(t.Context(), o)))
			check(t, recorded(g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeUnknown})))
		}
		execute(t, g.db, `UPDATE `+w.table+` SET unknown_since = '2026-01-02T03:04:05.678Z' WHERE order_id <> 'order-3'`)
		all, err := g.Pending(t.Context(), PendingQuery{})
		check(t, err)
		for most := 1; most <= 13; most++ {
			var paged []Order
			for q := (PendingQuery{Most: most}); ; q.After = paged[len(paged)-1] {
				page, err := g.Pending(t.Context(), q)
				check(t, err)
				if paged = append(paged, page...); len(page) < most {
					break
				}
			}
			if len(all) != 12 || !reflect.DeepEqual(paged, all) {
				t.Errorf("%d at a time: %+v, want %+v", most, paged, all)
			}
		}
	})
}

// An order that Pending did not return would be before all others.
func TestGuard_Pending_after_an_order_that_it_did_not_return(t *testing.T) {
	g := newSQLite(t).guard(t)
	_, err := g.Pending(t.Context(), PendingQuery{After: Order{ID: "order-1"}})
	if refusal, ok := errors.AsType[*gateway.ArgumentError](err); !ok || refusal.Name != "q.After" {
		t.Error(err)
	}
}
