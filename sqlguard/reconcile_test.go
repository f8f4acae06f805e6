package sqlguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// A window is a table and a statement, of a time that is over. Its times are minutes since it began: the
// statement is of the first 600, without the margin.
type window struct {
	*Guard
	w     testDB
	began time.Time
}

func newWindow(t *testing.T, w testDB, db *sql.DB) *window {
	t.Helper()
	g, err := New(db, WithTable(w.table))
	check(t, err)
	return &window{g, w, time.Now().Add(-48 * time.Hour).UTC().Truncate(time.Hour)}
}

func (d *window) at(minute int) time.Time { return d.began.Add(time.Duration(minute) * time.Minute) }

// add makes orders as "id state minute, …" has them, each of which took a second.
func (d *window) add(t *testing.T, orders string) {
	t.Helper()
	for text := range strings.SplitSeq(orders, ", ") {
		id, rest, _ := strings.Cut(text, " ")
		state, minute, _ := strings.Cut(rest, " ")
		at, err := strconv.Atoi(minute)
		check(t, err)
		d.addOne(t, id, state, d.at(at))
	}
}

func (d *window) addOne(t *testing.T, id, state string, at time.Time) {
	t.Helper()
	ctx := t.Context()
	lease := at.Add(5 * time.Minute)
	check(t, d.begins(ctx, id))
	switch state {
	case "created":
		check(t, d.ends(ctx, id, gateway.OutcomeSucceeded))
	case "free":
		check(t, d.ends(ctx, id, gateway.OutcomeRejected))
	case "unknown", "found", "lost":
		check(t, d.ends(ctx, id, gateway.OutcomeUnknown))
	case "tried-again", "found-again", "created-again":
		check(t, d.ends(ctx, id, gateway.OutcomeUnknown))
		check(t, d.resubmits(ctx, id))
		check(t, d.ends(ctx, id, map[string]gateway.Outcome{"created-again": gateway.OutcomeSucceeded}[state]))
	case "in-flight":
		lease = time.Now().Add(time.Hour)
	case "crashed":
	default:
		t.Fatal(state)
	}
	done := d.literal(at.Add(time.Second))
	execute(t, d.db, fmt.Sprintf(`UPDATE %s SET begun_at = %s, lease_until = %s,
		ended_at = CASE WHEN ended_at IS NOT NULL THEN %[4]s END, created_at = CASE WHEN created_at IS NOT NULL THEN %[4]s END,
		unknown_since = CASE WHEN unknown_since IS NOT NULL THEN %[2]s END WHERE order_id = '%[5]s'`, d.w.table, d.literal(at), d.literal(lease), done, strings.ReplaceAll(id, "'", "''")))
	if state == "found" || state == "found-again" || state == "lost" {
		o, err := d.Order(ctx, "", id)
		check(t, errors.Join(err, d.Resolve(ctx, o, Resolution{By: "anna", Exists: state != "lost"})))
		execute(t, d.db, fmt.Sprintf(`UPDATE %s SET created_at = CASE WHEN created_at IS NOT NULL THEN %s END WHERE order_id = '%s'`, d.w.table, done, id))
	}
}

// literal is a time in SQL.
func (d *window) literal(at time.Time) string {
	text := "'" + d.w.dialect.timeText(at) + "'"
	if d.w.dialect == PostgreSQL {
		return "timestamptz " + text
	}
	return text
}

// rows are those of "id@minute=amount, …"; a row may be without time and amount.
func (d *window) rows(t *testing.T, text string) (rows []StatementRow) {
	t.Helper()
	if text == "" {
		return nil
	}
	for i, text := range strings.Split(text, ", ") {
		text, amount, hasAmount := strings.Cut(text, "=")
		id, minute, hasTime := strings.Cut(text, "@")
		r := StatementRow{Number: i + 2, OrderID: id, InvoiceID: fmt.Sprint("invoice-", i), Invoice: json.RawMessage(fmt.Sprintf(`{"row":%d}`, i+2))}
		if hasAmount {
			r.Price = decimal.NewNullDecimal(decimal.RequireFromString(amount))
		}
		if hasTime {
			at, err := strconv.Atoi(minute)
			check(t, err)
			r.CreatedAt = d.at(at)
		}
		rows = append(rows, r)
	}
	return rows
}

func (d *window) statement(t *testing.T, rows string) Statement {
	t.Helper()
	return Statement{From: d.at(0), Until: d.at(600), Rows: d.rows(t, rows)}
}

// told is a Reconciliation in the form of the tables.
func told(r Reconciliation) string {
	var all []string
	for _, d := range r.Differences {
		text := fmt.Sprintf("%s %s", d.OrderID, d.Class)
		for _, r := range d.Rows {
			text += fmt.Sprintf(", row %d", r.Number)
		}
		if d.Ended {
			text += ", ended"
		}
		all = append(all, text)
	}
	for _, u := range r.Undecided {
		all = append(all, fmt.Sprintf("%s undecided: %s", u.Order.ID, u.Reason))
	}
	return strings.Join(all, "\n")
}

