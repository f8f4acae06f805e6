package main

import (
	"crypto/rand"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

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

// The database servers of all tests, which end with this process.
var (
	postgres = sync.OnceValues(func() (*postgrestest.Server, error) { return postgrestest.Start("shared_buffers=32MB") })
	mariadb  = sync.OnceValues(func() (*mariadbtest.Server, error) { return mariadbtest.Start() })
)

func postgresURL(t *testing.T) string {
	t.Helper()
	server, err := postgres()
	require.NoError(t, err)
	u, err := url.Parse(server.DSN("postgres"))
	require.NoError(t, err)
	return strings.Replace(u.String(), u.User.Username()+"@", u.User.Username()+":"+inURL+"@", 1) // the server trusts everybody
}

func mariaDBURL(t *testing.T) string {
	t.Helper()
	server, err := mariadb()
	require.NoError(t, err)
	db, err := sql.Open("mysql", server.DSN("shop"))
	require.NoError(t, err)
	_, err = db.Exec("CREATE USER IF NOT EXISTS shop IDENTIFIED BY '" + password + "'")
	require.NoError(t, err)
	_, err = db.Exec("GRANT ALL ON shop.* TO shop")
	require.NoError(t, errors.Join(err, db.Close()))
	return "mysql://shop:" + inURL + "@127.0.0.1:" + server.Port + "/shop"
}

// A shop is a database with the table, and the guard of the merchant's processes.
type shop struct {
	url, table string
	raw        *sql.DB
	guard      *sqlguard.Guard
	named      *sqlguard.Guard // of a table whose orders have merchants
}

func newSQLite(t *testing.T) *shop {
	t.Helper()
	return newShop(t, "sqlite:"+filepath.Join(t.TempDir(), "orders?100%#.db")) // a name that a URI must escape
}

func newShop(t *testing.T, url string) *shop {
	t.Helper()
	w := &shop{url: url, table: "orders_" + strings.ToLower(rand.Text())}
	t.Setenv(envDB, url+"\r\n")
	w.want(t, exitDone, "the table "+w.table+" is new, and empty", "migrate")
	s := &session{}
	require.NoError(t, s.openDatabase(url, false))
	w.raw = s.db
	t.Cleanup(func() { assert.NoError(t, w.raw.Close()) })
	var err error
	w.guard, err = sqlguard.New(w.raw, sqlguard.WithTable(w.table))
	require.NoError(t, err)
	w.named, err = sqlguard.New(w.raw, sqlguard.WithTable(w.table), sqlguard.WithMerchants())
	require.NoError(t, err)
	return w
}

func (w *shop) run(t *testing.T, line string, more ...string) outcome {
	t.Helper()
	got := call(t, nil, "orders --table "+w.table+" "+line, more...)
	assert.NotContains(t, got.stdout+got.err, "s3cret")
	assert.NotContains(t, got.stdout+got.err, "w@rd")
	return got
}

// want runs a command, and requires an exit code and a text in its output.
func (w *shop) want(t *testing.T, code int, text, line string, more ...string) outcome {
	t.Helper()
	got := w.run(t, line, more...)
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

// states asserts the states of orders, each as "A-1 created", with a merchant as "north/A-1 free".
func (w *shop) states(t *testing.T, want ...string) {
	t.Helper()
	for _, one := range want {
		id, _, _ := strings.Cut(one, " ")
		merchant, guard := "", w.guard
		if at := strings.Index(id, "/"); at > 0 {
			merchant, id, guard = id[:at], id[at+1:], w.named
		}
		o, err := guard.Order(t.Context(), merchant, id)
		require.NoError(t, err)
		assert.Equal(t, one, strings.TrimPrefix(merchant+"/"+id+" "+o.State.String(), "/"))
	}
}

// listed returns the rows of `orders pending -o csv`, with the header, and fills findings in by order.
func (w *shop) listed(t *testing.T, findings map[string]string) [][]string {
	t.Helper()
	text := w.want(t, exitLeft, "token,finding,", "pending -o csv").stdout
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	for _, row := range rows[1:] {
		row[1] = findings[row[3]]
	}
	return rows
}

// spreadsheet saves rows as a spreadsheet does in its own order of columns: with a byte-order mark, CRLF, and its ideas of dates
// and numbers, except in cells that were imported as text.
func spreadsheet(t *testing.T, rows [][]string) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("\ufeff")
	to := csv.NewWriter(&text)
	to.UseCRLF = true
	for i, row := range rows {
		saved := []string{row[0], "27.11.2026 20:01", row[1], row[3], row[2], "10,5", "Größe", "a\nb"}
		if i == 0 {
			saved = []string{"TOKEN ", "sent", " Finding", "order", "merchant", "price", "notes", "notes"}
		}
		require.NoError(t, to.Write(saved))
	}
	to.Flush()
	return file(t, text.String())
}

// An operator ends unknown orders by one file: in each database.
func TestOrders(t *testing.T) {
	go func() { _, _ = postgres() }()
	go func() { _, _ = mariadb() }()
	for name, open := range map[string]func(t *testing.T) *shop{
		"SQLite":     newSQLite,
		"PostgreSQL": func(t *testing.T) *shop { return newShop(t, postgresURL(t)) },
		"MariaDB":    func(t *testing.T) *shop { return newShop(t, mariaDBURL(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.want(t, exitDone, "No order is unknown.", "pending")
			w.loses(t, "A-1", "A-2", "A-3")
			w.want(t, exitLeft, "502: no message in the response", "pending")
			shown := w.want(t, exitDone, "<html>\uFFFD[31mBad Gateway</html>", "show A-1")
			assert.Contains(t, shown.stdout, "502: no message in the response")
			w.want(t, exitFailed, "the table has no such order; if its merchant has a name", "show A-9")

			path := spreadsheet(t, w.listed(t, map[string]string{"A-1": "exists", "A-2": " ABSENT\u00a0"}))
			w.want(t, exitDone, "exist   1\nabsent  1\nearly   0\nleft    1\ndryRun  true\n", "resolve --by anna --dry-run --from", path)
			w.states(t, "A-1 unknown", "A-2 unknown", "A-3 unknown")
			w.want(t, exitDone, "exist   1\nabsent  1\nearly   0\nleft    1\ndryRun  false\n", "resolve --by anna --from", path)
			w.states(t, "A-1 created", "A-2 free", "A-3 unknown")
			w.want(t, exitDone, "exist   1\nabsent  1\nearly   0\nleft    1\n", "resolve --by anna --from", path) // once more

			token := w.listed(t, nil)[1][0]
			w.want(t, exitDone, "exist   1\n", "resolve --exists --by anna --token "+token, "--invoice", file(t, `{"id": "4711"}`))
			shown = w.want(t, exitDone, `"finding": "exists"`, "show A-3 -o json")
			assert.JSONEq(t, `{"id": "4711"}`, string(decode[orderRecord](t, shown.stdout).Invoice))

			lost := file(t, "merchant,order\n,A-1\n,A-2\n,A-4\n")
			w.want(t, exitDone, "marked  2\nleft    1\ndryRun  true", "mark --dry-run --from", lost)
			w.states(t, "A-2 free", "A-4 free")
			w.want(t, exitDone, "marked  2\nleft    1\n", "mark --from", lost)
			w.states(t, "A-1 created", "A-2 unknown", "A-3 created", "A-4 unknown")
			w.want(t, exitDone, "the table "+w.table+" is there: there is nothing to do", "migrate")
			_, err := w.raw.Exec("DROP VIEW " + w.table + "_list") // as it is after a dump of the table alone
			require.NoError(t, err)
			w.want(t, exitLeft, "A-4", "pending")
			w.want(t, exitDone, w.table+"_list, was missing, and is made again", "migrate")
			w.want(t, exitDone, "there is nothing to do", "migrate")
		})
	}
}

// A marked order has no invented values, and the other orders have all known ones.
func TestShow_csv(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1", "A-2")
	w.want(t, exitDone, "", "resolve --exists --by anna --note 4711 --token "+w.listed(t, nil)[1][0], "--invoice", file(t, `{"text": "café"}`))
	w.want(t, exitDone, "marked  1\n", "mark --from", file(t, "order\nA-4\n"))
	w.want(t, exitDone, "", "resolve --absent --margin 1us --by bert --token "+w.listed(t, nil)[1][0])
	const at = `20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	for id, want := range map[string]string{
		"A-1": `,,,A-1,` + at + `,,10.50,10.50,USD,USDT,Tron,created,"{""text"": ""café""}",,exists by anna at ` + at + `: 4711`,
		"A-2": `,,,A-2,` + at + `,,10.50,10.50,USD,USDT,Tron,free,,502: no message in the response,absent by bert at ` + at,
		"A-4": `T\w+,,,A-4,,` + at + `,,,,,,unknown,,marked as unknown: it may have been sent before the database was restored,`,
	} {
		assert.Regexp(t, "(?m)^"+want+"$", w.run(t, "show -o csv "+id).stdout)
	}
	for _, line := range []string{"show A-4", "show A-4 -o json", "pending", "pending -o json"} {
		got := w.run(t, line).stdout
		assert.Contains(t, got, "A-4")
		assert.NotRegexp(t, `(?i)"?sentAt|begun|request"?\b[^ ]|price| 0 `, got)
	}
}

// Each command works on a table whose orders have merchants, also after it was restored.
func TestOrders_merchants(t *testing.T) {
	w := newSQLite(t)
	w.sends(t, time.Hour, "north", "A-1", gateway.OutcomeUnknown)
	w.sends(t, time.Hour, "south", "A-1", gateway.OutcomeUnknown)
	w.sends(t, time.Hour, "south", "A-2", gateway.OutcomeNotSent) // free
	require.Len(t, decode[[]orderRecord](t, w.want(t, exitLeft, `"token": "`, "pending -o json").stdout), 2)
	w.want(t, exitFailed, "the table has no such order; if its merchant has a name", "show A-1")
	w.want(t, exitDone, "Bad Gateway", "show A-1 --merchant north")
	w.want(t, exitDone, "exist   2\n", "resolve --by anna --from", spreadsheet(t, w.listed(t, map[string]string{"A-1": "exists"})))
	shown := decode[orderRecord](t, w.run(t, "show A-1 --merchant south -o json").stdout)
	w.want(t, exitDone, "A-1", "forget A-1 --merchant south --attempt "+shown.Attempt)
	w.states(t, "north/A-1 created", "south/A-1 free")

	w.want(t, exitDone, "marked  3\nleft    1\n", "mark --from", file(t, "merchant,order\nnorth,A-1\nnorth,A-2\nsouth,A-1\nsouth,A-2\n"))
	w.states(t, "north/A-1 created", "north/A-2 unknown", "south/A-1 unknown", "south/A-2 unknown")
	for _, dryRun := range []string{"--dry-run=true", "--dry-run=false"} {
		w.want(t, exitUsage, "nothing was marked: the orders of the table have a merchant: give the column", "mark "+dryRun+" --from", file(t, "order\nA-4\n"))
		got := w.want(t, exitUsage, "nothing was marked:\nline 3: ", "mark "+dryRun+" --from", file(t, "merchant,order\nnorth,A-9\n,A-8\nnorth,\n"))
		assert.Contains(t, got.err, "\nline 4: ")
	}
	w.states(t, "north/A-9 free")
}

// A created order is forgotten, once, and no other one.
func TestForget(t *testing.T) {
	w := newSQLite(t)
	w.sends(t, time.Hour, "", "A-1", gateway.OutcomeSucceeded)
	w.loses(t, "A-2")
	forget := func(id string) string {
		return "forget " + id + " --attempt " + decode[orderRecord](t, w.run(t, "show "+id+" -o json").stdout).Attempt
	}
	first := forget("A-1")
	w.want(t, exitFailed, "it is unknown", forget("A-2"))
	w.want(t, exitDone, "inv-1", first)
	w.states(t, "A-1 free", "A-2 unknown")
	w.want(t, exitFailed, "the table has no such order", first)
	w.sends(t, time.Hour, "", "A-1", gateway.OutcomeSucceeded)
	w.want(t, exitFailed, "sent again since it was read", first) // another invoice by now, which a buyer may pay
	w.states(t, "A-1 created")
}

// Orders that have not changed for as many days are deleted, unless they are unknown.
func TestPrune(t *testing.T) {
	w := newSQLite(t)
	for id, outcome := range map[string]gateway.Outcome{"A-1": gateway.OutcomeSucceeded, "A-2": gateway.OutcomeUnknown} {
		w.sends(t, 47*time.Hour, "", id, outcome)
	}
	w.want(t, exitDone, "pruned  0\n", "prune --days 2")
	w.want(t, exitDone, "dryRun  true\npruned  1\n", "prune --days 1 --dry-run")
	w.states(t, "A-1 created", "A-2 unknown")
	w.want(t, exitDone, "dryRun  false\npruned  1\n", "prune --days 1")
	w.states(t, "A-1 free", "A-2 unknown")
}

// A cell is data in a spreadsheet, and no output has a character that controls a terminal.
func TestPending_cells(t *testing.T) {
	w := newSQLite(t)
	for _, id := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "'quoted", "A\u202e\u009b-17", "a,\"b\""} {
		w.sends(t, time.Hour, "=m", id, gateway.OutcomeUnknown)
	}
	var ids []string
	for _, row := range w.listed(t, nil)[1:] {
		ids = append(ids, row[3])
		assert.Equal(t, "'=m", row[2])
		assert.Regexp(t, "^T[A-Z2-7]+$", row[0])
	}
	assert.ElementsMatch(t, []string{"'=1+1", "'+1", "'-1", "'@SUM(A1)", "''quoted", "A\uFFFD\uFFFD-17", `a,"b"`}, ids)
	for _, format := range []string{formatTable, formatCSV} {
		got := w.run(t, "pending -o "+format)
		assert.False(t, strings.ContainsFunc(got.stdout, func(char rune) bool { return char != '\n' && unicode.In(char, unicode.Cc, unicode.Cf) }), got.stdout)
	}
}

// More orders than a page are listed, in order.
func TestPending_pages(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1000")
	var columns string
	require.NoError(t, w.raw.QueryRow("SELECT group_concat(name) FROM pragma_table_info('"+w.table+"') WHERE name <> 'order_id'").Scan(&columns))
	_, err := w.raw.Exec("WITH RECURSIVE n(i) AS (VALUES(1001) UNION ALL SELECT i + 1 FROM n WHERE i < 2000) " +
		"INSERT INTO " + w.table + " (order_id, " + columns + ") SELECT 'A-' || i, " + columns + " FROM n, " + w.table + " WHERE order_id = 'A-1000'")
	require.NoError(t, err)
	all := decode[[]orderRecord](t, w.run(t, "pending -o json").stdout)
	require.Len(t, all, 1001)
	assert.Equal(t, "A-1000 A-2000", all[0].OrderID+" "+all[1000].OrderID)
}

// A missing table raises the questions that come before creating one.
func TestMigrate(t *testing.T) {
	t.Setenv(envDB, "sqlite:"+filepath.Join(t.TempDir(), "orders.db"))
	w := &shop{table: "orders"}
	w.want(t, exitFailed, "file does not exist: correct the path; only for a new shop, gateway orders migrate creates it", "pending")
	w.want(t, exitDone, "This is a new, empty order file: it knows no earlier order.\n", "migrate")
	w.table = "other"
	w.want(t, exitFailed, "Is this the database of the shop, and does this user see the shop's schema (search_path) and the table (grants)?", "pending")
	w.want(t, exitDone, "the table other is new, and empty", "migrate")
}

// A DBA gets the statements without a database.
func TestMigrate_sql(t *testing.T) {
	t.Setenv(envDB, "")
	w := &shop{table: "orders"}
	for database, want := range map[string]string{"postgresql": "CREATE OR REPLACE VIEW \"orders_list\" AS", "MariaDB": "ENGINE = InnoDB;\n", "sqlite": `CREATE TABLE IF NOT EXISTS "orders" (`} {
		w.want(t, exitDone, want, "migrate --sql "+database)
	}
	w.want(t, exitUsage, "--sql is postgresql, mariadb or sqlite", "migrate --sql oracle")
	w.table = "Orders"
	w.want(t, exitUsage, "--table: ", "migrate --sql sqlite")
}

// Settings that lose orders are named, and accepted by a flag.
func TestMigrate_settings(t *testing.T) {
	w := newShop(t, postgresURL(t))
	_, err := w.raw.Exec("ALTER TABLE " + w.table + " SET UNLOGGED")
	require.NoError(t, err)
	w.want(t, exitFailed, "the table is UNLOGGED or TEMPORARY, and a crash empties it", "migrate")
	w.want(t, exitDone, "there is nothing to do", "migrate --without-durability")
}

// Every command of the guide does what it says, in its order.
func TestGuide(t *testing.T) {
	w := newSQLite(t)
	page, err := os.ReadFile("../../docs/unknown.md")
	require.NoError(t, err)
	lines := regexp.MustCompile(`(?m)^ {4,}(gateway .*)$`).FindAllStringSubmatch(string(page), -1)
	codes := []int{exitLeft, 0, 0, 0, exitLeft, 0, 0, 0, 0}
	require.Len(t, lines, len(codes))
	dir := commandDir(t)
	findings := filepath.Join(dir, "findings.csv")
	w.loses(t, "A-17", "A-18", "A-19", "A-20")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "orders.csv"), []byte("merchant,order\n,A-17\n,A-21\n"), 0o600))
	listed := w.listed(t, nil)[1:]
	for i, line := range lines {
		text := strings.Replace(line[1], "gateway orders ", "gateway orders --table "+w.table+" ", 1)
		if strings.Contains(text, "TOKEN") {
			text, listed = strings.Replace(text, "TOKEN", listed[0][0], 1), listed[1:]
		}
		shell := exec.Command("sh", "-c", text)
		shell.Dir, shell.Env = dir, append(os.Environ(), asProcess+"=1", "PATH="+dir+":"+os.Getenv("PATH"))
		output, _ := shell.CombinedOutput()
		require.Equal(t, codes[i], shell.ProcessState.ExitCode(), "%s\n%s", text, output)
		if strings.HasSuffix(text, ">findings.csv") {
			written, err := os.ReadFile(findings)
			require.NoError(t, err)
			filled := regexp.MustCompile(`(?m)^(T\w+),,(.*A-19)`).ReplaceAllString(string(written), "$1,exists,$2")
			require.NoError(t, os.WriteFile(findings, []byte(filled), 0o600))
		}
	}
	w.states(t, "A-17 created", "A-18 free", "A-19 created", "A-20 unknown", "A-21 unknown")
}
