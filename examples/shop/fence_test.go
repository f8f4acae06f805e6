package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that was delayed between claiming an order and sending it notices
// that another request has claimed the order or opened the next one.
func TestFence_lostClaim(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		for name, change := range map[string]func(order) (bool, error){
			"replaced": func(o order) (bool, error) { return s.orders.openNext(t.Context(), o, nextOrder(o)) },
			"claimed":  func(o order) (bool, error) { return s.orders.claim(t.Context(), o, fromNow(time.Hour)) },
		} {
			at := newVisitor(t).refusedOrder(h, server.URL, "mug")
			o, sent := h.expiredClaim(s, at), h.sent()
			changed, err := change(o)
			require.NoError(t, err)
			require.True(t, changed)
			before, err := s.orders.latest(t.Context(), o.Buyer, o.Product)
			require.NoError(t, err)
			require.NoError(t, s.createInvoice(t.Context(), o))
			assert.Equal(t, sent, h.sent(), name)
			after, err := s.orders.latest(t.Context(), o.Buyer, o.Product)
			require.NoError(t, err)
			assert.Equal(t, before, after, "the other request's order is unchanged")
			guardOrder, err := s.guard.Order(t.Context(), o.ID)
			require.NoError(t, err)
			assert.NotEqual(t, sqlguard.StateInFlight, guardOrder.State, "the guard has released it")
		}
	})
}

// A hookTransport calls a function before it sends a request for an invoice.
type hookTransport struct {
	http.RoundTripper
	before func()
}

func (m *hookTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && m.before != nil {
		m.before()
	}
	return m.RoundTripper.RoundTrip(r)
}

// An order that was read before it was sent, and whose claim seemed to have
// expired, cannot be claimed or replaced while it is being sent.
func TestFence_orderBeingSent(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		transport := &hookTransport{RoundTripper: http.DefaultTransport}
		h.options = []gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: transport})}
		s, server := h.open()
		at := newVisitor(t).refusedOrder(h, server.URL, "mug")
		o := h.expiredClaim(s, at)
		transport.before = func() {
			opened, err := s.orders.openNext(t.Context(), o, nextOrder(o))
			assert.NoError(t, err)
			assert.False(t, opened)
			claimed, err := s.orders.claim(t.Context(), o, fromNow(time.Hour))
			assert.NoError(t, err)
			assert.False(t, claimed)
		}
		require.NoError(t, s.createInvoice(t.Context(), o))
		assert.Equal(t, stateCreated, h.readOrder(s, at).State)
		assert.Len(t, h.gw.InvoicesFor(o.ID), 1)
	})
}
