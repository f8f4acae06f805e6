package gatewaytest

import (
	"fmt"
	"math"
	"time"
)

// Now returns the time on the server's clock: that of [time.Now], moved forward
// by what [Server.Advance] was given. In a bubble of testing/synctest it runs
// with the bubble. The journal, the invoices and the Date header of every answer
// have their times from it.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// Advance moves the server's clock forward. Whatever is planned for a time, see
// [Server.SetStatusAfter] and [Server.SetRateLimit], takes it from there. The
// clocks of the client and of the test stay where they are, so nobody who waits
// is woken, and [SlowBody] is no faster. The clock goes 292 years ahead at most.
// Advance panics when d is negative.
func (s *Server) Advance(d time.Duration) {
	if d < 0 {
		panic(fmt.Sprintf("gatewaytest: Advance by %v, want 0 or more", d))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += min(d, math.MaxInt64-s.ahead)
}

// now is Now for those who hold the lock.
func (s *Server) now() time.Time {
	return time.Now().Add(s.ahead)
}
