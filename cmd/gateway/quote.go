package main

import (
	"context"
	"errors"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/pricing"
)

func (s *session) quoteCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "quote PRICE", Short: "What a price is in each coin, and which can be paid", Args: cli.Args(1, 1, "the PRICE"),
		Long: `Prints what a price is in each coin on each network, rounded up to the precision of the
coin, of those that a buyer can choose: listed once, active, taking deposits, with a rate,
and not below the minimum. With --all it prints the others too, and why not. It needs no
key. The amount is what gateway invoice create takes as --amount.`,
		Example: `  gateway quote 10.50
  gateway quote 10.50 --currency eur --all -o json`,
	}
	currency := c.Flags().String("currency", "usd", "the fiat `currency` of the price, usd or eur")
	all := c.Flags().Bool("all", false, "print also what cannot be paid, and why")
	return s.asks(c, readTimeout, func(ctx context.Context, args []string) error {
		price, err := decimal.NewFromString(args[0])
		if err != nil {
			return cli.Usage(c, "write the price like 10.50")
		}
		offers, fetched, err := s.quote(ctx, c, price, *currency)
		if err != nil {
			return err
		}
		listed := offers.Payable()
		if *all {
			listed = offers.All()
		}
		return s.printOffers(listed, *all, fetched)
	})
}

// quote returns the offers for a price, and when the rates were read.
func (s *session) quote(ctx context.Context, c *cobra.Command, price decimal.Decimal, currency string) (*pricing.Offers, time.Time, error) {
	client, err := s.client()
	if err != nil {
		return nil, time.Time{}, err
	}
	var response gateway.Response
	pairs, err := client.CoinNetworks(ctx, gateway.WithResponse(&response))
	if err != nil {
		return nil, time.Time{}, err
	}
	rates, err := client.ExchangeRates(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	if err := s.tellSkipped(append(response.Skipped, rates.Skipped...)); err != nil {
		return nil, time.Time{}, err
	}
	offers, err := pricing.NewOffers(pricing.NewCatalog(pairs, response.Skipped...), rates, price, currency)
	if wrong, ok := errors.AsType[*gateway.ArgumentError](err); ok {
		return nil, time.Time{}, cli.Usage(c, "the "+map[string]string{"fiat": "currency", "price": "price"}[wrong.Name]+" "+wrong.Reason)
	}
	return offers, rates.FetchedAt, err
}

// An offerRecord is an offer as JSON.
type offerRecord struct {
	CoinSymbol  string          `json:"coinSymbol"`
	NetworkName string          `json:"networkName"`
	Amount      decimal.Decimal `json:"amount"` // zero where there is none
	Payable     bool            `json:"payable"`
	Problem     string          `json:"problem"` // why it cannot be paid, or ""
	RatesAt     time.Time       `json:"ratesAt"`
}

func (s *session) printOffers(offers []pricing.Offer, problems bool, fetched time.Time) error {
	records := []offerRecord{}
	columns, rows := []string{"COIN", "NETWORK", "AMOUNT"}, [][]string{}
	if problems {
		columns = append(columns, "PROBLEM")
	}
	for _, o := range offers {
		r := offerRecord{o.Pair.Coin.Symbol, o.Pair.Network.Name, o.Amount, o.Err == nil, "", fetched.UTC()}
		row := []string{r.CoinSymbol, r.NetworkName, r.Amount.String()}
		if o.Err != nil {
			r.Problem = o.Err.Error()
		}
		if problems {
			row = append(row, r.Problem)
		}
		records, rows = append(records, r), append(rows, row)
	}
	return s.printResult(records, columns, rows)
}
