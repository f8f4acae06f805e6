package sqlguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// A losing database executes every statement, and loses the answers of some writes, or refuses some.
type losing struct {
	writes  int    // how many of the next answers are lost
	commits int    // how many of the next commits lose their connection
	refuse  error  // of the next write, which is not executed
	reads   int    // how many of the next results break off
	before  func() // called before the next write; nil for nothing
	opened  int    // connections
	base    driver.Driver
	dsn     string
}

func (w testDB) losing(t *testing.T) (*Guard, *losing) {
	t.Helper()
	l := &losing{base: w.open(t).Driver(), dsn: w.dsn}
	db := sql.OpenDB(l)
	t.Cleanup(func() { _ = db.Close() })
	return w.over(t, db), l
}

func (l *losing) Driver() driver.Driver { return l.base }

func (l *losing) Connect(context.Context) (driver.Conn, error) {
	conn, err := l.base.Open(l.dsn)
	l.opened++
	return losingConn{conn, l}, err
}

type losingConn struct {
	driver.Conn
	*losing
}

func (c losingConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(v.Value)
	v.Value = value
	return err
}

func (c losingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
	if err == nil && c.reads > 0 {
		c.reads--
		return cutRows{rows}, nil
	}
	return rows, err
}

func (c losingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return losingTx{tx, c.losing}, err
}

type losingTx struct {
	driver.Tx
	*losing
}

func (tx losingTx) Commit() error {
	err := tx.Tx.Commit()
	if err == nil && tx.commits > 0 {
		tx.commits--
		return io.ErrUnexpectedEOF
	}
	return err
}

// cutRows is a result that breaks off.
type cutRows struct{ driver.Rows }

func (cutRows) Next([]driver.Value) error { return errDown }

func (c losingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.refuse; err != nil && len(args) > 0 {
		c.refuse = nil
		return nil, err
	}
	if before := c.before; before != nil {
		c.before = nil
		before()
	}
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
	if err == nil && len(args) > 0 && c.writes > 0 {
		c.writes--
		return nil, errDown
	}
	return result, err
}

// changes are the changes that people make: to a created order, an unknown one, and A-2.
func changes(t *testing.T, created, unknown gateway.OrderStatus) map[string]func(*Guard) error {
	return map[string]func(*Guard) error{
		"resolve": func(g *Guard) error { return g.ResolveAll(t.Context(), []Resolution{{unknown, exists}}) },
		"mark": func(g *Guard) error {
			_, err := g.Mark(t.Context(), []gateway.OrderStatus{{OrderID: "A-2"}})
			return err
		},
		"prune":  func(g *Guard) error { _, err := g.Prune(t.Context(), 24*time.Hour); return err },
		"forget": func(g *Guard) error { return g.Forget(t.Context(), created) },
	}
}

// On a server that only reads, as a replica does, people soon learn that, and that nothing was changed.
func TestReadOnly(t *testing.T) {
	postgres, mariadb, sqlite := newPostgres(t), newMariaDB(t), newSQLite(t)
	for name, tt := range map[string]struct {
		w, only testDB
		want    string
	}{
		"PostgreSQL": {postgres, postgres.with("&default_transaction_read_only=on"), "(SQLSTATE 25006): the server is read-only, as a replica is"},
		"MariaDB":    {mariadb, mariadb.with("&tx_read_only=1"), ": the server is read-only, as a replica is"},
		"MariaDB, with a driver that hides it": {
			newMariaDB(t), mariadb.with("&tx_read_only=1&rejectReadOnly=true"), "or, with rejectReadOnly in the DSN, is read-only",
		},
		"SQLite": {sqlite, sqlite.with("&mode=ro"), "this user may not write the file"},
	} {
		t.Run(name, func(t *testing.T) {
			owner := tt.w.guard(t)
			tt.only.table = tt.w.table
			owner.once(t, order, gateway.OutcomeSucceeded)
			created, unknown := owner.order(t, order), owner.unknown(t, "A-1")[0]
			for name, change := range changes(t, created, unknown) {
				g, losing := tt.only.losing(t)
				err := change(g)
				if wantText(t, err, tt.want); errors.Is(err, ErrUnanswered) || losing.opened > 12 {
					t.Errorf("%s: %v, after %d connections", name, err, losing.opened)
				}
			}
			if o := owner.order(t, "A-1"); o.State != gateway.OrderUnknown {
				t.Errorf("%+v", o)
			}
		})
	}
}

