package sqlguard

import (
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

	"github.com/cryptogw/gateway"
	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/shopspring/decimal"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"
)

func TestMain(m *testing.M) {
	_ = mysql.SetLogger(&mysql.NopLogger{}) // tests kill servers
	code := m.Run()
	sharedPostgres.stop()
	sharedMariaDB.stop()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// A testDB is one database with one table, which the processes of a merchant
// share.
type testDB struct {
	dialect Dialect
	driver  string
	dsn     string
	table   string
}

// inEach runs a test against each database.
func inEach(t *testing.T, test func(t *testing.T, w testDB)) {
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newPostgres(t)) })
	t.Run("MariaDB", func(t *testing.T) { test(t, newMariaDB(t)) })
	t.Run("SQLite", func(t *testing.T) { test(t, newSQLite(t)) })
}

func newPostgres(t testing.TB) testDB {
	t.Helper()
	return newTable(t, PostgreSQL, "pgx", sharedPostgres.dsn(t))
}

func newMariaDB(t testing.TB) testDB {
	t.Helper()
	return newTable(t, MariaDB, "mysql", sharedMariaDB.dsn(t)+"?interpolateParams=true")
}

// newTable is a table of a server, which the test drops.
func newTable(t testing.TB, dialect Dialect, driver, dsn string) testDB {
	t.Helper()
	w := testDB{dialect, driver, dsn, "orders_" + strings.ToLower(rand.Text())}
	db := w.open(t)
	t.Cleanup(func() {
		_, err1 := db.Exec("DROP VIEW IF EXISTS " + w.table + "_list")
		_, err2 := db.Exec("DROP TABLE IF EXISTS " + w.table)
		if err := errors.Join(err1, err2); err != nil {
			t.Error(err)
		}
	})
	return w
}

func newSQLite(t testing.TB) testDB {
	t.Helper()
	w := newSQLiteWith(t, "_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)")
	if err := w.open(t).Ping(); err != nil { // concurrent processes cannot switch a new file to WAL
		t.Fatal(err)
	}
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

// guard returns what one process has: a guard with its own handle. It creates the
// table.
func (w testDB) guard(t testing.TB, opts ...Option) *Guard {
	t.Helper()
	g := w.mustNew(t, opts...)
	check(t, g.Migrate(t.Context()))
	return g
}

// mustNew returns a guard with its own handle.
func (w testDB) mustNew(t testing.TB, opts ...Option) *Guard {
	t.Helper()
	g, err := New(w.open(t), append(opts, WithTable(w.table))...)
	check(t, err)
	return g
}

// endLeases ends the lease of every order, as the passage of time does.
func (g *Guard) endLeases(ctx context.Context) error {
	_, err := g.db.ExecContext(ctx, `UPDATE `+g.sql.table+` SET lease_until = begun_at`)
	return err
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, db interface {
	Exec(text string, args ...any) (sql.Result, error)
}, text string,
) {
	t.Helper()
	_, err := db.Exec(text)
	check(t, err)
}

// once begins an order and ends it.
func (g *Guard) once(t *testing.T, id string, outcome gateway.Outcome) {
	t.Helper()
	check(t, errors.Join(g.begins(t.Context(), id), g.ends(t.Context(), id, outcome)))
}

// orderOf is what a call for an order asks.
func orderOf(id string) gateway.Order {
	r := invoice
	r.OrderID = id
	return gateway.Order{Request: r}
}

func ofMerchant(merchant, id string) gateway.Order {
	o := orderOf(id)
	o.Merchant = merchant
	return o
}

// What Begin says of an order whose lease it does not grant, as errors.
var (
	errInFlight = errors.New("the order is in flight")
	errCreated  = errors.New("the order is created")
	errUnknown  = errors.New("the order is unknown")
)

// granted returns why a lease was not granted, and keeps the name of its attempt in the order.
func granted(o *gateway.Order) func(gateway.Lease, error) error {
	return func(lease gateway.Lease, err error) error {
		o.Attempt = lease.Attempt
		return refused(lease, err)
	}
}

// refused returns why a lease was not granted.
func refused(lease gateway.Lease, err error) error {
	if err != nil {
		return err
	}
	return map[gateway.OrderState]error{gateway.OrderInFlight: errInFlight, gateway.OrderCreated: errCreated, gateway.OrderUnknown: errUnknown}[lease.State]
}

// recorded returns the error of an End.
func recorded(_ gateway.OrderRecord, err error) error { return err }

// begins and resubmits begin an order, and return why it was not granted.
func (g *Guard) begins(ctx context.Context, id string) error { return g.asks(ctx, orderOf(id)) }

func (g *Guard) resubmits(ctx context.Context, id string) error {
	o := orderOf(id)
	o.Resubmit = true
	return g.asks(ctx, o)
}

func (g *Guard) asks(ctx context.Context, o gateway.Order) error {
	err := granted(&o)(g.Begin(ctx, o))
	if err == nil {
		begun.Store(begunBy{g, o.Request.OrderID}, o.Attempt)
	}
	return err
}

// begun has the last attempt of each order that a guard has begun.
var begun sync.Map

type begunBy struct {
	guard *Guard
	id    string
}

// ends ends the attempt of an order that this guard has begun last.
func (g *Guard) ends(ctx context.Context, id string, outcome gateway.Outcome) error {
	o := orderOf(id)
	if attempt, ok := begun.Load(begunBy{g, id}); ok {
		o.Attempt = attempt.(string)
	}
	return recorded(g.End(ctx, o, gateway.OrderRecord{Outcome: outcome, Request: o.Request}))
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

// wantState compares the state of the order that most tests have, and how often it was begun.
func (g *Guard) wantState(t *testing.T, want gateway.OrderState, attempts ...int) {
	t.Helper()
	o, err := g.Order(t.Context(), "", order)
	if err != nil || o.State != want || len(attempts) > 0 && o.Attempts != attempts[0] {
		t.Errorf("%+v, %v, want it %s, begun %v times", o, err, want, attempts)
	}
}

const order = "A-17"

// invoice is what most tests ask for.
var invoice = gateway.InvoiceRequest{
	OrderID: order, Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"), CoinSymbol: "USDT", NetworkName: "Tron",
}
