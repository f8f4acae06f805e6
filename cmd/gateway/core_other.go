//go:build !unix || aix || solaris

package main

func withoutCoreFile() {}
