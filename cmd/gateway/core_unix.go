//go:build unix && !aix && !solaris

package main

import "syscall"

// withoutCoreFile keeps a crash from writing the memory of the process, which has the key.
func withoutCoreFile() {
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}
