package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"
)

// An OrderGuard keeps two invoices from being created for one order. It must
// be safe for concurrent use. The default one is in the memory of its client, so
// it knows no other client, no other process and nothing from before a restart.
//
// An order is told by its identifier alone. The default guard keeps the orders
// of calls with [WithAPIKey] apart by their keys. With [WithAPIKeySource] it
// does not, for one merchant may have had several keys. Another guard that
// serves several merchants must tell them apart by the values of the context,
// which in both methods are those of the caller's.
type OrderGuard interface {
	// Begin is asked before an invoice is sent. It refuses with an error that
	// matches [ErrOrderInFlight] while another one for the order is under way,
	// and with one that matches [ErrOrderOutcomeUnknown] after an unknown
	// outcome unless resubmit is set.
	Begin(ctx context.Context, orderID string, resubmit bool) error

	// End is told what came of an invoice that Begin let through, once for
	// each. Its context is not the caller's, whose end must not lose the
	// outcome, and is ended after 10 seconds. What it returns does not change
	// what the call returns: a guard that can not record an outcome must treat
	// the order as unknown later.
	End(ctx context.Context, orderID string, outcome Outcome) error
}

// guardTimeout bounds how long recording an outcome may take.
const guardTimeout = 10 * time.Second

// hold asks the guard for the order of an invoice. The outcome is told to
// release. A read, and a client without a guard, hold nothing.
func (x *exchange) hold() (release func(Outcome), err error) {
	guard := x.client.cfg.guard
	if x.call.write == nil || guard == nil {
		return func(Outcome) {}, nil
	}
	order, ctx := x.call.write.order(), x.owned(&x.ctx)
	if err := guard.Begin(ctx, order, x.cfg.resubmit); err != nil {
		return nil, x.held(err)
	}
	if _, inMemory := guard.(*memoryGuard); inMemory {
		return func(outcome Outcome) { _ = guard.End(ctx, order, outcome) }, nil
	}
	return func(outcome Outcome) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), guardTimeout)
		defer cancel()
		_ = guard.End(ctx, order, outcome)
	}, nil
}

// A merchant is whose order it is, where a call has a key of its own.
type merchant [sha256.Size]byte

type merchantKey struct{}

// owned notes in a context, for the default guard, whose order it is: two
// merchants may number their orders alike.
func (x *exchange) owned(ctx context.Context) context.Context {
	if x.cfg.key == nil || x.key.reveal() == x.client.key.reveal() || x.client.cfg.keySource != nil {
		return ctx
	}
	return context.WithValue(ctx, merchantKey{}, merchant(sha256.Sum256([]byte(x.cfg.key.reveal()))))
}

// held is the refusal of the guard: nothing was sent.
func (x *exchange) held(err error) error {
	words := foreign(err, x.keys)
	for _, known := range []error{ErrOrderInFlight, ErrOrderOutcomeUnknown} {
		if errors.Is(err, known) {
			return &ArgumentError{Op: x.call.op, Name: "orderId", Reason: oneLine(known), err: errors.Join(known, words)}
		}
	}
	return x.transportError(PhaseStart, fmt.Errorf("the order guard: %w", words))
}

// memoryGuard is the default [OrderGuard]. It waits for nothing, so it does not
// look whether a context has ended.
type memoryGuard struct {
	mu     sync.Mutex
	orders map[ownedOrder]orderState
}

type ownedOrder struct {
	merchant merchant // zero for the client's own key
	order    string
}

func orderIn(ctx context.Context, orderID string) ownedOrder {
	owner, _ := ctx.Value(merchantKey{}).(merchant)
	return ownedOrder{owner, orderID}
}

// An order that is not in the map is free.
type orderState struct {
	inFlight bool
	unknown  bool // an earlier outcome is unknown
}

func newMemoryGuard() *memoryGuard {
	return &memoryGuard{orders: map[ownedOrder]orderState{}}
}

func (g *memoryGuard) Begin(ctx context.Context, orderID string, resubmit bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	order := orderIn(ctx, orderID)
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

// End frees the order, unless its outcome or an earlier one is unknown: that a
// second invoice was refused or not sent says nothing of the first.
func (g *memoryGuard) End(ctx context.Context, orderID string, outcome Outcome) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	order := orderIn(ctx, orderID)
	unknown := outcome == OutcomeUnknown || g.orders[order].unknown && outcome != OutcomeSucceeded
	if !unknown {
		delete(g.orders, order)
		return nil
	}
	g.orders[order] = orderState{unknown: true}
	return nil
}
