package sqlguard

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// What a statement is compared with in TestComparison: orders as "id state minute=price", and rows as
// "id@minute=price state". Each case edits one thing.
const (
	theOrders = "A-1 created 100=5, A-2 created 110=6, A-3 unknown 120=7, A-4 created 150=8, A-5 created 160=9"
	theRows   = "A-1@100=5 New, A-2@110=6 Paid, A-3@120=7 New, A-4@150=8 New, A-5@160=9 Paid"
)

const (
	noRow   = "A-3@120=7 New, " // to be left out
	isThere = "A-3 unknown: it exists"
	isNot   = "A-3 unknown: it does not exist"
)

// A conclusion is what a comparison says of A-3, after edits of the orders and of the rows.
type conclusion struct {
	name  string
	edits []string // pairs of a text and what takes its place
	o     ReconcileOptions
	want  string // the class, or the beginning of the reason why it is undecided
}

var conclusions = []conclusion{
	{"one row has its id, its amount and its time", nil, told, isThere},
	{"the row has no time, amount or state", []string{"A-3@120=7 New", "A-3@"}, told, isThere},
	{"nobody has said what is untouched", nil, ReconcileOptions{}, isThere},
	{"the row has another amount", []string{"@120=7", "@120=7.5"}, told, "A-3 another amount"},
	{"the row has an equal amount with other digits", []string{"@120=7", "@120=7.00"}, told, isThere},
	{"the row is of another time", []string{"@120=7", "@136=7"}, told, "row 4 is of 2026-10-01T02:16:00Z, and the order was sent from 2026-10-01T02:00:00Z until"},
	{"the row is late by the margin", []string{"@120=7", "@135=7"}, told, isThere},
	{"it has two rows", []string{"A-4@150=8 New", "A-4@150=8 New, A-3@121=7 New"}, told, "A-3 twice at the gateway"},
	{"its row cannot be read whole", []string{"A-3@120=7 New", "A-3@120=7 !"}, told, "row 4 names it, and cannot be read whole: a fault"},
	{"the amounts of most created orders are others", []string{"=5 New", "=15 New", "=6 Paid", "=16 Paid"}, told, "of 2 created orders the amount"},
	{"its row may be of a created order with a longer id, which has none", []string{"A-4 created 150=8", "A-4 created 150=8, A-30 created 119=7"}, told, `row 4 may be of the order "A-30"`},
	{"its row may be of a free order with a longer id", []string{"A-4 created 150=8", "A-4 created 150=8, A-30 free 119=7"}, told, `row 4 may be of the order "A-30"`},
	{"its row may be of an order in flight with a longer id", []string{"A-4 created 150=8", "A-4 created 150=8, A-30 in-flight 119=7"}, told, `row 4 may be of the order "A-30"`},
	{"its row may be of an unknown order with a longer id", []string{"A-4 created 150=8", "A-4 created 150=8, A-30 unknown 119=7"}, told, `row 4 may be of the order "A-30"`},
	{"its row may be of an order that ends with its id", []string{"A-4 created 150=8", "A-4 created 150=8, X-A-3 created 119=7"}, told, `row 4 may be of the order "X-A-3"`},
	{"its row may be of an order with zeros", []string{"A-4 created 150=8", "A-4 created 150=8, A-03 created 119=7"}, told, `row 4 may be of the order "A-03"`},
	{"the order with a longer id has a row", []string{"A-4 created 150=8", "A-4 created 150=8, A-30 created 119=7", "A-4@150=8 New", "A-4@150=8 New, A-30@119=7 Paid"}, told, isThere},
	{"the order with a longer id has a row that contradicts it", []string{"A-4 created 150=8", "A-4 created 150=8, A-30 created 119=7", "A-4@150=8 New", "A-4@150=8 New, A-30@119=9 Paid"}, told, `row 4 may be of the order "A-30"`},
	{"the order with a longer id has a row that cannot be read whole", []string{"A-4 created 150=8", "A-4 created 150=8, A-30 created 119=7", "A-4@150=8 New", "A-4@150=8 New, A-30@119=7 !"}, told, `row 4 may be of the order "A-30"`},
	{"an order with a longer id was sent twice, at an unknown time first", []string{"A-4 created 150=8", "A-4 created 150=8, A-30 again 300=7"}, told, `row 4 may be of the order "A-30"`},
	{"the order with a longer id has another amount", []string{"A-4 created 150=8", "A-4 created 150=8, A-30 created 119=8"}, told, isThere},
	{"the order with a longer id is of another time", []string{"A-4 created 150=8", "A-4 created 150=8, A-30 created 300=7"}, told, isThere},

	{"no row has its id, and all that is needed is there", []string{noRow, ""}, told, isNot},
	{"no states, and unpaid invoices are included", []string{noRow, "", " New", "", " Paid", ""}, ReconcileOptions{UnpaidIncluded: true}, isNot},
	{"no states, and nobody has said that unpaid invoices are included", []string{noRow, "", " New", "", " Paid", ""}, ReconcileOptions{}, "the statement has no states"},
	{"nobody has said which states are untouched", []string{noRow, ""}, ReconcileOptions{}, "nobody has said which states"},
	{"another state is untouched", []string{noRow, ""}, ReconcileOptions{Untouched: []string{"new"}}, "the statement has no known order that no payment has touched"},
	{"no untouched row is before it", []string{noRow, "", "@100=5 New", "@100=5 Paid"}, told, "the statement has no known order that no payment has touched"},
	{"no untouched row is after it", []string{noRow, "", "@150=8 New", "@150=8 Paid"}, told, "the statement has no known order that no payment has touched"},
	{"every row is untouched", []string{noRow, "", " Paid", " Expired"}, told, "the statement has no known order of another state"},
	{"the untouched row before it is more than a day away", []string{noRow, "", "A-3 unknown 120=7, A-4 created 150=8", "A-3 unknown 1600=7, A-4 created 1620=8, A-5 created 1580=8", "A-5 created 160=9", "A-6 created 1630=1", "A-4@150=8", "A-4@1620=8", "A-5@160=9", "A-5@1580=8", "@110=6 Paid", "@110=6 Paid, A-6@1630=1 Paid"}, told, "the statement has no known order that no payment has touched"},
	{"no order is known before it", []string{noRow, "", "A-1 created 100=5, A-2 created 110=6, ", "", "A-1@100=5 New, A-2@110=6 Paid, ", ""}, told, "nothing shows that the statement has the orders around it"},
	{"no order is known after it", []string{noRow, "", ", A-4 created 150=8, A-5 created 160=9", "", "A-4@150=8 New, A-5@160=9 Paid", "A-1x@500=1 New"}, told, "nothing shows that the statement has the orders around it"},
	{"the order after it is within the margin", []string{noRow, "", "A-3 unknown 120=7", "A-3 unknown 146=7"}, told, "nothing shows that the statement has the orders around it"},
	{"the orders around it are an hour apart", []string{noRow, "", "A-4 created 150=8", "A-4 created 166=8", "A-4@150=8", "A-4@166=8", "A-5 created 160=9", "A-5 created 170=9", "A-5@160=9", "A-5@170=9"}, told, "nothing shows that the statement has the orders around it"},
	{"the process died, so that it can have been sent for longer", []string{noRow, "", "A-3 unknown", "A-3 crashed", "A-4 created 150=8", "A-4 created 168=8", "A-4@150=8", "A-4@168=8", "A-5 created 160=9", "A-5 created 170=9", "A-5@160=9", "A-5@170=9"}, told, isNot},
	{"the orders before it were sent twice", []string{noRow, "", "A-1 created", "A-1 again", "A-2 created", "A-2 again"}, told, "nothing shows that the statement has the orders around it"},
	{"rows of another state have none", []string{noRow, "", " Paid", ""}, told, "the statement has no known order of another state"},
	{"an order between them exists", []string{noRow, "A-7@140=1 New, ", "A-4 created 150=8", "A-4 created 170=8, A-7 unknown 140=1", "A-4@150=8", "A-4@170=8", "A-5 created 160=9", "A-5 created 175=9", "A-5@160=9", "A-5@175=9"}, told, isNot},
	{"a created order is missing", []string{noRow, "", "A-4@150=8 New, ", ""}, told, `the statement is not whole: the order "A-4"`},
	{"a created order that was sent twice, and has a success, is missing", []string{noRow, "", "A-1 created", "A-0 again 90=1, A-1 created"}, told, `the statement is not whole: the order "A-0"`},
	{"the times are of another zone", []string{noRow, "", "@100=", "@160=", "@110=", "@170=", "@150=", "@210=", "A-5@160=9", "A-5@220=9"}, told, "row 2, of the order"},
	{"one time is another", []string{noRow, "", "@110=6", "@190=6"}, told, "row 3, of the order"},
	{"a row has no time", []string{noRow, "", "@110=6", "@"}, told, "row 3 has no time of creation"},
	{"two amounts are others", []string{noRow, "", "=5 New", "=15 New", "=6 Paid", "=16 Paid"}, told, "of 2 created orders the amount"},
	{"two orders have two rows without invoices", []string{noRow, "", "A-5@160=9 Paid", "A-5@160=9 Paid -, A-5@161=9 Paid -"}, told, "the statement has two rows of an order without the identifiers"},
	{"two created orders have a second row that cannot be read whole", []string{noRow, "", "A-5@160=9 Paid", "A-5@160=9 Paid, A-5@300 !, A-4@300 !"}, told, "nothing shows that the statement has the orders around it"},
	{"every row has a shorter id", []string{noRow, "", "A-3 unknown", "A-3456 unknown"}, told, "every row has a shorter id"},
	{"it was sent within the margin of the beginning", []string{noRow, "", "A-3 unknown 120=7", "A-3 unknown 14=7"}, told, "it was sent from 2026-10-01T00:14:00Z until"},
	{"a first attempt was sent before the beginning", []string{noRow, "", "A-3 unknown 120=7", "A-3 late 120=7"}, told, "it was sent from 2026-10-01T00:00:00Z until"},
	{"a row has an id that a spreadsheet made of its own", []string{"A-3@120=7 New", "a-03@120=7 New"}, told, `row 4 has the id "a-03"`},
	{"a row of another time has an id that a spreadsheet made of its own", []string{"A-3@120=7 New, A-4@150=8 New", "a-03@170=7 New, A-4@150=8 New"}, told, isNot},
	{"a row of its time is of an order that the table does not have", []string{"A-3@120=7 New", "Z@120=1 New"}, told, `row 4, of the order "Z", may be of it`},
	{"a row of its time is of a free order", []string{"A-3@120=7 New", "Z@120=1 New", "A-4 created", "Z free 120=1, A-4 created"}, told, `row 4, of the order "Z", may be of it`},
	{"a row of another time is of an order that the table does not have", []string{"A-3@120=7 New", "Z@220=7 New"}, told, isNot},
	{"a row of its time names no order", []string{"A-3@120=7 New", "@120=1 New"}, told, "row 4, which names no order, may be of it"},
	{"a row of another time names no order", []string{"A-3@120=7 New", "@220=7 New"}, told, isNot},
	{"a row of its time cannot be read", []string{"A-3@120=7 New", "Z@120=1 !"}, told, "row 4 may be of it: it cannot be read whole: a fault"},
	{"a row of its amount and without time cannot be read", []string{"A-3@120=7 New", "Z@=7 !"}, told, "row 4 may be of it"},
	{"a row of which nothing can be read", []string{"A-3@120=7 New", "@ !"}, told, "row 4 may be of it"},
	{"a row of another amount and without time cannot be read", []string{"A-3@120=7 New", "Z@=8 !"}, told, isNot},
	{"a row of another time cannot be read", []string{"A-3@120=7 New", "Z@220=7 !"}, told, isNot},
	{"the row of a created order cannot be read whole", []string{noRow, "", "A-5@160=9 Paid", "A-5@160=9 Paid, A-6@200=1 !", "A-5 created 160=9", "A-5 created 160=9, A-6 created 200=1"}, told, isNot},
}

