package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/orders"
)

// An OrderGuard prevents a second invoice for an order, and remembers the outcome of each order. It must
// be safe for concurrent use. [WithOrderGuard] sets it; the default is a [MemoryGuard].
//
// An order is identified by [Order.Key] and the Merchant.
type OrderGuard interface {
	// Begin asks for the lease of an order, before its invoice is sent. The guard records the lease before
	// it grants it. The order is in flight while a call has the lease, created after a success, and
	// unknown after an unknown outcome; o.Resubmit also asks for the lease of an unknown order. If Begin
	// returns an error, nothing was granted: the guard rolls back any partial record.
	//
	// The client asks again while an order is in flight, so a Begin that grants nothing should write
	// nothing. The client sends nothing after the lease has expired.
	Begin(ctx context.Context, o Order) (Lease, error)

	// End records the outcome of the attempt that o.Attempt names, and returns the order as the guard then
	// knows it. The client calls it once, before it returns to its caller. A success replaces an unknown
	// outcome; nothing replaces a success: a further invoice is added to its Others. A success and an unknown
	// outcome are recorded even if the guard has forgotten the order. The context ends after 10 seconds, not
	// with the caller's. Observers receive an error of End; the order must then count as unknown.
	End(ctx context.Context, o Order, r OrderRecord) (OrderRecord, error)
}

// An Order is the argument of an [OrderGuard]: one call of [Client.CreateInvoice].
type Order struct {
	Gateway  string         // the base URL in one form: lower-case host, no default port, no last slash; at most 512 bytes
	Merchant string         // see [WithMerchant]; empty for the client's own
	Request  InvoiceRequest // only its OrderID, if the rest is not valid
	Attempt  string         // for End: the Attempt of the [Lease]; empty for Begin
	Resubmit bool           // for Begin: an order of unknown outcome may be sent again, see [WithIdempotentOrders]
}

// Key returns the text that identifies an order of a merchant: the OrderID. A UUID is returned in lower
// case, because its case does not matter.
func (o Order) Key() string { return endpoint.IDKey(o.Request.OrderID) }

// An OrderState is the state of an order in an [OrderGuard]. The zero value is [OrderFree].
type OrderState int8

const (
	OrderFree     OrderState = iota // OrderFree: the lease is granted.
	OrderInFlight                   // OrderInFlight: another call has the lease.
	OrderCreated                    // OrderCreated: the order has an invoice.
	OrderUnknown                    // OrderUnknown: an invoice of the order may exist.
)

// String returns the state in words: "free", "in flight", "created" or "unknown".
func (s OrderState) String() string {
	if s < OrderFree || s > OrderUnknown {
		return fmt.Sprintf("OrderState(%d)", int8(s))
	}
	return [...]string{"free", "in flight", "created", "unknown"}[s]
}

