package otelgateway_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/documented/everycall"
	"github.com/cryptogw/gateway/otelgateway"
)

// Every call has a span, and below it one for its attempt.
func TestNew_spans(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		for _, c := range everycall.Accepted(f.gw) {
			f.exporter.Reset()
			require.NoError(t, c.Send(t.Context(), f.client))
			require.Equal(t, []string{c.Method + " " + c.Route, "gateway." + c.Operation}, f.names(), c.Name)
			attempt, call := f.spans()[0], f.spans()[1]

			requests := f.gw.Requests()
			status := strconv.Itoa(requests[len(requests)-1].Status)
			assert.Equal(t, map[string]string{
				"gateway.operation": c.Operation, "http.request.method": c.Method, "url.template": c.Route,
				"http.response.status_code": status,
			}, attributesOf(attempt))
			attributes := attributesOf(call)
			delete(attributes, "gateway.request_id")
			assert.Equal(t, map[string]string{
				"gateway.operation": c.Operation, "gateway.outcome": "succeeded", "gateway.attempts": "1",
				"http.response.status_code": status,
			}, attributes)
			assert.Equal(t, trace.SpanKindClient, attempt.SpanKind)
			assert.Equal(t, trace.SpanKindInternal, call.SpanKind)
			assert.Equal(t, call.SpanContext.SpanID(), attempt.Parent.SpanID())
			assert.False(t, call.Parent.IsValid(), "the caller has no span")
			for _, span := range f.spans() {
				assert.Equal(t, codes.Unset, span.Status.Code)
				assert.Empty(t, span.Events)
				assert.Equal(t, "github.com/cryptogw/gateway/otelgateway", span.InstrumentationScope.Name)
				assert.Equal(t, gateway.Version, span.InstrumentationScope.Version)
			}
		}
	})
}

// The span of the caller is the parent of the call, and the attempts follow each other
// within the call.
func TestNew_retriedRead(t *testing.T) {
	wrap := func(base http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			time.Sleep(40 * time.Millisecond) // of the bubble
			return base.RoundTrip(req)
		})
	}
	inBubble(t, wrap, func(t *testing.T, f fixture) {
		f.gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultReset())
		f.gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultRefuse(503, "not now").RetryAfter("7"))
		ctx, caller := f.tracers.Tracer("test").Start(t.Context(), "checkout")
		begun := time.Now()
		_, err := f.client.ExchangeRates(ctx)
		require.NoError(t, err)
		ended := time.Now()
		caller.End()

		const attempt = "GET /api/exchange-rate"
		require.Equal(t, []string{attempt, attempt, attempt, "gateway.exchange_rates", "checkout"}, f.names())
		spans := f.spans()
		call := spans[3]
		assert.Equal(t, caller.SpanContext().SpanID(), call.Parent.SpanID())
		assert.Equal(t, begun, call.StartTime)
		assert.Equal(t, ended, call.EndTime)
		assert.Equal(t, codes.Unset, call.Status.Code)
		assert.Equal(t, "3", attributesOf(call)["gateway.attempts"])
		for i, want := range []struct{ status, failure, resends, wait string }{
			{"", "wait", "", attributesOf(spans[0])["gateway.retry_wait"]}, // drawn
			{"503", "503", "1", "7"},
			{"200", "", "2", ""},
		} {
			span, attributes := spans[i], attributesOf(spans[i])
			assert.Equal(t, call.SpanContext.SpanID(), span.Parent.SpanID())
			assert.Equal(t, caller.SpanContext().TraceID(), span.SpanContext.TraceID())
			assert.Equal(t, want.status, attributes["http.response.status_code"])
			assert.Equal(t, want.failure, attributes["error.type"])
			assert.Equal(t, want.resends, attributes["http.request.resend_count"])
			assert.Equal(t, want.wait, attributes["gateway.retry_wait"])
			assert.Equal(t, want.failure != "", span.Status.Code == codes.Error)
			assert.Equal(t, 40*time.Millisecond, span.EndTime.Sub(span.StartTime))
		}
		assert.NotEmpty(t, attributesOf(spans[0])["gateway.retry_wait"])
		assert.Equal(t, 7*time.Second, spans[2].StartTime.Sub(spans[1].EndTime))
		assert.Equal(t, ended, spans[2].EndTime)
	})
}

