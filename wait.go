package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/cryptogw/gateway/internal/poll"
	"github.com/cryptogw/gateway/internal/redact"
)

// WaitOptions set how often a wait polls, and what else ends it. The waits between two polls are
// drawn at random, grow from MinInterval towards MaxInterval and lie between the two, which are at
// most 24 hours; they are longer, up to an hour, where the service asks for it with Retry-After. A
// zero field takes its default.
type WaitOptions struct {
	MinInterval time.Duration // default 2 s
	MaxInterval time.Duration // default 30 s

	// Final are further statuses that are final, besides the documented ones. None may be
	// PENDING or empty.
	Final []WithdrawalStatus
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

// A WaitError is a wait that has not ended with COMPLETED or FAILED: its context ended, the service
// refused the inquiry, the rest of a final withdrawal could not be decoded, or its status is final
// only by [WaitOptions]: what it means is for the caller to know.
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
	case !canBeFinal(w.Final):
		return "Final must not have PENDING or an empty one"
	default:
		return ""
	}
}

// WaitWithdrawal polls a withdrawal until its status is final. The error is nil only for COMPLETED;
// FAILED is a [*WithdrawalFailedError]. What else the wait ends with is a [*WaitError]: another final
// status, the end of the context, or a refusal by the service: 400, 401, 410 or 422 with a message in JSON,
// 404 too after the first minute, and 403 in the documented envelope. Everything else, such as a page of an
// intermediary or a field that cannot be decoded, does not end it: an [Observer] is told. A bad argument is
// an [*ArgumentError]. The options are those of each inquiry.
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) WaitWithdrawal(ctx context.Context, withdrawRequestID string, w WaitOptions, opts ...CallOption) (*Withdrawal, error) {
	return c.wait(ctx, withdrawRequestID, w, poll.NewLimiter(1, 0), opts)
}

