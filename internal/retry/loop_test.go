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

// Failures that are often needed, and a success.
var (
	good        = retry.Failure{Served: true}
	unavailable = retry.Failure{Err: errors.New("503"), Retry: true, Throttled: true}
	broken      = retry.Failure{Err: errors.New("500"), Retry: true}
	unknown     = retry.Failure{Err: errors.New("404")}
	lost        = retry.Failure{Err: io.EOF, Retry: true}
	final       = retry.Failure{Err: io.ErrClosedPipe}
)

// A script is a call: the n-th attempt ends with the n-th step, and those after the last like
// the last.
type script struct {
	steps []retry.Failure
	sent  func() // in each attempt; nil for nothing

	log      []string // the methods as they are called
	at       []time.Time
	requests []*http.Request
	waits    []time.Duration
	note     string
}

func (s *script) Attempt(req *http.Request) retry.Failure {
	s.log = append(s.log, "attempt")
	s.at, s.requests = append(s.at, time.Now()), append(s.requests, req)
	if s.sent != nil {
		s.sent()
	}
	return s.steps[min(len(s.at), len(s.steps))-1]
}

func (s *script) Ended(failure error, next retry.Next) {
	s.log = append(s.log, fmt.Sprintf("ended %v", failure))
	s.note = next.Note
	if next.Wait > 0 {
		s.waits = append(s.waits, next.Wait)
	}
}

// do lets a script make its attempts.
func do(t testing.TB, ctx context.Context, r *retry.Retrier, s *script) (failure error, interrupted bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://gateway.test/path", nil)
	require.NoError(t, err)
	return r.Do(req, s)
}

// failure is that of a call that is not interrupted.
func failure(t testing.TB, ctx context.Context, r *retry.Retrier, s *script) error {
	t.Helper()
	failed, interrupted := do(t, ctx, r, s)
	assert.False(t, interrupted)
	return failed
}

// The failure of a call is that of its last attempt, as it is. Each attempt is ended once,
// before the next one begins.
func TestRetrier_Do(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		steps []retry.Failure
		want  error
		log   string
	}{
		{"a success", []retry.Failure{good}, nil, "attempt, ended <nil>"},
		{"a failure that is not retried", []retry.Failure{unknown}, unknown.Err, "attempt, ended 404"},
		{"lost, then a success", []retry.Failure{lost, good}, nil, "attempt, ended EOF, attempt, ended <nil>"},
		{"503, then 404", []retry.Failure{unavailable, unknown}, unknown.Err, "attempt, ended 503, attempt, ended 404"},
		{"lost, then final", []retry.Failure{lost, final}, final.Err, "attempt, ended EOF, attempt, ended io: read/write on closed pipe"},
		{"503 twice, then lost", []retry.Failure{unavailable, unavailable, lost}, io.EOF, "attempt, ended 503, attempt, ended 503, attempt, ended EOF"},
		{"503, lost, then a success", []retry.Failure{unavailable, lost, good}, nil, "attempt, ended 503, attempt, ended EOF, attempt, ended <nil>"},
		{"500 each time", []retry.Failure{broken}, broken.Err, "attempt, ended 500, attempt, ended 500, attempt, ended 500"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: tt.steps}
				assert.Equal(t, tt.want, failure(t, t.Context(), retry.New(quick), s))
				assert.Equal(t, tt.log, strings.Join(s.log, ", "))
				assert.Len(t, s.waits, len(s.at)-1)
				assert.Empty(t, s.note)
			})
		})
	}
}

func TestRetrier_Do_MaxAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for attempts := 1; attempts <= 10; attempts++ {
			policy := quick
			policy.MaxAttempts = attempts
			for _, failing := range []retry.Failure{lost, broken} {
				s := &script{steps: []retry.Failure{failing}}
				failed := failure(t, t.Context(), retry.New(policy), s)
				assert.Error(t, failed)
				assert.Len(t, s.at, attempts)
			}
		}
	})
}

// Each attempt has another request, since net/http may still read the last one.
func TestRetrier_Do_requests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []retry.Failure{lost, unavailable, good}}
		assert.NoError(t, failure(t, t.Context(), retry.New(quick), s))
		require.Len(t, s.requests, 3)
		assert.NotSame(t, s.requests[0], s.requests[1])
		assert.NotSame(t, s.requests[1], s.requests[2])
		assert.NotSame(t, s.requests[0], s.requests[2])
	})
}

