package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// WaitOptions say how often a withdrawal is asked for while it is waited for.
// The waits are drawn at random, grow from MinInterval towards MaxInterval and
// lie between the two, which are at most 24 hours; they are longer, up to an
// hour, where the service asks for it with Retry-After. A zero field takes its
// default.
type WaitOptions struct {
	MinInterval time.Duration // default 2 s
	MaxInterval time.Duration // default 30 s
}

const longestInterval = 24 * time.Hour

// maxAskedWait bounds how long a poller waits because the service asked to.
const maxAskedWait = time.Hour

func (w WaitOptions) withDefaults() WaitOptions {
	longest := cmp.Or(w.MaxInterval, max(30*time.Second, w.MinInterval))
	return WaitOptions{cmp.Or(w.MinInterval, min(2*time.Second, longest)), longest}
}

// check says what is wrong with w, or "".
func (w WaitOptions) check() string {
	switch {
	case w.MinInterval < 0 || w.MaxInterval < 0:
		return "intervals must not be negative"
	case max(w.MinInterval, w.MaxInterval) > longestInterval:
		return "intervals must not be longer than 24 hours"
	case w.MaxInterval != 0 && w.MinInterval > w.MaxInterval:
		return "MinInterval must not be longer than MaxInterval"
	default:
		return ""
	}
}

// A WithdrawalFailedError is the end of a wait for a withdrawal that is
// FAILED.
type WithdrawalFailedError struct {
	Withdrawal *Withdrawal
}

// Error returns one line that names the withdrawal.
func (e *WithdrawalFailedError) Error() string {
	var w Withdrawal
	if e.Withdrawal != nil {
		w = *e.Withdrawal
	}
	return fmt.Sprintf("gateway: withdrawal %q: the service reports %s", w.WithdrawRequestID, WithdrawalFailed)
}

// A WaitError is a wait that ended before the withdrawal did: the context
// ended, or asking again would not help, as after a refusal or an answer that
// is not understood.
type WaitError struct {
	WithdrawRequestID string
	Last              *Withdrawal // as it was seen last; nil when it never was
	Polls             int         // how often it was asked for
	Fault             error       // the last passing fault that was survived; nil when there was none
	Err               error       // why the wait ended
}

// Error returns one line: the withdrawal, the last status seen and why the
// wait ended.
func (e *WaitError) Error() string {
	seen := "never seen"
	if e.Last != nil {
		seen = fmt.Sprintf("last seen %q", e.Last.Status)
	}
	text := fmt.Sprintf("gateway: waiting for withdrawal %q: %s, polls: %d: %s", e.WithdrawRequestID, seen, e.Polls, oneLine(e.Err))
	if e.Fault != nil {
		text += fmt.Sprintf(" (last fault: %s)", oneLine(e.Fault))
	}
	return text
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }

// WaitWithdrawal asks for a withdrawal until its status is terminal. The error
// is nil only for COMPLETED; FAILED is a [*WithdrawalFailedError]. Faults that
// may pass and statuses that are not known are waited through. When the
// context ends, or the service refuses to tell, the error is a [*WaitError],
// which matches the context's error or the refusal; a bad argument is an
// [*ArgumentError].
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) WaitWithdrawal(ctx context.Context, withdrawRequestID string, w WaitOptions) (*Withdrawal, error) {
	for seen, err := range c.WatchWithdrawal(ctx, withdrawRequestID, w) {
		switch {
		case err != nil:
			return nil, err
		case seen.Status.Terminal():
			return seen.verdict()
		}
	}
	panic("gateway: a watch ended without a terminal status or an error")
}

// WatchWithdrawal yields a withdrawal as it is first seen and whenever
// anything of it has changed, up to and with a terminal status. Faults that
// may pass are not yielded. When the context ends, or the service refuses to
// tell, it yields a nil withdrawal and a [*WaitError], and ends; with a bad
// argument, an [*ArgumentError].
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) WatchWithdrawal(ctx context.Context, withdrawRequestID string, w WaitOptions) iter.Seq2[*Withdrawal, error] {
	return func(yield func(*Withdrawal, error) bool) {
		p := &poller{client: c, options: w.withDefaults(), progress: WaitError{WithdrawRequestID: withdrawRequestID}}
		if reason := w.check(); reason != "" {
			yield(nil, &ArgumentError{Op: opWithdrawal, Name: "w", Reason: reason})
			return
		}
		for {
			changed, err := p.poll(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if seen := p.progress.Last; changed && (!yield(seen.copy(), nil) || seen.Status.Terminal()) {
				return
			}
			if err := p.sleep(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// WaitWithdrawals waits for many withdrawals at once, and yields each as it
// ends, in the way that [Client.WaitWithdrawal] returns it: with a nil error
// only for COMPLETED, with a [*WithdrawalFailedError] that holds it for FAILED, and
// with a [*WaitError] that names it where the service refuses to tell. When the
// context ends, it yields a [*WaitError] for each that is left. The identifiers
// must differ; after an [*ArgumentError] it yields nothing more. No identifiers
// yield nothing. It asks with the key of the client, as all waits do.
//
// At most 8 are asked for at a time, and at most 100 within a MinInterval, those
// first that have been due for the longest; where the service asks for a wait, all
// wait. While the loop's body runs, no further ones are asked for. When the
// loop is left, no request is under way any more.
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) WaitWithdrawals(ctx context.Context, withdrawRequestIDs []string, w WaitOptions) iter.Seq2[*Withdrawal, error] {
	return func(yield func(*Withdrawal, error) bool) {
		if err := c.checkWaits(ctx, withdrawRequestIDs, w); err != nil {
			yield(nil, err)
			return
		}
		asking, cancel := context.WithCancel(ctx)
		all := newCrowd(c, withdrawRequestIDs, w)
		defer all.wait()
		defer cancel()
		for !all.over() {
			end := all.step(asking)
			if end != nil && (!yield(end.seen, end.err) || errors.Is(end.err, ErrInvalidArgument)) {
				return
			}
		}
	}
}

// checkWaits checks all that a caller can get wrong before anything is sent.
func (c *Client) checkWaits(ctx context.Context, ids []string, w WaitOptions) error {
	refuse := func(name, reason string) error {
		return &ArgumentError{Op: opWithdrawal, Name: name, Reason: reason}
	}
	if name, reason := c.checkCall(ctx); reason != "" {
		return refuse(name, reason)
	}
	if reason := w.check(); reason != "" {
		return refuse("w", reason)
	}
	seen := map[string]bool{}
	for i, id := range ids {
		name := fmt.Sprintf("withdrawRequestIds[%d]", i)
		if reason := checkPathText(id); reason != "" {
			return refuse(name, reason)
		}
		if seen[id] {
			return refuse(name, "is listed twice")
		}
		seen[id] = true
	}
	return nil
}

// verdict is how a wait for a withdrawal ends whose status is terminal.
func (w *Withdrawal) verdict() (*Withdrawal, error) {
	if w.Status == WithdrawalFailed {
		return nil, &WithdrawalFailedError{w}
	}
	return w, nil
}

// copy is for a caller who may change it, which must not make the next look
// seem changed.
func (w *Withdrawal) copy() *Withdrawal {
	c := *w
	return &c
}

func (w *Withdrawal) equal(o *Withdrawal) bool {
	return w.Status == o.Status && w.Destination == o.Destination && w.Amount.Equal(o.Amount) && w.Fee.Equal(o.Fee) &&
		w.Coin == o.Coin && w.Network == o.Network && w.WithdrawRequestID == o.WithdrawRequestID
}
