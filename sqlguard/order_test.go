package sqlguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// Pending returns the unknown orders once, in pages, the longest unknown first.
func TestPending(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		g.once(t, "created", gateway.OutcomeSucceeded)
		check(t, g.begins(t.Context(), "in flight"))
		for i, id := range []string{"3", "2", "1", "b", "a"} {
			g.once(t, id, gateway.OutcomeUnknown)
			execute(t, g.db, fmt.Sprintf(`UPDATE %s SET open_since = %d WHERE order_id = '%s'`, g.sql.table, 1000-min(i, 3), id))
		}
		var found string
		for q := (gateway.PendingQuery{Most: 2}); ; {
			page, err := g.Pending(t.Context(), q)
			check(t, err)
			if len(page) == 0 {
				break
			}
			for _, o := range page {
				found += o.OrderID + " "
			}
			q.After = page[len(page)-1]
		}
		if found != "a b 1 2 3 " {
			t.Error(found)
		}
		summary, err := g.PendingSummary(t.Context())
		if err != nil || summary.Count != 5 || summary.Oldest.UnixMicro() != 997 {
			t.Errorf("%+v, %v", summary, err)
		}
		for _, q := range []gateway.PendingQuery{{Most: -1}, {After: gateway.OrderStatus{OrderID: "a"}}} {
			if _, err := g.Pending(t.Context(), q); !errors.Is(err, gateway.ErrInvalidArgument) {
				t.Error(err)
			}
		}
	})
}

// An order comes back as it was recorded, by the clock of the database.
func TestOrder(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g, o := w.guard(t), orderOf(order)
		o.Gateway = "https://gateway.example"
		before := time.Now().Add(-time.Second)
		check(t, granted(&o)(g.Begin(t.Context(), o)))
		got := g.order(t, order)
		if got.State != gateway.OrderInFlight || got.Attempts != 1 || got.Begun.Before(before) || got.SentUntil.Sub(got.Begun) != defaultLease || got.Gateway != o.Gateway {
			t.Errorf("%+v", got)
		}
		first := gateway.OrderRecord{
			Outcome: gateway.OutcomeUnknown, Request: o.Request, SentAt: time.Date(2026, 11, 22, 3, 14, 15, 926535000, time.UTC),
			StatusCode: 502, Body: []byte("<html>\x00\xff"), Cause: "a page",
		}
		check(t, recorded(g.End(t.Context(), o, first)))
		got = g.order(t, order)
		if got.State != gateway.OrderUnknown || got.Record.Outcome != gateway.OutcomeUnknown || got.Since != got.Begun || got.SentUntil != got.Ended || !sameRecord(got.Record, first) {
			t.Errorf("%+v", got)
		}
		o.Resubmit = true
		check(t, granted(&o)(g.Begin(t.Context(), o)))
		check(t, recorded(g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Request: o.Request, Cause: "again"})))
		got = g.order(t, order)
		if got.Attempts != 2 || got.Record.Cause != "again" || len(got.Earlier) != 1 || !sameRecord(got.Earlier[0], first) {
			t.Errorf("%+v", got)
		}
		if other := g.order(t, "never begun"); other.State != gateway.OrderFree || other.Attempts != 0 {
			t.Errorf("%+v", other)
		}
	})
}

func (g *Guard) order(t *testing.T, id string) gateway.OrderStatus {
	t.Helper()
	o, err := g.Order(t.Context(), "", id)
	check(t, err)
	return o
}

func sameRecord(a, b gateway.OrderRecord) bool {
	texts := [2]string{}
	for i, r := range []gateway.OrderRecord{a, b} {
		text, err := json.Marshal(r)
		texts[i] = fmt.Sprint(string(text), err)
	}
	return texts[0] == texts[1]
}

