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

// An offer is a coin on a network that an order can be paid with.
type offer struct {
	ID            string          `json:"id"` // of the pair in the catalog
	Coin          string          `json:"-"`
	Name          string          `json:"-"`
	Network       string          `json:"-"`
	Confirmations int             `json:"-"`
	Minimum       decimal.Decimal `json:"-"`
	Amount        decimal.Decimal `json:"amount"`
	Problem       string          `json:"problem"` // why this offer cannot be chosen; "" if it can
}

// A quote holds all offers for an order at one time.
type quote struct {
	Offers []offer `json:"offers"`
	Age    string  `json:"age"`   // of the rates, as a sentence
	Stale  bool    `json:"stale"` // whether the rates are old
}

// quote computes the amount of an order in every coin that is available now.
func (s *shop) quote(ctx context.Context, o order) (quote, error) {
	catalog, err := s.catalog.Snapshot(ctx)
	if err != nil {
		return quote{}, err
	}
	rates, err := s.rates.Get(ctx)
	if err != nil {
		return quote{}, err
	}
	q := s.newQuote(time.Since(rates.FetchedAt))
	for pair := range catalog.All() {
		_, byID := catalog.ByID(pair.ID)
		_, byName := catalog.Find(pair.Coin.Symbol, pair.Network.Name) // an invoice has only these two names
		if offer, ok := offerOf(pair, rates, o); ok && byID && byName {
			q.Offers = append(q.Offers, offer)
		}
	}
	return q, nil
}

func (s *shop) newQuote(age time.Duration) quote {
	old := age.Truncate(time.Second)
	if age < s.cfg.ratesStaleAfter {
		return quote{Age: fmt.Sprintf("The rates are %s old.", old)}
	}
	return quote{Age: fmt.Sprintf("The rates are %s old: newer rates are not available at the moment, and the amounts may change.", old), Stale: true}
}

// maxPlaces limits the decimal places of an amount that the buyer has to
// enter. The amount is rounded up; the difference is negligible.
const maxPlaces = 8

// offerOf computes the amount of an order for a pair. It reports false for a
// pair that accepts no payments or has no rate. If the order is below the
// minimum, the offer has a problem.
func offerOf(pair *gateway.CoinNetwork, rates *gateway.ExchangeRates, o order) (offer, bool) {
	amount, err := rates.ToCoin(o.Price, o.Currency, pair.Coin.Symbol, min(pair.Coin.Precision, maxPlaces))
	if err != nil {
		return offer{}, false
	}
	result := offer{
		ID: pair.ID, Coin: pair.Coin.Symbol, Name: pair.Coin.Name, Network: pair.Network.Name,
		Confirmations: pair.Confirmations, Minimum: pair.Coin.MinAmount.Normalize(), Amount: amount,
	}
	err = pair.CheckPayment(amount)
	limit, isLimit := errors.AsType[*gateway.LimitError](err)
	switch {
	case err == nil:
	case isLimit && limit.Nearest.Valid:
		result.Problem = fmt.Sprintf("Too small for this coin: the nearest possible amount is %s %s.", formatAmount(limit.Nearest.Decimal.Normalize()), result.Coin)
	default:
		return offer{}, false
	}
	return result, true
}

// offersPage is the page of an order without a coin.
type offersPage struct {
	Order   order
	Quote   quote
	Chosen  string // the pair that was submitted last
	Problem string // why that pair was not accepted
}

// showOffers shows the offers. A problem is about the buyer's last choice.
func (s *shop) showOffers(w http.ResponseWriter, r *http.Request, o order, chosen, problem string) error {
	q, err := s.quote(r.Context(), o)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if problem != "" {
		status = http.StatusUnprocessableEntity
	}
	return s.render(w, r, status, "offers", "Choose how to pay", offersPage{o, q, chosen, problem})
}

// refreshPrice updates an open order to the product's current price.
func (s *shop) refreshPrice(ctx context.Context, o order) (order, error) {
	p, ok := productByID(o.Product)
	if !ok {
		return o, &problem{http.StatusGone, "No longer available", "The shop stopped selling this product before you chose how to pay. No invoice was created, and there is nothing to pay."}
	}
	if p.Price.Equal(o.Price) && p.Currency == o.Currency {
		return o, nil
	}
	if err := s.orders.updatePrice(ctx, o.ID, p); err != nil {
		return o, err
	}
	return s.orders.byID(ctx, o.ID)
}

const priceChanged = "The price has changed since you opened this page. Please check it and choose again."

// choose fixes the coin, network and amount of an order, for the price that
// the buyer has seen, and returns the stored order. If it returns a problem,
// which is shown to the buyer, nothing was fixed.
func (s *shop) choose(ctx context.Context, o order, form url.Values) (_ order, problem string, err error) {
	if o, err = s.refreshPrice(ctx, o); err != nil || o.State != stateOpen {
		return o, "", err
	}
	if formatPrice(o.Price, o.Currency) != form.Get("price") {
		return o, priceChanged, nil
	}
	q, err := s.quote(ctx, o)
	if err != nil {
		return o, "", err
	}
	if q.Stale {
		return o, "The rates are too old to fix an amount. Please try again in a moment.", nil
	}
	for _, offer := range q.Offers {
		if offer.ID != form.Get("pair") {
			continue
		}
		if offer.Problem != "" {
			return o, fmt.Sprintf("%s on %s: %s", offer.Coin, offer.Network, offer.Problem), nil
		}
		o.Coin, o.Network, o.Amount = offer.Coin, offer.Network, offer.Amount
		return s.recordChoice(ctx, o)
	}
	return o, "Please choose one of the coins below.", nil
}

// recordChoice stores the choice. If another tab was first, or the price has
// changed, it returns the order as stored.
func (s *shop) recordChoice(ctx context.Context, o order) (_ order, problem string, err error) {
	if _, err := s.orders.choose(ctx, o); err != nil {
		return o, "", err
	}
	o, err = s.orders.byID(ctx, o.ID)
	if err == nil && o.State == stateOpen {
		problem = priceChanged
	}
	return o, problem, err
}
