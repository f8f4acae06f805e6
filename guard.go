package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/cryptogw/gateway/internal/validate"
)

// keyMerchant begins the name of a merchant that is known by a key only.
const keyMerchant = "key:"

// WithMerchant names the merchant whose order a call is about, for an [OrderGuard] that
// several merchants share and whose keys change. The name is 1 to 256 bytes of valid
// UTF-8 and does not begin with "key:". It is not sent.
//
// A merchant is the name of WithMerchant, else the key of [WithAPIKey], else the client's own. One
// that is known by two of these is two merchants to a guard, and so is one whose key of WithAPIKey
// changes: name it with WithMerchant.
func WithMerchant(name string) CallOption {
	return func(cfg *callConfig) *ArgumentError {
		reason := validate.Text(name, validate.MaxURLText)
		switch {
		case name == "":
			reason = "must not be empty"
		case strings.HasPrefix(name, keyMerchant):
			reason = `must not begin with "key:"`
		}
		if reason != "" {
			cfg.nobody = true
			return &ArgumentError{Name: "WithMerchant", Reason: reason}
		}
		cfg.merchant = name
		return nil
	}
}

// merchant returns the merchant of the call, or "" for the one that the client is for.
func (c *call) merchant() string {
	ownKey := c.cfg.key == nil || c.cfg.key.Reveal() == c.client.key.Reveal() || c.client.cfg.keySource != nil
	if c.cfg.merchant != "" || ownKey {
		return c.cfg.merchant
	}
	sum := sha256.Sum256([]byte("gateway merchant\x00" + c.cfg.key.Reveal()))
	return keyMerchant + hex.EncodeToString(sum[:16])
}

// MemoryGuardOptions are the options of [NewMemoryGuard].
type MemoryGuardOptions struct {
	Remember int // how many created orders are remembered, the last ones; default 65,536
}

const (
	defaultRemember = 1 << 16

	maxKeptResponses = 16 << 20 // of created orders
	maxKeptBodies    = 4 << 20  // of failures
)

// A MemoryGuard is an [OrderGuard] in memory: it knows no other process and nothing from
// before a restart. It remembers orders with an unknown outcome for as
// long as it lives, and the created orders that it was told of last: 65,536 of them take at most
// 8 MiB. Of these it keeps the requests and responses, of at most 16 MiB together, which is about
// 20,000 small ones. An order whose record it had to drop, the oldest first, is still known to be
// created: its invoice is returned without Raw, whatever the request. Of the
// bodies of failures it keeps 4 MiB. It never waits.
//
// Clients that share a guard share their orders: give each of their merchants a name
// with [WithMerchant], or their calls a key with [WithAPIKey].
//
// The zero guard is that of [NewMemoryGuard] without options. Do not copy it.
type MemoryGuard struct {
	remember int // 0 for defaultRemember

	mu        sync.Mutex
	orders    map[orderKey]*memoryOrder
	created   []*memoryOrder // a ring of those that were created
	count     int            // how many were created
	dropped   int            // of how many the record is dropped
	responses int            // bytes that are kept of created orders
	bodies    int            // bytes of bodies that are kept of failures
}

// NewMemoryGuard returns a guard that knows no order. A negative Remember is an
// [*ArgumentError].
func NewMemoryGuard(o MemoryGuardOptions) (*MemoryGuard, error) {
	if o.Remember < 0 {
		return nil, &ArgumentError{Operation: "memory_guard", Name: "o", Reason: "Remember must not be negative"}
	}
	return &MemoryGuard{remember: o.Remember}, nil
}

// An orderKey identifies an order of a merchant in little memory: an orderId can have
// 1,024 bytes.
type orderKey [16]byte

func orderKeyOf(o Order) (key orderKey) {
	sum := sha256.Sum256([]byte(o.Merchant + "\x00" + o.Request.OrderID)) // neither has a control character
	return orderKey(sum[:len(key)])
}

// A memoryOrder is an order that is not free.
type memoryOrder struct {
	key      orderKey
	inFlight *InvoiceRequest // of the call; nil for none
	created  bool
	unknown  bool
	record   *OrderRecord // of the outcome; nil if it is dropped
}

// Begin implements [OrderGuard].
func (g *MemoryGuard) Begin(_ context.Context, o Order) (Admission, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.order(orderKeyOf(o))
	switch {
	case known.inFlight != nil:
		return Admission{Known: &OrderRecord{Request: *known.inFlight}}, ErrOrderInFlight
	case known.created:
		return Admission{Known: known.record}, ErrOrderCreated
	case known.unknown && !o.Resubmit:
		return Admission{Known: known.record}, ErrOrderOutcomeUnknown
	}
	known.inFlight = &o.Request
	return Admission{Known: known.record}, nil
}

// End implements [OrderGuard]. It frees the order, unless it was created, or its outcome or an
// earlier one is unknown: that a second invoice was refused or not sent proves nothing about
// the first.
func (g *MemoryGuard) End(_ context.Context, o Order, r OrderRecord) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.order(orderKeyOf(o))
	known.inFlight = nil
	switch {
	case known.created:
	case r.Outcome == OutcomeSucceeded:
		g.bodies -= known.bodySize()
		r.Request, r.Body, r.Cause = r.Request.clone(), nil, ""
		known.created, known.unknown, known.record = true, false, &r
		g.rememberCreated(known)
	case r.Outcome == OutcomeUnknown:
		g.bodies -= known.bodySize()
		if g.bodies+len(r.Body) > maxKeptBodies {
			r.Body = nil
		}
		r.Request = r.Request.clone()
		known.unknown, known.record = true, &r
		g.bodies += known.bodySize()
	case !known.unknown:
		delete(g.orders, known.key)
	}
	return nil
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

func (m *memoryOrder) bodySize() int {
	if m.record == nil {
		return 0
	}
	return len(m.record.Body)
}

// rememberCreated remembers an order that was created, forgets the oldest one where there
// are too many, and drops the records of the oldest ones where they are too large.
func (g *MemoryGuard) rememberCreated(m *memoryOrder) {
	most := cmp.Or(g.remember, defaultRemember)
	if len(g.created) < most {
		g.created = append(g.created, m)
	} else {
		delete(g.orders, g.created[g.count%most].key)
		if g.dropped == g.count-most {
			g.dropRecord(most)
		}
		g.created[g.count%most] = m
	}
	g.count++
	for g.responses += m.record.size(); g.responses > maxKeptResponses; {
		g.dropRecord(most)
	}
}

// dropRecord drops the oldest record of an order that was created.
func (g *MemoryGuard) dropRecord(most int) {
	oldest := g.created[g.dropped%most]
	g.responses -= oldest.record.size()
	oldest.record = nil
	g.dropped++
}

// clone returns a request whose texts keep nothing else in memory.
func (r InvoiceRequest) clone() InvoiceRequest {
	for _, text := range []*string{&r.OrderID, &r.BaseCurrency, &r.CoinSymbol, &r.NetworkName} {
		*text = strings.Clone(*text)
	}
	return r
}

// size is about how many bytes a record of a created order takes.
func (r *OrderRecord) size() int {
	const fixed = 512
	return fixed + len(r.Invoice) + len(r.RequestID) + len(r.Request.OrderID) + len(r.Request.BaseCurrency) + len(r.Request.CoinSymbol) + len(r.Request.NetworkName)
}
