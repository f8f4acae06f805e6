package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
	"rsc.io/qr"
)

// paymentFields say how to read the gateway's response. It is not documented, so the
// merchant has to ask the operator of the gateway, and the shop guesses nothing.
type paymentFields struct {
	address, tag, amount, link, deadline string // JSON pointers (RFC 6901) to the members that say how to pay

	tolerance decimal.Decimal // the part of an amount by which the gateway's may differ
	zone      *time.Location  // of a deadline that names none; nil if it is not known
	networks  map[string]bool // plain names of a network, the asked one, an equals sign and another
}

// A payment is what the buyer needs to pay an order.
type payment struct {
	Address, Tag, Link string
	Amount             decimal.Decimal // what the gateway expects, in units of the coin
	Deadline           time.Time       // zero if the gateway has none, or it cannot be read
	Odd                []oddity        // of the response
	Stopped            *oddity         // the last of them, if the buyer is shown no way to pay: nothing else is known then
	tagless            bool            // whether the response does not have the member of the tag
}

// fieldsFromEnv reads the settings. Unset pointers are taken from defaults.
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
	percent, err := decimal.NewFromString(cmp.Or(os.Getenv("SHOP_INVOICE_TOLERANCE"), "3"))
	if err != nil || percent.Sign() < 0 || percent.GreaterThan(decimal.NewFromInt(20)) {
		return f, errors.New("SHOP_INVOICE_TOLERANCE must be a percentage from 0 to 20, such as 3")
	}
	f.tolerance = percent.Shift(-2)
	if zone := os.Getenv("SHOP_INVOICE_ZONE"); zone != "" {
		if f.zone, err = time.LoadLocation(zone); err != nil {
			return f, fmt.Errorf("SHOP_INVOICE_ZONE: %w", err)
		}
	}
	f.networks, err = parseNetworks(os.Getenv("SHOP_NETWORK_NAMES"))
	return f, err
}

// parseNetworks reads a list such as Tron=TRC20,Tron=TRX.
func parseNetworks(list string) (map[string]bool, error) {
	names := map[string]bool{}
	for item := range strings.SplitSeq(list, ",") {
		name := plainName(item)
		if asked, other, _ := strings.Cut(name, "="); list != "" && (asked == "" || other == "") {
			return nil, errors.New("SHOP_NETWORK_NAMES must be a list such as Tron=TRC20,Tron=TRX")
		}
		names[name] = true
	}
	return names, nil
}

// plainName is a name without case, spaces and punctuation but an equals sign.
func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) || c == '=' {
			return unicode.ToLower(c)
		}
		return -1
	}, name)
}

// askFields is what the merchant can do about most that is odd.
const askFields = "Ask the operator of the gateway which fields of the response say how to pay, and name them in the SHOP_INVOICE_ settings."

// payment reads how to pay an order from the gateway's response. If payments in the coin
// are known to need a tag, tagged is the number of an order that had one.
func (f paymentFields) payment(o order, tagged string) payment {
	var r responseReader
	r.require(f.address != "" || f.link != "", "SHOP_INVOICE_ADDRESS and SHOP_INVOICE_LINK are not set", "", askFields)
	r.require(len(o.Invoice) > 0, "the gateway's response is not known", "", "Look the invoice up at the gateway.")
	r.read(o.Invoice)
	r.compare(o, f)
	p := payment{
		Address: r.text(f.address), Tag: r.tag(f.tag, o, tagged), Link: r.text(f.link),
		Amount: r.amount(f, o), Deadline: r.deadline(f, o), tagless: r.values[jsontext.Pointer(f.tag)].Kind() == jsontext.KindInvalid,
	}
	r.require((f.address == "" || p.Address != "") && (f.link == "" || p.Link != ""), "the address or the link is empty", "", askFields)
	link, err := url.Parse(p.Link)
	r.require(f.link == "" || err == nil && link.Scheme == "https" && link.Host != "", f.link+" is not an https address", p.Link, askFields)
	if r.stopped != nil {
		p = payment{tagless: p.tagless}
	}
	p.Odd, p.Stopped = r.odd, r.stopped
	return p
}

// A responseReader reads a response and keeps what is odd, up to the first that stops.
type responseReader struct {
	values  map[jsontext.Pointer]jsontext.Token // of an object or array, its end
	named   map[string][]jsontext.Pointer       // those of values, by the plainName of their last token
	odd     []oddity
	stopped *oddity // the last of odd, or nil
}

// tell keeps something odd.
func (r *responseReader) tell(what, seen, advice string) {
	if r.stopped == nil {
		r.odd = append(r.odd, oddity{What: what, Seen: singleLine(seen, maxDetail), Advice: advice})
	}
}

// require keeps a reason to show no way to pay unless a condition holds.
func (r *responseReader) require(holds bool, what, seen, advice string) {
	if !holds && r.stopped == nil {
		r.tell(what, seen, advice)
		r.stopped = &r.odd[len(r.odd)-1]
		r.stopped.Stops = true
	}
}

// maxPointers limits the length of all pointers of a response together, in bytes. Those of
// a response with long names, or that is nested without end, take memory without end.
const maxPointers = 1 << 20