// wantTold compares a Reconciliation with lines, of which the last ones are the beginnings of reasons.
func wantTold(t *testing.T, r Reconciliation, want string) {
	t.Helper()
	got, lines := strings.Split(told(r), "\n"), strings.Split(want, "\n")
	for i := range max(len(got), len(lines)) {
		if i >= len(got) || i >= len(lines) || got[i] != lines[i] && !(strings.Contains(lines[i], "undecided") && strings.HasPrefix(got[i], lines[i])) {
			t.Errorf("%s\n\nwant\n\n%s", told(r), want)
			return
		}
	}
}

// The orders and rows of most situations: u is unknown between two orders that are created.
const (
	around     = "c-1 created 60, c-2 created 500, "
	rowsAround = "c-1@60=10.5, c-2@500=10.5"
)

var situations = []struct {
	name   string
	orders string
	rows   string
	edit   func(d *window, s *Statement)
	want   string
}{
	// It exists.
	{"an unknown order has a row", around + "u unknown 300", rowsAround + ", u@300=10.50", nil, "u unknown: it exists, row 4"},
	{"the row has another precision", "u unknown 300", "u@300=10.5000", nil, "u unknown: it exists, row 2"},
	{"the row has no amount and no time", "u unknown 300", "u", nil, "u unknown: it exists, row 2"},
	{"the statement has no times", "u unknown 300", "u", withoutTimes, "u unknown: it exists, row 2"},
	{"the order was begun before the statement", "u unknown -3000", "u", nil, "u unknown: it exists, row 2"},
	{"a process crashed, and the row has its time", "u crashed 300", "u@304=10.5", nil, "u unknown: it exists, row 2"},
	{"the row has the id, a UUID, in the other case", around + "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b unknown 300", rowsAround + ", 8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B@300=10.50", nil, "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b unknown: it exists, row 4"},
	{"the row is of another time", around + "u unknown 300", rowsAround + ", u@400=10.50", nil, "u undecided: row 4 is of "},
	{"two orders have other amounts, and none the same", around + "u unknown 300", "c-1@60=1, c-2@500=2, u@300=10.50", nil, "c-1 another amount, row 2\nc-2 another amount, row 3\nu undecided: of 2 created orders the amount or the time is another"},
	{"two orders have other times, and none the same", around + "u unknown 300", "c-1@120, c-2@560, u@300", nil, "u undecided: of 2 created orders the amount or the time is another"},
	{"an earlier invoice was known, and the row is of its time", around + "u crashed 300", rowsAround + ", u@30=10.50", editing("created_at = ?", 31), "u unknown: it exists, row 4"},
	{"one order has another amount", "c-1 created 60, u unknown 300", "c-1@60=1, u@300=10.50", nil, "u unknown: it exists, row 3\nc-1 another amount, row 2"},

	// Another amount, or two rows.
	{"an unknown order with another amount", around + "u unknown 300", rowsAround + ", u@300=10.49", nil, "u another amount, row 4"},
	{"an unknown order with two rows", around + "u unknown 300", rowsAround + ", u@300, u@301", nil, "u twice at the gateway, row 4, row 5"},
	{"a created order with another amount", around + "u unknown 300", "c-1@60=10.5, c-2@500=10.51, u@300=10.5", nil, "u unknown: it exists, row 4\nc-2 another amount, row 3"},
	{"a created order with two rows", "c-1 created 60", "c-1@60=10.5, c-1@61=10.5", nil, "c-1 twice at the gateway, row 2, row 3"},
	{"an order that is only at the gateway, twice", "c-1 created 60", "c-1@60, x@60, x@61", nil, "x twice at the gateway, row 3, row 4"},

	// It is absent.
	{"an unknown order has no row", around + "u unknown 300", rowsAround, nil, "u unknown: it does not exist"},
	{"the rows have no amount", around + "u unknown 300", "c-1@60, c-2@500", nil, "u unknown: it does not exist"},
	{"a process crashed", around + "u crashed 300", rowsAround, nil, "u unknown: it does not exist"},
	{"it was sent twice", around + "u tried-again 300", rowsAround, nil, "u unknown: it does not exist"},
	{"another order is only at the gateway, of another time", around + "u unknown 300", rowsAround + ", x@200=10.5", nil, "u unknown: it does not exist\nx only at the gateway, row 4"},
	{"the orders around it were found by a person", "c-1 found 60, c-2 created 500, c-3 created 100, u unknown 300", "c-1@60, c-2@500, c-3@100", nil, "u unknown: it does not exist"},
	{"a free order of another time was made all the same", around + "f free 400, u unknown 300", rowsAround + ", f@400=10.5", nil, "u unknown: it does not exist\nf only at the gateway, row 4"},
	{"its id begins with that of another unknown order, with a row of another time", around + "u unknown 300, u-2 unknown 400", rowsAround + ", u@300=10.5", nil, "u unknown: it exists, row 4\nu-2 unknown: it does not exist"},

	// It is not shown to be absent.
	{"no From and Until", around + "u unknown 300", rowsAround, withoutTimes, "u undecided: the statement does not say from when until when it is complete"},
	{"Until is in the future", around + "u unknown 300", rowsAround, func(d *window, s *Statement) { s.Until = time.Now().Add(time.Hour) }, "u undecided: Until is in the future"},
	{"it was sent in the margin after From", "c-0 created 16, c-2 created 500, u unknown 14", "c-0@16, c-2@500", nil, "u undecided: it was sent from "},
	{"it was sent in the margin before Until", "c-1 created 60, c-9 created 584, u unknown 586", "c-1@60, c-9@584", nil, "u undecided: it was sent from "},
	{"a lease ended in the margin before Until", "c-1 created 60, c-9 created 584, u crashed 583", "c-1@60, c-9@584", nil, "u undecided: it was sent from "},
	{"it was sent before From", around + "u unknown -300", rowsAround, nil, "u undecided: it was sent from "},
	{"it was sent again after Until", around + "u tried-again 300", rowsAround, editing("begun_at = ?, ended_at = ?", 700), "u undecided: it was sent from "},
	{"a created order is missing", around + "c-3 created 400, u unknown 300", rowsAround, nil, "c-3 created: it is missing at the gateway\nu undecided: the statement is not whole: the order \"c-3\""},
	{"an order that was found is missing", around + "c-3 found 400, u unknown 300", rowsAround, nil, "c-3 created: it is missing at the gateway\nu undecided: the statement is not whole"},
	{"nothing before it", "c-2 created 500, u unknown 300", "c-2@500", nil, "u undecided: nothing shows that the statement has the orders before it"},
	{"nothing after it", "c-1 created 60, u unknown 300", "c-1@60", nil, "u undecided: nothing shows that the statement has the orders after it"},
	{"what is before it is in the margin", "c-1 created 14, c-2 created 500, u unknown 300", "c-1@14, c-2@500", nil, "u undecided: nothing shows that the statement has the orders before it"},
	{"what is after it is of the lease of its process", "c-1 created 60, c-2 created 302, u crashed 300", "c-1@60, c-2@302", nil, "u undecided: nothing shows that the statement has the orders after it"},
	{"what is after it has another amount", around + "u unknown 300", "c-1@60=10.5, c-2@500=10.4", nil, "c-2 another amount, row 3\nu undecided: nothing shows that the statement has the orders after it"},
	{"what is after it has two rows", around + "u unknown 300", "c-1@60=10.5, c-2@500, c-2@501", nil, "c-2 twice at the gateway, row 3, row 4\nu undecided: nothing shows that the statement has the orders after it"},
	{"what is before it is of the margin before", "c-1 created 286, c-2 created 500, u unknown 300", "c-1@286, c-2@500", nil, "u undecided: nothing shows that the statement has the orders before it"},
	{"what is after it is of the margin after, in a file that is older than is said", "c-1 created 60, c-2 created 314, u unknown 300", "c-1@60, c-2@314", nil, "u undecided: nothing shows that the statement has the orders after it"},
	{"what is after it is of the margin after the lease of its process", "c-1 created 60, c-2 created 319, u crashed 300", "c-1@60, c-2@319", nil, "u undecided: nothing shows that the statement has the orders after it"},
	{"what is before it was sent twice", "c-1 created-again 60, c-2 created 500, u unknown 300", rowsAround, nil, "u undecided: nothing shows that the statement has the orders before it"},
	{"an invoice of it was known", around + "u crashed 300", rowsAround, editing("created_at = ?", -100), "u undecided: an earlier invoice of it is known"},
	{"an attempt before From was reported late", around + "u tried-again 300", rowsAround, editing("sent_at = ?", -100), "u undecided: it was sent from "},
	{"the clock was set back from after Until", around + "u unknown 300", rowsAround, editing("begun_at = ?", 650), "u undecided: it was sent from "},
	{"no rows", around + "u unknown 300", "", nil, "c-1 created: it is missing at the gateway\nc-2 created: it is missing at the gateway\nu undecided: the statement is not whole"},
	{"no rows and no orders", "u unknown 300", "", nil, "u undecided: nothing shows that the statement has the orders before it"},
	{"one time is another", around + "c-3 created 200, u unknown 300", "c-1@60, c-2@500, c-3@260", nil, "u undecided: row 4, of the order \"c-3\", is of "},
	{"an order has two rows, which may be one from two pages", around + "c-3 created 80, u unknown 300", rowsAround + ", c-3@80=10.5, c-3@80=10.5", withoutInvoiceIDs, "c-3 twice at the gateway, row 4, row 5\nu undecided: the statement has two rows of an order"},
	{"its id is longer than those of all rows", around + "c-1-1 unknown 300", rowsAround, nil, "c-1-1 undecided: every row has a shorter id"},
	{"a row may be of it", around + "u unknown 300", rowsAround + ", x@301=10.5", nil, "x only at the gateway, row 4\nu undecided: row 4, of the order \"x\", may be of it"},
	{"a row with another amount may be of it", around + "u unknown 300", rowsAround + ", x@301=11", nil, "x only at the gateway, row 4\nu undecided: row 4, of the order \"x\", may be of it"},
	{"a row has no time", around + "u unknown 300", rowsAround + ", c-3", nil, "c-3 only at the gateway, row 4\nu undecided: row 4 has no time of creation: export"},
	{"no row has a time", around + "u unknown 300", "c-1=10.5, c-2=10.5", nil, "u undecided: row 2 has no time of creation: export"},
	{"a row of a free order may be of it", around + "u-2 unknown 300, u free 299", rowsAround + ", u@300=10.5", nil, "u only at the gateway, row 4\nu-2 undecided: row 4, of the order \"u\", may be of it"},
	{"a row of an order that was resolved as absent may be of it", around + "u-2 unknown 300, u lost 299", rowsAround + ", u@300=10.5", nil, "u only at the gateway, row 4\nu-2 undecided: row 4, of the order \"u\", may be of it"},
	{"a row of an order in flight may be of it", around + "u-2 unknown 300, u in-flight 299", rowsAround + ", u@300=10.5", nil, "u-2 undecided: row 4, of the order \"u\", may be of it"},
	{"a second row of a created order may be of it", around + "c-3 created 80, c-3-B unknown 300", rowsAround + ", c-3@80=10.5, c-3@300=10.5", nil, "c-3 twice at the gateway, row 4, row 5\nc-3-B undecided: row 5, of the order \"c-3\", may be of it"},
	{"a row of a created order with another amount may be of it", around + "c-3 created 298, c-3-B unknown 300", rowsAround + ", c-3@300=11", nil, "c-3 another amount, row 4\nc-3-B undecided: row 4, of the order \"c-3\", may be of it"},
	{"a row of a created order that was sent twice, of another time, may be of it", around + "c-3 created-again 80, c-3-B unknown 300", rowsAround + ", c-3@300=10.5", nil, "c-3-B undecided: row 4, of the order \"c-3\", may be of it"},
	{"a second row of an unknown order may be of it", around + "v unknown 80, u unknown 300", rowsAround + ", v@80=10.5, v@300=10.5", nil, "v twice at the gateway, row 4, row 5\nu undecided: row 5, of the order \"v\", may be of it"},
	{"a row of an unknown order with another amount may be of it", around + "v unknown 298, u unknown 300", rowsAround + ", v@300=11", nil, "v another amount, row 4\nu undecided: row 4, of the order \"v\", may be of it"},
	{"a row of an unknown order of another time may be of it", around + "v unknown 80, u unknown 300", rowsAround + ", v@300=10.5", nil, "u undecided: row 4, of the order \"v\", may be of it\nv undecided: row 4 is of "},
	{"its id begins with that of another unknown order, which has a row", around + "u unknown 299, u-2 unknown 300", rowsAround + ", u@300=10.5", nil, "u undecided: row 4 may be of the order \"u-2\"\nu-2 undecided: row 4, of the order \"u\", may be of it"},
	{"the id of another unknown order, which has a row, begins with its own", around + "u unknown 299, u-2 unknown 300", rowsAround + ", u-2@300=10.5", nil, "u undecided: row 4, of the order \"u-2\", may be of it\nu-2 undecided: row 4 may be of the order \"u\""},
	{"its id is that of another unknown order, which has a row, in upper case", around + "U unknown 299, u unknown 300", rowsAround + ", u@300=10.5", nil, "U undecided: row 4 has the id \"u\"\nu undecided: row 4 may be of the order \"U\""},
	{"a cut id, in a statement without times", "u unknown 299, u-2 unknown 300", "u", withoutTimes, "u undecided: row 2 may be of the order \"u-2\"\nu-2 undecided: the statement does not say"},
	{"its id in upper case", around + "u-a unknown 300", rowsAround + ", U-A@300=1", nil, "U-A only at the gateway, row 4\nu-a undecided: row 4 has the id \"U-A\""},
	{"its id without zeros", around + "0042 unknown 300", rowsAround + ", 42=1", nil, "42 only at the gateway, row 4\n0042 undecided: row 4 has the id"},
	{"its id without inner zeros", around + "A-0042 unknown 300", rowsAround + ", A-42=1", nil, "A-42 only at the gateway, row 4\nA-0042 undecided: row 4 has the id"},
	{"its id with a space", around + "A-42 unknown 300", rowsAround + ", A- 42=1", nil, "A- 42 only at the gateway, row 4\nA-42 undecided: row 4 has the id"},
	{"its id with another dash", around + "A-42 unknown 300", rowsAround + ", A–42=1", nil, "A–42 only at the gateway, row 4\nA-42 undecided: row 4 has the id"},
	{"its id as a number with a decimal place", around + "42 unknown 300", rowsAround + ", 42.0=1", nil, "42.0 only at the gateway, row 4\n42 undecided: row 4 has the id"},
	{"its id as a rounded number", around + "1234567890123456789 unknown 300", rowsAround + ", 1234567890123450000=1", nil, "1234567890123450000 only at the gateway, row 4\n1234567890123456789 undecided: row 4 has the id"},
	{"its id as a rounded float64", around + "7700000000000043792 unknown 300", rowsAround + ", 7700000000000044000=1", nil, "7700000000000044000 only at the gateway, row 4\n7700000000000043792 undecided: row 4 has the id"},
	{"its id with an exponent", around + "1234567890123456 unknown 300", rowsAround + ", 1.23457E+15=1", nil, "1.23457E+15 only at the gateway, row 4\n1234567890123456 undecided: row 4 has the id"},
	{"its id in the case of another order that has its own row", around + "u unknown 300, U created 310", rowsAround + ", U@310=10.5", nil, "u undecided: row 4 has the id \"U\""},
	{"another number of as many digits", around + "1234567890123456 unknown 300", rowsAround + ", 1234567890123457@200=1", nil, "1234567890123456 unknown: it does not exist\n1234567890123457 only at the gateway, row 4"},

	// Invoices that are committed late, and clocks that differ.
	{"it is committed five minutes after its response was lost", around + "u unknown 300", rowsAround + ", u@305=10.50", nil, "u unknown: it exists, row 4"},
	{"it is committed after the lease of its process, which died", around + "u crashed 300", rowsAround + ", u@309=10.50", nil, "u unknown: it exists, row 4"},
	{"it is committed later than the margin", around + "u unknown 300", rowsAround + ", u@316=10.50", nil, "u undecided: row 4 is of "},
	{"the gateway's clock is four minutes ahead, and it exists", around + "u unknown 300", "c-1@64=10.5, c-2@504=10.5, u@304=10.50", nil, "u unknown: it exists, row 4"},
	{"the gateway's clock is four minutes behind, and it does not exist", around + "u unknown 300", "c-1@56=10.5, c-2@496=10.5", nil, "u unknown: it does not exist"},
	{"the gateway's clock is an hour ahead", around + "u unknown 300", "c-1@120=10.5, c-2@560=10.5, u@360=10.50", nil, "u undecided: row 4 is of "},
	{"the gateway's clock was set back between two orders", around + "u unknown 300", "c-1@64=10.5, c-2@496=10.5, u@296=10.50", nil, "u unknown: it exists, row 4"},
	{"the database's clock was set back by 90 seconds while it was sent", around + "u unknown 300", rowsAround + ", u@300=10.50", editing("ended_at = ?", 298), "u unknown: it exists, row 4"},
	{"the database's clock was set back by an hour after it was sent", around + "u unknown 300", rowsAround, editing("ended_at = ?", 240), "u unknown: it does not exist"},

	// Orders that are not unknown.
	{"a created order is missing in the margin", around + "c-3 created 10, c-4 created 590", rowsAround, nil, ""},
	{"a created order is missing of another time", around + "c-3 created -100, c-4 created 700", rowsAround, nil, ""},
	{"a created order that was sent twice is missing", around + "c-3 created-again 300", rowsAround, nil, "c-3 created: it is missing at the gateway"},
	{"an order that was sent twice and found is missing", around + "c-3 found-again 300", rowsAround, nil, ""},
	{"a created order without From and Until", around + "c-3 created 300", rowsAround, withoutTimes, ""},
	{"a free order has a row", around + "f free 300", rowsAround + ", f@300=10.5", nil, "f only at the gateway, row 4"},
	{"an order that was resolved as absent has a row", around + "f lost 300", rowsAround + ", f@300=10.5", nil, "f only at the gateway, row 4"},
	{"a free order has no row", around + "f free 300", rowsAround, nil, ""},
	{"an order in flight has a row", around + "i in-flight 300", rowsAround + ", i", nil, ""},
	{"an order in flight has no row", around + "i in-flight 300", rowsAround, nil, ""},
	{"a row of a created order of another time", around + "c-3 created -100", rowsAround + ", c-3", nil, ""},
	{"classes and orders are sorted", around + "v unknown 310, u unknown 300, w unknown 320, c-3 created 320, c-4 created 330", "v@310, u@300, c-1@60, c-2@500, c-4@330=1, z@100, x@100, a@100, a@100", nil, "u unknown: it exists, row 3\nv unknown: it exists, row 2\nc-3 created: it is missing at the gateway\na twice at the gateway, row 9, row 10\nc-4 another amount, row 6\nx only at the gateway, row 8\nz only at the gateway, row 7\nw undecided: the statement is not whole"},
}