// MarshalText returns the text of String.
func (s OrderState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Lease is the answer of an [OrderGuard]. A lease whose State is [OrderFree] is granted.
type Lease struct {
	State   OrderState
	Known   *OrderRecord // the record of the order before this attempt; nil if there was none
	Attempt string       // of a granted lease: a name that no other attempt ever has
	Expires time.Time    // of a granted lease, by the clock of this process; zero for never
}

// An OrderRecord is all that a guard keeps of an order. It has no key. The client does not change its slices.
type OrderRecord struct {
	Outcome    Outcome           `json:"outcome"`             // of the order
	Request    InvoiceRequest    `json:"request"`             // as it was last sent; zero if unknown
	Invoice    json.RawMessage   `json:"invoice,omitzero"`    // the result of the response, at most 1 MiB; nil if unknown
	Others     []json.RawMessage `json:"others,omitzero"`     // further invoices of the order, which should not exist
	SentAt     time.Time         `json:"sentAt,omitzero"`     // when the last attempt of the call began; zero if nothing was sent
	CreatedAt  time.Time         `json:"createdAt,omitzero"`  // when the invoice was recorded; zero if unknown
	StatusCode int               `json:"statusCode,omitzero"` // of the response; 0 when none came
	Body       []byte            `json:"body,omitzero"`       // at most the first 8 KiB of the response; only of a failure
	Cause      string            `json:"cause,omitzero"`      // why the attempt failed, or why there is no Invoice; one line of at most 1 KiB
}

// An OrderStatus is an order as it was read from a guard. Times are in UTC, and zero if the event has not
// happened. All but ReadAt are by the clock of the guard.
type OrderStatus struct {
	OrderID  string     // [Order.Key]: the orderId of the invoice, in lower case if it is a UUID
	Merchant string     // see [WithMerchant]; empty for the client's own
	Gateway  string     // the base URL of the client that sent it; empty if unknown
	State    OrderState // [OrderFree] for an order that was never begun
	Attempts int        // how often a lease was granted; at most as many invoices exist
	Attempt  string     // names the last attempt; empty if there was none

	Begun     time.Time // when the last attempt began
	SentUntil time.Time // when the last attempt ended, or its lease does; nothing is sent after it
	Ended     time.Time // when an outcome was last recorded
	Since     time.Time // when the oldest attempt of unknown outcome began; zero in other states
	Created   time.Time // when it was first recorded that an invoice exists

	Record  OrderRecord   // the invoice, or the last attempt
	Earlier []OrderRecord // other attempts of unknown outcome, the oldest first

	Finding  Finding   // the last finding that was recorded
	Resolved time.Time // when it was recorded

	GuardReadAt time.Time // when the order was read
	ReadAt      time.Time // when the order was read, by the clock of the process that read it
}

// A Finding says what a person found at the gateway about an order of unknown outcome.
type Finding struct {
	Exists bool   // the gateway has an invoice for the order
	By     string // who found it out; required
	Note   string // optional, such as the number of the invoice

	// Invoice is the invoice as JSON, which later calls return. It is optional, and needs Exists.
	Invoice json.RawMessage

	// Margin is how long a request may be in transit; 0 means 15 minutes. A finding that no invoice exists is
	// accepted only if the order was read at least this long after SentUntil.
	Margin time.Duration
}

// A PendingQuery selects the orders that the Pending of a guard returns. The zero query selects all.
type PendingQuery struct {
	Most  int         // how many at most; 0 for all
	After OrderStatus // the last order of the page before; the zero order for the first page
}

// Errors of a guard that leaves an order as it is.
var (
	// ErrNotUnknown matches the error for a finding about an order whose outcome is not unknown.
	ErrNotUnknown = orders.ErrNotUnknown

	// ErrTooEarly matches the error for a finding that no invoice exists, while a request may still be in transit.
	ErrTooEarly = orders.ErrTooEarly

	// ErrTriedAgain matches the error for an order that was sent again since it was read.
	ErrTriedAgain = orders.ErrTriedAgain

	// ErrNotCreated matches the error of Forget for an order that is not created, or has an attempt of
	// unknown outcome.
	ErrNotCreated = orders.ErrNotCreated
)

const (
	defaultRemember = 1 << 16
	maxGuardMemory  = 64 << 20 // bytes of texts

	maxKeptInvoice = 1 << 20
	maxKeptCause   = 1 << 10
)

// WithOrderGuard sets the guard that prevents a second invoice for an order. The default is a
// [MemoryGuard] of the client's own; nil means no guard.
func WithOrderGuard(guard OrderGuard) Option {
	return func(cfg *config) error {
		if memory, ok := guard.(*MemoryGuard); ok && (memory == nil || memory.Remember < 0) {
			return badOption("WithOrderGuard", "must not be a nil *MemoryGuard, and Remember must not be negative")
		}
		cfg.guard = guard
		return nil
	}
}

// A MemoryGuard is an [OrderGuard] in memory: it knows no other process, and forgets everything at a
// restart. It remembers every order of unknown outcome, and the latest created orders. It keeps 64 MiB of
// texts; then the oldest invoices lose theirs, which [Invoice].GuardErr of a replay reports. Clients that
// share a guard share their orders: name their merchants with [WithMerchant].
//
// The zero guard is ready to use. It must not be copied.
type MemoryGuard struct {
	// Remember is how many created orders are remembered; 0 for 65,536. It must not change.
	Remember int

	mu       sync.Mutex
	orders   map[orderKey]*memoryOrder
	created  []*memoryOrder // the oldest first
	stripped int            // how many of these have lost their texts
	kept     int            // bytes of texts
	attempts int64          // that were begun
}

// An orderKey identifies an order of a merchant in little memory: an OrderID can have 1,024 bytes.
type orderKey [16]byte

func orderKeyOf(merchant, id string) (key orderKey) {
	sum := sha256.Sum256([]byte(merchant + "\x00" + id)) // neither has a control character
	return orderKey(sum[:len(key)])
}

// A memoryOrder is an order that is in flight, created or unknown.
type memoryOrder struct {
	merchant, id string
	row          orders.Row[OrderRecord]
	begun        time.Time // when the last attempt began, by the monotonic clock too: the other can be set
}

// A lease in memory ends with its process.
const noExpiry = math.MaxInt64 / 2

// Begin implements [OrderGuard].
func (g *MemoryGuard) Begin(_ context.Context, o Order) (Lease, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	begun := time.Now()
	now := begun.UnixMicro()
	key := orderKeyOf(o.Merchant, o.Key())
	known := g.orders[key]
	if known == nil {
		known = &memoryOrder{merchant: strings.Clone(o.Merchant), id: strings.Clone(o.Key())}
	}
	state := OrderState(known.row.State(now))
	row, answer := known.row.Begin(orders.Begin[OrderRecord]{
		Gateway: o.Gateway, Attempt: g.attempts + 1, Lease: noExpiry, Resubmit: o.Resubmit,
		Record: OrderRecord{Request: o.Request.clone(), SentAt: time.UnixMicro(now).UTC(), Cause: noOutcome},
	}, now)
	switch {
	case answer.Err != nil:
		return Lease{}, answer.Err
	case !answer.Granted:
		return Lease{State: state, Known: knownOf(&known.row, state)}, nil
	}
	before := knownOf(&known.row, state)
	g.attempts++
	known.row, known.begun = row, begun
	if g.orders == nil {
		g.orders = map[orderKey]*memoryOrder{}
	}
	g.orders[key] = known
	return Lease{Known: before, Attempt: orders.NameOf(g.attempts)}, nil
}

// maxOpen is how many attempts of unknown outcome of one order are remembered: the first and the last ones.
const maxOpen = 8

// noOutcome is the Cause of an attempt until it ends.
const noOutcome = "the outcome was not recorded"

// End implements [OrderGuard].
func (g *MemoryGuard) End(_ context.Context, o Order, r OrderRecord) (OrderRecord, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := orderKeyOf(o.Merchant, o.Key())
	known := g.orders[key]
	if known == nil {
		known = &memoryOrder{merchant: strings.Clone(o.Merchant), id: strings.Clone(o.Key()), begun: time.Now()}
	}
	name := orders.AttemptOf(o.Attempt)
	if name == 0 {
		g.attempts++
		name = g.attempts // the attempt of another guard
	}
	end := orders.End[OrderRecord]{Gateway: o.Gateway, Attempt: name, Record: r}
	end.Record.Request = r.Request.clone()
	switch r.Outcome {
	case OutcomeSucceeded:
		end.Result, end.Bare = orders.Success, len(r.Invoice) == 0
		end.Record.Body = nil
	case OutcomeNotSent, OutcomeRejected:
	default:
		end.Result, end.Record.Outcome = orders.Undecided, OutcomeUnknown
		if g.strip(len(r.Body)); g.kept+len(r.Body) > maxGuardMemory {
			end.Record.Body = nil
		}
	}
	row, _ := known.row.End(end, time.Now().UnixMicro())
	if n := len(row.Open); n > maxOpen {
		row.Open = append(row.Open[:1:1], row.Open[n-maxOpen+1:]...)
	}
	g.keep(key, known, row)
	state := OrderState(row.State(time.Now().UnixMicro()))
	if state == OrderFree {
		return r, nil
	}
	return *knownOf(&row, state), nil
}

// knownOf returns the record of an order in a state; nil if it has none.
func knownOf(row *orders.Row[OrderRecord], state OrderState) *OrderRecord {
	switch {
	case state == OrderInFlight:
		return &OrderRecord{Request: row.Held.Request}
	case state == OrderUnknown:
		open := row.Unsettled()
		return &open[len(open)-1].Record
	case state == OrderFree:
		return nil
	}
	r := row.Invoices[0].Record
	r.CreatedAt = orders.TimeAt(row.Created)
	for _, other := range row.Invoices[1:] {
		r.Others = append(r.Others, other.Record.Invoice)
	}
	return &r
}

// keep replaces the row of an order. A free order is not kept. If there are too many created orders, the oldest is
// forgotten; if there are too many texts, the oldest invoices lose theirs.
func (g *MemoryGuard) keep(key orderKey, m *memoryOrder, row orders.Row[OrderRecord]) {
	isNew := len(m.row.Invoices) == 0 && len(row.Invoices) > 0
	g.kept += sizeOf(&row) - sizeOf(&m.row)
	m.row = row
	if row.State(time.Now().UnixMicro()) == orders.Free {
		delete(g.orders, key)
		return
	}
	if g.orders == nil {
		g.orders = map[orderKey]*memoryOrder{}
	}
	g.orders[key] = m
	if isNew {
		g.created = append(g.created, m)
	}
	if len(g.created) > cmp.Or(g.Remember, defaultRemember) {
		oldest := g.created[0]
		g.created[0], g.created, g.stripped = nil, g.created[1:], max(g.stripped-1, 0)
		g.drop(oldest)
	}
	g.strip(0)
}

// drop forgets an order.
func (g *MemoryGuard) drop(m *memoryOrder) {
	if key := orderKeyOf(m.merchant, m.id); g.orders[key] == m {
		delete(g.orders, key)
		g.kept -= sizeOf(&m.row)
	}
}

const strippedCause = "the guard in memory has dropped the text of the invoice: it keeps the texts of the last 64 MiB"

// strip drops the texts of the oldest created orders until there is room for more bytes.
func (g *MemoryGuard) strip(more int) {
	for ; g.kept+more > maxGuardMemory && g.stripped < len(g.created); g.stripped++ {
		m := g.created[g.stripped]
		g.kept -= sizeOf(&m.row)
		m.strip()
		g.kept += sizeOf(&m.row)
	}
}

// strip drops the texts of a created order.
func (m *memoryOrder) strip() {
	m.row.Invoices = slices.Clone(m.row.Invoices)
	for i := range m.row.Invoices {
		r := &m.row.Invoices[i].Record
		r.Invoice, r.Body, r.Cause = nil, nil, strippedCause
	}
	m.row.Open = nil
}

// sizeOf returns how many bytes the texts of a row take.
func sizeOf(row *orders.Row[OrderRecord]) (size int) {
	for _, attempts := range [][]orders.Attempt[OrderRecord]{row.Open, row.Invoices} {
		for i := range attempts {
			r := &attempts[i].Record
			size += len(r.Invoice) + len(r.Body) + len(r.Cause)
		}
	}
	return size
}

// Order returns an order. The merchant is the name of [WithMerchant], or empty for the client's own. An order
// that was never begun is free, with no attempts. The error is always nil.
func (g *MemoryGuard) Order(_ context.Context, merchant, orderID string) (OrderStatus, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := Order{Request: InvoiceRequest{OrderID: orderID}}.Key()
	m := g.orders[orderKeyOf(merchant, id)]
	if m == nil {
		m = &memoryOrder{merchant: merchant, id: id}
	}
	return m.status(time.Now()), nil
}

// Pending returns the orders of unknown outcome of every merchant, which a person must look up at the gateway.
// The order that has been unknown longest comes first. A negative Most is an [*ArgumentError].
func (g *MemoryGuard) Pending(_ context.Context, q PendingQuery) ([]OrderStatus, error) {
	if q.Most < 0 {
		return nil, &ArgumentError{Operation: "pending", Name: "q.Most", Reason: "must not be negative"}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	var all []OrderStatus
	for _, m := range g.orders {
		if m.row.State(now.UnixMicro()) == orders.Unknown {
			all = append(all, m.status(now))
		}
	}
	before := func(a, b OrderStatus) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Merchant, b.Merchant), cmp.Compare(a.OrderID, b.OrderID))
	}
	slices.SortFunc(all, before)
	if q.After.OrderID != "" {
		all = slices.DeleteFunc(all, func(o OrderStatus) bool { return before(o, q.After) <= 0 })
	}
	if q.Most > 0 {
		all = all[:min(q.Most, len(all))]
	}
	return all, nil
}

