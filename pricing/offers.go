package pricing

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/money"
)

// An Offer is a price in a coin on a network.
type Offer struct {
	Pair   *gateway.CoinNetwork
	Amount decimal.Decimal // rounded up to the precision of the coin; zero if there is no rate, or the pair is off

	// Err is nil if the price can be paid in this coin. Otherwise it is the [*LimitError] of [CheckPayment], or a
	// [*gateway.ArgumentError]: the pair has no rate or no name, or is listed twice, or several coins share its symbol,
	// and an invoice could not tell them apart.
	Err error
}

// Offers are all pairs of a listing with a price in each, or the reason why the price cannot be paid in it.
type Offers struct {
	all []Offer // in the order of the listing
}

// NewOffers returns the offers for a price, one for each pair. Do not show them for longer than
// the rates are good. The price has at most 8 decimal places, as in a [gateway.InvoiceRequest].
func NewOffers(catalog *Catalog, rates *gateway.ExchangeRates, price decimal.Decimal, fiat string) (*Offers, error) {
	const op = "new_offers"
	if !isFiat(fiat) {
		return nil, refused(op, "fiat", notFiat)
	}
	if reason := money.CheckPrice(price); reason != "" {
		return nil, refused(op, "price", reason)
	}
	bySymbol := make(map[string]gateway.Rate, len(rates.Rates))
	for _, rate := range slices.Backward(rates.Rates) { // of two, the first one counts
		bySymbol[rate.CoinSymbol] = rate
	}
	o := &Offers{all: make([]Offer, 0, len(catalog.pairs))}
	for pair := range catalog.All() {
		rate, listed := bySymbol[pair.Coin.Symbol]
		if !listed {
			rate, listed = rates.Rate(pair.Coin.Symbol)
		}
		amount, err := offered(op, pair, price, fiat, rate, listed, rates.Skipped)
		if name, reason := ambiguous(pair, catalog); reason != "" {
			err = refused(op, name, reason)
		}
		o.all = append(o.all, Offer{pair, amount, err})
	}
	return o, nil
}

// ambiguous returns why a pair is not told apart from others by an invoice, or by a form.
func ambiguous(p *gateway.CoinNetwork, in *Catalog) (name, reason string) {
	_, uniqueName := in.Find(p.Coin.Symbol, p.Network.Name)
	_, uniqueID := in.FindID(p.ID)
	switch {
	case p.Coin.Symbol == "":
		return "coinSymbol", "is empty in the listing"
	case p.Network.Name == "":
		return "networkName", "is empty in the listing: an invoice could not name it"
	case !uniqueName:
		return "networkName", "is listed twice for this coin"
	case !uniqueID:
		return "id", "is listed twice"
	case in.coinIDs[strings.ToLower(p.Coin.Symbol)] == "" && p.Coin.ID != "":
		return "coinSymbol", fmt.Sprintf("%.64q is the symbol of several coins in the listing: "+
			"the rate, and the invoice, may be for another one", p.Coin.Symbol)
	}
	return "", ""
}

// offered returns the amount of a price, and why it cannot be paid.
func offered(
	op string, pair *gateway.CoinNetwork, price decimal.Decimal, fiat string,
	rate gateway.Rate, listed bool, skipped []gateway.Skipped,
) (decimal.Decimal, error) {
	if off := offForPayment(pair); off != "" {
		return decimal.Decimal{}, &LimitError{Limit: off}
	}
	unit, err := priceOf(op, pair.Coin.Symbol, rate, listed, fiat, skipped)
	if err != nil {
		return decimal.Decimal{}, err
	}
	amount, err := toCoin(op, price, unit, pair.Coin.Precision)
	if err != nil {
		return decimal.Decimal{}, err
	}
	return amount, CheckPayment(pair, amount)
}

// All returns all offers in the order of the listing.
func (o *Offers) All() []Offer { return slices.Clone(o.all) }

// Payable returns the offers that a buyer can choose, which have no Err.
func (o *Offers) Payable() []Offer {
	return slices.DeleteFunc(o.All(), func(offer Offer) bool { return offer.Err != nil })
}

// FindID returns the offer for the pair with this identifier, see [Catalog.FindID]. Its Err may rule it out.
func (o *Offers) FindID(id string) (Offer, bool) {
	key := endpoint.IDKey(id)
	i := slices.IndexFunc(o.all, func(offer Offer) bool { return endpoint.IDKey(offer.Pair.ID) == key })
	if i < 0 {
		return Offer{}, false
	}
	return o.all[i], true
}

// Find returns the offer for the pair with this symbol and this network. If no pair has them, it ignores their case,
// and returns the offer only if no other matches. Its Err may rule it out.
func (o *Offers) Find(coinSymbol, networkName string) (Offer, bool) {
	var similar []Offer
	for _, offer := range o.all {
		name := nameOf(offer.Pair)
		if name == (pairName{coinSymbol, networkName}) {
			return offer, true
		}
		if strings.EqualFold(name.coinSymbol, coinSymbol) && strings.EqualFold(name.networkName, networkName) {
			similar = append(similar, offer)
		}
	}
	if len(similar) != 1 {
		return Offer{}, false
	}
	return similar[0], true
}

// An offerRecord is an offer as JSON.
type offerRecord struct {
	ID          string `json:"id"`
	CoinSymbol  string `json:"coinSymbol"`
	NetworkName string `json:"networkName"`
	Amount      string `json:"amount,omitempty"`
	Payable     bool   `json:"payable"`
	Limit       Limit  `json:"limit,omitempty"`
	Bound       string `json:"bound,omitempty"`
}

// MarshalJSON writes id, coinSymbol, networkName, amount and payable, and for a [*LimitError] its
// limit and bound. Do not embed an Offer in a struct that is encoded: its MarshalJSON would hide the other
// fields.
func (o Offer) MarshalJSON() ([]byte, error) {
	if o.Pair == nil {
		return []byte("null"), nil
	}
	r := offerRecord{
		ID: o.Pair.ID, CoinSymbol: o.Pair.Coin.Symbol, NetworkName: o.Pair.Network.Name, Payable: o.Err == nil,
	}
	if !o.Amount.IsZero() {
		r.Amount = amountText(o.Amount)
	}
	if limit, ok := errors.AsType[*LimitError](o.Err); ok {
		r.Limit = limit.Limit
		if !limit.Bound.IsZero() {
			r.Bound = amountText(limit.Bound)
		}
	}
	return json.Marshal(r)
}

// MarshalJSON writes the array of all offers.
func (o Offers) MarshalJSON() ([]byte, error) { return json.Marshal(o.all) }

var errOfferFromJSON = errors.New("gateway: an offer cannot be read from JSON: " +
	"let the browser return the identifier, never an amount, and look the offer up with FindID")

// UnmarshalJSON returns an error: look the identifier up with [Offers.FindID].
func (o *Offer) UnmarshalJSON([]byte) error { return errOfferFromJSON }

// UnmarshalJSON returns an error: see [Offer].
func (o *Offers) UnmarshalJSON([]byte) error { return errOfferFromJSON }
