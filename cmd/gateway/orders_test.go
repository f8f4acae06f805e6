package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/mariadbtest"
	"github.com/cryptogw/gateway/internal/testing/postgrestest"
	"github.com/cryptogw/gateway/sqlguard"
)

// password is in every URL of a server here, as inURL. No text may have it.
const (
	password = "s3cret/w@rd"
	inURL    = "s3cret%2Fw%40rd"
)

// servers are the database servers of all tests. The first test that needs one starts it.
var servers databaseServers

type databaseServers struct {
	postgres *postgrestest.Server
	mariadb  *mariadbtest.Server
}

func (s *databaseServers) stop() {
	if s.postgres != nil {
		s.postgres.Stop()
	}
	if s.mariadb != nil {
		s.mariadb.Stop()
	}
}

// A shop is a database with the table, and the guard of the merchant's processes.
type shop struct {
	url, table string
	raw        *sql.DB
	guard      *sqlguard.Guard
	named      *sqlguard.Guard // of a table whose orders have merchants
}

// inEach runs a test against each database.
func inEach(t *testing.T, test func(t *testing.T, w *shop)) {
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newShop(t, postgresURL(t))) })
	t.Run("MariaDB", func(t *testing.T) { test(t, newShop(t, mariaDBURL(t))) })
	t.Run("SQLite", func(t *testing.T) { test(t, newSQLite(t)) })
}

func newSQLite(t *testing.T) *shop {
	t.Helper()
	return newShop(t, "sqlite:"+filepath.Join(t.TempDir(), "orders?100%#.db")) // a name that a URI must escape
}

func postgresURL(t *testing.T) string {
	t.Helper()
	dsn := os.Getenv("SQLGUARD_POSTGRES")
	if dsn == "" {
		if servers.postgres == nil {
			var err error
			servers.postgres, err = postgrestest.Start("fsync=off", "shared_buffers=32MB")
			require.NoError(t, err)
		}
		dsn = servers.postgres.DSN("postgres")
	}
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	if _, has := u.User.Password(); !has { // the server trusts everybody
		dsn = strings.Replace(dsn, u.User.Username()+"@", u.User.Username()+":"+inURL+"@", 1)
	}
	return dsn
}

func mariaDBURL(t *testing.T) string {
	t.Helper()
	if servers.mariadb == nil {
		var err error
		servers.mariadb, err = mariadbtest.Start("innodb-flush-log-at-trx-commit=0")
		require.NoError(t, err)
	}
	db, err := sql.Open("mysql", servers.mariadb.DSN("shop"))
	require.NoError(t, err)
	_, err = db.Exec("CREATE USER IF NOT EXISTS shop IDENTIFIED BY '" + password + "'")
	require.NoError(t, err)
	_, err = db.Exec("GRANT ALL ON shop.* TO shop")
	require.NoError(t, errors.Join(err, db.Close()))
	return "mysql://shop:" + inURL + "@127.0.0.1:" + servers.mariadb.Port + "/shop"
}

// newShop creates a table, which the test drops.
func newShop(t *testing.T, url string) *shop {
	t.Helper()
	w := &shop{url: url, table: sqlguard.DefaultTable}
	if !strings.HasPrefix(url, "sqlite:") {
		w.table = "orders_" + strings.ToLower(rand.Text())
	}
	t.Setenv(envDB, url)
	w.want(t, exitDone, "the table "+w.table+" is new, and empty", "orders", "migrate")
	s := &session{}
	require.NoError(t, s.openDatabase(url, false))
	w.raw = s.db
	var err error
	w.guard, err = sqlguard.New(w.raw, sqlguard.WithTable(w.table))
	require.NoError(t, err)
	w.named, err = sqlguard.New(w.raw, sqlguard.WithTable(w.table), sqlguard.WithMerchants())
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err1 := w.raw.Exec("DROP VIEW IF EXISTS " + w.table + "_list")
		_, err2 := w.raw.Exec("DROP TABLE IF EXISTS " + w.table)
		assert.NoError(t, errors.Join(err1, err2, w.raw.Close()))
	})
	return w
}

// run runs the command on the table.
func (w *shop) run(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr strings.Builder
	code := run(context.Background(), append(slices.Clip(args), "--table", w.table), console{in: strings.NewReader(""), out: &stdout, err: &stderr})
	for _, text := range []string{stdout.String(), stderr.String()} {
		assert.NotContains(t, text, "s3cret")
		assert.NotContains(t, text, "w@rd")
	}
	return outcome{code, stdout.String(), stderr.String()}
}

// want runs the command, and requires an exit code and a text in its output.
func (w *shop) want(t *testing.T, code int, text string, args ...string) outcome {
	t.Helper()
	got := w.run(t, args...)
	require.Equal(t, code, got.code, got.stdout+got.err)
	require.Contains(t, got.stdout+got.err, text)
	return got
}

