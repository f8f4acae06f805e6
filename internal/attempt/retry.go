package attempt

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// IsRetryableStatus reports whether a read that got this status may do better when it is
// retried.
func IsRetryableStatus(status int) bool {
	switch status {
	case 408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529:
		return true
	}
	return false
}

// isHostFailure reports whether a status says that a host does not work, so that another host of the
// same name may.
func isHostFailure(status int) bool {
	return status == 502 || status == 503 || status == 504
}

// IsThrottled reports whether a status asks for fewer requests.
func IsThrottled(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// After reads the Retry-After of a response: seconds, rounded up, or a date, which counts from the response's own Date
// if it has one, so that a wrong local clock does not matter. It returns 0 if there is none, or it cannot be read.
func After(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if whole, part, _ := strings.Cut(text, "."); whole != "" && strings.Trim(whole+part, "0123456789") == "" {
		return atLeast(whole, strings.Trim(part, "0") != "")
	}
	until, err := parseTime(text)
	if err != nil {
		return 0
	}
	now, err := parseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(until.Sub(now), 0)
}

// atLeast returns so many seconds, or one more: the longest duration if there are too many.
func atLeast(digits string, more bool) time.Duration {
	seconds, err := strconv.ParseInt(digits, 10, 64)
	if more && err == nil {
		seconds++
	}
	if err != nil || seconds > int64(math.MaxInt64/time.Second) {
		return math.MaxInt64
	}
	return time.Duration(seconds) * time.Second
}

// parseTime reads a date of a header, also with UTC instead of GMT, as Go's own layout for these dates writes it.
func parseTime(text string) (time.Time, error) {
	if before, isUTC := strings.CutSuffix(text, " UTC"); isUTC {
		text = before + " GMT"
	}
	return http.ParseTime(text)
}

// A Policy limits the attempts of a call. Every field is above zero.
type Policy struct {
	MaxAttempts   int // the first included
	BaseDelay     time.Duration
	MaxDelay      time.Duration
	MaxRetryAfter time.Duration // a longer Retry-After ends the call
}

// throttledBaseDelay is the least base of a delay after [IsThrottled].
const throttledBaseDelay = time.Second

// delay draws the wait after the n-th attempt with full jitter:
// U[0,1)·min(MaxDelay, base·2ⁿ⁻¹).
func (p *Policy) delay(attempts int, throttled bool) time.Duration {
	base := p.BaseDelay
	if throttled {
		base = min(max(base, throttledBaseDelay), p.MaxDelay)
	}
	ceiling := p.MaxDelay
	if shift := attempts - 1; base <= p.MaxDelay>>shift {
		ceiling = base << shift
	}
	return rand.N(max(ceiling, 1)) // #nosec G404 -- jitter need not be secret
}

// Tokens of a [Budget].
const (
	budgetSize    = 500
	retryCost     = 14
	throttledCost = 5
)

// A Budget bounds the retries of a client: each takes tokens, a success refunds
// them. A service that fails everything soon gets first attempts only. The zero
// value is full. It is safe for concurrent use.
type Budget struct {
	spent atomic.Int64
}

// Take takes tokens, if there are so many left.
func (b *Budget) Take(cost int64) bool {
	for {
		spent := b.spent.Load()
		if spent+cost > budgetSize {
			return false
		}
		if b.spent.CompareAndSwap(spent, spent+cost) {
			return true
		}
	}
}

// Refund gives tokens back, but no more than were taken.
func (b *Budget) Refund(cost int64) {
	for {
		spent := b.spent.Load()
		if spent == 0 || cost == 0 {
			return
		}
		if b.spent.CompareAndSwap(spent, max(spent-cost, 0)) {
			return
		}
	}
}
