package gatewaytest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A limit is the number of requests that the server admits in a window of its
// clock. The zero limit admits all.
type limit struct {
	requests int
	per      time.Duration
	end      time.Time // of the window
	left     int       // the number of requests that the window still admits
}

// SetRateLimit limits the server to the given number of requests in each window
// of its clock (see [Server.Now]). It refuses the others with status 429, the
// documented error envelope and a Retry-After header: the seconds until the
// window ends, rounded up. The duration of a window is per; it begins with the
// first request after the end of the previous one. Requests of every kind count.
//
// A refused request is not carried out. The journal records it with status 429
// and the fault "rate-limit"; injected faults stay queued for a request that is
// admitted.
//
// Each call replaces the previous limit and starts a new window. The limit is off
// when requests is 0, whatever per is. SetRateLimit panics if requests is
// negative, or if it is positive and per is not.
func (s *Server) SetRateLimit(requests int, per time.Duration) {
	if requests < 0 || requests > 0 && per <= 0 {
		panic(fmt.Sprintf("gatewaytest: SetRateLimit with %d requests in %v, want 0 or more in more than 0s", requests, per))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit{requests: requests, per: per}
}

// admit counts a request. It returns 0 if it admits the request, and otherwise the time until the
// window ends.
func (l *limit) admit(now time.Time) time.Duration {
	if l.requests == 0 {
		return 0
	}
	if !now.Before(l.end) {
		l.end, l.left = now.Add(l.per), l.requests
	}
	if l.left == 0 {
		return l.end.Sub(now)
	}
	l.left--
	return 0
}

// overLimit is the fault of a request over the limit. The wait until the window
// ends is above zero.
func overLimit(wait time.Duration) Fault {
	f := FaultRefuse(http.StatusTooManyRequests, "too many requests")
	f.name = "rate-limit"
	return f.RetryAfter(strconv.FormatInt(int64((wait-1)/time.Second)+1, 10))
}
