package otelgateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/cryptogw/gateway"
)

const scope = "github.com/cryptogw/gateway/otelgateway"

// An observer makes spans and metrics of what it is told.
type observer struct {
	gateway.NopObserver
	tracer trace.Tracer
	server []attribute.KeyValue

	duration                  metric.Float64Histogram
	attempts, outcomes, drift metric.Int64Counter
	inFlight                  metric.Int64UpDownCounter
}

func newObserver(o Options) *observer {
	meter := o.MeterProvider.Meter(scope, metric.WithInstrumentationVersion(gateway.Version), metric.WithSchemaURL(semconv.SchemaURL))
	return &observer{
		tracer: o.TracerProvider.Tracer(scope, trace.WithInstrumentationVersion(gateway.Version), trace.WithSchemaURL(semconv.SchemaURL)),
		server: serverOf(o.BaseURL),
		// The buckets of the HTTP conventions, and up to three attempts of an invoice.
		duration: handled(meter.Float64Histogram("gateway.client.call.duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(
			.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 15, 30, 60, 120, 180))),
		attempts: handled(meter.Int64Counter("gateway.client.call.attempts", metric.WithUnit("{attempt}"))),
		outcomes: handled(meter.Int64Counter("gateway.client.call.outcomes", metric.WithUnit("{call}"))),
		drift:    handled(meter.Int64Counter("gateway.client.call.drift", metric.WithUnit("{place}"))),
		inFlight: handled(meter.Int64UpDownCounter("gateway.client.call.in_flight", metric.WithUnit("{call}"))),
	}
}

// handled reports an error and returns the instrument, which can be used all the same.
func handled[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

// spanKey is the key of the span of a call. The current span can be another observer's.
type spanKey struct{}

// Start implements [gateway.Observer].
func (o *observer) Start(ctx context.Context, c gateway.Call) context.Context {
	ctx, span := o.tracer.Start(ctx, "gateway."+c.Operation, trace.WithAttributes(o.attributes(c.Operation)...))
	o.inFlight.Add(ctx, 1, o.with(c.Operation))
	return context.WithValue(ctx, spanKey{}, span)
}

// End implements [gateway.Observer]. The context is that of Start.
func (o *observer) End(ctx context.Context, c gateway.Call) {
	failure := failureOf(c.Err)
	outcome := attribute.String("gateway.outcome", snakeCase(c.Outcome.String()))
	o.inFlight.Add(ctx, -1, o.with(c.Operation))
	o.outcomes.Add(ctx, 1, o.with(c.Operation, outcome))
	o.duration.Record(ctx, c.Duration.Seconds(), o.with(c.Operation, failure...))
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(append(failure, outcome, attribute.Int("gateway.attempts", c.Attempts))...)
	if c.StatusCode != 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(c.StatusCode))
	}
	if c.RequestID != "" {
		span.SetAttributes(attribute.String("gateway.request_id", c.RequestID))
	}
	if c.Replayed {
		span.SetAttributes(attribute.Bool("gateway.replayed", true))
	}
	if c.GuardErr != nil {
		span.SetAttributes(attribute.Bool("gateway.unrecorded", true))
	}
	end(span, c.Err)
}

// Attempt implements [gateway.Observer]. The span of the attempt begins in the past.
func (o *observer) Attempt(ctx context.Context, a gateway.Attempt) {
	begun, method := time.Now().Add(-a.Duration), http.MethodGet
	if a.Operation == gateway.OpCreateInvoice || a.Operation == gateway.OpPrepareInvoice {
		method = http.MethodPost
	}
	attributes := append(o.attributes(a.Operation), semconv.HTTPRequestMethodKey.String(method), semconv.URLTemplate(a.Route))
	if a.StatusCode != 0 {
		attributes = append(attributes, semconv.HTTPResponseStatusCode(a.StatusCode))
	}
	attributes = append(attributes, failureOf(a.Err)...)
	o.attempts.Add(ctx, 1, metric.WithAttributes(attributes...))
	if a.Number > 1 {
		attributes = append(attributes, semconv.HTTPRequestResendCount(a.Number-1))
	}
	if a.Wait > 0 {
		attributes = append(attributes, attribute.Float64("gateway.retry_wait", a.Wait.Seconds()))
	}
	_, span := o.tracer.Start(ctx, method+" "+a.Route, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(begun), trace.WithAttributes(attributes...))
	end(span, a.Err)
}

// Drift implements [gateway.Observer]. The place is left out: its names are the service's.
func (o *observer) Drift(ctx context.Context, d gateway.Drift) {
	o.drift.Add(ctx, 1, o.with(d.Operation, attribute.String("gateway.drift.kind", snakeCase(string(d.Kind)))))
	if span, ok := ctx.Value(spanKey{}).(trace.Span); ok { // the drift of a catalog is outside of a call
		span.SetAttributes(attribute.Bool("gateway.drift", true))
	}
}

// attributes are those of everything.
func (o *observer) attributes(operation string) []attribute.KeyValue {
	return append(slices.Clip(o.server), attribute.String("gateway.operation", operation))
}

func (o *observer) with(operation string, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(o.attributes(operation), more...)...)
}

func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "") // the text of err can have what the service sent
	}
	span.End()
}

func snakeCase(words string) string { return strings.ReplaceAll(words, " ", "_") }

func failureOf(err error) []attribute.KeyValue {
	if err == nil {
		return nil
	}
	return []attribute.KeyValue{semconv.ErrorTypeKey.String(errorType(err))}
}

// errorType is a status or a word. The outermost error has it: one inside can be of another call.
func errorType(err error) string {
	switch e := err.(type) {
	case *gateway.OutcomeUnknownError:
		if e.Replayed {
			return "order_outcome_unknown"
		}
		return errorType(e.Cause)
	case *gateway.OrderConflictError:
		return "order_conflict"
	case *gateway.APIError:
		if e.StatusCode < 400 {
			return "error_envelope"
		}
		return strconv.Itoa(e.StatusCode)
	case *gateway.DecodeError:
		return reasonOf(e, "decode")
	case *gateway.ArgumentError:
		return reasonOf(e, "argument")
	case *gateway.TransportError:
		return reasonOf(e, string(e.Phase))
	}
	return semconv.ErrorTypeOther.Value.AsString()
}

// reasonOf is the word for the sentinel that err matches, and other for none.
func reasonOf(err error, other string) string {
	for _, known := range []struct {
		sentinel error
		word     string
	}{
		{gateway.ErrTimeout, "timeout"},
		{context.Canceled, "canceled"},
		{gateway.ErrRedirect, "redirect"},
		{gateway.ErrResponseTooLarge, "response_too_large"},
		{gateway.ErrResponseMismatch, "response_mismatch"},
		{gateway.ErrMissingAPIKey, "missing_api_key"},
		{gateway.ErrOrderInFlight, "order_in_flight"},
	} {
		if errors.Is(err, known.sentinel) {
			return known.word
		}
	}
	return other
}
