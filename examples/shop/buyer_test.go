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

// sent counts how often the gateway was asked for an invoice.
func (st *stage) sent() (n int) {
	for _, r := range st.gw.Requests() {
		if r.Operation == gatewaytest.OpCreateInvoice {
			n++
		}
	}
	return n
}

// pressAtOnce presses a button 40 times at once, on several servers and with
// several choices, and returns where all of that leads to.
func (v *visitor) pressAtOnce(servers []string, path string, choices ...[]string) string {
	v.t.Helper()
	var presses sync.WaitGroup
	places := make(chan string, 40)
	for i := range 40 {
		presses.Go(func() {
			a, err := v.do(http.MethodPost, servers[i%len(servers)]+path, formOf(choices[i/2%len(choices)]...))
			assert.NoError(v.t, err)
			assert.Equal(v.t, http.StatusSeeOther, a.status, a.text)
			places <- a.location
		})
	}
	presses.Wait()
	close(places)
	place := <-places
	for other := range places {
		require.Equal(v.t, place, other, "there are two orders")
	}
	return place
}

func TestOneInvoice_whateverTheBuyerDoes(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	_, one := st.open()
	_, two := st.open()
	servers, pairs := []string{one.URL, two.URL}, []string{st.pair("BTC", "Bitcoin"), st.pair("LTC", "Litecoin")}
	v := newVisitor(t)
	v.get(one.URL + "/")
	path := v.pressAtOnce(servers, "/orders", []string{"product", "lamp"})
	require.Equal(t, path, v.pressAtOnce(servers, path+"/pay", []string{"pair", pairs[0], "price", "$240.00"}, []string{"pair", pairs[1], "price", "$240.00"}))
	for _, server := range servers {
		a := v.get(server + path)
		assert.Contains(t, a.text, "<h1>Pay your order</h1>")
		assert.Equal(t, http.StatusSeeOther, v.pay(server, path, pairs[0]).status)
	}
	invoices := st.gw.InvoicesFor(strings.TrimPrefix(path, "/orders/"))
	require.Len(t, invoices, 1)
	assert.Equal(t, 1, st.sent())
	assert.Equal(t, "240", strings.TrimSuffix(invoices[0].Price, ".00"))
	assert.Equal(t, "usd", invoices[0].BaseCurrency)
	assert.Contains(t, v.get(one.URL+path).words(), "Amount "+invoices[0].Amount+" "+invoices[0].CoinSymbol)
}

// A fault is what becomes of a trouble with an invoice.
type fault struct {
	trouble  gatewaytest.Fault
	heading  string
	state    state
	invoices int
	again    int // how many invoices there are when the buyer goes on
}

func TestTrouble_isSaidAndNeverPaidTwice(t *testing.T) {
	t.Parallel()
	const calm = "We are looking into your order"
	for name, test := range map[string]fault{
		"an answer that is lost leaves it open":         {gatewaytest.CommitThenDrop(), calm, stateUnknown, 1, 1},
		"an answer that is not understood does, too":    {gatewaytest.MalformedJSON(), calm, stateUnknown, 1, 1},
		"so does a connection that breaks":              {gatewaytest.Reset(), calm, stateUnknown, 0, 0},
		"so does a proxy that gives up":                 {gatewaytest.BadGateway(), calm, stateUnknown, 0, 0},
		"so does a service that never answers":          {gatewaytest.Stall(), calm, stateUnknown, 0, 0},
		"a refusal is one, and the buyer may try again": {gatewaytest.Refuse(400, "not today"), "The payment service said no", stateRefused, 0, 1},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test.meet(t) })
	}
}

func (f fault) meet(t *testing.T) {
	st := newStage(t)
	s, server := st.open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	id := strings.TrimPrefix(path, "/orders/")
	st.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, f.trouble)
	require.Equal(t, path, v.pay(server.URL, path, st.pair("BTC", "Bitcoin")).location)
	a := v.get(server.URL + path)
	assert.Contains(t, a.text, "<h1>"+f.heading+"</h1>")
	assert.Equal(t, f.state == stateRefused, strings.Contains(a.text, "<button"), "what can be pressed")
	assert.NotContains(t, a.text, "not today", "the gateway's words are for the merchant")
	assert.Len(t, st.gw.InvoicesFor(id), f.invoices)
	o, err := s.orders.byID(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, f.state, o.State)

	require.Equal(t, path, v.pay(server.URL, path, st.pair("BTC", "Bitcoin")).location)
	assert.Equal(t, path, v.post(server.URL+"/orders", "product", "mug").location, "Buy leads back")
	assert.Len(t, st.gw.InvoicesFor(id), f.again)
	if f.state == stateUnknown {
		assert.Equal(t, path, v.post(server.URL+"/orders", "product", "mug", "after", "1").location, "no second order")
		assert.Equal(t, 1, st.sent())
	}
}

func TestUnreachableGateway_leavesTheOrderUnsent(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.cfg.ratesTTL = 5 * time.Minute
	_, server := st.open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	v.get(server.URL + path) // has the rates and the catalogue
	st.gw.Close()
	require.Equal(t, path, v.pay(server.URL, path, st.pair("BTC", "Bitcoin")).location)
	a := v.get(server.URL + path)
	assert.Contains(t, a.text, "<h1>No invoice was made</h1>")
	assert.Contains(t, a.text, "Try once more")
	assert.Equal(t, http.StatusServiceUnavailable, newVisitor(t).openAt(t, st).status, "a shop without rates says so")
}

