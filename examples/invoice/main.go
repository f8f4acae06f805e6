// Command invoice creates an invoice for an order, and reports the outcome.
//
// The exit code is the outcome: 0 the invoice exists, 2 wrong usage, 3 nothing was
// sent, 4 the service refused the invoice, 5 the outcome is unknown. After any
// other code the outcome is unknown too: look the order up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/examples/internal/cli"
)

const (
	exitNotSent  = 3
	exitRejected = 4
	exitUnknown  = 5
)

func main() { os.Exit(cli.Main(run)) }

func run(ctx context.Context, args []string, stdout io.Writer) error {
	request, err := parse(args)
	if err != nil {
		return err
	}
	client, err := cli.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()

	invoice, err := client.CreateInvoice(ctx, request)
	switch gateway.OutcomeOf(err) {
	case gateway.OutcomeSucceeded:
		fmt.Fprintf(stdout, "The invoice for order %s exists. Response:\n%s\n", invoice.OrderID, invoice.Raw)
		return nil
	case gateway.OutcomeNotSent:
		return cli.Exit(exitNotSent, fmt.Errorf("nothing was sent: %w", err))
	case gateway.OutcomeRejected:
		return cli.Exit(exitRejected, fmt.Errorf("the service refused the invoice: %w", err))
	default: // gateway.OutcomeUnknown
		return cli.Exit(exitUnknown, fmt.Errorf("do not run this again before you have looked the order up: %w", err))
	}
}

// parse parses the flags. The client checks the rest of the request.
func parse(args []string) (request gateway.InvoiceRequest, err error) {
	flags := flag.NewFlagSet("invoice -order ID -price 10.50 -amount 10.50 [flags]", flag.ContinueOnError)
	flags.StringVar(&request.OrderID, "order", "", "your own `ID` of the order, a new one for each order")
	flags.Func("price", "`price` of the order in the fiat currency, such as 10.50", into(&request.Price))
	flags.Func("amount", "`amount` of the order, such as 10.50", into(&request.Amount))
	flags.StringVar(&request.BaseCurrency, "currency", "", "fiat `currency` of the price, such as usd")
	flags.StringVar(&request.CoinSymbol, "coin", "", "`symbol` of the coin to pay with, such as USDT")
	flags.StringVar(&request.NetworkName, "network", "", "`name` of the network to pay on")
	if _, err := cli.Parse(flags, args, 0, 0); err != nil {
		return request, err
	}
	switch {
	case request.OrderID == "":
		return request, cli.Usage(flags, "-order is missing")
	case !request.Price.IsPositive():
		return request, cli.Usage(flags, "-price is missing, or not above zero")
	case !request.Amount.IsPositive():
		return request, cli.Usage(flags, "-amount is missing, or not above zero")
	}
	return request, nil
}

// into returns a function that parses a decimal number exactly into amount.
func into(amount *decimal.Decimal) func(string) error {
	return func(text string) (err error) {
		if *amount, err = decimal.NewFromString(text); err != nil {
			return errors.New("write it like 10.50")
		}
		return nil
	}
}
