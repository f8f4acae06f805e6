package guardtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
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
	page     = "<html>\x00\xff" // the body of a response that proves nothing
)

// sentAt is when the attempts of the rules were sent. Guards keep microseconds.
var sentAt = time.Date(2026, 11, 22, 3, 14, 15, 926535000, time.UTC)

// orderOf is the order that a call passes to a guard.
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

// outcomes are the outcomes in the steps. Bare is a success whose invoice is not known.
var outcomes = map[string]gateway.Outcome{
	"success": gateway.OutcomeSucceeded, "bare": gateway.OutcomeSucceeded, "unknown": gateway.OutcomeUnknown,
	"rejected": gateway.OutcomeRejected, "unsent": gateway.OutcomeNotSent,
}

// findings are the findings in the steps.
var findings = map[string]gateway.Finding{
	"exists":  {Exists: true, By: "anna", Note: "4711"},
	"shown":   {Exists: true, By: "bob", Note: "4712", Invoice: []byte(invoiceOf("shown"))},
	"other":   {Exists: true, By: "anna", Invoice: []byte(invoiceOf("other"))},
	"absent":  {By: "carl", Note: "4713", Margin: time.Microsecond},
	"early":   {By: "anna"},
	"unnamed": {Exists: true},
	"foreign": {Exists: true, By: "anna", Invoice: []byte(`{"orderId":"A-18"}`)},
}

// refusals are the errors in the steps.
var refusals = map[string]error{
	"not unknown": gateway.ErrNotUnknown, "too early": gateway.ErrTooEarly, "tried again": gateway.ErrTriedAgain,
	"not created": gateway.ErrNotCreated, "invalid": gateway.ErrInvalidArgument,
}

// A store is the empty store that a rule begins with, and the state of the steps over one of its orders.
type store struct {
	*testing.T
	guard Guard
	first gateway.OrderGuard // that New has returned

	id       string
	asked    gateway.OrderGuard
	attempts map[string]holder // by their names in the steps
	last     holder            // that was granted a lease
	granted  map[string]bool   // the names that the guards gave
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
	return &store{T: t, guard: g, first: first, id: "A-17", asked: first, attempts: map[string]holder{}, granted: map[string]bool{}}
}

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

// begin asks for a lease. If the guard grants it, begin checks that no other attempt has its name, that it ends within a
// day, and that the first lease has no record, and returns its holder.
func (s *store) begin(g gateway.OrderGuard, o gateway.Order) (gateway.Lease, holder) {
	s.Helper()
	lease, err := g.Begin(context.Background(), o)
	s.check(err)
	o.Attempt, o.Resubmit = lease.Attempt, false
	if lease.State != gateway.OrderFree {
		return lease, holder{}
	}
	isFirst, left := len(s.granted) == 0, time.Until(lease.Expires)
	if lease.Attempt == "" || s.granted[lease.Attempt] || isFirst && lease.Known != nil ||
		!lease.Expires.IsZero() && (left <= 0 || left > 25*time.Hour) {
		s.Fatalf("after %q the lease is %+v, want another name, for a day at most", s.done, lease)
	}
	s.granted[lease.Attempt], s.last = true, holder{g, o}
	return lease, s.last
}

// acquire asks for a lease, which must be granted. The lease of an unknown order has the order's record.
func (s *store) acquire(o gateway.Order) holder {
	s.Helper()
	state, before := gateway.OrderFree, "free"
	if o.Resubmit {
		state, before = s.look(s.asked, o)
	}
	lease, h := s.begin(s.asked, o)
	if lease.State != gateway.OrderFree || describe(o.Request.OrderID, state, lease.Known) != before {
		s.Fatalf("after %q the order is %s, and the lease %+v", s.done, before, lease)
	}
	return h
}

