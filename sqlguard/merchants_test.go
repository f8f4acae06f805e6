package sqlguard

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cryptogw/gateway"
)

// kind is how the guards of a table are made whose orders have a merchant, or none.
func kind(merchant string) []Option {
	if merchant == "" {
		return nil
	}
	return []Option{WithMerchants()}
}

// A table with a sent order of one kind is refused for the other, and nothing is sent again. The SQL that the error names moves the orders.
func TestWithMerchants_otherKind(t *testing.T) {
	for before, after := range map[string]string{"": "main", "main": ""} {
		t.Run("from "+before+" to "+after, func(t *testing.T) {
			inEach(t, func(t *testing.T, w testDB) {
				old := w.guard(t, kind(before)...)
				sent := ofMerchant(before, order)
				check(t, granted(&sent)(old.Begin(t.Context(), sent)))
				g := w.mustNew(t, kind(after)...)
				refuses := func() (reason string) {
					t.Helper()
					_, err1 := g.Begin(t.Context(), ofMerchant(after, "another"))
					_, err2 := g.Mark(t.Context(), []gateway.OrderStatus{{Merchant: after, OrderID: "another"}})
					for _, err := range []error{err1, err2, g.Check(t.Context()), g.Migrate(t.Context())} {
						if !errors.Is(err, gateway.ErrInvalidArgument) {
							t.Errorf("not refused: %v", err)
							continue
						}
						reason = err.Error()
					}
					if o, err := g.Order(t.Context(), after, "another"); err != nil || o.Attempts > 0 {
						t.Errorf("%+v, %v", o, err)
					}
					return reason
				}
				refuses() // in flight
				check(t, recorded(old.End(t.Context(), sent, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded})))
				_, statement, found := strings.Cut(refuses(), "move them: ")
				if !found {
					t.Fatal(statement)
				}
				execute(t, g.db, strings.Replace(statement, "NAME", "main", 1))
				if lease, err := g.Begin(t.Context(), ofMerchant(after, order)); err != nil || lease.State != gateway.OrderCreated {
					t.Errorf("%+v, %v", lease, err)
				}
				check(t, errors.Join(g.Check(t.Context()), g.Migrate(t.Context())))
				wantError(t, w.mustNew(t, kind(before)...).Check(t.Context()), gateway.ErrInvalidArgument)
			})
		})
	}
}

// A call without a merchant is refused by a guard for named ones.
func TestWithMerchants_unnamed(t *testing.T) {
	g := newSQLite(t).guard(t, WithMerchants())
	if err := g.begins(t.Context(), order); !errors.Is(err, gateway.ErrInvalidArgument) || !strings.Contains(err.Error(), "is set, and the call names no merchant") {
		t.Error(err)
	}
}

// A free order is of no kind: nothing of it can be sent again.
func TestWithMerchants_freeOrders(t *testing.T) {
	w := newSQLite(t)
	w.guard(t).once(t, order, gateway.OutcomeRejected)
	if lease, err := w.guard(t, WithMerchants()).Begin(t.Context(), ofMerchant("north", order)); err != nil || lease.State != gateway.OrderFree {
		t.Errorf("%+v, %v", lease, err)
	}
}

// Processes of both kinds that start on an empty table, in every interleaving of recording the first order and of looking
// for the other kind: at most one kind sends. A process that has a created order is never stopped by the other kind.
func TestWithMerchants_bothKindsAtOnce(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		for round := range 20 {
			guards := [2]*Guard{w.guard(t), w.mustNew(t, WithMerchants())}
			id := fmt.Sprint("A-", round)
			all := [2]gateway.Order{orderOf(id), ofMerchant("main", id)}
			errs := [2]error{}
			var both sync.WaitGroup
			for i, g := range guards {
				both.Go(func() { errs[i] = granted(&all[i])(g.Begin(t.Context(), all[i])) })
			}
			both.Wait()
			if errs[0] == nil && errs[1] == nil {
				t.Fatal("both kinds are sent")
			}
			for i, g := range guards {
				if errs[i] == nil {
					check(t, recorded(g.End(t.Context(), all[i], gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded})))
					check(t, refused(g.Begin(t.Context(), ofMerchant(all[i].Merchant, "next"))))
					wantError(t, refused(guards[1-i].Begin(t.Context(), ofMerchant(all[1-i].Merchant, "next"))), gateway.ErrInvalidArgument)
				}
			}
			execute(t, guards[0].db, "DELETE FROM "+w.table)
		}
	})
}

// That the table has no order of the other kind costs no round trip once an order of this process is created.
func TestWithMerchants_roundTrips(t *testing.T) {
	w := newMariaDB(t)
	p := w.behindProxy(t)
	g := w.guard(t)
	g.once(t, "first", gateway.OutcomeSucceeded)
	before := p.trips.Load()
	g.once(t, order, gateway.OutcomeSucceeded)
	if trips := p.trips.Load() - before; trips != 2 {
		t.Errorf("%d round trips of an order", trips)
	}
}

// Of two processes of different kinds, one has recorded its first order and not looked yet: it withdraws the order.
func TestWithMerchants_looksAgain(t *testing.T) {
	w := newSQLite(t)
	w.guard(t)
	g := w.mustNew(t, WithMerchants())
	execute(t, g.db, "CREATE TRIGGER other AFTER INSERT ON gateway_orders WHEN NEW.merchant > '' BEGIN INSERT INTO gateway_orders (merchant, order_id, gateway, created_at, record) VALUES ('', 'A-1', '', 1, '{}'); END")
	_, err := g.Begin(t.Context(), ofMerchant("north", order))
	wantError(t, err, gateway.ErrInvalidArgument)
	if o, err := g.Order(t.Context(), "north", order); err != nil || o.State != gateway.OrderFree || o.Attempts != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}
