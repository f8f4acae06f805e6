package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

var errSource = errors.New("the source is down")

// A source is what a cache of the tests loads from, in a bubble. What it does
// may be changed while no load is under way.
type source struct {
	takes         time.Duration // how long a load takes
	fails         error
	panics        any
	exits         bool // a load ends its goroutine
	uncancellable bool // a load ignores its context

	mu    sync.Mutex
	loads int
	ends  []error // of the contexts of loads that were cut short
}

func (s *source) load(ctx context.Context) (string, error) {
	s.mu.Lock()
	s.loads++
	value := fmt.Sprintf("value %d", s.loads)
	s.mu.Unlock()
	end := ctx.Done()
	if s.uncancellable {
		end = nil
	}
	select {
	case <-time.After(s.takes):
	case <-end:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ends = append(s.ends, ctx.Err())
		return "half a value", ctx.Err()
	}
	switch {
	case s.exits:
		runtime.Goexit()
	case s.panics != nil:
		panic(s.panics)
	case s.fails != nil:
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

// cutShort returns how the contexts ended of the loads that were cut short.
func (s *source) cutShort() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]error(nil), s.ends...)
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { time.Sleep(d) }

// assertGets asserts that the cache has a value at once, or without that after
// a wait of one load.
func assertGets(t *testing.T, c *gateway.Cache[string], want string, after time.Duration) {
	t.Helper()
	begun := time.Now()
	got, err := c.Get(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, after, time.Since(begun), "how long it took")
}

// assertFails asserts that the cache has no value.
func assertFails(t *testing.T, c *gateway.Cache[string], want error, after time.Duration) {
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
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
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
		options       gateway.CacheOptions
		ttl, maxStale time.Duration
	}{
		{"the defaults", gateway.CacheOptions{}, time.Minute, time.Hour},
		{"both are set", gateway.CacheOptions{TTL: time.Second, MaxStale: time.Minute}, time.Second, time.Minute},
		{"both are the same", gateway.CacheOptions{TTL: time.Second, MaxStale: time.Second}, time.Second, time.Second},
		{"the TTL alone", gateway.CacheOptions{TTL: 10 * time.Minute}, 10 * time.Minute, time.Hour},
		{"the TTL alone, above the default MaxStale", gateway.CacheOptions{TTL: 2 * time.Hour}, 2 * time.Hour, 2 * time.Hour},
		{"MaxStale alone", gateway.CacheOptions{MaxStale: 2 * time.Hour}, time.Minute, 2 * time.Hour},
		{"MaxStale alone, below the default TTL", gateway.CacheOptions{MaxStale: time.Second}, time.Second, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &source{}
				c := gateway.NewTestCache(s.load, tt.options)
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
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
		assertGets(t, c, "value 1", 0)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		got, err := c.Get(over)
		require.NoError(t, err)
		assert.Equal(t, "value 1", got)

		pass(time.Minute)
		got, err = c.Get(over)
		require.ErrorIs(t, err, context.Canceled)
		assert.Empty(t, got)
		require.ErrorIs(t, c.Refresh(over), context.Canceled)
		synctest.Wait()
		assert.Equal(t, 1, s.count(), "nothing is loaded for a context that has ended")
	})
}

func TestCache_Get_allocatesNothing(t *testing.T) {
	c := gateway.NewTestCache(func(context.Context) (string, error) { return "value", nil }, gateway.CacheOptions{})
	ctx := context.Background()
	require.NoError(t, c.Refresh(ctx))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = c.Get(ctx) }))
}

