package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/pricing"
	"github.com/shopspring/decimal"
)

// An offer is a coin on a network, and what a price is in it.
type offer struct {
	Pair    *gateway.CoinNetwork
	Amount  decimal.Decimal
	Problem string // why the buyer cannot choose it; "" if they can
	Hidden  string // why the buyer does not see it; "" if they do
	Odd     string // what the merchant can ask the gateway's operator about; "" if it is as the gateway wants it
}

// A quote holds the offers for a price at one time.
type quote struct {
	Offers  []offer // what a buyer sees
	All     []offer // everything that the gateway lists
	Rates   []gateway.Rate
	Skipped map[string][]gateway.Skipped // what cannot be read, by list
	Age     time.Duration                // of the rates
	Stale   bool                         // whether the rates are too old to fix an amount
}

// quote returns the offers for a product.
func (s *shop) quote(ctx context.Context, p product) (quote, error) {
	catalog, err1 := s.catalog.Get(ctx)
	rates, err2 := s.rates.Get(ctx)
	if err := errors.Join(err1, err2); err != nil {
		return quote{}, err
	}
	offers, err := pricing.NewOffers(catalog, rates, p.Price, p.Currency)
	if err != nil {
		return quote{}, err
	}
	age := time.Since(rates.FetchedAt)
	q := quote{Rates: rates.Rates, Skipped: map[string][]gateway.Skipped{"coins": catalog.Skipped, "exchange rates": rates.Skipped}, Age: age.Truncate(time.Second), Stale: age > s.cfg.ratesStaleAfter}
	for _, each := range offers.All() {
		o := newOffer(each)
		q.All = append(q.All, o)
		if o.Hidden == "" {
			q.Offers = append(q.Offers, o)
		}
	}
	return q, nil
}

// Coins returns what a buyer sees, by coin.
func (q quote) Coins() (coins [][]offer) {
	for _, o := range q.Offers {
		at := slices.IndexFunc(coins, func(c []offer) bool { return c[0].Pair.Coin.Symbol == o.Pair.Coin.Symbol })
		if at < 0 {
			at, coins = len(coins), append(coins, nil)
		}
		coins[at] = append(coins[at], o)
	}
	return coins
}

// maxPlaces limits the decimal places of an amount that the buyer has to enter. The
// amount is rounded up.
const maxPlaces = 8

// newOffer returns what the page says of an offer.
func newOffer(of pricing.Offer) offer {
	o := offer{Pair: of.Pair, Amount: of.Amount.RoundCeil(maxPlaces).Normalize()}
	limit, isLimit := errors.AsType[*pricing.LimitError](of.Err)
	switch {
	case isLimit && limit.Nearest.Valid:
		o.Problem = fmt.Sprintf("Too little for this coin: the smallest amount is %s %s.", limit.Nearest.Decimal.Normalize(), of.Pair.Coin.Symbol)
	case isLimit:
		o.Hidden = strings.TrimPrefix(of.Err.Error(), "gateway: ")
	case of.Err != nil:
		o.Odd = strings.TrimPrefix(of.Err.Error(), "gateway: new_offers: ")
		if wrong, ok := errors.AsType[*gateway.ArgumentError](of.Err); ok && (wrong.Name == "rate" || wrong.Name == "coinSymbol") {
			o.Problem = "There is no exchange rate for it at the moment."
		} else {
			o.Hidden = o.Odd
		}
	}
	return o
}

// An offersPage is the page on which the buyer chooses a coin.
type offersPage struct {
	Order   order
	Product product
	Quote   quote
	Chosen  string // the pair that is checked
	Problem string // with the buyer's last choice
	Losing  bool   // whether the demo loses the next response
}

// Checked reports whether the buyer has chosen an offer before.
func (p offersPage) Checked(o offer) bool {
	if p.Chosen != "" {
		return o.Pair.ID == p.Chosen
	}
	return o.Pair.Coin.Symbol == p.Order.Coin && o.Pair.Network.Name == p.Order.Network
}

// showOffers shows the offers for an order that can be sent.
func (s *shop) showOffers(w http.ResponseWriter, r *http.Request, o order, problem string) error {
	p, ok := productByID(o.Product)
	if !ok {
		return notFound()
	}
	q, err := s.quote(r.Context(), p)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if problem != "" {
		status = http.StatusUnprocessableEntity
	}
	page := offersPage{o, p, q, r.PostForm.Get("pair"), problem, r.Form.Has("losing")}
	return s.render(w, r, status, "offers", "Choose how to pay", page)
}

// A product is something that the shop sells.
type product struct {
	ID, Name, Text string
	Price          decimal.Decimal
	Currency       string // "usd" or "eur"
}

// products returns all products in the order of the page.
func products() []product {
	price := decimal.RequireFromString
	return []product{
		{"mug", "Stoneware mug", "Thrown by hand, glazed in sea green, and made to be used every day.", price("18.00"), "usd"},
		{"print", "Tide table print", "A year of high water on one sheet of heavy paper, 50 × 70 cm.", price("42.50"), "eur"},
		{"blanket", "Wool blanket", "Woven from undyed wool. Warm when it is wet, too.", price("129.00"), "eur"},
		{"lamp", "Brass deck lamp", "Turned from solid brass, with a wick that burns for a long night.", price("240.00"), "usd"},
		{"postcard", "Postcard", "The harbour in the morning. Too small a price for some coins: see the checkout.", price("0.90"), "eur"},
	}
}

// productByID returns a product by its ID.
func productByID(id string) (p product, ok bool) {
	for _, p = range products() {
		if p.ID == id {
			return p, true
		}
	}
	return product{}, false
}
