package guardtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
)

// A rule is a property that every guard must have.
type rule struct {
	name, steps string // see do
	check       func(*store)
}

var rules = []rule{
	{name: "a lease is granted for a new order, for a day at most", check: func(s *store) {
		lease := s.begin(s.first, orderOf(id))
		s.holder(s.first, orderOf(id), lease)
		if left := time.Until(lease.Expires); lease.Known != nil || !lease.Expires.IsZero() && (left <= 0 || left > 25*time.Hour) {
			s.Errorf("%+v", lease)
		}
	}},
	{name: "an order in flight is granted to nobody else", steps: "begin a, is in flight"},
	{
		name:  "after a success the order is created, with its invoice byte for byte, and is granted to nobody",
		steps: "begin a, success a, is created a",
	},
	{name: "a success whose invoice is not known makes the order created", steps: "begin a, bare a, is created \"\""},
	{name: "after a rejection, or if nothing was sent, the order is free", steps: "begin a, rejected a, is free, begin b, unsent b, is free"},
	{name: "after an unknown outcome the order is unknown, with the evidence", steps: "begin a, unknown a, is unknown a"},
	{name: "an order of unknown outcome is granted to Resubmit only, with its record", check: func(s *store) {
		s.do("begin a, unknown a, is unknown a")
		lease := s.begin(s.first, resubmitted(orderOf(id)))
		if s.holder(s.first, orderOf(id), lease); lease.Known == nil || describe(orderOf(id), gateway.OrderUnknown, *lease.Known) != "unknown a" {
			s.Errorf("known is %+v", lease.Known)
		}
	}},
	{
		name:  "a resubmission that is rejected, or not sent, leaves the order unknown",
		steps: "begin a, unknown a, resubmit b, rejected b, is unknown a, resubmit c, unsent c, is unknown a",
	},
	{name: "the unknown outcome of a resubmission replaces the earlier one", steps: "begin a, unknown a, resubmit b, unknown b, is unknown b"},
	{name: "a resubmission that succeeds makes the order created", steps: "begin a, unknown a, resubmit b, success b, is created b"},
	{
		name:  "a success is never taken back by what comes late",
		steps: "begin a, success a, unknown a, is created a, rejected a, is created a, unsent a, is created a",
	},
	{name: "a further invoice is kept beside the first", steps: "begin a, success a, success late, is created a + late"},
	{
		name: "what an attempt has ended with changes nothing when it is recorded again, beside later attempts",
		steps: "begin a, rejected a, begin b, rejected a, is in flight, unknown b, rejected a, is unknown b, resubmit c, unknown b, is in flight, " +
			"success c, unknown b, success c, rejected a, is created c",
	},
	{name: "a success is recorded although the guard has no such order", steps: "success late, is created late"},
	{name: "an unknown outcome is recorded although the guard has no such order", steps: "unknown late, is unknown late"},
	{name: "a rejection of an order that the guard does not have leaves it free", steps: "rejected late, is free"},
	{name: "no two attempts have the same name", steps: "begin a, rejected a, begin b, unsent b, begin c, unknown c, resubmit d"},
	{
		name:  "End is about the attempt that it names, also in one process",
		steps: "begin a, expire, resubmit b, rejected a, is in flight, unknown b, is unknown b",
	},
	{
		name: "a restart changes nothing",
		steps: "begin a, restart, is in flight, rejected a, restart, is free, begin b, unknown b, restart, is unknown b, " +
			"resubmit c, success c, restart, is created c",
	},
	{name: "an order whose process died is unknown when its lease has expired", steps: "begin a, expire, restart, is unknown, resubmit b"},
	{name: "a success that comes after the lease is recorded", steps: "begin a, expire, restart, is unknown, success a, is created a"},
	{
		name:  "what comes after the lease frees no order that another call has",
		steps: "begin a, expire, restart, resubmit b, rejected a, is in flight, success b, is created b",
	},
	{
		name:  "two successes are both kept, although one comes after its lease",
		steps: "begin a, expire, restart, resubmit b, success b, success a, is created b + a",
	},
	{name: "an invoice of 1 MiB is kept byte for byte", check: func(s *store) {
		large := `{"qr":"` + strings.Repeat("x", 1<<20-len(`{"qr":""}`)) + `"}`
		s.end(s.acquire(s.first, orderOf(id)), success, large)
		if _, known := s.look(s.first, orderOf(id)); string(known.Invoice) != large {
			s.Errorf("%d bytes are kept of %d", len(known.Invoice), len(large))
		}
	}},
	{name: "the orders of two merchants are two, however their names are written", check: func(s *store) {
		s.distinct([][2]string{
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
		})
	}},
	{name: "orders with different identifiers are different orders", check: func(s *store) {
		var all [][2]string
		for _, id := range []string{
			"a", "A", "a ", " a", "a\u00a0", "ä", "a\u0308", "Ä", "ß", "ss", "a%", "a_", "a'", `a"`, `a\`, "a\\b", "a/b", "a:b", "a\nb", "a;b",
			"$1", "?", "0", "00", "0.0", "1e2", "100", "İ", "i", "I", "ı", "\U0001F600", "\U0001F601", "a\u200b",
			strings.Repeat("x", 1024), strings.Repeat("x", 1023) + "y", strings.Repeat("x", 1023),
		} {
			all = append(all, [2]string{merchant, id})
		}
		s.distinct(all)
	}},
	{name: "a UUID is the same order in either case", check: func(s *store) {
		const uuid = "1B4E28BA-2FA1-11D2-883F-0016D3CCA427"
		s.end(s.acquire(s.first, orderOf(uuid)), success, invoiceOf("a"))
		if state, _ := s.look(s.first, orderOf(strings.ToLower(uuid))); state != gateway.OrderCreated {
			s.Errorf("in lower case the order is %s", state)
		}
	}},
	{name: "an order of another gateway is refused, and both are named", check: func(s *store) {
		other := orderOf(id)
		other.Gateway = "https://test.example"
		for _, steps := range []string{"begin a, unknown a, is unknown a", "resubmit b, success b, is created b"} {
			s.do(steps)
			_, err := s.first.Begin(context.Background(), other)
			text := fmt.Sprint(err)
			if !errors.Is(err, gateway.ErrOtherGateway) || !strings.Contains(text, other.Gateway) || !strings.Contains(text, orderOf(id).Gateway) {
				s.Errorf("%s, want an error that matches gateway.ErrOtherGateway and names both", text)
			}
		}
		s.do("is created b")
	}},
	{name: "a Begin that fails grants nothing", check: func(s *store) {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := s.first.Begin(ended, orderOf(id)); err != nil { // a guard need not look at the context
			s.do("is free")
		}
	}},
	{name: "of many calls at once one gets the lease", check: func(s *store) { s.race(func() gateway.OrderGuard { return s.first }) }},
	{name: "of many calls at once one gets the lease, whichever guard they ask", check: func(s *store) { s.race(s.another) }},
	{name: "a random walk is as the model has it", check: walk},
	{name: "processes that are killed double and forget no order", check: race},
}

// distinct requires that merchants and identifiers name as many orders.
func (s *store) distinct(names [][2]string) {
	s.Helper()
	var held []holder
	for _, name := range names {
		o := orderOf(name[1])
		o.Merchant = name[0]
		held = append(held, s.acquire(s.first, o))
	}
	for i, h := range held {
		s.end(h, success, invoiceOf(fmt.Sprint(i)))
	}
	for i, h := range held {
		h.order.Attempt = ""
		state, known := s.look(s.first, h.order)
		if got, want := describe(h.order, state, known), fmt.Sprint("created ", i); got != want || known.Request.OrderID != names[i][1] {
			s.Fatalf("%q is %s, want it %s", names[i], got, want)
		}
	}
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
		granted := make(chan bool, calls)
		var all sync.WaitGroup
		for _, g := range guards {
			all.Go(func() {
				if lease, err := g.Begin(context.Background(), o); err == nil && lease.State == gateway.OrderFree {
					granted <- true
				}
			})
		}
		if all.Wait(); len(granted) != 1 {
			s.Fatalf("%d of %d calls got the lease", len(granted), calls)
		}
	}
}
