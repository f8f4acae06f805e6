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

// traced returns a transport, for [gateway.WithHTTPClient], that creates a span
// for every attempt of a call. The client passes it a request body that can be
// read only once; otelhttp does not change that, so that an invoice is sent once.
//
// otelhttp records no headers, and therefore no key. Of an error it records the
// text of net/http, which contains at most the host. But it records the complete
// URL, which can identify a withdrawal or a pair: see [hostOnly].
func traced(base http.RoundTripper, provider trace.TracerProvider) http.RoundTripper {
	return otelhttp.NewTransport(hostOnly{base},
		otelhttp.WithTracerProvider(provider),
		otelhttp.WithSpanNameFormatter(spanName),
		// Send no trace headers to the gateway, which belongs to a third party.
		otelhttp.WithPropagators(propagation.NewCompositeTextMapPropagator()),
	)
}

// newTransport returns a transport for reads and invoices. An invoice should not
// use a connection that the gateway is about to close, so the transport closes
// idle connections as early as the client's own transport for invoices.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.IdleConnTimeout = 2 * time.Second
	return t
}

// spanName returns the name of a span, which depends on the operation only.
func spanName(_ string, r *http.Request) string {
	op, _ := gateway.OperationFromContext(r.Context())
	return "gateway." + op
}

// hostOnly reduces the URL in the span of a request to its scheme and host.
// otelhttp calls it after it has set the attributes of the span.
type hostOnly struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (d hostOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Scheme + "://" + r.URL.Host
	trace.SpanFromContext(r.Context()).SetAttributes(attribute.String("url.full", host))
	return d.base.RoundTrip(r)
}
