package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/endpoint"
)

const (
	// guardTimeout bounds how long recording an outcome may take.
	guardTimeout = 10 * time.Second

	// Bounds of the pause before a call asks for an order in flight again: an eighth of the time that it
	// has waited.
	leastAsk = 2 * time.Millisecond
	mostAsk  = 500 * time.Millisecond
)

// An order is a call that creates an invoice: its way through the guard.
type order struct {
	call
	Order
	refused error     // why the call must not be sent, although its order is valid; nil if it may be
	until   time.Time // when the call stops waiting for others that have the order
	created *Invoice  // the invoice that a response proves; nil for none

	isGranted bool         // the guard has granted the lease of the order
	before    *OrderRecord // what it then knew of earlier attempts; nil for nothing

	flight flight // of the order, if this call has begun it
}

var (
	errUnknownBefore = errors.New("an earlier invoice for this order has an unknown outcome: look it up, " +
		"then record the finding with the Resolve of the guard")
	errOtherRequest = errors.New("the order was sent for another request meanwhile")
)

// WithIdempotentOrders declares that a repeated orderId returns the existing invoice, as the
// operator of the gateway has confirmed in writing. If that is not true, every repetition creates
// another invoice, which a buyer can pay.
//
// The client then sends an invoice of unknown outcome again until it succeeds, within the attempts of [RetryPolicy] and
// in a later call for the same request. It sends the first request, digit by digit. If both requests name the same
// coin, their amounts may differ. A refusal proves nothing about the earlier attempt. [SafeToRetry] is true of an
// [*OutcomeUnknownError] that another call may resolve.
func WithIdempotentOrders() Option {
	return func(cfg *config) error {
		cfg.idempotent = true
		return nil
	}
}

// An OrderConflictError means that the order has an invoice for another request: for another price, currency, coin or
// network, or for another amount if the requests name no coin. This call created none. If the price or the currency
// differs, the order was placed with another price: start a new order. Otherwise show the buyer the existing invoice.
type OrderConflictError struct {
	OrderID string         // of both requests
	Differs []string       // the JSON names of the fields that differ, such as "coinSymbol"
	Request InvoiceRequest // of the invoice
	Invoice *Invoice       // the invoice, Replayed; nil if the [OrderGuard] does not have its text
}

// Error returns the order, the fields that differ and what to do in one line.
func (e *OrderConflictError) Error() string {
	differs := cmp.Or(strings.Join(e.Differs, ", "), "no known field")
	return fmt.Sprintf("gateway: %s: order %q has an invoice for another request, which differs in %s: "+
		"use that invoice, or start a new order", OpCreateInvoice, e.OrderID, differs)
}

func (e *OrderConflictError) decided() decision { return decision{outcome: OutcomeConflict} }

// create makes the call. A call with a guard begins the flight of its order, or waits for the flight that another call
// has begun.
func (o *order) create(ctx context.Context, opts []CallOption) (invoice *Invoice, err error) {
	if err := o.accept(ctx, opts); err != nil {
		return nil, err
	}
	flights := o.client.flights
	flights.enter()
	defer flights.exit()
	if timeout := o.client.cfg.callTimeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errClientTimeout)
		defer cancel()
	}
	o.begin(ctx)
	isFlown := false
	err = errAborted // until the call returns
	defer func() {
		if !isFlown {
			o.observe(invoice, err)
		}
	}()
	if err := o.address(); err != nil {
		return nil, err
	}
	if err := o.prepare(); err != nil {
		return nil, err
	}
	if o.client.cfg.guard == nil {
		return o.sendInvoice()
	}
	o.until = o.started.Add(o.client.cfg.longestInvoice())
	for {
		_, isBounded := o.ctx.Deadline()
		mayLeave := isBounded && o.ctx.Err() == nil
		flight, isLeader := flights.join(o)
		if isLeader {
			isFlown = true
			return flight.fly(o, mayLeave)
		}
		result, err := flight.await(o)
		if err != nil {
			return nil, err
		}
		if result.endsWaiting() {
			return o.learn(result)
		}
	}
}