// sends sends an order with an outcome, as the client did some time ago.
func (w *shop) sends(t *testing.T, ago time.Duration, merchant, id string, outcome gateway.Outcome) {
	t.Helper()
	amount := decimal.RequireFromString("10.50")
	o := gateway.Order{Gateway: "https://old.example/api", Merchant: merchant, Request: gateway.InvoiceRequest{
		OrderID: id, Price: amount, Amount: amount, BaseCurrency: "USD", CoinSymbol: "USDT", NetworkName: "Tron",
	}}
	guard := w.guard
	if merchant != "" {
		guard = w.named
	}
	lease, err := guard.Begin(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, gateway.OrderFree, lease.State)
	o.Attempt = lease.Attempt
	r := gateway.OrderRecord{Outcome: outcome, Request: o.Request, SentAt: time.Now().Add(-ago)}
	switch outcome {
	case gateway.OutcomeSucceeded:
		r.StatusCode, r.Invoice = 200, json.RawMessage(`{"id":"inv-1"}`)
	case gateway.OutcomeUnknown:
		r.StatusCode, r.Body, r.Cause = 502, []byte("<html>\x1b[31mBad Gateway</html>"), "502: no message in the response"
	}
	_, err = guard.End(t.Context(), o, r)
	require.NoError(t, err)
	at := fmt.Sprint(time.Now().Add(-ago).UnixMicro())
	columns := "begun_at = " + at + ", changed_at = " + at + ", lease_until = " + at
	for _, column := range []string{"open_since", "ended_at", "created_at"} {
		columns += fmt.Sprintf(", %s = CASE WHEN %[1]s = 0 THEN 0 ELSE %s END", column, at)
	}
	_, err = w.raw.ExecContext(t.Context(), fmt.Sprintf(`UPDATE %s SET %s WHERE order_id = '%s'`, w.table, columns, strings.ReplaceAll(id, "'", "''")))
	require.NoError(t, err)
}

// loses sends orders an hour ago, whose outcome is unknown.
func (w *shop) loses(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		w.sends(t, time.Hour, "", id, gateway.OutcomeUnknown)
	}
}

// states returns the states of orders, without a merchant.
func (w *shop) states(t *testing.T, ids ...string) (states []string) {
	t.Helper()
	for _, id := range ids {
		o, err := w.guard.Order(t.Context(), "", id)
		require.NoError(t, err)
		states = append(states, o.State.String())
	}
	return states
}

// file returns the path of a new file.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// listed returns the rows of `orders pending -o csv`, with the header, and fills findings in by order.
func (w *shop) listed(t *testing.T, findings map[string]string) [][]string {
	t.Helper()
	text := w.want(t, exitLeft, "token,finding,", "orders", "pending", "-o", "csv").stdout
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	for _, row := range rows[1:] {
		row[1] = findings[row[3]]
	}
	return rows
}

// spreadsheet saves rows as a spreadsheet does in its own order of columns: with a byte-order mark, CRLF, and its ideas of dates,
// numbers and texts.
func spreadsheet(t *testing.T, rows [][]string) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("\ufeff")
	to := csv.NewWriter(&text)
	to.UseCRLF = true
	for i, row := range rows {
		saved := []string{row[0], "27.11.2026 20:01", row[1], "1.23E+17", "#NAME?", "10,5", "\xff Größe", "a\nb"}
		if i == 0 {
			saved = []string{"TOKEN ", "sent", " Finding", "order", "merchant", "price", "notes", "notes"}
		}
		require.NoError(t, to.Write(saved))
	}
	to.Flush()
	return file(t, text.String())
}

// A created order is forgotten, once, and no other one.
func TestForget(t *testing.T) {
	w := newSQLite(t)
	w.sends(t, time.Hour, "", "A-1", gateway.OutcomeSucceeded)
	w.loses(t, "A-2")
	forget := func(id string) []string {
		shown := decode[orderRecord](t, w.run(t, "orders", "show", id, "-o", "json").stdout)
		return []string{"orders", "forget", id, "--attempt", shown.Attempt}
	}
	first := forget("A-1")
	w.want(t, exitFailed, "it is unknown", forget("A-2")...)
	w.want(t, exitUsage, "attempt", "orders", "forget", "A-1")
	w.want(t, exitDone, "inv-1", first...)
	assert.Equal(t, []string{"free", "unknown"}, w.states(t, "A-1", "A-2"))
	w.want(t, exitFailed, "the table has no such order", first...)
	w.sends(t, time.Hour, "", "A-1", gateway.OutcomeSucceeded)
	w.want(t, exitFailed, "sent again since it was read", first...) // another invoice by now, which a buyer may pay
	assert.Equal(t, []string{"created"}, w.states(t, "A-1"))
}

