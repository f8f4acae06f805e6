package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/money"
	"github.com/cryptogw/gateway/internal/redact"
)

// An InvoiceRequest asks for an invoice.
//
// The service does not document how Amount relates to Price. The examples send the price converted to
// the coin, with pricing.ToCoin, or without a coin the price itself. Ask the operator of the gateway
// before the first real order.
//
// Amounts are above zero and have at most 64 digits, at most 30 of them decimal places. A Price has at most 8 decimal
// places: one with more looks like a float. Amounts are sent exactly, trailing zeros included. Texts are valid UTF-8 of
// at most 1,024 bytes, BaseCurrency of 64, without control characters or surrounding space, and sent as given. OrderID
// has no invisible characters.
type InvoiceRequest struct {
	OrderID      string          `json:"orderId"`               // required: the merchant's unique identifier of the order
	Price        decimal.Decimal `json:"price"`                 // required: in the fiat currency, see BaseCurrency
	Amount       decimal.Decimal `json:"amount"`                // required: the order's amount; of no documented unit
	BaseCurrency string          `json:"baseCurrency,omitzero"` // the fiat currency, such as "usd"; not sent if empty
	CoinSymbol   string          `json:"coinSymbol,omitzero"`   // the coin to pay with; not sent if empty
	NetworkName  string          `json:"networkName,omitzero"`  // the network to pay on; not sent if empty
}

// InvoiceFormat is the form of the request for an invoice. The zero value is the documented sample, which the
// documented field table contradicts in two places. A gateway may follow the table in one or both.
type InvoiceFormat struct {
	LowerCaseKeyName bool // names the key apikey instead of apiKey
	Numbers          bool // sends price and amount as JSON numbers, with the digits of the decimal, instead of texts
}

// WithInvoiceFormat sets the form of the request for an invoice.
func WithInvoiceFormat(format InvoiceFormat) Option {
	return func(cfg *config) error {
		cfg.format = format
		return nil
	}
}

// An Invoice is an invoice that was created. The response is not documented: Raw is all of it, and the
// function of [WithInvoiceDecoder] reads Details from it.
type Invoice struct {
	OrderID string `json:"orderId"` // the order of the request

	// Raw is the result of the response. If Replayed, it is the invoice that the [OrderGuard] has, or that a person
	// recorded; nil if there is none.
	Raw json.RawMessage `json:"raw,omitzero"`

	// Replayed is true if another call created the invoice, and the [OrderGuard] returned it.
	Replayed bool `json:"replayed"`

	Request   InvoiceRequest    `json:"request,omitzero"`   // that created the invoice; zero if the guard has none
	CreatedAt time.Time         `json:"createdAt,omitzero"` // when the guard recorded the invoice; zero if unknown
	Others    []json.RawMessage `json:"others,omitzero"`    // further invoices of the order, which should not exist

	// Details is the result of the function of [WithInvoiceDecoder], also for a Replayed invoice; nil without the option,
	// without Raw, and if the function cannot read Raw: DetailsErr then says why.
	Details    *InvoiceDetails `json:"details,omitzero"`
	DetailsErr error           `json:"-"`

	// GuardErr says why the [OrderGuard] did not record this invoice, or no longer has its text; nil otherwise.
	GuardErr error `json:"-"`
}

// InvoiceDetails are the fields of an invoice that the function of [WithInvoiceDecoder] returns. Fields that the
// gateway does not send are zero.
type InvoiceDetails struct {
	ID         string          `json:"id,omitzero"`         // the gateway's own identifier
	Address    string          `json:"address,omitzero"`    // where to pay
	Tag        string          `json:"tag,omitzero"`        // the memo or tag that some coins need beside the address
	PaymentURL string          `json:"paymentUrl,omitzero"` // the page to pay on
	Amount     decimal.Decimal `json:"amount,omitzero"`     // the amount to pay, in the coin
	ExpiresAt  time.Time       `json:"expiresAt,omitzero"`  // when the invoice can no longer be paid
}

