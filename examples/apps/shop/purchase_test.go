package main

import (
	"net/http"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// postConcurrently posts forms 40 times concurrently, to several servers, and returns
// the one location of all redirects.
func (v *visitor) postConcurrently(servers []string, path string, forms ...[]string) string {
	v.t.Helper()
	var wg sync.WaitGroup
	locations := make(chan string, 40)
	for i := range 40 {
		wg.Go(func() {
			res, err := v.do(http.MethodPost, servers[i%len(servers)]+path, formOf(forms[i/2%len(forms)]...))
			assert.NoError(v.t, err)
			assert.Equal(v.t, http.StatusSeeOther, res.status, res.text)
			locations <- res.location
		})
	}
	wg.Wait()
	close(locations)
	location := <-locations
	for other := range locations {
		require.Equal(v.t, location, other, "the redirects differ")
	}
	return location
}

// Tabs, double presses and two servers lead to one order and one invoice, and the page
// has what was sent.
func TestPurchase_concurrentRequests(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		_, one := h.open()
		s, two := h.open()
		servers, pairs := []string{one.URL, two.URL}, []string{h.pair("BTC", "Bitcoin"), h.pair("LTC", "Litecoin")}
		v := newVisitor(t)
		id := v.buyForm(one.URL, "lamp")
		require.Equal(t, id, v.buyForm(two.URL, "lamp"), "another tab has the same form")
		at := v.postConcurrently(servers, "/orders", []string{"order", id})
		require.Equal(t, at, v.postConcurrently(servers, at+"/pay", []string{"pair", pairs[0], "price", "$240.00"}, []string{"pair", pairs[1], "price", "$240.00"}))
		invoices := h.gw.InvoicesFor(id)
		require.Len(t, invoices, 1)
		assert.Equal(t, 1, h.sent())
		o := h.readOrder(s, at)
		assert.Equal(t, []string{"240", "usd", o.Coin, o.Network}, []string{o.Price.String(), invoices[0].BaseCurrency, invoices[0].CoinSymbol, invoices[0].NetworkName})
		assert.True(t, o.Amount.Equal(decimal.RequireFromString(invoices[0].Amount)), o.Amount)
		assert.Contains(t, v.get(one.URL+at).visibleText(), "Amount "+o.Amount.String()+" "+o.Coin)

		assert.Equal(t, at, v.post(two.URL+"/orders", "order", id).location, "an old tab leads to the order")
		assert.NotEqual(t, at, v.order(one.URL, "lamp"), "the next purchase is another order")
	})
}

func TestPurchase_faults(t *testing.T) {
	t.Parallel()
	const checking = "We are checking your order"
	for name, test := range map[string]struct {
		fault      gatewaytest.Fault
		heading    string
		state      state
		invoices   int
		afterRetry int // the number of invoices after the buyer's next request
	}{
		"lost response":      {gatewaytest.FaultCommitThenDrop(), checking, stateUnknown, 1, 1},
		"malformed response": {gatewaytest.FaultEdit("/result", "{"), checking, stateUnknown, 1, 1},
		"connection reset":   {gatewaytest.FaultReset(), checking, stateUnknown, 0, 0},
		"bad gateway":        {gatewaytest.FaultPage(502), checking, stateUnknown, 0, 0},
		"timeout":            {gatewaytest.FaultStall(), checking, stateUnknown, 0, 0},
		"refused":            {gatewaytest.FaultRefuse(400, "not today"), "How would you like to pay?", stateRefused, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			s, server := h.open()
			v := newVisitor(t)
			at := v.order(server.URL, "mug")
			h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, test.fault)
			require.Equal(t, at, v.pay(server.URL, at, h.pair("BTC", "Bitcoin")).location)
			eventually(t, "the result is recorded", func() bool { return h.readOrder(s, at).State == test.state })
			res := v.get(server.URL + at)
			assert.Contains(t, res.text, ">"+test.heading+"</h1>")
			assert.Equal(t, test.state == stateRefused, len(hiddenPriceField.FindString(res.text)) > 0, "a way to pay")
			assert.NotContains(t, res.text, "not today", "the gateway's message is for the merchant only")
			assert.Len(t, h.gw.InvoicesFor(path.Base(at)), test.invoices)

			require.Equal(t, at, v.post(server.URL+at+"/pay", "pair", h.pair("LTC", "Litecoin"), "price", "$18.00").location)
			assert.Len(t, h.gw.InvoicesFor(path.Base(at)), test.afterRetry)
			if test.state == stateUnknown {
				assert.Equal(t, 1, h.sent())
			}
		})
	}
}

func TestPurchase_unreachableGateway(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.cfg.ratesTTL = 5 * time.Minute
	s, server := h.open()
	v := newVisitor(t)
	at := v.order(server.URL, "mug")
	v.get(server.URL + at) // caches the rates and the catalog
	h.gw.Close()
	require.Equal(t, at, v.pay(server.URL, at, h.pair("BTC", "Bitcoin")).location)
	h.awaitResult(s, at)
	assert.Contains(t, v.get(server.URL+at).visibleText(), "did not reach the payment service")
	_, cold := h.open()
	assert.Equal(t, http.StatusServiceUnavailable, v.get(cold.URL+at).status, "no rates are available")
}

// The page responds while the invoice is being sent, and shows the payment afterwards.
// The buyer may be gone.
func TestPurchase_slowGateway(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.cfg.invoiceTimeout = 10 * time.Second
	s, server := h.open()
	v := newVisitor(t)
	at := v.order(server.URL, "mug")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultSlowBody(6*time.Millisecond))
	require.Equal(t, at, v.pay(server.URL, at, h.pair("BTC", "Bitcoin")).location)
	res := v.get(server.URL + at)
	assert.Contains(t, res.visibleText(), "Your order is being sent")
	assert.Contains(t, res.text, `data-view="sending"`)
	assert.NotContains(t, res.text, "http-equiv")
	eventually(t, "the invoice is recorded", func() bool { return h.readOrder(s, at).State == stateCreated })
	assert.Contains(t, v.get(server.URL+at).text, `data-view="pay"`)
	assert.Equal(t, 1, h.sent())
}

