package main

import (
	"context"
	"errors"
	"slices"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
)

func (s *session) ratesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "rates", Short: "Print the price of one unit of each coin, in US dollars and euros", Args: cobra.NoArgs,
		Long: `Prints the price of one unit of each coin, or of one coin, in US dollars and euros. It
needs no key. Records that cannot be read are skipped, and reported on stderr.`,
		Example: `  gateway rates
  gateway rates --coin BTC -o json`,
	}
	coin := c.Flags().String("coin", "", "the ticker `symbol` of a coin, such as BTC")
	return s.asks(c, readTimeout, func(ctx context.Context, _ []string) error {
		client, err := s.client()
		if err != nil {
			return err
		}
		rates, err := client.ExchangeRates(ctx)
		if err != nil {
			return err
		}
		s.tellSkipped(rates.Skipped)
		listed := rates.Rates
		if *coin != "" {
			rate, ok := rates.Rate(*coin)
			if !ok {
				return errors.New("the gateway has no rate of that coin")
			}
			listed = []gateway.Rate{rate}
		}
		return s.printRates(listed)
	})
}

func (s *session) printRates(rates []gateway.Rate) error {
	var rows [][]string
	for _, r := range rates {
		rows = append(rows, []string{r.CoinSymbol, price(r.USD), price(r.EUR)})
	}
	return s.print(slices.Concat([]gateway.Rate{}, rates), []string{"COIN", "USD", "EUR"}, rows)
}

// price returns a rate as text; a coin can be without one.
func price(rate decimal.NullDecimal) string {
	if !rate.Valid {
		return "-"
	}
	return rate.Decimal.String()
}