// Decode decodes Raw into v by the rules of encoding/json/v2, on every release of Go: names match
// exactly, and a duplicate name or invalid UTF-8 is an error.
func (i *Invoice) Decode(v any) error {
	if err := jsonv2.Unmarshal(i.Raw, v); err != nil {
		return fmt.Errorf("gateway: invoice for order %q: %w", i.OrderID, err)
	}
	return nil
}

// Text looks for a text or a number in Raw, at any depth, by the names of members, and returns the value of the
// first name that it finds. If several members have that name, the one nearest to the top counts. Text reports false
// if several are equally near and differ, or if the text is empty or has a U+FFFD, which stands for a character that
// was lost. A number keeps its digits, but never has an exponent: 1.0e-8 is 0.00000001. A number that would be longer
// than 128 bytes is not found.
func (i *Invoice) Text(names ...string) (string, bool) {
	var tree doc.Doc
	// The values before an error count. A person may have recorded an invoice that has a name twice.
	_ = tree.Parse(i.Raw, redact.Redactor{}, doc.MaxListing, jsontext.AllowDuplicateNames(true))
	for _, name := range names {
		for level := []doc.Node{tree.Root()}; len(level) > 0; level = below(level) {
			if text, found := textIn(level, name); found {
				return text, text != ""
			}
		}
	}
	return "", false
}

// textIn returns the text of the members of values that have a name: "" if they differ, or if it cannot be shown. It
// reports whether there is one.
func textIn(values []doc.Node, name string) (text string, found bool) {
	for _, value := range values {
		for n := range value.Parts() {
			kind := n.Kind()
			switch {
			case !n.IsNamed(name) || kind != '"' && kind != '0':
			case !found:
				text, found = plainText(n), true
			case plainText(n) != text:
				return "", true
			}
		}
	}
	return text, found
}

// below returns the objects and arrays in values.
func below(values []doc.Node) (all []doc.Node) {
	for _, value := range values {
		for n := range value.Parts() {
			if kind := n.Kind(); kind == '{' || kind == '[' {
				all = append(all, n)
			}
		}
	}
	return all
}

// maxPlainNumber is how long a number is without its exponent, in bytes.
const maxPlainNumber = 128

// plainText returns a text or a number, without an exponent: a wallet reads 1.0e-8 as 1, or not at all. It returns
// "" for a number that would be too long, and for a text that has lost a character.
func plainText(n doc.Node) string {
	text := n.Scalar()
	if isMended(text) {
		return ""
	}
	if n.Kind() != '0' || !strings.ContainsAny(text, "eE") {
		return text
	}
	amount, err := money.Parse([]byte(text))
	if err != nil {
		return ""
	}
	plain := money.Format(amount.Normalize())
	if len(plain) > maxPlainNumber {
		return ""
	}
	return plain
}

// WithInvoiceDecoder sets the function that reads [Invoice.Details]. It receives the result as Raw has it, without
// keys, or the whole body if there is no envelope. It has read an invoice if it returns no error, and an ID, an
// Address or a PaymentURL. A 200 or 201 in which it reads an invoice proves that the invoice was created, whatever
// the message says; an error response in which it reads an invoice proves nothing. So the function must return an
// error for the body of an error.
//
// If the invoice is proved otherwise, or Replayed, an error of the function does not fail the call: it is in
// [Invoice].DetailsErr, and is logged as a warning.
func WithInvoiceDecoder(decode func(body json.RawMessage) (InvoiceDetails, error)) Option {
	return notNil("WithInvoiceDecoder", decode == nil, func(cfg *config) { cfg.decodeInvoice = decode })
}

// isMended reports whether a text has lost a character, which the client or the service has read as U+FFFD: it is no
// address, and no link.
func isMended(text string) bool { return strings.ContainsRune(text, unicode.ReplacementChar) }