// end records an outcome twice, as if the first answer had been lost: the second time changes nothing. The name is in the
// invoice of a success, and in the evidence of an unknown outcome.
func (s *store) end(h holder, outcome, name string) (has gateway.OrderRecord) {
	s.Helper()
	var before gateway.OrderStatus
	for i := range 2 {
		var err error
		has, err = h.guard.End(context.Background(), h.order, recordOf(h.order, outcome, name))
		s.check(err)
		o := s.status(h.order)
		if o.ReadAt, o.GuardReadAt = (time.Time{}), (time.Time{}); i == 1 && !reflect.DeepEqual(o, before) {
			s.Errorf("after %q, and %s once more: %+v, want %+v", s.done, outcome, o, before)
		}
		before = o
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

// look returns the state of an order, and the order in words. A free order stays free, and an unknown one unknown. Resubmit
// asks for no other order.
func (s *store) look(g gateway.OrderGuard, o gateway.Order) (gateway.OrderState, string) {
	s.Helper()
	o.Resubmit = false
	lease, h := s.begin(g, o)
	switch lease.State {
	case gateway.OrderFree:
		s.end(h, "unsent", "")
	case gateway.OrderCreated, gateway.OrderInFlight:
		o.Resubmit = true
		if again, _ := s.begin(g, o); again.State != lease.State {
			s.Errorf("after %q the order is %s, and for Resubmit %s", s.done, lease.State, again.State)
		}
	}
	return lease.State, describe(o.Request.OrderID, lease.State, lease.Known)
}

// describe returns an order in words: its state, and the names of its invoices or of its evidence.
func describe(id string, state gateway.OrderState, r *gateway.OrderRecord) string {
	text := state.String()
	switch {
	case state == gateway.OrderFree:
		return text
	case r == nil:
		return text + ", without a record"
	case !r.Request.Equal(orderOf(id).Request):
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
		return fmt.Sprintf("%s, with the record %+v", text, *r)
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
//   - expire: all leases end. restart: another guard is asked from now on. as X: the next steps are over the order X.
//   - elsewhere: a client of another gateway is refused.
//   - is created a + b, is unknown a: so the order is.
//   - see: a person reads the order. exists and the other findings: the person resolves it. forget: the person forgets
//     it. Before these come the words of an error that is expected.
//   - reads, pends: so a person reads it, or all that are pending.
func (s *store) do(steps string) {
	s.Helper()
	for step := range strings.SplitSeq(steps, ", ") {
		o := orderOf(s.id)
		verb, name, _ := strings.Cut(step, " ")
		got := name
		switch verb {
		case "begin", "resubmit":
			o.Resubmit = verb == "resubmit"
			s.attempts[name] = s.acquire(o)
		case "success", "bare", "unknown", "rejected", "unsent":
			s.ends(verb, name)
		case "expire":
			s.expire()
		case "restart":
			s.asked = s.another()
		case "as":
			s.id = name
		case "elsewhere":
			s.elsewhere(o)
		case "is":
			_, got = s.look(s.asked, o)
		case "reads":
			got = s.read()
		case "pends":
			got = s.pending()
		case "see": // a moment later
			s.seen = s.status(o)
			s.seen.ReadAt, s.seen.GuardReadAt = s.seen.ReadAt.Add(time.Second), s.seen.GuardReadAt.Add(time.Second)
		default:
			s.person(step)
		}
		if got != name {
			s.Errorf("after %q it %s %s, want %s", s.done, verb, got, name)
		}
		s.done = append(s.done, step)
	}
}

// elsewhere requires that another gateway is refused, and both are named.
func (s *store) elsewhere(o gateway.Order) {
	s.Helper()
	here := o.Gateway
	o.Gateway = "https://test.example"
	_, err := s.asked.Begin(context.Background(), o)
	if text := fmt.Sprint(err); !errors.Is(err, gateway.ErrOtherGateway) || !strings.Contains(text, here) || !strings.Contains(text, o.Gateway) {
		s.Errorf("after %q: %v, want an error that matches gateway.ErrOtherGateway and names both", s.done, err)
	}
}

// ends ends an attempt. End returns the order as Begin does then.
func (s *store) ends(outcome, name string) {
	s.Helper()
	h, ok := s.attempts[name]
	if !ok {
		h = holder{s.asked, orderOf(s.id)}
		h.order.Attempt = "of-another-guard"
	}
	has := s.end(h, outcome, name)
	state, want := s.look(h.guard, orderOf(s.id))
	got := describe(s.id, state, &has)
	if state == gateway.OrderFree {
		got, want = has.Outcome.String(), outcomes[outcome].String()
	}
	if got != want && state != gateway.OrderInFlight {
		s.Errorf("after %q and %s End returns an order that is %s, want it %s", s.done, outcome, got, want)
	}
}

// person takes a step of a person, about the order as it was seen.
func (s *store) person(step string) {
	s.Helper()
	var want, err error
	for text, refusal := range refusals {
		if rest, ok := strings.CutPrefix(step, text+" "); ok {
			step, want = rest, refusal
		}
	}
	if f, ok := findings[step]; ok {
		err = s.first.(keeper).Resolve(context.Background(), s.seen, f)
	} else if step == "forget" {
		err = s.first.(keeper).Forget(context.Background(), s.seen)
	} else {
		s.Fatalf("there is no step %q", step)
	}
	if !errors.Is(err, want) {
		s.Errorf("after %q: %s: %v, want %v", s.done, step, err, want)
	}
}

// status reads an order; a guard whose orders nobody can read returns nothing.
func (s *store) status(o gateway.Order) (status gateway.OrderStatus) {
	s.Helper()
	if k, ok := s.first.(keeper); ok {
		var err error
		status, err = k.Order(context.Background(), o.Merchant, o.Request.OrderID)
		s.check(err)
	}
	return status
}

// read returns the order in words, as a person reads it: its state, how often it was begun, the evidence of a free one, and of
// each finding whether an invoice exists, who found it, and the last attempt then.
func (s *store) read() string {
	s.Helper()
	o := s.status(orderOf(s.id))
	text, found := fmt.Sprint(describe(s.id, o.State, &o.Record), " ", o.Attempts), []time.Time{}
	if o.State == gateway.OrderFree && o.Attempts > 0 {
		text += " " + describe(s.id, gateway.OrderUnknown, &o.Record)
	}
	for _, earlier := range o.Earlier {
		text += " + " + describe(s.id, gateway.OrderUnknown, &earlier)
	}
	for _, f := range o.Findings {
		found = append(found, f.At)
		for name, h := range s.attempts {
			if h.order.Attempt == f.Attempt {
				text += fmt.Sprint("; exists ", f.Exists, " ", f.By, " ", f.Note, " ", name)
			}
		}
	}
	times := map[gateway.OrderState][]time.Time{
		gateway.OrderInFlight: {o.Begun},
		gateway.OrderUnknown:  {o.Since, o.Begun, o.Ended, o.SentUntil},
		gateway.OrderCreated:  {o.Begun, o.Ended, o.Created},
	}[o.State]
	isLast := o.Attempts == 0 || o.Attempt == s.last.order.Attempt && o.Gateway == s.last.order.Gateway
	if !isLast || o.ReadAt.IsZero() || !follow(append(found, o.GuardReadAt)) || !follow(append(times, o.GuardReadAt)) {
		s.Errorf("after %q a person reads %+v", s.done, o)
	}
	return text
}

// follow reports whether all times are known and in order.
func follow(times []time.Time) bool {
	return !slices.ContainsFunc(times, time.Time.IsZero) && slices.IsSortedFunc(times, time.Time.Compare)
}

// pending returns the pending orders in words, as a person reads them in pages of two.
func (s *store) pending() (text string) {
	s.Helper()
	for q := (gateway.PendingQuery{Most: 2}); len(text) < 100; {
		page, err := s.first.(keeper).Pending(context.Background(), q)
		if s.check(err); len(page) == 0 {
			break
		}
		for _, q.After = range page {
			text += q.After.OrderID + " " + describe(q.After.OrderID, q.After.State, &q.After.Record) + "; "
		}
		text += fmt.Sprint("after ", len(page), "; ")
	}
	return strings.TrimSuffix(text, "; ")
}
