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

// unknown makes orders unknown and returns them as they are read then.
func (g *Guard) unknown(t *testing.T, ids ...string) (all []gateway.OrderStatus) {
	t.Helper()
	for _, id := range ids {
		g.once(t, id, gateway.OutcomeUnknown)
		all = append(all, g.order(t, id))
	}
	return all
}

// refusals returns the refused orders of an error and a part of each reason.
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

// All findings are recorded or none, and each that cannot be is named.
func TestResolveAll(t *testing.T) {
	exists, absent := gateway.Finding{Exists: true, By: "anna"}, gateway.Finding{By: "anna", Margin: 1}
	for name, tt := range map[string]struct {
		change  func(g *Guard, all []Resolution) []Resolution
		refused []string // index, and a part of the reason
	}{
		"nothing is wrong": {func(_ *Guard, all []Resolution) []Resolution { return all }, nil},
		"one has no name of a person": {func(_ *Guard, all []Resolution) []Resolution {
			all[1].Finding.By = ""
			return all
		}, []string{"1: Finding.By: is required"}},
		"one order is there twice": {func(_ *Guard, all []Resolution) []Resolution {
			return append(all, all[0])
		}, []string{"3: has the order twice"}},
		"two were sent again since they were read": {func(g *Guard, all []Resolution) []Resolution {
			for _, r := range all[1:] {
				_ = errors.Join(g.resubmits(t.Context(), r.Order.OrderID), g.ends(t.Context(), r.Order.OrderID, gateway.OutcomeUnknown))
			}
			return all
		}, []string{"1: sent again", "2: sent again"}},
		"one is in flight again": {func(g *Guard, all []Resolution) []Resolution {
			_ = g.resubmits(t.Context(), all[2].Order.OrderID)
			return all
		}, []string{"2: it is in flight"}},
		"one was resolved by somebody else": {func(g *Guard, all []Resolution) []Resolution {
			_ = g.Resolve(t.Context(), all[0].Order, gateway.Finding{Exists: true, By: "bob"})
			return all
		}, []string{`0: it is created, as "bob" found at 20`}},
		"one may still be in transit": {func(_ *Guard, all []Resolution) []Resolution {
			all[2].Finding.Margin = time.Hour
			return all
		}, []string{"2: may still be in transit"}},
		"one has the invoice of another": {func(_ *Guard, all []Resolution) []Resolution {
			all[0].Finding.Invoice = []byte(`{"orderId":"A-2"}`)
			return all
		}, []string{`0: names the order "A-2"`}},
		"one is not in the table": {func(_ *Guard, all []Resolution) []Resolution {
			all[1].Order.OrderID = "A-9"
			return all
		}, []string{"1: it is free"}},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, func(t *testing.T, w testDB) {
				g := w.guard(t)
				read := g.unknown(t, "A-1", "A-2", "A-3")
				all := tt.change(g, []Resolution{{read[0], exists}, {read[1], exists}, {read[2], absent}})
				err := g.ResolveAll(t.Context(), all)
				got := refusals(err)
				if len(got) != len(tt.refused) || (err == nil) != (len(tt.refused) == 0) {
					t.Fatalf("%v, want %q", err, tt.refused)
				}
				for i, want := range tt.refused {
					index, reason, _ := strings.Cut(want, ": ")
					if !strings.HasPrefix(got[i], index+": ") || !strings.Contains(got[i], reason) {
						t.Errorf("%s, want %s", got[i], want)
					}
				}
				for i, o := range read {
					o := g.order(t, o.OrderID)
					switch recorded := o.Finding.By == "anna"; {
					case recorded != (err == nil):
						t.Errorf("recorded: %t, %v", recorded, err)
					case recorded && o.State != []gateway.OrderState{gateway.OrderCreated, gateway.OrderCreated, gateway.OrderFree}[i]:
						t.Errorf("%+v", o)
					}
				}
			})
		})
	}
	g := newSQLite(t).guard(t)
	check(t, g.ResolveAll(t.Context(), nil))
}

// Of two people who have findings about the same orders, in any order of rows, one records all of them.
func TestResolveAll_race(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g, other := w.guard(t), w.guard(t)
		for round := range 20 {
			ids := []string{}
			for i := range 5 {
				ids = append(ids, fmt.Sprintf("%d-%d", round, i))
			}
			read := g.unknown(t, ids...)
			var forward, backward []Resolution
			for i := range read {
				forward = append(forward, Resolution{read[i], gateway.Finding{Exists: true, By: "anna"}})
				backward = append(backward, Resolution{read[len(read)-1-i], gateway.Finding{By: "bob", Margin: 1}})
			}
			var people sync.WaitGroup
			var errs [2]error
			people.Go(func() { errs[0] = g.ResolveAll(t.Context(), forward) })
			people.Go(func() { errs[1] = other.ResolveAll(t.Context(), backward) })
			people.Wait()
			winner := "anna"
			if errs[0] != nil {
				winner = "bob"
			}
			if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs[:]...), gateway.ErrNotUnknown) {
				t.Fatalf("%v, %v", errs[0], errs[1])
			}
			for _, id := range ids {
				if o := g.order(t, id); o.Finding.By != winner {
					t.Fatalf("%+v, want %s", o, winner)
				}
			}
		}
	})
}

