package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
)

func (s *session) balanceCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "balance", Short: "Print the account's balances", Args: cobra.NoArgs,
		Long: `Prints the balances of the account that the key belongs to: all of them, those of a coin,
those on a network, or the one of a coin on a network. It prints first, and then fails if
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
		s.tellSkipped(balance.Skipped)
		if err := s.printBalance(balance.Amounts); err != nil || len(balance.Skipped) == 0 {
			return err
		}
		return errors.New("the balance is incomplete: some amounts cannot be read")
	})
}

func (s *session) printBalance(amounts []gateway.BalanceAmount) error {
	var rows [][]string
	for _, a := range amounts {
		rows = append(rows, []string{a.CoinSymbol, a.NetworkName, a.Amount.String()})
	}
	return s.print(slices.Concat([]gateway.BalanceAmount{}, amounts), []string{"COIN", "NETWORK", "AMOUNT"}, rows)
}