// The span of an invoice has its outcome, and the reason of a failure as one word.
func TestNew_outcomes(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		fault                    gatewaytest.Fault
		outcome, failure, status string
		created                  int
	}{
		{"created", gatewaytest.Fault{}, "succeeded", "", "201", 1},
		{"refused", gatewaytest.FaultRefuse(422, "no"), "rejected", "422", "422", 0},
		{"created, response lost", gatewaytest.FaultCommitThenDrop(), "unknown", "wait", "", 1},
		{"server error", gatewaytest.FaultRefuse(500, "no"), "unknown", "500", "500", 0},
		{"error envelope", gatewaytest.FaultRefuse(200, "no"), "unknown", "error_envelope", "200", 0},
		{"malformed", gatewaytest.FaultEdit("/result", "{"), "unknown", "decode", "201", 1},
		{"redirect", gatewaytest.FaultRedirect(307, "https://other.example"), "unknown", "redirect", "307", 0},
		{"no response in time", gatewaytest.FaultStall(), "unknown", "timeout", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, f fixture) {
				f.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, tt.fault)
				_, err := f.client.CreateInvoice(t.Context(), order())
				require.Equal(t, tt.outcome, gateway.OutcomeOf(err).String())
				assert.Len(t, f.gw.Invoices(), tt.created)
				require.Equal(t, []string{"POST /api/invoice/create", "gateway.create_invoice"}, f.names())
				attempt, call := attributesOf(f.spans()[0]), attributesOf(f.spans()[1])
				assert.Equal(t, tt.outcome, call["gateway.outcome"])
				for i, attributes := range []map[string]string{attempt, call} {
					assert.Equal(t, tt.failure, attributes["error.type"])
					assert.Equal(t, tt.status, attributes["http.response.status_code"])
					assert.Equal(t, tt.failure != "", f.spans()[i].Status.Code == codes.Error)
					assert.Empty(t, f.spans()[i].Status.Description)
				}
				assert.Equal(t, map[string]int64{"gateway.operation=create_invoice,gateway.outcome=" + tt.outcome: 1}, f.counted(t, "outcomes"))
			})
		})
	}
}

// A call that ends before its first attempt has a span without one below it.
func TestNew_withoutAttempt(t *testing.T) {
	for name, tt := range map[string]struct {
		fail    func(context.Context, fixture) error
		failure string
		outcome string
	}{
		"argument": {func(ctx context.Context, f fixture) error {
			_, err := f.client.Withdrawal(ctx, "..")
			return err
		}, "argument", "not_sent"},
		"no key": {func(ctx context.Context, f fixture) error {
			client, err := gateway.New(f.gw.URL, "", otelgateway.New(f.options()))
			require.NoError(t, err)
			_, err = client.Balance(ctx, gateway.BalanceQuery{})
			return err
		}, "missing_api_key", "not_sent"},
		"canceled": {func(ctx context.Context, f fixture) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := f.client.ExchangeRates(ctx)
			return err
		}, "canceled", "not_sent"},
		"order with an invoice for another request": {func(ctx context.Context, f fixture) error {
			_, _ = f.client.CreateInvoice(ctx, order())
			f.exporter.Reset()
			other := order()
			other.CoinSymbol = "BTC"
			_, err := f.client.CreateInvoice(ctx, other)
			return err
		}, "order_conflict", "conflict"},
		"order unknown": {func(ctx context.Context, f fixture) error {
			f.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
			_, _ = f.client.CreateInvoice(ctx, order())
			f.exporter.Reset()
			_, err := f.client.CreateInvoice(ctx, order())
			return err
		}, "order_outcome_unknown", "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, f fixture) {
				require.Error(t, tt.fail(t.Context(), f))
				require.Len(t, f.names(), 1)
				attributes := attributesOf(f.spans()[0])
				assert.Equal(t, tt.failure, attributes["error.type"])
				assert.Equal(t, tt.outcome, attributes["gateway.outcome"])
				assert.Equal(t, "0", attributes["gateway.attempts"])
				assert.NotContains(t, attributes, "http.response.status_code")
				assert.Zero(t, f.inFlight(t))
			})
		})
	}
}

// A span tells a replay from an invoice that was sent, and has what the gateway's log has.
func TestNew_replay(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		for _, replayed := range []string{"", "true"} {
			f.exporter.Reset()
			_, err := f.client.CreateInvoice(t.Context(), order())
			require.NoError(t, err)
			spans := f.spans()
			attributes := attributesOf(spans[len(spans)-1])
			assert.Equal(t, replayed, attributes["gateway.replayed"])
			assert.Len(t, attributes["gateway.request_id"], 26)
		}
	})
}

// BaseURL gives the host and the port, and nothing else.
func TestNew_server(t *testing.T) {
	for baseURL, want := range map[string][2]string{
		"https://gateway.example/merchant-7":         {"gateway.example", "443"},
		"http://localhost":                           {"localhost", "80"},
		"https://user:password@gateway.example:8443": {"gateway.example", "8443"},
		"https://[::1]:9/x":                          {"::1", "9"},
		"":                                           {},
		"https://%zz":                                {},
	} {
		t.Run(baseURL, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, f fixture) {
				f.telemetry = newTelemetry() // without that of the client of the fixture
				opts := f.options()
				opts.BaseURL = baseURL
				_, err := f.connect(t, f.gw.Transport(), opts).ExchangeRates(t.Context())
				require.NoError(t, err)
				for _, span := range f.spans() {
					attributes := attributesOf(span)
					assert.Equal(t, want, [2]string{attributes["server.address"], attributes["server.port"]})
				}
				for name := range f.collect(t) {
					if name != "gateway.client.call.duration" {
						for text := range f.sums(t, strings.TrimPrefix(name, "gateway.client.call.")) {
							assert.Equal(t, want[0] != "", strings.Contains(text, ",server.address="+want[0]+",server.port="+want[1]), text)
						}
					}
				}
			})
		})
	}
}

