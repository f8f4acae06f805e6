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

// A cache of the tests loads from a source. Its behavior may be changed while no load is under way.
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
	took, cancel := context.WithTimeout(context.Background(), s.takes)
	defer cancel()
	select {
	case <-took.Done():
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
		got, err := c.Get(context.WithValue(until(t, time.Second), key{}, "the first"))
		assert.Empty(t, got)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { assertGets(t, c, "value 1", 9*time.Second) })
		}
		wg.Wait()
		assert.Equal(t, 1, s.loads)
	})
}

// After a load that failed, the old value is served at once for as long as the load took, until it is too old.
func TestCache_Get_pause(t *testing.T) {
	s := &source{}
	inBubble(t, s, pricing.CacheOptions{}, func(t *testing.T, c *pricing.Cache[string]) {
		loaded := time.Now()
		assertGets(t, c, "value 1", 0)
		pass(time.Minute)
		s.takes, s.fails = 10*time.Second, errSource
		assertGets(t, c, "value 1", 10*time.Second)
		pass(10*time.Second - 1)
		assertGets(t, c, "value 1", 0)
		assert.Equal(t, 2, s.loads)
		pass(1)
		assertGets(t, c, "value 1", 10*time.Second)

		s.takes = 24 * time.Hour
		pass(10 * time.Second)
		assertGets(t, c, "value 1", 30*time.Second) // the longest load
		pass(time.Until(loaded.Add(time.Hour - 10*time.Second)))
		for range 2 {
			_, err := c.Get(t.Context()) // too old when the load ends
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}

		s.takes, s.fails = 0, nil
		assertGets(t, c, "value 7", 0)
		s.fails = errSource
		pass(time.Minute)
		for range 3 {
			assertGets(t, c, "value 7", 0)
		}
		assert.Equal(t, 10, s.loads, "a load that fails at once causes no pause")
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

		s.fails = errSource
		assert.Same(t, errSource, c.Refresh(t.Context()))
		pass(time.Minute - 1 - time.Second)
		assertGets(t, c, "value 2", 0) // it is still fresh
		assert.Equal(t, 3, s.loads)
		s.fails = nil
		require.NoError(t, c.Refresh(t.Context()), "a pause does not prevent a refresh")
		assertGets(t, c, "value 4", 0)
	})
}

// The clock that shows the greater age counts: one stands still while a machine is suspended, and the other can be set back.
// A value from a cache on the way is as old as that says.
func TestCache_Get_age(t *testing.T) {
	t.Parallel()
	const tooOld = "gateway: cache: the response is older than MaxStale, which is 1h0m0s"
	for _, tt := range []struct {
		name            string
		monotonic, wall time.Duration // since the value was made
		loads           int           // of two calls
		err             string        // of each
	}{
		{"below the TTL", 59 * time.Second, 59 * time.Second, 1, ""},
		{"a suspended machine", time.Second, 59 * time.Minute, 2, ""},
		{"a clock that was set back", 59 * time.Minute, -time.Hour, 2, ""},
		{"above MaxStale", time.Hour + time.Second, time.Hour + time.Second, 2, tooOld},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, now := &source{}, time.Now()
			c := pricing.NewTestCache(s.load, pricing.CacheOptions{},
				func(string) time.Time { return clocks.Later(t, now, -tt.monotonic, -tt.wall) })
			for range 2 {
				got, err := c.Get(t.Context())
				if tt.err == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, tt.err)
					assert.Empty(t, got)
				}
			}
			assert.Equal(t, tt.loads, s.loads)
		})
	}
}

// The age of rates and of a listing begins with the Age header of the response.
func TestNewCaches(t *testing.T) {
	t.Parallel()
	for age, loads := range map[string]int{"59": 1, "61": 2, "3600": 2} {
		synctest.Test(t, func(t *testing.T) {
			gw := &answers{result: `[]`, age: age}
			rates, err := pricing.NewRatesCache(gw.client(t), pricing.CacheOptions{})
			require.NoError(t, err)
			catalogs, err := pricing.NewCatalogCache(gw.client(t), pricing.CacheOptions{})
			require.NoError(t, err)
			for range 2 {
				_, err = rates.Get(t.Context())
				require.NoError(t, err)
				_, err = catalogs.Get(t.Context())
				require.NoError(t, err)
			}
			assert.Len(t, gw.requests, 2*loads, age)
		})
	}
	const unitless = "o: TTL or MaxStale looks like a number without a unit: write 60 * time.Second"
	const negative, shorter = "o: TTL and MaxStale must not be negative", "o: MaxStale must not be shorter than TTL"
	for o, want := range map[pricing.CacheOptions]string{
		{TTL: -1}: negative, {MaxStale: -1}: negative, {TTL: time.Second, MaxStale: time.Millisecond}: shorter,
		{TTL: 60}: unitless, {MaxStale: time.Microsecond - 1}: unitless,
	} {
		rates, err := pricing.NewRatesCache(nil, o)
		assert.Nil(t, rates)
		assertRefused(t, err, "cache", want)
	}
}
