package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/cryptogw/gateway/sqlguard/export"
)

func (s *session) reconcileCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "reconcile --file FILE", Short: "Compare the table with what the gateway has exported",
		Long: `Compares the invoices in a file that the gateway's operator has exported with the table, and prints
where they differ and which unknown orders the file does not decide. Nothing is changed, unless
--apply ends the unknown orders that the file decides, as resolve does.

The file is complete for the invoices that were created from --from until --until, by the clock of
the gateway. Without these times, or without --time-column, no order is ended as absent. The exit
code is 6 if something is left to do.`,
		Example: `  gateway-orders reconcile --file invoices.csv --order-column "Order no." --time-column Created \
    --from 2026-11-01T00:00:00Z --until 2026-11-22T00:00:00Z

Add --apply --by NAME to end those that the file decides.`,
	}
	return s.uses(c, traits{timeout: 10 * time.Minute, early: unchanged, single: true}, newReconcile(s, c).run)
}

// A reconcile is one run of the command.
type reconcile struct {
	s                                   *session
	c                                   *cobra.Command
	file, format, from, until, by       *string
	order, invoice, created, price, sum *string
	apply                               *bool
	margin                              *time.Duration
	statement                           sqlguard.Statement
}

func newReconcile(s *session, c *cobra.Command) *reconcile {
	flags := c.Flags()
	return &reconcile{
		s:       s,
		c:       c,
		file:    flags.String("file", "", "the `file` that was exported; - for stdin"),
		format:  flags.String("format", "", "`csv` or jsonl, a JSON object in each line, where the name of the file does not end so"),
		from:    flags.String("from", "", "the `time` from which the file is complete, such as 2026-11-01T00:00:00Z"),
		until:   flags.String("until", "", "the `time` until which it is"),
		by:      flags.String("by", "", "with --apply, the `name` of who ends them, which is kept"),
		order:   flags.String("order-column", "order_id", "the `name` of the column, or the member, with the order id"),
		invoice: flags.String("invoice-column", "", "the `name` of that with the gateway's own identifier of an invoice"),
		created: flags.String("time-column", "", "the `name` of that with the time of creation, which has a zone"),
		price:   flags.String("price-column", "", "the `name` of that with the price"),
		sum:     flags.String("amount-column", "", "the `name` of that with the amount"),
		apply:   flags.Bool("apply", false, "end the unknown orders that the file decides"),
		margin:  flags.Duration("margin", inTransit, "how `long` before --until and after --from the file decides nothing"),
	}
}

// check returns what is wrong with the arguments, and reads the times.
func (r *reconcile) check() (err error) {
	switch {
	case *r.file == "":
		return cli.Usage(r.c, "--file is required: what the gateway's operator has exported")
	case *r.apply && strings.TrimSpace(*r.by) == "":
		return cli.Usage(r.c, "--by is required with --apply: the name of who ends the orders")
	case *r.margin <= 0:
		return cli.Usage(r.c, "--margin must be above zero")
	case (*r.from == "") != (*r.until == ""):
		return cli.Usage(r.c, "give both --from and --until, or neither: then no order is ended as absent")
	}
	if *r.format == "" {
		*r.format = formatOf(*r.file)
	}
	if *r.format != "csv" && *r.format != "jsonl" {
		return cli.Usage(r.c, "--format is csv or jsonl; the name of the file does not say which")
	}
	if r.statement.From, err = r.time("--from", *r.from); err == nil {
		r.statement.Until, err = r.time("--until", *r.until)
	}
	if err == nil && *r.from != "" && !r.statement.From.Before(r.statement.Until) {
		err = cli.Usage(r.c, "--until is not after --from")
	}
	r.statement.Merchant = r.s.merchant
	return err
}

// formatOf is the format that the name of a file says.
func formatOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return "csv"
	case ".jsonl", ".ndjson":
		return "jsonl"
	default:
		return ""
	}
}

func (r *reconcile) time(name, text string) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		return at, cli.Usage(r.c, name+" is a time with its zone, such as 2026-11-01T00:00:00Z or 2026-11-01T00:00:00+01:00")
	}
	return at, nil
}