// What a database does not answer is no success, and what it may have recorded can be read.
func TestResolveAll_lostAnswer(t *testing.T) {
	w := newPostgres(t)
	g := w.guard(t)
	read := g.unknown(t, "A-1", "A-2")
	db, losing := losesAnswers(t, w)
	lost, err := New(db, WithTable(w.table))
	check(t, err)
	losing.writes = 1
	all := []Resolution{{read[0], gateway.Finding{Exists: true, By: "anna"}}, {read[1], gateway.Finding{Exists: true, By: "anna"}}}
	if err := lost.ResolveAll(t.Context(), all); !errors.Is(err, errDown) {
		t.Error(err)
	}
	for _, o := range read {
		if now := g.order(t, o.OrderID); now.State != gateway.OrderUnknown {
			t.Errorf("%+v", now)
		}
	}
	check(t, g.ResolveAll(t.Context(), all))
}

// That none exists is refused for an order that was read before the margin had passed by the clock of this process too, whatever
// the clock of the database does.
func TestResolve_bothClocks(t *testing.T) {
	w := newSQLite(t)
	g := w.guard(t)
	sent := time.Now()
	o := orderOf(order)
	check(t, granted(&o)(g.Begin(t.Context(), o)))
	check(t, recorded(g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Request: o.Request, SentAt: sent})))
	jumped := fmt.Sprintf("UPDATE gateway_orders SET begun_at = begun_at - %[1]d, lease_until = lease_until - %[1]d", time.Hour.Microseconds())
	execute(t, g.db, jumped) // as if the clock of the database were an hour later
	none := gateway.Finding{By: "anna"}
	wantError(t, g.Resolve(t.Context(), g.order(t, order), none), gateway.ErrTooEarly)
	g.now = func() time.Time { return sent.Add(gateway.DefaultMargin + time.Minute) }
	check(t, g.Resolve(t.Context(), g.order(t, order), none))
}

// After a restore, the orders that the table has forgotten are marked, and all others stay as they are.
func TestMark(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		g.once(t, "created", gateway.OutcomeSucceeded)
		g.once(t, "unknown", gateway.OutcomeUnknown)
		g.once(t, "free", gateway.OutcomeRejected)
		check(t, g.begins(t.Context(), "in flight"))
		var all []gateway.OrderStatus
		for _, id := range []string{"created", "unknown", "free", "in flight", "forgotten", "forgotten"} {
			all = append(all, gateway.OrderStatus{OrderID: id})
		}
		for _, want := range []int{2, 0} {
			marked, err := g.Mark(t.Context(), all)
			if err != nil || marked != want {
				t.Errorf("%d marked, %v, want %d", marked, err, want)
			}
		}
		for id, want := range map[string]error{"created": errCreated, "unknown": errUnknown, "free": errUnknown, "in flight": errInFlight, "forgotten": errUnknown} {
			wantError(t, g.begins(t.Context(), id), want)
		}
		marked := g.order(t, "forgotten")
		wantError(t, g.Resolve(t.Context(), marked, gateway.Finding{By: "anna"}), gateway.ErrTooEarly)
		check(t, g.Resolve(t.Context(), marked, gateway.Finding{By: "anna", Margin: 1}))
		check(t, g.begins(t.Context(), "forgotten"))
	})
}

// One order that no call can have is a mistake, and nothing is marked.
func TestMark_refuses(t *testing.T) {
	for name, tt := range map[string]struct {
		marked []string // merchants
		want   string
	}{
		"a new name":                           {[]string{"shop", "other"}, ""},
		"no name":                              {[]string{"shop", ""}, "1: WithMerchants: is set, and the call names no merchant"},
		"an orderId that the client refuses":   {[]string{"shop", "no id"}, "1: orderId: must not begin or end with a space"},
		"a merchant with an invisible letter":  {[]string{"shop", "shop\u200b"}, "1: WithMerchant: must not contain invisible characters"},
		"a merchant that no table can contain": {[]string{"shop", strings.Repeat("x", maxMerchant+1)}, "1: WithMerchant: must be valid UTF-8 of at most 256 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, func(t *testing.T, w testDB) {
				g := w.guard(t, WithMerchants())
				var all []gateway.OrderStatus
				for _, merchant := range tt.marked {
					id := "A-17"
					if merchant == "no id" {
						merchant, id = "shop", " A-17"
					}
					all = append(all, gateway.OrderStatus{Merchant: merchant, OrderID: id})
				}
				marked, err := g.Mark(t.Context(), all)
				if tt.want == "" {
					if err != nil || marked != len(all) {
						t.Errorf("%d marked, %v", marked, err)
					}
					return
				}
				index, reason, _ := strings.Cut(tt.want, ": ")
				if got := refusals(err); marked != 0 || len(got) != 1 || !strings.HasPrefix(got[0], index) || !strings.Contains(got[0], reason) || !errors.Is(err, gateway.ErrInvalidArgument) {
					t.Errorf("%d marked, %v, want %s", marked, err, tt.want)
				}
			})
		})
	}
}
