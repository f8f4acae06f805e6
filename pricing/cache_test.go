package pricing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/testing/clocks"
	"github.com/cryptogw/gateway/pricing"
)

var errSource = errors.New("the source is down")

// A source is what a cache of the tests loads from, in a bubble. What it does
// may be changed while no load is under way.
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

// count returns how many loads were begun.
func (s *source) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { time.Sleep(d) }

// assertGets asserts that the cache has a value at once, or without that after
// a wait of one load.
func assertGets(t *testing.T, c *pricing.Cache[string], want string, after time.Duration) {
	t.Helper()
	begun := time.Now()
	got, err := c.Get(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, after, time.Since(begun), "how long it took")
}

// assertFails asserts that the cache has no value.
func assertFails(t *testing.T, c *pricing.Cache[string], want error, after time.Duration) {
	t.Helper()
	begun := time.Now()
	got, err := c.Get(t.Context())
	assert.Equal(t, want, err, "the error of the load is not wrapped")
	assert.Empty(t, got)
	assert.Equal(t, after, time.Since(begun), "how long it took")
}

func TestCache_Get_oneLoadForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: time.Second}
		c := pricing.NewTestCache(s.load, pricing.CacheOptions{})
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
		assert.Equal(t, 2, s.count(), "one for the empty cache, one for the expired")
	})
}

// The ages up to which a value is served without a load, and with one that fails.
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
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &source{}
				c := pricing.NewTestCache(s.load, tt.options)
				assertGets(t, c, "value 1", 0)
				s.fails = errSource

				pass(tt.ttl - 1)
				assertGets(t, c, "value 1", 0)
				assert.Equal(t, 1, s.count(), "a value younger than the TTL needs no load")
				pass(1)
				assertGets(t, c, "value 1", 0)
				assert.Equal(t, 2, s.count(), "one as old as the TTL does")
				pass(tt.maxStale - tt.ttl)
				assertGets(t, c, "value 1", 0)
				assert.Equal(t, 3, s.count())
				pass(1)
				assertFails(t, c, errSource, 0)
				assert.Equal(t, tt.maxStale+1, c.Age(), "the value is still there")
			})
		})
	}
}

// A fresh value is served without a load, also to a context that has ended.
func TestCache_Get_fresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		c := pricing.NewTestCache(s.load, pricing.CacheOptions{})
		assertGets(t, c, "value 1", 0)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		got, err := c.Get(over)
		require.NoError(t, err)
		assert.Equal(t, "value 1", got)

		pass(time.Minute)
		got, err = c.Get(over)
		require.NoError(t, err)
		assert.Equal(t, "value 1", got, "an old value is better than none")
		pass(time.Hour)
		got, err = c.Get(over)
		require.ErrorIs(t, err, context.Canceled)
		assert.Empty(t, got)
		require.ErrorIs(t, c.Refresh(over), context.Canceled)
		synctest.Wait()
		assert.Equal(t, 1, s.count(), "nothing is loaded for a context that has ended")
	})
}

// A caller whose context ends gets its error, and the others get the value, also when it is the
// first caller, whose context values the load has.
func TestCache_Get_callersLeave(t *testing.T) {
	t.Parallel()
	type key struct{}
	cancelled := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		return ctx, cancel
	}
	late := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Second)
	}
	for _, tt := range []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		want error
		text string
	}{
		{"a caller is cancelled", cancelled, context.Canceled, "gateway: cache: waiting for a load: context canceled"},
		{"a caller's deadline passes", late, context.DeadlineExceeded, "gateway: cache: waiting for a load: context deadline exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &source{takes: 10 * time.Second}
				c := pricing.NewTestCache(func(ctx context.Context) (string, error) {
					assert.Equal(t, "the first", ctx.Value(key{}))
					return s.load(ctx)
				}, pricing.CacheOptions{})
				ctx, cancel := tt.end(context.WithValue(t.Context(), key{}, "the first"))
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() {
					begun := time.Now()
					got, err := c.Get(ctx)
					assert.Empty(t, got)
					assert.ErrorIs(t, err, tt.want)
					assert.EqualError(t, err, tt.text)
					assert.Equal(t, time.Second, time.Since(begun))
				})
				synctest.Wait()
				for range 10 {
					wg.Go(func() { assertGets(t, c, "value 1", 10*time.Second) })
				}
				wg.Wait()
				assert.Equal(t, 1, s.count())
			})
		})
	}
}

