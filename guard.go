package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/cryptogw/gateway/internal/orders"
)

// An OrderStatus is an order as it was read from a guard. All times are in UTC by the clock of the
// guard, and zero if the event has not happened, except for ReadAt.
type OrderStatus struct {
	OrderID  string     // [Order.Key]: the orderId of the invoice, in lower case if it is a UUID
	Merchant string     // see [WithMerchant]; empty for the client's own
	Gateway  string     // the base URL of the client that sent it; empty if it is not known
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

// A Finding is what a person found at the gateway about an order of unknown outcome.
type Finding struct {
	Exists bool   // the gateway has an invoice for the order
	By     string // who found it out; required
	Note   string // optional, such as the number of the invoice

	// Invoice is the invoice as JSON, which later calls return. It is optional, and only for an order that exists.
	Invoice json.RawMessage

	// Margin is how long a request may be in transit; 0 means 15 minutes. That no invoice exists is accepted
	// only of an order that was read when SentUntil was at least this long ago.
	Margin time.Duration
}

const (
	defaultRemember = 1 << 16

	maxKeptResponses = 16 << 20
)

// A MemoryGuard is an [OrderGuard] in memory: it knows no other process and nothing from before a
// restart. It remembers orders of unknown outcome for as long as it lives, and the created orders
// that came last. Of requests and responses it keeps 16 MiB, about 20,000 small ones: of older
// orders the invoice is returned without Raw, whatever the request. Clients that share a guard share
// their orders: name their merchants with [WithMerchant].
//
// The zero guard is ready to use. It must not be copied.
type MemoryGuard struct {
	// Remember is how many created orders are remembered; 0 for 65,536. It must not change.
	Remember int

	mu      sync.Mutex
	orders  map[orderKey]*memoryOrder
	created []*memoryOrder // the oldest first
	bare    int            // how many of these have no record any more
	kept    int            // bytes of records
}

// An orderKey identifies an order of a merchant in little memory: an orderId can have
// 1,024 bytes.
type orderKey [16]byte

func orderKeyOf(o Order) (key orderKey) {
	sum := sha256.Sum256([]byte(o.Merchant + "\x00" + o.Key())) // neither has a control character
	return orderKey(sum[:len(key)])
}

// A memoryOrder is an order that is in flight, created or unknown.
type memoryOrder struct {
	key     orderKey
	gateway string
	row     *orders.Row[OrderRecord] // nil for one that is created, and of which nothing else is kept
}

// No attempt in memory outlives its process, so that its lease never ends and its clock never advances.
const (
	noTime   = 1
	noExpiry = math.MaxInt64 / 2
)

// Begin implements [OrderGuard].
func (g *MemoryGuard) Begin(_ context.Context, o Order) (Lease, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.order(orderKeyOf(o))
	before := known.rowOf()
	row, answer := before.Begin(orders.Begin[OrderRecord]{
		Gateway: o.Gateway, Attempt: int64(before.Attempts) + 1, Lease: noExpiry, Resubmit: o.Resubmit, Record: OrderRecord{Request: o.Request},
	}, noTime)
	state := OrderState(before.State(noTime))
	switch {
	case answer.Err != nil:
		return Lease{}, answer.Err
	case !answer.Granted:
		return Lease{State: state, Known: knownOf(&before, state)}, nil
	}
	known.gateway, known.row = row.Gateway, &row
	return Lease{Known: knownOf(&before, state)}, nil
}

// End implements [OrderGuard].
func (g *MemoryGuard) End(_ context.Context, o Order, r OrderRecord) (OrderRecord, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.order(orderKeyOf(o))
	before := known.rowOf()
	end := orders.End[OrderRecord]{Gateway: o.Gateway, Record: r}
	if before.Held != nil {
		end.Attempt = before.Attempt
	}
	end.Record.Request = r.Request.clone()
	switch r.Outcome {
	case OutcomeSucceeded:
		end.Result, end.Bare = orders.Success, len(r.Invoice) == 0
		end.Record.Body, end.Record.Cause = nil, ""
	case OutcomeNotSent, OutcomeRejected:
	default:
		end.Result = orders.Undecided
		if g.kept+len(r.Body) > maxKeptResponses {
			end.Record.Body = nil
		}
	}
	row, _ := before.End(end, noTime)
	if row.Open = row.Open[max(len(row.Open)-1, 0):]; len(row.Invoices) > 0 {
		row.Open = nil // nobody can read them
	}
	if known.row != nil {
		g.keep(known, &row)
	}
	state := OrderState(row.State(noTime))
	if state == OrderFree {
		delete(g.orders, known.key)
		return r, nil
	}
	return *knownOf(&row, state), nil
}

// rowOf returns what is known of an order.
func (m *memoryOrder) rowOf() orders.Row[OrderRecord] {
	if m.row != nil {
		return *m.row
	}
	return orders.Row[OrderRecord]{Gateway: m.gateway, Attempts: 1, Attempt: 1, Created: noTime, Invoices: []orders.Attempt[OrderRecord]{{Record: OrderRecord{Outcome: OutcomeSucceeded}}}}
}

// knownOf returns what is known of an order in a state; nil for nothing.
func knownOf(row *orders.Row[OrderRecord], state OrderState) *OrderRecord {
	switch {
	case state == OrderInFlight:
		return &OrderRecord{Request: row.Held.Request}
	case state == OrderUnknown:
		return &row.Open[len(row.Open)-1].Record
	case state == OrderFree:
		return nil
	}
	if len(row.Invoices) == 1 {
		return &row.Invoices[0].Record
	}
	r := row.Invoices[0].Record
	for _, other := range row.Invoices[1:] {
		r.Others = append(r.Others, other.Record.Invoice)
	}
	return &r
}

// order returns an order, which is in the map then.
func (g *MemoryGuard) order(key orderKey) *memoryOrder {
	if known := g.orders[key]; known != nil {
		return known
	}
	if g.orders == nil {
		g.orders = map[orderKey]*memoryOrder{}
	}
	known := &memoryOrder{key: key, row: &orders.Row[OrderRecord]{}}
	g.orders[key] = known
	return known
}

// keep keeps a row of an order in the place of the one before. If an invoice is known only now, the
// oldest created order is forgotten where there are too many.
func (g *MemoryGuard) keep(m *memoryOrder, row *orders.Row[OrderRecord]) {
	isNew := len(m.row.Invoices) == 0 && len(row.Invoices) > 0
	g.replace(m, row)
	if isNew {
		g.created = append(g.created, m)
	}
	if len(g.created) > cmp.Or(g.Remember, defaultRemember) {
		oldest := g.created[0]
		g.replace(oldest, nil)
		delete(g.orders, oldest.key)
		g.created[0], g.created, g.bare = nil, g.created[1:], max(g.bare-1, 0)
	}
	for ; g.kept > maxKeptResponses && g.bare < len(g.created); g.bare++ {
		g.replace(g.created[g.bare], nil)
	}
}

// replace replaces the row of an order.
func (g *MemoryGuard) replace(m *memoryOrder, row *orders.Row[OrderRecord]) {
	g.kept += sizeOf(row) - sizeOf(m.row)
	m.row = row
}

// sizeOf is about how many bytes the records of a row take.
func sizeOf(row *orders.Row[OrderRecord]) (size int) {
	if row == nil {
		return 0
	}
	for _, attempts := range [][]orders.Attempt[OrderRecord]{row.Open, row.Invoices} {
		for i := range attempts {
			size += attempts[i].Record.size()
		}
	}
	return size
}

// clone returns a request whose texts keep nothing else in memory.
func (r InvoiceRequest) clone() InvoiceRequest {
	for _, text := range []*string{&r.OrderID, &r.BaseCurrency, &r.CoinSymbol, &r.NetworkName} {
		*text = strings.Clone(*text)
	}
	return r
}

// size is about how many bytes a record takes.
func (r *OrderRecord) size() int {
	return 768 + len(r.Invoice) + len(r.Body) + len(r.Cause) + len(r.RequestID) + len(r.Request.OrderID) + len(r.Request.BaseCurrency) + len(r.Request.CoinSymbol) + len(r.Request.NetworkName)
}
