package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/stretchr/testify/assert"
)

// A deadlines notes until when requests for an invoice may take.
type deadlines struct {
	http.RoundTripper
	noted chan time.Duration // from when the request was sent; 0 for ever
}

func (d deadlines) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		end, ok := r.Context().Deadline()
		if !ok {
			end = time.Now()
		}
		d.noted <- time.Until(end)
	}
	return d.RoundTripper.RoundTrip(r)
}

// An invoice that was not sent has no time of sending.
func TestOrder_afterNothingWasSent(t *testing.T) {
	t.Parallel()
	o := order{}.after(nil, &gateway.ArgumentError{})
	assert.Equal(t, stateUnsent, o.State)
	assert.True(t, o.SentAt.IsZero())
}

// Nothing is sent for longer than the order is held for, however patient the
// client is: afterwards somebody else may have decided about it.
func TestInvoice_isNotSentForLongerThanItsOrderIsHeld(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.cfg.patience = 0 // for the client that is a minute, and nothing in the lease
	seen := deadlines{http.DefaultTransport, make(chan time.Duration, 1)}
	st.options = []gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: seen})}
	s, server := st.open()
	v := newVisitor(t)
	at := v.order(server.URL, "mug")
	v.pay(server.URL, at, st.pair("BTC", "Bitcoin"))
	left := <-seen.noted
	assert.Positive(t, left)
	assert.LessOrEqual(t, left, s.cfg.lease())
	assert.Contains(t, v.get(server.URL+at).words(), "Pay your order")
	assert.Len(t, st.gw.InvoicesFor(strings.TrimPrefix(at, "/orders/")), 1)
}
