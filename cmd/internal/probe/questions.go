package probe

import (
	"context"
	"slices"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/documented/everycall"
	"github.com/cryptogw/gateway/internal/documented/fields"
)

// A question is a call to make.
type question struct {
	method, route string
	of            *fields.Table // the fields of its result
	skip          string        // why it cannot be made; "" when it can
	subject
	send func(ctx context.Context, opt gateway.CallOption) (any, error)
}

// A subject is what a question is about in docs/interface.md.
type subject struct {
	so, soText string // the statements that a response without differences agrees with, and what they say
	body       string // the statement that leaves the form of the result open; "" if it is documented
	public     bool   // whether the call is made without the key
}

// subjects returns what the calls are about, by the name of the method.
func subjects() map[string]subject {
	const record = "every member of the record is as documented"
	return map[string]subject{
		"CoinNetworks":        {"I-13, I-38 to I-42, I-45, I-57 to I-91", "an array of records, all members as documented", "", true},
		"CoinNetwork":         {"I-14, I-57 to I-91", record, "I-50", true},
		"CoinNetworkBySymbol": {"I-15, I-57 to I-91", record, "I-50", true},
		"CoinNetworksOf":      {"I-57 to I-91", record, "I-16, I-51", true},
		"ExchangeRates":       {"I-18", "there are rates", "I-95", true},
		"Balance":             {"I-19, I-30", "there is a balance, for the key in the header", "I-105", false},
		"Withdrawal":          {"I-21, I-30, I-38 to I-42, I-130 to I-138", "one record, all members as documented", "", false},
	}
}

// question returns the call of a method with these values, which is skipped for a
// reason that is not "".
func (p *Probe) question(method string, v everycall.Values, of *fields.Table, skip string) question {
	c, about := everycall.Named(method), subjects()[method]
	about.public = about.public && !p.KeyOnPublic
	return question{
		subject: about,
		method:  c.Name, route: c.Method + " " + c.Route, of: of, skip: skip,
		send: func(ctx context.Context, opt gateway.CallOption) (any, error) { return c.Do(ctx, p.client, v, opt) },
	}
}

// all makes every call that reads, in an order in which a response has the values for
// the next call.
func (p *Probe) all(ctx context.Context) {
	listing := p.ask(ctx, p.question("CoinNetworks", everycall.Values{}, fields.Pair, ""))
	v := firstPair(listing)
	p.ask(ctx, p.question("CoinNetwork", v, fields.Pair, lacks("an id", v.PairID)))
	p.ask(ctx, p.question("CoinNetworkBySymbol", v, fields.Pair, lacks("a coin and a network", v.CoinSymbol, v.NetworkName)))
	p.ask(ctx, p.question("CoinNetworksOf", v, fields.Pair, lacks("a coin", v.CoinSymbol)))
	p.ask(ctx, p.question("ExchangeRates", v, rate, ""))
	p.balances(ctx, gateway.BalanceQuery{CoinSymbol: v.CoinSymbol, NetworkName: v.NetworkName})
	skip := ""
	if p.Withdrawal == "" {
		skip = "name a withdrawal"
	}
	p.ask(ctx, p.question("Withdrawal", everycall.Values{WithdrawalID: p.Withdrawal}, fields.Withdrawal, skip))
}

// firstPair returns the values of the first pair in a listing, which the client may
// have been unable to read. A value that is not there is "".
func firstPair(listing any) everycall.Values {
	array, _ := listing.([]any)
	if len(array) == 0 {
		return everycall.Values{}
	}
	return everycall.Values{
		PairID: fields.TextAt(array[0], "id"), CoinSymbol: fields.TextAt(array[0], "coin", "symbol"), NetworkName: fields.TextAt(array[0], "network", "name"),
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
func (p *Probe) balances(ctx context.Context, single gateway.BalanceQuery) {
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
