package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
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
)

// Wrong arguments are refused before anything is done, with what is right.
func TestUsage(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-17")
	for line, text := range map[string]string{
		"":                                       "gateway-orders pending",
		"pendng":                                 "there is no command \"pendng\": did you mean pending?\nSee: gateway-orders help\n",
		"recon":                                  "did you mean reconcile?",
		"lsit":                                   "there is no command \"lsit\"\nSee",
		"help pendnig":                           "did you mean pending?",
		"pending A-17":                           "gateway-orders pending: there is one argument too many\nSee: gateway-orders help pending\n",
		"pending -n 0":                           "-n must be at least 1",
		"pending -n x":                           `invalid value "x" for flag -n`,
		"pending -after x":                       "-after is not a place: copy it again",
		"pending -after x/y":                     "-after is not a place",
		"pending -o csv":                         "gateway-orders pending: -o is table or json here",
		"-o xml pending":                         "for flag -o: it is table or json",
		"pending -timeout x":                     "for flag -timeout: it is a duration such as 90s or 5m",
		"pending -tabel x":                       "there is no flag -tabel: did you mean -table?",
		"-merchant a prune":                      "gateway-orders prune: has no flag -merchant",
		"pending -table A":                       "-table: ",
		"show":                                   "gateway-orders show: the ORDER to show is missing",
		"evidence A B":                           "there is one argument too many",
		"resolve A-17":                           "give what was found, -exists or -absent",
		"resolve A-17 -exists -absent -by a":     "give what was found, -exists or -absent",
		"resolve A-17 -exists":                   "-by is required",
		"resolve -exists -by a":                  "give the ORDER to resolve, or its -token",
		"resolve -token x -exists -by a":         "-token is not a token, or not a whole one",
		"resolve A-17 -absent -by a -invoice f":  "-invoice goes with -exists",
		"resolve A-17 -absent -by a -margin -1s": "-margin is negative",
		"resolve A-17 -exist -by a":              "did you mean -exists?",
		"reconcile":                              "-file is required",
		"reconcile -file f.csv -apply":           "-by is required with -apply",
		"reconcile -file f.csv -from 2026-01-01": "give both -from and -until, or neither",
		"reconcile -file f.xls":                  "-format is csv or jsonl",
		"reconcile -file f.csv -margin 0s":       "-margin must be above zero",
		"reconcile -file f.csv -from 2026-01-01 -until x":                                   "-from is a time with its zone, such as 2026-11-01T00:00:00Z",
		"reconcile -file f.csv -from 2026-01-01T00:00:00 -until x":                          "-from is a time with its zone",
		"reconcile -file f.csv -from 2026-01-01T00:00:00Z -until 2026-01-01T01:00:00+01:00": "-until is not after -from",
		"export -state lost":    "-state is free",
		"export -o table":       "-o is csv or json here",
		"prune":                 "-older-than is required",
		"prune -older-than 3w":  "-older-than is an age such as 400d",
		"prune -older-than 23h": "-older-than must be at least 24h",
		"prune -older-than 0d":  "-older-than must be at least 24h",
		"prune -older-than -9d": "-older-than must be at least 24h",
		"completion bash":       "has no flag -db",
	} {
		t.Run(line, func(t *testing.T) {
			got := w.run(line)
			want(t, got, exitUsage, text)
			if got.stdout != "" {
				t.Error(got.stdout)
			}
		})
	}
	want(t, w.runIn(t.Context(), "", "pending", "-after", ""), exitUsage, "-after is empty: give it a value, or leave it out")
	want(t, w.run("pending"), exitLeft)
}

