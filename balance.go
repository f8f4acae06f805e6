package gateway

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// A BalanceQuery narrows a balance. The zero value asks for everything; an
// empty field is not sent.
type BalanceQuery struct {
	CoinSymbol  string // ticker symbol, sent as given; at most 256 bytes
	NetworkName string // name of the network, sent as given; at most 256 bytes
}

// A Balance is the balances of the account that an API key belongs to.
type Balance struct {
	Amounts []BalanceAmount // in the order of the response
	Raw     jsontext.Value  // the result as it came
}

// A BalanceAmount is an amount of one coin.
type BalanceAmount struct {
	CoinSymbol  string          // empty when neither the response nor the query names the coin
	NetworkName string          // empty when neither the response nor the query names the network
	Amount      decimal.Decimal // in units of the coin
}

// Total returns the sum of the amounts of a coin over all networks; it is zero
// when the balance does not list the coin. The symbol must match exactly.
func (b *Balance) Total(coinSymbol string) decimal.Decimal {
	var total decimal.Decimal
	for _, a := range b.Amounts {
		if a.CoinSymbol == coinSymbol {
			total = total.Add(a.Amount)
		}
	}
	return total
}

// Balance returns the account's balances. The response is not documented
// (docs/interface.md, I-105). These shapes are accepted: an amount, which is of the
// coin and network of the query; a record, or an array of records, with an amount under
// balance, amount or available; amounts or records by symbol. Anything else is a
// [*DecodeError] with the beginning of the response.
//
// GET /api/balance/
func (c *Client) Balance(ctx context.Context, q BalanceQuery, opts ...CallOption) (*Balance, error) {
	return do(ctx, c, call{
		op:    opBalance,
		route: "/api/balance/",
		query: []endpoint.Param{{Name: "coinSymbol", Value: q.CoinSymbol}, {Name: "networkName", Value: q.NetworkName}},
		key:   keyInHeader,
	}, q.read, opts)
}

func (q BalanceQuery) read(d *strictjson.Decoder) *Balance {
	b := &Balance{Raw: strictjson.Raw(d)}
	if d.Err() == nil {
		amounts, err := q.amounts(strictjson.NodeOf(d, b.Raw))
		b.Amounts = amounts
		d.SetErr(err)
	}
	return b
}

// amounts recognizes the shape of a balance.
func (q BalanceQuery) amounts(result strictjson.Node) ([]BalanceAmount, *strictjson.Error) {
	items := slices.Values(result.Members())
	_, isRecord := balanceOf(result.Members())
	switch {
	case result.Kind() == '[':
		items = result.Elements()
	case result.Kind() != '{' || isRecord:
		items = slices.Values([]strictjson.Node{result})
	}
	all := []BalanceAmount{}
	for item := range items {
		if result.Kind() == '[' && item.Kind() != '{' {
			return nil, item.Errorf("is %s, not a record", strictjson.KindName(item.Kind()))
		}
		amount, err := q.amount(item)
		if err != nil {
			return nil, err
		}
		all = append(all, amount)
	}
	return all, nil
}

// amount reads one amount, or one record that holds it. A coin that it does not name
// is the name of the member that holds it, or the coin of the query.
func (q BalanceQuery) amount(n strictjson.Node) (BalanceAmount, *strictjson.Error) {
	members := n.Members()
	a := BalanceAmount{
		CoinSymbol:  cmp.Or(coinSymbolOf(members), n.Name(), q.CoinSymbol),
		NetworkName: cmp.Or(networkNameOf(members), q.NetworkName),
	}
	at := n
	if n.Kind() == '{' {
		found, ok := balanceOf(members)
		if !ok {
			return a, n.Errorf("has no balance, amount or available")
		}
		at = found
	}
	amount, err := at.Amount()
	a.Amount = amount
	return a, err
}

// balanceOf finds the member that is the amount of a record.
func balanceOf(members []strictjson.Node) (strictjson.Node, bool) {
	m, ok := strictjson.Member(members, "balance", "amount", "available")
	return m, ok && m.Kind() != '{' && m.Kind() != '['
}
