// Package sqlguard implements [gateway.OrderGuard] in a database, so that the
// processes of a merchant never send two invoices for one order, and no order is
// lost in a crash or a restart. The default guard of the client is in memory: it
// is limited to one client and does not survive it.
//
//	guard, err := sqlguard.New(db) // a *sql.DB for PostgreSQL or SQLite
//	...
//	client, err := gateway.New(url, key, gateway.WithOrderGuard(guard))
//
// The package uses database/sql with the drivers github.com/jackc/pgx/v5/stdlib
// and modernc.org/sqlite, and imports neither: the merchant opens the handle.
//
// # States
//
// There is one table with one row per order, and every transition is one
// statement, which the database makes atomic. An order is
//
//   - free: an invoice may be sent. An order without a row is free.
//   - in flight: a process is sending an invoice, and no other may.
//   - unknown: an invoice was sent and may exist. No other is sent until a person
//     has looked the order up at the service: [Guard.Pending] lists these orders,
//     and [Guard.Resolve] or [gateway.AllowResubmit] ends the state.
//   - created: an invoice exists. No other is sent, see [gateway.ErrOrderCreated]
//     and [WithRepeats].
//
// The table grows by a row for each order. [Guard.Prune] deletes those that are created
// or free and old; they are forgotten then.
//
// # Leases
//
// Begin acquires the order for the duration of a lease, see [WithLease]. If a
// process dies before End, the order is in flight until its lease expires and
// unknown from then on. It never becomes free by itself. Leases are measured by
// the clock of the database, so that the clocks of the processes need not agree.
//
// A lease that may be over is not granted: a Begin that takes longer than a quarter of
// its lease or 10 seconds, by the clock of its process, fails and withdraws what it
// recorded. Nothing is sent then.
//
// Each Begin has a random token, which End presents. A process that is slower
// than its lease therefore cannot end what another process has begun since. Its
// report is not lost either: a late success makes the order created, and a late
// unknown outcome makes it unknown.
//
// # Requirements
//
// The database must not lose committed data: with synchronous_commit off
// (PostgreSQL), synchronous below FULL in WAL mode (SQLite), or a failover to a
// replica that lags, a power failure can revert the record that an order was
// begun. PostgreSQL must run statements at READ COMMITTED, its default. SQLite
// needs a busy_timeout, because only one process writes at a time.
package sqlguard

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
)

// Errors that the methods of [Guard] match, besides [gateway.ErrOrderInFlight],
// [gateway.ErrOrderOutcomeUnknown] and [gateway.ErrOrderCreated].
var (
	// ErrNotHeld matches the error of [Guard.End] for an order that this guard
	// does not hold: it never began it, or its lease expired and the order has
	// been resolved or resubmitted since. The order is not changed.
	ErrNotHeld = errors.New("sqlguard: the order is not held by this guard")

	// ErrNotUnknown matches the error of [Guard.Resolve] for an order that is
	// not unknown. The order is not changed.
	ErrNotUnknown = errors.New("sqlguard: the outcome of the order is not unknown")

	// ErrTriedAgain matches the error of [Guard.Resolve] for an order that has
	// been sent again since it was read, so that the finding may be outdated.
	// The order is not changed.
	ErrTriedAgain = errors.New("sqlguard: the order was sent again since it was read")
)

var _ gateway.OrderGuard = (*Guard)(nil)

// A Guard is a [gateway.OrderGuard] that keeps its state in a table. [New]
// returns one; a process needs only one, which it passes to its clients with
// [gateway.WithOrderGuard]. The zero Guard is not usable. A Guard is safe for
// concurrent use, and any number of guards may share one table.
type Guard struct {
	db       *sql.DB
	cfg      config
	stmts    statements
	patience time.Duration    // how long a Begin may take
	retryEnd time.Duration    // for how long a failed End is tried again
	now      func() time.Time // the clock of this process

	mu      sync.Mutex
	tokens  map[key]string // the token of each order between Begin and End in this process
	unended map[key]string // the token of orders whose End has failed since
}

