package otelgateway_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/otelgateway"
)

// always are the attributes of every span, which the table below leaves out.
var always = []string{"gateway.operation", "http.request.method", "url.template"}

// recorded is what was recorded of calls, in lines: each span in the order of the ends, and each counter.
func (f fixture) recorded(t *testing.T) (lines []string) {
	t.Helper()
	for _, span := range f.spans() {
		attributes := attributesOf(span)
		for _, name := range always {
			delete(attributes, name)
		}
		line := span.Name
		for _, name := range slices.Sorted(maps.Keys(attributes)) {
			line += " " + name + "=" + attributes[name]
		}
		if span.Status.Code == codes.Error {
			line += " Error"
		}
		lines = append(lines, line)
	}
	for _, counter := range []string{"outcomes", "failures", "unrecorded", "drift"} {
		counted := f.counted(t, counter)
		for _, series := range slices.Sorted(maps.Keys(counted)) {
			lines = append(lines, fmt.Sprint(counter, " ", strings.ReplaceAll(series, ",", " "), ": ", counted[series]))
		}
	}
	return lines
}

// What is recorded of a call.
func TestNew(t *testing.T) {
	create := func(ctx context.Context, f fixture) error {
		_, err := f.client.CreateInvoice(ctx, order())
		return err
	}
	inquire := func(ctx context.Context, f fixture) error {
		_, err := f.client.Withdrawal(ctx, f.gw.Withdrawals()[0].WithdrawRequestID)
		return err
	}
	after := func(f fixture, first func(), then func() error) error {
		first()
		f.exporter.Reset()
		return then()
	}
	const inquiry, creation = "GET /api/withdrawal/inquiry/{withdrawRequestId}", "POST /api/invoice/create"
	for _, tt := range []struct {
		name  string
		fault gatewaytest.Fault
		opts  []gateway.Option
		call  func(ctx context.Context, f fixture) error
		want  []string
	}{
		{"a success", gatewaytest.Fault{}, nil, create, []string{
			creation + " http.response.status_code=201",
			"gateway.create_invoice gateway.attempts=1 gateway.outcome=succeeded http.response.status_code=201",
			"outcomes gateway.operation=create_invoice gateway.outcome=succeeded: 1",
		}},
		{"a refusal", gatewaytest.FaultRefuse(422, "no"), nil, create, []string{
			creation + " error.type=422 http.response.status_code=422 Error",
			"gateway.create_invoice error.type=422 gateway.attempts=1 gateway.outcome=rejected http.response.status_code=422 Error",
			"outcomes gateway.operation=create_invoice gateway.outcome=rejected: 1",
			"failures error.type=422 gateway.operation=create_invoice: 1",
		}},
		{"a response that is lost", gatewaytest.FaultCommitThenDrop(), nil, create, []string{
			creation + " error.type=wait Error",
			"gateway.create_invoice error.type=wait gateway.attempts=1 gateway.outcome=unknown Error",
			"outcomes gateway.operation=create_invoice gateway.outcome=unknown: 1",
			"failures error.type=wait gateway.operation=create_invoice: 1",
		}},
		{"a read that is tried again", gatewaytest.FaultRefuse(503, "not now").RetryAfter("7"), nil, inquire, []string{
			inquiry + " error.type=503 gateway.retry_wait=7 http.response.status_code=503 Error",
			inquiry + " http.request.resend_count=1 http.response.status_code=201",
			"gateway.withdrawal gateway.attempts=2 gateway.outcome=succeeded http.response.status_code=201",
			"outcomes gateway.operation=withdrawal gateway.outcome=succeeded: 1",
		}},
		{"a response that differs from the interface", gatewaytest.Fault{}, nil, func(ctx context.Context, f fixture) error {
			return after(f, func() { _ = f.gw.SetWithdrawalStatus(f.gw.Withdrawals()[0].WithdrawRequestID, "ON_HOLD") },
				func() error { return inquire(ctx, f) })
		}, []string{
			inquiry + " http.response.status_code=201",
			"gateway.withdrawal gateway.attempts=1 gateway.drift=true gateway.outcome=succeeded http.response.status_code=201",
			"outcomes gateway.operation=withdrawal gateway.outcome=succeeded: 1",
			"drift gateway.drift.kind=unknown_status gateway.operation=withdrawal: 1",
		}},
		{"an argument that is refused", gatewaytest.Fault{}, nil, func(ctx context.Context, f fixture) error {
			_, err := f.client.Withdrawal(ctx, "..")
			return err
		}, []string{
			"gateway.withdrawal error.type=argument gateway.attempts=0 gateway.outcome=not_sent Error",
			"outcomes gateway.operation=withdrawal gateway.outcome=not_sent: 1",
			"failures error.type=argument gateway.operation=withdrawal: 1",
		}},
		{"a context that has ended", gatewaytest.Fault{}, nil, func(ctx context.Context, f fixture) error {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return inquire(ended, f)
		}, []string{
			"gateway.withdrawal error.type=canceled gateway.attempts=0 gateway.outcome=not_sent Error",
			"outcomes gateway.operation=withdrawal gateway.outcome=not_sent: 1",
			"failures error.type=canceled gateway.operation=withdrawal: 1",
		}},
		{"an order that is created already", gatewaytest.Fault{}, nil, func(ctx context.Context, f fixture) error {
			return after(f, func() { _ = create(ctx, f) }, func() error { return create(ctx, f) })
		}, []string{
			"gateway.create_invoice gateway.attempts=0 gateway.outcome=succeeded gateway.replayed=true",
			"outcomes gateway.operation=create_invoice gateway.outcome=succeeded: 2",
		}},
		{"an order that is created already, for another request", gatewaytest.Fault{}, nil, func(ctx context.Context, f fixture) error {
			return after(f, func() { _ = create(ctx, f) }, func() error {
				other := order()
				other.CoinSymbol = "BTC"
				_, err := f.client.CreateInvoice(ctx, other)
				return err
			})
		}, []string{
			"gateway.create_invoice error.type=order_conflict gateway.attempts=0 gateway.outcome=conflict Error",
			"outcomes gateway.operation=create_invoice gateway.outcome=conflict: 1",
			"outcomes gateway.operation=create_invoice gateway.outcome=succeeded: 1",
			"failures error.type=order_conflict gateway.operation=create_invoice: 1",
		}},
		{"an order of unknown outcome", gatewaytest.FaultReset(), nil, func(ctx context.Context, f fixture) error {
			return after(f, func() { _ = create(ctx, f) }, func() error { return create(ctx, f) })
		}, []string{
			"gateway.create_invoice error.type=order_outcome_unknown gateway.attempts=0 gateway.outcome=unknown Error",
			"outcomes gateway.operation=create_invoice gateway.outcome=unknown: 2",
			"failures error.type=order_outcome_unknown gateway.operation=create_invoice: 1",
			"failures error.type=wait gateway.operation=create_invoice: 1",
		}},
		{"an outcome that the guard cannot record", gatewaytest.Fault{}, []gateway.Option{gateway.WithOrderGuard(forgetfulGuard{})}, create, []string{
			creation + " http.response.status_code=201",
			"gateway.create_invoice gateway.attempts=1 gateway.outcome=succeeded gateway.unrecorded=true http.response.status_code=201",
			"outcomes gateway.operation=create_invoice gateway.outcome=succeeded: 1",
			"unrecorded gateway.operation=create_invoice: 1",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, f fixture) {
				for _, op := range []gatewaytest.Operation{gatewaytest.OpCreateInvoice, gatewaytest.OpWithdrawal} {
					f.gw.InjectFault(op, 1, tt.fault)
				}
				f.telemetry = newTelemetry()
				f.client = f.connect(t, f.gw.Transport(), f.options(), tt.opts...)
				_ = tt.call(t.Context(), f)
				assert.Equal(t, tt.want, f.recorded(t))
				assert.Zero(t, f.inFlight(t))
			})
		})
	}
}

