package gateway_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/pricing"
)

// createdInvoice is the invoice that a result is read as.
func createdInvoice(t testing.TB, result string) *gateway.Invoice {
	t.Helper()
	got, err := cannedClient(t, 200, enveloped(result)).CreateInvoice(t.Context(), order("A-17"))
	require.NoError(t, err)
	return got
}

// The result of a created invoice is undocumented: it is returned byte for byte, and
// not interpreted.
// I-124
func TestClient_CreateInvoice_raw(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, result string }{
		{"a record", invoiceJSON},
		{"a record in an odd order, with spaces and escapes", `{ "b" : 1.50 , "a":"\u00e9\/" , "c":[ ] }`},
		{"an array of records", `[{"id":"inv-1"}]`},
		{"a text", `"https://pay.example/inv-1"`},
		{"a number, with its digits", `10.500000000000000000001`},
		{"a boolean", `true`},
		{"an empty record", `{}`},
		{"an empty array with the documented text of a success", `[]`},
		{"much", `{"a":"` + strings.Repeat("x", 100_000) + `"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := createdInvoice(t, tt.result)
			assert.Equal(t, tt.result, string(got.Raw))
			assert.Equal(t, "A-17", got.OrderID)
		})
	}
}

// After a 2xx response that is not an envelope, or is an error envelope, the outcome is
// unknown.
// I-129
func TestClient_CreateInvoice_unreadable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body string }{
		{"no body", ""},
		{"no result", "{}"},
		{"half a body", `{"message":"Operation was successful.","result":{"inv`},
		{"null for a result", enveloped("null")},
		{"a page", "<html></html>"},
		{"an empty result, and another message", `{"message":"Order exists","result":{}}`},
		{"a result that is no record, and another message", `{"message":"Order exists","result":false}`},
		{"an error envelope", refused("Price is too small")},
		{"an error envelope without a message", `{"result":[]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(200, tt.body))
			got, err := newClient(t, w.URL).CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			var unknown *gateway.OutcomeUnknownError
			require.ErrorAs(t, err, &unknown)
			assert.Equal(t, "A-17", unknown.OrderID)
			assert.Equal(t, 200, unknown.StatusCode)
			assert.Equal(t, tt.body, string(unknown.Body))
			assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
			assert.False(t, gateway.SafeToRetry(err))
			assert.Len(t, w.Requests(), 1)
		})
	}
}

// I-125
func TestInvoice_Text(t *testing.T) {
	t.Parallel()
	result := `{"invoiceId":"inv-1","total":10.50,"paid":false,"note":null,"empty":"","esc":"a\u00e9\n",` +
		`"deep":{"address":"deep","id":"low","list":[{"memo":"m-1","id":"lower"},{"memo":"m-2"}]},` +
		`"payment":{"address":"other","id":"low","memo":7},"payer":{"phone":"1"},"payee":{"phone":"2","id":"low"},"id":{"id":"low"},"big":123456789012345678901234567890,` +
		`"pay_amount":1.0e-8,"fee":-1.50E+3,"zero":0e5,"hash":"1.0e-8","long":1e64,"longer":` + strings.Repeat("9", 100) + `e64,"far":1e-65,"same":[{"rate":1e1},{"rate":10}]}`
	for _, tt := range []struct {
		name  string
		names []string
		want  string
		found bool
	}{
		{"at the top", []string{"invoiceId"}, "inv-1", true},
		{"the first of the names that is there", []string{"nope", "invoiceId", "address"}, "inv-1", true},
		{"the first of the names, not the nearest", []string{"total", "invoiceId"}, "10.50", true},
		{"a number, by its digits", []string{"total"}, "10.50", true},
		{"a number beyond every integer", []string{"big"}, "123456789012345678901234567890", true},
		{"a number without its exponent", []string{"pay_amount"}, "0.00000001", true},
		{"a number without a positive exponent", []string{"fee"}, "-1500", true},
		{"a zero without its exponent", []string{"zero"}, "0", true},
		{"a text that looks like a number", []string{"hash"}, "1.0e-8", true},
		{"a long number without its exponent", []string{"long"}, "1" + strings.Repeat("0", 64), true},
		{"a number that is longer than 128 bytes without its exponent", []string{"longer", "invoiceId"}, "", false},
		{"a number with an exponent beyond 64", []string{"far"}, "", false},
		{"the same number with an exponent and without", []string{"rate"}, "10", true},
		{"in a record, nearer than one in an array", []string{"memo"}, "7", true},
		{"nearest to the top", []string{"id"}, "low", true},
		{"an empty text", []string{"empty"}, "", false},
		{"two that are equally near, and equal", []string{"id"}, "low", true},
		{"two that are equally near, and differ", []string{"address"}, "", false},
		{"the same of another name, which is not asked", []string{"phone", "invoiceId"}, "", false},
		{"escapes are resolved", []string{"esc"}, "aé\n", true},
		{"a boolean is no text", []string{"paid"}, "", false},
		{"null is no text", []string{"note"}, "", false},
		{"a record is no text", []string{"deep"}, "", false},
		{"an array is no text", []string{"list"}, "", false},
		{"another case is another name", []string{"InvoiceID", "INVOICEID"}, "", false},
		{"a name that is not there", []string{"nope"}, "", false},
		{"an empty name", []string{""}, "", false},
		{"no names", nil, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, found := createdInvoice(t, result).Text(tt.names...)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.found, found)
		})
	}
}

// I-125
func TestInvoice_Text_otherShapes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, result, want string
		found              bool
	}{
		{"an array of a record", `[{"id":"inv-1"}]`, "inv-1", true},
		{"an array of arrays", `[[],[{"id":"inv-1"}]]`, "inv-1", true},
		{"a text", `"id"`, "", false},
		{"an array of texts", `["id","inv-1"]`, "", false},
		{"an empty record", `{}`, "", false},
		{"a name in escapes", `{"\u0069d":"inv-1"}`, "inv-1", true},
		{"an empty name", `{"":"x","id":"inv-1"}`, "inv-1", true},
		{"the nearest to the top comes last", `{"more":{"id":"other"},"id":"inv-1"}`, "inv-1", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, found := createdInvoice(t, tt.result).Text("id")
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.found, found)
		})
	}
	t.Run("an invoice of zero fields", func(t *testing.T) {
		t.Parallel()
		_, found := (&gateway.Invoice{}).Text("id")
		assert.False(t, found)
	})
}

// I-124
func TestInvoice_Decode(t *testing.T) {
	t.Parallel()
	type result struct {
		InvoiceID string      `json:"invoiceId"`
		Total     json.Number `json:"-"`
	}
	t.Run("into the caller's struct", func(t *testing.T) {
		t.Parallel()
		var into result
		require.NoError(t, createdInvoice(t, `{"invoiceId":"inv-1","more":1}`).Decode(&into))
		assert.Equal(t, "inv-1", into.InvoiceID)
	})
	t.Run("names match exactly", func(t *testing.T) {
		t.Parallel()
		var into result
		require.NoError(t, createdInvoice(t, `{"INVOICEID":"inv-1"}`).Decode(&into))
		assert.Empty(t, into.InvoiceID)
	})
	t.Run("into a map", func(t *testing.T) {
		t.Parallel()
		var into map[string]any
		require.NoError(t, createdInvoice(t, invoiceJSON).Decode(&into))
		assert.Equal(t, map[string]any{"invoiceId": "inv-1", "address": "TXYZ"}, into)
	})
	for _, tt := range []struct {
		name    string
		invoice *gateway.Invoice
		into    any
	}{
		{"of another type", createdInvoice(t, `{"invoiceId":1}`), &result{}},
		{"into what is no pointer", createdInvoice(t, invoiceJSON), result{}},
		{"into nil", createdInvoice(t, invoiceJSON), nil},
		{"of nothing", &gateway.Invoice{OrderID: "A-17"}, &result{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.invoice.Decode(tt.into)
			require.Error(t, err)
			assert.Contains(t, err.Error(), `gateway: invoice for order "A-17": `)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// An invoice prints and encodes its result as JSON, not as bytes.
func TestInvoice_encodes(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(createdInvoice(t, invoiceJSON))
	require.NoError(t, err)
	assert.JSONEq(t, `{"orderId":"A-17","raw":`+invoiceJSON+`,"replayed":false,"request":{"orderId":"A-17","price":"10.5","amount":"10.4895"}}`, string(encoded))
}

// assertInvoiceRefused asserts that an invoice is refused in both formats, and that
// the order is free afterwards.
func assertInvoiceRefused(t *testing.T, request gateway.InvoiceRequest, argument, reason string) {
	t.Helper()
	for _, format := range []gateway.InvoiceFormat{gateway.InvoiceFormatSample, gateway.InvoiceFormatTable} {
		w := serve(t, respond(200, enveloped(invoiceJSON)))
		c := newClient(t, w.URL, gateway.WithInvoiceFormat(format))
		got, err := c.CreateInvoice(t.Context(), request)
		assertRefused(t, err, "create_invoice", argument, reason)
		assertInvariants(t, got, err)
		assert.Equal(t, err, request.Validate(), "it is refused before it is sent, too")
		assert.Empty(t, w.Requests())
		require.NoError(t, order("A-17").Validate())
		_, err = c.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err, "a refusal leaves the order free")
	}
}

// invoiceTexts set a text of an invoice by the name that an error has for it.
var invoiceTexts = map[string]func(r *gateway.InvoiceRequest, text string){
	"orderId":      func(r *gateway.InvoiceRequest, text string) { r.OrderID = text },
	"baseCurrency": func(r *gateway.InvoiceRequest, text string) { r.BaseCurrency = text },
	"coinSymbol":   func(r *gateway.InvoiceRequest, text string) { r.CoinSymbol = text },
	"networkName":  func(r *gateway.InvoiceRequest, text string) { r.NetworkName = text },
}

// I-110, I-121
func TestClient_CreateInvoice_refusesTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, field, text, reason string }{
		{"no order", "orderId", "", "is required"},
		{"a line end in an order", "orderId", "a\nb", "control characters"},
		{"half a character in an order", "orderId", "a\xe4\xb8", "not valid UTF-8"},
		{"a space in front of an order", "orderId", " a", "a space"},
		{"a zero-width space in an order", "orderId", "A-17\u200b", "must not contain invisible characters"},
		{"a soft hyphen in an order", "orderId", "A-\u00ad17", "must not contain invisible characters"},
		{"1,025 bytes of order", "orderId", strings.Repeat("o", 1025), "is longer than 1024 bytes"},
		{"a currency with a space", "baseCurrency", "US D", "must not contain spaces"}, // I-117
		{"a currency of 65 bytes", "baseCurrency", strings.Repeat("u", 65), "is longer than 64 bytes"},
		{"an encoded surrogate in a coin", "coinSymbol", "\xed\xa0\x80", "not valid UTF-8"},
		{"1,025 bytes of coin", "coinSymbol", strings.Repeat("o", 1025), "is longer than 1024 bytes"},
		{"a NUL in a network", "networkName", "a\x00b", "control characters"},
		{"1,025 bytes of network", "networkName", strings.Repeat("o", 1025), "is longer than 1024 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			request := order("A-17")
			invoiceTexts[tt.field](&request, tt.text)
			assertInvoiceRefused(t, request, tt.field, tt.reason)
		})
	}
}

// Package money tests all limits of an amount.
// I-111, I-112, I-120
func TestClient_CreateInvoice_refusesAmounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		reason string
	}{
		{"a zero amount is required", decimal.Decimal{}, "is required"},
		{"minus five", decimal.NewFromInt(-5), "must be greater than zero"},
		{"1e1000000000", decimal.New(1, 1_000_000_000), "more than 64 digits"},
		{"65 digits", decimal.RequireFromString(strings.Repeat("9", 65)), "more than 64 digits"},
		{"31 decimal places", decimal.New(1, -31), "more than 30 decimal places"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			request := order("A-17")
			request.Price = tt.amount
			assertInvoiceRefused(t, request, "price", tt.reason)
			request = order("A-17")
			request.Amount = tt.amount
			assertInvoiceRefused(t, request, "amount", tt.reason)
		})
	}
}

// I-7, I-33, I-111, I-112, I-113, I-118
func TestClient_CreateInvoice_body(t *testing.T) {
	t.Parallel()
	full := order("A-17")
	full.BaseCurrency, full.CoinSymbol, full.NetworkName = "usd", "USDT", "Tron (TRC20)"
	for _, tt := range []struct {
		name    string
		format  gateway.InvoiceFormat
		request gateway.InvoiceRequest
		want    string
	}{
		{"empty optional fields are left out", gateway.InvoiceFormatSample, order("A-17"), sampleBody}, // I-119
		{"every field", gateway.InvoiceFormatSample, full, fullBody},
		{"empty optional fields are left out of the table's spelling", gateway.InvoiceFormatTable, order("A-17"), tableBody},
		{"every field in the table's spelling", gateway.InvoiceFormatTable, full, fullTable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(200, enveloped(invoiceJSON)))
			c := newClient(t, w.URL, gateway.WithInvoiceFormat(tt.format))
			_, err := c.CreateInvoice(t.Context(), tt.request)
			require.NoError(t, err)
			assert.Equal(t, tt.want, only(t, w).Body)
		})
	}
}

// Each optional field is sent when it is set, alone.
func TestClient_CreateInvoice_optionalFields(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		set  func(*gateway.InvoiceRequest)
		want string
	}{
		{"the currency", func(r *gateway.InvoiceRequest) { r.BaseCurrency = "usd" }, `"baseCurrency":"usd",`}, // I-114
		{
			"an unknown currency is sent as given", // I-117
			func(r *gateway.InvoiceRequest) { r.BaseCurrency = "XYZ" }, `"baseCurrency":"XYZ",`,
		},
		{"the coin", func(r *gateway.InvoiceRequest) { r.CoinSymbol = "usdt" }, `"coinSymbol":"usdt",`},      // I-115
		{"the network", func(r *gateway.InvoiceRequest) { r.NetworkName = "Tron" }, `"networkName":"Tron",`}, // I-116
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			request := order("A-17")
			tt.set(&request)
			want := `{"apiKey":"` + canary + `","price":"10.50","orderId":"A-17",` + tt.want + `"amount":"10.4895"}`
			assert.Equal(t, want, postedBody(t, request))
		})
	}
}

// postedBody is what the client posts for a request.
func postedBody(t testing.TB, request gateway.InvoiceRequest, opts ...gateway.Option) string {
	t.Helper()
	w := serve(t, respond(200, enveloped(invoiceJSON)))
	_, err := newClient(t, w.URL, opts...).CreateInvoice(t.Context(), request)
	require.NoError(t, err)
	return only(t, w).Body
}

// An order's identifier is a JSON string, whatever it contains.
// I-110
func TestClient_CreateInvoice_orderID(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, id, want string }{
		{"leading zeros", "000123", `"000123"`},
		{"a number with an exponent", "0e5", `"0e5"`},
		{"the word null", "null", `"null"`},
		{"the word true", "true", `"true"`},
		{"a JSON document", `{"a":1}`, `"{\"a\":1}"`},
		{"a quote and a backslash", `a"b\c`, `"a\"b\\c"`},
		{"markup is not escaped", "<a&b>", `"<a&b>"`},
		{"an order that tries to be two members", `x","price":"1`, `"x\",\"price\":\"1"`},
		{"letters beyond ASCII", "é世🙂", `"é世🙂"`},
		{"spaces within", "a  b", `"a  b"`},
		{"1,024 bytes", strings.Repeat("o", 1024), `"` + strings.Repeat("o", 1024) + `"`}, // I-121
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := `{"apiKey":"` + canary + `","price":"10.50","orderId":` + tt.want + `,"amount":"10.4895"}`
			assert.Equal(t, want, postedBody(t, order(tt.id)))
		})
	}
}

// A key is a JSON string in the body, whatever is in it.
func TestClient_CreateInvoice_keyIsQuoted(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, enveloped(invoiceJSON)))
	c, err := gateway.New(w.URL, `k"e\y,"price":"0`)
	require.NoError(t, err)
	_, err = c.CreateInvoice(t.Context(), order("A-17"))
	require.NoError(t, err)
	assert.Equal(t, `{"apiKey":"k\"e\\y,\"price\":\"0","price":"10.50","orderId":"A-17","amount":"10.4895"}`, only(t, w).Body)
}

// moneyOnTheWire are decimals and the digits they are sent as.
var moneyOnTheWire = []struct {
	name   string
	amount decimal.Decimal
	want   string
}{
	{"zeros at the end stay", decimal.RequireFromString("10.50"), "10.50"},
	{"all of them", decimal.RequireFromString("1.000000000000000000"), "1.000000000000000000"},
	{"an exponent is written out", decimal.New(1, 5), "100000"},
	{"a large exponent is written out", decimal.New(1, 63), "1" + strings.Repeat("0", 63)},
	{"a small amount has no exponent", decimal.New(1, -8), "0.00000001"},
	{"the most decimal places", decimal.New(1, -30), "0." + strings.Repeat("0", 29) + "1"},
	{"the most digits", decimal.RequireFromString(strings.Repeat("9", 64)), strings.Repeat("9", 64)},
	{
		"the most of both",
		decimal.RequireFromString(strings.Repeat("9", 34) + "." + strings.Repeat("9", 30)),
		strings.Repeat("9", 34) + "." + strings.Repeat("9", 30),
	},
	{"more digits than an int64", decimal.RequireFromString("18446744073709551616.5"), "18446744073709551616.5"},
	{"a whole number", decimal.NewFromInt(7), "7"},
	{"as many places as digits", decimal.New(1234, -4), "0.1234"},
	{"what float64 cannot represent", decimal.RequireFromString("0.1000000000000000055511151231257827"[:32]), "0.100000000000000005551115123125"},
}

// I-113, I-120
func TestClient_CreateInvoice_amounts(t *testing.T) {
	t.Parallel()
	for _, tt := range moneyOnTheWire {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			request := order("A-17")
			request.Price, request.Amount = tt.amount, tt.amount
			assert.Equal(t,
				`{"apiKey":"`+canary+`","price":"`+tt.want+`","orderId":"A-17","amount":"`+tt.want+`"}`,
				postedBody(t, request))
			assert.Equal(t,
				`{"apikey":"`+canary+`","price":`+tt.want+`,"orderId":"A-17","amount":`+tt.want+`}`,
				postedBody(t, request, gateway.WithInvoiceFormat(gateway.InvoiceFormatTable)))
		})
	}
}

// With 200 an invoice was created by the message of a success, whatever the result has, and by no other.
// I-40
func TestClient_CreateInvoice_message(t *testing.T) {
	t.Parallel()
	const exists = "Order exists"
	for _, result := range []string{
		`{}`, `[]`, `[null]`, `[[],{},null,""]`, `{"invoice":null}`, strings.Repeat("[", 1_000) + strings.Repeat("]", 1_000),
		`[0]`, `[[],[{}],[{"id":1}]]`, `{"a":{"b":[null,"x"]}}`, invoiceJSON,
	} {
		got, err := cannedClient(t, 200, `{"message":"Order exists","result":`+result+`,"meta":{}}`).CreateInvoice(t.Context(), order("A-17"))
		assertInvariants(t, got, err)
		assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err), "%.40s", result)
		for _, message := range []string{exists, "Operation was successful."} {
			c := cannedClient(t, 200, `{"message":"`+message+`","result":`+result+`,"meta":{}}`, gateway.WithSuccessMessage(exists))
			got, err = c.CreateInvoice(t.Context(), order("A-17"))
			require.NoError(t, err, "%.40s", result)
			assert.Equal(t, result, string(got.Raw))
		}
	}
}

// What proves what: ordinary responses, bodies that contradict their status, and honest refusals in many forms. After
// a success the second call gets the same invoice, after a refusal it sends, and after anything else it is held.
// I-128, I-129, I-173
func TestClient_CreateInvoice_proof(t *testing.T) {
	t.Parallel()
	const succeeded, rejected, unknown = gateway.OutcomeSucceeded, gateway.OutcomeRejected, gateway.OutcomeUnknown
	documented := enveloped(invoiceJSON)
	for _, tt := range []struct {
		status  int
		body    string
		outcome gateway.Outcome
		decoded gateway.Outcome // with WithInvoiceDecoder
	}{
		// Ordinary responses.
		{200, documented, succeeded, succeeded},
		{201, documented, succeeded, succeeded},
		{201, `{"message":"Invoice created.","result":{"id":"inv-1"}}`, succeeded, succeeded},
		{201, `{"message":"Invoice created.","result":"https://pay.example/inv-1","meta":{}}`, succeeded, succeeded},
		{201, `{"statusCode":201,"success":true,"error":false,"message":"","result":{"id":"inv-1"}}`, succeeded, succeeded},
		{201, `{"code":1000,"message":"Invoice created.","result":{"id":"inv-1"}}`, succeeded, succeeded},
		{200, `{"message":"Invoice created.","result":{"id":"inv-1"}}`, unknown, succeeded},
		{201, `{"id":"inv-1","address":"bc1q"}`, unknown, succeeded},
		{200, `{"id":"inv-1","address":"bc1q"}`, unknown, succeeded},
		{201, `{"message":"Invoice created.","data":{"id":"inv-1"}}`, unknown, unknown},
		{201, `[{"id":"inv-1"}]`, unknown, unknown},
		{202, documented, unknown, unknown},
		{400, refused("orderId must be a unique string"), rejected, rejected},
		{401, refused("Unauthorized"), rejected, rejected},
		{404, page, rejected, rejected},
		{422, `{"message":"The given data was invalid.","errors":{"price":["It is required."]}}`, rejected, rejected},
		{429, "", rejected, rejected},
		{409, refused("Order exists"), unknown, unknown},
		{500, refused("Internal error"), unknown, unknown},
		{503, page, unknown, unknown},
		{200, refused("Coin is not supported"), unknown, unknown},
		{302, "", unknown, unknown},

		// 2xx that is no success.
		{201, `{"statusCode":201,"message":["price must be positive"],"error":"Bad Request"}`, unknown, unknown},
		{201, `{"statusCode":400,"message":"No.","result":{"field":"price"}}`, unknown, unknown},
		{201, `{"error":"Bad Request","message":"No.","result":{"field":"price"}}`, unknown, unknown},
		{201, `{"errors":{"price":["No."]},"message":"No.","result":"No."}`, unknown, unknown},
		{201, `{"success":false,"message":"No.","result":{"field":"price"}}`, unknown, unknown},
		{201, `{"code":400,"message":"No.","result":{"field":"price"}}`, unknown, unknown},
		{201, `{"message":"Created","result":{}}`, unknown, unknown},
		{201, `{"message":"Created","result":{"invoice":null}}`, unknown, unknown},
		{201, `{"message":"Created","result":""}`, unknown, unknown},
		{201, `{"message":"Created","result":[{"id":"inv-1"}]}`, unknown, unknown},
		{201, `{"message":"Created","result":true}`, unknown, unknown},
		{201, "", unknown, unknown},
		{201, page, unknown, unknown},

		// Bodies that contradict their status.
		{422, documented, unknown, unknown},
		{429, documented, unknown, unknown},
		{404, documented, unknown, unknown},
		{400, `{"message":"Webhook failed","result":{"invoiceId":"inv-9"}}`, unknown, unknown},
		{400, `{"statusCode":500,"message":"No."}`, unknown, unknown},
		{400, `{"status":409,"message":"No."}`, unknown, unknown},
		{404, `{"id":"inv-1","address":"bc1q"}`, rejected, unknown},
		{422, `{"id":"inv-1","message":"The e-mail failed"}`, rejected, unknown},
		{400, `{"message":"No.","result":{"id":"inv-1"`, unknown, unknown},

		// Honest refusals.
		{400, refused("The merchant is already suspended"), rejected, rejected},
		{403, refused("The merchant is already suspended"), rejected, rejected},
		{400, `{"message":"Unsupported coin","request":{"orderId":"A-17"}}`, rejected, rejected},
		{400, refused("No wallet exists for A-17"), rejected, rejected},
		{422, `{"desc":"conflicting parameters"}`, rejected, rejected},
		{422, `{"reason":"mistaken"}`, rejected, rejected},
		{422, `{"errorMessage":"No."}`, rejected, rejected},
		{422, `{"description":"No."}`, rejected, rejected},
		{400, `["No."]`, unknown, unknown},
		{400, `No.`, unknown, unknown},
		{422, `<error>No.</error>`, unknown, unknown},
		{403, `{"message":"Forbidden"}`, unknown, unknown},
	} {
		for _, hasDecoder := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %.60s, decoder %v", tt.status, tt.body, hasDecoder), func(t *testing.T) {
				t.Parallel()
				sent := 0
				opts := []gateway.Option{through(func(*http.Request) (*http.Response, error) {
					sent++
					return reply(tt.status, tt.body), nil
				})}
				want := tt.outcome
				if hasDecoder {
					opts, want = append(opts, gateway.WithInvoiceDecoder(decodeInvoice)), tt.decoded
				}
				c := newClient(t, "http://localhost", opts...)
				for call := range 2 {
					got, err := c.CreateInvoice(t.Context(), order("A-17"))
					assertInvariants(t, got, err)
					require.Equal(t, want, gateway.OutcomeOf(err), "call %d: %v", call, err)
					if want == succeeded {
						assert.Equal(t, call == 1, got.Replayed)
						continue
					}
					_, isRefusal := errors.AsType[*gateway.APIError](err)
					assert.Equal(t, want == rejected, isRefusal, "an APIError is a refusal, and certain: %v", err)
					lost, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err)
					require.Equal(t, want == unknown, isUnknown, "%v", err)
					assert.Equal(t, tt.status == 409, errors.Is(err, gateway.ErrConflict))
					assert.Equal(t, tt.status >= 500, errors.Is(err, gateway.ErrServer))
					if isUnknown {
						assert.Equal(t, tt.status, lost.StatusCode)
						assert.Equal(t, call == 1, lost.Replayed)
					}
				}
				if want == rejected {
					assert.Equal(t, 2, sent, "the second call sends")
				} else {
					assert.Equal(t, 1, sent, "the second call sends nothing")
				}
			})
		}
	}
}

// decodeInvoice reads an invoice with an id, as a merchant would.
func decodeInvoice(body json.RawMessage) (gateway.InvoiceDetails, error) {
	var invoice struct {
		ID      string          `json:"id"`
		Address string          `json:"address"`
		Tag     string          `json:"tag"`
		URL     string          `json:"url"`
		Amount  decimal.Decimal `json:"amount"`
		Expires time.Time       `json:"expiresAt"`
	}
	err := json.Unmarshal(body, &invoice)
	return gateway.InvoiceDetails{
		ID: invoice.ID, Address: invoice.Address, Tag: invoice.Tag, PaymentURL: invoice.URL, Amount: invoice.Amount, ExpiresAt: invoice.Expires,
	}, err
}

// The details of an invoice are there on each call. What the decoder cannot read of an invoice that is proved
// otherwise is no error of the call.
// I-173
func TestWithInvoiceDecoder(t *testing.T) {
	t.Parallel()
	whole := gateway.InvoiceDetails{
		ID: "inv-1", Address: "r9", Tag: "42", PaymentURL: "https://pay.example/1",
		Amount: decimal.RequireFromString("0.00012"), ExpiresAt: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC),
	}
	const fields = `{"id":"inv-1","address":"r9","tag":"42","url":"https://pay.example/1","amount":"0.00012","expiresAt":"2026-11-25T12:00:00Z"}`
	failing := func(json.RawMessage) (gateway.InvoiceDetails, error) {
		return whole, errors.New("no invoice, but " + canary)
	}
	huge := func(json.RawMessage) (gateway.InvoiceDetails, error) {
		return gateway.InvoiceDetails{ID: "inv-1", Amount: decimal.New(1, 1000)}, nil
	}
	for _, tt := range []struct {
		name, body, raw string
		decode          func(json.RawMessage) (gateway.InvoiceDetails, error)
		want            gateway.InvoiceDetails
		wrong           string
	}{
		{"a result", enveloped(fields), fields, decodeInvoice, whole, ""},
		{"a body without an envelope", fields, fields, decodeInvoice, whole, ""},
		{"another message", `{"message":"OK","result":` + fields + `}`, fields, decodeInvoice, whole, ""},
		{"an error", enveloped(fields), fields, failing, gateway.InvoiceDetails{}, "the function of WithInvoiceDecoder: no invoice, but [REDACTED]"},
		{"nothing that identifies an invoice", enveloped(`{"x":1}`), `{"x":1}`, decodeInvoice, gateway.InvoiceDetails{}, "it returned no ID, Address or PaymentURL"},
		{"no amount of money", enveloped(fields), fields, huge, gateway.InvoiceDetails{}, "the amount is not an amount of money"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			decode := func(body json.RawMessage) (gateway.InvoiceDetails, error) {
				defer clear(body) // the caller still gets what came
				return tt.decode(body)
			}
			c := newClient(t, "http://localhost", gateway.WithInvoiceDecoder(decode), through(func(*http.Request) (*http.Response, error) {
				return reply(200, tt.body), nil
			}))
			for _, replayed := range []bool{false, true} {
				got, err := c.CreateInvoice(t.Context(), order("A-17"))
				require.NoError(t, err)
				assert.Equal(t, replayed, got.Replayed)
				assert.Equal(t, tt.want, got.Details)
				assert.Equal(t, tt.raw, string(got.Raw))
				if tt.wrong == "" {
					assert.NoError(t, got.GuardErr)
				} else {
					assert.ErrorContains(t, got.GuardErr, tt.wrong)
					assertNoKey(t, got.GuardErr)
				}
			}
			other := order("A-17")
			other.BaseCurrency = "chf"
			_, err := c.CreateInvoice(t.Context(), other)
			conflict, ok := errors.AsType[*gateway.OrderConflictError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, tt.want, conflict.Invoice.Details, "a conflict has the details too")
		})
	}
	t.Run("without a decoder", func(t *testing.T) {
		t.Parallel()
		assert.Zero(t, createdInvoice(t, fields).Details)
	})
	t.Run("an error of the decoder is the error of a response that proves nothing else", func(t *testing.T) {
		t.Parallel()
		_, err := cannedClient(t, 200, fields, gateway.WithInvoiceDecoder(failing)).CreateInvoice(t.Context(), order("A-17"))
		assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
		assert.ErrorContains(t, err, "the function of WithInvoiceDecoder: no invoice, but [REDACTED]")
	})
}

// A proxy that delivers each POST twice passes the second response on. The first delivery has created the invoice. A
// client that sees only a refusal cannot know that, and says so; 409 alone tells.
func TestClient_CreateInvoice_deliveredTwice(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]gateway.Outcome{
		400: gateway.OutcomeRejected, // which is not true
		422: gateway.OutcomeRejected, // nor is this
		409: gateway.OutcomeUnknown,
		201: gateway.OutcomeSucceeded, // and a second invoice
	} {
		t.Run(fmt.Sprint("the second delivery is answered ", status), func(t *testing.T) {
			t.Parallel()
			deliveries := 0
			service := func() *http.Response {
				if deliveries++; deliveries == 1 || status == 201 {
					return reply(201, enveloped(invoiceJSON))
				}
				return reply(status, refused("Order already exists."))
			}
			c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
				service()
				return service(), nil
			}))
			_, err := c.CreateInvoice(t.Context(), order("A-17"))
			assert.Equal(t, want, gateway.OutcomeOf(err), "%v", err)
			assert.False(t, gateway.SafeToRetry(err))
		})
	}
}

// The switches of the decimal package are the whole program's. None of them
// changes what is sent or read. This test is not parallel, nor is any of its
// subtests: nothing else may run while the switches are changed.
func TestDecimalSwitches(t *testing.T) {
	request := order("A-17")
	rates := gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "BTC", USD: decimal.NewNullDecimal(decimal.NewFromInt(3))}}}
	defer restoreDecimal()()
	decimal.UseScientificNotation = true
	decimal.MarshalJSONWithoutQuotes = true
	decimal.MaxDecodeExponent = 1
	decimal.DivisionPrecision = 0
	for _, trim := range []bool{true, false} {
		decimal.TrimTrailingZeros = trim
		for _, tt := range moneyOnTheWire {
			request.Price, request.Amount = tt.amount, tt.amount
			assert.Equal(t,
				`{"apiKey":"`+canary+`","price":"`+tt.want+`","orderId":"A-17","amount":"`+tt.want+`"}`,
				postedBody(t, request), "%s", tt.name)
			assert.Equal(t,
				`{"apikey":"`+canary+`","price":`+tt.want+`,"orderId":"A-17","amount":`+tt.want+`}`,
				postedBody(t, request, gateway.WithInvoiceFormat(gateway.InvoiceFormatTable)), "%s", tt.name)
		}
		assertReadsExactly(t, &rates)
	}
}

// assertReadsExactly asserts that what is read and what is converted has the
// digits that it should.
func assertReadsExactly(t *testing.T, rates *gateway.ExchangeRates) {
	t.Helper()
	w := serve(t, respond(200, enveloped(`[{"coin":"USDT","balance":"1.50"},{"coin":"USDT","balance":1e-7}]`)))
	balance, err := newClient(t, w.URL).Balance(t.Context(), gateway.BalanceQuery{})
	require.NoError(t, err)
	assertDecimal(t, 150, -2, balance.Amounts[0].Amount)
	assertDecimal(t, 1, -7, balance.Amounts[1].Amount)
	coins, err := pricing.ToCoin(rates, decimal.NewFromInt(1), "usd", "BTC", 4)
	require.NoError(t, err)
	assertDecimal(t, 3334, -4, coins)
}

// restoreDecimal notes the switches of the decimal package and returns what
// puts them back.
func restoreDecimal() func() {
	scientific, unquoted, trimmed := decimal.UseScientificNotation, decimal.MarshalJSONWithoutQuotes, decimal.TrimTrailingZeros
	exponent, precision := decimal.MaxDecodeExponent, decimal.DivisionPrecision
	return func() {
		decimal.UseScientificNotation, decimal.MarshalJSONWithoutQuotes, decimal.TrimTrailingZeros = scientific, unquoted, trimmed
		decimal.MaxDecodeExponent, decimal.DivisionPrecision = exponent, precision
	}
}

// assertDecimal compares a coefficient and an exponent, so that 1.50 is not
// 1.5, without the methods that the switches of the package change.
func assertDecimal(t testing.TB, value int64, exponent int32, got decimal.Decimal) {
	t.Helper()
	assert.Equal(t, value, got.CoefficientInt64(), "the coefficient")
	assert.Equal(t, exponent, got.Exponent(), "the exponent")
}

// A stage is how far an invoice has come when the caller's context ends.
type stage string

const (
	atDial   stage = "it dials"
	atTLS    stage = "the peer is silent in the TLS handshake"
	atHeader stage = "the header was written, and the body is unread"
	atBody   stage = "the service has read a byte of the body"
	atAwait  stage = "the service has the invoice"
	atRead   stage = "the response has begun"
)

// sends reports whether the invoice is sent, and not yet answered, in a stage.
func (s stage) sends() bool { return s == atBody || s == atAwait || s == atRead }

// An ending is how a caller's context ends.
type ending struct {
	name     string
	deadline time.Duration // 0 for none
	cancels  bool          // in the stage
	cause    error
}

// context returns a context, and what ends it in a stage.
func (e ending) context(ctx context.Context) (_ context.Context, inStage func(), release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() {}
	if e.deadline > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, e.deadline, e.cause)
	}
	return ctx, func() {
		if e.cancels {
			cancel(e.cause)
		}
	}, func() { stop(); cancel(nil) }
}

// err is the error of a context that has ended.
func (e ending) err() error {
	if e.cancels {
		return context.Canceled
	}
	return context.DeadlineExceeded
}

// A staged is a service that holds an invoice up in a stage.
type staged struct {
	stage   stage
	hold    time.Duration
	inStage func()

	pipes    chan net.Conn
	closed   chan struct{}
	received int // invoices
}

// wait holds an invoice up, and reports whether it goes on.
func (s *staged) wait(ended <-chan struct{}, now stage) bool {
	if s.stage != now {
		return true
	}
	s.inStage()
	select {
	case <-time.After(s.hold):
		return true
	case <-ended:
	case <-s.closed:
	}
	return false
}

// receive reads an invoice, and responds to it.
func (s *staged) receive(ended <-chan struct{}, body io.Reader, respond func() io.Writer) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(body, first); err != nil || !s.wait(ended, atBody) {
		return
	}
	if rest, err := io.ReadAll(body); err != nil || !json.Valid(append(first, rest...)) {
		return
	}
	s.received++
	if !s.wait(ended, atAwait) {
		return
	}
	text, to := enveloped(invoiceJSON), respond()
	_, _ = io.WriteString(to, text[:5])
	if flusher, ok := to.(http.Flusher); ok {
		flusher.Flush()
	}
	if s.stage == atRead {
		time.Sleep(time.Nanosecond) // until it is read
	}
	if s.wait(ended, atRead) {
		_, _ = io.WriteString(to, text[5:])
	}
}

// ServeHTTP implements [http.Handler].
func (s *staged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.receive(nil, r.Body, func() io.Writer { w.WriteHeader(201); return w })
}

// RoundTrip implements [http.RoundTripper], without connections.
func (s *staged) RoundTrip(req *http.Request) (*http.Response, error) {
	ended := req.Context().Done()
	if !s.wait(ended, atDial) || !s.wait(ended, atHeader) {
		return nil, req.Context().Err()
	}
	response := make(chan *http.Response)
	go func() {
		defer close(response)
		from, to := io.Pipe()
		s.receive(ended, req.Body, func() io.Writer {
			response <- &http.Response{StatusCode: 201, Header: http.Header{}, Body: from, ContentLength: -1}
			return to
		})
		_ = to.CloseWithError(req.Context().Err())
	}()
	if resp, ok := <-response; ok {
		return resp, nil
	}
	return nil, cmp.Or(req.Context().Err(), io.ErrUnexpectedEOF)
}

// Accept implements [net.Listener].
func (s *staged) Accept() (net.Conn, error) {
	if conn, ok := <-s.pipes; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (s *staged) Close() error   { close(s.pipes); close(s.closed); return nil }
func (s *staged) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects to the service, or to a peer that does not answer in the TLS handshake.
func (s *staged) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if !s.wait(ctx.Done(), atDial) {
		return nil, ctx.Err()
	}
	ours, theirs := net.Pipe()
	if s.stage == atTLS {
		go func() {
			_, _ = io.ReadFull(theirs, make([]byte, 1))
			s.inStage()
			_, _ = io.Copy(io.Discard, theirs)
		}()
		return ours, nil
	}
	s.pipes <- theirs
	return ours, nil
}

// start serves a version of HTTP over pipes, or none. It returns the base URL and the transport, and stops with the test.
func (s *staged) start(t *testing.T, version string) (string, http.RoundTripper) {
	if version == "in memory" {
		return "http://localhost", s
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == "HTTP/1.1")
	protocols.SetUnencryptedHTTP2(version == "HTTP/2")
	url := "http://localhost"
	if s.stage == atTLS {
		url = "https://localhost"
		protocols.SetHTTP2(version == "HTTP/2")
	}
	server := &http.Server{Handler: s, Protocols: protocols, ErrorLog: quiet()}
	go func() { _ = server.Serve(s) }()
	t.Cleanup(func() { _ = server.Close() })
	return url, &http.Transport{DialContext: s.dial, Protocols: protocols, TLSHandshakeTimeout: s.hold}
}

// Cancelling the context ends a call at once while nothing of the invoice was read for sending; afterwards the call goes on
// until it has a response. A deadline is always obeyed. No other attempt follows.
func TestClient_CreateInvoice_contextEnds(t *testing.T) {
	t.Parallel()
	const (
		soon, late = 500 * time.Millisecond, 5 * time.Second
		hold       = time.Second
		forever    = time.Hour
		timeout    = 20 * time.Second
	)
	gone := errors.New("the buyer has gone")
	endings := []ending{
		{"cancel", 0, true, nil},
		{"cancel with a cause", 0, true, gone},
		{"a deadline", soon, false, nil},
		{"a deadline with a cause", soon, false, gone},
		{"cancel before a deadline", late, true, nil},
		{"cancel before a deadline that comes before the response", soon, true, nil},
		{"cancel before a deadline, both with a cause", soon, true, gone},
	}
	for _, version := range []string{"HTTP/1.1", "HTTP/2", "in memory"} {
		for _, at := range []stage{atDial, atTLS, atHeader, atBody, atAwait, atRead} {
			for _, holds := range []time.Duration{hold, forever} {
				for _, e := range endings {
					if at == atTLS && version == "in memory" || at == atHeader && version == "HTTP/2" && !e.cancels {
						continue // no TLS; the hook cannot wait, because it holds a lock of the connection
					}
					t.Run(fmt.Sprintf("%s/%s/for %v/%s", version, at, holds, e.name), func(t *testing.T) {
						t.Parallel()
						want, ends := gateway.OutcomeNotSent, e.deadline // when the call ends
						if e.cancels && !at.sends() {
							ends = 0
						}
						if at.sends() {
							want = gateway.OutcomeUnknown
							if ends = cmp.Or(e.deadline, timeout); holds < ends {
								want, ends = gateway.OutcomeSucceeded, holds
							}
						}
						synctest.Test(t, func(t *testing.T) {
							ctx, inStage, release := e.context(t.Context())
							defer release()
							s := &staged{stage: at, hold: holds, inStage: inStage, pipes: make(chan net.Conn), closed: make(chan struct{})}
							if at == atHeader && version != "in memory" {
								ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() {
									if inStage(); !e.cancels {
										s.wait(ctx.Done(), atHeader)
									}
								}})
							}
							url, transport := s.start(t, version)
							var response gateway.Response
							c := newClient(t, url, gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithRetry(gateway.RetryPolicy{InvoiceTimeout: timeout}))
							defer c.CloseIdleConnections()
							begun := time.Now()
							got, err := c.CreateInvoice(ctx, order("A-17"), gateway.WithResponse(&response))
							assertInvariants(t, got, err)
							assert.Equal(t, want, gateway.OutcomeOf(err), "%v", err)
							assert.Equal(t, ends, time.Since(begun).Truncate(time.Millisecond))
							assert.Equal(t, 1, response.Attempts)
							if want == gateway.OutcomeNotSent {
								assert.Zero(t, s.received)
								assert.ErrorIs(t, err, e.err())
								assert.Equal(t, e.cause != nil, errors.Is(err, gone))
								assert.False(t, gateway.SafeToRetry(err), "the context has ended")
								return
							}
							if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
								assert.ErrorIs(t, unknown, context.DeadlineExceeded, "the deadline, or InvoiceTimeout, has ended it")
								assert.NotErrorIs(t, unknown, context.Canceled)
								return
							}
							assert.Equal(t, 1, s.received)
							again, err := c.CreateInvoice(t.Context(), order("A-17"))
							require.NoError(t, err)
							assert.True(t, again.Replayed)
						})
					})
				}
			}
		}
	}
}

// A cancelled call makes no other attempt, also where the service returns the existing invoice.
func TestClient_CreateInvoice_cancelledOnce(t *testing.T) {
	t.Parallel()
	const whenReported = 0 // the attempt after whose report the context is cancelled, if it is not cancelled in one
	idempotent := []gateway.Option{gateway.WithIdempotentOrders()}
	for _, tt := range []struct {
		name     string
		opts     []gateway.Option
		cancels  int // the attempt in which the context is cancelled, or whenReported
		attempts []tripper
		want     gateway.Outcome
		safe     bool
		is       error // of the cause; nil for none
	}{
		{"the service then says 503", nil, 1, []tripper{statusTrip(503, "")}, gateway.OutcomeUnknown, false, nil},
		{"the service then says 503, idempotent", idempotent, 1, []tripper{statusTrip(503, "")}, gateway.OutcomeUnknown, true, nil},
		{"the connection is then cut", nil, 1, []tripper{readThen(io.ErrUnexpectedEOF)}, gateway.OutcomeUnknown, false, io.ErrUnexpectedEOF},
		{"the connection is then cut, idempotent", idempotent, 1, []tripper{readThen(io.ErrUnexpectedEOF)}, gateway.OutcomeUnknown, true, io.ErrUnexpectedEOF},
		{"the service then redirects, idempotent", idempotent, 1, []tripper{statusTrip(302, "")}, gateway.OutcomeUnknown, false, gateway.ErrRedirect},
		{"the service then says 429", nil, 1, []tripper{statusTrip(429, "")}, gateway.OutcomeRejected, true, nil},
		{"the service then refuses it", nil, 1, []tripper{statusTrip(422, refused("No."))}, gateway.OutcomeRejected, false, nil},
		{"the service then creates it", nil, 1, []tripper{statusTrip(201, enveloped(invoiceJSON))}, gateway.OutcomeSucceeded, false, nil},
		{"it is then not read", nil, 1, []tripper{errorTrip(refusedConnection("connect"))}, gateway.OutcomeNotSent, false, context.Canceled},
		{"before a second attempt", nil, whenReported, []tripper{errorTrip(refusedConnection("connect"))}, gateway.OutcomeNotSent, false, context.Canceled},
		{"before a second attempt, idempotent", idempotent, whenReported, []tripper{statusTrip(503, "")}, gateway.OutcomeUnknown, true, context.Canceled},
		{"as the second attempt dials", nil, 2, []tripper{errorTrip(refusedConnection("connect")), hangTrip}, gateway.OutcomeNotSent, false, context.Canceled},
		{"as the second attempt dials, idempotent", idempotent, 2, []tripper{statusTrip(503, ""), hangTrip}, gateway.OutcomeUnknown, true, context.Canceled},
		{"as the second attempt is sent, idempotent", idempotent, 2, []tripper{statusTrip(503, ""), statusTrip(201, enveloped(invoiceJSON))}, gateway.OutcomeSucceeded, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				made := 0
				transport := tripper(func(req *http.Request) (*http.Response, error) {
					if made++; made > len(tt.attempts) {
						return nil, errors.New("another attempt")
					}
					if text := bufio.NewReader(req.Body); made == tt.cancels {
						if tt.want != gateway.OutcomeNotSent && tt.is != context.Canceled {
							_, err := text.Peek(1)
							assert.NoError(t, err)
						}
						cancel()
					}
					return tt.attempts[made-1](req)
				})
				watch := gateway.Observer{Attempt: func(context.Context, gateway.Attempt) {
					if tt.cancels == whenReported {
						cancel()
					}
				}}
				c := newClient(t, "http://localhost", append(tt.opts, gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithObserver(watch))...)
				got, err := c.CreateInvoice(ctx, order("A-17"))
				assertInvariants(t, got, err)
				assert.Len(t, tt.attempts, made)
				assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
				assert.Equal(t, tt.safe, gateway.SafeToRetry(err), "%v", err)
				cause := err
				if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
					cause = unknown.Cause
				}
				if tt.is != nil {
					assert.ErrorIs(t, cause, tt.is)
				}
				assert.Equal(t, tt.is == context.Canceled, errors.Is(cause, context.Canceled), "%v", err)
			})
		})
	}
}

// A deadline is obeyed before the lease ends, also after the context was cancelled.
func TestClient_CreateInvoice_leaseOutlastsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &recordingGuard{lease: gateway.Lease{Expires: time.Now().Add(10 * time.Second)}}
		ctx, stop := context.WithTimeout(t.Context(), 9*time.Second)
		defer stop()
		begun := time.Now()
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), through(func(req *http.Request) (*http.Response, error) {
			stop()
			return hangTrip(req)
		}))
		_, err := c.CreateInvoice(ctx, order("A-17"))
		assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
		assert.Equal(t, 9*time.Second, time.Since(begun))
		require.Len(t, n.ended, 1)
		assert.Equal(t, "create_invoice: wait: context deadline exceeded", n.ended[0].Cause)
		assert.Equal(t, []error{nil}, n.state, "the context of End has not ended")
	})
}

// A buyer who closes the page, or a sibling that fails, leaves no unknown order.
func TestClient_CreateInvoice_callerLeaves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		call func(t *testing.T, sent <-chan struct{}, create func(context.Context) error) error
	}{
		{"a buyer closes the page", func(t *testing.T, sent <-chan struct{}, create func(context.Context) error) error {
			result := make(chan error)
			shop := serve(t, func(_ http.ResponseWriter, r *http.Request) { result <- create(r.Context()) })
			ctx, leave := context.WithCancel(t.Context())
			go func() { <-sent; leave() }()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, shop.URL, nil)
			require.NoError(t, err)
			go func() {
				resp, err := http.DefaultClient.Do(req)
				if err == nil {
					_ = resp.Body.Close()
				}
			}()
			return <-result
		}},
		{"a sibling fails", func(t *testing.T, sent <-chan struct{}, create func(context.Context) error) error {
			group, end := context.WithCancelCause(t.Context()) // as an errgroup does
			go func() { <-sent; end(errors.New("no email could be sent")) }()
			return create(group)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sent, left := make(chan struct{}), make(chan struct{})
			service := serve(t, func(w http.ResponseWriter, r *http.Request) {
				close(sent)
				<-left
				respond(201, enveloped(invoiceJSON))(w, r)
			})
			c := newClient(t, service.URL)
			t.Cleanup(c.CloseIdleConnections)
			require.NoError(t, tt.call(t, sent, func(ctx context.Context) error {
				context.AfterFunc(ctx, func() { close(left) })
				_, err := c.CreateInvoice(ctx, order("A-17"))
				assert.ErrorIs(t, ctx.Err(), context.Canceled)
				return err
			}))
			again, err := c.CreateInvoice(t.Context(), order("A-17"))
			require.NoError(t, err)
			assert.True(t, again.Replayed)
			assert.Len(t, service.Requests(), 1)
		})
	}
}