// New returns a guard that uses db, a handle for PostgreSQL or SQLite. The dialect
// follows from the driver unless [WithDialect] sets it. New does not query the
// database; [Guard.CreateTable] creates the table.
//
// The error for an invalid argument or option is a [*gateway.ArgumentError].
func New(db *sql.DB, opts ...Option) (*Guard, error) {
	if db == nil {
		return nil, badArgument("db", "must not be nil")
	}
	cfg := config{table: DefaultTable, lease: defaultLease}
	for _, opt := range opts {
		if opt == nil {
			return nil, badArgument("opts", "contains a nil option")
		}
		if err := opt(&cfg); err != nil {
			return nil, err
		}
	}
	if cfg.dialect == 0 {
		cfg.dialect = dialectOf(db.Driver())
	}
	if cfg.dialect == 0 {
		return nil, badArgument("db", fmt.Sprintf("the driver %T is neither that of %s nor that of %s: use WithDialect if it wraps one",
			db.Driver(), pgxPackage, sqlitePackage))
	}
	return &Guard{
		db:       db,
		cfg:      cfg,
		stmts:    cfg.dialect.statements(cfg.table),
		patience: cfg.patience(),
		retryEnd: mostRetryEnd,
		now:      time.Now,
		tokens:   map[key]string{},
		unended:  map[key]string{},
	}, nil
}

func badArgument(name, reason string) error {
	return &gateway.ArgumentError{Operation: "sqlguard", Name: name, Reason: reason}
}

// A key identifies an order.
type key struct{ merchant, order string }

// keyOf returns the key of the order that a call is about.
func (g *Guard) keyOf(ctx context.Context, orderID string) (key, error) {
	merchant, named := gateway.MerchantFromContext(ctx)
	if named && !g.cfg.merchants {
		return key{}, badArgument("WithMerchants", "is not set, and the call names a merchant by WithMerchant or WithAPIKey")
	}
	return key{merchant, orderID}, nil
}

func (k key) error(err error) error {
	if k.merchant != "" {
		return fmt.Errorf("sqlguard: order %q of merchant %q: %w", k.order, k.merchant, err)
	}
	return fmt.Errorf("sqlguard: order %q: %w", k.order, err)
}

// Begin acquires the order for a lease. Its error matches
// [gateway.ErrOrderInFlight] while another invoice for the order is being sent,
// [gateway.ErrOrderOutcomeUnknown] after an unknown outcome or a crash unless
// resubmit is set, and [gateway.ErrOrderCreated] after a success unless [WithRepeats] is
// set. It is a [*gateway.ArgumentError] for a call that names a merchant without [WithMerchants].
//
// Any other error means that the database failed, or took longer than a quarter of
// the lease or 10 seconds, and the invoice must not be sent. Begin then tries for up
// to a second to withdraw what the database may have recorded nonetheless. If that
// fails too, the order is unknown after its lease.
func (g *Guard) Begin(ctx context.Context, orderID string, resubmit bool) error {
	k, err := g.keyOf(ctx, orderID)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return k.error(err)
	}
	token := rand.Text()
	if !g.acquire(k, token) {
		return k.error(gateway.ErrOrderInFlight)
	}
	begun := false // stays so when the driver panics
	defer func() { g.begun(k, token, begun) }()
	if err := g.begin(ctx, k, token, resubmit); err != nil {
		return k.error(err)
	}
	begun = true
	return nil
}

// begin returns why the order was refused, or the error of the database. What
// the database may have recorded without a verdict in time is withdrawn.
func (g *Guard) begin(ctx context.Context, k key, token string, resubmit bool) error {
	decided := false // stays so when the driver panics
	defer func() {
		if !decided {
			g.withdraw(ctx, k, token)
		}
	}()
	bounded, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	start := g.now()
	verdict, err := g.queryText(bounded, g.stmts.begin, g.beginArgs(k, token, resubmit)...)
	took := elapsed(start, g.now())
	refusal, known := refusals(verdict)
	switch {
	case took >= g.patience && (err != nil || refusal == nil):
		return lateError(took, g.cfg.lease, err)
	case err != nil:
		return err
	case !known:
		return fmt.Errorf("the database returned %q", verdict)
	}
	decided = true
	return refusal
}

