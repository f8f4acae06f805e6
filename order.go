package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/redact"
)

const (
	// guardTimeout bounds how long recording an outcome may take.
	guardTimeout = 10 * time.Second

	// Bounds of the pause before a call asks for an order in flight again: an eighth of the time that it
	// has waited.
	leastAsk = 2 * time.Millisecond
	mostAsk  = 500 * time.Millisecond
)

// An orderOfCall is the order of a call that creates an invoice.
type orderOfCall struct {
	Order
	refused error     // why the call must not be sent, although its order is valid; nil if it may be
	expires time.Time // the end of the lease; zero for never

	unknownSince time.Time // when the first attempt began whose outcome is unknown; zero for none
	invoice      *Invoice
	guardErr     error // why the guard could not record the outcome
}

var (
	errLeaseExpired  = errors.New("the lease of the order has expired")
	errUnknownBefore = errors.New("an earlier invoice for this order has an unknown outcome: look it up, then record the finding with the Resolve of the guard")
	errOtherRequest  = errors.New("the order was sent for another request meanwhile")
)

// WithIdempotentOrders declares that a repeated orderId returns the existing invoice, as the
// operator of the gateway has confirmed in writing. If that is not true, every repetition creates
// another invoice, which a buyer can pay.
//
// The client then sends an invoice of unknown outcome again, with the same digits, until it succeeds:
// within the attempts of [RetryPolicy], and in a later call with an equal request. A refusal proves
// nothing about the earlier attempt. [SafeToRetry] is true of an [*OutcomeUnknownError] that another
// call may resolve.
func WithIdempotentOrders() Option {
	return func(cfg *config) error {
		cfg.idempotent = true
		return nil
	}
}

// prepareOrder builds the Order of the call. It keeps any other refusal of the call until the guard
// has been asked, because the order may have an earlier invoice.
func (c *call) prepareOrder() error {
	isNameless := c.cfg.key != nil && c.cfg.merchant == "" && c.client.cfg.guard != nil
	switch {
	case c.badOption != nil && (isNameless || c.badOption.Name == "WithMerchant"):
		return c.badOption
	case isNameless:
		return c.refuse("WithMerchant", "is required with WithAPIKey: the key does not say whose order it is")
	}
	request := *c.operation.invoice
	name, reason := request.check()
	if name == "orderId" {
		return c.refuse(name, reason)
	}
	c.order.Order = Order{Gateway: c.client.base.String(), Merchant: c.cfg.merchant, Request: request}
	switch {
	case reason != "": // a guard need not be able to store the request
		c.order.Request, c.order.refused = InvoiceRequest{OrderID: request.OrderID}, c.refuse(name, reason)
	case c.badOption != nil:
		c.order.refused = c.badOption
	default:
		c.order.refused = c.resolveKey()
	}
	return nil
}

// sendOrder sends the invoice if the guard grants the lease of the order. Otherwise it returns what
// the guard knows.
func (c *call) sendOrder() (err error) {
	guard := c.client.cfg.guard
	if guard == nil {
		return c.sendInvoice()
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
		return c.unknownBefore(lease.Known)
	default:
		return c.guardError(ErrOrderInFlight)
	}
	c.order.Attempt, c.order.expires = lease.Attempt, lease.Expires
	err = errPanicked // until the invoice is sent
	defer func() { err = c.release(guard, lease, err) }()
	if reason := c.tooShort(lease); reason != nil {
		return reason
	}
	if c.order.Resubmit && lease.Known != nil && !lease.Known.Request.Equal(c.order.Request) {
		return c.transportError(PhaseOrder, errOtherRequest, false)
	}
	return c.sendInvoice()
}

// acquire asks the guard for the lease of the order. While another call has it, acquire asks again: until the
// context ends, and for as long as one invoice may take.
func (c *call) acquire(guard OrderGuard) (Lease, error) {
	begun, longest := time.Now(), c.client.cfg.longestInvoice()
	for {
		lease, err := c.ask(guard, longest)
		if err != nil {
			return Lease{}, c.guardFailed(err)
		}
		switch waited := time.Since(begun); {
		case lease.State == OrderUnknown && c.mayResend(lease.Known):
			c.order.Request, c.order.Resubmit = lease.Known.Request, true // with the digits that were sent
		case lease.State != OrderInFlight || waited >= longest || c.order.Request.differsFrom(lease.Known):
			return lease, nil
		default:
			if sleep(c.ctx, min(max(waited/8, leastAsk), mostAsk)) != nil {
				return Lease{}, c.guardError(fmt.Errorf("%w: %w", ErrOrderInFlight, contextError(c.ctx, c.redactor)))
			}
		}
	}
}

// mayResend reports whether an order of unknown outcome is sent again: if it is declared that the service returns the
// first invoice, and this call asks for the same one.
func (c *call) mayResend(known *OrderRecord) bool {
	return c.client.cfg.idempotent && !c.order.Resubmit && known != nil && known.Request.Equal(c.order.Request)
}

// sleep waits, or returns the error of a context that has ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
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

// sendInvoice sends the invoice, unless the call is refused or the client was shut down.
func (c *call) sendInvoice() error {
	switch {
	case c.order.refused != nil:
		return c.order.refused
	case c.client.orders.isClosed():
		refused := c.transportError(PhaseOrder, ErrShutdown, false)
		refused.Retryable = false
		return refused
	default:
		return c.send()
	}
}