// A URL in the wrong place, and one that the driver refuses, is not shown.
func TestSecrets(t *testing.T) {
	dsn := withPassword(t, postgresDSN(t))
	t.Setenv(envDB, dsn)
	user, rest, _ := strings.Cut(dsn, inURL)
	for name, test := range map[string]struct {
		args []string
		text string
	}{
		"for a command":             {[]string{dsn, "pending"}, "there is no command of that name"},
		"for an argument":           {[]string{"pending", dsn}, "there is one argument too many"},
		"for the value of -n":       {[]string{"pending", "-n", dsn}, "for flag -n"},
		"for the order":             {[]string{"show", dsn}, `has no table no_such`},
		"for -table":                {[]string{"pending", "-table", dsn}, "-table: "},
		"as a flag":                 {[]string{"pending", "-" + dsn}, "a flag is not defined"},
		"in the form host=":         {[]string{"pending", "-db", "host=h password=" + password}, "-db is postgres://"},
		"a slash that is no %2F":    {[]string{"pending", "-db", user + password + rest}, "what is special in a password is written with %"},
		"a number before the slash": {[]string{"pending", "-db", "postgres://user:1/w@rd@host/db"}, "what is special in a password is written with %"},
		"in a query":                {[]string{"pending", "-db", "postgres://user@127.0.0.1:1/db?password=" + inURL}, "put the password into PGPASSWORD"},
		"a setting that is wrong":   {[]string{"pending", "-db", strings.Replace(dsn, "sslmode=disable", "sslmode=maybe", 1)}, "-db has a setting that cannot be used"},
		"a port that is wrong":      {[]string{"pending", "-db", user + inURL + "@127.0.0.1:0/db?sslmode=disable"}, "-db"},
		"nobody listens":            {[]string{"-db=" + user + inURL + "@127.0.0.1:1/db", "pending"}, "-db cannot be used"},
		"another database":          {[]string{"-db", strings.Replace(dsn, "/postgres?", "/no_such?", 1), "pending"}, "(SQLSTATE 3D000)"},
		"the whole of a help":       {[]string{"-db", dsn, "pending", "-h"}, "usage: gateway-orders pending"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "for the order" {
				test.args = append(test.args, "-table", "no_such")
			}
			for _, more := range [][]string{nil, {"-o", "json"}} {
				got := call(t.Context(), "", append(slices.Clone(test.args), more...)...)
				if !strings.Contains(got.stdout+got.err, test.text) || got.code == exitDone && name != "the whole of a help" {
					t.Errorf("%d, no %q in %s%s", got.code, test.text, got.stdout, got.err)
				}
			}
		})
	}
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
		"pending":                                      "no database is named: give -db or set GATEWAY_ORDERS_DB",
		"-db mysql://h/db pending":                     "-db is postgres://user@host:5432/database or sqlite:PATH",
		"-db sqlite: pending":                          "-db is sqlite: and the path of a file",
		"-db sqlite://none.db pending":                 "-db is sqlite: and the path of a file",
		"-db sqlite:none.db pending":                   "none.db: file does not exist: correct the path; only for a new shop, gateway-orders migrate creates the database",
		"-db sqlite:none.db migrate -dry-run -table A": "table",
		"-db sqlite:. pending":                         "is not a regular file",
		"-db sqlite:text.db pending":                   "-db cannot be used: ",
		"-db sqlite:" + empty + " pending":             "the database has no table gateway_orders: name another with -table, or create it with gateway-orders migrate",
	} {
		got := call(t.Context(), "", strings.Fields(args)...)
		if got.code != exitUsage && got.code != exitFailed || !strings.Contains(got.err, text) || got.stdout != "" {
			t.Errorf("%s: %+v", args, got)
		}
	}
	want(t, call(t.Context(), "", "migrate", "-dry-run", "-db", "sqlite:none.db"), exitDone, "CREATE TABLE")
	if _, err := os.Stat("none.db"); err == nil {
		t.Error("it was created")
	}
	want(t, call(t.Context(), "", "-o", "json", "-db", "sqlite:new.db", "migrate"), exitDone, `"from": 0`, `"to": 2`)
	t.Setenv(envDB, "sqlite:new.db")
	want(t, call(t.Context(), "", "pending"), exitDone)
	want(t, call(t.Context(), "", "pending", "-o", "json", "-n", "0"), exitUsage, `"exitCode": 2`)
}

// The table of an earlier version is brought up, and used by no other command before.
func TestMigrate(t *testing.T) {
	inBoth(t, func(t *testing.T, w *shop) {
		w.loses(t, "A-17")
		table := "gateway_orders"
		if len(w.args) > 0 {
			table = w.args[1]
		}
		for _, column := range strings.Fields("recorded request request_id sent_at status body cause invoice") {
			_, err := w.raw.Exec(fmt.Sprintf(`ALTER TABLE %q DROP COLUMN %s`, table, column))
			check(t, err)
		}
		want(t, w.run("pending"), exitFailed, "has version 1, and this program needs 2: gateway-orders migrate brings it up")
		want(t, w.run("migrate -dry-run"), exitDone, "ALTER TABLE", "invoice")
		want(t, w.run("pending"), exitFailed, "has version 1")
		want(t, w.run("migrate"), exitDone, "has version 2 now")
		want(t, w.run("migrate"), exitDone, "has version 2: there is nothing to do")
		want(t, w.run("pending"), exitLeft, "A-17")
	})
}

// Only what is old and decided is pruned, and a dry run counts the same.
func TestPrune(t *testing.T) {
	inBoth(t, func(t *testing.T, w *shop) {
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
		check(t, w.guard.End(t.Context(), late, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Request: late.Request}))
		want(t, w.run("prune -older-than 30d -dry-run"), exitDone, "2 orders would be deleted")
		want(t, w.run("show old"), exitDone)
		want(t, w.run("prune -older-than 720h"), exitDone, "2 orders deleted")
		want(t, w.run("prune -older-than 30d -o json"), exitDone, `"pruned": 0`)
		want(t, w.run("show old"), exitFailed)
		want(t, w.run("show new"), exitDone)
		want(t, w.run("show unknown"), exitDone)
	})
}

