package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// An Observer is told what a client does: Start and End are called around every call,
// also around one that ends before its first attempt. Between them Attempt is called for
// every attempt, and before it Drift for each place in a response of 2xx that differs
// from docs/interface.md. What recurs in the records of a list is reported once, and at most
// 64 places of one response.
//
// An implementation embeds [NopObserver], and has those methods that it needs: a later
// version of this package may add others.
//
// It is called by the goroutine that makes the call, which waits for it. With a [Cache]
// and [Client.WaitWithdrawals] that is not the caller's own. It must be safe for
// concurrent use. A panic of it ends the call; the End of each observer whose Start has
// returned is called all the same.
//
// The context is that of the call, with its values, and may have ended.
type Observer interface {
	// Start is called when a call begins, with its Operation and Route. The context
	// that it returns, which must be derived from ctx, is used for the call; nil is
	// ignored.
	Start(ctx context.Context, c Call) context.Context

	// End is called when a call has ended, with the context of Start.
	End(ctx context.Context, c Call)

	// Attempt is called when an attempt has ended.
	Attempt(ctx context.Context, a Attempt)

	// Drift is called for a place where a response differs from docs/interface.md.
	Drift(ctx context.Context, d Drift)

	// UnknownLimit is called when invoices are held back by [WithUnknownLimit], and when they
	// are sent again: in turn, with the context of a call that has ended then.
	UnknownLimit(ctx context.Context, u UnknownLimit)

	embedsNopObserver() // so that methods can be added
}

// NopObserver is an [Observer] that does nothing, to be embedded in every other one.
type NopObserver struct{}

func (NopObserver) embedsNopObserver() {}

// Start implements [Observer].
func (NopObserver) Start(ctx context.Context, _ Call) context.Context { return ctx }

// End implements [Observer].
func (NopObserver) End(context.Context, Call) {}

// Attempt implements [Observer].
func (NopObserver) Attempt(context.Context, Attempt) {}

// Drift implements [Observer].
func (NopObserver) Drift(context.Context, Drift) {}

// UnknownLimit implements [Observer].
func (NopObserver) UnknownLimit(context.Context, UnknownLimit) {}

// A Call is one call of a method and, at its end, its result. It has no key, no URL, no
// argument and no body.
type Call struct {
	Operation  string        // as [OperationFromContext] names it
	Route      string        // the path as docs/interface.md writes it, such as "/api/networks-coins/{id}"
	Attempts   int           // how many attempts were made; 0 for none
	StatusCode int           // of the last response; 0 when none came
	Outcome    Outcome       // [OutcomeOf] Err
	Err        error         // the error of the call; nil when it succeeded
	Duration   time.Duration // of the whole call, waits included

	RequestID string // what an invoice was to send as X-Request-Id; empty for none
	Replayed  bool   // whether the invoice of an earlier call was returned: nothing was sent
	GuardErr  error  // why the [OrderGuard] could not record the outcome; nil if it could, or had none to record
}

// An Attempt is one attempt of a call and its result. It has no key, no URL and no body.
type Attempt struct {
	Operation  string        // as [OperationFromContext] names it
	Route      string        // the path as docs/interface.md writes it, such as "/api/networks-coins/{id}"
	Number     int           // from 1
	StatusCode int           // of the response; 0 when none came
	Err        error         // the failure of the attempt, not the error of the call: never an [*OutcomeUnknownError]; nil when it succeeded
	Wait       time.Duration // until the next attempt, if the context lasts; 0 when there is none
	Duration   time.Duration // of this attempt, the reading of the body included
}

// A Drift is a place where a response differs from docs/interface.md. The call may have
// succeeded all the same.
type Drift struct {
	Operation string    // as [OperationFromContext] names it
	Pointer   string    // where in the response, as a JSON pointer such as "/result/17/network/color"
	Kind      DriftKind // what differs
}

// A DriftKind is how a response differs.
type DriftKind string

