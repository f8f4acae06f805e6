package retry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// ErrInterrupted is returned by [Loop.Do] when the context ends between two attempts.
var ErrInterrupted = errors.New("the context ended between two attempts")

// A Call supplies the attempts of a [Loop]. Its methods are called by one
// goroutine, in the order of the attempts. A failure is never nil where an attempt
// has failed.
type Call interface {
	// Body returns the body of the next attempt and its length; nil for none.
	Body() (body io.ReadCloser, length int64)

	// NoResponse returns the failure of an attempt without a response.
	NoResponse(err error) (failure error)

	// CheckStatus returns the failure of a response that may be retried by its status
	// alone, without its body; nil for any other.
	CheckStatus(resp *http.Response) (failure error)

	// Read reads and closes a response that is not retried by its status.
	Read(resp *http.Response) (result any, failure error)

	// Discard closes a response that is retried by its status.
	Discard(resp *http.Response)

	// Advise reports what the failure of an attempt means for another one.
	Advise(failure error) Advice

	// OnRetry is told of each failure after which there is another attempt, before
	// the wait for it.
	OnRetry(failure error, wait time.Duration)
}

// Advice is what the failure of an attempt means for another one.
type Advice struct {
	Retry     bool          // it may do better, and cannot do harm
	Throttled bool          // the service asks for fewer requests
	After     time.Duration // what the service asks to wait; 0 for nothing
}

// A Retrier makes loops that share a policy and a budget. It is safe for concurrent
// use. Make it with [New].
type Retrier struct {
	policy Policy
	budget Budget
	loops  sync.Pool
}

// New returns a retrier with a full budget.
func New(policy Policy) *Retrier {
	r := &Retrier{policy: policy}
	r.loops.New = func() any { return newLoop(r) }
	return r
}

// Loop returns a loop for one call.
func (r *Retrier) Loop() *Loop { return r.loops.Get().(*Loop) }

// A Loop makes the attempts of one call.
type Loop struct {
	retrier *Retrier
	library retryablehttp.Client
	read    retryablehttp.ResponseHandlerFunc
	progress
}

// progress is how far a loop has come with its call.
type progress struct {
	Attempts int       // how many were made
	Started  time.Time // when the last one began
	Note     string    // why there is no further one, where that is not plain

	call    Call
	result  any
	failure error // of the last attempt
	checked bool  // checkRetry was asked about it
	decided bool  // whether there is another one is decided
	waiting bool  // between two attempts
	wait    time.Duration
	cost    int64 // what the last retry took from the budget
}

func newLoop(r *Retrier) *Loop {
	l := &Loop{retrier: r}
	l.library.RetryMax = r.policy.MaxAttempts - 1
	l.library.CheckRetry, l.library.Backoff, l.library.PrepareRetry = l.checkRetry, l.backoff, l.prepareRetry
	l.library.ErrorHandler = retryablehttp.PassthroughErrorHandler
	l.read = l.readResponse
	return l
}

// Release makes the loop available for another call. The caller must not use it
// afterwards.
func (l *Loop) Release() {
	l.progress, l.library.HTTPClient = progress{}, nil
	l.retrier.loops.Put(l)
}

// Do makes the attempts through client, which must not follow redirects. It returns
// the result or failure of the last one, or [ErrInterrupted].
func (l *Loop) Do(client *http.Client, req *http.Request, call Call) (result any, failure error) {
	l.call, l.library.HTTPClient = call, client
	library := retryablehttp.Request{Request: req}
	library.SetResponseHandler(l.read)
	l.begin(req)
	_, _ = l.library.Do(&library) // its error is that of the last attempt, or of the context
	switch {
	case l.waiting:
		return nil, ErrInterrupted
	case l.failure != nil:
		return nil, l.failure
	default:
		l.retrier.budget.Refund(l.cost)
		return l.result, nil
	}
}

// begin begins an attempt.
func (l *Loop) begin(req *http.Request) {
	l.checked, l.decided, l.waiting = false, false, false
	l.Started = time.Now()
	if body, length := l.call.Body(); body != nil {
		req.Body, req.ContentLength = body, length
	}
}

// checkRetry is called after each attempt and, unless the status alone causes a retry,
// again after the body is read. It reads nothing itself.
func (l *Loop) checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	unread := !l.checked && err == nil
	switch {
	case unread:
		l.Attempts++
		l.failure = l.call.CheckStatus(resp)
	case !l.checked:
		l.Attempts++
		l.failure = l.call.NoResponse(err)
	}
	l.checked = true
	again := l.failure != nil && l.shouldRetry(ctx)
	if again && unread {
		l.call.Discard(resp)
		resp.Body = http.NoBody // the library would read it without an end
	}
	return again, nil
}

// readResponse reads the response. Its result replaces the failure that was derived from
// the status.
func (l *Loop) readResponse(resp *http.Response) error {
	l.result, l.failure = l.call.Read(resp)
	resp.Body = http.NoBody // as above
	return l.failure
}

// shouldRetry decides, once for each attempt, whether there is another one.
func (l *Loop) shouldRetry(ctx context.Context) bool {
	if l.decided {
		return false
	}
	l.decided = true
	advice := l.call.Advise(l.failure)
	if !advice.Retry || l.Attempts >= l.retrier.policy.MaxAttempts || ctx.Err() != nil || advice.After > l.retrier.policy.MaxRetryAfter {
		return false
	}
	l.wait = max(l.retrier.policy.delay(l.Attempts, advice.Throttled), advice.After, 1)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < l.wait {
		l.Note = "the next one would be after the deadline"
		return false
	}
	cost := int64(retryCost)
	if advice.Throttled {
		cost = throttledCost
	}
	if !l.retrier.budget.Take(cost) {
		l.Note = "the retry budget was empty"
		return false
	}
	l.cost = cost
	return true
}

func (l *Loop) backoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
	l.call.OnRetry(l.failure, l.wait)
	l.waiting = true
	return l.wait
}

// prepareRetry is given a request of its own for the next attempt: that of the last
// one may still be read by net/http.
func (l *Loop) prepareRetry(req *http.Request) error {
	l.begin(req)
	return nil
}
