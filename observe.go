package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cryptogw/gateway/internal/doc"
)

// An Observer is a set of functions that a [Client] runs at the stages of a call. Each may be nil, and
// a later version may add others. The goroutine of the call runs them; they may run concurrently, and
// must neither block nor panic. Their context is the call's, which may have ended: [CallFromContext]
// reads it.
type Observer struct {
	// Start is run when a call begins. The context that it returns, which must be derived from
	// ctx, is used for the call; nil is ignored.
	Start func(ctx context.Context, c Call) context.Context

	// End is run when the call has ended, once for each Start.
	End func(ctx context.Context, c Call)

	// Attempt is run when an attempt has ended.
	Attempt func(ctx context.Context, a Attempt)

	// Drift is run, before Attempt, for each place where a response of 2xx differs from
	// the documented interface: at most 64 for one response, and once for a place that recurs in a list.
	Drift func(ctx context.Context, d Drift)
}

// A Call describes one call of a method and, at its end, the result. It has no key, URL, argument or body.
type Call struct {
	Operation string // such as [OpBalance]
	Route     string // the path with its parameters in braces, such as "/api/networks-coins/{id}"
	Merchant  string // of [WithMerchant]; empty for the client's own

	Attempts   int           // how many attempts were made; 0 for none
	StatusCode int           // of the last response; 0 when none came
	Outcome    Outcome       // [OutcomeOf] Err; of a call that creates no invoice, [OutcomeSucceeded] or [OutcomeNotSent]
	Err        error         `json:"-"` // the error of the call; nil when it succeeded
	Duration   time.Duration // of the whole call, waits included

	Replayed bool // whether the invoice of an earlier call was returned
	Others   int  // how many further invoices of the order the [OrderGuard] knows, which should not exist
	Left     bool // whether the caller left at its deadline, while the invoice was sent
	Cut      bool // whether that deadline cut the invoice, because 256 others were being sent without a caller

	GuardErr   error `json:"-"` // why the [OrderGuard] could not record the outcome; nil if it could, or did not have to
	DetailsErr error `json:"-"` // why the function of [WithInvoiceDecoder] could not read the invoice; nil if it could
}

// An Attempt describes one attempt of a call and its result. It has no key, URL or body.
type Attempt struct {
	Operation  string        // such as [OpBalance]
	Route      string        // the path with its parameters in braces, such as "/api/networks-coins/{id}"
	Number     int           // from 1
	StatusCode int           // of the response; 0 when none came
	Err        error         `json:"-"` // why the attempt failed, never an [*OutcomeUnknownError]; nil when it succeeded
	Wait       time.Duration // until the next attempt, unless the context ends; 0 when there is none
	Duration   time.Duration // of this attempt, its body included
}

// A Drift is a place where a response differs from the documented interface. The call may succeed
// all the same.
type Drift struct {
	Operation string    // such as [OpBalance]
	Pointer   string    // where in the response, as a JSON pointer such as "/result/17/network/color"
	Kind      DriftKind // how it differs
	Reason    string    // the value and why it is unexpected: "ON_HOLD" is not documented; empty if Kind says it all
}

// A DriftKind is how a response differs.
type DriftKind string

const (
	// DriftUnknownField is a member that is not documented. It was skipped.
	DriftUnknownField DriftKind = "unknown field"
	// DriftUnknownStatus is a status of a withdrawal that is not documented. It was
	// kept as it came. [Client.WaitWithdrawal] reports each such status once.
	DriftUnknownStatus DriftKind = "unknown status"
	// DriftUnknownShape is a result, or a part of it, that cannot be decoded: it has none
	// of the forms that the method reads, or a member is missing or malformed. The call
	// failed with a [*DecodeError], or a record of a list was skipped: see [Skipped].
	DriftUnknownShape DriftKind = "unknown shape"
	// DriftMismatch is an identifier that should equal another one: a networkId or coinId
	// that differs from the id of the record beside it, or the identifier or coin of a record
	// that was not requested, which fails with [ErrResponseMismatch]. It is also the network of a
	// pair that was requested by another name, and the orderId in a new invoice, if it is another order's.
	DriftMismatch DriftKind = "mismatch"
	// DriftUnexpectedValue is a value that was accepted although it is unusual: a success
	// message that is neither documented nor set by [WithSuccessMessage], a meta
	// that is not empty, a number instead of a text, 1 instead of true, a status in lower
	// case, a missing exchange rate, a field in Missing of a [CoinNetwork], or a character
	// that is not Unicode.
	DriftUnexpectedValue DriftKind = "unexpected value"
)

