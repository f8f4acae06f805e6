package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
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
in-flight orders stay as they are. Keep everything stopped that sends, until it is done.

The file is CSV with a header: the column order and, where merchants have names, the column
merchant. Other columns are ignored. In a spreadsheet, import the orders as text: a number may
lose its leading zeros. If any line is wrong, nothing is marked.`,
		Example: `  gateway orders mark --from orders.csv --dry-run
  gateway orders mark --from orders.csv`,
	}
	s.prints(c, formatTable, formatJSON)
	from := c.Flags().String("from", "", "the `file` with the orders; - for stdin")
	dryRun := c.Flags().Bool("dry-run", false, "check everything, and mark nothing")
	_ = c.MarkFlagRequired("from") // fails only for a flag that does not exist
	return s.runs(c, 10*time.Minute, func(ctx context.Context, _ []string) error {
		orders, lines, err := s.lost(*from)
		if err != nil {
			return err
		}
		return s.mark(ctx, orders, lines, *dryRun)
	})
}

// scientific is a number as a spreadsheet shows a long one: its last digits are lost.
var scientific = regexp.MustCompile(`^[+-]?\d([.,]\d+)?[eE][+-]?\d+$`)

// lost reads the orders of a file, and their lines.
func (s *session) lost(name string) (orders []gateway.OrderStatus, numbers []int, err error) {
	lines, err := s.readLines(name, 1, "order", "merchant")
	if err != nil {
		return nil, nil, err
	}
	var wrong []error
	for _, l := range lines {
		o := gateway.OrderStatus{OrderID: unguarded(l.cells[0]), Merchant: unguarded(l.cells[1])}
		if scientific.MatchString(o.OrderID) {
			wrong = append(wrong, &lineError{l.number, errors.New("a spreadsheet has rounded the order, such as to 1.23E+17: import the column as text")})
		}
		orders, numbers = append(orders, o), append(numbers, l.number)
	}
	if len(wrong) > 0 {
		return nil, nil, usage("nothing was marked:\n%w", errors.Join(wrong...))
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
	case err != nil:
		return fmt.Errorf("%d orders were marked; run it again: %w", marked, err)
	}
	return s.printDone(markedRecord{marked, len(orders) - marked, dryRun})
}