// elapsed is the time by the clock that advanced more: one stands still while the
// machine is suspended, and the other can be set back.
func elapsed(start, end time.Time) time.Duration {
	return max(end.Sub(start), end.Round(0).Sub(start.Round(0)))
}

func lateError(took, lease time.Duration, cause error) error {
	err := fmt.Errorf("the database took %v, and the lease of %v may be over", took.Round(time.Millisecond), lease)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// refusals returns the refusal by a verdict of the statement begin, nil if it has
// stored the token.
func refusals(verdict string) (refusal error, known bool) {
	switch verdict {
	case begun:
		return nil, true
	case string(StateInFlight):
		return gateway.ErrOrderInFlight, true
	case string(StateUnknown):
		return gateway.ErrOrderOutcomeUnknown, true
	case string(StateCreated):
		return gateway.ErrOrderCreated, true
	default:
		return nil, false
	}
}

func (g *Guard) beginArgs(k key, token string, resubmit bool) []any {
	resubmitted, repeated := StateFree, StateFree
	if resubmit {
		resubmitted = StateUnknown
	}
	if g.cfg.repeats {
		repeated = StateCreated
	}
	args := []any{k.merchant, k.order, token, interval(g.cfg.lease), string(resubmitted), string(repeated)}
	if g.cfg.dialect == PostgreSQL {
		// Half: then the database itself ends the wait, before the context
		// ends the connection.
		args = append(args, fmt.Sprintf("%dms", (g.patience/2).Milliseconds()))
	}
	return args
}

// withdrawTimeout bounds how long a failed Begin tries to withdraw what it recorded.
const withdrawTimeout = time.Second

// withdraw frees an order that a failed Begin may have recorded.
func (g *Guard) withdraw(ctx context.Context, k key, token string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	_, _ = g.queryText(ctx, g.stmts.end, k.merchant, k.order, token, gateway.OutcomeNotSent.String())
}

const (
	mostRetryEnd = 10 * time.Second
	leastPause   = 50 * time.Millisecond
	mostPause    = time.Second
	mostUnended  = 1024 // a failure of the database leaves as many as were being sent
)

// End records the outcome of the invoice that Begin admitted. After a success
// the order is created, after an unknown outcome unknown. After a rejection, or
// if the invoice was not sent, it is as before Begin: free, created or, if the
// outcome of an earlier invoice is unknown, unknown. An outcome that is not one
// of the constants counts as unknown.
//
// If the database fails, End tries again until ctx ends, for up to 10 seconds. If it
// returns an error, the outcome may not have been recorded, and the order is then
// unknown after its lease. It may be called again with the same outcome until Begin
// accepts the order again; the guard remembers up to 1,024 such orders. An error that
// matches [ErrNotHeld] means that there was nothing to record, or that a statement whose
// response was lost has recorded it.
func (g *Guard) End(ctx context.Context, orderID string, outcome gateway.Outcome) error {
	switch outcome {
	case gateway.OutcomeSucceeded, gateway.OutcomeRejected, gateway.OutcomeNotSent:
	default:
		outcome = gateway.OutcomeUnknown
	}
	k, err := g.keyOf(ctx, orderID)
	if err != nil {
		return err
	}
	token := g.token(k)
	ended := false // stays so when the driver panics
	defer func() { g.ended(k, token, ended) }()
	found, err := g.end(ctx, k, token, outcome)
	ended = err == nil
	if ended && !found {
		err = ErrNotHeld
	}
	if err != nil {
		return k.error(err)
	}
	return nil
}

// end records an outcome, and reports whether there was one to record. To repeat the
// statement is safe: a token ends one attempt only.
func (g *Guard) end(ctx context.Context, k key, token string, outcome gateway.Outcome) (found bool, err error) {
	start := g.now()
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		text, err := g.queryText(ctx, g.stmts.end, k.merchant, k.order, token, outcome.String())
		if err == nil || elapsed(start, g.now()) >= g.retryEnd || wait(ctx, pause) != nil {
			return text != "", err
		}
	}
}

