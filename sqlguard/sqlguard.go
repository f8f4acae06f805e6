// Package sqlguard implements [gateway.OrderGuard] in a database, so that the
// processes of a merchant never send two invoices for one order, and no order is
// lost in a crash or a restart. The default guard of the client is in memory: it
// is limited to one process and does not survive it.
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
//   - created: an invoice exists. No other is sent, see [ErrOrderCreated] and
//     [WithRepeats].
//
// # Leases
//
// Begin acquires the order for the duration of a lease, see [WithLease]. If a
// process dies before End, the order is in flight until its lease expires and
// unknown from then on. It never becomes free by itself. Leases are measured by
// the clock of the database, so that the clocks of the processes need not agree.
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
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
)

// Errors that the methods of [Guard] match, besides [gateway.ErrOrderInFlight]
// and [gateway.ErrOrderOutcomeUnknown].
var (
	// ErrOrderCreated matches the error of [Guard.Begin] for an order for which
	// an invoice was created, in this or another process. The error of the
	// client's CreateInvoice matches it too. [WithRepeats] disables it.
	ErrOrderCreated = errors.New("sqlguard: an invoice for this order was already created")

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
	db    *sql.DB
	cfg   config
	stmts statements

	mu     sync.Mutex
	tokens map[string]string // the token of each order between Begin and End in this process
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
		db:     db,
		cfg:    cfg,
		stmts:  cfg.dialect.statements(cfg.table),
		tokens: map[string]string{},
	}, nil
}

func badArgument(name, reason string) error {
	return &gateway.ArgumentError{Op: "sqlguard", Name: name, Reason: reason}
}

// undoTimeout bounds how long a failed Begin tries to undo what it recorded.
const undoTimeout = time.Second

// Begin acquires the order for a lease. Its error matches
// [gateway.ErrOrderInFlight] while another invoice for the order is being sent,
// [gateway.ErrOrderOutcomeUnknown] after an unknown outcome or a crash unless
// resubmit is set, and [ErrOrderCreated] after a success.
//
// Any other error means that the database failed, and the invoice must not be
// sent. Begin then tries for up to a second to undo what the database may have
// recorded nonetheless. If that fails too, the order is unknown after its lease.
func (g *Guard) Begin(ctx context.Context, orderID string, resubmit bool) error {
	if err := ctx.Err(); err != nil {
		return orderError(orderID, err)
	}
	token := rand.Text()
	if !g.acquire(orderID, token) {
		return orderError(orderID, gateway.ErrOrderInFlight)
	}
	refusal, err := g.begin(ctx, orderID, token, resubmit)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		_, _ = g.queryText(ctx, g.stmts.end, orderID, token, gateway.OutcomeNotSent.String())
		refusal = err
	}
	if refusal == nil {
		return nil
	}
	g.release(orderID)
	return orderError(orderID, refusal)
}

// begin returns why the order was refused, or the error of the database.
func (g *Guard) begin(ctx context.Context, orderID, token string, resubmit bool) (refusal, err error) {
	resubmitted, repeated := StateFree, StateFree
	if resubmit {
		resubmitted = StateUnknown
	}
	if g.cfg.repeats {
		repeated = StateCreated
	}
	verdict, err := g.queryText(ctx, g.stmts.begin,
		orderID, token, interval(g.cfg.lease), string(resubmitted), string(repeated))
	if err != nil {
		return nil, err
	}
	switch verdict {
	case begun:
		return nil, nil
	case string(StateInFlight):
		return gateway.ErrOrderInFlight, nil
	case string(StateUnknown):
		return gateway.ErrOrderOutcomeUnknown, nil
	case string(StateCreated):
		return ErrOrderCreated, nil
	default:
		return nil, fmt.Errorf("the database returned %q", verdict)
	}
}

// End records the outcome of the invoice that Begin admitted. After a success
// the order is created, after an unknown outcome unknown. After a rejection, or
// if the invoice was not sent, it is as before Begin: free, created or, if the
// outcome of an earlier invoice is unknown, unknown. An outcome that is not one
// of the constants counts as unknown.
//
// If End returns an error, the outcome may not have been recorded, and the order
// is then unknown after its lease. An error that matches [ErrNotHeld] means that
// there was nothing to record.
func (g *Guard) End(ctx context.Context, orderID string, outcome gateway.Outcome) error {
	switch outcome {
	case gateway.OutcomeSucceeded, gateway.OutcomeRejected, gateway.OutcomeNotSent:
	default:
		outcome = gateway.OutcomeUnknown
	}
	ended, err := g.queryText(ctx, g.stmts.end, orderID, g.release(orderID), outcome.String())
	if err == nil && ended == "" {
		err = ErrNotHeld
	}
	if err != nil {
		return orderError(orderID, err)
	}
	return nil
}

// acquire stores the token of an order. It returns false if there is one: the
// order is then in flight in this process, even if its lease has expired.
func (g *Guard) acquire(orderID, token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, taken := g.tokens[orderID]; taken {
		return false
	}
	g.tokens[orderID] = token
	return true
}

// release deletes the token of an order and returns it, "" if there is none.
func (g *Guard) release(orderID string) (token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	token = g.tokens[orderID]
	delete(g.tokens, orderID)
	return token
}

// queryText runs a statement that changes at most one row and returns one text,
// or "" if it changed none. It reads to the end of the result, because a database
// may report only there that it could not commit.
func (g *Guard) queryText(ctx context.Context, query string, args ...any) (text string, err error) {
	rows, err := g.db.QueryContext(ctx, query, args...)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := rows.Scan(&text); err != nil {
			return "", err
		}
	}
	return text, rows.Err()
}

func orderError(orderID string, err error) error {
	return fmt.Errorf("sqlguard: order %q: %w", orderID, err)
}
