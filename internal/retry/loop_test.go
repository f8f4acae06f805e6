package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/retry"
)

// quick is a policy whose drawn waits are 1 ns.
var quick = retry.Policy{MaxAttempts: 3, BaseDelay: 1, MaxDelay: 1, MaxRetryAfter: 30 * time.Second}

// A step is what comes of one attempt.
type step struct {
	err    error // no response
	status int   // of a response; one that retry.IsRetryableStatus reports is retried without its body
	body   string
	cut    bool // the body cannot be read to its end
	advice retry.Advice
}

// Steps that are often needed.
var (
	again     = retry.Advice{Retry: true}
	throttled = retry.Advice{Retry: true, Throttled: true}

	good        = step{status: 200, body: "good"}
	unavailable = step{status: 503, body: "not now", advice: throttled}
	broken      = step{status: 500, body: "broken", advice: again}
	unknown     = step{status: 404, body: "unknown"}
	lost        = step{err: io.EOF, advice: again}
	final       = step{err: io.ErrClosedPipe}
	truncated   = step{status: 200, body: "go", cut: true, advice: again}
)

// A failure is that of one attempt.
type failure struct {
	text   string
	advice retry.Advice
}

func (f *failure) Error() string { return f.text }

// A script is a service and a call of it: the n-th attempt ends with the n-th step,
// and those after the last like the last. It implements [retry.Call] and
// [http.RoundTripper].
type script struct {
	steps []step
	write bool // each attempt has a body
	sent  func(*http.Request)

	log      []string // the methods as they are called
	at       []time.Time
	bodies   []*watchedBody // of the responses
	requests []*http.Request
	waits    []time.Duration
}

func (s *script) step() step { return s.steps[min(len(s.at), len(s.steps))-1] }

func (s *script) add(format string, args ...any) { s.log = append(s.log, fmt.Sprintf(format, args...)) }

func (s *script) Body() (io.ReadCloser, int64) {
	s.add("Body")
	if !s.write {
		return nil, 0
	}
	text := fmt.Sprintf("attempt %d", len(s.at)+1)
	return io.NopCloser(strings.NewReader(text)), int64(len(text))
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	s.at, s.requests = append(s.at, time.Now()), append(s.requests, req)
	s.add("send")
	if s.sent != nil {
		s.sent(req)
	}
	step := s.step()
	if step.err != nil {
		return nil, step.err
	}
	body := &watchedBody{Reader: strings.NewReader(step.body), cut: step.cut}
	s.bodies = append(s.bodies, body)
	return &http.Response{StatusCode: step.status, Body: body, ContentLength: -1}, nil
}

func (s *script) NoResponse(err error) error {
	s.add("NoResponse")
	return &failure{errors.Unwrap(err).Error(), s.step().advice}
}

func (s *script) CheckStatus(resp *http.Response) error {
	s.add("Status %d", resp.StatusCode)
	if !retry.IsRetryableStatus(resp.StatusCode) {
		return nil
	}
	return &failure{fmt.Sprint(resp.StatusCode), s.step().advice}
}

func (s *script) Read(resp *http.Response) (any, error) {
	s.add("Read")
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, &failure{"cut", s.step().advice}
	case resp.StatusCode >= 300:
		return nil, &failure{fmt.Sprintf("%d %s", resp.StatusCode, text), s.step().advice}
	default:
		return string(text), nil
	}
}

func (s *script) Discard(resp *http.Response) {
	s.add("Discard %d", resp.StatusCode)
	_ = resp.Body.Close()
}

func (s *script) Advise(err error) retry.Advice {
	s.add("Advise %v", err)
	return err.(*failure).advice
}

func (s *script) OnRetry(err error, wait time.Duration) {
	s.add("Retry %v", err)
	s.waits = append(s.waits, wait)
}