// TestComparison tells the rules, one by one.
func TestComparison(t *testing.T) {
	t.Parallel()
	for _, tt := range conclusions {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			edit := func(text string) string {
				for i := 0; i < len(tt.edits); i += 2 {
					text = strings.ReplaceAll(text, tt.edits[i], tt.edits[i+1])
				}
				return text
			}
			if orders, rows := edit(theOrders), edit(theRows); len(tt.edits) > 0 && orders == theOrders && rows == theRows {
				t.Fatal("the edits change nothing")
			}
			if got := concluded(t, edit(theOrders), edit(theRows), tt.o); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// A statement that need not have all invoices of a time decides nothing about those that it does not have.
func TestComparison_times(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(s *Statement, m *month)
		want   string
	}{
		"no times":               {func(s *Statement, _ *month) { s.From, s.Until = time.Time{}, time.Time{} }, "the statement does not say from when until when it is complete"},
		"Until is in the future": {func(s *Statement, m *month) { s.Until = m.began.AddDate(0, 0, m.days+2) }, "Until is in the future"},
		"Until is too early":     {func(s *Statement, m *month) { s.Until = m.began.Add(130 * time.Minute) }, "it was sent from"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := monthOf(t, theOrders)
			s := m.statement(m.rowsOf(t, strings.ReplaceAll(theRows, noRow, "")))
			tt.change(&s, m)
			if got := toldOf(m.compared(t, s, told)); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// A statement of another merchant is refused.
func TestComparison_refuses(t *testing.T) {
	t.Parallel()
	c := newComparison(Statement{}, ReconcileOptions{}, time.Time{})
	for range mostDifferences {
		check(t, c.addOther(Order{ID: "A-1", State: StateCreated, Attempts: 1}))
		c.few++
	}
	r := StatementRow{Number: 1, OrderID: "A-2"}
	c.byOrder, c.seen = []*StatementRow{&r}, []bool{false}
	if err := c.addOther(Order{ID: "A-2", State: StateFree}); !errors.Is(err, gateway.ErrInvalidArgument) {
		t.Error(err)
	}
}

func concluded(t *testing.T, orders, rows string, o ReconcileOptions) string {
	t.Helper()
	m := monthOf(t, orders)
	return toldOf(m.compared(t, m.statement(m.rowsOf(t, rows)), o))
}

// toldOf is what a Reconciliation says of A-3.
func toldOf(r Reconciliation) string {
	for _, u := range r.Undecided {
		if strings.HasPrefix(u.Order.ID, "A-3") && u.Order.ID != "A-30" {
			return u.Reason
		}
	}
	for _, d := range r.Differences {
		if d.OrderID == "A-3" {
			return d.OrderID + " " + string(d.Class)
		}
	}
	return "nothing"
}

// monthOf has the orders of a text, each of which took a second.
func monthOf(t *testing.T, orders string) *month {
	t.Helper()
	m := &month{days: 20, began: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)}
	for text := range strings.SplitSeq(orders, ", ") {
		text, price, _ := strings.Cut(text, "=")
		fields := strings.Fields(text)
		at := m.minute(t, fields[2])
		o := Order{
			ID: fields[0], Attempts: 1, Begun: at, SentUntil: at.Add(time.Second), Outcome: gateway.OutcomeSucceeded,
			Record: gateway.OrderRecord{Request: gateway.InvoiceRequest{OrderID: fields[0], Price: decimal.RequireFromString(price)}, SentAt: at},
		}
		switch o.State = State(strings.ReplaceAll(fields[1], "-", " ")); fields[1] {
		case "again":
			o.State, o.Attempts, o.Created = StateCreated, 2, at.Add(time.Second)
		case "created":
			o.Created = at.Add(time.Second)
		case "crashed":
			o.State, o.Since, o.SentUntil = StateUnknown, at, at.Add(5*time.Minute)
		case "late":
			o.State, o.Since, o.Attempts = StateUnknown, at, 2
			o.Earlier = []gateway.OrderRecord{{SentAt: m.began}}
		case "unknown":
			o.Since = at
		}
		m.table = append(m.table, o)
	}
	return m
}

func (m *month) minute(t *testing.T, text string) time.Time {
	t.Helper()
	minute, err := strconv.Atoi(text)
	check(t, err)
	return m.began.Add(time.Duration(minute) * time.Minute)
}

// rowsOf are those of a text. One with "!" cannot be read whole, and one with "-" has no InvoiceID.
func (m *month) rowsOf(t *testing.T, text string) (rows []StatementRow) {
	t.Helper()
	for i, text := range strings.Split(text, ", ") {
		text, state, _ := strings.Cut(text, " ")
		text, price, hasPrice := strings.Cut(text, "=")
		id, minute, _ := strings.Cut(text, "@")
		r := StatementRow{Number: i + 2, OrderID: id, InvoiceID: fmt.Sprint("i-", i), State: state}
		if hasPrice {
			r.Price = decimal.NewNullDecimal(decimal.RequireFromString(price))
		}
		if minute != "" {
			r.CreatedAt = m.minute(t, minute)
		}
		if state == "!" {
			r.State, r.Fault = "", "a fault"
		}
		if state, without := strings.CutSuffix(state, " -"); without {
			r.State, r.InvoiceID = state, ""
		}
		rows = append(rows, r)
	}
	return rows
}
