package guardtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
)

// stepRules are properties that every guard must have: a name, and steps, see do.
const stepRules = `
an order in flight is granted to nobody else
	begin a, is in flight
after a success the order is created, with its invoice byte for byte, and is granted to nobody
	begin a, success a, is created a
a success whose invoice is not known makes the order created
	begin a, bare a, is created ""
after a rejection, or if nothing was sent, the order is free
	begin a, rejected a, is free, begin b, unsent b, is free
after an unknown outcome the order is unknown, with the evidence
	begin a, unknown a, is unknown a
a resubmission that is rejected, or not sent, leaves the order unknown
	begin a, unknown a, resubmit b, rejected b, is unknown a, resubmit c, unsent c, is unknown a
the unknown outcome of a resubmission replaces the earlier one
	begin a, unknown a, resubmit b, unknown b, is unknown b
a success is never taken back by what comes late
	begin a, success a, unknown a, is created a, rejected a, is created a, unsent a, is created a
a further invoice is kept beside the first, once
	begin a, success a, success late, is created a + late, success a, is created a + late
what is recorded again changes nothing, beside later attempts
	begin a, rejected a, begin b, rejected a, is in flight, unknown b, rejected a, is unknown b, resubmit c, unknown b, is in flight, success c, unknown b, success c, rejected a, is created c
a success is recorded although the guard has no such order
	success late, is created late
an unknown outcome is recorded although the guard has no such order
	unknown late, is unknown late
a rejection of an order that the guard does not have leaves it free
	rejected late, is free
End is about the attempt that it names, also in one process
	begin a, expire, resubmit b, rejected a, is in flight, unknown b, is unknown b
a restart changes nothing
	begin a, restart, is in flight, rejected a, restart, is free, begin b, unknown b, restart, is unknown b, resubmit c, success c, restart, is created c
an order whose process died is unknown when its lease has expired
	begin a, expire, restart, is unknown, resubmit b
a success that comes after the lease is recorded
	begin a, expire, restart, is unknown, success a, is created a
what comes after the lease frees no order that another call has
	begin a, expire, restart, resubmit b, rejected a, is in flight, success b, is created b
an unknown outcome that comes after the lease is recorded, with the evidence
	begin a, expire, resubmit b, unknown a, is in flight, rejected b, is unknown a
two successes are both kept, although one comes after its lease
	begin a, expire, restart, resubmit b, success b, success a, is created b + a
`

// A rule is a property that a guard must have.
type rule struct {
	name  string
	check func(*store)
}

// rulesOf returns the rules of a text.
func rulesOf(text string) (all []rule) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for pair := range slices.Chunk(lines, 2) {
		all = append(all, rule{pair[0], func(s *store) { s.do(strings.TrimSpace(pair[1])) }})
	}
	return all
}