// A watchedBody is the body of a response.
type watchedBody struct {
	io.Reader
	cut    bool
	read   int
	closed int
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	if err == io.EOF && b.cut {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *watchedBody) Close() error { b.closed++; return nil }

// call makes the attempts of a script in a loop, which is not released.
func call(t testing.TB, ctx context.Context, r *retry.Retrier, s *script) (*retry.Loop, any, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://gateway.test/path", nil)
	require.NoError(t, err)
	loop := r.Loop()
	result, failed := loop.Do(&http.Client{Transport: s}, req, s)
	return loop, result, failed
}

// The result of a call is that of its last attempt: the response that was read whole,
// or the failure.
func TestLoop_Do(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		steps  []step
		result any
		failed string
		sent   int
	}{
		{"a good response", []step{good}, "good", "", 1},
		{"a response that is not retried", []step{unknown}, nil, "404 unknown", 1},
		{"no response, and it is final", []step{final}, nil, "io: read/write on closed pipe", 1},
		{"a status that is retried, but not by the call", []step{{status: 503, body: "not now"}}, nil, "503 not now", 1},
		{"a cut response that is not retried", []step{{status: 200, cut: true}}, nil, "cut", 1},
		{"the last response is read whole", []step{unavailable}, nil, "503 not now", 3},
		{"no response at all", []step{lost}, nil, "EOF", 3},
		{"cut each time", []step{truncated}, nil, "cut", 3},
		{"lost, then 503", []step{lost, unavailable}, nil, "503 not now", 3},
		{"503, then 404", []step{unavailable, unknown}, nil, "404 unknown", 2},
		{"503 twice, then lost", []step{unavailable, unavailable, lost}, nil, "EOF", 3},
		{"503, lost, then good", []step{unavailable, lost, good}, "good", "", 3},
		{"500, cut, then good", []step{broken, truncated, good}, "good", "", 3},
		{"cut, then final", []step{truncated, final}, nil, "io: read/write on closed pipe", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: tt.steps}
				loop, result, failed := call(t, t.Context(), retry.New(quick), s)
				assert.Equal(t, tt.result, result)
				assert.Len(t, s.at, tt.sent)
				assert.Equal(t, tt.sent, loop.Attempts)
				assert.Len(t, s.waits, tt.sent-1)
				assert.Equal(t, s.at[len(s.at)-1], loop.Started)
				assert.Empty(t, loop.Note)
				assertFailure(t, tt.failed, failed)
			})
		})
	}
}

// assertFailure asserts that a call returned the failure with this text as it is, or none.
func assertFailure(t *testing.T, text string, failed error) {
	t.Helper()
	if text == "" {
		assert.NoError(t, failed)
		return
	}
	assert.IsType(t, &failure{}, failed, "it is not wrapped")
	assert.EqualError(t, failed, text)
}

// The methods of a call are called in order, and each attempt is decided once.
func TestLoop_order(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"a good response", []step{good}, "Body, send, Status 200, Read"},
		{"a refusal", []step{unknown}, "Body, send, Status 404, Read, Advise 404 unknown"},
		{"final", []step{final}, "Body, send, NoResponse, Advise io: read/write on closed pipe"},
		{"a status that is not retried is read", []step{{status: 503}}, "Body, send, Status 503, Advise 503, Read"},
		{"503, then good", []step{unavailable, good}, "Body, send, Status 503, Advise 503, Discard 503, Retry 503, Body, send, Status 200, Read"},
		{"lost, then good", []step{lost, good}, "Body, send, NoResponse, Advise EOF, Retry EOF, Body, send, Status 200, Read"},
		{
			"cut, then good",
			[]step{truncated, good},
			"Body, send, Status 200, Read, Advise cut, Retry cut, Body, send, Status 200, Read",
		},
		{
			"a last attempt whose body could be retried",
			[]step{lost, lost, {status: 500, cut: true, advice: again}},
			"Body, send, NoResponse, Advise EOF, Retry EOF, Body, send, NoResponse, Advise EOF, Retry EOF, " +
				"Body, send, Status 500, Advise 500, Read",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: tt.steps}
				_, _, _ = call(t, t.Context(), retry.New(quick), s)
				assert.Equal(t, tt.want, strings.Join(s.log, ", "))
			})
		})
	}
}

func TestLoop_MaxAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for attempts := 1; attempts <= 10; attempts++ {
			policy := quick
			policy.MaxAttempts = attempts
			for _, failing := range []step{lost, broken, truncated} {
				s := &script{steps: []step{failing}}
				loop, _, failed := call(t, t.Context(), retry.New(policy), s)
				assert.Error(t, failed)
				assert.Len(t, s.at, attempts)
				assert.Equal(t, attempts, loop.Attempts)
			}
		}
	})
}

