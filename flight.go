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
	"github.com/cryptogw/gateway/internal/validate"
)

// flights are the orders for which a call of this client has the lease, so that the calls that wait
// for it share its refusal instead of sending the order once each.
type flights struct {
	mu  sync.Mutex
	all map[flightKey]*flight
}

type flightKey struct{ merchant, order string }

// A flight is a call that has the lease of an order.
type flight struct {
	request InvoiceRequest
	key     redact.Secret
	header  http.Header
	ended   chan struct{} // made for the first call that waits
	refusal *APIError     // set before ended is closed; nil if the call was not rejected
}

func keyOfFlight(o *Order) flightKey { return flightKey{o.Merchant, o.Key()} }

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
	return f.request.Equal(c.order.Request) && f.key.Reveal() == c.key.Reveal() &&
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

// maxLost is how many orders whose response was lost are remembered.
const maxLost = 256

// awaited are the orders whose response this client may still get: those whose invoice is being sent, and
// the last ones of unknown outcome. One of them in the response to another order is the sign of a response
// that was delivered to the wrong request. It is safe for concurrent use.
type awaited struct {
	mu     sync.Mutex
	orders map[string]int // how many calls, of all merchants, by [Order.Key]
	lost   []flightKey    // those of unknown outcome among them, the oldest first
}

// add adds an order whose invoice is sent.
func (a *awaited) add(order flightKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.orders == nil {
		a.orders = map[string]int{}
	}
	a.orders[order.order]++
}

// remove removes an order, unless its response was lost. Of one that was created no other response counts.
func (a *awaited) remove(order flightKey, outcome Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch outcome {
	case OutcomeUnknown:
		a.lost = append(a.lost, order)
		if len(a.lost) > maxLost {
			a.drop(a.lost[0])
			a.lost = slices.Delete(a.lost, 0, 1)
		}
		return
	case OutcomeSucceeded:
		for i := slices.Index(a.lost, order); i >= 0; i = slices.Index(a.lost, order) {
			a.drop(order)
			a.lost = slices.Delete(a.lost, i, i+1)
		}
	}
	a.drop(order)
}

// drop drops one call for an order.
func (a *awaited) drop(order flightKey) {
	if a.orders[order.order]--; a.orders[order.order] == 0 {
		delete(a.orders, order.order)
	}
}

// has reports whether the response of an order with this name may still come.
func (a *awaited) has(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.orders[validate.IDKey(name)] > 0
}
