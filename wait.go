package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// WaitOptions set how often a wait polls, and which further statuses end it. The pauses between polls
// are random and grow from MinInterval towards MaxInterval, each at most 24 hours. They are longer, up to
// an hour, if the service asks for it with Retry-After. A zero field takes its default. An interval of 2 to 999
// nanoseconds is refused: it looks like a number without a unit.
type WaitOptions struct {
	MinInterval time.Duration // default 2 s
	MaxInterval time.Duration // default 30 s

	// Final are further statuses that end a wait, besides COMPLETED and FAILED, in any case of letters. None
	// may be PENDING or empty.
	Final []WithdrawalStatus

	// Changed is called with the withdrawal when it is first seen, and whenever one of its fields has changed.
	// The goroutine that waits calls it. It may be nil.
	Changed func(*Withdrawal) `json:"-"`
}

// A WaitError means that a wait did not end with COMPLETED: the withdrawal is FAILED ([ErrWithdrawalFailed]) or has
// another status of [WaitOptions].Final ([ErrFinalStatus]), the context has ended, the service refuses the
// inquiry, or a final withdrawal cannot be decoded.
type WaitError struct {
	WithdrawRequestID string           // the identifier of the withdrawal
	Last              *Withdrawal      // as it was last seen; nil if it was never seen
	Status            WithdrawalStatus // the last status seen, even if the rest could not be decoded; empty if none was
	Polls             int              // how many polls were made
	Fault             error            `json:"-"` // the last failure that did not end the wait; nil if there was none
	Err               error            `json:"-"` // why the wait ended
}

// Error returns one line: the withdrawal, the last status seen and why the wait ended.
func (e *WaitError) Error() string {
	seen := "never seen"
	if e.Status != "" {
		seen = fmt.Sprintf("last seen %q", e.Status)
	}
	text := fmt.Sprintf("gateway: waiting for withdrawal %q: %s, polls: %d: %s",
		e.WithdrawRequestID, seen, e.Polls, oneLine(e.Err))
	if e.Fault != nil {
		text += fmt.Sprintf(" (last fault: %s)", oneLine(e.Fault))
	}
	return text
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

func (e *WaitError) decided() decision {
	return decision{retryable: SafeToRetry(e.Err)}
}

const (
	maxInterval        = 24 * time.Hour
	defaultMinInterval = 2 * time.Second
	defaultMaxInterval = 30 * time.Second

	// maxPollRetryAfter bounds how long a wait follows a Retry-After.
	maxPollRetryAfter = time.Hour

	// refusedFor is how long a new withdrawal may not be found yet, and how long the service must refuse the inquiry of
	// a withdrawal that was seen.
	refusedFor = time.Minute
)

// check returns why w is refused, or "".
func (w WaitOptions) check() string {
	isPending := func(s WithdrawalStatus) bool { return s == "" || s.is(WithdrawalPending) }
	switch {
	case w.MinInterval < 0 || w.MaxInterval < 0:
		return "intervals must not be negative"
	case max(w.MinInterval, w.MaxInterval) > maxInterval:
		return "intervals must not be longer than 24 hours"
	case w.MaxInterval != 0 && w.MinInterval > w.MaxInterval:
		return "MinInterval must not be longer than MaxInterval"
	case slices.ContainsFunc(w.Final, isPending):
		return "Final must not have PENDING or an empty status"
	default:
		return withoutUnit(w.MinInterval, w.MaxInterval)
	}
}

// WaitWithdrawal polls a withdrawal until its status is final. The error is nil only for COMPLETED. Any other
// end is a [*WaitError]: FAILED, another final status, the end of the context, or a refusal by the service.
//
// A refusal is a 400, 401, 410 or 422 with a message in JSON, a 403 in the documented envelope, and after the first
// minute a 404 with a message in JSON. Once the withdrawal was seen, refusals end the wait only if they last for a
// minute. Nothing else ends it: not the page of an intermediary, not an unknown status, not a field that cannot be
// decoded. [Observer] and logger receive these, and each unknown status once.
//
// A bad argument is an [*ArgumentError]. The call options apply to each inquiry.
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) WaitWithdrawal(
	ctx context.Context, withdrawRequestID string, w WaitOptions, opts ...CallOption,
) (*Withdrawal, error) {
	p, err := c.newPoller(ctx, withdrawRequestID, w, append(slices.Clip(opts), inWait(map[Drift]bool{})))
	if err != nil {
		return nil, err
	}
	pace := w.pacer()
	for {
		over, err := p.poll(ctx)
		switch {
		case err != nil:
			return nil, err
		case over:
			return p.result()
		case sleep(ctx, max(pace(), p.retryAfter)) != nil:
			return nil, p.contextEnded(ctx)
		}
	}
}

// PollWithdrawal makes one poll of a wait, for a program that schedules polls itself, such as with a queue of
// jobs. If the wait is over, it returns the result of [Client.WaitWithdrawal]. Otherwise it returns the withdrawal,
// or why it could not be read. A refusal by the service, which wraps an [*APIError], and the end of the context are a
// [*WaitError] too, but over is false: give up when the service has refused for as long as you choose, at least a
// minute. The intervals and Changed are not used.
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) PollWithdrawal(
	ctx context.Context, withdrawRequestID string, w WaitOptions, opts ...CallOption,
) (seen *Withdrawal, over bool, err error) {
	w.Changed = nil
	p, err := c.newPoller(ctx, withdrawRequestID, w, opts)
	if err != nil {
		return nil, true, err
	}
	p.begun = time.Time{} // a 404 is a refusal at once
	over, err = p.poll(ctx)
	switch {
	case over:
		seen, err = p.result()
		return seen, true, err
	case err == nil:
		return p.progress.Last, false, p.progress.Fault
	}
	_, wrong := err.(*ArgumentError)
	return nil, wrong || p.isFinal(WithdrawalStatusOf(err)), err
}

