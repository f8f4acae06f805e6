package pricing_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/testing/clocks"
	"github.com/cryptogw/gateway/pricing"
)

var errSource = errors.New("the source is down")

// A source is what a cache of the tests loads from. What it does may be changed while no load is under way.
type source struct {
	takes time.Duration // how long a load takes
	fails error

	mu    sync.Mutex
	loads int
}

func (s *source) load(ctx context.Context) (string, error) {
	s.mu.Lock()
	s.loads++
	value := fmt.Sprintf("value %d", s.loads)
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return "half a value", ctx.Err()
	}
	if s.fails != nil {
		return "half a value", s.fails
	}
	return value, nil
}

// inBubble runs a test with a cache of a source, in virtual time.
func inBubble(t *testing.T, s *source, o pricing.CacheOptions, test func(*testing.T, *pricing.Cache[string])) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, pricing.NewTestCache(s.load, o, nil)) })
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { time.Sleep(d) }

// assertGets asserts that the cache has a value after a time: 0, or the time of a load.
func assertGets(t *testing.T, c *pricing.Cache[string], want string, after time.Duration) {
	t.Helper()
	begun := time.Now()
	got, err := c.Get(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, after, time.Since(begun), "how long it took")
}

// until returns a context of a test that ends after a time, or has ended.
func until(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestCache_Get_oneLoadForAll(t *testing.T) {
	s := &source{takes: time.Second}
	inBubble(t, s, pricing.CacheOptions{}, func(t *testing.T, c *pricing.Cache[string]) {
		for _, want := range []string{"value 1", "value 2"} {
			var wg sync.WaitGroup
			for i := range 1000 {
				wg.Go(func() {
					pass(time.Duration(i%10) * 100 * time.Millisecond) // some arrive during the load
					got, err := c.Get(t.Context())
					assert.NoError(t, err)
					assert.Equal(t, want, got)
				})
			}
			wg.Wait()
			pass(time.Minute)
		}
		assert.Equal(t, 2, s.loads, "one for the empty cache, one for the expired")
	})
}

// The ages up to which a value is served without a load, and with a load that fails.
func TestCache_Get_options(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		options       pricing.CacheOptions
		ttl, maxStale time.Duration
	}{
		{"the defaults", pricing.CacheOptions{}, time.Minute, time.Hour},
		{"both are set", pricing.CacheOptions{TTL: time.Second, MaxStale: time.Minute}, time.Second, time.Minute},
		{"both are the same", pricing.CacheOptions{TTL: time.Second, MaxStale: time.Second}, time.Second, time.Second},
		{"the TTL alone", pricing.CacheOptions{TTL: 10 * time.Minute}, 10 * time.Minute, time.Hour},
		{"the TTL alone, above the default MaxStale", pricing.CacheOptions{TTL: 2 * time.Hour}, 2 * time.Hour, 2 * time.Hour},
		{"MaxStale alone", pricing.CacheOptions{MaxStale: 2 * time.Hour}, time.Minute, 2 * time.Hour},
		{"MaxStale alone, below the default TTL", pricing.CacheOptions{MaxStale: time.Second}, time.Second, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &source{}
			inBubble(t, s, tt.options, func(t *testing.T, c *pricing.Cache[string]) {
				assertGets(t, c, "value 1", 0)
				s.fails = errSource
				pass(tt.ttl - 1)
				assertGets(t, c, "value 1", 0)
				assert.Equal(t, 1, s.loads, "a value younger than the TTL needs no load")
				pass(1)
				assertGets(t, c, "value 1", 0)
				assert.Equal(t, 2, s.loads, "a value as old as the TTL does")
				pass(tt.maxStale - tt.ttl)
				assertGets(t, c, "value 1", 0)
				pass(1)
				got, err := c.Get(t.Context())
				assert.Equal(t, errSource, err, "the error of the load is not wrapped")
				assert.Empty(t, got)
			})
		})
	}
}

