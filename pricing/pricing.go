// Package pricing converts a price into each coin, and checks what can be paid and withdrawn. It uses
// the listing of coins and networks, and the exchange rates. It calculates exactly; only its caches
// ask the gateway.
//
//	offers, err := pricing.NewOffers(catalog, rates, price, "usd")
//	…
//	offer, ok := offers.FindID(r.FormValue("offer"))
//	if ok && offer.Err == nil {
//		request.Amount = offer.Amount
//	}
//
// Amounts are in units of the coin, above zero, and have at most 64 digits, 30 of them decimal
// places. A fiat currency is "usd" or "eur"; its case is ignored. So is the case of a coin's symbol, if only one
// symbol matches. A bad argument is a [*gateway.ArgumentError]; a nil pointer panics. On error the
// result is zero. Pairs, catalogs and rates are shared: do not change them.
package pricing

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/money"
)

// ToCoin converts a price, or zero, to units of the coin of a pair, rounded up to its precision, from 0 to 30 decimal
// places. A coin without a rate above zero is a [*gateway.ArgumentError].
func ToCoin(rates *gateway.ExchangeRates, price decimal.Decimal, fiat string, pair *gateway.CoinNetwork) (
	decimal.Decimal, error,
) {
	const op = "to_coin"
	rate, listed := rates.Rate(pair.Coin.Symbol)
	unit, err := priceOf(op, pair.Coin.Symbol, rate, listed, fiat, rates.Skipped)
	if err != nil {
		return decimal.Decimal{}, err
	}
	return toCoin(op, price, unit, pair.Coin.Precision)
}

// toCoin converts a price to units of a coin. One of them costs unit.
func toCoin(op string, price, unit decimal.Decimal, precision int) (decimal.Decimal, error) {
	if reason := checkConverted(price); reason != "" {
		return decimal.Decimal{}, refused(op, "price", reason)
	}
	if precision < 0 || precision > money.MaxScale {
		return decimal.Decimal{}, refused(op, "precision", "must be from 0 to 30")
	}
	amount, rest := price.QuoRem(unit, int32(precision)) // I-100
	if rest.Sign() > 0 {
		amount = amount.Add(decimal.New(1, -int32(precision)))
	}
	return amount, nil
}

// ToFiat converts an amount of a coin to a fiat currency, rounded half to even to two decimal
// places. Its errors are those of [ToCoin].
func ToFiat(rates *gateway.ExchangeRates, amount decimal.Decimal, fiat, coinSymbol string) (decimal.Decimal, error) {
	const op = "to_fiat"
	rate, listed := rates.Rate(coinSymbol)
	unit, err := priceOf(op, coinSymbol, rate, listed, fiat, rates.Skipped)
	if err != nil {
		return decimal.Decimal{}, err
	}
	if reason := checkConverted(amount); reason != "" {
		return decimal.Decimal{}, refused(op, "amount", reason)
	}
	return amount.Mul(unit).RoundBank(2), nil
}

// PriceIn converts a price to a fiat currency that the gateway lists, rounded up to two decimal
// places. The rate is the value of one unit of the price's own currency, in that currency.
func PriceIn(price, rate decimal.Decimal) (decimal.Decimal, error) {
	const op = "price_in"
	if reason := money.Check(price); reason != "" {
		return decimal.Decimal{}, refused(op, "price", reason)
	}
	if reason := money.Check(rate); reason != "" {
		return decimal.Decimal{}, refused(op, "rate", reason)
	}
	converted := price.Mul(rate).RoundCeil(2)
	if reason := money.Check(converted); reason != "" {
		return decimal.Decimal{}, refused(op, "price", "after conversion "+reason)
	}
	return converted, nil
}

// priceOf returns the price of a unit of a coin, to convert by. listed reports whether the coin
// has a rate at all; of what was left out of the rates it says what may be of the coin.
func priceOf(
	op, coinSymbol string, rate gateway.Rate, listed bool, fiat string, skipped []gateway.Skipped,
) (decimal.Decimal, error) {
	price, known := rate.In(fiat)
	of := fmt.Sprintf("of %.64q in %s ", coinSymbol, fiat)
	switch {
	case !listed:
		reason := cmp.Or(leftOut(skipped, coinSymbol), "has no exchange rate; write it as the rates do")
		if nameless := leftOut(skipped, ""); nameless != "" {
			reason += "; a record that names no coin " + nameless
		}
		return decimal.Decimal{}, refused(op, "coinSymbol", fmt.Sprintf("%.64q %s", coinSymbol, reason))
	case !isFiat(fiat):
		return decimal.Decimal{}, refused(op, "fiat", notFiat)
	case !known:
		reason := cmp.Or(leftOut(skipped, coinSymbol), "is missing in the response")
		return decimal.Decimal{}, refused(op, "rate", of+reason)
	case price.Sign() <= 0 || !money.Representable(price):
		return decimal.Decimal{}, refused(op, "rate", of+"is not an amount above zero")
	}
	return price, nil
}

// leftOut says what was left out of the rates of a coin, and why, or "".
func leftOut(skipped []gateway.Skipped, coinSymbol string) string {
	var texts []string
	for _, s := range skipped {
		if strings.EqualFold(s.CoinSymbol, coinSymbol) {
			texts = append(texts, s.Pointer+": "+s.Reason)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "was left out: " + strings.Join(texts[:min(len(texts), 2)], "; ")
}

const notFiat = "must be usd or eur; convert another currency with PriceIn"

func isFiat(code string) bool {
	return strings.EqualFold(code, "usd") || strings.EqualFold(code, "eur")
}

func checkConverted(amount decimal.Decimal) string {
	if amount.Sign() < 0 {
		return "must not be negative"
	}
	return money.CheckSize(amount)
}

func refused(op, name, reason string) error {
	return &gateway.ArgumentError{Operation: op, Name: name, Reason: reason}
}