// release has the guard record the outcome of the attempt, and returns the outcome of the order.
func (c *call) release(guard OrderGuard, lease Lease, err error) error {
	r := c.newRecord(err)
	has, failed := c.record(guard, r)
	switch {
	case failed != nil:
		c.order.guardErr = sanitize(failed, c.redactor)
		err = c.combine(lease.Known, err)
	case err == nil:
		c.order.invoice.CreatedAt, c.order.invoice.Others = has.CreatedAt, cloneAll(has.Others)
		if r.Cause != "" {
			c.order.guardErr = errors.New(r.Cause)
		}
	default:
		err = c.combine(&has, err)
	}
	if err == nil {
		c.order.invoice.GuardErr = cmp.Or(c.order.guardErr, c.order.invoice.GuardErr)
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

// combine returns the outcome of the order after a call that failed. A call that sent nothing, or was refused,
// proves nothing about an earlier invoice; a known invoice ends all doubt.
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
	before := c.unknownBefore(known)
	before.Retryable = c.client.cfg.idempotent && !c.order.Request.differsFrom(known) && c.isTemporary(err)
	before.Cause = fmt.Errorf("sent again: %s; before: %s", oneLine(err), oneLine(before.Cause))
	return before
}

// isTemporary reports whether the same call could succeed later. It does not say whether that is safe.
func (c *call) isTemporary(failure error) bool {
	own, ok := failure.(callError)
	return ok && own.decided().transient || c.isEnded() || c.next.Wait > 0
}

// replay returns the invoice that the order has, unless that is for another request.
func (c *call) replay(known *OrderRecord) error {
	invoice := &Invoice{OrderID: c.order.Request.OrderID, Replayed: true}
	if known != nil {
		invoice.Raw, invoice.CreatedAt, invoice.Others, invoice.Request = bytes.Clone(known.Invoice), known.CreatedAt, cloneAll(known.Others), known.Request
		if len(known.Invoice) == 0 && known.Cause != "" {
			invoice.GuardErr = errors.New(known.Cause)
		} else {
			invoice.Details, invoice.GuardErr = c.decodeInvoice(invoice.Raw)
		}
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

// guardError is the error of a call that knows no invoice, and cannot rule one out.
func (c *call) guardError(err error) *TransportError {
	return &TransportError{
		Operation: c.operation.name, Phase: PhaseOrder, Attempts: c.attempts, LastStatus: c.status,
		Err:       fmt.Errorf("order %q: %w", c.order.Request.OrderID, err),
		timeout:   errors.Is(c.ctx.Err(), context.DeadlineExceeded),
		transient: true, Retryable: true,
	}
}

// guardFailed is the error of a call whose guard has failed. If the guard is not set up for the call or the
// gateway, the same call fails again.
func (c *call) guardFailed(err error) *TransportError {
	failure := c.guardError(fmt.Errorf("the order guard: %w", sanitize(err, c.redactor)))
	if _, misused := errors.AsType[*ArgumentError](err); misused || errors.Is(err, ErrOtherGateway) {
		failure.Retryable = false
	}
	return failure
}

// outcomeUnknown is the error of a call that may have created the invoice.
func (c *call) outcomeUnknown(failure error) *OutcomeUnknownError {
	e := &OutcomeUnknownError{
		Operation: c.operation.name, OrderID: c.order.Request.OrderID,
		StatusCode: c.status, Body: c.response.body, SentAt: c.order.unknownSince, Cause: failure,
		Retryable: c.client.cfg.idempotent && c.isTemporary(failure),
	}
	if response, ok := failure.(*APIError); ok {
		e.Response = response
	}
	return e
}

// unknownBefore is the error of a call that has created no invoice, while the invoice of an earlier
// call may exist.
func (c *call) unknownBefore(known *OrderRecord) *OutcomeUnknownError {
	e := &OutcomeUnknownError{Operation: c.operation.name, OrderID: c.order.Request.OrderID, Replayed: true, Cause: errUnknownBefore}
	if known != nil {
		e.SentAt, e.StatusCode, e.Body = known.SentAt, known.StatusCode, bytes.Clone(known.Body)
		if known.Cause != "" {
			e.Cause = errors.New(known.Cause)
		}
	}
	return e
}

// newRecord returns the record of the attempt that ended with err, for the guard.
func (c *call) newRecord(err error) OrderRecord {
	r := OrderRecord{Outcome: OutcomeOf(err), Request: c.order.Request, StatusCode: c.status}
	if r.Outcome != OutcomeNotSent {
		r.SentAt = c.begun
	}
	if err == nil {
		r.CreatedAt = time.Now()
		if size := len(c.order.invoice.Raw); size > maxKeptInvoice {
			r.Cause = fmt.Sprintf("the invoice has %d bytes, and a guard keeps at most 1 MiB", size)
		} else {
			r.Invoice = bytes.Clone(c.order.invoice.Raw)
		}
		return r
	}
	cause := err
	switch failure := err.(type) {
	case *OutcomeUnknownError:
		cause = failure.Cause
		r.SentAt, r.StatusCode, r.Body = failure.SentAt, failure.StatusCode, bytes.Clone(failure.Body)
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

// differsFrom reports whether the request of a record is known and differs from r. If both name the same coin, the
// amount does not count, because it follows the rate.
func (r InvoiceRequest) differsFrom(known *OrderRecord) bool {
	if known == nil || known.Request.OrderID == "" {
		return false
	}
	other := known.Request
	if r.CoinSymbol != "" && r.CoinSymbol == other.CoinSymbol {
		other.Amount = r.Amount
	}
	return !other.Equal(r)
}
