package literal

import (
	"context"
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
func Leased() (Store, error) { return &leased{orders: map[string]*leasedOrder{}}, nil }

type leased struct {
	mu     sync.Mutex
	orders map[string]*leasedOrder
}

type leasedOrder struct {
	guard  *gateway.MemoryGuard
	holder *leaseGuard   // of the lease; nil for none
	held   gateway.Order // what it is about
	until  time.Time     // when the lease is over
	since  time.Time     // when the outcome became unknown; zero if it is not
}

// A leaseGuard is the guard of one process.
type leaseGuard struct{ store *leased }

func (l *leased) Guard() (gateway.OrderGuard, func() error, error) {
	return &leaseGuard{l}, func() error { return nil }, nil
}
func (l *leased) Expire(string) error { return nil } // the time does
func (l *leased) Survives() bool      { return true }
func (l *leased) Close() error        { return nil }

// order returns an order, of which a lease that is over has ended.
func (l *leased) order(id string) *leasedOrder {
	o := l.orders[id]
	if o == nil {
		o = &leasedOrder{guard: &gateway.MemoryGuard{}}
		l.orders[id] = o
	}
	if o.holder != nil && !time.Now().Before(o.until) {
		o.end(context.Background(), o.held, gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Request: o.held.Request, RequestID: o.held.RequestID})
	}
	return o
}

func (o *leasedOrder) end(ctx context.Context, asked gateway.Order, r gateway.OrderRecord) gateway.OrderRecord {
	has, _ := o.guard.End(ctx, asked, r) // it never fails
	o.holder, o.since = nil, time.Time{}
	if has.Outcome == gateway.OutcomeUnknown {
		o.since = time.Now()
	}
	return has
}

// Begin implements [gateway.OrderGuard].
func (g *leaseGuard) Begin(ctx context.Context, asked gateway.Order) (gateway.Lease, error) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	o := g.store.order(asked.Request.OrderID)
	answer, err := o.guard.Begin(ctx, asked)
	if answer.State == gateway.OrderFree {
		o.holder, o.held, o.until = g, asked, time.Now().Add(lease)
		answer.Expires = o.until
	}
	return answer, err
}

// End implements [gateway.OrderGuard]. Of an order that the process holds no more, and nobody
// else does, only that an invoice exists, or may, is of use.
func (g *leaseGuard) End(ctx context.Context, asked gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	o := g.store.order(asked.Request.OrderID)
	exists := r.Outcome == gateway.OutcomeSucceeded || r.Outcome == gateway.OutcomeUnknown
	if o.holder == g && o.held.RequestID == asked.RequestID || o.holder == nil && exists {
		return o.end(ctx, asked, r), nil
	}
	return r, nil
}

// resolve has an operator look at the orders that are unknown: those that have no invoice
// become free.
func (l *leased) resolve(hasInvoice func(orderID string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.orders {
		if o := l.order(id); !o.since.IsZero() && time.Since(o.since) > certain && !hasInvoice(id) {
			l.orders[id] = &leasedOrder{guard: &gateway.MemoryGuard{}}
		}
	}
}
