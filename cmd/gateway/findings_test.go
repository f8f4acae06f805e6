package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// ten returns the numbers of ten orders, and a finding for each.
func ten() (ids []string, findings map[string]string) {
	findings = map[string]string{}
	for i := range 10 {
		id := fmt.Sprint("A-", i)
		ids = append(ids, id)
		findings[id] = []string{"exists", " ABSENT\u00a0"}[i%2]
	}
	return ids, findings
}

// One wrong row among ten: nothing is applied, and the line is named.
func TestResolve_oneWrongRow(t *testing.T) {
	w := newSQLite(t)
	ids, findings := ten()
	w.loses(t, ids...)
	findings["A-3"] = "exist"
	got := w.want(t, exitUsage, "nothing was changed:\nline 8: order \"A-3\": the finding is exists, absent or empty\n", "orders", "resolve", "--by", "anna", "--from", spreadsheet(t, w.listed(t, findings)))
	assert.Equal(t, 1, strings.Count(got.err, "line "))
	for _, state := range w.states(t, ids...) {
		assert.Equal(t, "unknown", state)
	}
}

// A column that was sorted by itself would give each order the finding of another.
func TestResolve_sortedApart(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1", "A-2", "A-3")
	rows := w.listed(t, map[string]string{"A-1": "absent", "A-2": "exists", "A-3": "exists"})
	rows[1][3], rows[2][3] = rows[2][3], rows[1][3]
	var text strings.Builder
	require.NoError(t, csv.NewWriter(&text).WriteAll(rows))
	got := w.want(t, exitUsage, "line 2: order \"A-1\": the token belongs to another order than \"A-2\": a column was sorted by itself", "orders", "resolve", "--by", "anna", "--from", file(t, text.String()))
	assert.Equal(t, 2, strings.Count(got.err, "line "))
	assert.Equal(t, []string{"unknown", "unknown", "unknown"}, w.states(t, "A-1", "A-2", "A-3"))
}

// A file that was listed before one of its orders was sent once more is refused.
func TestResolve_sentOnceMore(t *testing.T) {
	w := newSQLite(t)
	ids, findings := ten()
	w.loses(t, ids...)
	rows := w.listed(t, findings)
	path := spreadsheet(t, rows)
	w.want(t, exitUsage, "--absent needs the --token", "orders", "resolve", "A-4", "--absent", "--by", "anna")
	w.want(t, exitDone, "absent  1\n", "orders", "resolve", "--token", rows[5][0], "--absent", "--by", "anna")
	w.loses(t, "A-4")
	for _, dryRun := range []string{"--dry-run=true", "--dry-run=false"} {
		got := w.want(t, exitFailed, "nothing was changed:\nline 10: ", "orders", "resolve", "--by", "anna", "--from", path, dryRun)
		assert.Equal(t, 1, strings.Count(got.err, "line "), got.err)
		assert.Contains(t, got.err, "again", "it was sent again")
	}
	for _, state := range w.states(t, ids...) {
		assert.Equal(t, "unknown", state)
	}
}

// Absent is refused for an order that was listed too early.
func TestResolve_tooEarly(t *testing.T) {
	w := newSQLite(t)
	w.sends(t, 10*time.Minute, "", "A-1", gateway.OutcomeUnknown)
	rows := w.listed(t, map[string]string{"A-1": "absent"})
	from, err := time.Parse(time.RFC3339, rows[1][5])
	require.NoError(t, err)
	assert.InDelta(t, 5, time.Until(from).Minutes(), 0.1)
	for _, dryRun := range []string{"--dry-run=true", "--dry-run=false"} {
		w.want(t, exitFailed, "line 2: ", "orders", "resolve", "--by", "anna", "--from", spreadsheet(t, rows), dryRun)
		w.want(t, exitFailed, "nothing was changed", "orders", "resolve", "--by", "anna", "--absent", "--token", rows[1][0], dryRun)
	}
	w.want(t, exitDone, "dryRun  true", "orders", "resolve", "--by", "anna", "--absent", "--margin", "9m", "--token", rows[1][0], "--dry-run")
	w.want(t, exitDone, "dryRun  false", "orders", "resolve", "--by", "anna", "--absent", "--margin", "9m", "--token", rows[1][0])
}

