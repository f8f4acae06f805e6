package otelgateway_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"

	"github.com/cryptogw/gateway/otelgateway"
	"github.com/cryptogw/gateway/sqlguard"
)

var _ otelgateway.PendingSummarizer = (*sqlguard.Guard)(nil)

// A guard answers with its fields.
type guard func(context.Context) (sqlguard.PendingSummary, error)

func (g guard) PendingSummary(ctx context.Context) (sqlguard.PendingSummary, error) { return g(ctx) }

// registered runs a test in virtual time with the gauges of a guard, whose answer may be changed. handled returns the errors
// that were handled.
func registered(t *testing.T, test func(t *testing.T, o telemetry, answer *guard, handled func() []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		before := otel.GetErrorHandler()
		defer otel.SetErrorHandler(before)
		var texts []string
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { texts = append(texts, err.Error()) }))
		var answer guard
		o := newTelemetry("https://gateway.example")
		registration, err := otelgateway.RegisterPending(guard(func(ctx context.Context) (sqlguard.PendingSummary, error) { return answer(ctx) }), o.Options)
		require.NoError(t, err)
		test(t, o, &answer, func() []string { return texts })
		require.NoError(t, registration.Unregister())
		assert.Empty(t, o.series(t), "after Unregister")
	})
}

// gauges are the series of the pending orders while they can be read.
func gauges(count, age float64) map[string]float64 {
	const server = `{server_address="gateway.example",server_port="443"}`
	return map[string]float64{
		"gateway_orders_pending" + server: count, "gateway_orders_oldest_pending_age_seconds" + server: age, "gateway_orders_readable" + server: 1,
	}
}

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
			registered(t, func(t *testing.T, o telemetry, answer *guard, handled func() []string) {
				*answer = func(context.Context) (sqlguard.PendingSummary, error) {
					s := sqlguard.PendingSummary{Count: tt.count}
					if tt.count > 0 {
						s.Oldest = time.Now().Add(-tt.age)
					}
					return s, nil
				}
				assert.Equal(t, gauges(float64(tt.count), tt.want), o.series(t))
				assert.Empty(t, handled())
			})
		})
	}
}

// However often the metrics are read, the database is asked every ten seconds at most. The age grows meanwhile.
func TestRegisterPending_asksSeldom(t *testing.T) {
	registered(t, func(t *testing.T, o telemetry, answer *guard, _ func() []string) {
		asked, oldest := 0, time.Now().Add(-time.Minute)
		*answer = func(context.Context) (sqlguard.PendingSummary, error) {
			asked++
			return sqlguard.PendingSummary{Count: asked, Oldest: oldest}, nil
		}
		for second := range 30 {
			assert.Equal(t, gauges(float64(1+second/10), float64(60+second)), o.series(t))
			time.Sleep(time.Second)
		}
		assert.Equal(t, 3, asked)
	})
}

// A failure is seen in the next observation after it: no count is left that looks healthy.
func TestRegisterPending_failures(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer guard
		text   string
		took   time.Duration
	}{
		{"an error", func(context.Context) (sqlguard.PendingSummary, error) {
			return sqlguard.PendingSummary{Count: 7}, errors.New("no route to host")
		}, "otelgateway: the pending orders cannot be read: no route to host", 0},
		{"a stall", func(ctx context.Context) (sqlguard.PendingSummary, error) {
			<-ctx.Done()
			return sqlguard.PendingSummary{}, ctx.Err()
		}, "otelgateway: the pending orders cannot be read: context deadline exceeded", 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			registered(t, func(t *testing.T, o telemetry, answer *guard, handled func() []string) {
				works := func(context.Context) (sqlguard.PendingSummary, error) { return sqlguard.PendingSummary{}, nil }
				failed := map[string]float64{`gateway_orders_readable{server_address="gateway.example",server_port="443"}`: 0}
				*answer = works
				assert.Equal(t, gauges(0, 0), o.series(t))
				time.Sleep(10 * time.Second)
				*answer = tt.answer
				begun := time.Now()
				assert.Equal(t, failed, o.series(t))
				assert.Equal(t, tt.took, time.Since(begun))
				assert.Equal(t, []string{tt.text}, handled())
				*answer = works
				assert.Equal(t, failed, o.series(t), "the database is not asked again at once")
				time.Sleep(10 * time.Second)
				assert.Equal(t, gauges(0, 0), o.series(t), "when it works again")
			})
		})
	}
}

func TestRegisterPending_withoutGuard(t *testing.T) {
	_, err := otelgateway.RegisterPending(nil, otelgateway.Options{})
	assert.EqualError(t, err, "otelgateway: RegisterPending: guard is required")
}