// A caller whose context ends gets its error, and the others get the value, also
// when it is the first caller, whose context values the load has.
func TestCache_Get_callersLeave(t *testing.T) {
	t.Parallel()
	type key struct{}
	errShutdown := errors.New("shutting\ndown")
	for _, tt := range []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		want []error
		text string
	}{
		{
			"a caller is cancelled",
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			},
			[]error{context.Canceled},
			"gateway: cache: wait: context canceled",
		},
		{
			"a caller is cancelled with a cause",
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(time.Second, func() { cancel(errShutdown) })
				return ctx, func() { cancel(nil) }
			},
			[]error{context.Canceled, errShutdown},
			"gateway: cache: wait: context canceled: shutting down",
		},
		{
			"a caller's deadline passes",
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
			[]error{context.DeadlineExceeded, gateway.ErrTimeout},
			"gateway: cache: wait: context deadline exceeded",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &source{takes: 10 * time.Second}
				c := gateway.NewTestCache(func(ctx context.Context) (string, error) {
					assert.Equal(t, "the first", ctx.Value(key{}))
					return s.load(ctx)
				}, gateway.CacheOptions{})
				ctx, cancel := tt.end(context.WithValue(t.Context(), key{}, "the first"))
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() {
					begun := time.Now()
					got, err := c.Get(ctx)
					assertInvariants(t, got, err)
					for _, want := range tt.want {
						assert.ErrorIs(t, err, want)
					}
					assert.EqualError(t, err, tt.text)
					assert.False(t, gateway.SafeToRetry(err))
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

// When the context of the last waiting caller ends, the load is cancelled, and the
// next caller starts another.
func TestCache_Get_lastCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: 10 * time.Second}
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		for _, get := range []func() error{
			func() error { _, err := c.Get(ctx); return err },
			func() error { return c.Refresh(ctx) },
		} {
			go func() { assert.ErrorIs(t, get(), context.Canceled) }()
		}
		pass(time.Second)
		assert.Empty(t, s.cutShort())
		cancel()
		synctest.Wait()
		assert.Equal(t, []error{context.Canceled}, s.cutShort(), "the load was ended at once")
		assertGets(t, c, "value 2", 10*time.Second)
	})
}

// The value of an abandoned load is stored, unless a later load has stored one.
func TestCache_Get_lateValue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		takes time.Duration // the second load
		want  string
	}{
		{"it is stored", time.Hour, "value 1"},
		{"it does not replace a later one", time.Second, "value 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &source{takes: 10 * time.Second, uncancellable: true}
				c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
				brief, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := c.Get(brief)
				require.ErrorIs(t, err, context.DeadlineExceeded)

				synctest.Wait()
				s.takes, s.uncancellable = tt.takes, false
				brief, cancel = context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				_, _ = c.Get(brief)
				pass(20 * time.Second)
				assertGets(t, c, tt.want, 0)
				assert.Equal(t, 2, s.count())
			})
		})
	}
}

// The end of an abandoned load does not affect the next one.
func TestCache_Refresh_afterAnAbandonedLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: 10 * time.Second, uncancellable: true}
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Refresh(brief), context.DeadlineExceeded)
		synctest.Wait()
		s.takes = 20 * time.Second
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, c.Refresh(t.Context())) })
		pass(15 * time.Second)
		require.NoError(t, c.Refresh(t.Context()))
		wg.Wait()
		assert.Equal(t, 2, s.count(), "the second is shared, though the first has ended meanwhile")
	})
}

// A slowContext delays its Err, as for a goroutine that is delayed before it takes
// the lock of the cache.
type slowContext struct {
	context.Context
	takes []time.Duration // each call of Err
}

func (c *slowContext) Err() error {
	if len(c.takes) > 0 {
		pass(c.takes[0])
		c.takes = c.takes[1:]
	}
	return c.Context.Err()
}

// Neither does a caller that leaves an abandoned load after its end.
func TestCache_Get_leavesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: 2 * time.Second}
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Get(&slowContext{brief, []time.Duration{0, 3 * time.Second}})
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
		pass(3 * time.Second)
		wg.Go(func() { assert.NoError(t, c.Refresh(t.Context())) }) // until after 5 s
		pass(1500 * time.Millisecond)
		require.NoError(t, c.Refresh(t.Context()))
		wg.Wait()
		assert.Equal(t, 2, s.count(), "the second is shared, though a caller has left the first meanwhile")
	})
}

