package sqlguard

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/mariadbtest"
	"github.com/cryptogw/gateway/internal/testing/postgrestest"
	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/shopspring/decimal"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"
)

// A database is a server that tests start.
type database interface {
	DSN(database string) string
	Restart(signal string) error
	Stop()
}

// The servers of all tests, which the first test that needs one starts, unless a variable of the environment has the DSN of another.
var (
	stops    []func()
	postgres = sync.OnceValues(func() (string, error) { return shared("SQLGUARD_POSTGRES", startPostgres, "postgres") })
	mariaDB  = sync.OnceValues(func() (string, error) { return shared("SQLGUARD_MARIADB", startMariaDB, "shop") })
)

func startPostgres() (database, error) {
	return postgrestest.Start("fsync=off", "shared_buffers=32MB", "max_connections=300")
}

func startMariaDB() (database, error) {
	return mariadbtest.Start("innodb-flush-log-at-trx-commit=0", "max-connections=300")
}

func shared(variable string, start func() (database, error), name string) (dsn string, err error) {
	if dsn := os.Getenv(variable); dsn != "" {
		return dsn, nil
	}
	server, err := start()
	if err != nil {
		return "", fmt.Errorf("no server: %w\nset %s to the DSN of one, or install it", err, variable)
	}
	stops = append(stops, server.Stop)
	return server.DSN(name), nil
}

func TestMain(m *testing.M) {
	_ = mysql.SetLogger(&mysql.NopLogger{}) // tests kill servers
	code := m.Run()
	for _, stop := range stops {
		stop()
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// A testDB is one database with one table, which the processes of a merchant share.
type testDB struct {
	dialect            Dialect
	driver, dsn, table string
}

// tables make a table of each database.
var tables = map[string]func(testing.TB) testDB{"PostgreSQL": newPostgres, "MariaDB": newMariaDB, "SQLite": newSQLite}

// inEach runs a test against each database; inServers against those with a server.
func inEach(t *testing.T, test func(t *testing.T, w testDB)) {
	t.Run("SQLite", func(t *testing.T) { test(t, newSQLite(t)) })
	inServers(t, test)
}

func inServers(t *testing.T, test func(t *testing.T, w testDB)) {
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newPostgres(t)) })
	t.Run("MariaDB", func(t *testing.T) { test(t, newMariaDB(t)) })
}

func newPostgres(t testing.TB) testDB {
	t.Helper()
	dsn, err := postgres()
	check(t, err)
	return newTable(t, testDB{PostgreSQL, "pgx", dsn, ""})
}

func newMariaDB(t testing.TB) testDB {
	t.Helper()
	dsn, err := mariaDB()
	check(t, err)
	return newTable(t, testDB{MariaDB, "mysql", dsn + "?interpolateParams=true", ""})
}

// newTable names a table of a server, which the test drops.
func newTable(t testing.TB, w testDB) testDB {
	t.Helper()
	w.table = "orders_" + strings.ToLower(rand.Text())
	db := w.open(t)
	t.Cleanup(func() {
		execute(t, db, "DROP VIEW IF EXISTS "+w.table+"_list")
		execute(t, db, "DROP TABLE IF EXISTS "+w.table)
	})
	return w
}

