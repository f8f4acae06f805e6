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
		Use: "rates", Short: "The price of one unit of each coin, in US dollars and euros",
		Long: `Prints the price of one unit of each coin, or of one coin, in US dollars and euros. It
needs no key.`,
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
		isOther := func(s gateway.Skipped) bool { return *coin != "" && s.CoinSymbol != "" && s.CoinSymbol != *coin }
		if err := s.tellSkipped(slices.DeleteFunc(rates.Skipped, isOther)); err != nil {
			return err
		}
		listed := rates.Rates
		if *coin != "" {
			rate, ok := rates.Rate(*coin)
			if !ok {
				return errors.New("the gateway has no rate of that coin; symbols are upper case")
			}
			listed = []gateway.Rate{rate}
		}
		return s.printRates(listed)
	})
}

// A rateRecord is the price of a coin as JSON.
type rateRecord struct {
	CoinSymbol string              `json:"coinSymbol"`
	USD        decimal.NullDecimal `json:"usd"` // null if the coin has none
	EUR        decimal.NullDecimal `json:"eur"`
}

func (s *session) printRates(rates []gateway.Rate) error {
	records := []rateRecord{}
	var rows [][]string
	for _, r := range rates {
		records = append(records, rateRecord{r.CoinSymbol, r.USD, r.EUR})
		rows = append(rows, []string{r.CoinSymbol, price(r.USD), price(r.EUR)})
	}
	return s.printResult(records, []string{"COIN", "USD", "EUR"}, rows)
}

// price returns a rate as text; a coin can be without one.
func price(rate decimal.NullDecimal) string {
	if !rate.Valid {
		return "-"
	}
	return rate.Decimal.String()
}