// A forgetfulGuard grants every lease and records nothing.
type forgetfulGuard struct{}

func (forgetfulGuard) Begin(context.Context, gateway.Order) (gateway.Lease, error) {
	return gateway.Lease{}, nil
}

func (forgetfulGuard) End(_ context.Context, _ gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	return r, errors.New("the disk is full")
}

// The type of a failure is one word, of a closed list.
func TestNew_errorType(t *testing.T) {
	json := "application/json"
	dial := func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	noKey := gateway.WithAPIKeySource(func(context.Context) (string, error) { return "", nil })
	vault := gateway.WithAPIKeySource(func(context.Context) (string, error) {
		return "", &gateway.APIError{Operation: "vault", StatusCode: 418}
	})
	for want, tt := range map[string]struct {
		transport roundTrip
		option    gateway.Option
	}{
		"dial":               {dial, nil},
		"404":                {respond(404, json, `{"message":"No.","result":[],"meta":{}}`), nil},
		"redirect":           {respond(307, json, ""), nil},
		"decode":             {respond(201, json, "<html>"), nil},
		"error_envelope":     {respond(200, json, `{"message":"No.","result":[],"meta":{}}`), nil},
		"response_too_large": {respond(201, json, everycall.Enveloped(everycall.WithdrawalJSON)+strings.Repeat(" ", 8<<20)), nil},
		"response_mismatch":  {respond(201, json, everycall.Enveloped(strings.Replace(everycall.WithdrawalJSON, everycall.WithdrawalID, "other", 1))), nil},
		"timeout":            {func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }, nil},
		"missing_api_key":    {nil, noKey},
		"start":              {nil, vault}, // although the source's own error has a status
		"_OTHER":             {func(*http.Request) (*http.Response, error) { panic("of the transport") }, nil},
	} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, f fixture) {
				key := f.gw.APIKey
				opts := []gateway.Option{otelgateway.New(f.options()), gateway.WithHTTPClient(&http.Client{Transport: tt.transport})}
				if tt.option != nil {
					opts = append(opts, tt.option)
				}
				if tt.transport == nil {
					key = ""
				}
				client, err := gateway.New(f.gw.URL, key, opts...)
				require.NoError(t, err)
				func() {
					defer func() { _ = recover() }()
					_, err = client.Withdrawal(t.Context(), everycall.WithdrawalID)
				}()
				last := f.spans()[len(f.spans())-1]
				assert.Equal(t, want, attributesOf(last)["error.type"], "%v", err)
				assert.Zero(t, f.inFlight(t))
			})
		})
	}
}

