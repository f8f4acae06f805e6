package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/validate"
)

// An OrderGuard keeps two invoices from being created for one order, and remembers what became
// of each. It must be safe for concurrent use. [WithOrderGuard] sets it.
//
// An order is identified by [Order.Key] and the Merchant.
type OrderGuard interface {
	// Begin asks for the lease of an order, before its invoice is sent. A lease that is granted
	// is recorded first, with at least the RequestID. While another call has the lease the order is
	// in flight, after a success created, and after an unknown outcome unknown, unless o.Resubmit
	// is set. An error means that nothing was granted: a guard withdraws what it may have recorded.
	//
	// For an order in flight the client asks again, so a Begin that grants nothing should write
	// nothing. Nothing is sent after the lease has expired, and one that is shorter than the call
	// may last is refused.
	Begin(ctx context.Context, o Order) (Lease, error)

	// End records what became of the call that has the lease, once, before its caller sees it,
	// and returns what the guard has then: r, or what is more certain. An unknown outcome gives
	// way to a success or another unknown outcome only, and a success to nothing: a further invoice
	// is added to its Others. A success and an unknown outcome are recorded even if the guard has
	// no such order any more. The context ends after 10 seconds, not with the caller's. An error is
	// for observers, and the order must be treated as unknown later.
	End(ctx context.Context, o Order, r OrderRecord) (OrderRecord, error)
}

// An Order is what an [OrderGuard] is asked about: one call of [Client.CreateInvoice].
type Order struct {
	Gateway   string         // the base URL in one form: lower-case host, no default port, no last slash; at most 512 bytes
	Merchant  string         // of [WithMerchant]; empty for the client's own
	Request   InvoiceRequest // with the OrderID only, if the rest is not valid
	RequestID string         // what the call sends as X-Request-Id; empty for nothing
	Resubmit  bool           // an order of unknown outcome may be sent again
}

// Key returns what identifies the order of a merchant: the OrderID. One in the form of a UUID is the same
// in either case, and is returned in lower case.
func (o Order) Key() string { return validate.IDKey(o.Request.OrderID) }

// An OrderState is what an [OrderGuard] says of an order. The zero value is [OrderFree].
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

// A Lease is the answer of an [OrderGuard]. One whose State is [OrderFree] is granted.
type Lease struct {
	State   OrderState
	Known   *OrderRecord // what was known of the order before; nil for nothing
	Expires time.Time    // of a granted lease, by the clock of this process; zero for never
}

// An OrderRecord is all that a guard keeps of an order. It has no key. Its slices are at most
// 64 KiB each, and are not changed after the call.
type OrderRecord struct {
	Outcome    Outcome           `json:"outcome"`             // of the order
	Request    InvoiceRequest    `json:"request"`             // as it was sent last; the zero request if it is not known
	Invoice    json.RawMessage   `json:"invoice,omitzero"`    // the result of the response; nil if it is not known, or larger than 64 KiB
	Others     []json.RawMessage `json:"others,omitzero"`     // further invoices of the order that were learned of, which should not be
	RequestID  string            `json:"requestId,omitzero"`  // of the call
	SentAt     time.Time         `json:"sentAt,omitzero"`     // when the last attempt of the call began; zero if nothing was sent
	CreatedAt  time.Time         `json:"createdAt,omitzero"`  // when the invoice was recorded; zero if it is not known
	StatusCode int               `json:"statusCode,omitzero"` // of the response; 0 when none came
	Body       []byte            `json:"body,omitzero"`       // of a failure: at most the first 8 KiB of the response
	Cause      string            `json:"cause,omitzero"`      // of a failure: at most 1 KiB in one line
}

const (
	// guardTimeout bounds how long recording an outcome may take.
	guardTimeout = 10 * time.Second

	maxKeptInvoice = 64 << 10
	maxKeptCause   = 1 << 10

	// Bounds of the interval at which a call asks for an order in flight: an eighth of the time
	// that it has waited.
	leastAsk = 2 * time.Millisecond
	mostAsk  = 500 * time.Millisecond
)

