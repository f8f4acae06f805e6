package gateway

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/orders"
)

const (
	defaultRemember = 1 << 16
	maxGuardMemory  = 64 << 20 // bytes of texts
	maxOpen         = 8        // attempts of unknown outcome of one order: the first and the last ones
)

// A MemoryGuard is an [OrderGuard] in memory: it knows no other process, and forgets everything at a
// restart. It remembers every order of unknown outcome, and the latest others that are created or that a person
// has looked up. It keeps 64 MiB of texts; then the oldest invoices lose theirs, which [Invoice].GuardErr of a
// replay reports. Clients that share a guard share their orders: name their merchants with [WithMerchant].
//
// Calls with and without a merchant do not mix: a call of the other kind than the orders of the guard is refused
// with an [*ArgumentError].
//
// The zero guard is ready to use. It must not be copied.
type MemoryGuard struct {
	// Remember is how many orders are remembered that are created or were found to be absent; 0 for 65,536.
	// It must not change.
	Remember int

	mu       sync.Mutex
	orders   map[orderKey]*memoryOrder
	taken    int            // how many of these are not free
	isNamed  bool           // those have a merchant; otherwise none of them has
	settled  []*memoryOrder // created, or free with a finding; the oldest first
	stripped int            // how many of these have lost their texts
	kept     int            // bytes of texts
	attempts int64          // that were begun
}

// An orderKey identifies an order: its ID is the [Order.Key].
type orderKey struct{ merchant, id string }

// A memoryOrder is an order that must be remembered.
type memoryOrder struct {
	orderKey
	row   orders.Row[OrderRecord]
	begun time.Time // when the last attempt began, by the monotonic clock too: the other can be set
}

// A lease in memory ends with its process: the state of an order does not depend on the time.
const (
	noExpiry = math.MaxInt64 / 2
	anyTime  = 0
)

// Begin implements [OrderGuard].
func (g *MemoryGuard) Begin(_ context.Context, o Order) (Lease, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.checkKind(o.Merchant); err != nil {
		return Lease{}, err
	}
	m, begun := g.order(o.Merchant, o.Key()), time.Now()
	now := begun.UnixMicro()
	row, answer := m.row.Begin(orders.Begin[OrderRecord]{
		Gateway: o.Gateway, Attempt: g.attempts + 1, Lease: noExpiry, Resubmit: o.Resubmit,
		Record: orders.Held[OrderRecord](o.Request.clone(), begun),
	}, now)
	switch {
	case answer.Err != nil:
		return Lease{}, answer.Err
	case !answer.Granted:
		return Lease{State: OrderState(row.State(now)), Known: orders.Known(&row, now)}, nil
	}
	g.attempts++
	m.begun = begun
	g.keep(m, row)
	return Lease{Known: orders.Before(&row), Attempt: orders.NameOf(row.Attempt)}, nil
}

// End implements [OrderGuard].
func (g *MemoryGuard) End(_ context.Context, o Order, r OrderRecord) (OrderRecord, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.checkKind(o.Merchant); err != nil {
		return r, err
	}
	m, now := g.order(o.Merchant, o.Key()), time.Now().UnixMicro()
	attempt := orders.AttemptOf(o.Attempt)
	if attempt == 0 {
		g.attempts++
		attempt = g.attempts
	}
	r.Request = r.Request.clone()
	end := orders.EndOf(o.Gateway, attempt, r)
	row, _ := m.row.End(end, now)
	if n := len(row.Open); n > maxOpen {
		row.Open = slices.Delete(slices.Clone(row.Open), 1, n-maxOpen+1)
	}
	g.keep(m, row)
	g.trim(m)
	return orders.Ended(&m.row, end, now), nil
}

// checkKind refuses a call with a merchant if the guard has orders without one, and the other way round. An order with
// a merchant differs from the same order without one, and would be sent again. A free order is of no kind.
func (g *MemoryGuard) checkKind(merchant string) error {
	switch {
	case g.taken == 0 || g.isNamed == (merchant != ""):
		return nil
	case g.isNamed:
		return badKind("is missing, and other calls with this guard name a merchant")
	default:
		return badKind("names a merchant, and other calls with this guard name none")
	}
}