// A panic of an attempt ends the call, and the retrier can be used for others.
func TestRetrier_Do_panic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := retry.New(quick)
		for range 3 {
			assert.PanicsWithValue(t, "a bug", func() {
				_, _ = do(t, t.Context(), r, &script{steps: []retry.Failure{lost}, sent: func() { panic("a bug") }})
			})
			s := &script{steps: []retry.Failure{lost, good}}
			assert.NoError(t, failure(t, t.Context(), r, s))
			assert.Len(t, s.at, 2)
		}
	})
}

// A wait is what the policy draws, and never shorter than what the service asks for.
func TestRetrier_Do_waits(t *testing.T) {
	t.Parallel()
	seconds := func(n int) retry.Failure {
		return retry.Failure{Err: unavailable.Err, Retry: true, After: time.Duration(n) * time.Second}
	}
	for _, tt := range []struct {
		name        string
		failing     retry.Failure
		base        time.Duration
		least, most time.Duration // of the first wait
	}{
		{"drawn as 0, it is still a wait", broken, 1, 1, 1},
		{"drawn", broken, time.Minute, 1, time.Minute - 1},
		{"Retry-After alone", seconds(1), 1, time.Second, time.Second},
		{"the longest Retry-After", seconds(30), 1, 30 * time.Second, 30 * time.Second},
		{"Retry-After is a floor under a drawn wait", seconds(20), time.Minute, 20 * time.Second, time.Minute - 1},
		{"throttled", unavailable, time.Nanosecond, 1, time.Second - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				policy := retry.Policy{MaxAttempts: 2, BaseDelay: tt.base, MaxDelay: time.Hour, MaxRetryAfter: 30 * time.Second}
				longest := time.Duration(0)
				for range 300 { // each with a budget of its own
					s := &script{steps: []retry.Failure{tt.failing}}
					failed := failure(t, t.Context(), retry.New(policy), s)
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
func TestRetrier_Do_waitsGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := retry.Policy{MaxAttempts: 4, BaseDelay: time.Second, MaxDelay: 3 * time.Second, MaxRetryAfter: 1}
		most := make([]time.Duration, 3)
		for range 300 {
			s := &script{steps: []retry.Failure{lost}}
			_ = failure(t, t.Context(), retry.New(policy), s)
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
func TestRetrier_Do_MaxRetryAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		after time.Duration
		sent  int
	}{
		{"30 s, the longest that is waited for", 30 * time.Second, 3},
		{"30 s and 1 ns", 30*time.Second + 1, 1},
		{"a day", 24 * time.Hour, 1},
		{"as long as there is", math.MaxInt64, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				s := &script{steps: []retry.Failure{{Err: unavailable.Err, Retry: true, Throttled: true, After: tt.after}}}
				failed := failure(t, t.Context(), retry.New(quick), s)
				assert.EqualError(t, failed, "503")
				assert.Len(t, s.at, tt.sent)
				assert.Empty(t, s.note, "the failure has the Retry-After")
				if tt.sent == 1 {
					assert.Zero(t, time.Since(begun))
				}
			})
		})
	}
}

// A wait that ends after the deadline of the context does not begin.
func TestRetrier_Do_deadline(t *testing.T) {
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
				s := &script{steps: []retry.Failure{{Err: io.EOF, Retry: true, After: tt.after}, final}}
				failed := failure(t, ctx, retry.New(quick), s)
				assert.Equal(t, tt.note, s.note)
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
func TestRetrier_Do_interrupted(t *testing.T) {
	t.Parallel()
	for _, failing := range []retry.Failure{lost, unavailable} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			failing.After = 20 * time.Second
			time.AfterFunc(10*time.Second, cancel)
			s := &script{steps: []retry.Failure{failing}}
			_, interrupted := do(t, ctx, retry.New(quick), s)
			assert.True(t, interrupted)
			assert.Len(t, s.at, 1)
			assert.Equal(t, 10*time.Second, time.Since(begun), "it returns when the context ends")
		})
	}
}