// A finding is accepted, or refused with the reason, and then changes nothing.
func TestResolve(t *testing.T) {
	for name, tt := range map[string]struct {
		found gateway.Finding
		state gateway.OrderState
		want  string // a part of the error
	}{
		"an invoice exists":                     {gateway.Finding{Exists: true, By: "anna", Note: "4711"}, gateway.OrderCreated, ""},
		"with its JSON":                         {gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`{"orderId":"A-17"}`)}, gateway.OrderCreated, ""},
		"none exists":                           {gateway.Finding{By: "anna", Margin: 1}, gateway.OrderFree, ""},
		"none exists, within the margin":        {gateway.Finding{By: "anna"}, gateway.OrderUnknown, "may still be in transit: the order was read 15m0s too early: read it again at 20"},
		"nobody has found it":                   {gateway.Finding{Exists: true, By: " "}, gateway.OrderUnknown, "Finding.By: is required"},
		"a name that no database stores":        {gateway.Finding{Exists: true, By: "a\x00"}, gateway.OrderUnknown, "Finding.By: must be valid UTF-8"},
		"a note that is too long":               {gateway.Finding{Exists: true, By: "anna", Note: strings.Repeat("x", 64<<10+1)}, gateway.OrderUnknown, "Finding.Note: must be valid UTF-8 of at most 64 KiB"},
		"a margin below zero":                   {gateway.Finding{By: "anna", Margin: -1}, gateway.OrderUnknown, "Finding.Margin: must not be negative"},
		"an invoice that does not exist":        {gateway.Finding{By: "anna", Invoice: []byte("{}")}, gateway.OrderUnknown, "Finding.Invoice: must be empty without Exists"},
		"an invoice that is no JSON":            {gateway.Finding{Exists: true, By: "anna", Invoice: []byte("{")}, gateway.OrderUnknown, "Finding.Invoice: must be JSON"},
		"the invoice of another order":          {gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`{"result":{"order_id":"A-18"}}`)}, gateway.OrderUnknown, `Finding.Invoice: names the order "A-18" (order "A-17")`},
		"the invoice of another, with a number": {gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`{"orderId":18}`)}, gateway.OrderUnknown, `names the order "18"`},
		"an invoice that names both":            {gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`{"orderId":"A-17","order":{"id":"4711"}}`)}, gateway.OrderCreated, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, func(t *testing.T, w testDB) {
				g := w.guard(t)
				g.once(t, order, gateway.OutcomeUnknown)
				err := g.Resolve(t.Context(), g.order(t, order), tt.found)
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %s", err, tt.want)
				}
				got := g.order(t, order)
				if got.State != tt.state || err == nil && (got.Finding.By != "anna" || got.Finding.Note != tt.found.Note || got.Resolved.IsZero() || string(got.Record.Invoice) != string(tt.found.Invoice)) {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// That an order is not found proves nothing about a request that can still arrive: what counts is when it was looked up, by the
// clock of the database, and after a crash the end of the lease.
func TestResolve_early(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		check(t, g.begins(t.Context(), order))
		none := gateway.Finding{By: "anna", Margin: time.Minute}
		wantError(t, g.Resolve(t.Context(), g.order(t, order), none), gateway.ErrNotUnknown)
		other := w.guard(t)
		execute(t, g.db, fmt.Sprintf(`UPDATE %s SET lease_until = lease_until - %d`, g.sql.table, defaultLease.Microseconds()))
		seen := other.order(t, order)
		wantError(t, other.Resolve(t.Context(), seen, none), gateway.ErrTooEarly)
		execute(t, g.db, fmt.Sprintf(`UPDATE %s SET lease_until = lease_until - %d`, g.sql.table, time.Minute.Microseconds()))
		wantError(t, other.Resolve(t.Context(), gateway.OrderStatus{OrderID: order, State: gateway.OrderUnknown}, none), gateway.ErrTriedAgain) // it has no attempt
		check(t, other.Resolve(t.Context(), other.order(t, order), none))
	})
}

// A finding about an order of the database before it was restored is refused.
func TestResolve_restored(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		g.once(t, order, gateway.OutcomeUnknown)
		seen := g.order(t, order)
		token, err := ParseToken(Token(seen))
		check(t, err)
		execute(t, g.db, "DELETE FROM "+g.sql.table)
		g.once(t, order, gateway.OutcomeUnknown)
		for _, o := range []gateway.OrderStatus{seen, token} {
			wantError(t, g.Resolve(t.Context(), o, gateway.Finding{By: "anna", Exists: true}), gateway.ErrTriedAgain)
		}
		g.wantState(t, gateway.OrderUnknown, 1)
	})
}

// If the attempts of an order had different requests, it is not known which of them its invoice is for.
func TestResolve_differentRequests(t *testing.T) {
	w := newSQLite(t)
	g := w.guard(t)
	g.once(t, order, gateway.OutcomeUnknown)
	o := orderOf(order)
	o.Resubmit, o.Request.Price = true, decimal.New(11, 0)
	check(t, granted(&o)(g.Begin(t.Context(), o)))
	check(t, recorded(g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Request: o.Request})))
	check(t, g.Resolve(t.Context(), g.order(t, order), gateway.Finding{By: "anna", Exists: true}))
	if got := g.order(t, order); got.Record.Request.OrderID != "" || got.Record.Outcome != gateway.OutcomeSucceeded {
		t.Errorf("%+v", got)
	}
}

// The record of an order has at most 1 MiB: what can be missed most gives way, and the last evidence stays.
func TestRecord_bound(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		for i := range 20 {
			o := orderOf(order)
			o.Resubmit = true
			check(t, granted(&o)(g.Begin(t.Context(), o)))
			check(t, recorded(g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Request: o.Request, Cause: fmt.Sprint(i), Body: make([]byte, 64<<10)})))
		}
		got := g.order(t, order)
		if got.Record.Cause != "19" || len(got.Record.Body) != 64<<10 || got.Attempts != 20 || len(got.Earlier) != 19 || got.Earlier[0].Cause != "0" {
			t.Errorf("%d attempts, %d earlier, last %q of %d bytes", got.Attempts, len(got.Earlier), got.Record.Cause, len(got.Record.Body))
		}
		for i := range 20 {
			check(t, recorded(g.End(t.Context(), orderOf(order), gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Invoice: fmt.Appendf(nil, `{"id":%d,"x":%q}`, i, strings.Repeat("x", 60<<10))})))
		}
		if got := g.order(t, order); got.State != gateway.OrderCreated || !strings.HasPrefix(string(got.Record.Invoice), `{"id":0,`) || !strings.HasPrefix(string(got.Record.Others[len(got.Record.Others)-1]), `{"id":19,`) {
			t.Errorf("%.20s, %d others", got.Record.Invoice, len(got.Record.Others))
		}
	})
}
