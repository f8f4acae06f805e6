package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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
// It returns by the end of its context, but for an [OrderGuard] of the
// caller's, which may take up to 10 seconds more to record the outcome.
//
// POST /api/invoice/create
func (c *Client) CreateInvoice(ctx context.Context, r InvoiceRequest, opts ...CallOption) (*Invoice, error) {
	return do(ctx, c, call{
		op:    opCreateInvoice,
		route: "/api/invoice/create",
		key:   keyInBody,
		write: c.invoice(r),
	}, r.read, opts)
}

func (r InvoiceRequest) read(d *decoder) *Invoice {
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

// invoice is an InvoiceRequest as it is posted.
type invoice struct {
	InvoiceRequest
	format InvoiceFormat
}

func (c *Client) invoice(r InvoiceRequest) invoice {
	if c == nil || c.cfg == nil {
		return invoice{InvoiceRequest: r}
	}
	return invoice{r, c.cfg.format}
}

func (i invoice) order() string { return i.OrderID }

func (i invoice) check() (name, reason string) {
	if i.OrderID == "" {
		return "orderId", "is required"
	}
	for _, field := range []struct{ name, reason string }{
		{"orderId", checkText(i.OrderID, maxBodyText)},
		{"price", checkAmount(i.Price)},
		{"amount", checkAmount(i.Amount)},
		{"baseCurrency", checkCurrency(i.BaseCurrency)},
		{"coinSymbol", checkText(i.CoinSymbol, maxBodyText)},
		{"networkName", checkText(i.NetworkName, maxBodyText)},
	} {
		if field.reason != "" {
			return field.name, field.reason
		}
	}
	return "", ""
}

func (i invoice) encode(key string) []byte {
	keyName, quote := "apiKey", `"`
	if i.format == TableInvoiceFormat {
		keyName, quote = "apikey", ""
	}
	body := []byte(`{"` + keyName + `":`)
	body = appendQuoted(body, key)
	body = append(body, `,"price":`+quote+plainText(i.Price)+quote+`,"orderId":`...)
	body = appendQuoted(body, i.OrderID)
	for _, optional := range []param{
		{"baseCurrency", i.BaseCurrency}, {"coinSymbol", i.CoinSymbol}, {"networkName", i.NetworkName},
	} {
		if optional.value != "" {
			body = appendQuoted(append(body, `,"`+optional.name+`":`...), optional.value)
		}
	}
	return append(body, `,"amount":`+quote+plainText(i.Amount)+quote+`}`...)
}

func appendQuoted(body []byte, text string) []byte {
	body, _ = jsontext.AppendQuote(body, text) // fails on invalid UTF-8 only, which check refuses
	return body
}

// An OrderGuard keeps two invoices from being created for one order. It must
// be safe for concurrent use. The default one is in memory, so it knows
// neither other processes nor what was before a restart.
//
// An order is told by its identifier alone. The default guard keeps the orders
// of calls with [WithCallAPIKey] apart by their keys; another guard that serves
// several merchants must do so by what it finds in the context, which is the
// caller's, values included, in both methods.
type OrderGuard interface {
	// Begin is asked before an invoice is sent. It refuses with an error that
	// matches [ErrOrderInFlight] while another one for the order is under way,
	// and with one that matches [ErrOrderOutcomeUnknown] after an unknown
	// outcome unless resubmit is set.
	Begin(ctx context.Context, orderID string, resubmit bool) error

	// End is told what came of an invoice that Begin let through, once for
	// each. Its context is not the caller's, whose end must not lose the
	// outcome, and is ended after 10 seconds. What it returns does not change
	// what the call returns: a guard that can not record an outcome must treat
	// the order as unknown later.
	End(ctx context.Context, orderID string, outcome Outcome) error
}

// guardTimeout bounds how long recording an outcome may take.
const guardTimeout = 10 * time.Second

// guarded sends an invoice while the guard holds its order.
func (x *exchange) guarded(guard OrderGuard) (err error) {
	order := x.call.write.order()
	if x.ctx.Err() != nil {
		return x.transportError(PhaseStart, x.ctx.Err())
	}
	owned := x.owned(x.ctx)
	if err := guard.Begin(owned, order, x.cfg.resubmit); err != nil {
		return x.held(err)
	}
	outcome := OutcomeUnknown // a panic of the caller's transport leaves this
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(owned), guardTimeout)
		defer cancel()
		_ = guard.End(ctx, order, outcome)
	}()
	err = x.run()
	outcome = OutcomeOf(err)
	return err
}

// A merchant is whose order it is, where a call has a key of its own.
type merchant [sha256.Size]byte

type merchantKey struct{}

// owned notes in a context, for the default guard, whose order it is: two
// merchants may number their orders alike.
func (x *exchange) owned(ctx context.Context) context.Context {
	if x.cfg.key == nil {
		return ctx
	}
	return context.WithValue(ctx, merchantKey{}, merchant(sha256.Sum256([]byte(x.cfg.key.reveal()))))
}

// held is the refusal of the guard: nothing was sent.
func (x *exchange) held(err error) error {
	words := foreign(err, x.keys)
	refusal := &ArgumentError{Op: x.call.op, Name: "orderId"}
	switch {
	case errors.Is(err, ErrOrderInFlight):
		refusal.Reason = "an invoice for this order is being created"
		refusal.err = errors.Join(ErrOrderInFlight, words)
	case errors.Is(err, ErrOrderOutcomeUnknown):
		refusal.Reason = "an earlier invoice for this order has an unknown outcome: look it up, then use AllowResubmit if there is none"
		refusal.err = errors.Join(ErrOrderOutcomeUnknown, words)
	default:
		return x.transportError(PhaseStart, fmt.Errorf("the order guard: %w", words))
	}
	return refusal
}

// memoryGuard is the default [OrderGuard].
type memoryGuard struct {
	mu     sync.Mutex
	orders map[ownedOrder]orderState
}

type ownedOrder struct {
	merchant merchant // zero for the client's own key
	order    string
}

func orderIn(ctx context.Context, orderID string) ownedOrder {
	owner, _ := ctx.Value(merchantKey{}).(merchant)
	return ownedOrder{owner, orderID}
}

// An order that is not in the map is free.
type orderState struct {
	inFlight bool
	unknown  bool // an earlier outcome is unknown
}

func newMemoryGuard() *memoryGuard {
	return &memoryGuard{orders: map[ownedOrder]orderState{}}
}

func (g *memoryGuard) Begin(ctx context.Context, orderID string, resubmit bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	order := orderIn(ctx, orderID)
	state := g.orders[order]
	switch {
	case state.inFlight:
		return ErrOrderInFlight
	case state.unknown && !resubmit:
		return ErrOrderOutcomeUnknown
	}
	state.inFlight = true
	g.orders[order] = state
	return nil
}

// End frees the order, unless its outcome or an earlier one is unknown: that a
// second invoice was refused or not sent says nothing of the first.
func (g *memoryGuard) End(ctx context.Context, orderID string, outcome Outcome) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	order := orderIn(ctx, orderID)
	unknown := outcome == OutcomeUnknown || g.orders[order].unknown && outcome != OutcomeSucceeded
	if !unknown {
		delete(g.orders, order)
		return nil
	}
	g.orders[order] = orderState{unknown: true}
	return nil
}
