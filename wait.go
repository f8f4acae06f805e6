package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/cryptogw/gateway/internal/poll"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/validate"
)

// WaitOptions set how often a wait polls. The waits between two polls are drawn at
// random, grow from MinInterval towards MaxInterval and lie between the two, which
// are at most 24 hours; they are longer, up to an hour, where the service asks for it
// with Retry-After. A zero field takes its default.
type WaitOptions struct {
	MinInterval time.Duration // default 2 s
	MaxInterval time.Duration // default 30 s
}

// A WithdrawalFailedError is the end of a wait for a withdrawal that is
// FAILED.
type WithdrawalFailedError struct {
	Withdrawal *Withdrawal // as it was read last
}

// Error returns one line that names the withdrawal.
func (e *WithdrawalFailedError) Error() string {
	var w Withdrawal
	if e.Withdrawal != nil {
		w = *e.Withdrawal
	}
	return fmt.Sprintf("gateway: withdrawal %q: the service reports %s", w.WithdrawRequestID, WithdrawalFailed)
}

func (e *WithdrawalFailedError) outcome() Outcome  { return OutcomeNotSent }
func (e *WithdrawalFailedError) isRetryable() bool { return false }

// A WaitError is a wait that ended before the withdrawal did: the context ended, or
// another poll would not help, such as after a refusal or a response that cannot be
// decoded.
type WaitError struct {
	WithdrawRequestID string           // the identifier of the withdrawal
	Last              *Withdrawal      // as it was last seen; nil when it never was
	Status            WithdrawalStatus // that was read last, also from a response of which another field could not be decoded; empty for none
	Polls             int              // how many polls were made
	Fault             error            // the last failure after which polling went on; nil for none
	Err               error            // why the wait ended

	keys redact.Redactor
}

// Error returns one line: the withdrawal, the last status seen and why the
// wait ended.
func (e *WaitError) Error() string {
	seen := "never seen"
	if e.Status != "" {
		seen = fmt.Sprintf("last seen %q", e.Status)
	}
	text := fmt.Sprintf("gateway: waiting for withdrawal %q: %s, polls: %d: %s", e.WithdrawRequestID, seen, e.Polls, oneLine(e.Err))
	if e.Fault != nil {
		text += fmt.Sprintf(" (last fault: %s)", oneLine(e.Fault))
	}
	return e.keys.Text(text)
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }

func (e *WaitError) outcome() Outcome  { return OutcomeNotSent }
func (e *WaitError) isRetryable() bool { return SafeToRetry(e.Err) }

const (
	maxInterval = 24 * time.Hour

	// maxPollRetryAfter bounds how long a wait follows a Retry-After.
	maxPollRetryAfter = time.Hour
)

func (w WaitOptions) intervals() poll.Intervals {
	longest := cmp.Or(w.MaxInterval, max(30*time.Second, w.MinInterval))
	return poll.Intervals{Min: cmp.Or(w.MinInterval, min(2*time.Second, longest)), Max: longest}
}

// check returns what is wrong with w, or "".
func (w WaitOptions) check() string {
	switch {
	case w.MinInterval < 0 || w.MaxInterval < 0:
		return "intervals must not be negative"
	case max(w.MinInterval, w.MaxInterval) > maxInterval:
		return "intervals must not be longer than 24 hours"
	case w.MaxInterval != 0 && w.MinInterval > w.MaxInterval:
		return "MinInterval must not be longer than MaxInterval"
	default:
		return ""
	}
}

// WaitWithdrawal polls a withdrawal until its status is terminal. The error is nil
// only for COMPLETED; FAILED is a [*WithdrawalFailedError]. Failures that may pass and
// unknown statuses do not end the wait. When the context ends, or the service refuses
// the inquiry, the error is a [*WaitError], which matches the context's error or the
// refusal; a bad argument is an [*ArgumentError]. The options are those of each inquiry.
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) WaitWithdrawal(ctx context.Context, withdrawRequestID string, w WaitOptions, opts ...CallOption) (*Withdrawal, error) {
	for seen, err := range c.WatchWithdrawal(ctx, withdrawRequestID, w, opts...) {
		switch {
		case err != nil:
			return nil, err
		case seen.Status.Terminal():
			return seen.result()
		}
	}
	panic("gateway: a watch ended without a terminal status or an error")
}

