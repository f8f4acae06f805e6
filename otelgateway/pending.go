package otelgateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/cryptogw/gateway/sqlguard"
)

const (
	pendingTimeout  = 5 * time.Second  // how long an observation waits for the database
	pendingInterval = 10 * time.Second // how often the database is asked, at most
)

// A PendingSummarizer knows the orders that must be looked up, as a [sqlguard.Guard] does.
type PendingSummarizer interface {
	// PendingSummary returns how many orders are pending, and since when.
	PendingSummary(ctx context.Context) (sqlguard.PendingSummary, error)
}

// RegisterPending registers the gauges of the orders that are pending in a guard, with the
// MeterProvider of the options: gateway.orders.pending, how many they are, and
// gateway.orders.oldest_pending.age, for how long the oldest is unknown, in seconds by the
// clocks of this process and of the database; 0 if there is none.
//
// They are read when the metrics are, at most every 10 seconds however many readers there
// are, and an observation waits for 5 seconds at most. If they cannot be read, these gauges
// have no value, gateway.orders.readable is 0 instead of 1, and the error is passed to
// [otel.Handle].
//
// All processes over one table report the same orders: take the maximum, not the sum. RegisterPending
// returns the error of the MeterProvider, or an error for a nil guard.
func RegisterPending(guard PendingSummarizer, opts Options) (metric.Registration, error) {
	if guard == nil {
		return nil, errors.New("otelgateway: RegisterPending: guard is required")
	}
	meter := opts.meter()
	count, err1 := meter.Int64ObservableGauge("gateway.orders.pending", metric.WithUnit("{order}"),
		metric.WithDescription("Orders with an unknown outcome, which must be looked up at the gateway; the same in all processes."))
	age, err2 := meter.Float64ObservableGauge("gateway.orders.oldest_pending.age", metric.WithUnit("s"),
		metric.WithDescription("For how long the oldest of the pending orders has been unknown; 0 if there is none."))
	readable, err3 := meter.Int64ObservableGauge("gateway.orders.readable",
		metric.WithDescription("Whether the pending orders could be read: 1, or 0 if the database of the order guard fails."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	p, attributes := &pending{ask: guard.PendingSummary}, metric.WithAttributes(serverOf(opts.BaseURL)...)
	// It returns no error: a periodic reader would then export no metric at all.
	return meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		summary, err := p.read(ctx)
		if err != nil {
			otel.Handle(err)
			o.ObserveInt64(readable, 0, attributes)
			return nil
		}
		o.ObserveInt64(readable, 1, attributes)
		o.ObserveInt64(count, int64(summary.Count), attributes)
		o.ObserveFloat64(age, ageOf(summary).Seconds(), attributes)
		return nil
	}, count, age, readable)
}

func ageOf(s sqlguard.PendingSummary) time.Duration {
	if s.Oldest.IsZero() {
		return 0
	}
	return max(0, time.Since(s.Oldest)) // the clock of the database can be ahead
}

// pending reads the pending orders for all that observe them.
type pending struct {
	ask func(context.Context) (sqlguard.PendingSummary, error)

	mu      sync.Mutex
	asked   time.Time // zero for never
	summary sqlguard.PendingSummary
	err     error
}

// read returns an answer that is at most pendingInterval old. One observation asks for all, so that its
// context does not end the question.
func (p *pending) read(ctx context.Context) (sqlguard.PendingSummary, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked.IsZero() || time.Since(p.asked) >= pendingInterval {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pendingTimeout)
		defer cancel()
		p.asked = time.Now()
		p.summary, p.err = p.ask(ctx)
		if p.err != nil {
			p.err = fmt.Errorf("otelgateway: the pending orders cannot be read: %w", p.err)
		}
	}
	return p.summary, p.err
}
