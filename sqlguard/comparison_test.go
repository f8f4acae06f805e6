package sqlguard

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// A month is a table, and what the gateway has in truth. No statement says anything else that ends an order.
type month struct {
	days  int
	rand  *rand.Rand
	began time.Time
	table []Order
	truth []StatementRow // of the invoices that exist
	owner map[int]string // by Number, the order of a row in truth
	gaps  []span         // outages in which no outcome was known
}

const (
	aDay     = 240 // orders
	newState = "New"
	expired  = "Expired"
	settled  = "Settled"
)

var prices = []string{"9.99", "19.99", "20", "49.50", "100"}

// newMonth makes days of orders, of which some became unknown in outages, or alone.
func newMonth(seed uint64, days int) *month {
	m := &month{days: days, rand: rand.New(rand.NewPCG(seed, 0)), began: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), owner: map[int]string{}}
	for day := 1; day < days; day += 2 {
		at := m.began.Add(time.Duration(day*24+m.rand.IntN(24)) * time.Hour)
		long := time.Duration(2+m.rand.IntN(15)) * time.Minute
		if day%6 == 1 {
			long = time.Duration(60+m.rand.IntN(120)) * time.Minute
		}
		m.gaps = append(m.gaps, span{at, at.Add(long)})
	}
	number := int64(1000)
	for at := m.began; ; number++ {
		if at = at.Add(time.Duration(m.rand.ExpFloat64() * float64(24*time.Hour/aDay))); at.After(m.began.AddDate(0, 0, days)) {
			return m
		}
		m.add(m.id(number), at.Truncate(time.Microsecond))
	}
}

// id is in one of the forms that merchants use.
func (m *month) id(number int64) string {
	switch m.rand.IntN(50) {
	case 0:
		return fmt.Sprintf("%08d", number)
	case 1:
		return fmt.Sprintf("%d", 202610010000000000+number*7)
	case 2:
		return fmt.Sprintf("shop-%d-B", number)
	default:
		return fmt.Sprint(number)
	}
}

func (m *month) add(id string, at time.Time) {
	price := decimal.RequireFromString(prices[m.rand.IntN(len(prices))])
	o := Order{
		ID: id, State: StateCreated, Attempts: 1, Begun: at, SentUntil: at.Add(time.Second), Outcome: gateway.OutcomeSucceeded, Created: at.Add(time.Second),
		Record: gateway.OrderRecord{Request: gateway.InvoiceRequest{OrderID: id, Price: price, Amount: price}, SentAt: at},
	}
	exists := true
	inGap := slices.ContainsFunc(m.gaps, func(s span) bool { return !at.Before(s.from) && at.Before(s.until) })
	switch chance := m.rand.IntN(1000); {
	case inGap || chance < 10:
		exists = m.rand.IntN(2) == 0
		o.State, o.Outcome, o.Created, o.Since = StateUnknown, gateway.OutcomeUnknown, time.Time{}, at
		if m.rand.IntN(4) == 0 {
			o.SentUntil = at.Add(5 * time.Minute) // the process died
		}
	case chance < 30:
		exists = false
		o.State, o.Outcome, o.Created = StateFree, gateway.OutcomeRejected, time.Time{}
	case chance < 40:
		o.Attempts, o.Begun = 2, at.Add(-time.Minute)
	}
	m.table = append(m.table, o)
	if !exists {
		return
	}
	state := settled
	switch chance := m.rand.IntN(100); {
	case o.State == StateUnknown || chance < 25: // nobody has seen its address
		state = expired
	case chance < 35:
		state = newState
	}
	r := StatementRow{
		Number: len(m.truth) + 2, OrderID: id, InvoiceID: fmt.Sprintf("i%dx", len(m.truth)*7919%100003), CreatedAt: at.Add(700 * time.Millisecond),
		Price: decimal.NewNullDecimal(price), Amount: decimal.NewNullDecimal(price), State: state,
	}
	m.truth, m.owner[r.Number] = append(m.truth, r), id
}

