package gateway

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// CacheOptions say how long a value is good for. A zero field takes its
// default, which gives way to the field that is set.
type CacheOptions struct {
	TTL      time.Duration // the age up to which a value is served without a load; default 1 min
	MaxStale time.Duration // the greatest age at which a value is served when a load fails, not below TTL; default 1 h
}

// loadTimeout bounds one load, of which no single caller's deadline does.
const loadTimeout = 30 * time.Second

const opCache = "cache"

func (o CacheOptions) withDefaults() CacheOptions {
	stalest := cmp.Or(o.MaxStale, max(time.Hour, o.TTL))
	return CacheOptions{cmp.Or(o.TTL, min(time.Minute, stalest)), stalest}
}

// check says what is wrong with o, or "".
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

// A Cache keeps the last value that a function has loaded. Make it with
// [NewCache] and do not copy it. It is safe for concurrent use. It has no
// goroutine in the background: a load runs in one of its own, while there are
// callers who wait for it.
//
// A value is handed to all callers as it is, so none may change what it holds.
type Cache[T any] struct {
	load    func(context.Context) (T, error)
	options CacheOptions
	refusal *ArgumentError // of the arguments of NewCache
	ring    *keyring       // of the client, if it is one that loads

	held atomic.Pointer[entry[T]] // nil before the first value; written under mu

	mu     sync.Mutex
	flight *flight[T] // the load that callers share; nil when there is none
	loads  int        // how many were begun
}

// An entry is a value that is held. It never changes.
type entry[T any] struct {
	value  T
	number int           // of its load
	loaded time.Time     // when the load ended
	fresh  time.Duration // below which age it is served without a load
}

func (e *entry[T]) age() time.Duration { return time.Since(e.loaded) }

// A flight is a load and the callers who wait for it.
type flight[T any] struct {
	number  int // loads are numbered as they begin
	begun   time.Time
	cancel  context.CancelFunc
	waiting int // callers; under the cache's mu

	// What came of it, to be read once done is closed.
	done     chan struct{}
	returned bool // load has returned: it did not panic
	panicked any
	value    T
	err      error
	old      *entry[T] // what is served when the load has failed; nil for nothing
}

// NewCache returns an empty cache of what load returns. A nil load and bad
// options are an [*ArgumentError] of every call of Get and Refresh.
//
// The context of load has the values of the context of the caller for whom it
// was begun, but not its end: it ends after 30 seconds, or when the last caller
// who waits has left. Load must return soon after that, and must not use the
// cache itself. When it panics, everyone who waits does, with the same value.
func NewCache[T any](load func(context.Context) (T, error), o CacheOptions) *Cache[T] {
	c := &Cache[T]{load: load, options: o.withDefaults()}
	if load == nil {
		c.refusal = &ArgumentError{Op: opCache, Name: "load", Reason: "must not be nil"}
	} else if reason := o.check(); reason != "" {
		c.refusal = &ArgumentError{Op: opCache, Name: "o", Reason: reason}
	}
	return c
}

// Get returns the value. One younger than the TTL is returned at once, without
// a lock or an allocation, even when ctx has ended. Otherwise it is loaded:
// callers who come meanwhile share the load.
//
// When the load fails, an old value is returned with a nil error as long as it
// is not older than MaxStale; [Cache.Age] tells. It is then returned at once,
// without a load, for as long as the failed load took: with a service that
// hangs at most half of the time is spent waiting. A load that is given up
// because its callers ran out of time counts as failed, too.
//
// The error behind an old value is not returned: [Cache.Refresh] returns it. A
// load that the 30 seconds of [NewCache] end fails with an error that matches
// [context.DeadlineExceeded], too: ctx.Err tells which it was.
//
// Without such a value, the error is the one that load returned. When ctx ends,
// the error is a [*TransportError] that matches the context's; the load goes on
// for the others who wait. A nil ctx is an [*ArgumentError].
func (c *Cache[T]) Get(ctx context.Context) (T, error) {
	if c != nil && ctx != nil {
		if held := c.held.Load(); held != nil && held.age() < held.fresh {
			return held.value, nil
		}
	}
	return c.wait(ctx, false)
}

// Refresh loads the value, however young the one that is held, or shares the
// load that is under way. When the load fails it returns the error, and the
// value that is held stays. The errors are those of [Cache.Get].
func (c *Cache[T]) Refresh(ctx context.Context) error {
	_, err := c.wait(ctx, true)
	return err
}

// Age returns how long ago the value that is held was loaded. It is 0 when
// none is.
func (c *Cache[T]) Age() time.Duration {
	if c == nil {
		return 0
	}
	held := c.held.Load()
	if held == nil {
		return 0
	}
	return held.age()
}

