package main

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Each row is compared with its token: otherwise a column that was sorted by itself, or zeros that a spreadsheet has stripped, would
// give an order the finding of another.
func TestResolve_otherOrder(t *testing.T) {
	w := newSQLite(t)
	for _, order := range []string{"south/0017", "north/0017", "south/0018", "north/=1+1"} {
		merchant, id, _ := strings.Cut(order, "/")
		w.sends(t, time.Hour, merchant, id, gateway.OutcomeUnknown)
	}
	const token, merchant, order = 0, 2, 3
	for name, tt := range map[string]struct {
		edit func(rows [][]string)
		want []string
	}{
		"tokens sorted by themselves":    {func(r [][]string) { r[1][token], r[2][token], r[3][token] = r[2][token], r[3][token], r[1][token] }, []string{"line 2: ", "line 3: ", "line 4: "}},
		"merchants sorted by themselves": {func(r [][]string) { r[1][merchant], r[2][merchant] = r[2][merchant], r[1][merchant] }, []string{"line 2: ", "line 3: "}},
		"orders sorted by themselves":    {func(r [][]string) { r[1][order], r[3][order] = r[3][order], r[1][order] }, []string{"line 2: ", "line 4: "}},
		"zeros stripped, and tokens sorted": {func(r [][]string) {
			r[1][order], r[3][order], r[1][token], r[3][token] = "17", "18", r[3][token], r[1][token]
		}, []string{"line 2: ", "line 4: "}},
		"zeros stripped":                        {func(r [][]string) { r[1][order] = "17" }, []string{`line 2: order "0017" of merchant "north": the row shows another order or merchant`}},
		"a formula computed":                    {func(r [][]string) { r[4][order] = "2" }, []string{"line 5: "}},
		"an order without a finding is another": {func(r [][]string) { r[1][order], r[1][1] = "17", "" }, []string{"line 2: "}},
		"the column order renamed":              {func(r [][]string) { r[0][order] = "order id" }, []string{"its first line must be a header with token, finding, order, merchant"}},
		"the column merchant deleted":           {func(r [][]string) { r[0][merchant] = "" }, []string{"its first line must be a header with token, finding, order, merchant"}},
		"a row deleted, and orders sorted": {func(r [][]string) {
			copy(r[1], r[3])
			r[1][order], r[3] = "0017", nil
		}, []string{"line 2: "}},
	} {
		rows := w.listed(t, map[string]string{"0017": "absent", "0018": "exists", "'=1+1": "exists"})
		tt.edit(rows)
		var text strings.Builder
		require.NoError(t, csv.NewWriter(&text).WriteAll(rows))
		got := w.run(t, "resolve --by anna --from", file(t, text.String()))
		assert.Equal(t, exitUsage, got.code, name+got.err)
		for _, line := range tt.want {
			assert.Contains(t, got.err, line, name)
		}
		assert.Equal(t, len(tt.want), strings.Count(got.err, "line "), name+got.err)
		assert.Contains(t, got.err, "as", name)
		w.states(t, "south/0017 unknown", "north/0017 unknown", "south/0018 unknown", "north/=1+1 unknown")
	}
	rows := w.listed(t, map[string]string{"0017": "exists", "0018": "exists", "'=1+1": "exists"})
	for _, cell := range []string{"=1+1", "'=1+1"} { // some spreadsheets remove the mark of a text
		rows[4][order] = cell
		w.want(t, exitDone, "exist   4\n", "resolve --by anna --from", spreadsheet(t, rows))
	}
}

// Two people apply the same findings: the first records them, and the second gets no error. Other findings are refused.
func TestResolve_colleague(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1", "A-2")
	w.sends(t, time.Minute, "", "A-3", gateway.OutcomeUnknown)
	rows := w.listed(t, map[string]string{"A-1": "exists", "A-2": "absent"})
	for _, person := range []string{"anna", "bert"} {
		w.want(t, exitDone, "exist   1\nabsent  1\n", "resolve --by "+person+" --from", spreadsheet(t, rows))
	}
	w.want(t, exitDone, "exists by anna at", "show A-1 -o csv")
	rows[2][1], rows[3][1] = "exists", "absent" // which is too early
	got := w.want(t, exitFailed, `"anna" found no invoice`, "resolve --by bert --from", spreadsheet(t, rows))
	assert.Equal(t, 1, strings.Count(got.err, "line "), got.err)
	assert.Contains(t, got.err, "To record the others, empty these findings. List these orders again")
	w.states(t, "A-1 created", "A-2 free")
}

