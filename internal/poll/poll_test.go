package poll_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/poll"
)

// drawn is what the n-th waits of many pacers are, in order.
func drawn(i poll.Intervals, n int, atLeast time.Duration) []time.Duration {
	all := map[time.Duration]bool{}
	for range 1000 {
		p := poll.NewPacer(i)
		for range n - 1 {
			p.Next(0)
		}
		all[p.Next(atLeast)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// The n-th wait lies between the shortest interval and a ceiling that grows by half
// up to the longest. Both ends are drawn.
func TestPacer_Next(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		i        poll.Intervals
		ceilings []time.Duration // of the first wait, the second, …
	}{
		{"it grows by half", poll.Intervals{Min: 2, Max: 10}, []time.Duration{3, 4, 6, 9, 10, 10}},
		{"from a longer shortest", poll.Intervals{Min: 8, Max: 20}, []time.Duration{12, 18, 20, 20}},
		{"the first is bounded too", poll.Intervals{Min: 8, Max: 9}, []time.Duration{9, 9}},
		{"both are the same", poll.Intervals{Min: 5, Max: 5}, []time.Duration{5, 5, 5}},
		{"both are as short as can be", poll.Intervals{Min: 1, Max: 1}, []time.Duration{1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for n, ceiling := range tt.ceilings {
				var want []time.Duration
				for wait := tt.i.Min; wait <= ceiling; wait++ {
					want = append(want, wait)
				}
				assert.Equal(t, want, drawn(tt.i, n+1, 0), "wait %d", n+1)
			}
		})
	}
}

// A wait that is asked for is a floor, also above the longest interval.
func TestPacer_Next_atLeast(t *testing.T) {
	t.Parallel()
	i := poll.Intervals{Min: 4, Max: 6}
	assert.Equal(t, []time.Duration{4, 5, 6}, drawn(i, 1, 3))
	assert.Equal(t, []time.Duration{4, 5, 6}, drawn(i, 1, 4))
	assert.Equal(t, []time.Duration{5, 6}, drawn(i, 1, 5))
	assert.Equal(t, []time.Duration{6}, drawn(i, 1, 6))
	assert.Equal(t, []time.Duration{7}, drawn(i, 1, 7))
	p := poll.NewPacer(i)
	assert.Equal(t, time.Hour, p.Next(time.Hour))
	assert.LessOrEqual(t, p.Next(0), time.Duration(6), "it holds for one wait")
}

// The longest intervals that a caller can set do not overflow.
func TestPacer_Next_aDay(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	p := poll.NewPacer(poll.Intervals{Min: time.Minute, Max: day})
	shortest, longest := day, time.Duration(0)
	for range 10_000 {
		wait := p.Next(0)
		shortest, longest = min(shortest, wait), max(longest, wait)
	}
	assert.GreaterOrEqual(t, shortest, time.Minute)
	assert.LessOrEqual(t, longest, day)
	assert.Greater(t, longest, day*9/10)
}

// Pacers do not share their growth.
func TestPacer_copies(t *testing.T) {
	t.Parallel()
	p := poll.NewPacer(poll.Intervals{Min: 2, Max: 1000})
	before := p
	for range 20 {
		p.Next(0)
	}
	assert.LessOrEqual(t, before.Next(0), time.Duration(3))
}

func TestSleep(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		wait  time.Duration
		limit time.Duration // of the context
		want  error
		took  time.Duration
	}{
		{"the whole wait", time.Minute, time.Hour, nil, time.Minute},
		{"no wait", 0, time.Hour, nil, 0},
		{"a negative wait", -1, time.Hour, nil, 0},
		{"the context ends first", time.Hour, time.Minute, context.DeadlineExceeded, time.Minute},
		{"the context has ended", time.Hour, -1, context.DeadlineExceeded, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
				defer cancel()
				assert.Equal(t, tt.want, poll.Sleep(ctx, tt.wait))
				assert.Equal(t, tt.took, time.Since(begun))
			})
		})
	}
}

func TestSleep_cancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		time.AfterFunc(time.Second, cancel)
		assert.Equal(t, context.Canceled, poll.Sleep(ctx, time.Hour))
		assert.Equal(t, time.Second, time.Since(begun))
	})
}
