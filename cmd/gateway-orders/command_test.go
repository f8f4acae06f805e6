package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/sqlguard"
)

// Wrong arguments are refused before anything is done, with what is right.
func TestUsage(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-17")
	for line, text := range map[string]string{
		"":                                            "Available Commands:",
		"pendng":                                      "gateway-orders: there is no such command: did you mean pending?\nSee: gateway-orders --help\n",
		"pending A-17":                                "gateway-orders pending: there is one argument too many\nSee: gateway-orders pending --help\n",
		"pending -n 0":                                "--most must be at least 1",
		"pending -n x":                                "--most: it is a number such as 20",
		"pending --after x":                           "--after is not a place: copy it again",
		"pending --after x/y":                         "--after is not a place",
		"pending -o csv":                              "gateway-orders pending: --output: it is table or json here",
		"pending --timeout -1s":                       "--timeout is negative",
		"pending -merchant north":                     "gateway-orders: flags begin with two hyphens: write --merchant\n",
		"prune -older-than 400d":                      "gateway-orders: flags begin with two hyphens: write --older-than\n",
		"--merchant a prune --older-than 400d":        "gateway-orders prune: there is no flag --merchant here",
		"prune --merchant a --older-than 400d":        "gateway-orders prune: there is no flag --merchant here",
		"pending --table A":                           "--table: ",
		"show":                                        "gateway-orders show: the ORDER to show is missing",
		"resolve A-17":                                "give what was found, --exists or --absent",
		"resolve A-17 --exists --absent --by a":       "give what was found, --exists or --absent",
		"resolve A-17 --exists":                       "--by is required",
		"resolve --exists --by a":                     "give the ORDER to resolve, or its --token",
		"resolve --token x --exists --by a":           "--token is not a token, or not a whole one",
		"resolve A-17 --absent --by a --invoice f":    "--invoice goes with --exists",
		"resolve A-17 --absent --by a --margin -1s":   "--margin is negative",
		"resolve A-17 --exist --by a":                 "did you mean --exists?",
		"reconcile":                                   "--file is required",
		"reconcile --file f.csv --apply":              "--by is required with --apply",
		"reconcile --file f.csv --from 2026-01-01":    "give both --from and --until, or neither",
		"reconcile --file f.csv --where north":        "--where is a column and its text",
		"gateway --same":                              "--same and --another need two base URLs",
		"gateway https://a.example":                   "give none, which lists the gateways, or two base URLs",
		"gateway https://a.example https://b.example": "say whether they are the --same gateway or --another one",
		"gateway https://a.example http://b.example?x=1 --same": "a base URL must not have a query",
		"lost":                               "--file is required",
		"lost --file f":                      "--since is required",
		"reconcile --file f.csv --margin 0s": "--margin must be above zero",
		"reconcile --file f.csv --from 2026-01-01 --until x":                                   "--from is a time with its zone, such as 2026-11-01T00:00:00Z",
		"reconcile --file f.csv --from 2026-01-01T00:00:00 --until x":                          "--from is a time with its zone",
		"reconcile --file f.csv --from 2026-01-01T00:00:00Z --until 2026-01-01T01:00:00+01:00": "--until is not after --from",
		"export --state lost":    "--state is free",
		"export -o table":        "--output: it is csv or json here",
		"prune":                  "--older-than is required",
		"prune --older-than 3w":  "--older-than is an age such as 400d",
		"prune --older-than 23h": "--older-than must be at least 24h",
		"prune --older-than 0d":  "--older-than must be at least 24h",
		"prune --older-than -9d": "--older-than must be at least 24h",
		"version --table x":      "there is no flag --db here",
		"pending --db-file f":    "give --db or --db-file, not both",
	} {
		t.Run(line, func(t *testing.T) {
			got := w.run(line)
			want(t, got, cli.ExitUsage, text)
			if got.stdout != "" {
				t.Error(got.stdout)
			}
		})
	}
	want(t, w.runIn(t.Context(), "", "pending", "--after", ""), cli.ExitUsage, "--after is empty: give it a value, or leave it out")
	want(t, w.run("pending"), exitLeft)
}

