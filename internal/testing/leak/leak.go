// Package leak fails the tests of a package that leave a goroutine behind.
package leak

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"testing"
	"time"
)

// Main runs the tests of a package and exits, with 1 if a goroutine is left that was not there
// before. It is for a TestMain.
func Main(m *testing.M) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt) // package signal keeps a goroutine from here on, which fuzzing would begin
	signal.Stop(signals)
	before := runtime.NumGoroutine()
	code := m.Run()
	if !endsWithin(10*time.Second, before) {
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n\n%s\n", stacks[:runtime.Stack(stacks, true)])
		code = max(code, 1)
	}
	os.Exit(code)
}

// endsWithin reports whether no more than n goroutines are left before long: a goroutine that is done
// may not have exited yet.
func endsWithin(long time.Duration, n int) bool {
	for end := time.Now().Add(long); runtime.NumGoroutine() > n; runtime.Gosched() {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