func withoutTimes(_ *window, s *Statement) { s.From, s.Until = time.Time{}, time.Time{} }

// editing sets a time of u.
func editing(column string, minute int) func(*window, *Statement) {
	return func(d *window, _ *Statement) {
		if _, err := d.db.Exec(`UPDATE ` + d.w.table + ` SET ` + strings.ReplaceAll(column, "?", d.literal(d.at(minute))) + ` WHERE order_id = 'u'`); err != nil {
			panic(err)
		}
	}
}

func withoutInvoiceIDs(_ *window, s *Statement) {
	for i := range s.Rows {
		s.Rows[i].InvoiceID = ""
	}
}

func TestGuard_Reconcile(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		db := w.guard(t).db
		for _, tt := range situations {
			t.Run(tt.name, func(t *testing.T) {
				execute(t, db, `DELETE FROM `+w.table)
				d := newWindow(t, w, db)
				d.add(t, tt.orders)
				s := d.statement(t, tt.rows)
				if tt.edit != nil {
					tt.edit(d, &s)
				}
				before := d.all(t)
				r, err := d.Reconcile(t.Context(), s, ReconcileOptions{})
				check(t, err)
				wantTold(t, r, tt.want)
				if after := d.all(t); after != before {
					t.Errorf("a dry run has changed the table:\n%s\n%s", before, after)
				}
				d.checkApplied(t, s, r)
			})
		}
	})
}

