package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/caller"
	"github.com/cryptogw/gateway/internal/redact"
)

// An Order is what an [OrderGuard] is asked about: one call of [Client.CreateInvoice].
type Order struct {
	Merchant  string         // of [WithMerchant], or derived from the key of [WithAPIKey]; empty for the client's own
	Request   InvoiceRequest // with the OrderID; with nothing else if the rest is not valid
	RequestID string         // of this call: what it sends as X-Request-Id; empty for none, or if it will not be sent
	Resubmit  bool           // whether the call has [AllowResubmit]
}

// An OrderRecord is all that a guard keeps of an order. It has no key. Its slices are at most
// 64 KiB, and are not changed after the call.
type OrderRecord struct {
	Outcome    Outcome         // of the order
	Request    InvoiceRequest  // as it was sent last; the zero request if it is not known
	Invoice    json.RawMessage // the result of the response; nil if it is not known, or larger than 64 KiB
	RequestID  string          // of the call
	SentAt     time.Time       // when the last attempt of the call began; zero if nothing was sent
	StatusCode int             // of the response; 0 when none came
	Body       []byte          // of a failure: at most the first 8 KiB of the response
	Cause      string          // of a failure: at most 1 KiB in one line
}

// An Admission is the answer of an [OrderGuard].
type Admission struct {
	Known *OrderRecord // what was known of the order before; nil for nothing
	Until time.Time    // when the admission ends, by the clock of this process; zero for never
}

// An OrderGuard keeps two invoices from being created for one order, and remembers what became
// of each. It must be safe for concurrent use. [WithOrderGuard] sets it.
//
// An order is identified by its OrderID and, where the calls of several merchants share a
// guard, by the Merchant. The context of both methods has the values of the caller's; a
// method that does not return soon after its context is left.
type OrderGuard interface {
	// Begin is called before an invoice is sent, and records at least the RequestID of a call
	// that it admits. It refuses with an error that matches [ErrOrderInFlight] while another
	// call for the order is in flight, [ErrOrderCreated] after a success, and
	// [ErrOrderOutcomeUnknown] after an unknown outcome, unless o.Resubmit is set. The
	// Admission has what is known of the order, beside these errors too. Any other error means
	// that the guard cannot say.
	//
	// After ErrOrderInFlight the client asks again, at growing intervals, for as long as it
	// waits: a Begin that refuses should write nothing. What one that was left admits is ended
	// as not sent. The client sends nothing after Until, and refuses an admission that is
	// shorter than the call may last.
	Begin(ctx context.Context, o Order) (Admission, error)

	// End records what became of a call that Begin admitted, once for each, before its caller
	// sees it. After an unknown outcome of an earlier call, r is about that one, unless this
	// one has succeeded or is unknown too. The context ends after 10 seconds and not with the
	// caller's, so that the record is not lost. Observers are told of the error, and of an End
	// that was left; it does not change what the call returns: a guard that cannot record an
	// outcome must treat the order as unknown later.
	End(ctx context.Context, o Order, r OrderRecord) error
}

const (
	// guardTimeout bounds how long recording an outcome may take.
	guardTimeout = 10 * time.Second

	maxKeptInvoice = 64 << 10
	maxKeptCause   = 1 << 10
)

// sendOrder sends the invoice of an order that the guard admits. Of any other order it returns
// what the guard knows.
func sendOrder(c *resultCall[*Invoice]) (*Invoice, error) {
	guard := c.client.cfg.guard
	if guard == nil {
		return c.sendThroughBreaker(false)
	}
	o := c.newOrder()
	admission, refused := c.admit(guard, &o)
	if refused != nil {
		return c.fromGuard(o, admission.Known, refused)
	}
	returned := false
	defer func() {
		if !returned {
			c.end(guard, o, c.newRecord(o, admission.Known, nil, errPanicked))
		}
	}()
	invoice, err := c.sendUntil(admission)
	returned = true

	err = c.afterUnknown(admission.Known, err)
	record := c.newRecord(o, admission.Known, invoice, err)
	c.end(guard, o, record)
	if c.cfg.resubmit {
		neverAgain(err)
	}
	if outcome := record.Outcome; attempt.HasPassed(c.until) && (outcome == OutcomeNotSent || outcome == OutcomeRejected) {
		err = c.undecided(fmt.Errorf("%w: %s", errAdmissionOver, oneLine(err))) // others may have sent the order since
	}
	return invoice, err
}

