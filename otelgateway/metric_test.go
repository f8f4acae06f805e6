package otelgateway_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/documented/everycall"
	"github.com/cryptogw/gateway/otelgateway"
)

// The metrics have these names, units and kinds.
func TestNew_metrics(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		f.gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultEdit("/result/status", `"ON_HOLD"`))
		_, err := f.client.Withdrawal(t.Context(), f.gw.Withdrawals()[0].WithdrawRequestID)
		require.NoError(t, err)
		units := map[string]string{}
		for name, metric := range f.collect(t) {
			units[name] = metric.Unit
			assert.Regexp(t, `^[A-Z].*\.$`, metric.Description, name)
			if sum, ok := metric.Data.(metricdata.Sum[int64]); ok {
				assert.Equal(t, name != "gateway.client.call.in_flight", sum.IsMonotonic, name)
			}
		}
		assert.Equal(t, map[string]string{
			"gateway.client.call.duration":   "s",
			"gateway.client.call.attempts":   "{attempt}",
			"gateway.client.call.outcomes":   "{call}",
			"gateway.client.call.failures":   "{call}",
			"gateway.client.call.unrecorded": "{call}",
			"gateway.client.call.in_flight":  "{call}",
			"gateway.client.call.drift":      "{place}",
		}, units)
	})
}

// A retried read is one call with three attempts, each counted by its result.
func TestNew_counts(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		f.gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultReset())
		f.gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultRefuse(503, "not now"))
		for range 2 {
			_, err := f.client.ExchangeRates(t.Context())
			require.NoError(t, err)
		}
		_, err := f.client.Withdrawal(t.Context(), "none such")
		require.ErrorIs(t, err, gateway.ErrNotFound)

		const rates, route = "gateway.operation=exchange_rates", ",http.request.method=GET"
		assert.Equal(t, map[string]int64{
			"error.type=wait," + rates + route + ",url.template=/api/exchange-rate":                                                                           1,
			"error.type=503," + rates + route + ",http.response.status_code=503,url.template=/api/exchange-rate":                                              1,
			rates + route + ",http.response.status_code=200,url.template=/api/exchange-rate":                                                                  2,
			"error.type=404,gateway.operation=withdrawal" + route + ",http.response.status_code=404,url.template=/api/withdrawal/inquiry/{withdrawRequestId}": 1,
		}, f.sums(t, "attempts"))
		assert.Equal(t, map[string]int64{
			rates + ",gateway.outcome=succeeded":                    2,
			"gateway.operation=withdrawal,gateway.outcome=not_sent": 1,
		}, f.counted(t, "outcomes"))
		assert.Equal(t, map[string]int64{"error.type=404,gateway.operation=withdrawal": 1}, f.counted(t, "failures"))
		assert.Empty(t, f.counted(t, "drift"))
		assert.Empty(t, f.counted(t, "unrecorded"))
	})
}

// Before the first call there is a series of 0 for what an alarm is for, so that the first
// event of a process is an increase.
func TestNew_beginsWithZero(t *testing.T) {
	o := newTelemetry()
	opts := o.options()
	opts.BaseURL = "https://gateway.example"
	otelgateway.New(opts)
	const create, server = "gateway.operation=create_invoice", ",server.address=gateway.example,server.port=443"
	for metric, series := range map[string][]string{
		"outcomes": {
			create + ",gateway.outcome=succeeded", create + ",gateway.outcome=not_sent", create + ",gateway.outcome=rejected",
			create + ",gateway.outcome=unknown", create + ",gateway.outcome=conflict", "gateway.operation=balance,gateway.outcome=not_sent",
		},
		"failures": {
			"error.type=401," + create, "error.type=429," + create, "error.type=missing_api_key," + create, "error.type=decode," + create,
			"error.type=response_mismatch," + create, "error.type=response_too_large," + create,
			"error.type=order_conflict," + create, "error.type=order," + create, "error.type=circuit_open," + create, "error.type=429,gateway.operation=exchange_rates",
		},
		"unrecorded": {create},
		"drift":      {"gateway.drift.kind=unknown_field," + create, "gateway.drift.kind=unknown_status,gateway.operation=withdrawal"},
	} {
		sums := o.sums(t, metric)
		for _, one := range series {
			assert.Contains(t, sums, one+server, metric)
		}
		for one, value := range sums {
			assert.Zero(t, value, one)
		}
	}
	for name, count := range map[string]int{"outcomes": 19, "failures": 51, "unrecorded": 1, "drift": 40} {
		assert.Len(t, o.sums(t, name), count, name)
	}
}

