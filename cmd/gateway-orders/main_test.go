package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/cmd/internal/database"
	"github.com/cryptogw/gateway/internal/testing/mariadbtest"
	"github.com/cryptogw/gateway/internal/testing/postgrestest"
	"github.com/cryptogw/gateway/sqlguard"
)

// asProcess makes a process of the tests the command.
const asProcess = "GATEWAY_ORDERS_TEST_PROCESS"

// password is that of every URL of PostgreSQL here. No text may have it, or its form in a URL.
const (
	password   = "s3cret/w@rd"
	inURL      = "s3cret%2Fw%40rd"
	passwordIs = "s3cret" // what both begin with
)

// The servers of all tests. The first test that needs one starts it.
var servers struct {
	postgres *postgrestest.Server
	mariadb  *mariadbtest.Server
}

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		os.Exit(start())
	}
	code := m.Run()
	if servers.postgres != nil {
		servers.postgres.Stop()
	}
	if servers.mariadb != nil {
		servers.mariadb.Stop()
	}
	os.Exit(code)
}

// A shop is a database with the table, and the guard of the merchant's processes.
type shop struct {
	url   string
	raw   *sql.DB
	guard *sqlguard.Guard
	db    []string // the flags that name the database
	args  []string // that every command line begins with, after those
}

// inEach runs a test against each database.
func inEach(t *testing.T, test func(t *testing.T, w *shop)) {
	t.Setenv(envDB, "")
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newPostgres(t)) })
	t.Run("MariaDB", func(t *testing.T) { test(t, newMariaDB(t)) })
	t.Run("SQLite", func(t *testing.T) { test(t, newSQLite(t)) })
}

func newSQLite(t *testing.T) *shop {
	t.Helper()
	path := filepath.Join(t.TempDir(), "orders?100%#.db") // a name that a URI must escape
	w := &shop{url: "sqlite:" + path, db: []string{"--db", "sqlite:" + path}}
	want(t, w.run("migrate"), cli.ExitDone, fmt.Sprintf("the table gateway_orders has version %d now\n", sqlguard.SchemaVersion))
	w.use(t)
	return w
}

func newPostgres(t *testing.T) *shop {
	t.Helper()
	dsn := os.Getenv("SQLGUARD_POSTGRES")
	if dsn == "" && servers.postgres == nil {
		var err error
		servers.postgres, err = postgrestest.Start("fsync=off", "shared_buffers=32MB")
		check(t, err)
	}
	if dsn == "" {
		dsn = servers.postgres.DSN("postgres")
	}
	return newTable(t, withPassword(t, dsn))
}

func newMariaDB(t *testing.T) *shop {
	t.Helper()
	if servers.mariadb == nil {
		var err error
		servers.mariadb, err = mariadbtest.Start("innodb-flush-log-at-trx-commit=0")
		check(t, err)
	}
	db, err := sql.Open("mysql", servers.mariadb.DSN("shop"))
	check(t, err)
	_, err = db.Exec("CREATE USER IF NOT EXISTS shop IDENTIFIED BY '" + password + "'")
	check(t, err)
	_, err = db.Exec("GRANT ALL ON shop.* TO shop")
	check(t, errors.Join(err, db.Close()))
	return newTable(t, "mysql://shop:"+inURL+"@127.0.0.1:"+servers.mariadb.Port+"/shop")
}

// newTable is a table of a server, which the test drops.
func newTable(t *testing.T, url string) *shop {
	t.Helper()
	w := &shop{url: url, db: []string{"--db-file", filepath.Join(t.TempDir(), "url")}}
	check(t, os.WriteFile(w.db[1], []byte(w.url+"\n"), 0o600))
	table := "orders_" + strings.ToLower(rand.Text())
	w.args = []string{"--table", table}
	want(t, w.run("migrate"), cli.ExitDone, fmt.Sprintf("the table %s has version %d now\n", table, sqlguard.SchemaVersion))
	w.use(t, sqlguard.WithTable(table))
	t.Cleanup(func() { w.drop(t, table) })
	return w
}

func (w *shop) drop(t *testing.T, table string) {
	t.Helper()
	_, err1 := w.raw.Exec("DROP VIEW IF EXISTS " + table + "_list")
	_, err2 := w.raw.Exec("DROP TABLE IF EXISTS " + table)
	check(t, errors.Join(err1, err2))
}

