package guardtest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cryptogw/gateway"
)

// A rule is a property that a guard must have.
type rule struct {
	name  string
	check func(*store)
}

// rulesOf returns the rules of a text: a name, and steps, see do.
func rulesOf(text string) (all []rule) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for pair := range slices.Chunk(lines, 2) {
		all = append(all, rule{pair[0], func(s *store) { s.do(strings.TrimSpace(pair[1])) }})
	}
	return all
}

// stepRules are properties that every guard must have.
const stepRules = `
an order that is in flight or created is granted to nobody, and its invoice is kept byte for byte
	begin a, is in flight, success a, is created a
a success whose invoice is not known makes the order created
	begin a, bare a, is created ""
after a rejection, or if nothing was sent, the order is free
	begin a, rejected a, is free, begin b, unsent b, is free
an unknown order stays unknown, with the last evidence, whatever a resubmission proves but a success
	begin a, unknown a, is unknown a, resubmit b, rejected b, is unknown a, resubmit c, unsent c, is unknown a, resubmit d, unknown d, is unknown d, resubmit e, success e, is created e
a success is never taken back by what comes late, and a further invoice is kept beside it, once
	begin a, success a, unknown a, is created a, rejected a, is created a, unsent a, is created a, success late, is created a + late, success a, is created a + late
an outcome that is recorded again changes nothing, beside later attempts
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
an order whose process died is unknown when its lease has expired, until its success comes
	begin a, expire, restart, is unknown, success a, is created a
what comes after the lease frees no order that another call has, and a second success is kept
	begin a, expire, restart, resubmit b, rejected a, is in flight, success b, is created b, success a, is created b + a
an unknown outcome that comes after the lease is recorded, with the evidence
	begin a, expire, resubmit b, unknown a, is in flight, rejected b, is unknown a
a UUID is the same order in either case
	as 1B4E28BA-2FA1-11D2-883F-0016D3CCA427, begin a, success a, as 1b4e28ba-2fa1-11d2-883f-0016d3cca427, is created a
an order of another gateway is refused, and both are named
	begin a, unknown a, elsewhere, resubmit b, success b, elsewhere, is created b
`

// A keeper is a guard whose orders people look up and end, as the guards of this repository are.
type keeper interface {
	gateway.OrderGuard
	Order(ctx context.Context, merchant, orderID string) (gateway.OrderStatus, error)
	Pending(ctx context.Context, q gateway.PendingQuery) ([]gateway.OrderStatus, error)
	Resolve(ctx context.Context, o gateway.OrderStatus, f gateway.Finding) error
	Forget(ctx context.Context, o gateway.OrderStatus) error
}

// peopleSteps are the rules of guards that have the methods of a keeper.
const peopleSteps = `
a person reads an order in each state, with all findings
	reads free 0, begin a, reads in flight 1, unknown a, resubmit b, unknown b, reads unknown b 2 + unknown a, see, absent, reads free 2 unknown b; exists false carl 4713 b, begin c, unknown c, see, exists, see, shown, reads created shown 3; exists false carl 4713 b; exists true anna 4711 c; exists true bob 4712 c
a person finds an order by a UUID in either case
	as 1B4E28BA-2FA1-11D2-883F-0016D3CCA427, begin a, unknown a, reads unknown a 1, as 1b4e28ba-2fa1-11d2-883f-0016d3cca427, reads unknown a 1
unknown orders are pending, the longest unknown first, in pages
	as 1, begin a, unknown a, as 2, begin b, success b, as 3, begin c, as 4, begin d, rejected d, as 6, begin e, unknown e, as 5, begin f, unknown f, pends 1 unknown a; 6 unknown e; after 2; 5 unknown f; after 1
a finding that an invoice exists makes the order created, and its invoice can be added later
	begin a, unknown a, see, exists, is created "", see, shown, is created shown
a finding that says the same once more changes nothing, and another invoice is refused
	begin a, unknown a, see, shown, shown, exists, not unknown other, not unknown absent, is created shown
a finding that no invoice exists frees the order, after the margin only, and says nothing of a later attempt
	begin a, unknown a, see, too early early, is unknown a, absent, absent, not unknown exists, is free, begin b, not unknown exists, not unknown absent, is in flight, unknown b, tried again exists, tried again absent, is unknown b
a finding about an order that was sent again is refused
	begin a, unknown a, see, resubmit b, not unknown exists, not unknown absent, unknown b, tried again exists, tried again absent, is unknown b
there is nothing to resolve, and nothing to forget, about an order that is free or in flight
	see, not unknown exists, not created forget, begin a, see, not unknown exists, not created forget, success a, see, not unknown absent, is created a
a finding without a name, or with the invoice of another order, is refused, and an unknown order is not forgotten
	begin a, unknown a, see, invalid unnamed, invalid foreign, not created forget, is unknown a
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
a created order is forgotten once, and can be sent again; what comes late for it is kept
	begin a, success a, see, forget, not created forget, success late, is created late, see, forget, begin b, not created forget, success late, success b, tried again forget, is created late + b
a created order with an attempt of unknown outcome is not forgotten
	begin a, unknown a, resubmit b, success b, see, not created forget, is created b
`

