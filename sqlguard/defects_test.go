package sqlguard_test

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/cryptogw/gateway/sqlguard/export"
)

// A truth is a random table, and what the gateway really has.
type truth struct {
	rand   *mathrand.Rand
	began  time.Time
	orders []*trueOrder // by time
}

// A trueOrder is an order between two created ones, with a time in minutes since the truth began.
type trueOrder struct {
	id, state string // created, unknown, crashed or free
	minute    int
	price     string
	exists    bool
	paid      bool
}

// Kinds of ids, for defects that change some only.
var idKinds = map[string]string{"mixed": "Order-%04x", "numbers": "%08d", "long numbers": "77000000000%08d"}

// newTruth makes one in which a complete statement decides every unknown order: one exists and one does not at
// least, all are between two created ones, and an order was paid, and one not, before and after them.
func newTruth(seed uint64, kind string) *truth {
	r := mathrand.New(mathrand.NewPCG(seed, 24))
	t := &truth{rand: r, began: time.Now().UTC().Add(-72 * time.Hour).Truncate(time.Hour)}
	states := []string{"created", "created", "created", "created", "unknown", "unknown", "crashed", "free"}
	fixed := map[int]string{0: "created", 1: "created", 2: "unknown", 3: "unknown"}
	n := 8 + r.IntN(24)
	fixed[n-2], fixed[n-1] = "created", "created"
	for i := range n {
		o := &trueOrder{state: fixed[i], minute: 30 + i*540/n, price: fmt.Sprintf("%d.%02d", 1000+r.IntN(200), 1+r.IntN(99)), exists: r.IntN(2) == 0}
		if o.state == "" {
			o.state = states[r.IntN(len(states))]
		}
		switch {
		case i == 2 || i == 3:
			o.exists = i == 2
		case o.state == "created" || o.state == "free":
			o.exists = o.state == "created"
		}
		o.paid = o.state == "created" && (i == 0 || i == n-2 || i > 1 && i < n-2 && r.IntN(2) == 0)
		o.id = fmt.Sprintf(idKinds[kind], 0xab00+i*7+r.IntN(7))
		t.orders = append(t.orders, o)
	}
	return t
}

func (t *truth) at(minute int) time.Time { return t.began.Add(time.Duration(minute) * time.Minute) }