// wait returns after a pause, or with the error of a context that has ended.
func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// acquire stores the token of an order. It returns false if there is one: the
// order is then in flight in this process, even if its lease has expired.
func (g *Guard) acquire(k key, token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, taken := g.tokens[k]; taken {
		return false
	}
	g.tokens[k] = token
	return true
}

// begun keeps the token of a Begin that has accepted the order, and deletes that of another.
func (g *Guard) begun(k key, token string, accepted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case accepted:
		delete(g.unended, k) // an End is that of this Begin from now on
	case g.tokens[k] == token:
		delete(g.tokens, k)
	}
}

// token returns the token of the attempt that an End is about, "" if there is none. If one
// has failed to end, no Begin has accepted the order since.
func (g *Guard) token(k key) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token, ok := g.unended[k]; ok {
		return token
	}
	return g.tokens[k]
}

// ended deletes the token of an attempt, or keeps it for another End if this one has failed.
// Then too the order is no longer in flight in this process: it is what the database has.
func (g *Guard) ended(k key, token string, recorded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.tokens[k] == token
	if held {
		delete(g.tokens, k)
	}
	switch {
	case recorded && g.unended[k] == token:
		delete(g.unended, k)
	case !recorded && held && token != "":
		for other := range g.unended {
			if len(g.unended) < mostUnended {
				break
			}
			delete(g.unended, other)
		}
		g.unended[k] = token
	}
}

// queryText runs a statement that changes at most one row and returns one text,
// or "" if it changed none.
func (g *Guard) queryText(ctx context.Context, query string, args ...any) (string, error) {
	texts, err := g.queryTexts(ctx, query, args...)
	if err != nil || len(texts) == 0 {
		return "", err
	}
	return texts[0], nil
}

// queryTexts runs a statement that returns one text for each row.
func (g *Guard) queryTexts(ctx context.Context, query string, args ...any) ([]string, error) {
	deadline, bounded := ctx.Deadline()
	if g.cfg.dialect != SQLite || !bounded {
		return readTexts(g.db.QueryContext(ctx, query, args...))
	}
	return g.queryBefore(ctx, deadline, query, args...)
}

// queryBefore is queryTexts for SQLite, whose wait for another writer does not end with
// the context: it shortens the busy_timeout of the connection for one statement. If
// the driver panics, the connection is lost, as it is with [sql.DB.QueryContext]: to
// close it would wait for ever.
func (g *Guard) queryBefore(ctx context.Context, deadline time.Time, query string, args ...any) ([]string, error) {
	conn, err := g.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	restore, err := shortenBusyTimeout(ctx, conn, deadline)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	texts, err := readTexts(conn.QueryContext(ctx, query, args...))
	restore()
	_ = conn.Close() // returns it to the handle
	return texts, err
}

// shortenBusyTimeout makes the wait of a connection end at a deadline. If what was
// before cannot be restored, the connection is not used again.
func shortenBusyTimeout(ctx context.Context, conn *sql.Conn, deadline time.Time) (restore func(), err error) {
	var timeout int64
	if err := conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&timeout); err != nil {
		return nil, err
	}
	left := max(0, time.Until(deadline).Milliseconds())
	if left >= timeout {
		return func() {}, nil
	}
	return func() {
		if setBusyTimeout(context.WithoutCancel(ctx), conn, timeout) != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}, setBusyTimeout(ctx, conn, left)
}

func setBusyTimeout(ctx context.Context, conn *sql.Conn, milliseconds int64) error {
	_, err := readTexts(conn.QueryContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", milliseconds)))
	return err
}

// readTexts reads to the end of the result, because a database may report only there
// that it could not commit.
func readTexts(rows *sql.Rows, failure error) (texts []string, err error) {
	if failure != nil {
		return nil, failure
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, rows.Err()
}