// WatchWithdrawal yields a withdrawal when it is first seen and whenever any of its fields
// has changed, up to and including a terminal status. Failures that may pass are not
// yielded. A [*WaitError] or [*ArgumentError], as of [Client.WaitWithdrawal], is yielded
// last, with a nil withdrawal. The options are those of each inquiry.
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) WatchWithdrawal(ctx context.Context, withdrawRequestID string, w WaitOptions, opts ...CallOption) iter.Seq2[*Withdrawal, error] {
	return func(yield func(*Withdrawal, error) bool) {
		if reason := w.check(); reason != "" {
			yield(nil, &ArgumentError{Operation: OpWithdrawal, Name: "w", Reason: reason})
			return
		}
		p, pacer := newWithdrawalPoller(c, withdrawRequestID, opts), poll.NewPacer(w.intervals())
		for {
			changed, err := p.poll(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if seen := p.progress.Last; changed && (!yield(seen.clone(), nil) || seen.Status.Terminal()) {
				return
			}
			if poll.Sleep(ctx, pacer.Next(p.retryAfter)) != nil {
				yield(nil, p.waitError(contextError(ctx, c.keyring.Redactor())))
				return
			}
		}
	}
}

// WaitWithdrawals waits for many withdrawals at once, and yields each when it ends, as
// [Client.WaitWithdrawal] returns it; an error names the withdrawal. When the context ends,
// it yields a [*WaitError] for each that is left. The identifiers must differ; an
// [*ArgumentError] is the last value. The options are those of each inquiry.
//
// Further identifiers come through more. One that is being waited for is ignored; one that
// cannot be sent is a [*WaitError] that matches [ErrInvalidArgument]. The wait ends when none
// is left and more is nil or closed: without identifiers and with a nil more, at once.
//
// At most 8 polls run at a time, and at most 100 begin within a MinInterval, those
// first that have been due for the longest; where the service asks for a wait, all
// wait. While the body of the loop runs, no further poll begins. When the loop is left,
// no request is in flight.
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) WaitWithdrawals(ctx context.Context, withdrawRequestIDs []string, more <-chan string, w WaitOptions, opts ...CallOption) iter.Seq2[*Withdrawal, error] {
	return func(yield func(*Withdrawal, error) bool) {
		if err := c.checkWaits(ctx, withdrawRequestIDs, w); err != nil {
			yield(nil, err)
			return
		}
		polling, cancel := context.WithCancel(ctx)
		waiting := map[string]bool{}
		newTask := func(id string) poll.Task[waitResult] {
			if waiting[id] {
				return nil
			}
			waiting[id] = true
			return newWithdrawalPoller(c, id, opts)
		}
		var tasks []poll.Task[waitResult]
		for _, id := range withdrawRequestIDs {
			tasks = append(tasks, newTask(id))
		}
		group := poll.NewGroup(tasks, w.intervals())
		group.AddFrom(more, newTask)
		defer group.Wait()
		defer cancel()
		for {
			ended, ok := group.Next(polling)
			delete(waiting, ended.id)
			if !ok || !yield(ended.withdrawal, ended.err) || isArgumentError(ended.err) {
				return
			}
		}
	}
}

// checkWaits checks everything that a caller can get wrong before anything is sent.
func (c *Client) checkWaits(ctx context.Context, ids []string, w WaitOptions) error {
	refuse := func(name, reason string) error {
		return &ArgumentError{Operation: OpWithdrawal, Name: name, Reason: reason}
	}
	if name, reason := c.check(ctx); reason != "" {
		return refuse(name, reason)
	}
	if reason := w.check(); reason != "" {
		return refuse("w", reason)
	}
	seen := map[string]bool{}
	for i, id := range ids {
		name := fmt.Sprintf("withdrawRequestIds[%d]", i)
		if reason := validate.PathSegment(id); reason != "" {
			return refuse(name, reason)
		}
		if seen[id] {
			return refuse(name, "is listed twice")
		}
		seen[id] = true
	}
	return nil
}

