package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/money"
	"github.com/cryptogw/gateway/internal/redact"
)

// A BalanceQuery narrows a balance. The zero value asks for everything; an
// empty field is not sent.
type BalanceQuery struct {
	CoinSymbol  string // ticker symbol, sent as given; at most 256 bytes
	NetworkName string // name of the network, sent as given; at most 256 bytes
}

// A Balance is the balances of the account that an API key belongs to.
type Balance struct {
	Amounts []BalanceAmount `json:"amounts"`          // in the order of the response
	Skipped []Skipped       `json:"skipped,omitzero"` // the first 64 records that were skipped; nil for none
	Raw     json.RawMessage `json:"raw,omitzero"`     // the result as it came
}

// A BalanceAmount is an amount of one coin on one network; a coin can have several.
type BalanceAmount struct {
	CoinSymbol  string          `json:"coinSymbol"`      // as it came, or of the query; never empty
	NetworkName string          `json:"networkName"`     // empty if neither response nor query names it
	Amount      decimal.Decimal `json:"amount"`          // assumed to be in units of the coin
	CoinID      string          `json:"coinId,omitzero"` // of the coin, as it came; empty for none
}

// Total returns the sum of the amounts of a coin over all networks. It ignores the case of the symbol. If the
// balance does not list the coin, the error matches [ErrNotFound]: the sum is never a silent zero.
//
// Any other [*ArgumentError] means that the sum is not known, for one of these reasons:
//   - the amounts may belong to several coins: two symbols differ in case, two CoinIDs differ, or two amounts are on
//     one network;
//   - an amount may be missing: Skipped has a record of the coin, a record without a coin, or 64 records;
//   - a caller has set an amount that no response can hold.
func (b *Balance) Total(coinSymbol string) (decimal.Decimal, error) {
	for i, s := range b.Skipped {
		isOfCoin := s.CoinSymbol == "" || strings.EqualFold(s.CoinSymbol, redact.Truncate(coinSymbol, maxName))
		if isOfCoin || i == maxSkipped-1 {
			return noTotal("balance", "of %q is not known, a record was skipped: %s: %s",
				quotable(coinSymbol), s.Pointer, s.Reason)
		}
	}
	var total decimal.Decimal
	var first *BalanceAmount
	networks := map[string]bool{}
	for i := range b.Amounts {
		a := &b.Amounts[i]
		if !strings.EqualFold(a.CoinSymbol, coinSymbol) {
			continue
		}
		first = cmp.Or(first, a)
		network := strings.ToLower(strings.ToUpper(a.NetworkName))
		switch {
		case !money.Representable(a.Amount):
			return noTotal("amount", "of %q is not an amount of money", quotable(coinSymbol))
		case a.CoinSymbol != first.CoinSymbol || !endpoint.SameID(a.CoinID, first.CoinID):
			return noTotal("balance", "of %q is not known, the amounts may be of several coins: "+
				"add up those of Amounts that you mean", quotable(coinSymbol))
		case networks[network]:
			return noTotal("balance", "of %q is not known, there are two amounts on the network %q: "+
				"add up those of Amounts that you mean", quotable(coinSymbol), quotable(a.NetworkName))
		}
		total, networks[network] = total.Add(a.Amount), true
	}
	if first == nil {
		_, err := noTotal("coinSymbol", "%q is not in the balance", quotable(coinSymbol))
		err.err = ErrNotFound
		return decimal.Decimal{}, err
	}
	return total, nil
}

// noTotal returns the error of [Balance.Total].
func noTotal(argument, format string, args ...any) (decimal.Decimal, *ArgumentError) {
	reason := printable(fmt.Sprintf(format, args...))
	return decimal.Decimal{}, &ArgumentError{Operation: "total", Name: argument, Reason: reason}
}

// Balance returns the balances of the account. The response is not documented. The client reads three forms: an
// array of records with an amount each, under balance, amount or available; an object of amounts by symbol; and, for
// a query that names a coin, one such record. Any other form is a [*DecodeError], unless [WithBalanceDecoder] reads
// it. So is a record with two amounts, such as available beside total, and a meta that is not empty: the response may
// be one page of several. In a list, a record that cannot be read, or names no coin, is skipped: see [Skipped].
//
// GET /api/balance/
func (c *Client) Balance(ctx context.Context, q BalanceQuery, opts ...CallOption) (*Balance, error) {
	return do(ctx, c, operation{
		name:  OpBalance,
		route: "/api/balance/",
		query: []endpoint.Param{{Name: "coinSymbol", Value: q.CoinSymbol}, {Name: "networkName", Value: q.NetworkName}},
		key:   keyInHeader,

		undocumented: true,
	}, func(e envelope) (*Balance, *doc.Error) { return q.read(e, c.cfg.decodeBalance) }, opts)
}

// WithBalanceDecoder sets the function that reads the result of [Client.Balance], as [WithRatesDecoder] does
// for rates. It may return a symbol several times, such as once for each network. If it cannot read an
// amount, it must return an error: without that amount the total of the coin would be wrong. It also receives
// one page of a paginated balance, and must return an error if it needs the others.
func WithBalanceDecoder(decode func(result json.RawMessage) ([]BalanceAmount, error)) Option {
	return notNil("WithBalanceDecoder", decode == nil, func(cfg *config) { cfg.decodeBalance = decode })
}