// Every call has a span, and below it one for its attempt, and the gateway gets no trace headers, even if the
// process has a global propagator.
func TestNew_everyCall(t *testing.T) {
	before := otel.GetTextMapPropagator()
	defer otel.SetTextMapPropagator(before)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	inBubble(t, nil, func(t *testing.T, f fixture) {
		for _, c := range everycall.Accepted(f.gw) {
			f.exporter.Reset()
			require.NoError(t, c.Send(t.Context(), f.client))
			require.Equal(t, []string{c.Method + " " + c.Route, "gateway." + c.Operation}, f.names(), c.Name)
			attempt, call := f.spans()[0], f.spans()[1]
			requests := f.gw.Requests()
			assert.Equal(t, map[string]string{
				"gateway.operation": c.Operation, "http.request.method": c.Method, "url.template": c.Route,
				"http.response.status_code": strconv.Itoa(requests[len(requests)-1].Status),
			}, attributesOf(attempt))
			assert.Equal(t, c.Operation, attributesOf(call)["gateway.operation"])
			assert.Equal(t, trace.SpanKindClient, attempt.SpanKind)
			assert.Equal(t, trace.SpanKindInternal, call.SpanKind)
			assert.Equal(t, call.SpanContext.SpanID(), attempt.Parent.SpanID())
			assert.False(t, call.Parent.IsValid(), "the caller has no span")
			assert.Equal(t, gateway.Version, call.InstrumentationScope.Version)
			assert.Empty(t, requests[len(requests)-1].Header.Get("Traceparent"))
		}
	})
}

