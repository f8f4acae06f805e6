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

// findings are those of the steps.
var findings = map[string]gateway.Finding{
	"exists":  {Exists: true, By: "anna", Note: "4711"},
	"shown":   {Exists: true, By: "anna", Note: "4711", Invoice: []byte(invoiceOf("shown"))},
	"other":   {Exists: true, By: "bob", Invoice: []byte(invoiceOf("other"))},
	"absent":  {By: "anna", Margin: time.Microsecond},
	"early":   {By: "anna"},
	"unnamed": {Exists: true},
	"foreign": {Exists: true, By: "anna", Invoice: []byte(`{"orderId":"A-18"}`)},
}

// refusals are the errors of the steps.
var refusals = map[string]error{
	"not unknown": gateway.ErrNotUnknown, "too early": gateway.ErrTooEarly, "tried again": gateway.ErrTriedAgain,
	"not created": gateway.ErrNotCreated, "invalid": gateway.ErrInvalidArgument,
}

// people are the rules of guards that have the methods of a keeper.
var people = []rule{
	{name: "Order returns an order in each state", check: orderInEachState},
	{name: "Pending returns the unknown orders, the longest unknown first, in pages", check: pages},
	{
		name: "a finding that an invoice exists makes the order created, and its invoice can be added later",
		steps: "begin a, unknown a, see, exists, exists as seen, is created \"\", shown, is created shown, shown, exists as seen, " +
			"not unknown other, is created shown",
	},
	{
		name:  "a finding that no invoice exists frees the order, after the margin only",
		steps: "begin a, unknown a, too early early, is unknown a, absent, is free, begin b",
	},
	{name: "a finding that no invoice exists is refused by the clock of the guard, and by that of the process", check: bothClocks},
	{name: "all findings are kept, with who recorded them, when, and the last attempt then", check: allFindings},
	{
		name: "a finding about an order that was sent again is refused",
		steps: "begin a, unknown a, see, resubmit b, not unknown exists as seen, not unknown absent as seen, unknown b, " +
			"tried again exists as seen, tried again absent as seen, is unknown b",
	},
	{
		name:  "of two findings about one order the first counts, that an invoice exists",
		steps: "begin a, unknown a, see, exists as seen, not unknown absent as seen, not unknown absent, is created \"\"",
	},
	{
		name:  "of two findings about one order the first counts, that none exists",
		steps: "begin a, unknown a, see, absent as seen, not unknown exists as seen, not unknown exists, not unknown absent, is free",
	},
	{
		name: "a finding about an order that was freed and sent again is refused",
		steps: "begin a, unknown a, see, absent as seen, begin b, not unknown exists as seen, " +
			"not unknown absent as seen, is in flight, unknown b, tried again exists as seen, tried again absent as seen, is unknown b",
	},
	{name: "of two findings at once one counts, and the other is refused unless it says the same", check: findingsAtOnce},
	{
		name:  "there is nothing to resolve about an order that is free, in flight or created",
		steps: "not unknown exists, begin a, not unknown exists, success a, not unknown absent, is created a",
	},
	{
		name:  "a finding without a name, or with the invoice of another order, is refused",
		steps: "begin a, unknown a, invalid unnamed, invalid foreign, is unknown a",
	},
	{
		name:  "an unknown outcome that comes after the finding that none exists changes nothing, also beside a later attempt",
		steps: "begin a, unknown a, absent, unknown a, is free, begin b, unknown a, is in flight, success b, unknown a, is created b",
	},
	{
		name:  "an unknown outcome that comes first after the finding that none exists changes nothing",
		steps: "begin a, expire, absent, unknown a, is free",
	},
	{
		name:  "an unknown outcome that comes after the finding that an invoice exists changes nothing",
		steps: "begin a, unknown a, resubmit b, unknown b, exists, unknown a, unknown b, is created \"\", see, forget as seen",
	},
	{
		name:  "a success that comes after a finding is kept",
		steps: "begin a, unknown a, shown, success a, is created a",
	},
	{
		name:  "a success that comes after the finding that none exists makes the order created",
		steps: "begin a, unknown a, absent, success a, is created a",
	},
	{
		name: "a created order is forgotten once, and can be sent again",
		steps: "begin a, success a, see, forget, not created forget as seen, begin b, " +
			"not created forget as seen, success b, tried again forget as seen, is created b",
	},
	{
		name:  "if calls and two people who forget an order come at once, one call gets the lease, and one person has forgotten it",
		check: forgetsAtOnce,
	},
	{
		name: "a success that comes for a forgotten order is kept beside the success of the call that has it",
		steps: "begin a, success a, see, forget, begin b, success late, not created forget, success b, " +
			"tried again forget as seen, is created late + b",
	},
	{
		name:  "an order that is free, in flight or unknown is not forgotten",
		steps: "not created forget, begin a, not created forget, unknown a, not created forget, is unknown a",
	},
	{
		name:  "a created order with an attempt of unknown outcome is not forgotten",
		steps: "begin a, unknown a, resubmit b, success b, not created forget, is created b",
	},
	{
		name:  "a success that comes for a forgotten order is recorded",
		steps: "begin a, success a, forget, success late, is created late",
	},
}

