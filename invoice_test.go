package gateway_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/pricing"
)

// With 200 an invoice was created by the message of a success, and by no other. Its result is undocumented: it is returned
// byte for byte, and not interpreted.
// I-40, I-124
func TestClient_CreateInvoice_result(t *testing.T) {
	t.Parallel()
	const documented, done = "Operation was successful.", "Order exists"
	for _, result := range []string{
		`{ "b" : 1.50 , "a":"\u00e9\/" , "c":[ ] }`, `[{"id":"inv-1"}]`, `"https://pay.example"`, `10.500000000000000000001`, `true`, `{}`, `[]`,
		strings.Repeat("[", 100) + strings.Repeat("]", 100), `{"a":"` + strings.Repeat("x", 10_000) + `"}`,
	} {
		for _, call := range []struct {
			message string
			opts    []gateway.Option
			want    gateway.Outcome
		}{
			{documented, nil, succeeded},
			{done, nil, unknown},
			{done, []gateway.Option{gateway.WithSuccessMessage(done)}, succeeded},
			{documented, []gateway.Option{gateway.WithSuccessMessage(done)}, succeeded},
		} {
			body := `{"message":"` + call.message + `","result":` + result + `,"meta":{}}`
			got, err := invoiceCall(t.Context(), cannedClient(t, 200, body, call.opts...))
			assertInvariants(t, got, err)
			require.Equal(t, call.want, gateway.OutcomeOf(err), "%s: %v", call.message, err)
			if err == nil {
				assert.Equal(t, result, string(got.(*gateway.Invoice).Raw))
				assert.Equal(t, "A-17", got.(*gateway.Invoice).OrderID)
			}
		}
	}
}

// I-125
func TestInvoice_Text(t *testing.T) {
	t.Parallel()
	const whole = `{"invoiceId":"inv-1","total":10.50,"paid":false,"note":null,"empty":"","esc":"a\u00e9\n",` +
		`"deep":{"address":"deep","id":"low","list":[{"memo":"m-1","id":"lower"},{"memo":"m-2"}]},` +
		`"payment":{"address":"other","id":"low","memo":7},"payer":{"phone":"1"},"payee":{"phone":"2","id":"low"},"id":{"id":"low"}}`
	nines := strings.Repeat("9", 100)
	for _, tt := range []struct {
		name, result string
		names        []string
		want         string // "" if none is found
	}{
		{"at the top", whole, []string{"invoiceId"}, "inv-1"},
		{"the first of the names that is there", whole, []string{"nope", "invoiceId", "address"}, "inv-1"},
		{"the first of the names, not the nearest", whole, []string{"total", "invoiceId"}, "10.50"},
		{"in a record, nearer than one in an array", whole, []string{"memo"}, "7"},
		{"two that are equally near, and equal", whole, []string{"id"}, "low"},
		{"two that are equally near, and differ", whole, []string{"address"}, ""},
		{"the same of another name, which is not asked", whole, []string{"phone", "invoiceId"}, ""},
		{"escapes are resolved", whole, []string{"esc"}, "aé\n"},
		{"a name in escapes", `{"\u0069d":"inv-1"}`, []string{"id"}, "inv-1"},
		{"a boolean is no text", whole, []string{"paid"}, ""},
		{"null is no text", whole, []string{"note"}, ""},
		{"a record is no text", whole, []string{"deep"}, ""},
		{"an array is no text", whole, []string{"list"}, ""},
		{"another case is another name", whole, []string{"InvoiceID", "INVOICEID"}, ""},
		{"a name that is not there", whole, []string{"nope"}, ""},
		{"an empty name", whole, []string{""}, ""},
		{"no names", whole, nil, ""},

		{"a number, by its digits", whole, []string{"total"}, "10.50"},
		{"a number beyond every integer", `{"n":123456789012345678901234567890}`, []string{"n"}, "123456789012345678901234567890"},
		{"a number without its exponent", `{"n":1.0e-8}`, []string{"n"}, "0.00000001"},
		{"a number without a positive exponent", `{"n":-1.50E+3}`, []string{"n"}, "-1500"},
		{"a number of 128 bytes without its exponent", `{"n":` + nines[:64] + `e64}`, []string{"n"}, nines[:64] + strings.Repeat("0", 64)},
		{"a longer number without its exponent", `{"n":` + nines + `e64,"id":"x"}`, []string{"n", "id"}, ""},
		{"a number with an exponent beyond 64", `{"n":1e-65}`, []string{"n"}, ""},
		{"the same number with an exponent and without", `[{"n":1e1},{"n":10}]`, []string{"n"}, "10"},

		{"an array of arrays", `[[],[{"id":"inv-1"}]]`, []string{"id"}, "inv-1"},
		{"a text", `"id"`, []string{"id"}, ""},
		{"no result", ``, []string{"id"}, ""},

		{"a name that is there twice", `{"a":"x","b":{"a":"y"},"a":"z"}`, []string{"a"}, ""},
		{"half a character", `{"a":"\ud800","b":"x"}`, []string{"a", "b"}, ""},
		{"a character that the service has lost", `{"a":"T\ufffd"}`, []string{"a"}, ""},
		{"half a character elsewhere", `{"a":"\ud800","b":"x"}`, []string{"b"}, "x"},
		{"a text that does not end", `{"a":"x`, []string{"a"}, ""},
	} {
		got, found := (&gateway.Invoice{Raw: []byte(tt.result)}).Text(tt.names...)
		assert.Equal(t, tt.want, got, tt.name)
		assert.Equal(t, tt.want != "", found, tt.name)
	}
}

