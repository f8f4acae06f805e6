package sqlguard

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cryptogw/gateway"
)

// A State is the state of an order. The package documentation describes the
// states.
type State string

const (
	StateFree     State = "free"      // StateFree: an invoice may be sent.
	StateInFlight State = "in flight" // StateInFlight: an invoice is being sent.
	StateUnknown  State = "unknown"   // StateUnknown: an invoice was sent and may exist.
	StateCreated  State = "created"   // StateCreated: an invoice exists.
)

// An Order is the record of an order in the table. All times are those of the
// database, in UTC, and zero if the event has not happened.
type Order struct {
	ID       string          // [gateway.Order.Key]: the orderId of the invoice, in lower case if it is a UUID
	Gateway  string          // the base URL of the client that began it first
	Merchant string          // empty for the one that the client is for; see [WithMerchants]
	State    State           // free for an order that was never begun
	Attempts int             // how often its lease was granted; an upper bound of the invoices that exist
	Begun    time.Time       // when its lease was last granted
	Ended    time.Time       // when End last recorded an outcome
	Outcome  gateway.Outcome // the outcome that End last recorded
	Since    time.Time       // when the oldest attempt with an unknown outcome began; zero in other states
	Created  time.Time       // when the existence of an invoice was last recorded

	SentUntil time.Time // until when it can have been sent: the end of the last attempt, or its lease after a crash

	Record  gateway.OrderRecord   // what is known of the request and the response, see the package documentation
	Earlier []gateway.OrderRecord // of other attempts whose outcome is unknown, the oldest first

	Resolved   time.Time  // when the order was last resolved
	Resolution Resolution // the last resolution
}

// A Resolution is a finding about an order whose outcome was unknown.
type Resolution struct {
	Exists bool   // whether the service has an invoice for the order
	By     string // required: the name of the person
	Note   string // optional, for example the invoice's number

	Invoice json.RawMessage // optional: the invoice as the service has it, which later calls return; only with Exists

	Margin time.Duration // how long a request may be in transit after [Order.SentUntil]; 0 for 15 minutes
}

// Texts of Resolution.Exists in the table.
const (
	exists       = "exists"
	doesNotExist = "does not exist"
)

// Order returns the record of an order. The merchant is as [gateway.WithMerchant] sets
// it and [Guard.Pending] returns it; empty for the one that the client is for. An order
// that was never begun is free, with no attempts.
func (g *Guard) Order(ctx context.Context, merchant, orderID string) (Order, error) {
	k := key{merchant, idOf(orderID)}
	orders, err := g.read(ctx, g.stmts.order, k.merchant, k.order)
	if err != nil {
		return Order{}, k.error(err)
	}
	if len(orders) == 0 {
		return Order{ID: k.order, Merchant: k.merchant, State: StateFree}, nil
	}
	return orders[0], nil
}

// A PendingQuery selects what [Guard.Pending] returns. The zero query selects all.
type PendingQuery struct {
	Most  int   // how many at most; 0 for all
	After Order // those after this one, as an earlier Pending returned it last; the zero order for the first ones
}

// Pending returns the orders that a person must look up at the service: those that
// are unknown, of every merchant, including those of crashed processes whose lease
// has expired. The order that has been unknown longest comes first. After a long failure of the
// service there may be very many: read them in pages. The error for a negative Most, or an After
// that no Pending has returned, is a [*gateway.ArgumentError].
func (g *Guard) Pending(ctx context.Context, q PendingQuery) ([]Order, error) {
	switch {
	case q.Most < 0:
		return nil, badArgument("q.Most", "must not be negative")
	case q.After.ID != "" && q.After.Since.IsZero():
		return nil, badArgument("q.After", "has no Since: pass an order as Pending returned it, not one of Order or ParseToken")
	}
	orders, err := g.read(ctx, g.stmts.pending, g.pendingArgs(q)...)
	if err != nil {
		return nil, fmt.Errorf("sqlguard: pending orders: %w", explained(err))
	}
	return orders, nil
}

// pendingArgs are the arguments of the statement pending.
func (g *Guard) pendingArgs(q PendingQuery) []any {
	return []any{cmp.Or(q.Most, math.MaxInt), g.cfg.dialect.timeText(q.After.Since), q.After.Merchant, q.After.ID}
}

// A PendingSummary is about the orders that [Guard.Pending] returns.
type PendingSummary struct {
	Count  int       // how many there are
	Oldest time.Time // the Since of the first, in UTC by the clock of the database; zero if there is none
}

// PendingSummary returns how many orders are pending, and since when, without reading
// them into memory: for an alarm. Orders may change between a call and one of
// [Guard.Pending].
func (g *Guard) PendingSummary(ctx context.Context) (PendingSummary, error) {
	var s PendingSummary
	if err := g.db.QueryRowContext(ctx, g.stmts.pendingSummary).Scan(&s.Count, stamp{&s.Oldest}); err != nil {
		return PendingSummary{}, fmt.Errorf("sqlguard: pending orders: %w", explained(err))
	}
	return s, nil
}

