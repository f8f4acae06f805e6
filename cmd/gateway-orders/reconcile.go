package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

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
the gateway. Without these times, or the column of the time, no order is ended as absent; nor without
--untouched, or --unpaid-included of a file without states: what the operator of the gateway has
said. A row that cannot be read is counted, and decides nothing. The exit code is 6 if something is
left to do.

What the columns are called, and how times and amounts are written, is in a file of --settings for
each gateway, as JSON: order, invoice, created, price, amount, state (names of columns), separator,
zone, timeLayout, decimalComma, where. Flags go before it.`,
		Example: `  gateway-orders reconcile --file invoices.csv --settings mygateway.json --untouched New \
    --from 2026-11-01T00:00:00Z --until 2026-11-22T00:00:00Z

  mygateway.json: {"order": "Order no.", "created": "Created", "zone": "UTC", "state": "Status"}

Add --apply --by NAME to end those that the file decides.`,
	}
	return s.uses(c, traits{timeout: 10 * time.Minute, early: unchanged, single: true}, newReconcile(s, c).run)
}

// A reconcile is one run of the command.
type reconcile struct {
	s                           *session
	c                           *cobra.Command
	file, settings, from, until string
	flags                       export.Settings
	where                       []string
	read                        export.File
	statement                   sqlguard.Statement
	options                     sqlguard.ReconcileOptions
}

func newReconcile(s *session, c *cobra.Command) *reconcile {
	r := &reconcile{s: s, c: c}
	flags := c.Flags()
	flags.StringVar(&r.file, "file", "", "the `file` that was exported; - for stdin")
	flags.StringVar(&r.settings, "settings", "", "the `file` with the names of columns and the formats of this gateway")
	flags.StringVar(&r.from, "from", "", "the `time` from which the file is complete, such as 2026-11-01T00:00:00Z")
	flags.StringVar(&r.until, "until", "", "the `time` until which it is")
	flags.StringArrayVar(&r.options.Untouched, "untouched", nil, "a `state` of which the operator says that no payment has touched such an invoice; again for each")
	flags.BoolVar(&r.options.UnpaidIncluded, "unpaid-included", false, "the operator says that a file without states has invoices that nobody has paid")
	for _, f := range []struct {
		to          *string
		name, usage string
	}{
		{&r.flags.Order, "order-column", "the `name` of the column, or the member, with the order id; order_id by default"},
		{&r.flags.Invoice, "invoice-column", "of that with the gateway's own identifier of an invoice"},
		{&r.flags.Created, "time-column", "of that with the time of creation"},
		{&r.flags.Price, "price-column", "of that with the price"},
		{&r.flags.Amount, "amount-column", "of that with the amount"},
		{&r.flags.State, "state-column", "of that with the state of the payment"},
		{&r.flags.Separator, "separator", "the `character` between columns, where the header does not show it"},
		{&r.flags.Zone, "zone", "the `zone` of times without one, such as UTC or Europe/Berlin"},
		{&r.flags.TimeLayout, "time-layout", "how the `time` 2006-01-02 15:04:05 is written, such as 02.01.2006 15:04:05; or unix, unix-ms"},
	} {
		flags.StringVar(f.to, f.name, "", f.usage)
	}
	flags.BoolVar(&r.flags.DecimalComma, "decimal-comma", false, "amounts are written as 1.234,50")
	flags.StringArrayVar(&r.where, "where", nil, "a `column=text` that a row must have, such as Store=North; again for each")
	flags.BoolVar(&r.options.Apply, "apply", false, "end the unknown orders that the file decides")
	flags.StringVar(&r.options.By, "by", "", "with --apply, the `name` of who ends them, which is kept")
	flags.DurationVar(&r.options.Margin, "margin", inTransit, "how `long` before --until and after --from the file decides nothing")
	return r
}

// check returns what is wrong with the arguments, and reads the times.
func (r *reconcile) check() (err error) {
	switch {
	case r.file == "":
		return cli.Usage(r.c, "--file is required: what the gateway's operator has exported")
	case r.options.Apply && strings.TrimSpace(r.options.By) == "":
		return cli.Usage(r.c, "--by is required with --apply: the name of who ends the orders")
	case r.options.Margin <= 0:
		return cli.Usage(r.c, "--margin must be above zero")
	case (r.from == "") != (r.until == ""):
		return cli.Usage(r.c, "give both --from and --until, or neither: then no order is ended as absent")
	}
	if r.statement.From, err = r.time("--from", r.from); err == nil {
		r.statement.Until, err = r.time("--until", r.until)
	}
	if err == nil && r.from != "" && !r.statement.From.Before(r.statement.Until) {
		err = cli.Usage(r.c, "--until is not after --from")
	}
	for _, condition := range r.where {
		column, text, ok := strings.Cut(condition, "=")
		if !ok && err == nil {
			err = cli.Usage(r.c, "--where is a column and its text, such as Store=North")
		}
		if r.flags.Where == nil {
			r.flags.Where = map[string]string{}
		}
		r.flags.Where[column] = text
	}
	r.statement.Merchant = r.s.merchant
	return err
}

const maxSettings = 64 << 10

// format is that of the file: the settings, and the flags before them.
func (r *reconcile) format() (s export.Settings, err error) {
	if r.settings != "" {
		text, err := readFile(r.settings, maxSettings)
		if err != nil {
			return s, fmt.Errorf("--settings: %w", cli.Reason(err))
		}
		if s, err = export.ParseSettings(text); err != nil {
			return s, fmt.Errorf("--settings: %w", err)
		}
	}
	f := r.flags
	for _, one := range []struct {
		flag string
		to   *string
	}{
		{f.Order, &s.Order},
		{f.Invoice, &s.Invoice},
		{f.Created, &s.Created},
		{f.Price, &s.Price},
		{f.Amount, &s.Amount},
		{f.State, &s.State},
		{f.Separator, &s.Separator},
		{f.Zone, &s.Zone},
		{f.TimeLayout, &s.TimeLayout},
	} {
		*one.to = cmp.Or(one.flag, *one.to)
	}
	s.DecimalComma = s.DecimalComma || f.DecimalComma
	if f.Where != nil {
		s.Where = f.Where
	}
	return s, nil
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

// open opens the file.
func (r *reconcile) open() (io.ReadCloser, error) {
	if r.file == "-" {
		return io.NopCloser(r.s.In), nil
	}
	return os.Open(r.file)
}

func (r *reconcile) run(ctx context.Context, _ []string) error {
	if err := r.check(); err != nil {
		return err
	}
	settings, err := r.format()
	if err != nil {
		return err
	}
	file, err := r.open()
	if err != nil {
		return fmt.Errorf("--file: %w", cli.Reason(err))
	}
	defer func() { _ = file.Close() }()
	if r.read, err = export.Read(file, settings); err != nil {
		return fmt.Errorf("--file: %w; %s", err, unchanged)
	}
	r.statement.Rows = r.read.Rows
	if err := r.s.open(ctx); err != nil {
		return err
	}
	found, err := r.s.guard.Reconcile(ctx, r.statement, r.options)
	report := reportOf(r.read, found, r.options.Apply)
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
	Unread      []unreadJSON     `json:"unread"` // of these, those that cannot be read whole
	NoOrder     int              `json:"noOrder"`
	LeftOut     int              `json:"leftOut"`  // by --where
	Repeated    int              `json:"repeated"` // further rows of an invoice
	Counts      map[string]int   `json:"counts"`   // of the differences, by class
	Differences []differenceJSON `json:"differences"`
	Undecided   []undecidedJSON  `json:"undecided"`
}

type unreadJSON struct {
	Number int    `json:"number"`
	Reason string `json:"reason"`
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

func reportOf(file export.File, found sqlguard.Reconciliation, applied bool) reportJSON {
	report := reportJSON{
		Applied: applied, Rows: len(file.Rows), LeftOut: file.LeftOut, Repeated: file.Repeated,
		Unread: []unreadJSON{}, Counts: map[string]int{}, Differences: []differenceJSON{}, Undecided: []undecidedJSON{},
	}
	for _, row := range file.Rows {
		if row.Fault != "" {
			report.Unread = append(report.Unread, unreadJSON{row.Number, row.Fault})
		} else if row.OrderID == "" {
			report.NoOrder++
		}
	}
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
		report.Undecided = append(report.Undecided, undecidedJSON{toJSON(u.Order), inFlags.Replace(u.Reason)})
	}
	return report
}

// inFlags says what to do in terms of flags.
var inFlags = strings.NewReplacer("set From and Until", "give --from and --until", "name these states", "name them by --untouched",
	"nobody has said that invoices are in it that nobody has paid", "nobody has said by --unpaid-included that invoices are in it that nobody has paid")

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

const mostUnread = 20 // that are printed; JSON has all

// print prints the counts, then a line for each difference, then what is undecided.
func (r *reconcile) print(report reportJSON) error {
	if r.s.format == cli.FormatJSON {
		return r.s.WriteJSON(report)
	}
	rows := [][]string{{strconv.Itoa(report.Rows), "rows in the file"}}
	for _, part := range []struct {
		count int
		what  string
	}{
		{len(report.Unread), "that cannot be read whole, and decide nothing"},
		{report.NoOrder, "without an order"},
		{report.LeftOut, "others that --where leaves out"},
		{report.Repeated, "others that repeat an invoice"},
	} {
		if part.count > 0 {
			rows = append(rows, []string{strconv.Itoa(part.count), part.what})
		}
	}
	for _, class := range classes() {
		rows = append(rows, []string{strconv.Itoa(report.Counts[string(class)]), string(class)})
	}
	rows = append(rows, []string{strconv.Itoa(len(report.Undecided)), "unknown: the file does not decide it"})
	err := r.s.WriteRows(rows)
	if len(report.Unread) > 0 {
		var lines [][]string
		for _, u := range report.Unread[:min(len(report.Unread), mostUnread)] {
			lines = append(lines, []string{strconv.Itoa(u.Number), u.Reason})
		}
		err = errors.Join(err, r.s.Write("\n"), r.s.WriteTable([]string{"ROW", "WHY IT CANNOT BE READ WHOLE"}, lines))
	}
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
