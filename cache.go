package gateway

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cryptogw/gateway/internal/caller"
	"github.com/cryptogw/gateway/internal/redact"
)

// CacheOptions set how long a value is served. A zero field takes its default, which
// is adjusted to the field that is set.
type CacheOptions struct {
	TTL      time.Duration // the age up to which a value is served without a load; default 1 min
	MaxStale time.Duration // the greatest age at which a value is served when a load fails, not below TTL; default 1 h
}

// loadTimeout bounds one load, which no single caller's deadline bounds.
const loadTimeout = 30 * time.Second

const opCache = "cache"

func (o CacheOptions) withDefaults() CacheOptions {
	stalest := cmp.Or(o.MaxStale, max(time.Hour, o.TTL))
	return CacheOptions{cmp.Or(o.TTL, min(time.Minute, stalest)), stalest}
}

// check returns what is wrong with o, or "".
func (o CacheOptions) check() string {
	switch {
	case o.TTL < 0 || o.MaxStale < 0:
		return "TTL and MaxStale must not be negative"
	case o.MaxStale != 0 && o.MaxStale < o.TTL:
		return "MaxStale must not be shorter than TTL"
	default:
		return ""
	}
}

// A Cache holds what was loaded last: the listing, from [NewCatalog], or the exchange
// rates, from [NewRatesCache]. Make it once, share it, and do not copy it. It is safe for
// concurrent use. It has no goroutine in the background: a load runs in one of its own,
// while callers wait for it.
//
// The context of a load has the values of the context of the caller that began it, but
// not its end: it ends after 30 seconds, or when the last waiting caller has left. When a
// load panics, in an [Observer] or a RoundTripper, every waiting caller panics with
// an error whose text has the value and the stack, and which wraps the value if that is one.
//
// All callers get the same value, so none may change what it holds.
type Cache[T any] struct {
	load    func(context.Context) (T, error)
	options CacheOptions
	keyring *redact.Keyring // of the client that loads

	current atomic.Pointer[entry[T]] // nil before the first value; written under mu

	mu    sync.Mutex
	call  *cacheCall[T] // the load that callers share; nil when there is none
	loads int           // how many were begun
}

// An entry is a value that was loaded. It never changes.
type entry[T any] struct {
	value  T
	number int           // of its load
	loaded time.Time     // when the load ended
	fresh  time.Duration // below which age it is served without a load
}

func (e *entry[T]) age() time.Duration { return time.Since(e.loaded) }

// A cacheCall is a load that is in flight or finished.
type cacheCall[T any] struct {
	number  int // loads are numbered as they begin
	begun   time.Time
	cancel  context.CancelFunc
	waiting int // callers; under the cache's mu

	// The result, to be read once done is closed.
	done  chan struct{}
	ended caller.End
	value T
	err   error
	stale *entry[T] // what is served when the load has failed; nil for nothing
}

// newCache returns an empty cache of what load returns by means of a client.
func newCache[T any](client *Client, o CacheOptions, load func(context.Context) (T, error)) (*Cache[T], error) {
	if name, reason := client.check(context.Background()); reason != "" {
		return nil, badCache(name, reason)
	}
	if reason := o.check(); reason != "" {
		return nil, badCache("o", reason)
	}
	return &Cache[T]{load: load, options: o.withDefaults(), keyring: client.keyring}, nil
}

func badCache(name, reason string) *ArgumentError {
	return &ArgumentError{Operation: opCache, Name: name, Reason: reason}
}

// Get returns the value. One younger than the TTL is returned at once, without a lock
// or an allocation, even when ctx has ended. Otherwise it is loaded: callers that come
// meanwhile share the load.
//
// When the load fails, or is abandoned because the deadlines of its callers have passed,
// an old value is returned with a nil error as long as it is not older than MaxStale, and
// is then returned at once, without a load, for as long as the failed load took.
// [Cache.Age] returns its age, and [Cache.Refresh] the error behind it. A load that its 30
// seconds have ended fails with an error that matches [context.DeadlineExceeded], as the
// deadline of ctx does: ctx.Err distinguishes the two.
//
// Without such a value, the error is that of the call that loads: [Client.CoinNetworks] or
// [Client.ExchangeRates]. When ctx ends, the error is a
// [*TransportError] that matches the context's; the load goes on for the other waiting
// callers. A nil ctx, and a cache that no constructor made, are an [*ArgumentError].
func (c *Cache[T]) Get(ctx context.Context) (T, error) {
	if c != nil && ctx != nil {
		if current := c.current.Load(); current != nil && current.age() < current.fresh {
			return current.value, nil
		}
	}
	return c.wait(ctx, false)
}

