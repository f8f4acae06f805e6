package sqlguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cryptogw/gateway"
)

// A lookup is a Resolver that is a function.
type lookup func(ctx context.Context, unknown []Order) ([]Finding, error)

func (l lookup) Resolve(ctx context.Context, unknown []Order) ([]Finding, error) {
	return l(ctx, unknown)
}

// unknownOrders makes orders that are unknown, the first one longest.
func (w testDB) unknownOrders(t *testing.T, g *Guard, ids ...string) {
	t.Helper()
	for _, id := range ids {
		g.once(t, id, gateway.OutcomeUnknown)
		w.growOld(t, g.db, time.Hour)
	}
}

// about returns a finding about an order.
func about(o Order, r Resolution) []Finding { return []Finding{{o, r}} }

var findings = []struct {
	name    string
	find    func(g *Guard, o Order) []Finding
	state   State
	refused string // a part of the error, empty if it is applied
}{
	{"it exists", func(_ *Guard, o Order) []Finding { return about(o, Resolution{Exists: true}) }, StateCreated, ""},
	{"it does not exist", func(_ *Guard, o Order) []Finding { return about(o, Resolution{}) }, StateFree, ""},
	{"the same twice", func(_ *Guard, o Order) []Finding { return append(about(o, Resolution{}), about(o, Resolution{})...) }, StateFree, ""},
	{"both", func(_ *Guard, o Order) []Finding {
		return append(about(o, Resolution{Exists: true}), about(o, Resolution{})...)
	}, StateUnknown, "2 findings about it, and they differ"},
	{"of two notes", func(_ *Guard, o Order) []Finding {
		return append(about(o, Resolution{Note: "1"}), about(o, Resolution{Note: "2"})...)
	}, StateUnknown, "they differ"},
	{"with an invoice that is no JSON", func(_ *Guard, o Order) []Finding { return about(o, Resolution{Exists: true, Invoice: []byte("{")}) }, StateUnknown, "must be JSON"},
	{"it does not exist, with an invoice", func(_ *Guard, o Order) []Finding { return about(o, Resolution{Invoice: []byte("{}")}) }, StateUnknown, "without Exists"},
	{"with a note that no database stores", func(_ *Guard, o Order) []Finding { return about(o, Resolution{Note: "a\x00"}) }, StateUnknown, "without NUL"},
	{"by a name of spaces", func(_ *Guard, o Order) []Finding { return about(o, Resolution{By: " "}) }, StateUnknown, "is required"},
	{"an order of another merchant", func(_ *Guard, o Order) []Finding { o.Merchant = "b"; return about(o, Resolution{}) }, StateUnknown, "was not passed"},
	{"an order without its attempts", func(_ *Guard, o Order) []Finding { return about(Order{ID: o.ID}, Resolution{}) }, StateUnknown, "return the Order as it was passed"},
	{"an order that is sent again meanwhile", func(g *Guard, o Order) []Finding {
		_ = g.resubmits(context.Background(), o.ID)
		_ = g.ends(context.Background(), o.ID, gateway.OutcomeUnknown)
		return about(o, Resolution{})
	}, StateUnknown, "was sent again"},
	{"an order that a person resolves meanwhile", func(g *Guard, o Order) []Finding {
		_ = g.Resolve(context.Background(), o, Resolution{By: "anna", Exists: true})
		return about(o, Resolution{})
	}, StateCreated, "it is created"},
}

func TestGuard_ResolvePending_findings(t *testing.T) {
	for _, tt := range findings {
		t.Run(tt.name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, w testDB) {
				g := w.guard(t)
				w.unknownOrders(t, g, order, "another")
				report, err := g.ResolvePending(t.Context(), lookup(func(_ context.Context, unknown []Order) ([]Finding, error) {
					return append(tt.find(g, unknown[0]), Finding{unknown[1], Resolution{Exists: true, By: "its operator"}}), nil
				}), ResolveOptions{By: "resolver:test"})
				check(t, err)
				g.wantState(t, tt.state)
				refused := errors.Join(report.Refused...)
				if report.Asked != 2 || len(report.Refused) > 1 || tt.refused == "" != (refused == nil) || refused != nil && !strings.Contains(refused.Error(), tt.refused) {
					t.Errorf("%+v, want refused: %s", report, tt.refused)
				}
				last := report.Resolved[len(report.Resolved)-1]
				if o, err := g.Order(t.Context(), "", "another"); err != nil || o.Resolution.By != "its operator" || last.Order.ID != o.ID {
					t.Errorf("%+v, %v, %+v", o, err, report.Resolved)
				}
				if first := report.Resolved[0]; tt.refused == "" && (first.Order.ID != order || first.Resolution.By != "resolver:test") {
					t.Errorf("%+v", report.Resolved)
				}
			})
		})
	}
}

