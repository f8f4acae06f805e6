//go:build unix

package gateway_test

import "syscall"

// processorTime is what the program has used, in nanoseconds.
func processorTime() int64 {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
