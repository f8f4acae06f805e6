package sqlguard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

const (
	// mostApart is how far apart the certain orders before and after one that is absent may have been sent,
	// beside the margin and the time in which that one was sent: with the defaults an hour in all, so that
	// a file that lacks an hour decides nothing in it.
	mostApart = 40 * time.Minute

	// mostFar is how far from an absent order the rows may be that show what kinds of rows the statement has.
	mostFar = 24 * time.Hour
)

// A comparison is a statement and what was read of the table. It knows no database.
type comparison struct {
	s   Statement
	o   ReconcileOptions
	now time.Time // by the clock of the database, before anything was read

	byOrder   []*StatementRow // those with an id, by it and then by Number
	seen      []bool          // of each of byOrder, whether its order was read
	hasStates bool
	longest   int // bytes of the longest id

	unknown   []Order
	isUnknown map[string]bool
	rivals    rivals
	result    Reconciliation
	few       int // how many orders are missing or only at the gateway

	confirmed, contradicted int // created orders with a row that agrees, and with others
	otherClock              *StatementRow

	// What the orders without a row are judged by.
	begins, ends       []time.Time     // when certain orders with a row were sent, from and until
	untouched, touched []time.Time     // when their rows were created, by State
	unexplained        []*StatementRow // not shown to be of the order that they name: perhaps of another
}

func newComparison(s Statement, o ReconcileOptions, now time.Time) *comparison {
	c := &comparison{s: s, o: o, now: now, isUnknown: map[string]bool{}, rivals: newRivals()}
	for _, r := range s.Rows {
		r.OrderID = idOf(r.OrderID)
		c.hasStates = c.hasStates || r.State != ""
		c.longest = max(c.longest, len(r.OrderID))
		if r.OrderID == "" {
			c.unexplained = append(c.unexplained, &r)
		} else {
			c.byOrder = append(c.byOrder, &r)
		}
	}
	slices.SortFunc(c.byOrder, func(a, b *StatementRow) int {
		return cmp.Or(cmp.Compare(a.OrderID, b.OrderID), cmp.Compare(a.Number, b.Number))
	})
	c.seen = make([]bool, len(c.byOrder))
	return c
}

// rowsOf returns the rows of an order, and marks them as seen.
func (c *comparison) rowsOf(id string) []*StatementRow {
	first, _ := slices.BinarySearchFunc(c.byOrder, id, func(r *StatementRow, id string) int { return cmp.Compare(r.OrderID, id) })
	end := first
	for ; end < len(c.byOrder) && c.byOrder[end].OrderID == id; end++ {
		c.seen[end] = true
	}
	return c.byOrder[first:end]
}

