// Command coins lists the coins of the gateway on their networks, with fees
// and limits: all of them, or those of one symbol.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/examples/internal/cli"
)

func main() { os.Exit(cli.Main(run)) }

func run(ctx context.Context, args []string, stdout io.Writer) error {
	args, err := cli.Parse(flag.NewFlagSet("coins [SYMBOL]", flag.ContinueOnError), args, 0, 1)
	if err != nil {
		return err
	}
	client, err := cli.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	pairs, err := list(ctx, client, args)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COIN\tNETWORK\tFEE\tMIN WITHDRAW\tMAX WITHDRAW\tDEPOSIT\tWITHDRAW\tCONFIRMATIONS\tACTIVE")
	for _, p := range pairs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", p.Coin.Symbol, p.Network.Name,
			p.WithdrawalFee, p.MinWithdraw, p.MaxWithdraw, yes(p.Depositable), yes(p.Withdrawable),
			p.Confirmations, yes(p.Coin.IsActive && p.Network.IsActive))
	}
	return table.Flush()
}

func list(ctx context.Context, client *gateway.Client, args []string) ([]gateway.CoinNetwork, error) {
	if len(args) == 0 {
		return client.CoinNetworks(ctx)
	}
	pairs, err := client.CoinNetworksBySymbol(ctx, args[0])
	if errors.Is(err, gateway.ErrNotFound) {
		return nil, fmt.Errorf("the gateway has no coin %q; symbols are upper case: %w", args[0], err)
	}
	return pairs, err
}

func yes(flag bool) string {
	if flag {
		return "yes"
	}
	return "no"
}