// all is the state of all orders.
func (d *window) all(t *testing.T) string {
	t.Helper()
	texts, err := d.queryTexts(t.Context(), `SELECT order_id || coalesce(token, '-') || attempts || coalesce(resolution, '-') || coalesce(resolved_by, '-') || coalesce(note, '-') FROM `+d.w.table+` ORDER BY order_id`)
	check(t, err)
	return strings.Join(texts, "\n")
}

// checkApplied applies a statement, and looks at what the dry run has found.
func (d *window) checkApplied(t *testing.T, s Statement, dry Reconciliation) {
	t.Helper()
	r, err := d.Reconcile(t.Context(), s, ReconcileOptions{Apply: true, By: "anna"})
	if check(t, err); len(r.Differences) != len(dry.Differences) || len(r.Undecided) != len(dry.Undecided) {
		t.Errorf("%s\n\nbefore\n\n%s", told(r), told(dry))
	}
	for _, found := range r.Differences {
		o, err := d.Order(t.Context(), "", found.OrderID)
		check(t, err)
		want := found.Order.State
		switch found.Class {
		case ClassExists:
			want = StateCreated
			if string(o.Record.Invoice) != string(found.Rows[0].Invoice) || !o.Resolution.Exists || !strings.Contains(o.Resolution.Note, found.Rows[0].InvoiceID) {
				t.Errorf("%+v", o)
			}
		case ClassAbsent:
			want = StateFree
		}
		if ends := found.Class == ClassExists || found.Class == ClassAbsent; found.Ended != ends || found.Err != nil || o.State != want || ends && o.Resolution.By != "anna" {
			t.Errorf("%+v is %+v", found, o)
		}
	}
	for _, u := range r.Undecided {
		if o, err := d.Order(t.Context(), "", u.Order.ID); err != nil || o.State != StateUnknown || !o.Resolved.IsZero() {
			t.Errorf("%+v, %v", o, err)
		}
	}
}