// An export has every order once, in both formats, also where pages meet.
func TestExport(t *testing.T) {
	inBoth(t, func(t *testing.T, w *shop) {
		const all = 2*exportPage + 1
		tx, err := w.raw.Begin()
		check(t, err)
		table := "gateway_orders"
		if len(w.args) > 0 {
			table = w.args[1]
		}
		w.sends(t, requestOf("", `A "17", new`+"\n=1+1"), gateway.OutcomeSucceeded)
		for i := range all - 1 { // copies of the first: End would take long
			_, err := tx.Exec(fmt.Sprintf(`INSERT INTO %q (merchant, order_id, attempts, begun_at, lease_until)
				SELECT '%d', '%d', 1, begun_at, lease_until FROM %[1]q WHERE merchant = ''`, table, i%3, i))
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
		want(t, w.run("export -state unknown"), exitDone, "orderId,merchant")
		if got := w.run("export -state created -o json").stdout; strings.Count(got, "\n") != 1 {
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
	code := run(t.Context(), []string{"-db", w.url, "export"}, console{out: brokenWriter{}, err: &stderr})
	want(t, outcome{code, "", stderr.String()}, exitFailed, "the output is not whole, at most 1 orders are in it: no space left on device")
	want(t, outcome{run(t.Context(), []string{"-db", w.url, "pending"}, console{out: brokenWriter{}, err: io.Discard}), "", ""}, exitFailed)

	ctx, cancel := context.WithCancel(t.Context())
	stderr.Reset()
	code = run(ctx, []string{"-db", w.url, "export"}, console{out: brokenWriter{cancel}, err: &stderr})
	want(t, outcome{code, "", stderr.String()}, exitFailed, "interrupted: the output is not whole, at most 1 orders are in it")
	for _, line := range []string{"pending", "resolve A-17 -exists -by anna", "prune -older-than 30d", "migrate"} {
		want(t, w.runIn(ctx, "", strings.Fields(line)...), exitFailed, "interrupted: ")
	}
	want(t, w.run("pending -timeout 1ns"), exitFailed, "the time of -timeout, 1ns, is over: nothing was changed")
	want(t, w.run("pending -timeout 0s"), exitLeft)
}

// A process that waits for the database ends with the first Ctrl-C.
func TestProcess(t *testing.T) {
	w := newPostgres(t)
	tx, err := w.raw.BeginTx(t.Context(), nil)
	check(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.Exec(`LOCK TABLE ` + w.args[1] + ` IN ACCESS EXCLUSIVE MODE`)
	check(t, err)
	process := exec.Command(os.Args[0], append([]string{"pending", "-timeout", "0s"}, w.args...)...)
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
	if _ = process.Wait(); process.ProcessState.ExitCode() != exitFailed {
		t.Error(process.ProcessState)
	}
}

// Every command has a help with an example of itself, narrow enough for a terminal.
func TestHelp(t *testing.T) {
	t.Setenv(envDB, "")
	for _, c := range commands() {
		got := call(t.Context(), "", "help", c.name)
		want(t, got, exitDone, "usage: gateway-orders "+c.name, "\n gateway-orders "+c.name)
		if again := call(t.Context(), "", c.name, "-h"); again != got {
			t.Errorf("%+v", again)
		}
		if c.define(&session{}, flag.NewFlagSet("", flag.ContinueOnError)) == nil || !c.local && c.early == "" {
			t.Error(c.name)
		}
	}
	text := ""
	for _, args := range [][]string{{"help"}, {"-h"}, {"help", "exits"}, {"-db", "x", "-h"}, {"help", "resolve"}, {"help", "reconcile"}} {
		got := call(t.Context(), "", args...)
		want(t, got, exitDone)
		text += got.stdout
	}
	for line := range strings.Lines(text) {
		if len([]rune(line)) > 110 {
			t.Error(line)
		}
	}
	want(t, call(t.Context(), "", "version"), exitDone, "version 2 of the table")
	want(t, call(t.Context(), "", "version", "-o", "json"), exitDone, `"table": 2`)
}

// Completion has every command and flag, and bash completes with it.
func TestCompletion(t *testing.T) {
	t.Setenv(envDB, "")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := call(t.Context(), "", "completion", shell)
		want(t, got, exitDone)
		for _, c := range commands() {
			for _, word := range []string{c.name, "older-than", "exists"} {
				if !strings.Contains(got.stdout, word) {
					t.Error(shell, word)
				}
			}
		}
	}
	want(t, call(t.Context(), "", "completion"), exitUsage, "the shell, bash, zsh or fish, is missing")
	want(t, call(t.Context(), "", "completion", "tcsh"), exitUsage, "the shell is bash, zsh or fish")
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	script := call(t.Context(), "", "completion", "bash").stdout + `
for line in "p" "-db x resolve -e" "completion z"; do
  COMP_WORDS=(gateway-orders $line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gateway_orders; echo "${COMPREPLY[*]}"
done`
	out, err := exec.Command(bash, "-c", script).CombinedOutput()
	if err != nil || string(out) != "pending prune\n-exists\nzsh\n" {
		t.Errorf("%q, %v", out, err)
	}
}