// requestIDHeader names the header of an invoice by which the operator of the gateway can find
// its request in a log. The interface does not document it; a gateway may ignore it.
const requestIDHeader = "X-Request-Id"

// An orderOfCall is the order of a call that creates an invoice, and what is known of it.
type orderOfCall struct {
	Order
	refused error     // what is wrong with the call but for its order; nil for nothing
	expires time.Time // of the lease; zero for never

	unknownSince time.Time // when the first attempt began whose outcome is unknown; zero for none
	invoice      *Invoice
	guardErr     error // why the guard could not record the outcome
}

var (
	errLeaseExpired  = errors.New("the lease of the order has expired")
	errUnknownBefore = errors.New("an earlier invoice for this order has an unknown outcome: look it up, then use AllowResubmit if there is none")
	errOtherRequest  = errors.New("the order was sent for another request meanwhile")
	errUnknownSince  = errors.New("the order has become unknown since this call began")
)

// WithIdempotentOrders declares that a repeated orderId returns the existing invoice, as the
// operator of the gateway has stated in writing. Where that is not true, every repeated invoice
// is a second one, which a buyer can pay.
//
// An invoice of unknown outcome is then sent again, within the attempts of [RetryPolicy] and by a
// later call with an equal request, each time digit by digit as the first, until it succeeds. A
// refusal proves nothing about the earlier attempt. [SafeToRetry] is true of an
// [*OutcomeUnknownError] that another call may end.
func WithIdempotentOrders() Option {
	return func(cfg *config) error {
		cfg.idempotent = true
		return nil
	}
}

// prepareOrder builds the Order of the call. What else is wrong with the call is kept until the
// guard has been asked: it says nothing about an earlier invoice of the order.
func (c *call) prepareOrder(refusal *ArgumentError) error {
	if refusal != nil && refusal.Name == "WithMerchant" {
		return refusal
	}
	if c.cfg.key != nil && c.cfg.merchant == "" && c.client.cfg.guard != nil {
		if refusal != nil {
			return refusal
		}
		return c.refuse("WithMerchant", "is required with WithAPIKey: the key does not say whose order it is")
	}
	request := *c.operation.invoice
	name, reason := request.check()
	if name == "orderId" {
		return c.refuse(name, reason)
	}
	c.order.Order = Order{Gateway: c.client.base.String(), Merchant: c.cfg.merchant, Request: request}
	c.order.Resubmit = c.cfg.resubmit && !c.client.flights.has(&c.order.Order) // not what becomes unknown from now on
	switch {
	case reason != "": // a guard need not be able to store the request
		c.order.Request, c.order.refused = InvoiceRequest{OrderID: request.OrderID}, c.refuse(name, reason)
	case refusal != nil:
		c.order.refused = refusal
	default:
		c.order.refused = c.resolveKey()
	}
	if c.order.refused == nil {
		c.order.RequestID = c.newRequestID()
	}
	return c.refuseKeyInArguments() // with the key of a source, too
}

// newRequestID returns the identifier of a call that creates an invoice, or "".
func (c *call) newRequestID() string {
	switch set := c.cfg.header.Get(requestIDHeader); {
	case set != "":
		return c.redactor.Text(set)
	case c.client.cfg.noRequestID:
		return ""
	default:
		return rand.Text()
	}
}

// sendOrder sends the invoice of an order whose lease the guard grants. Of any other order it
// returns what the guard knows.
func (c *call) sendOrder() (err error) {
	guard := c.client.cfg.guard
	if guard == nil {
		return c.sendInvoice(nil)
	}
	lease, err := c.acquire(guard)
	if err != nil {
		return err
	}
	switch lease.State {
	case OrderFree:
	case OrderCreated:
		return c.replay(lease.Known)
	case OrderUnknown:
		return c.unknownBefore(lease.Known, errUnknownBefore)
	default:
		return c.guardError(ErrOrderInFlight)
	}
	flight := c.client.flights.begin(c)
	err = errPanicked // until the invoice is sent
	defer func() { c.client.flights.end(&c.order.Order, flight, err) }()
	defer func() { err = c.release(guard, lease, err) }()
	if reason := c.tooShort(lease); reason != nil {
		return reason
	}
	c.order.expires = lease.Expires
	return c.sendInvoice(lease.Known)
}