// neverAgain makes an error one that is not [SafeToRetry].
func neverAgain(err error) {
	switch failure := err.(type) {
	case *TransportError:
		failure.retryable = false
	case *APIError:
		failure.once = true
	}
}

// newOrder is what the guard is asked about. It has the whole request only if that is valid:
// a guard need not be able to store another.
func (c *call) newOrder() Order {
	o := Order{Merchant: c.merchant(), Request: *c.operation.write, RequestID: c.requestID, Resubmit: c.cfg.resubmit}
	if c.requestInvalid {
		o.Request = InvoiceRequest{OrderID: o.Request.OrderID}
	}
	return o
}

// A refusal is why a guard does not admit an order.
type refusal struct {
	sentinel error // of which it is; nil if the guard cannot say
	detail   error // nil for none
	argument bool  // the call or the guard is not set up for the other
	heldBack bool  // it would be repeated, but for WithCircuitBreaker
}

func (r *refusal) Error() string {
	switch {
	case r.sentinel == nil:
		return "the order guard: " + oneLine(r.detail)
	case r.detail == nil:
		return oneLine(r.sentinel)
	default:
		return oneLine(r.sentinel) + ": " + oneLine(r.detail)
	}
}

// Is reports whether target is the sentinel.
func (r *refusal) Is(target error) bool { return r.sentinel != nil && target == r.sentinel }

func (r *refusal) Unwrap() error { return r.detail }

// admit asks the guard for the order. While an equal call for it is in flight, it waits for
// that call: until the context ends, and for as long as one invoice may take.
func (c *call) admit(guard OrderGuard, o *Order) (Admission, *refusal) {
	begun, longest := time.Now(), c.client.cfg.longestInvoice()
	for {
		admission, err := c.ask(guard, *o, longest)
		if err == nil {
			c.repeat(o, admission.Known)
			return admission, nil
		}
		refused, waited := c.newRefusal(err), time.Since(begun)
		if refused.sentinel == ErrOrderOutcomeUnknown && !o.Resubmit && c.isRepeatable(o.Request, admission.Known) {
			if _, open := c.client.breaker.begin(o.Merchant, o.Request.OrderID, true); open != nil {
				refused.heldBack = true
				return admission, refused // the guard counts what it admits
			}
			o.Resubmit = true
			continue
		}
		if refused.sentinel != ErrOrderInFlight || waited >= longest || o.Request.differsFrom(admission.Known) {
			return admission, refused
		}
		if sleep(&c.ctx, min(max(waited/8, leastAsk), mostAsk)) != nil {
			refused.detail = contextError(&c.ctx, c.redactor)
			return admission, refused
		}
		o.Resubmit = false // it was permitted for what was unknown before this call
	}
}

// errNoAdmission is why a guard that does not return cannot say what it knows.
var errNoAdmission = errors.New("the order guard has not returned")

// ask calls Begin of a guard, in a goroutine that can be left unless it is the guard in memory. What
// is admitted too late is ended as not sent there.
func (c *call) ask(guard OrderGuard, o Order, longest time.Duration) (Admission, error) {
	if _, inMemory := guard.(*MemoryGuard); inMemory {
		return guard.Begin(&c.ctx, o)
	}
	return c.askWithin(guard, o, longest)
}