// CreateInvoice creates the invoice of an order. It sends at most one. After an error, [OutcomeOf] says
// what the error means for the order. After [OutcomeUnknown] an invoice may exist: call again if
// [SafeToRetry] is true, otherwise look the order up at the gateway before anything else.
//
// If the [OrderGuard] already has an invoice of the order, CreateInvoice returns it, Replayed, or an
// [*OrderConflictError] if that invoice is for another request. While another call for the order is in
// flight, CreateInvoice waits for it, for as long as an invoice may take by [RetryPolicy].
//
// A deadline ends the call while nothing of the invoice was read for sending: this call has then sent nothing.
// Afterwards a deadline ends only the wait. CreateInvoice returns a [*TransportError] that matches [ErrStillSending]
// and [context.DeadlineExceeded], and a goroutine goes on and records the outcome in the guard: the same call again
// gets the invoice. Call [Client.Shutdown] before the program ends. At most 256 invoices of a client are sent without a
// caller; beyond that, and without a guard, a deadline cuts the invoice, whose outcome is then unknown.
//
// Cancelling ends the call only while nothing of the invoice was read for sending. Afterwards the call goes on until it
// has a response, for at most InvoiceTimeout of [RetryPolicy], and makes no other attempt. The guard then has 10
// seconds to record the outcome. If it cannot, CreateInvoice returns, and a goroutine tries again, for at most an hour.
//
// The values of the context stay in use after CreateInvoice has returned, as with [context.WithoutCancel]: pass a copy
// of a context that is used again.
//
// POST /api/invoice/create
func (c *Client) CreateInvoice(ctx context.Context, r InvoiceRequest, opts ...CallOption) (*Invoice, error) {
	o := &order{Order: Order{Request: r}, call: call{client: c, operation: operation{
		name:  OpCreateInvoice,
		route: "/api/invoice/create",
		key:   keyInBody,

		undocumented: true,
	}}}
	o.write = o
	return o.create(ctx, opts)
}

// read reads the invoice in a response of 2xx. If the response does not prove one, read returns why, and reports
// whether it is an error of the service.
func (o *order) read(e envelope) (isRefusal bool, wrong *doc.Error) {
	raw := o.invoiceIn(e)
	details, undecoded := o.decodeInvoice(raw)
	if !e.provesInvoice(o.status, o.Request.OrderID, details != nil) {
		return e.refusesInvoice(), o.unproved(e, undecoded)
	}
	if !e.success && e.body.Kind() == '{' && e.body.Member("message").IsZero() {
		e.body.Note(doc.UnexpectedValue)
	}
	named := e.record().Member("orderId", "order_id")
	if id := named.Scalar(); id != "" && !endpoint.SameID(id, o.Request.OrderID) {
		named.Note(doc.Mismatch)
	}
	o.created = &Invoice{
		OrderID: o.Request.OrderID, Raw: raw, Request: o.Request, Details: details, DetailsErr: undecoded,
	}
	o.ended.DetailsErr = undecoded
	return false, nil
}

// unproved returns why a response of 2xx proves no invoice, with the option that reads one in it. Undecoded is the
// error of the function of [WithInvoiceDecoder].
func (o *order) unproved(e envelope, undecoded error) *doc.Error {
	switch wrong := e.check(); {
	case o.status > http.StatusCreated:
		return &doc.Error{Err: errStatusNoSuccess}
	case undecoded != nil:
		return &doc.Error{Pointer: e.result.Pointer(), Err: undecoded}
	case wrong != nil:
		return withAdvice(wrong, "WithInvoiceDecoder reads a body without an envelope")
	case e.success:
		return &doc.Error{Err: errReportsFailure}
	default:
		return &doc.Error{Pointer: "/message", Err: o.client.messageNoSuccess(e)}
	}
}

var (
	errStatusNoSuccess = errors.New("only a status of 200 or 201 proves an invoice")
	errReportsFailure  = errors.New("a member reports a failure: WithInvoiceDecoder reads such a result")
)

// messageNoSuccess is the error of a message that does not prove that the invoice was created.
func (c *Client) messageNoSuccess(e envelope) error {
	return fmt.Errorf("%q is not the message of a success, %q: "+
		"name it by WithSuccessMessage, or read the result by WithInvoiceDecoder",
		redact.Truncate(e.message, maxQuotedName), cmp.Or(c.cfg.successMessage, successMessage))
}

// invoiceIn returns the part of a response that may be an invoice: the result, or the whole body without an envelope.
func (o *order) invoiceIn(e envelope) json.RawMessage {
	if e.result.IsZero() {
		return json.RawMessage(e.body.JSON())
	}
	return json.RawMessage(e.result.JSON())
}

