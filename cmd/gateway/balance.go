package main

import (
	"context"
	"errors"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
)

func (s *session) balanceCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "balance", Short: "The account's balances",
		Long: `Prints the balances of the account that the key belongs to: all of them, those of a coin,
those on a network, or that of a coin on a network. It fails after what it has printed if
an amount of the response cannot be read.`,
		Example: `  gateway balance
  gateway balance --coin USDT --network Tron`,
	}
	var query gateway.BalanceQuery
	c.Flags().StringVar(&query.CoinSymbol, "coin", "", "the ticker `symbol` of a coin, such as USDT")
	c.Flags().StringVar(&query.NetworkName, "network", "", "the `name` of a network")
	return s.asks(c, readTimeout, func(ctx context.Context, _ []string) error {
		client, err := s.client()
		if err != nil {
			return err
		}
		balance, err := client.Balance(ctx, query)
		if err != nil {
			return err
		}
		if err := s.printBalance(balance.Amounts); err != nil || len(balance.Skipped) == 0 {
			return err
		}
		if err := s.tellSkipped(balance.Skipped); err != nil {
			return err
		}
		return errors.New("the balance is not all of it: amounts were left out")
	})
}

// A balanceRecord is a balance as JSON.
type balanceRecord struct {
	CoinSymbol  string          `json:"coinSymbol"`
	NetworkName string          `json:"networkName"` // "" if the response names none
	Amount      decimal.Decimal `json:"amount"`
}

func (s *session) printBalance(amounts []gateway.BalanceAmount) error {
	records := []balanceRecord{}
	var rows [][]string
	for _, a := range amounts {
		records = append(records, balanceRecord{a.CoinSymbol, a.NetworkName, a.Amount})
		rows = append(rows, []string{a.CoinSymbol, a.NetworkName, a.Amount.String()})
	}
	return s.printResult(records, []string{"COIN", "NETWORK", "AMOUNT"}, rows)
}