func (c *call) askWithin(guard OrderGuard, o Order, longest time.Duration) (Admission, error) {
	type answer struct {
		admission Admission
		err       error
	}
	got, finished := caller.Await(&c.ctx, longest, func() (a answer) {
		a.admission, a.err = guard.Begin(&c.ctx, o)
		return a
	}, func(late answer) {
		if late.err == nil {
			known := late.admission.Known
			unsent := &TransportError{Operation: c.operation.name, Phase: PhaseOrder, Err: errNoAdmission, notSent: true}
			_ = c.tell(guard, o, c.newRecord(o, known, nil, c.afterUnknown(known, unsent)))
		}
	})
	if !finished {
		return Admission{}, errNoAdmission
	}
	if got.err == nil {
		return got.admission, nil
	}
	return got.admission, caller.Examined(got.err)
}

// How long a call waits between two questions for an order in flight. It learns of the end
// an eighth later than it could.
const (
	leastAsk = 2 * time.Millisecond
	mostAsk  = 500 * time.Millisecond
)

// sleep waits, and returns the error of a context that has ended.
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

func (c *call) newRefusal(err error) *refusal {
	r := &refusal{}
	_, r.argument = errors.AsType[*ArgumentError](err)
	for _, known := range []error{ErrOrderInFlight, ErrOrderCreated, ErrOrderOutcomeUnknown} {
		if errors.Is(err, known) {
			r.sentinel = known
			break
		}
	}
	if err != r.sentinel {
		detail := sanitize(err, c.redactor)
		detail.ofGuard = true
		r.detail = detail
	}
	return r
}

// errAdmissionOver is why an invoice was not sent, or why its refusal does not decide the order.
var errAdmissionOver = errors.New("the guard's admission of the order is over")

// sendUntil sends the invoice before the admission ends, unless the call may last longer.
func (c *resultCall[T]) sendUntil(admission Admission) (result T, err error) {
	until, wasUnknown := admission.Until, admission.Known != nil && admission.Known.Outcome == OutcomeUnknown
	if c.until = until; until.IsZero() {
		return c.sendThroughBreaker(wasUnknown)
	}
	longest := c.client.cfg.longestInvoice()
	if deadline, bounded := c.ctx.Deadline(); bounded {
		longest = min(longest, time.Until(deadline))
	}
	if left := time.Until(until); left < longest {
		return result, c.refuse("WithOrderGuard", fmt.Sprintf("the guard admits the order for %v, and a call may last %v by WithRetry: "+
			"set a longer lease of the guard, or a shorter InvoiceTimeout", left.Round(time.Millisecond), longest.Round(time.Millisecond)))
	}
	return c.sendThroughBreaker(wasUnknown)
}

// differsFrom reports whether the request of a record is known, and not equal to r.
func (r InvoiceRequest) differsFrom(known *OrderRecord) bool {
	return known != nil && known.Request.OrderID != "" && !known.Request.equal(r)
}

// equal reports whether two requests ask for the same invoice: amounts are compared by value.
func (r InvoiceRequest) equal(other InvoiceRequest) bool {
	return r.OrderID == other.OrderID && r.Price.Equal(other.Price) && r.Amount.Equal(other.Amount) &&
		r.BaseCurrency == other.BaseCurrency && r.CoinSymbol == other.CoinSymbol && r.NetworkName == other.NetworkName
}

// fromGuard returns what a guard that has refused an order knows of it. Nothing was sent.
func (c *call) fromGuard(o Order, known *OrderRecord, refused *refusal) (*Invoice, error) {
	switch refused.sentinel {
	case ErrOrderCreated:
	case ErrOrderOutcomeUnknown:
		before := c.unknownBefore(known, refused)
		before.again = refused.heldBack
		return nil, before
	default:
		failure := c.undecided(refused)
		failure.retryable = failure.retryable && !refused.argument
		return nil, failure
	}
	invoice := &Invoice{OrderID: o.Request.OrderID, Replayed: true}
	if known != nil {
		invoice.Raw = bytes.Clone(known.Invoice)
	}
	if !o.Request.differsFrom(known) {
		c.replayed = true
		return invoice, nil
	}
	conflict := &OrderConflictError{OrderID: o.Request.OrderID, Request: known.Request}
	if len(invoice.Raw) > 0 {
		conflict.Invoice = invoice
	}
	return nil, conflict
}

