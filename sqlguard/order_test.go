package sqlguard

import (
	"fmt"
	"testing"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/orders"
)

// Pending returns the unknown orders once, in pages, the longest unknown first, also those that are unknown since the same time.
func TestPending(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		g.once(t, "created", gateway.OutcomeSucceeded)
		check(t, g.begins(t.Context(), "in flight"))
		g.unknown(t, "1", "2", "b", "a")
		g.sets(t, "open_since = CASE WHEN order_id < '3' THEN 1000 ELSE 997 END WHERE open_since > 0")
		found := ""
		for q := (gateway.PendingQuery{Most: 1}); len(found) < 10; {
			page, err := g.Pending(t.Context(), q)
			check(t, err)
			if len(page) == 0 {
				break
			}
			found, q.After = found+page[0].OrderID+" ", page[0]
		}
		summary, err := g.PendingSummary(t.Context())
		if err != nil || found != "a b 1 2 " || summary.Count != 4 || summary.Oldest.UnixMicro() != 997 {
			t.Errorf("%s, %+v, %v", found, summary, err)
		}
		for _, q := range []gateway.PendingQuery{{Most: -1}, {After: gateway.OrderStatus{OrderID: "a"}}} {
			_, err := g.Pending(t.Context(), q)
			wantError(t, err, gateway.ErrInvalidArgument)
		}
	})
}

// A request keeps its digits, zeros at the end included; its lease is as long as it was set, by the clock of the database.
func TestOrder(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		asked := orderOf(order)
		check(t, g.asks(t.Context(), &asked))
		o := g.order(t, order)
		if o.SentUntil.Sub(o.Begun) != defaultLease || o.GuardReadAt.Before(o.Begun) || o.Record.Request.Price.Exponent() != -2 {
			t.Errorf("%+v", o)
		}
		check(t, g.ends(t.Context(), asked, gateway.OutcomeUnknown))
		if ended := g.order(t, order); ended.Begun != o.Begun || ended.Since != o.Begun || ended.SentUntil != ended.Ended {
			t.Errorf("%+v, and before its end %+v", ended, o)
		}
	})
}

// The column record has at most 4 MiB: the most dispensable parts are dropped. The first attempt of unknown outcome, the
// last evidence and the first and the last invoice stay.
func TestRecord_bound(t *testing.T) {
	attempts := func(count int, record gateway.OrderRecord) (all []orders.Attempt[gateway.OrderRecord]) {
		for i := range count {
			record.Cause = fmt.Sprint(i)
			all = append(all, orders.Attempt[gateway.OrderRecord]{Name: int64(i + 1), Record: record})
		}
		return all
	}
	large := make([]byte, 5<<18) // two of them are kept
	for name, tt := range map[string]struct {
		before row
		want   string // the names of the attempts, and of the invoices
	}{
		"bodies":   {row{Open: attempts(3, gateway.OrderRecord{Body: large})}, "open 1 2+ 3+; invoices"},
		"attempts": {row{Open: attempts(3, gateway.OrderRecord{Invoice: large})}, "open 1 3; invoices"},
		"invoices": {row{Invoices: attempts(4, gateway.OrderRecord{Invoice: large})}, "open; invoices 1 3 4"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := recordText(tt.before)
			check(t, err)
			var after row
			check(t, readRecord(text, &after))
			got := "open"
			for _, a := range after.Open {
				got += fmt.Sprint(" ", a.Name)
				if len(a.Record.Body) > 0 {
					got += "+"
				}
			}
			got += "; invoices"
			for _, a := range after.Invoices {
				got += fmt.Sprint(" ", a.Name)
			}
			if got != tt.want || len(text) > 4<<20 {
				t.Errorf("%s in %d bytes, want %s", got, len(text), tt.want)
			}
		})
	}
	if _, err := recordText(row{Open: attempts(1, gateway.OrderRecord{Invoice: make([]byte, 4<<20)})}); err == nil {
		t.Error("a record of more than 4 MiB is kept")
	}
}
