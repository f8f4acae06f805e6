package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/sqlguard"
)

const exportPage = 500 // how many orders are in memory at once

func (s *session) exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "export", Short: "The whole table, as CSV or a line of JSON for each order",
		Long: `Prints every order, by merchant and order id, in pages: the table may be of any size. Times are in
UTC. A cell of CSV that a spreadsheet would take for a formula begins with ', which reconcile takes off.
Characters that control a terminal or the direction of text, such as ESC, are written as \u001b,
but not the end of a line and the tab: JSON has the exact text, CSV has not.`,
		Example: `  gateway-orders export >orders.csv
  gateway-orders export -o json --state created >created.jsonl`,
	}
	states := []string{string(sqlguard.StateFree), string(sqlguard.StateInFlight), string(sqlguard.StateUnknown), string(sqlguard.StateCreated)}
	state := c.Flags().String("state", "", "only the orders of this `state`: free, \"in flight\", unknown or created")
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	return s.uses(c, traits{early: "the output is not whole", formats: []string{cli.FormatCSV, cli.FormatJSON}}, func(ctx context.Context, _ []string) error {
		if *state != "" && !slices.Contains(states, *state) {
			return cli.Usage(c, `--state is free, "in flight", unknown or created`)
		}
		return s.export(ctx, sqlguard.State(*state))
	})
}

// eachOrder calls do for every order of the table.
func (s *session) eachOrder(ctx context.Context, do func(sqlguard.Order) error) error {
	var after sqlguard.Order
	for {
		page, err := s.guard.Orders(ctx, sqlguard.OrdersQuery{Most: exportPage, After: after})
		if err != nil {
			return err
		}
		for _, o := range page {
			if err := do(o); err != nil {
				return err
			}
		}
		if len(page) < exportPage {
			return nil
		}
		after = page[len(page)-1]
	}
}

func (s *session) export(ctx context.Context, state sqlguard.State) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	write, flush := rowWriter(s.format, s.Out)
	count := 0
	err := s.eachOrder(ctx, func(o sqlguard.Order) error {
		if state != "" && o.State != state {
			return nil
		}
		count++
		return write(o)
	})
	if flushed := flush(); err == nil {
		err = flushed
	}
	if err != nil {
		return &partError{fmt.Sprintf("the output is not whole, at most %d orders are in it", count), err}
	}
	return nil
}

// rowWriter returns what writes an order as a line, after the header in CSV, and what ends the output.
func rowWriter(format string, to io.Writer) (write func(sqlguard.Order) error, flush func() error) {
	if format == cli.FormatJSON {
		out := bufio.NewWriter(to)
		return func(o sqlguard.Order) error { return cli.EncodeJSON(out, toJSON(o), "") }, out.Flush
	}
	rows := csv.NewWriter(to)
	header := rows.Write(exportColumns())
	write = func(o sqlguard.Order) error { return errors.Join(header, rows.Write(exportRow(toJSON(o)))) }
	return write, func() error {
		rows.Flush()
		return rows.Error()
	}
}

// exportColumns are the members of orderJSON.
func exportColumns() []string {
	return strings.Fields(`orderId merchant gateway state attempts unknownSince begun ended created
		price amount baseCurrency coinSymbol networkName requestId sentAt status body cause invoice others earlier
		resolved resolvedBy resolution note token`)
}

func exportRow(o orderJSON) []string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	row := []string{
		o.OrderID, o.Merchant, o.Gateway, o.State, strconv.Itoa(o.Attempts), at(o.UnknownSince), at(o.Begun), at(o.Ended), at(o.Created),
		o.Price, o.Amount, o.BaseCurrency, o.CoinSymbol, o.NetworkName, o.RequestID, at(o.SentAt), zeroIsNone(o.Status),
		o.Body, o.Cause, string(o.Invoice), textOf(o.Others), textOf(o.Earlier), at(o.Resolved), o.ResolvedBy, o.Resolution, o.Note, o.Token,
	}
	for i, cell := range row {
		row[i] = asData(cli.Escaped(cell))
	}
	return row
}

// asData is a cell that no spreadsheet takes for a formula.
func asData(cell string) string {
	if first, _ := utf8.DecodeRuneInString(cell); strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + cell
	}
	return cell
}
