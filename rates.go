package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/money"
)

// ExchangeRates are the rates of all coins at one time.
type ExchangeRates struct {
	Rates []Rate `json:"rates"` // in the order of the response, each symbol once

	// FetchedAt is when the response was read, by the local clock, less the Age that caches report.
	FetchedAt time.Time `json:"fetchedAt"`

	Skipped []Skipped       `json:"skipped,omitzero"` // the first 64 records and prices that were skipped; nil for none
	Raw     json.RawMessage `json:"raw,omitzero"`     // the result as it came
}

// A Rate is the price of one unit of a coin. A price is not Valid if it is missing, cannot be read, or is
// listed with two values.
type Rate struct {
	CoinSymbol string              `json:"coinSymbol"` // ticker symbol of the coin, as it came
	USD        decimal.NullDecimal `json:"usd"`        // US dollars per unit of the coin; null in JSON if there is none
	EUR        decimal.NullDecimal `json:"eur"`        // euros per unit of the coin; null in JSON if there is none
}

// In returns the price in a fiat currency, "usd" or "eur" in any case. It reports false for another
// currency, and if there is no price in it.
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

// Rate returns the rate of a coin. If no symbol is equal, the case of letters is ignored, as long as only one
// symbol matches. Rate reports false if none does.
func (r *ExchangeRates) Rate(coinSymbol string) (Rate, bool) {
	var found Rate
	several := false
	for _, rate := range r.Rates {
		switch {
		case rate.CoinSymbol == coinSymbol:
			return rate, true
		case !strings.EqualFold(rate.CoinSymbol, coinSymbol):
		case found.CoinSymbol == "":
			found = rate
		default:
			several = several || rate.CoinSymbol != found.CoinSymbol
		}
	}
	if several {
		return Rate{}, false
	}
	return found, found.CoinSymbol != ""
}

// ExchangeRates returns the current rates of all coins in US dollars and euros. The response is not
// documented. The client reads two forms: an array of records with a symbol, usd and eur, and an object of such
// records by symbol in upper case. Any other form is a [*DecodeError], unless [WithRatesDecoder] reads it. A missing
// price is not Valid. A record or a price that cannot be read is skipped: see [Skipped].
//
// GET /api/exchange-rate
func (c *Client) ExchangeRates(ctx context.Context, opts ...CallOption) (*ExchangeRates, error) {
	return do(ctx, c, operation{
		name:  OpExchangeRates,
		route: "/api/exchange-rate",

		undocumented: true,
	}, func(e envelope) (*ExchangeRates, *doc.Error) { return readRates(e, c.cfg.decodeRates) }, opts)
}

// WithRatesDecoder sets the function that reads the result of [Client.ExchangeRates], in any form. It
// receives the result as Raw has it, without keys, or the whole body if there is no envelope. It is not called
// for null, [] or {}. It returns each symbol once; leave a missing price invalid. Its error or panic is wrapped
// in a [*DecodeError]. A symbol that is empty or returned twice, and an amount that a response cannot hold,
// are errors too. Read prices into decimal.NullDecimal: in a decimal.Decimal, a missing price is zero.
func WithRatesDecoder(decode func(result json.RawMessage) ([]Rate, error)) Option {
	return notNil("WithRatesDecoder", decode == nil, func(cfg *config) { cfg.decodeRates = decode })
}

// readRates reads rates with the function of [WithRatesDecoder], or in one of the two forms.
func readRates(e envelope, decode func(json.RawMessage) ([]Rate, error)) (*ExchangeRates, *doc.Error) {
	rates, raw, wrong := decoder[Rate]{
		option: "WithRatesDecoder", decode: decode, check: checkRates, known: ratesIn,
	}.read(e)
	if wrong != nil {
		return nil, wrong
	}
	return &ExchangeRates{Rates: rates, FetchedAt: e.asOf, Skipped: skippedIn(e.body.Doc()), Raw: raw}, nil
}

// checkRates returns why the rates of a caller's decoder are refused, or nil.
func checkRates(rates []Rate) error {
	known := make(map[string]bool, len(rates))
	for i, r := range rates {
		symbol := quotable(r.CoinSymbol)
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

// ratesIn reads [{"symbol":"BTC","usd":"1","eur":"1"}] or {"BTC":{"usd":"1","eur":"1"}}: docs/interface.md, I-95.
func ratesIn(result doc.Node) ([]Rate, *doc.Error) {
	all := make([]Rate, 0, result.Len())
	places := make(map[string]int, result.Len()) // in all, by symbol
	for n := range result.Parts() {
		rate, err := rateIn(n)
		if err != nil {
			n.Skip(n, err)
			continue
		}
		if i, known := places[rate.CoinSymbol]; !known {
			places[rate.CoinSymbol], all = len(all), append(all, rate)
		} else if first := &all[i]; !samePrice(first.USD, rate.USD) || !samePrice(first.EUR, rate.EUR) {
			n.Skip(n, fmt.Errorf("has other rates of %q than a record before it", quotable(rate.CoinSymbol)))
			first.USD, first.EUR = decimal.NullDecimal{}, decimal.NullDecimal{}
		}
	}
	if slices.ContainsFunc(all, func(r Rate) bool { return r.USD.Valid || r.EUR.Valid }) {
		return all, nil
	}
	return nil, cmp.Or(result.Doc().FirstSkipped(), result.Errorf("has no coin with a price in usd or eur"))
}

func samePrice(a, b decimal.NullDecimal) bool {
	return a.Valid == b.Valid && a.Decimal.Equal(b.Decimal)
}

// rateIn reads the record of one coin. It notes a missing price, and skips an unreadable one.
func rateIn(n doc.Node) (r Rate, err error) {
	if n.Member("usd", "USD", "eur", "EUR").IsZero() {
		return r, errors.New("is no record with usd and eur")
	}
	if r.CoinSymbol, err = coinOf(n); err != nil {
		return r, err
	}
	r.USD, r.EUR = priceIn(n, "usd", "USD"), priceIn(n, "eur", "EUR")
	return r, nil
}

// priceIn reads a price, which a record must have under only one of two names.
func priceIn(record doc.Node, lower, upper string) decimal.NullDecimal {
	n := record.Member(lower, upper)
	if n.IsZero() {
		record.Note(doc.UnexpectedValue)
		return decimal.NullDecimal{}
	}
	amount, err := n.Amount()
	if other := record.Member(upper); other != n && !other.IsZero() {
		err = fmt.Errorf("is one of two %s rates", upper)
	}
	if err != nil {
		record.Skip(n, err)
		return decimal.NullDecimal{}
	}
	return decimal.NewNullDecimal(amount)
}
