package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
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
// ended, or the service refused to tell.
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
		case seen.Status == WithdrawalFailed:
			return nil, &WithdrawalFailedError{seen}
		case seen.Status == WithdrawalCompleted:
			return seen, nil
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

// A poller asks for one withdrawal again and again.
type poller struct {
	client   *Client
	options  WaitOptions
	progress WaitError     // what to say when the wait ends
	interval time.Duration // the longest next wait; it grows
	asked    time.Duration // what the service asked to wait
}

// poll asks once. A fault that may pass is no error and no change.
func (p *poller) poll(ctx context.Context) (changed bool, err error) {
	p.asked = 0
	seen, err := p.client.Withdrawal(ctx, p.progress.WithdrawRequestID)
	if errors.Is(err, ErrInvalidArgument) {
		return false, err
	}
	p.progress.Polls++
	if err == nil {
		changed = p.progress.Last == nil || !seen.equal(p.progress.Last)
		p.progress.Last = seen
		return changed, nil
	}
	if !SafeToRetry(err) {
		return false, p.end(err)
	}
	p.progress.Fault = err
	var answer *APIError
	if errors.As(err, &answer) {
		p.asked = min(answer.RetryAfter, maxAskedWait)
	}
	return false, nil
}

// sleep waits until the next poll is due, or the context ends.
func (p *poller) sleep(ctx context.Context) error {
	p.interval = min(max(p.interval, p.options.MinInterval)*3/2, p.options.MaxInterval)
	wait := p.options.MinInterval + rand.N(p.interval-p.options.MinInterval+1) // #nosec G404 -- jitter need not be secret
	timer := time.NewTimer(max(wait, p.asked))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return p.end(ended(ctx, p.client.keys))
	}
}

func (p *poller) end(err error) error {
	ended := p.progress
	ended.Err = err
	return &ended
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
