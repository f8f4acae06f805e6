package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
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
	m, begun := g.order(o.Merchant, o.Key()), time.Now()
	now := begun.UnixMicro()
	row, answer := m.row.Begin(orders.Begin[OrderRecord]{
		Gateway: o.Gateway, Attempt: g.attempts + 1, Lease: noExpiry, Resubmit: o.Resubmit,
		Record: orders.Held[OrderRecord](o.Request.clone(), begun.Truncate(time.Microsecond)),
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
	m, now := g.order(o.Merchant, o.Key()), time.Now().UnixMicro()
	attempt := orders.AttemptOf(o.Attempt)
	if attempt == 0 { // of another guard
		g.attempts++
		attempt = g.attempts
	}
	r.Request = r.Request.clone()
	end := orders.EndOf(o.Gateway, attempt, r)
	row, _ := m.row.End(end, now)
	g.keep(m, row)
	g.trim(m)
	return orders.Ended(&m.row, end, now), nil
}

// order returns the order of a merchant: one that was never begun if the guard does not have it.
func (g *MemoryGuard) order(merchant, id string) *memoryOrder {
	if m := g.orders[orderKeyOf(merchant, id)]; m != nil {
		return m
	}
	return &memoryOrder{merchant: strings.Clone(merchant), id: strings.Clone(id), begun: time.Now()}
}

// keep replaces the row of an order. A free order is not kept.
func (g *MemoryGuard) keep(m *memoryOrder, row orders.Row[OrderRecord]) {
	if len(m.row.Invoices) == 0 && len(row.Invoices) > 0 {
		g.created = append(g.created, m)
	}
	g.kept += sizeOf(&row) - sizeOf(&m.row)
	m.row = row
	key := orderKeyOf(m.merchant, m.id)
	if row.State(time.Now().UnixMicro()) == orders.Free {
		delete(g.orders, key)
		return
	}
	if g.orders == nil {
		g.orders = map[orderKey]*memoryOrder{}
	}
	g.orders[key] = m
}

// trim keeps the bounds of the guard after a change of an order. If there are too many created orders, the oldest is
// forgotten; if there are too many texts, the oldest invoices lose theirs, and then what came last loses its body.
func (g *MemoryGuard) trim(m *memoryOrder) {
	row := m.row
	if n := len(row.Open); n > maxOpen {
		row.Open = slices.Delete(slices.Clone(row.Open), 1, n-maxOpen+1)
		g.keep(m, row)
	}
	if len(g.created) > cmp.Or(g.Remember, defaultRemember) {
		oldest := g.created[0]
		g.created[0], g.created, g.stripped = nil, g.created[1:], max(g.stripped-1, 0)
		g.drop(oldest)
	}
	for ; g.kept > maxGuardMemory && g.stripped < len(g.created); g.stripped++ {
		g.keep(g.created[g.stripped], withoutTexts(g.created[g.stripped].row))
	}
	if last := len(row.Open) - 1; g.kept > maxGuardMemory && last >= 0 {
		row.Open = slices.Clone(row.Open)
		row.Open[last].Record.Body = nil
		g.keep(m, row)
	}
}

// drop forgets an order.
func (g *MemoryGuard) drop(m *memoryOrder) {
	if key := orderKeyOf(m.merchant, m.id); g.orders[key] == m {
		delete(g.orders, key)
		g.kept -= sizeOf(&m.row)
	}
}

const strippedCause = "the guard in memory has dropped the text of the invoice: it keeps the texts of the last 64 MiB"

// withoutTexts returns the row of a created order without the texts of its invoices and attempts.
func withoutTexts(row orders.Row[OrderRecord]) orders.Row[OrderRecord] {
	row.Invoices, row.Open = slices.Clone(row.Invoices), nil
	for i := range row.Invoices {
		r := &row.Invoices[i].Record
		r.Invoice, r.Body, r.Cause = nil, nil, strippedCause
	}
	return row
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
	o := OrderStatus(orders.StatusOf[OrderState, Finding](&m.row, m.merchant, m.id, now.UnixMicro(), now))
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
func (g *MemoryGuard) Resolve(_ context.Context, o OrderStatus, f Finding) error {
	if err := f.Validate(o); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.order(o.Merchant, o.OrderID)
	row, answer := m.row.Resolve(orders.Resolve[OrderRecord]{
		Finding: orders.Finding{Exists: f.Exists, By: f.By, Note: f.Note},
		Attempt: orders.AttemptOf(o.Attempt), Read: o.GuardReadAt.UnixMicro(), ReadAt: o.ReadAt,
		Waited: o.ReadAt.Sub(m.begun).Microseconds(), Margin: cmp.Or(f.Margin, DefaultMargin).Microseconds(),
		Bare: len(f.Invoice) == 0, Record: orders.Found(&m.row, f.Invoice),
	}, time.Now().UnixMicro())
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
	g.drop(m)
	if i := slices.Index(g.created, m); i >= 0 {
		g.created = slices.Delete(g.created, i, i+1)
		if i < g.stripped {
			g.stripped--
		}
	}
	return nil
}

// clone returns a request whose texts keep nothing else in memory.
func (r InvoiceRequest) clone() InvoiceRequest {
	for _, text := range []*string{&r.OrderID, &r.BaseCurrency, &r.CoinSymbol, &r.NetworkName} {
		*text = strings.Clone(*text)
	}
	return r
}