// However deep and however often a name is there, a member is looked at once.
func TestInvoice_Text_deep(t *testing.T) {
	t.Parallel()
	const depth, width = 9_000, 40_000
	deep := strings.Repeat(`{"a":`, depth) + `{"n":"x","list":[` + strings.Repeat(`{"address":"y"},`, width) + `{}]}` + strings.Repeat("}", depth)
	invoice := &gateway.Invoice{Raw: []byte(deep)}
	got, found := invoice.Text("none", "address")
	assert.Equal(t, []any{"y", true}, []any{got, found})
	got, _ = invoice.Text("n")
	assert.Equal(t, "x", got)
}

// I-124
func TestInvoice_Decode(t *testing.T) {
	t.Parallel()
	type result struct {
		InvoiceID string `json:"invoiceId"`
	}
	for _, tt := range []struct {
		name, result string
		into, want   any // want is nil for an error
	}{
		{"into the caller's struct", `{"invoiceId":"inv-1","more":1}`, &result{}, &result{"inv-1"}},
		{"names match exactly", `{"INVOICEID":"inv-1"}`, &result{}, &result{}},
		{"of another type", `{"invoiceId":1}`, &result{}, nil},
		{"into nil", invoiceJSON, nil, nil},
		{"of nothing", "", &result{}, nil},
	} {
		err := (&gateway.Invoice{OrderID: "A-17", Raw: []byte(tt.result)}).Decode(tt.into)
		if tt.want == nil {
			assert.ErrorContains(t, err, `gateway: invoice for order "A-17": `, tt.name)
			assert.NotContains(t, err.Error(), "\n")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, tt.want, tt.into, tt.name)
	}
}