// ErrUnanswered matches the error of a change that the server has not answered, and not of one that it has refused.
func TestErrUnanswered(t *testing.T) {
	inServers(t, func(t *testing.T, w testDB) {
		owner := w.guard(t)
		g, losing := w.losing(t)
		reader := w.as(t, "SELECT").mustNew(t)
		owner.once(t, order, gateway.OutcomeSucceeded)
		for name, change := range changes(t, owner.order(t, order), owner.unknown(t, "A-1")[0]) {
			if err := change(reader); err == nil || errors.Is(err, ErrUnanswered) {
				t.Errorf("%s, refused: %v", name, err)
			}
			if losing.commits = 1; name == "prune" || name == "forget" { // without a transaction
				losing.commits, losing.writes = 0, 1
			}
			wantError(t, change(g), ErrUnanswered)
		}
		for id, want := range map[string]gateway.OrderState{"A-1": gateway.OrderCreated, "A-2": gateway.OrderUnknown, order: gateway.OrderFree} {
			if o := owner.order(t, id); o.State != want {
				t.Errorf("%s is %s", id, o.State)
			}
		}
	})
}

// A Begin whose answer is lost is withdrawn, and the next one gets the lease. An End whose answer is lost records once. A
// ResolveAll whose answer is lost returns an error, and resolves nothing.
func TestGuard_lostAnswer(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		w.guard(t)
		g, losing := w.losing(t)
		g.retryEnd = mostRetryEnd
		o := orderOf(order)
		losing.writes = 1
		wantError(t, g.asks(t.Context(), &o), errDown)
		g.wantState(t, gateway.OrderFree, 1)
		check(t, g.asks(t.Context(), &o))
		losing.writes = 1
		has, err := g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Invoice: []byte("1")})
		if err != nil || string(has.Invoice) != "1" || len(has.Others) > 0 {
			t.Errorf("%+v, %v", has, err)
		}
		g.wantState(t, gateway.OrderCreated, 2)
		all := []Resolution{}
		for _, o := range g.unknown(t, "1", "2") {
			all = append(all, Resolution{o, gateway.Finding{Exists: true, By: "anna"}})
		}
		losing.writes = 1
		wantError(t, g.ResolveAll(t.Context(), all), errDown)
		if summary, err := g.PendingSummary(t.Context()); err != nil || summary.Count != 2 {
			t.Errorf("%+v, %v", summary, err)
		}
		check(t, g.ResolveAll(t.Context(), all))
	})
}

// A list that breaks off is an error, and not a shorter list.
func TestGuard_Pending_breaksOff(t *testing.T) {
	w := newSQLite(t)
	w.guard(t).once(t, order, gateway.OutcomeUnknown)
	g, losing := w.losing(t)
	losing.reads = 1
	_, err := g.Pending(t.Context(), gateway.PendingQuery{})
	wantError(t, err, errDown)
}

// An order that somebody changes meanwhile is not forgotten.
func TestGuard_Forget_changedMeanwhile(t *testing.T) {
	w := newSQLite(t)
	other := w.guard(t)
	other.once(t, order, gateway.OutcomeSucceeded)
	g, losing := w.losing(t)
	o := g.order(t, order)
	losing.before = func() { other.sets(t, "version = version + 1") }
	wantError(t, g.Forget(t.Context(), o), gateway.ErrTriedAgain)
	other.wantState(t, gateway.OrderCreated, 1)
}

// A wait for the lock of SQLite ends with the context, and afterwards the connection waits as before.
func TestSQLite_busy(t *testing.T) {
	w := newSQLiteWith(t, "_pragma=busy_timeout(3600000)&_pragma=journal_mode(WAL)") // longer than a test may take
	g := w.guard(t)
	g.db.SetMaxOpenConns(1)
	tx, err := w.open(t).BeginTx(t.Context(), nil)
	check(t, err)
	execute(t, tx, `DELETE FROM gateway_orders`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := g.begins(ctx, order); err == nil {
		t.Error("a lease is granted while another one writes")
	}
	check(t, tx.Rollback())
	var timeout int
	if check(t, g.db.QueryRow("PRAGMA busy_timeout").Scan(&timeout)); timeout != 3_600_000 {
		t.Errorf("the connection waits for %d ms", timeout)
	}
	check(t, g.begins(t.Context(), order))
}
