package retry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// A Call makes the attempts that a [Retrier] asks it for. One goroutine calls its methods.
type Call interface {
	// Attempt makes an attempt, from the beginning to the end: its response is read and
	// closed. The request is the one of [Retrier.Do], or a copy.
	Attempt(req *http.Request) Failure

	// Ended is told after each attempt why it has failed, if it has, and what follows.
	Ended(failure error, next Next)
}

// A Failure is why an attempt has failed, and what that means for another one. Without an Err
// it is a success.
type Failure struct {
	Err       error
	Served    bool          // of a success: the service has served a request, which refills the budget
	Retry     bool          // another attempt may do better, and cannot do harm
	Throttled bool          // the service asks for fewer requests
	After     time.Duration // what the service asks to wait; 0 for nothing
}

// Next is what follows an attempt.
type Next struct {
	Wait time.Duration // until the next attempt; 0 if there is none
	Note string        // why there is none, where that is not plain
}

// A Retrier decides for all calls of a client whether an attempt is made again, and when,
// by one policy and one budget. It is safe for concurrent use. Make it with [New].
type Retrier struct {
	policy Policy
	budget Budget
	loops  sync.Pool // of loops
}

// New returns a retrier with a full budget.
func New(policy Policy) *Retrier {
	r := &Retrier{policy: policy}
	r.loops.New = func() any { return newLoop(r) }
	return r
}

// Do lets call make its attempts, under the context of req. It returns why the last one has
// failed, if it has, and whether the context ended in the wait for another.
func (r *Retrier) Do(req *http.Request, call Call) (failure error, interrupted bool) {
	l := r.loops.Get().(*loop)
	defer l.release()
	l.call = call
	_, _ = l.library.Do(&retryablehttp.Request{Request: req}) // its error is that of the last attempt, or of the context
	return l.failure.Err, l.waiting
}

// A loop makes the attempts of one call with go-retryablehttp, as its transport and its
// policy. The library and net/http see each attempt as a whole: they get no response that
// they could read, follow or close.
type loop struct {
	retrier *Retrier
	library retryablehttp.Client
	client  http.Client
	nothing http.Response // what the library gets

	call     Call
	attempts int
	failure  Failure
	waiting  bool // between two attempts
	wait     time.Duration
	cost     int64 // what the last retry took from the budget
}

func newLoop(r *Retrier) *loop {
	l := &loop{retrier: r, nothing: http.Response{StatusCode: http.StatusOK, Body: http.NoBody}}
	l.client.Transport, l.library.HTTPClient = l, &l.client
	l.library.RetryMax = r.policy.MaxAttempts - 1
	l.library.CheckRetry, l.library.Backoff = l.checkRetry, l.backoff
	l.library.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return l
}

// release makes the loop available for another call. It holds nothing of this one.
func (l *loop) release() {
	l.call, l.attempts, l.failure = nil, 0, Failure{}
	l.waiting, l.wait, l.cost = false, 0, 0
	l.retrier.loops.Put(l)
}

// RoundTrip implements [http.RoundTripper]: it makes an attempt.
func (l *loop) RoundTrip(req *http.Request) (*http.Response, error) {
	l.waiting = false
	l.attempts++
	l.failure = l.call.Attempt(req)
	return &l.nothing, nil
}

// checkRetry is called after each attempt.
func (l *loop) checkRetry(ctx context.Context, _ *http.Response, _ error) (bool, error) {
	if l.failure.Err == nil {
		if l.failure.Served {
			l.retrier.budget.Refund(l.cost)
		}
		l.call.Ended(nil, Next{})
		return false, nil
	}
	next := l.next(ctx)
	l.call.Ended(l.failure.Err, next)
	l.wait, l.waiting = next.Wait, next.Wait > 0
	return l.waiting, nil
}

// next decides what follows an attempt that has failed.
func (l *loop) next(ctx context.Context) Next {
	policy := &l.retrier.policy
	if !l.failure.Retry || l.attempts >= policy.MaxAttempts || ctx.Err() != nil || l.failure.After > policy.MaxRetryAfter {
		return Next{}
	}
	wait := max(policy.delay(l.attempts, l.failure.Throttled), l.failure.After, 1)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
		return Next{Note: "the next one would be after the deadline"}
	}
	cost := int64(retryCost)
	if l.failure.Throttled {
		cost = throttledCost
	}
	if !l.retrier.budget.Take(cost) {
		return Next{Note: "the retry budget was empty"}
	}
	l.cost = cost
	return Next{Wait: wait}
}

func (l *loop) backoff(time.Duration, time.Duration, int, *http.Response) time.Duration {
	return l.wait
}
