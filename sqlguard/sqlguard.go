// Package sqlguard implements [gateway.OrderGuard] in a database, so that the
// processes of a merchant never send two invoices for one order, each gets the invoice that
// one of them has created, and no order is lost in a crash or a restart. The default guard of the client is in memory: it
// is limited to one client and does not survive it.
//
//	guard, err := sqlguard.New(db) // a *sql.DB for PostgreSQL, SQLite or MariaDB
//	...
//	client, err := gateway.New(url, key, gateway.WithOrderGuard(guard))
//
// The package uses database/sql with the drivers github.com/jackc/pgx/v5/stdlib,
// modernc.org/sqlite and github.com/go-sql-driver/mysql, and imports none: the merchant opens the handle.
//
// # States
//
// There is one table with one row per order. A transition reads the row and writes it in one statement, if
// nothing else has changed it meanwhile: there is no transaction, and no lock that outlives a statement.
// An order is
//
//   - free: an invoice may be sent. An order without a row is free.
//   - in flight: a process is sending an invoice, and no other may.
//   - unknown: an invoice was sent and may exist. No other is sent until a person has looked the order up at
//     the gateway: [Guard.Pending] lists these orders, and [Guard.Resolve] ends the state. So do a late report
//     of the process that sent it, and a resubmission that succeeds; age never does.
//   - created: an invoice exists. No other is sent.
//
// # Records
//
// The statement that grants the lease records its request, so that an order
// whose process died has it; the statement that ends the lease records the rest of [gateway.OrderRecord].
// The invoice of a created order is kept byte for byte, and further invoices beside it. An attempt of
// unknown outcome is kept until its outcome is known. Times have microseconds. Invalid UTF-8 in Cause is
// replaced. An invoice of at most 1 MiB is kept, and 4 MiB of an order: the bodies of older attempts are
// dropped first. [Guard.Prune] deletes old orders.
//
// # Leases
//
// Begin acquires the order for the duration of a lease, see [WithLease]. If a process dies before End, the order
// is in flight until its lease expires and unknown from then on. Leases are measured by the clock of the database,
// so that the clocks of the processes need not agree. For the process, the lease begins before the statement, by its
// own clock: it ends no later than the lease in the database, and the client sends nothing afterwards.
//
// Each Begin has a random name, by which End ends it. A process that is slower than its lease therefore cannot
// end what another process has begun since. Its report is not lost either: a late success makes the order created,
// with its invoice, and a late unknown outcome makes a free order unknown. Both are recorded even if the row is gone.
//
// # Requirements
//
// The database must not lose committed data, as a failover to a replica that lags does: an order that was begun would be
// sent again. [Guard.Check] refuses the settings with which a crash can lose it.
package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/orders"
)

var _ gateway.OrderGuard = (*Guard)(nil)

// A Guard is a [gateway.OrderGuard] that keeps its state in a table. [New]
// returns one; a process needs only one, which it passes to its clients with
// [gateway.WithOrderGuard]. The zero Guard is not usable. A Guard is safe for
// concurrent use, and any number of guards may share one table.
type Guard struct {
	db       *sql.DB
	cfg      config
	sql      schema
	queries  queries
	patience time.Duration    // how long a Begin may take
	mostTry  time.Duration    // how long a try on one connection may take
	retryEnd time.Duration    // for how long a failed End is tried again
	now      func() time.Time // the clock of this process

	isSure atomic.Bool // the table keeps a created order of this guard's kind, and nobody sends one of the other kind

	mu   sync.Mutex
	held map[int64]stored // the row of each attempt of this process between Begin and End
}

// New returns a guard that uses db, a handle for PostgreSQL, SQLite or MariaDB. The dialect
// follows from the driver unless [WithDialect] sets it. New does not query the
// database; [Guard.Migrate] creates the table.
//
// The table is of one merchant. Shops with keys of their own need a table each, or [WithMerchants]: otherwise a shop
// gets the invoice of another one's order with the same orderId, and its buyer pays the other shop.
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
		return nil, badArgument("db", fmt.Sprintf("the driver is %T, and must be %s for PostgreSQL, %s for SQLite or %s for MariaDB and MySQL: use WithDialect if it wraps one of these",
			db.Driver(), dialects[PostgreSQL].driver, dialects[SQLite].driver, dialects[MariaDB].driver))
	}
	g := &Guard{
		db:       db,
		cfg:      cfg,
		sql:      cfg.dialect.schema(cfg.table),
		patience: cfg.patience(),
		mostTry:  mostTry,
		retryEnd: mostRetryEnd,
		now:      time.Now,
		held:     map[int64]stored{},
	}
	g.queries = g.sql.queries(cfg.merchants)
	return g, nil
}

func badArgument(name, reason string) error {
	return &gateway.ArgumentError{Operation: "sqlguard", Name: name, Reason: reason}
}

// keyOf returns the key of the order that a call is about.
func (g *Guard) keyOf(o gateway.Order) (key, error) {
	k := key{o.Merchant, o.Key()}
	return k, errors.Join(g.checkMerchant(o.Merchant), k.check(), checkStorable("gateway", o.Gateway, maxGateway))
}

