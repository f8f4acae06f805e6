package attempt

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"
)

// A Template is the body of a request that is a write: each attempt makes a [Body] of it. The
// Template itself is never read.
type Template struct {
	Bytes   []byte
	Expires time.Time // no attempt begins to send it after this; zero for never

	// Begin decides whether an attempt may send it, at the first read of its [Body]. Either Begin returns true and
	// the body counts as read, or nothing of it is ever read. It is called once an attempt, and must not wait.
	// With Begin, an attempt ends at once with its context, before the first read and after it. Without Begin,
	// cancelling does not end it after the first read, and a deadline does.
	Begin func() bool

	// IsRead is set when an attempt has ended, also by a panic: something of its [Body] was read. Otherwise nothing
	// was, nor will be.
	IsRead bool
}

// Read implements [io.Reader].
func (t *Template) Read([]byte) (int, error) { return 0, errSealed }

// Close does nothing.
func (t *Template) Close() error { return nil }

// tooLate returns why no attempt begins any more, or nil.
func (t *Template) tooLate(caller context.Context) error {
	if HasPassed(t.Expires) {
		return ErrExpired
	}
	if caller.Err() != nil {
		return context.Cause(caller)
	}
	return nil
}

// A state of a Body: fresh, read and stopped, or fresh and sealed.
type state int

const (
	fresh state = iota
	read
	sealed  // never read
	stopped // read, and not any more
)

var errSealed = errors.New("gateway: the attempt is over")

// A Body is the body of one attempt of a write: a latch that proves whether any of
// it was read. What was never read was never sent, whatever an error reports, and once
// sealed it never will be.
type Body struct {
	template *Template
	caller   context.Context // no reading begins after it has ended

	mu    sync.Mutex
	state state
	text  bytes.Reader
}

// load gives a fresh Body the text of an attempt for a caller.
func (b *Body) load(t *Template, caller context.Context) {
	b.template, b.caller = t, caller
	b.text.Reset(t.Bytes)
}

// Read implements [io.Reader]. It marks the body as read before it returns a byte.
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == fresh {
		b.state = sealed
		if b.mayBegin() {
			b.state = read
		}
	}
	if b.state != read {
		return 0, errSealed
	}
	return b.text.Read(p)
}

func (b *Body) mayBegin() bool {
	t := b.template
	return !HasPassed(t.Expires) && b.caller.Err() == nil && (t.Begin == nil || t.Begin())
}

// Close does nothing: closing is not reading.
func (b *Body) Close() error { return nil }

// isRead reports whether any of it was read.
func (b *Body) isRead() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == read || b.state == stopped
}

// Seal reports whether the body was never read, and ensures that it never is.
func (b *Body) Seal() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == fresh {
		b.state = sealed
	}
	return b.state == sealed
}

// Stop ends the reading: a transport that outlives its attempt gets nothing more of the body.
func (b *Body) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case fresh:
		b.state = sealed
	case read:
		b.state = stopped
	}
}

// HasPassed reports whether a time has passed by either clock: one stands still while the
// machine is suspended, and the other can be set back. The zero time never passes.
func HasPassed(t time.Time) bool {
	if t.IsZero() {
		return false
	}
	now := time.Now()
	return !now.Before(t) || !now.Round(0).Before(t.Round(0))
}
