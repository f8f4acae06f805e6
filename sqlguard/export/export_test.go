package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/cryptogw/gateway/sqlguard/export"
)

var columns = export.Columns{OrderID: "order_id", InvoiceID: "id", CreatedAt: "created", Price: "price", Amount: "amount"}

const header = "order_id,id,created,price,amount,state\n"

// text is a row in the form of a test.
func text(r sqlguard.StatementRow) string {
	return fmt.Sprintf("%d %s %s %s %s %s %s", r.Number, r.OrderID, r.InvoiceID, r.CreatedAt.Format(time.RFC3339Nano), amount(r.Price), amount(r.Amount), r.Invoice)
}

func amount(d decimal.NullDecimal) string {
	if !d.Valid {
		return "-"
	}
	return d.Decimal.StringFixed(max(0, -d.Decimal.Exponent()))
}

func texts(rows []sqlguard.StatementRow) (all []string) {
	for _, r := range rows {
		all = append(all, text(r))
	}
	return all
}

func TestCSV(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file string
		want []string
	}{
		"all columns": {
			header + "A-1,i-1,2026-01-02T03:04:05Z,10.50,0.00031,paid\n",
			[]string{`2 A-1 i-1 2026-01-02T03:04:05Z 10.50 0.00031 {"order_id":"A-1","id":"i-1","created":"2026-01-02T03:04:05Z","price":"10.50","amount":"0.00031","state":"paid"}`},
		},
		"CR LF, quotes, a comma and a line end inside": {
			"order_id,id,created,price,amount,\"a \"\"note\"\"\"\r\n\"A-1\",i-1,2026-01-02T03:04:05.678+05:30,10,1,\"one,\r\ntwo\"\r\nA-2,i-2,2026-01-02T03:04:05-01:00,007,1,\r\n",
			[]string{
				`2 A-1 i-1 2026-01-01T21:34:05.678Z 10 1 {"order_id":"A-1","id":"i-1","created":"2026-01-02T03:04:05.678+05:30","price":"10","amount":"1","a \"note\"":"one,\ntwo"}`,
				`4 A-2 i-2 2026-01-02T04:04:05Z 7 1 {"order_id":"A-2","id":"i-2","created":"2026-01-02T03:04:05-01:00","price":"007","amount":"1","a \"note\"":""}`,
			},
		},
		"two invoices of one order": {
			header + "A-1,i-1,2026-01-02T03:04:05Z,1,1,\nA-1,i-2,2026-01-02T03:04:05Z,1,1,\n",
			[]string{
				`2 A-1 i-1 2026-01-02T03:04:05Z 1 1 {"order_id":"A-1","id":"i-1","created":"2026-01-02T03:04:05Z","price":"1","amount":"1","state":""}`,
				`3 A-1 i-2 2026-01-02T03:04:05Z 1 1 {"order_id":"A-1","id":"i-2","created":"2026-01-02T03:04:05Z","price":"1","amount":"1","state":""}`,
			},
		},
		"no rows": {header, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, err := export.CSV(iotest.OneByteReader(strings.NewReader(tt.file)), columns)
			if got := strings.Join(texts(rows), "\n"); err != nil || got != strings.Join(tt.want, "\n") {
				t.Errorf("%s\n%v", got, err)
			}
		})
	}
}

// A fault is a file that is refused.
type fault struct {
	name   string
	file   string
	row    int
	column string
	reason string // a part of it
}

func (f fault) check(t *testing.T, rows []sqlguard.StatementRow, err error) {
	t.Helper()
	refusal, ok := errors.AsType[*export.RowError](err)
	if !ok || rows != nil || refusal.Row != f.row || refusal.Column != f.column || !strings.Contains(refusal.Reason, f.reason) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, %v, want row %d, column %q: %s", rows, err, f.row, f.column, f.reason)
	}
}

const (
	good    = "A-1,i-1,2026-01-02T03:04:05Z,10.50,0.25,paid\n"
	another = "A-2,i-2,2026-01-02T03:04:05Z,10.50,0.25,paid\n"
)