// compared compares a statement with the table, as Reconcile does with that of a database. One that is refused
// says nothing.
func (m *month) compared(t *testing.T, s Statement, o ReconcileOptions) Reconciliation {
	t.Helper()
	o.Margin = cmp.Or(o.Margin, defaultMargin)
	check(t, cmp.Or(o.validate(s), s.validate()))
	c := newComparison(s, o, m.began.AddDate(0, 0, m.days+1))
	byID := map[string]Order{}
	for _, o := range m.table {
		if byID[o.ID] = o; o.State == StateUnknown {
			check(t, c.addUnknown(o))
		}
	}
	for _, o := range m.table {
		c.rivals.notice(o.ID)
	}
	for _, o := range m.table {
		if o.State == StateCreated && o.Begun.After(s.From.Add(defaultMargin)) && o.Created.Before(s.Until.Add(-defaultMargin)) {
			check(t, c.addOther(o))
		}
	}
	var err error
	for _, id := range c.unread() {
		if o, known := byID[id]; known {
			err = cmp.Or(err, c.addOther(o))
		}
	}
	for _, id := range c.unread() {
		err = cmp.Or(err, c.addOther(Order{ID: id, State: StateFree}))
	}
	if errors.Is(err, gateway.ErrInvalidArgument) {
		return Reconciliation{}
	}
	check(t, err)
	return c.judged()
}

// A tally is what a Reconciliation says, and whether that is true.
type tally struct {
	unknown, concluded int
	wrong              []string
}

func (m *month) tally(r Reconciliation) (all tally) {
	exists := map[string]bool{}
	for _, id := range m.owner {
		exists[id] = true
	}
	for _, d := range r.Differences {
		switch d.Class {
		case ClassExists:
			if all.concluded++; m.owner[d.Rows[0].Number] != d.OrderID {
				all.wrong = append(all.wrong, fmt.Sprintf("%s exists, by row %d of %q", d.OrderID, d.Rows[0].Number, m.owner[d.Rows[0].Number]))
			}
		case ClassAbsent:
			if all.concluded++; exists[d.OrderID] {
				all.wrong = append(all.wrong, d.OrderID+" is absent")
			}
		}
	}
	for _, o := range m.table {
		if o.State == StateUnknown {
			all.unknown++
		}
	}
	return all
}

// A lie is a way in which a statement is not what the gateway has.
type lie struct {
	name string
	tell func(m *month, rows []StatementRow) []StatementRow
}

// each is a lie about each of some rows; keep is one that leaves others out.
func each(change func(m *month, r *StatementRow)) func(*month, []StatementRow) []StatementRow {
	return func(m *month, rows []StatementRow) []StatementRow {
		for i := range rows {
			change(m, &rows[i])
		}
		return rows
	}
}

func keep(isKept func(m *month, r StatementRow) bool) func(*month, []StatementRow) []StatementRow {
	return func(m *month, rows []StatementRow) []StatementRow {
		return slices.DeleteFunc(rows, func(r StatementRow) bool { return !isKept(m, r) })
	}
}

func id(change func(id string) string) func(*month, []StatementRow) []StatementRow {
	return each(func(_ *month, r *StatementRow) { r.OrderID = cmp.Or(change(r.OrderID), "x") })
}

func at(change func(t time.Time) time.Time) func(*month, []StatementRow) []StatementRow {
	return each(func(_ *month, r *StatementRow) { r.CreatedAt = change(r.CreatedAt) })
}

func first(text string, n int) string { return text[:min(n, len(text))] }
func last(text string, n int) string  { return text[max(0, len(text)-n):] }

// appended adds rows with numbers and invoices of their own, which are of nobody's orders.
func appended(rows []StatementRow, more ...StatementRow) []StatementRow {
	for i, r := range more {
		r.Number, r.InvoiceID = 1_000_000+i, fmt.Sprint("another ", i)
		rows = append(rows, r)
	}
	return rows
}

func (m *month) inGap(t time.Time, margin time.Duration) bool {
	return slices.ContainsFunc(m.gaps, func(s span) bool { return t.After(s.from.Add(-margin)) && t.Before(s.until.Add(margin)) })
}

var allDigits = func(id string) bool { return digits.MatchString(id) }

