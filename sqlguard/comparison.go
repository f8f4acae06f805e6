package sqlguard

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// A comparison is a statement and what was read of the table. It knows no database.
type comparison struct {
	s      Statement
	margin time.Duration
	now    time.Time // by the clock of the database, before anything was read

	byOrder []int  // the indexes of the rows, by order and then by Number
	seen    []bool // of each of byOrder, whether the order was read

	unknown     []unknownOrder
	isListed    map[string]bool // which orders unknown has
	result      Reconciliation
	unexplained []*StatementRow // those that are not shown to be of their order, and may be of another
	few         int             // how many orders are missing or only at the gateway

	firstWitness, lastWitness time.Time // when the first witness was created at the latest, and the last one began
	confirmed, contradicted   int       // created orders with a row that agrees, and with one that does not
	otherClock                *StatementRow
}

// An unknownOrder is one, and when it can have been sent at the latest.
type unknownOrder struct {
	Order
	latest time.Time
}

func newComparison(s Statement, margin time.Duration) *comparison {
	c := &comparison{s: s, margin: margin, byOrder: make([]int, len(s.Rows)), seen: make([]bool, len(s.Rows)), isListed: map[string]bool{}}
	c.s.Rows = slices.Clone(s.Rows)
	for i := range c.byOrder {
		c.byOrder[i] = i
		c.s.Rows[i].OrderID = idOf(s.Rows[i].OrderID)
	}
	slices.SortFunc(c.byOrder, func(a, b int) int {
		return cmp.Or(cmp.Compare(c.s.Rows[a].OrderID, c.s.Rows[b].OrderID), cmp.Compare(s.Rows[a].Number, s.Rows[b].Number))
	})
	return c
}

// rowsOf returns the rows of an order, and marks them as seen.
func (c *comparison) rowsOf(id string) (rows []StatementRow) {
	first, _ := slices.BinarySearchFunc(c.byOrder, id, func(i int, id string) int { return cmp.Compare(c.s.Rows[i].OrderID, id) })
	for i := first; i < len(c.byOrder) && c.s.Rows[c.byOrder[i]].OrderID == id; i++ {
		c.seen[i] = true
		rows = append(rows, c.s.Rows[c.byOrder[i]])
	}
	return rows
}

