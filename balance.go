package gateway

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// A BalanceQuery narrows a balance. The zero value asks for everything; an
// empty field is not sent.
type BalanceQuery struct {
	CoinSymbol  string // ticker symbol, sent as given; at most 256 bytes
	NetworkName string // name of the network, sent as given; at most 256 bytes
}

// A Balance is what the holder of the key has.
type Balance struct {
	Amounts []BalanceAmount // in the order of the answer
	Raw     jsontext.Value  // the result as it came
}

// A BalanceAmount is an amount of one coin.
type BalanceAmount struct {
	CoinSymbol  string          // empty when neither the answer nor the query names the coin
	NetworkName string          // empty when neither the answer nor the query names the network
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

// Balance returns what the holder of the key has. The body is not shown by the
// interface. These are understood: an amount, which is of the coin and network
// asked for; a record, or an array of records, with an amount under balance,
// amount or available; amounts or records by symbol. Anything else is a
// [*DecodeError], which holds the beginning of it.
//
// GET /api/balance/
func (c *Client) Balance(ctx context.Context, q BalanceQuery, opts ...CallOption) (*Balance, error) {
	return do(ctx, c, call{
		op:    opBalance,
		route: "/api/balance/",
		query: []param{{"coinSymbol", q.CoinSymbol}, {"networkName", q.NetworkName}},
		key:   keyInHeader,
	}, q.read, opts)
}

func (q BalanceQuery) read(d *decoder) *Balance {
	b := &Balance{Raw: raw(d)}
	if d.err == nil {
		b.Amounts, d.err = q.amounts(rootNode(d, b.Raw))
	}
	return b
}

// amounts recognises the shape of a balance.
func (q BalanceQuery) amounts(result node) ([]BalanceAmount, *fault) {
	items := slices.Values(result.members())
	_, isRecord := balanceOf(result.members())
	switch {
	case result.kind() == '[':
		items = result.elements()
	case result.kind() != '{' || isRecord:
		items = slices.Values([]node{result})
	}
	all := []BalanceAmount{}
	for item := range items {
		if result.kind() == '[' && item.kind() != '{' {
			return nil, item.fault("is %s, not a record", kindName(item.kind()))
		}
		amount, f := q.amount(item)
		if f != nil {
			return nil, f
		}
		all = append(all, amount)
	}
	return all, nil
}

// amount reads one amount, or one record that holds it. A coin that it does
// not name itself is the one under whose name it stands, or the one that was
// asked for.
func (q BalanceQuery) amount(n node) (BalanceAmount, *fault) {
	members := n.members()
	a := BalanceAmount{
		CoinSymbol:  cmp.Or(coinSymbol(members), n.holder(), q.CoinSymbol),
		NetworkName: cmp.Or(networkName(members), q.NetworkName),
	}
	at := n
	if n.kind() == '{' {
		found, ok := balanceOf(members)
		if !ok {
			return a, n.fault("has no balance, amount or available")
		}
		at = found
	}
	var f *fault
	a.Amount, f = at.amount()
	return a, f
}

// balanceOf finds the member that is the amount of a record.
func balanceOf(members []node) (node, bool) {
	m, ok := member(members, "balance", "amount", "available")
	return m, ok && m.kind() != '{' && m.kind() != '['
}
