package sqlguard

import (
	"errors"
	"strings"
	"testing"

	"github.com/cryptogw/gateway"
)

// Orders returns every order once, in pages, by merchant and ID.
func TestOrders(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t, WithMerchants())
		for _, k := range []key{{"b", "1"}, {"", "b"}, {"", "B"}, {"a", "2"}, {"", "a"}} {
			o := orderOf(k.order)
			o.Merchant = k.merchant
			check(t, granted(g.Begin(t.Context(), o)))
		}
		g.once(t, "c", gateway.OutcomeSucceeded)
		var found []string
		for q := (OrdersQuery{Most: 2}); ; {
			page, err := g.Orders(t.Context(), q)
			check(t, err)
			if len(page) == 0 {
				break
			}
			for _, o := range page {
				found = append(found, o.Merchant+"/"+o.ID+" "+string(o.State))
			}
			q.After = page[len(page)-1]
		}
		if got := strings.Join(found, ", "); got != "/B in flight, /a in flight, /b in flight, /c created, a/2 in flight, b/1 in flight" {
			t.Error(got)
		}
		all, err := g.Orders(t.Context(), OrdersQuery{})
		if _, wrong := g.Orders(t.Context(), OrdersQuery{Most: -1}); err != nil || len(all) != 6 || !errors.Is(wrong, gateway.ErrInvalidArgument) {
			t.Errorf("%d orders, %v, %v", len(all), err, wrong)
		}
	})
}
