package sqlguard

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/money"
)

// A Statement is what the gateway says of one merchant's invoices. It is complete for
// those that were created from From until Until. Without these times, or if a row has no CreatedAt, it
// ends no order as absent.
type Statement struct {
	Merchant    string         // as [Order] has it; empty for the one that the client is for
	From, Until time.Time      // by the clock of the gateway; both or neither
	Rows        []StatementRow // at most 1,000,000
}

// A StatementRow is one invoice. Only Number is required: what else a row lacks decides less.
type StatementRow struct {
	Number    int                 // of the row where it was read, from 1, for reports
	OrderID   string              // of the invoice; empty if it names none
	InvoiceID string              // the gateway's own identifier; empty if the statement has none
	CreatedAt time.Time           // zero if the statement has no times
	Price     decimal.NullDecimal // not valid if the statement has none
	Amount    decimal.NullDecimal // likewise
	State     string              // what the gateway says of the payment; empty if the statement has no such column
	Invoice   json.RawMessage     // the row as JSON of at most 64 KiB: kept with an order that it ends
	Fault     string              // why the row cannot be read whole; empty if it can
}

// A Class is how a statement and the table differ about an order.
type Class string

const (
	ClassExists        Class = "unknown: it exists"                    // ClassExists: the invoice of an unknown order is in the statement.
	ClassAbsent        Class = "unknown: it does not exist"            // ClassAbsent: it would be in the statement, and is not.
	ClassMissing       Class = "created: it is missing at the gateway" // ClassMissing: the invoice of a created order should be in the statement.
	ClassTwice         Class = "twice at the gateway"                  // ClassTwice: there are several invoices for an order.
	ClassAmount        Class = "another amount"                        // ClassAmount: the invoice has another price or amount than the request.
	ClassOnlyAtGateway Class = "only at the gateway"                   // ClassOnlyAtGateway: the order is free, or the table does not have it.
)

// classes are in the order of a report.
var classes = []Class{ClassExists, ClassAbsent, ClassMissing, ClassTwice, ClassAmount, ClassOnlyAtGateway}

// A Difference is one order about which a statement and the table differ.
type Difference struct {
	Class   Class          // how they differ
	OrderID string         // of the rows, or of the order that has none
	Order   Order          // as it was read before, without responses unless it is unknown; free for one that the table does not have
	Rows    []StatementRow // of the statement; none for what is absent or missing
	Ended   bool           // whether the order was ended
	Err     error          // why it was not although that was asked for
}

// ReconcileOptions are the options of [Guard.Reconcile].
type ReconcileOptions struct {
	Apply  bool          // end orders of the classes exists and absent
	By     string        // who does it; required with Apply
	Margin time.Duration // how far the clocks may differ, and a request may be in transit; default 15 minutes

	// What the operator of the gateway has said, without which no order is absent. Who asked is recorded as By.
	Untouched      []string // the texts of State of an invoice that no payment has touched
	UnpaidIncluded bool     // of a statement without states: invoices that nobody has paid are in it
}

const (
	defaultMargin   = 15 * time.Minute
	mostRows        = 1_000_000
	mostDifferences = 10_000 // that are missing, or only at the gateway
	ordersAtOnce    = 1000   // that are looked up
	maxSaid         = 4 << 10
)

// A Reconciliation is the result of [Guard.Reconcile].
type Reconciliation struct {
	Differences []Difference // by class in the order of the constants, then by OrderID
	Undecided   []Undecided  // unknown orders of the merchant that the statement does not decide, by ID
}

// An Undecided is an unknown order that stays so.
type Undecided struct {
	Order  Order  // as it was read
	Reason string // what the statement lacks
}

