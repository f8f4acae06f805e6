package main

import (
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/cryptogw/gateway"
)

// traced returns a transport, for [gateway.WithHTTPClient], that makes a span of
// every attempt of a call. The client gives a request's body to it as something
// that can be read once; otelhttp leaves it so, and an invoice is sent once.
//
// otelhttp records no header, and so no key. Of a fault it records the text of
// net/http, which names the host at most. But it also records the whole URL,
// which can name a withdrawal or a pair: see [discreet].
func traced(base http.RoundTripper, provider trace.TracerProvider) http.RoundTripper {
	return otelhttp.NewTransport(discreet{base},
		otelhttp.WithTracerProvider(provider),
		otelhttp.WithSpanNameFormatter(spanName),
		// No headers of the trace: the gateway is somebody else's.
		otelhttp.WithPropagators(propagation.NewCompositeTextMapPropagator()),
	)
}

// newTransport returns a transport for reads and invoices alike. An invoice must
// not meet a connection that the gateway is about to close, so it keeps idle
// ones as briefly as the client's own transport for invoices does.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.IdleConnTimeout = 2 * time.Second
	return t
}

// spanName names a span by the operation, of which there are seven.
func spanName(_ string, r *http.Request) string {
	op, _ := gateway.OperationFromContext(r.Context())
	return "gateway." + op
}

// discreet stands behind otelhttp, where the span of a request has its attributes
// already, and leaves only the host of its URL.
type discreet struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (d discreet) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Scheme + "://" + r.URL.Host
	trace.SpanFromContext(r.Context()).SetAttributes(attribute.String("url.full", host))
	return d.base.RoundTrip(r)
}
