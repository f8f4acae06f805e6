package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
do not know yet. The column invoice may have the invoice of an existing order, as JSON. In a
spreadsheet, import every column as text: a row is wrong if its order or merchant does not belong to its
token. If any row is wrong, nothing is changed.

After exists the order is created, and later calls get the invoice if it is given. After absent the
next call sends the order. Absent is too early for an order that was listed before the time in
absent_from: it is left, and the others are recorded; list it again then, and look it up again. The
exit code is 6 if there is one. A finding is refused if the order was sent again since it was listed.
The same finding once more changes nothing.`,
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
		f.Margin = cmp.Or(*margin, time.Microsecond) // 0 would be the default
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
		return s.resolve(ctx, findings{all: []sqlguard.Resolution{{Order: o, Finding: f}}}, *dryRun)
	})
}

// A resolvedRecord is the result of resolve.
type resolvedRecord struct {
	Exist  int  `json:"exist"`
	Absent int  `json:"absent"`
	Early  int  `json:"early"` // too early to be absent
	Left   int  `json:"left"`  // rows without a finding
	DryRun bool `json:"dryRun"`
}

// The findings of a file, or of one token.
type findings struct {
	all   []sqlguard.Resolution
	lines []int // of each; nil without a file
	left  int   // rows without a finding
}

// resolve records the findings that are not too early: all of these, or none.
func (s *session) resolve(ctx context.Context, f findings, dryRun bool) error {
	guard, err := s.guard(ctx)
	if err != nil {
		return err
	}
	total := len(f.all)
	early, err := f.takeEarly(guard.CheckAll(ctx, f.all))
	if err == nil && !dryRun {
		err = guard.ResolveAll(ctx, f.all)
	}
	switch refused := onLines(err, f.lines); {
	case refused != nil:
		return fmt.Errorf("nothing was changed:\n%w\n%sList these orders again with gateway orders pending or show, and look them up again", refused, f.others())
	case errors.Is(err, sqlguard.ErrUnanswered):
		return fmt.Errorf("the findings may have been recorded or not, all of them or none; run it again with --dry-run to see: %w", err)
	case err != nil:
		return fmt.Errorf("nothing was changed: %w", err)
	}
	done := resolvedRecord{Early: total - len(f.all), Left: f.left, DryRun: dryRun}
	for _, one := range f.all {
		if one.Finding.Exists {
			done.Exist++
		} else {
			done.Absent++
		}
	}
	if err := s.printDone(done); err != nil || early == nil {
		return err
	}
	return fmt.Errorf("%w:\n%w\nList these orders again after that time, and look them up again", errLeft, early)
}

// others says how the other findings of a file are recorded.
func (f *findings) others() string {
	if f.lines == nil {
		return ""
	}
	return "To record the others, empty these findings. "
}

// takeEarly removes the findings that are too early, and returns why they are refused; or any other error.
func (f *findings) takeEarly(err error) (early, failure error) {
	var others []error
	refusals := refusalsOf(err)
	for _, r := range refusals {
		if !errors.Is(r, gateway.ErrTooEarly) {
			others = append(others, r)
		}
	}
	if len(refusals) == 0 || len(others) > 0 {
		return nil, cmp.Or(errors.Join(others...), err)
	}
	early = onLines(err, f.lines)
	for _, r := range slices.Backward(refusals) {
		f.all = slices.Delete(f.all, r.Index, r.Index+1)
		if f.lines != nil {
			f.lines = slices.Delete(f.lines, r.Index, r.Index+1)
		}
	}
	return early, nil
}

func orderOf(token string) (gateway.OrderStatus, error) {
	o, err := sqlguard.ParseToken(strings.TrimSpace(token))
	if err != nil {
		err = usage("the token is missing, or not whole: copy it again from orders pending")
	}
	return o, err
}

// resolveFile records the findings of a file. The finding f has what all of them share.
func (s *session) resolveFile(ctx context.Context, name string, f gateway.Finding, dryRun bool) error {
	rows, err := s.readLines(name, 4, "token", "finding", "order", "merchant", "invoice")
	if err != nil {
		return err
	}
	var found findings
	var wrong []error
	for _, l := range rows {
		o, finding, err := rowOf(l, f)
		switch {
		case err != nil && o.Merchant != "":
			wrong = append(wrong, &lineError{l.number, fmt.Errorf("order %q of merchant %q: %w", o.OrderID, o.Merchant, err)})
		case err != nil && o.OrderID != "":
			wrong = append(wrong, &lineError{l.number, fmt.Errorf("order %q: %w", o.OrderID, err)})
		case err != nil:
			wrong = append(wrong, &lineError{l.number, err})
		case finding == nil:
			found.left++
		default:
			found.all, found.lines = append(found.all, sqlguard.Resolution{Order: o, Finding: *finding}), append(found.lines, l.number)
		}
	}
	if len(wrong) > 0 {
		return usage("nothing was changed:\n%w\nIn a spreadsheet, import every column of the list as text, and sort whole rows. The list can be imported again, or made anew", errors.Join(wrong...))
	}
	return s.resolve(ctx, found, dryRun)
}

// rowOf reads a row; the finding is nil if there is none yet.
func rowOf(l line, found gateway.Finding) (o gateway.OrderStatus, f *gateway.Finding, err error) {
	if o, err = orderOf(l.cells[0]); err != nil {
		return o, nil, err
	}
	if !isCellOf(l.cells[2], o.OrderID) || !isCellOf(l.cells[3], o.Merchant) {
		return o, nil, errors.New("the row shows another order or merchant than its token has")
	}
	finding, invoice := strings.ToLower(strings.TrimSpace(l.cells[1])), strings.TrimSpace(l.cells[4])
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

// refusalsOf returns the refusals that are joined in an error, by their index.
func refusalsOf(err error) (all []*sqlguard.RefusedError) {
	each := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		each = joined.Unwrap()
	}
	for _, one := range each {
		if refusal, ok := errors.AsType[*sqlguard.RefusedError](one); ok {
			all = append(all, refusal)
		}
	}
	return all
}

// onLines returns the refusals that are joined in an error, with their lines if there are any; nil if there is no refusal.
func onLines(err error, lines []int) error {
	var all []error
	for _, refusal := range refusalsOf(err) {
		if lines == nil {
			all = append(all, refusal.Err)
		} else {
			all = append(all, &lineError{lines[refusal.Index], refusal.Err})
		}
	}
	return errors.Join(all...)
}
