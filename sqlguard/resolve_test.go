package sqlguard

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

var (
	exists = gateway.Finding{Exists: true, By: "anna"}
	absent = gateway.Finding{By: "anna"}
)

// A finding that no invoice exists is refused within the margin, which after a crash counts from the end of the lease.
func TestResolve_margin(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g, none := w.guard(t), gateway.Finding{By: "anna", Margin: time.Minute}
		check(t, g.begins(t.Context(), order))
		g.sets(t, "lease_until = lease_until - %d", defaultLease.Microseconds())
		err := g.Resolve(t.Context(), g.order(t, order), none)
		wantError(t, err, gateway.ErrTooEarly)
		wantText(t, err, "may still be in transit: the order was read 1m0s too early: read it again at 20")
		g.sets(t, "lease_until = lease_until - %d", time.Minute.Microseconds())
		wantError(t, g.Resolve(t.Context(), gateway.OrderStatus{OrderID: order, State: gateway.OrderUnknown}, none), gateway.ErrTriedAgain)
		check(t, g.Resolve(t.Context(), g.order(t, order), none))
	})
}

// A finding that no invoice exists is refused if the order was read before the margin had passed by the clock of this
// process, whatever the clock of the database does.
func TestResolve_bothClocks(t *testing.T) {
	g := newSQLite(t).guard(t)
	sent, o := time.Now(), orderOf(order)
	check(t, g.asks(t.Context(), &o))
	_, err := g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Request: o.Request, SentAt: sent})
	check(t, err)
	g.sets(t, "begun_at = begun_at - %[1]d, lease_until = lease_until - %[1]d", time.Hour.Microseconds()) // as if its clock were an hour later
	wantError(t, g.Resolve(t.Context(), g.order(t, order), absent), gateway.ErrTooEarly)
	g.now = func() time.Time { return sent.Add(gateway.DefaultMargin + time.Minute) }
	check(t, g.Resolve(t.Context(), g.order(t, order), absent))
}

// A finding about an order of the database before it was restored is refused.
func TestResolve_restored(t *testing.T) {
	g := newSQLite(t).guard(t)
	seen := g.unknown(t, order)[0]
	token, err := ParseToken(Token(seen))
	check(t, err)
	execute(t, g.db, "DELETE FROM "+g.sql.table)
	g.unknown(t, order)
	for _, o := range []gateway.OrderStatus{seen, token} {
		wantError(t, g.Resolve(t.Context(), o, exists), gateway.ErrTriedAgain)
	}
	g.wantState(t, gateway.OrderUnknown, 1)
}

// wasFoundBy reports whether the only finding about an order is a person's.
func wasFoundBy(o gateway.OrderStatus, by string) bool {
	return len(o.Findings) == 1 && o.Findings[0].By == by
}

// refusals returns the refused orders of an error and the reasons.
func refusals(err error) (all []string) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, err := range joined.Unwrap() {
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			all = append(all, fmt.Sprintf("%d: %v", refused.Index, refused))
		}
	}
	return all
}

// wantRefusals compares refusals with the index of each and a part of its reason.
func wantRefusals(t *testing.T, err error, want ...string) {
	t.Helper()
	got := refusals(err)
	if len(got) != len(want) || (err == nil) != (len(want) == 0) {
		t.Fatalf("%v, want %q", err, want)
	}
	for i := range want {
		index, reason, _ := strings.Cut(want[i], ": ")
		if !strings.HasPrefix(got[i], index+": ") || !strings.Contains(got[i], reason) {
			t.Errorf("%s, want %s", got[i], want[i])
		}
	}
}

// All findings are recorded or none, and each that cannot be is named; CheckAll says the same before.
func TestResolveAll(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(g *Guard, all []Resolution)
		refused []string
	}{
		"nothing is wrong":            {func(*Guard, []Resolution) {}, nil},
		"one has no name of a person": {func(_ *Guard, all []Resolution) { all[1].Finding.By = "" }, []string{"1: Finding.By: is required"}},
		"one order is there twice":    {func(_ *Guard, all []Resolution) { all[2].Order = all[0].Order }, []string{"2: has the order twice"}},
		"two were sent again since they were read": {func(g *Guard, all []Resolution) {
			g.unknown(t, all[1].Order.OrderID, all[2].Order.OrderID)
		}, []string{"1: sent again", "2: sent again"}},
		"one is in flight again": {func(g *Guard, all []Resolution) {
			o := orderOf(all[2].Order.OrderID)
			o.Resubmit = true
			check(t, g.asks(t.Context(), &o))
		}, []string{"2: it is in flight"}},
		"one was resolved by somebody else": {func(g *Guard, all []Resolution) {
			check(t, g.Resolve(t.Context(), all[0].Order, gateway.Finding{By: "bob", Margin: time.Microsecond}))
		}, []string{`0: it is free, and "bob" found no invoice at 20`}},
		"somebody else has recorded one of them": {func(g *Guard, all []Resolution) {
			check(t, g.Resolve(t.Context(), all[0].Order, exists))
		}, nil},
		"one may still be in transit": {func(_ *Guard, all []Resolution) { all[2].Finding.Margin = time.Hour }, []string{"2: may still be in transit"}},
		"one has the invoice of another": {func(_ *Guard, all []Resolution) {
			all[0].Finding.Invoice = []byte(`{"orderId":"A-2"}`)
		}, []string{`0: names the order "A-2"`}},
		"one is not in the table": {func(_ *Guard, all []Resolution) { all[1].Order.OrderID = "A-9" }, []string{"1: it is free"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newSQLite(t).guard(t)
			read := g.unknown(t, "A-1", "A-2", "A-3")
			all := []Resolution{{read[0], exists}, {read[1], exists}, {read[2], gateway.Finding{By: "anna", Margin: time.Microsecond}}}
			tt.change(g, all)
			wantRefusals(t, g.CheckAll(t.Context(), all), tt.refused...)
			wantRefusals(t, g.ResolveAll(t.Context(), all), tt.refused...)
			for i, want := range []gateway.OrderState{gateway.OrderCreated, gateway.OrderCreated, gateway.OrderFree} {
				o := g.order(t, read[i].OrderID)
				if isRecorded := wasFoundBy(o, "anna"); isRecorded != (tt.refused == nil) || isRecorded && o.State != want {
					t.Errorf("%+v", o)
				}
			}
		})
	}
	check(t, newSQLite(t).guard(t).ResolveAll(t.Context(), nil))
}

