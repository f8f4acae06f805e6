// Package export reads the files that the operator of a gateway exports into the rows of a
// [sqlguard.Statement]. It is strict: a file in which anything is doubtful is refused as a whole, with
// the row, because a row that is lost or read wrongly looks like an order that does not exist.
//
// A file is UTF-8 without a byte-order mark, and every line of it has its end. Every column that is
// named has a value in every row; leave a column out that has not. Of these,
//
//   - an id is 1 to 1,024 bytes without control characters, and without spaces or characters of no width
//     at its ends. Ids of two rows do not differ in case only, and no two rows have the same InvoiceID.
//   - a time is RFC 3339 with its zone, such as 2026-01-02T03:04:05Z or 2026-01-02T03:04:05.678+01:00.
//   - an amount is digits, and decimal places after a point: no sign, exponent, currency or separator of
//     thousands.
//
// No two rows are the same. Two different rows of one order are read: [sqlguard.Guard.Reconcile] reports
// them.
package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// Limits of a file.
const (
	MaxFile = 256 << 20 // MaxFile is how many bytes a file may have.
	MaxLine = 64 << 10  // MaxLine is how many bytes a row may have, in the file and as JSON.
	MaxRows = 1_000_000 // MaxRows is how many rows a file may have, without the header.

	maxJSON = 1 << 30 // bytes of all rows as JSON, which has the names of a CSV file in each row
)

// Columns name the columns of a CSV file, or the members of each JSON line, exactly as they are written.
// Only OrderID is required; its default is "order_id". An empty name is of nothing.
type Columns struct {
	OrderID   string // of the merchant's identifier, as it was sent
	InvoiceID string // of the gateway's identifier of the invoice
	CreatedAt string // of the time when the invoice was created
	Price     string // of the price in the fiat currency
	Amount    string // of the order's amount, as it was sent
}

// A RowError is what is wrong with a row.
type RowError struct {
	Row    int    // the line of the file where the row begins, from 1
	Column string // empty for the whole row
	Reason string // what is wrong, and what to do
}

// Error returns the row, the column and the reason.
func (e *RowError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("export: row %d: %s", e.Row, e.Reason)
	}
	return fmt.Sprintf("export: row %d, column %q: %s", e.Row, e.Column, e.Reason)
}

// CSV reads a file as RFC 4180 has it, with a comma between fields and the names of the columns in the first
// row; no two columns have the same name. A line ends with CR LF or LF. Invoice of a row is an object
// with a text for each column. The error is a [*RowError], that of r, or a [*gateway.ArgumentError].
func CSV(r io.Reader, c Columns) ([]sqlguard.StatementRow, error) {
	fields, err := c.fields()
	if err != nil {
		return nil, err
	}
	lines := newLines(r)
	header, row, err := lines.record()
	if err != nil {
		return nil, orEmpty(err)
	}
	places, names, err := placesOf(fields, header, row)
	if err != nil {
		return nil, err
	}
	var all collector
	for {
		texts, row, err := lines.record()
		if err == io.EOF {
			return all.rows, nil
		}
		if err == nil && len(texts) != len(header) {
			err = &RowError{Row: row, Reason: fmt.Sprintf("has %d fields, and the header has %d: export the file again, with commas between the fields, and quotes around those that have one", len(texts), len(header))}
		}
		if err == nil {
			err = all.add(row, fields, func(i int) (string, bool) { return texts[places[i]], false }, object(names, texts))
		}
		if err != nil {
			return nil, err
		}
	}
}

// placesOf returns where the fields are in a header, and its names as JSON.
func placesOf(fields []field, header []string, row int) (places []int, names [][]byte, err error) {
	for i, name := range header {
		if slices.Contains(header[:i], name) {
			return nil, nil, &RowError{row, name, "is twice in the header: give each column a name of its own"}
		}
		quoted, _ := jsontext.AppendQuote(nil, name)
		names = append(names, quoted)
	}
	for _, f := range fields {
		place := slices.Index(header, f.column)
		if place < 0 {
			return nil, nil, &RowError{row, f.column, fmt.Sprintf("is not in the header, which is %.200q: name one that is, and export with commas between the columns", strings.Join(header, ","))}
		}
		places = append(places, place)
	}
	return places, names, nil
}

// object is a row of CSV as JSON.
func object(names [][]byte, texts []string) []byte {
	o := []byte("{")
	for i, name := range names {
		if i > 0 {
			o = append(o, ',')
		}
		o = append(append(o, name...), ':')
		o, _ = jsontext.AppendQuote(o, texts[i]) // is valid UTF-8
	}
	return append(o, '}')
}

// JSONLines reads a file with an object in each line. No member of an object may be there twice. Amounts may be
// numbers, which are read as their text, without exponent. Ids may be whole numbers of at most 15 digits: a
// longer one may have been rounded on its way. Invoice of a row is its object. The error is a
// [*RowError], that of r, or a [*gateway.ArgumentError].
func JSONLines(r io.Reader, c Columns) ([]sqlguard.StatementRow, error) {
	fields, err := c.fields()
	if err != nil {
		return nil, err
	}
	lines := newLines(r)
	var all collector
	for {
		line, err := lines.next()
		if err == io.EOF && lines.number > 0 {
			return all.rows, nil
		}
		if err != nil {
			return nil, orEmpty(err)
		}
		values, object, err := members(line, fields)
		if err != nil {
			return nil, &RowError{Row: lines.number, Reason: err.Error()}
		}
		text := func(i int) (string, bool) {
			value := values[i]
			if value.Kind() == '"' {
				text, _ := jsontext.AppendUnquote(nil, value)
				return string(text), false
			}
			return strings.TrimPrefix(string(value), "null"), len(value) > 0
		}
		if err := all.add(lines.number, fields, text, object); err != nil {
			return nil, err
		}
	}
}

