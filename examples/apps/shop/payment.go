package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/shopspring/decimal"
	"rsc.io/qr"

	"github.com/cryptogw/gateway"
)

// readDetails reads an invoice, as the gateway has returned it. The interface does not document its members:
// ask the operator of your gateway which ones say how to pay, and change this function. The client calls it too, for
// proof that an invoice was created.
func readDetails(body json.RawMessage) (gateway.InvoiceDetails, error) {
	var result struct {
		ID         string          `json:"id"`
		Address    string          `json:"address"`
		Tag        string          `json:"tag"`
		PaymentURL string          `json:"paymentUrl"`
		Amount     decimal.Decimal `json:"amount"`
		ExpiresAt  time.Time       `json:"expiresAt"`
	}
	if err := json.Unmarshal(body, &result); err != nil {
		return gateway.InvoiceDetails{}, fmt.Errorf("the invoice cannot be read: %w", err)
	}
	switch {
	case result.Address == "" && result.PaymentURL == "":
		return gateway.InvoiceDetails{}, errors.New("the invoice has neither address nor paymentUrl")
	case result.Address != "" && result.Amount.Sign() <= 0:
		return gateway.InvoiceDetails{}, errors.New("the invoice has no amount")
	}
	return gateway.InvoiceDetails(result), nil
}

// tolerance is how far the gateway's amount may differ from ours, for fees, as a share. The page shows both.
var tolerance = decimal.RequireFromString("0.03")

// detailsOf returns how to pay an order that has an invoice. The error says why the buyer cannot be told.
func detailsOf(status gateway.OrderStatus) (gateway.InvoiceDetails, error) {
	request := status.Record.Request
	switch {
	case len(status.Record.Invoice) == 0:
		return gateway.InvoiceDetails{}, errors.New("the invoice is not known")
	case request.CoinSymbol == "":
		return gateway.InvoiceDetails{}, errors.New("it is not known which of several requests the invoice is for")
	}
	d, err := readDetails(status.Record.Invoice)
	if err != nil || d.Address == "" {
		return d, err
	}
	if d.Amount.Sub(request.Amount).Abs().GreaterThan(request.Amount.Mul(tolerance)) {
		return gateway.InvoiceDetails{}, fmt.Errorf("the gateway expects %s %s, and the offer was %s", d.Amount, request.CoinSymbol, request.Amount)
	}
	return d, nil
}

// An orderPage is the page of an order that was sent, or cannot be sent any more.
type orderPage struct {
	Order   order
	Request gateway.InvoiceRequest // as it was sent
	View    string                 // the part of order.html that is shown
	Details gateway.InvoiceDetails // with the view "pay"
	Ends    time.Time              // of the time to pay
}

// showOrder shows the page of an order in its state: the same after a reload, a restart and a week.
func (s *shop) showOrder(w http.ResponseWriter, r *http.Request, o order) error {
	status, err := s.guard.Order(r.Context(), "", o.ID)
	if err != nil {
		return err
	}
	page := newOrderPage(o, status)
	if page.View == "choose" {
		return s.showOffers(w, r, o, status, nil)
	}
	title := map[string]string{
		"sending": "Your order is being sent", "unknown": "We are checking your order", "pay": "Pay your order", "nodetails": "Your order is saved",
		"late": "The time to pay is over", "expired": "This order has ended", "paid": "Your payment has arrived",
	}[page.View]
	code := http.StatusOK
	if page.View == "sending" || page.View == "unknown" {
		code = http.StatusAccepted
	}
	return s.render(w, r, code, "order", title, page)
}

func newOrderPage(o order, status gateway.OrderStatus) orderPage {
	p := orderPage{Order: o, Request: status.Record.Request, Ends: o.ends()}
	late := time.Now().After(p.Ends)
	switch {
	case o.Paid:
		p.View = "paid"
	case status.State == gateway.OrderInFlight:
		p.View = "sending"
	case status.State == gateway.OrderUnknown:
		p.View = "unknown"
	case status.State == gateway.OrderFree && late:
		p.View = "expired"
	case status.State == gateway.OrderFree:
		p.View = "choose"
	default:
		d, err := detailsOf(status)
		if !d.ExpiresAt.IsZero() && d.ExpiresAt.Before(p.Ends) {
			p.Ends, late = d.ExpiresAt, time.Now().After(d.ExpiresAt)
		}
		switch {
		case late:
			p.View = "late"
		case err != nil:
			p.View = "nodetails"
		default:
			p.View, p.Details = "pay", d
		}
	}
	return p
}

// showQR serves the QR code of an order that can be paid. One with a tag has none: a wallet that reads the
// address alone would lose the payment.
func (s *shop) showQR(w http.ResponseWriter, r *http.Request, o order) error {
	status, err := s.guard.Order(r.Context(), "", o.ID)
	if err != nil {
		return err
	}
	page := newOrderPage(o, status)
	if page.View != "pay" || page.Details.Tag != "" {
		return notFound()
	}
	code, err := qr.Encode(cmp.Or(page.Details.Address, page.Details.PaymentURL), qr.M)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "image/png")
	_, _ = w.Write(code.PNG()) // #nosec G705 -- an image; it fails if the reader has gone
	return nil
}
