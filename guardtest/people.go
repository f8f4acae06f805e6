package guardtest

import (
	"context"
	"fmt"
	"reflect"
	"strings"
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
	"shown":   {Exists: true, By: "bob", Note: "4712", Invoice: []byte(invoiceOf("shown"))},
	"other":   {Exists: true, By: "anna", Invoice: []byte(invoiceOf("other"))},
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

// peopleSteps are the rules of guards that have the methods of a keeper.
const peopleSteps = `
a finding that an invoice exists makes the order created, and its invoice can be added later
	begin a, unknown a, see, exists, is created "", see, shown, is created shown
a finding that says the same once more changes nothing, and another invoice is refused
	begin a, unknown a, see, shown, shown, exists, not unknown other, not unknown absent, is created shown
a finding that no invoice exists frees the order, after the margin only
	begin a, unknown a, see, too early early, is unknown a, absent, absent, not unknown exists, is free, begin b, not unknown absent
a finding about an order that was sent again is refused
	begin a, unknown a, see, resubmit b, not unknown exists, not unknown absent, unknown b, tried again exists, tried again absent, is unknown b
a finding about an order that was freed and sent again is refused
	begin a, unknown a, see, absent, begin b, not unknown exists, not unknown absent, is in flight, unknown b, tried again exists, tried again absent, is unknown b
there is nothing to resolve about an order that is free, in flight or created
	see, not unknown exists, begin a, see, not unknown exists, success a, see, not unknown absent, is created a
a finding without a name, or with the invoice of another order, is refused
	begin a, unknown a, see, invalid unnamed, invalid foreign, is unknown a
an unknown outcome that comes after the finding that none exists changes nothing
	begin a, unknown a, see, absent, unknown a, is free, begin b, unknown a, is in flight, success b, unknown a, is created b
an unknown outcome that comes first after the finding that none exists changes nothing
	begin a, expire, see, absent, unknown a, is free
an unknown outcome that comes after the finding that an invoice exists changes nothing
	begin a, unknown a, resubmit b, unknown b, see, exists, unknown a, unknown b, is created "", see, forget
a success that comes after a finding is kept
	begin a, unknown a, see, shown, success a, is created a
a success that comes after the finding that none exists makes the order created
	begin a, unknown a, see, absent, success a, is created a, not unknown absent
a created order is forgotten once, and can be sent again
	begin a, success a, see, forget, not created forget, begin b, not created forget, success b, tried again forget, is created b
an order that is free, in flight or unknown is not forgotten
	see, not created forget, begin a, see, not created forget, unknown a, see, not created forget, is unknown a
a created order with an attempt of unknown outcome is not forgotten
	begin a, unknown a, resubmit b, success b, see, not created forget, is created b
a success that comes for a forgotten order is recorded
	begin a, success a, see, forget, success late, is created late
a success that comes for a forgotten order is kept beside the success of the call that has it
	begin a, success a, see, forget, begin b, success late, not created forget, success b, tried again forget, is created late + b
`

// people are further rules of these guards.
var people = []rule{
	{"Order returns an order in each state", orderInEachState},
	{"what is recorded again moves no time", againMovesNoTime},
	{"Pending returns the unknown orders, the longest unknown first, in pages", pages},
	{"all findings are kept, with who recorded them, when, and the last attempt then", allFindings},
	{"if calls and two people who forget an order come at once, one call gets the lease, and one person has forgotten it", forgetsAtOnce},
}

func orderInEachState(s *store) {
	if o := s.status(id); o.State != gateway.OrderFree || o.Attempt != "" || o.Attempts != 0 {
		s.Errorf("%+v", o)
	}
	s.do("begin a")
	if o, held := s.status(id), s.attempts["a"].order; describe(o.State, o.Record) != "in flight" ||
		o.Attempt != held.Attempt || o.Attempts != 1 || o.Gateway != held.Gateway {
		s.Errorf("%+v", o)
	}
	s.do("unknown a, resubmit b, unknown b")
	if o := s.status(id); describe(o.State, o.Record) != "unknown b" || len(o.Earlier) != 1 || describe(o.State, o.Earlier[0]) != "unknown a" ||
		o.Attempts != 2 || o.Since.IsZero() || o.Begun.Before(o.Since) || o.SentUntil.Before(o.Begun) || o.GuardReadAt.Before(o.SentUntil) || o.ReadAt.IsZero() {
		s.Errorf("%+v", o)
	}
}

func againMovesNoTime(s *store) {
	read := func() gateway.OrderStatus {
		o := s.status(id)
		o.ReadAt, o.GuardReadAt = time.Time{}, time.Time{}
		return o
	}
	for _, again := range []string{"begin a, unknown a", "resubmit b, unknown b", "resubmit c, success c"} {
		s.do(again)
		before := read()
		_, last, _ := strings.Cut(again, ", ")
		if s.do(last); !reflect.DeepEqual(before, read()) {
			s.Errorf("after %q: %+v, want %+v", s.done, read(), before)
		}
	}
}

func pages(s *store) {
	for id, outcome := range map[string]string{"1": "unknown", "2": "unknown", "3": "unknown", "created": "success", "free": "rejected"} {
		s.end(s.acquire(orderOf(id)), outcome, "a")
	}
	s.acquire(orderOf("in flight"))
	var all []gateway.OrderStatus
	for q := (gateway.PendingQuery{Most: 2}); len(all) < 5; {
		page, err := s.first.(keeper).Pending(context.Background(), q)
		if s.check(err); len(page) == 0 {
			break
		}
		all = append(all, page...)
		q.After = page[len(page)-1]
	}
	ids := map[string]bool{}
	for i, o := range all {
		if ids[o.OrderID] = true; describe(o.State, o.Record) != "unknown a" || o.Since.Before(all[max(i, 1)-1].Since) {
			s.Errorf("%+v", o)
		}
	}
	if len(all) != 3 || len(ids) != 3 {
		s.Errorf("%v are pending", ids)
	}
}

func allFindings(s *store) {
	s.do("begin a, unknown a, see, absent, begin b, unknown b, see, exists, see, shown")
	o, want := s.status(id), [][2]string{{"absent", "a"}, {"exists", "b"}, {"shown", "b"}}
	if len(o.Findings) != len(want) {
		s.Fatalf("%d findings are kept of %d", len(o.Findings), len(want))
	}
	for i, got := range o.Findings {
		f, attempt := findings[want[i][0]], s.attempts[want[i][1]].order.Attempt
		if got.Exists != f.Exists || got.By != f.By || got.Note != f.Note || got.Attempt != attempt ||
			got.At.IsZero() || got.At.Before(o.Findings[max(i, 1)-1].At) || got.At.After(o.GuardReadAt) {
			s.Errorf("finding %d is %+v, want %v", i, got, want[i])
		}
	}
}

func forgetsAtOnce(s *store) {
	for round := range 5 {
		id, forgot := fmt.Sprint("A-", round), [2]error{}
		s.end(s.acquire(orderOf(id)), "success", "a")
		read := s.status(id)
		granted := atOnce(6, func(i int) bool {
			if i < len(forgot) {
				forgot[i] = s.first.(keeper).Forget(context.Background(), read)
				return false
			}
			lease, err := s.first.Begin(context.Background(), orderOf(id))
			return err == nil && lease.State == gateway.OrderFree
		})
		if (forgot[0] == nil) == (forgot[1] == nil) || granted > 1 || granted == 1 && s.status(id).State != gateway.OrderInFlight {
			s.Errorf("%d leases, Forget returns %v and %v", granted, forgot[0], forgot[1])
		}
	}
}