// unseen returns the orders of the rows that were not read.
func (c *comparison) unseen() (ids []string) {
	for i, row := range c.byOrder {
		if id := c.s.Rows[row].OrderID; !c.seen[i] && (len(ids) == 0 || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (c *comparison) addUnknown(o Order) error {
	c.unknown = append(c.unknown, unknownOrder{o, o.SentUntil})
	c.isListed[o.ID] = true
	_ = c.rowsOf(o.ID)
	return nil
}

// addOther compares an order that was not unknown at first. Its error is that there are too many
// differences.
func (c *comparison) addOther(o Order) error {
	if c.isListed[o.ID] {
		return nil
	}
	rows := c.rowsOf(o.ID)
	switch o.State {
	case StateInFlight:
		c.leave(rows)
		return nil
	case StateUnknown:
		c.leave(rows)
		c.result.Undecided = append(c.result.Undecided, Undecided{o, "it has become unknown only now"})
		return nil
	case StateCreated:
		c.addCreated(o, rows)
	default:
		c.leave(rows)
		c.differ(ClassOnlyAtGateway, o, rows)
	}
	if c.few > mostDifferences {
		return badArgument("s", "differs from the table in more than 10,000 orders that are missing or only at the gateway: use the statement of this merchant, of a shorter time")
	}
	return nil
}

// addCreated compares an order that is known to be created.
func (c *comparison) addCreated(o Order, rows []StatementRow) {
	made := span{o.Begun, o.Created}
	once := o.Attempts == 1 // otherwise an earlier attempt may have made the invoice
	covered := c.covers(made) && (once || o.Outcome == gateway.OutcomeSucceeded)
	switch {
	case len(rows) == 0:
		if covered {
			c.differ(ClassMissing, o, nil)
		}
	case len(rows) > 1:
		c.leave(rows)
		c.differ(ClassTwice, o, rows)
	case !sameAmounts(o, rows[0]):
		c.leave(rows)
		c.contradicted++
		c.differ(ClassAmount, o, rows)
	case once && !c.agrees(made, rows[0]):
		c.contradicted++
		if c.otherClock == nil || rows[0].Number < c.otherClock.Number {
			c.otherClock = &rows[0]
		}
	default:
		c.confirmed++
		if !c.agrees(made, rows[0]) {
			c.leave(rows) // of an earlier attempt, perhaps
		}
		if !once || !covered {
			return
		}
		if c.firstWitness.IsZero() || made.until.Before(c.firstWitness) {
			c.firstWitness = made.until
		}
		if made.from.After(c.lastWitness) {
			c.lastWitness = made.from
		}
	}
}

// leave keeps rows as unexplained.
func (c *comparison) leave(rows []StatementRow) {
	for i := range rows {
		c.unexplained = append(c.unexplained, &rows[i])
	}
}

// differ adds a difference.
func (c *comparison) differ(class Class, o Order, rows []StatementRow) {
	if class == ClassMissing || class == ClassOnlyAtGateway {
		c.few++
	}
	if len(rows) > 1 {
		class = ClassTwice
	}
	c.result.Differences = append(c.result.Differences, Difference{Class: class, OrderID: o.ID, Order: o, Rows: rows})
}

// judged returns the differences, after all orders were read.
func (c *comparison) judged() Reconciliation {
	slices.SortFunc(c.unknown, func(a, b unknownOrder) int { return cmp.Compare(a.ID, b.ID) })
	c.sort()
	alike := c.alike()
	var absent []unknownOrder
	for _, o := range c.unknown {
		rows := c.rowsOf(o.ID)
		switch {
		case len(rows) == 0:
			absent = append(absent, o)
			continue
		case len(rows) > 1:
			c.leave(rows)
			c.differ(ClassTwice, o.Order, rows)
			continue
		case !sameAmounts(o.Order, rows[0]):
			c.leave(rows)
			c.differ(ClassAmount, o.Order, rows)
			continue
		}
		reason := c.notExisting(o, rows[0], alike[o.ID])
		if reason != "" {
			c.leave(rows)
		}
		c.decide(ClassExists, o, rows, reason)
	}
	c.judgeAbsent(absent)
	c.sort()
	return c.result
}

// judgeAbsent decides about the unknown orders without a row, after those that have one.
func (c *comparison) judgeAbsent(absent []unknownOrder) {
	slices.SortFunc(c.unexplained, func(a, b *StatementRow) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Number, b.Number))
	})
	resembling, doubt, doubled, longest := c.resembling(absent), c.doubt(), c.hasDoubledRow(), 0
	for i := range c.s.Rows {
		longest = max(longest, len(c.s.Rows[i].OrderID))
	}
	for _, o := range absent {
		reason := c.notAbsent(o, resembling[o.ID], doubt)
		switch {
		case reason != "":
		case doubled:
			reason = "the statement has two rows of an order without the identifiers of the invoices, so that rows may be doubled or lacking: export the identifiers too"
		case longest < len(o.ID):
			reason = "every row has a shorter id, so that the column may be cut"
		}
		c.decide(ClassAbsent, o, nil, reason)
	}
}

// decide adds an unknown order as a difference or, for a reason, as undecided.
func (c *comparison) decide(class Class, o unknownOrder, rows []StatementRow, reason string) {
	if reason != "" {
		c.result.Undecided = append(c.result.Undecided, Undecided{o.Order, reason})
		return
	}
	c.differ(class, o.Order, rows)
}

func (c *comparison) sort() {
	slices.SortFunc(c.result.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(slices.Index(classes, a.Class), slices.Index(classes, b.Class)), cmp.Compare(a.OrderID, b.OrderID))
	})
	slices.SortFunc(c.result.Undecided, func(a, b Undecided) int { return cmp.Compare(a.Order.ID, b.Order.ID) })
}

// A span is when something happened at the earliest and at the latest, by the clock of the database.
type span struct{ from, until time.Time }

// sent is when the attempts of an unknown order can have been sent.
func sent(o unknownOrder) span {
	s := span{o.Since, o.latest}
	if at := o.Record.SentAt; o.Attempts > 1 && !at.IsZero() && at.Before(s.from) {
		s.from = at // of an earlier attempt that was reported late
	}
	if s.until.Before(o.Begun) {
		s.until = o.Begun // a clock was set back
	}
	return s
}

// covers reports whether a statement has all that happened in a span.
func (c *comparison) covers(s span) bool {
	return !c.s.From.IsZero() && s.from.After(c.s.From.Add(c.margin)) && s.until.Before(c.s.Until.Add(-c.margin))
}