// Orders that were listed too early to be absent are left, and the other rows are recorded.
func TestResolve_someTooEarly(t *testing.T) {
	w := newSQLite(t)
	w.sends(t, 10*time.Minute, "", "A-1", gateway.OutcomeUnknown)
	w.loses(t, "A-2")
	w.sends(t, 5*time.Minute, "", "A-3", gateway.OutcomeUnknown)
	w.loses(t, "A-4")
	w.sends(t, time.Minute, "", "A-5", gateway.OutcomeUnknown)
	rows := w.listed(t, map[string]string{"A-1": "absent", "A-2": "absent", "A-3": "absent", "A-4": "exists", "A-5": "exists"})
	path := spreadsheet(t, rows)
	line := map[string]string{}
	for i, row := range rows {
		line[row[3]] = fmt.Sprintf("line %d: ", 2*i) // each row of the spreadsheet has two
	}
	for _, dryRun := range []string{"true", "false"} {
		got := w.want(t, exitLeft, "exist   2\nabsent  1\nearly   2\nleft    0\ndryRun  "+dryRun+"\n", "resolve --by anna --dry-run="+dryRun+" --from", path)
		for _, id := range []string{"A-1", "A-3"} {
			assert.Regexp(t, line[id]+`.*order "`+id+`": a request .* too early: read it again at 20`, got.err)
		}
		assert.Contains(t, got.err, "orders are pending:\n")
		assert.Equal(t, 2, strings.Count(got.err, "line "), got.err)
	}
	w.states(t, "A-1 unknown", "A-2 free", "A-3 unknown", "A-4 created", "A-5 created")
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
		w.want(t, exitLeft, "early   1\n", absent+dryRun)
	}
	w.want(t, exitUsage, "Margin: must not be negative", absent+" --margin -9m")
	w.want(t, exitDone, "dryRun  true", absent+" --margin 9m --dry-run")
	w.states(t, "A-1 unknown")
	w.want(t, exitDone, "dryRun  false", absent+" --margin 9m")
	w.states(t, "A-1 free")
}