func (r *responseReader) read(response []byte) {
	r.values, r.named = map[jsontext.Pointer]jsontext.Token{}, map[string][]jsontext.Pointer{}
	decoder, size := jsontext.NewDecoder(bytes.NewReader(response)), 0
	token, err := decoder.ReadToken()
	for ; err == nil && size <= maxPointers; token, err = decoder.ReadToken() {
		pointer := decoder.StackPointer()
		size += len(pointer)
		if _, known := r.values[pointer]; !known {
			name := plainName(pointer.LastToken())
			r.named[name] = append(r.named[name], pointer)
		}
		r.values[pointer] = token.Clone() // first the name of a member, then its value
	}
	r.require(size <= maxPointers, "the response has too many values, or too long names", "", askFields)
	r.require(errors.Is(err, io.EOF), "the response is not JSON, or has a name twice", fmt.Sprint(err), askFields)
}

// The names of members that repeat the request, as plainName returns them.
var (
	coinNames    = []string{"coinsymbol", "coin", "token", "asset", "paycurrency"}
	networkNames = []string{"networkname", "network", "chain", "blockchain"}
)

// compare checks what the response repeats of the request. An orderId of the gateway's own
// is only told: the client has checked whose invoice it is.
func (r *responseReader) compare(o order, f paymentFields) {
	isPrice := func(currency string) bool {
		return strings.EqualFold(currency, "usd") || strings.EqualFold(currency, "eur")
	}
	currencies := slices.DeleteFunc(r.beside(f, "symbol", "currency"), isPrice)
	for _, coin := range slices.Concat(r.echoes("coinsymbol"), r.beside(f, "symbol", coinNames...), currencies) {
		r.require(strings.EqualFold(coin, o.Coin), fmt.Sprintf("the response for the coin %s names %s", o.Coin, coin), "",
			"Ask the operator of the gateway for which coin the invoice is.")
	}
	for _, network := range slices.Concat(r.echoes("networkname"), r.beside(f, "name", networkNames...)) {
		same := plainName(network) == plainName(o.Network) || f.networks[plainName(o.Network+"="+network)]
		r.require(same, fmt.Sprintf("the response for the network %s names %s", o.Network, network), "",
			"Ask the operator of the gateway. Only if both are the same network, add to the list SHOP_NETWORK_NAMES: "+o.Network+"="+strings.ReplaceAll(network, ",", " "))
	}
	ids := slices.Concat(r.echoes("orderid"), r.beside(f, "", "orderid"))
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		switch {
		case strings.EqualFold(id, o.ID):
		case isOrderID(strings.ToUpper(id)):
			r.require(false, "the response names another order of the shop", id, "Ask the operator of the gateway for which order the invoice is.")
		default:
			r.tell("the orderId of the response is not that of the order", id, "Ask the operator of the gateway whether it is a number of its own. Then there is nothing to do.")
		}
	}
}

// echo returns the text or number that a pointer names, in one line, and "" only if there is
// none or it is blank: what is too long to be shown is not the order's.
func (r *responseReader) echo(pointer jsontext.Pointer) string {
	value := r.values[pointer]
	if !isText(value) || strings.TrimSpace(value.String()) == "" {
		return ""
	}
	return cmp.Or(singleLine(value.String(), maxDetail), "a text that cannot be shown")
}

// echoes returns the texts of the members with a name that are nearest to the top.
func (r *responseReader) echoes(name string) (texts []string) {
	nearest := math.MaxInt
	for _, pointer := range r.named[name] {
		level, text := strings.Count(string(pointer), "/"), r.echo(pointer)
		if text == "" || level > nearest {
			continue
		}
		if level < nearest {
			nearest, texts = level, nil
		}
		texts = append(texts, text)
	}
	return texts
}

// beside returns the texts of members that are about what is shown, because they stand beside
// it or an object or array that it is in.
func (r *responseReader) beside(f paymentFields, part string, names ...string) (texts []string) {
	for _, pointer := range []string{f.address, f.tag, f.amount, f.link} {
		for at := jsontext.Pointer(pointer); at != ""; at = at.Parent() {
			texts = append(texts, r.members(at.Parent(), part, names...)...)
		}
	}
	return texts
}