// A database that is not there is named, and never created by reading.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv(envDB, "")
	empty := filepath.Join(dir, "empty.db")
	check(t, os.WriteFile(empty, nil, 0o600))
	check(t, os.WriteFile("text.db", []byte(strings.Repeat("no database ", 1000)), 0o600))
	for args, text := range map[string]string{
		"pending":                                         "no database is named: set GATEWAY_ORDERS_DB, or give --db-file or --db",
		"--db oracle://h/db pending":                      "the database is postgres://user@host:5432/database, mysql://user@host:3306/database or sqlite:PATH",
		"--db mysql://h/ pending":                         "the URL of the database is mysql://user@host:3306/database",
		"--db mysql://h/db?charset=latin1 pending":        "the URL of the database is mysql://user@host:3306/database",
		"--db sqlite: pending":                            "after sqlite: comes the path of a file",
		"--db sqlite://none.db pending":                   "after sqlite: comes the path of a file",
		"--db sqlite:none.db pending":                     "the file of the database: file does not exist: correct the path; only for a new shop, gateway-orders migrate creates it",
		"--db sqlite:none.db migrate --dry-run --table A": "table",
		"--db sqlite:. pending":                           "is not a regular file",
		"--db sqlite:text.db pending":                     "the database cannot be used: ",
		"--db sqlite:" + empty + " pending":               "the database has no such table: name another with --table, or create it with gateway-orders migrate",
	} {
		got := call(t.Context(), "", strings.Fields(args)...)
		if got.code != cli.ExitUsage && got.code != cli.ExitFailed || !strings.Contains(got.err, text) || got.stdout != "" {
			t.Errorf("%s: %+v", args, got)
		}
	}
	want(t, call(t.Context(), "", "migrate", "--dry-run", "--db", "sqlite:none.db"), cli.ExitDone, "CREATE TABLE")
	if _, err := os.Stat("none.db"); err == nil {
		t.Error("it was created")
	}
	want(t, call(t.Context(), "", "-o", "json", "--db", "sqlite:new.db", "migrate"), cli.ExitDone, `"from": 0`, fmt.Sprintf(`"to": %d`, sqlguard.SchemaVersion))
	t.Setenv(envDB, "sqlite:new.db")
	want(t, call(t.Context(), "", "pending"), cli.ExitDone)
	want(t, call(t.Context(), "", "pending", "-o", "json", "-n", "0"), cli.ExitUsage, `"exitCode": 2`)
}

// A table is brought up once, and a dry run prints the SQL and does nothing.
func TestMigrate(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.loses(t, "A-17")
		w.args = []string{"--table", "another"}
		t.Cleanup(func() { w.drop(t, "another") })
		want(t, w.run("migrate --dry-run"), cli.ExitDone, "CREATE TABLE")
		want(t, w.run("pending"), cli.ExitFailed, "the database has no such table")
		want(t, w.run("migrate"), cli.ExitDone, fmt.Sprintf("the table another has version %d now", sqlguard.SchemaVersion))
		want(t, w.run("migrate"), cli.ExitDone, "there is nothing to do")
		want(t, w.run("pending"), cli.ExitDone)
	})
}

// Only what is old and decided is pruned, and a dry run counts the same.
func TestPrune(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.sends(t, requestOf("", "old"), gateway.OutcomeSucceeded)
		w.sends(t, requestOf("", "refused"), gateway.OutcomeRejected)
		w.sends(t, requestOf("", "new"), gateway.OutcomeSucceeded)
		w.loses(t, "unknown")
		for _, id := range []string{"old", "refused", "unknown"} {
			w.ages(t, id, 800*time.Hour)
		}
		late := requestOf("", "late")
		_, err := w.guard.Begin(t.Context(), late)
		check(t, err)
		w.ages(t, "late", 800*time.Hour)
		_, err = w.guard.End(t.Context(), late, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Request: late.Request})
		check(t, err)
		want(t, w.run("prune --older-than 30d --dry-run"), cli.ExitDone, "2 orders would be deleted")
		want(t, w.run("show old"), cli.ExitDone)
		want(t, w.run("prune --older-than 720h"), cli.ExitDone, "2 orders deleted")
		want(t, w.run("prune --older-than 30d -o json"), cli.ExitDone, `"pruned": 0`)
		want(t, w.run("show old"), cli.ExitFailed)
		want(t, w.run("show new"), cli.ExitDone)
		want(t, w.run("show unknown"), cli.ExitDone)
	})
}

// An export has every order once, in both formats, also where pages meet.
func TestExport(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		const all = 2*exportPage + 1
		tx, err := w.raw.Begin()
		check(t, err)
		w.sends(t, requestOf("", `A "17", new`+"\n=1+1"), gateway.OutcomeSucceeded)
		for i := range all - 1 { // copies of the first: End would take long
			_, err := tx.Exec(fmt.Sprintf(`INSERT INTO %s (merchant, order_id, gateway, left_for, attempts, record)
				SELECT '%d', '%d', gateway, left_for, 1, '{}' FROM %[1]s WHERE merchant = ''`, w.table(), i%3, i))
			check(t, err)
		}
		check(t, tx.Commit())

		rows, err := csv.NewReader(strings.NewReader(w.run("export").stdout)).ReadAll()
		check(t, err)
		lines := strings.Split(strings.TrimSpace(w.run("export -o json").stdout), "\n")
		seen := map[string]bool{}
		for i, row := range rows[1:] {
			seen[row[0]+"/"+row[1]] = true
			if o := decode[orderJSON](t, lines[i]); o.OrderID != row[0] || o.Merchant != row[1] {
				t.Fatal(row, lines[i])
			}
		}
		if len(rows) != 1+all || len(lines) != all || len(seen) != all || len(rows[0]) != len(rows[1]) {
			t.Errorf("%d rows, %d lines, %d orders", len(rows), len(lines), len(seen))
		}
		o := decode[map[string]any](t, lines[0])
		for name := range o {
			if !slices.Contains(rows[0], name) {
				t.Error("no column ", name)
			}
		}
		if i := slices.Index(rows[0], "invoice"); !json.Valid([]byte(rows[1][i])) || rows[1][0] != `A "17", new`+"\n=1+1" {
			t.Error(rows[1])
		}
		want(t, w.run("export --state unknown"), cli.ExitDone, "orderId,merchant")
		if got := w.run("export --state created -o json").stdout; strings.Count(got, "\n") != 1 {
			t.Error(got)
		}
	})
}

