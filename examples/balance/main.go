// Command balance prints the account's balances: all of them, those of one coin,
// or that of one coin on one network.
package main

import (
	"context"
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
	args, err := cli.Parse(flag.NewFlagSet("balance [SYMBOL [NETWORK]]", flag.ContinueOnError), args, 0, 2)
	if err != nil {
		return err
	}
	client, err := cli.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	var query gateway.BalanceQuery
	if len(args) > 0 {
		query.CoinSymbol = args[0]
	}
	if len(args) > 1 {
		query.NetworkName = args[1]
	}
	balance, err := client.Balance(ctx, query)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COIN\tNETWORK\tAMOUNT")
	for _, a := range balance.Amounts {
		fmt.Fprintf(table, "%s\t%s\t%s\n", a.CoinSymbol, a.NetworkName, a.Amount)
	}
	return table.Flush()
}