// A file that is not what pending wrote is refused as a whole; each wrong line is named, and no cell is quoted.
func TestResolve_wrongFile(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1", "A-2")
	rows := w.listed(t, nil)
	one, two := rows[1][0], rows[2][0]
	const header, secret = "token,finding,invoice\n", "hunter2"
	for name, test := range map[string]struct{ text, err string }{
		"empty":                     {"", "its first line must be a header with token and finding: save it as CSV in UTF-8, separated by commas"},
		"no header":                 {one + ",exists\n", "its first line must be a header with token and finding"},
		"no column finding":         {"token,found\n", "its first line must be a header with token and finding"},
		"a column twice":            {"token,finding,Finding\n", "its header has the column finding twice"},
		"semicolons":                {"token;finding\n" + one + ";exists\n", "separated by semicolons or tabs"},
		"quoted, with semicolons":   {"\"token\";\"finding\"\r\n", "separated by semicolons or tabs"},
		"tabs":                      {"token\tfinding\n", "separated by semicolons or tabs"},
		"UTF-16":                    {"\xff\xfet\x00o\x00", "it is UTF-16, or no text: save it as CSV in UTF-8"},
		"another encoding":          {header + one + ",exists,\"{\"\"a\"\":\"\"\xe9\"\"}\"\n", "line 2: it is not UTF-8"},
		"broken quotes":             {header + one + ",exists,\n" + two + ",exists,\"" + secret + "\n", "line 3: "},
		"no token":                  {header + "\n,exists,\n", "line 3: the token is missing, or not whole"},
		"a cut token":               {header + one[:len(one)-1] + ",exists,\n", "line 2: the token is missing, or not whole"},
		"a token in lower case":     {header + strings.ToLower(one) + ",,\n", "line 2: the token is missing, or not whole"},
		"a changed token":           {header + strings.Replace(one, one[9:10], "7", 1) + "A,exists,\n", "line 2: the token is missing, or not whole"},
		"an unknown finding":        {header + one + "," + secret + ",\n", `line 2: order "A-1": the finding is exists, absent or empty`},
		"an order twice":            {header + one + ",exists,\n" + two + ",,\n" + one + ",,\n", `line 4: order "A-1": it is on line 2 too`},
		"an invoice of nothing":     {header + one + ",,{}\n", `line 2: order "A-1": the finding is exists, absent or empty`},
		"an invoice that is absent": {header + one + ",absent,{}\n", `line 2: order "A-1": an order that is absent has no invoice`},
		"an invoice of text":        {header + one + ",exists," + secret + "\n", `line 2: order "A-1": the invoice is not a JSON object`},
		"a whole response":          {header + one + `,exists,"{""message"":"""",""result"":{}}"` + "\n", `line 2: order "A-1": the invoice is a whole response: give only its member "result"`},
		"a large invoice":           {header + one + `,exists,"{""a"":""` + strings.Repeat("x", 64<<10) + `""}"` + "\n", `line 2: order "A-1": the invoice has more than 64 KiB`},
		"many wrong lines":          {header + "x,,\n" + one + ",exists,\ny,,\n", "line 2: the token is missing, or not whole: copy the row again from orders pending\nline 4: the token"},
		"a large file":              {header + strings.Repeat("\n", maxFile), "it has more than 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.want(t, exitUsage, test.err, "orders", "resolve", "--by", "anna", "--from", file(t, test.text))
			assert.NotContains(t, got.err, secret)
			assert.Equal(t, []string{"unknown", "unknown"}, w.states(t, "A-1", "A-2"))
		})
	}
	for text, reason := range map[string]string{
		``: "--invoice: the invoice is not a JSON object", `[1]`: "the invoice is not a JSON object", `{"message":"","result":{}}`: "is a whole response",
	} {
		w.want(t, exitUsage, reason, "orders", "resolve", "A-1", "--exists", "--by", "anna", "--invoice", file(t, text))
	}
	w.want(t, exitUsage, "--token is not a whole token", "orders", "resolve", "--exists", "--by", "anna", "--token", one[1:])
	w.want(t, exitUsage, "the file: no such file or directory", "orders", "resolve", "--by", "anna", "--from", "absent.csv")
	w.want(t, exitUsage, "--by is blank", "orders", "resolve", "A-1", "--exists", "--by", " ")
}

