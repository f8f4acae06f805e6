package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// textOf is a row in the form of the tests.
func textOf(r sqlguard.StatementRow) string {
	at := "-"
	if !r.CreatedAt.IsZero() {
		at = r.CreatedAt.Format(time.RFC3339Nano)
	}
	text := fmt.Sprintf("%d %s %s %s %s %s %s", r.Number, dash(r.OrderID), dash(r.InvoiceID), at, amountOf(r.Price), amountOf(r.Amount), dash(r.State))
	if r.Fault != "" {
		text += ": " + r.Fault
	}
	return text
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func amountOf(d decimal.NullDecimal) string {
	if !d.Valid {
		return "-"
	}
	return d.Decimal.String()
}

func textsOf(rows []sqlguard.StatementRow) string {
	var all []string
	for _, r := range rows {
		all = append(all, textOf(r))
	}
	return strings.Join(all, "\n")
}

const head = "order_id,id,created,price,amount,state\n"

var all = export.Settings{Invoice: "id", Created: "created", Price: "price", Amount: "amount", State: "state"}

// with is the settings of most tests with a change.
func with(change func(*export.Settings)) export.Settings {
	s := all
	change(&s)
	return s
}

const (
	good    = "A-1,i-1,2026-01-02T03:04:05Z,10.50,0.25,Paid\n"
	goodRow = "2 A-1 i-1 2026-01-02T03:04:05Z 10.5 0.25 Paid"
)

// put is the good record with another text in the place of one.
func put(old, text string) string { return head + strings.Replace(good, old, text, 1) }

var files = []struct {
	name string
	file string
	s    export.Settings
	want string
}{
	{"a record", head + good, all, goodRow},
	{"no record", head, all, ""},
	{"CR LF, quotes, a separator and a line end inside", "order_id,note,x\r\n\"A-1\",\"one,\r\n\"\"two\"\"\",\r\nA-2,,\r\n", export.Settings{}, "2 A-1 - - - - -\n4 A-2 - - - - -"},
	{"a byte-order mark", "\uFEFF" + head + good, all, goodRow},
	{"UTF-16", "\xff\xfeo\x00r\x00d\x00e\x00r\x00_\x00i\x00d\x00\n\x00A\x00\xfc\x00\n\x00", export.Settings{}, "2 Aü - - - - -"},
	{"semicolons", strings.ReplaceAll(head+good, ",", ";"), all, goodRow},
	{"tabs", strings.ReplaceAll(head+good, ",", "\t"), all, goodRow},
	{"another separator", strings.ReplaceAll(head+good, ",", "^"), with(func(s *export.Settings) { s.Separator = "^" }), goodRow},
	{"a title before the header", "Invoices of November;\r\n\r\nMerchant;17\r\n" + strings.ReplaceAll(head+good, ",", ";"), all, "5" + goodRow[1:]},
	{"a line for a spreadsheet", "sep=;\r\n" + strings.ReplaceAll(head+good, ",", ";"), all, "3" + goodRow[1:]},
	{"a header in another case, with spaces", strings.ToUpper(strings.ReplaceAll(head, ",", " , ")) + good, all, goodRow},
	{"blank lines, and lines of separators", head + "\n" + good + "\n,,,,,\n \n", all, "3" + goodRow[1:]},
	{"no last line end", strings.TrimSuffix(head+good, "\n"), export.Settings{Invoice: "id", Price: "price"}, "2 A-1 i-1 - 10.5 - -"},
	{"no last line end behind a column that is read", strings.TrimSuffix(head+good, "\n"), all, goodRow + ": it is the last one, and its line has no end, so that it may have been cut"},

	{"a time with a space", put("T03", " 03"), all, goodRow},
	{"a time with fractions", put("05Z", "05.678Z"), all, "2 A-1 i-1 2026-01-02T03:04:05.678Z 10.5 0.25 Paid"},
	{"UTC", put("T03:04:05Z", " 03:04:05 UTC"), all, goodRow},
	{"+0000", put("05Z", "05+0000"), all, goodRow},
	{"a zone after a space", put("T03:04:05Z", " 04:04:05 +01:00"), all, goodRow},
	{"a time without zone", put("05Z", "05"), all, `2 A-1 i-1 - 10.5 0.25 Paid: the column of created is "2026-01-02T03:04:05", without a zone: name the zone in the settings`},
	{"a time without zone, of a zone", put("05Z", "05"), with(func(s *export.Settings) { s.Zone = "Europe/Berlin" }), "2 A-1 i-1 2026-01-02T02:04:05Z 10.5 0.25 Paid"},
	{"an hour that is there twice", put("2026-01-02T03:04:05Z", "2026-10-25 02:30:00"), with(func(s *export.Settings) { s.Zone = "Europe/Berlin" }), `2 A-1 i-1 - 10.5 0.25 Paid: the column of created is "2026-10-25 02:30:00", when the clocks of Europe/Berlin are changed`},
	{"an hour that is not there", put("2026-01-02T03:04:05Z", "2026-03-29 02:30:00"), with(func(s *export.Settings) { s.Zone = "Europe/Berlin" }), `2 A-1 i-1 - 10.5 0.25 Paid: the column of created is "2026-03-29 02:30:00", when the clocks of Europe/Berlin are changed`},
	{"day and month", put("2026-01-02T03:04:05Z", "02.01.2026 03:04:05"), with(func(s *export.Settings) { s.Zone, s.TimeLayout = "UTC", "02.01.2006 15:04:05" }), goodRow},
	{"month and day", put("2026-01-02T03:04:05Z", "01/02/2026 03:04:05 AM"), with(func(s *export.Settings) { s.Zone, s.TimeLayout = "UTC", "01/02/2006 03:04:05 PM" }), goodRow},
	{"day and month that nobody has named", put("2026-01-02T03:04:05Z", "02.01.2026 03:04:05"), all, `2 A-1 i-1 - 10.5 0.25 Paid: the column of created is "02.01.2026 03:04:05", and no time in a form that is known: name the timeLayout in the settings`},
	{"seconds since 1970", put("2026-01-02T03:04:05Z", "1767323045"), with(func(s *export.Settings) { s.TimeLayout = "unix" }), goodRow},
	{"milliseconds since 1970", put("2026-01-02T03:04:05Z", "1767323045000"), with(func(s *export.Settings) { s.TimeLayout = "unix-ms" }), goodRow},
	{"milliseconds for seconds", put("2026-01-02T03:04:05Z", "1767323045000"), with(func(s *export.Settings) { s.TimeLayout = "unix" }), `2 A-1 i-1 - 10.5 0.25 Paid: the column of created is "1767323045000", and no time in a form that is known: name the timeLayout in the settings`},
	{"no time", put("2026-01-02T03:04:05Z", ""), all, `2 A-1 i-1 - 10.5 0.25 Paid: the column of created is empty`},

	{"an exponent, a currency, a separator of thousands", put("10.50,0.25", `"$1,010.50",1e-8 BTC`), all, "2 A-1 i-1 2026-01-02T03:04:05Z 1010.5 0.00000001 Paid"},
	{"a decimal comma", put("10.50,0.25", `"1.010,50","0,25"`), with(func(s *export.Settings) { s.DecimalComma = true }), "2 A-1 i-1 2026-01-02T03:04:05Z 1010.5 0.25 Paid"},
	{"a decimal comma that nobody has named", put("10.50", `"10,50"`), all, `2 A-1 i-1 2026-01-02T03:04:05Z - 0.25 Paid: the column of price is "10,50", and no amount as the settings have it`},
	{"a comma that may be either", put("10.50", `"1,050"`), all, `2 A-1 i-1 2026-01-02T03:04:05Z - 0.25 Paid: the column of price is "1,050", and no amount as the settings have it`},
	{"a point that may be either", put("10.50", "1.05"), with(func(s *export.Settings) { s.DecimalComma = true }), `2 A-1 i-1 2026-01-02T03:04:05Z - - Paid: the column of price is "1.05", and no amount as the settings have it`},
	{"an amount below zero", put("10.50", "-10.50"), all, `2 A-1 i-1 2026-01-02T03:04:05Z - 0.25 Paid: the column of price is "-10.50", and no amount as the settings have it`},
	{"leading zeros, and none", put("10.50,0.25", "0010.50,"), all, "2 A-1 i-1 2026-01-02T03:04:05Z 10.5 - Paid"},

	{"spaces around an id", put("A-1,i-1", " A-1 ,i-1\u00a0"), all, goodRow},
	{"an id as a spreadsheet keeps it", put("A-1", `"=""0017"""`), all, "2 0017" + goodRow[5:]},
	{"an id as gateway-orders export writes it", put("A-1", "'=A-1"), all, "2 =A-1" + goodRow[5:]},
	{"an id with an exponent", put("A-1", "4.7112E+15"), all, `2 -` + goodRow[5:] + `: the column of order is "4.7112E+15", as a spreadsheet writes a number: export it as text`},
	{"an id in Latin-1", put("A-1", "M\xfcller"), all, `2 -` + goodRow[5:] + `: the column of order is not UTF-8`},
	{"an id with a control character", put("A-1", "A\x00-1"), all, `2 -` + goodRow[5:] + `: the column of order has a control character`},
	{"an id that is too long", put("A-1", strings.Repeat("A", 1025)), all, `2 -` + goodRow[5:] + `: the column of order is longer than 1,024 bytes`},
	{"no order, as of an invoice that was made by hand", put("A-1", ""), all, "2 -" + goodRow[5:]},
	{"Latin-1 in a column that is not read", "order_id,note\nA-1,M\xfcller\n", export.Settings{}, "2 A-1 - - - - -"},

	{"a total in the last line", head + good + "Total,,,20.00\n", all, goodRow + "\n3 - - - - - -: it has 4 columns, and the header has 6"},
	{"a quote in a cell", put("A-1", `A"1`) + good, all, "2 - - - - - -: it is not CSV: bare \" in non-quoted-field\n3" + goodRow[1:]},
	{"a quote without end", head + `"` + good + good, all, "2 - - - - - -: a quote in it has no end until line 3"},
	{"a quote without end that another one ends", head + strings.ReplaceAll(good, "Paid", `"Paid`) + good + strings.ReplaceAll(good, "Paid", `Paid"`), all, "2 - - - - - -: a cell of it has other lines, as if a quote had no end"},

	{"a record for each payment", head + "A-1,i-1,2026-01-02T03:04:06Z,10.50,0.10,New\nA-1,i-1,2026-01-02T03:04:05Z,10.50,0.15,Paid\n,i-1,2026-01-02T03:04:07Z,10.50,0.15,Paid\n", all, "2 A-1 i-1 2026-01-02T03:04:05Z - - New, Paid"},
	{"an invoice of two orders", head + good + strings.Replace(good, "A-1", "A-2", 1), all, goodRow + ": it is of the invoice of row 3, with another order\n3 A-2" + goodRow[5:] + ": it is of the invoice of row 2, with another order"},
	{"two invoices of an order", head + good + strings.Replace(good, "i-1", "i-2", 1), all, goodRow + "\n3 A-1 i-2" + goodRow[9:]},
	{"another shop is left out", "order_id,shop\nA-1, a \nA-1,b\n", export.Settings{Where: map[string]string{"shop": "a"}}, "2 A-1 - - - - -"},

	{"JSON lines", `{"order_id":"A-1","id":4711,"created":"2026-01-02T03:04:05Z","price":10.50,"amount":"0.25","state":"Paid","x":{"id":[1]}}` + "\n\n" + `{"order_id":null}` + "\n", all, "1 A-1 4711 2026-01-02T03:04:05Z 10.5 0.25 Paid\n3 - - - - - -: the column of created is empty"},
	{"an array of JSON", "[\n" + `{"order_id":"A-1"}, {"order_id":17}` + "]", export.Settings{}, "1 A-1 - - - - -\n2 17 - - - - -"},
	{"a number that may have been rounded", `{"order_id":1234567890123456}`, export.Settings{}, `1 - - - - - -: the column of order is neither a text nor a whole number of at most 15 digits`},
	{"a line that is cut", `{"order_id":"A-1"}` + "\n" + `{"order_id":"A-2"`, export.Settings{}, "1 A-1 - - - - -\n2 - - - - - -: it is not one JSON object without a member that is there twice"},
	{"a member twice", `{"order_id":"A-1","order_id":"A-2"}`, export.Settings{}, "1 - - - - - -: it is not one JSON object without a member that is there twice"},
	{"text after an array", `[{"order_id":"A-1"}]<!-- 1 of 2 -->`, export.Settings{}, "1 A-1 - - - - -\n2 - - - - - -: what follows is not an array of JSON objects"},
	{"an array that is cut", `[{"order_id":"A-1"},{"order`, export.Settings{}, "1 A-1 - - - - -\n2 - - - - - -: what follows is not an array of JSON objects"},
	{"an array of texts", `["A-1"]`, export.Settings{}, "1 - - - - - -: it is not one JSON object without a member that is there twice"},
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, tt := range files {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file, err := export.Read(iotest.OneByteReader(strings.NewReader(tt.file)), tt.s)
			if got := textsOf(file.Rows); err != nil || got != tt.want {
				t.Errorf("%s\nwant\n%s\n%v", got, tt.want, err)
			}
			checkFile(t, file)
		})
	}
}

