package guardtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

const (
	merchant = "north"
	id       = "A-17"           // of the order of the steps
	page     = "<html>\x00\xff" // the body of a response that proves nothing
)

// sentAt is when the attempts of the rules were sent. Guards keep microseconds.
var sentAt = time.Date(2026, 11, 22, 3, 14, 15, 926535000, time.UTC)

// orderOf is what a call for an order asks.
func orderOf(id string) gateway.Order {
	return gateway.Order{Gateway: "https://gateway.example", Merchant: merchant, Request: gateway.InvoiceRequest{
		OrderID: id, Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("0.000312500"),
		BaseCurrency: "usd", CoinSymbol: "BTC", NetworkName: "Bitcoin",
	}}
}

// invoiceOf is the text of an invoice, which comes back byte for byte.
func invoiceOf(name string) string {
	return fmt.Sprintf("{ \"id\":%q,\n\"a\":1.50, \"u\":\"\\u00e9é\u2028\" }", name)
}

// outcomes are those of the steps. Bare is a success whose invoice is not known.
var outcomes = map[string]gateway.Outcome{
	"success": gateway.OutcomeSucceeded, "bare": gateway.OutcomeSucceeded, "unknown": gateway.OutcomeUnknown,
	"rejected": gateway.OutcomeRejected, "unsent": gateway.OutcomeNotSent,
}

// A store is the empty store that a rule begins with, and what became of the steps over one of its orders.
type store struct {
	*testing.T
	guard Guard
	first gateway.OrderGuard // that New has returned

	asked    gateway.OrderGuard // by the steps
	attempts map[string]holder  // by their names in the steps
	granted  map[string]bool    // the names that the guards gave
	seen     gateway.OrderStatus
	done     []string
}

// A holder is a guard that has granted a lease, and the order with the name of the attempt.
type holder struct {
	guard gateway.OrderGuard
	order gateway.Order
}

func newStore(t *testing.T, g Guard) *store {
	first := g.New(t)
	return &store{T: t, guard: g, first: first, asked: first, attempts: map[string]holder{}, granted: map[string]bool{}}
}

// another returns another guard over the store.
func (s *store) another() gateway.OrderGuard {
	s.Helper()
	if s.guard.Store == nil || s.guard.Reopen == nil {
		s.Skip("left out: the guard has no Store or Reopen")
	}
	g, err := s.guard.Reopen(s.guard.Store(s.first))
	s.check(err)
	if closer, ok := g.(io.Closer); ok {
		s.Cleanup(func() { s.check(closer.Close()) })
	}
	return g
}

func (s *store) expire() {
	s.Helper()
	if s.guard.Store == nil || s.guard.Expire == nil {
		s.Skip("left out: the guard has no Store or Expire")
	}
	s.check(s.guard.Expire(s.guard.Store(s.first)))
}

func (s *store) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("after %q: %v", s.done, err)
	}
}

// atOnce makes calls at once, and returns how many were true.
func atOnce(calls int, call func(i int) bool) int {
	var all sync.WaitGroup
	var count atomic.Int64
	for i := range calls {
		all.Go(func() {
			if call(i) {
				count.Add(1)
			}
		})
	}
	all.Wait()
	return int(count.Load())
}

// begin asks for a lease. If it is granted, its name is one that no other attempt has, and begin returns who has it.
func (s *store) begin(g gateway.OrderGuard, o gateway.Order) (gateway.Lease, holder) {
	s.Helper()
	lease, err := g.Begin(context.Background(), o)
	s.check(err)
	if lease.State == gateway.OrderFree && (lease.Attempt == "" || s.granted[lease.Attempt]) {
		s.Fatalf("after %q the attempt is %q, want a new name", s.done, lease.Attempt)
	}
	s.granted[lease.Attempt] = true
	o.Attempt, o.Resubmit = lease.Attempt, false
	return lease, holder{g, o}
}

// acquire asks for a lease, which must be granted.
func (s *store) acquire(o gateway.Order) holder {
	s.Helper()
	lease, h := s.begin(s.asked, o)
	if lease.State != gateway.OrderFree {
		s.Fatalf("after %q the order is %s, want a lease", s.done, lease.State)
	}
	return h
}

// end records an outcome twice, as if the first answer had been lost. The name is in the invoice of a success, and in
// the evidence of an unknown outcome.
func (s *store) end(h holder, outcome, name string) (has gateway.OrderRecord) {
	s.Helper()
	for range 2 {
		var err error
		has, err = h.guard.End(context.Background(), h.order, recordOf(h.order, outcome, name))
		s.check(err)
	}
	return has
}

func recordOf(o gateway.Order, outcome, name string) gateway.OrderRecord {
	r := gateway.OrderRecord{Outcome: outcomes[outcome], Request: o.Request, SentAt: sentAt}
	switch outcome {
	case "success":
		r.Invoice = []byte(invoiceOf(name))
	case "unknown":
		r.Cause, r.StatusCode, r.Body = name, 502, []byte(page)
	}
	return r
}