// Reconcile compares a statement of the gateway with the orders of one merchant in the table. Without Apply it
// writes nothing. With it, it ends the orders of [ClassExists], with the row as the invoice, and of
// [ClassAbsent], as [Guard.Resolve] does: one that was sent again or ended meanwhile stays as it is, with the
// error in the [Difference].
//
// An unknown order exists if one row has its id, with an equal price and amount, at about the time when it
// was sent, as far as these are known. The row is then not of another order of the table, whatever its state, which
// has no agreeing row of its own, and whose id may have been cut to that of the row, rounded, or changed by a spreadsheet.
//
// It is absent if no row has its id, or one that may have been made of it, and the statement is shown to have it if it existed:
//
//   - Every row has CreatedAt. Every attempt lies between From and Until, with the margin at both ends, and Until is
//     not in the future by the clock of the database.
//   - No order that is known to be created in that time is missing, and the times of rows agree.
//   - One that is known to be created before the attempts and one after them, by the margin, have rows that agree.
//     They are at most 40 minutes apart, beside the margin and the time of the attempts.
//   - A known order before it and one after it, within a day, have one of the Untouched states, and two have another state.
//     In a statement without states UnpaidIncluded is set.
//   - No row is near, at about the time when it was sent, that names no order, cannot be read whole, or is not shown to be
//     of the order that it names: one that the table does not have, or has as free or in flight, that has several rows, of
//     which the amount or the time contradicts it, or that was tried again after the time of the row.
//   - No order has two rows of which one may be the other again, without an InvoiceID, and an id is at least as
//     long as its own.
//
// So a file that is cut, filtered, of paid invoices only, without some hours, or of another time zone, merchant or day ends
// no order as absent. What nothing shows is a single row that is lacking.
//
// Orders that are in flight are not reported. What [Guard.Prune] has deleted is only at the gateway. The
// memory that is needed grows with the rows, the unknown orders and the differences, not with the table.
//
// The error is a [*gateway.ArgumentError] if an argument or a row is invalid, before anything is read, or
// if more than 10,000 orders are missing or only at the gateway: then the statement is of another
// merchant, or of too long a time. If applying fails, the Reconciliation beside the error says what was ended.
func (g *Guard) Reconcile(ctx context.Context, s Statement, o ReconcileOptions) (Reconciliation, error) {
	o.Margin = cmp.Or(o.Margin, defaultMargin)
	if err := cmp.Or(o.validate(s), s.validate()); err != nil {
		return Reconciliation{}, err
	}
	c, err := g.compare(ctx, s, o)
	if err != nil {
		return Reconciliation{}, fmt.Errorf("sqlguard: reconciling: %w", explained(err))
	}
	r := c.judged()
	if !o.Apply {
		return r, nil
	}
	return r, g.applyDifferences(ctx, s, r.Differences, o)
}

// applyDifferences ends the orders that exist or are absent. Its error is one of the database.
func (g *Guard) applyDifferences(ctx context.Context, s Statement, differences []Difference, o ReconcileOptions) error {
	for i := range differences {
		d := &differences[i]
		found := Resolution{By: o.By, Margin: o.Margin}
		switch d.Class {
		case ClassExists:
			found.Exists, found.Invoice = true, d.Rows[0].Invoice
			found.Note = fmt.Sprintf("row %d of a statement, invoice %q", d.Rows[0].Number, d.Rows[0].InvoiceID)
		case ClassAbsent:
			found.Note = fmt.Sprintf("not in a statement from %s until %s, %s", timeOf(s.From), timeOf(s.Until), o.said())
		default:
			continue
		}
		d.Err = g.resolve(ctx, d.Order, found)
		if d.Ended = d.Err == nil; !d.Ended && !isRefusal(d.Err) {
			return d.Err
		}
	}
	return nil
}

// said is what the operator of the gateway has said, for the record.
func (o ReconcileOptions) said() string {
	if o.UnpaidIncluded {
		return "which has unpaid invoices, it was said"
	}
	return fmt.Sprintf("in which %q are untouched, it was said", o.Untouched)
}

func (o ReconcileOptions) validate(s Statement) error {
	hasState := func(r StatementRow) bool { return r.State != "" }
	switch {
	case o.Margin < 0:
		return badArgument("o.Margin", "must not be negative")
	case slices.Contains(o.Untouched, ""):
		return badArgument("o.Untouched", "must not have an empty state")
	case len(strings.Join(o.Untouched, "")) > maxSaid:
		return badArgument("o.Untouched", "must have at most 4 KiB")
	case o.UnpaidIncluded && slices.ContainsFunc(s.Rows, hasState):
		return badArgument("o.UnpaidIncluded", "is for a statement without states: name the Untouched states of this one")
	case o.Apply:
		return Resolution{By: o.By}.validate("o")
	}
	return nil
}