// A file that differs from the output of pending is refused as a whole; each wrong line is named, and no cell is quoted.
func TestResolve_wrongFile(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1", "A-2")
	rows := w.listed(t, nil)
	one, two := ",A-1,"+rows[1][0], ",A-2,"+rows[2][0]
	const header, secret = "merchant,order,token,finding,invoice\n", "hunter2"
	for name, test := range map[string]struct{ text, err string }{
		"empty":                     {"", "the file: its first line must be a header with token, finding, order, merchant: save it as CSV in UTF-8, separated by commas"},
		"no header":                 {one + ",exists\n", "its first line must be a header with token, finding, order, merchant"},
		"no column finding":         {"token,found\n", "its first line must be a header with token, finding, order, merchant"},
		"a column twice":            {"token,finding,Finding\n", "its header has the column finding twice"},
		"semicolons":                {"token;finding\n" + one + ";exists\n", "separated by commas"},
		"quoted, with semicolons":   {"\"token\";\"finding\"\r\n", "separated by commas"},
		"UTF-16":                    {"\xff\xfet\x00o\x00", "it is not UTF-8: save it as CSV in UTF-8"},
		"another encoding":          {header + one + ",exists,\"{\"\"a\"\":\"\"\xe9\"\"}\"\n", "it is not UTF-8"},
		"broken quotes":             {header + one + ",exists,\n" + two + ",exists,\"" + secret + "\n", "line 3: "},
		"no token":                  {header + "\n,A-1,,exists,\n", "line 3: the token is missing, or not whole"},
		"a cut token":               {header + one[:len(one)-1] + ",exists,\n", "line 2: the token is missing, or not whole"},
		"a token in lower case":     {header + strings.ToLower(one) + ",,\n", "line 2: the token is missing, or not whole"},
		"an unknown finding":        {header + two + ",absent,\n" + one + "," + secret + ",\n", `line 3: order "A-1": the finding is exists, absent or empty`},
		"an order twice":            {header + one + ",exists,\n" + two + ",,\n" + one + ",absent,\n", `line 4: `},
		"an invoice of nothing":     {header + one + ",,{}\n", `line 2: order "A-1": the finding is exists, absent or empty`},
		"an invoice that is absent": {header + two + ",exists,\n" + one + ",absent,{}\n", `line 3: `},
		"an invoice of text":        {header + one + ",exists," + secret + "\n", `line 2: order "A-1": the invoice is not a JSON object`},
		"a whole response":          {header + one + `,exists,"{""message"":"""",""result"":{}}"` + "\n", `line 2: order "A-1": the invoice is a whole response: give only its member "result"`},
		"many wrong lines":          {header + ",,x,,\n" + one + ",exists,\n,,y,,\n", "line 2: the token is missing, or not whole: copy it again from orders pending\nline 4: the token"},
		"a large file":              {header + strings.Repeat("\n", maxFile), "it has more than 16777216 bytes"},
	} {
		got := w.run(t, "resolve --by anna --margin 1s --from", file(t, test.text))
		assert.Equal(t, exitUsage, got.code, name)
		assert.Contains(t, got.err, test.err, name)
		assert.NotContains(t, got.err, secret, name)
		w.states(t, "A-1 unknown", "A-2 unknown")
	}
	w.want(t, exitUsage, "--invoice: the invoice is not a JSON object", "resolve --exists --by anna --token "+rows[1][0], "--invoice", file(t, ""))
	w.want(t, exitUsage, "By: is required", "resolve --exists --token "+rows[1][0]+" --by", " ")
}