// Refresh loads the value, however young the current one is, or shares the load that is
// in flight. When the load fails it returns the error, and the current value stays. The
// errors are those of [Cache.Get].
func (c *Cache[T]) Refresh(ctx context.Context) error {
	_, err := c.wait(ctx, true)
	return err
}

// Age returns how long ago the current value was loaded, or 0 without one.
func (c *Cache[T]) Age() time.Duration {
	if c == nil {
		return 0
	}
	current := c.current.Load()
	if current == nil {
		return 0
	}
	return current.age()
}

// wait waits for a load. A value that has become fresh is enough, unless a load is
// required.
func (c *Cache[T]) wait(ctx context.Context, refresh bool) (T, error) {
	var none T
	if refusal := c.refuse(ctx); refusal != nil {
		return none, refusal
	}
	if ctx.Err() != nil {
		return none, c.contextError(ctx, PhaseStart)
	}
	call, fresh := c.join(ctx, refresh)
	if fresh != nil {
		return fresh.value, nil
	}
	select {
	case <-call.done:
		return call.result(refresh)
	case <-ctx.Done():
		c.leave(call, ctx.Err())
		return none, c.contextError(ctx, PhaseWait)
	}
}

// refuse returns what is wrong with the cache or the call, or nil.
func (c *Cache[T]) refuse(ctx context.Context) *ArgumentError {
	switch {
	case c == nil || c.load == nil:
		return badCache("cache", "was not made by NewCatalog or NewRatesCache")
	case ctx == nil:
		return badCache("ctx", "must not be nil")
	default:
		return nil
	}
}

// contextError is the error of a caller whose context has ended.
func (c *Cache[T]) contextError(ctx context.Context, phase Phase) error {
	keys := c.keyring.Redactor()
	return &TransportError{
		Operation: opCache, Phase: phase, Err: contextError(ctx, keys), decision: decision{outcome: OutcomeNotSent},
		timeout: errors.Is(ctx.Err(), context.DeadlineExceeded),
	}
}

// join adds a caller to the load in flight, or to a new one. If another load has
// finished since the caller looked, its value is returned.
func (c *Cache[T]) join(ctx context.Context, refresh bool) (*cacheCall[T], *entry[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if current := c.current.Load(); !refresh && current != nil && current.age() < current.fresh {
		return nil, current
	}
	if c.call == nil {
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout) // #nosec G118 -- run calls it
		c.loads++
		c.call = &cacheCall[T]{number: c.loads, begun: time.Now(), cancel: cancel, done: make(chan struct{})}
		go c.run(shared, c.call)
	}
	c.call.waiting++
	return c.call, nil
}

// leave removes a caller from a load. The last one cancels it, and later callers begin
// another.
func (c *Cache[T]) leave(call *cacheCall[T], why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.waiting--
	if call.waiting > 0 || c.call != call {
		return
	}
	c.call = nil
	if errors.Is(why, context.DeadlineExceeded) {
		c.serveStale(call)
	}
	call.cancel()
}

// run loads, and wakes the waiting callers. The deferred function also handles a panic,
// and a Goexit, whose only trace is that load has not returned.
func (c *Cache[T]) run(ctx context.Context, call *cacheCall[T]) {
	defer func() {
		call.ended.Catch(recover())
		c.finish(call)
		call.cancel()
		close(call.done) // last, so that nothing runs when the callers return
	}()
	call.value, call.err = c.load(ctx)
	call.ended.Returned = true
}

// finish stores the result of a load. An abandoned one may still return a value, but its
// error proves nothing about the service.
func (c *Cache[T]) finish(call *cacheCall[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	shared := c.call == call
	if shared {
		c.call = nil
	}
	current := c.current.Load()
	switch {
	case !call.ended.Returned:
	case call.err == nil && (current == nil || current.number < call.number):
		c.current.Store(&entry[T]{value: call.value, number: call.number, loaded: time.Now(), fresh: c.options.TTL})
	case call.err != nil && shared:
		call.stale = c.serveStale(call)
	}
}

// serveStale delays the next load by as long as a failed one took, if there is a value to
// serve until then, which it returns.
func (c *Cache[T]) serveStale(call *cacheCall[T]) *entry[T] {
	current := c.current.Load()
	if current == nil || current.age() > c.options.MaxStale {
		return nil
	}
	later := *current
	later.fresh = max(current.fresh, min(current.age()+time.Since(call.begun), c.options.MaxStale))
	c.current.Store(&later)
	return &later
}

// result is what a waiting caller gets. It ends as load has ended: a panic is raised here,
// where the caller can recover.
func (call *cacheCall[T]) result(refresh bool) (T, error) {
	call.ended.Pass()
	switch {
	case call.err == nil:
		return call.value, nil
	case call.stale != nil && !refresh:
		return call.stale.value, nil
	default:
		return *new(T), call.err
	}
}
