package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/retry"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// do makes a call of an operation that needs no order.
func do[T any](ctx context.Context, client *Client, what operation, read func(*strictjson.Decoder) T, opts []CallOption) (T, error) {
	return run(ctx, &resultCall[T]{call: call{client: client, operation: what}, read: read}, (*resultCall[T]).send, opts)
}

// run makes a call: the only way from a method to the wire and back.
func run[T any](ctx context.Context, c *resultCall[T], send func(*resultCall[T]) (T, error), opts []CallOption) (result T, err error) {
	c.started = time.Now()
	refusal := c.cfg.apply(c.operation.name, opts)
	ctx = c.observeStart(ctx)
	err = errPanicked // until the call returns
	defer func() { c.observeEnd(ctx, err) }()
	if err := c.prepare(ctx, refusal); err != nil {
		return result, err
	}
	return send(c)
}

// send makes the attempts of a call.
func (c *resultCall[T]) send() (result T, err error) {
	if err := c.ready(); err != nil {
		return result, err
	}
	failure, interrupted := c.client.retrier().Do(c.newHTTPRequest(), c)
	if err := c.finish(failure, interrupted); err != nil {
		return result, err
	}
	return c.result, nil
}

// errPanicked is what an [Observer] is told of a call that a panic or a Goexit in code of
// the caller's has ended.
var errPanicked = errors.New("gateway: a panic has ended the call")

// progress is how far a call has come.
type progress struct {
	started  time.Time // when the call began
	attempts int       // that were begun
	begun    time.Time // when the last of them began
	status   int       // of the last response of any attempt; 0 for none
	last     response  // to the last attempt

	unsent    bool // of an invoice nothing was read for sending, in the last attempt
	premature bool // the response may have come before the invoice was sent
	replayed  bool // the invoice is that of an earlier call

	mayExist *time.Time // when the first attempt began whose outcome is unknown; nil for none

	until    time.Time // nothing of an invoice is sent after it; zero for never
	guardErr error     // why the guard could not record the outcome
}

// A resultCall is a call and its result.
type resultCall[T any] struct {
	call
	read   func(*strictjson.Decoder) T
	result T
}

// unneededBodyTime bounds the reading of a body whose status alone decides that the read is
// attempted again.
const unneededBodyTime = time.Second

// Attempt implements [retry.Call]: it prepares the request, sends it, reads the response and
// judges it.
func (c *resultCall[T]) Attempt(req *http.Request) retry.Failure {
	c.begin()
	if c.operation.connects {
		return c.judge(c.connect(req))
	}
	if attempt.HasPassed(c.until) {
		return c.judge(fault{phase: PhaseOrder, err: errAdmissionOver})
	}
	sender, body := c.client.reads(), (*attempt.Body)(nil)
	if c.operation.write != nil {
		sender, body = c.client.writes(), c.newBody()
		defer body.Stop() // a transport that outlives the attempt reads nothing more of it
	}
	resp, err := sender.Send(req, c.newHeader(), body)
	c.unsent = body != nil && body.Seal() // what was not read by now is never sent
	if err != nil {
		return c.judge(c.noResponse(err))
	}
	c.status, c.last.status = resp.StatusCode, resp.StatusCode
	c.premature = body != nil && !c.unsent && (resp.HasEnded() || resp.CameEarly())
	if body == nil && retry.IsRetryableStatus(resp.StatusCode) {
		resp.EndWithin(unneededBodyTime)
	}
	got, err := attempt.Read(resp, func(resp *http.Response) received[T] {
		return readResponse(&c.call, resp, c.read)
	})
	if err != nil {
		got = received[T]{failure: c.unreadable(resp.Response, err), response: c.newResponse(resp.Response, envelope{}, nil)}
	}
	switch {
	case got.failure != nil:
	case c.unsent:
		got.failure = fault{phase: PhaseWait, err: errUnsentSuccess}
	case body != nil && resp.CameEarly():
		got.failure = fault{phase: PhaseWait, err: errEarlySuccess}
	}
	c.result, c.last.body, c.last.drift = got.result, got.body, got.drift
	if c.cfg.response != nil {
		*c.cfg.response = got.response
	}
	return c.judge(got.failure)
}

// errEarlySuccess is a success that may not be that of the invoice.
var errEarlySuccess = errors.New("something came before the invoice was sent: the success may be that")

// errUnsentSuccess is a success that cannot be that of the invoice.
var errUnsentSuccess = errors.New("the transport returned a success without having read the invoice")