// look returns the state of an order and its record. A free order stays free.
func (s *store) look(g gateway.OrderGuard, o gateway.Order) (gateway.OrderState, gateway.OrderRecord) {
	s.Helper()
	lease, h := s.begin(g, o)
	if lease.State == gateway.OrderFree {
		s.end(h, "unsent", "")
	}
	return lease.State, *cmp.Or(lease.Known, &gateway.OrderRecord{})
}

// describe returns an order in words: its state, and the names of its invoices or of its evidence.
func describe(state gateway.OrderState, r gateway.OrderRecord) string {
	text := state.String()
	switch {
	case state == gateway.OrderFree:
		return text
	case !r.Request.Equal(orderOf(r.Request.OrderID).Request):
		return fmt.Sprintf("%s, with the request %+v", text, r.Request)
	case state == gateway.OrderInFlight, state == gateway.OrderUnknown && r.StatusCode == 0:
		return text // the process of the attempt has told nothing
	case state == gateway.OrderCreated && r.Outcome == gateway.OutcomeSucceeded:
		names := []string{nameIn(r.Invoice)}
		for _, other := range r.Others {
			names = append(names, nameIn(other))
		}
		return text + " " + strings.Join(names, " + ")
	case r.Outcome == gateway.OutcomeUnknown && r.StatusCode == 502 && string(r.Body) == page && r.SentAt.Equal(sentAt):
		return text + " " + r.Cause
	default:
		return fmt.Sprintf("%s, with the record %+v", text, r)
	}
}

func nameIn(invoice json.RawMessage) string {
	var of struct{ ID string }
	if _ = json.Unmarshal(invoice, &of); string(invoice) != invoiceOf(of.ID) {
		return fmt.Sprintf("%.80q", invoice)
	}
	return of.ID
}

// do takes the steps of a rule over one order:
//
//   - begin a, resubmit a: the lease is granted, to the attempt a.
//   - success a and the other outcomes: the attempt a ends so. An attempt that was not begun is of another guard.
//   - expire: all leases end. restart: another guard is asked from now on.
//   - is created a + b, is unknown a: so the order is.
//   - see: a person reads the order. exists and the other findings: the person resolves it. forget: the person forgets
//     it. Before these come the words of an error that is expected.
func (s *store) do(steps string) {
	s.Helper()
	for step := range strings.SplitSeq(steps, ", ") {
		o := orderOf(id)
		switch verb, name, _ := strings.Cut(step, " "); verb {
		case "begin", "resubmit":
			o.Resubmit = verb == "resubmit"
			s.attempts[name] = s.acquire(o)
		case "success", "bare", "unknown", "rejected", "unsent":
			s.ends(verb, name)
		case "expire":
			s.expire()
		case "restart":
			s.asked = s.another()
		case "see":
			s.see(id)
		case "is":
			state, known := s.look(s.asked, o)
			o.Resubmit = state == gateway.OrderCreated || state == gateway.OrderInFlight
			again, _ := s.look(s.asked, o)
			if got := describe(state, known); got != name || again != state {
				s.Errorf("after %q the order is %s, and for Resubmit %s, want it %s", s.done, got, again, name)
			}
		default:
			var want error
			for text, refusal := range refusals {
				if rest, ok := strings.CutPrefix(step, text+" "); ok {
					step, want = rest, refusal
				}
			}
			if err := s.person(step); !errors.Is(err, want) {
				s.Errorf("after %q: %s: %v, want %v", s.done, step, err, want)
			}
		}
		s.done = append(s.done, step)
	}
}

// ends ends an attempt. End returns the order as Begin does then.
func (s *store) ends(outcome, name string) {
	s.Helper()
	h, ok := s.attempts[name]
	if !ok {
		h = holder{s.asked, orderOf(id)}
		h.order.Attempt = "of-another-guard"
	}
	has := s.end(h, outcome, name)
	state, known := s.look(h.guard, orderOf(id))
	got, want := describe(state, has), describe(state, known)
	if state == gateway.OrderFree {
		got, want = has.Outcome.String(), outcomes[outcome].String()
	}
	if got != want && state != gateway.OrderInFlight {
		s.Errorf("after %q and %s End returns an order that is %s, want it %s", s.done, outcome, got, want)
	}
}

// person takes a step of a person, about the order as it was seen.
func (s *store) person(step string) error {
	s.Helper()
	f, ok := findings[step]
	switch {
	case ok:
		return s.first.(keeper).Resolve(context.Background(), s.seen, f)
	case step == "forget":
		return s.first.(keeper).Forget(context.Background(), s.seen)
	default:
		s.Fatalf("there is no step %q", step)
		return nil
	}
}

// see has a person read an order, a moment later.
func (s *store) see(id string) {
	s.Helper()
	s.seen = s.status(id)
	s.seen.ReadAt, s.seen.GuardReadAt = s.seen.ReadAt.Add(time.Second), s.seen.GuardReadAt.Add(time.Second)
}

// status reads an order.
func (s *store) status(id string) gateway.OrderStatus {
	s.Helper()
	o, err := s.first.(keeper).Order(context.Background(), merchant, id)
	s.check(err)
	return o
}
