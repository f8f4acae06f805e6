// Package surface is all that the client can ask a gateway, for tests that put
// somebody in between who judges the requests and the answers.
package surface

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// A Use is one way to use a method of the client that makes one request.
type Use struct {
	Method string // of the client
	Sends  string // the operation, by its name in the OpenAPI document
	Call   func(context.Context, *gateway.Client) error
}

// names are texts that a coin or a network could have: all that the client sends.
func names() []string {
	return []string{
		"USDT", "Tron", "BNB Smart Chain (BEP20)", "a b  c", "Сеть", "链上", "Zażółć gęślą", "e\u0301", "🪙", "...", "-_.~",
		`!"$&'()*+,-.:;<=>@[]^_{|}~` + "`", "a+b", "a&b=c", "x;y", strings.Repeat("n", 256),
	}
}

// Uses returns all methods that make requests, with everything that can be asked.
// What the gateway knows of it does not matter, but for the withdrawal "not known".
func Uses() []Use {
	all := append(nameless(), waits()...)
	for _, name := range names() {
		all = append(all, named(name)...)
	}
	return append(all, invoicing()...)
}

// nameless are the reads that send no name.
func nameless() []Use {
	return []Use{
		{"CoinNetworks", "listCoinNetworks", func(ctx context.Context, c *gateway.Client) error {
			_, err := c.CoinNetworks(ctx)
			return err
		}},
		{"Catalog", "listCoinNetworks", func(ctx context.Context, c *gateway.Client) error {
			_, err := c.Catalog(gateway.CacheOptions{}).Snapshot(ctx)
			return err
		}},
		{"ExchangeRates", "getExchangeRates", func(ctx context.Context, c *gateway.Client) error {
			_, err := c.ExchangeRates(ctx)
			return err
		}},
		{"Balance", "getBalance", func(ctx context.Context, c *gateway.Client) error {
			_, err := c.Balance(ctx, gateway.BalanceQuery{})
			return err
		}},
	}
}

// waits are the inquiries that go on until a withdrawal has ended, or is not there.
func waits() []Use {
	wait := gateway.WaitOptions{MinInterval: time.Millisecond, MaxInterval: time.Millisecond}
	return []Use{
		{"WaitWithdrawal", "getWithdrawal", func(ctx context.Context, c *gateway.Client) error {
			_, err := c.WaitWithdrawal(ctx, "not known", wait)
			return err
		}},
		{"WatchWithdrawal", "getWithdrawal", func(ctx context.Context, c *gateway.Client) error {
			for _, err := range c.WatchWithdrawal(ctx, "not known", wait) {
				return err
			}
			return nil
		}},
		{"WaitWithdrawals", "getWithdrawal", func(ctx context.Context, c *gateway.Client) error {
			for _, err := range c.WaitWithdrawals(ctx, []string{"not known"}, wait) {
				return err
			}
			return nil
		}},
	}
}

// named are the methods that send a name, with that name wherever it can be.
func named(name string) []Use {
	balance := func(q gateway.BalanceQuery) Use {
		return Use{"Balance", "getBalance", func(ctx context.Context, c *gateway.Client) error {
			_, err := c.Balance(ctx, q)
			return err
		}}
	}
	return []Use{
		{"CoinNetwork", "getCoinNetwork", func(ctx context.Context, c *gateway.Client) error {
			_, err := c.CoinNetwork(ctx, name)
			return err
		}},
		{"CoinNetworksBySymbol", "getCoinNetwork", func(ctx context.Context, c *gateway.Client) error {
			_, err := c.CoinNetworksBySymbol(ctx, name)
			return err
		}},
		{"CoinNetworkBySymbol", "getCoinNetworkBySymbol", func(ctx context.Context, c *gateway.Client) error {
			_, err := c.CoinNetworkBySymbol(ctx, name, name)
			return err
		}},
		balance(gateway.BalanceQuery{CoinSymbol: name}),
		balance(gateway.BalanceQuery{NetworkName: name}),
		balance(gateway.BalanceQuery{CoinSymbol: name, NetworkName: name}),
		{"Withdrawal", "getWithdrawal", func(ctx context.Context, c *gateway.Client) error {
			_, err := c.Withdrawal(ctx, name)
			return err
		}},
		create(gateway.InvoiceRequest{OrderID: name, Price: amount("1"), Amount: amount("1"), CoinSymbol: name, NetworkName: name}),
	}
}

// invoicing are requests with each of the optional fields and without, and with
// amounts of every length.
func invoicing() (all []Use) {
	for fields := range 8 {
		r := gateway.InvoiceRequest{OrderID: fmt.Sprintf("order %d", fields), Price: amount("10.50"), Amount: amount("10.50")}
		if fields&1 != 0 {
			r.BaseCurrency = "usd"
		}
		if fields&2 != 0 {
			r.CoinSymbol = "USDT"
		}
		if fields&4 != 0 {
			r.NetworkName = "BNB Smart Chain (BEP20)"
		}
		all = append(all, create(r))
	}
	digits := strings.Repeat("1234567890", 6) + "1234"
	for i, text := range []string{"1", "0.1", "1.00", "0." + strings.Repeat("0", 29) + "1", digits, digits[:34] + "." + digits[34:], "1e20"} {
		all = append(all, create(gateway.InvoiceRequest{OrderID: fmt.Sprintf(`amount "%d" \ <&>`, i), Price: amount(text), Amount: amount(text)}))
	}
	return all
}

func create(r gateway.InvoiceRequest) Use {
	return Use{"CreateInvoice", "createInvoice", func(ctx context.Context, c *gateway.Client) error {
		_, err := c.CreateInvoice(ctx, r)
		return err
	}}
}

func amount(text string) decimal.Decimal { return decimal.RequireFromString(text) }
