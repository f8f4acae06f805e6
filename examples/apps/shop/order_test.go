package main

import (
	"net/http"
	"path"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
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
	assert.Contains(t, text, "BTC Bitcoin 2 networks BTC on Bitcoin 0.00001518 BTC 2 confirmations · from 0.00001 BTC")
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

// The state of an order follows from what its guard has recorded, and from what the
// merchant has marked, which has precedence.
func TestOrder_state(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		dead, _ := h.open()
		none := func(at string) {
			known, err := s.guard.Order(t.Context(), "", path.Base(at))
			require.NoError(t, err)
			require.NoError(t, s.guard.Resolve(t.Context(), known, sqlguard.Resolution{By: "Anna", Margin: 1}))
			// SQLite counts in milliseconds: the next attempt begins later than this one was resolved.
			_, err = s.db.change(t.Context(), `UPDATE gateway_orders SET begun_at = 1, resolved_at = 2`)
			require.NoError(t, err)
		}
		at := newVisitor(t).order(server.URL, "mug")
		is := func(want state) {
			t.Helper()
			assert.Equal(t, want, h.readOrder(s, at).State)
		}
		is(stateOpen)
		h.begin(dead, at, nil)
		is(stateSending)
		h.leaseEnds(s)
		is(stateUnknown)
		none(at)
		is(stateNone)
		h.begin(s, at, &gateway.OrderRecord{Outcome: gateway.OutcomeRejected})
		is(stateRefused)
		h.begin(s, at, &gateway.OrderRecord{Outcome: gateway.OutcomeNotSent})
		is(stateUnsent)
		h.begin(s, at, &gateway.OrderRecord{Outcome: gateway.OutcomeUnknown})
		is(stateUnknown)
		none(at)
		is(stateNone)
		h.begin(s, at, &gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Invoice: []byte(`{"a":1}`)})
		is(stateCreated)
		assert.JSONEq(t, `{"a":1}`, string(h.readOrder(s, at).Invoice))
		h.updateOrders(s, `mark = 'paid'`)
		is(statePaid)
	})
}

// awaitResult waits until the result of an invoice is recorded.
func (h *harness) awaitResult(s *shop, at string) {
	h.t.Helper()
	eventually(h.t, "the result is recorded", func() bool {
		now := h.readOrder(s, at).State
		return now != stateOpen && now != stateSending
	})
}

// leaseEnds makes the orders in flight those of processes that died.
func (h *harness) leaseEnds(s *shop) {
	h.t.Helper()
	_, err := s.db.change(h.t.Context(), `UPDATE gateway_orders SET lease_until = begun_at`)
	require.NoError(h.t, err)
}

// A page that was read before an order was sent does not cancel it.
func TestMark_sentSince(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		v := newVisitor(t)
		at := v.order(server.URL, "mug")
		read := h.readOrder(s, at)
		v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))
		changed, err := s.db.mark(t.Context(), read, stateCancelled, "Anna")
		require.NoError(t, err)
		assert.False(t, changed)
		h.awaitResult(s, at)
		assert.Equal(t, stateCreated, h.readOrder(s, at).State)
	})
}
