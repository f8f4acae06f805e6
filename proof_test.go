package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/measure"
)

// What the answers of gateways and frameworks prove, honest ones and others.
// I-128, I-173
func TestClient_CreateInvoice_answers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/answers.txt")
	require.NoError(t, err)
	outcomes := map[gateway.Outcome]string{succeeded: "S", rejected: "R", unknown: "U"}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", 6)
		require.Len(t, parts, 6, line)
		status, err := strconv.Atoi(parts[2])
		require.NoError(t, err)
		_, location, _ := strings.Cut(parts[4], "L:")
		opts := []gateway.Option{over(statusTrip(status, parts[5], "Location", location))}
		switch parts[4] {
		case "d":
			opts = append(opts, gateway.WithInvoiceDecoder(decodeAnswer))
		case "m", "s", "x":
			message := map[string]string{"m": "OK", "s": "success", "x": "Your invoice was created"}[parts[4]]
			opts = append(opts, gateway.WithSuccessMessage(message))
		}
		_, err = newClient(t, "http://localhost", opts...).CreateInvoice(t.Context(), order("A-17"))
		assert.Equal(t, parts[3], outcomes[gateway.OutcomeOf(err)], "%s %d: %s: %v", parts[0], status, parts[1], err)
	}
}

// What a member proves depends on its name, in any spelling.
// I-128, I-173
func TestClient_CreateInvoice_names(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string // with NAME
		want   gateway.Outcome
		names  string
	}{
		{400, `{"message":"No.","NAME":"x7"}`, unknown, `
			invoice_id paymentUuid pay-link payin_url checkoutUri hosted_url cashier-url depositAddress charge_id trackId txnHash
			prepay_id qrcode_url address wallet_address CryptoAddress job_id taskUUID`},
		{400, `{"message":"No.","data":{"NAME":"x7"}}`, unknown, `
			id uuid job_url any_link new-address x_hash order_number orderNo a-reference number ref invoiceCode payCode
			checkout_code depositTag wallet qr token`},
		{400, `{"message":"No.","NAME":"x7abcd"}`, unknown, `
			result data payload response invoice Payments order transaction charges checkout receipt deposit items newInvoice`},
		{400, `{"message":"No.","NAME":7}`, unknown, "invoice payment"},
		{400, `{"message":"No.","NAME":"new"}`, rejected, "invoice payment"},
		{401, "{\x00\"\x00NAME\x00\"\x00:\x009\x00}\x00", unknown, "invoiceId"},
		{400, `{"message":"No.","NAME":{"reference_url":"x7"}}`, unknown, `
			result results data payload response invoices payment orders transactions charge checkout receipt deposit address
			item invoice_draft my-payment`},
		{400, `{"message":"No.","NAME":"x7"}`, rejected, `
			id uuid url link request_id traceId fbtrace_id tracking_id correlationId log_id error_id debugId event-id activity_id
			operation_id conversationId session_id merchantId user_id accountId client_id coinId network_id currency_id
			assetId chain_id plan_id
			policyId limit_id quotaId project_id storeId job_url paymentMethod`},
		{400, `{"message":"No.","data":{"NAME":"x7"}}`, rejected, `
			doc_url docsUrl help_link supportUrl info_url callbackUrl webhook_id ipAddress email_address remoteAddress
			paid unpaid valid invalid is_valid void name`},
		{400, `{"message":"No.","NAME":{"id":"x7"}}`, rejected, "coin networks currencies Merchant users plans request"},
		{400, `{"message":"No.","a":{"id":"x7","NAME":"y"}}`, rejected, `
			title detail details description message msg reason source code fields loc field property constraints`},
		{400, `{"message":"No.","data":{"id":"x7","NAME":"y"}}`, rejected, "loc field property constraints"},
		{201, `{"message":"x","result":{"NAME":"x7"}}`, succeeded, `
			id uuid invoice_id paymentUuid pay-link payin_url checkoutUri hosted_url cashier-url depositAddress charge_id trackId
			txnHash prepay_id qrcode_url address wallet_address CryptoAddress`},
		{201, `{"message":"x","result":{"checkout":{"NAME":"x7"}}}`, succeeded, "url uri link href"},
		{201, `{"message":"x","result":{"address":"NAME"}}`, unknown, "null none undefined NaN n/a 0 00-00"},
		{201, `{"message":"x","result":{"NAME":{"address":"x7"}}}`, succeeded, `
			results data payload response invoices payment orders transactions charge checkout receipt deposit address item`},
		{201, `{"message":"x","result":{"NAME":"x7"}}`, unknown, "url link job_id wallet token coinId request_id result"},
		{201, `{"message":"x","result":{"id":"x7","NAME":"y"}}`, unknown, `
			title detail details description message msg reason source code fields loc field property constraints
			name symbol email`},
		{200, `{"message":"Operation was successful.","NAME":"x7","result":{"id":"7"}}`, unknown, `
			error errors errorCode error_message has_error isError`},
		{200, `{"message":"Operation was successful.","NAME":false,"result":{"id":"7"}}`, unknown, `
			success ok is_success status state type`},
		{201, `{"message":"x","result":{"id":"x7","status":"NAME"}}`, unknown, "failed rejected declined denied"},
		{201, `{"message":"x","result":{"address":"x7","NAME":404}}`, unknown, `
			status statusCode httpStatus http_status_code code`},
		{201, `{"message":"x","result":{"address":"x7","status":NAME}}`, unknown, "400 499 500 409"},
		{201, `{"message":"x","result":{"address":"x7","status":NAME}}`, succeeded, "200 399 600"},
		{201, `{"message":"x","error":"NAME","result":{"id":"x7"}}`, succeeded, "ok SUCCESS none null 0000"},
		{400, `{"message":"No.","NAME":true}`, unknown, `
			success ok isSuccess succeeded successful isSuccessful status state type created invoiceCreated`},
		{400, `{"NAME":false}`, rejected, "success ok isSuccess status"},
		{400, `{"NAME":"No."}`, rejected, `
			message messages errorMessage msg detail details description desc reason error errors err title apiMsg`},
		{400, `{"message":"No.","status":"NAME"}`, unknown, "true Yes OK SUCCESS succeeded successful created"},
		{400, `{"status":"NAME"}`, rejected, "false No ERROR fail failed failure"},
	} {
		for name := range strings.FieldsSeq(tt.names) {
			body := strings.Replace(tt.body, "NAME", name, 1)
			c := newClient(t, "http://localhost", over(statusTrip(tt.status, body)))
			_, err := c.CreateInvoice(t.Context(), order("A-17"))
			assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%d %s: %v", tt.status, body, err)
		}
	}
}