var csvFaults = []fault{
	{"nothing", "", 1, "", "is empty: export it again"},
	{"a byte-order mark", "\uFEFF" + header + good, 1, "", "byte-order mark: save"},
	{"UTF-16", "\xff\xfeo\x00\n\x00", 1, "", "is not UTF-8"},
	{"Latin-1", header + "M\xfcller" + good, 2, "", "is not UTF-8"},
	{"a NUL", header + "A\x00" + good, 2, "", "NUL"},
	{"no header", good + another, 1, "order_id", "is not in the header"},
	{"semicolons", strings.ReplaceAll(header+good, ",", ";"), 1, "order_id", "commas between the columns"},
	{"a column in another case", strings.ToUpper(header) + good, 1, "order_id", `"ORDER_ID,ID,`},
	{"a column twice", "id," + header + "i," + good, 1, "id", "twice in the header"},
	{"two columns without name", "," + strings.TrimSuffix(header, "\n") + ",\n", 1, "", "twice in the header"},
	{"a field too few", header + good + "A-2,i-2,2026-01-02T03:04:05Z,10.50,0.25\n", 3, "", "has 5 fields, and the header has 6"},
	{"a field too many", header + good + "A-2,i-2,2026-01-02T03:04:05Z,10,50,0,5,paid\n", 3, "", "has 8 fields"},
	{"an empty line", header + good + "\n" + another, 3, "", "has 1 fields"},
	{"a cut last row", header + good + another[:20], 3, "", "may have been cut"},
	{"only its line end cut", header + good + another[:len(another)-1], 3, "", "may have been cut"},
	{"a cut header", header[:len(header)-1], 1, "", "may have been cut"},
	{"a quote without end", header + good + `A-2,i-2,2026-01-02T03:04:05Z,10.50,0.25,"paid` + "\n" + good, 3, "", "that no other one ends"},
	{"a quote without end in a large file", header + "\"" + strings.Repeat(good, 2000), 2, "", "longer than 64 KiB, or has a quote"},
	{"a quote without end before empty lines", header + "\"" + strings.Repeat("\n", export.MaxLine+1), 2, "", "longer than 64 KiB, or has a quote"},
	{"text after a quote", header + `"A"-1` + good[3:], 2, "", "after the quote"},
	{"a quote in the middle", header + `="A-1"` + good[3:], 2, "", "inside a field without quotes"},
	{"lines that end with CR", strings.ReplaceAll(header+good, "\n", "\r") + "\n", 1, "", "a line end inside a field"},
	{"a long line", header + strings.Repeat("A", export.MaxLine) + good, 2, "", "longer than 64 KiB"},
	{"an empty id", header + good[3:], 2, "order_id", "is empty"},
	{"an empty id of an invoice", header + strings.Replace(good, "i-1", "", 1), 2, "id", "leave the column out"},
	{"an empty time", header + strings.Replace(good, "2026-01-02T03:04:05Z", "", 1), 2, "created", "is empty"},
	{"an empty amount", header + strings.Replace(good, "0.25", "", 1), 2, "amount", "is empty"},
	{"a leading space", header + " " + good, 2, "order_id", "a space or a character of no width"},
	{"a trailing space", header + strings.Replace(good, "A-1", "A-1 ", 1), 2, "order_id", "a space"},
	{"a no-break space", header + strings.Replace(good, "i-1", "i-1\u00a0", 1), 2, "id", `"i-1\u00a0"`},
	{"a space of no width", header + "\u200b" + good, 2, "order_id", `"\u200bA-1"`},
	{"a byte-order mark in a row", header + "\uFEFF" + good, 2, "order_id", "a character of no width"},
	{"a tab inside an id", header + "A\t" + good, 2, "order_id", "control character"},
	{"an id that a spreadsheet has written", header + "4.7112E+15" + good[3:], 2, "order_id", "export it as text"},
	{"an id of 1,025 bytes", header + strings.Repeat("A", 1025) + good[3:], 2, "order_id", "longer than 1,024"},
	{"ids that differ in case only", header + good + "a-1" + another[3:], 3, "order_id", "differs from that of row 2 in case"},
	{"the same row twice", header + good + another + good, 4, "", "the same as an earlier row"},
	{"two rows of one invoice", header + good + strings.Replace(another, "i-2", "I-1", 1), 3, "id", "is that of row 2"},
}