// WatchWithdrawal yields a withdrawal when it is first seen and whenever any of its fields has
// changed, up to and including a final status. A [*WaitError] or [*ArgumentError], as of
// [Client.WaitWithdrawal], is yielded last, with a nil withdrawal. The options are those of each inquiry.
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) WatchWithdrawal(ctx context.Context, withdrawRequestID string, w WaitOptions, opts ...CallOption) iter.Seq2[*Withdrawal, error] {
	return func(yield func(*Withdrawal, error) bool) {
		p, err := c.newPoller(ctx, withdrawRequestID, w, opts)
		if err == nil {
			err = p.run(ctx, poll.NewLimiter(1, 0), func(seen *Withdrawal) bool { return yield(seen, nil) })
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// PollWithdrawal makes one poll of a wait that began at the time begun, for a program that schedules
// polls itself, such as with a queue of jobs. If the wait is over, it returns what
// [Client.WaitWithdrawal] does; otherwise the withdrawal as it is, or why it could not be read. The end
// of the context is an error and does not end the wait. The intervals of w are not used.
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) PollWithdrawal(ctx context.Context, withdrawRequestID string, begun time.Time, w WaitOptions, opts ...CallOption) (seen *Withdrawal, over bool, err error) {
	p, err := c.newPoller(ctx, withdrawRequestID, w, opts)
	if err != nil {
		return nil, true, err
	}
	p.begun = begun
	_, final, err := p.poll(ctx, poll.NewLimiter(1, 0))
	switch {
	case err != nil:
		return nil, ctx.Err() == nil, err
	case final:
		if err = p.otherFinal(); err == nil {
			seen, err = p.progress.Last.result()
		}
		return seen, true, err
	case p.progress.Fault != nil:
		return nil, false, p.progress.Fault
	default:
		return p.progress.Last, false, nil
	}
}

// WaitWithdrawals waits for many withdrawals at once, and yields each when it ends, as
// [Client.WaitWithdrawal] returns it; an error names the withdrawal. A bad identifier is a [*WaitError] and
// ends only its own wait; another bad argument is an [*ArgumentError] and ends all. When the context ends,
// it yields a [*WaitError] for each that is left. At most 8 polls run at a time, and at most 100 begin within a
// MinInterval; after 429 all wait as long as the service asks. When the loop is left, no request is in
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
				seen, err := c.wait(ctx, id, w, limiter, opts)
				if refusal, ok := err.(*ArgumentError); ok && refusal.Name == routeWithdrawRequestID {
					err = &WaitError{WithdrawRequestID: c.keys(opts).Text(id), Err: refusal} // the others can be waited for
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

// wait waits for one withdrawal, within the bounds of a limiter.
func (c *Client) wait(ctx context.Context, id string, w WaitOptions, limiter *poll.Limiter, opts []CallOption) (*Withdrawal, error) {
	p, err := c.newPoller(ctx, id, w, opts)
	if err != nil {
		return nil, err
	}
	if err := p.run(ctx, limiter, func(*Withdrawal) bool { return true }); err != nil {
		return nil, err
	}
	return p.progress.Last.result()
}

// A withdrawalPoller polls one withdrawal.
type withdrawalPoller struct {
	client     *Client
	id         string
	opts       []CallOption
	options    WaitOptions
	begun      time.Time     // when the wait began
	progress   WaitError     // the error if the wait ended now
	retryAfter time.Duration // what the service asked to wait
}

func (c *Client) newPoller(ctx context.Context, id string, w WaitOptions, opts []CallOption) (*withdrawalPoller, error) {
	if err := c.checkWait(ctx, w); err != nil {
		return nil, err
	}
	return &withdrawalPoller{
		client: c, id: id, opts: opts, options: w, begun: time.Now(),
		progress: WaitError{WithdrawRequestID: c.keys(opts).Text(id)},
	}, nil
}

// keys returns what removes the keys of the client and of the options of a call.
func (c *Client) keys(opts []CallOption) redact.Redactor {
	var cfg callConfig
	_ = cfg.apply(OpWithdrawal, opts) // each poll refuses what is wrong
	keys := c.keyring.Redactor()
	if cfg.key != nil {
		keys = keys.With(*cfg.key)
	}
	return keys
}

// run polls until the wait is over, and tells changed of each change until it returns false. The
// error is nil if the withdrawal is COMPLETED or FAILED.
func (p *withdrawalPoller) run(ctx context.Context, limiter *poll.Limiter, changed func(*Withdrawal) bool) error {
	pacer := poll.NewPacer(p.options.intervals())
	for {
		isChanged, isFinal, err := p.poll(ctx, limiter)
		if err != nil {
			return err
		}
		if isChanged && !changed(p.progress.Last.clone()) {
			return nil
		}
		if isFinal {
			return p.otherFinal()
		}
		if poll.Sleep(ctx, pacer.Next(p.retryAfter)) != nil {
			return p.contextEnded(ctx)
		}
	}
}

// poll polls once. It reports whether the withdrawal has changed, and whether its status is final; an
// error ends the wait. A failure after which polling goes on is neither an error nor a change.
func (p *withdrawalPoller) poll(ctx context.Context, limiter *poll.Limiter) (changed, final bool, err error) {
	p.retryAfter = 0
	if limiter.Begin(ctx) != nil {
		return false, false, p.contextEnded(ctx)
	}
	var all time.Duration // what the service has asked all polls to wait
	defer func() { limiter.End(all) }()
	seen, err := p.client.Withdrawal(ctx, p.id, p.opts...)
	if isArgumentError(err) {
		return false, false, err
	}
	p.progress.Polls++
	if err == nil {
		changed = p.progress.Last == nil || !seen.equal(p.progress.Last)
		p.progress.Last, p.progress.Status = seen, seen.Status
		return changed, p.isFinal(seen.Status), nil
	}
	status := WithdrawalStatusOf(err)
	p.progress.Status = cmp.Or(status, p.progress.Status)
	switch {
	case p.isFinal(status) && !status.Terminal():
		return false, false, p.waitError(fmt.Errorf("%w: %w", ErrFinalStatus, err))
	case p.isFinal(status), endsWait(err, time.Since(p.begun)):
		return false, false, p.waitError(err)
	case ctx.Err() != nil:
		return false, false, p.contextEnded(ctx)
	}
	p.progress.Fault = err
	if refusal, ok := errors.AsType[*APIError](err); ok {
		p.retryAfter = min(refusal.RetryAfter, maxPollRetryAfter)
		if refusal.StatusCode == 429 {
			all = p.retryAfter
		}
	}
	return false, false, nil
}

// canBeFinal reports whether statuses can end a wait.
func canBeFinal(statuses []WithdrawalStatus) bool {
	return !slices.Contains(statuses, "") && !slices.Contains(statuses, WithdrawalPending)
}

// isFinal reports whether a status ends a wait.
func (p *withdrawalPoller) isFinal(status WithdrawalStatus) bool {
	return status.Terminal() || slices.Contains(p.options.Final, status)
}

// firstMinute is how long a withdrawal may not be found yet.
const firstMinute = time.Minute

// endsWait reports whether a failed inquiry ends a wait that has lasted so long: only what the
// service itself says of the inquiry does, and no response that an intermediary may have made.
func endsWait(err error, waited time.Duration) bool {
	refusal, ok := err.(*APIError)
	if !ok {
		return false
	}
	switch status := refusal.StatusCode; status {
	case 400, 401, 403, 410, 422:
		return refusal.said.isOfService(status)
	case 404:
		return refusal.said.isOfService(status) && waited >= firstMinute
	default:
		return false
	}
}

func (p *withdrawalPoller) contextEnded(ctx context.Context) error {
	return p.waitError(contextError(ctx, p.client.keys(p.opts)))
}

func (p *withdrawalPoller) waitError(err error) error {
	ended := p.progress
	ended.Err = err
	return &ended
}

// otherFinal is the error of a final status that is not documented, or nil.
func (p *withdrawalPoller) otherFinal() error {
	if p.progress.Last.Status.Terminal() {
		return nil
	}
	return p.waitError(ErrFinalStatus)
}

// result is how a wait ends for a withdrawal that is COMPLETED or FAILED.
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