func badKind(reason string) error {
	reason += ": name it in every call, in WithDefaults for all calls of a client, or give the clients a guard each"
	return &ArgumentError{Operation: OpCreateInvoice, Name: "WithMerchant", Reason: reason}
}

// order returns the order of a merchant. An order that the guard does not have was never begun.
func (g *MemoryGuard) order(merchant, id string) *memoryOrder {
	if m := g.orders[orderKey{merchant, id}]; m != nil {
		return m
	}
	return &memoryOrder{orderKey: orderKey{strings.Clone(merchant), strings.Clone(id)}, begun: time.Now()}
}

// keep replaces the row of an order. An order that is free is forgotten, unless there is a finding.
func (g *MemoryGuard) keep(m *memoryOrder, row orders.Row[OrderRecord]) {
	if row.State(anyTime) == orders.Free && len(row.Findings) == 0 {
		row = orders.Row[OrderRecord]{}
	}
	wasTaken, wasSettled := m.standing()
	g.kept += sizeOf(&row) - sizeOf(&m.row)
	m.row = row
	isTaken, isSettled := m.standing()
	switch {
	case isTaken && !wasTaken:
		g.taken++
		g.isNamed = m.merchant != ""
	case wasTaken && !isTaken:
		g.taken--
	}
	switch {
	case isSettled && !wasSettled:
		g.settled = append(g.settled, m)
	case wasSettled && !isSettled:
		g.unlist(m)
	}
	if !isTaken && !isSettled {
		delete(g.orders, m.orderKey)
		return
	}
	if g.orders == nil {
		g.orders = map[orderKey]*memoryOrder{}
	}
	g.orders[m.orderKey] = m
}

// standing reports whether an order is not free, and whether it is created, or free with a finding.
func (m *memoryOrder) standing() (isTaken, isSettled bool) {
	state := m.row.State(anyTime)
	isTaken = state != orders.Free
	return isTaken, state == orders.Created || !isTaken && len(m.row.Findings) > 0
}

// unlist removes an order from those that are settled.
func (g *MemoryGuard) unlist(m *memoryOrder) {
	i := slices.Index(g.settled, m)
	if i < g.stripped {
		g.stripped--
	}
	if i == 0 { // of a full guard, which would move 65,535 others for each invoice
		g.settled[0], g.settled = nil, g.settled[1:]
	} else {
		g.settled = slices.Delete(g.settled, i, i+1)
	}
}

// trim keeps the bounds of the guard after a change of an order. If there are too many settled orders, the guard
// forgets the oldest. If there are too many texts, the oldest orders lose theirs, and then the newest record loses its
// body.
func (g *MemoryGuard) trim(m *memoryOrder) {
	if len(g.settled) > cmp.Or(g.Remember, defaultRemember) {
		g.keep(g.settled[0], orders.Row[OrderRecord]{})
	}
	for ; g.kept > maxGuardMemory && g.stripped < len(g.settled); g.stripped++ {
		oldest := g.settled[g.stripped]
		g.keep(oldest, withoutTexts(oldest.row))
	}
	if last := len(m.row.Open) - 1; last >= 0 && g.kept > maxGuardMemory {
		row := m.row
		row.Open = slices.Clone(row.Open)
		row.Open[last].Record.Body = nil
		g.keep(m, row)
	}
}

const strippedCause = "the guard in memory has dropped the text of the invoice: it keeps the texts of the last 64 MiB"

// withoutTexts returns the row of a settled order without the texts of its invoices, attempts and findings.
func withoutTexts(row orders.Row[OrderRecord]) orders.Row[OrderRecord] {
	row.Invoices, row.Findings, row.Open, row.Last = slices.Clone(row.Invoices), slices.Clone(row.Findings), nil, nil
	for i := range row.Invoices {
		r := &row.Invoices[i].Record
		r.Invoice, r.Body, r.Cause = nil, nil, strippedCause
	}
	for i := range row.Findings {
		row.Findings[i].Note = ""
	}
	return row
}

