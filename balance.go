package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/money"
	"github.com/cryptogw/gateway/internal/redact"
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
	Amounts []BalanceAmount `json:"amounts"`      // in the order of the response
	Raw     json.RawMessage `json:"raw,omitzero"` // the result as it came
}

// A BalanceAmount is an amount of one coin.
type BalanceAmount struct {
	CoinSymbol  string          `json:"coinSymbol"`  // empty when neither the response nor the query names the coin
	NetworkName string          `json:"networkName"` // empty when neither the response nor the query names the network
	Amount      decimal.Decimal `json:"amount"`      // taken to be in units of the coin
}

var (
	balanceRecord       = strictjson.RecordOf[Balance]()
	balanceAmountRecord = strictjson.RecordOf[BalanceAmount]()
)

// MarshalJSON implements [json.Marshaler]. Amounts are text with all their digits; one that a
// response cannot hold is an error. White space in Raw is lost.
func (b Balance) MarshalJSON() ([]byte, error) { return balanceRecord.Marshal(b) }

// UnmarshalJSON implements [json.Unmarshaler] for what MarshalJSON writes: a member that is
// missing, null or malformed is an error, but for Raw. Unknown members are skipped.
func (b *Balance) UnmarshalJSON(text []byte) error { return balanceRecord.Unmarshal(text, b) }

// MarshalJSON is as that of [Balance].
func (a BalanceAmount) MarshalJSON() ([]byte, error) { return balanceAmountRecord.Marshal(a) }

// UnmarshalJSON is as that of [Balance].
func (a *BalanceAmount) UnmarshalJSON(text []byte) error {
	return balanceAmountRecord.Unmarshal(text, a)
}

// Total returns the sum of the amounts of a coin over all networks; it is zero when the
// balance does not list the coin. The symbol must match exactly. An amount beyond what a
// response can hold, which only a caller can have made, is an [*ArgumentError].
func (b *Balance) Total(coinSymbol string) (decimal.Decimal, error) {
	var total decimal.Decimal
	for _, a := range b.Amounts {
		if a.CoinSymbol != coinSymbol {
			continue
		}
		if !money.Representable(a.Amount) {
			reason := fmt.Sprintf("of %q is not an amount of money", redact.Truncate(coinSymbol, maxQuotedName))
			return decimal.Decimal{}, &ArgumentError{Operation: "total", Name: "amount", Reason: reason}
		}
		total = total.Add(a.Amount)
	}
	return total, nil
}

// Balance returns the account's balances. The response is not documented. These shapes are accepted:
// an amount, which is of the coin and network of the query; a record, or an array of records, with an
// amount under balance, amount or available; amounts or records by symbol. Anything else is a
// [*DecodeError]. Among amounts by symbol, what is hardly a coin is reported as drift.
//
// GET /api/balance/
func (c *Client) Balance(ctx context.Context, q BalanceQuery, opts ...CallOption) (*Balance, error) {
	return do(ctx, c, operation{
		name:  OpBalance,
		route: "/api/balance/",
		query: []endpoint.Param{{Name: "coinSymbol", Value: q.CoinSymbol}, {Name: "networkName", Value: q.NetworkName}},
		key:   keyInHeader,
	}, q.read, opts)
}

func (q BalanceQuery) read(d *strictjson.Decoder) *Balance {
	raw := strictjson.Raw(d)
	b := &Balance{Raw: json.RawMessage(raw)}
	if d.Err() == nil {
		amounts, err := q.amounts(strictjson.NodeOf(d, raw))
		b.Amounts = amounts
		d.SetErr(err)
	}
	return b
}

// amounts recognizes the shape of a balance: docs/interface.md, I-105.
func (q BalanceQuery) amounts(result strictjson.Node) ([]BalanceAmount, *strictjson.Error) {
	r := recordOf(result)
	coin, err := r.coinOf(result)
	switch {
	case err != nil:
		return nil, err
	case result.Kind() == '[':
		return q.array(result)
	case result.Kind() == '{' && r.amount().IsZero() && coin == "" && r.networkOf() == "":
		return q.bySymbol(result)
	case (coin == "" || isFiat(coin)) && isBySymbol(result):
		return nil, result.Errorf("is a record and amounts by symbol")
	default:
		amount, err := q.amountIn(result)
		return []BalanceAmount{amount}, err
	}
}

// isBySymbol reports whether a result has amounts by symbol. Beside the amount of a record
// that names no coin they would be lost.
func isBySymbol(result strictjson.Node) bool {
	for m := range result.Members() {
		if isSymbol(m.Name()) && hasAmount(m) {
			return true
		}
	}
	return false
}

// array reads an array of records.
func (q BalanceQuery) array(result strictjson.Node) ([]BalanceAmount, *strictjson.Error) {
	all := make([]BalanceAmount, 0, result.Len())
	for item := range result.Elements() {
		if kind := item.Kind(); kind != '{' {
			return nil, item.Errorf("is %s, not a record", strictjson.KindName(kind))
		}
		amount, err := q.amountIn(item)
		if err != nil {
			return nil, err
		}
		all = append(all, amount)
	}
	return all, nil
}

// bySymbol reads amounts or records by symbol. A member that has no amount and hardly a
// symbol for its name is no coin; all of them cannot be such.
func (q BalanceQuery) bySymbol(result strictjson.Node) ([]BalanceAmount, *strictjson.Error) {
	all := make([]BalanceAmount, 0, result.Len())
	var skipped *strictjson.Error
	for item := range result.Members() {
		if !isSymbol(item.Name()) {
			if !hasAmount(item) {
				item.Note(strictjson.UnknownField)
				if skipped == nil {
					_, skipped = q.amountIn(item)
				}
				continue
			}
			item.Note(strictjson.UnexpectedValue)
		}
		amount, err := q.amountIn(item)
		if err != nil {
			return nil, err
		}
		all = append(all, amount)
	}
	if len(all) == 0 {
		return all, skipped
	}
	return all, nil
}

// amountIn reads one amount, or one record that holds it. A coin that it does not name
// is the coin of the query.
func (q BalanceQuery) amountIn(n strictjson.Node) (BalanceAmount, *strictjson.Error) {
	r := recordOf(n)
	coin, err := r.coinOf(n)
	if err != nil {
		return BalanceAmount{}, err
	}
	if n.Kind() == '{' {
		found := r.amount()
		if found.IsZero() {
			return BalanceAmount{}, n.Errorf("has no balance, amount or available")
		}
		n = found
	}
	amount, wrong := n.Amount()
	if wrong != nil {
		return BalanceAmount{}, n.Errorf("%w", wrong)
	}
	return BalanceAmount{cmp.Or(coin, q.CoinSymbol), cmp.Or(r.networkOf(), q.NetworkName), amount}, nil
}

// hasAmount reports whether n is an amount, or a record with a member that could be one.
func hasAmount(n strictjson.Node) bool {
	if n.Kind() != '{' {
		_, err := n.Amount()
		return err == nil
	}
	r := recordOf(n)
	return !r.amount().IsZero()
}
