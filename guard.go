package gateway

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// An OrderGuard keeps two invoices from being created for one order. It must be safe
// for concurrent use. The default guard is in the memory of its client: it knows no
// other client, no other process and nothing from before a restart.
//
// An order is identified by its orderId alone. The default guard distinguishes the
// orders of calls with [WithAPIKey] by their keys; with [WithAPIKeySource] it does not,
// because the keys may be those of one merchant. Another guard that serves several
// merchants must distinguish them by the values of the context, which in both methods
// has those of the caller's.
type OrderGuard interface {
	// Begin is called before an invoice is sent. It refuses with an error that
	// matches [ErrOrderInFlight] while another call for the order is in flight, and
	// with one that matches [ErrOrderOutcomeUnknown] after an unknown outcome unless
	// resubmit is set.
	Begin(ctx context.Context, orderID string, resubmit bool) error

	// End records the outcome of a call that Begin accepted, once for each. Its
	// context has the values of the caller's but not its end, which must not lose the
	// outcome; it ends after 10 seconds. The error does not change what the call
	// returns: a guard that cannot record an outcome must treat the order as unknown
	// later.
	End(ctx context.Context, orderID string, outcome Outcome) error
}

// guardTimeout bounds how long recording an outcome may take.
const guardTimeout = 10 * time.Second

// A merchant identifies whose order it is, where a call has a key of its own.
type merchant [sha256.Size]byte

type merchantKey struct{}

// withMerchant tells the default guard whose order it is: two merchants may number
// their orders alike.
func (r *request) withMerchant(ctx context.Context) context.Context {
	if r.cfg.key == nil || r.key.Reveal() == r.client.key.Reveal() || r.client.cfg.keySource != nil {
		return ctx
	}
	return context.WithValue(ctx, merchantKey{}, merchant(sha256.Sum256([]byte(r.cfg.key.Reveal()))))
}

// memoryGuard is the default [OrderGuard]. It never waits, so it ignores the end of a
// context.
type memoryGuard struct {
	mu     sync.Mutex
	orders map[merchantOrder]orderState
}

type merchantOrder struct {
	merchant merchant // zero for the client's own key
	order    string
}

func orderOf(ctx context.Context, orderID string) merchantOrder {
	whose, _ := ctx.Value(merchantKey{}).(merchant)
	return merchantOrder{whose, orderID}
}

// An orderState is that of an order in the map; one that is not there is free.
type orderState struct {
	inFlight bool
	unknown  bool // an earlier outcome is unknown
}

func newMemoryGuard() *memoryGuard {
	return &memoryGuard{orders: map[merchantOrder]orderState{}}
}

func (g *memoryGuard) Begin(ctx context.Context, orderID string, resubmit bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	order := orderOf(ctx, orderID)
	state := g.orders[order]
	switch {
	case state.inFlight:
		return ErrOrderInFlight
	case state.unknown && !resubmit:
		return ErrOrderOutcomeUnknown
	}
	state.inFlight = true
	g.orders[order] = state
	return nil
}

// End frees the order, unless its outcome or an earlier one is unknown: that a second
// invoice was refused or not sent proves nothing about the first.
func (g *memoryGuard) End(ctx context.Context, orderID string, outcome Outcome) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	order := orderOf(ctx, orderID)
	unknown := outcome == OutcomeUnknown || g.orders[order].unknown && outcome != OutcomeSucceeded
	if !unknown {
		delete(g.orders, order)
		return nil
	}
	g.orders[order] = orderState{unknown: true}
	return nil
}
