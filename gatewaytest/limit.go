package gatewaytest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A limit is how many requests the server answers in a window of its clock. The
// zero limit is none.
type limit struct {
	requests int
	per      time.Duration
	end      time.Time // of the window
	left     int       // how many requests the window still has room for
}

// SetRateLimit lets the server answer so many requests in each window of its clock
// (see [Server.Now]) and refuse the rest of them with 429, the documented error
// envelope and a Retry-After: the whole seconds until the window ends, rounded
// up. A window lasts as long as per says and begins with the first request after
// the one before it. Requests of every kind count.
//
// A request that is refused is not carried out. It stands in the journal with
// status 429 and "rate limit" for its trouble; those that were injected wait for
// a request that is let in.
//
// Every call replaces the limit of the one before and begins anew; 0 requests
// turn it off, whatever per is. SetRateLimit panics when requests is negative, and
// when there are some and per is not above zero.
func (s *Server) SetRateLimit(requests int, per time.Duration) {
	if requests < 0 || requests > 0 && per <= 0 {
		panic(fmt.Sprintf("gatewaytest: SetRateLimit with %d requests in %v, want 0 or more in more than 0s", requests, per))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit{requests: requests, per: per}
}

// admit counts a request. For one too many it returns how long the window lasts
// from now, for others 0.
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

// overLimit is the trouble of a request that has that long, which is above zero,
// to wait.
func overLimit(wait time.Duration) Fault {
	t := Refuse(http.StatusTooManyRequests, "too many requests")
	t.name = "rate limit"
	return t.RetryAfter(strconv.FormatInt(int64((wait-1)/time.Second)+1, 10))
}