// agrees reports whether the time of a row, if it has one, is in a span.
func (c *comparison) agrees(s span, r StatementRow) bool {
	return r.CreatedAt.IsZero() || !r.CreatedAt.Before(s.from.Add(-c.margin)) && !r.CreatedAt.After(s.until.Add(c.margin))
}

// sameAmounts reports whether the amounts that both have are equal.
func sameAmounts(o Order, r StatementRow) bool {
	same := func(a decimal.NullDecimal, b decimal.Decimal) bool { return !a.Valid || a.Decimal.Equal(b) }
	request := o.Record.Request
	return request.OrderID == "" || same(r.Price, request.Price) && same(r.Amount, request.Amount)
}

// foreign returns why the statement seems to be of other orders, or "".
func (c *comparison) foreign() string {
	if c.contradicted < 2 || c.contradicted <= c.confirmed {
		return ""
	}
	return fmt.Sprintf("of %d created orders the amount or the time is another in the statement, and of %d it is the same: it is of another merchant, column, time zone or clock", c.contradicted, c.confirmed)
}

// notExisting returns why one row with the id of an unknown order does not show that it exists, or "".
func (c *comparison) notExisting(o unknownOrder, r StatementRow, alike string) string {
	s := sent(o)
	if alike != "" {
		return fmt.Sprintf("row %d may be of the order %+q, which is unknown and has no row: an id may have been cut or changed", r.Number, alike)
	}
	if o.Created.IsZero() && !c.agrees(s, r) {
		return fmt.Sprintf("row %d is of %s, and the order was sent from %s until %s: the statement is of another time zone or clock, or the row of another order", r.Number, timeOf(r.CreatedAt), timeOf(s.from), timeOf(s.until))
	}
	return c.foreign()
}

// doubt returns why the statement may lack an invoice, or "". The differences are sorted.
func (c *comparison) doubt() string {
	missing := slices.IndexFunc(c.result.Differences, func(d Difference) bool { return d.Class == ClassMissing })
	timeless := slices.IndexFunc(c.s.Rows, func(r StatementRow) bool { return r.CreatedAt.IsZero() })
	switch {
	case c.s.From.IsZero():
		return "the statement does not say from when until when it is complete: set From and Until"
	case c.s.Until.After(c.now):
		return fmt.Sprintf("Until is in the future, at the database it is %s", timeOf(c.now))
	case timeless >= 0:
		return fmt.Sprintf("row %d has no time of creation: export the times of all rows", c.s.Rows[timeless].Number)
	case missing >= 0:
		return fmt.Sprintf("the statement is not whole: the order %q, which is known to be created at %s, is missing", c.result.Differences[missing].OrderID, timeOf(c.result.Differences[missing].Order.Created))
	case c.otherClock != nil:
		return fmt.Sprintf("row %d, of the order %q, is of %s, and it was created at another time: the statement is of another time zone or clock", c.otherClock.Number, c.otherClock.OrderID, timeOf(c.otherClock.CreatedAt))
	}
	return c.foreign()
}

// hasDoubledRow reports whether an order has two rows of which one may be the other again.
func (c *comparison) hasDoubledRow() bool {
	return slices.ContainsFunc(c.result.Differences, func(d Difference) bool {
		return d.Class == ClassTwice && slices.ContainsFunc(d.Rows, func(r StatementRow) bool { return r.InvoiceID == "" })
	})
}

// notAbsent returns why an order without a row may exist, or "".
func (c *comparison) notAbsent(o unknownOrder, resembles *StatementRow, doubt string) string {
	s := sent(o)
	switch {
	case resembles != nil:
		return fmt.Sprintf("row %d has the id %+q, which a spreadsheet may have made of it", resembles.Number, resembles.OrderID)
	case doubt != "":
		return doubt
	case !o.Created.IsZero():
		return "an earlier invoice of it is known to exist, and the statement does not have it"
	case !c.covers(s):
		return fmt.Sprintf("it was sent from %s until %s, and the statement decides from %s until %s only, which is its time less the margin", timeOf(s.from), timeOf(s.until), timeOf(c.s.From.Add(c.margin)), timeOf(c.s.Until.Add(-c.margin)))
	case c.firstWitness.IsZero() || !c.firstWitness.Before(s.from.Add(-c.margin)):
		return "nothing shows that the statement has the orders before it: it needs one that is known to be created, earlier than it by the margin"
	case !c.lastWitness.After(s.until.Add(c.margin)):
		return "nothing shows that the statement has the orders after it: it needs one that is known to be created, later than it by the margin"
	}
	first, _ := slices.BinarySearchFunc(c.unexplained, s.from.Add(-c.margin), func(r *StatementRow, t time.Time) int { return r.CreatedAt.Compare(t) })
	if first < len(c.unexplained) && c.agrees(s, *c.unexplained[first]) {
		r := c.unexplained[first]
		return fmt.Sprintf("row %d, of the order %+q, may be of it, if its id was changed: nothing shows that it is of the order that it names", r.Number, r.OrderID)
	}
	return ""
}