// A redirect of the same request to another base URL names that, and proves that there is no invoice, unless an earlier
// attempt may have created one.
func TestClient_CreateInvoice_redirected(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ location, remedy string }{
		{"https://Localhost:443/shop/api/invoice/create", ": set the base URL to https://localhost/shop"},
		{"//www.localhost/shop/api/invoice/create/", ": set the base URL to http://www.localhost/shop"},
		{"/shop/api/invoice/create/", ""},
	} {
		sent := 0
		trip := over(func(req *http.Request) (*http.Response, error) {
			sent++
			return statusTrip(308, "", "Location", tt.location)(req)
		})
		c := newClient(t, "http://localhost/shop", trip)
		for range 2 {
			_, err := c.CreateInvoice(t.Context(), order("A-17"))
			failure, ok := errors.AsType[*gateway.TransportError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, rejected, failure.Outcome)
			assert.False(t, gateway.SafeToRetry(err))
			assert.ErrorIs(t, err, gateway.ErrRedirect)
			assert.Regexp(t, `create/?`+regexp.QuoteMeta(tt.remedy)+`; last status 308$`, err.Error())
		}
		assert.Equal(t, 2, sent, "the order is free")
	}
	elsewhere := over(statusTrip(301, "", "Location", "https://localhost/shop/api/exchange-rate"))
	_, err := newClient(t, "http://localhost/shop", elsewhere).ExchangeRates(t.Context())
	assert.ErrorContains(t, err, ": set the base URL to https://localhost/shop")

	answers := []tripper{statusTrip(500, ""), statusTrip(307, "", "Location", "https://localhost/api/invoice/create")}
	trip := over(func(req *http.Request) (*http.Response, error) {
		answer := answers[0]
		answers = answers[1:]
		return answer(req)
	})
	c := newClient(t, "http://localhost", gateway.WithIdempotentOrders(), once(), trip)
	for range 2 {
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		assert.Equal(t, unknown, gateway.OutcomeOf(err))
	}
}

