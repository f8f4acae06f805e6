package sqlguard

import (
	"testing"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/held"
)

// However the wait of a caller ends, the guard has the outcome of its order.
func TestGuard_contextEnds(t *testing.T) {
	t.Parallel()
	held.Test(t, held.HTTP1, func(t *testing.T) gateway.OrderGuard { return newSQLite(t).guard(t) })
}
