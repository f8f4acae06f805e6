package guardtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
)

// A rule is a property that every guard must have.
type rule struct {
	name         string
	check        func(*store)
	needsRestart bool
	needsExpiry  bool
}

// sentAt is when the attempts of the rules were sent. Guards keep microseconds.
var sentAt = time.Date(2026, 11, 22, 3, 14, 15, 926535000, time.UTC)

const (
	unknown  = gateway.OutcomeUnknown
	success  = gateway.OutcomeSucceeded
	rejected = gateway.OutcomeRejected
	notSent  = gateway.OutcomeNotSent
)

// invoice is the text of one, which comes back byte for byte.
const invoice = "{ \"id\":\"i-1\",\n\"a\":1.50, \"u\":\"\\u00e9é\u2028\" }"

var rules = []rule{
	{name: "a lease is granted for a new order", check: func(s *store) {
		lease := s.begin(s.first, orderOf(id))
		s.granted(orderOf(id), lease)
		if lease.Known != nil || !lease.Expires.IsZero() && time.Until(lease.Expires) <= 0 {
			s.Errorf("%+v", lease)
		}
	}},
	{name: "an order in flight is granted to nobody else", check: func(s *store) {
		s.acquire(s.first, orderOf(id))
		for _, o := range []gateway.Order{orderOf(id), resubmitted(orderOf(id))} {
			lease := s.begin(s.first, o)
			if lease.State != gateway.OrderInFlight {
				s.Fatalf("the order is %s", lease.State)
			}
			if lease.Known == nil || !lease.Known.Request.Equal(o.Request) {
				s.Errorf("known is %+v, want the request that is in flight", lease.Known)
			}
		}
	}},
	{name: "after a success the order is created, with its invoice byte for byte", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.wantInvoice(s.end(s.first, held, success, invoice), invoice, 0)
		known := s.want(s.first, orderOf(id), gateway.OrderCreated)
		s.wantInvoice(known, invoice, 0)
		if !known.Request.Equal(orderOf(id).Request) {
			s.Errorf("the request is %+v", known.Request)
		}
	}},
	{name: "a created order is granted to nobody", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, success, invoice)
		if lease := s.begin(s.first, resubmitted(orderOf(id))); lease.State != gateway.OrderCreated {
			s.Errorf("the order is %s", lease.State)
		}
	}},
	{name: "a success whose invoice is not known makes the order created", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, success, "")
		s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), "", 0)
	}},
	{name: "after a rejection, or if nothing was sent, the order is free", check: func(s *store) {
		for _, outcome := range []gateway.Outcome{rejected, notSent} {
			held := s.acquire(s.first, orderOf(id))
			if has := s.end(s.first, held, outcome, ""); has.Outcome != outcome {
				s.Errorf("End returns %v, want %v", has.Outcome, outcome)
			}
		}
		s.want(s.first, orderOf(id), gateway.OrderFree)
	}},
	{name: "after an unknown outcome the order is unknown, with the evidence", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, unknown, "a page")
		known := s.want(s.first, orderOf(id), gateway.OrderUnknown)
		if known.Outcome != unknown || known.StatusCode != 502 || string(known.Body) != "<html>\x00\xff" || known.Cause != "a page" ||
			!known.SentAt.Equal(sentAt) || !known.Request.Equal(orderOf(id).Request) {
			s.Errorf("known is %+v", known)
		}
	}},
	{name: "an order of unknown outcome is granted to Resubmit only, with its record", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, unknown, "a page")
		s.want(s.first, orderOf(id), gateway.OrderUnknown)
		lease := s.begin(s.first, resubmitted(orderOf(id)))
		s.granted(orderOf(id), lease)
		if lease.Known == nil || lease.Known.Cause != "a page" {
			s.Errorf("known is %+v", lease.Known)
		}
	}},
	{name: "a resubmission that is rejected, or not sent, leaves the order unknown", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, unknown, "the first")
		for _, outcome := range []gateway.Outcome{rejected, notSent} {
			again := s.acquire(s.first, resubmitted(orderOf(id)))
			if has := s.end(s.first, again, outcome, ""); has.Outcome != unknown || has.Cause != "the first" {
				s.Errorf("End returns %v, %q", has.Outcome, has.Cause)
			}
			s.want(s.first, orderOf(id), gateway.OrderUnknown)
		}
	}},
	{name: "the unknown outcome of a resubmission replaces the earlier one", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, unknown, "the first")
		again := s.acquire(s.first, resubmitted(orderOf(id)))
		s.end(s.first, again, unknown, "the second")
		if known := s.want(s.first, orderOf(id), gateway.OrderUnknown); known.Cause != "the second" {
			s.Errorf("known is %q", known.Cause)
		}
	}},
	{name: "a resubmission that succeeds makes the order created", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, unknown, "")
		again := s.acquire(s.first, resubmitted(orderOf(id)))
		s.wantInvoice(s.end(s.first, again, success, invoice), invoice, 0)
		s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), invoice, 0)
	}},
	{name: "a success is never taken back by what comes late", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, success, invoice)
		for _, outcome := range []gateway.Outcome{unknown, rejected, notSent} {
			has := s.end(s.first, held, outcome, "late")
			if outcome == unknown {
				s.wantInvoice(has, invoice, 0)
			}
			s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), invoice, 0)
		}
	}},
	{name: "a further invoice is kept beside the first", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, success, invoice)
		further := orderOf(id)
		further.Attempt = "of-another-guard"
		s.wantInvoice(s.end(s.first, further, success, `{"id":"i-2"}`), invoice, 1)
		known := s.want(s.first, orderOf(id), gateway.OrderCreated)
		s.wantInvoice(known, invoice, 1)
		if got := fmt.Sprintf("%s", known.Others); got != `[{"id":"i-2"}]` {
			s.Errorf("the others are %s", got)
		}
	}},
	{name: "a success is recorded although the guard has no such order", check: func(s *store) {
		s.wantInvoice(s.end(s.first, orderOf(id), success, invoice), invoice, 0)
		s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), invoice, 0)
	}},
	{name: "an unknown outcome is recorded although the guard has no such order", check: func(s *store) {
		s.end(s.first, orderOf(id), unknown, "late")
		if known := s.want(s.first, orderOf(id), gateway.OrderUnknown); known.Cause != "late" {
			s.Errorf("known is %+v", known)
		}
	}},
	{name: "a rejection of an order that the guard does not have leaves it free", check: func(s *store) {
		s.end(s.first, orderOf(id), rejected, "")
		s.want(s.first, orderOf(id), gateway.OrderFree)
	}},
	{name: "a request is kept with every digit", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, unknown, "")
		known := s.want(s.first, orderOf(id), gateway.OrderUnknown)
		if got, want := known.Request.Amount, orderOf(id).Request.Amount; !got.Equal(want) || known.Request.NetworkName != "Bitcoin" || known.Request.BaseCurrency != "usd" {
			s.Errorf("%+v", known.Request)
		}
	}},
	{name: "End is about the attempt that it names, also in one process", needsRestart: true, needsExpiry: true, check: func(s *store) {
		late := s.acquire(s.first, orderOf(id))
		s.expire()
		held := s.acquire(s.first, resubmitted(orderOf(id)))
		s.end(s.first, late, rejected, "")
		s.want(s.another(), orderOf(id), gateway.OrderInFlight)
		s.end(s.first, held, unknown, "the second")
		s.want(s.first, orderOf(id), gateway.OrderUnknown)
	}},
	{name: "no two attempts have the same name", check: func(s *store) {
		names := map[string]bool{}
		for range 20 {
			held := s.acquire(s.first, orderOf(id))
			s.end(s.first, held, rejected, "")
			names[held.Attempt] = true
		}
		if len(names) != 20 {
			s.Errorf("%d names of 20 attempts", len(names))
		}
	}},
	{name: "an invoice of 1 MiB is kept byte for byte", check: func(s *store) {
		large := `{"qr":"` + strings.Repeat("x", 1<<20-len(`{"qr":""}`)) + `"}`
		s.end(s.first, s.acquire(s.first, orderOf(id)), success, large)
		if known := s.want(s.first, orderOf(id), gateway.OrderCreated); string(known.Invoice) != large {
			s.Errorf("%d bytes are kept of %d", len(known.Invoice), len(large))
		}
	}},
	{name: "the orders of two merchants are two, however their names are written", check: func(s *store) {
		pairs := [][2]string{
			{"a", "a"},
			{"a:b", "c"},
			{"a", "b:c"},
			{"a/b", "c"},
			{"a", "b/c"},
			{"a", "bc"},
			{"ab", "c"},
			{"a|b", "c"},
			{"a", "b|c"},
			{"a\x1fb", "c"},
			{"a", "b\x1fc"},
			{"north", "1"},
			{"North", "1"},
			{"NORTH", "1"},
			{"north ", "1"},
			{" north", "1"},
			{"n\u00f6rth", "1"},
			{"no\u0308rth", "1"},
			{strings.Repeat("m", 256), "1"},
			{strings.Repeat("m", 255) + "n", "1"},
			{strings.Repeat("m", 255), "1"},
		}
		orderOfPair := func(pair [2]string) gateway.Order {
			o := orderOf(pair[1])
			o.Merchant = pair[0]
			return o
		}
		var held []gateway.Order
		for _, pair := range pairs {
			held = append(held, s.acquire(s.first, orderOfPair(pair)))
		}
		for i, o := range held {
			s.end(s.first, o, success, fmt.Sprint(i))
		}
		for i, pair := range pairs {
			if known := s.want(s.first, orderOfPair(pair), gateway.OrderCreated); string(known.Invoice) != fmt.Sprint(i) {
				s.Errorf("%q has the invoice %s, want %d", pair, known.Invoice, i)
			}
		}
	}},
	{name: "orders with different identifiers are different orders", check: func(s *store) {
		ids := []string{
			"a", "A", "a ", " a", "a\u00a0", "ä", "a\u0308", "Ä", "ß", "ss", "a%", "a_", "a'", `a"`, `a\`, "a\\b", "a/b", "a:b", "a\nb", "a;b", "$1", "?", "0", "00", "0.0", "1e2", "100",
			"İ", "i", "I", "ı", "\U0001F600", "\U0001F601", "a\u200b", strings.Repeat("x", 1024), strings.Repeat("x", 1023) + "y", strings.Repeat("x", 1023),
		}
		var held []gateway.Order
		for _, id := range ids {
			held = append(held, s.acquire(s.first, orderOf(id)))
		}
		for i := range ids {
			if s.end(s.first, held[i], success, fmt.Sprint(i)); s.Failed() {
				return
			}
		}
		for i, id := range ids {
			if known := s.want(s.first, orderOf(id), gateway.OrderCreated); string(known.Invoice) != fmt.Sprint(i) || known.Request.OrderID != id {
				s.Errorf("%q has the invoice %s, want %d, and the request of %q", id, known.Invoice, i, known.Request.OrderID)
			}
		}
	}},
	{name: "a UUID is the same order in either case", check: func(s *store) {
		const uuid = "1B4E28BA-2FA1-11D2-883F-0016D3CCA427"
		held := s.acquire(s.first, orderOf(uuid))
		s.end(s.first, held, success, invoice)
		s.want(s.first, orderOf(strings.ToLower(uuid)), gateway.OrderCreated)
	}},
	{name: "an order of another gateway is refused, and both are named", check: func(s *store) {
		other := orderOf(id)
		other.Gateway = "https://test.example"
		for _, outcome := range []gateway.Outcome{success, unknown} {
			o := orderOf(fmt.Sprint(outcome))
			held := s.acquire(s.first, o)
			s.end(s.first, held, outcome, invoice)
			other.Request.OrderID = o.Request.OrderID
			_, err := s.first.Begin(context.Background(), other)
			if s.wantOther(err); err != nil && (!strings.Contains(err.Error(), o.Gateway) || !strings.Contains(err.Error(), other.Gateway)) {
				s.Error(err)
			}
			s.want(s.first, o, map[gateway.Outcome]gateway.OrderState{success: gateway.OrderCreated, unknown: gateway.OrderUnknown}[outcome])
		}
	}},
	{name: "a Begin that fails grants nothing", check: func(s *store) {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		lease, err := s.first.Begin(ended, orderOf(id))
		if err != nil {
			s.want(s.first, orderOf(id), gateway.OrderFree)
			return
		}
		if lease.State != gateway.OrderFree { // a guard need not look at the context
			s.Errorf("the order is %s", lease.State)
		}
	}},
	{name: "an outcome is recorded although the call has ended", check: func(s *store) {
		ended, cancel := context.WithTimeout(context.Background(), 10*time.Second) // as the client does
		defer cancel()
		held := s.acquire(s.first, orderOf(id))
		_, err := s.first.End(ended, held, gateway.OrderRecord{Outcome: success, Request: orderOf(id).Request, Invoice: []byte(invoice)})
		s.check(err)
		s.want(s.first, orderOf(id), gateway.OrderCreated)
	}},
	{name: "of many calls at once one gets the lease", check: func(s *store) { s.race(func() gateway.OrderGuard { return s.first }) }},
	{name: "of many calls at once one gets the lease, whichever guard they ask", needsRestart: true, check: func(s *store) { s.race(s.another) }},
	{name: "a restart changes nothing", needsRestart: true, check: func(s *store) {
		s.acquire(s.first, orderOf("in flight"))
		for text, outcome := range map[string]gateway.Outcome{"created": success, "unknown": unknown, "free": rejected} {
			held := s.acquire(s.first, orderOf(text))
			s.end(s.first, held, outcome, invoice)
		}
		g := s.another()
		s.want(g, orderOf("in flight"), gateway.OrderInFlight)
		s.wantInvoice(s.want(g, orderOf("created"), gateway.OrderCreated), invoice, 0)
		if known := s.want(g, orderOf("unknown"), gateway.OrderUnknown); known.Cause != invoice || !known.SentAt.Equal(sentAt) {
			s.Errorf("known is %+v", known)
		}
		s.want(g, orderOf("free"), gateway.OrderFree)
	}},
	{name: "an order whose process died is unknown when its lease has expired", needsRestart: true, needsExpiry: true, check: func(s *store) {
		s.acquire(s.first, orderOf(id))
		s.expire()
		known := s.want(s.another(), orderOf(id), gateway.OrderUnknown)
		if !known.Request.Equal(orderOf(id).Request) {
			s.Errorf("known is %+v", known)
		}
		s.acquire(s.another(), resubmitted(orderOf(id)))
	}},
	{name: "a success that comes after the lease is recorded", needsRestart: true, needsExpiry: true, check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.expire()
		s.want(s.another(), orderOf(id), gateway.OrderUnknown)
		s.end(s.first, held, success, invoice)
		s.wantInvoice(s.want(s.another(), orderOf(id), gateway.OrderCreated), invoice, 0)
	}},
	{name: "what comes after the lease frees no order that another call has", needsRestart: true, needsExpiry: true, check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.expire()
		second := s.another()
		again := s.acquire(second, resubmitted(orderOf(id)))
		s.end(s.first, held, rejected, "")
		s.want(s.another(), orderOf(id), gateway.OrderInFlight)
		s.end(second, again, success, invoice)
		s.wantInvoice(s.want(s.another(), orderOf(id), gateway.OrderCreated), invoice, 0)
	}},
	{name: "two successes are both kept, although one comes after its lease", needsRestart: true, needsExpiry: true, check: func(s *store) {
		late := s.acquire(s.first, orderOf(id))
		s.expire()
		second := s.another()
		held := s.acquire(second, resubmitted(orderOf(id)))
		s.end(second, held, success, invoice)
		s.end(s.first, late, success, `{"id":"late"}`)
		known := s.want(s.another(), orderOf(id), gateway.OrderCreated)
		if all := fmt.Sprintf("%s%s", known.Invoice, known.Others); !strings.Contains(all, `"i-1"`) || !strings.Contains(all, `"late"`) {
			s.Errorf("known is %s", all)
		}
	}},
	{name: "a lease is not granted for more than a day", check: func(s *store) {
		lease := s.begin(s.first, orderOf(id))
		if s.granted(orderOf(id), lease); !lease.Expires.IsZero() && time.Until(lease.Expires) > 25*time.Hour {
			s.Errorf("the lease expires at %v", lease.Expires)
		}
	}},
	{name: "a random walk is as the model has it", check: walk},
	{name: "processes that are killed double and forget no order", needsRestart: true, needsExpiry: true, check: race},
}

// race has many calls ask for new orders at once.
func (s *store) race(guard func() gateway.OrderGuard) {
	const calls = 16
	guards := make([]gateway.OrderGuard, calls)
	for i := range guards {
		guards[i] = guard()
	}
	for round := range 10 {
		o := orderOf(fmt.Sprint("A-", round))
		granted := make([]bool, calls)
		var all sync.WaitGroup
		for i, g := range guards {
			all.Go(func() {
				lease, err := g.Begin(context.Background(), o)
				granted[i] = err == nil && lease.State == gateway.OrderFree
			})
		}
		all.Wait()
		count := 0
		for _, one := range granted {
			if one {
				count++
			}
		}
		if count != 1 {
			s.Fatalf("%d of %d calls got the lease", count, calls)
		}
	}
}
