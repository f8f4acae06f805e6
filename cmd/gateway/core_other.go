//go:build !unix || aix || solaris

package main

// withoutCoreFile does nothing on these systems.
func withoutCoreFile() {}
