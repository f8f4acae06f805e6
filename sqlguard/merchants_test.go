package sqlguard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cryptogw/gateway"
)

// kind returns the options of the guards of a table whose orders have a merchant, or none.
func kind(merchant string) []Option {
	if merchant == "" {
		return nil
	}
	return []Option{WithMerchants()}
}

// A table with a sent order of one kind is refused for the other, and nothing is sent again. The SQL that the error names moves the orders.
func TestWithMerchants_otherKind(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		for before, after := range map[string]string{"": "main", "main": ""} {
			old, sent := w.guard(t, kind(before)...), ofMerchant(before, order)
			check(t, old.asks(t.Context(), &sent))
			g, another := w.mustNew(t, kind(after)...), ofMerchant(after, "another")
			refuses := func() (reason string) {
				t.Helper()
				_, err := g.Mark(t.Context(), []gateway.OrderStatus{{Merchant: after, OrderID: "another"}})
				for _, err := range []error{g.asks(t.Context(), &another), err, g.Check(t.Context()), g.Migrate(t.Context())} {
					wantError(t, err, gateway.ErrInvalidArgument)
					reason = fmt.Sprint(err)
				}
				if o, err := g.Order(t.Context(), after, "another"); err != nil || o.Attempts > 0 {
					t.Errorf("%+v, %v", o, err)
				}
				return reason
			}
			refuses() // in flight
			check(t, old.ends(t.Context(), sent, gateway.OutcomeSucceeded))
			_, statement, _ := strings.Cut(refuses(), "move them: ")
			execute(t, g.db, strings.Replace(statement, "NAME", "main", 1))
			sent.Merchant = after
			wantError(t, g.asks(t.Context(), &sent), errCreated)
			check(t, errors.Join(g.Check(t.Context()), g.Migrate(t.Context())))
			wantError(t, w.mustNew(t, kind(before)...).Check(t.Context()), gateway.ErrInvalidArgument)
			execute(t, g.db, "DELETE FROM "+w.table)
		}
	})
}

// A call without a merchant is refused by a guard for named ones. A free order is of no kind: nothing of it can be sent again.
func TestWithMerchants_calls(t *testing.T) {
	w := newSQLite(t)
	w.guard(t).once(t, order, gateway.OutcomeRejected)
	g := w.guard(t, WithMerchants())
	err := g.begins(t.Context(), order)
	wantError(t, err, gateway.ErrInvalidArgument)
	wantText(t, err, "is set, and the call names no merchant")
	check(t, g.asks(t.Context(), new(ofMerchant("north", order))))
}

// Once an order of this process is created, the check for orders of the other kind costs no round trip.
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

// Of two processes of different kinds that begin their first orders at once, one has recorded its order and not looked yet: it
// withdraws the order.
func TestWithMerchants_looksAgain(t *testing.T) {
	w := newSQLite(t)
	w.guard(t)
	g := w.mustNew(t, WithMerchants())
	execute(t, g.db, "CREATE TRIGGER other AFTER INSERT ON gateway_orders WHEN NEW.merchant > '' BEGIN "+
		"INSERT INTO gateway_orders (merchant, order_id, gateway, created_at, record) VALUES ('', 'A-1', '', 1, '{}'); END")
	wantError(t, g.asks(t.Context(), new(ofMerchant("north", order))), gateway.ErrInvalidArgument)
	if o, err := g.Order(t.Context(), "north", order); err != nil || o.State != gateway.OrderFree || o.Attempts != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}