// acquire asks the guard for the lease of the order. While an equal call has it, acquire waits
// for that one: until the context ends, and for as long as one invoice may take.
func (c *call) acquire(guard OrderGuard) (Lease, error) {
	begun, longest := time.Now(), c.client.cfg.longestInvoice()
	for {
		lease, err := c.ask(guard, longest)
		if err != nil {
			return Lease{}, c.guardFailed(err)
		}
		waited, equal := time.Since(begun), lease.Known != nil && lease.Known.Request.Equal(c.order.Request)
		switch {
		case lease.State == OrderFree:
			if c.order.Resubmit && lease.Known != nil {
				if refused := c.refuseResubmission(lease.Known, equal); refused != nil {
					c.order.refused = refused
				}
			}
			return lease, nil
		case lease.State == OrderUnknown && !c.order.Resubmit && c.client.cfg.idempotent && equal:
			if _, open := c.client.breaker.begin(c.order.Merchant, c.order.Key(), true); open != nil {
				failure := c.unknownBefore(lease.Known, open)
				failure.again = true
				return Lease{}, failure
			}
			c.order.Request, c.order.Resubmit = lease.Known.Request, true // with the digits that were sent
		case lease.State != OrderInFlight || waited >= longest || c.order.Request.differsFrom(lease.Known):
			return lease, nil
		default:
			c.order.Resubmit = false // it was permitted for what was unknown before this call
			flight, pause := c.client.flights.find(c), min(max(waited/8, leastAsk), mostAsk)
			if flight != nil {
				pause = longest - waited
			}
			refusal, err := flight.wait(c.ctx, pause)
			if err != nil {
				return Lease{}, c.guardError(fmt.Errorf("%w: %w", ErrOrderInFlight, contextError(c.ctx, c.redactor)))
			}
			if refusal != nil {
				refusal.decision = c.decide(OutcomeRejected, refusal.transient)
				return Lease{}, refusal
			}
		}
	}
}

// refuseResubmission returns why an order of unknown outcome is not sent again, although its lease is
// granted, or nil: what is known is not what this call was permitted to send again.
func (c *call) refuseResubmission(known *OrderRecord, equal bool) error {
	switch {
	case c.cfg.resubmit && known.Outcome == OutcomeUnknown && known.SentAt.After(c.started):
		return c.transportError(PhaseOrder, errUnknownSince, false)
	case !c.cfg.resubmit && !equal:
		return c.transportError(PhaseOrder, errOtherRequest, false)
	default:
		return nil
	}
}

// ask calls Begin of the guard.
func (c *call) ask(guard OrderGuard, longest time.Duration) (Lease, error) {
	if _, inMemory := guard.(*MemoryGuard); inMemory { // it never waits, and a timeout costs nine allocations
		return guard.Begin(c.ctx, c.order.Order)
	}
	ctx, cancel := context.WithTimeout(c.ctx, longest)
	defer cancel()
	return guard.Begin(ctx, c.order.Order)
}

// tooShort returns why the invoice is not sent under a lease that may expire before the call ends.
func (c *call) tooShort(lease Lease) error {
	if lease.Expires.IsZero() {
		return nil
	}
	longest := c.client.cfg.longestInvoice()
	if deadline, bounded := c.ctx.Deadline(); bounded {
		longest = min(longest, time.Until(deadline))
	}
	if left := time.Until(lease.Expires); left < longest {
		return c.refuse("WithOrderGuard", fmt.Sprintf("the lease of the order is %v, and a call may last %v by WithRetry: "+
			"set a longer lease of the guard, or a shorter InvoiceTimeout", left.Round(time.Millisecond), longest.Round(time.Millisecond)))
	}
	return nil
}

