package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/retry"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// do makes a call: the only way from a method to the wire and back.
func do[T any](ctx context.Context, c *Client, what call, read func(*strictjson.Decoder) T, opts []CallOption) (result T, err error) {
	a := &attempts[T]{request: request{client: c, call: what}, read: read}
	ctx, end := c.observe(ctx, &a.call)
	panicked := true
	defer func() {
		if panicked {
			err = errPanicked
		}
		end(err, a.made, a.status)
	}()
	if err = a.prepare(ctx, opts); err == nil {
		result, err = a.send()
	}
	panicked = false
	return result, err
}

// errPanicked is what an [Observer] is told of a call that a panic or a Goexit in code of
// the caller's has ended.
var errPanicked = errors.New("gateway: a panic has ended the call")

// attempts implements [retry.Call] for one request.
type attempts[T any] struct {
	request
	read   func(*strictjson.Decoder) T
	sender attempt.Sender
	http   http.Client // over the sender
	loop   *retry.Loop
	body   *attempt.Body // of the attempt under way; nil for a read
	status int           // of the last response of any attempt
	made   int           // attempts, once the loop has ended
	last   response      // to the last attempt

	// unsent is a response to an invoice of which nothing was read.
	unsent bool
	// doubtful is a response of which it is unknown whether the transport had read the
	// body before, or reads it because the attempt has ended.
	doubtful bool
}

// send makes the attempts, those of an invoice under the order guard.
func (a *attempts[T]) send() (result T, err error) {
	if a.ctx.Err() != nil {
		return result, a.notSentError(a.ctx.Err())
	}
	release, err := a.acquireOrder()
	if err != nil {
		return result, err
	}
	outcome := OutcomeUnknown // also when the caller's transport panics
	defer func() { release(outcome) }()
	result, err = a.run()
	outcome = OutcomeOf(err)
	return result, err
}

func (a *attempts[T]) run() (T, error) {
	sender := a.client.reads()
	if a.call.write != nil {
		sender = a.client.writes()
	}
	a.sender = sender.WithHeader(a.header)
	a.http = http.Client{Transport: &a.sender, CheckRedirect: followNone}
	started := time.Now()
	a.loop = a.client.retrier().Loop()
	read, failure := a.loop.Do(&a.http, a.newHTTPRequest(), a)
	err := a.finish(failure)
	if response := a.cfg.response; response != nil {
		response.StatusCode, response.Attempts, response.Duration = a.status, a.loop.Attempts, time.Since(started)
	}
	a.made = a.loop.Attempts
	a.loop.Release()
	result, _ := read.(T) // nil after a failure
	return result, err
}

// finish makes the error of the call from the failure of its last attempt.
func (a *attempts[T]) finish(failure error) error {
	if failure == retry.ErrInterrupted {
		failure = a.fail(a.transportError(PhaseBackoff, a.ctx.Err()))
	} else {
		setNote(failure, a.loop.Note)
		a.report(failure, 0)
	}
	if failure == nil {
		return nil
	}
	if a.call.write != nil && OutcomeOf(failure) == OutcomeUnknown {
		return &OutcomeUnknownError{
			Operation: a.call.op, OrderID: a.call.write.order(),
			StatusCode: a.status, Body: a.last.body, SentAt: a.loop.Started, Cause: failure,
		}
	}
	return failure
}

// setNote adds to a failure why there was no further attempt.
func setNote(failure error, note string) {
	switch failure := failure.(type) {
	case *TransportError:
		failure.note = note
	case *APIError:
		failure.note = note
	}
}

// Body implements [retry.Call]. Each attempt of an invoice has a body of its own.
func (a *attempts[T]) Body() (io.ReadCloser, int64) {
	if a.call.write == nil {
		return nil, 0
	}
	a.body = a.newBody()
	return a.body, a.body.Size()
}

// phases are the phases of a [TransportError] by those of an attempt.
var phases = [...]Phase{
	attempt.Start: PhaseStart, attempt.Dial: PhaseDial, attempt.Proxy: PhaseProxy,
	attempt.TLS: PhaseTLS, attempt.Write: PhaseWrite, attempt.Wait: PhaseWait,
}

// NoResponse implements [retry.Call].
func (a *attempts[T]) NoResponse(err error) error {
	a.last = response{}
	attemptErr := attempt.ErrorOf(err)
	failure := a.transportError(phases[attemptErr.Phase], sanitize(attemptErr.Err, a.keys))
	failure.retryable = a.ctx.Err() == nil && attemptErr.Retryable()
	return a.fail(failure)
}

// CheckStatus implements [retry.Call]. No status makes an invoice be sent again.
func (a *attempts[T]) CheckStatus(resp *http.Response) error {
	a.status, a.last = resp.StatusCode, response{status: resp.StatusCode}
	if a.cfg.response != nil {
		*a.cfg.response = Response{}
	}
	if a.call.write != nil {
		a.unsent = a.body.Seal() // a transport that reads it after the response sends nothing
		a.doubtful = !a.unsent && attempt.HasEnded(resp)
		return nil
	}
	if !retry.IsRetryableStatus(resp.StatusCode) {
		return nil
	}
	return &APIError{
		Operation: a.call.op, StatusCode: resp.StatusCode,
		RetryAfter: retry.After(resp.Header), Attempts: a.loop.Attempts, unread: true,
	}
}

