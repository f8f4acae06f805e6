package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
)

func (s *session) coinsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "coins", Short: "List the coins on their networks, with fees and limits", Args: cobra.NoArgs,
		Long: `Lists the coins of the gateway on their networks: all of them, those of one coin, or one
coin on one network. It needs no key. Symbols and names match exactly. Records that cannot
be read are skipped, and reported on stderr.`,
		Example: `  gateway coins
  gateway coins --coin USDT --network Tron -o json`,
	}
	coin := c.Flags().String("coin", "", "the ticker `symbol` of a coin, such as USDT")
	network := c.Flags().String("network", "", "the `name` of a network, with --coin")
	return s.asks(c, readTimeout, func(ctx context.Context, _ []string) error {
		if *coin == "" && *network != "" {
			return usage("--network needs --coin")
		}
		client, err := s.client()
		if err != nil {
			return err
		}
		var response gateway.Response
		pairs, err := listCoins(ctx, client, *coin, *network, gateway.WithResponse(&response))
		if err != nil {
			return err
		}
		s.tellSkipped(response.Skipped)
		return s.printCoins(pairs)
	})
}

func listCoins(ctx context.Context, client *gateway.Client, coin, network string, opt gateway.CallOption) (pairs []gateway.CoinNetwork, err error) {
	switch {
	case coin == "":
		return client.CoinNetworks(ctx, opt)
	case network == "":
		pairs, err = client.CoinNetworksOf(ctx, coin, opt)
	default:
		var pair *gateway.CoinNetwork
		if pair, err = client.CoinNetworkBySymbol(ctx, coin, network, opt); err == nil {
			pairs = []gateway.CoinNetwork{*pair}
		}
	}
	if errors.Is(err, gateway.ErrNotFound) {
		return nil, fmt.Errorf("the gateway has no such coin, or not on that network: %w", err)
	}
	return pairs, err
}

func (s *session) printCoins(pairs []gateway.CoinNetwork) error {
	columns := []string{"COIN", "NETWORK", "MIN AMOUNT", "FEE", "MIN WITHDRAW", "MAX WITHDRAW", "DEPOSIT", "WITHDRAW", "CONFIRMATIONS", "ACTIVE"}
	var rows [][]string
	for _, p := range pairs {
		rows = append(rows, []string{
			p.Coin.Symbol, p.Network.Name, p.Coin.MinAmount.Normalize().String(), p.WithdrawalFee.String(), p.MinWithdraw.String(), p.MaxWithdraw.String(),
			yesNo(p.Depositable), yesNo(p.Withdrawable), strconv.Itoa(p.Confirmations), yesNo(p.Coin.IsActive && p.Network.IsActive),
		})
	}
	return s.print(slices.Concat([]gateway.CoinNetwork{}, pairs), columns, rows)
}

func yesNo(flag bool) string {
	if flag {
		return "yes"
	}
	return "no"
}
