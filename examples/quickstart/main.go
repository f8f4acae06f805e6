// Command quickstart shows the main tasks of a merchant: the catalog, the rates, the balance, an invoice and a
// withdrawal. Without a gateway in the environment it starts a stand-in; with one it only reads. With --lose it shows
// what becomes of an order whose response is lost.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/pricing"
)

func main() {
	loses := flag.Bool("lose", false, "lose the response to an invoice, and call again")
	flag.Parse()
	show := run
	if *loses {
		show = lose
	}
	if err := show(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// lose has a stand-in create an invoice and close the connection, and calls again, as a program
// does that takes an error for a failure.
func lose(ctx context.Context, stdout io.Writer) error {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, err := gateway.New(gw.URL, gw.APIKey)
	if err != nil {
		return err
	}
	order := gateway.InvoiceRequest{OrderID: "A-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50")}
	fmt.Fprintln(stdout, "The gateway creates the invoice, and the connection breaks before its response.")
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	for _, call := range []string{"the first call", "the same call again"} {
		_, err := client.CreateInvoice(ctx, order)
		fmt.Fprintf(stdout, "\n%s: %s; SafeToRetry: %v\n%v\n", call, gateway.OutcomeOf(err), gateway.SafeToRetry(err), err)
	}
	fmt.Fprintf(stdout, "\nThe gateway got %d request, and has %d invoice. A client that sends it again makes two.\n", len(gw.Requests()), len(gw.InvoicesFor("A-17")))
	return client.Shutdown(ctx)
}

func run(ctx context.Context, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	if os.Getenv("GATEWAY_BASE_URL") != "" {
		client, err := gateway.FromEnv()
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "Using the gateway of GATEWAY_BASE_URL, read-only; the command does the rest: go run -C cmd ./gateway help\n")
		return read(ctx, client, stdout)
	}

	gw := gatewaytest.NewServer()
	defer gw.Close()
	fmt.Fprintf(stdout, "No gateway is configured: this is a stand-in inside this process, and all its data is invented.\n")
	client, err := gateway.New(gw.URL, gw.APIKey)
	if err != nil {
		return err
	}
	err = all(ctx, client, gw, stdout)
	return errors.Join(err, client.Shutdown(context.WithoutCancel(ctx))) // waits for an invoice that is still being sent
}

// all reads, creates an invoice, and waits for a withdrawal.
func all(ctx context.Context, client *gateway.Client, gw *gatewaytest.Server, stdout io.Writer) error {
	if err := read(ctx, client, stdout); err != nil {
		return err
	}
	if err := invoice(ctx, client, stdout); err != nil {
		return err
	}
	id := gw.Withdrawals()[0].WithdrawRequestID
	if err := gw.SetStatusAfterRequests(id, 2, "COMPLETED"); err != nil {
		return err
	}
	return withdrawal(ctx, client, id, stdout)
}

// read prints the catalog, the rates and the balance.
func read(ctx context.Context, client *gateway.Client, stdout io.Writer) error {
	pairs, err := client.CoinNetworks(ctx)
	if err != nil {
		return err
	}
	rates, err := client.ExchangeRates(ctx)
	if err != nil {
		return err
	}
	balance, err := client.Balance(ctx, gateway.BalanceQuery{})
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nCoins and networks\nCOIN\tNETWORK\tFEE\tMIN WITHDRAW\tMAX WITHDRAW\n")
	for _, p := range pairs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", p.Coin.Symbol, p.Network.Name, amount(p, "withdrawalFee", p.WithdrawalFee),
			amount(p, "minWithdraw", p.MinWithdraw), amount(p, "maxWithdraw", p.MaxWithdraw))
	}
	fmt.Fprintf(table, "\nExchange rates\nCOIN\tUSD\tEUR\n")
	for _, r := range rates.Rates {
		fmt.Fprintf(table, "%s\t%s\t%s\n", r.CoinSymbol, rateIn(r, "usd"), rateIn(r, "eur"))
	}
	fmt.Fprintf(table, "\nBalance\nCOIN\tNETWORK\tAMOUNT\n")
	for _, a := range balance.Amounts {
		fmt.Fprintf(table, "%s\t%s\t%s\n", a.CoinSymbol, a.NetworkName, a.Amount)
	}
	return table.Flush()
}

// invoice creates an invoice for 25.00 US dollars in Tether.
func invoice(ctx context.Context, client *gateway.Client, stdout io.Writer) error {
	pair, err := client.CoinNetworkBySymbol(ctx, "USDT", "Tron")
	if err != nil {
		return err
	}
	rates, err := client.ExchangeRates(ctx)
	if err != nil {
		return err
	}
	price := decimal.RequireFromString("25.00")
	amount, err := pricing.ToCoin(rates, price, "usd", pair)
	if err != nil {
		return err
	}
	created, err := client.CreateInvoice(ctx, gateway.InvoiceRequest{
		OrderID: "order-1", Price: price, BaseCurrency: "usd", Amount: amount,
		CoinSymbol: pair.Coin.Symbol, NetworkName: pair.Network.Name,
	})
	if err != nil {
		return fmt.Errorf("invoice %s: %w", gateway.OutcomeOf(err), err)
	}
	id, _ := created.Text("id") // the response format is undocumented
	fmt.Fprintf(stdout, "\nInvoice %s for order %s: %s usd, which is %s %s\n", id, created.OrderID, price.StringFixed(2), amount, pair.Coin.Symbol)
	return nil
}

func withdrawal(ctx context.Context, client *gateway.Client, id string, stdout io.Writer) error {
	fmt.Fprintf(stdout, "\nWithdrawal %s\n", id)
	ended, err := client.WaitWithdrawal(ctx, id, gateway.WaitOptions{
		MinInterval: time.Millisecond, MaxInterval: time.Millisecond, // by default 2 s to 30 s
		Changed: func(w *gateway.Withdrawal) { fmt.Fprintln(stdout, w.Status) },
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s %s on %s to %s, with a fee of %s\n", ended.Amount, ended.Coin, ended.Network, ended.Destination, ended.Fee)
	return nil
}

// amount returns an amount of a pair as text; the response may lack it.
func amount(p gateway.CoinNetwork, name string, value decimal.Decimal) string {
	if slices.Contains(p.Missing, name) {
		return "-"
	}
	return value.String()
}

// rateIn returns a rate as text; a coin can be without one.
func rateIn(r gateway.Rate, fiat string) string {
	price, ok := r.In(fiat)
	if !ok {
		return "-"
	}
	return price.String()
}
