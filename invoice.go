package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// An InvoiceRequest asks for an invoice: INTERFACE.md, "Create invoice".
// Amounts are greater than zero, with at most 64 digits, 30 of them decimal
// places; they are written exactly, zeros at the end included. Texts are valid
// UTF-8 without control characters, at most 1,024 bytes, and neither begin nor
// end with a space.
type InvoiceRequest struct {
	OrderID      string          // required: the merchant's own identifier of the order, unique
	Price        decimal.Decimal // required: in the fiat currency
	Amount       decimal.Decimal // required: the order's amount
	BaseCurrency string          // the fiat currency, such as "usd"; at most 64 bytes, sent as given; left out when empty
	CoinSymbol   string          // the coin to pay with; left out when empty
	NetworkName  string          // the network to pay on; left out when empty
}

// InvoiceFormat is how an invoice is spelled on the wire. INTERFACE.md gives
// two spellings, in its sample and in its table.
type InvoiceFormat int8

const (
	// SampleInvoiceFormat names the key apiKey and sends amounts as decimal
	// strings, as the sample request does.
	SampleInvoiceFormat InvoiceFormat = iota
	// TableInvoiceFormat names the key apikey and sends amounts as JSON
	// numbers, as the field table has it. The digits are the decimal's own.
	TableInvoiceFormat
)

// An Invoice is an invoice that was created. What the service answers is not
// shown by the interface, so it is kept as it came.
type Invoice struct {
	OrderID string
	Raw     jsontext.Value // the result of the answer
}

// Decode reads the answer into v, as [json.Unmarshal] does: names match
// exactly, and a name that is listed twice is an error.
//
// [json.Unmarshal]: https://pkg.go.dev/github.com/go-json-experiment/json#Unmarshal
func (i *Invoice) Decode(v any) error {
	if err := json.Unmarshal(i.Raw, v); err != nil {
		return fmt.Errorf("gateway: invoice for order %q: %w", i.OrderID, err)
	}
	return nil
}

// Text finds the first of the names that is a member of the answer, at any
// depth, and is a text or a number; it returns what stands there. Of several
// members of that name it is the one nearest to the top.
func (i *Invoice) Text(names ...string) (string, bool) {
	best, depth, found := len(names), 0, ""
	dec := jsontext.NewDecoder(bytes.NewReader(i.Raw))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return found, best < len(names)
		}
		if !isName(dec) {
			continue
		}
		rank := slices.Index(names, token.String())
		nearer := rank < best || rank == best && dec.StackDepth() < depth
		if kind := dec.PeekKind(); rank >= 0 && nearer && (kind == '"' || kind == '0') {
			value, err := dec.ReadToken()
			if err != nil {
				return found, best < len(names)
			}
			best, depth, found = rank, dec.StackDepth(), value.String()
		}
	}
}

// isName reports whether the token read last is the name of a member.
func isName(dec *jsontext.Decoder) bool {
	kind, length := dec.StackIndex(dec.StackDepth())
	return kind == '{' && length%2 == 1
}

// CreateInvoice creates an invoice. It puts at most one on the wire, and every
// error says through [OutcomeOf] which is true: not sent, rejected by the
// service, or unknown. After [OutcomeUnknown], look the order up at the
// service before anything else.
//
// It returns by the end of its context, if what the caller gave the client does:
// a RoundTripper, a source of keys, [OrderGuard].Begin. To record the outcome,
// [OrderGuard].End has 10 seconds more.
//
// POST /api/invoice/create
func (c *Client) CreateInvoice(ctx context.Context, r InvoiceRequest, opts ...CallOption) (*Invoice, error) {
	return do(ctx, c, call{
		op:    opCreateInvoice,
		route: "/api/invoice/create",
		key:   keyInBody,
		write: &r,
	}, r.read, opts)
}

func (r *InvoiceRequest) read(d *decoder) *Invoice {
	created := &Invoice{OrderID: r.OrderID, Raw: raw(d)}
	switch created.Raw.Kind() {
	case '{', '[':
	case 'n':
		d.fail(errors.New("is null"))
	default:
		d.empty = true
	}
	return created
}

func (r *InvoiceRequest) order() string { return r.OrderID }

func (r *InvoiceRequest) check() (name, reason string) {
	if r.OrderID == "" {
		return "orderId", "is required"
	}
	for _, field := range []struct{ name, reason string }{
		{"orderId", checkText(r.OrderID, maxBodyText)},
		{"price", checkAmount(r.Price)},
		{"amount", checkAmount(r.Amount)},
		{"baseCurrency", checkCurrency(r.BaseCurrency)},
		{"coinSymbol", checkText(r.CoinSymbol, maxBodyText)},
		{"networkName", checkText(r.NetworkName, maxBodyText)},
	} {
		if field.reason != "" {
			return field.name, field.reason
		}
	}
	return "", ""
}

func (r *InvoiceRequest) encode(key string, format InvoiceFormat) []byte {
	keyName, quote := "apiKey", `"`
	if format == TableInvoiceFormat {
		keyName, quote = "apikey", ""
	}
	body := []byte(`{"` + keyName + `":`)
	body = appendQuoted(body, key)
	body = append(body, `,"price":`+quote+plainText(r.Price)+quote+`,"orderId":`...)
	body = appendQuoted(body, r.OrderID)
	for _, optional := range []param{
		{"baseCurrency", r.BaseCurrency}, {"coinSymbol", r.CoinSymbol}, {"networkName", r.NetworkName},
	} {
		if optional.value != "" {
			body = appendQuoted(append(body, `,"`+optional.name+`":`...), optional.value)
		}
	}
	return append(body, `,"amount":`+quote+plainText(r.Amount)+quote+`}`...)
}

func appendQuoted(body []byte, text string) []byte {
	body, _ = jsontext.AppendQuote(body, text) // fails on invalid UTF-8 only, which check refuses
	return body
}
