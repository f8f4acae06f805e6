package export

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/sqlguard"
)

// Limits of a file.
const (
	MaxFile   = 256 << 20 // MaxFile is how many bytes a file may have.
	MaxRecord = 64 << 10  // MaxRecord is how many bytes a record may have as JSON, as which it is kept.
	MaxRows   = 1_000_000 // MaxRows is how many records a file may have.

	maxJSON = 1 << 30 // bytes of all records as JSON, which has the names of a CSV file in each
)

// A File is what was read.
type File struct {
	Rows     []sqlguard.StatementRow // by Number
	LeftOut  int                     // records that Where leaves out
	Repeated int                     // further records of an invoice, such as one for each payment
}

// Read reads a file: CSV with a header, before which a title may be, JSON lines or an array of JSON. It is UTF-8, or UTF-16 with a byte-order mark. A record that
// cannot be read whole is a row with a Fault, one without an order a row without OrderID. Several records of one invoice
// are one row, with the first time. The Number of a row is its line, or in an array its place from 1.
//
// The error is that of r, of a file of which nothing can be read, such as one whose header lacks the order, or a
// [*gateway.ArgumentError] for the settings.
func Read(r io.Reader, s Settings) (File, error) {
	if err := s.complete(); err != nil {
		return File{}, err
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	switch {
	case err != nil:
		return File{}, fmt.Errorf("export: %w", err)
	case len(text) > MaxFile:
		return File{}, errors.New("export: the file has more than 256 MiB: export a shorter time")
	}
	c := collector{Settings: s, invoices: map[string]int{}, parts: map[int]bool{}}
	text = decoded(text)
	switch start := bytes.TrimLeft(text, " \t\r\n"); {
	case len(start) == 0:
		err = errors.New("export: the file is empty")
	case start[0] == '{':
		err = c.readLines(text)
	case start[0] == '[':
		err = c.readArray(start)
	default:
		err = c.readCSV(text)
	}
	if err != nil {
		return File{}, err
	}
	return c.file, nil
}

// decoded is a text in UTF-8 without a byte-order mark.
func decoded(text []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(text, []byte("\uFEFF"))
	}
	units := make([]uint16, 0, len(text)/2)
	for i := 2; i+1 < len(text); i += 2 {
		units = append(units, order.Uint16(text[i:]))
	}
	return []byte(string(utf16.Decode(units)))
}

// A collector has the rows of a file.
type collector struct {
	Settings
	file     File
	size     int            // of the rows as JSON
	invoices map[string]int // by the InvoiceID: which of the rows
	parts    map[int]bool   // which of the rows is of several records with amounts of their own, as of payments
}

// A cell is a value of a record. One of JSON that is not a text is bare.
type cell struct {
	text string
	bare bool
}

// add adds a record, of which value returns the cells.
func (c *collector) add(number int, value func(column string) cell, object []byte) error {
	for column, want := range c.Where {
		if strings.TrimSpace(value(column).text) != want {
			c.file.LeftOut++
			return nil
		}
	}
	row := sqlguard.StatementRow{Number: number, Invoice: object}
	c.fill(&row, value)
	if len(object) > MaxRecord {
		row.Invoice, row.Fault = nil, "it has more than 64 KiB"
	}
	return c.append(row)
}

// addFault adds a record of which nothing can be read.
func (c *collector) addFault(number int, reason string) error {
	return c.append(sqlguard.StatementRow{Number: number, Fault: reason})
}

// fill reads the cells of a record.
func (c *collector) fill(row *sqlguard.StatementRow, value func(column string) cell) {
	read := func(what, column string, set func(cell) (fault string)) {
		if column == "" {
			return
		}
		if fault := set(value(column)); fault != "" && row.Fault == "" {
			row.Fault = fmt.Sprintf("the column of %s %s", what, fault)
		}
	}
	read("order", c.Order, func(v cell) (fault string) { row.OrderID, fault = readID(v); return fault })
	read("invoice", c.Invoice, func(v cell) (fault string) { row.InvoiceID, fault = readID(v); return fault })
	read("created", c.Created, func(v cell) (fault string) { row.CreatedAt, fault = c.readTime(v.text); return fault })
	read("price", c.Price, func(v cell) (fault string) { row.Price, fault = c.readAmount(v.text); return fault })
	read("amount", c.Amount, func(v cell) (fault string) { row.Amount, fault = c.readAmount(v.text); return fault })
	read("state", c.State, func(v cell) string { row.State = strings.ToValidUTF8(strings.TrimSpace(v.text), "\uFFFD"); return "" })
}

// append appends a row, or makes one of it and an earlier one of the same invoice.
func (c *collector) append(row sqlguard.StatementRow) error {
	if c.size += len(row.Invoice); c.size > maxJSON || len(c.file.Rows) == MaxRows {
		return errors.New("export: the file has more than 1,000,000 records, or more than 1 GiB as JSON: export fewer columns, or a shorter time")
	}
	first, known := c.invoices[row.InvoiceID]
	if row.InvoiceID == "" || !known {
		c.invoices[row.InvoiceID] = len(c.file.Rows)
		c.file.Rows = append(c.file.Rows, row)
		return nil
	}
	has := &c.file.Rows[first]
	if has.OrderID != "" && row.OrderID != "" && has.OrderID != row.OrderID {
		row.Fault = fmt.Sprintf("it is of the invoice of row %d, with another order", has.Number)
		has.Fault = fmt.Sprintf("it is of the invoice of row %d, with another order", row.Number)
		c.file.Rows = append(c.file.Rows, row)
		return nil
	}
	c.file.Repeated++
	has.OrderID, has.Fault = cmp.Or(has.OrderID, row.OrderID), cmp.Or(has.Fault, row.Fault)
	if !slices.Contains(strings.Split(has.State, ", "), row.State) && row.State != "" {
		has.State = strings.TrimPrefix(has.State+", "+row.State, ", ") // which is none that is untouched
	}
	if !row.CreatedAt.IsZero() && row.CreatedAt.Before(has.CreatedAt) {
		has.CreatedAt = row.CreatedAt
	}
	if c.parts[first] = c.parts[first] || differ(has.Price, row.Price) || differ(has.Amount, row.Amount); c.parts[first] {
		has.Price, has.Amount = decimal.NullDecimal{}, decimal.NullDecimal{}
	}
	return nil
}

func differ(a, b decimal.NullDecimal) bool { return a.Valid && b.Valid && !a.Decimal.Equal(b.Decimal) }