// insert writes the table.
func (t *truth) insert(tb testing.TB, db *sql.DB, table string) {
	tb.Helper()
	for _, o := range t.orders {
		price := decimal.RequireFromString(o.price)
		request := sqlguard.RequestText(gateway.InvoiceRequest{OrderID: o.id, Price: price, Amount: price})
		text := func(minute, seconds int) any {
			return t.at(minute).Add(time.Duration(seconds) * time.Second).Format("2006-01-02T15:04:05.000Z")
		}
		begun, ended, lease := text(o.minute, 0), text(o.minute, 2), text(o.minute+5, 0)
		var token, outcome, unknown, created any
		switch o.state {
		case "created":
			outcome, created = "succeeded", ended
		case "unknown":
			outcome, unknown = "unknown", begun
		case "crashed":
			token, ended = "token", nil
		case "free":
			outcome = "rejected"
		}
		_, err := db.Exec(`INSERT INTO `+table+` (order_id, attempts, token, begun_at, lease_until, ended_at, outcome, unknown_since, created_at, request)
			VALUES ($1, 1, $2, $3, $4, $5, $6, $7, $8, $9)`, o.id, token, begun, lease, ended, outcome, unknown, created, request)
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// A file is what the operator exports, and what is said of it.
type file struct {
	*truth
	columns   export.Columns
	rows      [][]string // without the header
	header    []string
	statement sqlguard.Statement
}

const (
	columnID = iota
	columnInvoice
	columnTime
	columnPrice
	columnStatus
	columnNote
)

// export makes the complete file.
func (t *truth) export() *file {
	f := &file{truth: t, columns: export.Columns{InvoiceID: "id", CreatedAt: "created", Price: "price"}, header: []string{"order_id", "id", "created", "price", "status", "note"}}
	for i, o := range t.orders {
		if !o.exists {
			continue
		}
		status := "new"
		if o.paid {
			status = "paid"
		}
		at := t.at(o.minute).Add(time.Duration(t.rand.IntN(2000)) * time.Millisecond)
		f.rows = append(f.rows, []string{o.id, fmt.Sprint("gw", 100000-i*37), at.Format(time.RFC3339Nano), o.price, status, "café"})
	}
	f.statement = sqlguard.Statement{From: t.at(0), Until: t.at(600)}
	return f
}

func (f *file) text() string {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	_ = w.WriteAll(append([][]string{f.header}, f.rows...))
	return text.String()
}

// change sets a column of all rows.
func (f *file) change(column int, to func(string) string) {
	for _, row := range f.rows {
		row[column] = to(row[column])
	}
}

// keep drops the rows for which keep is false.
func (f *file) keep(keep func(i int, row []string) bool) {
	i := -1
	f.rows = slices.DeleteFunc(f.rows, func(row []string) bool { i++; return !keep(i, row) })
}

// shift moves all times.
func (f *file) shift(d time.Duration) {
	f.change(columnTime, func(text string) string {
		at, _ := time.Parse(time.RFC3339Nano, text)
		return at.Add(d).Format(time.RFC3339Nano)
	})
}

func (f *file) isCreated(id string) bool {
	return slices.ContainsFunc(f.orders, func(o *trueOrder) bool { return o.id == id && o.state == "created" })
}

// A defect changes the rows and what is said of them, or the text.
type defect struct {
	name string
	ids  string // the kind that it changes; empty for any
	rows func(f *file)
	text func(f *file, text string) string
	bare bool // shows without the columns besides the order and the time too
}

func ofText(change func(string) string) func(*file, string) string {
	return func(_ *file, text string) string { return change(text) }
}

func replacing(old, with string) func(*file, string) string {
	return ofText(func(text string) string { return strings.ReplaceAll(text, old, with) })
}

var defects = []defect{
	// Rows are missing.
	{"it is cut at the end of a line", "", func(f *file) { f.rows = f.rows[:f.rand.IntN(len(f.rows))] }, nil, true},
	{"it is cut within a line", "", nil, ofText(func(text string) string { return text[:len(text)-2-len(text)/3] }), true},
	{"its last line has no end", "", nil, ofText(func(text string) string { return text[:len(text)-1] }), true},
	{"its beginning is missing", "", func(f *file) { f.rows = f.rows[1+f.rand.IntN(len(f.rows)-1):] }, nil, true},
	{"only the paid ones", "", func(f *file) { f.keep(func(_ int, row []string) bool { return row[columnStatus] == "paid" }) }, nil, true},
	{"only those that are not paid", "", func(f *file) { f.keep(func(_ int, row []string) bool { return row[columnStatus] != "paid" }) }, nil, true},
	{"only the first page, the latest ones", "", func(f *file) { slices.Reverse(f.rows); f.rows = f.rows[:len(f.rows)/2] }, nil, true},
	{"only the last page, by the id of the gateway", "", func(f *file) {
		slices.SortFunc(f.rows, func(a, b []string) int { return strings.Compare(a[columnInvoice], b[columnInvoice]) })
		f.rows = f.rows[len(f.rows)/2:]
	}, nil, true},
	{"a page in the middle is missing", "", func(f *file) {
		lost := f.isCreated
		f.keep(func(i int, row []string) bool {
			return i < 1 || i == len(f.orders) || !lost(row[columnID]) || i > len(f.orders)/2
		})
	}, nil, true},
	{"a row that was created is missing", "", func(f *file) { f.rows = f.rows[:len(f.rows)-1] }, nil, true},
	{"it is stale", "", func(f *file) {
		now := f.at(60 + f.rand.IntN(450)).Format(time.RFC3339Nano)
		f.keep(func(_ int, row []string) bool { return row[columnTime] < now })
	}, nil, true},
	{"it has no rows", "", func(f *file) { f.rows = nil }, nil, true},
	{"it is of yesterday, and its times too", "", func(f *file) { f.shift(-24 * time.Hour) }, nil, false},
	{"it is of yesterday, and said to be of today", "", func(f *file) {
		f.change(columnID, func(id string) string { return "1" + id[1:] })
	}, nil, true},

	// Rows that should not be there.
	{"all rows are there twice", "", func(f *file) { f.rows = append(f.rows, f.rows...) }, nil, true},
	{"a row is there twice, with another status", "", func(f *file) {
		again := slices.Clone(f.rows[0])
		again[columnStatus] = "refunded"
		f.rows = append(f.rows, again)
	}, nil, true},
	{"an order has two invoices", "", func(f *file) {
		again := slices.Clone(f.rows[f.rand.IntN(len(f.rows))])
		again[columnInvoice] = "gw-again"
		f.rows = append(f.rows, again)
	}, nil, true},
	{"it is of another merchant, with the same ids", "", func(f *file) {
		f.rows = nil
		for i, o := range f.orders {
			at := f.at(30 + f.rand.IntN(540)).Format(time.RFC3339Nano)
			f.rows = append(f.rows, []string{o.id, fmt.Sprint("other", i), at, fmt.Sprintf("%d.50", 1+f.rand.IntN(900)), "new", "-"})
		}
	}, nil, false},
	{"it is of another merchant", "", func(f *file) { f.change(columnID, func(id string) string { return "other-" + id }) }, nil, true},
	{"two pages with their headers", "", nil, func(f *file, text string) string { return text + strings.Join(f.header, ",") + "\n" }, false},
	{"a last line with a sum", "", nil, ofText(func(text string) string { return text + "Total,99999.00\n" }), true},

	// Its times.
	{"another time zone is written as UTC", "", func(f *file) { f.shift(time.Hour) }, nil, false},
	{"a time zone on the other side", "", func(f *file) { f.shift(-5 * time.Hour) }, nil, false},
	{"no time zone", "", func(f *file) { f.change(columnTime, func(at string) string { return strings.TrimSuffix(at, "Z") }) }, nil, false},
	{"its clock is forty minutes late", "", func(f *file) { f.shift(-40 * time.Minute) }, nil, false},
	{"From and Until are of another time zone", "", func(f *file) {
		f.statement.From, f.statement.Until = f.statement.From.Add(2*time.Hour), f.statement.Until.Add(2*time.Hour)
	}, nil, false},
	{"Until is in the future", "", func(f *file) { f.statement.Until = time.Now().Add(time.Hour) }, nil, true},
	{"From and Until are not said", "", func(f *file) { f.statement.From, f.statement.Until = time.Time{}, time.Time{} }, nil, true},

	// Its ids.
	{"ids in upper case", "mixed", func(f *file) { f.change(columnID, strings.ToUpper) }, nil, true},
	{"some ids in lower case", "mixed", func(f *file) {
		for i, row := range f.rows {
			if i == 0 || i%2 == 1 || !f.isCreated(row[columnID]) {
				row[columnID] = strings.ToLower(row[columnID])
			}
		}
	}, nil, true},
	{"ids in lower case, but of created orders", "mixed", func(f *file) {
		for _, row := range f.rows {
			if !f.isCreated(row[columnID]) {
				row[columnID] = strings.ToLower(row[columnID])
			}
		}
	}, nil, true},
	{"ids without leading zeros", "numbers", func(f *file) {
		f.change(columnID, func(id string) string { return strings.TrimLeft(id, "0") })
	}, nil, true},
	{"ids without leading zeros, but of created orders", "numbers", func(f *file) {
		for _, row := range f.rows {
			if !f.isCreated(row[columnID]) {
				row[columnID] = strings.TrimLeft(row[columnID], "0")
			}
		}
	}, nil, true},
	{"ids with a decimal place, but of created orders", "numbers", func(f *file) {
		for _, row := range f.rows {
			if !f.isCreated(row[columnID]) {
				row[columnID] += ".0"
			}
		}
	}, nil, true},
	{"ids rounded as numbers", "long numbers", func(f *file) {
		f.change(columnID, func(id string) string { return id[:15] + "0000" })
	}, nil, true},
	{"an id rounded as a number", "long numbers", func(f *file) { f.changeUnknown(func(id string) string { return id[:15] + "0000" }) }, nil, true},
	{"an id with an exponent", "long numbers", func(f *file) { f.changeUnknown(func(string) string { return "7.7E+18" }) }, nil, true},
	{"an id that is cut", "", func(f *file) { f.changeUnknown(func(id string) string { return id[:len(id)-2] }) }, nil, true},
	{"an id with a prefix", "", func(f *file) { f.changeUnknown(func(id string) string { return "R/" + id }) }, nil, true},
	{"ids that are cut", "", func(f *file) { f.change(columnID, func(id string) string { return id[:4] }) }, nil, true},
	{"ids with a trailing space", "", func(f *file) { f.change(columnID, func(id string) string { return id + " " }) }, nil, true},
	{"ids with a no-break space", "", func(f *file) { f.change(columnID, func(id string) string { return "\u00a0" + id }) }, nil, true},
	{"an id that is empty", "", func(f *file) { f.changeUnknown(func(string) string { return "" }) }, nil, true},
	{"two columns are swapped", "", func(f *file) {
		f.header[columnID], f.header[columnInvoice] = f.header[columnInvoice], f.header[columnID]
	}, nil, true},

	// Its amounts.
	{"amounts without decimal places", "", func(f *file) {
		f.change(columnPrice, func(price string) string { whole, _, _ := strings.Cut(price, "."); return whole })
	}, nil, false},
	{"amounts with a decimal comma", "", func(f *file) { f.change(columnPrice, func(p string) string { return strings.Replace(p, ".", ",", 1) }) }, nil, false},
	{"amounts with separators of thousands", "", func(f *file) { f.change(columnPrice, func(p string) string { return p[:1] + "," + p[1:] }) }, nil, false},
	{"amounts in the smallest unit", "", func(f *file) { f.change(columnPrice, func(p string) string { return strings.Replace(p, ".", "", 1) }) }, nil, false},
	{"amounts with a currency", "", func(f *file) { f.change(columnPrice, func(p string) string { return p + " EUR" }) }, nil, false},

	// Its text.
	{"a byte-order mark", "", nil, ofText(func(text string) string { return "\uFEFF" + text }), true},
	{"Latin-1", "", nil, replacing("é", "\xe9"), true},
	{"NUL characters", "", nil, ofText(func(text string) string { return strings.ReplaceAll(text, ",", "\x00,") }), true},
	{"semicolons between the columns", "", nil, replacing(",", ";"), true},
	{"no header", "", nil, ofText(func(text string) string { _, rest, _ := strings.Cut(text, "\n"); return rest }), true},
	{"a quote without end", "", nil, ofText(func(text string) string { i := strings.LastIndex(text, "café"); return text[:i] + `"` + text[i:] }), true},
	{"a comma within a field", "", nil, replacing("café", "café, bar"), true},
}

// changeUnknown changes the id of the unknown order that exists, which is the third.
func (f *file) changeUnknown(to func(string) string) {
	for _, row := range f.rows {
		if row[columnID] == f.orders[2].id {
			row[columnID] = to(row[columnID])
		}
	}
}

// A defective export never ends an order as absent that exists, nor the other way round, and something tells.
func TestGuard_Reconcile_defects(t *testing.T) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			db, table := open(t)
			whole := defect{name: "no defect", bare: true}
			shuffled := defect{name: "no defect, in any order", bare: true, rows: func(f *file) {
				f.rand.Shuffle(len(f.rows), func(i, j int) { f.rows[i], f.rows[j] = f.rows[j], f.rows[i] })
			}}
			for i, d := range append([]defect{whole, shuffled}, defects...) {
				t.Run(d.name, func(t *testing.T) {
					for seed := range uint64(8) {
						d.check(t, db, table, seed, i > 1)
					}
				})
			}
		})
	}
}

