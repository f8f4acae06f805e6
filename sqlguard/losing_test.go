package sqlguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"
)

// A losing database does what it is asked, and loses the answers of some writes, or refuses some.
type losing struct {
	writes int   // how many of the next answers are lost
	refuse error // of the next write, which is not executed
	opened int   // connections
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
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
}

func (c losingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.refuse; err != nil && len(args) > 0 {
		c.refuse = nil
		return nil, err
	}
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
	if err == nil && len(args) > 0 && c.writes > 0 {
		c.writes--
		return nil, errDown
	}
	return result, err
}
