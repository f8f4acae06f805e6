package sqlguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// New refuses what it cannot use, and says what it can.
func TestNew(t *testing.T) {
	sqlite, other := newSQLite(t).open(t), openNone(t)
	for want, refused := range map[string]struct {
		db   *sql.DB
		opts []Option
	}{
		"db: must not be nil":         {nil, nil},
		"opts: contains a nil option": {sqlite, []Option{nil}},
		"the driver is sqlguard.noDatabase, and must be github.com/jackc/pgx/v5/stdlib for PostgreSQL, modernc.org/sqlite for SQLite or " +
			"github.com/go-sql-driver/mysql for MariaDB and MySQL: use WithDialect if it wraps one": {other, nil},
		"WithDialect: must be PostgreSQL, SQLite or MariaDB": {other, []Option{WithDialect(0)}},
		"WithTable: must be 1 to 58 of a-z":                  {sqlite, []Option{WithTable("A")}},
		"WithTable: must be 1 to 58":                         {sqlite, []Option{WithTable(strings.Repeat("a", 59))}},
		"WithLease: must be from 1 second":                   {sqlite, []Option{WithLease(time.Second / 2)}},
		"WithLease: must be from 1 second to 24 hours":       {sqlite, []Option{WithLease(48 * time.Hour)}},
	} {
		_, err := New(refused.db, refused.opts...)
		wantError(t, err, gateway.ErrInvalidArgument)
		wantText(t, err, want)
	}
	g, err := New(other, WithDialect(SQLite))
	check(t, err)
	if g.Lease() != 5*time.Minute || g.mostTry != 3*time.Second || g.retryEnd != 10*time.Second || g.patience != 10*time.Second {
		t.Errorf("a lease of %v, %v for a try, %v for End, %v for Begin", g.Lease(), g.mostTry, g.retryEnd, g.patience)
	}
	g, err = New(other, WithDialect(SQLite), WithLease(8*time.Second))
	if err != nil || g.Lease() != 8*time.Second || g.patience != 2*time.Second {
		t.Errorf("%v, %v", g, err)
	}
	if got := fmt.Sprint(PostgreSQL, SQLite, MariaDB, Dialect(9)); got != "PostgreSQL SQLite MariaDB Dialect(9)" {
		t.Error(got)
	}
}

// A noDatabase is a driver of another database, that is down.
type noDatabase struct{}

func openNone(t *testing.T) *sql.DB {
	t.Helper()
	db := sql.OpenDB(noDatabase{})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var errDown = errors.New("the database is down")

func (noDatabase) Open(string) (driver.Conn, error)             { return nil, errDown }
func (noDatabase) Connect(context.Context) (driver.Conn, error) { return nil, errDown }
func (d noDatabase) Driver() driver.Driver                      { return d }

// An order that no database stores is refused before any is asked.
func TestGuard_refuses(t *testing.T) {
	g := testDB{dialect: PostgreSQL, table: DefaultTable}.over(t, openNone(t))
	for want, change := range map[string]func(*gateway.Order){
		"orderId: is required":                         func(o *gateway.Order) { o.Request.OrderID = "" },
		"orderId: must be valid UTF-8 of at most 1024": func(o *gateway.Order) { o.Request.OrderID = strings.Repeat("a", 1025) },
		"orderId: must be valid UTF-8":                 func(o *gateway.Order) { o.Request.OrderID = "a\xff" },
		"without NUL":                                  func(o *gateway.Order) { o.Request.OrderID = "a\x00" },
		"gateway: must be valid UTF-8 of at most 512":  func(o *gateway.Order) { o.Gateway = strings.Repeat("a", 513) },
		"WithMerchants: is not set":                    func(o *gateway.Order) { o.Merchant = "north" },
	} {
		o := orderOf(order)
		change(&o)
		for _, err := range []error{g.asks(t.Context(), &o), g.ends(t.Context(), o, 0)} {
			wantError(t, err, gateway.ErrInvalidArgument)
			wantText(t, err, want)
		}
	}
}

// A database that is down grants nothing, and the order is named.
func TestGuard_databaseIsDown(t *testing.T) {
	g := testDB{dialect: PostgreSQL, table: DefaultTable}.over(t, openNone(t), WithMerchants())
	o := ofMerchant("north", order)
	_, err := g.Order(t.Context(), "north", order)
	for _, err := range []error{err, g.asks(t.Context(), &o), g.ends(t.Context(), o, 0)} {
		wantError(t, err, errDown)
		wantText(t, err, `sqlguard: order "A-17" of merchant "north": `)
	}
	if len(g.held) > 0 {
		t.Error("the order is held")
	}
}

// A guard holds an order in memory between Begin and End only, whatever End records.
func TestGuard_held(t *testing.T) {
	g := newSQLite(t).guard(t)
	for outcome := gateway.OutcomeUnknown; outcome <= gateway.OutcomeRejected; outcome++ {
		o := orderOf(outcome.String())
		check(t, g.asks(t.Context(), &o))
		if len(g.held) != 1 {
			t.Errorf("%d orders are held before End", len(g.held))
		}
		wantError(t, g.asks(t.Context(), new(orderOf(outcome.String()))), errInFlight)
		check(t, g.ends(t.Context(), o, outcome))
		if len(g.held) > 0 {
			t.Errorf("after %s, %d orders are held", outcome, len(g.held))
		}
	}
}

// The lease of the process begins before the statement, so that it ends before the lease in the database.
func TestGuard_Begin_leaseOfProcess(t *testing.T) {
	g := newSQLite(t).guard(t)
	now := time.Now()
	begun := now.Add(time.Second)
	g.now = func() time.Time { now = now.Add(time.Second); return now }
	lease, err := g.Begin(t.Context(), orderOf(order))
	if check(t, err); !lease.Expires.Equal(begun.Add(defaultLease)) {
		t.Errorf("the lease ends %v after it began, not %v", lease.Expires.Sub(begun), defaultLease)
	}
}

// A row that others change all the time is given up after 20 tries, and nothing is granted.
func TestGuard_Begin_contended(t *testing.T) {
	g := newSQLite(t).guard(t)
	execute(t, g.db, `CREATE TRIGGER lost BEFORE INSERT ON gateway_orders BEGIN SELECT RAISE(IGNORE); END`)
	wantText(t, g.begins(t.Context(), order), "was changed by others 20 times")
}
