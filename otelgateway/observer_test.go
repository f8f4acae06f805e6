package otelgateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/otelgateway"
)

// The spans and counters of a call. The spans are compared without operation, method and route; the counters of outcomes
// and failures agree with the last span.
func TestNew(t *testing.T) {
	create := func(ctx context.Context, f fixture) {
		_, _ = f.client.CreateInvoice(ctx, everycall.Order("A-17"))
	}
	again := func(ctx context.Context, f fixture) {
		create(ctx, f)
		f.exporter.Reset()
		create(ctx, f)
	}
	inquire := func(ctx context.Context, f fixture) { _ = f.inquire(ctx) }
	createWith := func(opt gateway.Option) func(context.Context, fixture) {
		return func(ctx context.Context, f fixture) {
			client := f.connect(t, otelgateway.New(f.Options), opt)
			_, _ = client.CreateInvoice(ctx, everycall.Order("A-17"))
			ended, cancel := context.WithCancel(ctx)
			cancel()
			_ = client.Shutdown(ended) // without waiting for outcomes that are recorded in the background
		}
	}
	guarded := func(g brokenGuard) func(context.Context, fixture) { return createWith(gateway.WithOrderGuard(g)) }
	leaving := func(ctx context.Context, f fixture) {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := f.client.CreateInvoice(short, everycall.Order("A-17"))
		require.ErrorIs(t, err, gateway.ErrStillSending)
		require.NoError(t, f.client.Shutdown(ctx))
	}
	none := gatewaytest.Fault{}
	const inquiry, creation = "GET /api/withdrawal/inquiry/{withdrawRequestId}", "POST /api/invoice/create"
	for _, tt := range []struct {
		name  string
		fault gatewaytest.Fault
		call  func(ctx context.Context, f fixture)
		want  []string
	}{
		{"a success", none, create, []string{
			creation + " http.response.status_code=201",
			"gateway.create_invoice gateway.attempts=1 gateway.outcome=succeeded http.response.status_code=201",
		}},
		{"a refusal", gatewaytest.FaultRefuse(422, "no"), create, []string{
			creation + " error.type=422 http.response.status_code=422 Error",
			"gateway.create_invoice error.type=422 gateway.attempts=1 gateway.outcome=rejected http.response.status_code=422 Error",
		}},
		{"a response that is lost", gatewaytest.FaultCommitThenDrop(), create, []string{
			creation + " error.type=wait Error",
			"gateway.create_invoice error.type=wait gateway.attempts=1 gateway.outcome=unknown Error",
		}},
		{"a read that is tried again", gatewaytest.FaultRefuse(503, "not now").RetryAfter("7"), inquire, []string{
			inquiry + " error.type=503 gateway.retry_wait=7 http.response.status_code=503 Error",
			inquiry + " http.request.resend_count=1 http.response.status_code=201",
			"gateway.withdrawal gateway.attempts=2 gateway.outcome=succeeded http.response.status_code=201",
		}},
		{"a response that differs from the interface", none, func(ctx context.Context, f fixture) {
			_ = f.gw.SetWithdrawalStatus(f.gw.Withdrawals()[0].WithdrawRequestID, "ON_HOLD")
			inquire(ctx, f)
		}, []string{
			inquiry + " http.response.status_code=201",
			"gateway.withdrawal gateway.attempts=1 gateway.drift=true gateway.outcome=succeeded http.response.status_code=201",
			`drift_total{gateway_drift_kind="unknown_status",gateway_operation="withdrawal"} 1`,
		}},
		{"an order that is created already", none, again, []string{
			"gateway.create_invoice gateway.attempts=0 gateway.outcome=succeeded gateway.replayed=true",
		}},
		{"an outcome that the guard cannot record", none, guarded(brokenGuard{end: errors.New("the disk is full")}), []string{
			creation + " http.response.status_code=201",
			"gateway.create_invoice gateway.attempts=1 gateway.outcome=succeeded gateway.unrecorded=true http.response.status_code=201",
			`unrecorded_total{gateway_operation="create_invoice"} 1`,
		}},
		{"a deadline that costs nothing", gatewaytest.FaultSlowBody(20 * time.Millisecond), leaving, []string{
			creation + " http.response.status_code=201",
			"gateway.create_invoice gateway.attempts=1 gateway.left=true gateway.outcome=succeeded http.response.status_code=201",
			`left_total{gateway_operation="create_invoice",gateway_outcome="succeeded"} 1`,
		}},
		{"a deadline before an unknown outcome", gatewaytest.FaultStall(), leaving, []string{
			creation + " error.type=timeout Error",
			"gateway.create_invoice error.type=timeout gateway.attempts=1 gateway.left=true gateway.outcome=unknown Error",
			`left_total{gateway_operation="create_invoice",gateway_outcome="unknown"} 1`,
		}},
		{"a guard that takes too long", none, guarded(brokenGuard{begin: context.DeadlineExceeded}), []string{
			"gateway.create_invoice error.type=order gateway.attempts=0 gateway.outcome=undecided Error",
		}},
		{"an order that is unknown already", gatewaytest.FaultCommitThenDrop(), again, []string{
			"gateway.create_invoice error.type=order_outcome_unknown gateway.attempts=0 gateway.outcome=unknown Error",
		}},
		{"a missing key", none, func(ctx context.Context, f fixture) {
			f.gw.APIKey = ""
			createWith(gateway.WithoutAPIKey())(ctx, f)
		}, []string{
			"gateway.create_invoice error.type=missing_api_key gateway.attempts=0 gateway.outcome=not_sent Error",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f fixture) {
				for _, op := range []gatewaytest.Operation{gatewaytest.OpCreateInvoice, gatewaytest.OpWithdrawal} {
					f.gw.InjectFault(op, 1, tt.fault)
				}
				tt.call(t.Context(), f)
				got := f.spans("gateway.operation", "http.request.method", "url.template")
				assert.Equal(t, tt.want, append(got, f.counted(t, "left_total", "cut_total", "unrecorded_total", "drift_total", "in_flight")...))
				spans := f.exporter.GetSpans()
				last := attributesOf(spans[len(spans)-1])
				outcome := fmt.Sprintf("outcomes_total{gateway_operation=%q,gateway_outcome=%q} ", last["gateway.operation"], last["gateway.outcome"])
				assert.Contains(t, strings.Join(f.counted(t, "outcomes_total"), "\n"), outcome)
				assert.Equal(t, last["error.type"] != "", len(f.counted(t, "failures_total")) > 0)
			})
		})
	}
}