// A finding that none exists is refused while the request may be on its way.
func TestGuard_ResolvePending_margin(t *testing.T) {
	for _, tt := range []struct {
		name    string
		state   string // of the window
		ago     time.Duration
		margin  time.Duration
		exists  bool
		refused bool
	}{
		{"it was sent 14 minutes ago", "unknown", 14 * time.Minute, 0, false, true},
		{"it was sent 14 minutes ago, and exists", "unknown", 14 * time.Minute, 0, true, false},
		{"it was sent 20 minutes ago", "unknown", 20 * time.Minute, 0, false, false},
		{"it was sent 20 minutes ago, and the margin is an hour", "unknown", 20 * time.Minute, time.Hour, false, true},
		{"it was sent 3 minutes ago, and the margin is a minute", "unknown", 3 * time.Minute, time.Minute, false, false},
		{"its process crashed, and its lease ended 14 minutes ago", "crashed", 19 * time.Minute, 0, false, true},
		{"its process crashed, and its lease ended 20 minutes ago", "crashed", 25 * time.Minute, 0, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, w testDB) {
				d := newWindow(t, w, w.guard(t).db)
				d.addOne(t, order, tt.state, time.Now().Add(-tt.ago))
				report, err := d.ResolvePending(t.Context(), lookup(func(_ context.Context, unknown []Order) ([]Finding, error) {
					return about(unknown[0], Resolution{Exists: tt.exists}), nil
				}), ResolveOptions{By: "resolver:test", Margin: tt.margin})
				check(t, err)
				want := StateFree
				switch {
				case tt.refused:
					want = StateUnknown
				case tt.exists:
					want = StateCreated
				}
				d.wantState(t, want)
				if refused := errors.Join(report.Refused...); tt.refused != (refused != nil) || refused != nil && !strings.Contains(refused.Error(), "accepted of lookups from 20") {
					t.Error(refused)
				}
			})
		})
	}
}

// What it does not know about the first page, and what fails there, does not hide the second.
func TestGuard_ResolvePending_pages(t *testing.T) {
	for name, first := range map[string]error{"finds nothing": nil, "fails": errors.New("the ledger is closed")} {
		t.Run("the first page "+name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, w testDB) {
				g := w.guard(t)
				w.unknownOrders(t, g, "1", "2", "3", "4", "5")
				var pages []string
				report, err := g.ResolvePending(t.Context(), lookup(func(_ context.Context, unknown []Order) (found []Finding, err error) {
					page := ""
					for _, o := range unknown {
						page += o.ID
						found = append(found, Finding{o, Resolution{Exists: true}})
					}
					if pages = append(pages, page); len(pages) == 1 {
						return found[:0], first
					}
					clear(unknown) // are its own
					return found, nil
				}), ResolveOptions{By: "resolver:test", Batch: 2})
				if !errors.Is(err, first) || fmt.Sprint(pages) != "[12 34 5]" || report.Asked != 5 || len(report.Resolved) != 3 || len(report.Refused) > 0 {
					t.Errorf("%v, %v, %+v", err, pages, report)
				}
			})
		})
	}
}

func TestGuard_ResolvePending_stops_after_ten_failures(t *testing.T) {
	w := newSQLite(t)
	g := w.guard(t)
	for i := range 12 {
		g.once(t, fmt.Sprint(i), gateway.OutcomeUnknown)
	}
	calls, failure := 0, errors.New("the ledger is closed")
	report, err := g.ResolvePending(t.Context(), lookup(func(_ context.Context, unknown []Order) ([]Finding, error) {
		calls++
		return []Finding{{unknown[0], Resolution{}}}, failure // a finding beside an error is none
	}), ResolveOptions{By: "resolver:test", Batch: 1})
	if !errors.Is(err, failure) || calls != 10 || report.Asked != 10 || report.Resolved != nil {
		t.Errorf("%v, %d calls, %+v", err, calls, report)
	}
}

func TestGuard_ResolvePending_refuses(t *testing.T) {
	g := newSQLite(t).guard(t)
	none := lookup(func(context.Context, []Order) ([]Finding, error) { panic("called") })
	for name, tt := range map[string]struct {
		r Resolver
		o ResolveOptions
	}{
		"r":         {nil, ResolveOptions{By: "anna"}},
		"o.By":      {none, ResolveOptions{By: " "}},
		"o.Batch":   {none, ResolveOptions{By: "anna", Batch: -1}},
		"o.Timeout": {none, ResolveOptions{By: "anna", Timeout: -1}},
		"o.Margin":  {none, ResolveOptions{By: "anna", Margin: -1}},
	} {
		_, err := g.ResolvePending(t.Context(), tt.r, tt.o)
		if refusal, ok := errors.AsType[*gateway.ArgumentError](err); !ok || refusal.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each call of a resolver has its Timeout, and its orders are a copy.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders, begun := []Order{{ID: "A-17"}}, time.Now()
		findings, err := ask(t.Context(), lookup(func(ctx context.Context, unknown []Order) ([]Finding, error) {
			unknown[0].ID = "changed"
			<-ctx.Done()
			return []Finding{{}}, ctx.Err()
		}), orders, time.Minute)
		if findings != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Minute || orders[0].ID != "A-17" {
			t.Errorf("%v, %v, after %s, %v", findings, err, time.Since(begun), orders)
		}
	})
}
