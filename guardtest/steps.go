package guardtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

const (
	merchant = "north"
	id       = "A-17"

	unknown  = gateway.OutcomeUnknown
	success  = gateway.OutcomeSucceeded
	rejected = gateway.OutcomeRejected
	notSent  = gateway.OutcomeNotSent
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

func resubmitted(o gateway.Order) gateway.Order {
	o.Resubmit = true
	return o
}

// invoiceOf is the text of the invoice of an attempt, which comes back byte for byte.
func invoiceOf(attempt string) string {
	return fmt.Sprintf("{ \"id\":%q,\n\"a\":1.50, \"u\":\"\\u00e9é\u2028\" }", attempt)
}

// A store is the empty store that a rule begins with, and what became of the steps over one of its orders.
type store struct {
	*testing.T
	guard Guard
	first gateway.OrderGuard // that New has returned

	asked    gateway.OrderGuard // by the steps
	attempts map[string]holder  // by their names in the steps
	granted  map[string]bool    // the names that the guards gave
	ended    *gateway.OrderRecord
	seen     gateway.OrderStatus
	done     []string
}

// A holder is a guard that has granted a lease, and the order with the name of the attempt.
type holder struct {
	guard gateway.OrderGuard
	order gateway.Order
}

func newStore(t *testing.T, g Guard) *store {
	s := &store{T: t, guard: g, attempts: map[string]holder{}, granted: map[string]bool{}}
	s.first = g.New(t)
	s.asked = s.first
	return s
}

// isDurable reports whether another guard can be opened over the store.
func (s *store) isDurable() bool { return s.guard.Reopen != nil && s.guard.Store != nil }

// another returns another guard over the store.
func (s *store) another() gateway.OrderGuard {
	s.Helper()
	if !s.isDurable() {
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
	if s.guard.Expire == nil || s.guard.Store == nil {
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

// begin asks for a lease.
func (s *store) begin(g gateway.OrderGuard, o gateway.Order) gateway.Lease {
	s.Helper()
	lease, err := g.Begin(context.Background(), o)
	s.check(err)
	return lease
}

// acquire asks for a lease, which must be granted with a name that no other attempt has.
func (s *store) acquire(g gateway.OrderGuard, o gateway.Order) holder {
	s.Helper()
	return s.holder(g, o, s.begin(g, o))
}

func (s *store) holder(g gateway.OrderGuard, o gateway.Order, lease gateway.Lease) holder {
	s.Helper()
	if lease.State != gateway.OrderFree || lease.Attempt == "" || s.granted[lease.Attempt] {
		s.Fatalf("after %q the order is %s with the attempt %q, want a lease with a new name", s.done, lease.State, lease.Attempt)
	}
	s.granted[lease.Attempt] = true
	o.Attempt, o.Resubmit = lease.Attempt, false
	return holder{g, o}
}

// end records an outcome. The text is the invoice of a success, and the cause of an unknown outcome.
func (s *store) end(h holder, outcome gateway.Outcome, text string) gateway.OrderRecord {
	s.Helper()
	r := gateway.OrderRecord{Outcome: outcome, Request: h.order.Request, SentAt: sentAt}
	if outcome == success && text != "" {
		r.Invoice = []byte(text)
	} else if outcome == unknown {
		r.Cause, r.StatusCode, r.Body = text, 502, []byte("<html>\x00\xff")
	}
	has, err := h.guard.End(context.Background(), h.order, r)
	s.check(err)
	before := s.text(h.order, has)
	has, err = h.guard.End(context.Background(), h.order, r) // as if no answer had come
	s.check(err)
	if after := s.text(h.order, has); after != before {
		s.Errorf("after %q End was called again, and changed\n%.2000s to\n%.2000s", s.done, before, after)
	}
	return has
}

// text returns what End has returned, and what people see of the order, but for the times of reading.
func (s *store) text(o gateway.Order, has gateway.OrderRecord) string {
	s.Helper()
	has.CreatedAt = time.Time{} // is known better when it is read
	all := []any{has}
	if keeper, ok := s.first.(keeper); ok {
		seen, err := keeper.Order(context.Background(), o.Merchant, o.Request.OrderID)
		s.check(err)
		seen.ReadAt, seen.GuardReadAt = time.Time{}, time.Time{}
		all = append(all, seen)
	}
	text, err := json.Marshal(all)
	s.check(err)
	return string(text)
}

// look returns the state of an order and its record. A free order stays free.
func (s *store) look(g gateway.OrderGuard, o gateway.Order) (gateway.OrderState, gateway.OrderRecord) {
	s.Helper()
	lease := s.begin(g, o)
	if lease.State == gateway.OrderFree {
		s.end(s.holder(g, o, lease), notSent, "")
	}
	return lease.State, *cmp.Or(lease.Known, &gateway.OrderRecord{})
}

// describe returns an order in words: its state, and the attempts whose invoices or evidence it has.
func describe(o gateway.Order, state gateway.OrderState, r gateway.OrderRecord) string {
	text := state.String()
	switch {
	case state == gateway.OrderFree:
		return text
	case !r.Request.Equal(o.Request):
		return fmt.Sprintf("%s, with the request %+v", text, r.Request)
	case state == gateway.OrderCreated && r.Outcome == success:
		names := []string{}
		for _, invoice := range append([]json.RawMessage{r.Invoice}, r.Others...) {
			names = append(names, attemptOf(invoice))
		}
		return text + " " + strings.Join(names, " + ")
	case state == gateway.OrderUnknown && r.StatusCode == 0, state == gateway.OrderInFlight:
		return text // the process of the attempt has told nothing
	case r.Outcome == unknown && r.StatusCode == 502 && string(r.Body) == "<html>\x00\xff" && r.SentAt.Equal(sentAt):
		return text + " " + r.Cause
	default:
		return fmt.Sprintf("%s, with the record %+v", text, r)
	}
}

// attemptOf returns the attempt that an invoice is of.
func attemptOf(invoice json.RawMessage) string {
	var of struct{ ID string }
	if _ = json.Unmarshal(invoice, &of); string(invoice) != invoiceOf(of.ID) {
		return fmt.Sprintf("%.80q", invoice)
	}
	return of.ID
}

// do takes the steps of a rule over one order:
//
//   - begin a, resubmit a: the lease is granted, to the attempt a.
//   - success a, bare a, unknown a, rejected a, unsent a: the attempt ends so; bare is a success whose invoice is not known. An attempt
//     that was not begun is of another guard.
//   - expire: all leases end. restart: another guard is asked from now on.
//   - is created a + b, is unknown a: so the order is, for every guard, with the invoices of a and b, or the evidence of a.
//   - exists, absent and the others of findings: a person resolves the order. forget: it is forgotten. Before these words comes
//     an error that is expected, and behind them "as seen" if the person has read the order at the step "see".
func (s *store) do(steps string) {
	s.Helper()
	for step := range strings.SplitSeq(steps, ", ") {
		s.step(step)
		s.done = append(s.done, step)
	}
}

var outcomes = map[string]gateway.Outcome{"success": success, "bare": success, "unknown": unknown, "rejected": rejected, "unsent": notSent}

func (s *store) step(step string) {
	s.Helper()
	verb, name, _ := strings.Cut(step, " ")
	outcome, ends := outcomes[verb]
	switch {
	case ends:
		h, ok := s.attempts[name]
		if !ok {
			h = holder{s.asked, orderOf(id)}
			h.order.Attempt = "of-another-guard"
		}
		text := name
		if verb == "success" {
			text = invoiceOf(name)
		} else if verb == "bare" {
			text = ""
		}
		s.ended = new(s.end(h, outcome, text))
		return
	case verb == "is":
		s.is(name)
	case verb == "begin":
		s.attempts[name] = s.acquire(s.asked, orderOf(id))
	case verb == "resubmit":
		s.attempts[name] = s.acquire(s.asked, resubmitted(orderOf(id)))
	case verb == "expire":
		s.expire()
	case verb == "restart":
		s.asked = s.another()
	case step != "":
		s.person(step)
	}
	s.ended = nil
}

// is compares the order, and what End has returned if that was the last step.
func (s *store) is(want string) {
	s.Helper()
	guards := []gateway.OrderGuard{s.asked}
	if s.isDurable() {
		guards = append(guards, s.another())
	}
	for _, g := range guards {
		state, known := s.look(g, orderOf(id))
		if got := describe(orderOf(id), state, known); got != want {
			s.Errorf("after %q the order is %s, want it %s", s.done, got, want)
		}
		if state != gateway.OrderInFlight && state != gateway.OrderCreated {
			continue
		}
		if lease := s.begin(g, resubmitted(orderOf(id))); lease.State != state {
			s.Errorf("after %q the order is %s, and for Resubmit %s", s.done, state, lease.State)
		}
	}
	if s.ended == nil || want == gateway.OrderInFlight.String() {
		return
	}
	outcome, isFree := outcomes[strings.Fields(s.done[len(s.done)-1])[0]], want == gateway.OrderFree.String()
	state := map[gateway.Outcome]gateway.OrderState{success: gateway.OrderCreated, unknown: gateway.OrderUnknown}[s.ended.Outcome]
	if got := describe(orderOf(id), state, *s.ended); isFree && s.ended.Outcome != outcome || !isFree && got != want {
		s.Errorf("after %q End returns an order that is %s with the outcome %v, want it %s", s.done, got, s.ended.Outcome, want)
	}
}

// person takes a step of a person, or a look at the order.
func (s *store) person(step string) {
	s.Helper()
	action, asSeen := strings.CutSuffix(step, " as seen")
	read := s.seen
	if !asSeen {
		read = s.status(id)
	}
	var want error
	for text, err := range refusals {
		if rest, ok := strings.CutPrefix(action, text+" "); ok {
			action, want = rest, err
		}
	}
	var err error
	switch f, ok := findings[action]; {
	case action == "see":
		s.seen = read
	case action == "forget":
		err = s.first.(keeper).Forget(context.Background(), read)
	case ok:
		err = s.first.(keeper).Resolve(context.Background(), read, f)
	default:
		s.Fatalf("there is no step %q", step)
	}
	if !errors.Is(err, want) {
		s.Errorf("after %q: %s: %v, want %v", s.done, action, err, want)
	}
}

// status reads an order.
func (s *store) status(id string) gateway.OrderStatus {
	s.Helper()
	o, err := s.first.(keeper).Order(context.Background(), merchant, id)
	s.check(err)
	return o
}