// Packages endpoint and money test all rules of texts and amounts.
// I-110, I-111, I-112, I-117, I-120, I-121
func TestClient_CreateInvoice_refuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("o", 1025)
	for _, tt := range []struct {
		name             string
		set              func(*gateway.InvoiceRequest)
		argument, reason string
	}{
		{"no order", func(r *gateway.InvoiceRequest) { r.OrderID = "" }, "orderId", "is required"},
		{"a line end in an order", func(r *gateway.InvoiceRequest) { r.OrderID = "a\nb" }, "orderId", "control characters"},
		{"a soft hyphen in an order", func(r *gateway.InvoiceRequest) { r.OrderID = "A-\u00ad17" }, "orderId", "invisible characters"},
		{"1,025 bytes of order", func(r *gateway.InvoiceRequest) { r.OrderID = long }, "orderId", "is longer than 1024 bytes"},
		{"a currency with a space", func(r *gateway.InvoiceRequest) { r.BaseCurrency = "US D" }, "baseCurrency", "must not contain spaces"},
		{"a currency of 65 bytes", func(r *gateway.InvoiceRequest) { r.BaseCurrency = long[:65] }, "baseCurrency", "is longer than 64 bytes"},
		{"an encoded surrogate in a coin", func(r *gateway.InvoiceRequest) { r.CoinSymbol = "\xed\xa0\x80" }, "coinSymbol", "not valid UTF-8"},
		{"1,025 bytes of coin", func(r *gateway.InvoiceRequest) { r.CoinSymbol = long }, "coinSymbol", "is longer than 1024 bytes"},
		{"a NUL in a network", func(r *gateway.InvoiceRequest) { r.NetworkName = "a\x00b" }, "networkName", "control characters"},
		{"1,025 bytes of network", func(r *gateway.InvoiceRequest) { r.NetworkName = long }, "networkName", "is longer than 1024 bytes"},
		{"no price", noPrice, "price", "is required"},
		{"no amount", func(r *gateway.InvoiceRequest) { r.Amount = decimal.Decimal{} }, "amount", "is required"},
		{"a price from a float", func(r *gateway.InvoiceRequest) { r.Price = decimal.RequireFromString("0.30000000000000004") }, "price", "as a float has"},
		{"a price below zero", func(r *gateway.InvoiceRequest) { r.Price = decimal.NewFromInt(-5) }, "price", "must be greater than zero"},
		{"an amount of 1e1000000000", func(r *gateway.InvoiceRequest) { r.Amount = decimal.New(1, 1e9) }, "amount", "more than 64 digits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			request := order("A-17")
			tt.set(&request)
			_, err := newClient(t, "http://localhost", neverSends()).CreateInvoice(t.Context(), request)
			assertRefused(t, err, "create_invoice", tt.argument, tt.reason)
			assert.Equal(t, err, request.Validate(), "a program that sends the order later learns it before")
		})
	}
	assert.NoError(t, order("A-17").Validate())
}

// The body of an invoice: every member is sent as it is given, the optional ones only when they are set, and no text is
// more than a JSON string.
// I-7, I-33, I-110, I-114, I-115, I-116, I-117, I-118, I-119, I-121
func TestClient_CreateInvoice_body(t *testing.T) {
	t.Parallel()
	full := order("A-17")
	full.BaseCurrency, full.CoinSymbol, full.NetworkName = "usd", "USDT", "Tron (TRC20)"
	inCurrency, ofCoin, onNetwork := order("A-17"), order("A-17"), order("A-17")
	inCurrency.BaseCurrency, ofCoin.CoinSymbol, onNetwork.NetworkName = "XYZ", "usdt", "Tron"
	long := strings.Repeat("o", 1024)
	for _, tt := range []struct {
		name        string
		request     gateway.InvoiceRequest
		want, table string // in the sample's spelling, and in the table's if that is not ""
	}{
		{"no optional member", order("A-17"), sampleBody, tableBody},
		{"every member", full, fullBody, fullTable},
		{"an unknown currency", inCurrency, sampleOf(`"A-17","baseCurrency":"XYZ"`), ""},
		{"the coin", ofCoin, sampleOf(`"A-17","coinSymbol":"usdt"`), ""},
		{"the network", onNetwork, sampleOf(`"A-17","networkName":"Tron"`), ""},
		{"an order that looks like a number", order("000e5"), sampleOf(`"000e5"`), ""},
		{"an order with markup, which is not escaped", order("<a&b>"), sampleOf(`"<a&b>"`), ""},
		{"an order that tries to be two members", order(`x\","price":"1`), sampleOf(`"x\\\",\"price\":\"1"`), ""},
		{"letters beyond ASCII", order("é  世🙂"), sampleOf(`"é  世🙂"`), ""},
		{"an order of 1,024 bytes", order(long), sampleOf(`"` + long + `"`), ""},
	} {
		assert.Equal(t, tt.want, postedBody(t, tt.request), tt.name)
		if tt.table != "" {
			assert.Equal(t, tt.table, postedBody(t, tt.request, gateway.WithInvoiceFormat(gateway.InvoiceFormat{LowerCaseKeyName: true, Numbers: true})), tt.name)
		}
	}
	for format, want := range map[gateway.InvoiceFormat]string{
		{LowerCaseKeyName: true}: strings.Replace(sampleBody, "apiKey", "apikey", 1),
		{Numbers: true}:          strings.Replace(tableBody, "apikey", "apiKey", 1),
	} {
		assert.Equal(t, want, postedBody(t, order("A-17"), gateway.WithInvoiceFormat(format)))
	}
	w := serve(t, respond(200, enveloped(invoiceJSON)))
	c, err := gateway.New(w.URL, `k"e\y,"price":"0`)
	require.NoError(t, err)
	_, err = invoiceCall(t.Context(), c)
	require.NoError(t, err)
	const want = `{"apiKey":"k\"e\\y,\"price\":\"0","price":"10.50","orderId":"A-17","amount":"10.4895"}`
	assert.Equal(t, want, only(t, w).Body, "a key is a JSON string, whatever is in it")
}

