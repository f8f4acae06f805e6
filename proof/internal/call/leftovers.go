package call

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Leftovers counts goroutines and descriptors, and returns the check that there
// are no more of them later. It is for tests beside which nothing runs.
func Leftovers(t *testing.T) (check func()) {
	t.Helper()
	runtime.GC()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	return func() {
		t.Helper()
		Until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
		Until(t, "no descriptor is left", func() bool { return descriptors() <= files })
	}
}

// descriptors is how many files this process has open, where the system shows it.
func descriptors() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return len(open)
}

// Until waits for a condition, and fails the test if it never holds.
func Until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			stacks := make([]byte, 1<<16)
			require.Fail(t, what, "%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}
