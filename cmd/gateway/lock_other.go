//go:build !windows && (!unix || aix || solaris)

package main

import (
	"errors"
	"os"
)

// openLocked refuses: nothing is sent where a file cannot be locked.
func openLocked(string) (*os.File, error) {
	return nil, errors.New("--orders is not supported on this system, which has no flock")
}

// syncDirectory does nothing: openLocked refuses.
func syncDirectory(string) error { return nil }
