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

type guard func(context.Context) (sqlguard.PendingSummary, error)

func (g guard) PendingSummary(ctx context.Context) (sqlguard.PendingSummary, error) { return g(ctx) }

// pending is a guard with so many orders. The oldest is unknown for the age.
func pending(count int, age time.Duration) guard {
	return func(context.Context) (sqlguard.PendingSummary, error) {
		if count == 0 {
			return sqlguard.PendingSummary{}, nil
		}
		return sqlguard.PendingSummary{Count: count, Oldest: time.Now().Add(-age)}, nil
	}
}

// The gauges of the pending orders. If these cannot be read, no count is left that looks healthy.
func TestRegisterPending(t *testing.T) {
	before := otel.GetErrorHandler()
	defer otel.SetErrorHandler(before)
	const labels = `{gateway_guard="shop",server_address="gateway.example",server_port="443"}`
	gauges := func(count, age float64) map[string]float64 {
		return map[string]float64{
			"gateway_orders_pending" + labels: count, "gateway_orders_oldest_pending_age_seconds" + labels: age, "gateway_orders_readable" + labels: 1,
		}
	}
	unreadable := map[string]float64{"gateway_orders_readable" + labels: 0}
	synctest.Test(t, func(t *testing.T) {
		var answer guard
		var handled string
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { handled += err.Error() }))
		o := newTelemetry("https://gateway.example")
		asked := guard(func(ctx context.Context) (sqlguard.PendingSummary, error) { return answer(ctx) })
		o.Guard = "shop"
		registration, err := otelgateway.RegisterPending(asked, o.Options)
		require.NoError(t, err)
		for _, tt := range []struct {
			name   string
			answer guard
			want   map[string]float64
			error  string
			took   time.Duration
		}{
			{"none", pending(0, 0), gauges(0, 0), "", 0},
			{"three, the oldest for an hour", pending(3, time.Hour), gauges(3, 3600), "", 0},
			{"one, by a clock that is ahead", pending(1, -time.Minute), gauges(1, 0), "", 0},
			{"an error", func(context.Context) (sqlguard.PendingSummary, error) {
				return sqlguard.PendingSummary{Count: 7}, errors.New("no route to host")
			}, unreadable, "otelgateway: the pending orders cannot be read: no route to host", 0},
			{"a stall", func(ctx context.Context) (sqlguard.PendingSummary, error) {
				<-ctx.Done()
				return sqlguard.PendingSummary{}, ctx.Err()
			}, unreadable, "otelgateway: the pending orders cannot be read: context deadline exceeded", 5 * time.Second},
			{"when it works again", pending(1, time.Second), gauges(1, 1), "", 0},
		} {
			answer, handled = tt.answer, ""
			begun := time.Now()
			assert.Equal(t, tt.want, o.series(t), tt.name)
			assert.Equal(t, tt.took, time.Since(begun), tt.name)
			assert.Equal(t, tt.error, handled, tt.name)
		}
		require.NoError(t, registration.Unregister())
		assert.Empty(t, o.series(t), "after Unregister")
	})
	_, err := otelgateway.RegisterPending(nil, otelgateway.Options{})
	assert.EqualError(t, err, "otelgateway: RegisterPending: guard is required")
	_, err = otelgateway.RegisterPending(pending(0, 0), otelgateway.Options{})
	assert.EqualError(t, err, `otelgateway: RegisterPending: Options.Guard is required: name the guard, such as "shop"`)
}
