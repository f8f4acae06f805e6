// Package guardtest tests implementations of [gateway.OrderGuard]: what the interface promises, as rules,
// in a random walk, and in a race of processes that are killed.
//
//	func TestGuard(t *testing.T) {
//		guardtest.Run(t, guardtest.Guard{
//			New:    func(t *testing.T) gateway.OrderGuard { return newGuard(t) },
//			Store:  func(g gateway.OrderGuard) string { return g.(*Guard).address },
//			Reopen: func(store string) (gateway.OrderGuard, error) { return open(store) },
//			Expire: func(store string) error { return endLeases(store) },
//		})
//	}
package guardtest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// A Guard is an implementation that is tested. Only New is required. Without the others, the rules
// about restarts, processes and leases are left out, which the test logs.
type Guard struct {
	// New returns a guard over a new store that has no order. All orders of the rules have a merchant, of any name.
	New func(t *testing.T) gateway.OrderGuard

	// Store returns a text that names the store of a guard that New has returned.
	Store func(g gateway.OrderGuard) string

	// Reopen returns another guard over a store, as after a restart or in another process: other processes
	// call it too. A guard that is an io.Closer is closed.
	Reopen func(store string) (gateway.OrderGuard, error)

	// Expire ends the leases of all orders of a store, as the passage of time does.
	Expire func(store string) error
}

// Run tests a guard. If it has the methods Order, Pending, Resolve and Forget of a [gateway.MemoryGuard], their rules are
// tested too. For the race of processes the program of the test starts itself again with the name of t,
// so that what precedes Run should be cheap; the variable GUARDTEST_KILLS is how many of these are killed, by default 20.
func Run(t *testing.T, g Guard) {
	if os.Getenv(asWorker) != "" {
		work(t, g)
		return
	}
	all := rules
	if _, ok := g.New(t).(keeper); ok {
		all = slices.Concat(people, rules)
	}
	for _, r := range all {
		t.Run(r.name, func(t *testing.T) {
			if r.needsRestart && (g.Reopen == nil || g.Store == nil) || r.needsExpiry && g.Expire == nil {
				t.Skip("left out: the guard has no Store, Reopen or Expire")
			}
			s := &store{T: t, guard: g}
			s.first = g.New(t)
			r.check(s)
		})
	}
}

// A store is the empty store that a rule begins with.
type store struct {
	*testing.T
	guard Guard
	first gateway.OrderGuard // that New has returned
}

// another returns another guard over the store.
func (s *store) another() gateway.OrderGuard {
	s.Helper()
	g, err := s.guard.Reopen(s.guard.Store(s.first))
	s.check(err)
	if closer, ok := g.(io.Closer); ok {
		s.Cleanup(func() { s.check(closer.Close()) })
	}
	return g
}

func (s *store) expire() {
	s.Helper()
	s.check(s.guard.Expire(s.guard.Store(s.first)))
}

func (s *store) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// orderOf is what a call for an order asks.
func orderOf(id string) gateway.Order {
	return gateway.Order{Gateway: "https://gateway.example", Merchant: merchant, Request: gateway.InvoiceRequest{
		OrderID: id, Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("0.000312500"), BaseCurrency: "usd", CoinSymbol: "BTC", NetworkName: "Bitcoin",
	}}
}

const (
	merchant = "north"
	id       = "A-17"
)

// begin asks for a lease.
func (s *store) begin(g gateway.OrderGuard, o gateway.Order) gateway.Lease {
	s.Helper()
	lease, err := g.Begin(context.Background(), o)
	s.check(err)
	return lease
}

// acquire asks for a lease, which must be granted, and returns the order with the name of the attempt.
func (s *store) acquire(g gateway.OrderGuard, o gateway.Order) gateway.Order {
	s.Helper()
	return s.granted(o, s.begin(g, o))
}

// granted returns an order with the name of the attempt of its lease.
func (s *store) granted(o gateway.Order, lease gateway.Lease) gateway.Order {
	s.Helper()
	if lease.State != gateway.OrderFree || lease.Attempt == "" {
		s.Fatalf("the order is %s with the attempt %q, want a lease with a name", lease.State, lease.Attempt)
	}
	o.Attempt, o.Resubmit = lease.Attempt, false
	return o
}

// end records an outcome. The text is the invoice of a success, and the cause of an unknown outcome.
func (s *store) end(g gateway.OrderGuard, o gateway.Order, outcome gateway.Outcome, text string) gateway.OrderRecord {
	s.Helper()
	r := gateway.OrderRecord{Outcome: outcome, Request: o.Request, SentAt: sentAt}
	if outcome == gateway.OutcomeSucceeded && text != "" {
		r.Invoice = []byte(text)
	} else if outcome == gateway.OutcomeUnknown {
		r.Cause, r.StatusCode, r.Body = text, 502, []byte("<html>\x00\xff")
	}
	has, err := g.End(context.Background(), o, r)
	s.check(err)
	return has
}

// look returns the state of an order and its record. A free order stays free.
func (s *store) look(g gateway.OrderGuard, o gateway.Order) (gateway.OrderState, gateway.OrderRecord) {
	s.Helper()
	o.Resubmit, o.Attempt = false, ""
	lease := s.begin(g, o)
	if lease.State == gateway.OrderFree {
		s.end(g, s.granted(o, lease), gateway.OutcomeNotSent, "")
	}
	return lease.State, *cmp.Or(lease.Known, &gateway.OrderRecord{})
}

// want compares the state of an order.
func (s *store) want(g gateway.OrderGuard, o gateway.Order, want gateway.OrderState) gateway.OrderRecord {
	s.Helper()
	state, known := s.look(g, o)
	if state != want {
		s.Errorf("the order is %s, want it %s", state, want)
	}
	return known
}

// wantInvoice compares the invoice of a record, and the further ones.
func (s *store) wantInvoice(r gateway.OrderRecord, want string, others int) {
	s.Helper()
	if r.Outcome != gateway.OutcomeSucceeded || string(r.Invoice) != want || len(r.Others) != others {
		s.Errorf("outcome %v, invoice %q and %d others, want a success, %q and %d", r.Outcome, r.Invoice, len(r.Others), want, others)
	}
}

func resubmitted(o gateway.Order) gateway.Order {
	o.Resubmit = true
	return o
}

// wantOther requires the error of an order of another gateway.
func (s *store) wantOther(err error) {
	s.Helper()
	if !errors.Is(err, gateway.ErrOtherGateway) {
		s.Errorf("%v, want an error that matches gateway.ErrOtherGateway", err)
	}
}
