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

	mu     sync.Mutex
	value  T
	loaded time.Time // zero for never
}

// Get returns the value.
func (c *cached[T]) Get(ctx context.Context) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.loaded) < c.ttl {
		return c.value, nil
	}
	if err := c.refresh(ctx); err != nil && time.Since(c.loaded) > c.maxStale {
		return *new(T), err
	}
	return c.value, nil
}

// Refresh loads the value, however young the current one is.
func (c *cached[T]) Refresh(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refresh(ctx)
}

func (c *cached[T]) refresh(ctx context.Context) error {
	value, err := c.load(ctx)
	if err == nil {
		c.value, c.loaded = value, time.Now()
	}
	return err
}

// Age returns how long ago the value was loaded, or 0 without one.
func (c *cached[T]) Age() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded.IsZero() {
		return 0
	}
	return time.Since(c.loaded)
}
