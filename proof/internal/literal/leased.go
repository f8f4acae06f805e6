package literal

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
)

const (
	// lease is longer than a call may last by any policy of the schedules.
	lease = 200 * time.Second
	// certain is after how long an operator takes it that what was sent has arrived.
	certain = time.Minute
)

// Leased is a store that outlives the processes, as a database does, in the time of a bubble:
// an order whose process has died, or was suspended, is unknown when its lease is over, and
// free when an operator has found no invoice of it.
func Leased() (Store, error) { return &leased{held: map[string]holding{}}, nil }

type leased struct {
	guard gateway.MemoryGuard
	mu    sync.Mutex
	held  map[string]holding // the leases, by order
}

// A holding is the lease of an order.
type holding struct {
	order gateway.Order
	until time.Time
}

func (l *leased) Guard() (gateway.OrderGuard, func() error, error) {
	return l, func() error { return nil }, nil
}
func (l *leased) Expire(string) error { return nil } // the time does
func (l *leased) Survives() bool      { return true }
func (l *leased) Close() error        { return nil }

// expire ends the leases that are over: what became of these orders is unknown.
func (l *leased) expire(ctx context.Context) {
	for id, h := range l.held {
		if !time.Now().Before(h.until) {
			delete(l.held, id)
			_, _ = l.guard.End(ctx, h.order, gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Request: h.order.Request}) // it never fails
		}
	}
}

// Begin implements [gateway.OrderGuard].
func (l *leased) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(ctx)
	answer, err := l.guard.Begin(ctx, o)
	if err == nil && answer.State == gateway.OrderFree {
		o.Attempt, answer.Expires = answer.Attempt, time.Now().Add(lease)
		l.held[o.Request.OrderID] = holding{o, answer.Expires}
	}
	return answer, err
}

// End implements [gateway.OrderGuard].
func (l *leased) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(ctx)
	if l.held[o.Request.OrderID].order.Attempt == o.Attempt {
		delete(l.held, o.Request.OrderID)
	}
	return l.guard.End(ctx, o, r)
}

// resolve has an operator look at the orders that are unknown: those that have no invoice
// become free.
func (l *leased) resolve(hasInvoice func(orderID string) bool) (absent int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(context.Background())
	pending, err := l.guard.Pending(context.Background(), gateway.PendingQuery{})
	if err != nil {
		return 0, err
	}
	for _, o := range pending {
		if hasInvoice(o.OrderID) {
			continue
		}
		switch err := l.guard.Resolve(context.Background(), o, gateway.Finding{By: "the operator", Margin: certain}); {
		case err == nil:
			absent++
		case !errors.Is(err, gateway.ErrTooEarly):
			return absent, err
		}
	}
	return absent, nil
}
