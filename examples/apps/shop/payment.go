package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
	"rsc.io/qr"
)

// paymentFields are JSON pointers (RFC 6901) to the members of the gateway's response
// that say how to pay. The response is not documented, so the merchant has to ask the
// operator of the gateway, and the shop guesses nothing.
type paymentFields struct{ address, tag, amount, link, deadline string }

// A payment is what the buyer needs to pay an order.
type payment struct {
	Address, Tag, Link string
	Deadline           time.Time // zero if the gateway has none
}

// fieldsFromEnv reads the pointers. Unset ones are taken from defaults.
func fieldsFromEnv(defaults paymentFields) (paymentFields, error) {
	f := defaults
	for name, field := range map[string]*string{"ADDRESS": &f.address, "TAG": &f.tag, "AMOUNT": &f.amount, "LINK": &f.link, "DEADLINE": &f.deadline} {
		name = "SHOP_INVOICE_" + name
		*field = cmp.Or(os.Getenv(name), *field)
		if !jsontext.Pointer(*field).IsValid() {
			return f, errors.New(name + " must be a JSON pointer, such as /address")
		}
	}
	if f.address != "" && f.amount == "" {
		return f, errors.New("SHOP_INVOICE_ADDRESS needs SHOP_INVOICE_AMOUNT: an address is shown only with the amount that the gateway expects")
	}
	return f, nil
}

// payment reads how to pay an order from the gateway's response. The problem is for the
// merchant: with one, the buyer is shown neither an address nor a link.
func (f paymentFields) payment(o order) (payment, error) {
	if len(o.Invoice) == 0 {
		return payment{}, errors.New("the gateway's response is not known")
	}
	if f.address == "" && f.link == "" {
		return payment{}, errors.New("SHOP_INVOICE_ADDRESS and SHOP_INVOICE_LINK are not set")
	}
	r := readResponse(o)
	p := payment{Address: r.text(f.address), Tag: r.text(f.tag), Link: r.text(f.link)}
	r.require((f.address == "" || p.Address != "") && (f.link == "" || p.Link != ""), "the address or the link is empty")
	amount, err := decimal.NewFromString(r.text(f.amount))
	r.require(f.amount == "" || err == nil && amount.Equal(o.Amount), "%s is not the amount of the order, %s", f.amount, o.Amount)
	link, err := url.Parse(p.Link)
	r.require(f.link == "" || err == nil && link.Scheme == "https" && link.Host != "", "%s is not an https address", f.link)
	p.Deadline, err = parseDeadline(r.text(f.deadline))
	r.require(f.deadline == "" || err == nil, "%s is not a time", f.deadline)
	if r.problem != nil {
		return payment{}, r.problem
	}
	return p, nil
}

// parseDeadline reads a time of RFC 3339, or seconds or milliseconds since 1970.
func parseDeadline(text string) (time.Time, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 1e9 && n < 1e13 {
		if n < 1e11 {
			n *= 1000
		}
		return time.UnixMilli(n).UTC(), nil
	}
	return time.Parse(time.RFC3339, text)
}

// A responseReader reads a response and keeps the first problem.
type responseReader struct {
	values  map[string]jsontext.Token // by JSON pointer; of an object or array, its end
	problem error
}

// maxLevels is how many objects and arrays a value that a pointer names may be in. The
// pointers of a response that is nested without end take memory without end.
const maxLevels = 32

// readResponse reads the response for an order. Where it repeats a member of the request,
// it must agree with it.
func readResponse(o order) responseReader {
	r := responseReader{values: map[string]jsontext.Token{}}
	decoder := jsontext.NewDecoder(bytes.NewReader(o.Invoice))
	token, err := decoder.ReadToken()
	for ; err == nil; token, err = decoder.ReadToken() {
		if decoder.StackDepth() <= maxLevels {
			r.values[string(decoder.StackPointer())] = token.Clone() // first the name of a member, then its value
		}
	}
	r.require(errors.Is(err, io.EOF), "%w", err) // such as a name that is there twice
	invoice := gateway.Invoice{OrderID: o.ID, Raw: o.Invoice}
	for _, echo := range [][2]string{{"orderId", o.ID}, {"coinSymbol", o.Coin}, {"networkName", o.Network}} {
		text, ok := invoice.Text(echo[0])
		r.require(!ok || text == echo[1], "its %s is %q, not %q", echo[0], printable(text), echo[1])
	}
	return r
}

// require keeps a problem unless a condition holds.
func (r *responseReader) require(holds bool, format string, args ...any) {
	if !holds && r.problem == nil {
		r.problem = fmt.Errorf("the gateway's response: "+format, args...)
	}
}

// maxDetail limits the length of an address, a tag or a link, in bytes.
const maxDetail = 500

// text returns the text or number that a pointer names, and "" for null. There is a
// problem if there is none, or it has other characters than an address can have.
func (r *responseReader) text(pointer string) string {
	value := r.values[pointer]
	if pointer == "" || value.Kind() == jsontext.KindNull {
		return ""
	}
	text := value.String()
	readable := value.Kind() == jsontext.KindString || value.Kind() == jsontext.KindNumber
	readable = readable && len(text) <= maxDetail && !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
	r.require(readable, "there is no readable %s", pointer)
	return text
}

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
	page := s.orderPage(r, o)
	if page.View == "choose" {
		return s.showOffers(w, r, o, "")
	}
	title := map[string]string{
		"sending": "Your order is being sent", "unknown": "We are checking your order", "pay": "Pay your order", "nodetails": "Your order is saved",
		"late": "The time to pay is over", "expired": "This order has ended", "paid": "Your payment has arrived", "shipped": "Your order is on its way",
		"cancelled": "This order is cancelled",
	}[page.View]
	return s.render(w, r, http.StatusOK, "order", title, page)
}

func (s *shop) orderPage(r *http.Request, o order) orderPage {
	p := orderPage{Order: o, View: string(o.State)}
	switch {
	case o.State.canBeSent() && o.expired():
		p.View = "expired"
	case o.State.canBeSent():
		p.View = "choose"
	case o.State == stateCreated:
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
		if catalog, err := s.catalog.Get(r.Context()); err == nil {
			if pair, ok := catalog.Find(o.Coin, o.Network); ok {
				p.Confirmations = pair.Confirmations
			}
		}
	}
	return p
}

// showQR serves the QR code of an order that can be paid: its address or, without one,
// the link to the gateway's payment page. One with a tag has none: a wallet that reads
// the address alone would lose the payment.
func (s *shop) showQR(w http.ResponseWriter, r *http.Request, o order) error {
	page := s.orderPage(r, o)
	if page.View != "pay" || page.Payment.Tag != "" {
		return notFound()
	}
	code, err := qr.Encode(cmp.Or(page.Payment.Address, page.Payment.Link), qr.M)
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
