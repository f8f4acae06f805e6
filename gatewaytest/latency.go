package gatewaytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// A Latency is how long a server waits between an operation and its response, so that a
// client with a shorter timeout does not learn what was carried out. It is uniform from
// Min to Max, except for the share Tail of the requests, from 0 to 1, which wait for
// TailWait. The zero Latency is none.
type Latency struct {
	Min      time.Duration // the shortest wait of the others
	Max      time.Duration // the longest wait of the others, which equals Min for a fixed one
	Tail     float64       // the share of the requests that wait for TailWait
	TailWait time.Duration // how long these wait
}

// ParseLatency parses "20ms" (fixed), "20ms-80ms" (uniform), and either of them with a
// tail: "20ms-80ms,1%:2s".
func ParseLatency(text string) (l Latency, err error) {
	body, tail, hasTail := strings.Cut(text, ",")
	low, high, isRange := strings.Cut(body, "-")
	if l.Min, err = time.ParseDuration(low); err == nil {
		l.Max = l.Min
		if isRange {
			l.Max, err = time.ParseDuration(high)
		}
	}
	if err == nil && hasTail {
		share, wait, _ := strings.Cut(tail, ":")
		if l.Tail, err = ParseShare(share); err == nil {
			l.TailWait, err = time.ParseDuration(wait)
		}
	}
	if err != nil || l.check() != nil {
		return Latency{}, errors.New("write a latency like 50ms, 20ms-80ms or 20ms-80ms,1%:2s")
	}
	return l, nil
}

// String returns the form that [ParseLatency] parses.
func (l Latency) String() string {
	text := l.Min.String()
	if l.Max != l.Min {
		text += "-" + l.Max.String()
	}
	if l.Tail > 0 {
		text += "," + formatShare(l.Tail) + ":" + l.TailWait.String()
	}
	return text
}

func (l Latency) check() error {
	if l.Min < 0 || l.Max < l.Min || l.TailWait < 0 || !(l.Tail >= 0 && l.Tail <= 1) {
		return fmt.Errorf("latency %v, want 0 <= Min <= Max, 0 <= TailWait, and a Tail from 0 to 1", l)
	}
	return nil
}

// SetLatency sets the latency, from the next request on. It panics unless Min is at least
// 0, Max at least Min, TailWait at least 0 and Tail from 0 to 1.
func (s *Server) SetLatency(l Latency) {
	if err := l.check(); err != nil {
		panic("gatewaytest: SetLatency with " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = l
}

// delay waits for the latency of one request.
func (s *Server) delay(x responder) {
	s.mu.Lock()
	wait := s.latency.draw(s.random)
	s.mu.Unlock()
	if wait > 0 {
		x.wait(wait)
	}
}

func (l Latency) draw(random *rand.Rand) time.Duration {
	if l.Tail > 0 && random.Float64() < l.Tail {
		return l.TailWait
	}
	if l.Max == l.Min {
		return l.Min
	}
	return l.Min + time.Duration(random.Int64N(int64(l.Max-l.Min)))
}

// ParseShare parses a share of requests such as "5%" or "0.5%".
func ParseShare(text string) (float64, error) {
	digits, isShare := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseFloat(digits, 64)
	if !isShare || err != nil || !(percent >= 0 && percent <= 100) {
		return 0, errors.New("write a share of the requests like 5%")
	}
	return percent / 100, nil
}

func formatShare(share float64) string {
	return strconv.FormatFloat(share*100, 'f', -1, 64) + "%"
}
