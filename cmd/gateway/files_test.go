package main

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A column that was sorted by itself would give each order the finding of another.
func TestResolve_sortedApart(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1", "A-2", "A-3")
	rows := w.listed(t, map[string]string{"A-1": "absent", "A-2": "exists", "A-3": "exists"})
	rows[1][3], rows[2][3] = rows[2][3], rows[1][3]
	var text strings.Builder
	require.NoError(t, csv.NewWriter(&text).WriteAll(rows))
	got := w.want(t, exitUsage, `line 2: order "A-1": the token belongs to another order than "A-2": a column was sorted by itself`,
		"resolve --by anna --from", file(t, text.String()))
	assert.Equal(t, 2, strings.Count(got.err, "line "))
	w.states(t, "A-1 unknown", "A-2 unknown", "A-3 unknown")
}

// A file that was listed before one of its orders was sent once more is refused, and all of it.
func TestResolve_sentOnceMore(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1", "A-2", "A-3")
	rows := w.listed(t, map[string]string{"A-1": "exists", "A-2": "absent", "A-3": " ABSENT\u00a0"})
	w.want(t, exitDone, "absent  1\n", "resolve --absent --by anna --token "+rows[2][0])
	w.loses(t, "A-2")
	for _, dryRun := range []string{"--dry-run=true", "--dry-run=false"} {
		got := w.want(t, exitFailed, "nothing was changed:\nline 4: ", "resolve --by anna "+dryRun+" --from", spreadsheet(t, rows))
		assert.Equal(t, 1, strings.Count(got.err, "line "), got.err)
		assert.Contains(t, got.err, "again", "it was sent again")
	}
	w.states(t, "A-1 unknown", "A-2 unknown", "A-3 unknown")
}

// Absent is refused for an order that was listed too early.
func TestResolve_tooEarly(t *testing.T) {
	w := newSQLite(t)
	w.sends(t, 10*time.Minute, "", "A-1", gateway.OutcomeUnknown)
	rows := w.listed(t, map[string]string{"A-1": "absent"})
	from, err := time.Parse(time.RFC3339, rows[1][5])
	require.NoError(t, err)
	assert.InDelta(t, 5, time.Until(from).Minutes(), 0.1)
	absent := "resolve --by anna --absent --token " + rows[1][0]
	for _, dryRun := range []string{" --dry-run=true", " --dry-run=false"} {
		w.want(t, exitFailed, "line 2: ", "resolve --by anna"+dryRun+" --from", spreadsheet(t, rows))
		w.want(t, exitFailed, "nothing was changed", absent+dryRun)
	}
	w.want(t, exitUsage, "Margin: must not be negative", absent+" --margin -9m")
	w.want(t, exitDone, "dryRun  true", absent+" --margin 9m --dry-run")
	w.states(t, "A-1 unknown")
	w.want(t, exitDone, "dryRun  false", absent+" --margin 9m")
	w.states(t, "A-1 free")
}