// read reads a balance with the function of [WithBalanceDecoder], or in one of the three forms.
func (q BalanceQuery) read(e envelope, decode func(json.RawMessage) ([]BalanceAmount, error)) (*Balance, *doc.Error) {
	amounts, raw, wrong := decoder[BalanceAmount]{
		option: "WithBalanceDecoder", decode: decode, check: checkAmounts,
		known: func(result doc.Node) ([]BalanceAmount, *doc.Error) {
			if meta := e.body.Member("meta"); meta.Holds() {
				return nil, meta.Errorf("is not empty: the balance may be one page of several")
			}
			return q.amountsIn(result)
		},
	}.read(e)
	if wrong != nil {
		return nil, wrong
	}
	return &Balance{Amounts: amounts, Skipped: skippedIn(e.body.Doc()), Raw: raw}, nil
}

// checkAmounts returns why the amounts of a caller's decoder are refused, or nil.
func checkAmounts(amounts []BalanceAmount) error {
	for i, a := range amounts {
		switch {
		case a.CoinSymbol == "":
			return fmt.Errorf("amount %d %w", i, errNoCoin)
		case !money.Representable(a.Amount):
			return fmt.Errorf("the amount of %q is not an amount of money", quotable(a.CoinSymbol))
		}
	}
	return nil
}

var (
	errNotBalance = errors.New("has no known form of a balance")
	errNoAmount   = errors.New("has no balance, amount or available")
	errTwoAmounts = errors.New("has two amounts")
)

// amountsIn reads an array of records, one record for a query that names a coin, or an object of amounts by
// symbol: docs/interface.md, I-105.
func (q BalanceQuery) amountsIn(result doc.Node) (all []BalanceAmount, wrong *doc.Error) {
	switch kind := result.Kind(); {
	case kind == '[':
		all, wrong = q.amountsOf(result.Parts())
	case kind != '{':
		return nil, result.Errorf("%w", errNotBalance)
	case q.CoinSymbol != "" && !result.Member(amountNames...).IsZero():
		all, wrong = q.amountsOf(slices.Values([]doc.Node{result}))
	default:
		all, wrong = q.amountsBySymbol(result)
	}
	if wrong == nil && len(all) == 0 {
		wrong = result.Doc().FirstSkipped()
	}
	return all, wrong
}

// amountsBySymbol reads an object of amounts.
func (q BalanceQuery) amountsBySymbol(result doc.Node) (all []BalanceAmount, wrong *doc.Error) {
	for n := range result.Parts() {
		kind, symbol := n.Kind(), n.Name()
		if kind == '{' || kind == '[' || !isSymbol(symbol) && !strings.EqualFold(symbol, q.CoinSymbol) {
			return nil, n.Errorf("%w", errNotBalance)
		}
		amount, err := n.Amount()
		if err != nil {
			n.Skip(n, err)
			continue
		}
		all = append(all, BalanceAmount{CoinSymbol: symbol, NetworkName: q.NetworkName, Amount: amount})
	}
	return all, nil
}

// amountsOf reads records. A record with two amounts is an error: nobody knows which of them to read.
func (q BalanceQuery) amountsOf(records iter.Seq[doc.Node]) (all []BalanceAmount, wrong *doc.Error) {
	for record := range records {
		amount, at, err := q.amountIn(record)
		switch {
		case errors.Is(err, errTwoAmounts):
			return nil, at.Errorf("%w", err)
		case err != nil:
			record.Skip(at, err)
		default:
			all = append(all, amount)
		}
	}
	return all, nil
}

// amountIn reads a record. A record that has only an amount, or an amount and a network, belongs to the coin of the
// query. The error is about the value at.
func (q BalanceQuery) amountIn(record doc.Node) (a BalanceAmount, at doc.Node, err error) {
	symbol, err := coinOf(record)
	if errors.Is(err, errNoCoin) && q.CoinSymbol != "" && namesNothingElse(record) {
		symbol, err = q.CoinSymbol, nil
	}
	if err != nil {
		return a, record, err
	}
	if at, err = amountOf(record); err != nil {
		return a, record, err
	}
	a = BalanceAmount{
		CoinSymbol: symbol, NetworkName: cmp.Or(networkOf(record), q.NetworkName),
		CoinID: cmp.Or(record.Member("coinId").Text(), record.Member("coin").Member("id").Text()),
	}
	a.Amount, err = at.Amount()
	return a, at, err
}

// namesNothingElse reports whether a record has nothing beside an amount and a network.
func namesNothingElse(record doc.Node) bool {
	others := record.Len() - 1
	if !record.Member(networkNames...).IsZero() {
		others--
	}
	return others == 0
}

// amountNames are the names that the amount of a record can have.
var amountNames = []string{"balance", "amount", "available"}

// amountOf returns the only amount of a record.
func amountOf(record doc.Node) (amount doc.Node, err error) {
	amount = record.Member(amountNames...)
	if amount.IsZero() {
		return amount, errNoAmount
	}
	for m := range record.Parts() {
		if m != amount && mayBeAmount(m) {
			return amount, fmt.Errorf("%w, %q and %q", errTwoAmounts, quotable(amount.Name()), quotable(m.Name()))
		}
	}
	return amount, nil
}

// mayBeAmount reports whether a member of a record can be an amount. Any number can, except a name or an identifier.
func mayBeAmount(m doc.Node) bool {
	name := m.Name()
	_, err := m.Amount()
	switch {
	case slices.Contains(amountNames, name):
		return true
	case slices.Contains(coinNames, name), slices.Contains(networkNames, name), name == "id",
		strings.HasSuffix(name, "Id"), strings.HasSuffix(name, "ID"), strings.HasSuffix(name, "_id"):
		return false
	default:
		return err == nil
	}
}
