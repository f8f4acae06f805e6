package main

import (
	"context"
	"errors"
	"flag"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

func ratesCommand() command {
	return command{
		name: "rates", synopsis: "[-coin SYMBOL]", timeout: readTimeout,
		short: "the price of one unit of each coin, in US dollars and euros",
		text: `Prints the price of one unit of each coin, or of one coin, in US dollars and euros. It
needs no key.

  gateway rates
  gateway rates -coin BTC -o json`,
		define: func(flags *flag.FlagSet) action {
			coin := flags.String("coin", "", "the ticker `symbol` of a coin, such as BTC")
			return func(ctx context.Context, s *session) error {
				client, err := s.client()
				if err != nil {
					return err
				}
				rates, err := client.ExchangeRates(ctx)
				if err != nil {
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
			}
		},
	}
}

// A rateRecord is the price of a coin as JSON.
type rateRecord struct {
	CoinSymbol string              `json:"coinSymbol"`
	USD        decimal.NullDecimal `json:"usd"` // null if the coin has none
	EUR        decimal.NullDecimal `json:"eur"`
}

func (s *session) printRates(rates []gateway.Rate) error {
	records := []rateRecord{}
	t := table{columns: []string{"COIN", "USD", "EUR"}}
	for _, r := range rates {
		records = append(records, rateRecord{r.CoinSymbol, r.USD, r.EUR})
		t.rows = append(t.rows, []string{r.CoinSymbol, price(r.USD), price(r.EUR)})
	}
	return s.printResult(records, t)
}

// price returns a rate as text; a coin can be without one.
func price(rate decimal.NullDecimal) string {
	if !rate.Valid {
		return "-"
	}
	return rate.Decimal.String()
}
