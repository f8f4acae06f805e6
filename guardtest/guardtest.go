// Package guardtest tests implementations of [gateway.OrderGuard]. It tests the promises of the interface as rules, and in a race
// of processes that are killed.
//
//	func TestGuard(t *testing.T) {
//		guardtest.Run(t, guardtest.Guard{
//			New:    func(t *testing.T) gateway.OrderGuard { return newGuard(t) },
//			Store:  func(g gateway.OrderGuard) string { return g.(*Guard).address },
//			Reopen: func(store string) (gateway.OrderGuard, error) { return open(store) },
//			Expire: func(store string) error { return endLeases(store) },
//		})
//	}
package guardtest

import (
	"os"
	"slices"
	"testing"

	"github.com/cryptogw/gateway"
)

// A Guard is an implementation that is tested. Only New is required. Without the other functions, Run skips the rules
// about restarts, processes and leases, and logs that.
type Guard struct {
	// New returns a guard over a new store that has no order. All orders of the rules have a merchant, of any name.
	New func(t *testing.T) gateway.OrderGuard

	// Store returns a text that names the store of a guard that New has returned.
	Store func(g gateway.OrderGuard) string

	// Reopen returns another guard over a store, as after a restart. The processes that the test starts call
	// it, too. The test closes the guard that it returns, if that is an io.Closer.
	Reopen func(store string) (gateway.OrderGuard, error)

	// Expire ends the leases of all orders of a store, as the passage of time does.
	Expire func(store string) error
}

// Run tests a guard. If it has the methods Order, Pending, Resolve and Forget of a [gateway.MemoryGuard], their rules are
// tested too. For the race of processes the program of the test starts itself again with the name of t, so the code
// before Run should be cheap. The variable GUARDTEST_KILLS sets how many processes are killed. The default is 10.
func Run(t *testing.T, g Guard) {
	if os.Getenv(asWorker) != "" {
		work(t, g)
		return
	}
	all := slices.Concat(rulesOf(stepRules), rules)
	if _, ok := g.New(t).(keeper); ok {
		all = slices.Concat(all, rulesOf(peopleSteps))
	}
	for _, r := range all {
		t.Run(r.name, func(t *testing.T) { r.check(newStore(t, g)) })
	}
}