// Read implements [retry.Call].
func (a *attempts[T]) Read(resp *http.Response) (any, error) {
	if a.body != nil {
		defer a.body.Stop()
	}
	received, err := attempt.Await(resp, func(resp *http.Response) received[T] {
		return readResponse(&a.request, resp, a.read)
	})
	if err != nil {
		return nil, a.fail(a.unreadable(resp, err))
	}
	if a.unsent && received.failure == nil {
		received.failure = a.transportError(PhaseWait, errUnsentSuccess)
	}
	a.last.body, a.last.drift = received.body, received.drift
	if a.cfg.response != nil {
		*a.cfg.response = received.response
	}
	if received.failure != nil {
		return nil, a.fail(received.failure)
	}
	return received.result, nil
}

// errUnsentSuccess is a success that cannot be that of the invoice.
var errUnsentSuccess = errors.New("the transport returned a success without having read the invoice")

// Discard implements [retry.Call].
func (a *attempts[T]) Discard(resp *http.Response) { attempt.Discard(resp) }

// Advise implements [retry.Call]. An invoice is attempted again only if it is proved that
// nothing of it was sent.
func (a *attempts[T]) Advise(failure error) retry.Advice {
	if a.call.write != nil && OutcomeOf(failure) != OutcomeNotSent {
		return retry.Advice{}
	}
	advice := retry.Advice{Retry: SafeToRetry(failure)}
	if refusal, ok := failure.(*APIError); ok {
		advice.Throttled, advice.After = retry.IsThrottled(refusal.StatusCode), refusal.RetryAfter
	}
	return advice
}

// OnRetry implements [retry.Call].
func (a *attempts[T]) OnRetry(failure error, wait time.Duration) {
	a.report(failure, wait)
	a.sender = a.sender.WithHeader(a.newHeader(new([4]string)))
}

// proveNotSent seals the body of an invoice without a response, and reports whether it was
// never read: then nothing was sent, whatever an error looks like. There is no other
// proof. Of one that was read, nothing more is.
func (a *attempts[T]) proveNotSent() bool {
	if a.call.write == nil || a.status != 0 {
		return false
	}
	defer a.body.Stop()
	return a.body.Seal()
}

// fail adds to a failure how far the call has come, and returns it.
func (a *attempts[T]) fail(failure error) error {
	switch e := failure.(type) {
	case *TransportError:
		e.Attempts, e.LastStatus = a.loop.Attempts, a.status
		e.notSent = a.proveNotSent()
	case *APIError:
		e.Attempts, e.doubtful = a.loop.Attempts, a.doubtful
	}
	return failure
}

// notSentError returns the error of a call that ends before its first attempt.
func (r *request) notSentError(err error) *TransportError {
	failure := r.transportError(PhaseStart, err)
	failure.notSent = r.call.write != nil
	return failure
}

// transportError returns the error of an attempt without a usable response. When the
// caller's context has ended, that is the reason.
func (r *request) transportError(phase Phase, err error) *TransportError {
	timeout := attempt.IsTimeout(err)
	if r.ctx.Err() != nil {
		err, timeout = contextError(&r.ctx, r.keys), errors.Is(r.ctx.Err(), context.DeadlineExceeded)
	}
	return &TransportError{Operation: r.call.op, Phase: phase, Err: err, timeout: timeout, keys: r.keys}
}

// openConnection opens a connection for an invoice, and sends nothing.
func (r *request) openConnection(ctx context.Context) error {
	if name, reason := r.client.check(ctx); reason != "" {
		return r.refuse(name, reason)
	}
	r.ctx, r.keys = callContext{ctx, r}, r.client.keyring.Redactor()
	_, _ = r.client.base.URL(&r.url, "/", nil, nil) // it has no argument that could be refused
	err := r.client.writes().Prepare(r.newHTTPRequest())
	switch err {
	case nil:
		return nil
	case attempt.ErrNoPrepare:
		return r.refuse("WithHTTPClient", "must have a Transport of InvoiceTransport, or none, for an invoice to be prepared")
	}
	cause := attempt.ErrorOf(err)
	failure := r.transportError(phases[cause.Phase], sanitize(cause.Err, r.keys))
	failure.Attempts, failure.retryable = 1, ctx.Err() == nil && cause.Retryable()
	return failure
}

// acquireOrder asks the guard for the order of an invoice. The outcome of the call
// is passed to release. A read, and a client without a guard, acquire nothing.
func (r *request) acquireOrder() (release func(Outcome), err error) {
	guard := r.client.cfg.guard
	if r.call.write == nil || guard == nil {
		return func(Outcome) {}, nil
	}
	order, ctx := r.call.write.order(), context.Context(&r.ctx)
	if err := guard.Begin(ctx, order, r.cfg.resubmit); err != nil {
		return nil, r.guardError(err)
	}
	if _, inMemory := guard.(*MemoryGuard); inMemory {
		return func(outcome Outcome) { _ = guard.End(ctx, order, outcome) }, nil
	}
	return func(outcome Outcome) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), guardTimeout)
		defer cancel()
		_ = guard.End(ctx, order, outcome)
	}, nil
}

// guardError is the refusal of the guard. Nothing was sent.
func (r *request) guardError(err error) error {
	sanitized := sanitize(err, r.keys)
	sanitized.ofGuard = true
	for _, known := range []error{ErrOrderInFlight, ErrOrderCreated, ErrOrderOutcomeUnknown} {
		if errors.Is(err, known) {
			refusal := r.refuse("orderId", oneLine(known))
			refusal.err = errors.Join(known, sanitized)
			return refusal
		}
	}
	return r.notSentError(fmt.Errorf("the order guard: %w", sanitized))
}