// status returns an order as it is read now.
func (m *memoryOrder) status(now time.Time) OrderStatus {
	row := &m.row
	o := OrderStatus{
		OrderID: m.id, Merchant: m.merchant, Gateway: row.Gateway, State: OrderState(row.State(now.UnixMicro())), Attempts: row.Attempts, Attempt: orders.NameOf(row.Attempt),
		Begun: orders.TimeAt(row.Begun), SentUntil: orders.TimeAt(row.Lease), Ended: orders.TimeAt(row.Ended), Created: orders.TimeAt(row.Created), Resolved: orders.TimeAt(row.Resolved),
		Finding:     Finding{Exists: row.Found.Exists, By: row.Found.By, Note: row.Found.Note},
		GuardReadAt: now.UTC().Truncate(time.Microsecond), ReadAt: now.UTC(),
	}
	if row.Held != nil {
		o.SentUntil = time.Time{} // its lease ends with the process
	}
	if known := knownOf(row, o.State); known != nil {
		o.Record = *known
	}
	earlier := row.Open
	if o.State == OrderUnknown {
		o.Since, earlier = orders.TimeAt(row.OpenSince), earlier[:len(earlier)-1]
	}
	for _, a := range earlier {
		o.Earlier = append(o.Earlier, a.Record)
	}
	return o
}

