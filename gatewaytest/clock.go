package gatewaytest

import (
	"fmt"
	"math"
	"time"
)

// Now returns the time of the server's clock: [time.Now], moved forward by the
// durations passed to [Server.Advance]. In a bubble of testing/synctest it
// follows the time of the bubble. The journal, the invoices and the Date header
// of every response take their times from it.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// Advance moves the server's clock forward by d. Changes that are due by this
// clock take effect, see [Server.SetStatusAfter] and [Server.SetRateLimit]. The
// clocks of the client and of the test do not change: no timer fires early, and
// [FaultSlowBody] is no faster. The clock is never ahead by more than the largest
// [time.Duration], about 292 years. Advance panics if d is negative.
func (s *Server) Advance(d time.Duration) {
	if d < 0 {
		panic(fmt.Sprintf("gatewaytest: Advance with %v, want 0 or more", d))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += min(d, math.MaxInt64-s.ahead)
}

// now is Now with the lock held.
func (s *Server) now() time.Time {
	return time.Now().Add(s.ahead)
}
