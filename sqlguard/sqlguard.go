// Package sqlguard implements [gateway.OrderGuard] in a database, so that the
// processes of a merchant never send two invoices for one order, each gets the invoice that
// one of them has created, and no order is lost in a crash or a restart. The default guard of the client is in memory: it
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
//   - created: an invoice exists. No other is sent.
//
// # What ends an unknown order
//
// Nothing ends it by itself, nor by its age. These do:
//
//   - a person who has looked it up, with [Guard.Resolve];
//   - a lookup that a merchant has, with [Guard.ResolvePending];
//   - a file that the gateway's operator exports, with [Guard.Reconcile]: it ends an order as absent
//     only if the file is shown to have it if it existed;
//   - a late report of its process, or a resubmission that succeeds.
//
// # Records
//
// The statement that grants the lease records its request and the id of it, so that an order
// whose process died has them; the one that ends it records the rest of [gateway.OrderRecord].
// The invoice of an order that is created is kept byte for byte. Times have microseconds. In
// Cause, what is not UTF-8 is replaced.
//
// While an unknown order is sent again, the record of the earlier attempt stays. If the new one is not
// sent or is rejected, the order has that record as before; if its process dies, the order
// has the request and the id of the new one, and those of the earlier one in Cause, beside its
// status and body. If a person then finds that an invoice exists, and the attempts had different
// requests, it is not known which of them it is for, and none is kept.
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
// For the process, the lease begins before the statement, by its own clock: it ends no later than
// that of the database, and the client sends nothing afterwards. A Begin that takes longer than
// a quarter of its lease or 10 seconds fails, and withdraws what it recorded.
//
// Each Begin has a random token, which End presents. A process that is slower
// than its lease therefore cannot end what another process has begun since. Its
// report is not lost either: a late success makes the order created, with its invoice, and a
// late unknown outcome makes one that is free unknown.
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

// Errors that the methods of [Guard] match.
var (
	// ErrNotHeld matches the error of [Guard.End] for a success or an unknown outcome that could
	// not be recorded, because the table does not have the order.
	ErrNotHeld = errors.New("sqlguard: the table does not have the order")

	// ErrNotUnknown matches the error of [Guard.Resolve] for an order that is
	// not unknown. The order is not changed.
	ErrNotUnknown = errors.New("sqlguard: the outcome of the order is not unknown")

	// ErrTooEarly matches the error of [Guard.Resolve] for a finding that no invoice exists, while
	// a request may still be in transit. The order is not changed.
	ErrTooEarly = errors.New("sqlguard: a request of the order may still be in transit")

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
	tokens  map[key]holder // of each order between Begin and End in this process
	unended map[key]string // the token of orders whose End has failed since
}

// New returns a guard that uses db, a handle for PostgreSQL or SQLite. The dialect
// follows from the driver unless [WithDialect] sets it. New does not query the
// database; [Guard.Migrate] creates the table.
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
		tokens:   map[key]holder{},
		unended:  map[key]string{},
	}, nil
}

func badArgument(name, reason string) error {
	return &gateway.ArgumentError{Operation: "sqlguard", Name: name, Reason: reason}
}

// A key identifies an order.
type key struct{ merchant, order string }

// idOf returns what identifies an order with an orderId, which is that of a UUID in either case.
func idOf(orderID string) string {
	return gateway.Order{Request: gateway.InvoiceRequest{OrderID: orderID}}.Key()
}

// keyOf returns the key of the order that a call is about.
func (g *Guard) keyOf(o gateway.Order) (key, error) {
	if o.Merchant != "" && !g.cfg.merchants {
		return key{}, badArgument("WithMerchants", "is not set, and the call names a merchant by WithMerchant")
	}
	return key{o.Merchant, o.Key()}, nil
}

func (k key) error(err error) error {
	err = explained(err)
	if k.merchant != "" {
		return fmt.Errorf("sqlguard: order %q of merchant %q: %w", k.order, k.merchant, err)
	}
	return fmt.Errorf("sqlguard: order %q: %w", k.order, err)
}

// Begin implements [gateway.OrderGuard]. A lease is granted for the duration of [WithLease], and
// the request and its id are recorded. An order is in flight while this process is between Begin
// and End, even if its lease has expired. An answer that grants nothing writes nothing.
//
// An error means that nothing was granted. It is a [*gateway.ArgumentError] for an order that names
// a merchant without [WithMerchants]. Any other means that the context has ended, or that the
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
	token := rand.Text()
	if holder, ok := g.acquire(k, token); !ok {
		return gateway.Lease{State: gateway.OrderInFlight, Known: &gateway.OrderRecord{Request: holder.request}}, nil
	}
	granted := false // stays so when the driver panics
	defer func() { g.begun(k, token, o.Request, granted) }()
	lease, err := g.begin(ctx, k, token, o)
	if err != nil {
		return gateway.Lease{}, k.error(err)
	}
	granted = lease.State == gateway.OrderFree
	return lease, nil
}