// The gateway gets no trace headers, even if the process sets a global propagator.
func TestNew_noTraceHeaders(t *testing.T) {
	before := otel.GetTextMapPropagator()
	defer otel.SetTextMapPropagator(before)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	inBubble(t, nil, func(t *testing.T, f fixture) {
		for _, c := range everycall.Accepted(f.gw) {
			require.NoError(t, c.Send(t.Context(), f.client))
		}
		require.NotEmpty(t, f.gw.Requests())
		for _, request := range f.gw.Requests() {
			assert.Empty(t, request.Header.Get("Traceparent"))
		}
	})
}

// Calls at the same time each have their own span, with their own attempts.
func TestNew_concurrent(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		cases := everycall.Accepted(f.gw)
		f.gw.InjectFault(gatewaytest.OpExchangeRates, 20, gatewaytest.FaultRefuse(503, "not now"))
		var all sync.WaitGroup
		for range 10 {
			for _, c := range cases {
				all.Go(func() { _ = c.Send(t.Context(), f.client) })
			}
		}
		all.Wait()
		calls := map[trace.SpanID]tracetest.SpanStub{}
		for _, span := range f.spans() {
			if span.SpanKind == trace.SpanKindInternal {
				calls[span.SpanContext.SpanID()] = span
			}
		}
		assert.Len(t, calls, 10*len(cases))
		attempts := 0
		for _, span := range f.spans() {
			if span.SpanKind != trace.SpanKindClient {
				continue
			}
			attempts++
			call, ok := calls[span.Parent.SpanID()]
			require.True(t, ok, span.Name)
			assert.Equal(t, call.Name, "gateway."+attributesOf(span)["gateway.operation"])
			assert.Equal(t, call.SpanContext.TraceID(), span.SpanContext.TraceID())
		}
		assert.Len(t, f.gw.Requests(), attempts)
		assert.Zero(t, f.inFlight(t))
	})
}

// An observer that is added after has the span of the call in its contexts, and one that makes a span
// of its own keeps none from ending.
func TestNew_observer(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		f.gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultEdit("/result/status", `"ON_HOLD"`))
		var events []string
		spans := map[trace.SpanID]bool{}
		saw := func(ctx context.Context, event string) {
			events = append(events, event)
			spans[trace.SpanContextFromContext(ctx).SpanID()] = true
		}
		after := gateway.WithObserver(gateway.Observer{
			Start:   func(ctx context.Context, _ gateway.Call) context.Context { saw(ctx, "start"); return ctx },
			End:     func(ctx context.Context, _ gateway.Call) { saw(ctx, "end") },
			Attempt: func(ctx context.Context, _ gateway.Attempt) { saw(ctx, "attempt") },
			Drift:   func(ctx context.Context, _ gateway.Drift) { saw(ctx, "drift") },
		})
		id := f.gw.Withdrawals()[0].WithdrawRequestID
		_, err := f.connect(t, f.gw.Transport(), f.options(), after).Withdrawal(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, []string{"start", "drift", "attempt", "end"}, events)
		assert.Equal(t, map[trace.SpanID]bool{f.spans()[1].SpanContext.SpanID(): true}, spans)

		f.exporter.Reset()
		other := newTelemetry()
		_, err = f.connect(t, f.gw.Transport(), f.options(), otelgateway.New(other.options())).Withdrawal(t.Context(), id)
		require.NoError(t, err)
		for _, o := range []*telemetry{f.telemetry, other} {
			require.Contains(t, o.names(), "gateway.withdrawal")
			call := o.spans()[len(o.spans())-1]
			assert.Equal(t, "succeeded", attributesOf(call)["gateway.outcome"])
			assert.Zero(t, o.inFlight(t))
		}
	})
}

// Without providers, the global ones are used.
func TestNew_globalProviders(t *testing.T) {
	tracers, meters := otel.GetTracerProvider(), otel.GetMeterProvider()
	defer func() {
		otel.SetTracerProvider(tracers)
		otel.SetMeterProvider(meters)
	}()
	inBubble(t, nil, func(t *testing.T, f fixture) {
		otel.SetTracerProvider(f.tracers)
		otel.SetMeterProvider(f.meters)
		_, err := f.connect(t, f.gw.Transport(), otelgateway.Options{}).ExchangeRates(t.Context())
		require.NoError(t, err)
		assert.Len(t, f.names(), 2)
		assert.Len(t, f.counted(t, "outcomes"), 1)
	})
}