// Where a transport follows a redirect, the response answers another request, and proves nothing.
// I-10
func TestClient_CreateInvoice_followed(t *testing.T) {
	t.Parallel()
	for _, answer := range []tripper{
		statusTrip(404, ""), statusTrip(401, refused("No.")),
		statusTrip(200, enveloped("{}")),
	} {
		moved := tripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPost {
				return statusTrip(303, "", "Location", "https://pay.test/api/invoice/9")(req)
			}
			resp, err := answer(req)
			resp.Request = req
			return resp, err
		})
		follows := over(tripper((&http.Client{Transport: moved}).Do))
		_, err := newClient(t, "http://localhost", follows).CreateInvoice(t.Context(), order("A-17"))
		assert.Equal(t, unknown, gateway.OutcomeOf(err), "%v", err)
	}
}

// A success is drift if it lacks the documented message, or names another order.
func TestClient_CreateInvoice_drift(t *testing.T) {
	t.Parallel()
	success := func(result string) string { return `{"message":"Operation was successful.","result":` + result + `}` }
	at := func(pointer string, kind gateway.DriftKind) []gateway.Drift {
		return []gateway.Drift{{Operation: gateway.OpCreateInvoice, Pointer: pointer, Kind: kind}}
	}
	for body, want := range map[string][]gateway.Drift{
		`{"message":"Created","result":{"invoiceId":"i"},"meta":{}}`: at("/message", gateway.DriftUnexpectedValue),
		`{"result":{"invoiceId":"i"},"meta":{}}`:                     at("", gateway.DriftUnexpectedValue),
		success(`{"orderId":"A-18"}`):                                at("/result/orderId", gateway.DriftMismatch),
		success(`[{"order_id":18}]`):                                 at("/result/0/order_id", gateway.DriftMismatch),
		success(`{"orderId":"A-17"}`):                                nil,
		success(`{"orderId":"A-17","order_id":"18"}`):                nil,
	} {
		var drift []gateway.Drift
		observer := gateway.Observer{Drift: func(_ context.Context, d gateway.Drift) { drift = append(drift, d) }}
		c := newClient(t, "http://localhost", over(statusTrip(201, body)), gateway.WithObserver(observer))
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err)
		for i := range drift {
			drift[i].Reason = ""
		}
		assert.Equal(t, want, drift, body)
	}
}

// The cost of reading an error is bounded by its length, whatever is nested in it. This test is not parallel, because it
// measures.
func TestClient_CreateInvoice_cost(t *testing.T) {
	nested := func(open, inner, end string) string {
		return strings.Repeat(open, 9_000) + inner + strings.Repeat(end, 9_000)
	}
	many := strings.Repeat(`"a",`, 90_000)
	for name, tt := range map[string]struct {
		status int
		body   string
	}{
		"texts at a great depth":              {400, `{"errors":` + nested("[", many+`"a"`, "]") + `}`},
		"the same beside a result":            {201, `{"result":{},"errors":` + nested("[", many+`"a"`, "]") + `}`},
		"errors in errors":                    {400, nested(`{"errors":`, `""`, "}")},
		"data in data":                        {400, nested(`{"a":"","data":`, `""`, "}")},
		"a key almost repeated, with escapes": {422, `{"message":"` + strings.Repeat(`\u0043`+canary[1:20], 40_000) + `"}`},
		"bad characters":                      {201, `{"message":"` + strings.Repeat("\xffa", 500_000) + `"}`},
	} {
		c := newClient(t, "http://localhost", over(statusTrip(tt.status, tt.body)))
		cost := measure.Allocated(func() {
			_, err := c.CreateInvoice(t.Context(), order("A-17"))
			assert.Error(t, err)
		})
		assert.Less(t, cost, uint64(40<<20), name)
	}
}

// decodeAnswer reads an id of any form, and an address.
func decodeAnswer(body json.RawMessage) (gateway.InvoiceDetails, error) {
	var answer struct {
		ID      any    `json:"id"`
		Address string `json:"address"`
	}
	err := json.Unmarshal(body, &answer)
	details := gateway.InvoiceDetails{Address: answer.Address}
	if answer.ID != nil {
		details.ID = fmt.Sprint(answer.ID)
	}
	return details, err
}