// read reads the rows of the file.
func (r *reconcile) read() (rows []sqlguard.StatementRow, err error) {
	file := r.s.In
	if *r.file != "-" {
		opened, err := os.Open(*r.file) // #nosec G304 -- whoever runs the command chooses the file
		if err != nil {
			return nil, fmt.Errorf("--file: %w", cli.Reason(err))
		}
		defer func() { _ = opened.Close() }()
		file = opened
	}
	columns := export.Columns{OrderID: *r.order, InvoiceID: *r.invoice, CreatedAt: *r.created, Price: *r.price, Amount: *r.sum}
	if *r.format == "csv" {
		rows, err = export.CSV(file, columns)
	} else {
		rows, err = export.JSONLines(file, columns)
	}
	if err != nil {
		return nil, fmt.Errorf("--file: %w; %s", r.inTermsOfFlags(err), unchanged)
	}
	return rows, nil
}

// inTermsOfFlags returns an error of the file with the flag that names a column in the place of its name.
func (r *reconcile) inTermsOfFlags(err error) error {
	wrong, ok := errors.AsType[*export.RowError](err)
	for flag, name := range map[string]*string{
		"--order-column": r.order, "--invoice-column": r.invoice, "--time-column": r.created, "--price-column": r.price, "--amount-column": r.sum,
	} {
		if ok && wrong.Column != "" && wrong.Column == *name {
			return fmt.Errorf("row %d: the column of %s %s", wrong.Row, flag, wrong.Reason)
		}
	}
	if _, ok := errors.AsType[*gateway.ArgumentError](err); ok {
		return errors.New("two of the columns have the same name")
	}
	return err
}

func (r *reconcile) run(ctx context.Context, _ []string) error {
	if err := r.check(); err != nil {
		return err
	}
	var err error
	if r.statement.Rows, err = within(ctx, r.read); err != nil {
		return err
	}
	if err := r.s.open(ctx); err != nil {
		return err
	}
	options := sqlguard.ReconcileOptions{Apply: *r.apply, By: *r.by, Margin: *r.margin}
	found, err := r.s.guard.Reconcile(ctx, r.statement, options)
	report := reportOf(r.statement, found, *r.apply)
	switch {
	case err != nil && len(report.Differences) == 0:
		return &partError{unchanged, err}
	case err != nil:
		done := fmt.Sprintf("%d orders were ended, and one more may be: run it again, which lists what is left", report.ended())
		return errors.Join(&partError{done, err}, r.print(report))
	}
	if err = r.print(report); err == nil && report.left() {
		return errLeft
	}
	return err
}

// A reportJSON is the result of reconcile.
type reportJSON struct {
	Applied     bool             `json:"applied"`
	Rows        int              `json:"rows"`   // of the file
	Counts      map[string]int   `json:"counts"` // of the differences, by class
	Differences []differenceJSON `json:"differences"`
	Undecided   []undecidedJSON  `json:"undecided"`
}

type differenceJSON struct {
	Class   string    `json:"class"`
	OrderID string    `json:"orderId"`
	Order   orderJSON `json:"order"` // as it was before
	Rows    []rowJSON `json:"rows"`
	Ended   bool      `json:"ended"`
	Error   string    `json:"error,omitempty"` // why it was not
}