// isArgumentError reports whether a wait cannot go on: every inquiry would be refused.
func isArgumentError(err error) bool {
	_, refused := err.(*ArgumentError)
	return refused
}

// A waitResult is how the wait for one withdrawal ended.
type waitResult struct {
	id         string
	withdrawal *Withdrawal
	err        error
}

// A withdrawalPoller polls one withdrawal. It implements [poll.Task].
type withdrawalPoller struct {
	client     *Client
	opts       []CallOption
	progress   WaitError     // the error if the wait ended now
	retryAfter time.Duration // what the service asked to wait
}

func newWithdrawalPoller(c *Client, id string, opts []CallOption) *withdrawalPoller {
	return &withdrawalPoller{client: c, opts: opts, progress: WaitError{WithdrawRequestID: id}}
}

// poll polls once. A failure that may pass is neither an error nor a change.
func (p *withdrawalPoller) poll(ctx context.Context) (changed bool, err error) {
	p.retryAfter = 0
	seen, err := p.client.Withdrawal(ctx, p.progress.WithdrawRequestID, p.opts...)
	if isArgumentError(err) {
		return false, err
	}
	p.progress.Polls++
	if err == nil {
		changed = p.progress.Last == nil || !seen.equal(p.progress.Last)
		p.progress.Last, p.progress.Status = seen, seen.Status
		return changed, nil
	}
	p.progress.Status = cmp.Or(WithdrawalStatusOf(err), p.progress.Status)
	if !SafeToRetry(err) {
		return false, p.waitError(err)
	}
	p.progress.Fault = err
	if refusal, ok := errors.AsType[*APIError](err); ok {
		p.retryAfter = min(refusal.RetryAfter, maxPollRetryAfter)
	}
	return false, nil
}

// Poll implements [poll.Task].
func (p *withdrawalPoller) Poll(ctx context.Context) (waitResult, bool, time.Duration) {
	changed, err := p.poll(ctx)
	if refusal, ok := err.(*ArgumentError); ok && refusal.Name == routeWithdrawRequestID {
		err = p.waitError(err) // the others can be waited for
	}
	id := p.progress.WithdrawRequestID
	switch {
	case err != nil:
		return waitResult{id, nil, err}, true, 0
	case changed && p.progress.Last.Status.Terminal():
		w, err := p.progress.Last.result()
		return waitResult{id, w, err}, true, 0
	default:
		return waitResult{}, false, p.retryAfter
	}
}

// Cancel implements [poll.Task].
func (p *withdrawalPoller) Cancel(ctx context.Context) waitResult {
	return waitResult{p.progress.WithdrawRequestID, nil, p.waitError(contextError(ctx, p.client.keyring.Redactor()))}
}

func (p *withdrawalPoller) waitError(err error) error {
	ended := p.progress
	ended.Err = err
	if p.client != nil && p.client.keyring != nil {
		ended.keys = p.client.keyring.Redactor()
	}
	return &ended
}

// result is how a wait ends for a withdrawal with a terminal status.
func (w *Withdrawal) result() (*Withdrawal, error) {
	if w.Status == WithdrawalFailed {
		return nil, &WithdrawalFailedError{w}
	}
	return w, nil
}

// clone returns a copy for a caller, who may change it: the next poll is compared with
// the original.
func (w *Withdrawal) clone() *Withdrawal {
	c := *w
	return &c
}

func (w *Withdrawal) equal(o *Withdrawal) bool {
	return w.Status == o.Status && w.Destination == o.Destination && w.Amount.Equal(o.Amount) && w.Fee.Equal(o.Fee) &&
		w.Coin == o.Coin && w.Network == o.Network && w.WithdrawRequestID == o.WithdrawRequestID
}
