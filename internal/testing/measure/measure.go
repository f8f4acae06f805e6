// Package measure measures what a test allocates.
package measure

import (
	"runtime"
	"sync"
)

// Allocated is how many bytes the whole program allocates while a function runs. It is for tests
// beside which nothing runs.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Slack is by how much more is allocated where a pool does not keep all that it is given, as under
// the race detector.
func Slack() float64 {
	for range 100 {
		var pool sync.Pool
		pool.Put(new(int))
		if pool.Get() == nil {
			return 2
		}
	}
	return 1
}
