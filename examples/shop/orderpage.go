package main

import (
	"net/http"
	"time"

	"rsc.io/qr"
)

// An orderPage is the page of an order that has been sent, or cannot be sent any more.
type orderPage struct {
	Order         order
	View          string  // the part of order.html that is shown
	Payment       payment // with the view "pay"
	Ends          time.Time
	Confirmations int // 0 if unknown
}

// showOrder shows the page of an order in its current state.
func (s *shop) showOrder(w http.ResponseWriter, r *http.Request, o order) error {
	page, err := s.orderPage(r, o)
	switch {
	case err != nil:
		return err
	case page.View == "choose":
		return s.showOffers(w, r, o, "")
	}
	title := map[string]string{
		"sending": "Your order is being sent", "unknown": "We are checking your order", "pay": "Pay your order", "nodetails": "Your order is saved",
		"late": "The time to pay is over", "expired": "This order has ended", "paid": "Your payment has arrived", "shipped": "Your order is on its way",
		"cancelled": "This order is cancelled",
	}[page.View]
	return s.render(w, r, http.StatusOK, "order", title, page)
}

func (s *shop) orderPage(r *http.Request, o order) (orderPage, error) {
	now, err := s.stateOf(r.Context(), o)
	p := orderPage{Order: o, View: string(now)}
	switch {
	case err != nil:
		return p, err
	case now.canBeSent() && o.expired():
		p.View = "expired"
	case now.canBeSent():
		p.View = "choose"
	case now == stateCreated:
		p.View, p.Ends = "pay", o.MadeAt.Add(orderLifetime)
		var problem error
		if p.Payment, problem = s.cfg.fields.payment(o); problem != nil {
			p.View = "nodetails"
		}
		if !p.Payment.Deadline.IsZero() && p.Payment.Deadline.Before(p.Ends) {
			p.Ends = p.Payment.Deadline
		}
		if time.Now().After(p.Ends) {
			p.View = "late"
		}
		if catalog, err := s.catalog.Snapshot(r.Context()); err == nil {
			if pair, ok := catalog.Find(o.Coin, o.Network); ok {
				p.Confirmations = pair.Confirmations
			}
		}
	}
	return p, nil
}

// showQR serves the QR code of an order that can be paid: its address or, without one,
// the link to the gateway's payment page.
func (s *shop) showQR(w http.ResponseWriter, r *http.Request, o order) error {
	page, err := s.orderPage(r, o)
	if err != nil {
		return err
	}
	if page.View != "pay" {
		return notFound()
	}
	code, err := qr.Encode(page.Payment.QR(), qr.M)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "image/png")
	_, err = w.Write(code.PNG()) // #nosec G705 -- an image
	return err
}

// setContact records where the merchant can write to the buyer.
func (s *shop) setContact(w http.ResponseWriter, r *http.Request, o order) error {
	contact := singleLine(r.PostFormValue("contact"), 200)
	if contact == "" {
		return badInput("Please enter an email address or a phone number of at most 200 characters.")
	}
	if err := s.db.setContact(r.Context(), o.ID, contact); err != nil {
		return err
	}
	return redirect(w, r, "/orders/"+o.ID)
}
