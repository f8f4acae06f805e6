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

// A server that was held up between taking an order and sending it finds that
// somebody else has gone on with the order.
func TestFence_sendsNothingForWhoeverIsTooLate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, st *stage) {
		s, server := st.open()
		for name, goOn := range map[string]func(order) (bool, error){
			"followed": func(o order) (bool, error) { return s.orders.follow(t.Context(), o, nextOf(o)) },
			"taken":    func(o order) (bool, error) { return s.orders.take(t.Context(), o, in(time.Hour)) },
		} {
			at := newVisitor(t).refused(st, server.URL, "mug")
			o, sent := st.abandoned(s, at), st.sent()
			on, err := goOn(o)
			require.NoError(t, err)
			require.True(t, on)
			before, err := s.orders.latest(t.Context(), o.Buyer, o.Product)
			require.NoError(t, err)
			require.NoError(t, s.createInvoice(t.Context(), o))
			assert.Equal(t, sent, st.sent(), name)
			after, err := s.orders.latest(t.Context(), o.Buyer, o.Product)
			require.NoError(t, err)
			assert.Equal(t, before, after, "whoever has the order or its successor is not disturbed")
			held, err := s.guard.Order(t.Context(), o.ID)
			require.NoError(t, err)
			assert.NotEqual(t, sqlguard.StateInFlight, held.State, "the guard lets go of it")
		}
	})
}

// A meanwhile does something while a request for an invoice is on its way.
type meanwhile struct {
	http.RoundTripper
	do func()
}

func (m *meanwhile) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && m.do != nil {
		m.do()
	}
	return m.RoundTripper.RoundTrip(r)
}

// What somebody else has read of an order before it was sent, when its time
// seemed to be over, is good for nothing while it is being sent.
func TestFence_keepsOthersFromAnOrderThatIsBeingSent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, st *stage) {
		wire := &meanwhile{RoundTripper: http.DefaultTransport}
		st.options = []gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: wire})}
		s, server := st.open()
		at := newVisitor(t).refused(st, server.URL, "mug")
		o := st.abandoned(s, at)
		wire.do = func() {
			followed, err := s.orders.follow(t.Context(), o, nextOf(o))
			assert.NoError(t, err)
			assert.False(t, followed)
			taken, err := s.orders.take(t.Context(), o, in(time.Hour))
			assert.NoError(t, err)
			assert.False(t, taken)
		}
		require.NoError(t, s.createInvoice(t.Context(), o))
		assert.Equal(t, stateCreated, st.read(s, at).State)
		assert.Len(t, st.gw.InvoicesFor(o.ID), 1)
	})
}
