package call

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
)

// A Summary counts how calls ended. It is safe for concurrent use.
type Summary struct {
	mu     sync.Mutex
	counts map[gateway.Outcome]int
	wrong  []string
}

// Add counts r, and keeps its violations.
func (s *Summary) Add(name string, r Result, more ...string) {
	wrong := append(r.Violations(), more...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[gateway.Outcome]int{}
	}
	s.counts[r.Outcome()]++
	if len(wrong) > 0 {
		s.wrong = append(s.wrong, name+": "+strings.Join(wrong, "; "))
	}
}

// Count is how many calls ended in an outcome.
func (s *Summary) Count(outcome gateway.Outcome) int { return s.counts[outcome] }

// Wrong is what was wrong with the calls.
func (s *Summary) Wrong() []string { return s.wrong }

// Total is how many calls there were.
func (s *Summary) Total() (n int) {
	for _, count := range s.counts {
		n += count
	}
	return n
}

// String returns the counts.
func (s *Summary) String() string {
	return fmt.Sprintf("%d calls: %d succeeded, %d not sent, %d rejected, %d conflicts, %d unknown", s.Total(),
		s.counts[gateway.OutcomeSucceeded], s.counts[gateway.OutcomeNotSent],
		s.counts[gateway.OutcomeRejected], s.counts[gateway.OutcomeConflict], s.counts[gateway.OutcomeUnknown])
}

// Verify fails the test with the first few of what was wrong.
func (s *Summary) Verify(t *testing.T) {
	t.Helper()
	const most = 10
	for _, wrong := range s.wrong[:min(len(s.wrong), most)] {
		assert.Fail(t, wrong)
	}
	assert.Empty(t, s.wrong[min(len(s.wrong), most):], "and more")
}