// unread returns the orders of the rows, and the rivals, that were not read.
func (c *comparison) unread() (ids []string) {
	for i, r := range c.byOrder {
		if !c.seen[i] {
			ids = append(ids, r.OrderID)
		}
	}
	for id := range c.rivals.isNew {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// addUnknown adds an order that is unknown. All of these are added first.
func (c *comparison) addUnknown(o Order) error {
	c.unknown = append(c.unknown, o)
	c.isUnknown[o.ID] = true
	if rows := c.rowsOf(o.ID); len(rows) == 1 {
		c.rivals.add(o.ID)
	}
	return nil
}

// addOther compares an order that was not unknown at first. Its error is that there are too many
// differences.
func (c *comparison) addOther(o Order) error {
	if c.isUnknown[o.ID] {
		return nil
	}
	rows := c.rowsOf(o.ID)
	c.rival(o, rows)
	switch {
	case o.State == StateUnknown:
		c.leave(rows)
		c.undecided(o, "it has become unknown only now")
	case o.State == StateCreated:
		c.addCreated(o, rows)
	case len(rows) > 0:
		c.leave(rows)
		if o.State == StateFree {
			c.differ(ClassOnlyAtGateway, o, rows)
		}
	}
	if c.few > mostDifferences {
		return badArgument("s", "differs from the table in more than 10,000 orders that are missing or only at the gateway: use the statement of this merchant, of a shorter time")
	}
	return nil
}

// rival keeps unknown orders undecided whose row may be of another order that has none.
func (c *comparison) rival(o Order, rows []*StatementRow) {
	delete(c.rivals.isNew, o.ID)
	if slices.ContainsFunc(rows, func(r *StatementRow) bool { return r.Fault == "" && c.agrees(o, r) }) {
		return
	}
	for _, id := range c.rivals.of[o.ID] {
		if c.agrees(o, c.rowsOf(id)[0]) {
			c.rivals.found[id] = o.ID
		}
	}
}

// addCreated compares an order that is known to be created.
func (c *comparison) addCreated(o Order, rows []*StatementRow) {
	once := o.Attempts == 1 // otherwise an earlier attempt may have made the invoice
	covered := c.covers(span{o.Begun, o.SentUntil}) && (once || o.Outcome == gateway.OutcomeSucceeded)
	switch {
	case len(rows) == 0:
		if covered {
			c.differ(ClassMissing, o, nil)
		}
	case hasFault(rows):
		c.leave(rows)
	case len(rows) > 1:
		c.leave(rows)
		c.contradicted++
		c.differ(ClassTwice, o, rows)
	case !sameAmounts(o, rows[0]):
		c.leave(rows)
		c.contradicted++
		c.differ(ClassAmount, o, rows)
	case !inTime(o, rows[0], c.o.Margin):
		c.leave(rows)
		c.contradicted++
		if once && (c.otherClock == nil || rows[0].Number < c.otherClock.Number) {
			c.otherClock = rows[0]
		}
	case rows[0].CreatedAt.Before(o.Begun.Add(-c.o.Margin)): // of an earlier attempt, of which the time is not known
		c.leave(rows)
		c.confirmed++
	default:
		c.confirmed++
		c.addWitness(o, rows[0])
	}
}

// addWitness adds an order whose row is certain.
func (c *comparison) addWitness(o Order, r *StatementRow) {
	if r.CreatedAt.IsZero() {
		return
	}
	if s := sent(o); !s.from.IsZero() {
		c.begins, c.ends = append(c.begins, s.from), append(c.ends, s.until)
	}
	switch {
	case slices.Contains(c.o.Untouched, r.State):
		c.untouched = append(c.untouched, r.CreatedAt)
	case r.State != "":
		c.touched = append(c.touched, r.CreatedAt)
	}
}

// leave keeps rows as unexplained.
func (c *comparison) leave(rows []*StatementRow) { c.unexplained = append(c.unexplained, rows...) }

// differ adds a difference.
func (c *comparison) differ(class Class, o Order, rows []*StatementRow) {
	if class == ClassMissing || class == ClassOnlyAtGateway {
		c.few++
	}
	if len(rows) > 1 {
		class = ClassTwice
	}
	d := Difference{Class: class, OrderID: o.ID, Order: o}
	for _, r := range rows {
		d.Rows = append(d.Rows, *r)
	}
	c.result.Differences = append(c.result.Differences, d)
}

func (c *comparison) undecided(o Order, reason string) {
	c.result.Undecided = append(c.result.Undecided, Undecided{o, reason})
}

// judged returns the differences, after all orders were read. Those that exist show what else the statement has.
func (c *comparison) judged() Reconciliation {
	for _, o := range c.unknown {
		c.rival(o, c.rowsOf(o.ID))
	}
	foreign := c.foreign()
	var absent []Order
	for _, o := range c.unknown {
		rows := c.rowsOf(o.ID)
		if len(rows) == 0 {
			absent = append(absent, o)
			continue
		}
		class, reason := c.judgeRows(o, rows)
		reason = cmp.Or(reason, foreign)
		switch {
		case class == ClassExists && reason != "":
			c.undecided(o, reason)
			c.leave(rows)
		case class == ClassExists:
			c.addWitness(o, rows[0])
			c.differ(class, o, rows)
		default:
			c.leave(rows)
			c.differ(class, o, rows)
		}
	}
	c.sort()
	c.judgeAbsent(absent)
	c.sort()
	return c.result
}

// judgeRows returns how an unknown order and its rows differ, and why they do not show that it exists, or "".
func (c *comparison) judgeRows(o Order, rows []*StatementRow) (class Class, reason string) {
	r, s, rival := rows[0], sent(o), c.rivals.found[o.ID]
	switch {
	case hasFault(rows):
		return ClassExists, fmt.Sprintf("row %d names it, and cannot be read whole: %s", r.Number, r.Fault)
	case len(rows) > 1:
		return ClassTwice, ""
	case !sameAmounts(o, r):
		return ClassAmount, ""
	case rival != "":
		return ClassExists, fmt.Sprintf("row %d may be of the order %+q, which has no row that agrees with it: an id may have been cut or changed", r.Number, rival)
	case !inTime(o, r, c.o.Margin):
		return ClassExists, fmt.Sprintf("row %d is of %s, and the order was sent from %s until %s: the statement is of another time zone or clock, or the row of another order", r.Number, timeOf(r.CreatedAt), timeOf(s.from), timeOf(s.until))
	}
	return ClassExists, ""
}

// judgeAbsent decides about the unknown orders without a row, after those that have one.
func (c *comparison) judgeAbsent(absent []Order) {
	for _, times := range [][]time.Time{c.begins, c.ends, c.untouched, c.touched} {
		slices.SortFunc(times, time.Time.Compare)
	}
	slices.SortFunc(c.unexplained, func(a, b *StatementRow) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Number, b.Number))
	})
	resembling, doubt := c.resembling(absent), c.doubt()
	for _, o := range absent {
		reason := doubt
		if r := resembling[o.ID]; r != nil {
			reason = fmt.Sprintf("row %d has the id %+q, which a spreadsheet may have made of it", r.Number, r.OrderID)
		}
		if reason = cmp.Or(reason, c.notCovered(o), c.notWitnessed(o), c.mayBeOf(o)); reason != "" {
			c.undecided(o, reason)
			continue
		}
		c.differ(ClassAbsent, o, nil)
	}
}