const (
	// DriftUnknownField is a member that is not documented. It was skipped:
	// docs/interface.md, I-6.
	DriftUnknownField DriftKind = "unknown field"
	// DriftUnknownStatus is a status of a withdrawal that is not documented. It was
	// kept as it came: docs/interface.md, I-144.
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
	// DriftUnexpectedValue is a value that is documented otherwise and was accepted: a
	// success message that is not the documented one, a meta that is not empty, a number
	// where text is documented, a time that cannot be read. docs/interface.md, I-44, I-53
	// and I-54. Where nothing is documented, it is an exchange rate that is missing,
	// cannot be read or differs from another, and an amount under a name that is hardly a
	// symbol.
	DriftUnexpectedValue DriftKind = "unexpected value"
)

// WithObserver adds an [Observer]. Several are told of each Start, Attempt and Drift in
// the order of their options, after [WithLogger], and of each End in reverse order; each
// Start gets the context that the one before has returned.
func WithObserver(o Observer) Option {
	return func(cfg *config) error {
		if o == nil {
			return badOption("WithObserver", "must not be nil")
		}
		cfg.added = append(cfg.added, o)
		return nil
	}
}

// WithLogger writes what an [Observer] is told to logger: attempts and the ends of calls
// at level Debug, because the error of a call is the caller's to log; retried attempts
// and drift at Warn, each of 1,024 places of drift once an hour, and when [WithUnknownLimit] holds
// back invoices and no longer does; an outcome that the [OrderGuard] could not record at Error. The
// keys are operation, route, attempt, attempts, status, outcome, duration, wait, error, request_id,
// guard_error, kind, pointer and unknown. Without this option the client writes nothing.
func WithLogger(logger *slog.Logger) Option {
	return func(cfg *config) error {
		if logger == nil {
			return badOption("WithLogger", "must not be nil")
		}
		cfg.logger = logger
		return nil
	}
}

// OperationFromContext returns the operation that a request is made for, such as
// [OpBalance], so that a RoundTripper can count or trace it. It is also in the context of
// an [Observer], an [OrderGuard] and a key's source.
func OperationFromContext(ctx context.Context) (string, bool) {
	op, ok := ctx.Value(operationKey{}).(string)
	return op, ok
}

// observers returns all observers, the logger first.
func (c *config) observers() []Observer {
	if c.logger == nil {
		return c.added
	}
	return append([]Observer{&logObserver{logger: c.logger, logged: map[Drift]time.Time{}}}, c.added...)
}

// observe tells the observers that a call has begun. What it returns tells them that
// the call has ended.
func (c *Client) observe(ctx context.Context, what *operation) (context.Context, func(err error, of *call)) {
	if c == nil || len(c.observers) == 0 {
		return ctx, func(error, *call) {}
	}
	if ctx == nil { // the call will be refused
		_, end := c.observe(context.Background(), what)
		return nil, end
	}
	begun, started := time.Now(), Call{Operation: what.name, Route: what.route}
	contexts := make([]context.Context, 0, len(c.observers)) // of those whose Start has returned
	end := func(err error, of *call) {
		ended := started
		ended.Attempts, ended.StatusCode, ended.Duration = of.attempts, of.status, time.Since(begun)
		ended.Outcome, ended.Err = OutcomeOf(err), err
		ended.RequestID, ended.Replayed, ended.GuardErr = of.requestID, of.replayed, of.guardErr
		endAll(c.observers, contexts, ended)
	}
	defer func() {
		if len(contexts) < len(c.observers) {
			end(errPanicked, &call{})
		}
	}()
	ctx = context.WithValue(ctx, operationKey{}, what.name)
	for _, o := range c.observers {
		if derived := o.Start(ctx, started); derived != nil {
			ctx = derived
		}
		contexts = append(contexts, ctx)
	}
	return ctx, end
}

