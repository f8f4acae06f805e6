package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/money"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// ExchangeRates are the rates of all coins at one time.
type ExchangeRates struct {
	Rates     []Rate          `json:"rates"`            // in the order of the response, each symbol once
	FetchedAt time.Time       `json:"fetchedAt"`        // when the response was read, by the local clock
	Skipped   []Skipped       `json:"skipped,omitzero"` // the first 64 records and prices that were left out; nil for none
	Raw       json.RawMessage `json:"raw,omitzero"`     // the result as it came
}

// A Rate is the price of one unit of a coin. A price that is missing in the response,
// cannot be read, or is listed with two values, is not Valid.
type Rate struct {
	CoinSymbol string              `json:"coinSymbol"` // ticker symbol of the coin, as it came
	USD        decimal.NullDecimal `json:"usd"`        // US dollars per unit of the coin; null in JSON if there is none
	EUR        decimal.NullDecimal `json:"eur"`        // euros per unit of the coin; null in JSON if there is none
}

var (
	ratesRecord = strictjson.RecordOf[ExchangeRates]()
	rateRecord  = strictjson.RecordOf[Rate]()
)

// MarshalJSON is as that of [Balance].
func (r ExchangeRates) MarshalJSON() ([]byte, error) { return ratesRecord.Marshal(r) }

// UnmarshalJSON is as that of [Balance].
func (r *ExchangeRates) UnmarshalJSON(text []byte) error { return ratesRecord.Unmarshal(text, r) }

// MarshalJSON is as that of [Balance].
func (r Rate) MarshalJSON() ([]byte, error) { return rateRecord.Marshal(r) }

// UnmarshalJSON is as that of [Balance].
func (r *Rate) UnmarshalJSON(text []byte) error { return rateRecord.Unmarshal(text, r) }