// A caller that has seen an expired value takes one that is stored meanwhile.
func TestCache_Get_comesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: time.Second}
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
		var wg sync.WaitGroup
		wg.Go(func() {
			begun := time.Now()
			got, err := c.Get(&slowContext{t.Context(), []time.Duration{2 * time.Second}})
			assert.NoError(t, err)
			assert.Equal(t, "value 1", got)
			assert.Equal(t, 2*time.Second, time.Since(begun))
		})
		require.NoError(t, c.Refresh(t.Context()))
		wg.Wait()
		assert.Equal(t, 1, s.count())
	})
}

// An abandoned load does not count as failed, unless the deadlines of its callers
// have passed.
func TestCache_Get_abandoned(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		end   func(context.Context) (context.Context, context.CancelFunc)
		want  string        // just before as much time has passed again
		after time.Duration // of waiting
	}{
		{"a caller who is cancelled", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(4*time.Second, cancel)
			return ctx, cancel
		}, "value 3", time.Second},
		{"a caller whose deadline passes", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 4*time.Second)
		}, "value 1", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &source{}
				c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
				assertGets(t, c, "value 1", 0)
				pass(time.Minute)
				s.takes = time.Hour
				ctx, cancel := tt.end(t.Context())
				defer cancel()
				_, err := c.Get(ctx)
				require.Error(t, err)
				synctest.Wait()
				s.takes = time.Second

				pass(4*time.Second - 1)
				assertGets(t, c, tt.want, tt.after)
				pass(1)
				assertGets(t, c, "value 3", time.Second-tt.after)
			})
		})
	}
}

// After a load that failed, the old value is served at once for as long as
// that took.
func TestCache_Get_pause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
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
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
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

// The context of a load has the values of the caller's, a deadline of its own,
// and ends with the load.
func TestCache_Get_contextOfLoad(t *testing.T) {
	t.Parallel()
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		var used context.Context
		c := gateway.NewTestCache(func(ctx context.Context) (string, error) {
			used = ctx
			deadline, _ := ctx.Deadline()
			assert.Equal(t, 30*time.Second, time.Until(deadline))
			assert.NoError(t, ctx.Err())
			return "value", nil
		}, gateway.CacheOptions{})
		long, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "the caller's"), time.Hour)
		defer cancel()
		_, err := c.Get(long)
		require.NoError(t, err)
		assert.Equal(t, "the caller's", used.Value(key{}))
		assert.ErrorIs(t, used.Err(), context.Canceled)
	})
}

func TestCache_Get_timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: 30*time.Second - 1}
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
		assertGets(t, c, "value 1", 30*time.Second-1)
		pass(24 * time.Hour)
		s.takes = 24 * time.Hour
		assertFails(t, c, context.DeadlineExceeded, 30*time.Second)
		assert.Equal(t, []error{context.DeadlineExceeded}, s.cutShort())
	})
}

func TestCache_Refresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: time.Second}
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
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
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
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

func TestCache_Age(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: time.Second}
		c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
		assert.Zero(t, c.Age(), "there is no value")
		pass(time.Second)
		assert.Zero(t, c.Age())
		require.NoError(t, c.Refresh(t.Context()))
		assert.Zero(t, c.Age(), "it counts from the end of the load")
		pass(time.Minute)
		assert.Equal(t, time.Minute, c.Age())
		s.fails = errSource
		assertGets(t, c, "value 1", time.Second)
		assert.Equal(t, time.Minute+time.Second, c.Age(), "a load that fails does not change the age")
		s.fails = nil
		require.NoError(t, c.Refresh(t.Context()))
		assert.Zero(t, c.Age())
	})
}

