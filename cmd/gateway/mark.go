package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

func (s *session) markCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "mark --from FILE", Short: "Mark orders as unknown that a restored database has forgotten", Args: cobra.NoArgs,
		Long: `After the database was restored from a backup, marks orders as unknown that can have been sent
since the backup was made, and that the table does not have, or has as free. Created, unknown and
in-flight orders stay as they are. Until it is done, nothing may send.

The file is CSV with a header: the column order and, where merchants have names, the column
merchant. Other columns are ignored. In a spreadsheet, import the orders as text: a number may
lose its leading zeros. Cells that a spreadsheet or another tool can have changed are refused, such as
1001.0, 1,003, 1.23E+17, #N/A, NULL and dates. If any line is wrong, nothing is marked.`,
		Example: `  gateway orders mark --from orders.csv --dry-run
  gateway orders mark --from orders.csv`,
	}
	s.prints(c, formatTable, formatJSON)
	from := c.Flags().String("from", "", "the `file` with the orders; - for stdin")
	exact := c.Flags().Bool("exact", false, "the cells are exactly what the orders and merchants are called, whatever they look like")
	dryRun := c.Flags().Bool("dry-run", false, "check everything, and mark nothing")
	_ = c.MarkFlagRequired("from") // fails only for a flag that does not exist
	return s.runs(c, 10*time.Minute, func(ctx context.Context, _ []string) error {
		orders, lines, err := s.lost(*from, *exact)
		if err != nil {
			return err
		}
		return s.mark(ctx, orders, lines, *dryRun)
	})
}

// changes are the forms that spreadsheets and other tools give a name, or write in an empty cell.
var changes = []struct {
	what  string
	forms *regexp.Regexp
}{
	{"a number that lost its digits after the 15th", formsOf(`\d{15}00+`)},
	{"an error or a missing value", formsOf(`#(\D.*)?`, `[(<]?(null|nil|none|nan|nat|na|n/a|undefined)[)>]?`, `\\N`)},
	{"a date or a time", formsOf( // 2026-11-28, 28.11.26, 11/28, 01. Feb, Sep-01, 11:28 PM
		`\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ t].*)?`, `\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})([ t,].*)?`, `\d{1,2}/\d{1,4}`,
		`\d{1,2}[-./ ]{1,2}`+months+`\pL*\.?([-./ ]{1,2}\d{2,4})?`, months+`\.?[- ]\d{2}`, `\d{1,2}:\d{2}(:\d{2})?( ?[ap]m)?`)},
	{"a formula or a quoted text", formsOf(`[="].*`, `'[^=+\-@\t\r'].*`)},
	{"a text with digits of another width, or with another dash", formsOf(`.*[\x{ff01}-\x{ff5e}\x{660}-\x{669}\x{6f0}-\x{6f9}\x{2010}-\x{2015}\x{2212}\x{2026}].*`)},
	{"a number with a point, a comma, a sign or an exponent", formsOf( // 1001.0, 1,003, 12 %, 1.23E+17
		`[-+(]?\p{Sc}? ?\d*[.,'’ %\p{Sc}][\d.,'’ %\p{Sc}]*(e[-+]?\d+)?\)?`, `[-+]\d+`, `[-+]?\d+e[-+]?\d+`)},
}

// months are the abbreviations that spreadsheets use, in the languages of the largest markets.
const months = `(jan|feb|fev|fév|mar|mär|mrz|apr|avr|abr|may|mai|jun|jui|jul|aug|aou|aoû|ago|sep|set|oct|okt|out|nov|dec|déc|dez|dic|ene|gen|mag|giu|lug|ott)`

// formsOf matches cells that have one of several forms, without case.
func formsOf(all ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(` + strings.Join(all, "|") + `)$`)
}

// changeOf returns what a cell looks like that can have been changed; "" for any other.
func changeOf(cell string) string {
	for _, change := range changes {
		if change.forms.MatchString(cell) {
			return change.what
		}
	}
	return ""
}

// lost reads the orders of a file, and their lines. Cells that can have been changed are refused, unless they are exact.
func (s *session) lost(name string, exact bool) (orders []gateway.OrderStatus, numbers []int, err error) {
	lines, err := s.readLines(name, 1, "order", "merchant")
	if err != nil {
		return nil, nil, err
	}
	var wrong []error
	for _, l := range lines {
		id, merchant := l.cells[0], l.cells[1]
		if !exact {
			for i, name := range []string{"order", "merchant"} {
				if what := changeOf(l.cells[i]); what != "" {
					wrong = append(wrong, &lineError{l.number, fmt.Errorf("the %s looks like %s", name, what)})
				}
			}
			id, merchant = textOf(id), textOf(merchant)
		}
		orders, numbers = append(orders, gateway.OrderStatus{OrderID: id, Merchant: merchant}), append(numbers, l.number)
	}
	if len(wrong) > 0 {
		return nil, nil, usage("nothing was marked:\n%w\nImport the columns as text. If each cell is exactly what the order or merchant is called, give --exact", errors.Join(wrong...))
	}
	return orders, numbers, nil
}

// A markedRecord is the result of mark.
type markedRecord struct {
	Marked int  `json:"marked"`
	Left   int  `json:"left"` // orders that are created, unknown or in flight, or that the file has twice
	DryRun bool `json:"dryRun"`
}

func (s *session) mark(ctx context.Context, orders []gateway.OrderStatus, lines []int, dryRun bool) error {
	var opts []sqlguard.Option
	otherKind := "the orders of the table have a merchant: give the column merchant"
	if slices.ContainsFunc(orders, func(o gateway.OrderStatus) bool { return o.Merchant != "" }) {
		opts, otherKind = []sqlguard.Option{sqlguard.WithMerchants()}, "the orders of the table have no merchant: give none"
	}
	guard, err := s.guard(ctx, opts...)
	if err != nil {
		return err
	}
	do := guard.Mark
	if dryRun {
		do = guard.CheckMark
	}
	marked, err := do(ctx, orders)
	switch refusals := onLines(err, lines); {
	case refusals != nil:
		return usage("nothing was marked:\n%w", refusals)
	case errors.Is(err, gateway.ErrInvalidArgument):
		return usage("nothing was marked: %s", otherKind)
	case errors.Is(err, sqlguard.ErrUnanswered):
		return fmt.Errorf("%d orders were marked, and up to 200 others may be; run it again: %w", marked, err)
	case err != nil:
		return fmt.Errorf("%d orders were marked: %w", marked, err)
	}
	return s.printDone(markedRecord{marked, len(orders) - marked, dryRun})
}