// doubt returns why the statement may lack any invoice, or "". The differences are sorted.
func (c *comparison) doubt() string {
	missing := slices.IndexFunc(c.result.Differences, func(d Difference) bool { return d.Class == ClassMissing })
	doubled := slices.ContainsFunc(c.result.Differences, func(d Difference) bool {
		return d.Class == ClassTwice && slices.ContainsFunc(d.Rows, func(r StatementRow) bool { return r.InvoiceID == "" })
	})
	timeless := slices.IndexFunc(c.s.Rows, func(r StatementRow) bool { return r.CreatedAt.IsZero() && r.Fault == "" })
	switch {
	case c.s.From.IsZero():
		return "the statement does not say from when until when it is complete: set From and Until"
	case c.s.Until.After(c.now):
		return fmt.Sprintf("Until is in the future, at the database it is %s", timeOf(c.now))
	case timeless >= 0:
		return fmt.Sprintf("row %d has no time of creation: export the times of all rows", c.s.Rows[timeless].Number)
	case missing >= 0:
		d := c.result.Differences[missing]
		return fmt.Sprintf("the statement is not whole: the order %q, which is known to be created at %s, is missing", d.OrderID, timeOf(d.Order.Created))
	case c.otherClock != nil:
		return fmt.Sprintf("row %d, of the order %q, is of %s, and it was created at another time: the statement is of another time zone or clock", c.otherClock.Number, c.otherClock.OrderID, timeOf(c.otherClock.CreatedAt))
	case doubled:
		return "the statement has two rows of an order without the identifiers of the invoices, so that rows may be doubled or lacking: export the identifiers too"
	case c.hasStates && len(c.o.Untouched) == 0:
		return "nobody has said which states of the gateway no payment has touched, and invoices that nobody has paid may not be in the statement: name these states"
	case !c.hasStates && !c.o.UnpaidIncluded:
		return "the statement has no states, and nobody has said that invoices are in it that nobody has paid"
	}
	return c.foreign()
}

// foreign returns why the statement seems to be of other orders, or "".
func (c *comparison) foreign() string {
	if c.contradicted < 2 || 50*c.contradicted <= c.confirmed {
		return ""
	}
	return fmt.Sprintf("of %d created orders the amount, the time or the number of rows is another in the statement, and of %d it is the same: it is of another merchant, column, time zone or clock", c.contradicted, c.confirmed)
}

// notCovered returns why the statement need not have an order, or "".
func (c *comparison) notCovered(o Order) string {
	s := sent(o)
	switch {
	case !c.covers(s):
		return fmt.Sprintf("it was sent from %s until %s, and the statement decides from %s until %s only, which is its time less the margin", timeOf(s.from), timeOf(s.until), timeOf(c.s.From.Add(c.o.Margin)), timeOf(c.s.Until.Add(-c.o.Margin)))
	case c.longest < len(o.ID):
		return "every row has a shorter id, so that the column may be cut"
	}
	return ""
}

// notWitnessed returns why the rows near an order do not show that the statement would have it, or "".
func (c *comparison) notWitnessed(o Order) string {
	s := sent(o)
	before, _ := nearest(c.ends, s.from)
	_, after := nearest(c.begins, s.until.Add(c.o.Margin))
	if most := s.until.Sub(s.from) + c.o.Margin + mostApart; before.IsZero() || after.IsZero() || after.Sub(before) > most {
		return fmt.Sprintf("nothing shows that the statement has the orders around it: two that are known to be created are needed, one before and one after it by the margin, at most %v apart", most.Round(time.Minute))
	}
	if !c.hasStates {
		return ""
	}
	switch {
	case !isBetween(c.untouched, s):
		return "the statement has no known order that no payment has touched within a day before it, or after it: those may have been left out"
	case !isBetween(c.touched, s):
		return "the statement has no known order of another state than the untouched within a day before it, or after it: it may be of a part of the orders only"
	}
	return ""
}

// isBetween reports whether one of sorted times is before a span and one after it, and neither is far from it.
func isBetween(times []time.Time, s span) bool {
	before, after := nearest(times, s.from)
	return !before.IsZero() && !after.IsZero() && s.from.Sub(before) <= mostFar && after.Sub(s.until) <= mostFar
}

