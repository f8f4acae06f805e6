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
)

// ExchangeRates are the rates of all coins at one time.
type ExchangeRates struct {
	Rates     []Rate         // in the order of the answer, each symbol once
	FetchedAt time.Time      // when the answer was read, by the clock of this machine
	Raw       jsontext.Value // the result as it came
}

// A Rate is the price of one unit of a coin.
type Rate struct {
	CoinSymbol string
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

// ToCoin returns what a price in a fiat currency is in units of a coin,
// rounded up to so many decimal places, so that a merchant never asks for too
// little. The fiat currency is "usd" or "eur", in any case;
// precision is from 0 to 30, such as [Coin].Precision. A negative price, an
// unknown coin or currency and a rate that is not above zero are an
// [*ArgumentError].
func (r *ExchangeRates) ToCoin(price decimal.Decimal, fiat, coinSymbol string, precision int) (decimal.Decimal, error) {
	const op = "to_coin"
	rate, err := r.rateIn(op, coinSymbol, fiat)
	if err != nil {
		return decimal.Decimal{}, err
	}
	if reason := checkConverted(price); reason != "" {
		return decimal.Decimal{}, &ArgumentError{Op: op, Name: "price", Reason: reason}
	}
	if precision < 0 || precision > maxSentScale {
		return decimal.Decimal{}, &ArgumentError{Op: op, Name: "precision", Reason: "must be from 0 to 30"}
	}
	amount, rest := price.QuoRem(rate, int32(precision))
	if rest.Sign() > 0 {
		amount = amount.Add(decimal.New(1, -int32(precision)))
	}
	return amount, nil
}

// ToFiat returns what an amount of a coin is in a fiat currency, rounded half
// to even to two places. The fiat currency is "usd" or "eur", in any
// case. A negative amount, an unknown coin or currency and a rate that is
// not above zero are an [*ArgumentError].
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
	return checkSize(amount)
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
	if price.Sign() <= 0 || !readable(price) {
		return decimal.Decimal{}, &ArgumentError{Op: op, Name: "rate", Reason: fmt.Sprintf("of %q in %s is not an amount above zero", coinSymbol, fiat)}
	}
	return price, nil
}

// ExchangeRates returns the current rates of all coins to US dollars and
// euros. The body is not shown by the interface. These are understood: an
// array of records with a symbol and both rates; such records by symbol; rates
// by currency and symbol. Anything else, and a coin that lacks a rate, is a
// [*DecodeError], which holds the beginning of it.
//
// GET /api/exchange-rate
func (c *Client) ExchangeRates(ctx context.Context, opts ...CallOption) (*ExchangeRates, error) {
	return do(ctx, c, call{
		op:    opExchangeRates,
		route: "/api/exchange-rate",
	}, readRates, opts)
}

func readRates(d *decoder) *ExchangeRates {
	r := &ExchangeRates{Raw: raw(d), FetchedAt: time.Now()}
	if d.err == nil {
		r.Rates, d.err = rates(rootNode(d, r.Raw))
	}
	return r
}

// rates recognises the shape of the exchange rates.
func rates(result node) ([]Rate, *fault) {
	members := result.members()
	usd, byUSD := fiat(members, "USD")
	eur, byEUR := fiat(members, "EUR")
	switch {
	case result.kind() == '[':
		return ratesOf(result.elements())
	case byUSD && byEUR && usd.kind() == '{' && eur.kind() == '{':
		return ratesByFiat(usd, eur)
	case result.kind() == '{':
		return ratesOf(slices.Values(members))
	default:
		return nil, result.fault("is %s, not exchange rates", kindName(result.kind()))
	}
}

// ratesOf reads records of a coin and its two rates.
func ratesOf(records iter.Seq[node]) ([]Rate, *fault) {
	list := newRateList()
	for n := range records {
		members := n.members()
		symbol := cmp.Or(coinSymbol(members), n.name)
		if symbol == "" {
			return nil, n.fault("names no coin")
		}
		usd, _ := fiat(members, "USD")
		eur, _ := fiat(members, "EUR")
		if f := list.add(n, symbol, usd, eur); f != nil {
			return nil, f
		}
	}
	return list.all, nil
}

// ratesByFiat reads two objects of rates by symbol.
func ratesByFiat(usd, eur node) ([]Rate, *fault) {
	list, inUSD, inEUR := newRateList(), byName(usd), byName(eur)
	for _, n := range append(usd.members(), eur.members()...) {
		if f := list.add(n, n.name, inUSD[n.name], inEUR[n.name]); f != nil {
			return nil, f
		}
	}
	return list.all, nil
}

func byName(object node) map[string]node {
	all := map[string]node{}
	for _, n := range object.members() {
		all[n.name] = n
	}
	return all
}

// A rateList collects rates, each symbol once.
type rateList struct {
	all   []Rate
	index map[string]int
}

func newRateList() *rateList { return &rateList{[]Rate{}, map[string]int{}} }

// add reads the rates of a coin. It may be listed more than once, as once for
// each of its networks, if the rates are the same.
func (l *rateList) add(at node, symbol string, usd, eur node) *fault {
	rate, f := newRate(at, symbol, usd, eur)
	if f != nil {
		return f
	}
	if i, ok := l.index[symbol]; ok {
		if !l.all[i].USD.Equal(rate.USD) || !l.all[i].EUR.Equal(rate.EUR) {
			return at.fault("%q is listed before with other rates", bounded(symbol, maxNamed))
		}
		return nil
	}
	l.index[symbol] = len(l.all)
	l.all = append(l.all, rate)
	return nil
}

// maxNamed bounds a name from the answer in the text of an error, in bytes.
const maxNamed = 64

// newRate reads both rates of a coin. A rate that is not there is an error
// that names the coin, never zero.
func newRate(at node, symbol string, usd, eur node) (Rate, *fault) {
	rate := Rate{CoinSymbol: symbol}
	for _, side := range []struct {
		code string
		from node
		into *decimal.Decimal
	}{{"USD", usd, &rate.USD}, {"EUR", eur, &rate.EUR}} {
		if side.from.value == nil {
			return rate, at.fault("%q has no %s rate, or two", bounded(symbol, maxNamed), side.code)
		}
		var f *fault
		if *side.into, f = side.from.amount(); f != nil {
			return rate, &fault{pointer: f.pointer, err: fmt.Errorf("the %s rate of %q %w", side.code, bounded(symbol, maxNamed), f.err)}
		}
	}
	return rate, nil
}