// What another process, a crash or the merchant has told the guard has precedence over
// the record of the shop.
func TestPurchase_guardHasPrecedence(t *testing.T) {
	t.Parallel()
	for heading, known := range map[string]*gateway.OrderRecord{
		"Your order is being sent":   nil,
		"We are checking your order": {Outcome: gateway.OutcomeUnknown},
		"Your order is saved":        {Outcome: gateway.OutcomeSucceeded}, // without the response
	} {
		t.Run(heading, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			s, server := h.open()
			v := newVisitor(t)
			at := v.order(server.URL, "mug")
			h.begin(s, at, known)
			v.post(server.URL+at+"/pay", "pair", h.pair("BTC", "Bitcoin"), "price", "$18.00")
			assert.Contains(t, v.get(server.URL+at).visibleText(), heading)
			assert.Zero(t, h.sent())
		})
	}
}

// begin begins an order in the guard, and ends it with a record unless that is nil.
func (h *harness) begin(s *shop, at string, r *gateway.OrderRecord) {
	h.t.Helper()
	o := gateway.Order{Request: gateway.InvoiceRequest{OrderID: path.Base(at)}}
	lease, err := s.guard.Begin(h.t.Context(), o)
	require.NoError(h.t, err)
	require.Equal(h.t, gateway.OrderFree, lease.State)
	if r != nil {
		r.Request = o.Request
		_, err = s.guard.End(h.t.Context(), o, *r)
		require.NoError(h.t, err)
	}
}

// The shop keeps no copy of what the order guard knows: a server that dies after the
// gateway's response leaves nothing behind, and no page changes an order.
func TestPurchase_oneSource(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		v := newVisitor(t)
		at := v.order(server.URL, "mug")
		require.Equal(t, at, v.pay(server.URL, at, h.pair("BTC", "Bitcoin")).location)
		h.awaitResult(s, at)
		recorded := h.readOrder(s, at)
		s.createInvoice(t.Context(), recorded) // a click in another tab
		anna := newVisitor(t).logIn(server.URL)
		for _, page := range []string{"/admin", "/admin/pending", "/admin/orders.csv", "/admin" + at} {
			assert.Equal(t, http.StatusOK, anna.get(server.URL+page).status)
		}
		assert.Equal(t, recorded, h.readOrder(s, at))
		assert.Equal(t, 1, h.sent())
	})
}

// A server that was stopped for longer than any lease, after it had read the order and
// the buyer's choice, sends nothing when it goes on: not after another server has created
// the invoice, and not after that one's outcome is unknown.
func TestPurchase_stoppedServer(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		stopped, one := h.open()
		_, two := h.open()
		for want, fault := range map[state]gatewaytest.Fault{stateCreated: {}, stateUnknown: gatewaytest.FaultCommitThenDrop()} {
			v := newVisitor(t)
			at := v.order(one.URL, "mug")
			o, err := stopped.choose(t.Context(), h.readOrder(stopped, at), formOf("pair", h.pair("LTC", "Litecoin"), "price", "$18.00"))
			require.NoError(t, err)
			h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, fault)
			require.Equal(t, at, v.pay(two.URL, at, h.pair("BTC", "Bitcoin")).location)
			eventually(t, "the result is recorded", func() bool { return h.readOrder(stopped, at).State == want })
			stopped.createInvoice(t.Context(), o)
			assert.Len(t, h.gw.InvoicesFor(o.ID), 1)
			assert.Equal(t, []string{string(want), "BTC"}, []string{string(h.readOrder(stopped, at).State), h.readOrder(stopped, at).Coin})
		}
	})
}

// An order that was cancelled after it was read is not sent, and the guard lets go of it.
func TestPurchase_cancelledMeanwhile(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	at := newVisitor(t).order(server.URL, "mug")
	o, err := s.choose(t.Context(), h.readOrder(s, at), formOf("pair", h.pair("LTC", "Litecoin"), "price", "$18.00"))
	require.NoError(t, err)
	h.updateOrders(s, `mark = 'cancelled'`)
	s.createInvoice(t.Context(), o)
	assert.Zero(t, h.sent())
	known, err := s.guard.Order(t.Context(), "", o.ID)
	require.NoError(t, err)
	assert.Equal(t, sqlguard.StateFree, known.State)
}

// Past its deadline, or after a day, an order shows its state and no way to pay.
func TestPurchase_ended(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v := newVisitor(t)
	open, paying := v.order(server.URL, "mug"), v.order(server.URL, "lamp")
	require.Equal(t, paying, v.pay(server.URL, paying, h.pair("BTC", "Bitcoin")).location)
	assert.Equal(t, http.StatusOK, v.get(server.URL+paying+"/qr.png").status)
	h.updateOrders(s, `made_at = $1`, utcNow().Add(-orderLifetime))
	late := v.get(server.URL + paying)
	assert.Contains(t, late.visibleText(), "Please do not pay any more.")
	assert.NotContains(t, late.text, "invented-")
	assert.Equal(t, http.StatusNotFound, v.get(server.URL+paying+"/qr.png").status)
	assert.Contains(t, v.get(server.URL+open).visibleText(), "This order has ended")
	assert.Equal(t, open, v.post(server.URL+open+"/pay", "pair", h.pair("BTC", "Bitcoin"), "price", "$18.00").location)
	assert.Equal(t, 1, h.sent(), "the old order is not sent")
}
