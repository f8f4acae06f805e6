package attempt

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A Template is the body of a request that is a write: each attempt makes a [Body] of it. The
// Template itself is never read.
type Template struct {
	Bytes   []byte
	Expires time.Time // no attempt begins to send it after this; zero for never
}

// Read implements [io.Reader].
func (t *Template) Read([]byte) (int, error) { return 0, errSealed }

// Close does nothing.
func (t *Template) Close() error { return nil }

// States of a Body: fresh, read and stopped, or fresh and sealed.
const (
	fresh int32 = iota
	read
	sealed  // never read
	stopped // read, and not any more
)

var errSealed = errors.New("gateway: the attempt is over")

// A Body is the body of one attempt of a write: a latch that proves whether any of
// it was read. What was never read was never sent, whatever an error reports, and once
// sealed it never will be.
type Body struct {
	state   atomic.Int32
	expires time.Time       // no reading begins after this; zero for never
	caller  context.Context // no reading begins after it has ended; nil for none
	text    bytes.Reader
}

// Read implements [io.Reader]. It marks the body as read before it returns a byte.
func (b *Body) Read(p []byte) (int, error) {
	if HasPassed(b.expires) || b.caller != nil && b.caller.Err() != nil {
		b.state.CompareAndSwap(fresh, sealed)
	}
	if !b.state.CompareAndSwap(fresh, read) && b.state.Load() != read {
		return 0, errSealed
	}
	return b.text.Read(p)
}

// Close does nothing: closing is not reading.
func (b *Body) Close() error { return nil }

// Seal reports whether the body was never read, and ensures that it never is.
func (b *Body) Seal() bool {
	return b.state.CompareAndSwap(fresh, sealed) || b.state.Load() == sealed
}

// Stop ends the reading: a transport that outlives its attempt gets nothing more of the body.
func (b *Body) Stop() {
	if !b.Seal() {
		b.state.CompareAndSwap(read, stopped)
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
