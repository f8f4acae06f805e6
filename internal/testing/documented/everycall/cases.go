package everycall

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/pricing"
)

// A Case is a call with values to make it with.
type Case struct {
	Call
	Values Values
}

// Send makes the call and returns its error.
func (c Case) Send(ctx context.Context, client *gateway.Client, opts ...gateway.CallOption) error {
	_, err := c.Do(ctx, client, c.Values, opts...)
	return err
}

// Accepted returns every call with values for which a stand-in has records: one
// case for each call, and a second one for the balance of a single coin, whose
// result may have another shape.
func Accepted(gw *gatewaytest.Server) []Case {
	values := KnownTo(gw)
	all := with(values, All()...)
	balances := gw.Balances()
	values.Balance = gateway.BalanceQuery{CoinSymbol: balances[0].CoinSymbol, NetworkName: balances[0].NetworkName}
	single := Named("Balance")
	single.Name += " of one coin"
	return append(all, with(values, single)...)
}

func with(v Values, calls ...Call) (all []Case) {
	for _, c := range calls {
		all = append(all, Case{c, v})
	}
	return all
}

// names are texts that a coin or a network could have: all that the client sends.
func names() []string {
	return []string{
		"USDT", "Tron", "BNB Smart Chain (BEP20)", "a b  c", "Сеть", "链上", "Zażółć gęślą", "e\u0301", "🪙", "...", "-_.~",
		`!"$&'()*+,-.:;<=>@[]^_{|}~` + "`", "a+b", "a&b=c", "x;y", strings.Repeat("n", 256),
	}
}

// Variations returns all methods that send a request, those that are built on
// another call included, with everything that can be asked. Every case sends one
// request if the gateway has the withdrawal of [AddEnded]; whether it knows any other
// value does not matter.
func Variations() []Case {
	all := with(Values{Balance: gateway.BalanceQuery{}, WithdrawalID: endedID}, Derived()...)
	all = append(all, with(Values{}, Named("CoinNetworks"), Named("ExchangeRates"), Named("Balance"))...)
	for _, name := range names() {
		all = append(all, named(name)...)
	}
	for _, r := range invoices() {
		all = append(all, Case{Named("CreateInvoice"), Values{Invoice: r}})
	}
	return all
}

// named are the calls that take a text, with that text wherever it can be.
func named(name string) []Case {
	r := Order(name)
	r.CoinSymbol, r.NetworkName = name, name
	v := Values{PairID: name, CoinSymbol: name, NetworkName: name, WithdrawalID: name, Invoice: r}
	all := with(v, Named("CoinNetwork"), Named("CoinNetworksOf"), Named("CoinNetworkBySymbol"), Named("Withdrawal"), Named("CreateInvoice"))
	for _, q := range []gateway.BalanceQuery{{CoinSymbol: name}, {NetworkName: name}, {CoinSymbol: name, NetworkName: name}} {
		all = append(all, Case{Named("Balance"), Values{Balance: q}})
	}
	return all
}

// invoices are requests with each of the optional fields and without, and with
// amounts of every length.
func invoices() (all []gateway.InvoiceRequest) {
	for fields := range 8 {
		r := Order(fmt.Sprintf("order %d", fields))
		if fields&1 != 0 {
			r.BaseCurrency = "usd"
		}
		if fields&2 != 0 {
			r.CoinSymbol = "USDT"
		}
		if fields&4 != 0 {
			r.NetworkName = "BNB Smart Chain (BEP20)"
		}
		all = append(all, r)
	}
	digits := strings.Repeat("1234567890", 6) + "1234"
	for i, text := range []string{"1", "0.1", "1.00", "0." + strings.Repeat("0", 29) + "1", digits, digits[:34] + "." + digits[34:], "1e20"} {
		amount := decimal.RequireFromString(text)
		all = append(all, gateway.InvoiceRequest{OrderID: fmt.Sprintf(`amount "%d" \ <&>`, i), Price: decimal.Max(amount.Truncate(8), decimal.New(1, -8)), Amount: amount})
	}
	return all
}

// endedID is a withdrawal in a final state.
const endedID = "ended"

// AddEnded adds the withdrawal of [Variations] that is in a final state.
func AddEnded(gw *gatewaytest.Server) {
	gw.AddWithdrawal(gatewaytest.Withdrawal{Status: "COMPLETED", Destination: "TXYZ", Amount: "25", Fee: "1.5", Coin: "USDT", Network: "Tron", WithdrawRequestID: endedID})
}

// Derived returns the methods that are built on another call, which they make once if
// the withdrawal is in a final state. They take no call options.
func Derived() []Call {
	wait := gateway.WaitOptions{MinInterval: time.Millisecond, MaxInterval: time.Millisecond}
	on := func(call, name string, do func(context.Context, *gateway.Client, Values) error) Call {
		c := Named(call)
		c.Name = name
		c.Do = func(ctx context.Context, client *gateway.Client, v Values, _ ...gateway.CallOption) (any, error) {
			return nil, do(ctx, client, v)
		}
		return c
	}
	return []Call{
		on("CoinNetworks", "NewCatalogCache", func(ctx context.Context, c *gateway.Client, _ Values) error {
			return load(ctx, c, pricing.NewCatalogCache)
		}),
		on("ExchangeRates", "NewRatesCache", func(ctx context.Context, c *gateway.Client, _ Values) error {
			return load(ctx, c, pricing.NewRatesCache)
		}),
		on("Withdrawal", "WaitWithdrawal", func(ctx context.Context, c *gateway.Client, v Values) error {
			_, err := c.WaitWithdrawal(ctx, v.WithdrawalID, wait)
			return err
		}),
		on("Withdrawal", "PollWithdrawal", func(ctx context.Context, c *gateway.Client, v Values) error {
			_, _, err := c.PollWithdrawal(ctx, v.WithdrawalID, wait)
			return err
		}),
	}
}

// load loads the value of a new cache.
func load[T any](ctx context.Context, c *gateway.Client, newCache func(*gateway.Client, pricing.CacheOptions) (*pricing.Cache[T], error)) error {
	cache, err := newCache(c, pricing.CacheOptions{})
	if err != nil {
		return err
	}
	_, err = cache.Get(ctx)
	return err
}
