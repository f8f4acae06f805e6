package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"sync"
)

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
	key      orderKey
	inFlight *InvoiceRequest // of the call that has the lease; nil for none
	state    OrderState      // apart from that call
	record   *OrderRecord    // of the outcome; nil if it is not kept
}

// Begin implements [OrderGuard].
func (g *MemoryGuard) Begin(_ context.Context, o Order) (Lease, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.order(orderKeyOf(o))
	switch {
	case known.inFlight != nil:
		return Lease{State: OrderInFlight, Known: &OrderRecord{Request: *known.inFlight}}, nil
	case known.state == OrderUnknown && o.Resubmit, known.state == OrderFree:
		known.inFlight = &o.Request
		return Lease{Known: known.record}, nil
	default:
		return Lease{State: known.state, Known: known.record}, nil
	}
}

// End implements [OrderGuard].
func (g *MemoryGuard) End(_ context.Context, o Order, r OrderRecord) (OrderRecord, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.order(orderKeyOf(o))
	known.inFlight = nil
	switch {
	case known.state == OrderCreated && r.Outcome == OutcomeSucceeded:
		if known.record == nil {
			return OrderRecord{Outcome: OutcomeSucceeded, Others: []json.RawMessage{r.Invoice}}, nil
		}
		has := *known.record
		has.Others = append(has.Others[:len(has.Others):len(has.Others)], r.Invoice)
		g.keep(known, has)
		g.makeRoom()
	case known.state == OrderCreated:
	case r.Outcome == OutcomeSucceeded:
		known.state, r.Body, r.Cause = OrderCreated, nil, ""
		g.keep(known, r)
		g.remember(known)
	case r.Outcome == OutcomeUnknown:
		known.state = OrderUnknown
		if g.kept+len(r.Body) > maxKeptResponses {
			r.Body = nil
		}
		g.keep(known, r)
	case known.state == OrderUnknown: // that another invoice was refused or not sent proves nothing about this one
	default:
		delete(g.orders, known.key)
		return r, nil
	}
	if known.record == nil {
		return OrderRecord{Outcome: OutcomeSucceeded}, nil
	}
	return *known.record, nil
}

// order returns an order, which is in the map then.
func (g *MemoryGuard) order(key orderKey) *memoryOrder {
	if known := g.orders[key]; known != nil {
		return known
	}
	if g.orders == nil {
		g.orders = map[orderKey]*memoryOrder{}
	}
	known := &memoryOrder{key: key}
	g.orders[key] = known
	return known
}

// keep keeps a record of an order in the place of the one before.
func (g *MemoryGuard) keep(m *memoryOrder, r OrderRecord) {
	r.Request = r.Request.clone()
	g.drop(m)
	m.record = &r
	g.kept += r.size()
}

// drop drops the record of an order.
func (g *MemoryGuard) drop(m *memoryOrder) {
	if m.record != nil {
		g.kept -= m.record.size()
		m.record = nil
	}
}

// remember remembers an order that was created, and forgets the oldest one where there are too
// many.
func (g *MemoryGuard) remember(m *memoryOrder) {
	g.created = append(g.created, m)
	if len(g.created) > cmp.Or(g.Remember, defaultRemember) {
		oldest := g.created[0]
		g.drop(oldest)
		delete(g.orders, oldest.key)
		g.created[0], g.created, g.bare = nil, g.created[1:], max(g.bare-1, 0)
	}
	g.makeRoom()
}

// makeRoom drops the records of the oldest created orders where all of them are too large.
func (g *MemoryGuard) makeRoom() {
	for ; g.kept > maxKeptResponses && g.bare < len(g.created); g.bare++ {
		g.drop(g.created[g.bare])
	}
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
	size := 512
	for _, other := range r.Others {
		size += len(other)
	}
	return size + len(r.Invoice) + len(r.Body) + len(r.Cause) + len(r.RequestID) + len(r.Request.OrderID) + len(r.Request.BaseCurrency) + len(r.Request.CoinSymbol) + len(r.Request.NetworkName)
}