func TestGuard_Reconcile_refuses(t *testing.T) {
	g := newSQLite(t).guard(t)
	check(t, g.db.Close()) // nothing is read
	from := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	until := from.Add(24 * time.Hour)
	for name, tt := range map[string]struct {
		s     Statement
		o     ReconcileOptions
		field string
		want  string
	}{
		"nobody applies":              {Statement{}, ReconcileOptions{Apply: true, By: " "}, "o.By", "is required"},
		"a negative margin":           {Statement{}, ReconcileOptions{Margin: -1}, "o.Margin", "negative"},
		"From without Until":          {Statement{From: from}, ReconcileOptions{}, "s", "set both"},
		"Until without From":          {Statement{Until: until}, ReconcileOptions{}, "s", "set both"},
		"Until before From":           {Statement{From: until, Until: from}, ReconcileOptions{}, "s.Until", "after From"},
		"no Number":                   {Statement{Rows: []StatementRow{{OrderID: "a"}}}, ReconcileOptions{}, "s.Rows", "row 0, at index 0: needs a Number"},
		"a Number twice":              {Statement{Rows: []StatementRow{{Number: 7, OrderID: "a"}, {Number: 7, OrderID: "b"}}}, ReconcileOptions{}, "s.Rows", "row 7, at index 1: another one"},
		"no OrderID":                  {Statement{Rows: []StatementRow{{Number: 7}}}, ReconcileOptions{}, "s.Rows", "row 7, at index 0: needs an OrderID"},
		"an OrderID with a NUL":       {Statement{Rows: []StatementRow{{Number: 7, OrderID: "a\x00"}}}, ReconcileOptions{}, "s.Rows", "row 7"},
		"an OrderID that is no UTF-8": {Statement{Rows: []StatementRow{{Number: 7, OrderID: "a\xff"}}}, ReconcileOptions{}, "s.Rows", "row 7"},
		"an InvoiceID twice":          {Statement{Rows: []StatementRow{{Number: 7, OrderID: "a", InvoiceID: "i"}, {Number: 8, OrderID: "b", InvoiceID: "i"}}}, ReconcileOptions{}, "s.Rows", "row 8, at index 1: has the InvoiceID of row 7"},
		"an Invoice that is no JSON":  {Statement{Rows: []StatementRow{{Number: 7, OrderID: "a", Invoice: []byte("{")}}}, ReconcileOptions{}, "s.Rows", "row 7"},
		"a row before From":           {Statement{From: from, Until: until, Rows: []StatementRow{{Number: 7, OrderID: "a", CreatedAt: from.Add(-1)}}}, ReconcileOptions{}, "s.Rows", "row 7, at index 0: was created at"},
		"a row after Until":           {Statement{From: from, Until: until, Rows: []StatementRow{{Number: 7, OrderID: "a", CreatedAt: until.Add(1)}}}, ReconcileOptions{}, "s.Rows", "another time, zone or clock"},
		"too many rows":               {Statement{Rows: make([]StatementRow, 1_000_001)}, ReconcileOptions{}, "s.Rows", "1,000,000"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := g.Reconcile(t.Context(), tt.s, tt.o)
			refusal, ok := err.(*gateway.ArgumentError)
			if !ok || refusal.Name != tt.field || !strings.Contains(refusal.Reason, tt.want) || told(r) != "" {
				t.Errorf("%v, %s", err, told(r))
			}
		})
	}
}

