package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

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

// pause draws how long to wait until the next poll.
func (p *poller) pause() time.Duration {
	p.interval = min(max(p.interval, p.options.MinInterval)*3/2, p.options.MaxInterval)
	drawn := p.options.MinInterval + rand.N(p.interval-p.options.MinInterval+1) // #nosec G404 -- jitter need not be secret
	return max(drawn, p.asked)
}

// sleep waits until the next poll is due, or the context ends.
func (p *poller) sleep(ctx context.Context) error {
	timer := time.NewTimer(p.pause())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return p.end(ended(ctx, p.client.ring.keys()))
	}
}

func (p *poller) end(err error) error {
	ended := p.progress
	ended.Err = err
	return &ended
}
