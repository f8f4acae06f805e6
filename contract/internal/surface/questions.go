package surface

import (
	"context"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// A Question is a call that a gateway answers with a success when it has the
// coins, balances and withdrawals that gatewaytest begins with.
type Question struct {
	Name string
	Op   gatewaytest.Operation
	Call func(context.Context, *gateway.Client, Known) error
}

// Known are identifiers that the gateway knows.
type Known struct{ Pair, Withdrawal string }

// KnownTo returns the first that a stand-in knows.
func KnownTo(gw *gatewaytest.Server) Known {
	return Known{Pair: gw.Catalog()[0].ID, Withdrawal: gw.Withdrawals()[0].WithdrawRequestID}
}

// Questions returns one for each method and for each kind of answer to it.
func Questions() []Question { return append(catalogue(), account()...) }

// catalogue are the questions about what there is.
func catalogue() []Question {
	return []Question{
		{"the listing", gatewaytest.OpCoinNetworks, func(ctx context.Context, c *gateway.Client, _ Known) error {
			_, err := c.CoinNetworks(ctx)
			return err
		}},
		{"a pair by its identifier", gatewaytest.OpCoinNetwork, func(ctx context.Context, c *gateway.Client, known Known) error {
			_, err := c.CoinNetwork(ctx, known.Pair)
			return err
		}},
		{"a pair by its names", gatewaytest.OpCoinNetworkBySymbol, func(ctx context.Context, c *gateway.Client, _ Known) error {
			_, err := c.CoinNetworkBySymbol(ctx, "USDT", "BNB Smart Chain (BEP20)")
			return err
		}},
		{"the pairs of a coin", gatewaytest.OpCoinNetworkBySymbol, func(ctx context.Context, c *gateway.Client, _ Known) error {
			_, err := c.CoinNetworksBySymbol(ctx, "USDT")
			return err
		}},
		{"the rates", gatewaytest.OpExchangeRates, func(ctx context.Context, c *gateway.Client, _ Known) error {
			_, err := c.ExchangeRates(ctx)
			return err
		}},
	}
}

// account are the questions about what the merchant has and does.
func account() []Question {
	return []Question{
		{"the balance", gatewaytest.OpBalance, func(ctx context.Context, c *gateway.Client, _ Known) error {
			_, err := c.Balance(ctx, gateway.BalanceQuery{})
			return err
		}},
		{"the balance of one coin on one network", gatewaytest.OpBalance, func(ctx context.Context, c *gateway.Client, _ Known) error {
			_, err := c.Balance(ctx, gateway.BalanceQuery{CoinSymbol: "BTC", NetworkName: "Bitcoin"})
			return err
		}},
		{"an invoice", gatewaytest.OpCreateInvoice, func(ctx context.Context, c *gateway.Client, _ Known) error {
			_, err := c.CreateInvoice(ctx, gateway.InvoiceRequest{OrderID: "order-17", Price: amount("1"), Amount: amount("1"), BaseCurrency: "usd"})
			return err
		}},
		{"a withdrawal", gatewaytest.OpWithdrawal, func(ctx context.Context, c *gateway.Client, known Known) error {
			_, err := c.Withdrawal(ctx, known.Withdrawal)
			return err
		}},
	}
}
