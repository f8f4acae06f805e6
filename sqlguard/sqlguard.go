// Package sqlguard keeps a [gateway.OrderGuard] in a database, so that many
// processes of a merchant never send two invoices for one order, and none is
// forgotten over a crash or a restart. The default guard of the client is in
// memory and knows neither.
//
//	guard, err := sqlguard.New(db) // a *sql.DB for PostgreSQL or SQLite
//	...
//	client, err := gateway.New(url, key, gateway.WithOrderGuard(guard))
//
// It works over database/sql with the drivers github.com/jackc/pgx/v5/stdlib
// and modernc.org/sqlite, and imports neither: the merchant opens the handle.
//
// # States
//
// There is one table with one row per order, and every transition is one
// statement, which the database makes atomic. An order is
//
//   - free: an invoice may be sent. An order without a row is free.
//   - in flight: a process is sending one, and nobody else may.
//   - unknown: one was sent and may exist. Nothing is sent before somebody has
//     looked it up at the service: [Guard.Pending] lists these orders, and
//     [Guard.Resolve] or [gateway.AllowResubmit] goes on.
//   - created: an invoice exists. No other one is sent, see [ErrOrderCreated]
//     and [WithRepeats].
//
// # Leases
//
// Begin takes the order for the duration of a lease: see [WithLease]. Where a
// process dies before End, the order is in flight until its lease is over, and
// unknown from then on. It never becomes free by itself. What counts is the
// clock of the database, so the clocks of the processes need not agree.
//
// Each Begin has a random token, which End must show. A process that was
// slower than its lease can therefore not end what another one has begun
// since. What it reports is not lost either: an invoice that was created after
// all makes the order created, and a late unknown outcome makes it unknown.
//
// # What it rests on
//
// The database must not lose what it has committed: with synchronous_commit
// off (PostgreSQL), synchronous below FULL in WAL mode (SQLite), or a failover
// to a replica that lags, a power cut can take back that an order was begun.
// PostgreSQL must run statements at READ COMMITTED, its default. SQLite needs
// a busy_timeout, for one process writes at a time.
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

// Sentinels for [errors.Is], besides [gateway.ErrOrderInFlight] and
// [gateway.ErrOrderOutcomeUnknown].
var (
	// ErrOrderCreated matches the error of [Guard.Begin] for an order of which
	// an invoice was created, here or in another process. The error of the
	// client's CreateInvoice matches it too. [WithRepeats] turns this off.
	ErrOrderCreated = errors.New("sqlguard: an invoice for this order was created already")

	// ErrNotHeld matches the error of [Guard.End] for an order that this guard
	// does not hold: it never began it, or its lease was over and somebody has
	// resolved or resubmitted the order since. Nothing was changed.
	ErrNotHeld = errors.New("sqlguard: the order is not held by this guard")

	// ErrNotUnknown matches the error of [Guard.Resolve] for an order whose
	// outcome is not unknown. Nothing was changed.
	ErrNotUnknown = errors.New("sqlguard: the outcome of the order is not unknown")

	// ErrTriedAgain matches the error of [Guard.Resolve] for an order that has
	// been sent again since it was read: what is known of it may be outdated.
	// Nothing was changed.
	ErrTriedAgain = errors.New("sqlguard: the order was sent again since it was read")
)

var _ gateway.OrderGuard = (*Guard)(nil)

// A Guard is a [gateway.OrderGuard] in a table. Make it with [New], once per
// process, and give it to the client with [gateway.WithOrderGuard]. It is safe
// for concurrent use, and any number of guards may share one table.
type Guard struct {
	db    *sql.DB
	cfg   config
	stmts statements

	mu   sync.Mutex
	held map[string]string // the token of each order that is between Begin and End here
}