// A file may have LF, blank lines, short rows, rows of a person's notes, and invoices.
func TestResolve_lenient(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1", "A-2", "A-3")
	rows := w.listed(t, nil)
	text := "note,finding,token,INVOICE\n\n,exists," + rows[1][0] + `,"{""id"": ""4711""}"` + "\nlater,,\" " + rows[2][0] + "\"\n3 in all\n,,,\n" + "x,absent," + rows[3][0]
	got := w.want(t, exitDone, "", "orders", "resolve", "--by", "anna", "--note", "by phone", "-o", "json", "--from", file(t, text))
	assert.Equal(t, resolvedRecord{Exist: 1, Absent: 1, Left: 1}, decode[resolvedRecord](t, got.stdout))
	shown := decode[orderRecord](t, w.run(t, "orders", "show", "A-1", "-o", "json").stdout)
	assert.JSONEq(t, `{"id": "4711"}`, string(shown.Invoice))
	assert.Equal(t, "anna by phone exists", shown.ResolvedBy+" "+shown.Note+" "+shown.Finding)

	w.want(t, exitDone, "exist   1\n", "orders", "resolve", "A-2", "--exists", "--by", "anna")
	for _, dryRun := range []string{"--dry-run=true", "--dry-run=false"} { // the invoice is added to a created order
		w.want(t, exitDone, "exist   1\n", "orders", "resolve", "A-2", "--exists", "--by", "anna", "--invoice", file(t, `{"id": "4712"}`), dryRun)
	}
	w.want(t, exitDone, `{"id":"4712"}`, "orders", "show", "A-2")
}

// Orders that a restored database has forgotten are marked once, and never made free.
func TestMark(t *testing.T) {
	for name, test := range map[string]struct {
		text, args, want string
		code             int
	}{
		"psql":                     {"order_id\nA-1\nA-9\n", "", "marked  1\nleft    1\n", 0},
		"a spreadsheet":            {"\ufeffCreated,\"Order\"\r\n27.11.2026,A-8\r\n27.11.2026,A-9\r\n27.11.2026,A-8\r\n", "", "marked  2\n", 0},
		"a formula":                {"\ufefforder\n'=A-9\n", "", "marked  1\n", 0},
		"as JSON":                  {"order\nA-9\n", "-o json", "\"marked\": 1,\n  \"left\": 0,\n", 0},
		"bare ids":                 {"A-8\nA-9\n", "", "its first line must be a header with order or order_id: save", exitUsage},
		"semicolons":               {"order;merchant\nA-8;\n", "", "separated by semicolons or tabs", exitUsage},
		"rounded":                  {"order\nA-9\n1.23E+17\n\"1,23457E+017\"\n", "", "line 3: a spreadsheet has rounded the order, such as to 1.23E+17: import the column as text\nline 4: a spread", exitUsage},
		"a line without an order":  {"merchant,order\n,A-9\nnorth,\n", "", "line 3: the order is missing", exitUsage},
		"a space":                  {"order\nA-9\n\"A-10 \"\n", "", "line 3: ", exitUsage},
		"another merchant":         {"merchant,order\nnorth,A-9\n", "--merchant south", "line 2: it has another merchant than --merchant", exitUsage},
		"a merchant, and no other": {"order\nA-9\nA-8\n", "--merchant north", "nothing was marked: the orders of the table have no merchant: give none\n", exitUsage},
		"a merchant in one line":   {"merchant,order\nnorth,A-9\n,A-8\n", "", "line 3: the merchant is missing, and other lines have one", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSQLite(t)
			w.sends(t, time.Hour, "", "A-1", gateway.OutcomeSucceeded)
			args := append([]string{"orders", "mark", "--from", file(t, test.text)}, words(test.args)...)
			w.want(t, test.code, test.want, append(args, "--dry-run")...)
			got := w.want(t, test.code, test.want, args...)
			assert.Equal(t, "created", w.states(t, "A-1")[0])
			ids := []string{"A-8", "A-9", "=A-9"}
			assert.Equal(t, test.code == 0, strings.Contains(strings.Join(w.states(t, ids...), " "), "unknown"), got.err)
		})
	}
}