// alike returns, for unknown orders with one row, an unknown order without a row that it may be of: the id of
// one is, but for its form, the beginning of the other.
func (c *comparison) alike() map[string]string {
	type plain struct {
		unknownOrder
		id   string
		rows []StatementRow
	}
	var all, open []plain // open are those with which the id of the last one begins
	for _, o := range c.unknown {
		all = append(all, plain{o, plainID(o.ID), c.rowsOf(o.ID)})
	}
	slices.SortStableFunc(all, func(a, b plain) int { return cmp.Compare(a.id, b.id) })
	found := map[string]string{}
	mark := func(with, without plain) {
		if len(with.rows) == 1 && len(without.rows) == 0 && found[with.ID] == "" && c.agrees(sent(without.unknownOrder), with.rows[0]) {
			found[with.ID] = without.ID
		}
	}
	for _, o := range all {
		for len(open) > 0 && !strings.HasPrefix(o.id, open[len(open)-1].id) {
			open = open[:len(open)-1]
		}
		for _, shorter := range open {
			mark(shorter, o)
			mark(o, shorter)
		}
		open = append(open, o)
	}
	return found
}

// resembling returns, for each of the orders, the first row with an id that may have been made of its own.
func (c *comparison) resembling(absent []unknownOrder) map[string]*StatementRow {
	unknown, found := map[string][]string{}, map[string]*StatementRow{}
	for _, o := range absent {
		for _, form := range forms(o.ID) {
			unknown[form] = append(unknown[form], o.ID)
		}
	}
	for i := range c.s.Rows {
		r := &c.s.Rows[i]
		for _, id := range unknown[plainID(r.OrderID)] {
			if found[id] == nil || r.Number < found[id].Number {
				found[id] = r
			}
		}
	}
	return found
}

var (
	digits     = regexp.MustCompile(`^[0-9]+$`)
	scientific = regexp.MustCompile(`^[0-9](?:[.,][0-9]+)?e\+?([0-9]{1,3})$`)
	zeros      = regexp.MustCompile(`(^|[^0-9])0+([0-9])`)
	fraction   = regexp.MustCompile(`^([0-9]+)[.,]0*$`)
)

// forms are what plainID can be of a row with an id that was changed: a number may have been rounded, to 15
// digits by a spreadsheet, or to those of a float64.
func forms(id string) []string {
	plain := plainID(id)
	if !digits.MatchString(plain) {
		return []string{plain}
	}
	all := []string{plain, fmt.Sprint("digits ", len(plain))}
	if number, err := strconv.ParseFloat(plain, 64); err == nil && len(plain) > 15 {
		all = append(all, plain[:15]+strings.Repeat("0", len(plain)-15), strconv.FormatFloat(number, 'f', -1, 64))
	}
	return all
}

// plainID is an id without what a spreadsheet or a form may change: upper and lower case, spaces, quotes, the
// kind of a dash, leading zeros and ".0". Of a number with an exponent it is how many digits it has.
func plainID(id string) string {
	id = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c), unicode.In(c, unicode.Cc, unicode.Cf), strings.ContainsRune("\"'’=`", c):
			return -1
		case unicode.Is(unicode.Pd, c):
			return '-'
		}
		return unicode.ToLower(unicode.ToUpper(c))
	}, id)
	if match := scientific.FindStringSubmatch(id); match != nil {
		exponent, _ := strconv.Atoi(match[1])
		return fmt.Sprint("digits ", exponent+1)
	}
	return fraction.ReplaceAllString(zeros.ReplaceAllString(id, "$1$2"), "$1")
}