// rules are further properties that every guard must have.
var rules = []rule{
	{"a lease is granted for a new order, for a day at most", func(s *store) {
		lease, _ := s.begin(s.first, orderOf(id))
		if left := time.Until(lease.Expires); lease.State != gateway.OrderFree || lease.Known != nil || !lease.Expires.IsZero() && (left <= 0 || left > 25*time.Hour) {
			s.Errorf("%+v", lease)
		}
	}},
	{"an order of unknown outcome is granted to Resubmit only, with its record", func(s *store) {
		s.do("begin a, unknown a, is unknown a")
		again := orderOf(id)
		again.Resubmit = true
		if lease, _ := s.begin(s.first, again); lease.State != gateway.OrderFree || lease.Known == nil || describe(gateway.OrderUnknown, *lease.Known) != "unknown a" {
			s.Errorf("%s, known is %+v", lease.State, lease.Known)
		}
	}},
	{"an invoice of 1 MiB is kept byte for byte", func(s *store) {
		large := strings.Repeat("x", 1<<20-len(invoiceOf("")))
		s.end(s.acquire(orderOf(id)), "success", large)
		s.do("is created " + large)
	}},
	{"the orders of two merchants are two, however their names are written", func(s *store) {
		long := strings.Repeat("m", 255)
		s.distinct([]string{
			"a~a", "a:b~c", "a~b:c", "a/b~c", "a~b/c", "a~bc", "ab~c", "a|b~c", "a~b|c", "a\x1fb~c", "a~b\x1fc",
			"north~1", "North~1", "NORTH~1", "north ~1", " north~1", "n\u00f6rth~1", "no\u0308rth~1", long + "m~1", long + "n~1", long + "~1",
		})
	}},
	{"orders with different identifiers are different orders", func(s *store) {
		var all []string
		for _, id := range []string{
			"a", "A", "a ", " a", "a\u00a0", "ä", "a\u0308", "Ä", "ß", "ss", "a%", "a_", "a'", `a"`, `a\`, "a\\b", "a/b", "a:b", "a\nb", "a;b",
			"$1", "?", "0", "00", "0.0", "1e2", "100", "İ", "i", "I", "ı", "\U0001F600", "\U0001F601", "a\u200b",
			strings.Repeat("x", 1024), strings.Repeat("x", 1023) + "y", strings.Repeat("x", 1023),
		} {
			all = append(all, merchant+"~"+id)
		}
		s.distinct(all)
	}},
	{"a UUID is the same order in either case", func(s *store) {
		const uuid = "1B4E28BA-2FA1-11D2-883F-0016D3CCA427"
		s.end(s.acquire(orderOf(uuid)), "success", "a")
		if state, _ := s.look(s.first, orderOf(strings.ToLower(uuid))); state != gateway.OrderCreated {
			s.Errorf("in lower case the order is %s", state)
		}
	}},
	{"an order of another gateway is refused, and both are named", func(s *store) {
		other := orderOf(id)
		other.Gateway = "https://test.example"
		for _, steps := range []string{"begin a, unknown a", "resubmit b, success b"} {
			s.do(steps)
			_, err := s.first.Begin(context.Background(), other)
			text := fmt.Sprint(err)
			if !errors.Is(err, gateway.ErrOtherGateway) || !strings.Contains(text, other.Gateway) || !strings.Contains(text, orderOf(id).Gateway) {
				s.Errorf("%s, want an error that matches gateway.ErrOtherGateway and names both", text)
			}
		}
		s.do("is created b")
	}},
	{"a Begin that fails grants nothing", func(s *store) {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := s.first.Begin(ended, orderOf(id)); err != nil { // a guard need not look at the context
			s.do("is free")
		}
	}},
	{"of many calls at once one gets the lease", func(s *store) { s.race(func() gateway.OrderGuard { return s.first }) }},
	{"of many calls at once one gets the lease, whichever guard they ask", func(s *store) { s.race(s.another) }},
	{"a random walk is as the model has it", walk},
	{"processes that are killed double and forget no order", race},
}

// distinct requires that the names, each a merchant, ~ and an orderId, are of as many orders.
func (s *store) distinct(names []string) {
	s.Helper()
	orders := make([]gateway.Order, len(names))
	for i, name := range names {
		merchant, id, _ := strings.Cut(name, "~")
		orders[i] = orderOf(id)
		orders[i].Merchant = merchant
		s.end(s.acquire(orders[i]), "success", fmt.Sprint(i))
	}
	for i, o := range orders {
		state, known := s.look(s.first, o)
		if got, want := describe(state, known), fmt.Sprint("created ", i); got != want || known.Request.OrderID != o.Request.OrderID {
			s.Fatalf("%q is %s, want it %s", names[i], got, want)
		}
	}
}

// race has many calls ask for new orders at once.
func (s *store) race(guard func() gateway.OrderGuard) {
	guards := make([]gateway.OrderGuard, 16)
	for i := range guards {
		guards[i] = guard()
	}
	for round := range 10 {
		granted := atOnce(len(guards), func(i int) bool {
			lease, err := guards[i].Begin(context.Background(), orderOf(fmt.Sprint("A-", round)))
			return err == nil && lease.State == gateway.OrderFree
		})
		if granted != 1 {
			s.Fatalf("%d of %d calls got the lease", granted, len(guards))
		}
	}
}
