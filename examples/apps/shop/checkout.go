package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// This file is the way of a purchase: from the Buy button to the invoice.
//
// The identifier of an order is in the Buy form, so that the same form, sent from any
// tab, twice or again tomorrow, leads to the same order. It is the primary key of
// shop_orders and of the order guard's table, and the orderId of the invoice. Those two
// tables are all that keeps a purchase from being invoiced twice.

// orderLifetime is how long an order can be invoiced or paid: longer than the cookie
// that its identifier comes from.
const orderLifetime = 24 * time.Hour

// showProducts shows the first page. The Buy forms have the identifier of the cart: a
// random text that the browser keeps until it has ordered, so that all tabs have the
// same.
func (s *shop) showProducts(w http.ResponseWriter, r *http.Request) error {
	ensureCookie(w, r, buyerCookie, 90*24*time.Hour)
	cart := ensureCookie(w, r, cartCookie, orderLifetime/2)
	return s.render(w, r, http.StatusOK, "products", "Harbour Goods", map[string]any{"Cart": cart, "Products": products()})
}

// buy handles the Buy button. A repeated request finds the order that exists.
func (s *shop) buy(w http.ResponseWriter, r *http.Request) error {
	buyer := buyerOf(r)
	if buyer == "" {
		return &problem{http.StatusBadRequest, "A cookie is needed", "The shop recognizes you by a cookie. Please allow it, and start again on the first page."}
	}
	id := r.PostFormValue("order")
	_, name, _ := strings.Cut(id, "-")
	p, ok := productByID(name)
	if !ok || !isOrderID(id) {
		return badInput("The shop does not sell this.")
	}
	if err := s.db.insertOrder(r.Context(), order{ID: id, Buyer: buyer, Product: p.ID}); err != nil {
		return err
	}
	return redirect(w, r, "/orders/"+id)
}

// isOrderID reports whether a text is the identifier of an order: the cart's, a hyphen and
// the product's.
func isOrderID(text string) bool {
	cart, _, found := strings.Cut(text, "-")
	return found && isRandomText(cart)
}

// pay handles the button that orders. It waits a second for the invoice; after that, the
// page of the order shows that it is being made.
func (s *shop) pay(w http.ResponseWriter, r *http.Request, o order) error {
	if o.State.canBeSent() && !o.expired() {
		chosen, err := s.choose(r.Context(), o, r.PostForm)
		if problem, ok := errors.AsType[*problem](err); ok {
			return s.showOffers(w, r, o, problem.text)
		}
		if err != nil {
			return err
		}
		s.send(r.Context(), chosen)
	}
	setCookie(w, cartCookie, rand.Text(), orderLifetime/2) // the next purchase is another order
	return redirect(w, r, "/orders/"+o.ID)
}

// choose returns the order with the coin, network and amount of a form, for the price
// that the buyer has seen.
func (s *shop) choose(ctx context.Context, o order, form url.Values) (order, error) {
	p, _ := productByID(o.Product)
	if formatPrice(p.Price, p.Currency) != form.Get("price") {
		return o, badInput("The price has changed since you opened this page. Please check it, and choose again.")
	}
	q, err := s.quote(ctx, p)
	if err != nil {
		return o, err
	}
	if q.Stale {
		return o, badInput("The exchange rates are too old to fix an amount. Please try again in a moment.")
	}
	for _, offer := range q.Offers {
		switch {
		case offer.Pair.ID != form.Get("pair"):
			continue
		case offer.Problem != "":
			return o, badInput(offer.Pair.Coin.Symbol + " on " + offer.Pair.Network.Name + ": " + offer.Problem)
		}
		o.Price, o.Currency, o.Amount = p.Price, p.Currency, offer.Amount
		o.Coin, o.Network = offer.Pair.Coin.Symbol, offer.Pair.Network.Name
		return o, nil
	}
	return o, badInput("Please choose one of the coins below.")
}

// send creates the invoice of an order in the background, and waits a second for it. The end
// of the request does not end it, because an invoice that is cut off is unknown.
func (s *shop) send(ctx context.Context, o order) {
	done := make(chan struct{})
	s.sending.Go(func() {
		defer close(done)
		s.createInvoice(context.WithoutCancel(ctx), o)
	})
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// createInvoice sends the invoice of an order, unless it has one. The order guard records
// the result, and the page of the order shows it.
func (s *shop) createInvoice(ctx context.Context, o order) {
	_, err := s.client.CreateInvoice(ctx, gateway.InvoiceRequest{
		OrderID: o.ID, Price: o.Price, BaseCurrency: o.Currency,
		Amount: o.Amount, CoinSymbol: o.Coin, NetworkName: o.Network,
	})
	s.logger.InfoContext(ctx, "invoice", "order", o.ID, "outcome", gateway.OutcomeOf(err), "error", err)
}

// A shopGuard is the order guard of the shop. Of two tabs that choose differently, it
// records what the one that it admits has chosen, before the invoice is sent. An order that
// the merchant has cancelled meanwhile is not sent.
type shopGuard struct {
	*sqlguard.Guard
	db *database
}

// Begin implements [gateway.OrderGuard].
func (g shopGuard) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	lease, err := g.Guard.Begin(ctx, o)
	if err != nil || lease.State != gateway.OrderFree {
		return lease, err
	}
	chosen, err := g.db.choose(ctx, o.Request)
	if err == nil && chosen {
		return lease, nil
	}
	unsent := gateway.OrderRecord{Outcome: gateway.OutcomeNotSent, Request: o.Request, RequestID: o.RequestID}
	_, failed := g.End(context.WithoutCancel(ctx), o, unsent)
	return gateway.Lease{}, errors.Join(errors.New("the order must not be sent any more"), err, failed)
}

// expired reports whether an order is too old to be invoiced or paid.
func (o order) expired() bool { return time.Since(o.MadeAt) > orderLifetime }
