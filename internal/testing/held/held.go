// Package held tests what the end of a caller's context does to an invoice that is held up, at every stage of its way.
package held

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/internal/testing/invariant"
)

// The ways to the gateway.
const (
	HTTP1    = "HTTP/1.1"
	HTTP2    = "HTTP/2"
	InMemory = "in memory"
)

// A stage is where an invoice is held up.
type stage string

const (
	beforeBegin  stage = "before Begin"
	inBegin      stage = "while Begin waits"
	inDial       stage = "while it dials"
	wroteHeader  stage = "the header is written and the body unread"
	halfSent     stage = "half of the body is read"
	allSent      stage = "the body is sent"
	headReceived stage = "the header of the response is read"
	halfReceived stage = "half of the body of the response is read"
	inEnd        stage = "while End records"
)

// isBegun reports whether something of the invoice was read for sending.
func (s stage) isBegun() bool {
	return s != beforeBegin && s != inBegin && s != inDial && s != wroteHeader
}

// How the wait of a caller ends.
const (
	byDeadline       = "a deadline"
	byClientTimeout  = "the Timeout of the http.Client"
	byCancel         = "cancelling"
	byCancelDeadline = "cancelling, then the deadline"
)

// The times of a test. A held invoice is late for the deadline, or for InvoiceTimeout too. No multiple of the deadline
// is another time, nor the end of a Begin: of two things that happen at once either can be the first.
const (
	deadline = 1100 * time.Millisecond
	timeout  = 20 * time.Second // InvoiceTimeout
	patience = 10 * time.Second // of a Begin whose caller has left
)

// Test tests a guard, which is made in a bubble. A deadline, the Timeout of the http.Client and cancelling end a call
// while nothing of the invoice was read for sending. Afterwards a deadline ends the wait alone, and cancelling nothing:
// the next call gets the invoice, or learns that its outcome is unknown.
func Test(t *testing.T, proto string, guard func(*testing.T) gateway.OrderGuard) {
	for _, at := range []stage{
		beforeBegin, inBegin, inDial, wroteHeader, halfSent, allSent, headReceived, halfReceived, inEnd,
	} {
		for _, how := range []string{byDeadline, byClientTimeout, byCancel, byCancelDeadline} {
			for _, holds := range []time.Duration{3500 * time.Millisecond, time.Hour} {
				if at == inEnd {
					holds = min(holds, 9*time.Second) // it has 10 seconds
				}
				t.Run(fmt.Sprintf("%s/%s/%s/held for %v", proto, at, how, holds), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						testHeld(t, &held{proto: proto, at: at, holds: holds, guard: guard(t)}, how)
					})
				})
			}
		}
	}
}

func testHeld(t *testing.T, h *held, how string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := &http.Client{Transport: h.transport()}
	isCancelled := how == byCancel || how == byCancelDeadline
	h.onHold = func() {
		if isCancelled {
			cancel()
		}
	}
	switch how {
	case byClientTimeout:
		client.Timeout = deadline
	case byDeadline, byCancelDeadline:
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, deadline)
		defer stop()
	}
	c, err := gateway.New("http://localhost", invariant.Key, append(h.options(),
		gateway.WithRetry(gateway.RetryPolicy{InvoiceTimeout: timeout}), gateway.WithHTTPClient(client))...)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close(c)

	var response gateway.Response
	begun := time.Now()
	got, err := c.CreateInvoice(ctx, everycall.Order("A-17"), gateway.WithResponse(&response))
	want := h.ending(how)
	equal(t, "the broken rules", len(invariant.Broken(got, err)), 0)
	equal(t, "the call", endingOf(err, time.Since(begun)), want)
	if failure, ok := errors.AsType[*gateway.TransportError](err); want.stillSending && (!ok || failure.Attempts != 1) {
		t.Errorf("%#v, want one attempt", err)
	}
	response = gateway.Response{Message: "the caller's own again"}

	calls := int32(1)
	again, err := c.CreateInvoice(t.Context(), everycall.Order("A-17"))
	for calls++; how == byClientTimeout && gateway.SafeToRetry(err); calls++ { // the Timeout ends this wait too
		again, err = c.CreateInvoice(t.Context(), everycall.Order("A-17"))
	}
	before, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err)
	switch isLost := h.at.isBegun() && h.holds > timeout; {
	case isLost && !(isUnknown && before.Replayed), !isLost && err != nil:
		t.Errorf("the next call: %v", err)
	case !isLost:
		equal(t, "the next call gets the invoice of the first", again.Replayed, h.at.isBegun())
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	equal(t, "the calls that have ended for observers", h.ends.Load(), calls)
	equal(t, "the response after the call", response.Message, "the caller's own again")
	whole := int32(1)
	if h.at == halfSent && h.holds > timeout {
		whole = 0 // half of it is held up
	}
	equal(t, "the invoices that the gateway got", h.whole.Load(), whole)
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// An ending is how a call ends.
type ending struct {
	outcome                     gateway.Outcome
	after                       time.Duration
	stillSending, safe          bool
	cancelled, deadlineExceeded bool // what the error matches
	inFlight                    bool
}

func endingOf(err error, after time.Duration) ending {
	return ending{
		outcome: gateway.OutcomeOf(err), after: after,
		stillSending: errors.Is(err, gateway.ErrStillSending), safe: gateway.SafeToRetry(err),
		cancelled: errors.Is(err, context.Canceled), deadlineExceeded: errors.Is(err, context.DeadlineExceeded),
		inFlight: errors.Is(err, gateway.ErrOrderInFlight),
	}
}

// ending returns how the first call should end.
func (h *held) ending(how string) ending {
	isCancelled := how == byCancel || how == byCancelDeadline
	isLate := h.holds > timeout
	switch {
	case h.at.isBegun() && how == byCancel && isLate:
		return ending{outcome: gateway.OutcomeUnknown, after: timeout, deadlineExceeded: true}
	case h.at.isBegun() && how == byCancel:
		return ending{outcome: gateway.OutcomeSucceeded, after: h.holds}
	case h.at.isBegun():
		return ending{
			outcome: gateway.OutcomeUnknown, after: deadline, stillSending: true, safe: true,
			cancelled: isCancelled, deadlineExceeded: !isCancelled,
		}
	case h.at == inBegin && how == byCancel && h.holds > patience: // Begin has some time more
		return ending{outcome: gateway.OutcomeUnknown, after: patience, safe: true, cancelled: true}
	case h.at == inBegin && how == byCancel:
		return ending{outcome: gateway.OutcomeNotSent, after: h.holds, cancelled: true}
	case h.at == inBegin && isCancelled:
		return ending{outcome: gateway.OutcomeUnknown, safe: true, cancelled: true}
	case h.at == inBegin:
		return ending{outcome: gateway.OutcomeUnknown, after: deadline, safe: true, deadlineExceeded: true}
	case isCancelled:
		return ending{outcome: gateway.OutcomeNotSent, cancelled: true}
	default:
		return ending{outcome: gateway.OutcomeNotSent, after: deadline, safe: how == byClientTimeout, deadlineExceeded: true}
	}
}