var badTimes = []string{
	"2026-01-02T03:04:05", "2026-01-02 03:04:05Z", "2026-01-02", "02.01.2026 03:04", "1767322800", "2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05+01",
	"2026-01-02T3:04:05Z", "2026-02-30T03:04:05Z", "2026-01-02t03:04:05z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05 CET", "0001-01-01T00:00:00Z", "2026-01-02T24:00:00Z",
}

var badAmounts = []string{
	"1 000.50", "1'000", "+1", "-1", "1e3", "1E3", "$10.50", "10.50 EUR", ".5", "5.", "1.2.3", "0x10", "NaN", "١", "1_000", "10.50 ", "１",
	"0.0000000000000000000000000000001", strings.Repeat("9", 65),
}

func TestCSV_refuses(t *testing.T) {
	t.Parallel()
	faults := csvFaults
	for _, at := range badTimes {
		faults = append(faults, fault{"the time " + at, header + strings.Replace(good, "2026-01-02T03:04:05Z", at, 1), 2, "created", "with its zone"})
	}
	for _, a := range append(badAmounts, `"1,000.50"`, `"10,50"`) {
		faults = append(faults, fault{"the price " + a, header + strings.Replace(good, "10.50", a, 1), 2, "price", "must be digits"})
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			rows, err := export.CSV(strings.NewReader(f.file), columns)
			f.check(t, rows, err)
		})
	}
}

func TestJSONLines(t *testing.T) {
	t.Parallel()
	rows, err := export.JSONLines(strings.NewReader(
		`{"order_id":"A-1","id":4711,"created":"2026-01-02T03:04:05+01:00","price":10.50,"amount":"0.00031","buyer":{"id":1,"amount":[]}}`+"\n"+
			` { "amount" : 12345678901234567890.123456789012345678901234567890 , "order_id" : "\u0041-2", "id":"i-2", "price":"7","created":"2026-01-02T03:04:05Z" } `+"\r\n"), columns)
	want := `1 A-1 4711 2026-01-02T02:04:05Z 10.50 0.00031 {"order_id":"A-1","id":4711,"created":"2026-01-02T03:04:05+01:00","price":10.50,"amount":"0.00031","buyer":{"id":1,"amount":[]}}
2 A-2 i-2 2026-01-02T03:04:05Z 7 12345678901234567890.123456789012345678901234567890 {"amount":12345678901234567890.123456789012345678901234567890,"order_id":"\u0041-2","id":"i-2","price":"7","created":"2026-01-02T03:04:05Z"}`
	if got := strings.Join(texts(rows), "\n"); err != nil || got != want {
		t.Errorf("%s\n%v", got, err)
	}
}

// line is a row of JSON lines in which a value is replaced.
func line(old, with string) string {
	whole := `{"order_id":"A-1","id":"i-1","created":"2026-01-02T03:04:05Z","price":10.50,"amount":0.25}`
	return strings.Replace(whole, old, with, 1) + "\n"
}

