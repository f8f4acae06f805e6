//go:build !unix

package gateway_test

// processorTime is not known here.
func processorTime() int64 { return 0 }
