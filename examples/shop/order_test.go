package main

import (
	"net/http"
	"path"
	"testing"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPurchase_price(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, server := h.open()
	v := newVisitor(t)
	at, btc := v.order(server.URL, "mug"), h.pair("BTC", "Bitcoin")
	for _, price := range []string{"", "$17.00"} {
		res := v.post(server.URL+at+"/pay", "pair", btc, "price", price)
		assert.Equal(t, http.StatusUnprocessableEntity, res.status)
		assert.Contains(t, res.visibleText(), "The price has changed since you opened this page.")
	}
	assert.Zero(t, h.sent())
}

func TestOffers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v := newVisitor(t)
	at := v.order(server.URL, "postcard")
	text := v.get(server.URL + at).visibleText()
	assert.Contains(t, text, "BTC Bitcoin on Bitcoin 0.00001518 BTC 2 confirmations · from 0.00001 BTC")
	assert.Contains(t, text, "XRP XRP on XRP Ledger 1.863818 XRP 1 confirmation · from 1 XRP")
	assert.Contains(t, text, "Too little for this coin: the smallest amount is 1 USDT.")
	assert.NotContains(t, text, "ADA", "deposits are disabled")
	assert.NotContains(t, text, "XMR", "inactive")
	for pair, problem := range map[string]string{
		h.pair("USDT", "Tron"):   "USDT on Tron: Too little for this coin: the smallest amount is 1 USDT.",
		h.pair("ADA", "Cardano"): "Please choose one of the coins below.",
		"":                       "Please choose one of the coins below.",
	} {
		res := v.pay(server.URL, at, pair)
		assert.Equal(t, http.StatusUnprocessableEntity, res.status)
		assert.Contains(t, res.visibleText(), problem)
	}
	s.cfg.ratesStaleAfter = time.Nanosecond
	assert.Contains(t, v.pay(server.URL, at, h.pair("BTC", "Bitcoin")).visibleText(), "The exchange rates are too old to fix an amount.")
	assert.Zero(t, h.sent())
}

// Where the page promises that somebody will write, the buyer can leave an address.
func TestOrder_contact(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v := newVisitor(t)
	at := v.order(server.URL, "mug")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))
	eventually(t, "the result is recorded", func() bool { return h.readOrder(s, at).State == stateUnknown })
	assert.Contains(t, v.get(server.URL+at).text, `name="contact"`)
	require.Equal(t, at, v.post(server.URL+at+"/contact", "contact", " ida@example.org\n").location)
	assert.Contains(t, v.get(server.URL+at).visibleText(), "We will write to ida@example.org .")
	assert.Contains(t, newVisitor(t).logIn(server.URL).get(server.URL+"/admin").visibleText(), "ida@example.org")
	assert.Equal(t, http.StatusUnprocessableEntity, v.post(server.URL+at+"/contact", "contact", " ").status)
}

func TestOrder_otherBuyer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v, other := newVisitor(t), newVisitor(t)
	at := v.order(server.URL, "mug")
	v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))
	other.order(server.URL, "mug")
	require.Equal(t, at, other.post(server.URL+"/orders", "order", path.Base(at)).location)
	for _, v := range []*visitor{other, newVisitor(t)} {
		assert.Equal(t, http.StatusNotFound, v.get(server.URL+at).status)
		assert.Equal(t, http.StatusNotFound, v.get(server.URL+at+"/qr.png").status)
		assert.Equal(t, http.StatusNotFound, v.post(server.URL+at+"/pay").status)
		assert.Equal(t, http.StatusNotFound, v.post(server.URL+at+"/contact", "contact", "x").status)
	}
	assert.Empty(t, h.readOrder(s, at).Contact)
	assert.Equal(t, 1, h.sent())
	known, err := s.guard.Order(t.Context(), "", path.Base(at))
	require.NoError(t, err)
	assert.Equal(t, sqlguard.StateCreated, known.State)
}
