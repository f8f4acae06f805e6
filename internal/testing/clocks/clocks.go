// Package clocks has readings of the two clocks of a machine that has been suspended, or whose
// wall clock has been set.
package clocks

import (
	"testing"
	"time"
	"unsafe"
)

// Later returns a time whose monotonic and wall clocks have advanced by different durations since
// start.
func Later(t testing.TB, start time.Time, monotonic, wall time.Duration) time.Time {
	t.Helper()
	end := start.Add(wall)
	reading := (*struct { // as time.Time has it
		wall uint64
		ext  int64 // the monotonic clock, in nanoseconds
		loc  *time.Location
	})(unsafe.Pointer(&end)) // #nosec G103 -- no function of time makes such a reading
	reading.ext += int64(monotonic - wall)
	if end.Sub(start) != monotonic || end.Round(0).Sub(start.Round(0)) != wall {
		t.Fatalf("the reading %v is not %v and %v after %v", end, monotonic, wall, start)
	}
	return end
}