// A load goes on when its last caller leaves, and the next caller shares it, or finds its value.
func TestCache_Get_lastCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: 10 * time.Second}
		c := pricing.NewTestCache(s.load, pricing.CacheOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Refresh(ctx), context.DeadlineExceeded)
		assertGets(t, c, "value 1", 9*time.Second)

		pass(time.Minute)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Refresh(ctx), context.DeadlineExceeded)
		pass(9 * time.Second)
		synctest.Wait()
		assertGets(t, c, "value 2", 0)
		assert.Equal(t, 2, s.count())
	})
}

// After a load that failed, the old value is served at once for as long as
// that took.
func TestCache_Get_pause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		c := pricing.NewTestCache(s.load, pricing.CacheOptions{})
		assertGets(t, c, "value 1", 0)
		pass(time.Minute)
		s.takes, s.fails = 10*time.Second, errSource
		assertGets(t, c, "value 1", 10*time.Second)
		pass(10*time.Second - 1)
		assertGets(t, c, "value 1", 0)
		assert.Equal(t, 2, s.count())
		pass(1)
		assertGets(t, c, "value 1", 10*time.Second)
		assert.Equal(t, 3, s.count())

		s.takes = 0
		pass(10 * time.Second)
		for range 3 {
			assertGets(t, c, "value 1", 0)
		}
		assert.Equal(t, 6, s.count(), "a load that fails at once causes no pause")

		s.fails = nil
		assertGets(t, c, "value 7", 0)
		pass(time.Minute - 1)
		assertGets(t, c, "value 7", 0)
	})
}

// At most half of the time is spent waiting for a service that hangs, until the
// old value is too old.
func TestCache_Get_hangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		c := pricing.NewTestCache(s.load, pricing.CacheOptions{})
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
		assert.Greater(t, c.Age(), time.Hour)
		assert.LessOrEqual(t, c.Age(), time.Hour+31*time.Second, "no pause serves it longer")
		assert.LessOrEqual(t, waited, time.Since(begun)/2)
	})
}

func TestCache_Refresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: time.Second}
		c := pricing.NewTestCache(s.load, pricing.CacheOptions{})
		require.NoError(t, c.Refresh(t.Context()))
		assertGets(t, c, "value 1", 0)

		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { assert.NoError(t, c.Refresh(t.Context())) })
		}
		synctest.Wait()
		assertGets(t, c, "value 1", 0) // it is fresh, so no caller waits
		wg.Wait()
		assertGets(t, c, "value 2", 0)
		assert.Equal(t, 2, s.count(), "a running load is shared")
	})
}

// Refresh returns the error of its load, although there is an old value, which
// callers of Get receive.
func TestCache_Refresh_fails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		c := pricing.NewTestCache(s.load, pricing.CacheOptions{})
		require.NoError(t, c.Refresh(t.Context()))
		s.takes, s.fails = time.Second, errSource
		assert.Same(t, errSource, c.Refresh(t.Context()))
		pass(time.Minute - time.Second - 1)
		assertGets(t, c, "value 1", 0) // it is still fresh
		assert.Equal(t, 2, s.count())

		pass(1)
		var wg sync.WaitGroup
		wg.Go(func() { assert.Same(t, errSource, c.Refresh(t.Context())) })
		wg.Go(func() { assertGets(t, c, "value 1", time.Second) })
		wg.Wait()
		assert.Equal(t, 3, s.count())
		assertGets(t, c, "value 1", 0)
		s.fails = nil
		require.NoError(t, c.Refresh(t.Context()), "a pause does not prevent a refresh")
		assertGets(t, c, "value 4", 0)
	})
}

