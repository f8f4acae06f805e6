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
func TestNew_refuses(t *testing.T) {
	t.Parallel()
	sqlite := newSQLite(t).open(t)
	other := openNone(t)
	for name, tt := range map[string]struct {
		db   *sql.DB
		opts []Option
		want string
	}{
		"no handle":           {nil, nil, "db: must not be nil"},
		"a nil option":        {sqlite, []Option{nil}, "opts: contains a nil option"},
		"another driver":      {other, nil, "the driver is sqlguard.noDatabase, and must be github.com/jackc/pgx/v5/stdlib for PostgreSQL, modernc.org/sqlite for SQLite or github.com/go-sql-driver/mysql for MariaDB and MySQL: use WithDialect if it wraps one"},
		"no dialect":          {other, []Option{WithDialect(0)}, "WithDialect: must be PostgreSQL, SQLite or MariaDB"},
		"a table":             {sqlite, []Option{WithTable("A")}, "WithTable: must be 1 to 58"},
		"a long table":        {sqlite, []Option{WithTable(strings.Repeat("a", 59))}, "WithTable: must be 1 to 58"},
		"a lease of half":     {sqlite, []Option{WithLease(time.Second / 2)}, "WithLease: must be from 1 second to 24 hours"},
		"a lease of two days": {sqlite, []Option{WithLease(48 * time.Hour)}, "WithLease: must be from 1 second to 24 hours"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := New(tt.db, tt.opts...); !errors.Is(err, gateway.ErrInvalidArgument) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	if _, err := New(other, WithDialect(SQLite)); err != nil {
		t.Error(err)
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
func TestBegin_refuses(t *testing.T) {
	t.Parallel()
	g, err := New(openNone(t), WithDialect(PostgreSQL))
	check(t, err)
	for name, change := range map[string]func(*gateway.Order){
		"orderId: is required":                         func(o *gateway.Order) { o.Request.OrderID = "" },
		"orderId: must be valid UTF-8 of at most 1024": func(o *gateway.Order) { o.Request.OrderID = strings.Repeat("a", 1025) },
		"orderId: must be valid UTF-8":                 func(o *gateway.Order) { o.Request.OrderID = "a\xff" },
		"without NUL":                                  func(o *gateway.Order) { o.Request.OrderID = "a\x00" },
		"gateway: must be valid UTF-8 of at most 512":  func(o *gateway.Order) { o.Gateway = strings.Repeat("a", 513) },
		"WithMerchants: is not set":                    func(o *gateway.Order) { o.Merchant = "north" },
	} {
		o := orderOf(order)
		change(&o)
		_, err1 := g.Begin(t.Context(), o)
		_, err2 := g.End(t.Context(), o, gateway.OrderRecord{})
		for _, err := range []error{err1, err2} {
			if !errors.Is(err, gateway.ErrInvalidArgument) || !strings.Contains(err.Error(), name) {
				t.Errorf("%v, want %s", err, name)
			}
		}
	}
}

// A database that is down grants nothing, and the order is named.
func TestBegin_databaseIsDown(t *testing.T) {
	t.Parallel()
	g, err := New(openNone(t), WithDialect(PostgreSQL), WithMerchants())
	check(t, err)
	g.retryEnd = 0
	o := ofMerchant("north", order)
	_, err1 := g.Begin(t.Context(), o)
	_, err2 := g.End(t.Context(), o, gateway.OrderRecord{})
	_, err3 := g.Order(t.Context(), "north", order)
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, errDown) || !strings.Contains(err.Error(), `sqlguard: order "A-17" of merchant "north": `) {
			t.Error(err)
		}
	}
	if len(g.held) > 0 {
		t.Error("the order is held")
	}
}

// What a Begin has recorded without an answer is withdrawn, and the next one gets the lease.
func TestBegin_withdraws(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		db, losing := losesAnswers(t, w)
		lost, err := New(db, WithTable(w.table), WithDialect(w.dialect))
		check(t, err)
		losing.writes = 1
		if err := lost.begins(t.Context(), order); !errors.Is(err, errDown) {
			t.Fatal(err)
		}
		g.wantState(t, gateway.OrderFree)
		check(t, g.begins(t.Context(), order))
	})
}

// End tries again while the database fails, and records the outcome once.
func TestEnd_triesAgain(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		db, losing := losesAnswers(t, w)
		g, err := New(db, WithTable(w.table), WithDialect(w.dialect))
		check(t, errors.Join(err, g.Migrate(t.Context())))
		o := orderOf(order)
		check(t, granted(&o)(g.Begin(t.Context(), o)))
		losing.writes = 1 // is written, without an answer
		has, err := g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Invoice: []byte("1")})
		if err != nil || string(has.Invoice) != "1" || len(has.Others) > 0 {
			t.Errorf("%+v, %v", has, err)
		}
		g.wantState(t, gateway.OrderCreated, 1)
	})
}

// A row that others change all the time is given up after 20 tries, and nothing is granted.
func TestBegin_contended(t *testing.T) {
	w := newSQLite(t)
	g := w.guard(t)
	execute(t, g.db, `CREATE TRIGGER lost BEFORE INSERT ON gateway_orders BEGIN SELECT RAISE(IGNORE); END`)
	if err := g.begins(t.Context(), order); err == nil || !strings.Contains(err.Error(), "was changed by others 20 times") {
		t.Error(err)
	}
}
