package main

import (
	"fmt"
	"io"
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
// otelhttp records no headers. But it records the complete URL, which can identify a
// withdrawal or a pair, and the text of an error, in which net/http quotes what a
// server sends, such as a key that it repeats in a malformed header: see [hostOnly].
func traced(base http.RoundTripper, provider trace.TracerProvider) http.RoundTripper {
	return revealing{otelhttp.NewTransport(hostOnly{base},
		otelhttp.WithTracerProvider(provider),
		otelhttp.WithSpanNameFormatter(spanName),
		// Send no trace headers to the gateway, which belongs to a third party.
		otelhttp.WithPropagators(propagation.NewCompositeTextMapPropagator()),
	)}
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

// hostOnly reduces the URL in the span of a request to its scheme and host, and an
// error to its type. otelhttp calls it after it has set the attributes of the span.
type hostOnly struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (d hostOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Scheme + "://" + r.URL.Host
	trace.SpanFromContext(r.Context()).SetAttributes(attribute.String("url.full", host))
	return withErrors(d.base, r, func(err error) error { return hiddenError{err} })
}

// revealing gives the client the errors that hostOnly has hidden from otelhttp: it
// decides by them whether to retry, and removes keys from their texts itself.
type revealing struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (d revealing) RoundTrip(r *http.Request) (*http.Response, error) {
	return withErrors(d.base, r, func(err error) error {
		if hidden, ok := err.(hiddenError); ok {
			return hidden.err
		}
		return err
	})
}

// A hiddenError is an error of which only the type is shown.
type hiddenError struct{ err error }

func (e hiddenError) Error() string { return fmt.Sprintf("%T", e.err) }
func (e hiddenError) Unwrap() error { return e.err }

// withErrors sends a request and changes the errors of that and of reading the body.
func withErrors(base http.RoundTripper, r *http.Request, change func(error) error) (*http.Response, error) {
	resp, err := base.RoundTrip(r)
	if err != nil {
		return nil, change(err)
	}
	resp.Body = changedBody{resp.Body, change}
	return resp, nil
}

type changedBody struct {
	io.ReadCloser
	change func(error) error
}

// Read implements [io.Reader].
func (b changedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.change(err)
	}
	return n, err
}