// sampleOf is the body of an invoice with this text in the place of the order and of optional members.
func sampleOf(text string) string {
	return `{"apiKey":"` + canary + `","price":"10.50","orderId":` + text + `,"amount":"10.4895"}`
}

// postedBody returns the body that the client posts for a request.
func postedBody(t testing.TB, request gateway.InvoiceRequest, opts ...gateway.Option) (body string) {
	t.Helper()
	_, err := newClient(t, "http://localhost", append(opts, over(func(req *http.Request) (*http.Response, error) {
		text, err := io.ReadAll(req.Body)
		body = string(text)
		return reply(200, enveloped(invoiceJSON)), err
	}))...).CreateInvoice(t.Context(), request)
	require.NoError(t, err)
	return body
}

// A caller gets an APIError if a response refuses the invoice for certain, and an OutcomeUnknownError if an invoice may
// exist. A second call gets the same invoice after a success, sends after a refusal, and sends nothing after anything else. [TestClient_CreateInvoice_answers] has the responses of gateways and frameworks, and
// [TestClient_EveryStatus] has the other statuses.
// I-128, I-129, I-170, I-173
func TestClient_CreateInvoice_proof(t *testing.T) {
	t.Parallel()
	documented, much := enveloped(invoiceJSON), `{"x":"`+strings.Repeat("x", 9<<10)+`",`
	late := `{"x":"` + strings.Repeat("x", 900<<10) + `",` + refused("No.")[1:]
	type on = []int
	for _, tt := range []struct {
		name    string
		on      []int
		body    string
		want    gateway.Outcome
		message string // of a refusal, or of the error in a response of 2xx
	}{
		{"the documented success", on{200, 201}, documented, succeeded, ""},
		{"the documented success, accepted for later", on{202}, documented, unknown, ""},
		{"another message and a record", on{201}, `{"message":"Invoice created.","result":{"id":"inv-1"}}`, succeeded, ""},
		{"data and no result", on{201}, `{"message":"Invoice created.","data":{"id":"inv-1"}}`, unknown, "Invoice created."},
		{"an error envelope with success", on{200, 201}, refused("Coin is not supported"), unknown, "Coin is not supported"},
		{"messages of an error with success", on{201}, `{"message":["price must be positive"],"error":"Bad Request"}`, unknown, "price must be positive"},
		{"an error in the record", on{201}, `{"message":"No.","result":{"error":"Bad Request"}}`, unknown, "No."},
		{"another message and zero", on{200}, `{"message":"Order exists","result":0}`, unknown, "Order exists"},
		{"another message and false", on{200}, `{"message":"Order exists","result":false}`, unknown, "Order exists"},
		{"no body", on{200, 201}, "", unknown, ""},
		{"a page with success", on{200, 201}, page, unknown, ""},
		{"half a body", on{200}, `{"message":"Operation was successful.","result":{"inv`, unknown, ""},
		{"a redirect", on{302}, "", unknown, ""},
		{"a conflict", on{409}, refused("Order exists"), unknown, ""},
		{"a refusal of the request", on{400, 422}, refused("orderId must be unique"), rejected, "orderId must be unique"},
		{"a page", on{404}, page, rejected, ""},
		{"a page that anybody may have sent", on{400, 403, 422}, page, unknown, ""},
		{"nothing, as too much was asked", on{429}, "", rejected, ""},
		{"a refusal after 9 KiB", on{400}, much + refused("No.")[1:], rejected, "No."},
		{"a refusal after 900 KiB", on{400}, late, rejected, "No."},
		{"a refusal, and more than is read", on{401, 422}, refused("No.") + strings.Repeat(" ", 1<<20), unknown, ""},
		{"1,000 texts of JSON", on{401}, `["{}"` + strings.Repeat(`,"{}"`, 999) + "]", rejected, ""},
		{"more texts of JSON than are read", on{401}, `["{}"` + strings.Repeat(`,"{}"`, 1000) + "]", unknown, ""},
		{"a long text that is not JSON", on{401, 404, 405}, strings.Repeat(page, 1<<20/len(page)+1), rejected, ""},
		{"the documented success with a refusal", on{400, 404, 422, 429}, documented, unknown, ""},
		{"the documented success after 9 KiB", on{400}, much + documented[1:], unknown, ""},
		{"the documented success in a text, after 900 KiB", on{401}, strings.Repeat(page, 900<<10/len(page)) + documented, unknown, ""},
	} {
		for _, status := range tt.on {
			proves(t, tt.name, status, tt.body, tt.want, tt.message)
		}
	}
	for name, refusal := range map[string]struct{ body, message string }{ // in a usual form, whatever the words
		"the envelope":                        {refused("No."), "No."},
		"the envelope with details":           {`{"message":"Invalid.","result":{"coinSymbol":["is not supported"]},"meta":{}}`, "Invalid."},
		"the envelope without a result":       {`{"message":"No.","meta":{}}`, "No."},
		"the envelope with null":              {`{"message":"No.","result":null,"meta":{}}`, "No."},
		"NestJS":                              {`{"statusCode":400,"message":"No.","error":"Bad Request"}`, "No."},
		"NestJS with a list":                  {`{"message":["a","b"]}`, "a; b"},
		"problem+json":                        {`{"type":"about:blank","title":"Bad Request","status":400,"detail":"No."}`, "No."},
		"problem+json with a title alone":     {`{"title":"Bad Request","status":400}`, "Bad Request"},
		"Spring":                              {`{"status":400,"error":"Bad Request","path":"/api/invoice/create"}`, "Bad Request"},
		"FastAPI repeats the request":         {`{"detail":[{"loc":["price"],"msg":"Required","input":{"id":"A-17"}}]}`, "price; Required"},
		"Django lists errors by field":        {`{"price":["No number."],"non_field_errors":["Try again."]}`, "No number.; Try again."},
		"ASP.NET, in upper case":              {`{"Message":"No.","ModelState":{"price":["b"]}}`, "No."},
		"class-validator repeats the request": {`{"message":[{"target":{"id":"A-17"},"property":"a","constraints":{"b":"c"}}]}`, "a; c"},
		"Spring repeats the value":            {`{"errors":[{"field":"a","rejectedValue":"A-17","defaultMessage":"short"}]}`, "a; short"},
		"Express nests the message":           {`{"error":{"code":"E1","message":"No."}}`, "E1; No."},
		"JSON-RPC has a code and details":     {`{"error":{"code":-32602,"message":"a","data":"b"}}`, "a; b"},
		"errors alone":                        {`{"errors":[{"title":"No."}]}`, "No."},
		"a list of objects":                   {`[{"field":"price","message":"a"},{"field":"amount","msg":"b"}]`, "a; b"},
		"a record with the message":           {`{"status":400,"fault":{"faultstring":"x","detail":"No."},"other":{"msg":"c"}}`, "No."},
		"a msg":                               {`{"msg":"No."}`, "No."},
		"a reason":                            {`{"reason":"No."}`, "No."},
		"a desc":                              {`{"desc":"No."}`, "No."},
		"a description":                       {`{"description":"No."}`, "No."},
		"an errorMessage":                     {`{"errorMessage":"No."}`, "No."},
		"an error_message":                    {`{"error_message":"No."}`, "No."},
		"an errorMessage before a code":       {`{"errorMessage":"No.","errorCode":"E12"}`, "No."},
		"a code before an errorMessage":       {`{"errorCode":"E12","errorMessage":"No."}`, "No."},
		"errors before a code":                {`{"errors":["No."],"error_code":"E12"}`, "No."},
		"another name before a number":        {`{"errMsg":"No.","errorCode":12}`, "No."},
		"another name behind a boolean":       {`{"isError":true,"apiMessage":"No."}`, "No."},
		"the request, which is repeated":      {`{"message":"No.","request":{"orderId":"A-17"}}`, "No."},
		"a code of its own, without data":     {`{"code":1001,"message":"No.","data":null}`, "No."},
		"no success and no data":              {`{"success":false,"data":false,"message":"No.","result":{}}`, "No."},
		"a status in words":                   {`{"status":"CONFLICT","message":"No."}`, "No."},
	} {
		proves(t, name, 400, refusal.body, rejected, refusal.message)
	}
}

