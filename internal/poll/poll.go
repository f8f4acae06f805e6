// Package poll paces the polls of one task, and bounds those of many. The waits between two polls are
// drawn at random and grow.
package poll

import (
	"context"
	"math/rand/v2"
	"time"
)

// Intervals bound the wait between two polls. Min is above zero and not above Max.
type Intervals struct{ Min, Max time.Duration }

// A Pacer draws the waits of one task.
type Pacer struct {
	intervals Intervals
	ceiling   time.Duration // of the last wait; it grows
}

// NewPacer returns a pacer whose waits grow from Min towards Max.
func NewPacer(i Intervals) Pacer { return Pacer{intervals: i} }

// Next draws a wait that is not shorter than atLeast.
func (p *Pacer) Next(atLeast time.Duration) time.Duration {
	shortest := p.intervals.Min
	p.ceiling = min(max(p.ceiling, shortest)*3/2, p.intervals.Max)
	drawn := shortest + rand.N(p.ceiling-shortest+1) // #nosec G404 -- jitter need not be secret
	return max(drawn, atLeast)
}

// Sleep waits, at most until ctx ends. It returns the error of ctx.
func Sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