// What a record was is kept as JSON, and what was left out or repeated is counted.
func TestRead_keeps(t *testing.T) {
	t.Parallel()
	s := with(func(s *export.Settings) { s.Where = map[string]string{"state": "Paid"} })
	file, err := export.Read(strings.NewReader(head+good+good+strings.Replace(good, "Paid", "New", 1)), s)
	if err != nil || file.LeftOut != 1 || file.Repeated != 1 || len(file.Rows) != 1 ||
		string(file.Rows[0].Invoice) != `{"order_id":"A-1","id":"i-1","created":"2026-01-02T03:04:05Z","price":"10.50","amount":"0.25","state":"Paid"}` {
		t.Errorf("%+v, %v", file, err)
	}
	file, err = export.Read(strings.NewReader("order_id,note\nA-1,"+strings.Repeat("x", export.MaxRecord)+"\n"), export.Settings{})
	if err != nil || len(file.Rows) != 1 || file.Rows[0].Invoice != nil || file.Rows[0].Fault != "it has more than 64 KiB" {
		t.Errorf("%d, %v", len(file.Rows), err)
	}
}

// Files as real gateways export them, with the headers that they document and rows of our own.
func TestRead_gateways(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.csv")
	if err != nil || len(names) < 6 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".csv"), func(t *testing.T) {
			t.Parallel()
			text, err1 := os.ReadFile(name)
			settings, err2 := os.ReadFile(strings.TrimSuffix(name, ".csv") + ".json")
			want, err3 := os.ReadFile(strings.TrimSuffix(name, ".csv") + ".rows")
			s, err4 := export.ParseSettings(settings)
			file, err5 := export.Read(bytes.NewReader(text), s)
			got := textsOf(file.Rows) + fmt.Sprintf("\nrepeated %d, left out %d\n", file.Repeated, file.LeftOut)
			if err := errors.Join(err1, err2, err3, err4, err5); err != nil || got != string(want) {
				t.Errorf("%s\n%v", got, err)
			}
		})
	}
}

