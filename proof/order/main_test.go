package order

import (
	"flag"
	"io"
	"log"
	"testing"

	"go.uber.org/goleak"

	"github.com/cryptogw/gateway/internal/testing/invariant"
)

// canary is the key of every client here. No text may show it.
const canary = invariant.Key

// TestMain sets how many schedules TestRapid draws, unless -rapid.checks does, and fails
// when the tests leave a goroutine behind.
func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "5000")
	_ = flag.Set("rapid.nofailfile", "true")
	flag.Parse()
	log.SetOutput(io.Discard) // what net/http logs about the faults
	goleak.VerifyTestMain(m)
}
