package poll_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/poll"
)

func TestLimiter_atOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := poll.NewLimiter(3, 0)
		var running, most atomic.Int32
		var all sync.WaitGroup
		begun := time.Now()
		for range 9 {
			all.Go(func() {
				assert.NoError(t, l.Begin(t.Context()))
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Second)
				running.Add(-1)
				l.End(0)
			})
		}
		all.Wait()
		assert.EqualValues(t, 3, most.Load())
		assert.Equal(t, 3*time.Second, time.Since(begun))
	})
}

func TestLimiter_between(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, begun := poll.NewLimiter(8, time.Second), time.Now()
		var mu sync.Mutex
		var at []time.Duration
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				assert.NoError(t, l.Begin(t.Context()))
				mu.Lock()
				at = append(at, time.Since(begun))
				mu.Unlock()
				l.End(0)
			})
		}
		all.Wait()
		assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}, at)
	})
}

// What the service asks one poll to wait, all wait.
func TestLimiter_retryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, begun := poll.NewLimiter(8, time.Second), time.Now()
		assert.NoError(t, l.Begin(t.Context()))
		l.End(time.Minute)
		assert.NoError(t, l.Begin(t.Context()))
		assert.Equal(t, time.Minute, time.Since(begun))
		l.End(0)
		assert.NoError(t, l.Begin(t.Context()))
		assert.Equal(t, time.Minute+time.Second, time.Since(begun))
	})
}

func TestLimiter_contextEnds(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*poll.Limiter{
		"while all places are taken":    poll.NewLimiter(1, 0),
		"while the next is not yet due": poll.NewLimiter(2, time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.NoError(t, l.Begin(t.Context()))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			assert.ErrorIs(t, l.Begin(ctx), context.Canceled)
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l := poll.NewLimiter(1, 0)
	for range 3 { // whichever of the two is chosen, no place is lost
		assert.ErrorIs(t, l.Begin(ended), context.Canceled)
	}
	assert.NoError(t, l.Begin(t.Context()))
}