// nearest returns the last of sorted times that is before a time, and the first that is not.
func nearest(times []time.Time, t time.Time) (before, after time.Time) {
	at, _ := slices.BinarySearchFunc(times, t, time.Time.Compare)
	if at < len(times) {
		after = times[at]
	}
	if at > 0 {
		before = times[at-1]
	}
	return before, after
}

// mayBeOf returns why a row may be of an order although it does not name it, or "".
func (c *comparison) mayBeOf(o Order) string {
	start := sent(o).from.Add(-c.o.Margin)
	first, _ := slices.BinarySearchFunc(c.unexplained, start, func(r *StatementRow, t time.Time) int { return r.CreatedAt.Compare(t) })
	timeless, _ := slices.BinarySearchFunc(c.unexplained, time.Time{}.Add(1), func(r *StatementRow, t time.Time) int { return r.CreatedAt.Compare(t) })
	for _, r := range c.unexplained[:timeless] {
		if sameAmounts(o, r) {
			return fmt.Sprintf("row %d may be of it: it cannot be read whole: %s", r.Number, r.Fault)
		}
	}
	if first == len(c.unexplained) || !inTime(o, c.unexplained[first], c.o.Margin) {
		return ""
	}
	switch r := c.unexplained[first]; {
	case r.Fault != "":
		return fmt.Sprintf("row %d may be of it: it cannot be read whole: %s", r.Number, r.Fault)
	case r.OrderID == "":
		return fmt.Sprintf("row %d, which names no order, may be of it", r.Number)
	default:
		return fmt.Sprintf("row %d, of the order %+q, may be of it, if its id was changed: nothing shows that it is of the order that it names", r.Number, r.OrderID)
	}
}

// resembling returns, for each of the orders, the first row of its time with an id that may have been made of its own.
func (c *comparison) resembling(absent []Order) map[string]*StatementRow {
	byForm, found := map[string][]Order{}, map[string]*StatementRow{}
	for _, o := range absent {
		for _, form := range formsOf(plainID(o.ID)) {
			byForm[form] = append(byForm[form], o)
		}
	}
	for _, r := range c.byOrder {
		for _, o := range byForm[plainID(r.OrderID)] {
			if inTime(o, r, c.o.Margin) && (found[o.ID] == nil || r.Number < found[o.ID].Number) {
				found[o.ID] = r
			}
		}
	}
	return found
}

func (c *comparison) sort() {
	slices.SortFunc(c.result.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(slices.Index(classes, a.Class), slices.Index(classes, b.Class)), cmp.Compare(a.OrderID, b.OrderID))
	})
	slices.SortFunc(c.result.Undecided, func(a, b Undecided) int { return cmp.Compare(a.Order.ID, b.Order.ID) })
}

// A span is when something happened at the earliest and at the latest, by the clock of the database. One
// without a beginning began at an unknown time.
type span struct{ from, until time.Time }

// sent is when the attempts of an order can have been sent.
func sent(o Order) span {
	s := span{o.Begun, o.SentUntil}
	switch {
	case o.State == StateUnknown:
		s.from = o.Since
		for _, r := range append(o.Earlier[:len(o.Earlier):len(o.Earlier)], o.Record) {
			if !r.SentAt.IsZero() && r.SentAt.Before(s.from) {
				s.from = r.SentAt // of an attempt that was reported late
			}
		}
	case o.Attempts > 1:
		s.from = time.Time{} // an earlier attempt may have made the invoice
	}
	if s.until.Before(o.Begun) {
		s.until = o.Begun // a clock was set back
	}
	return s
}

// covers reports whether the statement has all that happened in a span.
func (c *comparison) covers(s span) bool {
	return !c.s.From.IsZero() && s.from.After(c.s.From.Add(c.o.Margin)) && s.until.Before(c.s.Until.Add(-c.o.Margin))
}

// inTime reports whether the time of a row, if it has one, is that of an order.
func inTime(o Order, r *StatementRow, margin time.Duration) bool {
	s := sent(o)
	return r.CreatedAt.IsZero() || !r.CreatedAt.Before(s.from.Add(-margin)) && !r.CreatedAt.After(s.until.Add(margin))
}

// sameAmounts reports whether the amounts that both have are equal.
func sameAmounts(o Order, r *StatementRow) bool {
	same := func(a decimal.NullDecimal, b decimal.Decimal) bool { return !a.Valid || a.Decimal.Equal(b) }
	request := o.Record.Request
	return request.OrderID == "" || same(r.Price, request.Price) && same(r.Amount, request.Amount)
}

// agrees reports whether a row can be of an order.
func (c *comparison) agrees(o Order, r *StatementRow) bool {
	return sameAmounts(o, r) && inTime(o, r, c.o.Margin)
}

func hasFault(rows []*StatementRow) bool {
	return slices.ContainsFunc(rows, func(r *StatementRow) bool { return r.Fault != "" })
}