// learn returns what the flight of another call means for this one.
func (o *order) learn(result landing) (*Invoice, error) {
	switch {
	case result.failed != nil:
		return nil, o.guardFailed(result.failed)
	case result.state == OrderCreated:
		return o.replay(result.known)
	default:
		before := o.unknownBefore(result.known)
		before.Retryable = result.retryable && !o.Request.differsFrom(result.known)
		return nil, before
	}
}

// complete makes the call up to its end for the observers, as the only one in the client for its order.
func (o *order) complete() (invoice *Invoice, err error) {
	err = errAborted // until the call returns
	defer func() { o.observe(invoice, err) }()
	return o.acquireAndSend()
}

// observe runs the End of the observers.
func (o *order) observe(invoice *Invoice, err error) {
	if err == nil {
		o.ended.Replayed, o.ended.Others = invoice.Replayed, len(invoice.Others)
	}
	o.ended.Left, o.ended.Cut = o.flight.leftOrCut()
	o.observeEnd(err)
}

// prepare builds the Order of the call. It keeps any other refusal of the call until the guard
// has been asked, because the order may have an earlier invoice.
func (o *order) prepare() error {
	isNameless := o.cfg.key != nil && o.cfg.merchant == "" && o.client.cfg.guard != nil
	switch {
	case o.badOption != nil && (isNameless || o.badOption.Name == "WithMerchant"):
		return o.badOption
	case isNameless:
		return o.refuse("WithMerchant", "is required with WithAPIKey: the key does not say whose order it is")
	}
	request := o.Request
	name, reason := request.check()
	if name == "orderId" {
		return o.refuse(name, reason)
	}
	o.Order = Order{Gateway: o.client.base.String(), Merchant: o.cfg.merchant, Request: request}
	switch {
	case reason != "": // a guard need not be able to store the request
		o.Request, o.refused = InvoiceRequest{OrderID: request.OrderID}, o.refuse(name, reason)
	case o.badOption != nil:
		o.refused = o.badOption
	default:
		o.refused = o.resolveKey()
	}
	return nil
}

// acquireAndSend sends the invoice if the guard grants the lease of the order, and has the guard record the outcome:
// after a panic, what the responses have proved. Otherwise it returns what the guard knows.
func (o *order) acquireAndSend() (invoice *Invoice, err error) {
	hasReturned := false
	defer func() {
		if !o.isGranted {
			return
		}
		if !hasReturned {
			err = o.proved()
		}
		invoice, err = o.release(err)
	}()
	invoice, err = o.acquire()
	if o.isGranted {
		invoice, err = o.sendGranted()
	}
	hasReturned = true
	return invoice, err
}

// acquire asks the guard for the lease of the order, and returns what the guard knows if it does not grant it. While
// another process has the lease, acquire asks again: until the context ends, and for as long as one invoice may take.
func (o *order) acquire() (*Invoice, error) {
	for {
		lease, err := o.ask()
		switch waited := time.Since(o.started); {
		case err != nil:
			if o.ctx.Err() == nil {
				o.flight.result.failed = err // otherwise others ask for themselves
			}
			return nil, o.guardFailed(err)
		case o.isGranted:
			return nil, nil
		case lease.State == OrderCreated:
			o.flight.result = landing{state: OrderCreated, known: lease.Known}
			return o.replay(lease.Known)
		case lease.State == OrderUnknown && o.mayResend(lease.Known):
			o.Request, o.Resubmit = lease.Known.Request, true // with the digits that were sent
		case lease.State == OrderUnknown:
			o.flight.result = landing{state: OrderUnknown, known: lease.Known}
			return nil, o.unknownBefore(lease.Known)
		case !time.Now().Before(o.until) || o.Request.differsFrom(lease.Known):
			return nil, o.guardError(ErrOrderInFlight)
		default:
			o.flight.reach(busy)
			if sleep(o.ctx, min(max(waited/8, leastAsk), mostAsk)) != nil {
				return nil, o.waitEnded()
			}
		}
	}
}

// isRepeatable reports whether it is declared that the service returns the first invoice of a repeated order.
func (o *order) isRepeatable() bool { return o.client.cfg.idempotent }