// A restored table with merchants, marked from what psql and a spreadsheet wrote: nothing is doubled.
func TestMark_merchants(t *testing.T) {
	w := newSQLite(t)
	w.sends(t, time.Hour, "north", "A-1", gateway.OutcomeSucceeded)
	w.sends(t, time.Hour, "south", "A-1", gateway.OutcomeUnknown)
	w.sends(t, time.Hour, "south", "A-2", gateway.OutcomeNotSent) // free
	w.want(t, exitDone, "marked  2\nleft    2\n", "orders", "mark", "--from",
		file(t, "merchant,order_id\nnorth,A-1\nnorth,A-2\nsouth,A-1\nsouth,A-2\n"))
	w.want(t, exitDone, "marked  1\nleft    2\n", "orders", "mark", "--merchant", "south", "--from",
		file(t, "\ufeffprice,ORDER\r\n\"10,5\",A-1\r\n\"10,5\",A-2\r\n\"10,5\",A-3\r\n"))
	for _, dryRun := range []string{"--dry-run=true", "--dry-run=false"} {
		w.want(t, exitUsage, "nothing was marked: the orders of the table have a merchant: give the column", "orders", "mark", dryRun, "--from", file(t, "order\nA-4\n"))
	}
	for _, key := range []string{"north A-1", "north A-2", "south A-1", "south A-2", "south A-3"} {
		merchant, id, _ := strings.Cut(key, " ")
		o, err := w.guard.Order(t.Context(), merchant, id)
		require.NoError(t, err)
		assert.NotEqual(t, gateway.OrderFree, o.State, key)
	}
}

// A cell is data in a spreadsheet, and no output has a character that controls a terminal or the direction of text.
func TestPending_cells(t *testing.T) {
	w := newSQLite(t)
	for _, id := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "'quoted", "A\u202e\u009b-17", "a,\"b\""} {
		w.sends(t, time.Hour, "=m", id, gateway.OutcomeUnknown)
	}
	rows, err := csv.NewReader(strings.NewReader(w.run(t, "orders", "pending", "-o", "csv").stdout)).ReadAll()
	require.NoError(t, err)
	var ids []string
	for _, row := range rows[1:] {
		ids = append(ids, row[3])
		assert.Equal(t, "'=m", row[2])
		assert.Regexp(t, "^T[A-Z2-7]+$", row[0])
	}
	assert.ElementsMatch(t, []string{"'=1+1", "'+1", "'-1", "'@SUM(A1)", "'quoted", "A\uFFFD\uFFFD-17", `a,"b"`}, ids)
	for _, format := range []string{formatTable, formatJSON, formatCSV} {
		got := w.run(t, "orders", "pending", "-o", format)
		assert.False(t, strings.ContainsFunc(got.stdout, func(char rune) bool { return char != '\n' && unicode.In(char, unicode.Cc, unicode.Cf) }), got.stdout)
	}
}

