package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/pricing"
)

// This file is the way of a purchase: from the Buy button to the invoice.
//
// The identifier of an order is in its Buy form, so that the same form, sent twice or again tomorrow, leads
// to the same order. It is the orderId of the invoice, and the order guard sends one invoice for it at most.

// orderCookie leads a buyer back to the last order.
const orderCookie = "order"

// showProducts shows the first page. Each Buy form has the identifier of an order of its own.
func (s *shop) showProducts(w http.ResponseWriter, r *http.Request) error {
	type row struct {
		product
		Order string
	}
	var rows []row
	for _, p := range products {
		rows = append(rows, row{p, rand.Text()})
	}
	last := ""
	if cookie, err := r.Cookie(orderCookie); err == nil && isOrderID(cookie.Value) {
		last = cookie.Value
	}
	return s.render(w, r, http.StatusOK, "products", "Harbour Goods", map[string]any{"Products": rows, "Last": last})
}

// buy handles the Buy button. A repeated request finds the order that exists.
func (s *shop) buy(w http.ResponseWriter, r *http.Request) error {
	id := r.PostFormValue("order")
	p, ok := productByID(r.PostFormValue("product"))
	if !ok || !isOrderID(id) {
		return badInput("The shop does not sell this.")
	}
	if err := s.orders.insert(r.Context(), id, p.ID); err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{
		Name: orderCookie, Value: id, Path: "/", MaxAge: 30 * 24 * 60 * 60, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	return redirect(w, r, "/orders/"+id)
}

// isOrderID reports whether a text can be one of [rand.Text], which nobody guesses.
func isOrderID(text string) bool {
	return len(text) == 26 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// pay handles the button that orders. It sends the invoice, unless the order has one or may have one, and
// leads to the page of the order, which shows what the order guard has recorded.
func (s *shop) pay(w http.ResponseWriter, r *http.Request, o order) error {
	status, err := s.guard.Order(r.Context(), "", o.ID)
	if err != nil {
		return err
	}
	if status.State == gateway.OrderFree && time.Now().Before(o.ends()) {
		request, email, err := s.choose(r, o)
		if problem, ok := errors.AsType[*problem](err); ok {
			return s.showOffers(w, r, o, status, problem)
		}
		if err != nil {
			return err
		}
		if err := s.orders.setEmail(r.Context(), o.ID, email); err != nil {
			return err
		}
		if s.demo != nil && r.PostFormValue("lose") != "" {
			s.demo.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.patience) // ends the wait, not the invoice: the page asks again
		defer cancel()
		_, err = s.client.CreateInvoice(ctx, request)
		s.logger.InfoContext(r.Context(), "invoice", "order", o.ID, "outcome", gateway.OutcomeOf(err), "error", err)
	}
	return redirect(w, r, "/orders/"+o.ID)
}

// choose returns the invoice that a form asks for, at the rates of now, and the buyer's email address.
func (s *shop) choose(r *http.Request, o order) (gateway.InvoiceRequest, string, error) {
	var request gateway.InvoiceRequest
	email, err := mail.ParseAddress(r.PostFormValue("email"))
	if err != nil || len(email.Address) > 200 {
		return request, "", badInput("Please enter an email address.")
	}
	p, _ := productByID(o.Product)
	offers, err := s.quote(r.Context(), p)
	if err != nil {
		return request, "", err
	}
	i := slices.IndexFunc(offers, func(o offer) bool { return o.Pair.ID == r.PostFormValue("pair") })
	if i < 0 || offers[i].Problem != "" {
		return request, "", badInput("Please choose one of the coins below.")
	}
	return gateway.InvoiceRequest{
		OrderID: o.ID, Price: p.Price, BaseCurrency: p.Currency, Amount: offers[i].Amount,
		CoinSymbol: offers[i].Pair.Coin.Symbol, NetworkName: offers[i].Pair.Network.Name,
	}, email.Address, nil
}

// An offer is a coin on a network, and what a price is in it.
type offer struct {
	Pair    *gateway.CoinNetwork
	Amount  decimal.Decimal
	Problem string // why the buyer cannot choose it; "" if they can
}

// maxPlaces limits the decimal places of an amount, which the buyer may have to enter by hand.
const maxPlaces = 8

// quote returns the offers for a product. Coins that are off, or have no rate, are left out.
func (s *shop) quote(ctx context.Context, p product) (all []offer, err error) {
	catalog, err1 := s.catalog.Get(ctx)
	rates, err2 := s.rates.Get(ctx)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	offers, err := pricing.NewOffers(catalog, rates, p.Price, p.Currency)
	if err != nil {
		return nil, err
	}
	for _, of := range offers.All() {
		limit, isLimit := errors.AsType[*pricing.LimitError](of.Err)
		o := offer{Pair: of.Pair, Amount: of.Amount.RoundCeil(maxPlaces).Normalize()}
		switch {
		case isLimit && limit.Limit == pricing.LimitMinAmount:
			o.Problem = "Too little for this coin."
		case of.Err != nil:
			continue
		}
		all = append(all, o)
	}
	return all, nil
}

// A coinOffer is what a price is in a coin. The buyer chooses a network.
type coinOffer struct {
	Coin     gateway.Coin
	Amount   decimal.Decimal
	Networks []offer
}

// byCoin groups offers of one coin at one amount.
func byCoin(offers []offer) (all []coinOffer) {
	for _, o := range offers {
		i := slices.IndexFunc(all, func(c coinOffer) bool { return c.Coin.Symbol == o.Pair.Coin.Symbol && c.Amount.Equal(o.Amount) })
		if i < 0 {
			i, all = len(all), append(all, coinOffer{Coin: o.Pair.Coin, Amount: o.Amount})
		}
		all[i].Networks = append(all[i].Networks, o)
	}
	return all
}

// An offersPage is the page on which the buyer chooses a coin.
type offersPage struct {
	Order         order
	Product       product
	Coins         []coinOffer
	Chosen, Email string // of the form
	Problem       string // with the form that was sent
	Before        string // what became of the last choice; "" for none
}

// showOffers shows the offers for an order that can be sent. The problem with the form is nil for none.
func (s *shop) showOffers(w http.ResponseWriter, r *http.Request, o order, status gateway.OrderStatus, wrong *problem) error {
	p, _ := productByID(o.Product)
	offers, err := s.quote(r.Context(), p)
	if err != nil {
		return err
	}
	page := offersPage{Order: o, Product: p, Coins: byCoin(offers), Chosen: r.PostFormValue("pair"), Email: cmp.Or(r.PostFormValue("email"), o.Email)}
	code := http.StatusOK
	if wrong != nil {
		page.Problem, code = wrong.text, wrong.status
	} else {
		page.Before, code = whatBecame(status)
	}
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	return s.render(w, r, code, "offers", "Choose how to pay", page)
}

// whatBecame says why the last choice was not ordered, and what to do, with the status of the page; "" if there was none.
func whatBecame(status gateway.OrderStatus) (text string, code int) {
	last := status.Record
	choice := last.Request.CoinSymbol + " on " + last.Request.NetworkName
	switch {
	case status.Attempts == 0:
		return "", http.StatusOK
	case last.Outcome == gateway.OutcomeRejected && !isOurs(last.StatusCode):
		return "The payment service did not accept " + choice + ". Nothing was ordered, and there is nothing to pay. Please choose another coin.",
			http.StatusUnprocessableEntity
	case last.Outcome == gateway.OutcomeRejected, last.Outcome == gateway.OutcomeNotSent:
		return "Payments are not available at the moment: " + choice + " was not ordered, and there is nothing to pay. Please try again later.",
			http.StatusServiceUnavailable
	default: // a person has found that it has no invoice
		return "Your last choice, " + choice + ", was not ordered, and there is nothing to pay. Please choose again.", http.StatusOK
	}
}

// isOurs reports whether a refusal is about the shop's key or base URL, or comes from a busy service, and not about the order.
func isOurs(status int) bool {
	return status/100 == 3 || slices.Contains([]int{401, 402, 403, 404, 405, 407, 425, 429}, status)
}