// New returns a guard over a handle for PostgreSQL or SQLite. Which of the two
// it is follows from the driver, unless [WithDialect] says it. New asks the
// database nothing; [Guard.CreateTable] makes the table.
//
// A bad argument or option is a [*gateway.ArgumentError].
func New(db *sql.DB, opts ...Option) (*Guard, error) {
	if db == nil {
		return nil, badArgument("db", "must not be nil")
	}
	cfg := config{table: DefaultTable, lease: defaultLease}
	for _, opt := range opts {
		if opt == nil {
			return nil, badArgument("opts", "holds a nil option")
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
		db:    db,
		cfg:   cfg,
		stmts: cfg.dialect.statements(cfg.table),
		held:  map[string]string{},
	}, nil
}

func badArgument(name, reason string) error {
	return &gateway.ArgumentError{Op: "sqlguard", Name: name, Reason: reason}
}

// withdrawTimeout bounds what Begin does after it has failed.
const withdrawTimeout = time.Second

// Begin takes the order for a lease. It refuses with an error that matches
// [gateway.ErrOrderInFlight] while another invoice for it is under way,
// [gateway.ErrOrderOutcomeUnknown] after an unknown outcome or a crash unless
// resubmit is set, and [ErrOrderCreated] after a success.
//
// With any other error the database did not answer, and nothing may be sent.
// Begin then tries for up to a second to take back what the database may have
// recorded all the same. Where that fails too, the order is unknown after its
// lease.
func (g *Guard) Begin(ctx context.Context, orderID string, resubmit bool) error {
	if err := ctx.Err(); err != nil {
		return orderError(orderID, err)
	}
	token := rand.Text()
	if !g.hold(orderID, token) {
		return orderError(orderID, gateway.ErrOrderInFlight)
	}
	refusal, err := g.begin(ctx, orderID, token, resubmit)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
		defer cancel()
		_, _ = g.answer(ctx, g.stmts.end, orderID, token, gateway.OutcomeNotSent.String())
		refusal = err
	}
	if refusal == nil {
		return nil
	}
	g.release(orderID)
	return orderError(orderID, refusal)
}

// begin returns why the order was not taken, or the error of the database.
func (g *Guard) begin(ctx context.Context, orderID, token string, resubmit bool) (refusal, err error) {
	resubmitted, repeated := StateFree, StateFree
	if resubmit {
		resubmitted = StateUnknown
	}
	if g.cfg.repeats {
		repeated = StateCreated
	}
	verdict, err := g.answer(ctx, g.stmts.begin,
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
		return nil, fmt.Errorf("the database answered %q", verdict)
	}
}

// End records what came of the invoice that Begin let through. A success makes
// the order created. An unknown outcome makes it unknown. After a rejection,
// and where nothing was sent, it is free, unless the outcome of an earlier
// invoice is unknown: that remains so.
//
// With an error the outcome may not have been recorded, and the order is then
// unknown after its lease. [ErrNotHeld] says that there was nothing to record.
func (g *Guard) End(ctx context.Context, orderID string, outcome gateway.Outcome) error {
	switch outcome {
	case gateway.OutcomeSucceeded, gateway.OutcomeRejected, gateway.OutcomeNotSent:
	default:
		outcome = gateway.OutcomeUnknown
	}
	ended, err := g.answer(ctx, g.stmts.end, orderID, g.release(orderID), outcome.String())
	if err == nil && ended == "" {
		err = ErrNotHeld
	}
	if err != nil {
		return orderError(orderID, err)
	}
	return nil
}

// hold keeps the token of an order, unless there is one: then it is in flight
// in this very process, whatever its lease says.
func (g *Guard) hold(orderID, token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, taken := g.held[orderID]; taken {
		return false
	}
	g.held[orderID] = token
	return true
}

// release forgets the token of an order and returns it, "" if there is none.
func (g *Guard) release(orderID string) (token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	token = g.held[orderID]
	delete(g.held, orderID)
	return token
}

// answer runs a statement that changes at most one row and returns one text,
// or "" where it changed none. It reads to the end of the result: a database
// may say as late as that that it could not commit.
func (g *Guard) answer(ctx context.Context, query string, args ...any) (text string, err error) {
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