// mayBeIn reports whether an error response may have an invoice, or the function of [WithInvoiceDecoder] reads an
// invoice in it.
func (o *order) mayBeIn(e envelope, text []byte) bool {
	details, _ := o.decodeInvoice(o.invoiceIn(e))
	return details != nil || e.mayHaveInvoice(text, o.client.cfg.successMessage, o.Request.OrderID)
}

var errNoDetails = errors.New("it returned no ID, Address or PaymentURL")

// decodeInvoice calls the function of [WithInvoiceDecoder]. Without one, or without a text, there are no details.
func (o *order) decodeInvoice(raw json.RawMessage) (*InvoiceDetails, error) {
	decode := o.client.cfg.decodeInvoice
	if decode == nil || len(raw) == 0 {
		return nil, nil
	}
	details, err := decodeBy(decode, raw)
	switch {
	case err != nil:
		err = sanitize(err, o.redactor)
	case details.ID == "" && details.Address == "" && details.PaymentURL == "":
		err = errNoDetails
	case isMended(details.ID + details.Address + details.Tag + details.PaymentURL):
		err = errors.New("what it returned has a character that is not Unicode")
	case !money.Representable(details.Amount):
		err = errors.New("the amount is not an amount of money")
	default:
		return &details, nil
	}
	return nil, fmt.Errorf("the function of WithInvoiceDecoder: %w", err)
}

// Validate returns the [*ArgumentError] with which [Client.CreateInvoice] would refuse r, or nil. It is
// for programs that store an order and send it later.
func (r InvoiceRequest) Validate() error {
	if name, reason := r.check(); reason != "" {
		return &ArgumentError{Operation: OpCreateInvoice, Name: name, Reason: reason}
	}
	return nil
}

// Equal reports whether two requests ask for the same invoice. It compares amounts by value, and ignores
// the case of currencies and of UUIDs.
func (r InvoiceRequest) Equal(other InvoiceRequest) bool {
	return r.Amount.Equal(other.Amount) && len(r.differences(other)) == 0
}

// check returns the first field that is not valid, the OrderID before others, and why.
func (r *InvoiceRequest) check() (name, reason string) {
	if r.OrderID == "" {
		return "orderId", "is required"
	}
	for _, field := range []struct{ name, reason string }{
		{"orderId", endpoint.Identifier(r.OrderID, endpoint.MaxBodyText)},
		{"price", money.CheckPrice(r.Price)},
		{"amount", money.Check(r.Amount)},
		{"baseCurrency", endpoint.Currency(r.BaseCurrency)},
		{"coinSymbol", endpoint.Text(r.CoinSymbol, endpoint.MaxBodyText)},
		{"networkName", endpoint.Text(r.NetworkName, endpoint.MaxBodyText)},
	} {
		if field.reason != "" {
			return field.name, field.reason
		}
	}
	return "", ""
}

// encode writes the body of the request: docs/interface.md, I-33 and I-113.
func (o *order) encode(key string) []byte {
	r, keyName, quote := &o.Request, "apiKey", `"`
	if o.client.cfg.format.LowerCaseKeyName {
		keyName = "apikey"
	}
	if o.client.cfg.format.Numbers {
		quote = ""
	}
	body := append(make([]byte, 0, 256), `{"`+keyName+`":`...)
	body = appendQuoted(body, key)
	body = append(body, `,"price":`+quote+money.Format(r.Price)+quote+`,"orderId":`...)
	body = appendQuoted(body, r.OrderID)
	for _, optional := range [...]struct{ name, text string }{
		{"baseCurrency", r.BaseCurrency}, {"coinSymbol", r.CoinSymbol}, {"networkName", r.NetworkName},
	} {
		if optional.text != "" {
			body = appendQuoted(append(body, `,"`+optional.name+`":`...), optional.text)
		}
	}
	return append(body, `,"amount":`+quote+money.Format(r.Amount)+quote+`}`...)
}

func appendQuoted(body []byte, text string) []byte {
	body, _ = jsontext.AppendQuote(body, text) // it fails for invalid UTF-8 only, which check refuses
	return body
}