// Resolve records a finding about an order of unknown outcome. If an invoice exists, the order is then created. If
// none exists, the order is free, and the next call sends it. A finding with an Invoice also adds the invoice to a
// created order that has no text of one.
//
// Pass the order as Pending or Order returned it before the lookup. After an error the order is unchanged: the error
// matches [ErrTriedAgain], [ErrNotUnknown] or [ErrTooEarly], or is the [*ArgumentError] of [Finding.Validate].
func (g *MemoryGuard) Resolve(_ context.Context, o OrderStatus, f Finding) error {
	if err := f.Validate(o); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	key := orderKeyOf(o.Merchant, o.OrderID)
	m := g.orders[key]
	if m == nil {
		return fmt.Errorf("gateway: order %q: %w: it is free", o.OrderID, ErrNotUnknown)
	}
	margin := cmp.Or(f.Margin, DefaultMargin)
	row, answer := m.row.Resolve(orders.Resolve[OrderRecord]{
		Finding: orders.Finding{Exists: f.Exists, By: f.By, Note: f.Note},
		Attempt: orders.AttemptOf(o.Attempt), Read: o.GuardReadAt.UnixMicro(), Waited: o.ReadAt.Sub(m.begun).Microseconds(), Margin: margin.Microseconds(),
		Bare: len(f.Invoice) == 0, Record: foundRecord(&m.row, f.Invoice),
	}, time.Now().UnixMicro())
	if answer.Err != nil {
		return fmt.Errorf("gateway: order %q: %w", o.OrderID, answer.Err)
	}
	g.keep(key, m, row)
	return nil
}