// openAt is the page of an order in a shop that has not reached the gateway.
func (v *visitor) openAt(t *testing.T, st *stage) answer {
	t.Helper()
	_, server := st.open()
	return v.get(server.URL + v.order(server.URL, "mug"))
}

func TestOffers_areWhatCanBePaidNow(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
	v := newVisitor(t)
	path := v.order(server.URL, "postcard")
	a := v.get(server.URL + path)
	require.Equal(t, http.StatusOK, a.status)
	words := a.words()
	assert.Contains(t, words, "BTC Bitcoin on Bitcoin 0.00001518 BTC 2 confirmations · from 0.00001 BTC")
	assert.Contains(t, words, "XRP XRP on XRP Ledger 1.863818 XRP 1 confirmation · from 1 XRP")
	assert.Contains(t, words, "Too little for this coin: the nearest possible amount is 1 USDT.")
	assert.Contains(t, words, "The rates are 0s old.")
	assert.NotContains(t, words, "ADA", "it takes no deposits")
	assert.NotContains(t, words, "XMR", "it is not active")
	assert.NotContains(t, a.text, "stale")

	for pair, problem := range map[string]string{
		st.pair("USDT", "Tron"):   "USDT on Tron: Too little for this coin: the nearest possible amount is 1 USDT.",
		st.pair("ADA", "Cardano"): "Please choose one of the coins below.",
		"":                        "Please choose one of the coins below.",
		"<script>":                "Please choose one of the coins below.",
	} {
		a := v.pay(server.URL, path, pair)
		assert.Equal(t, http.StatusUnprocessableEntity, a.status)
		assert.Contains(t, a.words(), problem)
	}
	assert.Zero(t, st.sent())
	s.cfg.ratesStale = time.Nanosecond
	assert.Contains(t, v.get(server.URL+path).words(), "newer ones can not be had just now, and the amounts may change")
}

func TestOldAmount_isNotSent(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	st.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.Refuse(400, "no"))
	v.pay(server.URL, path, st.pair("BTC", "Bitcoin"))
	long := stamp{time.Now().Add(-quoteFor)}
	_, err := s.db.change(t.Context(), `UPDATE shop_orders SET chosen_at = $1`, long.text())
	require.NoError(t, err)
	v.pay(server.URL, path, st.pair("BTC", "Bitcoin"))
	assert.Equal(t, 1, st.sent())
	a := v.get(server.URL + path)
	assert.Contains(t, a.words(), "That amount is too old by now.")
	assert.NotContains(t, a.text, "Try once more")
	assert.NotContains(t, a.text, `name="made"`, "there is no invoice to have seen")

	next := v.post(server.URL+"/orders", "product", "mug", "after", "1").location
	assert.NotEqual(t, path, next)
	assert.Equal(t, next, v.post(server.URL+"/orders", "product", "mug", "after", "1").location, "pressed twice")
	_, err = s.db.change(t.Context(), `UPDATE shop_orders SET chosen_at = $1 WHERE number = 1`, stampNow().text())
	require.NoError(t, err)
	assert.Equal(t, next, v.pay(server.URL, path, "").location, "the first order has a successor")
	assert.Equal(t, 1, st.sent())
	v.pay(server.URL, next, st.pair("BTC", "Bitcoin"))
	assert.Equal(t, next, v.post(server.URL+"/orders", "product", "mug", "after", "2").location, "chosen again on a page from before the invoice")
	another := v.post(server.URL+"/orders", "product", "mug", "after", "2", "made", "yes").location
	assert.NotContains(t, []string{path, next}, another, "a second mug")
	assert.Len(t, st.gw.Invoices(), 1)
}

func TestChosenOrder_isBeingSentForAMoment(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
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
	assert.False(t, chosen, "what was chosen stays")
	o, err = s.orders.byID(t.Context(), o.ID)
	require.NoError(t, err)
	taken, err := s.orders.take(t.Context(), o, stamp{time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.True(t, taken)
	a := v.get(server.URL + path)
	assert.Contains(t, a.words(), "Your invoice is being made")
	assert.Contains(t, a.text, `http-equiv="refresh"`)
	assert.Equal(t, path, v.post(server.URL+"/orders", "product", "mug", "after", "1").location, "not another order meanwhile")
	v.pay(server.URL, path, "")
	assert.Zero(t, st.sent(), "somebody has taken it")
	_, err = s.db.change(t.Context(), `UPDATE shop_orders SET sending_until = $1`, stampNow().text())
	require.NoError(t, err)
	assert.Contains(t, v.get(server.URL+path).words(), "No invoice was made")
	v.pay(server.URL, path, "")
	assert.Equal(t, 1, st.sent(), "whoever had taken it has died")
}

func TestOrder_isOfItsBuyerOnly(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	_, server := st.open()
	v, stranger := newVisitor(t), newVisitor(t)
	path := v.order(server.URL, "mug")
	v.pay(server.URL, path, st.pair("BTC", "Bitcoin"))
	assert.Equal(t, http.StatusOK, v.get(server.URL+path+"/qr.png").status)
	other := stranger.order(server.URL, "mug")
	assert.NotEqual(t, path, other)
	for _, suffix := range []string{"", "/qr.png", "/live"} {
		assert.Equal(t, http.StatusNotFound, stranger.get(server.URL+path+suffix).status)
		assert.Equal(t, http.StatusNotFound, newVisitor(t).get(server.URL+path+suffix).status)
	}
	assert.Equal(t, http.StatusNotFound, stranger.pay(server.URL, path, "").status)
	assert.Equal(t, http.StatusNotFound, stranger.get(server.URL+other+"/qr.png").status, "there is no invoice yet")
}
