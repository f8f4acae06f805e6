package otelgateway_test

import (
	"log/slog"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/otelgateway"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // clients warn of what the tests cause
	goleak.VerifyTestMain(m)
}

// A telemetry collects the spans and the metrics of a test in memory.
type telemetry struct {
	exporter *tracetest.InMemoryExporter
	tracers  *sdktrace.TracerProvider
	reader   *sdkmetric.ManualReader
	meters   *sdkmetric.MeterProvider
}

func newTelemetry() *telemetry {
	o := &telemetry{exporter: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	o.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(o.exporter))
	o.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader))
	return o
}

func (o *telemetry) options() otelgateway.Options {
	return otelgateway.Options{TracerProvider: o.tracers, MeterProvider: o.meters}
}

// A fixture is a gateway and a client of it.
type fixture struct {
	*telemetry
	gw     *gatewaytest.Server
	client *gateway.Client
}

// inBubble runs a test in virtual time. The transport may be wrapped.
func inBubble(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper, test func(*testing.T, fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := fixture{telemetry: newTelemetry(), gw: gatewaytest.NewMemoryServer()}
		defer f.gw.Close()
		transport := http.RoundTripper(f.gw.Transport())
		if wrap != nil {
			transport = wrap(transport)
		}
		f.client = f.connect(t, transport, f.options())
		test(t, f)
	})
}

func (f fixture) connect(t *testing.T, transport http.RoundTripper, opts otelgateway.Options, more ...gateway.Option) *gateway.Client {
	t.Helper()
	more = append([]gateway.Option{otelgateway.New(opts), gateway.WithHTTPClient(&http.Client{Transport: transport})}, more...)
	client, err := gateway.New(f.gw.URL, f.gw.APIKey, more...)
	require.NoError(t, err)
	return client
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// spans are those that have ended, in the order of their ends.
func (o *telemetry) spans() tracetest.SpanStubs { return o.exporter.GetSpans() }

// names are the names of the spans that have ended.
func (o *telemetry) names() []string {
	names := []string{}
	for _, span := range o.spans() {
		names = append(names, span.Name)
	}
	return names
}

// attributesOf returns the attributes of a span, as text.
func attributesOf(span tracetest.SpanStub) map[string]string { return asText(span.Attributes) }

func asText(attributes []attribute.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, a := range attributes {
		texts[string(a.Key)] = a.Value.String()
	}
	return texts
}

// collect returns the metrics by the last part of their names.
func (o *telemetry) collect(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	assert.NoError(t, o.reader.Collect(t.Context(), &all))
	metrics := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		assert.Equal(t, "github.com/cryptogw/gateway/otelgateway", scope.Scope.Name)
		assert.Equal(t, gateway.Version, scope.Scope.Version)
		for _, m := range scope.Metrics {
			metrics[m.Name] = m
		}
	}
	return metrics
}

// sums returns the points of a counter by their attributes, as text.
func (o *telemetry) sums(t *testing.T, name string) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	metric, ok := o.collect(t)["gateway.client.call."+name]
	if !ok {
		return sums
	}
	data, ok := metric.Data.(metricdata.Sum[int64])
	require.True(t, ok, "%s is a %T", name, metric.Data)
	for _, point := range data.DataPoints {
		sums[point.Attributes.Encoded(attribute.DefaultEncoder())] = point.Value
	}
	return sums
}

// counted are the sums that are not 0.
func (o *telemetry) counted(t *testing.T, name string) map[string]int64 {
	t.Helper()
	sums := o.sums(t, name)
	maps.DeleteFunc(sums, func(_ string, value int64) bool { return value == 0 })
	return sums
}

// inFlight is the sum of all points of that metric.
func (o *telemetry) inFlight(t *testing.T) (sum int64) {
	t.Helper()
	for _, value := range o.sums(t, "in_flight") {
		sum += value
	}
	return sum
}

func order() gateway.InvoiceRequest { return everycall.Order("A-17") }
