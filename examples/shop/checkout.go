package main

import (
	"cmp"
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
	id := r.PostFormValue("order") // the cart's, a hyphen and the product's
	cart, name, _ := strings.Cut(id, "-")
	p, ok := productByID(name)
	if !ok || !isRandomText(cart) {
		return badInput("The shop does not sell this.")
	}
	if err := s.db.insertOrder(r.Context(), order{ID: id, Buyer: buyer, Product: p.ID}); err != nil {
		return err
	}
	return redirect(w, r, "/orders/"+id)
}

// pay handles the button that orders. It waits a second for the invoice; after that, the
// page of the order shows that it is being made.
func (s *shop) pay(w http.ResponseWriter, r *http.Request, o order) error {
	o, now, err := s.latest(r.Context(), o)
	if err != nil {
		return err
	}
	if now.canBeSent() && !o.expired() {
		chosen, err := s.choose(r.Context(), o, r.PostForm)
		if problem, ok := errors.AsType[*problem](err); ok {
			return s.showOffers(w, r, o, problem.text)
		}
		if err != nil {
			return err
		}
		if err := s.sendFor(r.Context(), chosen, time.Second); err != nil {
			return err
		}
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

// sendFor creates the invoice of an order in the background, and waits a while for the
// result. The end of the request does not end it, because an invoice that is cut off is
// unknown.
func (s *shop) sendFor(ctx context.Context, o order, patience time.Duration) error {
	result := make(chan error, 1)
	s.sending.Go(func() { result <- s.createInvoice(context.WithoutCancel(ctx), o) })
	select {
	case err := <-result:
		return err
	case <-time.After(patience):
		return nil
	}
}

// A choiceGuard is the order guard of the shop. Of two tabs that choose differently, it
// records in the order what the one that it admits has chosen, before the invoice is sent.
// An order that the merchant has cancelled meanwhile is not sent.
type choiceGuard struct {
	*sqlguard.Guard
	db *database
}

// Begin implements [gateway.OrderGuard].
func (g choiceGuard) Begin(ctx context.Context, o gateway.Order) (gateway.Admission, error) {
	admission, err := g.Guard.Begin(ctx, o)
	if err != nil {
		return admission, err
	}
	chosen, err := g.db.choose(ctx, o.Request)
	if err == nil && chosen {
		return admission, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	unsent := gateway.OrderRecord{Outcome: gateway.OutcomeNotSent, Request: o.Request, RequestID: o.RequestID}
	return gateway.Admission{}, errors.Join(errors.New("the order must not be sent any more"), err, g.End(ctx, o, unsent))
}

// createInvoice sends the invoice of an order, unless it has one, and records the result.
func (s *shop) createInvoice(ctx context.Context, o order) error {
	created, err := s.client.CreateInvoice(ctx, gateway.InvoiceRequest{
		OrderID: o.ID, Price: o.Price, BaseCurrency: o.Currency,
		Amount: o.Amount, CoinSymbol: o.Coin, NetworkName: o.Network,
	})
	if gateway.OutcomeOf(err) == gateway.OutcomeUnknown && !errors.Is(err, gateway.ErrOutcomeUnknown) {
		s.logger.InfoContext(ctx, "no invoice was sent", "order", o.ID, "error", err)
		return nil // the page of the order shows what the guard knows, such as the invoice for another choice
	}
	o = o.withResult(created, err)
	s.logger.InfoContext(ctx, "invoice", "order", o.ID, "state", o.State, "error", err)
	if _, problem := s.cfg.fields.payment(o); o.State == stateCreated && problem != nil {
		s.logger.WarnContext(ctx, "the buyer is not shown where to pay", "order", o.ID, "problem", problem)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if failed := s.db.record(ctx, o); failed != nil { // the guard has it too, unless the database has failed it as well
		s.logger.ErrorContext(ctx, "the result of an invoice is not recorded", "order", o.ID, "state", o.State,
			"invoice", o.Invoice, "status", o.LastStatus, "body", o.LastBody, "error", failed)
		return failed
	}
	return nil
}

// recordTimeout is how long the record of a result may take.
const recordTimeout = 10 * time.Second

// withResult returns an order with the result of CreateInvoice.
func (o order) withResult(created *gateway.Invoice, err error) order {
	switch gateway.OutcomeOf(err) {
	case gateway.OutcomeSucceeded: // err is nil
		o.State, o.Invoice = stateCreated, string(created.Raw)
		return o
	case gateway.OutcomeRejected:
		o.State = stateRefused
	case gateway.OutcomeNotSent:
		o.State = stateUnsent
	default:
		o.State = stateUnknown
	}
	o.LastError = printable(err.Error())
	if rejection, ok := errors.AsType[*gateway.APIError](err); ok {
		o.LastStatus, o.LastBody = rejection.StatusCode, printable(string(rejection.Body))
	}
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		o.LastStatus, o.LastBody = unknown.StatusCode, printable(string(unknown.Body))
	}
	return o
}

// latest returns an order and its current state. Until its invoice is recorded, the order
// guard has precedence: it knows of other processes, of crashes and of what the merchant
// has found. It has the invoice too, of a process that died before it recorded that.
func (s *shop) latest(ctx context.Context, o order) (order, state, error) {
	if o.State.isMarked() || o.State == stateCreated && o.Invoice != "" {
		return o, o.State, nil
	}
	known, err := s.guard.Order(ctx, "", o.ID)
	switch {
	case err != nil:
		return o, "", err
	case known.State == sqlguard.StateInFlight:
		return o, stateSending, nil
	case known.State == sqlguard.StateUnknown:
		return o, stateUnknown, nil
	case known.State == sqlguard.StateCreated:
		o.Invoice = cmp.Or(o.Invoice, string(known.Record.Invoice))
		return o, stateCreated, nil
	case o.State == stateUnknown:
		return o, stateUnsent, nil // the merchant has found no invoice
	}
	return o, o.State, nil
}

// expired reports whether an order is too old to be invoiced or paid.
func (o order) expired() bool { return time.Since(o.MadeAt) > orderLifetime }
