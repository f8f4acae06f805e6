package gateway

import (
	"context"
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

// A flight is a call that has the lease of an order. A nil flight never ends.
type flight struct {
	of      *flights
	order   *Order
	secret  redact.Secret
	ended   chan struct{}
	refusal *APIError // set before ended is closed; nil for another end
}

func (o *Order) flightKey() flightKey { return flightKey{o.Merchant, o.Request.OrderID} }

// begin registers a call that has the lease of an order.
func (fs *flights) begin(o *Order, secret redact.Secret) *flight {
	f := &flight{of: fs, order: o, secret: secret, ended: make(chan struct{})}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.all == nil {
		fs.all = map[flightKey]*flight{}
	}
	fs.all[o.flightKey()] = f
	return f
}

// of returns the call in flight with an equal request and the same key, or nil.
func (fs *flights) of(o *Order, secret redact.Secret) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.all[o.flightKey()]; f != nil && f.order.Request.equal(o.Request) && f.secret.Reveal() == secret.Reveal() {
		return f
	}
	return nil
}

// end ends a flight with the error of its call.
func (f *flight) end(err error) {
	if refusal, ok := err.(*APIError); ok && refusal.decided().outcome == OutcomeRejected {
		f.refusal = refusal
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.of.all[f.order.flightKey()] == f {
		delete(f.of.all, f.order.flightKey())
	}
	close(f.ended)
}

// wait waits for the end of a flight, or for d, and returns the refusal with which it has ended, as
// the error of the caller's own call, or the error of a context that has ended.
func (f *flight) wait(ctx context.Context, d time.Duration) (*APIError, error) {
	var ended chan struct{}
	if f != nil {
		ended = f.ended
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		if f.refusal == nil {
			return nil, nil
		}
		shared := *f.refusal
		shared.Attempts = 0
		return &shared, nil
	case <-timer.C:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