// A full disk, and a reader that goes away, are no success.
type brokenWriter struct{ cancel context.CancelFunc }

func (b brokenWriter) Write([]byte) (int, error) {
	if b.cancel != nil {
		b.cancel()
		return 0, context.Canceled
	}
	return 0, errors.New("no space left on device")
}

func TestInterrupted(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-17")
	var stderr strings.Builder
	code := run(t.Context(), []string{"--db", w.url, "export"}, cli.Console{Out: brokenWriter{}, Err: &stderr})
	want(t, outcome{code, "", stderr.String()}, cli.ExitFailed, "the output is not whole, at most 1 orders are in it: no space left on device")
	want(t, outcome{run(t.Context(), []string{"--db", w.url, "pending"}, cli.Console{Out: brokenWriter{}, Err: io.Discard}), "", ""}, cli.ExitFailed)

	ctx, cancel := context.WithCancel(t.Context())
	stderr.Reset()
	code = run(ctx, []string{"--db", w.url, "export"}, cli.Console{Out: brokenWriter{cancel}, Err: &stderr})
	want(t, outcome{code, "", stderr.String()}, cli.ExitFailed, "interrupted: the output is not whole, at most 1 orders are in it")
	for _, line := range []string{"pending", "resolve A-17 --exists --by anna", "prune --older-than 30d", "migrate"} {
		want(t, w.runIn(ctx, "", strings.Fields(line)...), cli.ExitFailed, "interrupted: ")
	}
	want(t, w.run("pending --timeout 1ns"), cli.ExitFailed, "the time of --timeout, 1ns, is over: nothing was changed")
	want(t, w.run("pending --timeout 0s"), exitLeft)
}

// A process that waits for the database ends with the first Ctrl-C.
func TestProcess(t *testing.T) {
	w := newPostgres(t)
	tx, err := w.raw.BeginTx(t.Context(), nil)
	check(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.Exec(`LOCK TABLE ` + w.args[1] + ` IN ACCESS EXCLUSIVE MODE`)
	check(t, err)
	process := exec.Command(os.Args[0], append([]string{"pending", "--timeout", "0s"}, w.args...)...)
	process.Env = append(os.Environ(), asProcess+"=1", envDB+"="+w.url)
	stderr, err := process.StderrPipe()
	check(t, err)
	check(t, process.Start())
	waiting := 0
	for waiting == 0 && t.Context().Err() == nil {
		check(t, tx.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '`+w.args[1]+`'::regclass`).Scan(&waiting))
	}
	check(t, process.Process.Signal(os.Interrupt))
	text, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil || text != "interrupted: nothing was changed\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _ = process.Wait(); process.ProcessState.ExitCode() != cli.ExitFailed {
		t.Error(process.ProcessState)
	}
}

// Every command has a help with an example of itself, narrow enough for a terminal.
func TestHelp(t *testing.T) {
	t.Setenv(envDB, "")
	for _, c := range (&session{}).root().Commands() {
		if !c.Runnable() {
			continue
		}
		got := call(t.Context(), "", "help", c.Name())
		want(t, got, cli.ExitDone, "gateway-orders "+c.Name(), "Examples:\n gateway-orders "+c.Name())
		if again := call(t.Context(), "", c.Name(), "-h"); again != got {
			t.Errorf("%+v", again)
		}
		for line := range strings.Lines(got.stdout) {
			if len([]rune(line)) > 130 {
				t.Error(line)
			}
		}
	}
	want(t, call(t.Context(), "", "--help"), cli.ExitDone, "--db-file", "gateway-orders resolve --token TOKEN --exists --by NAME")
	want(t, call(t.Context(), "", "--db", "x", "-h"), cli.ExitDone, "Available Commands:")
	want(t, call(t.Context(), "", "help", "exits"), cli.ExitDone, " 6 something to do\n")
	want(t, call(t.Context(), "", "version"), cli.ExitDone, fmt.Sprintf("version %d of the table", sqlguard.SchemaVersion))
	want(t, call(t.Context(), "", "version", "-o", "json"), cli.ExitDone, fmt.Sprintf(`"table": %d`, sqlguard.SchemaVersion))
}

// The exit codes of the page are those of the command.
func TestExits_documented(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	check(t, err)
	for _, e := range exits() {
		if row := fmt.Sprintf("| %d, %s | %s |\n", e.Code, e.Meaning, e.Text); !strings.Contains(string(page), row) {
			t.Errorf("no %q", row)
		}
	}
}
