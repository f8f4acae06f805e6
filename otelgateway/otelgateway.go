// Package otelgateway gives a client of package gateway OpenTelemetry traces and
// metrics: a span for each call, one below it for each attempt, and the metrics
// gateway.client.call.duration, .attempts, .outcomes, .failures, .left, .cut, .unrecorded, .in_flight
// and .drift. [RegisterPending] adds metrics of the orders that are pending in a [sqlguard.Guard]. Counters begin
// with 0, so that the first event of a process is an increase.
//
// The attributes are those of the HTTP semantic conventions where these apply; the
// others begin with "gateway.". None has a key, an order, an amount, an argument of a
// URL, or a text of the service: url.full, which the conventions ask for, is left out,
// and an error appears only as error.type. The gateway gets no trace header.
package otelgateway

import (
	"cmp"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/cryptogw/gateway"
)

// Options are the options of [New]. Zero fields take their defaults.
type Options struct {
	TracerProvider trace.TracerProvider // default: the global one at the time of New
	MeterProvider  metric.MeterProvider // default: the global one at the time of New

	// BaseURL is the base URL of the client. Its host and port become the attributes
	// server.address and server.port. Default: there are no such attributes.
	BaseURL string

	// Guard names the order guard, such as "shop". It becomes the attribute gateway.guard, which tells the guards
	// of a process apart, and the clients that use them. [RegisterPending] requires it. Default: there is no such
	// attribute.
	Guard string
}

// New returns the option that gives a client traces and metrics: a [gateway.WithObserver].
// An observer that is added after it finds the span of the call in its contexts.
func New(opts Options) gateway.Option {
	opts.TracerProvider = cmp.Or(opts.TracerProvider, otel.GetTracerProvider())
	return gateway.WithObserver(newObserver(opts))
}

func (o Options) meter() metric.Meter {
	return cmp.Or(o.MeterProvider, otel.GetMeterProvider()).
		Meter(scope, metric.WithInstrumentationVersion(gateway.Version), metric.WithSchemaURL(semconv.SchemaURL))
}

// attributes are those of every span and metric.
func (o Options) attributes() []attribute.KeyValue {
	all := serverOf(o.BaseURL)
	if o.Guard != "" {
		all = append(all, attribute.String("gateway.guard", o.Guard))
	}
	return all
}

// serverOf are the attributes of the host of a base URL.
func serverOf(baseURL string) []attribute.KeyValue {
	u, err := url.Parse(baseURL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return []attribute.KeyValue{semconv.ServerAddress(u.Hostname()), semconv.ServerPort(port)}
}
