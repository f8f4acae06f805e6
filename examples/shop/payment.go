package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
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
func (f paymentFields) payment(o order) (p payment, problem error) {
	if o.Invoice == "" {
		return p, errors.New("the gateway's response was lost")
	}
	if f.address == "" && f.link == "" {
		return p, errors.New("SHOP_INVOICE_ADDRESS and SHOP_INVOICE_LINK are not set")
	}
	r := readResponse(o)
	r.mustEcho("orderId", o.ID)
	r.mustEcho("coinSymbol", o.Coin)
	r.mustEcho("networkName", o.Network)
	p.Address, p.Tag, p.Link = r.text(f.address), r.text(f.tag), r.text(f.link)
	if f.address != "" && p.Address == "" || f.link != "" && p.Link == "" {
		r.fail("the address or the link is empty")
	}
	if f.amount != "" {
		amount, err := decimal.NewFromString(r.text(f.amount))
		if err != nil || max(amount.Exponent(), -amount.Exponent()) > maxExponent || !amount.Equal(o.Amount) {
			r.fail("%s is not the amount of the order, %s", f.amount, o.Amount)
		}
	}
	if link, err := url.Parse(p.Link); f.link != "" && (err != nil || link.Scheme != "https" || link.Host == "") {
		r.fail("%s is not an https address", f.link)
	}
	if f.deadline != "" {
		var err error
		if p.Deadline, err = parseDeadline(r.text(f.deadline)); err != nil {
			r.fail("%s is not a time", f.deadline)
		}
	}
	if r.problem != nil {
		return payment{}, r.problem
	}
	return p, nil
}

// QR returns the text of the QR code: the address or, without one, the link.
func (p payment) QR() string { return cmp.Or(p.Address, p.Link) }

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
	invoice gateway.Invoice
	values  map[string]jsontext.Token // by JSON pointer; of an object or array, its end
	problem error
}

func readResponse(o order) responseReader {
	r := responseReader{invoice: gateway.Invoice{OrderID: o.ID, Raw: []byte(o.Invoice)}, values: map[string]jsontext.Token{}}
	decoder := jsontext.NewDecoder(strings.NewReader(o.Invoice))
	for {
		token, err := decoder.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return r
		case err != nil: // such as a name that is there twice
			r.fail("%w", err)
			return r
		}
		r.values[string(decoder.StackPointer())] = token.Clone() // first the name of a member, then its value
	}
}

func (r *responseReader) fail(format string, args ...any) {
	if r.problem == nil {
		r.problem = fmt.Errorf("the gateway's response: "+format, args...)
	}
}

// mustEcho fails if the response has a member of the request with another value.
func (r *responseReader) mustEcho(name, want string) {
	if got, ok := r.invoice.Text(name); ok && got != want {
		r.fail("its %s is %q, not %q", name, printable(got), want)
	}
}

// maxExponent limits the amount of a response: comparing 1e999999999 takes all memory.
const maxExponent = 100

// maxDetail limits the length of an address, a tag or a link, in bytes.
const maxDetail = 500

// text returns the text or number that a pointer names, and "" for null. It fails if
// there is none, or it has other characters than an address can have.
func (r *responseReader) text(pointer string) string {
	value := r.values[pointer]
	if pointer == "" || value.Kind() == jsontext.KindNull {
		return ""
	}
	text := value.String()
	isText := value.Kind() == jsontext.KindString || value.Kind() == jsontext.KindNumber
	if !isText || len(text) > maxDetail || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
		r.fail("there is no readable %s", pointer)
		return ""
	}
	return text
}