// Each attempt is another request, since net/http may still read the last one, and
// the body of each is its own.
func TestLoop_requests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		s := &script{steps: []step{lost, unavailable, good}, write: true, sent: func(req *http.Request) {
			text, err := io.ReadAll(req.Body)
			assert.NoError(t, err)
			assert.EqualValues(t, len(text), req.ContentLength)
			sent = append(sent, string(text))
		}}
		_, result, failed := call(t, t.Context(), retry.New(quick), s)
		assert.NoError(t, failed)
		assert.Equal(t, "good", result)
		assert.Equal(t, []string{"attempt 1", "attempt 2", "attempt 3"}, sent)
		require.Len(t, s.requests, 3)
		assert.NotSame(t, s.requests[0], s.requests[1])
		assert.NotSame(t, s.requests[1], s.requests[2])
		assert.NotSame(t, s.requests[0], s.requests[2])
	})
}

// A call without a body leaves that of the request as it is: there is none.
func TestLoop_withoutABody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{lost, good}, sent: func(req *http.Request) {
			assert.Nil(t, req.Body)
			assert.Zero(t, req.ContentLength)
		}}
		_, _, failed := call(t, t.Context(), retry.New(quick), s)
		assert.NoError(t, failed)
		assert.Len(t, s.at, 2)
	})
}

// Every response is closed once. One that is retried by its status is discarded by the
// call: the library, which would read it without a bound in time, reads nothing of it.
func TestLoop_responses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		endless := step{status: 503, body: strings.Repeat("x", 1<<20), advice: throttled}
		s := &script{steps: []step{unavailable, endless, truncated, good}}
		policy := quick
		policy.MaxAttempts = 4
		_, _, failed := call(t, t.Context(), retry.New(policy), s)
		require.NoError(t, failed)
		require.Len(t, s.bodies, 4)
		for i, body := range s.bodies {
			assert.Equal(t, 1, body.closed, "response %d", i+1)
		}
		assert.Zero(t, s.bodies[0].read)
		assert.Zero(t, s.bodies[1].read)
		assert.Equal(t, 2, strings.Count(strings.Join(s.log, ", "), "Discard 503"))
	})
}

// A wait is what the policy draws, and never shorter than what the service asks for.
func TestLoop_waits(t *testing.T) {
	t.Parallel()
	seconds := func(n int) retry.Advice { return retry.Advice{Retry: true, After: time.Duration(n) * time.Second} }
	for _, tt := range []struct {
		name        string
		advice      retry.Advice
		base        time.Duration
		least, most time.Duration // of the first wait
	}{
		{"drawn as 0, it is still a wait", again, 1, 1, 1},
		{"drawn", again, time.Minute, 1, time.Minute - 1},
		{"row 38: Retry-After alone", seconds(1), 1, time.Second, time.Second},
		{"row 38: the longest Retry-After", seconds(30), 1, 30 * time.Second, 30 * time.Second},
		{"Retry-After is a floor under a drawn wait", seconds(20), time.Minute, 20 * time.Second, time.Minute - 1},
		{"throttled", throttled, time.Nanosecond, 1, time.Second - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				policy := retry.Policy{MaxAttempts: 2, BaseDelay: tt.base, MaxDelay: time.Hour, MaxRetryAfter: 30 * time.Second}
				longest := time.Duration(0)
				for range 300 { // each with a budget of its own
					s := &script{steps: []step{{status: 503, advice: tt.advice}}}
					_, _, failed := call(t, t.Context(), retry.New(policy), s)
					require.Error(t, failed)
					require.Len(t, s.at, 2)
					wait := s.at[1].Sub(s.at[0])
					require.Equal(t, []time.Duration{wait}, s.waits, "the call is told how long it waits")
					require.GreaterOrEqual(t, wait, tt.least)
					require.LessOrEqual(t, wait, tt.most)
					longest = max(longest, wait)
				}
				assert.GreaterOrEqual(t, longest, tt.most*9/10)
			})
		})
	}
}

// The ceiling of the drawn waits grows with the attempts.
func TestLoop_waitsGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := retry.Policy{MaxAttempts: 4, BaseDelay: time.Second, MaxDelay: 3 * time.Second, MaxRetryAfter: 1}
		most := make([]time.Duration, 3)
		for range 300 {
			s := &script{steps: []step{lost}}
			_, _, _ = call(t, t.Context(), retry.New(policy), s)
			for i, wait := range s.waits {
				most[i] = max(most[i], wait)
			}
		}
		for i, ceiling := range []time.Duration{1e9, 2e9, 3e9} {
			assert.Less(t, most[i], ceiling, "wait %d", i+1)
			assert.Greater(t, most[i], ceiling*9/10, "wait %d", i+1)
		}
	})
}

