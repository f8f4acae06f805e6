package main

import (
	"context"
	"sync"
	"time"
)

// A cached value is loaded again once it is older than ttl, by one caller while others
// wait, and served up to the age maxStale when that fails.
type cached[T any] struct {
	load          func(context.Context) (T, error)
	ttl, maxStale time.Duration

	mu          sync.Mutex
	value       T
	loaded, due time.Time // zero for never
}

// Get returns the value and its age.
func (c *cached[T]) Get(ctx context.Context) (value T, age time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().After(c.due) {
		if value, err = c.load(ctx); err == nil {
			c.value, c.loaded, c.due = value, time.Now(), time.Now().Add(c.ttl)
		} else if time.Since(c.loaded) > c.maxStale {
			return value, 0, err
		}
	}
	return c.value, time.Since(c.loaded), nil
}

// Expire makes the next Get load the value.
func (c *cached[T]) Expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = time.Time{}
}