// A call that was interrupted before, but not in its last wait, has one.
func TestRetrier_Do_endsInALaterAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &script{steps: []retry.Failure{unavailable, lost}}
		s.sent = func() {
			if len(s.at) == 2 {
				cancel()
			}
		}
		failed := failure(t, ctx, retry.New(quick), s)
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
		failing retry.Failure
		retries int
	}{
		{"1,000 calls fail with 500", broken, 35},
		{"1,000 calls are throttled", unavailable, 100},
		{"1,000 calls have no response", lost, 35},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const calls = 1000
				r, sent := retry.New(quick), 0
				for range calls {
					s := &script{steps: []retry.Failure{tt.failing}}
					failed := failure(t, t.Context(), r, s)
					require.Error(t, failed)
					require.NotEmpty(t, s.at, "a first attempt is always made")
					require.Equal(t, len(s.at) < 3, s.note == emptyText)
					sent += len(s.at)
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
			_ = failure(t, t.Context(), r, &script{steps: []retry.Failure{broken}})
		}
		for range 3 { // 490 tokens are spent: 4 more are needed for a retry
			failed := failure(t, t.Context(), r, &script{steps: []retry.Failure{good}})
			require.NoError(t, failed)
		}
		s := &script{steps: []retry.Failure{broken}}
		_ = failure(t, t.Context(), r, s)
		assert.Len(t, s.at, 1)
		assert.Equal(t, emptyText, s.note)
		_ = failure(t, t.Context(), r, &script{steps: []retry.Failure{good}})
		s = &script{steps: []retry.Failure{broken}}
		_ = failure(t, t.Context(), r, s)
		assert.Len(t, s.at, 2, "one retry is possible")
		assert.Equal(t, emptyText, s.note)
	})
}

// A retry that helps refunds what it took, so that it never ends for want of tokens.
func TestRetrier_refunds(t *testing.T) {
	t.Parallel()
	for _, failing := range []retry.Failure{lost, broken, unavailable} {
		synctest.Test(t, func(t *testing.T) {
			r := retry.New(quick)
			for range 1000 {
				failed := failure(t, t.Context(), r, &script{steps: []retry.Failure{failing, good}})
				require.NoError(t, failed)
			}
			assert.Equal(t, 35, retriesLeft(t, r), "the budget is full")
		})
	}
}

// A success that nothing was sent for refunds nothing.
func TestRetrier_unservedRefundsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := retry.New(quick)
		for range 30 {
			require.NoError(t, failure(t, t.Context(), r, &script{steps: []retry.Failure{lost, {}}}))
		}
		assert.Equal(t, 5, retriesLeft(t, r))
	})
}

// What was taken by a call that failed is not refunded.
func TestRetrier_failuresRefundNothing(t *testing.T) {
	t.Parallel()
	for _, last := range []retry.Failure{unknown, final} {
		synctest.Test(t, func(t *testing.T) {
			r := retry.New(quick)
			for range 30 {
				failed := failure(t, t.Context(), r, &script{steps: []retry.Failure{lost, last}})
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
		tooLong.After, afterTheDeadline.After = time.Minute, 20*time.Second
		for range 100 {
			for _, last := range []retry.Failure{unknown, final, tooLong, afterTheDeadline} {
				s := &script{steps: []retry.Failure{last}}
				_ = failure(t, ctx, r, s)
				assert.Len(t, s.at, 1)
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
		s := &script{steps: []retry.Failure{lost}}
		_ = failure(t, t.Context(), r, s)
		n += len(s.at) - 1
		if s.note != "" {
			return n
		}
	}
}

// Calls that share a retrier do not share their attempts.
func TestRetrier_concurrentUse(t *testing.T) {
	t.Parallel()
	r := retry.New(quick)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 200 {
				want := fmt.Errorf("%d of %d", n, i)
				s, attempts := &script{steps: []retry.Failure{{Err: want}}}, 1
				if n%3 == 0 {
					s, attempts, want = &script{steps: []retry.Failure{lost, good}}, 2, nil
				}
				assert.Equal(t, want, failure(t, t.Context(), r, s))
				assert.Len(t, s.at, attempts)
			}
		})
	}
	all.Wait()
}