// sendInvoice sends the invoice, unless the call is refused or the circuit breaker is open.
func (c *call) sendInvoice(known *OrderRecord) (err error) {
	if c.order.refused != nil {
		return c.order.refused
	}
	merchant, order := c.order.Merchant, c.order.Key()
	wasUnknown := known != nil && known.Outcome == OutcomeUnknown
	probe, open := c.client.breaker.begin(merchant, order, wasUnknown)
	if open != nil {
		return c.transportError(PhaseStart, open, true)
	}
	c.client.awaited.add(flightKey{merchant, order})
	err = errPanicked // until the call returns
	defer func() {
		outcome := OutcomeOf(err)
		if !wasUnknown || outcome != OutcomeUnknown { // an order counts once
			c.client.breaker.end(merchant, order, probe, outcome)
		}
		c.client.awaited.remove(flightKey{merchant, order}, outcome)
	}()
	return c.send()
}

// release has the guard record what became of the call, and returns what is known of the order
// then.
func (c *call) release(guard OrderGuard, lease Lease, err error) error {
	err = c.combine(lease.Known, err)
	has, failed := c.record(guard, c.newRecord(lease.Known, err))
	switch {
	case failed != nil:
		c.order.guardErr = sanitize(failed, c.redactor)
	case err == nil:
		c.order.invoice.CreatedAt, c.order.invoice.Others = has.CreatedAt, cloneAll(has.Others)
	default:
		err = c.combine(&has, err)
	}
	if outcome := OutcomeOf(err); attempt.HasPassed(lease.Expires) && (outcome == OutcomeNotSent || outcome == OutcomeRejected) {
		err = c.guardError(fmt.Errorf("%w: %s", errLeaseExpired, oneLine(err))) // others may have sent the order since
	}
	return err
}

// record calls End of the guard.
func (c *call) record(guard OrderGuard, r OrderRecord) (OrderRecord, error) {
	if _, inMemory := guard.(*MemoryGuard); inMemory {
		return guard.End(c.ctx, c.order.Order, r)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), guardTimeout)
	defer cancel()
	return guard.End(ctx, c.order.Order, r)
}

// combine returns what is known of the order after a call that has ended with err: that a call sent
// nothing, or was refused, proves nothing about an earlier invoice, and one that is known ends all
// doubt.
func (c *call) combine(known *OrderRecord, err error) error {
	outcome := OutcomeOf(err)
	switch {
	case known == nil || err == nil:
		return err
	case known.Outcome == OutcomeSucceeded:
		return c.replay(known)
	case known.Outcome != OutcomeUnknown || outcome == OutcomeUnknown:
		return err
	}
	before := c.unknownBefore(known, errUnknownBefore)
	before.again = c.client.cfg.idempotent && !c.order.Request.differsFrom(known) && c.isTemporary(err)
	before.Cause = fmt.Errorf("sent again: %s; before: %s", oneLine(err), oneLine(before.Cause))
	return before
}

// isTemporary reports whether the call could succeed if it were made again, be that safe or not.
func (c *call) isTemporary(failure error) bool {
	own, ok := failure.(callError)
	return ok && own.decided().transient || c.ctx.Err() != nil
}

// replay returns the invoice that the order has, unless that is for another request.
func (c *call) replay(known *OrderRecord) error {
	invoice := &Invoice{OrderID: c.order.Request.OrderID, Replayed: true}
	if known != nil {
		invoice.Raw, invoice.CreatedAt, invoice.Others = bytes.Clone(known.Invoice), known.CreatedAt, cloneAll(known.Others)
	}
	if !c.order.Request.differsFrom(known) {
		c.order.invoice = invoice
		return nil
	}
	conflict := &OrderConflictError{OrderID: c.order.Request.OrderID, Request: known.Request}
	if len(invoice.Raw) > 0 {
		conflict.Invoice = invoice
	}
	return conflict
}

