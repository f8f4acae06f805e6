package gateway

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/money"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// ExchangeRates are the rates of all coins at one time.
type ExchangeRates struct {
	Rates     []Rate         // in the order of the response, each symbol once
	FetchedAt time.Time      // when the response was read, by the local clock
	Raw       jsontext.Value // the result as it came
}

// A Rate is the price of one unit of a coin.
type Rate struct {
	CoinSymbol string          // ticker symbol of the coin, as it came
	USD        decimal.Decimal // US dollars per unit of the coin
	EUR        decimal.Decimal // euros per unit of the coin
}

// Rate returns the rate of a coin. The symbol must match exactly.
func (r *ExchangeRates) Rate(coinSymbol string) (Rate, bool) {
	for _, rate := range r.Rates {
		if rate.CoinSymbol == coinSymbol {
			return rate, true
		}
	}
	return Rate{}, false
}

// ToCoin converts a price in a fiat currency to units of a coin, rounded up to
// precision decimal places, so that a merchant never asks for too little. The fiat
// currency is "usd" or "eur", in any case; precision is from 0 to 30, such as
// [Coin].Precision. A negative price, an unknown coin or currency and a rate that is
// not above zero are an [*ArgumentError].
func (r *ExchangeRates) ToCoin(price decimal.Decimal, fiat, coinSymbol string, precision int) (decimal.Decimal, error) {
	const op = "to_coin"
	rate, err := r.rateIn(op, coinSymbol, fiat)
	if err != nil {
		return decimal.Decimal{}, err
	}
	if reason := checkConverted(price); reason != "" {
		return decimal.Decimal{}, &ArgumentError{Op: op, Name: "price", Reason: reason}
	}
	if precision < 0 || precision > money.MaxScale {
		return decimal.Decimal{}, &ArgumentError{Op: op, Name: "precision", Reason: "must be from 0 to 30"}
	}
	amount, rest := price.QuoRem(rate, int32(precision))
	if rest.Sign() > 0 {
		amount = amount.Add(decimal.New(1, -int32(precision)))
	}
	return amount, nil
}

// ToFiat converts an amount of a coin to a fiat currency, rounded half to even to two
// decimal places. The fiat currency is "usd" or "eur", in any case. A negative
// amount, an unknown coin or currency and a rate that is not above zero are an
// [*ArgumentError].
func (r *ExchangeRates) ToFiat(amount decimal.Decimal, coinSymbol, fiat string) (decimal.Decimal, error) {
	const op = "to_fiat"
	rate, err := r.rateIn(op, coinSymbol, fiat)
	if err != nil {
		return decimal.Decimal{}, err
	}
	if reason := checkConverted(amount); reason != "" {
		return decimal.Decimal{}, &ArgumentError{Op: op, Name: "amount", Reason: reason}
	}
	return amount.Mul(rate).RoundBank(2), nil
}

func checkConverted(amount decimal.Decimal) string {
	if amount.Sign() < 0 {
		return "must not be negative"
	}
	return money.CheckSize(amount)
}

// rateIn returns the price of a unit of a coin in a fiat currency.
func (r *ExchangeRates) rateIn(op, coinSymbol, fiat string) (decimal.Decimal, error) {
	rate, ok := r.Rate(coinSymbol)
	if !ok {
		return decimal.Decimal{}, &ArgumentError{Op: op, Name: "coinSymbol", Reason: "has no exchange rate"}
	}
	var price decimal.Decimal
	switch strings.ToLower(fiat) {
	case "usd":
		price = rate.USD
	case "eur":
		price = rate.EUR
	default:
		return decimal.Decimal{}, &ArgumentError{Op: op, Name: "fiat", Reason: "must be usd or eur"}
	}
	if price.Sign() <= 0 || !money.Representable(price) {
		return decimal.Decimal{}, &ArgumentError{Op: op, Name: "rate", Reason: fmt.Sprintf("of %q in %s is not an amount above zero", coinSymbol, fiat)}
	}
	return price, nil
}

// ExchangeRates returns the current rates of all coins in US dollars and euros. The
// response is not documented (docs/interface.md, I-95). These shapes are accepted: an
// array of records with a symbol and both rates; such records by symbol; rates by
// currency and symbol. Anything else, and a coin that lacks a rate, is a [*DecodeError]
// with the beginning of the response.
//
// GET /api/exchange-rate
func (c *Client) ExchangeRates(ctx context.Context, opts ...CallOption) (*ExchangeRates, error) {
	return do(ctx, c, call{
		op:    opExchangeRates,
		route: "/api/exchange-rate",
	}, readRates, opts)
}

func readRates(d *strictjson.Decoder) *ExchangeRates {
	r := &ExchangeRates{Raw: strictjson.Raw(d), FetchedAt: time.Now()}
	if d.Err() == nil {
		rates, err := ratesIn(strictjson.NodeOf(d, r.Raw))
		r.Rates = rates
		d.SetErr(err)
	}
	return r
}