var lies = []lie{
	{"ids cut to 3 characters", id(func(id string) string { return first(id, 3) })},
	{"ids cut to 4 characters", id(func(id string) string { return first(id, 4) })},
	{"ids cut to 8 characters", id(func(id string) string { return first(id, 8) })},
	{"ids without their last character", id(func(id string) string { return id[:len(id)-1] })},
	{"ids without their first character", id(func(id string) string { return id[1:] })},
	{"the last 3 characters of ids", id(func(id string) string { return last(id, 3) })},
	{"ids until the last dash", id(func(id string) string { return id[:max(strings.LastIndex(id, "-"), 4)] })},
	{"one id in ten cut", each(func(m *month, r *StatementRow) {
		if m.rand.IntN(10) == 0 {
			r.OrderID = first(r.OrderID, len(r.OrderID)-1)
		}
	})},
	{"ids of unknown orders cut", each(func(m *month, r *StatementRow) {
		if m.inGap(r.CreatedAt, 0) {
			r.OrderID = first(r.OrderID, len(r.OrderID)-1)
		}
	})},
	{"leading zeros lost", id(func(id string) string { return strings.TrimLeft(id, "0") })},
	{"leading zeros added", id(func(id string) string { return fmt.Sprintf("%010s", id) })},
	{"numbers rounded to 15 digits", id(func(id string) string {
		if len(id) > 15 && allDigits(id) {
			return id[:15] + strings.Repeat("0", len(id)-15)
		}
		return id
	})},
	{"numbers as a float has them", id(func(id string) string {
		var f float64
		if _, err := fmt.Sscan(id, &f); err == nil && allDigits(id) {
			return fmt.Sprintf("%.0f", f)
		}
		return id
	})},
	{"large numbers with an exponent", id(func(id string) string {
		var f float64
		if _, err := fmt.Sscan(id, &f); err == nil && len(id) > 11 && allDigits(id) {
			return strings.ToUpper(fmt.Sprintf("%.4e", f))
		}
		return id
	})},
	{"numbers with a decimal place", id(func(id string) string { return id + ".0" })},
	{"ids in upper case", id(strings.ToUpper)},
	{"ids in quotes", id(func(id string) string { return "'" + id })},
	{"ids with a space", id(func(id string) string { return id + " " })},
	{"ids with another dash", id(func(id string) string { return strings.ReplaceAll(id, "-", "–") })},
	{"the identifier of the invoice for that of the order", each(func(_ *month, r *StatementRow) { r.OrderID = r.InvoiceID })},
	{"ids of the next row", func(_ *month, rows []StatementRow) []StatementRow {
		for i := range len(rows) - 1 {
			rows[i].OrderID = rows[i+1].OrderID
		}
		return rows
	}},
	{"ids sorted without the other columns", func(_ *month, rows []StatementRow) []StatementRow {
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.OrderID)
		}
		slices.Sort(ids)
		for i := range rows {
			rows[i].OrderID = ids[i]
		}
		return rows
	}},
	{"rows of the outages with the ids of orders of other days that were tried twice, whose own rows are lost", func(m *month, rows []StatementRow) []StatementRow {
		lost := map[string]bool{}
		for i, r := range rows {
			if !m.inGap(r.CreatedAt, 0) {
				continue
			}
			at := slices.IndexFunc(m.table, func(o Order) bool {
				return o.Attempts == 2 && !lost[o.ID] && o.Record.Request.Price.Equal(r.Price.Decimal)
			})
			if at >= 0 {
				rows[i].OrderID, lost[m.table[at].ID] = m.table[at].ID, true
			}
		}
		return keep(func(m *month, r StatementRow) bool { return !lost[m.owner[r.Number]] })(m, rows)
	}},

	{"paid only", keep(func(_ *month, r StatementRow) bool { return r.State == settled })},
	{"expired only", keep(func(_ *month, r StatementRow) bool { return r.State == expired })},
	{"new only", keep(func(_ *month, r StatementRow) bool { return r.State == newState })},
	{"no expired ones", keep(func(_ *month, r StatementRow) bool { return r.State != expired })},
	{"no paid ones", keep(func(_ *month, r StatementRow) bool { return r.State != settled })},
	{"paid only, and no states", func(m *month, rows []StatementRow) []StatementRow {
		rows = keep(func(_ *month, r StatementRow) bool { return r.State == settled })(m, rows)
		return each(func(_ *month, r *StatementRow) { r.State = "" })(m, rows)
	}},
	{"paid only, and every state is untouched", func(m *month, rows []StatementRow) []StatementRow {
		rows = keep(func(_ *month, r StatementRow) bool { return r.State == settled })(m, rows)
		return each(func(_ *month, r *StatementRow) { r.State = newState })(m, rows)
	}},
	{"unpaid ones are left out after six days", keep(func(m *month, r StatementRow) bool {
		return r.State == settled || r.CreatedAt.After(m.began.AddDate(0, 0, m.days-6))
	})},
	{"unpaid ones are left out for two days", keep(func(m *month, r StatementRow) bool {
		return r.State == settled || r.CreatedAt.Before(m.began.AddDate(0, 0, m.days-2))
	})},
	{"large amounts only", keep(func(_ *month, r StatementRow) bool { return r.Price.Decimal.GreaterThan(decimal.New(10, 0)) })},
	{"small amounts only", keep(func(_ *month, r StatementRow) bool { return r.Price.Decimal.LessThan(decimal.New(100, 0)) })},
	{"one amount only", keep(func(_ *month, r StatementRow) bool { return r.Price.Decimal.Equal(decimal.New(20, 0)) })},
	{"no ids with letters", keep(func(_ *month, r StatementRow) bool { return allDigits(r.OrderID) })},
	{"no weekends", keep(func(_ *month, r StatementRow) bool { return r.CreatedAt.Weekday()%6 != 0 })},
	{"no nights", keep(func(_ *month, r StatementRow) bool { return r.CreatedAt.Hour() > 5 })},

	{"the first 1,000 rows", func(_ *month, rows []StatementRow) []StatementRow { return rows[:1000] }},
	{"the last 1,000 rows", func(_ *month, rows []StatementRow) []StatementRow { return rows[len(rows)-1000:] }},
	{"every second page of 100", func(_ *month, rows []StatementRow) (kept []StatementRow) {
		for i, r := range rows {
			if i/100%2 == 0 {
				kept = append(kept, r)
			}
		}
		return kept
	}},
	{"one page of 100 is lost", func(m *month, rows []StatementRow) []StatementRow {
		at := m.rand.IntN(len(rows) - 100)
		return slices.Delete(rows, at, at+100)
	}},
	{"one row in a hundred is lost", keep(func(m *month, _ StatementRow) bool { return m.rand.IntN(100) > 0 })},
	{"the last day is lost", keep(func(m *month, r StatementRow) bool {
		return r.CreatedAt.Before(m.began.AddDate(0, 0, m.days-1))
	})},
	{"the first day is lost", keep(func(m *month, r StatementRow) bool { return r.CreatedAt.After(m.began.Add(24 * time.Hour)) })},
	{"a day is lost", keep(func(_ *month, r StatementRow) bool { return r.CreatedAt.Day() != 9 })},
	{"the hours of the outages are lost", keep(func(m *month, r StatementRow) bool {
		return !slices.ContainsFunc(m.gaps, func(s span) bool {
			return !r.CreatedAt.Before(s.from.Truncate(time.Hour)) && r.CreatedAt.Before(s.until.Truncate(time.Hour).Add(time.Hour))
		})
	})},
	{"the time of the long outages is lost", keep(func(m *month, r StatementRow) bool {
		return !slices.ContainsFunc(m.gaps, func(s span) bool {
			return s.until.Sub(s.from) >= time.Hour && r.CreatedAt.After(s.from) && r.CreatedAt.Before(s.until.Add(time.Second))
		})
	})},
	{"no rows at all", func(*month, []StatementRow) []StatementRow { return nil }},

	{"the other shop only", each(func(m *month, r *StatementRow) {
		*r = m.another(*r, 7*time.Hour)
	})},
	{"the other shop too, with the same numbers at another time", func(m *month, rows []StatementRow) []StatementRow {
		return appended(rows, m.anothers(7*time.Hour)...)
	}},
	{"the other shop too, with the same numbers at the same time", func(m *month, rows []StatementRow) []StatementRow {
		return appended(rows, m.anothers(time.Minute)...)
	}},
	{"the other shop too, with a part of the numbers", func(m *month, rows []StatementRow) []StatementRow {
		return appended(rows, m.anothers(time.Minute)[1000:2000]...)
	}},

	{"an hour ahead", at(func(t time.Time) time.Time { return t.Add(time.Hour) })},
	{"an hour behind", at(func(t time.Time) time.Time { return t.Add(-time.Hour) })},
	{"five and a half hours ahead", at(func(t time.Time) time.Time { return t.Add(330 * time.Minute) })},
	{"an hour ahead from the 8th on", at(func(t time.Time) time.Time {
		if t.Day() >= 8 {
			return t.Add(time.Hour)
		}
		return t
	})},
	{"a day ahead", at(func(t time.Time) time.Time { return t.AddDate(0, 0, 1) })},
	{"another year", at(func(t time.Time) time.Time { return t.AddDate(-1, 0, 0) })},
	{"day and month exchanged", at(func(t time.Time) time.Time {
		return time.Date(t.Year(), time.Month(min(t.Day(), 12)), int(t.Month()), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	})},
	{"twelve hours on a dial", at(func(t time.Time) time.Time {
		return time.Date(t.Year(), t.Month(), t.Day(), t.Hour()%12, t.Minute(), t.Second(), 0, time.UTC)
	})},
	{"the hour only", at(func(t time.Time) time.Time { return t.Truncate(time.Hour) })},
	{"the day only", at(func(t time.Time) time.Time { return t.Truncate(24 * time.Hour) })},
	{"one time for all rows", at(func(time.Time) time.Time { return time.Date(2026, 10, 14, 12, 0, 0, 0, time.UTC) })},
	{"the time of the payment", each(func(m *month, r *StatementRow) {
		r.CreatedAt = r.CreatedAt.Add(time.Duration(m.rand.IntN(3600)) * time.Second)
	})},
	{"no times", at(func(time.Time) time.Time { return time.Time{} })},
	{"one time in a hundred is lacking", each(func(m *month, r *StatementRow) {
		if m.rand.IntN(100) == 0 {
			r.CreatedAt = time.Time{}
		}
	})},

	{"every row twice, with other invoices", func(_ *month, rows []StatementRow) []StatementRow { return appended(rows, rows...) }},
	{"every row twice, without invoices", func(_ *month, rows []StatementRow) []StatementRow {
		rows = appended(rows, rows...)
		for i := range rows {
			rows[i].InvoiceID = ""
		}
		return rows
	}},
	{"a page twice in place of the next one, without invoices", func(_ *month, rows []StatementRow) []StatementRow {
		copy(rows[1100:1200], rows[1000:1100])
		for i := range rows {
			rows[i].InvoiceID, rows[i].Number = "", i+2
		}
		return rows
	}},

	{"states of other rows", func(m *month, rows []StatementRow) []StatementRow {
		rows = keep(func(_ *month, r StatementRow) bool { return r.State == settled })(m, rows)
		return each(func(m *month, r *StatementRow) { r.State = []string{newState, expired, settled}[m.rand.IntN(3)] })(m, rows[:len(rows)/2])
	}},
	{"a state column with one value, of rows of every kind but one amount", func(m *month, rows []StatementRow) []StatementRow {
		rows = keep(func(_ *month, r StatementRow) bool { return !r.Price.Decimal.Equal(decimal.New(20, 0)) })(m, rows)
		return each(func(_ *month, r *StatementRow) { r.State = expired })(m, rows)
	}},
	{"a column of other amounts", each(func(_ *month, r *StatementRow) { r.Price.Decimal = r.Price.Decimal.Mul(decimal.New(11, -1)) })},
	{"amounts without decimal places", each(func(_ *month, r *StatementRow) { r.Price.Decimal = r.Price.Decimal.Truncate(0) })},
	{"amounts in cents", each(func(_ *month, r *StatementRow) { r.Amount.Decimal = r.Amount.Decimal.Shift(2) })},

	{"rows of the outages without an order", each(func(m *month, r *StatementRow) {
		if m.inGap(r.CreatedAt, 0) {
			r.OrderID = ""
		}
	})},
	{"one row in twenty without an order", each(func(m *month, r *StatementRow) {
		if m.rand.IntN(20) == 0 {
			r.OrderID = ""
		}
	})},
	{"rows of the outages that cannot be read", each(func(m *month, r *StatementRow) {
		if m.inGap(r.CreatedAt, 0) {
			*r = StatementRow{Number: r.Number, Fault: "it has 3 fields, and the header has 7"}
		}
	})},
	{"rows of the outages with a time that cannot be read", each(func(m *month, r *StatementRow) {
		if m.inGap(r.CreatedAt, 0) {
			r.CreatedAt, r.Fault = time.Time{}, "the time cannot be read"
		}
	})},
	{"one row in twenty that cannot be read", each(func(m *month, r *StatementRow) {
		if m.rand.IntN(20) == 0 {
			r.OrderID, r.Fault = r.OrderID[1:], "the id cannot be read"
		}
	})},
}

