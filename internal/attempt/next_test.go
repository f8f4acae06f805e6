package attempt

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRetrier_Next(t *testing.T) {
	t.Parallel()
	const (
		late  = "the next one would be after the deadline"
		empty = "the retry budget was empty"
	)
	transient, throttled, free := Failure{Retry: true}, Failure{Retry: true, Throttled: true}, Failure{Retry: true, Throttled: true, Free: true}
	after := func(wait time.Duration) Failure { return Failure{Retry: true, After: wait} }
	for _, tt := range []struct {
		name     string
		n        int // of 3 attempts
		failure  Failure
		deadline time.Duration // from now; 0 for none
		tokens   int64         // in the budget
		want     Next          // but for a Wait that is drawn
		longest  time.Duration // of a random Wait, which is shorter; 0 for a fixed one
	}{
		{"a transient failure is repeated", 1, transient, 0, 500, Next{Cost: 14}, 100 * time.Millisecond},
		{"the wait doubles", 2, transient, 0, 500, Next{Cost: 14}, 200 * time.Millisecond},
		{"the last attempt is the last", 3, transient, 0, 500, Next{}, 0},
		{"another failure is final", 1, Failure{}, 0, 500, Next{}, 0},
		{"a request for fewer requests waits longer and costs less", 1, throttled, 0, 500, Next{Cost: 5}, time.Second},
		{"a free retry waits longer and costs nothing", 1, free, 0, 0, Next{}, time.Second},
		{"the wait that the service asks for is the least", 1, after(10 * time.Second), 0, 500, Next{Wait: 10 * time.Second, Cost: 14}, 0},
		{"a longer wait than the policy allows ends the call", 1, after(10*time.Second + 1), 0, 500, Next{}, 0},
		{"a deadline can be met", 1, after(10 * time.Second), 10 * time.Second, 500, Next{Wait: 10 * time.Second, Cost: 14}, 0},
		{"a deadline that cannot be met ends the call", 1, after(10 * time.Second), 10*time.Second - 1, 500, Next{Note: late}, 0},
		{"a deadline that has passed ends the call", 1, transient, -1, 500, Next{Note: late}, 0},
		{"too few tokens are left", 1, transient, 0, 13, Next{Note: empty}, 0},
		{"a throttled retry takes the last tokens", 1, throttled, 0, 5, Next{Cost: 5}, time.Second},
		{"too few tokens are left for a throttled retry", 1, throttled, 0, 4, Next{Note: empty}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var deadline time.Time
				if tt.deadline != 0 {
					deadline = time.Now().Add(tt.deadline)
				}
				var longest time.Duration
				for range 100 {
					r := Retrier{Policy: Policy{MaxAttempts: 3, BaseDelay: 100 * time.Millisecond, MaxDelay: 5 * time.Second, MaxRetryAfter: 10 * time.Second}}
					r.Take(budgetSize - tt.tokens)
					got := r.Next(tt.n, tt.failure, deadline)
					assert.Equal(t, budgetSize-tt.tokens+tt.want.Cost, r.spent.Load())
					if tt.longest != 0 {
						assert.Positive(t, got.Wait)
						longest = max(longest, got.Wait)
						got.Wait = 0
					}
					assert.Equal(t, tt.want, got)
				}
				if tt.longest != 0 {
					assert.Less(t, longest, tt.longest)
					assert.Greater(t, longest, tt.longest/2)
				}
			})
		})
	}
}

// Waits are drawn between 0 and a ceiling that doubles: of many, none reaches the
// ceiling, and some come near either end.
func TestPolicy_delay(t *testing.T) {
	t.Parallel()
	const forever = time.Duration(math.MaxInt64)
	short := Policy{BaseDelay: 100 * time.Millisecond, MaxDelay: 5 * time.Second}
	for _, tt := range []struct {
		name      string
		policy    Policy
		throttled bool
		ceilings  []time.Duration // after the first attempt, the second, …
	}{
		{"it doubles up to the longest", short, false, []time.Duration{1e8, 2e8, 4e8, 8e8, 16e8, 32e8, 5e9, 5e9, 5e9}},
		{"throttled, it begins at 1 s", short, true, []time.Duration{1e9, 2e9, 4e9, 5e9, 5e9}},
		{"throttled, a longer base is kept", Policy{BaseDelay: 3e9, MaxDelay: time.Minute}, true, []time.Duration{3e9, 6e9, 12e9}},
		{"throttled, a shorter longest is kept", Policy{BaseDelay: 1e8, MaxDelay: 2e8}, true, []time.Duration{2e8, 2e8}},
		{"a base that is the longest", Policy{BaseDelay: 2e9, MaxDelay: 2e9}, false, []time.Duration{2e9, 2e9}},
		{"twice a base that no duration holds", Policy{BaseDelay: forever/2 + 1, MaxDelay: forever}, true, []time.Duration{forever/2 + 1, forever, forever}},
	} {
		for i, ceiling := range tt.ceilings {
			least, most := forever, time.Duration(-1)
			for range 1000 {
				drawn := tt.policy.delay(i+1, tt.throttled)
				least, most = min(least, drawn), max(most, drawn)
			}
			about := fmt.Sprintf("%s, after attempt %d", tt.name, i+1)
			assert.Less(t, most, ceiling, about)
			assert.Greater(t, most, ceiling/10*9, about)
			assert.GreaterOrEqual(t, least, time.Duration(0), about)
			assert.Less(t, least, ceiling/10, about)
		}
	}
	assert.Zero(t, (&Policy{BaseDelay: 1, MaxDelay: 1}).delay(1, false))
}

// A call that succeeds refills the budget by what its last retry took, and by one token without a retry.
func TestRetrier_Succeeded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name              string
		attempts          int
		spent, cost, want int64
	}{
		{"without a retry", 1, 100, 14, 99},
		{"after a retry", 2, 100, 14, 86},
		{"after a free retry", 2, 100, 0, 100},
		{"no more than was spent", 2, 5, 14, 0},
		{"the budget is full", 1, 0, 0, 0},
	} {
		var r Retrier
		r.Take(tt.spent)
		r.Succeeded(tt.attempts, Next{Cost: tt.cost})
		assert.Equal(t, tt.want, r.spent.Load(), tt.name)
	}
}

// However many goroutines take and refund, tokens are counted once, and the budget is never overdrawn.
func TestBudget_concurrentUse(t *testing.T) {
	t.Parallel()
	var b Budget
	var all sync.WaitGroup
	var kept atomic.Int64
	for range 8 {
		all.Go(func() {
			for range 1000 {
				if b.Take(retryCost) {
					b.Refund(retryCost)
				}
				if b.Take(1) {
					kept.Add(1)
				}
				if b.spent.Load() > budgetSize {
					t.Error("the budget is overdrawn")
				}
			}
		})
	}
	all.Wait()
	assert.Equal(t, kept.Load(), b.spent.Load())
}