// An outcome that the guard could not record is counted, whatever the outcome is.
func TestNew_unrecorded(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		client := f.connect(t, f.gw.Transport(), f.options(), gateway.WithOrderGuard(forgetfulGuard{}))
		_, err := client.CreateInvoice(t.Context(), order())
		require.NoError(t, err)
		assert.Equal(t, map[string]int64{"gateway.operation=create_invoice": 1}, f.counted(t, "unrecorded"))
		assert.Empty(t, f.counted(t, "failures"))
	})
}

// A forgetfulGuard grants every lease and records nothing.
type forgetfulGuard struct{}

func (forgetfulGuard) Begin(context.Context, gateway.Order) (gateway.Lease, error) {
	return gateway.Lease{}, nil
}

func (forgetfulGuard) End(_ context.Context, _ gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	return r, errors.New("the disk is full")
}

// An invoice that an open circuit holds back is a failure of its own.
func TestNew_circuitOpen(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		client := f.connect(t, f.gw.Transport(), f.options(), gateway.WithCircuitBreaker(5))
		f.gw.InjectFault(gatewaytest.OpCreateInvoice, 5, gatewaytest.FaultPage(502))
		for i := range 6 {
			_, err := client.CreateInvoice(t.Context(), everycall.Order(strconv.Itoa(i)))
			assert.Equal(t, i == 5, errors.Is(err, gateway.ErrCircuitOpen), i)
		}
		assert.EqualValues(t, 1, f.counted(t, "failures")["error.type=circuit_open,gateway.operation=create_invoice"])
	})
}

// The duration is that of the call, waits included.
func TestNew_duration(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		f.gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultRefuse(503, "not now").RetryAfter("7"))
		begun := time.Now()
		_, err := f.client.ExchangeRates(t.Context())
		require.NoError(t, err)
		took := time.Since(begun)
		_, err = f.client.Withdrawal(t.Context(), "..")
		require.Error(t, err)

		data, ok := f.collect(t)["gateway.client.call.duration"].Data.(metricdata.Histogram[float64])
		require.True(t, ok)
		require.Len(t, data.DataPoints, 2)
		for _, point := range data.DataPoints {
			assert.EqualValues(t, 1, point.Count)
			assert.Equal(t, 180.0, point.Bounds[len(point.Bounds)-1], "three attempts of an invoice")
			switch text := point.Attributes.Encoded(attribute.DefaultEncoder()); text {
			case "gateway.operation=exchange_rates":
				assert.InDelta(t, took.Seconds(), point.Sum, 1e-9)
			case "error.type=argument,gateway.operation=withdrawal":
				assert.Zero(t, point.Sum)
			default:
				t.Error(text)
			}
		}
	})
}

// Drift is counted by its kind, and marks the span of the call.
func TestNew_drift(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		id := f.gw.Withdrawals()[0].WithdrawRequestID
		f.gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultEdit("/result/status", `"ON_HOLD"`))
		for range 2 {
			_, err := f.client.Withdrawal(t.Context(), id)
			require.NoError(t, err)
		}
		assert.Equal(t, map[string]int64{"gateway.drift.kind=unknown_status,gateway.operation=withdrawal": 1}, f.counted(t, "drift"))
		require.Len(t, f.names(), 4)
		assert.Equal(t, "true", attributesOf(f.spans()[1])["gateway.drift"])
		assert.NotContains(t, attributesOf(f.spans()[3]), "gateway.drift")
	})
}

// A call is in flight from its beginning to its end, also when a panic, a Goexit or the
// end of its context ends it.
func TestNew_inFlight(t *testing.T) {
	for name, tt := range map[string]struct {
		end     func(cancel func()) // of the transport
		failure string
	}{
		"success": {func(func()) {}, ""},
		"panic":   {func(func()) { panic("of the transport") }, "_OTHER"},
		"Goexit":  {func(func()) { runtime.Goexit() }, "_OTHER"},
		"cancel":  {func(cancel func()) { cancel() }, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, f fixture) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var during int64
				base := f.gw.Transport()
				client := f.connect(t, roundTrip(func(req *http.Request) (*http.Response, error) {
					during = f.inFlight(t)
					tt.end(cancel)
					return base.RoundTrip(req)
				}), f.options())
				var all sync.WaitGroup
				all.Go(func() {
					defer func() { _ = recover() }()
					_, _ = client.CreateInvoice(ctx, order())
				})
				all.Wait()
				assert.EqualValues(t, 1, during)
				assert.Equal(t, map[string]int64{"gateway.operation=create_invoice": 0}, f.sums(t, "in_flight"))
				require.Contains(t, f.names(), "gateway.create_invoice")
				call := f.spans()[len(f.spans())-1]
				assert.Equal(t, tt.failure, attributesOf(call)["error.type"])
			})
		})
	}
}
