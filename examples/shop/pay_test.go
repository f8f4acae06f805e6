package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/stretchr/testify/assert"
)

// A deadlineRecorder records the time left for requests for an invoice.
type deadlineRecorder struct {
	http.RoundTripper
	remaining chan time.Duration // 0 if there is no deadline
}

func (d deadlineRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		end, ok := r.Context().Deadline()
		if !ok {
			end = time.Now()
		}
		d.remaining <- time.Until(end)
	}
	return d.RoundTripper.RoundTrip(r)
}

// An invoice that was not sent has no sending time.
func TestOrder_withResultNotSent(t *testing.T) {
	t.Parallel()
	o := order{}.withResult(nil, &gateway.ArgumentError{})
	assert.Equal(t, stateUnsent, o.State)
	assert.True(t, o.SentAt.IsZero())
}

// Nothing is sent for longer than the guard's lease, even if the client's
// timeout is longer: after the lease, other requests may decide about the
// order.
func TestInvoice_boundedByLease(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.cfg.invoiceTimeout = 0 // the client's default of a minute, which the lease does not include
	recorder := deadlineRecorder{http.DefaultTransport, make(chan time.Duration, 1)}
	h.options = []gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: recorder})}
	s, server := h.open()
	v := newVisitor(t)
	at := v.order(server.URL, "mug")
	v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))
	remaining := <-recorder.remaining
	assert.Positive(t, remaining)
	assert.LessOrEqual(t, remaining, s.cfg.lease())
	assert.Contains(t, v.get(server.URL+at).visibleText(), "Pay your order")
	assert.Len(t, h.gw.InvoicesFor(strings.TrimPrefix(at, "/orders/")), 1)
}