// mayResend reports whether an order of unknown outcome is sent again: if it is declared that the service returns the
// first invoice, and this call asks for the same one.
func (o *order) mayResend(known *OrderRecord) bool {
	isKnown := known != nil && known.Request.OrderID != ""
	return o.isRepeatable() && !o.Resubmit && isKnown && !o.Request.differsFrom(known)
}

// ask calls Begin of the guard. When the context ends, Begin has some time more: an order that it granted without an
// answer would be in flight until its lease ends.
func (o *order) ask() (lease Lease, err error) {
	guard, ctx := o.client.cfg.guard, o.ctx
	if _, inMemory := guard.(*MemoryGuard); !inMemory { // which never waits, and a timeout costs nine allocations
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(context.WithoutCancel(o.ctx), o.until)
		defer cancel()
		defer context.AfterFunc(o.ctx, func() { time.AfterFunc(guardTimeout, cancel) })()
	}
	lease, err = guard.Begin(ctx, o.Order)
	if o.isGranted = err == nil && lease.State == OrderFree; o.isGranted {
		o.Attempt, o.expires, o.before = lease.Attempt, lease.Expires, lease.Known
	}
	return lease, err
}

// sendGranted sends the invoice with its lease, unless that may expire before the flight ends, or is for another
// request.
func (o *order) sendGranted() (*Invoice, error) {
	o.flight.reach(granted)
	longest := o.client.cfg.longestInvoice()
	if left := time.Until(o.expires); left < longest && !o.expires.IsZero() {
		return nil, o.refuse("WithOrderGuard", fmt.Sprintf("the lease of the order is %v, and a call may last %v by "+
			"WithRetry: set a longer lease of the guard, or a shorter InvoiceTimeout",
			left.Round(time.Millisecond), longest.Round(time.Millisecond)))
	}
	if o.Resubmit && o.before != nil && !o.before.Request.Equal(o.Request) {
		return nil, o.transportError(PhaseOrder, errOtherRequest, false)
	}
	return o.sendInvoice()
}

// sendInvoice sends the invoice, unless the call is refused or the client was shut down.
func (o *order) sendInvoice() (*Invoice, error) {
	switch {
	case o.refused != nil:
		return nil, o.refused
	case o.client.flights.closed():
		refused := o.transportError(PhaseOrder, ErrShutdown, false)
		refused.Retryable = false
		return nil, refused
	}
	switch failure := o.send(); {
	case failure == nil:
		return o.created, nil
	case !o.unknownSince.IsZero():
		return nil, o.outcomeUnknown(failure)
	default:
		return nil, failure
	}
}

// proved returns what the attempts have proved before a panic. The caller's context may have panicked, and is asked no
// more.
func (o *order) proved() error {
	o.ctx = context.WithoutCancel(o.ctx)
	if o.attempts == 0 || o.failure == errAborted && !o.template.IsRead {
		o.last.sent = sentNothing
		o.failure = o.transportError(PhaseStart, errAborted, false)
	}
	return o.failed()
}

// release has the guard record the outcome of the attempt, and returns the outcome of the order.
func (o *order) release(failure error) (*Invoice, error) {
	o.flight.hasOutcome()
	known, record, result := o.before, o.newRecord(failure), &o.flight.result
	*result = landingOf(&record)
	switch recorded, err := o.end(record); {
	case err != nil:
		o.ended.GuardErr = sanitize(err, o.redactor)
		if result.state == OrderFree {
			*result = landingOf(known)
		}
		if !isFinal(err) {
			defer o.flight.recordLater(o, record) // when the result is whole: other calls read it once this has recorded
		}
	default:
		if failure == nil && record.Cause != "" {
			o.ended.GuardErr = errors.New(record.Cause)
		}
		record = recorded
		known, *result = &record, landingOf(&record)
	}
	invoice, err := o.settle(failure, known, attempt.HasPassed(o.expires))
	result.retryable = SafeToRetry(err)
	return invoice, err
}

// end calls End of the guard.
func (o *order) end(r OrderRecord) (OrderRecord, error) {
	guard, ctx := o.client.cfg.guard, o.ctx
	if _, inMemory := guard.(*MemoryGuard); !inMemory {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(o.ctx), guardTimeout)
		defer cancel()
	}
	return guard.End(ctx, o.Order, r)
}

