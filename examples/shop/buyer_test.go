package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sent returns how many invoice requests the gateway received.
func (h *harness) sent() (n int) {
	for _, r := range h.gw.Requests() {
		if r.Operation == gatewaytest.OpCreateInvoice {
			n++
		}
	}
	return n
}

// postConcurrently posts a form 40 times concurrently, to several servers
// and with several choices, and returns the one location of all redirects.
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

func TestPay_concurrentRequestsCreateOneInvoice(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, one := h.open()
	_, two := h.open()
	servers, pairs := []string{one.URL, two.URL}, []string{h.pair("BTC", "Bitcoin"), h.pair("LTC", "Litecoin")}
	v := newVisitor(t)
	v.get(one.URL + "/")
	path := v.postConcurrently(servers, "/orders", []string{"product", "lamp"})
	require.Equal(t, path, v.postConcurrently(servers, path+"/pay", []string{"pair", pairs[0], "price", "$240.00"}, []string{"pair", pairs[1], "price", "$240.00"}))
	for _, server := range servers {
		res := v.get(server + path)
		assert.Contains(t, res.text, "<h1>Pay your order</h1>")
		assert.Equal(t, http.StatusSeeOther, v.pay(server, path, pairs[0]).status)
	}
	invoices := h.gw.InvoicesFor(strings.TrimPrefix(path, "/orders/"))
	require.Len(t, invoices, 1)
	assert.Equal(t, 1, h.sent())
	assert.Equal(t, "240", strings.TrimSuffix(invoices[0].Price, ".00"))
	assert.Equal(t, "usd", invoices[0].BaseCurrency)
	assert.Contains(t, v.get(one.URL+path).visibleText(), "Amount "+invoices[0].Amount+" "+invoices[0].CoinSymbol)
}

// A faultCase is the expected result of an invoice that meets a fault.
type fault struct {
	fault      gatewaytest.Fault
	heading    string
	state      state
	invoices   int
	afterRetry int // the number of invoices after the buyer's next request
}

func TestPay_faults(t *testing.T) {
	t.Parallel()
	const unknownHeading = "Your order is being checked"
	for name, test := range map[string]fault{
		"lost response":      {gatewaytest.CommitThenDrop(), unknownHeading, stateUnknown, 1, 1},
		"malformed response": {gatewaytest.MalformedJSON(), unknownHeading, stateUnknown, 1, 1},
		"connection reset":   {gatewaytest.Reset(), unknownHeading, stateUnknown, 0, 0},
		"bad gateway":        {gatewaytest.BadGateway(), unknownHeading, stateUnknown, 0, 0},
		"timeout":            {gatewaytest.Stall(), unknownHeading, stateUnknown, 0, 0},
		"refused":            {gatewaytest.Refuse(400, "not today"), "The payment service refused the invoice", stateRefused, 0, 1},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test.run(t) })
	}
}

func (f fault) run(t *testing.T) {
	h := newHarness(t)
	s, server := h.open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	id := strings.TrimPrefix(path, "/orders/")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, f.fault)
	require.Equal(t, path, v.pay(server.URL, path, h.pair("BTC", "Bitcoin")).location)
	res := v.get(server.URL + path)
	assert.Contains(t, res.text, "<h1>"+f.heading+"</h1>")
	assert.Equal(t, f.state == stateRefused, strings.Contains(res.text, "<button"), "buttons")
	assert.NotContains(t, res.text, "not today", "the gateway's message is for the merchant only")
	assert.Len(t, h.gw.InvoicesFor(id), f.invoices)
	o, err := s.orders.byID(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, f.state, o.State)

	require.Equal(t, path, v.pay(server.URL, path, h.pair("BTC", "Bitcoin")).location)
	assert.Equal(t, path, v.post(server.URL+"/orders", "product", "mug").location, "Buy leads to the same order")
	assert.Len(t, h.gw.InvoicesFor(id), f.afterRetry)
	if f.state == stateUnknown {
		assert.Equal(t, path, v.post(server.URL+"/orders", "product", "mug", "after", "1").location, "no second order")
		assert.Equal(t, 1, h.sent())
	}
}

func TestPay_unreachableGateway(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.cfg.ratesTTL = 5 * time.Minute
	_, server := h.open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	v.get(server.URL + path) // caches the rates and the catalog
	h.gw.Close()
	require.Equal(t, path, v.pay(server.URL, path, h.pair("BTC", "Bitcoin")).location)
	res := v.get(server.URL + path)
	assert.Contains(t, res.text, "<h1>No invoice was created</h1>")
	assert.Contains(t, res.text, "Try again")
	assert.Equal(t, http.StatusServiceUnavailable, newVisitor(t).openOrderPage(t, h).status, "no rates are available")
}

// openOrderPage gets an order page of a shop that never reached the gateway.
func (v *visitor) openOrderPage(t *testing.T, h *harness) response {
	t.Helper()
	_, server := h.open()
	return v.get(server.URL + v.order(server.URL, "mug"))
}

