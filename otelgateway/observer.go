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

const (
	scope   = "github.com/cryptogw/gateway/otelgateway"
	timeout = "timeout" // an error.type
)

// An observer makes spans and metrics.
type observer struct {
	tracer trace.Tracer
	common []attribute.KeyValue // of every span and metric

	duration                                                   metric.Float64Histogram
	attempts, outcomes, failures, left, cut, unrecorded, drift metric.Int64Counter
	inFlight                                                   metric.Int64UpDownCounter
}

func newObserver(opts Options) gateway.Observer {
	meter := opts.meter()
	counter := func(name, unit, description string) metric.Int64Counter {
		return handled(meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description)))
	}
	o := &observer{
		tracer: opts.TracerProvider.Tracer(scope, trace.WithInstrumentationVersion(gateway.Version), trace.WithSchemaURL(semconv.SchemaURL)),
		common: opts.attributes(),
		// The buckets of the HTTP conventions, and up to three attempts of an invoice.
		duration: handled(meter.Float64Histogram("gateway.client.call.duration", metric.WithUnit("s"),
			metric.WithDescription("Duration of calls, waits between attempts included."), metric.WithExplicitBucketBoundaries(
				.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 15, 30, 60, 120, 180))),
		attempts:   counter("gateway.client.call.attempts", "{attempt}", "Attempts that have ended, by their result."),
		outcomes:   counter("gateway.client.call.outcomes", "{call}", "Calls that have ended, by the outcome of their order."),
		failures:   counter("gateway.client.call.failures", "{call}", "Calls that have ended with an error, by its type."),
		left:       counter("gateway.client.call.left", "{call}", "Calls whose caller left at its deadline while the invoice was sent, by the outcome of their order."),
		cut:        counter("gateway.client.call.cut", "{call}", "Calls whose deadline cut the invoice, because too many others were being sent without a caller."),
		unrecorded: counter("gateway.client.call.unrecorded", "{call}", "Calls whose outcome the order guard could not record."),
		drift:      counter("gateway.client.call.drift", "{place}", "Places in responses that differ from the documented interface."),
		inFlight: handled(meter.Int64UpDownCounter("gateway.client.call.in_flight", metric.WithUnit("{call}"),
			metric.WithDescription("Calls that have begun and not ended."))),
	}
	o.begin()
	return gateway.Observer{Start: o.start, End: o.end, Attempt: o.attempt, Drift: o.drifted}
}

// begin makes the series that an alarm is for, with 0: for Prometheus a series that appears
// with 1 has not increased.
func (o *observer) begin() {
	ctx := context.Background()
	for _, operation := range []string{
		gateway.OpCoinNetworks, gateway.OpCoinNetwork, gateway.OpCoinNetworkBySymbol, gateway.OpCoinNetworksOf, gateway.OpExchangeRates,
		gateway.OpBalance, gateway.OpCreateInvoice, gateway.OpWithdrawal,
	} {
		outcomes := []string{gateway.OutcomeSucceeded.String(), gateway.OutcomeNotSent.String()}
		failures := []string{"401", "403", "429", "missing_api_key", "decode", "response_mismatch", "response_too_large"}
		if operation == gateway.OpCreateInvoice {
			outcomes = append(outcomes, gateway.OutcomeRejected.String(), gateway.OutcomeUnknown.String(), gateway.OutcomeConflict.String(), undecided)
			failures = append(failures, "order_conflict", "order")
			o.unrecorded.Add(ctx, 0, o.with(operation))
			o.cut.Add(ctx, 0, o.with(operation))
			o.left.Add(ctx, 0, o.with(operation, outcomeKey.String(snakeCase(gateway.OutcomeUnknown.String()))))
		}
		for _, outcome := range outcomes {
			o.outcomes.Add(ctx, 0, o.with(operation, outcomeKey.String(snakeCase(outcome))))
		}
		for _, failure := range failures {
			o.failures.Add(ctx, 0, o.with(operation, semconv.ErrorTypeKey.String(failure)))
		}
		for _, kind := range []gateway.DriftKind{
			gateway.DriftUnknownField, gateway.DriftUnknownStatus, gateway.DriftUnknownShape, gateway.DriftMismatch, gateway.DriftUnexpectedValue,
		} {
			o.drift.Add(ctx, 0, o.with(operation, kindOf(kind)))
		}
	}
}