// A statement of another merchant or time differs in nearly every order: it is refused, so that nobody
// has to read that.
func TestComparison_too_many_differences(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, differing := range map[string]Order{
		"missing":             {State: StateCreated, Outcome: gateway.OutcomeSucceeded, Attempts: 1, Begun: at, Created: at},
		"only at the gateway": {State: StateFree},
	} {
		t.Run(name, func(t *testing.T) {
			c := newComparison(Statement{From: at.Add(-time.Hour), Until: at.Add(time.Hour)}, time.Minute)
			for i := range mostDifferences {
				differing.ID = strconv.Itoa(i)
				check(t, c.addOther(differing, at))
			}
			differing.ID = "one more"
			if refusal, ok := errors.AsType[*gateway.ArgumentError](c.addOther(differing, at)); !ok || refusal.Name != "s" {
				t.Error(refusal)
			}
		})
	}
}

// Only the orders of the merchant of the statement are compared and ended.
func TestGuard_Reconcile_of_a_merchant(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		d := newWindow(t, w, w.guard(t).db)
		for _, merchant := range []string{"a", "b"} {
			d.add(t, around+"u unknown 300, v unknown 310")
			execute(t, d.db, `UPDATE `+w.table+` SET merchant = '`+merchant+`' WHERE merchant = ''`)
		}
		d.add(t, "c-3 created 400, w unknown 320")
		s := d.statement(t, rowsAround+", v@310=10.5")
		s.Merchant = "b"
		r, err := d.Reconcile(t.Context(), s, ReconcileOptions{Apply: true, By: "anna"})
		check(t, err)
		wantTold(t, r, "v unknown: it exists, row 4, ended\nu unknown: it does not exist, ended")
		pending, err := d.Pending(t.Context(), PendingQuery{})
		if check(t, err); len(pending) != 3 || pending[0].Merchant != "a" || pending[1].Merchant != "a" || pending[2].ID != "w" {
			t.Errorf("%+v", pending)
		}
	})
}

