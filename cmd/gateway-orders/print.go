package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// Formats of the output.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatCSV   = "csv"
)

func allFormats() []string { return []string{formatTable, formatJSON, formatCSV} }

// A console is where a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
}

func standard() console { return console{os.Stdin, os.Stdout, os.Stderr} }

// note writes lines for a person to stderr, after the result.
func (s *session) note(format string, args ...any) {
	if s.format != formatJSON {
		_, _ = fmt.Fprintf(s.err, format+"\n", args...)
	}
}

func (s *session) writeJSON(to io.Writer, value any) error { return encode(to, value, "  ") }

// encode writes JSON that has no character which controls a terminal.
func encode(to io.Writer, value any, indent string) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(to, escaped(text.String()))
	return err
}

// escaped writes the characters that control a terminal or the direction of text, all of Cc and Cf
// but the end of a line and the tab, as \uXXXX, as a string of JSON may have them.
func escaped(text string) string {
	var b strings.Builder
	for _, char := range text {
		if char == '\n' || char == '\t' || !unicode.In(char, unicode.Cc, unicode.Cf) {
			b.WriteRune(char)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, char) {
			_, _ = fmt.Fprintf(&b, `\u%04x`, unit) // to memory: cannot fail
		}
	}
	return b.String()
}

// printRows prints aligned columns, the last of which may be of any width.
func (s *session) printRows(rows [][]string) error {
	var text strings.Builder
	aligned := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable(cell)
		}
		_, _ = fmt.Fprintln(aligned, strings.Join(cells, "\t")) // to memory: cannot fail
	}
	_ = aligned.Flush()
	return s.write(text.String())
}

// printable replaces characters that are not printable: text of the service must not control
// the terminal. The ends of lines become spaces.
func printable(text string) string {
	return strings.Map(func(char rune) rune {
		switch {
		case unicode.IsPrint(char):
			return char
		case unicode.IsSpace(char):
			return ' '
		default:
			return unicode.ReplacementChar
		}
	}, text)
}

// shortened cuts a text after some characters, and marks the cut.
func shortened(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// timeText is a time in UTC to the second; "" for none.
func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}

// amountText is an amount with all its digits; "" for none.
func amountText(d decimal.Decimal) string {
	if d.IsZero() {
		return ""
	}
	return d.StringFixed(max(0, -d.Exponent()))
}

// joined joins the texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(strings.Fields(strings.Join(texts, " ")), " ")
}

func priceOf(r gateway.InvoiceRequest) string { return joined(amountText(r.Price), r.BaseCurrency) }

func amountOf(r gateway.InvoiceRequest) string {
	text := joined(amountText(r.Amount), r.CoinSymbol)
	if r.NetworkName != "" {
		text += " on " + r.NetworkName
	}
	return text
}

// An orderJSON is an order in JSON. No member is ever renamed or redefined; what is not known is
// left out.
type orderJSON struct {
	OrderID      string    `json:"orderId"`
	Merchant     string    `json:"merchant,omitempty"`
	State        string    `json:"state"`
	Attempts     int       `json:"attempts"`
	UnknownSince time.Time `json:"unknownSince,omitzero"`
	Begun        time.Time `json:"begun,omitzero"`
	Ended        time.Time `json:"ended,omitzero"`
	Created      time.Time `json:"created,omitzero"`

	Price        string `json:"price,omitempty"`
	Amount       string `json:"amount,omitempty"`
	BaseCurrency string `json:"baseCurrency,omitempty"`
	CoinSymbol   string `json:"coinSymbol,omitempty"`
	NetworkName  string `json:"networkName,omitempty"`

	RequestID string          `json:"requestId,omitempty"`
	SentAt    time.Time       `json:"sentAt,omitzero"`
	Status    int             `json:"status,omitempty"`
	Body      string          `json:"body,omitempty"`
	Cause     string          `json:"cause,omitempty"`
	Invoice   json.RawMessage `json:"invoice,omitempty"`

	Resolved   time.Time `json:"resolved,omitzero"`
	ResolvedBy string    `json:"resolvedBy,omitempty"`
	Resolution string    `json:"resolution,omitempty"` // exists or absent
	Note       string    `json:"note,omitempty"`
	Token      string    `json:"token,omitempty"` // of an unknown order: for resolve -token
}

// Texts of a resolution.
const (
	foundExists = "exists"
	foundAbsent = "absent"
)

func toJSON(o sqlguard.Order) orderJSON {
	r := o.Record
	j := orderJSON{
		OrderID: o.ID, Merchant: o.Merchant, State: string(o.State), Attempts: o.Attempts,
		UnknownSince: o.Since, Begun: o.Begun, Ended: o.Ended, Created: o.Created,
		Price: amountText(r.Request.Price), Amount: amountText(r.Request.Amount), BaseCurrency: r.Request.BaseCurrency,
		CoinSymbol: r.Request.CoinSymbol, NetworkName: r.Request.NetworkName,
		RequestID: r.RequestID, SentAt: r.SentAt, Status: r.StatusCode, Body: string(r.Body), Cause: r.Cause, Invoice: r.Invoice,
		Resolved: o.Resolved, ResolvedBy: o.Resolution.By, Note: o.Resolution.Note, Token: o.Token(),
	}
	if !json.Valid(j.Invoice) {
		j.Invoice = nil // something else may have written the row; an invalid text would fail the whole output
	}
	if !o.Resolved.IsZero() {
		if j.Resolution = foundAbsent; o.Resolution.Exists {
			j.Resolution = foundExists
		}
	}
	return j
}