// More orders than a page are listed, in order.
func TestPending_pages(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1000")
	var columns string
	require.NoError(t, w.raw.QueryRow("SELECT group_concat(name) FROM pragma_table_info('gateway_orders') WHERE name <> 'order_id'").Scan(&columns))
	_, err := w.raw.Exec("WITH RECURSIVE n(i) AS (VALUES(1001) UNION ALL SELECT i + 1 FROM n WHERE i < 3000) " +
		"INSERT INTO gateway_orders (order_id, " + columns + ") SELECT 'A-' || i, " + columns + " FROM n, gateway_orders WHERE order_id = 'A-1000'")
	require.NoError(t, err)
	all := decode[[]orderRecord](t, w.run(t, "orders", "pending", "-o", "json").stdout)
	require.Len(t, all, 2001)
	assert.Equal(t, "A-1000 A-3000", all[0].OrderID+" "+all[2000].OrderID)
}

// A missing table raises the questions that come before creating one.
func TestMigrate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.db")
	t.Setenv(envDB, "sqlite:"+path)
	w := &shop{table: "orders"}
	w.want(t, exitFailed, "file does not exist: correct the path; only for a new shop, gateway orders migrate creates it", "orders", "pending")
	w.want(t, exitDone, `CREATE TABLE IF NOT EXISTS "orders"`, "orders", "migrate", "--dry-run")
	require.NoFileExists(t, path)
	w.want(t, exitDone, "This is a new, empty order file: it knows no earlier order.\n", "orders", "migrate")
	w.table = "other"
	w.want(t, exitFailed, "Is this the database of the shop, and does this user see the shop's schema (search_path)?", "orders", "pending")
	w.want(t, exitDone, "the table other is new, and empty", "orders", "migrate")
	w.want(t, exitDone, "", "orders", "migrate", "--dry-run")
}

// Every command of the guide does what it says, in its order, and its SQL moves the table to another base URL.
func TestGuide(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		page, err := os.ReadFile("../../docs/unknown.md")
		require.NoError(t, err)
		lines := regexp.MustCompile(`(?m)^ {4,}(gateway .*)$`).FindAllStringSubmatch(string(page), -1)
		codes := []int{exitLeft, 0, 0, 0, exitLeft, 0, 0, 0, 0}
		require.Len(t, lines, len(codes))
		dir := commandDir(t)
		w.loses(t, "A-17", "A-18", "A-19", "A-20")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "orders.csv"), []byte("merchant,order\n,A-17\n,A-21\n"), 0o600))
		listed := w.listed(t, nil)[1:]
		for i, line := range lines {
			text := strings.Replace(line[1], "gateway orders ", "gateway orders --table "+w.table+" ", 1)
			if strings.Contains(text, "TOKEN") {
				text, listed = strings.Replace(text, "TOKEN", listed[0][0], 1), listed[1:]
			}
			shell := exec.Command("sh", "-c", text)
			shell.Dir, shell.Env = dir, append(os.Environ(), asProcess+"=1", envDB+"="+w.url, "PATH="+dir+":"+os.Getenv("PATH"))
			output, _ := shell.CombinedOutput()
			require.Equal(t, codes[i], shell.ProcessState.ExitCode(), "%s\n%s", text, output)
			if path := filepath.Join(dir, "findings.csv"); strings.HasSuffix(line[1], ">findings.csv") {
				listed, err := os.ReadFile(path)
				require.NoError(t, err)
				filled := regexp.MustCompile(`(?m)^(T\w+),,(.*A-19)`).ReplaceAllString(string(listed), "$1,exists,$2")
				require.NoError(t, os.WriteFile(path, []byte(filled), 0o600))
			}
		}
		assert.Equal(t, []string{"created", "free", "created", "unknown", "unknown"}, w.states(t, "A-17", "A-18", "A-19", "A-20", "A-21"))

		_, rest, _ := strings.Cut(string(page), "```sql\n")
		statement, _, _ := strings.Cut(rest, "```")
		_, err = w.raw.ExecContext(t.Context(), strings.Replace(statement, "gateway_orders", w.table, 1))
		require.NoError(t, err)
		o, err := w.guard.Order(t.Context(), "", "A-20")
		require.NoError(t, err)
		assert.Equal(t, "https://new.example/api", o.Gateway)
	})
}
