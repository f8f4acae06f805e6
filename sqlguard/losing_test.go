package sqlguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// A losing database executes every statement, and loses the answers of some writes, or refuses some.
type losing struct {
	writes int    // how many of the next answers are lost
	refuse error  // of the next write, which is not executed
	reads  int    // how many of the next results break off
	before func() // called before the next write; nil for nothing
	opened int    // connections
	base   driver.Driver
	dsn    string
}

// losesAnswers returns a handle of a database that loses answers.
func losesAnswers(t *testing.T, w testDB) (*sql.DB, *losing) {
	t.Helper()
	l := &losing{base: w.open(t).Driver(), dsn: w.dsn}
	db := sql.OpenDB(l)
	t.Cleanup(func() { _ = db.Close() })
	return db, l
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

// The lease of the process begins before the statement, so that it ends before the lease in the database.
func TestGuard_Begin_leaseOfProcess(t *testing.T) {
	g := newSQLite(t).guard(t)
	now := time.Now()
	begun := now.Add(time.Second)
	g.now = func() time.Time { now = now.Add(time.Second); return now }
	lease, err := g.Begin(t.Context(), orderOf(order))
	check(t, err)
	if want := begun.Add(defaultLease); !lease.Expires.Equal(want) {
		t.Errorf("the lease ends %v after it began, not %v", lease.Expires.Sub(begun), defaultLease)
	}
}

// A list that breaks off is an error, and not a shorter list.
func TestGuard_Pending_breaksOff(t *testing.T) {
	w := newSQLite(t)
	w.guard(t).once(t, order, gateway.OutcomeUnknown)
	db, losing := losesAnswers(t, w)
	g, err := New(db, WithTable(w.table))
	check(t, err)
	losing.reads = 1
	if all, err := g.Pending(t.Context(), gateway.PendingQuery{}); err == nil {
		t.Errorf("%d orders, and no error", len(all))
	}
}

// An order that somebody changes meanwhile is not forgotten.
func TestGuard_Forget_changedMeanwhile(t *testing.T) {
	w := newSQLite(t)
	other := w.guard(t)
	other.once(t, order, gateway.OutcomeSucceeded)
	db, losing := losesAnswers(t, w)
	g, err := New(db, WithTable(w.table))
	check(t, err)
	o, err := g.Order(t.Context(), "", order)
	check(t, err)
	losing.before = func() { execute(t, other.db, "UPDATE "+w.table+" SET version = version + 1") }
	wantError(t, g.Forget(t.Context(), o), gateway.ErrTriedAgain)
	other.wantState(t, gateway.OrderCreated)
}

// A request keeps its digits, zeros at the end included.
func TestGuard_Order_keepsZeros(t *testing.T) {
	g := newSQLite(t).guard(t)
	g.once(t, order, gateway.OutcomeUnknown)
	o, err := g.Order(t.Context(), "", order)
	check(t, err)
	if places := -o.Record.Request.Price.Exponent(); places != 2 {
		t.Errorf("10.50 has %d places", places)
	}
}