// A context that has ended gets a value that is not too old, and begins no load.
func TestCache_Get_contextHasEnded(t *testing.T) {
	s := &source{}
	inBubble(t, s, pricing.CacheOptions{}, func(t *testing.T, c *pricing.Cache[string]) {
		assertGets(t, c, "value 1", 0)
		for range 2 {
			got, err := c.Get(until(t, 0))
			require.NoError(t, err)
			assert.Equal(t, "value 1", got)
			pass(time.Minute)
		}
		pass(time.Hour)
		got, err := c.Get(until(t, 0))
		require.EqualError(t, err, "gateway: cache: waiting for a load: context deadline exceeded")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Empty(t, got)
		require.ErrorIs(t, c.Refresh(until(t, 0)), context.DeadlineExceeded)
		synctest.Wait()
		assert.Equal(t, 1, s.loads)
	})
}

// A load has the values of the first caller's context, and goes on when callers leave: the others share it, or find its value.
func TestCache_Get_callersLeave(t *testing.T) {
	type key struct{}
	s := &source{takes: 10 * time.Second}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := pricing.NewTestCache(func(ctx context.Context) (string, error) {
			assert.Equal(t, "the first", ctx.Value(key{}))
			return s.load(ctx)
		}, pricing.CacheOptions{}, nil)
		first := func() context.Context { return context.WithValue(until(t, time.Second), key{}, "the first") }
		begun := time.Now()
		got, err := c.Get(first())
		assert.Empty(t, got)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(begun))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { assertGets(t, c, "value 1", 9*time.Second) })
		}
		wg.Wait()

		pass(time.Minute)
		require.ErrorIs(t, c.Refresh(first()), context.DeadlineExceeded)
		pass(9 * time.Second)
		synctest.Wait()
		assertGets(t, c, "value 2", 0)
		assert.Equal(t, 2, s.loads)
	})
}

// After a load that failed, the old value is served at once for as long as the load took.
func TestCache_Get_pause(t *testing.T) {
	s := &source{}
	inBubble(t, s, pricing.CacheOptions{}, func(t *testing.T, c *pricing.Cache[string]) {
		assertGets(t, c, "value 1", 0)
		pass(time.Minute)
		s.takes, s.fails = 10*time.Second, errSource
		assertGets(t, c, "value 1", 10*time.Second)
		pass(10*time.Second - 1)
		assertGets(t, c, "value 1", 0)
		assert.Equal(t, 2, s.loads)
		pass(1)
		assertGets(t, c, "value 1", 10*time.Second)
		assert.Equal(t, 3, s.loads)

		s.takes = 0
		pass(10 * time.Second)
		for range 3 {
			assertGets(t, c, "value 1", 0)
		}
		assert.Equal(t, 6, s.loads, "a load that fails at once causes no pause")
		s.fails = nil
		assertGets(t, c, "value 7", 0)
		pass(time.Minute - 1)
		assertGets(t, c, "value 7", 0)
	})
}

// At most half of the time is spent waiting for a service that hangs, until the old value is too old.
func TestCache_Get_hangs(t *testing.T) {
	s := &source{}
	inBubble(t, s, pricing.CacheOptions{}, func(t *testing.T, c *pricing.Cache[string]) {
		loaded := time.Now()
		assertGets(t, c, "value 1", 0)
		pass(time.Minute)
		s.takes = 24 * time.Hour
		begun, waited := time.Now(), time.Duration(0)
		for {
			called := time.Now()
			got, err := c.Get(t.Context())
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded, "of the load, not of the caller")
				assert.Equal(t, 30*time.Second, time.Since(called), "how long a load may take")
				break
			}
			assert.Equal(t, "value 1", got)
			waited += time.Since(called)
			pass(time.Second)
		}
		assert.Greater(t, time.Since(loaded), time.Hour)
		assert.LessOrEqual(t, time.Since(loaded), time.Hour+31*time.Second)
		_, err := c.Get(t.Context())
		require.Error(t, err, "no pause serves it longer")
		assert.LessOrEqual(t, waited, time.Since(begun)/2)
	})
}

