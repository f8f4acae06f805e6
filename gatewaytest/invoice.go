package gatewaytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// An Invoice is an invoice that the server has created. Price and Amount are
// texts with the digits exactly as sent. Its JSON form is an invention.
type Invoice struct {
	ID           string    `json:"id"`                     // random, in UUID format
	OrderID      string    `json:"orderId"`                // as sent
	Price        string    `json:"price"`                  // "10.50" for both 10.50 and "10.50"
	Amount       string    `json:"amount"`                 // likewise
	BaseCurrency string    `json:"baseCurrency,omitempty"` // empty if not sent
	CoinSymbol   string    `json:"coinSymbol,omitempty"`   // empty if not sent
	NetworkName  string    `json:"networkName,omitempty"`  // empty if not sent
	Address      string    `json:"address"`                // where to pay: invented, like every member of the response
	CreatedAt    time.Time `json:"createdAt"`              // by the clock of [Server.Now]
	ExpiresAt    time.Time `json:"expiresAt"`              // a day after CreatedAt
}

// Invoices returns a copy of the invoices that have been created, oldest first. An order
// that was invoiced twice has two of them, see [Server.SetRepeatedOrders].
func (s *Server) Invoices() []Invoice { return copyOf(s, &s.invoices) }

// InvoicesFor returns a copy of the invoices of one order, oldest first.
func (s *Server) InvoicesFor(orderID string) []Invoice {
	return slices.DeleteFunc(s.Invoices(), func(i Invoice) bool { return i.OrderID != orderID })
}

// RepeatedOrders tells a server how to handle an invoice request for an order that has an invoice. The interface does not
// say, so each way is an invention. Test code that must not create two invoices with all of them.
type RepeatedOrders string

// Ways to handle a repeated order.
const (
	RepeatAgain   RepeatedOrders = "again"   // creates another invoice; the default
	RepeatSame    RepeatedOrders = "same"    // responds with the first invoice, whatever else is requested, and status 200
	RepeatRefused RepeatedOrders = "refused" // responds with the error envelope and status 409
)

// AllRepeatedOrders returns every way to handle a repeated order, the default first.
func AllRepeatedOrders() []RepeatedOrders {
	return []RepeatedOrders{RepeatAgain, RepeatSame, RepeatRefused}
}

