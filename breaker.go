package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// WithCircuitBreaker opens a circuit when k different orders of one merchant in a row have an unknown
// outcome, so that an outage leaves few orders unknown. While it is open, [Client.CreateInvoice] sends
// no order of the merchant and returns a [*TransportError] that matches [ErrCircuitOpen].
//
// After a second, then at growing intervals of up to a minute, one order whose outcome was not unknown
// before is sent as a probe: the circuit closes when it is created or rejected.
//
// The [OrderGuard] is asked first. The default is 0: no circuit opens, and [WithLogger] warns at
// five. A negative k is an [*ArgumentError].
func WithCircuitBreaker(k int) Option {
	return func(cfg *config) error {
		if k < 0 {
			return badOption("WithCircuitBreaker", "must not be negative: 0 is no circuit breaker")
		}
		cfg.breakAfter = k
		return nil
	}
}

const (
	warnAfter = 5 // unknown orders, without WithCircuitBreaker

	minProbeInterval = time.Second
	maxProbeInterval = time.Minute
)

// A breaker has the circuits of a client. It is safe for concurrent use.
type breaker struct {
	limit int                   // unknown orders that open a circuit; 0 for none
	warn  func(merchant string) // of consecutive unknown orders; nil without a logger

	mu       sync.Mutex
	circuits map[string]*circuit // by merchant, of those with unknown orders
	warned   *circuit            // the one that was warned of, until it closes
}

// A circuit counts the consecutive unknown orders of a merchant.
type circuit struct {
	unknown  []string      // the last different orders, at most as many as open the circuit
	probe    string        // the order that is in flight while the circuit is open; empty for none
	interval time.Duration // between two probes
	next     time.Time     // when the next probe may be sent
}

// begin returns why an invoice may not be sent, or whether it is sent as a probe. For an order
// that was unknown it changes nothing.
func (b *breaker) begin(merchant, orderID string, wasUnknown bool) (probe bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[merchant]
	if c == nil || b.limit == 0 || len(c.unknown) < b.limit {
		return false, nil
	}
	switch wait := time.Until(c.next); {
	case wasUnknown || slices.Contains(c.unknown, orderID):
		return false, fmt.Errorf("%w: another order must be created or rejected first", ErrCircuitOpen)
	case c.probe != "":
		return false, fmt.Errorf("%w: another order is in flight as a probe", ErrCircuitOpen)
	case wait > 0:
		return false, fmt.Errorf("%w: the next order is sent in %v", ErrCircuitOpen, wait.Round(time.Millisecond))
	}
	c.probe = orderID
	return true, nil
}

// end counts an order that begin has let through.
func (b *breaker) end(merchant, orderID string, probe bool, outcome Outcome) {
	if b.count(merchant, orderID, probe, outcome) {
		b.warn(merchant)
	}
}

// count counts an order, and reports whether to warn.
func (b *breaker) count(merchant, orderID string, probe bool, outcome Outcome) (warn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[merchant]
	probe = probe && c != nil && c.probe == orderID // not if its circuit was closed meanwhile
	if probe {
		c.probe = ""
	}
	switch outcome {
	case OutcomeSucceeded, OutcomeRejected:
		if b.warned == c {
			b.warned = nil
		}
		delete(b.circuits, merchant)
		return false
	case OutcomeUnknown:
		if c == nil {
			c = &circuit{}
			b.circuits[merchant] = c
		}
	default:
		return false
	}
	reached := c.add(orderID, cmp.Or(b.limit, warnAfter))
	if reached || probe {
		c.interval = min(max(2*c.interval, minProbeInterval), maxProbeInterval)
		c.next = time.Now().Add(c.interval)
	}
	warn = reached && b.warned == nil && b.warn != nil
	if warn {
		b.warned = c
	}
	return warn
}

// add counts an order, and reports whether the limit is reached by it.
func (c *circuit) add(orderID string, limit int) (reached bool) {
	before := len(c.unknown)
	if !slices.Contains(c.unknown, orderID) {
		c.unknown = append(c.unknown[max(0, before+1-limit):], orderID)
	}
	return before < limit && len(c.unknown) == limit
}