// A file that is not what pending wrote is refused as a whole; each wrong line is named, and no cell is quoted.
func TestResolve_wrongFile(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1", "A-2")
	rows := w.listed(t, nil)
	one, two := rows[1][0], rows[2][0]
	const header, secret = "token,finding,invoice\n", "hunter2"
	for name, test := range map[string]struct{ text, err string }{
		"empty":                     {"", "the file: its first line must be a header with token and finding: save it as CSV in UTF-8, separated by commas"},
		"no header":                 {one + ",exists\n", "its first line must be a header with token and finding"},
		"no column finding":         {"token,found\n", "its first line must be a header with token and finding"},
		"a column twice":            {"token,finding,Finding\n", "its header has the column finding twice"},
		"semicolons":                {"token;finding\n" + one + ";exists\n", "separated by commas"},
		"quoted, with semicolons":   {"\"token\";\"finding\"\r\n", "separated by commas"},
		"UTF-16":                    {"\xff\xfet\x00o\x00", "it is not UTF-8: save it as CSV in UTF-8"},
		"another encoding":          {header + one + ",exists,\"{\"\"a\"\":\"\"\xe9\"\"}\"\n", "it is not UTF-8"},
		"broken quotes":             {header + one + ",exists,\n" + two + ",exists,\"" + secret + "\n", "line 3: "},
		"no token":                  {header + "\n,exists,\n", "line 3: the token is missing, or not whole"},
		"a cut token":               {header + one[:len(one)-1] + ",exists,\n", "line 2: the token is missing, or not whole"},
		"a token in lower case":     {header + strings.ToLower(one) + ",,\n", "line 2: the token is missing, or not whole"},
		"an unknown finding":        {header + two + ",absent,\n" + one + "," + secret + ",\n", `line 3: order "A-1": the finding is exists, absent or empty`},
		"an order twice":            {header + one + ",exists,\n" + two + ",,\n" + one + ",absent,\n", `line 4: `},
		"an invoice of nothing":     {header + one + ",,{}\n", `line 2: order "A-1": the finding is exists, absent or empty`},
		"an invoice that is absent": {header + two + ",exists,\n" + one + ",absent,{}\n", `line 3: `},
		"an invoice of text":        {header + one + ",exists," + secret + "\n", `line 2: order "A-1": the invoice is not a JSON object`},
		"a whole response":          {header + one + `,exists,"{""message"":"""",""result"":{}}"` + "\n", `line 2: order "A-1": the invoice is a whole response: give only its member "result"`},
		"many wrong lines":          {header + "x,,\n" + one + ",exists,\ny,,\n", "line 2: the token is missing, or not whole: copy it again from orders pending\nline 4: the token"},
		"a large file":              {header + strings.Repeat("\n", maxFile), "it has more than 16777216 bytes"},
	} {
		got := w.run(t, "resolve --by anna --margin 1s --from", file(t, test.text))
		assert.Equal(t, exitUsage, got.code, name)
		assert.Contains(t, got.err, test.err, name)
		assert.NotContains(t, got.err, secret, name)
		w.states(t, "A-1 unknown", "A-2 unknown")
	}
	w.want(t, exitUsage, "--invoice: the invoice is not a JSON object", "resolve --exists --by anna --token "+one, "--invoice", file(t, ""))
	w.want(t, exitUsage, "By: is required", "resolve --exists --token "+one+" --by", " ")
}

// A file may have LF, blank lines, short rows, rows of a person's notes, and invoices. A full disk does not undo it.
func TestResolve_lenient(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1", "A-2", "A-3")
	rows := w.listed(t, nil)
	text := "note,finding,token,INVOICE\n\n,exists," + rows[1][0] + `,"{""id"": ""4711""}"` +
		"\nlater,,\" " + rows[2][0] + "\"\n3 in all\n,,,\n" + "x,absent," + rows[3][0]
	got := w.want(t, exitDone, "", "resolve --by anna -o json --from", file(t, text), "--note", "by phone")
	assert.Equal(t, resolvedRecord{Exist: 1, Absent: 1, Left: 1}, decode[resolvedRecord](t, got.stdout))
	shown := decode[orderRecord](t, w.run(t, "show A-1 -o json").stdout)
	assert.JSONEq(t, `{"id": "4711"}`, string(shown.Invoice))
	assert.Equal(t, "anna by phone exists", shown.ResolvedBy+" "+shown.Note+" "+shown.Finding)

	var stderr strings.Builder
	line := fmt.Sprintf("orders resolve --exists --by anna --token %s --table %s", rows[2][0], w.table)
	assert.Equal(t, exitFailed, run(t.Context(), strings.Fields(line), console{out: fullDisk{}, err: &stderr}))
	assert.Equal(t, "it is done, but stdout failed: no space left on device\n", stderr.String())
	w.states(t, "A-2 created")
}