// another is a row of another shop, which has numbered its orders alike.
func (m *month) another(r StatementRow, later time.Duration) StatementRow {
	price := decimal.NewNullDecimal(decimal.RequireFromString(prices[m.rand.IntN(len(prices))]))
	r.CreatedAt, r.Price, r.Amount = r.CreatedAt.Add(later), price, price
	return r
}

// anothers are the rows of another shop for all orders of the table.
func (m *month) anothers(later time.Duration) (rows []StatementRow) {
	for _, o := range m.table {
		rows = append(rows, m.another(StatementRow{OrderID: o.ID, CreatedAt: o.Begun, State: settled}, later))
	}
	return rows
}

var told = ReconcileOptions{Untouched: []string{newState, expired}}

func (m *month) statement(rows []StatementRow) Statement {
	return Statement{From: m.began, Until: m.began.AddDate(0, 0, m.days), Rows: rows}
}

// No statement ends an order wrongly, however it lies.
func TestComparison_lies(t *testing.T) {
	t.Parallel()
	for _, l := range lies {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			for seed, o := range []ReconcileOptions{told, {Untouched: told.Untouched, Margin: time.Minute}, {UnpaidIncluded: true}} {
				m := newMonth(uint64(seed), 14) // #nosec G115 -- small
				s := m.statement(l.tell(m, slices.Clone(m.truth)))
				if o.UnpaidIncluded {
					each(func(_ *month, r *StatementRow) { r.State = "" })(m, s.Rows)
				}
				got := m.tally(m.compared(t, s, o))
				if len(got.wrong) > 0 {
					t.Errorf("%+v: %d of %d are wrong: %s", o, len(got.wrong), got.unknown, got.wrong[:min(3, len(got.wrong))])
				}
			}
		})
	}
	if len(lies) < 60 {
		t.Errorf("%d lies", len(lies))
	}
}