// proves runs a test of the outcome of two calls for an order that get a response.
func proves(t *testing.T, name string, status int, body string, want gateway.Outcome, message string) {
	t.Helper()
	t.Run(fmt.Sprintf("%d: %s", status, name), func(t *testing.T) {
		t.Parallel()
		sent := 0
		c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
			sent++
			return reply(status, body), nil
		}))
		for call := range 2 {
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			require.Equal(t, want, gateway.OutcomeOf(err), "call %d: %v", call, err)
			assert.Equal(t, want == rejected && status == 429, gateway.SafeToRetry(err))
			if want == succeeded {
				assert.Equal(t, call == 1, got.Replayed)
				continue
			}
			refusal, isRefusal := errors.AsType[*gateway.APIError](err)
			require.Equal(t, want == rejected, isRefusal, "%v", err)
			assert.Equal(t, status == 409, errors.Is(err, gateway.ErrConflict))
			if isRefusal {
				assert.True(t, message == "" || message == refusal.Message, refusal.Message)
				continue
			}
			lost, _ := errors.AsType[*gateway.OutcomeUnknownError](err)
			assert.Equal(t, []any{"A-17", status, call == 1}, []any{lost.OrderID, lost.StatusCode, lost.Replayed})
			assert.Equal(t, body[:min(len(body), 8<<10)], string(lost.Body))
			if status < 300 && call == 0 {
				assert.Equal(t, message, cmp.Or(lost.Response, &gateway.APIError{}).Message)
				assert.Equal(t, message != "", lost.Response != nil, "it is an error of the service")
			}
		}
		sends := map[bool]int{true: 2, false: 1}[want == rejected]
		assert.Equal(t, sends, sent, "the second call sends after a refusal only")
	})
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

