package guardtest_test

import (
	"testing"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/guardtest"
)

func ExampleRun() {
	_ = func(t *testing.T) { // TestGuard
		guardtest.Run(t, guardtest.Guard{
			New: func(*testing.T) gateway.OrderGuard { return new(gateway.MemoryGuard) },
			// Store, Reopen and Expire, for a guard that outlives its process
		})
	}
	// Output:
}
