package main

import (
	"context"
	"flag"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

func balanceCommand() command {
	return command{
		name: "balance", synopsis: "[-coin SYMBOL] [-network NAME]", timeout: readTimeout,
		short: "the account's balances",
		text: `Prints the balances of the account that the key belongs to: all of them, those of a coin,
those on a network, or that of a coin on a network.

  gateway balance
  gateway balance -coin USDT -network Tron`,
		define: func(flags *flag.FlagSet) action {
			var query gateway.BalanceQuery
			flags.StringVar(&query.CoinSymbol, "coin", "", "the ticker `symbol` of a coin, such as USDT")
			flags.StringVar(&query.NetworkName, "network", "", "the `name` of a network")
			return func(ctx context.Context, s *session) error {
				client, err := s.client()
				if err != nil {
					return err
				}
				balance, err := client.Balance(ctx, query)
				if err != nil {
					return err
				}
				return s.printBalance(balance.Amounts)
			}
		},
	}
}

// A balanceRecord is a balance as JSON.
type balanceRecord struct {
	CoinSymbol  string          `json:"coinSymbol"`
	NetworkName string          `json:"networkName"` // "" if the response names none
	Amount      decimal.Decimal `json:"amount"`
}

func (s *session) printBalance(amounts []gateway.BalanceAmount) error {
	records := []balanceRecord{}
	t := table{columns: []string{"COIN", "NETWORK", "AMOUNT"}}
	for _, a := range amounts {
		records = append(records, balanceRecord{a.CoinSymbol, a.NetworkName, a.Amount})
		t.rows = append(t.rows, []string{a.CoinSymbol, a.NetworkName, a.Amount.String()})
	}
	return s.printResult(records, t)
}
