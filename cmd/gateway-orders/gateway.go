package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/sqlguard"
)

func (s *session) gatewayCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "gateway [OLD NEW --same|--another]", Short: "The gateways of the orders, and what a new base URL means",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 2 {
				return cli.Usage(c, "give none, which lists the gateways, or two base URLs: that of the orders, and the new one")
			}
			return nil
		},
		Long: `Prints how many orders the table has of each gateway. An order is one of a gateway: a client with
another base URL is refused until it is said what that means.

  --same     it is the same gateway, which has another base URL: its orders are those of the new one
  --another  it is another one, such as the live one after the test: an order of the same name is
             another order there. Those that are unknown at the old one are refused until they are
             resolved`,
		Example: `  gateway-orders gateway
  gateway-orders gateway https://test.gateway.example https://gateway.example --another`,
	}
	same := c.Flags().Bool("same", false, "both are the same gateway")
	another := c.Flags().Bool("another", false, "the new one is another gateway")
	return s.uses(c, traits{timeout: 30 * time.Second, early: "it was recorded or not: run it again"}, func(ctx context.Context, args []string) error {
		switch {
		case len(args) == 0 && (*same || *another):
			return cli.Usage(c, "--same and --another need two base URLs")
		case len(args) == 2 && *same == *another:
			return cli.Usage(c, "say whether they are the --same gateway or --another one: see gateway-orders help gateway")
		case len(args) == 0:
			return s.gateways(ctx)
		}
		return s.changeGateway(ctx, c, args[0], args[1], *same)
	})
}

func (s *session) gateways(ctx context.Context) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	all, err := s.guard.Gateways(ctx)
	if err != nil {
		return err
	}
	if s.format == cli.FormatJSON {
		return s.WriteJSON(map[string]any{"gateways": append([]sqlguard.GatewayOrders{}, all...)})
	}
	var rows [][]string
	for _, g := range all {
		rows = append(rows, []string{cmp.Or(g.Gateway, "not known"), strconv.Itoa(g.Count)})
	}
	return s.WriteTable([]string{"GATEWAY", "ORDERS"}, rows)
}

func (s *session) changeGateway(ctx context.Context, c *cobra.Command, from, to string, same bool) error {
	for _, text := range []*string{&from, &to} {
		base, reason := endpoint.Parse(*text)
		if reason != "" {
			return cli.Usage(c, "a base URL "+reason)
		}
		*text = base.String()
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	change, done := s.guard.GatewayReplaced, "%d orders are of %s, and orders of these names may be others at %s\n"
	if same {
		change, done = s.guard.GatewayMoved, "%d orders of %s are of %s now\n"
	}
	count, err := change(ctx, from, to)
	switch {
	case err != nil:
		return err
	case count == 0:
		return errors.New("the table has no order of " + from + ": gateway-orders gateway lists those that it has")
	case s.format == cli.FormatJSON:
		return s.WriteJSON(map[string]any{"orders": count, "from": from, "to": to})
	}
	return s.Write(cli.Printable(fmt.Sprintf(done, count, from, to)))
}