func (s Statement) validate() error {
	switch {
	case s.From.IsZero() != s.Until.IsZero():
		return badArgument("s", "has one of From and Until: set both, or neither if it is not complete for any time")
	case !s.From.IsZero() && !s.From.Before(s.Until):
		return badArgument("s.Until", "must be after From")
	case len(s.Rows) > mostRows:
		return badArgument("s.Rows", "are more than 1,000,000: use statements of shorter times")
	}
	numbers, invoices := map[int]bool{}, map[string]int{}
	for i, r := range s.Rows {
		reason := r.invalid()
		switch earlier, twice := invoices[r.InvoiceID]; {
		case reason != "":
		case numbers[r.Number]:
			reason = "another one has this Number"
		case r.InvoiceID != "" && twice && r.Fault == "":
			reason = fmt.Sprintf("has the InvoiceID of row %d: pass several rows of one invoice as one", earlier)
		}
		if reason != "" {
			return badArgument("s.Rows", fmt.Sprintf("row %d, at index %d: %s", r.Number, i, reason))
		}
		if numbers[r.Number] = true; r.Fault == "" {
			invoices[r.InvoiceID] = r.Number
		}
	}
	return nil
}

// invalid returns what is wrong with a row, or "".
func (r StatementRow) invalid() string {
	switch {
	case r.Number < 1:
		return "needs a Number above 0, for reports"
	case !utf8.ValidString(r.OrderID) || strings.Contains(r.OrderID, "\x00") || len(r.OrderID) > maxOrder:
		return "has an OrderID that is not valid UTF-8 of at most 1,024 bytes without NUL"
	case !money.Representable(r.Price.Decimal) || !money.Representable(r.Amount.Decimal):
		return "has an amount that no request can have"
	case len(r.Invoice) > maxKept || len(r.Invoice) > 0 && !json.Valid(r.Invoice):
		return "has an Invoice that is not JSON of at most 64 KiB"
	}
	return ""
}

func timeOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// compare reads the orders that a statement is compared with, the unknown ones first: Resolve refuses
// those that are sent again or end after that.
func (g *Guard) compare(ctx context.Context, s Statement, o ReconcileOptions) (*comparison, error) {
	now, err := g.clock(ctx)
	if err != nil {
		return nil, err
	}
	c := newComparison(s, o, timeAt(now))
	merchant := []byte(s.Merchant)
	if err := g.each(ctx, g.queries.unknownOf, []any{merchant}, c.addUnknown); err != nil {
		return nil, err
	}
	if err := g.eachID(ctx, merchant, c.rivals.notice); err != nil {
		return nil, err
	}
	if !s.From.IsZero() {
		from, until := s.From.Add(o.Margin).UnixMicro(), s.Until.Add(-o.Margin).UnixMicro()
		if err := g.each(ctx, g.queries.createdOf, []any{merchant, from, from, until}, c.addOther); err != nil {
			return nil, err
		}
	}
	for ids := range slices.Chunk(c.unread(), ordersAtOnce) {
		args := []any{merchant}
		for _, id := range ids {
			args = append(args, []byte(id))
		}
		if err := g.each(ctx, g.sql.ordersOf(len(ids)), args, c.addOther); err != nil {
			return nil, err
		}
	}
	for _, id := range c.unread() {
		if err := c.addOther(Order{ID: id, Merchant: s.Merchant, State: StateFree}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// eachID calls f with the id of each order of a merchant.
func (g *Guard) eachID(ctx context.Context, merchant []byte, f func(id string)) error {
	rows, err := g.db.QueryContext(ctx, g.queries.idsOf, merchant)
	return readRows(rows, err, func() error {
		var id string
		err := rows.Scan(&id)
		f(id)
		return err
	})
}

// ordersOf returns the query for a number of orders of a merchant.
func (s *schema) ordersOf(count int) string {
	return s.selects("WHERE merchant = {id} AND order_id IN (" + strings.TrimSuffix(strings.Repeat("{id}, ", count), ", ") + ")")
}
