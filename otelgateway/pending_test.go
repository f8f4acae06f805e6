package otelgateway_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/cryptogw/gateway/otelgateway"
	"github.com/cryptogw/gateway/sqlguard"
)

var _ otelgateway.PendingSummarizer = (*sqlguard.Guard)(nil)

// A guard answers as it is told to.
type guard struct {
	mu     sync.Mutex
	asked  atomic.Int64
	answer func(context.Context) (sqlguard.PendingSummary, error)
}

func (g *guard) PendingSummary(ctx context.Context) (sqlguard.PendingSummary, error) {
	g.asked.Add(1)
	g.mu.Lock()
	answer := g.answer
	g.mu.Unlock()
	return answer(ctx)
}

func (g *guard) answers(answer func(context.Context) (sqlguard.PendingSummary, error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = answer
}

// registered runs a test in virtual time with the gauges of a guard. The errors that are
// handled are returned by handled.
func registered(t *testing.T, test func(t *testing.T, o *telemetry, g *guard, handled func() []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		before := otel.GetErrorHandler()
		defer otel.SetErrorHandler(before)
		var texts []string
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { texts = append(texts, err.Error()) }))
		o, g := newTelemetry(), &guard{}
		registration, err := otelgateway.RegisterPending(g, o.options())
		require.NoError(t, err)
		test(t, o, g, func() []string { return texts })
		require.NoError(t, registration.Unregister())
		assert.Empty(t, o.gauges(t), "after Unregister")
	})
}

// gauges returns the values of the gauges by the last part of their names.
func (o *telemetry) gauges(t *testing.T) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for name, metric := range o.collect(t) {
		switch data := metric.Data.(type) {
		case metricdata.Gauge[int64]:
			for _, point := range data.DataPoints {
				values[name] = float64(point.Value)
			}
		case metricdata.Gauge[float64]:
			for _, point := range data.DataPoints {
				values[name] = point.Value
			}
		}
	}
	return values
}

const (
	pendingName  = "gateway.orders.pending"
	ageName      = "gateway.orders.oldest_pending.age"
	readableName = "gateway.orders.readable"
)

// The gauges are of the pending orders, and of none.
func TestRegisterPending(t *testing.T) {
	for name, tt := range map[string]struct {
		count int
		age   time.Duration // of the oldest; 0 without one
		want  float64
	}{
		"none":                               {0, 0, 0},
		"three, the oldest for an hour":      {3, time.Hour, 3600},
		"one, by a clock that is ahead":      {1, -time.Minute, 0},
		"many, the oldest for half a second": {20_000, 500 * time.Millisecond, .5},
	} {
		t.Run(name, func(t *testing.T) {
			registered(t, func(t *testing.T, o *telemetry, g *guard, handled func() []string) {
				g.answer = func(context.Context) (sqlguard.PendingSummary, error) {
					s := sqlguard.PendingSummary{Count: tt.count}
					if tt.count > 0 {
						s.Oldest = time.Now().Add(-tt.age)
					}
					return s, nil
				}
				want := map[string]float64{pendingName: float64(tt.count), ageName: tt.want, readableName: 1}
				assert.Equal(t, want, o.gauges(t))
				assert.Empty(t, handled())
			})
		})
	}
}

// The units and descriptions are these.
func TestRegisterPending_units(t *testing.T) {
	registered(t, func(t *testing.T, o *telemetry, g *guard, _ func() []string) {
		g.answer = func(context.Context) (sqlguard.PendingSummary, error) { return sqlguard.PendingSummary{}, nil }
		units := map[string]string{}
		for name, metric := range o.collect(t) {
			units[name] = metric.Unit
			assert.Regexp(t, `^[A-Z].*\.$`, metric.Description, name)
		}
		assert.Equal(t, map[string]string{pendingName: "{order}", ageName: "s", readableName: ""}, units)
	})
}

// However often the metrics are read, the database is asked every ten seconds at most. The
// age grows meanwhile.
func TestRegisterPending_asksSeldom(t *testing.T) {
	registered(t, func(t *testing.T, o *telemetry, g *guard, _ func() []string) {
		oldest := time.Now().Add(-time.Minute)
		g.answer = func(context.Context) (sqlguard.PendingSummary, error) {
			return sqlguard.PendingSummary{Count: int(g.asked.Load()), Oldest: oldest}, nil
		}
		for second := range 30 {
			assert.Equal(t, map[string]float64{
				pendingName: float64(1 + second/10), ageName: float64(60 + second), readableName: 1,
			}, o.gauges(t), second)
			time.Sleep(time.Second)
		}
		assert.EqualValues(t, 3, g.asked.Load())
	})
}

// A failure is seen in the next observation after it: no count is left that looks healthy.
func TestRegisterPending_failures(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(context.Context) (sqlguard.PendingSummary, error)
		text   string
		took   time.Duration
	}{
		"an error": {func(context.Context) (sqlguard.PendingSummary, error) {
			return sqlguard.PendingSummary{Count: 7}, errors.New("no route to host")
		}, "otelgateway: the pending orders cannot be read: no route to host", 0},
		"a stall": {func(ctx context.Context) (sqlguard.PendingSummary, error) {
			<-ctx.Done()
			return sqlguard.PendingSummary{}, ctx.Err()
		}, "otelgateway: the pending orders cannot be read: context deadline exceeded", 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			registered(t, func(t *testing.T, o *telemetry, g *guard, handled func() []string) {
				works := func(context.Context) (sqlguard.PendingSummary, error) { return sqlguard.PendingSummary{}, nil }
				healthy, failed := map[string]float64{pendingName: 0, ageName: 0, readableName: 1}, map[string]float64{readableName: 0}
				g.answers(works)
				assert.Equal(t, healthy, o.gauges(t))
				time.Sleep(10 * time.Second)
				g.answers(tt.answer)
				begun := time.Now()
				assert.Equal(t, failed, o.gauges(t))
				assert.Equal(t, tt.took, time.Since(begun))
				assert.Equal(t, []string{tt.text}, handled())
				assert.Equal(t, failed, o.gauges(t), "at once again")
				time.Sleep(10 * time.Second)
				g.answers(works)
				assert.Equal(t, healthy, o.gauges(t), "when it works again")
				assert.EqualValues(t, 3, g.asked.Load())
			})
		})
	}
}

// What cannot be registered is an error.
func TestRegisterPending_errors(t *testing.T) {
	_, err := otelgateway.RegisterPending(nil, otelgateway.Options{MeterProvider: noop.NewMeterProvider()})
	assert.EqualError(t, err, "otelgateway: RegisterPending: guard is required")
}
