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

// A flight is a call that has the lease of an order.
type flight struct {
	request InvoiceRequest
	secret  redact.Secret
	ended   chan struct{} // made for the first call that waits
	refusal *APIError     // set before ended is closed; nil if the call was not rejected
}

func keyOfFlight(o *Order) flightKey { return flightKey{o.Merchant, o.Request.OrderID} }

// begin registers a call that has the lease of an order.
func (fs *flights) begin(o *Order, secret redact.Secret) *flight {
	f := &flight{request: o.Request, secret: secret}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.all == nil {
		fs.all = map[flightKey]*flight{}
	}
	fs.all[keyOfFlight(o)] = f
	return f
}

// find returns the call that has the lease of an order, if it has an equal request and the same key,
// or nil.
func (fs *flights) find(o *Order, secret redact.Secret) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.all[keyOfFlight(o)]
	if f == nil || !f.request.equal(o.Request) || f.secret.Reveal() != secret.Reveal() {
		return nil
	}
	if f.ended == nil {
		f.ended = make(chan struct{})
	}
	return f
}

// end ends the call of a flight with an error.
func (fs *flights) end(o *Order, f *flight, err error) {
	if refusal, ok := err.(*APIError); ok && refusal.decided().outcome == OutcomeRejected {
		f.refusal = refusal
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

// wait waits for the end of a flight, or for d, and returns the refusal with which it has ended, as
// the error of the caller's own call, or the error of a context that has ended. A nil flight has
// no end to wait for.
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
