// Package bubble runs many schedules of a test in bubbles of [synctest].
package bubble

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Test is [synctest.Test] on one processor: on several, two timers of a bubble that fire at one
// instant can crash the race detector, which has one context for all of them (go.dev/issue/78156).
// It is not for parallel tests.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, f)
}