// A file may have LF, blank lines, short rows, rows of a person's notes, and invoices. A full disk does not undo it.
func TestResolve_lenient(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-1", "A-2", "A-3")
	rows := w.listed(t, nil)
	text := "note,merchant,Order ,finding,token,INVOICE\n\n,,A-1,exists," + rows[1][0] + `,"{""id"": ""4711""}"` +
		"\nlater,,A-2,,\" " + rows[2][0] + "\"\n3 in all\n,,,\n" + "x,,A-3,absent," + rows[3][0]
	got := w.want(t, exitDone, "", "resolve --by anna -o json --from", file(t, text), "--note", "by phone")
	assert.Equal(t, resolvedRecord{Exist: 1, Absent: 1, Left: 1}, decode[resolvedRecord](t, got.stdout))
	shown := decode[orderRecord](t, w.run(t, "show A-1 -o json").stdout)
	assert.JSONEq(t, `{"id": "4711"}`, string(shown.Invoice))
	require.Len(t, shown.Findings, 1)
	assert.Equal(t, "anna by phone exists", shown.Findings[0].By+" "+shown.Findings[0].Note+" "+shown.Findings[0].Finding)

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
		"CR alone":   {"order,merchant\rA-8,\rA-9,\r", "the file: its header has control characters"},
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

// Cells that a spreadsheet or another tool can have changed are refused, with their lines, unless they are exact.
func TestMark_changed(t *testing.T) {
	for looks, cells := range map[string][]string{
		"a number with":                 {"1001.0", "1,003", "1.003,00", "1 003", "1'003", "1.23E+17", "1,23457E+017", "1e5", "-5", ".5", "$10", "10 €", "12%", "(1,003)"},
		"a number that lost its digits": {"12345678901234500"},
		"an error or":                   {"#N/A", "#NAME?", "#BEZUG!", "####", "#", "NULL", "null", "None", "nan", "NaN", "<NA>", "N/A", "(null)", `\N`},
		"a date or a time":              {"2026-11-28", "2026-11-28 00:00:00", "2026-11-28T03:14:15Z", "28.11.2026", "11/28/26", "11/28", "01. Feb", "17-Nov", "1. Mrz", "28 Nov 2026", "Sep-01", "11:28", "3:14:15 PM"},
		"a formula or":                  {`="1001"`, "=A1", `"1001"`, "'1001"},
		"a text with":                   {"１００１", "A-１７", "A–17", "−17", "Invoice…", "١٠٠١"},
		"":                              {"1001", "0017", "A-17", "2026-0001", "2026-11-0001", "#1001", "DEC-1001", "17-ABC", "0e", "1001-1", "A.17", "A,17", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "'=1+1", "''x", "123456789012345678", "12345678901234560", "Größe-1", "nana", "may", "1_000"},
	} {
		for _, cell := range cells {
			if got := changeOf(cell); looks == "" && got != "" || !strings.HasPrefix(got, looks) {
				t.Errorf("%s looks like %q, want %q", cell, got, looks)
			}
		}
	}
	w := newSQLite(t)
	const text = "merchant,order\nnorth,1001.0\n#N/A,A-9\n28.11.2026,1E5\n"
	got := w.want(t, exitUsage, "nothing was marked:\nline 2: the order looks like a number with a point", "mark --from", file(t, text))
	for _, line := range []string{"\nline 3: the merchant looks like an error", "\nline 4: the order looks like a number", "\nline 4: the merchant looks like a date"} {
		assert.Contains(t, got.err, line)
	}
	assert.Contains(t, got.err, "Import the columns as text. If each cell is exactly what the order or merchant is called, give --exact")
	w.states(t, "north/1001.0 free")
	w.want(t, exitDone, "marked  3\n", "mark --exact --from", file(t, text))
	w.states(t, "north/1001.0 unknown", "28.11.2026/1E5 unknown")
}

// The database can be given as the shop's own driver is, with its settings.
func TestDatabase_forms(t *testing.T) {
	server, err := mariadb()
	require.NoError(t, err)
	postgres, maria, sqlite := newShop(t, postgresURL(t)), newShop(t, mariaDBURL(t)), newSQLite(t)
	for form, w := range map[string]*shop{
		postgres.url + "&pool_max_conn_idle_time=2m&pool_max_conns=4&default_query_exec_mode=exec":                                   postgres,
		maria.url + "?interpolateParams=true&rejectReadOnly=true&loc=Asia/Kolkata&time_zone=%27%2B05:30%27&tls=preferred":            maria,
		"shop:" + password + "@tcp(127.0.0.1:" + server.Port + ")/shop?interpolateParams=true&rejectReadOnly=true":                   maria,
		"file:" + (&url.URL{Path: sqlite.url[len("sqlite:"):]}).EscapedPath() + "?_pragma=busy_timeout(1)&_pragma=journal_mode(WAL)": sqlite,
	} {
		t.Setenv(envDB, form)
		w.want(t, exitDone, "there is nothing to do", "migrate")
	}
}

// A read-only server has changed nothing, and no error says that it may have.
func TestResolve_readOnly(t *testing.T) {
	w := newShop(t, mariaDBURL(t))
	w.loses(t, "A-1")
	token := w.listed(t, nil)[1][0]
	t.Setenv(envDB, w.url+"?tx_read_only=1")
	for _, line := range []string{"resolve --exists --by anna --token " + token, "mark --from " + file(t, "order\nA-2\n"), "prune --days 1"} {
		got := w.want(t, exitFailed, "the server is read-only, as a replica is", line)
		assert.NotContains(t, got.err, "may ")
		assert.NotContains(t, got.err, "run it again")
	}
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
		"a setting of its driver": {"mysql://u:" + escaped + "@127.0.0.1:1/d?timeout=" + escaped, wrong, exitUsage},
		"the driver's own form":   {"u:" + secret + "@tcp(127.0.0.1:1)/d", "connect", exitFailed},
		"a wrong form of its own": {"u:" + secret + "@tcp(127.0.0.1:1", wrong, exitUsage},
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
