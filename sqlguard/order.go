package sqlguard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/orders"
	"github.com/cryptogw/gateway/internal/validate"
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
	Created  time.Time       // when it was first recorded that an invoice exists

	SentUntil time.Time // until when it can have been sent: the end of the last attempt, or its lease after a crash

	Record  gateway.OrderRecord   // what is known of the request and the response, see the package documentation
	Earlier []gateway.OrderRecord // of other attempts whose outcome is unknown, the oldest first

	Resolved   time.Time  // when the order was last resolved
	Resolution Resolution // the last resolution

	attempt int64 // names the last attempt
	read    int64 // when it was read, in microseconds by the clock of the database
}

// A Resolution is a finding about an order whose outcome was unknown.
type Resolution struct {
	Exists bool   // whether the service has an invoice for the order
	By     string // required: the name of the person
	Note   string // optional, for example the invoice's number

	Invoice json.RawMessage // optional: the invoice as the service has it, which later calls return; only with Exists

	Margin time.Duration // how long a request may be in transit after [Order.SentUntil]; 0 for 15 minutes
}

// order is what the table has of an order, with its state when it was read.
func (s *stored) order(k key) Order {
	state := s.State(s.now)
	o := Order{
		ID: k.order, Merchant: k.merchant, Gateway: s.Gateway, State: State(state.String()), Attempts: s.Attempts, attempt: s.Attempt, read: s.now,
		Begun: timeAt(s.Begun), SentUntil: timeAt(s.Lease), Ended: timeAt(s.Ended), Created: timeAt(s.Created), Resolved: timeAt(s.Resolved),
		Resolution: Resolution{Exists: s.Found.Exists, By: s.Found.By, Note: s.Found.Note},
		Record:     s.record(),
	}
	earlier := s.Unsettled()
	switch state {
	case orders.InFlight:
		earlier = s.Open
	case orders.Unknown:
		o.Since = timeAt(s.OpenSince)
		earlier = earlier[:len(earlier)-1]
	case orders.Created:
		if s.Created != s.Resolved {
			o.Outcome = gateway.OutcomeSucceeded
		}
	default:
		o.Outcome = o.Record.Outcome
	}
	for _, a := range earlier {
		o.Earlier = append(o.Earlier, a.Record)
	}
	return o
}

// record is what is known of an order.
func (s *stored) record() gateway.OrderRecord {
	switch state := s.State(s.now); {
	case state == orders.InFlight:
		return gateway.OrderRecord{Request: s.Held.Request, RequestID: s.Held.RequestID}
	case state == orders.Created:
		return s.invoice()
	case state == orders.Unknown:
		open := s.Unsettled()
		return open[len(open)-1].Record
	case s.Last != nil:
		return *s.Last
	default:
		return gateway.OrderRecord{}
	}
}

// invoice is the record of a created order.
func (s *stored) invoice() gateway.OrderRecord {
	r := s.Invoices[0].Record
	r.CreatedAt = timeAt(s.Created)
	for _, other := range s.Invoices[1:] {
		invoice := other.Record.Invoice
		if invoice == nil {
			invoice = json.RawMessage("null") // it is not known what it says
		}
		r.Others = append(r.Others, invoice)
	}
	return r
}

// Order returns the record of an order. The merchant is as [gateway.WithMerchant] sets
// it and [Guard.Pending] returns it; empty for the one that the client is for. An order
// that was never begun is free, with no attempts.
func (g *Guard) Order(ctx context.Context, merchant, orderID string) (Order, error) {
	k := key{merchant, idOf(orderID)}
	if err := k.check(); err != nil {
		return Order{}, err
	}
	has, err := g.read(ctx, g.db, k)
	if err != nil {
		return Order{}, k.error(err)
	}
	return has.order(k), nil
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
	since := int64(0)
	if !q.After.Since.IsZero() {
		since = q.After.Since.UnixMicro()
	}
	all, err := g.list(ctx, g.queries.pending, since, []byte(q.After.Merchant), []byte(q.After.ID), cmp.Or(q.Most, math.MaxInt32))
	if err != nil {
		return nil, fmt.Errorf("sqlguard: pending orders: %w", explained(err))
	}
	return all, nil
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
	var oldest int64
	if err := g.db.QueryRowContext(ctx, g.queries.pendingSummary).Scan(&s.Count, &oldest); err != nil {
		return PendingSummary{}, fmt.Errorf("sqlguard: pending orders: %w", explained(err))
	}
	s.Oldest = timeAt(oldest)
	return s, nil
}