// WithObserver adds an [Observer]. Several run in the order of their options, after [WithLogger], and
// their End functions in reverse order.
func WithObserver(o Observer) Option {
	return func(cfg *config) error {
		cfg.observers = append(cfg.observers, o)
		return nil
	}
}

// WithLogger logs the events that an [Observer] receives. The level is Debug for attempts and for the ends of
// calls: the caller logs the error of a call. It is Warn for a retried attempt, for an invoice that may exist, for
// each place of drift, once, and for an unknown status, once in each wait. It is Error if the [OrderGuard] could
// not record an outcome, and if an order has more than one invoice.
//
// Without this option, [slog.Default] receives the warnings and errors, except those about retried attempts. A logger
// with [slog.DiscardHandler] silences them.
func WithLogger(logger *slog.Logger) Option {
	return notNil("WithLogger", logger == nil, func(cfg *config) { cfg.logger = logger })
}

type callKey struct{}

// CallFromContext returns the Operation, Route and Merchant of the call that a context belongs to: the
// context of a RoundTripper's request, or of a method or function that the call runs.
func CallFromContext(ctx context.Context) (Call, bool) {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return Call{}, false
	}
	return c.described(), true
}

// described returns the call for [CallFromContext].
func (c *call) described() Call {
	return Call{Operation: c.operation.name, Route: c.operation.route, Merchant: c.redactor.Text(c.cfg.merchant)}
}

// allObservers returns the observers, the logger first.
func (cfg *config) allObservers() []Observer {
	l := &logObserver{logger: cfg.logger, logged: map[Drift]bool{}}
	own := Observer{End: l.end, Drift: l.drift}
	if cfg.logger != nil {
		own.Attempt = l.attempt
	}
	return append([]Observer{own}, cfg.observers...)
}

// observeStart runs the Start functions, and returns the context of the call.
func (c *call) observeStart(ctx context.Context) context.Context {
	for _, o := range c.client.observers {
		if o.Start == nil {
			continue
		}
		if derived := o.Start(ctx, c.described()); derived != nil {
			ctx = derived
		}
	}
	return ctx
}

// observeEnd runs the End functions.
func (c *call) observeEnd(err error) {
	if len(c.client.observers) == 0 {
		return
	}
	ended := c.described()
	ended.Attempts, ended.StatusCode, ended.Duration = c.attempts, c.status, time.Since(c.started)
	ended.Outcome, ended.Err = OutcomeOf(err), err
	if c.write == nil && err != nil {
		ended.Outcome = OutcomeNotSent
	}
	ended.Replayed, ended.Others, ended.Left, ended.Cut = c.ended.Replayed, c.ended.Others, c.ended.Left, c.ended.Cut
	ended.GuardErr, ended.DetailsErr = c.ended.GuardErr, c.ended.DetailsErr
	for _, o := range slices.Backward(c.client.observers) {
		if o.End != nil {
			o.End(c.ctx, ended)
		}
	}
}

// reportAttempt reports drift and the end of an attempt to the observers.
func (c *call) reportAttempt() {
	if len(c.client.observers) == 0 {
		return
	}
	a := Attempt{
		Operation: c.operation.name, Route: c.operation.route, Number: c.attempts,
		StatusCode: c.last.status, Err: c.failed(), Wait: c.next.Wait, Duration: time.Since(c.begun),
	}
	for _, d := range c.last.drift {
		if !c.isNewInWait(d) {
			continue
		}
		for _, o := range c.client.observers {
			if o.Drift != nil {
				o.Drift(c.ctx, d)
			}
		}
	}
	for _, o := range c.client.observers {
		if o.Attempt != nil {
			o.Attempt(c.ctx, a)
		}
	}
}

// maxWaitDrift is how many statuses of one wait are reported.
const maxWaitDrift = 64

// isNewInWait reports whether the same wait has not yet reported this unknown status; true for other drift.
func (c *call) isNewInWait(d Drift) bool {
	seen := c.cfg.statuses
	if seen == nil || d.Kind != DriftUnknownStatus {
		return true
	}
	isNew := !seen[d] && len(seen) < maxWaitDrift
	if isNew {
		seen[d] = true
	}
	return isNew
}

