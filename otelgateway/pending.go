package otelgateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/cryptogw/gateway/sqlguard"
)

const pendingTimeout = 5 * time.Second // how long an observation waits for the database

// A PendingSummarizer knows the orders that must be looked up, as a [sqlguard.Guard] does.
type PendingSummarizer interface {
	// PendingSummary returns how many orders are pending, and since when.
	PendingSummary(ctx context.Context) (sqlguard.PendingSummary, error)
}

// RegisterPending registers the gauges of the orders that are pending in a guard, with the
// MeterProvider of the options: gateway.orders.pending counts them, and
// gateway.orders.oldest_pending.age is how long the oldest has been unknown, in seconds by the
// clocks of this process and of the database; 0 if none is pending.
//
// Each collection of the metrics reads the orders, for at most 5 seconds. If they cannot be read, these
// gauges have no value, gateway.orders.readable is 0 instead of 1, and [otel.Handle] receives the error.
//
// All processes over one table report the same orders: take the maximum of their counts. Add up the counts of guards with
// different names. Guards of one process need different names, because a gauge hides another with the same attributes.
// RegisterPending returns the error of the MeterProvider, or an error for a nil guard or for one without a name.
func RegisterPending(guard PendingSummarizer, opts Options) (metric.Registration, error) {
	switch {
	case guard == nil:
		return nil, errors.New("otelgateway: RegisterPending: guard is required")
	case opts.Guard == "":
		return nil, errors.New(`otelgateway: RegisterPending: Options.Guard is required: name the guard, such as "shop"`)
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
	attributes := metric.WithAttributes(opts.attributes()...)
	// It returns no error: a periodic reader would then export no metric at all.
	return meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, pendingTimeout)
		defer cancel()
		summary, err := guard.PendingSummary(ctx)
		if err != nil {
			otel.Handle(fmt.Errorf("otelgateway: the pending orders cannot be read: %w", err))
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
