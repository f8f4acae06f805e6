package pricing

import (
	"context"
	"time"
)

// NewTestCache returns a cache of anything, which is as old as asOf says, or as its load.
func NewTestCache[T any](load func(context.Context) (T, error), o CacheOptions, asOf func(T) time.Time) *Cache[T] {
	if asOf == nil {
		asOf = func(T) time.Time { return time.Now() }
	}
	cache, err := newCache(o, load, asOf)
	if err != nil {
		panic(err)
	}
	return cache
}