// The span of the caller is the parent of the call, whose attempts follow each other; the duration is that of the
// call, waits included.
func TestNew_times(t *testing.T) {
	wrap := func(base http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			time.Sleep(40 * time.Millisecond) // of the bubble
			return base.RoundTrip(req)
		})
	}
	inBubble(t, wrap, func(t *testing.T, f fixture) {
		f.gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultRefuse(503, "not now").RetryAfter("7"))
		ctx, caller := f.tracers.Tracer("test").Start(t.Context(), "checkout")
		begun := time.Now()
		_, err := f.client.ExchangeRates(ctx)
		require.NoError(t, err)
		caller.End()
		require.Len(t, f.spans(), 4)
		first, second, call := f.spans()[0], f.spans()[1], f.spans()[2]
		assert.Equal(t, caller.SpanContext().SpanID(), call.Parent.SpanID())
		times := func(of ...time.Time) (all []time.Duration) {
			for _, at := range of {
				all = append(all, at.Sub(begun))
			}
			return all
		}
		const took, wait = 40 * time.Millisecond, 7 * time.Second
		assert.Equal(t, []time.Duration{0, took, took + wait, 2*took + wait, 0, 2*took + wait},
			times(first.StartTime, first.EndTime, second.StartTime, second.EndTime, call.StartTime, call.EndTime))
		data, ok := f.collect(t)["gateway.client.call.duration"].Data.(metricdata.Histogram[float64])
		require.True(t, ok)
		require.Len(t, data.DataPoints, 1)
		point := data.DataPoints[0]
		assert.InDelta(t, (2*took + wait).Seconds(), point.Sum, 1e-9)
		assert.Equal(t, 180.0, point.Bounds[len(point.Bounds)-1], "three attempts of an invoice")
	})
}

// The metrics have these names and units.
func TestNew_metrics(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		_, err := f.client.ExchangeRates(t.Context())
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
			"gateway.client.call.duration": "s", "gateway.client.call.attempts": "{attempt}", "gateway.client.call.outcomes": "{call}",
			"gateway.client.call.failures": "{call}", "gateway.client.call.unrecorded": "{call}", "gateway.client.call.in_flight": "{call}",
			"gateway.client.call.drift": "{place}",
		}, units)
		assert.Equal(t, map[string]int64{
			"gateway.operation=exchange_rates,http.request.method=GET,http.response.status_code=200,url.template=/api/exchange-rate": 1,
		}, f.sums(t, "attempts"))
	})
}

// Before the first call there is a series of 0 for what an alarm is for, so that the first event of a process is
// an increase.
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
			"error.type=order_conflict," + create, "error.type=order," + create, "error.type=429,gateway.operation=exchange_rates",
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
			for text := range f.counted(t, "attempts") {
				assert.Equal(t, want[0] != "", strings.Contains(text, ",server.address="+want[0]+",server.port="+want[1]), text)
			}
		})
	}
}

// An observer that is added after has the span of the call in its contexts, and one that makes a span of its own
// keeps none from ending.
func TestNew_observers(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		f.telemetry = newTelemetry()
		spans := map[trace.SpanID]bool{}
		saw := func(ctx context.Context) { spans[trace.SpanContextFromContext(ctx).SpanID()] = true }
		after := gateway.WithObserver(gateway.Observer{
			Start:   func(ctx context.Context, _ gateway.Call) context.Context { saw(ctx); return ctx },
			End:     func(ctx context.Context, _ gateway.Call) { saw(ctx) },
			Attempt: func(ctx context.Context, _ gateway.Attempt) { saw(ctx) },
		})
		_, err := f.connect(t, f.gw.Transport(), f.options(), after).ExchangeRates(t.Context())
		require.NoError(t, err)
		assert.Equal(t, map[trace.SpanID]bool{f.spans()[1].SpanContext.SpanID(): true}, spans)

		f.exporter.Reset()
		other := newTelemetry()
		_, err = f.connect(t, f.gw.Transport(), f.options(), otelgateway.New(other.options())).ExchangeRates(t.Context())
		require.NoError(t, err)
		for _, o := range []*telemetry{f.telemetry, other} {
			assert.Contains(t, o.names(), "gateway.exchange_rates")
			assert.Zero(t, o.inFlight(t))
		}
	})
}

// A call is in flight from its beginning to its end.
func TestNew_inFlight(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		f.telemetry = newTelemetry()
		var during int64
		base := f.gw.Transport()
		_, err := f.connect(t, roundTrip(func(req *http.Request) (*http.Response, error) {
			during = f.inFlight(t)
			return base.RoundTrip(req)
		}), f.options()).CreateInvoice(t.Context(), order())
		require.NoError(t, err)
		assert.EqualValues(t, 1, during)
		assert.Zero(t, f.inFlight(t))
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