// In returns the price in a fiat currency, "usd" or "eur" in any case. It reports false
// for another currency, and where there is no rate in it.
func (r Rate) In(fiat string) (decimal.Decimal, bool) {
	switch strings.ToLower(fiat) {
	case "usd":
		return r.USD.Decimal, r.USD.Valid
	case "eur":
		return r.EUR.Decimal, r.EUR.Valid
	default:
		return decimal.Decimal{}, false
	}
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

// ExchangeRates returns the current rates of all coins in US dollars and euros. The response is not
// documented. These shapes are accepted: an array of records with a symbol and both rates; such
// records by symbol; rates by currency and symbol. Another form is a [*DecodeError], unless
// [WithRatesDecoder] reads it. A record of several that names no coin is left out. A
// coin of which a rate is missing, malformed, or listed with two values has no rate in that currency.
// Drift tells of each, and Skipped has all but the missing ones.
//
// GET /api/exchange-rate
func (c *Client) ExchangeRates(ctx context.Context, opts ...CallOption) (*ExchangeRates, error) {
	return do(ctx, c, operation{
		name:  OpExchangeRates,
		route: "/api/exchange-rate",
	}, func(d *strictjson.Decoder) *ExchangeRates { return readRates(d, c.cfg) }, opts)
}

// readRates reads rates with the decoder of [WithRatesDecoder], or in one of the likely forms.
func readRates(d *strictjson.Decoder, cfg *config) *ExchangeRates {
	raw := strictjson.Raw(d)
	r := &ExchangeRates{Rates: []Rate{}, Raw: json.RawMessage(raw), FetchedAt: time.Now()}
	if d.Err() != nil {
		return r
	}
	result := strictjson.NodeOf(d, raw)
	list := rateList{all: r.Rates}
	var wrong *strictjson.Error
	help := ""
	switch {
	case holdsNothing(result):
	case cfg.decodeRates != nil:
		list.all = decoded(d, "WithRatesDecoder", cfg.decodeRates, r.Raw, checkRates)
	default:
		wrong, help = list.addAll(result), "another form is read with WithRatesDecoder"
	}
	d.SetErr(explained(wrong, help))
	r.Rates, r.Skipped = list.all, skippedIn(d)
	return r
}

// checkRates returns what is wrong with the rates of a caller's decoder, or nil.
func checkRates(rates []Rate) error {
	known := make(map[string]bool, len(rates))
	for i, r := range rates {
		symbol := redact.Truncate(r.CoinSymbol, maxQuotedName)
		switch {
		case r.CoinSymbol == "":
			return fmt.Errorf("rate %d %w", i, errNoCoin)
		case known[r.CoinSymbol]:
			return fmt.Errorf("%q is there twice", symbol)
		case r.USD.Valid && !money.Representable(r.USD.Decimal), r.EUR.Valid && !money.Representable(r.EUR.Decimal):
			return fmt.Errorf("a rate of %q is not an amount of money", symbol)
		}
		known[r.CoinSymbol] = true
	}
	return nil
}

// addAll recognizes the shape of the exchange rates: docs/interface.md, I-95.
func (l *rateList) addAll(result strictjson.Node) *strictjson.Error {
	r := recordOf(result)
	usd, eur := r.fiat(recordUSD), r.fiat(recordEUR)
	switch kind := result.Kind(); {
	case usd.Kind() == '{' && eur.Kind() == '{' && !holdsBothFiats(usd) && !holdsBothFiats(eur):
		l.skipOthers(result, usd, eur)
		l.addByFiat(usd, eur)
	case usd.Kind() == '{' && eur.Kind() == '{' && !allAreRates(result):
		return result.Errorf("has usd and eur, which can be currencies or coins")
	case kind != '{' && kind != '[':
		return result.Errorf("is %s, not exchange rates", strictjson.KindName(kind))
	default:
		if n := besideRates(result); !n.IsZero() {
			return n.Errorf("does not belong to rates by symbol")
		}
		l.addRecords(result)
	}
	return l.whyNoPrice()
}

// whyNoPrice returns why there is no price at all, or nil if there is one.
func (l *rateList) whyNoPrice() *strictjson.Error {
	if slices.ContainsFunc(l.all, func(r Rate) bool { return r.USD.Valid || r.EUR.Valid }) {
		return nil
	}
	return l.first
}

// besideRates returns the first member that shows a result to be no rates by symbol: a text under the name
// of the coin, or anything under the name of a list. It returns none if a symbol with a rate is there.
func besideRates(result strictjson.Node) (first strictjson.Node) {
	for n := range result.Members() {
		isCoin, isList := false, false
		switch n.Name() {
		case "symbol", "coinSymbol", "coin", "currency", "base":
			isCoin = n.Kind() == '"'
		case "rates", "prices", "quotes", "data", "result", "items", "list":
			isList = n.Len() > 0
		}
		switch r := recordOf(n); {
		case isSymbol(n.Name()) && !(r.fiat(recordUSD).IsZero() && r.fiat(recordEUR).IsZero()):
			return strictjson.Node{}
		case first.IsZero() && (isCoin || isList):
			first = n
		}
	}
	return first
}

// holdsBothFiats reports whether n has members in both fiat currencies: it can be a coin
// of the name of a currency, or the rates of coins of these names.
func holdsBothFiats(n strictjson.Node) bool {
	r := recordOf(n)
	return !r.fiat(recordUSD).IsZero() && !r.fiat(recordEUR).IsZero()
}

// allAreRates reports whether all members are records of both rates and have no other member.
func allAreRates(result strictjson.Node) bool {
	for n := range result.Members() {
		others := n.Len()
		for _, member := range recordOf(n) {
			if !member.IsZero() {
				others--
			}
		}
		if others > 0 || !holdsBothFiats(n) {
			return false
		}
	}
	return true
}

// fiats are the codes of the two currencies, by their index in a [rateList].
var fiats = [...]string{"USD", "EUR"}

// A rateList collects rates, each symbol once.
type rateList struct {
	all   []Rate
	index map[string]int32  // of the coins in all
	seen  []fiatSet         // for each coin, the currencies in which it has a value, readable or not
	lost  []fiatSet         // for each coin, those in which it has two
	first *strictjson.Error // what is wrong with the first rate that cannot be read, or is missing
}

// A fiatSet has a bit for each of the fiats.
type fiatSet uint8

// grow makes room for the coins: probably so many, and never more than most.
func (l *rateList) grow(probably, most int) {
	l.all, l.index = make([]Rate, 0, probably), make(map[string]int32, probably)
	l.seen, l.lost = make([]fiatSet, most), make([]fiatSet, most)
}

// addRecords reads records with a coin and its two rates, in an array or by symbol.
func (l *rateList) addRecords(result strictjson.Node) {
	coins := result.Len()
	l.grow(coins, coins)
	for n := range result.Parts() {
		r := recordOf(n)
		usd, eur := r.fiat(recordUSD), r.fiat(recordEUR)
		if hasNone := usd.IsZero() && eur.IsZero(); result.Kind() == '{' && !isSymbol(n.Name()) && (n.Kind() != '{' || hasNone) {
			l.skip(n, "a record of rates")
			continue
		}
		symbol, err := r.coinOf(n)
		switch {
		case err != nil:
			l.leaveOut(n, "", err)
		case symbol == "":
			l.leaveOut(n, "", errNoCoin)
		case n.Kind() != '{':
			l.leaveOut(n, symbol, fmt.Errorf("is %s, not a record of rates", strictjson.KindName(n.Kind())))
		default:
			l.addSpelled(n, symbol, 0, usd, r[recordUSD])
			l.addSpelled(n, symbol, 1, eur, r[recordEUR])
		}
	}
}

// addSpelled adds the rate that a record has under one of two spellings of a currency. One that is there
// under both is left out.
func (l *rateList) addSpelled(record strictjson.Node, symbol string, fiat int, from, lower strictjson.Node) {
	if from.IsZero() && !lower.IsZero() {
		l.leaveOut(record, symbol, fmt.Errorf("has two %s rates", fiats[fiat]))
	}
	l.add(record, symbol, fiat, from)
}

// skipOthers notes what is beside the two objects of rates.
func (l *rateList) skipOthers(result, usd, eur strictjson.Node) {
	for n := range result.Members() {
		if n.Name() != usd.Name() && n.Name() != eur.Name() {
			l.skip(n, "the rates in usd or eur")
		}
	}
}

// addByFiat reads two objects of rates by symbol. A coin of only one of them lacks the
// rate of the other.
func (l *rateList) addByFiat(usd, eur strictjson.Node) {
	inUSD, inEUR := usd.Len(), eur.Len()
	l.grow(max(inUSD, inEUR), inUSD+inEUR)
	for fiat, object := range [...]strictjson.Node{usd, eur} {
		for n := range object.Members() {
			symbol := n.Name()
			if _, err := n.Amount(); err != nil && !isSymbol(symbol) {
				l.skip(n, "a rate")
				continue
			}
			l.add(n, symbol, fiat, n)
		}
	}
	for fiat, object := range [...]strictjson.Node{eur, usd} { // each beside the currency that its coins may lack
		for n := range object.Members() {
			if i, ok := l.index[n.Name()]; ok && l.seen[i]&(1<<fiat) == 0 {
				l.add(n, n.Name(), fiat, strictjson.Node{})
			}
		}
	}
}

// add reads a rate of a coin from a node. One that is missing, which is noted at the place
// of the coin, or malformed, or differs from one before, is not Valid.
func (l *rateList) add(at strictjson.Node, symbol string, fiat int, from strictjson.Node) {
	i, ok := l.index[symbol]
	if !ok {
		i = int32(len(l.all)) // #nosec G115 -- at most strictjson.MaxEntries
		l.index[symbol], l.all = i, append(l.all, Rate{CoinSymbol: symbol})
	}
	rate := [...]*decimal.NullDecimal{&l.all[i].USD, &l.all[i].EUR}[fiat]
	if from.IsZero() {
		if l.note(at, strictjson.UnexpectedValue) {
			l.first = at.Errorf("%q has no %s rate", redact.Truncate(symbol, maxQuotedName), fiats[fiat])
		}
		return
	}
	l.seen[i] |= 1 << fiat
	amount, err := from.Amount()
	switch {
	case err != nil:
		l.leaveOut(from, symbol, err)
	case l.lost[i]&(1<<fiat) != 0:
	case !rate.Valid:
		*rate = decimal.NewNullDecimal(amount)
	case !rate.Decimal.Equal(amount):
		l.leaveOut(from, symbol, fmt.Errorf("is another %s rate than %s before it", fiats[fiat], rate.Decimal))
		*rate, l.lost[i] = decimal.NullDecimal{}, l.lost[i]|1<<fiat
	}
}

// leaveOut leaves out a record, or a price of one, in which something is wrong.
func (l *rateList) leaveOut(n strictjson.Node, symbol string, wrong error) {
	n.LeaveOut(wrong, symbol, "", "")
	if l.first == nil {
		l.first = n.Errorf("%w", wrong)
	}
}

// skip notes a member that is no coin, and not what is expected there.
func (l *rateList) skip(n strictjson.Node, expected string) {
	if l.note(n, strictjson.UnknownField) {
		l.first = n.Errorf("is %s, not %s", strictjson.KindName(n.Kind()), expected)
	}
}

// note notes n, and reports whether it is the first of which something is wrong.
func (l *rateList) note(n strictjson.Node, kind strictjson.Kind) bool {
	n.Note(kind)
	return l.first == nil
}
