package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// readTimeout is how long a command that reads may take.
const readTimeout = time.Minute

func (s *session) coinsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "coins", Short: "The coins on their networks, with fees and limits",
		Long: `Lists the coins of the gateway on their networks: all of them, those of one coin, or one
coin on one network. It needs no key. Symbols and names match exactly. What of the
listing cannot be read is left out, and told on stderr.`,
		Example: `  gateway coins
  gateway coins --coin USDT
  gateway coins --coin USDT --network Tron -o json`,
	}
	coin := c.Flags().String("coin", "", "the ticker `symbol` of a coin, such as USDT")
	network := c.Flags().String("network", "", "the `name` of a network, with --coin")
	return s.asks(c, readTimeout, func(ctx context.Context, _ []string) error {
		if *coin == "" && *network != "" {
			return cli.Usage(c, "--network needs --coin")
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
		if err := s.tellSkipped(response.Skipped); err != nil {
			return err
		}
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
		return nil, fmt.Errorf("the gateway has no such coin, or not on that network; symbols are upper case: %w", err)
	}
	return pairs, err
}

// A coinRecord is a coin on a network as JSON.
type coinRecord struct {
	ID             string          `json:"id"`
	CoinSymbol     string          `json:"coinSymbol"`
	CoinName       string          `json:"coinName"`
	NetworkName    string          `json:"networkName"`
	Active         bool            `json:"active"` // the coin and the network
	Precision      int             `json:"precision"`
	MinAmount      decimal.Decimal `json:"minAmount"`
	WithdrawalFee  decimal.Decimal `json:"withdrawalFee"`
	SwapFee        decimal.Decimal `json:"swapFee"`
	MinWithdraw    decimal.Decimal `json:"minWithdraw"`
	MaxWithdraw    decimal.Decimal `json:"maxWithdraw"`
	Depositable    bool            `json:"depositable"`
	Withdrawable   bool            `json:"withdrawable"`
	Confirmations  int             `json:"confirmations"`
	ArrivalTime    int             `json:"arrivalTime"`    // of no documented unit
	ExpirationTime int             `json:"expirationTime"` // of no documented unit
}

func (s *session) printCoins(pairs []gateway.CoinNetwork) error {
	records := []coinRecord{}
	columns := []string{"COIN", "NETWORK", "MIN AMOUNT", "FEE", "MIN WITHDRAW", "MAX WITHDRAW", "DEPOSIT", "WITHDRAW", "CONFIRMATIONS", "ACTIVE"}
	var rows [][]string
	for _, p := range pairs {
		r := coinRecord{
			p.ID, p.Coin.Symbol, p.Coin.Name, p.Network.Name, p.Coin.IsActive && p.Network.IsActive, p.Coin.Precision,
			p.Coin.MinAmount, p.WithdrawalFee, p.SwapFee, p.MinWithdraw, p.MaxWithdraw, p.Depositable, p.Withdrawable,
			p.Confirmations, p.ArrivalTime, p.ExpirationTime,
		}
		records = append(records, r)
		rows = append(rows, []string{
			r.CoinSymbol, r.NetworkName, r.MinAmount.Normalize().String(), r.WithdrawalFee.String(), r.MinWithdraw.String(), r.MaxWithdraw.String(),
			yesNo(r.Depositable), yesNo(r.Withdrawable), strconv.Itoa(r.Confirmations), yesNo(r.Active),
		})
	}
	return s.printResult(records, columns, rows)
}

func yesNo(flag bool) string {
	if flag {
		return "yes"
	}
	return "no"
}