// inWait makes the calls of a wait report an unknown status once.
func inWait(reported map[Drift]bool) CallOption {
	return func(cfg *callConfig) *ArgumentError {
		cfg.statuses = reported
		return nil
	}
}

// A withdrawalPoller polls one withdrawal.
type withdrawalPoller struct {
	client     *Client
	id         string
	opts       []CallOption
	options    WaitOptions
	begun      time.Time
	refused    time.Time     // when the service began to refuse the inquiry; zero if it does not
	progress   WaitError     // the error if the wait ended now
	retryAfter time.Duration // what the service asked to wait
}

func (c *Client) newPoller(
	ctx context.Context, id string, w WaitOptions, opts []CallOption,
) (*withdrawalPoller, error) {
	name, reason := c.check(ctx)
	if reason == "" {
		name, reason = "w", w.check()
	}
	if reason != "" {
		return nil, &ArgumentError{Operation: OpWithdrawal, Name: name, Reason: reason}
	}
	return &withdrawalPoller{
		client: c, id: id, opts: opts, options: w, begun: time.Now(), progress: WaitError{WithdrawRequestID: id},
	}, nil
}

// poll polls once. It reports whether the status that it saw is final. An error ends the wait too.
func (p *withdrawalPoller) poll(ctx context.Context) (over bool, err error) {
	p.retryAfter = 0
	seen, err := p.client.Withdrawal(ctx, p.id, p.opts...)
	if _, wrong := err.(*ArgumentError); wrong {
		return false, err
	}
	p.progress.Polls++
	if err == nil {
		return p.see(seen), nil
	}
	status := WithdrawalStatusOf(err)
	if status != "" {
		p.progress.Status, p.refused = status, time.Time{}
	}
	switch {
	case status.is(WithdrawalFailed):
		return false, p.waitError(fmt.Errorf("%w: %w", ErrWithdrawalFailed, err))
	case p.isFinal(status) && !status.Terminal():
		return false, p.waitError(fmt.Errorf("%w: %w", ErrFinalStatus, err))
	case p.isFinal(status), p.isRefused(err):
		return false, p.waitError(err)
	case ctx.Err() != nil:
		return false, p.contextEnded(ctx)
	}
	p.progress.Fault = err
	if refusal, ok := errors.AsType[*APIError](err); ok {
		p.retryAfter = min(refusal.RetryAfter, maxPollRetryAfter)
	}
	return false, nil
}

// see notes a withdrawal, and reports whether its status is final.
func (p *withdrawalPoller) see(seen *Withdrawal) bool {
	changed := p.progress.Last == nil || !seen.equal(p.progress.Last)
	p.progress.Last, p.progress.Status, p.refused = seen, seen.Status, time.Time{}
	if changed && p.options.Changed != nil {
		copied := *seen
		p.options.Changed(&copied)
	}
	return p.isFinal(seen.Status)
}

// isFinal reports whether a status ends a wait.
func (p *withdrawalPoller) isFinal(status WithdrawalStatus) bool {
	return status.Terminal() || slices.ContainsFunc(p.options.Final, status.is)
}

// isRefused reports whether a failed inquiry ends the wait: only a refusal by the service itself does, and no response
// that an intermediary may have made.
func (p *withdrawalPoller) isRefused(err error) bool {
	refusal, ok := err.(*APIError)
	ends := []int{400, 401, 403, 404, 410, 422}
	if !ok || !slices.Contains(ends, refusal.StatusCode) || !refusal.said.isOfService(refusal.StatusCode) {
		return false
	}
	now := time.Now()
	if p.refused.IsZero() {
		p.refused = now
	}
	switch {
	case p.progress.Status != "":
		return now.Sub(p.refused) >= refusedFor
	case refusal.StatusCode == 404:
		return now.Sub(p.begun) >= refusedFor
	default:
		return true
	}
}

func (p *withdrawalPoller) contextEnded(ctx context.Context) error {
	var cfg callConfig
	_ = cfg.apply(OpWithdrawal, p.opts) // each poll refuses bad options
	return p.waitError(contextError(ctx, p.client.redactorOf(&cfg)))
}

func (p *withdrawalPoller) waitError(err error) error {
	ended := p.progress
	ended.Err = err
	return &ended
}

// result returns the end of a wait whose last status is final.
func (p *withdrawalPoller) result() (*Withdrawal, error) {
	switch last := p.progress.Last; {
	case last.Status.is(WithdrawalCompleted):
		return last, nil
	case last.Status.is(WithdrawalFailed):
		return nil, p.waitError(ErrWithdrawalFailed)
	default:
		return nil, p.waitError(ErrFinalStatus)
	}
}

// pacer returns a function that draws the waits between polls.
func (w WaitOptions) pacer() func() time.Duration {
	longest := cmp.Or(w.MaxInterval, max(defaultMaxInterval, w.MinInterval))
	shortest := cmp.Or(w.MinInterval, min(defaultMinInterval, longest))
	ceiling := shortest
	return func() time.Duration {
		ceiling = min(ceiling*3/2, longest)
		return shortest + rand.N(ceiling-shortest+1) // #nosec G404 -- jitter need not be secret
	}
}

func (w *Withdrawal) equal(o *Withdrawal) bool {
	return w.Status == o.Status && w.Destination == o.Destination && w.Amount.Equal(o.Amount) && w.Fee.Equal(o.Fee) &&
		w.Coin == o.Coin && w.Network == o.Network && w.WithdrawRequestID == o.WithdrawRequestID
}
