package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cryptogw/gateway/internal/endpoint"
)

// A Finding says what a person found at the gateway about an order of unknown outcome.
type Finding struct {
	Exists bool   // the gateway has an invoice for the order
	By     string // who found it out; required
	Note   string // optional, such as the number of the invoice

	// Invoice is the invoice as JSON, which later calls return. It is optional, and needs Exists.
	Invoice json.RawMessage

	// Margin is how long a request may be in transit, at least a microsecond; 0 means 15 minutes. A finding that no
	// invoice exists is accepted only if the order was read at least this long after SentUntil.
	Margin time.Duration
}

// A RecordedFinding is a [Finding] that a guard has recorded.
type RecordedFinding struct {
	Exists  bool      // the gateway has an invoice for the order
	By      string    // who found it out
	Note    string    // optional
	At      time.Time // when it was recorded, in UTC by the clock of the guard
	Attempt string    // the last attempt of the order then
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
	case f.Margin > 0 && f.Margin < time.Microsecond:
		name, reason = "Margin", f.Margin.String()+" looks like a number without a unit: write 15 * time.Minute"
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
		reason = fmt.Sprintf("%s (order %q)", reason, o.OrderID)
		return &ArgumentError{Operation: "resolve", Name: "Finding." + name, Reason: reason}
	case o.State != OrderUnknown && (o.State != OrderCreated || len(f.Invoice) == 0):
		return fmt.Errorf("gateway: order %q: %w: it was %s when it was read", o.OrderID, ErrNotUnknown, o.State)
	default:
		return nil
	}
}

// otherOrder returns the order that JSON names instead of another one, or "". Members with other names than orderId and
// order_id are not looked at.
func otherOrder(text json.RawMessage, orderID string) (other string) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return ""
	}
	named := false
	var walk func(name string, value any)
	walk = func(name string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for name, member := range value {
				walk(name, member)
			}
		case []any:
			for _, element := range value {
				walk(name, element)
			}
		case string, json.Number:
			if name != "orderId" && name != "order_id" {
				return
			}
			if id := fmt.Sprint(value); endpoint.SameID(id, orderID) {
				named = true
			} else if id != "" {
				other = id
			}
		}
	}
	if walk("", value); named {
		return ""
	}
	return other
}
