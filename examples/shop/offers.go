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
	ID            string          `json:"id"` // of the pair in the catalogue
	Coin          string          `json:"-"`
	Name          string          `json:"-"`
	Network       string          `json:"-"`
	Confirmations int             `json:"-"`
	Minimum       decimal.Decimal `json:"-"`
	Amount        decimal.Decimal `json:"amount"`
	Problem       string          `json:"problem"` // why it can not be this one; "" when it can
}

// A quote is all offers for an order at one time.
type quote struct {
	Offers []offer `json:"offers"`
	Age    string  `json:"age"`   // of the rates, in words
	Stale  bool    `json:"stale"` // whether the rates are old
}

// quote works out what an order costs in every coin that can be paid with now.
func (s *shop) quote(ctx context.Context, o order) (quote, error) {
	catalog, err := s.catalog.Snapshot(ctx)
	if err != nil {
		return quote{}, err
	}
	rates, err := s.rates.Get(ctx)
	if err != nil {
		return quote{}, err
	}
	q := s.aged(time.Since(rates.FetchedAt))
	for pair := range catalog.All() {
		_, byID := catalog.ByID(pair.ID)
		_, byName := catalog.Find(pair.Coin.Symbol, pair.Network.Name) // an invoice names no more
		if offer, ok := offerOf(pair, rates, o); ok && byID && byName {
			q.Offers = append(q.Offers, offer)
		}
	}
	return q, nil
}

func (s *shop) aged(age time.Duration) quote {
	old := age.Truncate(time.Second)
	if age < s.cfg.ratesStale {
		return quote{Age: fmt.Sprintf("The rates are %s old.", old)}
	}
	return quote{Age: fmt.Sprintf("The rates are %s old: newer ones can not be had just now, and the amounts may change.", old), Stale: true}
}

// maxPlaces is how many decimal places a buyer is asked to type, where a coin
// has more. The amount is rounded up, by less than anybody can see.
const maxPlaces = 8

// offerOf is what an order costs on a pair. A pair that takes no payments, or
// has no rate, is no offer; one for which the order is too small says so.
func offerOf(pair *gateway.CoinNetwork, rates *gateway.ExchangeRates, o order) (offer, bool) {
	amount, err := rates.ToCoin(o.Price, o.Currency, pair.Coin.Symbol, min(pair.Coin.Precision, maxPlaces))
	if err != nil {
		return offer{}, false
	}
	made := offer{
		ID: pair.ID, Coin: pair.Coin.Symbol, Name: pair.Coin.Name, Network: pair.Network.Name,
		Confirmations: pair.Confirmations, Minimum: pair.Coin.MinAmount.Normalize(), Amount: amount,
	}
	err = pair.CheckPayment(amount)
	limit, tooLittle := errors.AsType[*gateway.LimitError](err)
	switch {
	case err == nil:
	case tooLittle && limit.Nearest.Valid:
		made.Problem = fmt.Sprintf("Too little for this coin: the nearest possible amount is %s %s.", coins(limit.Nearest.Decimal.Normalize()), made.Coin)
	default:
		return offer{}, false
	}
	return made, true
}

// offersPage is the page of an order without a coin.
type offersPage struct {
	Order   order
	Quote   quote
	Chosen  string // the pair that was asked for last
	Problem string // why that could not be taken
}

// showOffers lets the buyer choose. A problem is one of their last choice.
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

// asSold is an open order for the price of now: one that was opened and left
// keeps no old price.
func (s *shop) asSold(ctx context.Context, o order) (order, error) {
	p, ok := productByID(o.Product)
	if !ok {
		return o, &problem{http.StatusGone, "This is not sold any more", "The shop has stopped selling it before you chose how to pay. No invoice was made, and nothing is to be paid."}
	}
	if p.Price.Equal(o.Price) && p.Currency == o.Currency {
		return o, nil
	}
	if err := s.orders.reprice(ctx, o.ID, p); err != nil {
		return o, err
	}
	return s.orders.byID(ctx, o.ID)
}

const repriced = "The price has changed since you opened this page. Nothing was fixed: please look at it and choose again."

// choose fixes what an order is paid with, for the price that the buyer has
// seen, and returns it as it is from then on. With a problem, which is for the
// buyer, nothing was fixed.
func (s *shop) choose(ctx context.Context, o order, asked url.Values) (_ order, problem string, err error) {
	if o, err = s.asSold(ctx, o); err != nil || o.State != stateOpen {
		return o, "", err
	}
	if money(o.Price, o.Currency) != asked.Get("price") {
		return o, repriced, nil
	}
	q, err := s.quote(ctx, o)
	if err != nil {
		return o, "", err
	}
	if q.Stale {
		return o, "The rates are too old just now to fix an amount. Please try again in a moment.", nil
	}
	for _, offer := range q.Offers {
		if offer.ID != asked.Get("pair") {
			continue
		}
		if offer.Problem != "" {
			return o, fmt.Sprintf("%s on %s: %s", offer.Coin, offer.Network, offer.Problem), nil
		}
		o.Coin, o.Network, o.Amount = offer.Coin, offer.Network, offer.Amount
		return s.fix(ctx, o)
	}
	return o, "Please choose one of the coins below.", nil
}

// fix records what was chosen. Another tab may have been first, or the price
// may have changed: the order is as the database then has it.
func (s *shop) fix(ctx context.Context, o order) (_ order, problem string, err error) {
	if _, err := s.orders.choose(ctx, o); err != nil {
		return o, "", err
	}
	o, err = s.orders.byID(ctx, o.ID)
	if err == nil && o.State == stateOpen {
		problem = repriced
	}
	return o, problem, err
}
