package main

import (
	"net/http"
	"path"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
