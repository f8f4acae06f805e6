package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/cryptogw/gateway/internal/poll"
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

func (e *WithdrawalFailedError) decided() decision {
	return decision{outcome: OutcomeNotSent}
}

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
	return text
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }

func (e *WaitError) decided() decision {
	return decision{outcome: OutcomeNotSent, retryable: SafeToRetry(e.Err)}
}

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
	return last(c.WatchWithdrawal(ctx, withdrawRequestID, w, opts...))
}

// WatchWithdrawal yields a withdrawal when it is first seen and whenever any of its fields
// has changed, up to and including a terminal status. Failures that may pass are not
// yielded. A [*WaitError] or [*ArgumentError], as of [Client.WaitWithdrawal], is yielded
// last, with a nil withdrawal. The options are those of each inquiry.
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) WatchWithdrawal(ctx context.Context, withdrawRequestID string, w WaitOptions, opts ...CallOption) iter.Seq2[*Withdrawal, error] {
	return c.watch(ctx, withdrawRequestID, w, poll.NewLimiter(1, 0), opts)
}

// WaitWithdrawals waits for many withdrawals at once, and yields each when it ends, as
// [Client.WaitWithdrawal] returns it; an error names the withdrawal. When the context ends, it yields a
// [*WaitError] for each that is left. At most 8 polls run at a time, and at most 100 begin within a
// MinInterval; where the service asks for a wait, all wait. When the loop is left, no request is in
// flight. The options are those of each inquiry.
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) WaitWithdrawals(ctx context.Context, withdrawRequestIDs []string, w WaitOptions, opts ...CallOption) iter.Seq2[*Withdrawal, error] {
	return func(yield func(*Withdrawal, error) bool) {
		if err := c.checkWait(ctx, w); err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		limiter := poll.NewLimiter(maxPolls, w.intervals().Min/maxPollsPerInterval)
		ended := make(chan waitResult, len(withdrawRequestIDs))
		var waits sync.WaitGroup
		defer waits.Wait()
		defer cancel()
		for _, id := range withdrawRequestIDs {
			waits.Go(func() {
				seen, err := last(c.watch(ctx, id, w, limiter, opts))
				if refusal, ok := err.(*ArgumentError); ok && refusal.Name == routeWithdrawRequestID {
					err = c.newPoller(id, opts).waitError(refusal) // the others can be waited for
				}
				ended <- waitResult{seen, err}
			})
		}
		for range withdrawRequestIDs {
			result := <-ended
			if !yield(result.withdrawal, result.err) || isArgumentError(result.err) {
				return
			}
		}
	}
}

const (
	maxPolls            = 8   // of WaitWithdrawals at a time
	maxPollsPerInterval = 100 // of WaitWithdrawals that begin within a MinInterval
)

// A waitResult is how the wait for one withdrawal ended.
type waitResult struct {
	withdrawal *Withdrawal
	err        error
}

// last returns how a watch ends.
func last(watch iter.Seq2[*Withdrawal, error]) (seen *Withdrawal, err error) {
	for seen, err = range watch {
	}
	if err == nil {
		return seen.result()
	}
	return nil, err
}

// checkWait checks what is the same for every withdrawal.
func (c *Client) checkWait(ctx context.Context, w WaitOptions) error {
	name, reason := c.check(ctx)
	if reason == "" {
		name, reason = "w", w.check()
	}
	if reason != "" {
		return &ArgumentError{Operation: OpWithdrawal, Name: name, Reason: reason}
	}
	return nil
}

func isArgumentError(err error) bool {
	_, refused := err.(*ArgumentError)
	return refused
}

// watch yields what [Client.WatchWithdrawal] does, within the bounds of a limiter.
func (c *Client) watch(ctx context.Context, id string, w WaitOptions, limiter *poll.Limiter, opts []CallOption) iter.Seq2[*Withdrawal, error] {
	return func(yield func(*Withdrawal, error) bool) {
		if err := c.checkWait(ctx, w); err != nil {
			yield(nil, err)
			return
		}
		p, pacer := c.newPoller(id, opts), poll.NewPacer(w.intervals())
		for {
			changed, err := p.poll(ctx, limiter)
			if err != nil {
				yield(nil, err)
				return
			}
			if seen := p.progress.Last; changed && (!yield(seen.clone(), nil) || seen.Status.Terminal()) {
				return
			}
			if poll.Sleep(ctx, pacer.Next(p.retryAfter)) != nil {
				yield(nil, p.contextEnded(ctx))
				return
			}
		}
	}
}

// A withdrawalPoller polls one withdrawal.
type withdrawalPoller struct {
	client     *Client
	id         string
	opts       []CallOption
	progress   WaitError     // the error if the wait ended now
	retryAfter time.Duration // what the service asked to wait
}

func (c *Client) newPoller(id string, opts []CallOption) *withdrawalPoller {
	var cfg callConfig
	_ = cfg.apply(OpWithdrawal, opts) // each poll refuses what is wrong
	keys := c.keyring.Redactor()
	if cfg.key != nil {
		keys = keys.With(*cfg.key)
	}
	return &withdrawalPoller{client: c, id: id, opts: opts, progress: WaitError{WithdrawRequestID: keys.Text(id)}}
}

// poll polls once. A failure that may pass is neither an error nor a change.
func (p *withdrawalPoller) poll(ctx context.Context, limiter *poll.Limiter) (changed bool, err error) {
	p.retryAfter = 0
	if limiter.Begin(ctx) != nil {
		return false, p.contextEnded(ctx)
	}
	defer func() { limiter.End(p.retryAfter) }()
	seen, err := p.client.Withdrawal(ctx, p.id, p.opts...)
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

func (p *withdrawalPoller) contextEnded(ctx context.Context) error {
	return p.waitError(contextError(ctx, p.client.keyring.Redactor()))
}

func (p *withdrawalPoller) waitError(err error) error {
	ended := p.progress
	ended.Err = err
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