// guardError is the error of a call that knows of no invoice and cannot say that there is none.
// The call may be made again unless AllowResubmit was passed: it could send what has become unknown
// since.
func (c *call) guardError(err error) *TransportError {
	return &TransportError{
		Operation: c.operation.name, Phase: PhaseOrder, Attempts: c.attempts, LastStatus: c.status,
		Err:      fmt.Errorf("order %q: %w", c.order.Request.OrderID, err),
		timeout:  errors.Is(c.ctx.Err(), context.DeadlineExceeded),
		decision: decision{outcome: OutcomeUnknown, transient: true, retryable: !c.cfg.resubmit},
	}
}

// guardFailed is the error of a call whose guard has failed. If the guard is not set up for the call or the
// gateway, the same call fails again.
func (c *call) guardFailed(err error) *TransportError {
	failure := c.guardError(fmt.Errorf("the order guard: %w", sanitize(err, c.redactor)))
	if _, misused := errors.AsType[*ArgumentError](err); misused || errors.Is(err, ErrOtherGateway) {
		failure.retryable = false
	}
	return failure
}

// outcomeUnknown is the error of a call that may have created the invoice.
func (c *call) outcomeUnknown(failure error) *OutcomeUnknownError {
	return &OutcomeUnknownError{
		Operation: c.operation.name, OrderID: c.order.Request.OrderID, RequestID: c.order.RequestID,
		StatusCode: c.status, Body: c.response.body, SentAt: c.order.unknownSince, Cause: failure,
		again: c.client.cfg.idempotent && c.isTemporary(failure),
	}
}

// unknownBefore is the error of a call that has created no invoice, while that of an earlier
// call may exist.
func (c *call) unknownBefore(known *OrderRecord, cause error) *OutcomeUnknownError {
	e := &OutcomeUnknownError{Operation: c.operation.name, OrderID: c.order.Request.OrderID, Replayed: true, Cause: cause}
	if known != nil {
		e.RequestID, e.SentAt, e.StatusCode, e.Body = known.RequestID, known.SentAt, known.StatusCode, bytes.Clone(known.Body)
		if known.Cause != "" && cause == errUnknownBefore {
			e.Cause = errors.New(known.Cause)
		}
	}
	return e
}

// newRecord is what the guard is to keep of a call that has ended. What is unknown from an earlier
// call is kept as it was known.
func (c *call) newRecord(known *OrderRecord, err error) OrderRecord {
	r := OrderRecord{Outcome: OutcomeOf(err), Request: c.order.Request, RequestID: c.order.RequestID, StatusCode: c.status}
	if r.Outcome != OutcomeNotSent {
		r.SentAt = c.begun
	}
	if err == nil {
		r.CreatedAt = time.Now()
		if len(c.order.invoice.Raw) <= maxKeptInvoice {
			r.Invoice = bytes.Clone(c.order.invoice.Raw)
		}
		return r
	}
	cause := err
	switch failure := err.(type) {
	case *OutcomeUnknownError:
		if failure.Replayed {
			r.Request = known.Request
		}
		cause = failure.Cause
		r.RequestID, r.SentAt, r.StatusCode, r.Body = failure.RequestID, failure.SentAt, failure.StatusCode, bytes.Clone(failure.Body)
	case *APIError:
		r.Body = bytes.Clone(failure.Body)
	}
	r.Cause = redact.Truncate(c.redactor.Text(oneLine(cause)), maxKeptCause)
	return r
}

// cloneAll returns copies for a caller, who may change them.
func cloneAll(invoices []json.RawMessage) []json.RawMessage {
	all := slices.Clone(invoices)
	for i := range all {
		all[i] = bytes.Clone(all[i])
	}
	return all
}

// differsFrom reports whether the request of a record is known, and not equal to r.
func (r InvoiceRequest) differsFrom(known *OrderRecord) bool {
	return known != nil && known.Request.OrderID != "" && !known.Request.Equal(r)
}
