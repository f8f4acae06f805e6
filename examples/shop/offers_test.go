package main

import (
	"net/http"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// updateOrders changes all stored orders.
func (h *harness) updateOrders(s *shop, set string) {
	h.t.Helper()
	_, err := s.db.change(h.t.Context(), `UPDATE shop_orders SET `+set)
	require.NoError(h.t, err)
}

// An open order has the current price of its product. Once a coin is chosen,
// the price is fixed.
func TestPrice_currentUntilCoinIsChosen(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		v := newVisitor(t)
		at := v.order(server.URL, "mug")
		h.updateOrders(s, `price = '17', currency = 'eur'`)
		res := v.get(server.URL + at)
		assert.Contains(t, res.visibleText(), "Stoneware mug $18.00")
		assert.Contains(t, res.text, `name="price" value="$18.00"`)
		o := h.readOrder(s, at)
		assert.Equal(t, "18 usd", o.Price.String()+" "+o.Currency)

		v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))
		h.updateOrders(s, `price = '17'`)
		require.NoError(t, s.orders.updatePrice(t.Context(), o.ID, products()[0]))
		assert.Contains(t, v.get(server.URL+at).visibleText(), "Invoice created for Stoneware mug, $17.00.")
	})
}

// An order is not paid at a price that the buyer has not seen.
func TestPrice_changedBeforePayment(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v := newVisitor(t)
	at, btc := v.order(server.URL, "mug"), h.pair("BTC", "Bitcoin")
	checkPriceChanged := func(res response, why string) {
		t.Helper()
		assert.Equal(t, http.StatusUnprocessableEntity, res.status, why)
		assert.Contains(t, res.visibleText(), "The price has changed since you opened this page.")
		assert.Contains(t, res.visibleText(), "Stoneware mug $18.00")
		assert.Zero(t, h.sent())
	}
	h.updateOrders(s, `price = '17'`)
	checkPriceChanged(v.post(server.URL+at+"/pay", "pair", btc), "no price in the form")
	checkPriceChanged(v.post(server.URL+at+"/pay", "pair", btc, "price", "$17.00"), "outdated price in the form")
	require.Equal(t, at, v.post(server.URL+at+"/pay", "pair", btc, "price", "$18.00").location)
	assert.Equal(t, "18", decimal.RequireFromString(h.gw.Invoices()[0].Price).String())
}

func TestAmount_fixedForItsPrice(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		at := newVisitor(t).order(server.URL, "mug")
		o := h.readOrder(s, at)
		for _, change := range []string{`price = '17'`, `price = '18', currency = 'eur'`} {
			h.updateOrders(s, change)
			current, problem, err := s.choose(t.Context(), o, formOf("pair", h.pair("BTC", "Bitcoin"), "price", "$18.00"))
			require.NoError(t, err)
			assert.Equal(t, priceChanged, problem, change)
			assert.Equal(t, stateOpen, current.State)
		}
		h.updateOrders(s, `currency = 'usd'`)
		current, problem, err := s.choose(t.Context(), o, formOf("pair", h.pair("BTC", "Bitcoin"), "price", "$18.00"))
		require.NoError(t, err)
		assert.Empty(t, problem)
		assert.Equal(t, stateUnsent, current.State)
	})
}

func TestOrder_discontinuedProduct(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v := newVisitor(t)
	at := v.order(server.URL, "mug")
	h.updateOrders(s, `product = 'yacht'`)
	for _, res := range []response{v.get(server.URL + at), v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))} {
		assert.Equal(t, http.StatusGone, res.status)
		assert.Contains(t, res.visibleText(), "No longer available")
		assert.Contains(t, res.visibleText(), "there is nothing to pay")
	}
	assert.Zero(t, h.sent())
}