// happenings are what can become of an order whose process crashed.
var happenings = map[string]struct {
	happens func(t *testing.T, its, other *Guard) // the guard of its process, and another
	states  []State
}{
	"it is sent again": {func(t *testing.T, its, other *Guard) {
		check(t, other.resubmits(context.Background(), "u"))
	}, []State{StateInFlight}},
	"it is sent again, and unknown again": {func(t *testing.T, its, other *Guard) {
		check(t, other.resubmits(context.Background(), "u"))
		check(t, other.ends(context.Background(), "u", gateway.OutcomeUnknown))
	}, []State{StateUnknown}},
	"its process reports a success": {func(t *testing.T, its, other *Guard) {
		o := orderOf("u")
		check(t, recorded(its.End(context.Background(), o, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Request: o.Request})))
	}, []State{StateCreated}},
	"a person finds it": {func(t *testing.T, its, other *Guard) {
		o, err := other.Order(context.Background(), "", "u")
		check(t, err)
		check(t, other.Resolve(context.Background(), o, Resolution{By: "bob", Exists: true}))
	}, []State{StateCreated}},
}

// Whatever happens to an order between two statements of Reconcile, it is not ended by what was true before.
func TestGuard_Reconcile_beside_others(t *testing.T) {
	for name, tt := range happenings {
		for statement := 1; statement <= 4; statement++ {
			t.Run(fmt.Sprintf("%s before statement %d", name, statement), func(t *testing.T) {
				w := newSQLite(t)
				g, connector := lossyGuardOf(t, w)
				other := w.guard(t)
				d := newWindow(t, w, other.db)
				d.add(t, around+"u crashed 300")
				s, count := d.statement(t, rowsAround), 0
				connector.observe = func(string, []driver.NamedValue) {
					if count++; count == statement {
						tt.happens(t, d.Guard, other)
					}
				}
				r, err := g.Reconcile(t.Context(), s, ReconcileOptions{Apply: true, By: "anna"})
				check(t, err)
				o, err := d.Order(t.Context(), "", "u")
				if check(t, err); count < max(3, statement) || !slices.Contains(tt.states, o.State) || o.Resolution.By == "anna" {
					t.Errorf("%+v\n%s", o, told(r))
				}
				for _, difference := range r.Differences {
					if difference.Ended || difference.Err == nil {
						t.Errorf("%+v", difference)
					}
				}
			})
		}
	}
}