// Resolve records the finding about an order that is unknown, with the name and
// the time. If an invoice exists, the order is created from then on. If none
// does, it is as before: free, or created if an earlier invoice is known to
// exist.
//
// Pass the order as [Guard.Pending] or [Guard.Order] returned it before the
// lookup. The error matches [ErrTriedAgain] if the order has been sent again
// since, and [ErrNotUnknown] if there is nothing to resolve, or was not when the order was
// read. The error for an invalid Resolution is a [*gateway.ArgumentError]: one without By, with an
// Invoice that is not JSON of at most 64 KiB or without Exists, or with a text that is not valid
// UTF-8 of at most 64 KiB, or has a NUL.
func (g *Guard) Resolve(ctx context.Context, o Order, r Resolution) error {
	k := key{o.Merchant, idOf(o.ID)}
	if err := r.validate("Resolution"); err != nil {
		return k.error(err)
	}
	if o.State != StateUnknown {
		return k.error(fmt.Errorf("%w: it was %s when it was read", ErrNotUnknown, cmp.Or(o.State, "not read")))
	}
	finding := doesNotExist
	if r.Exists {
		finding = exists
	}
	resolved, err := g.queryText(ctx, g.stmts.resolve, k.merchant, k.order, o.Attempts, finding, r.By, r.Note, bytesOrNull(r.Invoice))
	if err == nil && resolved == "" {
		err = g.unresolved(ctx, k)
	}
	if err != nil {
		return k.error(err)
	}
	return nil
}

// maxKept is how many bytes of an invoice, and of a text, a person may record.
const maxKept = 64 << 10

// validate returns what is wrong with a resolution of that name.
func (r Resolution) validate(name string) error {
	const storable = "must be valid UTF-8 of at most 64 KiB without NUL"
	switch {
	case !isStorable(r.By):
		return badArgument(name+".By", storable)
	case !isStorable(r.Note):
		return badArgument(name+".Note", storable)
	case strings.TrimSpace(r.By) == "":
		return badArgument(name+".By", "is required")
	case len(r.Invoice) > 0 && !r.Exists:
		return badArgument(name+".Invoice", "must be empty without Exists: an order with an invoice exists")
	case len(r.Invoice) > maxKept || len(r.Invoice) > 0 && !json.Valid(r.Invoice):
		return badArgument(name+".Invoice", "must be JSON of at most 64 KiB")
	}
	return nil
}

func isStorable(text string) bool {
	return len(text) <= maxKept && utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

// unresolved returns why an order could not be resolved.
func (g *Guard) unresolved(ctx context.Context, k key) error {
	now, err := g.Order(ctx, k.merchant, k.order)
	switch {
	case err != nil:
		return err
	case now.State == StateUnknown:
		return ErrTriedAgain
	default:
		return fmt.Errorf("%w: it is %s", ErrNotUnknown, now.State)
	}
}

// read returns the orders that a query selects.
func (g *Guard) read(ctx context.Context, query string, args ...any) (orders []Order, err error) {
	err = g.each(ctx, query, args, func(o Order, _ time.Time) error {
		orders = append(orders, o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return orders, nil
}

// each calls f with each of the orders that a query selects, and with when it can have been sent at the
// latest if it is unknown, until f fails.
func (g *Guard) each(ctx context.Context, query string, args []any, f func(o Order, latest time.Time) error) error {
	rows, err := g.db.QueryContext(ctx, query, args...)
	return readRows(rows, err, func() error {
		o, latest, err := scan(rows)
		if err != nil {
			return err
		}
		return f(o, latest)
	})
}

// scan reads the columns that the dialect's statements select.
func scan(rows *sql.Rows) (o Order, latest time.Time, err error) {
	var outcome, finding string
	var stored storedRecord
	dest := []any{
		&o.Merchant, &o.ID, &o.State, &o.Attempts,
		stamp{&o.Begun},
		stamp{&o.Ended},
		&outcome,
		stamp{&o.Since},
		stamp{&o.Created},
		stamp{&o.Resolved},
		&finding, &o.Resolution.By, &o.Resolution.Note,
	}
	dest = append(append(dest, stored.dest()...), stamp{&latest})
	if err := rows.Scan(dest...); err != nil {
		return o, latest, err
	}
	for _, known := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeNotSent, gateway.OutcomeRejected} {
		if outcome == known.String() {
			o.Outcome = known
		}
	}
	o.Resolution.Exists = finding == exists
	if o.State != StateUnknown {
		o.Since = time.Time{}
	}
	o.Record, err = stored.latest(o.State)
	if o.State == StateFree {
		o.Record.Outcome = o.Outcome
	}
	return o, latest, err
}