func orderInEachState(s *store) {
	if o := s.status(id); o.State != gateway.OrderFree || o.Attempt != "" || o.Attempts != 0 {
		s.Errorf("%+v", o)
	}
	s.do("begin a")
	held := s.attempts["a"].order
	if o := s.status(id); o.State != gateway.OrderInFlight || o.Attempt != held.Attempt || o.Attempts != 1 || o.Gateway != held.Gateway ||
		!o.Record.Request.Equal(held.Request) {
		s.Errorf("%+v", o)
	}
	s.do("unknown a, resubmit b, unknown b")
	o := s.status(id)
	if o.State != gateway.OrderUnknown || o.Attempts != 2 || o.Since.IsZero() || o.Begun.Before(o.Since) || o.SentUntil.Before(o.Begun) ||
		o.GuardReadAt.Before(o.SentUntil) || o.ReadAt.IsZero() {
		s.Errorf("%+v", o)
	}
	for i, r := range append(o.Earlier, o.Record) {
		if got, want := describe(held, o.State, r), [...]string{"unknown a", "unknown b"}; got != want[i] || len(o.Earlier) != 1 {
			s.Errorf("attempt %d of %d is %s", i, len(o.Earlier)+1, got)
		}
	}
}

func pages(s *store) {
	for _, id := range []string{"3", "1", "2"} {
		s.end(s.acquire(s.first, orderOf(id)), unknown, "a page")
	}
	s.end(s.acquire(s.first, orderOf("created")), success, invoiceOf("a"))
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
}

func bothClocks(s *store) {
	s.do("begin a, unknown a, see")
	read := s.seen
	s.seen.GuardReadAt = read.Begun.Add(-time.Microsecond)
	s.do("too early absent as seen")
	s.seen.GuardReadAt, s.seen.ReadAt = read.GuardReadAt, sentAt.Add(-time.Microsecond)
	s.do("too early absent as seen, is unknown a")
}

func allFindings(s *store) {
	s.do("begin a, unknown a, absent, begin b, unknown b, exists, shown")
	want := []struct {
		finding, attempt string
	}{{"absent", "a"}, {"exists", "b"}, {"shown", "b"}}
	o := s.status(id)
	for i, got := range o.Findings[:min(len(o.Findings), len(want))] {
		f := findings[want[i].finding]
		if got.Exists != f.Exists || got.By != f.By || got.Note != f.Note || got.Attempt != s.attempts[want[i].attempt].order.Attempt ||
			got.At.IsZero() || got.At.Before(o.Findings[max(i, 1)-1].At) || got.At.After(o.GuardReadAt) {
			s.Errorf("finding %d is %+v, want %v", i, got, want[i])
		}
	}
	if len(o.Findings) != len(want) {
		s.Errorf("%d findings are kept of %d", len(o.Findings), len(want))
	}
}

// findingsAtOnce has two people look up an order, and record their findings at once.
func findingsAtOnce(s *store) {
	for round := range 4 {
		id, all, errs := fmt.Sprint("A-", round), [2]gateway.Finding{{By: "anna", Margin: time.Microsecond}, {By: "bob", Margin: time.Microsecond}}, [2]error{}
		all[0].Exists, all[1].Exists = round&1 > 0, round&2 > 0
		s.end(s.acquire(s.first, orderOf(id)), unknown, "a page")
		read := s.status(id)
		var both sync.WaitGroup
		for i := range all {
			both.Go(func() { errs[i] = s.first.(keeper).Resolve(context.Background(), read, all[i]) })
		}
		both.Wait()
		o, isRefused := s.status(id), false
		if len(o.Findings) != 1 {
			s.Fatalf("%v and %v: there are %d findings", errs[0], errs[1], len(o.Findings))
		}
		exists := o.Findings[0].Exists
		for i, f := range all {
			if f.Exists == exists {
				s.check(errs[i])
			} else {
				isRefused = errors.Is(errs[i], gateway.ErrNotUnknown)
			}
		}
		want := map[bool]gateway.OrderState{true: gateway.OrderCreated}[exists]
		if o.State != want || isRefused != (all[0].Exists != all[1].Exists) {
			s.Errorf("%v and %v: the order is %s", errs[0], errs[1], o.State)
		}
	}
}

func forgetsAtOnce(s *store) {
	for round := range 5 {
		id := fmt.Sprint("A-", round)
		s.end(s.acquire(s.first, orderOf(id)), success, invoiceOf("a"))
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
}