// The deadline of one more call than a client sends without a caller cuts its invoice.
func TestNew_cut(t *testing.T) {
	inBubble(t, func(t *testing.T, f fixture) {
		f.gw.InjectFault(gatewaytest.OpCreateInvoice, -1, gatewaytest.FaultStall())
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var calls sync.WaitGroup
		for i := range 257 {
			calls.Go(func() { _, _ = f.client.CreateInvoice(short, everycall.Order(strconv.Itoa(i))) })
		}
		calls.Wait()
		require.NoError(t, f.client.Shutdown(t.Context()))
		assert.Equal(t, []string{
			`cut_total{gateway_operation="create_invoice"} 1`, `left_total{gateway_operation="create_invoice",gateway_outcome="unknown"} 256`,
		}, f.counted(t, "cut_total", "left_total"))
	})
}

// A brokenGuard grants every lease and records every outcome, unless these errors are set.
type brokenGuard struct{ begin, end error }

func (g brokenGuard) Begin(context.Context, gateway.Order) (gateway.Lease, error) {
	return gateway.Lease{}, g.begin
}

func (g brokenGuard) End(_ context.Context, _ gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	return r, g.end
}

func fails(err error) roundTrip {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// Every call has a span, and below it one for its attempt, with the global providers too, and the gateway gets no trace
// headers, even if the process has a global propagator.
func TestNew_everyCall(t *testing.T) {
	tracers, meters, propagator := otel.GetTracerProvider(), otel.GetMeterProvider(), otel.GetTextMapPropagator()
	defer func() {
		otel.SetTracerProvider(tracers)
		otel.SetMeterProvider(meters)
		otel.SetTextMapPropagator(propagator)
	}()
	inBubble(t, func(t *testing.T, f fixture) {
		otel.SetTracerProvider(f.TracerProvider)
		otel.SetMeterProvider(f.MeterProvider)
		otel.SetTextMapPropagator(propagation.TraceContext{})
		client := f.connect(t, otelgateway.New(otelgateway.Options{}))
		for _, c := range everycall.Accepted(f.gw) {
			f.exporter.Reset()
			require.NoError(t, c.Send(t.Context(), client))
			spans, requests := f.exporter.GetSpans(), f.gw.Requests()
			require.Len(t, spans, 2, c.Name)
			attempt, call, last := spans[0], spans[1], requests[len(requests)-1]
			assert.Equal(t, []string{c.Method + " " + c.Route, "gateway." + c.Operation}, []string{attempt.Name, call.Name})
			assert.Equal(t, map[string]string{
				"gateway.operation": c.Operation, "http.request.method": c.Method, "url.template": c.Route,
				"http.response.status_code": strconv.Itoa(last.Status),
			}, attributesOf(attempt))
			assert.Equal(t, c.Operation, attributesOf(call)["gateway.operation"])
			assert.Equal(t, []trace.SpanKind{trace.SpanKindClient, trace.SpanKindInternal}, []trace.SpanKind{attempt.SpanKind, call.SpanKind})
			assert.Equal(t, call.SpanContext.SpanID(), attempt.Parent.SpanID())
			assert.Equal(t, gateway.Version, call.InstrumentationScope.Version)
			assert.Empty(t, last.Header.Get("Traceparent"))
		}
		assert.NotEmpty(t, f.counted(t, "outcomes_total"))
	})
}

// The span of the caller is the parent of the call, whose attempts follow each other; the duration is the one of the
// call, waits included, and the call is in flight meanwhile.
func TestNew_times(t *testing.T) {
	inBubble(t, func(t *testing.T, f fixture) {
		f.gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultRefuse(503, "not now").RetryAfter("7"))
		client := f.connect(t, otelgateway.New(f.Options), gateway.WithMiddleware(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(req *http.Request) (*http.Response, error) {
				assert.Equal(t, []string{`in_flight{gateway_operation="exchange_rates"} 1`}, f.counted(t, "in_flight"))
				time.Sleep(40 * time.Millisecond) // of the bubble
				return next.RoundTrip(req)
			})
		}))
		ctx, caller := f.TracerProvider.Tracer("test").Start(t.Context(), "checkout")
		begun := time.Now()
		_, err := client.ExchangeRates(ctx)
		require.NoError(t, err)
		spans := f.exporter.GetSpans()
		require.Len(t, spans, 3)
		assert.Equal(t, caller.SpanContext().SpanID(), spans[2].Parent.SpanID())
		var times []time.Duration
		for _, span := range spans {
			times = append(times, span.StartTime.Sub(begun), span.EndTime.Sub(begun))
		}
		const took, wait = 40 * time.Millisecond, 7 * time.Second
		assert.Equal(t, []time.Duration{0, took, took + wait, 2*took + wait, 0, 2*took + wait}, times)
		assert.Equal(t, []string{`duration_seconds_sum{gateway_operation="exchange_rates"} 7.08`}, f.counted(t, "duration_seconds_sum", "in_flight"))
		bounds := f.metrics(t)["gateway.client.call.duration"].Data.(metricdata.Histogram[float64]).DataPoints[0].Bounds
		assert.Equal(t, 180.0, bounds[len(bounds)-1], "three attempts of an invoice")
	})
}

// An observer that is added after has the span of the call in its contexts, and an observer that makes a span of its own
// keeps none from ending.
func TestNew_observers(t *testing.T) {
	inBubble(t, func(t *testing.T, f fixture) {
		spans := map[trace.SpanID]bool{}
		saw := func(ctx context.Context) { spans[trace.SpanContextFromContext(ctx).SpanID()] = true }
		after := gateway.WithObserver(gateway.Observer{
			Start:   func(ctx context.Context, _ gateway.Call) context.Context { saw(ctx); return ctx },
			End:     func(ctx context.Context, _ gateway.Call) { saw(ctx) },
			Attempt: func(ctx context.Context, _ gateway.Attempt) { saw(ctx) },
		})
		other := newTelemetry("")
		_, err := f.connect(t, otelgateway.New(other.Options), otelgateway.New(f.Options), after).ExchangeRates(t.Context())
		require.NoError(t, err)
		assert.Equal(t, map[trace.SpanID]bool{f.exporter.GetSpans()[0].Parent.SpanID(): true}, spans)
		for _, o := range []telemetry{f.telemetry, other} {
			assert.Len(t, o.spans(), 2)
			assert.Empty(t, o.counted(t, "in_flight"))
		}
	})
}