// foundRecord is the record of an invoice that a person found. If the attempts had different requests, it has none:
// nobody knows which of them created the invoice.
func foundRecord(row *orders.Row[OrderRecord], invoice json.RawMessage) OrderRecord {
	attempts := row.Unsettled()
	if len(attempts) == 0 {
		attempts = row.Invoices
	}
	if len(attempts) == 0 {
		return OrderRecord{}
	}
	r := attempts[len(attempts)-1].Record
	for _, other := range attempts {
		if !other.Record.Request.Equal(r.Request) {
			r.Request = InvoiceRequest{}
		}
	}
	r.Outcome, r.Invoice, r.Body, r.StatusCode, r.Cause = OutcomeSucceeded, bytes.Clone(invoice), nil, 0, ""
	if len(invoice) == 0 {
		r.Cause = foundWithoutInvoice
	}
	return r
}

const foundWithoutInvoice = "a person found that the invoice exists, and did not record what it says"

// Forget forgets a created order whose invoice can no longer be paid, such as an expired one. The next call for the
// order then sends another invoice: first ask the operator of the gateway what a repeated orderId does. Forget
// refuses an order that was sent again since it was read ([ErrTriedAgain]), that is not created, or that has an
// attempt of unknown outcome ([ErrNotCreated]).
func (g *MemoryGuard) Forget(_ context.Context, o OrderStatus) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := cmp.Or(g.orders[orderKeyOf(o.Merchant, o.OrderID)], &memoryOrder{})
	if err := m.row.Forget(orders.AttemptOf(o.Attempt), time.Now().UnixMicro()); err != nil {
		return fmt.Errorf("gateway: order %q: %w", o.OrderID, err)
	}
	g.drop(m)
	if i := slices.Index(g.created, m); i >= 0 {
		g.created = slices.Delete(g.created, i, i+1)
		if i < g.stripped {
			g.stripped--
		}
	}
	return nil
}