// endAll calls End of as many observers as there are contexts, the last one first, also
// when one panics.
func endAll(observers []Observer, contexts []context.Context, ended Call) {
	last := len(contexts) - 1
	if last < 0 {
		return
	}
	defer endAll(observers, contexts[:last], ended)
	observers[last].End(contexts[last], ended)
}

// report tells the observers of an attempt.
func (c *call) report(failure error, wait time.Duration) {
	if len(c.client.observers) == 0 {
		return
	}
	attempt := Attempt{
		Operation: c.operation.name, Route: c.operation.route, Number: c.attempts,
		StatusCode: c.last.status, Err: failure, Wait: wait, Duration: time.Since(c.begun),
	}
	for _, d := range c.last.drift {
		c.client.reportDrift(&c.ctx, d)
	}
	for _, o := range c.client.observers {
		o.Attempt(&c.ctx, attempt)
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
	strictjson.UnexpectedValue: DriftUnexpectedValue,
}

func drifts(op string, notes *strictjson.Notes) (all []Drift) {
	for _, n := range notes.All() {
		all = append(all, Drift{op, n.Pointer, driftKinds[n.Kind]})
	}
	return all
}

// A logObserver writes to a logger.
type logObserver struct {
	NopObserver
	logger *slog.Logger

	mu     sync.Mutex
	logged map[Drift]time.Time // when a place of drift was logged last
}

// End implements [Observer].
func (l *logObserver) End(ctx context.Context, c Call) {
	level, text := slog.LevelDebug, "gateway: call"
	if c.GuardErr != nil {
		level, text = slog.LevelError, "gateway: the order guard could not record the outcome"
	}
	if !l.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("operation", c.Operation),
		slog.String("route", c.Route),
		slog.Int("attempts", c.Attempts),
		slog.Int("status", c.StatusCode),
		slog.String("outcome", c.Outcome.String()),
		slog.Duration("duration", c.Duration),
	}
	if c.Err != nil {
		attrs = append(attrs, slog.String("error", printable(c.Err.Error())))
	}
	if c.RequestID != "" {
		attrs = append(attrs, slog.String("request_id", printable(c.RequestID)))
	}
	if c.GuardErr != nil {
		attrs = append(attrs, slog.String("guard_error", printable(c.GuardErr.Error())))
	}
	l.logger.LogAttrs(ctx, level, text, attrs...)
}

// Attempt implements [Observer].
func (l *logObserver) Attempt(ctx context.Context, a Attempt) {
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
		attrs = append(attrs, slog.String("error", printable(a.Err.Error())))
	}
	l.logger.LogAttrs(ctx, level, text, attrs...)
}

// Drift implements [Observer].
func (l *logObserver) Drift(ctx context.Context, d Drift) {
	if !l.isNew(d) {
		return
	}
	l.logger.LogAttrs(ctx, slog.LevelWarn, "gateway: drift",
		slog.String("operation", d.Operation),
		slog.String("kind", string(d.Kind)),
		slog.String("pointer", printable(d.Pointer)),
	)
}

// UnknownLimit implements [Observer].
func (l *logObserver) UnknownLimit(ctx context.Context, u UnknownLimit) {
	text := "gateway: invoices are sent again"
	if u.Reached {
		text = "gateway: invoices are held back: too many in a row have an unknown outcome"
	}
	l.logger.LogAttrs(ctx, slog.LevelWarn, text, slog.Int("unknown", u.Unknown))
}

const (
	driftLogInterval = time.Hour
	maxLoggedDrift   = 1024 // places that are remembered; then all are logged again
)

// isNew reports whether a place of drift was not logged within the last hour.
func (l *logObserver) isNew(d Drift) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.Pointer = strictjson.WithoutIndices(d.Pointer)
	if at, known := l.logged[d]; known && time.Since(at) < driftLogInterval {
		return false
	}
	if len(l.logged) == maxLoggedDrift {
		clear(l.logged)
	}
	l.logged[d] = time.Now()
	return true
}