// Of two people who have findings about the same orders, in any order of rows, one records all of them.
func TestResolveAll_race(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g, other := w.guard(t), w.guard(t)
		for round := range 5 {
			var ids []string
			for i := range 5 {
				ids = append(ids, fmt.Sprintf("%d-%d", round, i))
			}
			var forward, backward []Resolution
			for _, o := range g.unknown(t, ids...) {
				forward = append(forward, Resolution{o, exists})
				backward = append([]Resolution{{o, gateway.Finding{By: "bob", Margin: time.Microsecond}}}, backward...)
			}
			var people sync.WaitGroup
			var errs [2]error
			people.Go(func() { errs[0] = g.ResolveAll(t.Context(), forward) })
			people.Go(func() { errs[1] = other.ResolveAll(t.Context(), backward) })
			people.Wait()
			if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs[:]...), gateway.ErrNotUnknown) {
				t.Fatalf("%v, %v", errs[0], errs[1])
			}
			winner := map[bool]string{true: "anna", false: "bob"}[errs[0] == nil]
			for _, id := range ids {
				if o := g.order(t, id); !wasFoundBy(o, winner) {
					t.Fatalf("%+v, want %s", o, winner)
				}
			}
		}
	})
}

// After a restore, the orders that the table has forgotten are marked, and all others stay as they are.
func TestMark(t *testing.T) {
	const forgotten = "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b" // the same in either case
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		g.inEachState(t)
		var all []gateway.OrderStatus
		for _, id := range []string{"created", "unknown", "free", "in flight", strings.ToUpper(forgotten), forgotten} {
			all = append(all, gateway.OrderStatus{OrderID: id})
		}
		for _, want := range []int{2, 0} {
			would, err1 := g.CheckMark(t.Context(), all)
			marked, err2 := g.Mark(t.Context(), all)
			if err := errors.Join(err1, err2); err != nil || would != want || marked != want {
				t.Errorf("%d would be marked, %d are, %v, want %d", would, marked, err, want)
			}
		}
		for id, want := range map[string]string{
			"created": "created", "unknown": "unknown", "free": "unknown", "in flight": "in flight", forgotten: "unknown",
		} {
			if got := g.order(t, id).State.String(); got != want {
				t.Errorf("%s is %s", id, got)
			}
		}
		marked := g.order(t, strings.ToUpper(forgotten))
		if r := marked.Record; r.Request.OrderID != "" || !r.SentAt.IsZero() || !marked.Begun.IsZero() || marked.Since != marked.SentUntil {
			t.Errorf("of a marked order nothing is known: %+v", marked)
		}
		wantError(t, g.Resolve(t.Context(), marked, absent), gateway.ErrTooEarly)
		check(t, g.Resolve(t.Context(), later(marked), gateway.Finding{By: "anna", Margin: time.Microsecond}))
		check(t, g.begins(t.Context(), forgotten))
	})
}

// One order that no call can have is a mistake, and nothing is marked.
func TestMark_refuses(t *testing.T) {
	g := newSQLite(t).guard(t, WithMerchants())
	for want, o := range map[string]gateway.OrderStatus{
		"1: WithMerchants: is set, and the call names no merchant":  {OrderID: order},
		"1: orderId: must not begin or end with a space":            {OrderID: " A-17", Merchant: "shop"},
		"1: WithMerchant: must not contain invisible characters":    {OrderID: order, Merchant: "shop\u200b"},
		"1: WithMerchant: must be valid UTF-8 of at most 256 bytes": {OrderID: order, Merchant: strings.Repeat("x", maxMerchant+1)},
	} {
		all := []gateway.OrderStatus{{OrderID: order, Merchant: "shop"}, o}
		_, err := g.CheckMark(t.Context(), all)
		wantRefusals(t, err, want)
		_, err = g.Mark(t.Context(), all)
		wantRefusals(t, err, want)
		wantError(t, err, gateway.ErrInvalidArgument)
	}
	if summary, err := g.PendingSummary(t.Context()); err != nil || summary.Count > 0 {
		t.Errorf("%+v, %v", summary, err)
	}
}
