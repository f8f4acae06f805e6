package gateway

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cryptogw/gateway/internal/redact"
)

// flights are the orders for which a call of this client has the lease, so that the calls that wait
// for it share its refusal instead of sending the order once each.
type flights struct {
	mu  sync.Mutex
	all map[flightKey]*flight
}

type flightKey struct{ merchant, orderID string }

// A flight is a call that has the lease of an order.
type flight struct {
	request InvoiceRequest
	key     redact.Secret
	header  http.Header
	ended   chan struct{} // made for the first call that waits
	refusal *APIError     // set before ended is closed; nil if the call was not rejected
}

func keyOfFlight(o *Order) flightKey { return flightKey{o.Merchant, o.Request.OrderID} }

// begin registers a call that has the lease of an order.
func (fs *flights) begin(c *call) *flight {
	f := &flight{request: c.order.Request, key: c.key, header: c.cfg.header}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.all == nil {
		fs.all = map[flightKey]*flight{}
	}
	fs.all[keyOfFlight(&c.order.Order)] = f
	return f
}

// find returns the call that has the lease of the order of c, if it sends the same, or nil. It is
// asked after the guard: a flight that has ended before may have been followed by another.
func (fs *flights) find(c *call) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.all[keyOfFlight(&c.order.Order)]
	if f == nil || !f.sendsAs(c) {
		return nil
	}
	if f.ended == nil {
		f.ended = make(chan struct{})
	}
	return f
}

// has reports whether a call has the lease of an order.
func (fs *flights) has(o *Order) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.all[keyOfFlight(o)] != nil
}

// sendsAs reports whether a call would send the same, but for its identifier.
func (f *flight) sendsAs(c *call) bool {
	values := func(a, b []string) bool { return slices.Equal(a, b) }
	withoutID := func(h http.Header) http.Header {
		h = maps.Clone(h)
		h.Del(requestIDHeader)
		return h
	}
	return f.request.equal(c.order.Request) && f.key.Reveal() == c.key.Reveal() &&
		maps.EqualFunc(withoutID(f.header), withoutID(c.cfg.header), values)
}

// end ends the call of a flight with an error.
func (fs *flights) end(o *Order, f *flight, err error) {
	if refusal, ok := err.(*APIError); ok && refusal.decided().outcome == OutcomeRejected {
		f.refusal = refusal.clone()
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.all[keyOfFlight(o)] == f {
		delete(fs.all, keyOfFlight(o))
	}
	if f.ended != nil {
		close(f.ended)
	}
}

// wait waits for the end of a flight, or for d, and returns the refusal with which it has ended, or
// the error of a context that has ended. A nil flight has no end to wait for.
func (f *flight) wait(ctx context.Context, d time.Duration) (*APIError, error) {
	var ended chan struct{}
	if f != nil {
		ended = f.ended
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return f.refusal.clone(), nil
	case <-timer.C:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// clone returns a copy of a refusal for another call, which made no attempt; nil for nil.
func (e *APIError) clone() *APIError {
	if e == nil {
		return nil
	}
	c := *e
	c.Meta, c.Body, c.Header, c.Attempts = bytes.Clone(e.Meta), bytes.Clone(e.Body), e.Header.Clone(), 0
	return &c
}
