package otelgateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/otelgateway"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // clients warn of what the tests cause
	goleak.VerifyTestMain(m)
}

// A telemetry collects the spans and the metrics of a test in memory.
type telemetry struct {
	otelgateway.Options
	exporter *tracetest.InMemoryExporter
	reader   *sdkmetric.ManualReader
}

func newTelemetry(baseURL string) telemetry {
	o := telemetry{exporter: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	o.Options = otelgateway.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(o.exporter)),
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader)), BaseURL: baseURL,
	}
	return o
}

// A fixture is a gateway and a client of it, without a base URL in its telemetry.
type fixture struct {
	telemetry
	gw     *gatewaytest.Server
	client *gateway.Client
}

func inBubble(t *testing.T, test func(*testing.T, fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := fixture{telemetry: newTelemetry(""), gw: gatewaytest.NewMemoryServer()}
		defer f.gw.Close()
		f.client = f.connect(t, otelgateway.New(f.Options))
		test(t, f)
	})
}

func (f fixture) connect(t *testing.T, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	client, err := gateway.New(f.gw.URL, f.gw.APIKey, append([]gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: f.gw.Transport()})}, opts...)...)
	require.NoError(t, err)
	return client
}

// inquire makes a call that reads.
func (f fixture) inquire(ctx context.Context) error {
	_, err := f.client.Withdrawal(ctx, f.gw.Withdrawals()[0].WithdrawRequestID)
	return err
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func attributesOf(span tracetest.SpanStub) map[string]string {
	texts := map[string]string{}
	for _, a := range span.Attributes {
		texts[string(a.Key)] = a.Value.String()
	}
	return texts
}

// spans returns the spans that have ended, in the order of their ends, as text without some attributes.
func (o telemetry) spans(without ...string) (lines []string) {
	for _, span := range o.exporter.GetSpans() {
		line, attributes := span.Name, attributesOf(span)
		for _, name := range slices.Sorted(maps.Keys(attributes)) {
			if !slices.Contains(without, name) {
				line += " " + name + "=" + attributes[name]
			}
		}
		if span.Status.Code == codes.Error {
			line += " Error"
		}
		lines = append(lines, line)
	}
	return lines
}

func (o telemetry) metrics(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, o.reader.Collect(t.Context(), &all))
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

// series returns the values of all metrics under the names that the exporter for Prometheus gives them.
func (o telemetry) series(t *testing.T) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for name, metric := range o.metrics(t) {
		if metric.Unit == "s" {
			name += "_seconds"
		}
		add := func(suffix string, attributes attribute.Set, value float64) {
			var labels []string
			for _, label := range attributes.ToSlice() {
				labels = append(labels, fmt.Sprintf("%s=%q", strings.ReplaceAll(string(label.Key), ".", "_"), label.Value.String()))
			}
			slices.Sort(labels)
			all[strings.ReplaceAll(name, ".", "_")+suffix+"{"+strings.Join(labels, ",")+"}"] = value
		}
		switch data := metric.Data.(type) {
		case metricdata.Sum[int64]:
			addAll(data.DataPoints, map[bool]string{true: "_total"}[data.IsMonotonic], add)
		case metricdata.Gauge[int64]:
			addAll(data.DataPoints, "", add)
		case metricdata.Gauge[float64]:
			addAll(data.DataPoints, "", add)
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				add("_bucket", point.Attributes, float64(point.Count))
				add("_sum", point.Attributes, point.Sum)
			}
		default:
			t.Errorf("%s is a %T", name, metric.Data)
		}
	}
	return all
}

func addAll[N int64 | float64](points []metricdata.DataPoint[N], suffix string, add func(string, attribute.Set, float64)) {
	for _, point := range points {
		add(suffix, point.Attributes, float64(point.Value))
	}
}

// counted returns the series of some metrics that are not 0, as sorted lines.
func (o telemetry) counted(t *testing.T, metrics ...string) (lines []string) {
	t.Helper()
	for series, value := range o.series(t) {
		name, _, _ := strings.Cut(series, "{")
		if slices.Contains(metrics, strings.TrimPrefix(name, "gateway_client_call_")) && value != 0 {
			lines = append(lines, fmt.Sprint(strings.TrimPrefix(series, "gateway_client_call_"), " ", value))
		}
	}
	slices.Sort(lines)
	return lines
}
