package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// An Observer is told what a client does: Attempt is called for every attempt, and
// before it Drift for each place in a response of 2xx that differs from INTERFACE.md.
// What recurs in the records of a list is reported once, and at most 64 places of one
// response. A call that ends before its first attempt, because of an argument, the
// key's source or the [OrderGuard], is not reported.
//
// It is called by the goroutine that sends the request, which waits for it, so it must
// be quick. With a [Catalog] and [Client.WaitWithdrawals] that is not the caller's own.
// It must be safe for concurrent use.
//
// The context is that of the call, with its values, and may have ended.
type Observer interface {
	Attempt(ctx context.Context, a Attempt)
	Drift(ctx context.Context, d Drift)
}

// An Attempt is one attempt of a call and its result. It has no key, no URL and no
// body.
type Attempt struct {
	Operation  string        // as [OperationFromContext] names it
	Route      string        // the path as INTERFACE.md writes it, such as "/api/networks-coins/{id}"
	Number     int           // from 1
	StatusCode int           // of the response; 0 when none came
	Err        error         // the failure of the attempt, not the error of the call: never an [*OutcomeUnknownError]; nil when it succeeded
	Wait       time.Duration // until the next attempt, if the context lasts; 0 when there is none
	Duration   time.Duration // of this attempt, the reading of the body included
}

// A Drift is a place where a response differs from INTERFACE.md. The call may have
// succeeded all the same.
type Drift struct {
	Operation string    // as [OperationFromContext] names it
	Pointer   string    // where in the response, as a JSON pointer such as "/result/17/network/color"
	Kind      DriftKind // what differs
}

// A DriftKind is how a response differs.
type DriftKind string

const (
	// DriftUnknownField is a member that the interface does not list. It was skipped.
	DriftUnknownField DriftKind = "unknown field"
	// DriftUnknownStatus is a withdrawal status that the interface does not
	// list. It was kept as it came.
	DriftUnknownStatus DriftKind = "unknown status"
	// DriftUnknownShape is a result, or a part of it, that cannot be decoded: in none
	// of the shapes that the method accepts, or with a member that is missing or
	// malformed. The call failed with a [*DecodeError].
	DriftUnknownShape DriftKind = "unknown shape"
	// DriftMismatch is an identifier that differs from the one it must equal: a
	// networkId or coinId that is not the id of the record beside it, or a record that
	// is not the one asked for, which fails with [ErrResponseMismatch]. It is also an
	// identifier or a pair that a [Catalog] finds listed twice.
	DriftMismatch DriftKind = "mismatch"
)

// WithObserver sets the [Observer] of attempts and drift.
func WithObserver(o Observer) Option {
	return func(cfg *config) error {
		if o == nil {
			return badOption("WithObserver", "must not be nil")
		}
		cfg.observer = o
		return nil
	}
}

// WithLogger writes what an [Observer] is told to logger: attempts at level Debug, the
// last one too, because its error is the caller's to log; retried ones and drift at
// Warn. The keys are operation, route, attempt, status, duration, wait, error, kind and
// pointer. It works beside [WithObserver]. Without this option the client writes
// nothing.
func WithLogger(logger *slog.Logger) Option {
	return func(cfg *config) error {
		if logger == nil {
			return badOption("WithLogger", "must not be nil")
		}
		cfg.logger = logger
		return nil
	}
}

// OperationFromContext returns the operation that a request is made for, so that a
// RoundTripper can count or trace it: "coin_networks",
// "coin_network", "coin_network_by_symbol", "exchange_rates", "balance",
// "create_invoice" or "withdrawal". It is also in the context of an [Observer],
// an [OrderGuard] and a key's source.
func OperationFromContext(ctx context.Context) (string, bool) {
	op, ok := ctx.Value(operationKey{}).(string)
	return op, ok
}

// observers returns all observers, the logger first.
func (c *config) observers() []Observer {
	var all []Observer
	if c.logger != nil {
		all = append(all, logObserver{c.logger})
	}
	if c.observer != nil {
		all = append(all, c.observer)
	}
	return all
}

// report tells the observers of an attempt.
func (a *attempts[T]) report(failure error, wait time.Duration) {
	c := a.client
	if len(c.observers) == 0 {
		return
	}
	attempt := Attempt{
		Operation: a.call.op, Route: a.call.route, Number: a.loop.Attempts,
		StatusCode: a.last.status, Err: failure, Wait: wait, Duration: time.Since(a.loop.Started),
	}
	for _, d := range a.last.drift {
		c.reportDrift(&a.ctx, d)
	}
	for _, o := range c.observers {
		o.Attempt(&a.ctx, attempt)
	}
}

func (c *Client) reportDrift(ctx context.Context, d Drift) {
	for _, o := range c.observers {
		o.Drift(ctx, d)
	}
}

// newNotes returns what collects the drift of a response, or nil if nobody is told.
func (c *Client) newNotes() *strictjson.Notes {
	if len(c.observers) == 0 {
		return nil
	}
	return &strictjson.Notes{}
}

// driftKinds are the kinds of a [Drift] by those of a note.
var driftKinds = [...]DriftKind{
	strictjson.UnknownField: DriftUnknownField, strictjson.UnknownValue: DriftUnknownStatus,
	strictjson.UnknownShape: DriftUnknownShape, strictjson.Mismatch: DriftMismatch,
}

func drifts(op string, notes *strictjson.Notes) (all []Drift) {
	for _, n := range notes.All() {
		all = append(all, Drift{op, n.Pointer, driftKinds[n.Kind]})
	}
	return all
}

// A logObserver writes to a logger.
type logObserver struct{ logger *slog.Logger }

// Attempt implements [Observer].
func (l logObserver) Attempt(ctx context.Context, a Attempt) {
	level, text := slog.LevelDebug, "gateway: attempt"
	if a.Wait > 0 {
		level, text = slog.LevelWarn, "gateway: attempt will be retried"
	}
	if !l.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("operation", a.Operation),
		slog.String("route", a.Route),
		slog.Int("attempt", a.Number),
		slog.Int("status", a.StatusCode),
		slog.Duration("duration", a.Duration),
		slog.Duration("wait", a.Wait),
	}
	if a.Err != nil {
		attrs = append(attrs, slog.String("error", a.Err.Error()))
	}
	l.logger.LogAttrs(ctx, level, text, attrs...)
}

// Drift implements [Observer].
func (l logObserver) Drift(ctx context.Context, d Drift) {
	l.logger.LogAttrs(ctx, slog.LevelWarn, "gateway: drift",
		slog.String("operation", d.Operation),
		slog.String("kind", string(d.Kind)),
		slog.String("pointer", d.Pointer),
	)
}