// The details of an invoice are there on each call. An invoice that is proved otherwise, and that the decoder cannot read,
// is no error of the call.
// I-173
func TestWithInvoiceDecoder(t *testing.T) {
	t.Parallel()
	type details = gateway.InvoiceDetails
	whole := details{
		ID: "inv-1", Address: "r9", Tag: "42", PaymentURL: "/1",
		Amount: decimal.RequireFromString("0.00012"), ExpiresAt: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC),
	}
	const fields = `{"id":"inv-1","address":"r9","tag":"42","url":"/1","amount":"0.00012","expiresAt":"2026-11-25T12:00:00Z"}`
	const failed = "the function of WithInvoiceDecoder: no invoice, but [REDACTED]"
	failing := func(json.RawMessage) (details, error) { return whole, errors.New("no invoice, but " + canary) }
	huge := func(json.RawMessage) (details, error) { return details{ID: "inv-1", Amount: decimal.New(1, 1000)}, nil }
	none := func(json.RawMessage) (details, error) { return details{}, nil }
	for _, tt := range []struct {
		name, body, raw string
		decode          func(json.RawMessage) (details, error)
		want            *details
		wrong           string
	}{
		{"a result", enveloped(fields), fields, decodeInvoice, &whole, ""},
		{"a body without an envelope", fields, fields, decodeInvoice, &whole, ""},
		{"another message", `{"message":"OK","result":` + fields + `}`, fields, decodeInvoice, &whole, ""},
		{"an address alone", enveloped(`{"address":"r9"}`), `{"address":"r9"}`, decodeInvoice, &details{Address: "r9"}, ""},
		{"a page to pay on alone", enveloped(`{"url":"/1"}`), `{"url":"/1"}`, decodeInvoice, &details{PaymentURL: "/1"}, ""},
		{"no decoder", enveloped(fields), fields, nil, nil, ""},
		{"an error", enveloped(fields), fields, failing, nil, failed},
		{"nothing that identifies an invoice", enveloped(fields), fields, none, nil, "it returned no ID, Address or PaymentURL"},
		{"no amount of money", enveloped(fields), fields, huge, nil, "the amount is not an amount of money"},
		{"half a character in the address", enveloped(`{"address":"r\ud83d"}`), `{"address":"r\ufffd"}`, decodeInvoice, nil, "is not Unicode"},
		{"half a character elsewhere", enveloped(`{"address":"r9","b":"\ud83d"}`), `{"address":"r9","b":"\ufffd"}`, decodeInvoice, &details{Address: "r9"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			opts := []gateway.Option{over(statusTrip(200, tt.body))}
			if tt.decode != nil {
				opts = append(opts, gateway.WithInvoiceDecoder(func(body json.RawMessage) (details, error) {
					defer clear(body) // the caller still gets what came
					return tt.decode(body)
				}))
			}
			c := newClient(t, "http://localhost", opts...)
			for _, replayed := range []bool{false, true} {
				got, err := c.CreateInvoice(t.Context(), order("A-17"))
				require.NoError(t, err)
				assert.Equal(t, []any{replayed, tt.want, tt.raw}, []any{got.Replayed, got.Details, string(got.Raw)})
				assert.NoError(t, got.GuardErr)
				if tt.wrong == "" {
					assert.NoError(t, got.DetailsErr)
					continue
				}
				assert.ErrorContains(t, got.DetailsErr, tt.wrong)
				assertNoKey(t, got.DetailsErr)
			}
			other := order("A-17")
			otherPrice(&other)
			_, err := c.CreateInvoice(t.Context(), other)
			assert.Equal(t, tt.want, as[*gateway.OrderConflictError](t, err).Invoice.Details, "a conflict has the details too")
		})
	}
	_, err := cannedClient(t, 200, fields, gateway.WithInvoiceDecoder(failing)).CreateInvoice(t.Context(), order("A-17"))
	assert.Equal(t, unknown, gateway.OutcomeOf(err), "nothing else proves the invoice")
	assert.ErrorContains(t, err, failed)
}