// members returns the texts of members of an object. One that is an object says what it is in
// a part of it or, without that, in its symbol or name.
func (r *responseReader) members(of jsontext.Pointer, part string, names ...string) (texts []string) {
	for _, name := range names {
		for _, pointer := range r.named[name] {
			if pointer.Parent() != of {
				continue
			}
			if text := cmp.Or(r.echo(pointer), r.echo(pointer.AppendToken(part)), r.echo(pointer+"/symbol"), r.echo(pointer+"/name")); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// maxDetail limits the length of an address, a tag or a link, in bytes.
const maxDetail = 500

func isText(value jsontext.Token) bool {
	return value.Kind() == jsontext.KindString || value.Kind() == jsontext.KindNumber
}

// text returns the text or number that a pointer names, and "" for null. The payment stops
// if there is none, or it has other characters than an address can have.
func (r *responseReader) text(pointer string) string {
	value := r.values[jsontext.Pointer(pointer)]
	if pointer == "" || value.Kind() == jsontext.KindNull {
		return ""
	}
	text := value.String()
	readable := isText(value) && len(text) <= maxDetail && !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
	r.require(readable, "there is no readable "+pointer, "", askFields)
	return text
}

// tag returns the tag, which only some coins have. A coin that had one is not paid without:
// the payment would be lost.
func (r *responseReader) tag(pointer string, o order, tagged string) (text string) {
	if _, there := r.values[jsontext.Pointer(pointer)]; there {
		text = r.text(pointer)
	}
	r.require(text != "" || tagged == "", fmt.Sprintf("the response for %s on %s has no tag, and that for another order has one", o.Coin, o.Network), "order "+tagged,
		"Ask the operator of the gateway. Only if the coin needs none any more, delete its row of the table shop_tags.")
	return text
}

// amount returns the amount that the gateway expects, which is the only one that pays the
// invoice.
func (r *responseReader) amount(f paymentFields, o order) decimal.Decimal {
	if f.amount == "" {
		return o.Amount
	}
	amount, err := decimal.NewFromString(r.text(f.amount))
	seen := fmt.Sprintf("%s instead of %s %s", amount, o.Amount, o.Coin)
	r.require(err == nil, f.amount+" is not an amount", "", askFields)
	of := jsontext.Pointer(f.amount).Parent()
	for _, currency := range r.members(of, "symbol", "currency") {
		r.require(strings.EqualFold(currency, o.Coin) || len(r.members(of, "symbol", coinNames...)) > 0,
			fmt.Sprintf("%s is in %s and not in %s", f.amount, currency, o.Coin), "", askFields)
	}
	difference := amount.Sub(o.Amount)
	r.require(!difference.Abs().GreaterThan(o.Amount.Mul(f.tolerance)), f.amount+" differs by more than SHOP_INVOICE_TOLERANCE from the amount of the order", seen,
		"Ask the operator of the gateway what it adds, and whether the field is the right one.")
	switch difference.Sign() {
	case 1:
		r.tell("the gateway asks for more than the offer", seen, "Ask the operator of the gateway what it adds. Buyers see both amounts, and pay the one of the gateway; your lists have the one of the offer.")
	case -1:
		r.tell("the gateway asks for less than the offer", seen, "Ask the operator of the gateway whether it credits the whole price. With SHOP_INVOICE_TOLERANCE=0 buyers are not shown where to pay then.")
	}
	return amount
}

// deadline returns the gateway's deadline. One that cannot be read stops nothing: it is as
// unknown as that of a gateway that has none.
func (r *responseReader) deadline(f paymentFields, o order) time.Time {
	value := r.values[jsontext.Pointer(f.deadline)]
	if f.deadline == "" || value.Kind() == jsontext.KindNull {
		return time.Time{}
	}
	text := ""
	if isText(value) {
		text = value.String()
	}
	at, zoned, err := parseDeadline(text, f.zone)
	what := " is before the order"
	switch {
	case err != nil:
		what = " is not a time"
	case !zoned:
		what = " has no time zone"
	case !at.Before(o.MadeAt):
		return at
	}
	r.tell(f.deadline+what+": buyers see no deadline of the gateway", text,
		"Ask the operator of the gateway. If its times name no zone, name it in SHOP_INVOICE_ZONE, such as UTC.")
	return time.Time{}
}

// parseDeadline reads a time of RFC 3339, also with a space in it, or seconds or
// milliseconds since 1970. One that names no zone is in the given one, if that is known.
func parseDeadline(text string, zone *time.Location) (at time.Time, zoned bool, err error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 1e9 && n < 1e13 {
		if n < 1e11 {
			n *= 1000
		}
		return time.UnixMilli(n).UTC(), true, nil
	}
	text = strings.Replace(strings.Replace(text, " UTC", "Z", 1), " ", "T", 1)
	if at, err = time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), true, nil
	}
	at, err = time.ParseInLocation("2006-01-02T15:04:05", text, cmp.Or(zone, time.UTC))
	return at.UTC(), zone != nil, err
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
	page, err := s.orderPage(r, o)
	if err != nil {
		return err
	}
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

func (s *shop) orderPage(r *http.Request, o order) (orderPage, error) {
	p := orderPage{Order: o, View: string(o.State)}
	switch {
	case o.State.canBeSent() && o.expired():
		p.View = "expired"
	case o.State.canBeSent():
		p.View = "choose"
	case o.State == stateCreated:
		p.View, p.Ends = "pay", o.MadeAt.Add(orderLifetime)
		payments, err := s.payments(r.Context(), o)
		if err != nil {
			return p, err
		}
		if p.Payment = payments[0]; p.Payment.Stopped != nil {
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
	return p, nil
}

// showQR serves the QR code of an order that can be paid: its address or, without one,
// the link to the gateway's payment page. One with a tag has none: a wallet that reads
// the address alone would lose the payment.
func (s *shop) showQR(w http.ResponseWriter, r *http.Request, o order) error {
	page, err := s.orderPage(r, o)
	if err != nil {
		return err
	}
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