// A Retry-After that is too long ends the call at once.
func TestLoop_MaxRetryAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		after time.Duration
		sent  int
	}{
		{"row 38: 30 s, the longest that is waited for", 30 * time.Second, 3},
		{"row 39: 30 s and 1 ns", 30*time.Second + 1, 1},
		{"row 39: a day", 24 * time.Hour, 1},
		{"row 40: as long as there is", math.MaxInt64, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				s := &script{steps: []step{{status: 503, body: "later", advice: retry.Advice{Retry: true, Throttled: true, After: tt.after}}}}
				loop, _, failed := call(t, t.Context(), retry.New(quick), s)
				assert.EqualError(t, failed, "503 later")
				assert.Len(t, s.at, tt.sent)
				assert.Empty(t, loop.Note, "the failure has the Retry-After")
				if tt.sent == 1 {
					assert.Zero(t, time.Since(begun))
				}
			})
		})
	}
}

// A wait that ends after the deadline of the context does not begin.
func TestLoop_deadline(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		after time.Duration
		note  string
	}{
		{"before it", 10*time.Second - 1, ""},
		{"at it", 10 * time.Second, ""},
		{"after it", 10*time.Second + 1, "the next one would be after the deadline"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				s := &script{steps: []step{{err: io.EOF, advice: retry.Advice{Retry: true, After: tt.after}}, final}}
				loop, _, failed := call(t, ctx, retry.New(quick), s)
				assert.Equal(t, tt.note, loop.Note)
				if tt.note == "" {
					assert.Equal(t, []time.Duration{tt.after}, s.waits)
					return
				}
				assert.EqualError(t, failed, "EOF", "the failure is worth more than the end of the time")
				assert.Empty(t, s.waits)
				assert.Zero(t, time.Since(begun))
			})
		})
	}
}

// A call whose context ends between two attempts has no failure of its own.
func TestLoop_interrupted(t *testing.T) {
	t.Parallel()
	for _, failing := range []step{lost, unavailable, truncated} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			failing.advice.After = 20 * time.Second
			time.AfterFunc(10*time.Second, cancel)
			s := &script{steps: []step{failing}}
			loop, result, failed := call(t, ctx, retry.New(quick), s)
			assert.Nil(t, result)
			assert.Equal(t, retry.ErrInterrupted, failed)
			assert.Equal(t, 1, loop.Attempts)
			assert.Equal(t, 10*time.Second, time.Since(begun), "it returns when the context ends")
		})
	}
}

// A call that was interrupted before, but not in its last wait, has one.
func TestLoop_endsInALaterAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &script{steps: []step{unavailable, lost}}
		s.sent = func(*http.Request) {
			if len(s.at) == 2 {
				cancel()
			}
		}
		_, _, failed := call(t, ctx, retry.New(quick), s)
		assert.EqualError(t, failed, "EOF")
		assert.Len(t, s.at, 2)
		assert.Len(t, s.waits, 1, "no attempt is announced after the end of the context")
	})
}

const emptyText = "the retry budget was empty"

// A service that fails everything gets first attempts, and no more retries than the
// budget has tokens for.
func TestRetrier_budget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		failing step
		retries int
	}{
		{"row 59: 1,000 calls fail with 500", broken, 35},
		{"row 59: 1,000 calls are throttled", unavailable, 100},
		{"row 59: 1,000 calls have no response", lost, 35},
		{"row 59: 1,000 responses are cut", truncated, 35},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const calls = 1000
				r, sent := retry.New(quick), 0
				for range calls {
					s := &script{steps: []step{tt.failing}}
					loop, _, failed := call(t, t.Context(), r, s)
					require.Error(t, failed)
					require.NotEmpty(t, s.at, "a first attempt is always made")
					require.Equal(t, len(s.at) < 3, loop.Note == emptyText)
					sent += len(s.at)
					loop.Release()
				}
				assert.Equal(t, calls+tt.retries, sent)
			})
		})
	}
}

