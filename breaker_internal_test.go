package gateway

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A breaker keeps the merchants that have unknown orders, and of each as many orders as open a circuit.
func TestBreaker_bounded(t *testing.T) {
	t.Parallel()
	b := &breaker{limit: 3, circuits: map[string]*circuit{}}
	for _, last := range []Outcome{OutcomeSucceeded, OutcomeRejected} {
		for m := range 100 {
			merchant := fmt.Sprint("shop ", m)
			for _, outcome := range []Outcome{OutcomeNotSent, OutcomeUnknown, last} {
				b.end(merchant, "A-1", false, outcome)
			}
		}
		assert.Empty(t, b.circuits)
	}
	for i := range 100 {
		b.end("shop 1", fmt.Sprint("A-", i), false, OutcomeUnknown)
	}
	assert.Equal(t, []string{"A-97", "A-98", "A-99"}, b.circuits["shop 1"].unknown)
}