// Orders that a restored database has forgotten are marked, and never made free.
func TestMark(t *testing.T) {
	w := newSQLite(t)
	w.sends(t, time.Hour, "", "A-1", gateway.OutcomeSucceeded)
	for name, test := range map[string]struct{ text, err string }{
		"bare ids":   {"A-8\nA-9\n", "its first line must be a header with order: save"},
		"semicolons": {"order;merchant\nA-8;\n", "separated by commas"},
		"rounded":    {"order\nA-9\n1.23E+17\n\"1,23457E+017\"\n", "line 3: a spreadsheet has rounded the order, such as to 1.23E+17: import the column as text\nline 4: a spread"},
		"a space":    {"order\nA-9\n\"A-10 \"\n", "line 3: "},
		"a merchant": {"merchant,order\nnorth,A-9\nnorth,A-8\n", "nothing was marked: the orders of the table have no merchant: give none\n"},
	} {
		for _, dryRun := range []string{"--dry-run=true", "--dry-run=false"} {
			got := w.run(t, "mark "+dryRun+" --from", file(t, test.text))
			assert.Equal(t, exitUsage, got.code, name)
			assert.Contains(t, got.err, test.err, name)
		}
		w.states(t, "A-8 free", "A-9 free")
	}
	w.want(t, exitDone, "marked  1\nleft    1\n", "mark --from", file(t, "order\nA-1\nA-9\n"))
	saved := file(t, "\ufeffCreated,\"Order\"\r\n27.11.2026,A-8\r\n27.11.2026,A-9\r\n27.11.2026,'=A-9\r\n")
	w.want(t, exitDone, "\"marked\": 2,\n  \"left\": 1,\n", "mark -o json --from", saved)
	w.states(t, "A-1 created", "A-8 unknown", "A-9 unknown", "=A-9 unknown")
}

// However the URL of the database is wrong, no error has a piece of its password.
func TestDatabase_secrets(t *testing.T) {
	const secret, escaped = "ZQ7KX@WV9JY/U6HTG", "ZQ7KX%40WV9JY%2FU6HTG"
	services := file(t, "[good]\nhost=127.0.0.1\nport=1\npassword="+secret+"\n[bad]\npassword="+secret+"\nport=x\n")
	const inUse, wrong, howTo = "postgres://u:" + escaped + "@127.0.0.1:1/d", "a setting that cannot be used", "as %2F and @ as %40"
	for name, r := range map[string]struct {
		url, text string
		code      int
	}{
		"right":                   {inUse, "connect", exitFailed},
		"several hosts":           {"postgres://u:" + escaped + "@127.0.0.1:1,127.0.0.2:1/d", "connect", exitFailed},
		"a @ that is not escaped": {"postgres://u:ssZQ7@KXWV9JY@127.0.0.1:1/d", howTo, exitUsage},
		"a / that is not escaped": {"postgres://u:1/ZQ7KXWV9JY@127.0.0.1:1/d", howTo, exitUsage},
		"a ? that is not escaped": {"postgres://u:1?ZQ7KXWV9JY@127.0.0.1:1/d", howTo, exitUsage},
		"a # that is not escaped": {"mysql://u:1#ZQ7KXWV9JY@127.0.0.1:1/d", howTo, exitUsage},
		"a % that is not escaped": {"mysql://u:ZQ7KX%WV9JY@127.0.0.1:1/d", howTo, exitUsage},
		"no host":                 {"postgres://u:ZQ7KXWV9JY", howTo, exitUsage},
		"no slashes":              {"postgres:u:ZQ7KXWV9JY@127.0.0.1:1/d", howTo, exitUsage},
		"no scheme":               {"u:ZQ7KXWV9JY@127.0.0.1:1/d", "the database of GATEWAY_ORDERS_DB is postgres://", exitUsage},
		"a password in the query": {"postgres://127.0.0.1:1/d?user=u&password=ZQ7KX&WV9JY", wrong, exitUsage},
		"keywords":                {"host=127.0.0.1 port=1 password='" + secret + "'", "the database of GATEWAY_ORDERS_DB is postgres://", exitUsage},
		"a wrong setting":         {inUse + "?sslmode=maybe", wrong, exitUsage},
		"a service":               {"postgres://u@127.0.0.1:1/d?service=good&servicefile=" + services, "connect", exitFailed},
		"a wrong service":         {"postgres:///?service=bad&servicefile=" + services, wrong, exitUsage},
		"MariaDB":                 {"mysql://u:" + escaped + "@127.0.0.1:1/d", "connect", exitFailed},
		"another setting":         {"mysql://u:" + escaped + "@127.0.0.1:1/d?ssl=1", wrong, exitUsage},
	} {
		t.Setenv(envDB, r.url)
		got := call(t, nil, "orders pending --timeout 10s")
		assert.Equal(t, r.code, got.code, name+got.err)
		assert.Contains(t, got.err, r.text, name)
		for _, form := range []string{secret, escaped} {
			for i := range len(form) - 3 {
				assert.NotContains(t, got.stdout+got.err, form[i:i+4], name)
			}
		}
	}
}