// An OrdersQuery selects what [Guard.Orders] returns. The zero query selects all.
type OrdersQuery struct {
	Most  int   // how many at most; 0 for all
	After Order // those after this one, of which Merchant and ID are used; the zero order for the first ones
}

// Orders returns the orders of the table by merchant and ID, whatever their state is: for an export, in
// pages. One that is begun between two pages may be missing; none is returned twice. The error for a
// negative Most is a [*gateway.ArgumentError].
func (g *Guard) Orders(ctx context.Context, q OrdersQuery) ([]Order, error) {
	if q.Most < 0 {
		return nil, badArgument("q.Most", "must not be negative")
	}
	all, err := g.list(ctx, g.queries.orders, []byte(q.After.Merchant), []byte(q.After.ID), cmp.Or(q.Most, math.MaxInt32))
	if err != nil {
		return nil, fmt.Errorf("sqlguard: orders: %w", explained(err))
	}
	return all, nil
}

// list returns the orders that a query selects.
func (g *Guard) list(ctx context.Context, query string, args ...any) (all []Order, err error) {
	err = g.each(ctx, query, args, func(o Order) error {
		all = append(all, o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// each calls f with each of the orders that a query selects, until f fails.
func (g *Guard) each(ctx context.Context, query string, args []any, f func(o Order) error) error {
	rows, err := g.db.QueryContext(ctx, query, args...)
	return readRows(rows, err, func() error {
		k, has, err := scan(rows)
		if err != nil {
			return err
		}
		return f(has.order(k))
	})
}

// queries are the texts that read the table.
type queries struct {
	order, orders, pending, pendingSummary, now, batchEnd, prunable, prune, gateways, moved, replaced string
	idsOf, unknownOf, createdOf                                                                       string
}

const isPending = "open_since > 0 AND created_at = 0 AND lease_until <= {now}"

func (s *schema) queries() queries {
	return queries{
		order:          s.selects("WHERE merchant = {id} AND order_id = {id}"),
		orders:         s.selects("WHERE (merchant, order_id) > ({id}, {id}) ORDER BY merchant, order_id LIMIT ?"),
		pending:        s.selects("WHERE " + isPending + " AND (open_since, merchant, order_id) > (?, {id}, {id}) ORDER BY open_since, merchant, order_id LIMIT ?"),
		pendingSummary: s.fill("SELECT count(*), coalesce(min(open_since), 0) FROM {table} WHERE " + isPending),
		idsOf:          s.fill("SELECT " + fmt.Sprintf(s.ofID, "order_id") + " FROM {table} WHERE merchant = {id}"),
		unknownOf:      s.selects("WHERE merchant = {id} AND " + isPending),
		createdOf:      s.selects("WHERE merchant = {id} AND open_since = 0 AND changed_at > ? AND begun_at > ? AND created_at > 0 AND created_at < ? ORDER BY changed_at"),
		now:            s.fill("SELECT {now}"),
		batchEnd:       s.fill("SELECT changed_at FROM {table} WHERE " + isPrunable + " ORDER BY changed_at LIMIT 1 OFFSET 999"),
		prunable:       s.fill("SELECT count(*) FROM {table} WHERE " + isPrunable),
		prune:          s.fill("DELETE FROM {table} WHERE " + isPrunable),
		gateways:       s.fill("SELECT " + fmt.Sprintf(s.ofID, "gateway") + ", count(*) FROM {table} GROUP BY gateway ORDER BY gateway"),
		moved:          s.fill("UPDATE {table} SET gateway = {id} WHERE gateway = {id}"),
		replaced:       s.fill("UPDATE {table} SET left_for = {id} WHERE gateway = {id}"),
	}
}

// Resolve records the finding about an order that is unknown, with the name and
// the time. If an invoice exists, the order is created from then on. If none
// does, it is as before: free.
// For an order that is created, and whose invoice is not known, a finding with Exists and Invoice adds that.
//
// Pass the order as [Guard.Pending] or [Guard.Order] returned it before the
// lookup. The error matches [ErrTriedAgain] if the order has been sent again
// since, [ErrNotUnknown] if there is nothing to resolve, or was not when the order was
// read, and [ErrTooEarly] for a finding that none exists, by the clock of the database before [Order.SentUntil] and
// the Margin. The error for an invalid Resolution is a [*gateway.ArgumentError]: one without By, with an
// Invoice that is not JSON of at most 64 KiB, names another order or is without Exists, or with a text that is not valid
// UTF-8 of at most 64 KiB, or has a NUL.
func (g *Guard) Resolve(ctx context.Context, o Order, r Resolution) error {
	if other := otherOrder(r.Invoice, idOf(o.ID)); other != "" {
		return badArgument("Resolution.Invoice", fmt.Sprintf("names the order %q, and not %q", other, o.ID))
	}
	return g.resolve(ctx, o, r)
}

// resolve is Resolve of an invoice that is known to be of the order.
func (g *Guard) resolve(ctx context.Context, o Order, r Resolution) error {
	k := key{o.Merchant, idOf(o.ID)}
	if err := k.check(); err != nil {
		return err
	}
	if err := r.validate("Resolution"); err != nil {
		return k.error(err)
	}
	if o.State != StateUnknown && (o.State != StateCreated || len(r.Invoice) == 0) {
		return k.error(fmt.Errorf("%w: it was %s when it was read", ErrNotUnknown, cmp.Or(o.State, "not read")))
	}
	margin := cmp.Or(r.Margin, defaultMargin)
	has, answer, err := g.change(ctx, k, stored{}, func(has row, now int64) (row, orders.Answer) {
		return has.Resolve(orders.Resolve[gateway.OrderRecord]{
			Finding: orders.Finding{Exists: r.Exists, By: r.By, Note: r.Note},
			Attempt: o.attempt, Seen: o.read, Margin: margin.Microseconds(), Bare: len(r.Invoice) == 0, Record: foundOf(&has, r.Invoice),
		}, now)
	})
	if errors.Is(answer.Err, ErrTooEarly) {
		return k.error(fmt.Errorf("%w: that none exists is accepted of lookups from %s on, when the margin of %v is over; at the database it is %s",
			ErrTooEarly, timeOf(timeAt(has.Lease).Add(margin)), margin, timeOf(timeAt(has.now))))
	}
	if err = cmp.Or(err, answer.Err); err != nil {
		return k.error(err)
	}
	return nil
}

// foundOf is the record of an invoice that a person has found. Where the attempts had different requests it is not known
// which of them it is for.
func foundOf(has *row, invoice json.RawMessage) gateway.OrderRecord {
	attempts := has.Unsettled()
	if len(attempts) == 0 {
		attempts = has.Invoices
	}
	if len(attempts) == 0 {
		return gateway.OrderRecord{}
	}
	r := attempts[len(attempts)-1].Record
	for _, other := range attempts {
		if !other.Record.Request.Equal(r.Request) {
			r.Request = gateway.InvoiceRequest{}
		}
	}
	r.Outcome, r.Invoice, r.Body, r.Cause, r.StatusCode = gateway.OutcomeSucceeded, invoice, nil, "", 0
	return r
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
	case r.Margin < 0:
		return badArgument(name+".Margin", "must not be negative")
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

// otherOrder returns the order that JSON names in the place of another one, or "".
func otherOrder(text json.RawMessage, orderID string) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return ""
	}
	other, named := "", false
	var walk func(value any, names []string)
	walk = func(value any, names []string) {
		switch value := value.(type) {
		case map[string]any:
			for name, member := range value {
				walk(member, append([]string{name}, names...))
			}
		case []any:
			for _, element := range value {
				walk(element, names)
			}
		case string, json.Number:
			if !validate.IsOrderName(slices.Values(names)) {
				return
			}
			if id := fmt.Sprint(value); idOf(id) == orderID {
				named = true
			} else if id != "" {
				other = id
			}
		}
	}
	walk(value, nil)
	if named {
		return ""
	}
	return other
}