// databases open one with an empty table.
var databases = map[string]func(t *testing.T) (*sql.DB, string){
	"PostgreSQL": func(t *testing.T) (*sql.DB, string) {
		return openTable(t, "pgx", sqlguard.PostgresDSN(t), "defects_"+strings.ToLower(rand.Text()))
	},
	"SQLite": func(t *testing.T) (*sql.DB, string) {
		return openTable(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "orders.db")+"?_pragma=busy_timeout(10000)&_pragma=synchronous(OFF)", "orders")
	},
}

func openTable(t *testing.T, driver, dsn, table string) (*sql.DB, string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	check(err)
	t.Cleanup(func() {
		_, err := db.Exec(`DROP TABLE ` + table)
		check(errors.Join(err, db.Close()))
	})
	g, err := sqlguard.New(db, sqlguard.WithTable(table))
	check(errors.Join(err, g.Migrate(t.Context())))
	return db, table
}

// check applies a file that has the defect.
func (d defect) check(t *testing.T, db *sql.DB, table string, seed uint64, isDefect bool) {
	t.Helper()
	kinds := []string{"mixed", "numbers", "long numbers"}
	kind := kinds[seed%3]
	if d.ids != "" {
		kind = d.ids
	}
	_, err := db.Exec(`DELETE FROM ` + table)
	check(err)
	truth := newTruth(seed, kind)
	truth.insert(t, db, table)
	g, err := sqlguard.New(db, sqlguard.WithTable(table))
	check(err)
	f := truth.export()
	if d.bare && seed%2 == 1 {
		f.columns = export.Columns{CreatedAt: "created"}
	}
	if d.rows != nil {
		d.rows(f)
	}
	text := f.text()
	if d.text != nil {
		text = d.text(f, text)
	}
	rows, err := export.CSV(strings.NewReader(text), f.columns)
	var result sqlguard.Reconciliation
	if err == nil {
		f.statement.Rows = rows
		result, err = g.Reconcile(t.Context(), f.statement, sqlguard.ReconcileOptions{Apply: true, By: "the test"})
	}
	truth.compare(t, g, seed)
	told := err != nil || len(result.Undecided) > 0 || slices.ContainsFunc(result.Differences, func(d sqlguard.Difference) bool { return !d.Ended })
	if told != isDefect {
		t.Errorf("seed %d: %v, %+v\n%s", seed, err, result, text)
	}
}

// compare fails if an order was ended by a wrong finding.
func (t *truth) compare(tb testing.TB, g *sqlguard.Guard, seed uint64) {
	tb.Helper()
	for _, o := range t.orders {
		now, err := g.Order(tb.Context(), "", o.id)
		check(err)
		want := sqlguard.StateFree
		if o.exists {
			want = sqlguard.StateCreated
		}
		if now.State != want && now.State != sqlguard.StateUnknown {
			tb.Errorf("seed %d: %+v is %+v", seed, o, now)
		}
	}
}