func newSQLite(t testing.TB) testDB {
	t.Helper()
	// Tests kill processes, not machines. Concurrent processes cannot switch a new file to WAL.
	w := newSQLiteWith(t, "_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	check(t, w.open(t).Ping())
	return w
}

func newSQLiteWith(t testing.TB, settings string) testDB {
	t.Helper()
	return testDB{SQLite, "sqlite", "file:" + filepath.Join(t.TempDir(), "orders.db") + "?" + settings, DefaultTable}
}

func (w testDB) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(w.driver, w.dsn)
	check(t, err)
	db.SetMaxOpenConns(4)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// over returns a guard that has a handle, and repeats no failed statement.
func (w testDB) over(t testing.TB, db *sql.DB, opts ...Option) *Guard {
	t.Helper()
	g, err := New(db, append(opts, WithTable(w.table), WithDialect(w.dialect), WithoutDurability())...)
	check(t, err)
	g.retryEnd = 0
	return g
}

// mustNew returns the guard of one process, with its own handle. Only guard creates the table.
func (w testDB) mustNew(t testing.TB, opts ...Option) *Guard {
	t.Helper()
	return w.over(t, w.open(t), opts...)
}

// strict returns a guard that accepts no setting with which orders can be lost.
func (w testDB) strict(t testing.TB) *Guard {
	t.Helper()
	g, err := New(w.open(t), WithTable(w.table))
	check(t, err)
	return g
}

func (w testDB) guard(t testing.TB, opts ...Option) *Guard {
	t.Helper()
	g := w.mustNew(t, opts...)
	check(t, g.Migrate(t.Context()))
	return g
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

// wantText requires an error with a text; none if the text is empty.
func wantText(t testing.TB, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%v, want %q", err, want)
	}
}

func execute(t testing.TB, db interface {
	Exec(text string, args ...any) (sql.Result, error)
}, text string,
) {
	t.Helper()
	if _, err := db.Exec(text); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

func (g *Guard) sets(t testing.TB, text string, args ...any) {
	t.Helper()
	execute(t, g.db, "UPDATE "+g.sql.table+" SET "+fmt.Sprintf(text, args...))
}

const order = "A-17"

var price = decimal.RequireFromString("10.50")

// orderOf is the order that a call passes to a guard.
func orderOf(id string) gateway.Order { return ofMerchant("", id) }

func ofMerchant(merchant, id string) gateway.Order {
	return gateway.Order{Merchant: merchant, Request: gateway.InvoiceRequest{
		OrderID: id, Price: price, Amount: price, CoinSymbol: "USDT", NetworkName: "Tron",
	}}
}

// What Begin says of an order whose lease it does not grant, as errors.
var (
	errInFlight = errors.New("the order is in flight")
	errCreated  = errors.New("the order is created")
	errUnknown  = errors.New("the order is unknown")

	refusalOf = map[gateway.OrderState]error{gateway.OrderInFlight: errInFlight, gateway.OrderCreated: errCreated, gateway.OrderUnknown: errUnknown}
)

// asks begins an order and keeps the name of the attempt in it, or returns why the lease was not granted.
func (g *Guard) asks(ctx context.Context, o *gateway.Order) error {
	lease, err := g.Begin(ctx, *o)
	o.Attempt = lease.Attempt
	return cmp.Or(err, refusalOf[lease.State])
}

func (g *Guard) begins(ctx context.Context, id string) error { return g.asks(ctx, new(orderOf(id))) }

// ends ends the attempt that an order names.
func (g *Guard) ends(ctx context.Context, o gateway.Order, outcome gateway.Outcome) error {
	_, err := g.End(ctx, o, gateway.OrderRecord{Outcome: outcome, Request: o.Request})
	return err
}

// once begins an order, also one of unknown outcome, and ends it.
func (g *Guard) once(t testing.TB, id string, outcome gateway.Outcome) {
	t.Helper()
	o := orderOf(id)
	o.Resubmit = true
	check(t, g.asks(t.Context(), &o))
	check(t, g.ends(t.Context(), o, outcome))
}

func (g *Guard) order(t testing.TB, id string) gateway.OrderStatus {
	t.Helper()
	o, err := g.Order(t.Context(), "", id)
	check(t, err)
	return o
}

// later is an order as if it was read a second later.
func later(o gateway.OrderStatus) gateway.OrderStatus {
	o.ReadAt, o.GuardReadAt = o.ReadAt.Add(time.Second), o.GuardReadAt.Add(time.Second)
	return o
}

// unknown makes orders unknown, and reads them later.
func (g *Guard) unknown(t testing.TB, ids ...string) (all []gateway.OrderStatus) {
	t.Helper()
	for _, id := range ids {
		g.once(t, id, gateway.OutcomeUnknown)
		all = append(all, later(g.order(t, id)))
	}
	return all
}

// inEachState makes an order in each state, with its name.
func (g *Guard) inEachState(t testing.TB) {
	t.Helper()
	check(t, g.begins(t.Context(), "in flight"))
	g.once(t, "created", gateway.OutcomeSucceeded)
	g.once(t, "unknown", gateway.OutcomeUnknown)
	g.once(t, "free", gateway.OutcomeRejected)
}

// wantState compares the state of the order that most tests have, and how often it was begun.
func (g *Guard) wantState(t testing.TB, want gateway.OrderState, attempts int) {
	t.Helper()
	if o := g.order(t, order); o.State != want || o.Attempts != attempts {
		t.Errorf("%+v, want it %s, begun %d times", o, want, attempts)
	}
}