// driftKinds are the kinds of a [Drift] by those of a note.
var driftKinds = [...]DriftKind{
	doc.UnknownField: DriftUnknownField, doc.UnknownValue: DriftUnknownStatus,
	doc.Unreadable: DriftUnknownShape, doc.Skipped: DriftUnknownShape,
	doc.Mismatch: DriftMismatch, doc.UnexpectedValue: DriftUnexpectedValue, doc.Lacking: DriftUnexpectedValue,
}

func drifts(op string, tree *doc.Doc) (all []Drift) {
	for _, n := range tree.Notes() {
		if !n.Again {
			all = append(all, Drift{op, n.Pointer, driftKinds[n.Kind], n.Reason()})
		}
	}
	return all
}

// A logObserver writes to a logger.
type logObserver struct {
	logger *slog.Logger // of WithLogger; nil for the default one, which gets no Debug events

	mu     sync.Mutex
	logged map[Drift]bool // places of drift
}

// log logs an event. Attributes with an empty text are left out. Without WithLogger the default logger gets no Debug
// events.
func (l *logObserver) log(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	if l.logger == nil && level == slog.LevelDebug {
		return
	}
	isEmpty := func(a slog.Attr) bool { return a.Value.Kind() == slog.KindString && a.Value.String() == "" }
	cmp.Or(l.logger, slog.Default()).LogAttrs(ctx, level, text, slices.DeleteFunc(attrs, isEmpty)...)
}

func (l *logObserver) end(ctx context.Context, c Call) {
	level, text := slog.LevelDebug, "gateway: call"
	switch {
	case c.GuardErr != nil:
		level, text = slog.LevelError, "gateway: the order guard could not record the outcome"
	case c.Others > 0:
		level, text = slog.LevelError, "gateway: the order has more than one invoice: look it up"
	case c.Outcome == OutcomeUnknown && c.Err != nil && !SafeToRetry(c.Err):
		level, text = slog.LevelWarn, "gateway: an invoice may exist: look the order up"
	case c.DetailsErr != nil:
		level, text = slog.LevelWarn, "gateway: the invoice was created, but its details cannot be read"
	}
	l.log(ctx, level, text,
		slog.String("operation", c.Operation), slog.String("route", c.Route), slog.String("merchant", printable(c.Merchant)),
		slog.Int("attempts", c.Attempts),
		slog.Int("status", c.StatusCode), slog.String("outcome", c.Outcome.String()), slog.Duration("duration", c.Duration),
		errorAttr("error", c.Err), errorAttr("guard_error", c.GuardErr), errorAttr("details_error", c.DetailsErr))
}

func (l *logObserver) attempt(ctx context.Context, a Attempt) {
	level, text := slog.LevelDebug, "gateway: attempt"
	if a.Wait > 0 {
		level, text = slog.LevelWarn, "gateway: attempt will be retried"
	}
	l.log(ctx, level, text,
		slog.String("operation", a.Operation), slog.String("route", a.Route), slog.Int("attempt", a.Number),
		slog.Int("status", a.StatusCode), slog.Duration("duration", a.Duration), slog.Duration("wait", a.Wait),
		errorAttr("error", a.Err))
}

func (l *logObserver) drift(ctx context.Context, d Drift) {
	c, _ := ctx.Value(callKey{}).(*call)
	inWait := d.Kind == DriftUnknownStatus && c != nil && c.cfg.statuses != nil // a wait reports a status once
	if l.isNew(d) || inWait {
		l.log(ctx, slog.LevelWarn, "gateway: drift",
			slog.String("operation", d.Operation), slog.String("kind", string(d.Kind)),
			slog.String("pointer", printable(d.Pointer)), slog.String("reason", printable(d.Reason)))
	}
}

func errorAttr(key string, err error) slog.Attr {
	if err == nil {
		return slog.String(key, "")
	}
	return slog.String(key, printable(err.Error()))
}

// maxLoggedDrift is how many places of drift are remembered; then all are logged again.
const maxLoggedDrift = 1024

// isNew reports whether a place of drift, or a status, was not logged before.
func (l *logObserver) isNew(d Drift) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.Pointer = doc.WithoutIndices(d.Pointer)
	if d.Kind != DriftUnknownStatus {
		d.Reason = ""
	}
	if l.logged[d] {
		return false
	}
	if len(l.logged) == maxLoggedDrift {
		clear(l.logged)
	}
	l.logged[d] = true
	return true
}