// A file of which nothing can be read is refused.
func TestRead_refuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file string
		s    export.Settings
		want string
	}{
		"nothing":                        {"\n \n", all, "the file is empty"},
		"no column of the order":         {"order,id\nA-1,i-1\n", export.Settings{}, `it has not the column of order: name it in the settings; it has ["order" "id"]`},
		"the column of the order twice":  {"order_id,order_id\nA-1,A-2\n", export.Settings{}, `it has the column of order twice`},
		"no column of a condition":       {head, export.Settings{Where: map[string]string{"shop": "a"}}, `it has not the column of where: name it in the settings`},
		"a page":                         {"<html><body>Sign in</body></html>", export.Settings{}, `the column of order`},
		"a column twice":                 {head, export.Settings{Price: "order_id"}, "Settings: name one column twice"},
		"a separator of two characters":  {head, export.Settings{Separator: "::"}, "Settings: have a separator"},
		"an unknown zone":                {head, export.Settings{Zone: "Nowhere"}, "Settings: have a zone that is not known"},
		"a layout without a zone":        {head, export.Settings{TimeLayout: "2006-01-02 15:04:05"}, "Settings: have a timeLayout without zone, and no zone"},
		"a layout with a name of a zone": {head, export.Settings{TimeLayout: "2006-01-02 15:04:05 MST"}, "Settings: have a timeLayout with MST"},
		"a layout of another language":   {head, export.Settings{TimeLayout: "yyyy-MM-dd", Zone: "UTC"}, "Settings: have a timeLayout without 2006"},
		"a million records and one":      {"order_id\n" + strings.Repeat("A\n", export.MaxRows+1), export.Settings{}, "more than 1,000,000 records"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := export.Read(strings.NewReader(tt.file), tt.s)
			if err == nil || !strings.Contains(err.Error(), tt.want) || file.Rows != nil {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	if _, err := export.Read(iotest.ErrReader(os.ErrDeadlineExceeded), all); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if _, err := export.ParseSettings([]byte(`{"untouched":["New"]}`)); !errors.Is(err, gateway.ErrInvalidArgument) || !strings.Contains(err.Error(), `unknown field "untouched"`) {
		t.Error(err)
	}
}

// checkFile fails if rows break a promise of the package.
func checkFile(t *testing.T, file export.File) {
	t.Helper()
	for i, r := range file.Rows {
		if !utf8.ValidString(r.OrderID) || strings.ContainsAny(r.OrderID, "\x00\r\n") || r.Invoice != nil && (!json.Valid(r.Invoice) || len(r.Invoice) > export.MaxRecord) ||
			i > 0 && r.Number <= file.Rows[i-1].Number || r.Price.Valid && r.Price.Decimal.IsNegative() || r.Fault == "" && r.Invoice == nil {
			t.Errorf("%+v", r)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, tt := range files {
		if len(tt.file) < 1<<10 {
			f.Add([]byte(tt.file))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if file, err := export.Read(bytes.NewReader(text), all); err == nil {
			checkFile(t, file)
		}
	})
}