// rules are further properties that every guard must have.
var rules = []rule{
	{"an invoice of 1 MiB is kept byte for byte", func(s *store) {
		large := strings.Repeat("x", 1<<20-len(invoiceOf("")))
		s.end(s.acquire(orderOf(s.id)), "success", large)
		s.do("is created " + large)
	}},
	{"orders are different, however merchants and identifiers are written", distinct},
	{"a Begin that fails grants nothing", func(s *store) {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := s.first.Begin(ended, orderOf(s.id)); err != nil { // a guard need not look at the context
			s.do("is free")
		}
	}},
	{"of many calls at once one gets the lease", func(s *store) { onlyOne(s, s.first) }},
	{"of many calls at once one gets the lease, whichever guard they ask", func(s *store) { onlyOne(s, s.another(), s.another()) }},
	{"processes that are killed double and forget no order", race},
}

// distinct creates orders that are easily taken for each other, each a merchant, ~ and an orderId.
func distinct(s *store) {
	long := strings.Repeat("m", 255)
	names := []string{
		"a~a", "a:b~c", "a~b:c", "a/b~c", "a~b/c", "a~bc", "ab~c", "a|b~c", "a~b|c", "a\x1fb~c", "a~b\x1fc",
		"North~1", "NORTH~1", "north ~1", " north~1", "n\u00f6rth~1", "no\u0308rth~1", long + "m~1", long + "n~1", long + "~1",
	}
	for _, id := range []string{
		"a", "A", "a ", " a", "a\u00a0", "ä", "a\u0308", "Ä", "ß", "ss", "a%", "a_", "a'", `a"`, `a\`, "a\\b", "a/b", "a:b", "a\nb", "a;b",
		"$1", "?", "0", "00", "0.0", "1", "1e2", "100", "İ", "i", "I", "ı", "\U0001F600", "\U0001F601", "a\u200b",
		strings.Repeat("x", 1024), strings.Repeat("x", 1023) + "y", strings.Repeat("x", 1023),
	} {
		names = append(names, merchant+"~"+id)
	}
	orders := make([]gateway.Order, len(names))
	for i, name := range names {
		merchant, id, _ := strings.Cut(name, "~")
		orders[i] = orderOf(id)
		orders[i].Merchant = merchant
		s.end(s.acquire(orders[i]), "success", fmt.Sprint(i))
	}
	for i, o := range orders {
		if _, got := s.look(s.first, o); got != fmt.Sprint("created ", i) {
			s.Fatalf("%q is %s, want it created %d", names[i], got, i)
		}
	}
}

// onlyOne has many calls ask guards for new orders at once.
func onlyOne(s *store, guards ...gateway.OrderGuard) {
	for round := range 10 {
		granted := atOnce(16, func(i int) bool {
			lease, err := guards[i%len(guards)].Begin(context.Background(), orderOf(fmt.Sprint("A-", round)))
			return err == nil && lease.State == gateway.OrderFree
		})
		if granted != 1 {
			s.Fatalf("%d calls got the lease", granted)
		}
	}
}
