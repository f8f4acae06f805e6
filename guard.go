package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/cryptogw/gateway/internal/validate"
)

// An OrderGuard keeps two invoices from being created for one order. It must be safe
// for concurrent use. The default guard is a [MemoryGuard] with no options: it
// knows no other client, no other process and nothing from before a restart.
//
// An order is identified by its orderId and, where the calls of several merchants share
// a guard, by the merchant: see [MerchantFromContext]. The context of both methods has
// the values of the caller's.
type OrderGuard interface {
	// Begin is called before an invoice is sent. It refuses with an error that
	// matches [ErrOrderInFlight] while another call for the order is in flight, with
	// one that matches [ErrOrderCreated] after a success, and with one that matches
	// [ErrOrderOutcomeUnknown] after an unknown outcome unless resubmit is set.
	Begin(ctx context.Context, orderID string, resubmit bool) error

	// End records the outcome of a call that Begin accepted, once for each. Its
	// context has the values of the caller's but not its end, which must not lose the
	// outcome; it ends after 10 seconds. The error does not change what the call
	// returns: a guard that cannot record an outcome must treat the order as unknown
	// later.
	End(ctx context.Context, orderID string, outcome Outcome) error
}

// guardTimeout bounds how long recording an outcome may take.
const guardTimeout = 10 * time.Second

type merchantKey struct{}

// keyMerchant begins the name of a merchant that is known by a key only.
const keyMerchant = "key:"

// MerchantFromContext returns the merchant of a call, in the context of an [OrderGuard],
// and of Attempt and Drift of an [Observer]: the name of [WithMerchant], or for a call
// with [WithAPIKey] a name that is derived from the key. That name is stable and has 36
// characters; the key cannot be computed from it, but a key of little entropy could be
// guessed. It is false for a call with the client's own key, and for a key of [WithAPIKey]
// beside [WithAPIKeySource]: that may be the key of the same merchant.
func MerchantFromContext(ctx context.Context) (string, bool) {
	name, ok := ctx.Value(merchantKey{}).(string)
	return name, ok
}

// WithMerchant names the merchant whose order a call is about, for an [OrderGuard] that
// several merchants share and whose keys change. The name is 1 to 256 bytes of valid
// UTF-8 and does not begin with "key:". It is not sent.
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
			return &ArgumentError{Name: "WithMerchant", Reason: reason}
		}
		cfg.merchant = name
		return nil
	}
}

// merchant returns the merchant of the call, or "" for the one that the client is for.
func (c *call) merchant() string {
	ownKey := c.cfg.key == nil || c.key.Reveal() == c.client.key.Reveal() || c.client.cfg.keySource != nil
	if c.cfg.merchant != "" || ownKey {
		return c.cfg.merchant
	}
	sum := sha256.Sum256([]byte("gateway merchant\x00" + c.cfg.key.Reveal()))
	return keyMerchant + hex.EncodeToString(sum[:16])
}

// MemoryGuardOptions are the options of [NewMemoryGuard].
type MemoryGuardOptions struct {
	Repeats  bool // whether an order that was created may be created again; the orderId is documented as unique (docs/interface.md, I-110)
	Remember int  // how many created orders are remembered, the last ones; default 65,536
}

const defaultRemember = 1 << 16

// A MemoryGuard is an [OrderGuard] in memory. It refuses an order while another call for
// it is in flight, after an unknown outcome, and after a success as long as it remembers
// that one: 65,536 created orders take at most 8 MiB. Orders with an unknown outcome are
// remembered for as long as the guard lives. It never waits.
//
// Clients that share a guard share their orders: give each of their merchants a name
// with [WithMerchant], or their calls a key with [WithAPIKey].
//
// The zero guard is that of [NewMemoryGuard] without options. Do not copy it.
type MemoryGuard struct {
	repeats  bool
	remember int // 0 for defaultRemember

	mu      sync.Mutex
	orders  map[orderKey]orderState
	created []orderKey // a ring of those that were created
	oldest  int        // in created, once it is full
}

// NewMemoryGuard returns a guard that knows no order. A negative Remember is an
// [*ArgumentError].
func NewMemoryGuard(o MemoryGuardOptions) (*MemoryGuard, error) {
	if o.Remember < 0 {
		return nil, &ArgumentError{Operation: "memory_guard", Name: "o", Reason: "Remember must not be negative"}
	}
	return &MemoryGuard{repeats: o.Repeats, remember: o.Remember}, nil
}

// An orderKey identifies an order of a merchant in little memory: an orderId can have
// 1,024 bytes.
type orderKey [16]byte

func orderKeyOf(ctx context.Context, orderID string) (key orderKey) {
	merchant, _ := MerchantFromContext(ctx)
	sum := sha256.Sum256([]byte(merchant + "\x00" + orderID)) // neither has a control character
	return orderKey(sum[:len(key)])
}

// An orderState is that of an order in the map; one that is not there is free.
type orderState struct {
	inFlight bool
	unknown  bool // an earlier outcome is unknown
	created  bool
}

// Begin implements [OrderGuard].
func (g *MemoryGuard) Begin(ctx context.Context, orderID string, resubmit bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := orderKeyOf(ctx, orderID)
	state := g.orders[key]
	switch {
	case state.inFlight:
		return ErrOrderInFlight
	case state.created:
		return ErrOrderCreated
	case state.unknown && !resubmit:
		return ErrOrderOutcomeUnknown
	}
	state.inFlight = true
	g.set(key, state)
	return nil
}

// End implements [OrderGuard]. It frees the order, unless it was created, or its outcome or an earlier one is
// unknown: that a second invoice was refused or not sent proves nothing about the first.
func (g *MemoryGuard) End(ctx context.Context, orderID string, outcome Outcome) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := orderKeyOf(ctx, orderID)
	switch {
	case outcome == OutcomeSucceeded && !g.repeats:
		g.set(key, orderState{created: true})
		g.rememberCreated(key)
	case outcome == OutcomeUnknown || g.orders[key].unknown && outcome != OutcomeSucceeded:
		g.set(key, orderState{unknown: true})
	default:
		delete(g.orders, key)
	}
	return nil
}

func (g *MemoryGuard) set(key orderKey, state orderState) {
	if g.orders == nil {
		g.orders = map[orderKey]orderState{}
	}
	g.orders[key] = state
}

// rememberCreated forgets the oldest created order where there are too many.
func (g *MemoryGuard) rememberCreated(key orderKey) {
	if len(g.created) < cmp.Or(g.remember, defaultRemember) {
		g.created = append(g.created, key)
		return
	}
	delete(g.orders, g.created[g.oldest])
	g.created[g.oldest] = key
	g.oldest = (g.oldest + 1) % len(g.created)
}
