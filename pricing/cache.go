package pricing

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
)

// CacheOptions set how long a value is served. A zero field takes a default that fits the other. A duration of 2
// to 999 nanoseconds is refused: it looks like a number without a unit.
type CacheOptions struct {
	TTL      time.Duration // up to this age without a load; default 1 min
	MaxStale time.Duration // up to this age when a load fails, not below TTL; default 1 h
}

// MarshalJSON writes the durations in nanoseconds, also for encoding/json/v2. Do not embed CacheOptions in a struct
// that is encoded: its MarshalJSON would hide the other fields.
func (o *CacheOptions) MarshalJSON() ([]byte, error) {
	type plain CacheOptions
	return json.Marshal((*plain)(o))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (o *CacheOptions) UnmarshalJSON(text []byte) error {
	type plain CacheOptions
	return json.Unmarshal(text, (*plain)(o))
}

// loadTimeout bounds one load, which no single caller's deadline bounds.
const loadTimeout = 30 * time.Second

// A Cache holds the last loaded value, for any number of callers. Do not copy it.
//
// Callers share a load, which has the values of the first caller's context. It takes at most 30 seconds, and goes on
// when callers leave.
type Cache[T any] struct {
	load    func(context.Context) (T, error)
	asOf    func(T) time.Time // from when a value is
	options CacheOptions

	mu     sync.Mutex
	last   *flight[T] // the last load that succeeded; nil before the first
	flight *flight[T] // the load that callers share; nil when there is none
}

// A flight is a load. Its result may be read once done is closed, and does not change then.
type flight[T any] struct {
	done  chan struct{}
	value T
	err   error
	asOf  time.Time     // from when the value is
	fresh time.Duration // below which age it is served without a load; guarded by mu
}

// age returns how old a value is by the clock that says more: one stands still while the machine is suspended, and the
// other can be set back.
func (f *flight[T]) age() time.Duration {
	now := time.Now()
	return max(now.Sub(f.asOf), now.Round(0).Sub(f.asOf.Round(0)))
}

// NewRatesCache returns an empty cache of [gateway.Client.ExchangeRates].
func NewRatesCache(client *gateway.Client, o CacheOptions) (*Cache[*gateway.ExchangeRates], error) {
	return newCache(o,
		func(ctx context.Context) (*gateway.ExchangeRates, error) { return client.ExchangeRates(ctx) },
		func(r *gateway.ExchangeRates) time.Time { return r.FetchedAt })
}

// newCache returns an empty cache of the values that load returns.
func newCache[T any](o CacheOptions, load func(context.Context) (T, error), asOf func(T) time.Time) (*Cache[T], error) {
	switch {
	case o.TTL < 0 || o.MaxStale < 0:
		return nil, refused("cache", "o", "TTL and MaxStale must not be negative")
	case o.MaxStale != 0 && o.MaxStale < o.TTL:
		return nil, refused("cache", "o", "MaxStale must not be shorter than TTL")
	case isWithoutUnit(o.TTL), isWithoutUnit(o.MaxStale):
		return nil, refused("cache", "o", "TTL or MaxStale looks like a number without a unit: write 60 * time.Second")
	}
	stalest := cmp.Or(o.MaxStale, max(time.Hour, o.TTL))
	options := CacheOptions{TTL: cmp.Or(o.TTL, min(time.Minute, stalest)), MaxStale: stalest}
	return &Cache[T]{load: load, asOf: asOf, options: options}, nil
}

// isWithoutUnit reports whether a duration cannot be meant. A nanosecond can be, by a test that waits for nothing.
func isWithoutUnit(d time.Duration) bool { return d > time.Nanosecond && d < time.Microsecond }

// Get returns the value: at once, if it is younger than the TTL, or else after a load. When the
// load fails or ctx ends, Get returns a value that is not older than MaxStale, without an error;
// after a failed load it does so at once, for as long as the load took.
//
// The age of a value counts from its FetchedAt, by the clock that says more. A load that returns a value older than
// MaxStale, such as from the cache of a proxy, counts as failed.
//
// Without such a value, Get returns the error of the client, or an error that wraps ctx.Err().
//
// All callers have the same value: do not change it, or what it points to.
func (c *Cache[T]) Get(ctx context.Context) (T, error) {
	value, err := c.wait(ctx, false)
	if err == nil {
		return value, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && c.last.age() <= c.options.MaxStale {
		return c.last.value, nil
	}
	return value, err
}

// Refresh loads the value, however young it is, or shares the load in flight, and returns its
// error. The old value stays then.
func (c *Cache[T]) Refresh(ctx context.Context) error {
	_, err := c.wait(ctx, true)
	return err
}

// wait waits for a load. A value that is fresh is enough, unless a load is required.
func (c *Cache[T]) wait(ctx context.Context, refresh bool) (value T, err error) {
	if f := c.join(ctx, refresh); f != nil {
		select {
		case <-f.done:
			return f.value, f.err
		case <-ctx.Done():
		}
	}
	return value, fmt.Errorf("gateway: cache: waiting for a load: %w", ctx.Err())
}

// join returns the load of a fresh value, the load in flight, or a new one; nil if there is none and ctx has ended.
func (c *Cache[T]) join(ctx context.Context, refresh bool) *flight[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !refresh && c.last != nil && c.last.age() < c.last.fresh {
		return c.last
	}
	if c.flight == nil && ctx.Err() == nil {
		c.flight = &flight[T]{done: make(chan struct{})}
		go c.run(context.WithoutCancel(ctx), c.flight)
	}
	return c.flight
}

// run loads, stores the result, and wakes the callers that wait. A load that fails delays the next
// one by as long as it took, if there is a value to serve until then.
func (c *Cache[T]) run(ctx context.Context, f *flight[T]) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	begun := time.Now()
	value, err := c.load(ctx)

	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(f.done)
	c.flight = nil
	if err == nil {
		f.asOf, f.fresh = c.asOf(value), c.options.TTL
		if f.age() > c.options.MaxStale {
			err = fmt.Errorf("gateway: cache: the response is older than MaxStale, which is %v", c.options.MaxStale)
		}
	}
	f.err = err
	switch {
	case err == nil:
		f.value = value
		c.last = f
	case c.last != nil:
		c.last.fresh = max(c.last.fresh, min(c.last.age()+time.Since(begun), c.options.MaxStale))
	}
}
