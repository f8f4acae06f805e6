package main

import (
	"context"
	"slices"

	"github.com/cryptogw/gateway"
)

// A question is a call that is to be made.
type question struct {
	method, route string
	of            *table // what its result is made of
	skip          string // why it can not be asked; "" when it can
	send          func(ctx context.Context, opt gateway.CallOption) (any, error)
}

// all asks everything that there is, in an order in which one answer helps to
// ask the next question.
func (p *probe) all(ctx context.Context) {
	listing := p.ask(ctx, question{
		method: "CoinNetworks", route: "GET /api/networks-coins", of: coinNetwork,
		send: func(ctx context.Context, opt gateway.CallOption) (any, error) {
			return p.client.CoinNetworks(ctx, opt)
		},
	})
	pair := firstPair(listing)
	p.lookups(ctx, pair)
	p.ask(ctx, question{
		method: "ExchangeRates", route: "GET /api/exchange-rate", of: rate,
		send: func(ctx context.Context, opt gateway.CallOption) (any, error) {
			return p.client.ExchangeRates(ctx, opt)
		},
	})
	p.balances(ctx, gateway.BalanceQuery{CoinSymbol: pair.symbol, NetworkName: pair.network})
	p.inquiry(ctx)
}

// A pair is what the lookups ask for.
type pair struct{ id, symbol, network string }

// firstPair finds the first pair in a listing, which the client may not have
// understood. What is not there is "".
func firstPair(listing any) pair {
	array, _ := listing.([]any)
	if len(array) == 0 {
		return pair{}
	}
	return pair{textAt(array[0], "id"), textAt(array[0], "coin", "symbol"), textAt(array[0], "network", "name")}
}

func (p *probe) lookups(ctx context.Context, of pair) {
	p.ask(ctx, question{
		method: "CoinNetwork", route: "GET /api/networks-coins/{id}", of: coinNetwork,
		skip: lacks("an id", of.id),
		send: func(ctx context.Context, opt gateway.CallOption) (any, error) {
			return p.client.CoinNetwork(ctx, of.id, opt)
		},
	})
	p.ask(ctx, question{
		method: "CoinNetworkBySymbol", route: "GET /api/networks-coins/{coinSymbol}/{networkName}", of: coinNetwork,
		skip: lacks("a coin and a network", of.symbol, of.network),
		send: func(ctx context.Context, opt gateway.CallOption) (any, error) {
			return p.client.CoinNetworkBySymbol(ctx, of.symbol, of.network, opt)
		},
	})
	p.ask(ctx, question{
		method: "CoinNetworksBySymbol", route: "GET /api/networks-coins/{coinSymbol}", of: coinNetwork,
		skip: lacks("a coin", of.symbol),
		send: func(ctx context.Context, opt gateway.CallOption) (any, error) {
			return p.client.CoinNetworksBySymbol(ctx, of.symbol, opt)
		},
	})
}

// lacks says that one of the texts is not known.
func lacks(what string, texts ...string) string {
	if !slices.Contains(texts, "") {
		return ""
	}
	return "no answer before it gives " + what + " to ask for"
}

// balances asks for everything, and then for one coin: that answer may be built
// in another way. It is the first coin that there is, or one of the listing.
func (p *probe) balances(ctx context.Context, one gateway.BalanceQuery) {
	p.ask(ctx, question{
		method: "Balance", route: "GET /api/balance/", of: balance,
		send: func(ctx context.Context, opt gateway.CallOption) (any, error) {
			all, err := p.client.Balance(ctx, gateway.BalanceQuery{}, opt)
			if err == nil && len(all.Amounts) > 0 && all.Amounts[0].CoinSymbol != "" {
				one = gateway.BalanceQuery{CoinSymbol: all.Amounts[0].CoinSymbol, NetworkName: all.Amounts[0].NetworkName}
			}
			return all, err
		},
	})
	p.ask(ctx, question{
		method: "Balance", route: "GET /api/balance/?coinSymbol={coinSymbol}&networkName={networkName}", of: balance,
		skip: lacks("a coin", one.CoinSymbol),
		send: func(ctx context.Context, opt gateway.CallOption) (any, error) {
			return p.client.Balance(ctx, one, opt)
		},
	})
}

func (p *probe) inquiry(ctx context.Context) {
	skip := ""
	if p.withdrawal == "" {
		skip = "give an identifier with -withdrawal"
	}
	p.ask(ctx, question{
		method: "Withdrawal", route: "GET /api/withdrawal/inquiry/{withdrawRequestId}", of: withdrawal,
		skip: skip,
		send: func(ctx context.Context, opt gateway.CallOption) (any, error) {
			return p.client.Withdrawal(ctx, p.withdrawal, opt)
		},
	})
}
