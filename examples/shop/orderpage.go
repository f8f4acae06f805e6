package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/cryptogw/gateway"
	"rsc.io/qr"
)

// An orderPage is the page of an order whose coin is chosen.
type orderPage struct {
	Order   order
	State   state
	Details []detail
	Link    string // where the gateway says that it can be paid; "" when it does not
	QR      string // what the QR code says
	Stale   bool   // whether the amount is too old to be sent
}

// A detail is something that the gateway has said of an invoice.
type detail struct{ Label, Value string }

// refresh looks again soon while an invoice is being sent.
func (p orderPage) refresh() int {
	if p.State == stateSending {
		return 2
	}
	return 0
}

// showOrder is where a buyer is sent, comes back to, and reloads.
func (s *shop) showOrder(w http.ResponseWriter, r *http.Request) error {
	o, err := s.buyersOrder(r)
	if err != nil {
		return err
	}
	if o.State == stateOpen {
		if o, err = s.asSold(r.Context(), o); err != nil {
			return err
		}
	}
	if o.State == stateOpen {
		return s.showOffers(w, r, o, "", "")
	}
	now, err := s.stateOf(r.Context(), o)
	if err != nil {
		return err
	}
	title := map[state]string{
		stateCreated: "Pay your order", stateSending: "Your invoice is being made",
		stateUnknown: "We are looking into your order", stateRefused: "That was refused", stateUnsent: "No invoice was made",
	}[now]
	return s.render(w, r, http.StatusOK, "order", title, o.page(now))
}

func (o order) page(now state) orderPage {
	p := orderPage{Order: o, State: now, QR: o.qrText(), Stale: !o.fresh()}
	for _, wanted := range wantedDetails() {
		if value, ok := o.said(wanted.names...); ok {
			p.Details = append(p.Details, detail{wanted.label, value})
		}
	}
	p.Link = o.link()
	return p
}

// wanted is something that gateways are known to say of an invoice. What this
// one says is not documented, so it is looked for under several names, and it
// is well if it is not there.
type wanted struct {
	label string
	names []string
}

func addressNames() []string {
	return []string{"address", "paymentAddress", "payment_address", "depositAddress", "walletAddress", "payAddress", "pay_address"}
}

func wantedDetails() []wanted {
	return []wanted{
		{"Address", addressNames()},
		{"Memo or tag", []string{"memo", "tag", "destinationTag", "addressTag"}},
		{"Invoice", []string{"invoiceId", "invoice_id", "id"}},
		{"Status when it was made", []string{"status", "state"}},
		{"Pay before", []string{"expiresAt", "expires_at", "expireAt", "expiredAt"}},
	}
}

// said finds what the gateway has said of the invoice of an order.
func (o order) said(names ...string) (string, bool) {
	invoice := gateway.Invoice{OrderID: o.ID, Raw: []byte(o.Invoice)}
	value, ok := invoice.Text(names...)
	return printable(value), ok && value != ""
}

// link is the gateway's page for an invoice. Only https is one to follow.
func (o order) link() string {
	text, _ := o.said("paymentUrl", "payment_url", "invoiceUrl", "invoice_url", "checkoutUrl", "url")
	if link, err := url.Parse(text); err != nil || link.Scheme != "https" || link.Host == "" {
		return ""
	}
	return text
}

// qrText is what the QR code of an invoice says: where to pay, if the gateway
// has said that in so many words, and otherwise what and for which order.
func (o order) qrText() string {
	if address, ok := o.said(addressNames()...); ok && len(address) <= maxQRText {
		return address
	}
	if link := o.link(); link != "" && len(link) <= maxQRText {
		return link
	}
	return fmt.Sprintf("%s %s on %s for order %s", coins(o.Amount), o.Coin, o.Network, o.ID)
}

// maxQRText is the most that is put into a QR code, in bytes.
const maxQRText = 1000

// showQR draws the QR code of an order that has an invoice.
func (s *shop) showQR(w http.ResponseWriter, r *http.Request) error {
	o, err := s.buyersOrder(r)
	if err != nil {
		return err
	}
	if o.State != stateCreated || o.Invoice == "" {
		return notFound()
	}
	code, err := qr.Encode(o.qrText(), qr.M)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "image/png")
	_, err = w.Write(code.PNG()) // #nosec G705 -- a picture
	return err
}

// maxPrintable bounds a text of the gateway that is kept or shown, in bytes.
const maxPrintable = 2048

// printable is a foreign text without what can not be shown or stored.
func printable(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxPrintable)], "")
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return -1
	}, text)
}
