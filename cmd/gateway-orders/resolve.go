package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/sqlguard"
)

func (s *session) resolveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "resolve ORDER|--token TOKEN --exists|--absent --by NAME", Args: cli.Args(0, 1, ""),
		Short: "Record what a person has found out about one order",
		Long: `Records that the gateway has an invoice for an unknown order, or that it has none. After --exists
the order is created, and later calls get the invoice of --invoice if it is given: the JSON of the
member "result" of the gateway's response. It can be added later too. After --absent the next call
sends the order.

With --token, which pending and evidence print, it fails if the order was sent again since: the
finding would be outdated. Without it, the order is meant as it is now.`,
		Example: `  gateway-orders resolve A-17 --exists --by anna --note "invoice 4711" --invoice 4711.json
  gateway-orders resolve --token MSAxICIiICJBLTE3Ig --absent --by anna --dry-run`,
	}
	return s.uses(c, traits{
		timeout: 30 * time.Second, single: true, early: "the finding may have been recorded or not: see gateway-orders show",
	}, newResolve(s, c).run)
}

// A resolve is one run of the command.
type resolve struct {
	s                            *session
	c                            *cobra.Command
	exists, absent, dryRun       *bool
	by, note, invoiceFile, token *string
	margin                       *time.Duration
	invoice                      json.RawMessage
}

func newResolve(s *session, c *cobra.Command) *resolve {
	flags := c.Flags()
	return &resolve{
		s:           s,
		c:           c,
		exists:      flags.Bool("exists", false, "the gateway has an invoice for the order"),
		absent:      flags.Bool("absent", false, "the gateway has none"),
		by:          flags.String("by", "", "the `name` of who found out, which is kept"),
		note:        flags.String("note", "", "a `text` that is kept, such as the number of the invoice"),
		invoiceFile: flags.String("invoice", "", "a `file` with the invoice as JSON, for later calls; - for stdin"),
		token:       flags.String("token", "", "the `token` of the order, as it was listed"),
		margin:      flags.Duration("margin", inTransit, "how `long` a request may be in transit: --absent is refused before"),
		dryRun:      flags.Bool("dry-run", false, "say what would be done, and do nothing"),
	}
}

// check returns what is wrong with the arguments, before anything is read.
func (r *resolve) check(args []string) error {
	wrong := ""
	switch {
	case *r.exists == *r.absent:
		wrong = "give what was found, --exists or --absent"
	case strings.TrimSpace(*r.by) == "":
		wrong = "--by is required: the name of who found out"
	case len(args) == 0 && *r.token == "":
		wrong = "give the ORDER to resolve, or its --token"
	case *r.absent && *r.invoiceFile != "":
		wrong = "--invoice goes with --exists: what does not exist has no invoice"
	case *r.margin < 0:
		wrong = "--margin is negative"
	default:
		return nil
	}
	return cli.Usage(r.c, wrong)
}

func (r *resolve) run(ctx context.Context, args []string) error {
	if err := r.check(args); err != nil {
		return err
	}
	if *r.invoiceFile != "" {
		var err error
		if r.invoice, err = r.readInvoice(); err != nil {
			return err
		}
	}
	listed, now, err := r.order(ctx, strings.Join(args, ""))
	if err != nil {
		return err
	}
	after := now
	if !*r.dryRun {
		resolution := sqlguard.Resolution{Exists: *r.exists, By: *r.by, Note: *r.note, Invoice: r.invoice, Margin: max(*r.margin, 1)} // 0 is the default of the guard
		if err := r.s.guard.Resolve(ctx, listed, resolution); err != nil {
			return explain(err)
		}
		if after, err = r.s.guard.Order(ctx, listed.Merchant, listed.ID); err != nil {
			return &partError{"the order is resolved", err}
		}
	}
	if r.s.format == cli.FormatJSON {
		return r.s.WriteJSON(toJSON(after))
	}
	return r.s.Write(r.result(after))
}

// order returns the order as it was listed, and as it is now.
func (r *resolve) order(ctx context.Context, id string) (listed, now sqlguard.Order, err error) {
	merchant := r.s.merchant
	if *r.token != "" {
		if listed, err = sqlguard.ParseToken(*r.token); err != nil {
			return listed, now, cli.Usage(r.c, "--token is not a token, or not a whole one: copy it again from pending or evidence")
		}
		if id != "" && id != listed.ID || merchant != "" && merchant != listed.Merchant {
			return listed, now, cli.Usage(r.c, "--token is that of another order: give it alone, or copy it again")
		}
		merchant, id = listed.Merchant, listed.ID
	}
	now, err = r.s.order(ctx, merchant, id)
	if *r.token == "" {
		listed = now
	}
	if err != nil {
		return listed, now, err
	}
	completes := now.State == sqlguard.StateCreated && now.Record.Invoice == nil && r.invoice != nil
	switch {
	case now.State != sqlguard.StateUnknown && !completes:
		return listed, now, explain(fmt.Errorf("%w: it is %s", sqlguard.ErrNotUnknown, now.State))
	case *r.token != "" && now.State == sqlguard.StateUnknown && now.Token() != *r.token:
		return listed, now, explain(sqlguard.ErrTriedAgain)
	}
	return listed, now, nil
}

// result says what was done, or would be.
func (r *resolve) result(o sqlguard.Order) string {
	is, end := "is", "it has no invoice, and the next call for it sends one"
	if *r.dryRun {
		is = "would be"
	}
	state := sqlguard.StateFree
	if *r.exists {
		state, end = sqlguard.StateCreated, "later calls get its invoice"
		if r.invoice == nil && o.Record.Invoice == nil {
			end = "later calls succeed, without the gateway's response, which is not known"
		}
	}
	text := fmt.Sprintf("order %s %s %s, found by %s: %s", o.ID, is, state, *r.by, end)
	if *r.dryRun && *r.absent {
		text += ", and it is accepted from " + timeText(o.SentUntil.Add(*r.margin)) + " on"
	}
	if *r.dryRun {
		text += " (dry run: " + unchanged + ")"
	}
	return cli.Printable(text) + "\n"
}

// explain says what to do about a finding that was not accepted.
func explain(err error) error {
	switch {
	case errors.Is(err, sqlguard.ErrTriedAgain):
		return fmt.Errorf("the order was sent again since it was listed, so the finding may be outdated: look it up again, from gateway-orders evidence on (%w)", err)
	case errors.Is(err, sqlguard.ErrNotUnknown):
		return fmt.Errorf("there is nothing to resolve about the order: see gateway-orders show (%w)", err)
	case errors.Is(err, sqlguard.ErrTooEarly):
		return fmt.Errorf("%w: look it up again then, or set --margin if you know how long a request takes", err)
	default:
		return err
	}
}

const mostInvoice = 64 << 10 // what the guard keeps

// readInvoice reads the file of --invoice.
func (r *resolve) readInvoice() (json.RawMessage, error) {
	text, err := r.s.input(*r.invoiceFile, mostInvoice+1)
	if err != nil {
		return nil, fmt.Errorf("--invoice: %w", cli.Reason(err))
	}
	var members map[string]json.RawMessage
	switch {
	case len(text) > mostInvoice:
		return nil, cli.Usage(r.c, "--invoice has more than 64 KiB")
	case json.Unmarshal(text, &members) != nil:
		return nil, cli.Usage(r.c, "--invoice is not a JSON object")
	case members["result"] != nil && members["message"] != nil:
		return nil, cli.Usage(r.c, `--invoice is a whole response: give its member "result" only`)
	}
	return json.RawMessage(strings.TrimSpace(string(text))), nil
}
