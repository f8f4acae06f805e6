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

// past makes an order, and moves its times to minutes after a time.
func (g *Guard) past(t *testing.T, began time.Time, id, state string, minute int) {
	t.Helper()
	check(t, g.begins(t.Context(), id))
	if state != "crashed" {
		check(t, g.ends(t.Context(), id, map[string]gateway.Outcome{"created": gateway.OutcomeSucceeded, "free": gateway.OutcomeRejected}[state]))
	}
	at := began.Add(time.Duration(minute) * time.Minute).UnixMicro()
	execute(t, g.db, fmt.Sprintf(`UPDATE %s SET begun_at = %d, lease_until = %d, ended_at = %[3]d,
		created_at = CASE WHEN created_at > 0 THEN %[3]d ELSE 0 END, open_since = CASE WHEN open_since > 0 THEN %[2]d ELSE 0 END WHERE order_id = '%[4]s'`,
		g.sql.table, at, at+time.Second.Microseconds(), id))
}

// rowAt is one of an invoice for the amounts that most tests have.
func rowAt(number int, id string, at time.Time, state string) StatementRow {
	price := decimal.NewNullDecimal(invoice.Price)
	return StatementRow{Number: number, OrderID: id, InvoiceID: fmt.Sprint("i-", number), CreatedAt: at, Price: price, Amount: price, State: state, Invoice: json.RawMessage(fmt.Sprintf(`{"id":"i-%d"}`, number))}
}

// Reconcile says how a statement and the table differ, and with Apply ends the orders of which it is sure.
func TestReconcile(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		began := time.Now().Add(-48 * time.Hour)
		for i, text := range strings.Split("N-1 created, P-1 created, Exists unknown, Absent crashed, Cut unknown, Cut-17 created, N-2 created, P-2 created, Lost created, Twice unknown, Free free", ", ") {
			id, state, _ := strings.Cut(text, " ")
			minute := 100 + i
			if i >= 6 {
				minute += 15
			}
			g.past(t, began, id, state, minute)
		}
		at := func(minute int) time.Time { return began.Add(time.Duration(minute) * time.Minute) }
		s := Statement{From: began, Until: began.Add(24 * time.Hour), Rows: []StatementRow{
			rowAt(2, "N-1", at(100), "New"), rowAt(3, "P-1", at(101), "Paid"), rowAt(4, "Exists", at(102), "New"), rowAt(5, "Cut", at(105), "New"),
			rowAt(6, "N-2", at(121), "New"), rowAt(7, "P-2", at(122), "Paid"), rowAt(8, "Twice", at(124), "New"), rowAt(9, "Twice", at(124), "New"), rowAt(10, "Free", at(125), "Paid"), rowAt(11, "Nobody", at(900), "New"),
		}}
		o := ReconcileOptions{Untouched: []string{"New"}, Apply: true, By: "anna"}
		want := func(s Statement, o ReconcileOptions, want string) Reconciliation {
			t.Helper()
			r, err := g.Reconcile(t.Context(), s, o)
			check(t, err)
			if got := textOf(r); got != strings.TrimSpace(want) {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			return r
		}
		const others = `Cut-17 created: it is missing at the gateway
Lost created: it is missing at the gateway
Twice twice at the gateway
Free only at the gateway
Nobody only at the gateway
`
		want(s, ReconcileOptions{}, "Exists unknown: it exists\n"+others+`Absent undecided: the statement is not whole: the order "Cut-17", whic
Cut undecided: row 5 may be of the order "Cut-17", which has no row`)
		s.Rows = append(s.Rows, rowAt(12, "Cut-17", at(105), "Paid"), rowAt(13, "Lost", at(123), "New"))
		g.past(t, began, "Again", "unknown", 103)
		r := want(s, ReconcileOptions{Untouched: o.Untouched}, `Cut unknown: it exists
Exists unknown: it exists
Absent unknown: it does not exist
Again unknown: it does not exist
`+others[strings.Index(others, "Twice"):])
		for _, d := range r.Differences {
			if d.Ended || d.Err != nil || len(d.Order.Record.Body) > 0 {
				t.Errorf("%+v", d)
			}
		}
		r = want(s, o, `Cut unknown: it exists, ended
Exists unknown: it exists, ended
Absent unknown: it does not exist, ended
Again unknown: it does not exist, ended
`+others[strings.Index(others, "Twice"):])
		order, err := g.Order(t.Context(), "", "Exists")
		if err != nil || order.State != StateCreated || string(order.Record.Invoice) != `{"id":"i-4"}` || order.Resolution.By != "anna" || order.Resolution.Note != `row 4 of a statement, invoice "i-4"` {
			t.Errorf("%+v, %v", order, err)
		}
		order, err = g.Order(t.Context(), "", "Absent")
		if err != nil || order.State != StateFree || !strings.HasSuffix(order.Resolution.Note, `, in which ["New"] are untouched, it was said`) {
			t.Errorf("%+v, %v", order, err)
		}
		if err := g.Resolve(t.Context(), r.Differences[0].Order, Resolution{By: "bob", Exists: true}); !errors.Is(err, ErrNotUnknown) {
			t.Error(err)
		}
	})
}