type rowJSON struct {
	Number    int       `json:"number"` // of the line of the file
	InvoiceID string    `json:"invoiceId,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	Price     string    `json:"price,omitempty"`
	Amount    string    `json:"amount,omitempty"`

	Row json.RawMessage `json:"row,omitempty"` // all of it
}

type undecidedJSON struct {
	Order  orderJSON `json:"order"`
	Reason string    `json:"reason"`
}

func classes() []sqlguard.Class {
	return []sqlguard.Class{
		sqlguard.ClassExists, sqlguard.ClassAbsent, sqlguard.ClassMissing, sqlguard.ClassTwice, sqlguard.ClassAmount, sqlguard.ClassOnlyAtGateway,
	}
}

func reportOf(s sqlguard.Statement, found sqlguard.Reconciliation, applied bool) reportJSON {
	report := reportJSON{Applied: applied, Rows: len(s.Rows), Counts: map[string]int{}, Differences: []differenceJSON{}, Undecided: []undecidedJSON{}}
	for _, class := range classes() {
		report.Counts[string(class)] = 0
	}
	for _, d := range found.Differences {
		report.Counts[string(d.Class)]++
		difference := differenceJSON{Class: string(d.Class), OrderID: d.OrderID, Order: toJSON(d.Order), Rows: []rowJSON{}, Ended: d.Ended}
		if d.Err != nil {
			difference.Error = d.Err.Error()
		}
		for _, row := range d.Rows {
			difference.Rows = append(difference.Rows, rowJSON{row.Number, row.InvoiceID, row.CreatedAt, givenAmount(row.Price), givenAmount(row.Amount), row.Invoice})
		}
		report.Differences = append(report.Differences, difference)
	}
	for _, u := range found.Undecided {
		report.Undecided = append(report.Undecided, undecidedJSON{toJSON(u.Order), strings.Replace(u.Reason, "set From and Until", "give --from and --until", 1)})
	}
	return report
}

// givenAmount is an amount of the file; "" if it has none.
func givenAmount(d decimal.NullDecimal) string {
	if !d.Valid {
		return ""
	}
	return d.Decimal.StringFixed(max(0, -d.Decimal.Exponent()))
}

func (report reportJSON) ended() (count int) {
	for _, d := range report.Differences {
		if d.Ended {
			count++
		}
	}
	return count
}

// left reports whether there is something to do.
func (report reportJSON) left() bool {
	return len(report.Differences) > report.ended() || len(report.Undecided) > 0
}

// print prints the counts, then a line for each difference, then what is undecided.
func (r *reconcile) print(report reportJSON) error {
	if r.s.format == cli.FormatJSON {
		return r.s.WriteJSON(report)
	}
	rows := [][]string{{strconv.Itoa(report.Rows), "rows in the file"}}
	for _, class := range classes() {
		rows = append(rows, []string{strconv.Itoa(report.Counts[string(class)]), string(class)})
	}
	rows = append(rows, []string{strconv.Itoa(len(report.Undecided)), "unknown: the file does not decide it"})
	err := r.s.WriteRows(rows)
	if len(report.Differences) > 0 {
		var lines [][]string
		for _, d := range report.Differences {
			lines = append(lines, d.line(report.Applied))
		}
		err = errors.Join(err, r.s.Write("\n"), r.s.WriteTable([]string{"ORDER", "DIFFERENCE", "ROWS", "TABLE", "FILE", "ENDED"}, lines))
	}
	if len(report.Undecided) > 0 {
		var lines [][]string
		for _, u := range report.Undecided {
			lines = append(lines, []string{u.Order.OrderID, timeText(u.Order.UnknownSince), u.Reason})
		}
		err = errors.Join(err, r.s.Write("\n"), r.s.WriteTable([]string{"ORDER", "UNKNOWN SINCE", "WHY IT STAYS UNKNOWN"}, lines))
	}
	switch decided := report.Counts[string(sqlguard.ClassExists)] + report.Counts[string(sqlguard.ClassAbsent)]; {
	case report.Applied:
		r.s.note("\n%d of %d orders were ended.", report.ended(), decided)
	case decided > 0:
		r.s.note("\nNothing was changed. To end the %d that the file decides: the same with --apply --by NAME.", decided)
	}
	return err
}

// line is a difference in columns.
func (d differenceJSON) line(applied bool) []string {
	var numbers, said []string
	for _, row := range d.Rows {
		numbers = append(numbers, strconv.Itoa(row.Number))
		said = append(said, joined(row.Price, row.Amount, row.InvoiceID))
	}
	ended := "no"
	switch {
	case d.Ended:
		ended = "yes"
	case d.Error != "":
		ended = d.Error
	case !applied || !strings.HasPrefix(d.Class, "unknown"):
		ended = "-"
	}
	return []string{
		d.OrderID, d.Class, dash(strings.Join(numbers, ", ")), dash(joined(d.Order.Price, d.Order.Amount)),
		dash(cli.Shortened(strings.Join(said, "; "), 60)), ended,
	}
}

func dash(text string) string { return cmp.Or(text, "-") }
