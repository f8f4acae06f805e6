package main

import (
	"context"
	"slices"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/everycall"
)

// A question is a call to make.
type question struct {
	method, route string
	of            *table // the fields of its result
	skip          string // why it cannot be made; "" when it can
	send          func(ctx context.Context, opt gateway.CallOption) (any, error)
}

// question returns the call of a method with these values, which is skipped for a
// reason that is not "".
func (p *probe) question(method string, v everycall.Values, of *table, skip string) question {
	c := everycall.Named(method)
	return question{
		method: c.Name, route: c.Method + " " + c.Route, of: of, skip: skip,
		send: func(ctx context.Context, opt gateway.CallOption) (any, error) { return c.Do(ctx, p.client, v, opt) },
	}
}

// all makes every call that reads, in an order in which a response has the values for
// the next call.
func (p *probe) all(ctx context.Context) {
	listing := p.ask(ctx, p.question("CoinNetworks", everycall.Values{}, coinNetwork, ""))
	v := firstPair(listing)
	p.ask(ctx, p.question("CoinNetwork", v, coinNetwork, lacks("an id", v.PairID)))
	p.ask(ctx, p.question("CoinNetworkBySymbol", v, coinNetwork, lacks("a coin and a network", v.CoinSymbol, v.NetworkName)))
	p.ask(ctx, p.question("CoinNetworksBySymbol", v, coinNetwork, lacks("a coin", v.CoinSymbol)))
	p.ask(ctx, p.question("ExchangeRates", v, rate, ""))
	p.balances(ctx, gateway.BalanceQuery{CoinSymbol: v.CoinSymbol, NetworkName: v.NetworkName})
	skip := ""
	if p.withdrawal == "" {
		skip = "give an identifier with -withdrawal"
	}
	p.ask(ctx, p.question("Withdrawal", everycall.Values{WithdrawalID: p.withdrawal}, withdrawal, skip))
}

// firstPair returns the values of the first pair in a listing, which the client may
// have been unable to read. A value that is not there is "".
func firstPair(listing any) everycall.Values {
	array, _ := listing.([]any)
	if len(array) == 0 {
		return everycall.Values{}
	}
	return everycall.Values{
		PairID: textAt(array[0], "id"), CoinSymbol: textAt(array[0], "coin", "symbol"), NetworkName: textAt(array[0], "network", "name"),
	}
}

// lacks returns a reason to skip a call if one of its values is not known.
func lacks(what string, texts ...string) string {
	if !slices.Contains(texts, "") {
		return ""
	}
	return "no earlier response has " + what + " to request"
}

// balances requests all balances, and then that of a single coin, whose response may
// have another shape. The coin is the first one with a balance, or one of the listing.
func (p *probe) balances(ctx context.Context, single gateway.BalanceQuery) {
	all := p.question("Balance", everycall.Values{}, balance, "")
	send := all.send
	all.send = func(ctx context.Context, opt gateway.CallOption) (any, error) {
		result, err := send(ctx, opt)
		if b, ok := result.(*gateway.Balance); ok && err == nil && len(b.Amounts) > 0 && b.Amounts[0].CoinSymbol != "" {
			single = gateway.BalanceQuery{CoinSymbol: b.Amounts[0].CoinSymbol, NetworkName: b.Amounts[0].NetworkName}
		}
		return result, err
	}
	p.ask(ctx, all)
	one := p.question("Balance", everycall.Values{Balance: single}, balance, lacks("a coin", single.CoinSymbol))
	one.route += "?coinSymbol={coinSymbol}&networkName={networkName}"
	p.ask(ctx, one)
}