// settle returns the outcome of the order by the outcome of the attempt, and by the record that the guard knows; nil
// for none. An attempt that sent nothing, or was refused, proves nothing about an earlier invoice, nor about an invoice
// that another call has sent after the lease had passed. A known invoice ends all doubt.
func (o *order) settle(failure error, known *OrderRecord, leasePassed bool) (*Invoice, error) {
	outcome := OutcomeOf(failure)
	isOpen := known != nil && known.Outcome == OutcomeUnknown
	switch provesNothing := outcome == OutcomeNotSent || outcome == OutcomeRejected; {
	case failure == nil:
		return o.createdInvoice(known), nil
	case known != nil && known.Outcome == OutcomeSucceeded:
		return o.replay(known)
	case isOpen && outcome != OutcomeUnknown:
		return nil, o.sentAgain(failure, known)
	case leasePassed && provesNothing:
		return nil, o.guardError(fmt.Errorf("%w: %s", attempt.ErrExpired, oneLine(failure)))
	default:
		return nil, failure
	}
}

// createdInvoice returns the invoice that this call has created, with what the guard knows of the order.
func (o *order) createdInvoice(known *OrderRecord) *Invoice {
	o.created.GuardErr = o.ended.GuardErr
	if known != nil && known.Outcome == OutcomeSucceeded {
		o.created.CreatedAt, o.created.Others = known.CreatedAt, cloneAll(known.Others)
	}
	return o.created
}

// sentAgain is the error of a call that sent an order of unknown outcome again, and has not succeeded.
func (o *order) sentAgain(failure error, known *OrderRecord) *OutcomeUnknownError {
	e := o.unknownBefore(known)
	e.Retryable = o.isRepeatable() && !o.Request.differsFrom(known) && o.isTemporary(failure)
	e.Cause = fmt.Errorf("sent again: %s; before: %s", oneLine(failure), oneLine(e.Cause))
	return e
}

// isTemporary reports whether the same call could succeed later. It does not say whether that is safe.
func (o *order) isTemporary(failure error) bool {
	attempted, ok := failure.(callError)
	return ok && attempted.decided().transient || o.isEnded() || o.next.Wait > 0
}

// replay returns the invoice that the order has, unless that is for another request.
func (o *order) replay(known *OrderRecord) (*Invoice, error) {
	invoice := &Invoice{OrderID: o.Request.OrderID, Replayed: true}
	if known != nil {
		invoice.Raw, invoice.Request = bytes.Clone(known.Invoice), known.Request
		invoice.CreatedAt, invoice.Others = known.CreatedAt, cloneAll(known.Others)
		if len(known.Invoice) == 0 && known.Cause != "" {
			invoice.GuardErr = errors.New(known.Cause)
		}
	}
	invoice.Details, invoice.DetailsErr = o.decodeInvoice(invoice.Raw)
	o.ended.DetailsErr = invoice.DetailsErr
	if !o.Request.differsFrom(known) {
		return invoice, nil
	}
	conflict := &OrderConflictError{OrderID: o.Request.OrderID, Request: known.Request}
	conflict.Differs = o.Request.differences(known.Request)
	if len(invoice.Raw) > 0 {
		conflict.Invoice = invoice
	}
	return nil, conflict
}

// leftError is the error of a call whose flight goes on without it. The flight may still use the order.
func (o *order) leftError(left *leave) *TransportError {
	f := &o.flight
	e := &TransportError{
		Operation: OpCreateInvoice, Phase: PhaseOrder, Attempts: left.attempts,
		timeout: errors.Is(f.caller.Err(), context.DeadlineExceeded), transient: true, Retryable: true,
	}
	err := contextError(f.caller, o.redactor)
	switch {
	case left.attempts > 0:
		e.Phase, err = PhaseWait, fmt.Errorf("%w: %w", ErrStillSending, err)
	case left.isBusy:
		err = fmt.Errorf("%w: %w", ErrOrderInFlight, err)
	}
	e.Err = fmt.Errorf("order %q: %w", f.request.OrderID, err)
	return e
}

