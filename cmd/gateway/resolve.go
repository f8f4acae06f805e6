package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

func (s *session) resolveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "resolve [ORDER]", Args: cobra.MaximumNArgs(1),
		Short: "Record what a person has found out about unknown orders",
		Long: `Records that the gateway has an invoice for an unknown order, or that it has none: for the
orders of a file, or for one.

FILE comes from orders pending -o csv. Write exists or absent into its column finding, or nothing if you
do not know yet. An optional column invoice has the invoice of an existing order, as JSON. If any
row is wrong, or cannot be applied, nothing is changed.

After exists the order is created, and later calls get the invoice if it is given. After absent the
next call sends the order. Absent is refused for an order that was listed before the time in
absent_from: list it again then, and look it up again. A finding is refused if the order was sent
again since it was listed. An order that exists can be named without its token.`,
		Example: `  gateway orders resolve --from findings.csv --by anna --dry-run
  gateway orders resolve --token TOKEN --exists --by anna --note "invoice 4711"
  gateway orders resolve A-17 --exists --by anna`,
	}
	s.prints(c, formatTable, formatJSON)
	var r resolve
	flags := c.Flags()
	flags.StringVar(&r.from, "from", "", "the `file` with the findings; - for stdin")
	flags.StringVar(&r.token, "token", "", "the `token` of one order, as it was listed")
	flags.BoolVar(&r.finding.Exists, "exists", false, "the gateway has an invoice for the order")
	flags.BoolVar(&r.absent, "absent", false, "the gateway has none")
	flags.StringVar(&r.invoice, "invoice", "", "a `file` with the invoice as JSON, for later calls; - for stdin")
	flags.StringVar(&r.finding.By, "by", "", "the `name` of who found out, which is kept")
	flags.StringVar(&r.finding.Note, "note", "", "a `text` that is kept, such as the number of the invoice")
	flags.BoolVar(&r.dryRun, "dry-run", false, "check everything, and change nothing")
	r.merchant, r.margin = merchantFlag(flags, "none"), marginFlag(flags)
	_ = c.MarkFlagRequired("by") // fails only for a flag that does not exist
	c.MarkFlagsMutuallyExclusive("exists", "absent", "from")
	c.MarkFlagsOneRequired("exists", "absent", "from")
	for _, name := range []string{"token", "merchant"} {
		c.MarkFlagsMutuallyExclusive("from", name)
	}
	c.MarkFlagsMutuallyExclusive("token", "merchant")
	c.MarkFlagsMutuallyExclusive("invoice", "absent", "from")
	return s.runs(c, ordersTimeout, func(ctx context.Context, args []string) error {
		r.finding.Margin = max(*r.margin, 1) // 0 would be the default
		switch {
		case strings.TrimSpace(r.finding.By) == "":
			return usage("--by is blank")
		case r.absent && len(args) > 0:
			return usage("--absent needs the --token with which the order was listed before it was looked up, and not its name: it may have been sent again since")
		case r.from != "" && len(args) > 0, r.from == "" && (len(args) > 0) == (r.token != ""):
			return usage("give --from, --token or the ORDER")
		}
		return s.resolve(ctx, &r, strings.Join(args, ""))
	})
}

// A resolve has the flags of the command.
type resolve struct {
	from, token, invoice string
	merchant             *string
	margin               *time.Duration
	absent, dryRun       bool
	finding              gateway.Finding
}

func (s *session) resolve(ctx context.Context, r *resolve, id string) (err error) {
	var all []sqlguard.Resolution
	var lines []int // of these, or none
	done := resolvedRecord{DryRun: r.dryRun}
	if r.from != "" {
		if all, lines, done.Left, err = s.findings(r); err != nil {
			return err
		}
	} else if r.invoice != "" {
		if r.finding.Invoice, err = s.invoiceFile(r.invoice); err != nil {
			return err
		}
	}
	guard, err := s.guard(ctx)
	if err != nil {
		return err
	}
	if r.from == "" {
		o, err := r.order(ctx, guard, id)
		if err != nil {
			return err
		}
		all = []sqlguard.Resolution{{Order: o, Finding: r.finding}}
	}
	if r.dryRun {
		err = guard.CheckAll(ctx, all)
	} else if len(all) > 0 {
		err = guard.ResolveAll(ctx, all)
	}
	if refusals := onLines(err, lines); refusals != nil {
		return fmt.Errorf("nothing was changed:\n%w\nList these orders again with gateway orders pending or show, and look them up again", refusals)
	}
	if err != nil {
		return fmt.Errorf("the findings may have been recorded or not, all of them or none; run it again with --dry-run to see: %w", err)
	}
	for _, one := range all {
		if one.Finding.Exists {
			done.Exist++
		} else {
			done.Absent++
		}
	}
	return s.printDone(done)
}

