package poll

import (
	"context"
	"sync"
	"time"
)

// A Limiter bounds the polls of many tasks: how many run at a time, and how often one begins. It is
// safe for concurrent use.
type Limiter struct {
	running chan struct{}
	between time.Duration // the beginnings of two polls

	mu   sync.Mutex
	next time.Time // no poll begins earlier
}

// NewLimiter returns a limiter of so many polls at a time, and so long between two beginnings.
func NewLimiter(atOnce int, between time.Duration) *Limiter {
	return &Limiter{running: make(chan struct{}, atOnce), between: between}
}

// Begin waits until a poll may begin, at most until ctx ends, and returns the error of ctx. After
// nil, End must be called.
func (l *Limiter) Begin(ctx context.Context) error {
	select {
	case l.running <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		wait := l.reserve()
		if wait <= 0 && ctx.Err() == nil {
			return nil
		}
		if err := Sleep(ctx, wait); err != nil {
			<-l.running
			return err
		}
	}
}

// reserve takes the next beginning if it is due, or returns how long it is until then.
func (l *Limiter) reserve() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if wait := l.next.Sub(now); wait > 0 {
		return wait
	}
	l.next = now.Add(l.between)
	return 0
}

// End ends a poll, after which the service asks to wait; 0 for nothing.
func (l *Limiter) End(retryAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next := time.Now().Add(retryAfter); next.After(l.next) {
		l.next = next
	}
	<-l.running
}
