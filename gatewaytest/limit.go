package gatewaytest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A limit is the number of requests that the server admits in a window of its clock. The zero limit admits all.
type limit struct {
	requests int
	per      time.Duration
	end      time.Time // of the window
	left     int       // how many requests it still admits
}

// SetRateLimit limits the server to the given number of requests, of every kind, in each window of its clock (see
// [Server.Now]). A window begins with the first request after the previous one, and ends after per. The server refuses the
// other requests with status 429, and with the seconds until the window ends as Retry-After. The journal records them with
// the fault "rate-limit"; injected faults stay queued.
//
// Each call replaces the limit and starts a new window; requests of 0 switches it off. SetRateLimit panics if requests is
// negative, or if it is positive and per is not.
func (s *Server) SetRateLimit(requests int, per time.Duration) {
	if requests < 0 || requests > 0 && per <= 0 {
		panic(fmt.Sprintf("gatewaytest: SetRateLimit with %d requests in %v, want 0 or more in more than 0s", requests, per))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit{requests: requests, per: per}
}

// refuses counts a request, and returns a fault if the request exceeds the limit.
func (l *limit) refuses(now time.Time) (_ Fault, over bool) {
	if !now.Before(l.end) {
		l.end, l.left = now.Add(l.per), l.requests
	}
	if l.requests == 0 || l.left > 0 {
		l.left--
		return Fault{}, false
	}
	f := FaultRefuse(http.StatusTooManyRequests, "too many requests")
	f.name = "rate-limit"
	wait := l.end.Sub(now)
	return f.RetryAfter(strconv.FormatInt(int64((wait-1)/time.Second)+1, 10)), true
}