// ratesIn recognizes the shape of the exchange rates.
func ratesIn(result strictjson.Node) ([]Rate, *strictjson.Error) {
	members := result.Members()
	usd, byUSD := fiatMember(members, "USD")
	eur, byEUR := fiatMember(members, "EUR")
	switch {
	case result.Kind() == '[':
		return ratesOf(result.Elements())
	case byUSD && byEUR && usd.Kind() == '{' && eur.Kind() == '{':
		return ratesByFiat(usd, eur)
	case result.Kind() == '{':
		return ratesOf(slices.Values(members))
	default:
		return nil, result.Errorf("is %s, not exchange rates", strictjson.KindName(result.Kind()))
	}
}

// ratesOf reads records with a coin and its two rates.
func ratesOf(records iter.Seq[strictjson.Node]) ([]Rate, *strictjson.Error) {
	list := newRateList()
	for n := range records {
		members := n.Members()
		symbol := cmp.Or(coinSymbolOf(members), n.Name())
		if symbol == "" {
			return nil, n.Errorf("names no coin")
		}
		usd, _ := fiatMember(members, "USD")
		eur, _ := fiatMember(members, "EUR")
		if err := list.add(n, symbol, usd, eur); err != nil {
			return nil, err
		}
	}
	return list.all, nil
}

// ratesByFiat reads two objects of rates by symbol.
func ratesByFiat(usd, eur strictjson.Node) ([]Rate, *strictjson.Error) {
	list, inUSD, inEUR := newRateList(), byName(usd), byName(eur)
	for _, n := range append(usd.Members(), eur.Members()...) {
		if err := list.add(n, n.Name(), inUSD[n.Name()], inEUR[n.Name()]); err != nil {
			return nil, err
		}
	}
	return list.all, nil
}

func byName(object strictjson.Node) map[string]strictjson.Node {
	all := map[string]strictjson.Node{}
	for _, n := range object.Members() {
		all[n.Name()] = n
	}
	return all
}

// A rateList collects rates, each symbol once.
type rateList struct {
	all   []Rate
	index map[string]int
}

func newRateList() *rateList { return &rateList{[]Rate{}, map[string]int{}} }

// add reads the rates of a coin. It may be listed more than once, such as once for
// each of its networks, if the rates are equal.
func (l *rateList) add(at strictjson.Node, symbol string, usd, eur strictjson.Node) *strictjson.Error {
	rate, err := newRate(at, symbol, usd, eur)
	if err != nil {
		return err
	}
	if i, ok := l.index[symbol]; ok {
		if !l.all[i].USD.Equal(rate.USD) || !l.all[i].EUR.Equal(rate.EUR) {
			return at.Errorf("%q is listed before with other rates", redact.Truncate(symbol, maxQuotedName))
		}
		return nil
	}
	l.index[symbol] = len(l.all)
	l.all = append(l.all, rate)
	return nil
}

// maxQuotedName bounds a name from a response in the text of an error, in bytes.
const maxQuotedName = 64

// newRate reads both rates of a coin. A missing rate is an error that names the coin,
// never zero.
func newRate(at strictjson.Node, symbol string, usd, eur strictjson.Node) (Rate, *strictjson.Error) {
	rate := Rate{CoinSymbol: symbol}
	for _, side := range []struct {
		code string
		from strictjson.Node
		into *decimal.Decimal
	}{{"USD", usd, &rate.USD}, {"EUR", eur, &rate.EUR}} {
		if side.from.IsZero() {
			return rate, at.Errorf("%q has no %s rate, or two", redact.Truncate(symbol, maxQuotedName), side.code)
		}
		var err *strictjson.Error
		if *side.into, err = side.from.Amount(); err != nil {
			return rate, side.from.Errorf("the %s rate of %q %w", side.code, redact.Truncate(symbol, maxQuotedName), err.Err)
		}
	}
	return rate, nil
}

// fiatMember finds an amount in a fiat currency by its code in lower or upper case.
// If there is one under each, there is none: which of them counts is not stated.
func fiatMember(members []strictjson.Node, code string) (strictjson.Node, bool) {
	lower, isLower := strictjson.Member(members, strings.ToLower(code))
	upper, isUpper := strictjson.Member(members, code)
	if isLower && isUpper {
		return strictjson.Node{}, false
	}
	if isUpper {
		return upper, true
	}
	return lower, isLower
}

// Rates returns an empty cache of the exchange rates. Bad options and a client that was
// not made by [New] are an [*ArgumentError] of every call of Get and Refresh.
//
// GET /api/exchange-rate
func (c *Client) Rates(o CacheOptions) *Cache[*ExchangeRates] {
	rates := NewCache(func(ctx context.Context) (*ExchangeRates, error) { return c.ExchangeRates(ctx) }, o)
	if c != nil {
		rates.keyring = c.keyring
	}
	return rates
}
