package gateway

import (
	"fmt"
	"sync"
	"time"
)

// An UnknownLimit is what an [Observer] is told when invoices are held back by
// [WithUnknownLimit], and when they are sent again.
type UnknownLimit struct {
	Reached bool // whether invoices are held back from now on
	Unknown int  // how many in a row had an unknown outcome
}

// WithUnknownLimit bounds how many orders an outage makes unknown. After k invoices in a row with
// an unknown outcome the client sends one at a time, the first after a second and the next ones at
// growing intervals of up to a minute, until one is created or rejected; after one that was not sent, the
// next is tried at once. The others end at once: they are not sent, and match [ErrTooManyUnknown], after
// the [OrderGuard] was asked, so that what it knows of an order is told all the same. Invoices that are being sent when the limit is reached go on.
//
// The count is that of one client. The default is 5; 0 is no limit. A negative k is an
// [*ArgumentError].
func WithUnknownLimit(k int) Option {
	return func(cfg *config) error {
		if k < 0 {
			return badOption("WithUnknownLimit", "must not be negative: 0 is no limit")
		}
		cfg.unknownLimit = k
		return nil
	}
}

const (
	defaultUnknownLimit = 5

	leastProbePause = time.Second
	mostProbePause  = time.Minute
)

// An unknownLimit is the state of [WithUnknownLimit]. It is safe for concurrent use.
type unknownLimit struct {
	most int // 0 for no limit

	mu      sync.Mutex
	unknown int           // invoices in a row
	probes  int           // how many were sent although the limit was reached
	probing int           // the number of the one that is being sent; 0 for none
	pause   time.Duration // between two of these
	next    time.Time     // when the next one may be sent
	told    bool          // whether observers were told last that the limit is reached
	telling bool          // they are being told
}

func (l *unknownLimit) isReached() bool { return l.most > 0 && l.unknown >= l.most }

// begin returns why an invoice may not be sent. If it is sent although the limit is reached, probe is its
// number, otherwise 0.
func (l *unknownLimit) begin() (probe int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.whyNot(); err != nil || !l.isReached() {
		return 0, err
	}
	l.probes++
	l.probing = l.probes
	return l.probing, nil
}

// whyHeldBack returns why no invoice may be sent now, or nil.
func (l *unknownLimit) whyHeldBack() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whyNot()
}

func (l *unknownLimit) whyNot() error {
	left := time.Until(l.next)
	switch {
	case !l.isReached():
		return nil
	case l.probing != 0:
		return fmt.Errorf("%w: %d, and another one is being tried: see what the gateway does, then call again", ErrTooManyUnknown, l.unknown)
	case left > 0:
		return fmt.Errorf("%w: %d, and the next one is tried in %v: see what the gateway does, then call again",
			ErrTooManyUnknown, l.unknown, left.Round(time.Millisecond))
	default:
		return nil
	}
}

// end counts an invoice that begin has permitted. One that was not sent says nothing.
func (l *unknownLimit) end(probe int, outcome Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.isReached()
	isProbe := probe != 0 && probe == l.probing
	if isProbe {
		l.probing = 0
	}
	switch outcome {
	case OutcomeNotSent:
	case OutcomeSucceeded, OutcomeRejected:
		l.unknown, l.probing = 0, 0
	default:
		l.unknown++
		if reached := l.isReached(); reached && !before {
			l.pause, l.next = leastProbePause, time.Now().Add(leastProbePause)
		} else if isProbe {
			l.pause = min(2*l.pause, mostProbePause)
			l.next = time.Now().Add(l.pause)
		}
	}
}

// news returns what the observers do not know yet, if nobody is telling them.
func (l *unknownLimit) news() (u UnknownLimit, untold bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	reached := l.isReached()
	if l.telling || reached == l.told {
		return UnknownLimit{}, false
	}
	l.telling, l.told = true, reached
	return UnknownLimit{Reached: reached, Unknown: l.unknown}, true
}

func (l *unknownLimit) endTelling() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.telling = false
}

// sendWithinLimit sends the invoice unless it is held back by [WithUnknownLimit].
func (c *resultCall[T]) sendWithinLimit() (result T, err error) {
	limit := c.client.limit
	probe, heldBack := limit.begin()
	if heldBack != nil {
		return result, c.transportError(fault{phase: PhaseStart, err: heldBack, again: true})
	}
	err = errPanicked // until the call returns
	defer func() { limit.end(probe, OutcomeOf(err)) }()
	return c.send()
}

// reportLimit tells the observers what has changed. One goroutine does at a time, so that what they are
// told last is what is true.
func (c *call) reportLimit() {
	for u, untold := c.client.limit.news(); untold; u, untold = c.client.limit.news() {
		c.tellLimit(u)
	}
}

func (c *call) tellLimit(u UnknownLimit) {
	defer c.client.limit.endTelling()
	for _, o := range c.client.observers {
		o.UnknownLimit(&c.ctx, u)
	}
}
