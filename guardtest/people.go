package guardtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
)

// A keeper is a guard whose orders people look up and end, as those of the guards of this repository.
type keeper interface {
	gateway.OrderGuard
	Order(ctx context.Context, merchant, orderID string) (gateway.OrderStatus, error)
	Pending(ctx context.Context, q gateway.PendingQuery) ([]gateway.OrderStatus, error)
	Resolve(ctx context.Context, o gateway.OrderStatus, f gateway.Finding) error
	Forget(ctx context.Context, o gateway.OrderStatus) error
}

var (
	exists = gateway.Finding{Exists: true, By: "anna", Note: "4711"}
	absent = gateway.Finding{By: "anna", Margin: 1}
)

// people are the rules of guards that have the methods of a keeper.
var people = []rule{
	{name: "Order returns an order in each state", check: func(s *store) {
		if o := s.status(id); o.State != gateway.OrderFree || o.Attempt != "" || o.Attempts != 0 {
			s.Errorf("%+v", o)
		}
		held := s.acquire(s.first, orderOf(id))
		if o := s.status(id); o.State != gateway.OrderInFlight || o.Attempt != held.Attempt || o.Attempts != 1 || !o.Record.Request.Equal(held.Request) || o.Gateway != held.Gateway {
			s.Errorf("%+v", o)
		}
		s.end(s.first, held, unknown, "a page")
		if o := s.status(id); o.State != gateway.OrderUnknown || o.Since.IsZero() || o.SentUntil.IsZero() || o.GuardReadAt.IsZero() || o.ReadAt.IsZero() || o.Record.Cause != "a page" {
			s.Errorf("%+v", o)
		}
	}},
	{name: "Pending returns the unknown orders, the longest unknown first, in pages", check: func(s *store) {
		for _, id := range []string{"3", "1", "2"} {
			s.unknown(id)
		}
		s.end(s.first, s.acquire(s.first, orderOf("created")), success, invoice)
		s.acquire(s.first, orderOf("in flight"))
		var found []string
		var since time.Time
		for q := (gateway.PendingQuery{Most: 2}); ; {
			page, err := s.first.(keeper).Pending(context.Background(), q)
			s.check(err)
			if len(page) == 0 {
				break
			}
			for _, o := range page {
				if o.Since.Before(since) {
					s.Errorf("%s is unknown since %v, and comes after %v", o.OrderID, o.Since, since)
				}
				found, since = append(found, o.OrderID), o.Since
			}
			q.After = page[len(page)-1]
		}
		if slices.Sort(found); !slices.Equal(found, []string{"1", "2", "3"}) {
			s.Errorf("%q are pending", found)
		}
	}},
	{name: "a finding that an invoice exists makes the order created, and its invoice can be added later", check: func(s *store) {
		s.resolve(s.unknown(id), exists, nil)
		s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), "", 0)
		added := exists
		added.Invoice = []byte(invoice)
		s.resolve(s.status(id), added, nil)
		s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), invoice, 0)
		if o := s.status(id); o.Finding.By != "anna" || o.Finding.Note != "4711" || !o.Finding.Exists || o.Resolved.IsZero() {
			s.Errorf("%+v", o)
		}
		s.resolve(s.status(id), added, gateway.ErrNotUnknown)
	}},
	{name: "a finding that no invoice exists frees the order, after the margin only", check: func(s *store) {
		early := absent
		early.Margin = 0
		s.resolve(s.unknown(id), early, gateway.ErrTooEarly)
		s.want(s.first, orderOf(id), gateway.OrderUnknown)
		read := s.status(id)
		read.GuardReadAt = read.Begun.Add(-1000)
		s.resolve(read, absent, gateway.ErrTooEarly)
		read = s.status(id)
		read.ReadAt = sentAt.Add(-1000)
		s.resolve(read, absent, gateway.ErrTooEarly)
		s.resolve(s.status(id), absent, nil)
		s.acquire(s.first, orderOf(id))
	}},
	{name: "a finding about an order that was sent again is refused", check: func(s *store) {
		read := s.unknown(id)
		s.end(s.first, s.acquire(s.first, resubmitted(orderOf(id))), unknown, "the second")
		s.resolve(read, exists, gateway.ErrTriedAgain)
		s.resolve(read, absent, gateway.ErrTriedAgain)
		s.want(s.first, orderOf(id), gateway.OrderUnknown)
	}},
	{name: "of two findings about one order the first counts, and the second changes nothing", check: func(s *store) {
		for i, first := range []gateway.Finding{exists, absent} {
			for j, second := range []gateway.Finding{exists, absent} {
				for _, when := range []string{"read before", "read after", "at once", "sent again", "unknown again"} {
					s.twoFindings(fmt.Sprint(when, i, j), first, second, when)
				}
			}
		}
	}},
	{name: "there is nothing to resolve about an order that is free, in flight or created", check: func(s *store) {
		s.resolve(s.status(id), exists, gateway.ErrNotUnknown)
		held := s.acquire(s.first, orderOf(id))
		s.resolve(s.status(id), exists, gateway.ErrNotUnknown)
		s.end(s.first, held, success, invoice)
		s.resolve(s.status(id), absent, gateway.ErrNotUnknown)
		s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), invoice, 0)
	}},
	{name: "a finding without a name, or with the invoice of another order, is refused", check: func(s *store) {
		read := s.unknown(id)
		s.resolve(read, gateway.Finding{Exists: true}, gateway.ErrInvalidArgument)
		s.resolve(read, gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`{"orderId":"A-18"}`)}, gateway.ErrInvalidArgument)
		s.want(s.first, orderOf(id), gateway.OrderUnknown)
	}},
	{name: "a success that comes after a finding is kept", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, unknown, "a page")
		found := exists
		found.Invoice = []byte(`{"id":"copied by hand"}`)
		s.resolve(s.status(id), found, nil)
		s.wantInvoice(s.end(s.first, held, success, invoice), invoice, 0)
		s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), invoice, 0)
	}},
	{name: "a success that comes after the finding that none exists makes the order created", check: func(s *store) {
		held := s.acquire(s.first, orderOf(id))
		s.end(s.first, held, unknown, "a page")
		s.resolve(s.status(id), absent, nil)
		s.end(s.first, held, success, invoice)
		s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), invoice, 0)
	}},
	{name: "a created order is forgotten once, and can be sent again", check: func(s *store) {
		first := s.acquire(s.first, orderOf(id))
		s.end(s.first, first, success, invoice)
		read := s.status(id)
		s.forget(read, nil)
		s.forget(read, gateway.ErrNotCreated)
		second := s.acquire(s.first, orderOf(id))
		if second.Attempt == first.Attempt {
			s.Errorf("two attempts are named %q", first.Attempt)
		}
		s.forget(read, gateway.ErrNotCreated)
		s.end(s.first, second, success, `{"id":"i-2"}`)
		s.forget(read, gateway.ErrTriedAgain)
		s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), `{"id":"i-2"}`, 0)
	}},
	{name: "if calls and two people who forget an order come at once, one call gets the lease, and one person has forgotten it", check: func(s *store) {
		for round := range 10 {
			id := fmt.Sprint("A-", round)
			s.end(s.first, s.acquire(s.first, orderOf(id)), success, invoice)
			read := s.status(id)
			var all sync.WaitGroup
			var forgot [2]error
			var leases [4]gateway.Lease
			for i := range forgot {
				all.Go(func() { forgot[i] = s.first.(keeper).Forget(context.Background(), read) })
			}
			for i := range leases {
				all.Go(func() { leases[i] = s.begin(s.first, orderOf(id)) })
			}
			all.Wait()
			granted := 0
			for _, lease := range leases {
				if lease.State == gateway.OrderFree {
					granted++
				}
			}
			if (forgot[0] == nil) == (forgot[1] == nil) || granted > 1 || granted == 1 && s.status(id).State != gateway.OrderInFlight {
				s.Errorf("%d leases, Forget returns %v and %v", granted, forgot[0], forgot[1])
			}
		}
	}},
	{name: "a success that comes for a forgotten order is kept beside the success of the call that has it", check: func(s *store) {
		s.end(s.first, s.acquire(s.first, orderOf(id)), success, invoice)
		read := s.status(id)
		s.forget(read, nil)
		held, late := s.acquire(s.first, orderOf(id)), orderOf(id)
		late.Attempt = "of-another-guard"
		s.end(s.first, late, success, `{"id":"late"}`)
		s.forget(s.status(id), gateway.ErrNotCreated) // in flight
		s.end(s.first, held, success, invoice)
		s.forget(read, gateway.ErrTriedAgain)
		s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), `{"id":"late"}`, 1)
	}},
	{name: "an order that is free, in flight or unknown is not forgotten", check: func(s *store) {
		s.forget(s.status(id), gateway.ErrNotCreated)
		held := s.acquire(s.first, orderOf(id))
		s.forget(s.status(id), gateway.ErrNotCreated)
		s.end(s.first, held, unknown, "a page")
		s.forget(s.status(id), gateway.ErrNotCreated)
		s.want(s.first, orderOf(id), gateway.OrderUnknown)
	}},
	{name: "a created order with an attempt of unknown outcome is not forgotten", check: func(s *store) {
		s.unknown(id)
		s.end(s.first, s.acquire(s.first, resubmitted(orderOf(id))), success, invoice)
		s.forget(s.status(id), gateway.ErrNotCreated)
	}},
	{name: "an outcome that comes for a forgotten order is recorded", check: func(s *store) {
		s.end(s.first, s.acquire(s.first, orderOf(id)), success, invoice)
		s.forget(s.status(id), nil)
		late := orderOf(id)
		late.Attempt = "of-another-guard"
		s.end(s.first, late, success, `{"id":"late"}`)
		s.wantInvoice(s.want(s.first, orderOf(id), gateway.OrderCreated), `{"id":"late"}`, 0)
	}},
}