// members returns the values of the fields in an object, and the object without spaces.
func members(line []byte, fields []field) (values []jsontext.Value, object []byte, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(line))
	if kind := d.PeekKind(); kind != '{' {
		return nil, nil, errors.New("must be a JSON object: write one in each line, and no array around them")
	}
	values = make([]jsontext.Value, len(fields))
	_, err = d.ReadToken()
	for err == nil && d.PeekKind() != '}' {
		var name, value jsontext.Value
		if name, err = d.ReadValue(); err != nil {
			break
		}
		text, _ := jsontext.AppendUnquote(nil, name)
		i := slices.IndexFunc(fields, func(f field) bool { return f.column == string(text) })
		if value, err = d.ReadValue(); i >= 0 {
			values[i] = value.Clone()
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	if _, end := d.ReadToken(); err != nil || end != io.EOF {
		return nil, nil, fmt.Errorf("must be one JSON object without a member that is there twice: %.200v", cmp.Or(err, end))
	}
	compact := jsontext.Value(bytes.Clone(line))
	err = compact.Compact()
	return values, compact, err
}

// orEmpty is the error of a file that has nothing to read.
func orEmpty(err error) error {
	if err == io.EOF {
		return &RowError{Row: 1, Reason: "the file is empty: export it again"}
	}
	return err
}

// A collector has the rows of a file.
type collector struct {
	rows     []sqlguard.StatementRow
	size     int             // of the rows as JSON
	orders   map[string]int  // by the id of the order, folded: which of the rows has it first
	ids      map[string]int  // likewise by the id of the invoice
	original map[digest]bool // what the rows are as JSON
}

// add appends a row. Each text is that of a field, and whether it is not a text in JSON.
func (c *collector) add(number int, fields []field, text func(i int) (string, bool), object []byte) error {
	row := sqlguard.StatementRow{Number: number, Invoice: json.RawMessage(object)}
	if c.size += len(object); len(object) > MaxLine || c.size > maxJSON || len(c.rows) == MaxRows {
		return &RowError{Row: number, Reason: "is too large as JSON, or one too many: export fewer columns, or a shorter time"}
	}
	for i, f := range fields {
		value, bare := text(i)
		reason := ""
		switch {
		case value == "":
			reason = "is empty: complete it in every row, or leave the column out"
		case bare && !f.bare(value):
			reason = f.wantText
		default:
			reason = f.set(&row, value)
		}
		if reason != "" {
			return &RowError{number, f.column, reason}
		}
	}
	return c.addNew(row, fields)
}

// addNew appends a row that no other one has been.
func (c *collector) addNew(row sqlguard.StatementRow, fields []field) error {
	if c.orders == nil {
		c.orders, c.ids, c.original = map[string]int{}, map[string]int{}, map[digest]bool{}
	}
	sum := digestOf(row.Invoice)
	if c.original[sum] {
		return &RowError{Row: row.Number, Reason: "is the same as an earlier row: find out whether it was exported twice or there are two invoices"}
	}
	c.original[sum] = true
	if other, ok := c.ids[folded(row.InvoiceID)]; ok && row.InvoiceID != "" {
		return &RowError{row.Number, fields[1].column, fmt.Sprintf("is that of row %d: find out whether the invoice was exported twice", c.rows[other].Number)}
	}
	if other, ok := c.orders[folded(row.OrderID)]; ok && c.rows[other].OrderID != row.OrderID {
		return &RowError{row.Number, fields[0].column, fmt.Sprintf("differs from that of row %d in case only: find out which is right", c.rows[other].Number)}
	}
	if row.InvoiceID != "" {
		c.ids[folded(row.InvoiceID)] = len(c.rows)
	}
	c.orders[folded(row.OrderID)] = len(c.rows)
	c.rows = append(c.rows, row)
	return nil
}

// fields returns the fields of a row that are named, that of the order first, then that of the invoice's id.
func (c Columns) fields() (fields []field, err error) {
	named := map[string]bool{}
	for _, f := range []field{
		idField(cmp.Or(c.OrderID, "order_id"), func(r *sqlguard.StatementRow) *string { return &r.OrderID }),
		idField(c.InvoiceID, func(r *sqlguard.StatementRow) *string { return &r.InvoiceID }),
		timeField(c.CreatedAt),
		amountField(c.Price, func(r *sqlguard.StatementRow) *decimal.NullDecimal { return &r.Price }),
		amountField(c.Amount, func(r *sqlguard.StatementRow) *decimal.NullDecimal { return &r.Amount }),
	} {
		if f.column == "" {
			continue
		}
		if named[f.column] {
			return nil, &gateway.ArgumentError{Operation: "export", Name: "c", Reason: fmt.Sprintf("names the column %q twice", f.column)}
		}
		named[f.column] = true
		fields = append(fields, f)
	}
	return fields, nil
}