// A resolvedRecord is the result of resolve.
type resolvedRecord struct {
	Exist  int  `json:"exist"`
	Absent int  `json:"absent"`
	Left   int  `json:"left"` // rows without a finding
	DryRun bool `json:"dryRun"`
}

// order returns the order of --token, or the named one as it is now.
func (r *resolve) order(ctx context.Context, guard *sqlguard.Guard, id string) (gateway.OrderStatus, error) {
	if r.token == "" {
		return known(ctx, guard, *r.merchant, id)
	}
	o, err := sqlguard.ParseToken(strings.TrimSpace(r.token))
	if err != nil {
		return o, usage("--token is not a whole token: copy it again from orders pending")
	}
	return o, nil
}

// findings reads the file of --from. It returns the line of each finding, and how many rows have no finding yet.
func (s *session) findings(r *resolve) (all []sqlguard.Resolution, lines []int, left int, err error) {
	rows, err := s.readLines(r.from, 2, "token", "finding", "invoice", "order")
	if err != nil {
		return nil, nil, 0, err
	}
	var wrong []error
	lineOf := map[[2]string]int{} // of an order
	listed := map[string]bool{}   // the orders of the file, as pending lists them
	for _, l := range rows {
		if o, err := sqlguard.ParseToken(strings.TrimSpace(l.cells[0])); err == nil {
			listed[guarded(printable(o.OrderID))] = true
		}
	}
	for _, l := range rows {
		o, f, err := r.row(l)
		if shown := l.cells[3]; err == nil && shown != guarded(printable(o.OrderID)) && listed[shown] {
			err = fmt.Errorf("the token belongs to another order than %q: a column was sorted by itself; list the orders again", shown)
		}
		key := [2]string{o.Merchant, o.OrderID}
		if before := lineOf[key]; err == nil && before > 0 {
			err = fmt.Errorf("it is on line %d too", before)
		}
		if err != nil {
			if o.OrderID != "" {
				err = fmt.Errorf("order %q: %w", o.OrderID, err)
			}
			wrong = append(wrong, &lineError{l.number, err})
			continue
		}
		lineOf[key] = l.number
		if f == nil {
			left++
		} else {
			all, lines = append(all, sqlguard.Resolution{Order: o, Finding: *f}), append(lines, l.number)
		}
	}
	if len(wrong) > 0 {
		return nil, nil, 0, usage("nothing was changed:\n%w", errors.Join(wrong...))
	}
	return all, lines, left, nil
}

// row reads a row; the finding is nil if there is none yet.
func (r *resolve) row(l line) (o gateway.OrderStatus, f *gateway.Finding, err error) {
	token, finding, invoice := strings.TrimSpace(l.cells[0]), strings.ToLower(strings.TrimSpace(l.cells[1])), strings.TrimSpace(l.cells[2])
	if o, err = sqlguard.ParseToken(token); err != nil {
		return o, nil, errors.New("the token is missing, or not whole: copy the row again from orders pending")
	}
	found := r.finding
	switch found.Exists = finding == findsExists; {
	case finding == "" && invoice == "":
		return o, nil, nil
	case finding != findsExists && finding != findsAbsent:
		return o, nil, errors.New("the finding is exists, absent or empty")
	case invoice == "":
		return o, &found, nil
	case !found.Exists:
		return o, nil, errors.New("an order that is absent has no invoice")
	}
	found.Invoice, err = invoiceOf([]byte(invoice))
	return o, &found, err
}

// invoiceFile reads the file of --invoice.
func (s *session) invoiceFile(name string) (json.RawMessage, error) {
	text, err := s.input(name)
	if err == nil {
		text, err = invoiceOf(text)
	}
	if err != nil {
		return nil, usage("--invoice: %w", err)
	}
	return text, nil
}

// invoiceOf returns the JSON of an invoice.
func invoiceOf(text []byte) (json.RawMessage, error) {
	const most = 64 << 10 // what the guard keeps
	var members map[string]json.RawMessage
	switch {
	case len(text) > most:
		return nil, errors.New("the invoice has more than 64 KiB")
	case json.Unmarshal(text, &members) != nil:
		return nil, errors.New("the invoice is not a JSON object")
	case members["result"] != nil && members["message"] != nil:
		return nil, errors.New(`the invoice is a whole response: give only its member "result"`)
	}
	return bytes.TrimSpace(text), nil
}

// onLines returns the refusals that are joined in an error, with their lines if there are any; nil if there is no refusal.
func onLines(err error, lines []int) error {
	each := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		each = joined.Unwrap()
	}
	var all []error
	for _, one := range each {
		refusal, ok := errors.AsType[*sqlguard.RefusedError](one)
		switch {
		case ok && lines != nil:
			all = append(all, &lineError{lines[refusal.Index], refusal.Err})
		case ok:
			all = append(all, refusal.Err)
		}
	}
	return errors.Join(all...)
}
