package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

func (s *session) resolveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "resolve --by NAME", Args: cobra.NoArgs,
		Short: "Record what a person has found out about unknown orders",
		Long: `Records that the gateway has an invoice for an unknown order, or that it has none: for the
orders of a file, or for one.

FILE comes from orders pending -o csv. Write exists or absent into its column finding, or nothing if you
do not know yet. An optional column invoice has the invoice of an existing order, as JSON. If any
row is wrong, or cannot be applied, nothing is changed.

After exists the order is created, and later calls get the invoice if it is given. After absent the
next call sends the order. Absent is refused for an order that was listed before the time in
absent_from: list it again then, and look it up again. A finding is refused if the order was sent
again since it was listed.`,
		Example: `  gateway orders resolve --from findings.csv --by anna --dry-run
  gateway orders resolve --token TOKEN --exists --by anna --note "invoice 4711"`,
	}
	s.prints(c, formatTable, formatJSON)
	var f gateway.Finding
	flags := c.Flags()
	from := flags.String("from", "", "the `file` with the findings; - for stdin")
	token := flags.String("token", "", "the `token` of one order, as it was listed")
	flags.BoolVar(&f.Exists, "exists", false, "the gateway has an invoice for the order")
	absent := flags.Bool("absent", false, "the gateway has none")
	invoice := flags.String("invoice", "", "a `file` with the invoice as JSON, for later calls; - for stdin")
	flags.StringVar(&f.By, "by", "", "the `name` of who found out, which is kept")
	flags.StringVar(&f.Note, "note", "", "a `text` that is kept, such as the number of the invoice")
	dryRun := flags.Bool("dry-run", false, "check everything, and change nothing")
	margin := marginFlag(flags)
	_ = c.MarkFlagRequired("by") // fails only for a flag that does not exist
	c.MarkFlagsOneRequired("from", "token")
	for _, name := range []string{"token", "exists", "absent", "invoice"} {
		c.MarkFlagsMutuallyExclusive("from", name)
	}
	return s.runs(c, ordersTimeout, func(ctx context.Context, _ []string) (err error) {
		f.Margin = cmp.Or(*margin, 1) // 0 would be the default
		if *from != "" {
			return s.resolveFile(ctx, *from, f, *dryRun)
		}
		if f.Exists == *absent {
			return usage("give --exists or --absent")
		}
		if *invoice != "" {
			text, err := s.input(*invoice)
			if err == nil {
				f.Invoice, err = invoiceOf(text)
			}
			if err != nil {
				return usage("--invoice: %w", err)
			}
		}
		o, err := orderOf(*token)
		if err != nil {
			return err
		}
		return s.resolve(ctx, []sqlguard.Resolution{{Order: o, Finding: f}}, nil, 0, *dryRun)
	})
}

// A resolvedRecord is the result of resolve.
type resolvedRecord struct {
	Exist  int  `json:"exist"`
	Absent int  `json:"absent"`
	Left   int  `json:"left"` // rows without a finding
	DryRun bool `json:"dryRun"`
}

// resolve records findings, all or none. The lines are those of a file.
func (s *session) resolve(ctx context.Context, all []sqlguard.Resolution, lines []int, left int, dryRun bool) error {
	guard, err := s.guard(ctx)
	if err != nil {
		return err
	}
	if dryRun {
		err = guard.CheckAll(ctx, all)
	} else {
		err = guard.ResolveAll(ctx, all)
	}
	if refusals := onLines(err, lines); refusals != nil {
		return fmt.Errorf("nothing was changed:\n%w\nList these orders again with gateway orders pending or show, and look them up again", refusals)
	}
	if err != nil {
		return fmt.Errorf("the findings may have been recorded or not, all of them or none; run it again with --dry-run to see: %w", err)
	}
	done := resolvedRecord{Left: left, DryRun: dryRun}
	for _, one := range all {
		if one.Finding.Exists {
			done.Exist++
		} else {
			done.Absent++
		}
	}
	return s.printDone(done)
}

// orderOf returns the order of a token.
func orderOf(token string) (gateway.OrderStatus, error) {
	o, err := sqlguard.ParseToken(strings.TrimSpace(token))
	if err != nil {
		err = usage("the token is missing, or not whole: copy it again from orders pending")
	}
	return o, err
}

// resolveFile records the findings of a file. The finding f has what all of them share.
func (s *session) resolveFile(ctx context.Context, name string, f gateway.Finding, dryRun bool) error {
	rows, err := s.readLines(name, 2, "token", "finding", "invoice", "order")
	if err != nil {
		return err
	}
	var all []sqlguard.Resolution
	var lines []int
	var wrong []error
	left := 0
	listed := map[string]bool{} // the orders of the file, as pending lists them
	for _, l := range rows {
		if o, err := orderOf(l.cells[0]); err == nil {
			listed[guarded(printable(o.OrderID))] = true
		}
	}
	for _, l := range rows {
		o, finding, err := rowOf(l, f)
		if shown := l.cells[3]; err == nil && shown != guarded(printable(o.OrderID)) && listed[shown] {
			err = fmt.Errorf("the token belongs to another order than %q: a column was sorted by itself; list the orders again", shown)
		}
		switch {
		case err != nil && o.OrderID != "":
			wrong = append(wrong, &lineError{l.number, fmt.Errorf("order %q: %w", o.OrderID, err)})
		case err != nil:
			wrong = append(wrong, &lineError{l.number, err})
		case finding == nil:
			left++
		default:
			all, lines = append(all, sqlguard.Resolution{Order: o, Finding: *finding}), append(lines, l.number)
		}
	}
	if len(wrong) > 0 {
		return usage("nothing was changed:\n%w", errors.Join(wrong...))
	}
	return s.resolve(ctx, all, lines, left, dryRun)
}

// rowOf reads a row; the finding is nil if there is none yet.
func rowOf(l line, found gateway.Finding) (o gateway.OrderStatus, f *gateway.Finding, err error) {
	if o, err = orderOf(l.cells[0]); err != nil {
		return o, nil, err
	}
	finding, invoice := strings.ToLower(strings.TrimSpace(l.cells[1])), strings.TrimSpace(l.cells[2])
	switch found.Exists = finding == findsExists; {
	case finding == "" && invoice == "":
		return o, nil, nil
	case finding != findsExists && finding != findsAbsent:
		return o, nil, errors.New("the finding is exists, absent or empty")
	case invoice != "":
		found.Invoice, err = invoiceOf([]byte(invoice))
	}
	return o, &found, err
}

// invoiceOf returns the JSON of an invoice.
func invoiceOf(text []byte) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	switch {
	case json.Unmarshal(text, &members) != nil:
		return nil, errors.New("the invoice is not a JSON object")
	case members["result"] != nil && members["message"] != nil:
		return nil, errors.New(`the invoice is a whole response: give only its member "result"`)
	}
	return text, nil
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