// What can be concluded is concluded.
func TestComparison_truth(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*month, []StatementRow) []StatementRow{
		"a whole export":   func(_ *month, rows []StatementRow) []StatementRow { return rows },
		"sorted down":      func(_ *month, rows []StatementRow) []StatementRow { slices.Reverse(rows); return rows },
		"without amounts":  each(func(_ *month, r *StatementRow) { r.Price.Valid, r.Amount.Valid = false, false }),
		"times of minutes": at(func(t time.Time) time.Time { return t.Truncate(time.Minute) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all tally
			for seed := range uint64(5) {
				m := newMonth(seed, 30)
				r := m.compared(t, m.statement(tell(m, slices.Clone(m.truth))), told)
				got := m.tally(r)
				all = tally{all.unknown + got.unknown, all.concluded + got.concluded, append(all.wrong, got.wrong...)}
				if seed == 0 && testing.Verbose() {
					reasons := map[string]int{}
					for _, u := range r.Undecided {
						reasons[first(u.Reason, 90)]++
					}
					t.Log(reasons)
				}
			}
			share := float64(all.concluded) / float64(all.unknown)
			if t.Logf("%d of %d concluded", all.concluded, all.unknown); len(all.wrong) > 0 || math.IsNaN(share) || share < 0.95 {
				t.Errorf("%.1f %% of %d are concluded, and wrong are %v", 100*share, all.unknown, all.wrong)
			}
		})
	}
}