// textOf is a Reconciliation in lines, the reasons cut.
func textOf(r Reconciliation) string {
	var all []string
	for _, d := range r.Differences {
		text := d.OrderID + " " + string(d.Class)
		if d.Ended {
			text += ", ended"
		}
		all = append(all, text)
	}
	for _, u := range r.Undecided {
		all = append(all, fmt.Sprintf("%s undecided: %.52s", u.Order.ID, u.Reason))
	}
	return strings.Join(all, "\n")
}

// An order that was sent again after it was read stays as it is.
func TestReconcile_sentAgain(t *testing.T) {
	w := newSQLite(t)
	g := w.guard(t)
	check(t, errors.Join(g.begins(t.Context(), order), g.ends(t.Context(), order, gateway.OutcomeUnknown)))
	c, err := g.compare(t.Context(), Statement{Rows: []StatementRow{{Number: 1, OrderID: order}}}, ReconcileOptions{})
	check(t, err)
	r := c.judged()
	check(t, errors.Join(g.resubmits(t.Context(), order), g.ends(t.Context(), order, gateway.OutcomeUnknown)))
	check(t, g.applyDifferences(t.Context(), c.s, r.Differences, ReconcileOptions{By: "anna"}))
	if len(r.Differences) != 1 || r.Differences[0].Ended || !errors.Is(r.Differences[0].Err, ErrTriedAgain) {
		t.Errorf("%+v", r.Differences)
	}
}

// The orders of other merchants are of no statement.
func TestReconcile_merchants(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t, WithMerchants())
		for _, merchant := range []string{"a", "b"} {
			o := orderOf(order)
			o.Merchant = merchant
			check(t, granted(g.Begin(t.Context(), o)))
			check(t, recorded(g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Request: o.Request})))
		}
		_, err := g.Reconcile(t.Context(), Statement{Merchant: "b", Rows: []StatementRow{{Number: 1, OrderID: order}}}, ReconcileOptions{Apply: true, By: "anna"})
		check(t, err)
		a, err1 := g.Order(t.Context(), "a", order)
		b, err2 := g.Order(t.Context(), "b", order)
		if errors.Join(err1, err2) != nil || a.State != StateUnknown || b.State != StateCreated {
			t.Errorf("%s, %s, %v, %v", a.State, b.State, err1, err2)
		}
	})
}

// Arguments are refused before anything is read.
func TestReconcile_refuses(t *testing.T) {
	t.Parallel()
	now := time.Now()
	huge := decimal.NewNullDecimal(decimal.New(1, 10_000_000))
	for name, tt := range map[string]struct {
		s    Statement
		o    ReconcileOptions
		want string
	}{
		"a margin below zero":         {Statement{}, ReconcileOptions{Margin: -1}, "o.Margin: must not be negative"},
		"Apply without By":            {Statement{}, ReconcileOptions{Apply: true}, "o.By: is required"},
		"an empty state":              {Statement{}, ReconcileOptions{Untouched: []string{""}}, "o.Untouched: must not have an empty state"},
		"states without end":          {Statement{}, ReconcileOptions{Untouched: []string{strings.Repeat("x", 5000)}}, "o.Untouched: must have at most 4 KiB"},
		"UnpaidIncluded with states":  {Statement{Rows: []StatementRow{{Number: 1, State: "New"}}}, ReconcileOptions{UnpaidIncluded: true}, "o.UnpaidIncluded: is for a statement without states"},
		"From without Until":          {Statement{From: now}, ReconcileOptions{}, "s: has one of From and Until"},
		"Until before From":           {Statement{From: now, Until: now}, ReconcileOptions{}, "s.Until: must be after From"},
		"too many rows":               {Statement{Rows: make([]StatementRow, mostRows+1)}, ReconcileOptions{}, "s.Rows: are more than 1,000,000"},
		"a row without a number":      {Statement{Rows: []StatementRow{{}}}, ReconcileOptions{}, "row 0, at index 0: needs a Number"},
		"a number twice":              {Statement{Rows: []StatementRow{{Number: 1}, {Number: 1}}}, ReconcileOptions{}, "row 1, at index 1: another one has this Number"},
		"an invoice twice":            {Statement{Rows: []StatementRow{{Number: 1, InvoiceID: "i"}, {Number: 2, InvoiceID: "i"}}}, ReconcileOptions{}, "row 2, at index 1: has the InvoiceID of row 1"},
		"an id that cannot be stored": {Statement{Rows: []StatementRow{{Number: 1, OrderID: "a\x00"}}}, ReconcileOptions{}, "has an OrderID that is not valid"},
		"an amount without end":       {Statement{Rows: []StatementRow{{Number: 1, Price: huge}}}, ReconcileOptions{}, "has an amount that no request can have"},
		"an invoice that is not JSON": {Statement{Rows: []StatementRow{{Number: 1, Invoice: json.RawMessage("{")}}}, ReconcileOptions{}, "has an Invoice that is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := new(Guard).Reconcile(t.Context(), tt.s, tt.o)
			if !errors.Is(err, gateway.ErrInvalidArgument) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}