// A value is as old as the response says that it is, and as the clock that says more.
func TestCaches_age(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, age string
		loads     int    // of two calls
		err       string // of the first
	}{
		{"no age", "", 1, ""},
		{"an age below the TTL", "59", 1, ""},
		{"an age above the TTL", "61", 2, ""},
		{"an age of MaxStale", "3600", 2, ""},
		{"an age above MaxStale", "86400", 2, "the response is from a cache on the way to the gateway, and 24h0m0s old"},
		{"an age that no duration can hold", "99999999999999999999", 2, "the response is from a cache"},
		{"no number", "yesterday", 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var sent []*http.Request
				body := `[{"symbol":"BTC","usd":"1","eur":"1"}]`
				client := through(t, func(req *http.Request) (*http.Response, error) {
					sent = append(sent, req)
					resp := reply(200, `{"message":"Operation was successful.","result":`+body+`,"meta":{}}`)
					resp.Header.Set("Age", tt.age)
					return resp, nil
				})
				rates, err := pricing.NewRatesCache(client, pricing.CacheOptions{})
				require.NoError(t, err)
				for range 2 {
					got, err := rates.Get(t.Context())
					if tt.err != "" {
						require.ErrorContains(t, err, tt.err)
						continue
					}
					require.NoError(t, err)
					assert.LessOrEqual(t, time.Since(got.FetchedAt), time.Hour)
				}
				assert.Len(t, sent, tt.loads)
				for _, req := range sent {
					assert.Equal(t, "no-cache", req.Header.Get("Cache-Control"))
				}

				body = "[]"
				sent = nil
				catalogs := catalogOf(t, client, pricing.CacheOptions{})
				for range 2 {
					_, err := catalogs.Get(t.Context())
					assert.Equal(t, tt.err == "", err == nil)
				}
				assert.Len(t, sent, tt.loads)
			})
		})
	}
}

// While a machine is suspended one clock stands still, and the other can be set back.
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
			s := &source{}
			now := time.Now()
			c := pricing.NewTestCacheOf(s.load, pricing.CacheOptions{MaxStale: 24 * time.Hour},
				func(string) time.Time { return clocks.Later(t, now, -tt.monotonic, -tt.wall) })
			for range 3 {
				_, err := c.Get(t.Context())
				require.NoError(t, err)
			}
			assert.Equal(t, tt.loads, s.count())
		})
	}
}

// What a constructor can check it refuses, and returns no cache.
func TestNewCaches_arguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		o      pricing.CacheOptions
		reason string
	}{
		{"a negative TTL", pricing.CacheOptions{TTL: -1}, "TTL and MaxStale must not be negative"},
		{"a negative MaxStale", pricing.CacheOptions{MaxStale: -1}, "TTL and MaxStale must not be negative"},
		{"a MaxStale below the TTL", pricing.CacheOptions{TTL: 2, MaxStale: 1}, "MaxStale must not be shorter than TTL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			catalogs, err := pricing.NewCatalogCache(nil, tt.o)
			assert.Nil(t, catalogs)
			assertRefused(t, err, "cache", "o", tt.reason)
			rates, err := pricing.NewRatesCache(nil, tt.o)
			assert.Nil(t, rates)
			assertRefused(t, err, "cache", "o", tt.reason)
		})
	}
}

// Callers with random deadlines, over a source that fails at random, each get a value
// that is not too old, an error of the load or that of their own context.
func TestCache_randomCallers(t *testing.T) {
	t.Parallel()
	const maxStale = 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var loads atomic.Int64
		c := pricing.NewTestCache(func(ctx context.Context) (time.Time, error) {
			n := loads.Add(1)
			select {
			case <-time.After(rand.N(time.Second)):
			case <-ctx.Done():
				return time.Time{}, ctx.Err()
			}
			if n%3 != 0 {
				return time.Time{}, errSource
			}
			return time.Now(), nil
		}, pricing.CacheOptions{TTL: time.Second, MaxStale: maxStale})
		var wg sync.WaitGroup
		var got [3]atomic.Int64
		for range 100 {
			wg.Go(func() {
				for range 50 {
					pass(rand.N(2 * time.Second))
					ctx, cancel := context.WithTimeout(t.Context(), rand.N(2*time.Second))
					loaded, err := c.Get(ctx)
					switch {
					case err == nil:
						got[0].Add(1)
						assert.LessOrEqual(t, time.Since(loaded), maxStale)
					case errors.Is(err, context.DeadlineExceeded):
						got[1].Add(1)
						assert.Error(t, ctx.Err())
						assert.True(t, c.Age() == 0 || c.Age() > maxStale, "an old value would have been served")
					default:
						got[2].Add(1)
						assert.Same(t, errSource, err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		pass(time.Second) // until the last load has ended
		for i := range got {
			assert.Positive(t, got[i].Load(), "outcome %d did not occur", i)
		}
	})
}