// twoFindings has two people look up an order, of whom the second one read it before, or after, the first has recorded a finding,
// or records one at the same time, or when the order was sent again since.
func (s *store) twoFindings(id string, first, second gateway.Finding, when string) {
	s.Helper()
	guard, ctx := s.first.(keeper), context.Background()
	read := s.unknown(id)
	errs := [2]error{}
	if when == "at once" {
		second.By = "bob"
		var people sync.WaitGroup
		people.Go(func() { errs[0] = guard.Resolve(ctx, read, first) })
		people.Go(func() { errs[1] = guard.Resolve(ctx, read, second) })
		if people.Wait(); errs[0] != nil {
			errs[0], errs[1], first, second = errs[1], errs[0], second, first
		}
	} else {
		errs[0] = guard.Resolve(ctx, read, first)
		if when == "read after" {
			read = s.status(id)
		}
		if again := when == "sent again" || when == "unknown again"; again && !first.Exists {
			held := s.acquire(s.first, orderOf(id))
			if when == "unknown again" {
				s.end(s.first, held, unknown, "the second")
			}
		}
		errs[1] = guard.Resolve(ctx, read, second)
	}
	state, refusal := gateway.OrderFree, gateway.ErrNotUnknown
	switch {
	case first.Exists:
		state = gateway.OrderCreated
	case when == "sent again":
		state = gateway.OrderInFlight
	case when == "unknown again":
		state, refusal = gateway.OrderUnknown, gateway.ErrTriedAgain
	}
	isSame := first.Exists == second.Exists && first.By == second.By && errs[1] == nil // the same finding once more may be no error
	o := s.status(id)
	if errs[0] != nil || !isSame && !errors.Is(errs[1], refusal) || o.State != state || first.Exists && o.Finding.By != first.By {
		s.Errorf("%s: %v, then %v, want %v: the order is %s, found by %q", id, errs[0], errs[1], refusal, o.State, o.Finding.By)
	}
}

// status reads an order.
func (s *store) status(id string) gateway.OrderStatus {
	s.Helper()
	o, err := s.first.(keeper).Order(context.Background(), merchant, id)
	s.check(err)
	return o
}

// unknown makes an order unknown, and reads it.
func (s *store) unknown(id string) gateway.OrderStatus {
	s.Helper()
	s.end(s.first, s.acquire(s.first, orderOf(id)), unknown, "a page")
	return s.status(id)
}

func (s *store) resolve(o gateway.OrderStatus, f gateway.Finding, want error) {
	s.Helper()
	s.wantError(fmt.Sprintf("Resolve of exists %t", f.Exists), s.first.(keeper).Resolve(context.Background(), o, f), want)
}

func (s *store) forget(o gateway.OrderStatus, want error) {
	s.Helper()
	s.wantError("Forget", s.first.(keeper).Forget(context.Background(), o), want)
}

func (s *store) wantError(what string, err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%s returns %v, want %v", what, err, want)
	}
}