// undecided is the error of a call that knows of no invoice and cannot say that there is none.
// It may be made again, but for one that may send what has become unknown since.
func (c *call) undecided(err error) *TransportError {
	return &TransportError{
		Operation: c.operation.name, Phase: PhaseOrder, Attempts: c.attempts, LastStatus: c.status,
		Err:     fmt.Errorf("order %q: %w", c.operation.write.OrderID, err),
		timeout: errors.Is(c.ctx.Err(), context.DeadlineExceeded), retryable: !c.cfg.resubmit, keys: c.redactor,
	}
}

// unknownBefore is the error of a call that has created no invoice, while that of an earlier
// call may exist.
func (c *call) unknownBefore(known *OrderRecord, now error) *OutcomeUnknownError {
	e := &OutcomeUnknownError{Operation: c.operation.name, OrderID: c.operation.write.OrderID, Replayed: true, Cause: now}
	if known != nil {
		e.RequestID, e.SentAt, e.StatusCode, e.Body = known.RequestID, known.SentAt, known.StatusCode, bytes.Clone(known.Body)
		if known.Cause != "" {
			e.Cause = errors.New(known.Cause)
		}
	}
	return e
}

// afterUnknown is the error of a call that was admitted after an unknown outcome: that it sent
// nothing, or was refused, proves nothing about the invoice of the earlier call.
func (c *call) afterUnknown(known *OrderRecord, err error) error {
	if known == nil || known.Outcome != OutcomeUnknown || OutcomeOf(err) == OutcomeUnknown || err == nil {
		return err
	}
	before := c.unknownBefore(known, ErrOrderOutcomeUnknown)
	before.again = c.isRepeatable(*c.operation.write, known) && c.mayDoBetter(err)
	before.Cause = fmt.Errorf("sent again: %s; before: %s", oneLine(err), oneLine(before.Cause))
	return before
}

// newRecord is what a guard is to keep of a call that has ended. What is unknown from an earlier
// call is kept as it was known.
func (c *call) newRecord(o Order, known *OrderRecord, invoice *Invoice, err error) OrderRecord {
	r := OrderRecord{Outcome: OutcomeOf(err), Request: o.Request, RequestID: c.requestID, StatusCode: c.status}
	if r.Outcome != OutcomeNotSent {
		r.SentAt = c.begun
	}
	if err == nil {
		if len(invoice.Raw) <= maxKeptInvoice {
			r.Invoice = bytes.Clone(invoice.Raw)
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

// errNoRecord is why the record of an outcome may be missing.
var errNoRecord = errors.New("the order guard has not returned: the record of the outcome may be missing")

// end has the guard keep what became of the call. One that does not return in time is left.
func (c *call) end(guard OrderGuard, o Order, r OrderRecord) {
	if _, inMemory := guard.(*MemoryGuard); inMemory {
		_ = guard.End(&c.ctx, o, r)
		return
	}
	c.endWithin(guard, o, r)
}

func (c *call) endWithin(guard OrderGuard, o Order, r OrderRecord) {
	err, finished := caller.Await(context.WithoutCancel(&c.ctx), guardTimeout, func() error { return c.tell(guard, o, r) }, nil)
	switch {
	case !finished:
		c.guardErr = errNoRecord
	case err != nil:
		failure := sanitize(caller.Examined(err), c.redactor)
		failure.ofGuard = true
		c.guardErr = failure
	}
}

// tell calls End of a guard.
func (c *call) tell(guard OrderGuard, o Order, r OrderRecord) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(&c.ctx), guardTimeout)
	defer cancel()
	return guard.End(ctx, o, r)
}