// Refresh loads even a fresh value, shares a running load, and returns its error; the old value stays then.
func TestCache_Refresh(t *testing.T) {
	s := &source{takes: time.Second}
	inBubble(t, s, pricing.CacheOptions{}, func(t *testing.T, c *pricing.Cache[string]) {
		require.NoError(t, c.Refresh(t.Context()))
		assertGets(t, c, "value 1", 0)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { assert.NoError(t, c.Refresh(t.Context())) })
		}
		synctest.Wait()
		assertGets(t, c, "value 1", 0) // it is fresh, so Get does not wait
		wg.Wait()
		assertGets(t, c, "value 2", 0)
		assert.Equal(t, 2, s.loads)

		s.fails = errSource
		assert.Same(t, errSource, c.Refresh(t.Context()))
		pass(30 * time.Second)
		assertGets(t, c, "value 2", 0) // it is still fresh
		pass(30 * time.Second)
		wg.Go(func() { assert.Same(t, errSource, c.Refresh(t.Context())) })
		assertGets(t, c, "value 2", time.Second)
		wg.Wait()
		s.fails = nil
		require.NoError(t, c.Refresh(t.Context()), "a pause does not prevent a refresh")
		assertGets(t, c, "value 5", 0)
	})
}

// The Age header of a response counts.
func TestCaches_age(t *testing.T) {
	t.Parallel()
	const tooOld = "gateway: cache: the response is from a cache on the way to the gateway, and "
	for _, tt := range []struct {
		name, age string
		loads     int    // of two calls
		err       string // of each
	}{
		{"no age", "", 1, ""},
		{"an age below the TTL", "59", 1, ""},
		{"an age above the TTL", "61", 2, ""},
		{"an age of MaxStale", "3600", 2, ""},
		{"an age above MaxStale", "86400", 2, tooOld + "24h0m0s old"},
		{"an age that no duration can hold", "99999999999999999999", 2, tooOld},
		{"no number", "yesterday", 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gw := &answers{result: `[]`, age: tt.age}
				rates, err := pricing.NewRatesCache(gw.client(t), pricing.CacheOptions{})
				require.NoError(t, err)
				catalogs, err := pricing.NewCatalogCache(gw.client(t), pricing.CacheOptions{})
				require.NoError(t, err)
				for range 2 {
					_, err1 := rates.Get(t.Context())
					_, err2 := catalogs.Get(t.Context())
					for _, err := range []error{err1, err2} {
						if tt.err == "" {
							assert.NoError(t, err)
						} else {
							assert.ErrorContains(t, err, tt.err)
						}
					}
				}
				assert.Len(t, gw.requests, 2*tt.loads)
			})
		})
	}
}

// The clock that shows the greater age counts: one stands still while a machine is suspended, and the other can be set back.
func TestCache_Get_twoClocks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		monotonic, wall time.Duration // since the value was loaded
		loads           int
	}{
		{"neither has passed the TTL", 59 * time.Second, 59 * time.Second, 1},
		{"a suspended machine", time.Second, 8 * time.Hour, 3},
		{"a clock that was set back", 8 * time.Hour, -time.Hour, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, now := &source{}, time.Now()
			c := pricing.NewTestCache(s.load, pricing.CacheOptions{MaxStale: 24 * time.Hour},
				func(string) time.Time { return clocks.Later(t, now, -tt.monotonic, -tt.wall) })
			for range 3 {
				_, err := c.Get(t.Context())
				require.NoError(t, err)
			}
			assert.Equal(t, tt.loads, s.loads)
		})
	}
}

func TestNewCaches_refuse(t *testing.T) {
	t.Parallel()
	const negative, shorter = "o: TTL and MaxStale must not be negative", "o: MaxStale must not be shorter than TTL"
	for want, options := range map[string][]pricing.CacheOptions{negative: {{TTL: -1}, {MaxStale: -1}}, shorter: {{TTL: 2, MaxStale: 1}}} {
		for _, o := range options {
			catalogs, err := pricing.NewCatalogCache(nil, o)
			assert.Nil(t, catalogs)
			assertRefused(t, err, "cache", want)
			rates, err := pricing.NewRatesCache(nil, o)
			assert.Nil(t, rates)
			assertRefused(t, err, "cache", want)
		}
	}
}
