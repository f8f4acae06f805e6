// Command rates prints the price of one unit of each coin, or of one coin, in US
// dollars and euros.
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
	args, err := cli.Parse(flag.NewFlagSet("rates [SYMBOL]", flag.ContinueOnError), args, 0, 1)
	if err != nil {
		return err
	}
	client, err := cli.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	rates, err := client.ExchangeRates(ctx)
	if err != nil {
		return err
	}
	listed := rates.Rates
	if len(args) == 1 {
		rate, ok := rates.Rate(args[0])
		if !ok {
			return fmt.Errorf("the gateway has no rate of %q; symbols are upper case", args[0])
		}
		listed = []gateway.Rate{rate}
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COIN\tUSD\tEUR")
	for _, r := range listed {
		fmt.Fprintf(table, "%s\t%s\t%s\n", r.CoinSymbol, in(r, "usd"), in(r, "eur"))
	}
	return table.Flush()
}

// in returns a rate as text; a coin can be without one.
func in(r gateway.Rate, fiat string) string {
	price, ok := r.In(fiat)
	if !ok {
		return "-"
	}
	return price.String()
}