// If stdout takes nothing, stderr reports a change, and the exit code says that it was made.
func TestOrders_fullStdout(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1")
	var stderr strings.Builder
	code := run(context.Background(), []string{"orders", "resolve", "A-1", "--exists", "--by", "anna"}, console{in: strings.NewReader(""), out: fullWriter{}, err: &stderr})
	assert.Equal(t, exitDone, code)
	assert.Contains(t, stderr.String(), "It is done, but stdout failed: full\nexist   1\n")
	assert.Equal(t, []string{"created"}, w.states(t, "A-1"))
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

// An operator ends unknown orders by one file: in each database.
func TestOrders(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.want(t, exitDone, "No order is unknown.", "orders", "pending")
		w.loses(t, "A-1", "A-2", "A-3")
		w.want(t, exitLeft, "502: no message in the response", "orders", "pending")
		shown := w.want(t, exitDone, "<html>\uFFFD[31mBad Gateway</html>", "orders", "show", "A-1")
		assert.Contains(t, shown.stdout, "502: no message in the response")
		w.want(t, exitFailed, "the table has no such order; if its merchant has a name", "orders", "show", "A-9")

		path := spreadsheet(t, w.listed(t, map[string]string{"A-1": "exists", "A-2": " ABSENT\u00a0"}))
		resolve := []string{"orders", "resolve", "--from", path, "--by", "anna"}
		w.want(t, exitDone, "exist   1\nabsent  1\nleft    1\ndryRun  true\n", append(resolve, "--dry-run")...)
		assert.Equal(t, []string{"unknown", "unknown", "unknown"}, w.states(t, "A-1", "A-2", "A-3"))
		w.want(t, exitDone, "exist   1\nabsent  1\nleft    1\ndryRun  false\n", resolve...)
		assert.Equal(t, []string{"created", "free", "unknown"}, w.states(t, "A-1", "A-2", "A-3"))
		for _, dryRun := range []string{"--dry-run=true", "--dry-run=false"} {
			w.want(t, exitDone, "exist   1\nabsent  1\nleft    1\n", append(resolve, dryRun)...)
		}

		w.want(t, exitDone, "exist   1\n", "orders", "resolve", "A-3", "--exists", "--by", "anna", "--invoice", file(t, `{"id": "4711"}`))
		shown = w.want(t, exitDone, `"finding": "exists"`, "orders", "show", "A-3", "-o", "json")
		assert.JSONEq(t, `{"id": "4711"}`, string(decode[orderRecord](t, shown.stdout).Invoice))

		lost := file(t, "merchant,order\n,A-1\n,A-2\n,A-4\n")
		w.want(t, exitDone, "marked  2\nleft    1\ndryRun  true", "orders", "mark", "--from", lost, "--dry-run")
		w.want(t, exitDone, "marked  2\nleft    1\n", "orders", "mark", "--from", lost)
		assert.Equal(t, []string{"created", "unknown", "created", "unknown"}, w.states(t, "A-1", "A-2", "A-3", "A-4"))

		w.want(t, exitDone, "pruned  0\n", "orders", "prune", "--older-than", "24h", "--dry-run")
		w.want(t, exitDone, "the table "+w.table+" is there", "orders", "migrate")
	})
}

// Each command works on a table whose orders have merchants.
func TestOrders_merchants(t *testing.T) {
	w := newSQLite(t)
	for _, merchant := range []string{"north", "south"} {
		w.sends(t, time.Hour, merchant, "A-1", gateway.OutcomeUnknown)
	}
	require.Len(t, decode[[]orderRecord](t, w.want(t, exitLeft, `"token": "`, "orders", "pending", "-o", "json").stdout), 2)
	require.Len(t, decode[[]orderRecord](t, w.want(t, exitLeft, `"token": "`, "orders", "pending", "--merchant", "north", "-o", "json").stdout), 1)
	w.want(t, exitFailed, "the table has no such order; if its merchant has a name", "orders", "show", "A-1")
	w.want(t, exitDone, "Bad Gateway", "orders", "show", "A-1", "--merchant", "north")
	w.want(t, exitDone, "exist   2\n", "orders", "resolve", "--by", "anna", "--from", spreadsheet(t, w.listed(t, map[string]string{"A-1": "exists"})))
	shown := decode[orderRecord](t, w.run(t, "orders", "show", "A-1", "--merchant", "south", "-o", "json").stdout)
	w.want(t, exitDone, "A-1", "orders", "forget", "A-1", "--merchant", "south", "--attempt", shown.Attempt)
	w.want(t, exitDone, "is there", "orders", "migrate")
	for merchant, state := range map[string]gateway.OrderState{"north": gateway.OrderCreated, "south": gateway.OrderFree} {
		o, err := w.named.Order(t.Context(), merchant, "A-1")
		require.NoError(t, err)
		assert.Equal(t, state, o.State, merchant)
	}
}

func TestParseAge(t *testing.T) {
	for _, text := range []string{"400d", "9600h"} {
		age, err := parseAge(text)
		require.NoError(t, err)
		assert.Equal(t, 9600*time.Hour, age, text)
	}
}