// waitEnded is the error of a call whose context has ended while another call had the order.
func (o *order) waitEnded() *TransportError {
	return o.guardError(fmt.Errorf("%w: %w", ErrOrderInFlight, contextError(o.ctx, o.redactor)))
}

// guardError is the error of a call that knows no invoice, and cannot rule one out.
func (o *order) guardError(err error) *TransportError {
	return &TransportError{
		Operation: o.operation.name, Phase: PhaseOrder, Attempts: o.attempts, LastStatus: o.status,
		Err:       fmt.Errorf("order %q: %w", o.Request.OrderID, err),
		timeout:   errors.Is(o.ctx.Err(), context.DeadlineExceeded),
		transient: true, Retryable: true,
	}
}

// guardFailed is the error of a call whose guard has failed. If the guard is not set up for the call or the
// gateway, the same call fails again.
func (o *order) guardFailed(err error) *TransportError {
	failure := o.guardError(fmt.Errorf("the order guard: %w", sanitize(err, o.redactor)))
	failure.Retryable = !isFinal(err)
	return failure
}

// outcomeUnknown is the error of a call that may have created the invoice.
func (o *order) outcomeUnknown(failure error) *OutcomeUnknownError {
	e := &OutcomeUnknownError{
		Operation: o.operation.name, OrderID: o.Request.OrderID,
		StatusCode: o.status, Body: o.last.body, SentAt: o.unknownSince, Cause: failure,
		Retryable: o.isRepeatable() && o.isTemporary(failure),
	}
	if response, ok := failure.(*APIError); ok {
		e.Response = response
	}
	return e
}

// unknownBefore is the error of a call that has created no invoice, while the invoice of an earlier
// call may exist.
func (o *order) unknownBefore(known *OrderRecord) *OutcomeUnknownError {
	e := &OutcomeUnknownError{Operation: o.operation.name, OrderID: o.Request.OrderID, Replayed: true}
	e.Cause = errUnknownBefore
	if known != nil {
		e.SentAt, e.StatusCode, e.Body = known.SentAt, known.StatusCode, bytes.Clone(known.Body)
		if known.Cause != "" {
			e.Cause = errors.New(known.Cause)
		}
	}
	return e
}

// newRecord returns the record of the attempt that ended with err, for the guard.
func (o *order) newRecord(err error) OrderRecord {
	r := OrderRecord{Outcome: OutcomeOf(err), Request: o.Request, StatusCode: o.status}
	if r.Outcome != OutcomeNotSent {
		r.SentAt = o.begun
	}
	if err == nil {
		r.CreatedAt = time.Now()
		if size := len(o.created.Raw); size > maxKeptInvoice {
			r.Cause = fmt.Sprintf("the invoice has %d bytes, and a guard keeps at most 1 MiB", size)
		} else {
			r.Invoice = bytes.Clone(o.created.Raw)
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
	r.Cause = oneLine(cause)
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

// differsFrom reports whether the request of a record is known and differs from r.
func (r InvoiceRequest) differsFrom(known *OrderRecord) bool {
	return known != nil && known.Request.OrderID != "" && len(r.differences(known.Request)) > 0
}

// differences returns the JSON names of the fields in which two requests for an order differ. If both name the same
// coin, the amount does not count, because it follows the rate.
func (r InvoiceRequest) differences(other InvoiceRequest) (names []string) {
	for _, field := range []struct {
		name   string
		isSame bool
	}{
		{"orderId", endpoint.SameID(r.OrderID, other.OrderID)},
		{"price", r.Price.Equal(other.Price)},
		{"baseCurrency", strings.EqualFold(r.BaseCurrency, other.BaseCurrency)},
		{"coinSymbol", r.CoinSymbol == other.CoinSymbol},
		{"networkName", r.NetworkName == other.NetworkName},
		{"amount", r.Amount.Equal(other.Amount) || r.CoinSymbol != "" && r.CoinSymbol == other.CoinSymbol},
	} {
		if !field.isSame {
			names = append(names, field.name)
		}
	}
	return names
}