// If the database fails while orders are ended, the result says which ones were.
func TestGuard_Reconcile_fails(t *testing.T) {
	w := newSQLite(t)
	g, connector := lossyGuardOf(t, w)
	d := newWindow(t, w, w.guard(t).db)
	d.add(t, around+"u-1 unknown 300, u-2 unknown 310, u-3 unknown 320")
	failure := errors.New("the disk is full")
	connector.refuse(5, failure) // after the clock, the unknown orders, the created ones, and u-1
	r, err := g.Reconcile(t.Context(), d.statement(t, rowsAround+", u-1@300, u-2@310"), ReconcileOptions{Apply: true, By: "anna"})
	wantError(t, err, failure)
	wantTold(t, r, "u-1 unknown: it exists, row 4, ended\nu-2 unknown: it exists, row 5\nu-3 unknown: it does not exist")
	wantError(t, r.Differences[1].Err, failure)
	for n := 1; n <= 3; n++ {
		connector.refuse(n, failure)
		r, err := g.Reconcile(t.Context(), d.statement(t, rowsAround), ReconcileOptions{Apply: true, By: "anna"})
		if wantError(t, err, failure); told(r) != "" {
			t.Errorf("%d: %s", n, told(r))
		}
	}
}

// An order that was unknown when it was read is not compared again.
func TestComparison_reads_an_order_twice(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	c := newComparison(Statement{From: at.Add(-time.Hour), Until: at.Add(time.Hour)}, time.Minute)
	c.now = at.Add(2 * time.Hour)
	o := Order{ID: "u", State: StateUnknown, Attempts: 1, Begun: at, Since: at}
	check(t, c.addUnknown(o, at))
	o.State, o.Created, o.Outcome = StateCreated, at, gateway.OutcomeSucceeded
	check(t, c.addOther(o, at))
	wantTold(t, c.judged(), "u undecided: nothing shows that the statement has the orders before it")
}

func TestPlainID(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"upper case", "order-ä", "ORDER-Ä", true},
		{"a no-break space", "A 1", "A\u00a01", true},
		{"an apostrophe", "42", "'42", true},
		{"a formula", "42", `="42"`, true},
		{"only zeros", "000", "0", true},
		{"zeros at the end", "100", "1", false},
		{"zeros inside a number", "1001", "11", false},
		{"a decimal place that is not zero", "42.5", "42", false},
		{"another number", "41", "42", false},
		{"another letter", "A-1", "B-1", false},
		{"another dash", "A-1", "A1", false},
		{"a long number", "1234567890123456", "1234567890123457", false},
	} {
		if a, b := plainID(tt.a), plainID(tt.b); (a == b) != tt.same {
			t.Errorf("%s: %q and %q are %q and %q", tt.name, tt.a, tt.b, a, b)
		}
	}
}