// Successes fill the budget again: a token each.
func TestRetrier_budgetRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := retry.New(quick)
		for range 100 {
			_, _, _ = call(t, t.Context(), r, &script{steps: []step{broken}})
		}
		for range 3 { // 490 tokens are spent: 4 more are needed for a retry
			_, _, failed := call(t, t.Context(), r, &script{steps: []step{good}})
			require.NoError(t, failed)
		}
		loop, _, _ := call(t, t.Context(), r, &script{steps: []step{broken}})
		assert.Equal(t, 1, loop.Attempts)
		assert.Equal(t, emptyText, loop.Note)
		_, _, _ = call(t, t.Context(), r, &script{steps: []step{good}})
		loop, _, _ = call(t, t.Context(), r, &script{steps: []step{broken}})
		assert.Equal(t, 2, loop.Attempts, "one retry is possible")
		assert.Equal(t, emptyText, loop.Note)
	})
}

// A retry that helps refunds what it took, so that it never ends for want of tokens.
func TestRetrier_refunds(t *testing.T) {
	t.Parallel()
	for _, failing := range []step{lost, broken, unavailable, truncated} {
		synctest.Test(t, func(t *testing.T) {
			r := retry.New(quick)
			for range 1000 {
				loop, _, failed := call(t, t.Context(), r, &script{steps: []step{failing, good}})
				require.NoError(t, failed)
				loop.Release()
			}
			assert.Equal(t, 35, retriesLeft(t, r), "the budget is full")
		})
	}
}

// What was taken by a call that failed is not refunded.
func TestRetrier_failuresRefundNothing(t *testing.T) {
	t.Parallel()
	for _, last := range []step{unknown, final} {
		synctest.Test(t, func(t *testing.T) {
			r := retry.New(quick)
			for range 30 {
				_, _, failed := call(t, t.Context(), r, &script{steps: []step{lost, last}})
				require.Error(t, failed)
			}
			assert.Equal(t, 5, retriesLeft(t, r))
		})
	}
}

// A failure after which there is no other attempt takes nothing.
func TestRetrier_onlyRetriesCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := retry.New(quick)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		tooLong, afterTheDeadline := lost, lost
		tooLong.advice.After, afterTheDeadline.advice.After = time.Minute, 20*time.Second
		for range 100 {
			for _, last := range []step{unknown, final, tooLong, afterTheDeadline} {
				loop, _, _ := call(t, ctx, r, &script{steps: []step{last}})
				assert.Equal(t, 1, loop.Attempts)
			}
		}
		assert.Equal(t, 35, retriesLeft(t, r))
	})
}

// retriesLeft is how many retries, other than throttled ones, a retrier has tokens for.
// It uses them.
func retriesLeft(t *testing.T, r *retry.Retrier) (n int) {
	t.Helper()
	for {
		loop, _, _ := call(t, t.Context(), r, &script{steps: []step{lost}})
		n += loop.Attempts - 1
		if loop.Note != "" {
			return n
		}
	}
}

// A loop that was released has nothing of the call before.
func TestLoop_Release(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := retry.New(quick)
		for range 100 {
			_, _, _ = call(t, t.Context(), r, &script{steps: []step{lost}})
		}
		for range 100 {
			loop, result, failed := call(t, t.Context(), r, &script{steps: []step{broken}})
			assert.Nil(t, result)
			assert.EqualError(t, failed, "500 broken")
			assert.Equal(t, emptyText, loop.Note)
			loop.Release()

			loop, result, failed = call(t, t.Context(), r, &script{steps: []step{unknown}})
			assert.Nil(t, result)
			assert.EqualError(t, failed, "404 unknown")
			assert.Equal(t, 1, loop.Attempts)
			assert.Empty(t, loop.Note)
			loop.Release()
		}
	})
}

// Calls that share a retrier do not share their attempts.
func TestRetrier_concurrentUse(t *testing.T) {
	t.Parallel()
	r := retry.New(quick)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 200 {
				want := fmt.Sprintf("%d of %d", n, i)
				s := &script{steps: []step{truncated, {status: 200, body: want}}, write: n%2 == 0}
				if n%3 == 0 {
					s.steps = []step{{status: 404, body: want}}
				}
				loop, result, failed := call(t, t.Context(), r, s)
				if n%3 == 0 {
					assert.EqualError(t, failed, "404 "+want)
					assert.Equal(t, 1, loop.Attempts)
				} else if assert.NoError(t, failed) {
					assert.Equal(t, want, result)
					assert.Equal(t, 2, loop.Attempts)
				}
				loop.Release()
			}
		})
	}
	all.Wait()
}
