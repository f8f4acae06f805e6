package pricing

import (
	"context"
	"time"
)

// NewTestCache returns a cache of anything.
func NewTestCache[T any](load func(context.Context) (T, error), o CacheOptions) *Cache[T] {
	return NewTestCacheOf(load, o, func(T) time.Time { return time.Now() })
}

// NewTestCacheOf returns a cache of anything that is as old as asOf says.
func NewTestCacheOf[T any](load func(context.Context) (T, error), o CacheOptions, asOf func(T) time.Time) *Cache[T] {
	cache, err := newCache(o, load, asOf)
	if err != nil {
		panic(err)
	}
	return cache
}

// Age returns how long ago the value was loaded, or 0 without one.
func (c *Cache[T]) Age() time.Duration {
	if current := c.current.Load(); current != nil {
		return current.age()
	}
	return 0
}