// A panic or Goexit of load reaches all waiting callers, with or without an old
// value, and no others. The cache is unchanged.
func TestCache_panics(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		breaks func(*source)
		want   any
	}{
		{"load panics", func(s *source) { s.panics = errSource }, errSource},
		{"load ends its goroutine", func(s *source) { s.exits = true }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &source{takes: time.Second}
				c := gateway.NewTestCache(s.load, gateway.CacheOptions{})
				tt.breaks(s)
				assertPassedOn(t, tt.want, func() { _, _ = c.Get(t.Context()) })
				s.panics, s.exits = nil, false
				assertGets(t, c, "value 2", time.Second)
				pass(time.Minute)

				tt.breaks(s)
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() { assertPassedOn(t, tt.want, func() { _, _ = c.Get(t.Context()) }) })
					wg.Go(func() { assertPassedOn(t, tt.want, func() { _ = c.Refresh(t.Context()) }) })
				}
				wg.Wait()
				assert.Equal(t, 3, s.count())

				s.uncancellable = true
				brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				assert.ErrorIs(t, c.Refresh(brief), context.DeadlineExceeded)
				pass(time.Second) // no caller is left to panic
				synctest.Wait()
				s.panics, s.exits = nil, false
				assertGets(t, c, "value 5", time.Second)
			})
		})
	}
}

// What a constructor can check it refuses, and returns no cache.
func TestNewCaches_arguments(t *testing.T) {
	t.Parallel()
	c := newClient(t, "http://localhost")
	for _, tt := range []struct {
		name   string
		client *gateway.Client
		o      gateway.CacheOptions
		want   [2]string
	}{
		{"no client", nil, gateway.CacheOptions{}, [2]string{"client", "was not made by New"}},
		{"a client that New did not make", new(gateway.Client), gateway.CacheOptions{}, [2]string{"client", "was not made by New"}},
		{"a negative TTL", c, gateway.CacheOptions{TTL: -1}, [2]string{"o", "TTL and MaxStale must not be negative"}},
		{"a negative MaxStale", c, gateway.CacheOptions{MaxStale: -1}, [2]string{"o", "TTL and MaxStale must not be negative"}},
		{"a MaxStale below the TTL", c, gateway.CacheOptions{TTL: 2, MaxStale: 1}, [2]string{"o", "MaxStale must not be shorter than TTL"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			catalogs, err := gateway.NewCatalog(tt.client, tt.o)
			assert.Nil(t, catalogs)
			assertRefused(t, err, "cache", tt.want[0], tt.want[1])
			rates, err := gateway.NewRatesCache(tt.client, tt.o)
			assert.Nil(t, rates)
			assertRefused(t, err, "cache", tt.want[0], tt.want[1])
		})
	}
}

func TestCache_arguments(t *testing.T) {
	t.Parallel()
	load := func(context.Context) (string, error) { return "value", nil }
	var none context.Context
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		cache *gateway.Cache[string]
		want  string
	}{
		{"no context", none, gateway.NewTestCache(load, gateway.CacheOptions{}), "ctx: must not be nil"},
		{"no cache", t.Context(), nil, "cache: was not made by NewCatalog or NewRatesCache"},
		{"a cache that no constructor made", t.Context(), new(gateway.Cache[string]), "cache: was not made by NewCatalog or NewRatesCache"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.cache.Get(tt.ctx)
			assertInvariants(t, got, err)
			assertRefused(t, err, "cache", strings.Split(tt.want, ":")[0], "")
			assert.EqualError(t, err, "gateway: cache: "+tt.want)
			assert.EqualError(t, tt.cache.Refresh(tt.ctx), "gateway: cache: "+tt.want)
			assert.Zero(t, tt.cache.Age())
		})
	}
	t.Run("no context, though the value is fresh", func(t *testing.T) {
		t.Parallel()
		c := gateway.NewTestCache(load, gateway.CacheOptions{})
		require.NoError(t, c.Refresh(t.Context()))
		got, err := c.Get(none)
		assertInvariants(t, got, err)
		assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	})
}

// Callers with random deadlines, over a source that fails at random, each get a value
// that is not too old, an error of the load or that of their own context.
func TestCache_randomCallers(t *testing.T) {
	t.Parallel()
	const maxStale = 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var loads atomic.Int64
		c := gateway.NewTestCache(func(ctx context.Context) (time.Time, error) {
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
		}, gateway.CacheOptions{TTL: time.Second, MaxStale: maxStale})
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
					default:
						got[2].Add(1)
						assert.Same(t, errSource, err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		for i := range got {
			assert.Positive(t, got[i].Load(), "outcome %d did not occur", i)
		}
	})
}