// begin begins an attempt.
func (c *call) begin() {
	c.attempts++
	c.begun, c.last = time.Now(), response{}
}

// connect opens a connection for the operation. Nothing is sent on it.
func (c *call) connect(req *http.Request) error {
	if err := c.client.writes().Prepare(req); err != nil {
		return c.noResponse(err)
	}
	return nil
}

// finish makes the error of the call from the failure of its last attempt.
func (c *call) finish(failure error, interrupted bool) error {
	if interrupted {
		failure = c.transportError(fault{phase: PhaseBackoff, err: c.ctx.Err()})
	}
	if response := c.cfg.response; response != nil {
		response.StatusCode, response.Attempts, response.Duration = c.status, c.attempts, time.Since(c.started)
	}
	if failure != nil && c.mayExist != nil {
		return &OutcomeUnknownError{
			Operation: c.operation.name, OrderID: c.operation.write.OrderID, RequestID: c.requestID,
			StatusCode: c.status, Body: c.last.body, SentAt: *c.mayExist, Cause: failure,
			again: c.client.cfg.repeatable && c.mayDoBetter(failure),
		}
	}
	return failure
}

// judge makes the failure of an attempt from what is wrong with it, and decides whether
// another one may follow.
func (c *call) judge(wrong error) retry.Failure {
	switch known := wrong.(type) {
	case nil:
		return retry.Failure{Served: !c.operation.connects}
	case fault:
		wrong = c.transportError(known)
	case *APIError:
		known.Attempts, known.premature = c.attempts, c.premature
	}
	if c.operation.write != nil && c.mayExist == nil && OutcomeOf(wrong) == OutcomeUnknown {
		begun := c.begun
		c.mayExist = &begun
	}
	verdict := retry.Failure{Err: wrong, Retry: c.mayFollow(wrong)}
	if refusal, ok := wrong.(*APIError); ok {
		verdict.Throttled, verdict.After = retry.IsThrottled(refusal.StatusCode), refusal.RetryAfter
	}
	return verdict
}

// mayFollow reports whether another attempt may follow one that has failed. An invoice is attempted
// again only if it is proved that nothing of it was sent, or with [WithIdempotentOrders]; a connection
// that cannot be opened, never.
func (c *call) mayFollow(wrong error) bool {
	switch {
	case c.operation.connects:
		return false
	case c.mayExist != nil:
		return c.client.cfg.repeatable && c.mayDoBetter(wrong)
	case c.operation.write != nil && OutcomeOf(wrong) != OutcomeNotSent:
		return false
	default:
		return SafeToRetry(wrong)
	}
}

// Ended implements [retry.Call].
func (c *call) Ended(failure error, next retry.Next) {
	switch failure := failure.(type) {
	case *TransportError:
		failure.note = next.Note
	case *APIError:
		failure.note = next.Note
	}
	c.report(failure, next.Wait)
}

// phases are the phases of a [TransportError] by those of an attempt.
var phases = [...]Phase{
	attempt.Start: PhaseStart, attempt.Dial: PhaseDial, attempt.Proxy: PhaseProxy,
	attempt.TLS: PhaseTLS, attempt.Write: PhaseWrite, attempt.Wait: PhaseWait,
}

// A fault is why there is no usable response, until [call.transportError] makes the error of
// it.
type fault struct {
	phase Phase
	err   error // without keys
	again bool  // another attempt may do better
}

func (f fault) Error() string { return f.err.Error() }

// noResponse is the fault of an attempt without a response.
func (c *call) noResponse(err error) error {
	cause, _ := errors.AsType[*attempt.Error](err) // it is one
	return fault{phases[cause.Phase], sanitize(cause.Err, c.redactor), cause.Retryable()}
}

// transportError makes the error of a call, or of an attempt, without a usable response. When
// the caller's context has ended, that is the reason.
func (c *call) transportError(f fault) *TransportError {
	failure := &TransportError{
		Operation: c.operation.name, Phase: f.phase, Attempts: c.attempts, LastStatus: c.status, Err: f.err,
		notSent: c.unsent && c.status == 0 && c.mayExist == nil, timeout: attempt.IsTimeout(f.err), retryable: f.again, keys: c.redactor,
	}
	if c.ctx.Err() != nil {
		failure.Err, failure.retryable = contextError(&c.ctx, c.redactor), false
		failure.timeout = errors.Is(c.ctx.Err(), context.DeadlineExceeded)
	}
	return failure
}