// begin asks the database for the lease. What it may have recorded without a verdict in time is
// withdrawn.
func (g *Guard) begin(ctx context.Context, k key, token string, o gateway.Order) (lease gateway.Lease, err error) {
	decided := false // stays so when the driver panics
	defer func() {
		if !decided {
			g.withdraw(ctx, k, token)
		}
	}()
	expires := g.now().Add(g.cfg.lease) // the database reads its clock later
	bounded, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	v, err := g.ask(bounded, o, g.beginArgs(k, token, o))
	if err != nil {
		return gateway.Lease{}, err
	}
	state, known := v.state(o.Resubmit)
	if !known { // another process was faster, or this one whose statement was sent twice
		return gateway.Lease{State: gateway.OrderInFlight}, nil
	}
	lease = gateway.Lease{State: state}
	if state == gateway.OrderFree {
		lease.Expires = expires
		lease.Known, err = v.record.earlier()
	} else {
		var latest gateway.OrderRecord
		latest, err = v.record.latest(State(v.text))
		lease.Known = &latest
	}
	decided = err == nil
	return lease, err
}

// A verdict is what the database says about an order that is begun or ended.
type verdict struct {
	text   string // "" if there is no such order
	record storedRecord
}

// state is the answer of Begin; known is false if the verdict says that the lease could have been
// granted, but was not.
func (v *verdict) state(resubmit bool) (state gateway.OrderState, known bool) {
	switch {
	case v.text == begun:
		return gateway.OrderFree, true
	case v.text == string(StateInFlight):
		return gateway.OrderInFlight, true
	case v.text == string(StateUnknown) && !resubmit:
		return gateway.OrderUnknown, true
	case v.text == string(StateCreated):
		return gateway.OrderCreated, true
	default:
		return gateway.OrderFree, false
	}
}

// after returns what the table has after the End of a call with the record r.
func (v *verdict) after(r gateway.OrderRecord) (gateway.OrderRecord, error) {
	exists := r.Outcome == gateway.OutcomeSucceeded || r.Outcome == gateway.OutcomeUnknown
	switch state := State(v.text); {
	case v.text == "" && exists:
		return r, ErrNotHeld
	case r.Outcome == gateway.OutcomeSucceeded: // also if another call has the lease
		return v.record.latest(StateCreated)
	case state == StateUnknown, state == StateCreated:
		return v.record.latest(state)
	case state == StateInFlight && !exists && v.record.known == keptOfEarlier: // another call has the lease
		v.record.known = keptByEnd
		earlier, err := v.record.earlier()
		return *earlier, err
	default:
		return r, nil
	}
}

// ask runs the statement begin. In SQLite, where it would take the write lock, it looks first.
func (g *Guard) ask(ctx context.Context, o gateway.Order, args []any) (v verdict, err error) {
	if g.cfg.dialect == PostgreSQL {
		return readVerdict(g.db.QueryContext(ctx, g.stmts.begin, args...))
	}
	err = g.withBusyTimeout(ctx, func(q querier) (err error) {
		if v, err = readVerdict(q.QueryContext(ctx, g.stmts.look, args[:3]...)); err != nil {
			return err
		}
		if _, known := v.state(o.Resubmit); known {
			return nil
		}
		v, err = readVerdict(q.QueryContext(ctx, g.stmts.begin, args...))
		return err
	})
	return v, err
}

// readVerdict reads the one row of a statement, if there is one.
func readVerdict(rows *sql.Rows, failure error) (v verdict, err error) {
	err = readRows(rows, failure, func() error {
		return rows.Scan(append([]any{&v.text}, v.record.dest()...)...)
	})
	return v, err
}

func (g *Guard) beginArgs(k key, token string, o gateway.Order) []any {
	resubmitted := StateFree
	if o.Resubmit {
		resubmitted = StateUnknown
	}
	args := []any{k.merchant, k.order, token, interval(g.cfg.lease), string(resubmitted), requestText(o.Request), textOrNull(o.RequestID)}
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
	_, _ = g.queryVerdict(ctx, g.stmts.notCreated, endArgs(k, token, gateway.OrderRecord{Outcome: gateway.OutcomeNotSent})...)
}

const (
	mostRetryEnd = 10 * time.Second
	leastPause   = 50 * time.Millisecond
	mostPause    = time.Second
	mostUnended  = 1024 // a failure of the database leaves as many as were being sent
)

// End implements [gateway.OrderGuard]. After a success the order is created, after an unknown outcome
// unknown. After a rejection, or if the invoice was not sent, it is as before Begin. What is none of
// these counts as an unknown outcome. An order that is known to be created remains so, with the first
// invoice that was recorded.
//
// If the lease has expired and another call has the order since, a success and an unknown outcome are
// recorded all the same. An error that matches [ErrNotHeld] means that the table does not have the
// order any more.
//
// If the database fails, End tries again until ctx ends, for up to 10 seconds. If it
// returns another error, the outcome may not have been recorded, and the order is then
// unknown after its lease. It may be called again with the same outcome until Begin
// grants the order again; the guard remembers up to 1,024 such orders.
func (g *Guard) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	k, err := g.keyOf(o)
	if err != nil {
		return r, err
	}
	token := g.token(k)
	recorded := false // stays so when the driver panics
	defer func() { g.ended(k, token, recorded) }()
	var v verdict
	if v, err = g.end(ctx, k, token, &r); err == nil {
		recorded = true
		r, err = v.after(r)
	}
	if err != nil {
		return r, k.error(err)
	}
	return r, nil
}