// handled reports an error and returns the instrument, which can be used all the same.
func handled[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

// spanKey is the key of the span that an observer has made of a call. The current span can belong
// to another observer.
type spanKey struct{ of *observer }

func (o *observer) start(ctx context.Context, c gateway.Call) context.Context {
	ctx, span := o.tracer.Start(ctx, "gateway."+c.Operation, trace.WithAttributes(o.attributes(c.Operation)...))
	o.inFlight.Add(ctx, 1, o.with(c.Operation))
	return context.WithValue(ctx, spanKey{o}, span)
}

func (o *observer) end(ctx context.Context, c gateway.Call) {
	failure := failureOf(c.Err)
	outcome := outcomeOf(c)
	o.inFlight.Add(ctx, -1, o.with(c.Operation))
	o.outcomes.Add(ctx, 1, o.with(c.Operation, outcome))
	o.duration.Record(ctx, c.Duration.Seconds(), o.with(c.Operation, failure...))
	if c.Err != nil {
		o.failures.Add(ctx, 1, o.with(c.Operation, failure...))
	}
	span := ctx.Value(spanKey{o}).(trace.Span)
	span.SetAttributes(append(failure, outcome, attribute.Int("gateway.attempts", c.Attempts))...)
	if c.StatusCode != 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(c.StatusCode))
	}
	if c.Replayed {
		span.SetAttributes(attribute.Bool("gateway.replayed", true))
	}
	if c.Left {
		o.left.Add(ctx, 1, o.with(c.Operation, outcome))
		span.SetAttributes(attribute.Bool("gateway.left", true))
	}
	if c.Cut {
		o.cut.Add(ctx, 1, o.with(c.Operation))
		span.SetAttributes(attribute.Bool("gateway.cut", true))
	}
	if c.GuardErr != nil {
		o.unrecorded.Add(ctx, 1, o.with(c.Operation))
		span.SetAttributes(attribute.Bool("gateway.unrecorded", true))
	}
	endSpan(span, c.Err)
}

// attempt makes a span that begins in the past.
func (o *observer) attempt(ctx context.Context, a gateway.Attempt) {
	begun, method := time.Now().Add(-a.Duration), http.MethodGet
	if a.Operation == gateway.OpCreateInvoice {
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
	endSpan(span, a.Err)
}

// drifted leaves the place out: its names are the service's.
func (o *observer) drifted(ctx context.Context, d gateway.Drift) {
	o.drift.Add(ctx, 1, o.with(d.Operation, kindOf(d.Kind)))
	if span, ok := ctx.Value(spanKey{o}).(trace.Span); ok { // the drift of a catalog is outside of a call
		span.SetAttributes(attribute.Bool("gateway.drift", true))
	}
}

// attributes are those of all spans and metrics of an operation.
func (o *observer) attributes(operation string) []attribute.KeyValue {
	return append(slices.Clip(o.common), attribute.String("gateway.operation", operation))
}

func (o *observer) with(operation string, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(o.attributes(operation), more...)...)
}

func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "") // the text of err can quote the service
	}
	span.End()
}

const (
	outcomeKey = attribute.Key("gateway.outcome")

	// undecided is the outcome of a call that sent nothing, and that knows nothing of the order: it is in flight,
	// or the guard has failed. There is nothing to look up, unlike for an unknown outcome.
	undecided = "undecided"
)

func outcomeOf(c gateway.Call) attribute.KeyValue {
	_, isUnknown := c.Err.(*gateway.OutcomeUnknownError)
	if c.Outcome == gateway.OutcomeUnknown && c.Attempts == 0 && !isUnknown {
		return outcomeKey.String(undecided)
	}
	return outcomeKey.String(snakeCase(c.Outcome.String()))
}

func kindOf(k gateway.DriftKind) attribute.KeyValue {
	return attribute.String("gateway.drift.kind", snakeCase(string(k)))
}

func snakeCase(words string) string { return strings.ReplaceAll(words, " ", "_") }

func failureOf(err error) []attribute.KeyValue {
	if err == nil {
		return nil
	}
	return []attribute.KeyValue{semconv.ErrorTypeKey.String(errorType(err))}
}

// errorType is a status or a word. The outermost error decides: an error inside can belong to another call.
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
		reason := reasonOf(e, string(e.Phase))
		if e.Phase == gateway.PhaseOrder && reason == timeout { // the guard takes too long
			return string(e.Phase)
		}
		return reason
	}
	return semconv.ErrorTypeOther.Value.AsString()
}

// reasonOf is the word for the sentinel that err matches, and other for none.
func reasonOf(err error, other string) string {
	for _, known := range []struct {
		sentinel error
		word     string
	}{
		{gateway.ErrOrderInFlight, "order_in_flight"},
		{gateway.ErrShutdown, "shutdown"},
		{context.DeadlineExceeded, timeout},
		{context.Canceled, "canceled"},
		{gateway.ErrRedirect, "redirect"},
		{gateway.ErrResponseTooLarge, "response_too_large"},
		{gateway.ErrResponseMismatch, "response_mismatch"},
		{gateway.ErrMissingAPIKey, "missing_api_key"},
	} {
		if errors.Is(err, known.sentinel) {
			return known.word
		}
	}
	return other
}