// wait waits for a load. A value that is fresh by now does too, unless a load
// was asked for.
func (c *Cache[T]) wait(ctx context.Context, refresh bool) (T, error) {
	var none T
	if refusal := c.refuse(ctx); refusal != nil {
		return none, refusal
	}
	if ctx.Err() != nil {
		return none, c.left(ctx, PhaseStart)
	}
	f, fresh := c.join(ctx, refresh)
	if fresh != nil {
		return fresh.value, nil
	}
	select {
	case <-f.done:
		return f.result(refresh)
	case <-ctx.Done():
		c.leave(f, ctx.Err())
		return none, c.left(ctx, PhaseWait)
	}
}

// refuse says what is wrong with the cache or the call, or nil.
func (c *Cache[T]) refuse(ctx context.Context) *ArgumentError {
	switch {
	case c != nil && c.refusal != nil:
		return c.refusal
	case c == nil || c.load == nil:
		return &ArgumentError{Op: opCache, Name: "cache", Reason: "was not made by NewCache or Client.Catalog"}
	case ctx == nil:
		return &ArgumentError{Op: opCache, Name: "ctx", Reason: "must not be nil"}
	default:
		return nil
	}
}

// left is the error of a caller whose context has ended.
func (c *Cache[T]) left(ctx context.Context, phase string) error {
	var keys redactor
	if c.ring != nil {
		keys = c.ring.keys()
	}
	return &TransportError{
		Op: opCache, Phase: phase, Err: ended(ctx, keys),
		timeout: errors.Is(ctx.Err(), context.DeadlineExceeded),
	}
}

// join adds a caller to the load under way, or to a new one. Another load may
// have ended since the caller looked: what it brought is then returned.
func (c *Cache[T]) join(ctx context.Context, refresh bool) (*flight[T], *entry[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.held.Load(); !refresh && held != nil && held.age() < held.fresh {
		return nil, held
	}
	if c.flight == nil {
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout) // #nosec G118 -- run calls it
		c.loads++
		c.flight = &flight[T]{number: c.loads, begun: time.Now(), cancel: cancel, done: make(chan struct{})}
		go c.run(shared, c.flight)
	}
	c.flight.waiting++
	return c.flight, nil
}

// leave takes a caller from a load. The last one ends it, and those who come
// later begin another.
func (c *Cache[T]) leave(f *flight[T], why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiting--
	if f.waiting > 0 || c.flight != f {
		return
	}
	c.flight = nil
	if errors.Is(why, context.DeadlineExceeded) {
		c.postpone(f)
	}
	f.cancel()
}

// run makes a load and tells those who wait. The deferred function also meets a
// panic, and a Goexit, which leaves no trace but that load has not returned.
func (c *Cache[T]) run(ctx context.Context, f *flight[T]) {
	defer func() {
		f.panicked = recover()
		c.land(f)
		f.cancel()
		close(f.done) // the last thing, so that callers leave nothing behind
	}()
	f.value, f.err = c.load(ctx)
	f.returned = true
}

// land keeps what came of a load. One that was given up may still bring a
// value, but its error says nothing of the service.
func (c *Cache[T]) land(f *flight[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	shared := c.flight == f
	if shared {
		c.flight = nil
	}
	held := c.held.Load()
	switch {
	case !f.returned:
	case f.err == nil && (held == nil || held.number < f.number):
		c.held.Store(&entry[T]{value: f.value, number: f.number, loaded: time.Now(), fresh: c.options.TTL})
	case f.err != nil && shared:
		f.old = c.postpone(f)
	}
}

// postpone puts the next load off by as long as a failed one took, if there is
// a value to serve until then, which it returns.
func (c *Cache[T]) postpone(f *flight[T]) *entry[T] {
	held := c.held.Load()
	if held == nil || held.age() > c.options.MaxStale {
		return nil
	}
	later := *held
	later.fresh = max(held.fresh, min(held.age()+time.Since(f.begun), c.options.MaxStale))
	c.held.Store(&later)
	return &later
}

// result is what a caller who has waited gets. A panic of load is thrown here,
// where somebody can recover from it.
func (f *flight[T]) result(refresh bool) (T, error) {
	var none T
	switch {
	case f.returned && f.err == nil:
		return f.value, nil
	case f.returned && f.old != nil && !refresh:
		return f.old.value, nil
	case f.returned:
		return none, f.err
	case f.panicked == nil:
		panic("gateway: cache: load ended its goroutine")
	default:
		panic(f.panicked)
	}
}