// end records an outcome. To repeat the statement is safe: a token ends one attempt only.
func (g *Guard) end(ctx context.Context, k key, token string, r *gateway.OrderRecord) (v verdict, err error) {
	text := g.stmts.unknown
	switch r.Outcome {
	case gateway.OutcomeSucceeded:
		text = g.stmts.succeeded
	case gateway.OutcomeRejected, gateway.OutcomeNotSent:
		text = g.stmts.notCreated
	default:
		r.Outcome = gateway.OutcomeUnknown
	}
	args, start := endArgs(k, token, *r), g.now()
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		v, err := g.queryVerdict(ctx, text, args...)
		if err == nil && v.text == "" && text == g.stmts.notCreated { // another call has the order, or it is gone
			v, err = g.queryVerdict(ctx, g.stmts.look, args[:3]...)
		}
		if err == nil || elapsed(start, g.now()) >= g.retryEnd || wait(ctx, pause) != nil {
			return v, err
		}
	}
}

func endArgs(k key, token string, r gateway.OrderRecord) []any {
	return append([]any{k.merchant, k.order, token, r.Outcome.String()}, recordArgs(r)...)
}

// elapsed is the time by the clock that advanced more: one stands still while the
// machine is suspended, and the other can be set back.
func elapsed(start, end time.Time) time.Duration {
	return max(end.Sub(start), end.Round(0).Sub(start.Round(0)))
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

// A holder is the Begin of this process that has an order.
type holder struct {
	token   string
	request gateway.InvoiceRequest // the zero request until the database has granted it
}

// acquire stores the token of an order, or returns who has it: the
// order is then in flight in this process, even if its lease has expired.
func (g *Guard) acquire(k key, token string) (taken holder, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if taken, held := g.tokens[k]; held {
		return taken, false
	}
	g.tokens[k] = holder{token: token}
	return holder{}, true
}

// begun keeps the token of a Begin that was granted the order, and deletes that of another.
func (g *Guard) begun(k key, token string, request gateway.InvoiceRequest, granted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case granted:
		g.tokens[k] = holder{token, request}
		delete(g.unended, k) // an End is that of this Begin from now on
	case g.tokens[k].token == token:
		delete(g.tokens, k)
	}
}

// token returns the token of the attempt that an End is about, "" if there is none. If one
// has failed to end, no Begin was granted the order since.
func (g *Guard) token(k key) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token, ok := g.unended[k]; ok {
		return token
	}
	return g.tokens[k].token
}

// ended deletes the token of an attempt, or keeps it for another End if this one has failed.
// Then too the order is no longer in flight in this process: it is what the database has.
func (g *Guard) ended(k key, token string, recorded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken, held := g.tokens[k]
	held = held && taken.token == token
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

// queryVerdict runs a statement that returns at most one row.
func (g *Guard) queryVerdict(ctx context.Context, query string, args ...any) (v verdict, err error) {
	err = g.withBusyTimeout(ctx, func(q querier) (err error) {
		v, err = readVerdict(q.QueryContext(ctx, query, args...))
		return err
	})
	return v, err
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
func (g *Guard) queryTexts(ctx context.Context, query string, args ...any) (texts []string, err error) {
	err = g.withBusyTimeout(ctx, func(q querier) (err error) {
		texts, err = readTexts(q.QueryContext(ctx, query, args...))
		return err
	})
	return texts, err
}

// withBusyTimeout calls f with the handle, or in SQLite with a connection whose wait for another
// writer ends with the context, which it otherwise does not. If
// the driver panics, the connection is lost, as it is with [sql.DB.QueryContext]: to
// close it would wait for ever.
func (g *Guard) withBusyTimeout(ctx context.Context, f func(querier) error) error {
	deadline, bounded := ctx.Deadline()
	if g.cfg.dialect != SQLite || !bounded {
		return f(g.db)
	}
	conn, err := g.db.Conn(ctx)
	if err != nil {
		return err
	}
	restore, err := shortenBusyTimeout(ctx, conn, deadline)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	err = f(conn)
	restore()
	_ = conn.Close() // returns it to the handle
	return err
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

// readTexts reads the one text of each row.
func readTexts(rows *sql.Rows, failure error) (texts []string, err error) {
	err = readRows(rows, failure, func() error {
		var text string
		err := rows.Scan(&text)
		texts = append(texts, text)
		return err
	})
	return texts, err
}

// readRows calls scan for each row. It reads to the end of the result, because a database may
// report only there that it could not commit.
func readRows(rows *sql.Rows, failure error, scan func() error) (err error) {
	if failure != nil {
		return failure
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(); err != nil {
			return err
		}
	}
	return rows.Err()
}
