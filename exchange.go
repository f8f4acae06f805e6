package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// An exchange is one call on its way: what is to be sent, and what has come of
// it so far. It is used by one goroutine, but for the latch.
type exchange struct {
	client *Client
	ctx    callContext
	call   call
	cfg    callConfig
	key    secret
	keys   redactor
	answer interface {
		open(d *decoder) (e envelope, refused bool)
	}

	target  url.URL
	values  [4]string // of the header
	header  http.Header
	carrier *carrier
	http    http.Client // sends an attempt through the exchange itself
	first   attempt
	loop    retryablehttp.Client // asks the exchange what to do
	req     retryablehttp.Request
	reading *reading // of the answers; nil before there is one

	latch *latch // of the attempt under way; nil for a read, and before there is a body

	attempts int
	status   int           // of the last answer of any attempt
	answered int           // of the answer to the last attempt; 0 when none came
	kept     []byte        // the beginning of the last answer's body
	begun    time.Time     // when the last attempt began
	wait     time.Duration // before the next attempt
	waiting  bool          // between two attempts
	cost     int64         // what the last retry took from the budget
	note     string        // why there was no further attempt, where that is not plain
	failure  error         // what is wrong with the last attempt

	reported int     // attempts that the observers know of
	drift    []Drift // in the last answer
}

// send makes the attempts and says what came of them: the only place where
// the HTTP library's Do is called.
func (x *exchange) send() error {
	if x.ctx.Err() != nil {
		return x.transportError(PhaseStart, x.ctx.Err())
	}
	release, err := x.hold()
	if err != nil {
		return err
	}
	outcome := OutcomeUnknown // a panic of the caller's transport leaves this
	defer func() { release(outcome) }()
	x.makeLoop()
	x.begun = time.Now()
	started := x.begun
	_, err = x.loop.Do(&x.req)
	err = x.conclude(err)
	x.giveBack()
	if r := x.cfg.response; r != nil {
		r.StatusCode, r.Attempts, r.Duration = x.status, x.attempts, time.Since(started)
	}
	outcome = OutcomeOf(err)
	return err
}

// makeLoop makes the retry loop of the call.
func (x *exchange) makeLoop() {
	x.req.Request = x.client.errand
	x.carrier = x.client.reads()
	if x.call.write != nil {
		x.carrier = x.client.writes()
	}
	x.http.Transport, x.http.CheckRedirect = x, noRedirect
	x.loop.HTTPClient = &x.http
	x.loop.RetryMax = x.client.cfg.retry.MaxAttempts - 1
	x.loop.CheckRetry = x.checkRetry
	x.loop.ErrorHandler = retryablehttp.PassthroughErrorHandler
}

// conclude says what came of the attempts. An error of the library itself is
// the end of the context between two of them.
func (x *exchange) conclude(libraryErr error) error {
	x.report(0)
	err := x.failure
	if libraryErr != nil && x.waiting {
		err = x.transportError(PhaseBackoff, libraryErr)
	}
	if err == nil {
		x.client.budget.refund(x.cost)
		return nil
	}
	if x.call.write != nil && OutcomeOf(err) == OutcomeUnknown {
		return &OutcomeUnknownError{
			Op: x.call.op, OrderID: x.call.write.order(),
			StatusCode: x.status, Body: x.keys.snippet(x.kept, maxKept), SentAt: x.begun, Cause: err,
		}
	}
	return err
}

// checkRetry reads the answer of an attempt, unless it is one to be tried again
// by its status, and decides whether there is another attempt.
func (x *exchange) checkRetry(_ context.Context, resp *http.Response, err error) (bool, error) {
	x.waiting = false
	x.attempts++
	if err != nil {
		x.failure = x.noAnswer(err)
		return x.mayPass() && x.again(false, 0), nil
	}
	x.status, x.answered, x.failure = resp.StatusCode, resp.StatusCode, nil
	if x.cfg.response != nil {
		*x.cfg.response = Response{}
	}
	if x.call.write == nil && passingStatus(x.status) {
		asked := retryAfter(resp.Header)
		if x.again(throttles(x.status), asked) {
			x.failure = &APIError{Op: x.call.op, StatusCode: x.status, RetryAfter: asked, Attempts: x.attempts, unread: true}
			return true, nil
		}
	}
	x.failure = x.receive(resp)
	return x.mayPass() && x.again(false, 0), nil
}

// mayPass reports whether the last attempt failed in a way that may pass, and
// may be made again: a write only if none of it was sent.
func (x *exchange) mayPass() bool {
	switch failure := x.failure.(type) {
	case *TransportError:
		return failure.passing && (x.call.write == nil || failure.notSent)
	case *DecodeError:
		return failure.passing && x.call.write == nil
	default:
		return false
	}
}

// again decides whether an attempt that may be made again will be, and when.
func (x *exchange) again(throttled bool, asked time.Duration) bool {
	policy := &x.client.cfg.retry
	if x.attempts >= policy.MaxAttempts || x.ctx.Err() != nil || asked > policy.MaxRetryAfter {
		return false
	}
	x.wait = max(policy.delay(x.attempts, throttled), asked, 1) // 0 would say that there is no other attempt
	if deadline, ok := x.ctx.Deadline(); ok && time.Until(deadline) < x.wait {
		x.remark("the next one would be after the deadline")
		return false
	}
	cost := int64(retryCost)
	if throttled {
		cost = throttledCost
	}
	if !x.client.budget.take(cost) {
		x.remark("the retry budget was empty")
		return false
	}
	x.cost = cost
	x.loop.Backoff, x.loop.PrepareRetry = x.backoff, x.resume
	x.req.Request = x.client.errand.WithContext(&x.ctx) // so that the end of the context ends the wait
	return true
}

// remark says in the failure why it is the last.
func (x *exchange) remark(note string) {
	x.note = note
	if failure, ok := x.failure.(*TransportError); ok {
		failure.note = note
	}
}

func (x *exchange) backoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
	x.report(x.wait)
	x.waiting = true
	return x.wait
}

// resume begins another attempt.
func (x *exchange) resume(*http.Request) error {
	x.begun, x.answered, x.drift = time.Now(), 0, nil
	return nil
}

// noAnswer is an attempt that got no answer.
func (x *exchange) noAnswer(err error) *TransportError {
	phase, traced := PhaseStart, false
	var attempt *attemptError
	if errors.As(err, &attempt) {
		phase, traced = attempt.phase, attempt.traced
	}
	err = plainError(err)
	failure := x.transportError(phase, foreign(err, x.keys))
	failure.passing = x.ctx.Err() == nil && passingFault(err, phase, traced)
	return failure
}

// transportError is a call without a usable answer. When the caller's context
// has ended, that is why. Of a write without an answer it is proved that
// nothing was sent if the latch can be sealed, and in no other way.
func (x *exchange) transportError(phase string, err error) *TransportError {
	timeout := timedOut(err)
	if x.ctx.Err() != nil {
		err, timeout = ended(&x.ctx, x.keys), errors.Is(x.ctx.Err(), context.DeadlineExceeded)
	}
	return &TransportError{
		Op: x.call.op, Phase: phase, Attempts: x.attempts, LastStatus: x.status,
		Err: err, timeout: timeout,
		notSent: x.call.write != nil && x.status == 0 && (x.latch == nil || x.latch.seal()),
	}
}
