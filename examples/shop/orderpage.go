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
	Link    string // the gateway's payment page; "" if the response has none
	QR      string // the text of the QR code
	Stale   bool   // whether the amount has expired
}

// A detail is a field of the gateway's response for an invoice.
type detail struct{ Label, Value string }

// refresh returns the interval at which the page reloads while an invoice is
// being sent, in seconds.
func (p orderPage) refresh() int {
	if p.State == stateSending {
		return 2
	}
	return 0
}

// showOrder shows the page of an order in its current state.
func (s *shop) showOrder(w http.ResponseWriter, r *http.Request) error {
	o, err := s.buyerOrder(r)
	if err != nil {
		return err
	}
	if o.State == stateOpen {
		if o, err = s.refreshPrice(r.Context(), o); err != nil {
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
		stateCreated: "Pay your order", stateSending: "Your invoice is being created",
		stateUnknown: "Your order is being checked", stateRefused: "Invoice refused", stateUnsent: "No invoice was created",
	}[now]
	return s.render(w, r, http.StatusOK, "order", title, o.page(now))
}

func (o order) page(now state) orderPage {
	p := orderPage{Order: o, State: now, QR: o.qrText(), Stale: !o.amountValid()}
	for _, field := range detailFields() {
		if value, ok := o.invoiceText(field.names...); ok {
			p.Details = append(p.Details, detail{field.label, value})
		}
	}
	p.Link = o.link()
	return p
}

// A detailField is a field that gateways are known to return for an invoice.
// The response is undocumented, so several names are tried, and the field
// may be missing.
type detailField struct {
	label string
	names []string
}

func addressNames() []string {
	return []string{"address", "paymentAddress", "payment_address", "depositAddress", "walletAddress", "payAddress", "pay_address"}
}

func detailFields() []detailField {
	return []detailField{
		{"Address", addressNames()},
		{"Memo or tag", []string{"memo", "tag", "destinationTag", "addressTag"}},
		{"Invoice", []string{"invoiceId", "invoice_id", "id"}},
		{"Initial status", []string{"status", "state"}},
		{"Pay before", []string{"expiresAt", "expires_at", "expireAt", "expiredAt"}},
	}
}

// invoiceText returns a field of the gateway's response for the invoice.
func (o order) invoiceText(names ...string) (string, bool) {
	invoice := gateway.Invoice{OrderID: o.ID, Raw: []byte(o.Invoice)}
	value, ok := invoice.Text(names...)
	return printable(value), ok && value != ""
}

// link returns the gateway's payment page for an invoice. Only https is
// accepted.
func (o order) link() string {
	text, _ := o.invoiceText("paymentUrl", "payment_url", "invoiceUrl", "invoice_url", "checkoutUrl", "url")
	if link, err := url.Parse(text); err != nil || link.Scheme != "https" || link.Host == "" {
		return ""
	}
	return text
}

// qrText returns the text of the QR code: the address or payment page if the
// response has one, otherwise a description of the payment.
func (o order) qrText() string {
	if address, ok := o.invoiceText(addressNames()...); ok && len(address) <= maxQRText {
		return address
	}
	if link := o.link(); link != "" && len(link) <= maxQRText {
		return link
	}
	return fmt.Sprintf("%s %s on %s for order %s", formatAmount(o.Amount), o.Coin, o.Network, o.ID)
}

// maxQRText limits the text of a QR code, in bytes.
const maxQRText = 1000

// showQR serves the QR code of an order that has an invoice.
func (s *shop) showQR(w http.ResponseWriter, r *http.Request) error {
	o, err := s.buyerOrder(r)
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
	_, err = w.Write(code.PNG()) // #nosec G705 -- an image
	return err
}

// maxPrintable limits a text from the gateway that is stored or shown, in
// bytes.
const maxPrintable = 2048

// printable removes what cannot be shown or stored from an external text.
func printable(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxPrintable)], "")
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return -1
	}, text)
}