// Begin implements [gateway.OrderGuard]. A lease is granted for the duration of [WithLease], and
// the request is recorded. An answer that grants nothing writes nothing.
//
// An error means that nothing was granted. It is a [*gateway.ArgumentError] for an order, or a table, of the
// other kind, see [WithMerchants], and matches [gateway.ErrOtherGateway] for an order that another gateway has.
// Any other means that the context has ended, or that the
// database failed, or took longer than a quarter of the lease or 10 seconds. Begin then tries for up
// to a second to withdraw what the database may have recorded nonetheless. If that fails too, the
// order is in flight until the lease ends and unknown from then on, although nothing was sent.
func (g *Guard) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	k, err := g.keyOf(o)
	if err != nil {
		return gateway.Lease{}, err
	}
	if err := ctx.Err(); err != nil {
		return gateway.Lease{}, k.error(err)
	}
	has, lease, err := g.begin(ctx, k, o)
	if err != nil {
		return gateway.Lease{}, k.error(err)
	}
	if lease.State == gateway.OrderFree {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.held[has.Attempt] = has
	}
	return lease, nil
}

// begin asks the database for the lease. What it may have recorded without an answer is withdrawn.
func (g *Guard) begin(ctx context.Context, k key, o gateway.Order) (stored, gateway.Lease, error) {
	start := g.now()
	begin := orders.Begin[gateway.OrderRecord]{
		Gateway: o.Gateway, Attempt: randomName(), Lease: g.cfg.lease.Microseconds(), Resubmit: o.Resubmit,
		Record: orders.Held[gateway.OrderRecord](o.Request, start),
	}
	bounded, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	if err := g.makeSure(bounded); err != nil {
		return stored{}, gateway.Lease{}, err
	}
	guess := stored{}
	if g.cfg.dialect != SQLite { // there a write waits for those of all others
		guess = g.guessed(stored{})
	}
	has, answer, err := g.change(bounded, k, guess, func(r row, now int64) (row, orders.Answer) { return r.Begin(begin, now) })
	if err == nil && answer.Granted {
		err = g.makeSure(bounded) // of two processes that record their first orders at once, one at least sees the other's
	}
	switch {
	case err != nil:
		g.withdraw(ctx, k, orders.EndOf(o.Gateway, begin.Attempt, gateway.OrderRecord{Outcome: gateway.OutcomeNotSent, Request: o.Request}))
		return stored{}, gateway.Lease{}, err
	case answer.Err != nil:
		return stored{}, gateway.Lease{}, answer.Err
	case answer.Granted:
		return has, gateway.Lease{Known: orders.Before(&has.row), Attempt: orders.NameOf(begin.Attempt), Expires: start.Add(g.cfg.lease)}, nil
	}
	return stored{}, gateway.Lease{State: gateway.OrderState(has.State(has.now)), Known: orders.Known(&has.row, has.now)}, nil
}

// withdrawTimeout bounds how long a failed Begin tries to withdraw what it recorded.
const withdrawTimeout = time.Second

// withdraw frees an order that a failed Begin may have recorded.
func (g *Guard) withdraw(ctx context.Context, k key, end orders.End[gateway.OrderRecord]) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	_, _, _ = g.change(ctx, k, stored{}, func(r row, now int64) (row, orders.Answer) { return r.End(end, now) })
}

const (
	mostRetryEnd = 10 * time.Second
	leastPause   = 50 * time.Millisecond
	mostPause    = time.Second
)

// End implements [gateway.OrderGuard]. After a success the order is created, after an unknown outcome
// unknown. After a rejection, or if the invoice was not sent, it is as before Begin. Any other outcome
// counts as unknown. A created order stays created, with the first invoice that was recorded, and others
// beside it.
//
// If the lease has expired and another call has the order since, or if its row is gone, a success and an
// unknown outcome are recorded all the same.
//
// If the database fails, End tries again until ctx ends, for up to 10 seconds. If it
// returns an error, the outcome may not have been recorded, and the order is then
// unknown after its lease.
func (g *Guard) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	k, err := g.keyOf(o)
	if err != nil {
		return r, err
	}
	attempt := orders.AttemptOf(o.Attempt)
	if attempt == 0 {
		attempt = randomName() // of another guard; a name, so that it is recorded once
	}
	end := orders.EndOf(o.Gateway, attempt, r)
	g.mu.Lock()
	begun := g.held[attempt]
	delete(g.held, attempt)
	g.mu.Unlock()
	has, err := g.end(ctx, k, begun, end)
	if err != nil {
		return r, k.error(err)
	}
	if begun.known && has.State(has.now) == orders.Created {
		g.isSure.Store(true)
	}
	return orders.Ended(&has.row, end, has.now), nil
}

// end records an outcome. To repeat it is safe: each attempt ends once.
func (g *Guard) end(ctx context.Context, k key, guess stored, end orders.End[gateway.OrderRecord]) (has stored, err error) {
	start := g.now()
	if guess.known {
		guess = g.guessed(guess)
	}
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		has, _, err = g.change(ctx, k, guess, func(r row, now int64) (row, orders.Answer) { return r.End(end, now) })
		if err == nil || g.now().Sub(start) >= g.retryEnd || wait(ctx, pause) != nil {
			return has, err
		}
		guess = stored{}
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
