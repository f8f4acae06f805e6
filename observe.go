package gateway

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// An Observer is told what a client does: one call of Attempt for every
// attempt, and before it one of Drift for each place in an answer of 2xx that
// differs from what INTERFACE.md says. What recurs in the records of a list is
// told once, and of one answer at most 64. A call that ends before its first
// attempt, by an argument, the key's source or the [OrderGuard], is not told.
//
// It is called by the goroutine that sends the request, which waits for it, so
// it must be quick. With a [Catalog] and [Client.WaitWithdrawals] that is not
// the caller's own. It must be safe for concurrent use.
//
// The context is the one of the call, with its values, and may have ended.
type Observer interface {
	Attempt(ctx context.Context, a Attempt)
	Drift(ctx context.Context, d Drift)
}

// An Attempt is one request of a call, and what came of it. There is no key, no
// URL and no body in it.
type Attempt struct {
	Operation  string        // as [OperationFromContext] names it
	Route      string        // the path as INTERFACE.md writes it, such as "/api/networks-coins/{id}"
	Number     int           // from 1
	StatusCode int           // of the answer; 0 when none came
	Err        error         // what is wrong with the attempt, not what the call returns: never an [*OutcomeUnknownError]; nil when it succeeded
	Wait       time.Duration // until the next attempt, if the context lasts; 0 when there is none
	Duration   time.Duration // of this attempt, the reading of the body included
}

// A Drift is a place where an answer differs from what INTERFACE.md says. The
// call may have succeeded all the same.
type Drift struct {
	Operation string    // as [OperationFromContext] names it
	Pointer   string    // where in the answer, as a JSON pointer such as "/result/17/network/color"
	Kind      DriftKind // what differs
}

// A DriftKind says how an answer differs.
type DriftKind string

const (
	// DriftUnknownField is a member that the interface does not list. It was
	// passed over.
	DriftUnknownField DriftKind = "unknown field"
	// DriftUnknownStatus is a withdrawal status that the interface does not
	// list. It was kept as it came.
	DriftUnknownStatus DriftKind = "unknown status"
	// DriftUnknownShape is a result, or a part of it, that can not be read: in
	// none of the shapes that the method understands, or with a member that is
	// missing or malformed. The call failed with a [*DecodeError].
	DriftUnknownShape DriftKind = "unknown shape"
	// DriftMismatch is an identifier that is not the one it has to equal: a
	// networkId or coinId that is not the id of the record beside it, or a record
	// that is not the one asked for, which fails with [ErrResponseMismatch]. It is
	// also an identifier or a pair that a [Catalog] found listed twice.
	DriftMismatch DriftKind = "mismatch"
)

// WithObserver sets what is told of attempts and drift.
func WithObserver(o Observer) Option {
	return func(cfg *config) error {
		if o == nil {
			return badOption("WithObserver", "must not be nil")
		}
		cfg.observer = o
		return nil
	}
}

// WithLogger writes what an [Observer] is told to logger: attempts at level
// Debug, the last one too, for its error is the caller's to log; those that will
// be made again and drift at Warn. The keys are operation, route, attempt,
// status, duration, wait, error, kind and pointer. With [WithObserver] both are
// told. Without this option the client writes nothing.
func WithLogger(logger *slog.Logger) Option {
	return func(cfg *config) error {
		if logger == nil {
			return badOption("WithLogger", "must not be nil")
		}
		cfg.logger = logger
		return nil
	}
}

// OperationFromContext returns which operation a request is made for, for
// whoever counts or traces them in a RoundTripper: "coin_networks",
// "coin_network", "coin_network_by_symbol", "exchange_rates", "balance",
// "create_invoice" or "withdrawal". It is also in the context of an [Observer],
// an [OrderGuard] and a key's source.
func OperationFromContext(ctx context.Context) (string, bool) {
	op, ok := ctx.Value(operationKey{}).(string)
	return op, ok
}

// observers returns what is told of a call: the logger first.
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

// report tells the observers of the last attempt, once.
func (x *exchange) report(wait time.Duration) {
	if x.attempts == x.reported {
		return
	}
	x.reported = x.attempts
	if len(x.client.observers) == 0 {
		return
	}
	a := Attempt{
		Operation: x.call.op, Route: x.call.route, Number: x.attempts,
		StatusCode: x.answered, Err: x.failure, Wait: wait, Duration: time.Since(x.begun),
	}
	for _, d := range x.drift {
		x.client.reportDrift(&x.ctx, d)
	}
	for _, o := range x.client.observers {
		o.Attempt(&x.ctx, a)
	}
}

func (c *Client) reportDrift(ctx context.Context, d Drift) {
	for _, o := range c.observers {
		o.Drift(ctx, d)
	}
}

// maxDrifts bounds how many drifts of one answer are reported.
const maxDrifts = 64

// drifts collects what differs in one answer. A nil one collects nothing.
type drifts struct {
	op   string
	all  []Drift
	seen map[string]bool
}

func (x *exchange) newDrifts() *drifts {
	if len(x.client.observers) == 0 {
		return nil
	}
	return &drifts{op: x.call.op, seen: map[string]bool{}}
}

// add notes a drift. What recurs in the records of a list is noted once, where
// it was met first.
func (s *drifts) add(kind DriftKind, pointer string) {
	place := string(kind) + withoutIndices(pointer)
	if s.full() || s.seen[place] {
		return
	}
	s.seen[place] = true
	s.all = append(s.all, Drift{s.op, pointer, kind})
}

func (s *drifts) full() bool { return len(s.all) == maxDrifts }

// withoutIndices is a pointer to the same place in every element of a list.
func withoutIndices(pointer string) string {
	tokens := strings.Split(pointer, "/")
	for i, token := range tokens {
		if allDigits([]byte(token)) {
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, "/")
}

// logObserver writes what it is told to a logger.
type logObserver struct{ logger *slog.Logger }

// Attempt implements [Observer].
func (l logObserver) Attempt(ctx context.Context, a Attempt) {
	level, text := slog.LevelDebug, "gateway: attempt"
	if a.Wait > 0 {
		level, text = slog.LevelWarn, "gateway: attempt will be made again"
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