// table is the name of the table in SQL.
func (w *shop) table() string {
	if len(w.args) > 0 {
		return w.args[1]
	}
	return sqlguard.DefaultTable
}

// withPassword gives a URL without a password one, which a server that trusts everybody ignores.
func withPassword(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	check(t, err)
	if _, has := u.User.Password(); has {
		return dsn
	}
	return strings.Replace(dsn, u.User.Username()+"@", u.User.Username()+":"+inURL+"@", 1)
}

func (w *shop) use(t *testing.T, opts ...sqlguard.Option) {
	t.Helper()
	var err error
	w.raw, _, err = database.Open(w.url, false)
	check(t, err)
	w.guard, err = sqlguard.New(w.raw, append(opts, sqlguard.WithMerchants())...)
	check(t, err)
	t.Cleanup(func() { _ = w.raw.Close() })
}

// An outcome is how one run of the command ended.
type outcome struct {
	code        int
	stdout, err string
}

// run runs the command with the database in the environment, as a shell would split the line.
func (w *shop) run(line string, more ...string) outcome {
	return w.runIn(context.Background(), "", append(strings.Fields(line), more...)...)
}

func (w *shop) runIn(ctx context.Context, stdin string, args ...string) outcome {
	return call(ctx, stdin, slices.Concat(w.db, w.args, args)...)
}

func call(ctx context.Context, stdin string, args ...string) outcome {
	var stdout, stderr strings.Builder
	code := run(ctx, args, cli.Console{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr})
	if all := stdout.String() + stderr.String(); strings.Contains(all, passwordIs) || strings.Contains(all, "w@rd") {
		panic("the output has the password: " + all)
	}
	return outcome{code, stdout.String(), stderr.String()}
}

// want compares an exit code and requires texts in the output, in which columns are not aligned.
func want(t *testing.T, got outcome, code int, texts ...string) {
	t.Helper()
	if got.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", got.code, code, got.stdout, got.err)
	}
	all := regexp.MustCompile(` +`).ReplaceAllString(got.stdout+got.err, " ")
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("no %q in\n%s%s", text, got.stdout, got.err)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// requestOf is the request for an order.
func requestOf(merchant, id string) gateway.Order {
	amount := decimal.RequireFromString("10.50")
	return gateway.Order{Merchant: merchant, RequestID: "R-" + id, Request: gateway.InvoiceRequest{
		OrderID: id, Price: amount, Amount: amount, BaseCurrency: "USD", CoinSymbol: "USDT", NetworkName: "Tron",
	}}
}

// sends sends an order with an outcome, as the client does.
func (w *shop) sends(t *testing.T, o gateway.Order, outcome gateway.Outcome) {
	t.Helper()
	lease, err := w.guard.Begin(t.Context(), o)
	if err != nil || lease.State != gateway.OrderFree {
		t.Fatalf("%+v, %v", lease, err)
	}
	r := gateway.OrderRecord{Outcome: outcome, Request: o.Request, RequestID: o.RequestID, SentAt: time.Now()}
	switch outcome {
	case gateway.OutcomeSucceeded:
		id, err := json.Marshal(o.Request.OrderID)
		check(t, err)
		r.StatusCode, r.Invoice = 200, json.RawMessage(`{"orderId":`+string(id)+`,"id":"inv-1"}`)
	case gateway.OutcomeUnknown:
		r.StatusCode, r.Body, r.Cause = 502, []byte("<html>\x1b[31mBad Gateway</html>"), "502: no message in the response"
	}
	_, err = w.guard.End(t.Context(), o, r)
	check(t, err)
}

// writeFile returns the path of a new file.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// loses sends orders whose outcome is unknown.
func (w *shop) loses(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		w.sends(t, requestOf("", id), gateway.OutcomeUnknown)
	}
}

// ages moves an order back in time.
func (w *shop) ages(t *testing.T, id string, age time.Duration) {
	t.Helper()
	at := fmt.Sprint(time.Now().Add(-age).UnixMicro())
	columns := "begun_at = " + at + ", changed_at = " + at + ", lease_until = " + at
	for _, column := range []string{"open_since", "ended_at", "created_at"} {
		columns += fmt.Sprintf(", %s = CASE WHEN %[1]s = 0 THEN 0 ELSE %s END", column, at)
	}
	_, err := w.raw.ExecContext(t.Context(), fmt.Sprintf(`UPDATE %s SET %s WHERE order_id = '%s'`, w.table(), columns, id))
	check(t, err)
}