func TestOffers_listsAvailablePairs(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v := newVisitor(t)
	path := v.order(server.URL, "postcard")
	res := v.get(server.URL + path)
	require.Equal(t, http.StatusOK, res.status)
	visibleText := res.visibleText()
	assert.Contains(t, visibleText, "BTC Bitcoin on Bitcoin 0.00001518 BTC 2 confirmations · from 0.00001 BTC")
	assert.Contains(t, visibleText, "XRP XRP on XRP Ledger 1.863818 XRP 1 confirmation · from 1 XRP")
	assert.Contains(t, visibleText, "Too small for this coin: the nearest possible amount is 1 USDT.")
	assert.Contains(t, visibleText, "The rates are 0s old.")
	assert.NotContains(t, visibleText, "ADA", "deposits are disabled")
	assert.NotContains(t, visibleText, "XMR", "inactive")
	assert.NotContains(t, res.text, "stale")

	for pair, problem := range map[string]string{
		h.pair("USDT", "Tron"):   "USDT on Tron: Too small for this coin: the nearest possible amount is 1 USDT.",
		h.pair("ADA", "Cardano"): "Please choose one of the coins below.",
		"":                       "Please choose one of the coins below.",
		"<script>":               "Please choose one of the coins below.",
	} {
		res := v.pay(server.URL, path, pair)
		assert.Equal(t, http.StatusUnprocessableEntity, res.status)
		assert.Contains(t, res.visibleText(), problem)
	}
	assert.Zero(t, h.sent())
	s.cfg.ratesStaleAfter = time.Nanosecond
	assert.Contains(t, v.get(server.URL+path).visibleText(), "newer rates are not available at the moment, and the amounts may change")
}

func TestPay_expiredAmount(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.Refuse(400, "no"))
	v.pay(server.URL, path, h.pair("BTC", "Bitcoin"))
	expired := timestamp{time.Now().Add(-quoteLifetime)}
	_, err := s.db.change(t.Context(), `UPDATE shop_orders SET chosen_at = $1`, expired.text())
	require.NoError(t, err)
	v.pay(server.URL, path, h.pair("BTC", "Bitcoin"))
	assert.Equal(t, 1, h.sent())
	res := v.get(server.URL + path)
	assert.Contains(t, res.visibleText(), "This amount has expired.")
	assert.NotContains(t, res.text, "Try again")
	assert.NotContains(t, res.text, `name="made"`, "there is no invoice")

	next := v.post(server.URL+"/orders", "product", "mug", "after", "1").location
	assert.NotEqual(t, path, next)
	assert.Equal(t, next, v.post(server.URL+"/orders", "product", "mug", "after", "1").location, "repeated request")
	_, err = s.db.change(t.Context(), `UPDATE shop_orders SET chosen_at = $1 WHERE number = 1`, timestampNow().text())
	require.NoError(t, err)
	assert.Equal(t, next, v.pay(server.URL, path, "").location, "the first order has a next one")
	assert.Equal(t, 1, h.sent())
	v.pay(server.URL, next, h.pair("BTC", "Bitcoin"))
	assert.Equal(t, next, v.post(server.URL+"/orders", "product", "mug", "after", "2").location, "from a page that is older than the invoice")
	another := v.post(server.URL+"/orders", "product", "mug", "after", "2", "made", "yes").location
	assert.NotContains(t, []string{path, next}, another, "another order")
	assert.Len(t, h.gw.Invoices(), 1)
}

func TestPay_claimedOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	o, err := s.orders.byID(t.Context(), strings.TrimPrefix(path, "/orders/"))
	require.NoError(t, err)
	o.Coin, o.Network, o.Amount = "BTC", "Bitcoin", o.Price
	chosen, err := s.orders.choose(t.Context(), o)
	require.NoError(t, err)
	require.True(t, chosen)
	o.Coin = "LTC"
	chosen, err = s.orders.choose(t.Context(), o)
	require.NoError(t, err)
	assert.False(t, chosen, "the choice is final")
	o, err = s.orders.byID(t.Context(), o.ID)
	require.NoError(t, err)
	claimed, err := s.orders.claim(t.Context(), o, timestamp{time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.True(t, claimed)
	res := v.get(server.URL + path)
	assert.Contains(t, res.visibleText(), "Your invoice is being created")
	assert.Contains(t, res.text, `http-equiv="refresh"`)
	assert.Equal(t, path, v.post(server.URL+"/orders", "product", "mug", "after", "1").location, "no next order while it is being sent")
	v.pay(server.URL, path, "")
	assert.Zero(t, h.sent(), "another request has claimed it")
	_, err = s.db.change(t.Context(), `UPDATE shop_orders SET sending_until = $1`, timestampNow().text())
	require.NoError(t, err)
	assert.Contains(t, v.get(server.URL+path).visibleText(), "No invoice was created")
	v.pay(server.URL, path, "")
	assert.Equal(t, 1, h.sent(), "the claim has expired")
}

func TestOrder_otherBuyer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, server := h.open()
	v, otherBuyer := newVisitor(t), newVisitor(t)
	path := v.order(server.URL, "mug")
	v.pay(server.URL, path, h.pair("BTC", "Bitcoin"))
	assert.Equal(t, http.StatusOK, v.get(server.URL+path+"/qr.png").status)
	other := otherBuyer.order(server.URL, "mug")
	assert.NotEqual(t, path, other)
	for _, suffix := range []string{"", "/qr.png", "/live"} {
		assert.Equal(t, http.StatusNotFound, otherBuyer.get(server.URL+path+suffix).status)
		assert.Equal(t, http.StatusNotFound, newVisitor(t).get(server.URL+path+suffix).status)
	}
	assert.Equal(t, http.StatusNotFound, otherBuyer.pay(server.URL, path, "").status)
	assert.Equal(t, http.StatusNotFound, otherBuyer.get(server.URL+other+"/qr.png").status, "no invoice yet")
}