// SetRepeatedOrders sets how the server handles a repeated order, from the next request on. It panics if the kind is none
// of the constants.
func (s *Server) SetRepeatedOrders(kind RepeatedOrders) {
	if !slices.Contains(AllRepeatedOrders(), kind) {
		panic(fmt.Sprintf("gatewaytest: SetRepeatedOrders with %q, want one of its constants", string(kind)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repeated = kind
}

// createInvoice carries out an invoice request. The lock is held.
func (s *Server) createInvoice(c *call) response {
	if status, problem := c.refuseInvoice(); problem != "" {
		return failure(status, problem)
	}
	invoice, problem := c.fields.invoice()
	if problem != "" {
		return failure(http.StatusBadRequest, problem)
	}
	if resp, ends := s.repeat(invoice.OrderID); ends {
		return resp
	}
	invoice.ID, invoice.CreatedAt = newID(), s.now().UTC()
	invoice.Address, invoice.ExpiresAt = "invented-"+invoice.ID, invoice.CreatedAt.Add(24*time.Hour)
	s.invoices = append(s.invoices, invoice)
	return s.invoiceResponse(http.StatusCreated, invoice)
}

// repeat returns the response to a request for an order that has an invoice, and whether no other is created. The lock is
// held.
func (s *Server) repeat(orderID string) (resp response, ends bool) {
	first := slices.IndexFunc(s.invoices, func(i Invoice) bool { return i.OrderID == orderID })
	switch {
	case first < 0 || s.repeated == RepeatAgain:
		return response{}, false
	case s.repeated == RepeatSame:
		return s.invoiceResponse(http.StatusOK, s.invoices[first]), true
	default:
		return failure(http.StatusConflict, "the order has an invoice"), true
	}
}

// invoiceResponse returns the response with an invoice. The lock is held.
func (s *Server) invoiceResponse(status int, i Invoice) response {
	resp := success(status, i)
	if result, ok := s.results[OpCreateInvoice]; ok {
		resp.result = json.RawMessage(i.fill(result))
	}
	return resp
}

// refuseInvoice checks everything about an invoice request but the members other
// than the key.
func (c *call) refuseInvoice() (status int, problem string) {
	mediaType, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	_, apiKey := c.fields["apiKey"]
	_, apikey := c.fields["apikey"]
	switch {
	case err != nil || mediaType != "application/json":
		return http.StatusUnsupportedMediaType, "Content-Type must be application/json"
	case c.readErr != nil:
		return http.StatusBadRequest, "the body ended early"
	case len(c.body) > maxBody:
		return http.StatusRequestEntityTooLarge, "the body is too large"
	case c.bodyErr != "":
		return http.StatusBadRequest, c.bodyErr
	case apiKey && apikey:
		return http.StatusBadRequest, "apiKey and apikey are both there"
	case !apiKey && !apikey:
		return http.StatusUnauthorized, "apiKey is required"
	case !c.keyOK:
		return http.StatusUnauthorized, "apiKey is not valid"
	}
	return 0, ""
}

// An object is a JSON object by its member names.
type object map[string]json.RawMessage

// parseObject parses a text that must be one JSON object without duplicate names.
func parseObject(body []byte) (_ object, problem string) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, "the body is not JSON"
	}
	decoder := json.NewDecoder(bytes.NewReader(body)) // of valid JSON: no more errors from here
	if first, _ := decoder.Token(); first != json.Delim('{') {
		return nil, "the body is not a JSON object"
	}
	fields := object{}
	for decoder.More() {
		token, _ := decoder.Token()
		name, _ := token.(string)
		if _, twice := fields[name]; twice {
			return fields, fmt.Sprintf("%q is there twice", name)
		}
		var value json.RawMessage
		_ = decoder.Decode(&value)
		fields[name] = value
	}
	return fields, ""
}

// key returns the member with the key, under either of its spellings.
func (o object) key() (value json.RawMessage, ok bool) {
	if value, ok = o["apiKey"]; ok {
		return value, true
	}
	value, ok = o["apikey"]
	return value, ok
}

// invoice reads the members other than the key. It skips those that are not known, as
// the client does, and as api/openapi.yaml allows.
func (o object) invoice() (_ Invoice, problem string) {
	var i Invoice
	for _, name := range slices.Sorted(maps.Keys(o)) {
		value, ok := o[name], true
		switch name {
		case "orderId":
			i.OrderID, ok = text(value)
		case "price":
			i.Price, ok = decimal(value)
		case "amount":
			i.Amount, ok = decimal(value)
		case "baseCurrency":
			i.BaseCurrency, ok = text(value)
		case "coinSymbol":
			i.CoinSymbol, ok = text(value)
		case "networkName":
			i.NetworkName, ok = text(value)
		}
		if !ok {
			return Invoice{}, name + " is not valid"
		}
	}
	for _, required := range []struct{ name, value string }{
		{"price", i.Price}, {"orderId", i.OrderID}, {"amount", i.Amount},
	} {
		if required.value == "" {
			return Invoice{}, required.name + " is required"
		}
	}
	return i, ""
}

// text returns the content of a JSON string.
func text(value json.RawMessage) (s string, ok bool) {
	if value[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(value, &s) == nil
}

// decimal returns the digits of a JSON number, or of a JSON string that contains a
// decimal number, exactly as written.
func decimal(value json.RawMessage) (digits string, ok bool) {
	if s, isText := text(value); isText {
		return s, strings.Trim(s, "-.0123456789") == "" && json.Valid([]byte(s)) // a number without an exponent
	}
	return string(value), value[0] == '-' || '0' <= value[0] && value[0] <= '9'
}