var jsonFaults = []fault{
	{"nothing", "", 1, "", "is empty"},
	{"a byte-order mark", "\uFEFF" + line("", ""), 1, "", "byte-order mark"},
	{"an empty line", line("", "") + "\n", 2, "", "must be a JSON object"},
	{"an array", "[" + strings.TrimSpace(line("", "")) + "]\n", 1, "", "no array around them"},
	{"two objects in a line", strings.TrimSpace(line("", "")) + line("A-1", "A-2"), 1, "", "one JSON object"},
	{"a cut line", line("", "")[:50] + "\n", 1, "", "one JSON object"},
	{"a cut last line", line("", "") + line("A-1", "A-2")[:50], 2, "", "may have been cut"},
	{"a member twice", line(`{`, `{"order_id":"A-1",`), 1, "", "there twice"},
	{"another member twice", line(`{`, `{"a":1,"a":2,`), 1, "", "there twice"},
	{"a member twice by another spelling", line(`{`, `{"order\u005fid":"A-1",`), 1, "", "there twice"},
	{"half of a character", line(`A-1`, `A\ud800`), 1, "", "one JSON object"},
	{"a member that is missing", line(`"id":"i-1",`, ``), 1, "id", "is empty"},
	{"a member in another case", line(`order_id`, `Order_ID`), 1, "order_id", "is empty"},
	{"null", line(`"i-1"`, `null`), 1, "id", "is empty"},
	{"an id that is an object", line(`"A-1"`, `{"id":1}`), 1, "order_id", "must be a text"},
	{"an id that is false", line(`"A-1"`, `false`), 1, "order_id", "must be a text"},
	{"an id that is a number with a decimal place", line(`"A-1"`, `1.0`), 1, "order_id", "must be a text"},
	{"an id that is a number with an exponent", line(`"A-1"`, `4711e3`), 1, "order_id", "must be a text"},
	{"an id that is a number of 16 digits", line(`"A-1"`, `1234567890123456`), 1, "order_id", "at most 15 digits"},
	{"an id that is below zero", line(`"A-1"`, `-1`), 1, "order_id", "must be a text"},
	{"a time that is a number", line(`"2026-01-02T03:04:05Z"`, `1767322800`), 1, "created", "with its zone"},
	{"an amount with an exponent", line(`0.25`, `5e-1`), 1, "amount", "without sign, exponent"},
	{"an amount below zero", line(`0.25`, `-0.25`), 1, "amount", "without sign"},
	{"an amount that is a list", line(`0.25`, `[0.25]`), 1, "amount", "must be digits"},
	{"the same row twice", line("", "") + line(",", " , "), 2, "", "the same as an earlier row"},
	{"two rows of one invoice", line("", "") + line("A-1", "A-2"), 2, "id", "is that of row 1"},
	{"ids that differ in case only", line("", "") + line(`"A-1","id":"i-1"`, `"a-1","id":"i-2"`), 2, "order_id", "in case only"},
	{"a long line", strings.Repeat(" ", export.MaxLine) + line("", ""), 1, "", "longer than 64 KiB"},
	{"a line of many levels", `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}\n", 1, "", "one JSON object"},
}

func TestJSONLines_refuses(t *testing.T) {
	t.Parallel()
	faults := jsonFaults
	for _, at := range badTimes {
		faults = append(faults, fault{"the time " + at, line("2026-01-02T03:04:05Z", at), 1, "created", "with its zone"})
	}
	for _, a := range append(badAmounts, "1,000.50", "10,50") {
		faults = append(faults, fault{"the price " + a, line("10.50", `"`+a+`"`), 1, "price", "must be digits"})
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			rows, err := export.JSONLines(strings.NewReader(f.file), columns)
			f.check(t, rows, err)
		})
	}
}

// endless is a file of as many rows as a test wants.
type endless struct {
	row func(i int) string
	i   int
	buf bytes.Buffer
}

func (e *endless) Read(p []byte) (int, error) {
	for e.buf.Len() < len(p) {
		e.buf.WriteString(e.row(e.i))
		e.i++
	}
	return e.buf.Read(p)
}

func TestCSV_limits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		header, pad string
		reason      string
	}{
		"a million rows":         {"order_id\n", "", "one too many"},
		"256 MiB":                {"order_id,pad\n", "," + strings.Repeat("x", 8000), "behind the first 256 MiB"},
		"a long header as JSON":  {"order_id," + strings.Repeat("x", 60_000) + "\n", "," + strings.Repeat("x", 6000), "is too large as JSON"},
		"the names in each line": {"order_id," + strings.Repeat("x", 30_000) + "\n", ",", "is too large as JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, err := export.CSV(&endless{row: func(i int) string {
				if i == 0 {
					return tt.header
				}
				return fmt.Sprint(i, tt.pad, "\n")
			}}, export.Columns{})
			refusal, ok := errors.AsType[*export.RowError](err)
			if !ok || rows != nil || !strings.Contains(refusal.Reason, tt.reason) {
				t.Errorf("%d rows, %v", len(rows), err)
			}
			if name == "a million rows" && refusal.Row != export.MaxRows+2 {
				t.Error(err)
			}
		})
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(io.Reader, export.Columns) ([]sqlguard.StatementRow, error){"CSV": export.CSV, "JSONLines": export.JSONLines} {
		_, err := read(strings.NewReader(""), export.Columns{Amount: "order_id"})
		if refusal, ok := errors.AsType[*gateway.ArgumentError](err); !ok || refusal.Name != "c" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := read(iotest.ErrReader(io.ErrUnexpectedEOF), columns); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// checkRows fails if rows break a promise of the package.
func checkRows(t *testing.T, rows []sqlguard.StatementRow) {
	t.Helper()
	ids, last := map[string]bool{}, 0
	for _, r := range rows {
		if r.OrderID == "" || !utf8.ValidString(r.OrderID) || strings.TrimSpace(r.OrderID) != r.OrderID || r.InvoiceID == "" || ids[r.InvoiceID] || r.Number <= last ||
			!json.Valid(r.Invoice) || len(r.Invoice) > export.MaxLine || r.CreatedAt.IsZero() || !r.Price.Valid || r.Amount.Decimal.IsNegative() {
			t.Errorf("%+v", r)
		}
		ids[r.InvoiceID], last = true, r.Number
	}
}

// addFaults are seeds; large ones would be slow.
func addFaults(f *testing.F, faults []fault) {
	for _, fault := range faults {
		if len(fault.file) < 4096 {
			f.Add([]byte(fault.file))
		}
	}
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte(header + good + another))
	addFaults(f, csvFaults)
	f.Fuzz(func(t *testing.T, file []byte) {
		rows, err := export.CSV(bytes.NewReader(file), columns)
		if err != nil {
			if _, ok := errors.AsType[*export.RowError](err); !ok || rows != nil {
				t.Fatalf("%v, %v", rows, err)
			}
			return
		}
		checkRows(t, rows)
		others, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
		if err != nil || len(others) != len(rows)+1 {
			t.Fatalf("%d rows, and by encoding/csv %v, %v", len(rows), others, err)
		}
		for i, other := range others[1:] {
			var object map[string]string
			if err := json.Unmarshal(rows[i].Invoice, &object); err != nil {
				t.Fatal(err)
			}
			for j, name := range others[0] {
				if object[name] != other[j] {
					t.Errorf("%s, and by encoding/csv %q", rows[i].Invoice, other)
				}
			}
		}
	})
}

func FuzzJSONLines(f *testing.F) {
	f.Add([]byte(line("", "")))
	addFaults(f, jsonFaults)
	f.Fuzz(func(t *testing.T, file []byte) {
		rows, err := export.JSONLines(bytes.NewReader(file), columns)
		if err != nil {
			if _, ok := errors.AsType[*export.RowError](err); !ok || rows != nil {
				t.Fatalf("%v, %v", rows, err)
			}
			return
		}
		checkRows(t, rows)
		for i, other := range bytes.Split(bytes.TrimSuffix(file, []byte("\n")), []byte("\n")) {
			var object map[string]json.RawMessage
			if err := json.Unmarshal(other, &object); err != nil {
				t.Fatal(err)
			}
			var id any
			_ = json.Unmarshal(object["order_id"], &id)
			if text, ok := id.(string); ok && text != rows[i].OrderID || !ok && rows[i].OrderID != string(object["order_id"]) {
				t.Errorf("%+v, and by encoding/json %s", rows[i], other)
			}
		}
	})
}
