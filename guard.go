package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

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
	// nothing. The client sends nothing after the lease has expired. If the caller goes, Begin may run on for up to
	// 10 seconds; the client then ends what it has granted as not sent.
	Begin(ctx context.Context, o Order) (Lease, error)

	// End records the outcome of the attempt that o.Attempt names, and returns the order as the guard then
	// knows it. A success replaces an unknown outcome; nothing replaces a success: the invoice of another attempt
	// is added to its Others. A success and an unknown outcome are recorded even if the guard has forgotten the
	// order. The context ends after 10 seconds, not with the caller's. Observers receive an error of End; the order
	// must then count as unknown.
	//
	// The client calls End again for an attempt if it does not know whether the outcome was recorded: also much
	// later, and while a later attempt has the lease. An outcome that the attempt already has is recorded once:
	// a repeated success adds nothing to Others, and a repeated unknown outcome changes nothing and moves no time.
	// An unknown outcome also changes nothing if a person's finding has ended the attempt.
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
	Others     []json.RawMessage `json:"others,omitzero"`     // further invoices; null for a text that is unknown
	SentAt     time.Time         `json:"sentAt,omitzero"`     // when the last attempt began; zero if nothing was sent
	CreatedAt  time.Time         `json:"createdAt,omitzero"`  // when the invoice was recorded; zero if unknown
	StatusCode int               `json:"statusCode,omitzero"` // of the response; 0 when none came
	Body       []byte            `json:"body,omitzero"`       // at most 8 KiB of the response; only of a failure

	// Cause says why the attempt failed, or why there is no Invoice, in one line of at most 1 KiB.
	Cause string `json:"cause,omitzero"`
}

// maxKeptInvoice is how many bytes of an invoice a guard keeps at most.
const maxKeptInvoice = 1 << 20

// An OrderStatus is an order as it was read from a guard. Times are in UTC, and zero if the event has not
// happened. All but ReadAt are by the clock of the guard.
type OrderStatus struct {
	OrderID  string     // [Order.Key]: the orderId of the invoice, in lower case if it is a UUID
	Merchant string     // see [WithMerchant]; empty for the client's own
	Gateway  string     // the base URL of the client that sent it; empty if unknown
	State    OrderState // [OrderFree] for an order that was never begun
	Attempts int        // how often a lease was granted; at most as many invoices exist
	Attempt  string     // names the last attempt; empty if there was none

	Begun     time.Time // when the last attempt began; zero if nobody knows
	SentUntil time.Time // when the last attempt ended, or its lease does; nothing is sent after it
	Ended     time.Time // when an outcome was last recorded
	Since     time.Time // when the oldest attempt of unknown outcome became known; zero in other states
	Created   time.Time // when it was first recorded that an invoice exists

	Record  OrderRecord   // the invoice, or the last attempt
	Earlier []OrderRecord `json:",omitzero"` // other attempts of unknown outcome, the oldest first

	Findings []RecordedFinding // all that were recorded, the first one first

	GuardReadAt time.Time // when the order was read
	ReadAt      time.Time // when the order was read, by the clock of the process that read it
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

// WithOrderGuard sets the guard that prevents a second invoice for an order. The default is a
// [MemoryGuard] of the client's own. A nil guard means none: two calls for an order send two invoices. The client
// logs a warning of that, unless the host is a loopback address.
func WithOrderGuard(guard OrderGuard) Option {
	return func(cfg *config) error {
		if memory, ok := guard.(*MemoryGuard); ok && (memory == nil || memory.Remember < 0) {
			return badOption("WithOrderGuard", "must not be a nil *MemoryGuard, and Remember must not be negative")
		}
		cfg.guard, cfg.hasGuard = guard, true
		return nil
	}
}