// sizeOf returns how many bytes the texts of a row take.
func sizeOf(row *orders.Row[OrderRecord]) (size int) {
	sizeOfRecord := func(r *OrderRecord) int { return len(r.Invoice) + len(r.Body) + len(r.Cause) }
	for _, attempts := range [][]orders.Attempt[OrderRecord]{row.Open, row.Invoices} {
		for i := range attempts {
			size += sizeOfRecord(&attempts[i].Record)
		}
	}
	if row.Last != nil {
		size += sizeOfRecord(row.Last)
	}
	for _, f := range row.Findings {
		size += len(f.By) + len(f.Note)
	}
	return size
}

// Order returns an order. The merchant is the name of [WithMerchant], or empty for the client's own. An order
// that was never begun is free, with no attempts. The error is always nil.
func (g *MemoryGuard) Order(_ context.Context, merchant, orderID string) (OrderStatus, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.order(merchant, endpoint.IDKey(orderID)).status(time.Now()), nil
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
	o := OrderStatus(orders.StatusOf[OrderState, RecordedFinding](&m.row, m.merchant, m.id, now.UnixMicro(), now))
	if m.row.Held != nil {
		o.SentUntil = time.Time{} // its lease ends with the process
	}
	return o
}

// Resolve records a finding about an order of unknown outcome. If an invoice exists, the order is then created. If
// none exists, the order is free, and the next call sends it. A finding with an Invoice also adds the invoice to a
// created order that has no text of one.
//
// Pass the order as Pending or Order returned it before the lookup. After an error the order is unchanged: the error
// matches [ErrTriedAgain], [ErrNotUnknown] or [ErrTooEarly], or is the [*ArgumentError] of [Finding.Validate].
// A finding that says what the last one says is no error, and changes nothing.
func (g *MemoryGuard) Resolve(_ context.Context, o OrderStatus, f Finding) error {
	if err := f.Validate(o); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.order(o.Merchant, o.OrderID)
	resolve := orders.ResolveOf(&m.row, orders.Finding{Exists: f.Exists, By: f.By, Note: f.Note}, f.Invoice)
	resolve.Attempt, resolve.Read, resolve.ReadAt = orders.AttemptOf(o.Attempt), o.GuardReadAt.UnixMicro(), o.ReadAt
	resolve.Waited = o.ReadAt.Sub(m.begun).Microseconds()
	resolve.Margin = cmp.Or(f.Margin, DefaultMargin).Microseconds()
	row, answer := m.row.Resolve(resolve, time.Now().UnixMicro())
	if answer.Err != nil {
		return fmt.Errorf("gateway: order %q: %w", o.OrderID, answer.Err)
	}
	g.keep(m, row)
	g.trim(m)
	return nil
}

// Forget forgets a created order whose invoice can no longer be paid, such as an expired one. The next call for the
// order then sends another invoice: first ask the operator of the gateway what a repeated orderId does. Forget
// refuses an order that was sent again since it was read ([ErrTriedAgain]), that is not created, or that has an
// attempt of unknown outcome ([ErrNotCreated]).
func (g *MemoryGuard) Forget(_ context.Context, o OrderStatus) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.order(o.Merchant, o.OrderID)
	if err := m.row.Forget(orders.AttemptOf(o.Attempt), time.Now().UnixMicro()); err != nil {
		return fmt.Errorf("gateway: order %q: %w", o.OrderID, err)
	}
	g.keep(m, orders.Row[OrderRecord]{})
	return nil
}

// clone returns a request whose texts keep nothing else in memory.
func (r InvoiceRequest) clone() InvoiceRequest {
	for _, text := range []*string{&r.OrderID, &r.BaseCurrency, &r.CoinSymbol, &r.NetworkName} {
		*text = strings.Clone(*text)
	}
	return r
}