// DefaultMargin is the Margin of a [Finding] that sets none.
const DefaultMargin = 15 * time.Minute

// maxFound is how many bytes a text or an invoice of a finding may have.
const maxFound = 64 << 10

// Validate reports why a guard would refuse the finding about an order; nil if it would not. The error is an
// [*ArgumentError] if By is empty, if Margin is negative, if Invoice is not JSON of at most 64 KiB, names another order
// or is set without Exists, or if a text has more than 64 KiB, a NUL or invalid UTF-8. It matches [ErrNotUnknown] if
// the order was not unknown when it was read, nor, for an Invoice, created.
func (f Finding) Validate(o OrderStatus) error {
	const storable = "must be valid UTF-8 of at most 64 KiB without NUL"
	isStorable := func(text string) bool {
		return len(text) <= maxFound && utf8.ValidString(text) && !strings.Contains(text, "\x00")
	}
	name, reason := "", ""
	switch {
	case !isStorable(f.By):
		name, reason = "By", storable
	case !isStorable(f.Note):
		name, reason = "Note", storable
	case strings.TrimSpace(f.By) == "":
		name, reason = "By", "is required"
	case f.Margin < 0:
		name, reason = "Margin", "must not be negative"
	case len(f.Invoice) > 0 && !f.Exists:
		name, reason = "Invoice", "must be empty without Exists: an order with an invoice exists"
	case len(f.Invoice) > maxFound || len(f.Invoice) > 0 && !json.Valid(f.Invoice):
		name, reason = "Invoice", "must be JSON of at most 64 KiB"
	default:
		if other := otherOrder(f.Invoice, o.OrderID); other != "" {
			name, reason = "Invoice", fmt.Sprintf("names the order %q", other)
		}
	}
	switch {
	case name != "":
		return &ArgumentError{Operation: "resolve", Name: "Finding." + name, Reason: fmt.Sprintf("%s (order %q)", reason, o.OrderID)}
	case o.State != OrderUnknown && (o.State != OrderCreated || len(f.Invoice) == 0):
		return fmt.Errorf("gateway: order %q: %w: it was %s when it was read", o.OrderID, ErrNotUnknown, o.State)
	default:
		return nil
	}
}

// otherOrder returns the order that JSON names instead of another one, or "".
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
			if !endpoint.IsOrderName(slices.Values(names)) {
				return
			}
			if id := fmt.Sprint(value); endpoint.SameID(id, orderID) {
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

// clone returns a request whose texts keep nothing else in memory.
func (r InvoiceRequest) clone() InvoiceRequest {
	for _, text := range []*string{&r.OrderID, &r.BaseCurrency, &r.CoinSymbol, &r.NetworkName} {
		*text = strings.Clone(*text)
	}
	return r
}