// Amounts are sent with the digits that they have. The switches of the decimal package are the whole program's, and none
// of them changes a request or a result. Package money tests all amounts. Not parallel: nothing else may run while the
// switches are changed.
// I-113, I-120
func TestDecimalSwitches(t *testing.T) {
	request, amounts := order("A-17"), map[string]decimal.Decimal{"1" + strings.Repeat("0", 63): decimal.New(1, 63)}
	for _, digits := range []string{
		"1.000000000000000000", "0." + strings.Repeat("0", 29) + "1", "0.100000000000000005551115123125", // no float64
		strings.Repeat("9", 34) + "." + strings.Repeat("9", 30),
	} {
		amounts[digits] = decimal.RequireFromString(digits)
	}
	price := decimal.RequireFromString("0.1000000000")
	assertAmounts := func() {
		for want, amount := range amounts {
			request.Price, request.Amount = price, amount
			assert.Equal(t, `{"apiKey":"`+canary+`","price":"0.1000000000","orderId":"A-17","amount":"`+want+`"}`, postedBody(t, request))
			assert.Equal(t, `{"apikey":"`+canary+`","price":0.1000000000,"orderId":"A-17","amount":`+want+`}`,
				postedBody(t, request, gateway.WithInvoiceFormat(gateway.InvoiceFormat{LowerCaseKeyName: true, Numbers: true})))
		}
		listed := enveloped(`[{"coin":"USDT","balance":"1.50"},{"coin":"USDT","balance":1e-7}]`)
		balance, err := cannedClient(t, 200, listed).Balance(t.Context(), gateway.BalanceQuery{})
		require.NoError(t, err)
		assertDecimal(t, 150, -2, balance.Amounts[0].Amount)
		assertDecimal(t, 1, -7, balance.Amounts[1].Amount)
		rates := gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "BTC", USD: decimal.NewNullDecimal(decimal.NewFromInt(3))}}}
		coins, err := pricing.ToCoin(&rates, decimal.NewFromInt(1), "usd", &gateway.CoinNetwork{Coin: gateway.Coin{Symbol: "BTC", Precision: 4}})
		require.NoError(t, err)
		assertDecimal(t, 3334, -4, coins)
	}
	assertAmounts()
	scientific, unquoted, trimmed := decimal.UseScientificNotation, decimal.MarshalJSONWithoutQuotes, decimal.TrimTrailingZeros
	exponent, precision := decimal.MaxDecodeExponent, decimal.DivisionPrecision
	defer func() {
		decimal.UseScientificNotation, decimal.MarshalJSONWithoutQuotes, decimal.TrimTrailingZeros = scientific, unquoted, trimmed
		decimal.MaxDecodeExponent, decimal.DivisionPrecision = exponent, precision
	}()
	decimal.UseScientificNotation, decimal.MarshalJSONWithoutQuotes = true, true
	decimal.MaxDecodeExponent, decimal.DivisionPrecision = 1, 0
	for _, decimal.TrimTrailingZeros = range []bool{true, false} {
		assertAmounts()
	}
}

