package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A RetryPolicy says how often and how patiently a call is tried. A zero field
// takes the default that its comment names. Durations are never negative.
//
// Reads are tried again after a fault that may pass. An invoice is tried again
// only while it is proved that no byte of it left.
type RetryPolicy struct {
	MaxAttempts    int           // 1 to 10, the first included; 1 turns retries off; default 3
	BaseDelay      time.Duration // the first wait is drawn between 0 and this; default 100 ms, after 429 and 503 at least 1 s
	MaxDelay       time.Duration // no drawn wait is longer; not below BaseDelay; default 5 s
	MaxRetryAfter  time.Duration // the longest Retry-After that is waited for; default 30 s
	AttemptTimeout time.Duration // of one attempt of a read, its body included; default 15 s
	InvoiceTimeout time.Duration // of one attempt of a create-invoice, its body included; default 60 s
}

const (
	defaultMaxAttempts    = 3
	mostAttempts          = 10
	defaultBaseDelay      = 100 * time.Millisecond
	throttledBaseDelay    = time.Second
	defaultMaxDelay       = 5 * time.Second
	defaultMaxRetryAfter  = 30 * time.Second
	defaultAttemptTimeout = 15 * time.Second
	defaultInvoiceTimeout = time.Minute
)

// check says what is wrong with p, or "".
func (p RetryPolicy) check() string {
	switch {
	case p == RetryPolicy{}:
		return "sets nothing: leave the option out for the defaults, or set MaxAttempts from 1 to 10"
	case p.MaxAttempts < 0 || p.MaxAttempts > mostAttempts:
		return "MaxAttempts must be from 1 to 10"
	case min(p.BaseDelay, p.MaxDelay, p.MaxRetryAfter, p.AttemptTimeout, p.InvoiceTimeout) < 0:
		return "durations must not be negative"
	}
	if p.MaxDelay != 0 && p.BaseDelay > p.MaxDelay {
		return "BaseDelay must not be longer than MaxDelay"
	}
	return ""
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	maxDelay := cmp.Or(p.MaxDelay, max(defaultMaxDelay, p.BaseDelay))
	return RetryPolicy{
		MaxAttempts:    cmp.Or(p.MaxAttempts, defaultMaxAttempts),
		BaseDelay:      cmp.Or(p.BaseDelay, min(defaultBaseDelay, maxDelay)),
		MaxDelay:       maxDelay,
		MaxRetryAfter:  cmp.Or(p.MaxRetryAfter, defaultMaxRetryAfter),
		AttemptTimeout: cmp.Or(p.AttemptTimeout, defaultAttemptTimeout),
		InvoiceTimeout: cmp.Or(p.InvoiceTimeout, defaultInvoiceTimeout),
	}
}

// delay draws the wait after so many attempts: full jitter, as in
// U[0,1)·min(cap, base·2ⁿ).
func (p RetryPolicy) delay(attempts int, throttled bool) time.Duration {
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

// passingStatus reports whether a read that got this status may do better when
// it is tried again.
func passingStatus(status int) bool {
	switch status {
	case 408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529:
		return true
	}
	return false
}

func throttles(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// passingFault reports whether an attempt without an answer may do better when
// it is tried again.
func passingFault(err error, phase string, traced bool) bool {
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup):
		return !lookup.IsNotFound
	case phase == PhaseProxy && connectStatus(err) == http.StatusProxyAuthRequired:
		return false
	case ioFault(err):
		return true
	case phase == PhaseTLS:
		return false // a certificate or a protocol version: it will not change
	default:
		// Faults that net/http itself reports have no types. Those that a
		// caller's RoundTripper makes up before net/http is reached, such as
		// the refusal of a circuit breaker, are final.
		return traced && !strings.Contains(err.Error(), "response headers exceeded")
	}
}

// ioFault reports whether err is the network's: a connection that broke or
// took too long, or an error that calls itself temporary.
func ioFault(err error) bool {
	var number syscall.Errno
	if errors.As(err, &number) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return true
	}
	var temporary interface{ Temporary() bool }
	return timedOut(err) || errors.As(err, &temporary) && temporary.Temporary()
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// connectStatus is the status with which a proxy refused to connect, or 0.
// net/http gives only its text.
func connectStatus(err error) int {
	for status := 400; status < 600; status++ {
		if text := http.StatusText(status); text != "" && err.Error() == text {
			return status
		}
	}
	return 0
}

// retryAfter reads what an answer asks to wait: seconds, or a date, which
// counts from the answer's own Date where it has one, so that a wrong clock
// here does not matter. It is 0 when the answer asks nothing that can be read.
func retryAfter(h http.Header) time.Duration {
	asked := h.Get("Retry-After")
	if asked == "" {
		return 0
	}
	if allDigits([]byte(asked)) {
		seconds, err := strconv.ParseInt(asked, 10, 64)
		if err != nil || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64
		}
		return time.Duration(seconds) * time.Second
	}
	until, err := http.ParseTime(asked)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(until.Sub(now), 0)
}

// Tokens of the retry budget.
const (
	budgetSize    = 500
	retryCost     = 14
	throttledCost = 5
)

// A budget bounds the retries of a client: each takes tokens, a success gives
// back. A service that fails everything soon gets first attempts only. The
// zero value is full.
type budget struct {
	spent atomic.Int64
}

// take takes cost tokens, if there are so many.
func (b *budget) take(cost int64) bool {
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

// refund gives back what the last retry of a successful call took, or one
// token for a call that needed none.
func (b *budget) refund(cost int64) {
	for {
		spent := b.spent.Load()
		if spent == 0 {
			return
		}
		if b.spent.CompareAndSwap(spent, max(spent-max(cost, 1), 0)) {
			return
		}
	}
}

// States of a latch. It leaves fresh once, and for good.
const (
	latchFresh int32 = iota
	latchRead
	latchSealed
)

var errSealed = errors.New("gateway: the attempt is over")

// A latch is the body of one attempt of a write. It proves whether any of it
// was taken: what was never read was never sent, whatever an error says, and
// once it is sealed it never will be.
type latch struct {
	state atomic.Int32
	body  bytes.Reader
}

func newLatch(body []byte) *latch {
	l := &latch{}
	l.body.Reset(body)
	return l
}

// Read marks the latch as read before it gives anything out.
func (l *latch) Read(p []byte) (int, error) {
	if !l.state.CompareAndSwap(latchFresh, latchRead) && l.state.Load() == latchSealed {
		return 0, errSealed
	}
	return l.body.Read(p)
}

// Close does nothing: the latch tells reading from not reading.
func (l *latch) Close() error { return nil }

// Len returns the length of the body, as long as nothing of it was read.
func (l *latch) Len() int { return l.body.Len() }

// seal reports whether the latch was never read, and sees to it that it never
// is.
func (l *latch) seal() bool {
	return l.state.CompareAndSwap(latchFresh, latchSealed) || l.state.Load() == latchSealed
}
