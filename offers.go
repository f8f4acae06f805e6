package gateway

import (
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/money"
)

// An Offer is a coin on a network, and what a price is in it.
type Offer struct {
	Pair   *CoinNetwork    // of the catalog: it must not be changed
	Amount decimal.Decimal // units of the coin, rounded up to its precision; zero if there is no rate, or the pair is off

	// Err is why the price cannot be paid so, and nil if it can: a [*LimitError] of
	// [CoinNetwork.CheckPayment], whose Nearest is the least amount where the price is too
	// small, or an [*ArgumentError] for a coin without a rate, and for a pair that is listed
	// twice, by its names or its identifier, or without them.
	Err error
}

// Offers are what a buyer can choose from to pay a price, and what they cannot and why. They
// never change and are safe for concurrent use.
type Offers struct {
	all    []Offer // in the order of the listing
	byName map[pairName]int
}

// NewOffers returns the offers for a price in a fiat currency, "usd" or "eur" in any case,
// one for each record of the catalog. For a price in another currency see [PriceIn]. The
// amounts are by these rates: do not show them for longer than the rates are good.
//
// A catalog or rates that are nil, another currency, and a price that is not above zero or
// that has more than 64 digits or 30 decimal places are an [*ArgumentError].
func NewOffers(catalog *Catalog, rates *ExchangeRates, price decimal.Decimal, fiat string) (*Offers, error) {
	const op = "new_offers"
	switch reason := money.Check(price); {
	case catalog == nil:
		return nil, &ArgumentError{Operation: op, Name: "catalog", Reason: "must not be nil"}
	case rates == nil:
		return nil, &ArgumentError{Operation: op, Name: "rates", Reason: "must not be nil"}
	case !isFiat(fiat):
		return nil, &ArgumentError{Operation: op, Name: "fiat", Reason: "must be usd or eur; convert another currency with PriceIn"}
	case reason != "":
		return nil, &ArgumentError{Operation: op, Name: "price", Reason: reason}
	}
	bySymbol := make(map[string]Rate, len(rates.Rates))
	for _, rate := range slices.Backward(rates.Rates) { // of two, the first one counts
		bySymbol[rate.CoinSymbol] = rate
	}
	o := &Offers{all: make([]Offer, 0, len(catalog.pairs)), byName: make(map[pairName]int, len(catalog.pairs))}
	for pair := range catalog.All() {
		offer := Offer{Pair: pair}
		rate, listed := bySymbol[pair.Coin.Symbol]
		offer.Amount, offer.Err = offer.price(op, price, fiat, rate, listed)
		if name, reason := pair.ambiguous(catalog); reason != "" {
			offer.Err = &ArgumentError{Operation: op, Name: name, Reason: reason}
		}
		o.byName[pair.pairName()] = len(o.all)
		o.all = append(o.all, offer)
	}
	return o, nil
}

// ambiguous returns why a pair is not told apart from others by an invoice, or by a form.
func (p *CoinNetwork) ambiguous(in *Catalog) (name, reason string) {
	_, uniqueName := in.Find(p.Coin.Symbol, p.Network.Name)
	_, uniqueID := in.ByID(p.ID)
	switch {
	case p.Coin.Symbol == "":
		return "coinSymbol", "is empty in the listing"
	case p.Network.Name == "":
		return "networkName", "is empty in the listing: an invoice could not name it"
	case !uniqueName:
		return "networkName", "is listed twice for this coin"
	case !uniqueID:
		return "id", "is listed twice"
	}
	return "", ""
}

// price returns the amount of a price, and why it cannot be paid.
func (o Offer) price(op string, price decimal.Decimal, fiat string, rate Rate, listed bool) (decimal.Decimal, error) {
	limits := o.Pair.paymentLimits()
	off, isOff := limits.off()
	unit, err := rate.usable(op, listed, fiat, o.Pair.Coin.Symbol)
	if isOff {
		err = &LimitError{Limit: off}
	}
	if err != nil {
		return decimal.Decimal{}, err
	}
	amount, err := toCoin(op, price, unit, o.Pair.Coin.Precision)
	if err != nil {
		return decimal.Decimal{}, err
	}
	return amount, o.Pair.CheckPayment(amount)
}

// All returns the offers of all records, in the order of the listing.
func (o *Offers) All() []Offer { return slices.Clone(o.all) }

// Payable returns the offers that a buyer can choose, in the order of the listing: listed
// once, active, taking deposits, with a rate, and of an amount that is not too small.
func (o *Offers) Payable() []Offer {
	return slices.DeleteFunc(o.All(), func(offer Offer) bool { return offer.Err != nil })
}

// Find returns the offer of a coin on a network, which its Err may rule out. It reports
// false for one that is not listed. The symbol and the name must match exactly.
func (o *Offers) Find(coinSymbol, networkName string) (Offer, bool) {
	i, ok := o.byName[pairName{coinSymbol, networkName}]
	if !ok {
		return Offer{}, false
	}
	return o.all[i], true
}

// PriceIn converts a price in a fiat currency that the gateway does not list to one that it
// does, by a rate of the merchant's own: how many units of the listed currency one unit of
// the price's currency is. The result is rounded up to two decimal places, so that a
// merchant never asks for too little. A price or a rate that is not above zero or that has
// more than 64 digits or 30 decimal places is an [*ArgumentError], and so is a result of
// more than 64 digits.
//
//	usd, err := gateway.PriceIn(pounds, dollarsPerPound)
func PriceIn(price, rate decimal.Decimal) (decimal.Decimal, error) {
	for i, amount := range []decimal.Decimal{price, rate} {
		if reason := money.Check(amount); reason != "" {
			return decimal.Decimal{}, &ArgumentError{Operation: "price_in", Name: []string{"price", "rate"}[i], Reason: reason}
		}
	}
	converted := price.Mul(rate).RoundCeil(2)
	if reason := money.Check(converted); reason != "" {
		return decimal.Decimal{}, &ArgumentError{Operation: "price_in", Name: "price", Reason: "after conversion " + reason}
	}
	return converted, nil
}