// assertDecimal compares a coefficient and an exponent, so that 1.50 is not
// 1.5, without the methods that the switches of the package change.
func assertDecimal(t testing.TB, value int64, exponent int32, got decimal.Decimal) {
	t.Helper()
	assert.Equal(t, value, got.CoefficientInt64(), "the coefficient")
	assert.Equal(t, exponent, got.Exponent(), "the exponent")
}

// A cancelled call makes no other attempt, also where the service returns the existing invoice.
func TestClient_CreateInvoice_cancelledOnce(t *testing.T) {
	t.Parallel()
	const whenReported = 0 // the attempt after whose report the context is cancelled, if it is not cancelled in one
	idempotent := []gateway.Option{gateway.WithIdempotentOrders()}
	busy, cut := statusTrip(503, ""), readThen(io.ErrUnexpectedEOF)
	for _, tt := range []struct {
		name    string
		opts    []gateway.Option
		cancels int // the attempt in which the context is cancelled, or whenReported
		trips   trips
		want    gateway.Outcome
		safe    bool
		is      error // of the cause; nil for none
	}{
		{"the service then says 503", nil, 1, trips{busy}, unknown, false, nil},
		{"the service then says 503, idempotent", idempotent, 1, trips{busy}, unknown, true, nil},
		{"the connection is then cut", nil, 1, trips{cut}, unknown, false, io.ErrUnexpectedEOF},
		{"the connection is then cut, idempotent", idempotent, 1, trips{cut}, unknown, true, io.ErrUnexpectedEOF},
		{"the service then redirects, idempotent", idempotent, 1, trips{statusTrip(302, "")}, unknown, false, gateway.ErrRedirect},
		{"the service then says 429", nil, 1, trips{statusTrip(429, "")}, rejected, true, nil},
		{"the service then refuses it", nil, 1, trips{statusTrip(422, refused("No."))}, rejected, false, nil},
		{"it is then not read", nil, 1, trips{brokenConnect}, notSent, false, context.Canceled},
		{"before a second attempt", nil, whenReported, trips{brokenConnect}, notSent, false, context.Canceled},
		{"before a second attempt, idempotent", idempotent, whenReported, trips{busy}, unknown, true, context.Canceled},
		{"as the second attempt dials", nil, 2, trips{brokenConnect, hangTrip}, notSent, false, context.Canceled},
		{"as the second attempt dials, idempotent", idempotent, 2, trips{busy, hangTrip}, unknown, true, context.Canceled},
		{"as the second attempt is sent, idempotent", idempotent, 2, trips{busy, goodTrip}, succeeded, false, nil},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			made := 0
			watch := gateway.Observer{Attempt: func(context.Context, gateway.Attempt) {
				if tt.cancels == whenReported {
					cancel()
				}
			}}
			c := newClient(t, "http://localhost", append(tt.opts, gateway.WithObserver(watch), over(func(req *http.Request) (*http.Response, error) {
				if made++; made > len(tt.trips) {
					return nil, errors.New("another attempt")
				}
				if made == tt.cancels {
					if tt.is != context.Canceled {
						_, _ = req.Body.Read(make([]byte, 1))
					}
					cancel()
				}
				return tt.trips[made-1](req)
			}))...)
			got, err := c.CreateInvoice(ctx, order("A-17"))
			assertInvariants(t, got, err)
			assert.Len(t, tt.trips, made)
			assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
			assert.Equal(t, tt.safe, gateway.SafeToRetry(err), "%v", err)
			assert.Equal(t, tt.is == context.Canceled, errors.Is(causeOf(err), context.Canceled), "%v", err)
			assert.True(t, tt.is == nil || errors.Is(causeOf(err), tt.is), "%v", err)
		})
	}
}
