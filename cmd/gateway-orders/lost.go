package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/sqlguard"
)

const mostLost = 64 << 20 // bytes of a file

func (s *session) lostCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "lost --file FILE --since TIME", Short: "Mark orders as unknown that a restored database has forgotten",
		Long: `Reads order ids, one in each line, which can have been sent since a backup was made, and marks those
as unknown that the table does not have, or has as free. The others stay as they are. Keep
everything stopped that sends, until it is done.`,
		Example: "  gateway-orders lost --file ids.txt --since 2026-11-22T03:00:00Z",
	}
	file := c.Flags().String("file", "", "the `file` with the ids")
	since := c.Flags().String("since", "", "the `time` of the backup, such as 2026-11-22T03:00:00Z")
	return s.uses(c, traits{timeout: 10 * time.Minute, early: "some were marked: run it again", single: true}, func(ctx context.Context, _ []string) error {
		at, err := time.Parse(time.RFC3339, *since)
		switch {
		case *file == "":
			return cli.Usage(c, "--file is required: the ids of the orders, one in each line")
		case err != nil:
			return cli.Usage(c, "--since is required: the time of the backup with its zone, such as 2026-11-22T03:00:00Z")
		}
		text, err := readFile(*file, mostLost+1)
		switch {
		case err != nil:
			return fmt.Errorf("--file: %w", cli.Reason(err))
		case len(text) > mostLost:
			return errors.New("--file: it has more than 64 MiB")
		}
		return s.lost(ctx, strings.Split(string(text), "\n"), at)
	})
}

func (s *session) lost(ctx context.Context, ids []string, since time.Time) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	marked, rest := 0, 0
	for _, id := range ids {
		if id = strings.TrimSuffix(id, "\r"); id == "" {
			continue
		}
		known, err := s.guard.Order(ctx, s.merchant, id)
		if err == nil && known.State != sqlguard.StateFree {
			rest++
			continue
		}
		if err == nil {
			o := gateway.Order{Gateway: known.Gateway, Merchant: s.merchant, Request: gateway.InvoiceRequest{OrderID: id}}
			_, err = s.guard.End(ctx, o, gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, SentAt: since, Cause: "its row was lost with a backup"})
		}
		if err != nil {
			return &partError{fmt.Sprintf("%d orders were marked", marked), err}
		}
		marked++
	}
	if s.format == cli.FormatJSON {
		return s.WriteJSON(map[string]any{"marked": marked, "kept": rest})
	}
	return s.Write(fmt.Sprintf("marked as unknown: %d; left, as created, unknown or in flight: %d\n", marked, rest))
}
