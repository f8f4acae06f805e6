package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/shopspring/decimal"
)

// An offer is a coin on a network, and what a price is in it.
type offer struct {
	Pair    *gateway.CoinNetwork
	Amount  decimal.Decimal
	Problem string // why the buyer cannot choose it; "" if they can
	Hidden  string // why the buyer does not see it; "" if they do
}

// A quote holds the offers for a price at one time.
type quote struct {
	Offers []offer
	Age    time.Duration // of the rates
	Stale  bool          // whether the rates are too old to fix an amount
}

// quote returns the offers that a buyer sees.
func (s *shop) quote(ctx context.Context, p product) (quote, error) {
	catalog, err := s.catalog.Snapshot(ctx)
	if err != nil {
		return quote{}, err
	}
	rates, err := s.rates.Get(ctx)
	if err != nil {
		return quote{}, err
	}
	age := time.Since(rates.FetchedAt)
	q := quote{Age: age.Truncate(time.Second), Stale: age > s.cfg.ratesStaleAfter}
	for pair := range catalog.All() {
		if o := newOffer(pair, catalog, rates, p); o.Hidden == "" {
			q.Offers = append(q.Offers, o)
		}
	}
	return q, nil
}

// maxPlaces limits the decimal places of an amount that the buyer has to enter. The
// amount is rounded up.
const maxPlaces = 8

// newOffer computes the amount of a price in a coin.
func newOffer(pair *gateway.CoinNetwork, catalog *gateway.CatalogSnapshot, rates *gateway.ExchangeRates, p product) offer {
	o := offer{Pair: pair}
	if _, unique := catalog.Find(pair.Coin.Symbol, pair.Network.Name); !unique {
		o.Hidden = "The gateway lists this coin and network twice."
		return o
	}
	var err error
	if o.Amount, err = rates.ToCoin(p.Price, p.Currency, pair.Coin.Symbol, min(pair.Coin.Precision, maxPlaces)); err != nil {
		o.Hidden = "There is no exchange rate."
	}
	err = pair.CheckPayment(decimal.Max(o.Amount, decimal.New(1, -maxPlaces)))
	limit, isLimit := errors.AsType[*gateway.LimitError](err)
	switch {
	case err == nil:
	case isLimit && limit.Limit == "depositable":
		o.Hidden = "Deposits are off."
	case isLimit && limit.Limit == "coin.isActive":
		o.Hidden = "The coin is not active."
	case isLimit && limit.Limit == "network.isActive":
		o.Hidden = "The network is not active."
	case isLimit && limit.Nearest.Valid:
		o.Problem = fmt.Sprintf("Too little for this coin: the smallest amount is %s %s.", limit.Nearest.Decimal.Normalize(), pair.Coin.Symbol)
	default:
		o.Hidden = "The amount cannot be written in this coin."
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

// live returns what makes the page load again when it changes.
func (offersPage) live() string { return "choose" }

// showOffers shows the offers for an order that can be sent.
func (s *shop) showOffers(w http.ResponseWriter, r *http.Request, o order, form url.Values, problem string) error {
	p, ok := parseOrderID(o.ID)
	if !ok {
		return notFound()
	}
	q, err := s.quote(r.Context(), p)
	if err != nil {
		return err
	}
	page := offersPage{Order: o, Product: p, Quote: q, Chosen: form.Get("pair"), Problem: problem, Losing: form.Has("losing") || r.URL.Query().Has("losing")}
	for _, offer := range q.Offers {
		if page.Chosen == "" && offer.Pair.Coin.Symbol == o.Coin && offer.Pair.Network.Name == o.Network {
			page.Chosen = offer.Pair.ID
		}
	}
	s.sending.Go(func() { _ = s.client.PrepareInvoice(context.WithoutCancel(r.Context())) }) // nothing depends on the result
	status := http.StatusOK
	if problem != "" {
		status = http.StatusUnprocessableEntity
	}
	return s.render(w, r, status, "offers", "Choose how to pay", page)
}
