package order

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
)

// lease is longer than a call may last by any policy of the schedules.
const lease = 100 * time.Second

// leases is a guard that outlives the processes of its merchant, as a database does: the outcome of an
// order whose process is suspended, or could not record it, is unknown when its lease is over.
type leases struct {
	gateway.MemoryGuard
	world *world
	mu    sync.Mutex
	held  map[string]holding // by attempt
}

// A holding is the lease of an order.
type holding struct {
	order gateway.Order
	until time.Time
}

func known(o gateway.Order) string { return o.Merchant + "/" + o.Key() }

// expire ends the leases that are over.
func (l *leases) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for attempt, h := range l.held {
		if time.Now().Before(h.until) {
			continue
		}
		delete(l.held, attempt)
		_, _ = l.MemoryGuard.End(context.Background(), h.order, gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Request: h.order.Request}) // it never fails
		l.world.change(func() {
			o := l.world.order(known(h.order))
			o.unknown, o.ever, o.expired = time.Now(), true, append(o.expired, attempt)
		})
	}
}

// Begin implements [gateway.OrderGuard]. The process is suspended when it has got the lease.
func (l *leases) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	a, _ := ctx.Value(attemptedKey{}).(*attempted)
	if a.BeginFails {
		l.world.change(func() { a.slept = true })
		return gateway.Lease{}, errDatabase
	}
	l.expire()
	answer, err := l.MemoryGuard.Begin(ctx, o)
	if err != nil || answer.State != gateway.OrderFree {
		return answer, err
	}
	o.Attempt, answer.Expires = answer.Attempt, time.Now().Add(lease)
	l.mu.Lock()
	l.held[o.Attempt] = holding{o, answer.Expires}
	l.mu.Unlock()
	if a.Suspended > 0 {
		var c *account
		l.world.change(func() { a.slept, c = true, l.world.order(known(o)); c.suspended++ })
		_ = wait(context.Background(), a.Suspended)
		l.world.change(func() { c.suspended-- })
	}
	return answer, nil
}

var errDatabase = errors.New("the database is down")

// End implements [gateway.OrderGuard].
func (l *leases) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	a, _ := ctx.Value(attemptedKey{}).(*attempted)
	c, fails, isLate := (*account)(nil), false, false
	l.world.change(func() {
		c = l.world.order(known(o))
		if a.ending.IsZero() {
			a.ending, a.outcome = time.Now(), r.Outcome
		}
		if fails = time.Since(a.ending) < a.EndFails; fails && !a.lost {
			a.lost = true
			c.lost++
		}
	})
	if fails {
		return gateway.OrderRecord{}, errDatabase
	}
	l.expire()
	l.mu.Lock()
	_, holds := l.held[o.Attempt]
	delete(l.held, o.Attempt)
	l.mu.Unlock()
	l.world.change(func() {
		if !holds && (r.Outcome == gateway.OutcomeNotSent || r.Outcome == gateway.OutcomeRejected) {
			c.expired = slices.DeleteFunc(c.expired, func(attempt string) bool { return attempt == o.Attempt })
			if len(c.expired) == 0 && !c.doubted { // its lease was the only doubt
				c.unknown = time.Time{}
			}
		}
		if !a.lost {
			return
		}
		a.lost, isLate = false, true
		c.lost--
		l.world.counts["outcomes recorded after an outage"]++
		if r.Outcome == gateway.OutcomeSucceeded {
			c.settle()
			c.created = append(c.created, a.Other)
		}
	})
	has, err := l.MemoryGuard.End(ctx, o, r)
	if isLate && r.Outcome == gateway.OutcomeSucceeded {
		l.world.change(func() { c.result = string(has.Invoice) }) // in the place of what a person has copied meanwhile
	}
	return has, err
}
