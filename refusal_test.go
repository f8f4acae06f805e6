package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A refusal in a usual form proves that there is no invoice, whatever its words: I-170.
func TestRefusal(t *testing.T) {
	t.Parallel()
	const orderID = "A-17"
	rejected, unknown := gateway.OutcomeRejected, gateway.OutcomeUnknown
	for _, tt := range []struct {
		name, body string
		want       gateway.Outcome
		message    string
	}{
		{"NestJS", `{"statusCode":400,"message":"Unsupported coin","error":"Bad Request"}`, rejected, "Unsupported coin"},
		{"NestJS with a list", `{"statusCode":400,"message":["price must be positive","amount is required"],"error":"Bad Request"}`, rejected, "price must be positive; amount is required"},
		{"problem+json", `{"type":"about:blank","title":"Bad Request","status":400,"detail":"Unsupported coin"}`, rejected, "Unsupported coin"},
		{"problem+json with a title alone", `{"title":"Bad Request","status":400}`, rejected, "Bad Request"},
		{"Spring", `{"timestamp":"2026-11-25T02:31:52Z","status":400,"error":"Bad Request","path":"/api/invoice/create"}`, rejected, "Bad Request"},
		{"FastAPI, which repeats the request", `{"detail":[{"type":"missing","loc":["body","price"],"msg":"Field required","input":{"orderId":"A-17"}}]}`, rejected, "missing; body; price; Field required"},
		{"Django, with a list for each field", `{"price":["A valid number is required."],"non_field_errors":["Try again."]}`, rejected, "A valid number is required.; Try again."},
		{"ASP.NET, in upper case", `{"Message":"The request is invalid.","ModelState":{"price":["It is required."]}}`, rejected, "The request is invalid."},
		{"class-validator, which repeats the request", `{"message":[{"target":{"orderId":"A-17"},"property":"price","constraints":{"isPositive":"price must be positive"}}]}`, rejected, "price; price must be positive"},
		{"Spring, which repeats the value", `{"error":"Bad Request","errors":[{"field":"orderId","rejectedValue":"A-17","defaultMessage":"too short"}]}`, rejected, "Bad Request"},
		{"a coin that is not there", `{"msg":"Coin not exists"}`, rejected, "Coin not exists"},
		{"Express, with a message in an object", `{"error":{"code":"E1","message":"Unsupported coin"}}`, rejected, "E1; Unsupported coin"},
		{"Laravel", `{"message":"The given data was invalid.","errors":{"coinSymbol":["The selected coin is invalid."]}}`, rejected, "The given data was invalid."},
		{"errors alone", `{"errors":[{"title":"Unsupported coin"}]}`, rejected, "Unsupported coin"},
		{"the envelope without a result", `{"message":"Unsupported coin","meta":{}}`, rejected, "Unsupported coin"},
		{"the envelope with null", `{"message":"Unsupported coin","result":null,"meta":{}}`, rejected, "Unsupported coin"},
		{"the envelope", refused("Unsupported coin"), rejected, "Unsupported coin"},
		{"a coin that does not exist", refused("The coin does not exist."), rejected, "The coin does not exist."},
		{"a name that is taken", `{"message":"Invalid.","errors":{"orderId":["has been taken"]}}`, rejected, "Invalid."},
		{"a rule of the database", refused("orderId must be a unique string"), rejected, "orderId must be a unique string"},
		{"an order that exists, in Spanish", refused("El pedido ya fue creado"), rejected, "El pedido ya fue creado"},
		{"a code of words", `{"error":"ORDER_ID_IN_USE"}`, rejected, "ORDER_ID_IN_USE"},
		{"the order's name", refused("No invoice for A-17."), rejected, "No invoice for A-17."},
		{"the request, which is repeated", `{"message":"Unsupported coin","request":{"orderId":"A-17"}}`, rejected, "Unsupported coin"},
		{"a reason", `{"reason":"Unsupported coin"}`, rejected, "Unsupported coin"},
		{"a desc", `{"desc":"Unsupported coin"}`, rejected, "Unsupported coin"},
		{"a description", `{"description":"Unsupported coin"}`, rejected, "Unsupported coin"},
		{"an errorMessage", `{"errorMessage":"Unsupported coin"}`, rejected, "Unsupported coin"},
		{"an error_message", `{"error_message":"Unsupported coin"}`, rejected, "Unsupported coin"},
		{"JSON-RPC, with a code and details", `{"error":{"code":-32602,"message":"Invalid params","data":"coinSymbol"}}`, rejected, "Invalid params; coinSymbol"},
		{"a code of the service's own", `{"code":1001,"message":"Unsupported coin","data":null}`, rejected, "Unsupported coin"},
		{"no success and no data", `{"success":false,"data":false,"message":"Unsupported coin","result":{}}`, rejected, "Unsupported coin"},
		{"a status in words", `{"status":"CONFLICT","message":"Unsupported coin"}`, rejected, "Unsupported coin"},

		{"the envelope with details", `{"message":"Invalid.","result":{"coinSymbol":["is not supported"]},"meta":{}}`, unknown, ""},
		{"the documented success", enveloped(invoiceJSON), unknown, ""},
		{"the message of a success", enveloped("[]"), unknown, ""},
		{"a result", `{"message":"Webhook failed","result":{"invoiceId":"inv-9"}}`, unknown, ""},
		{"a result that is a text", `{"message":"Webhook failed","result":"https://pay.example/inv-9"}`, unknown, ""},
		{"data, in upper case", `{"Message":"Bad Request","Data":{"invoiceId":"inv-1"}}`, unknown, ""},
		{"an invoice", `{"message":"Bad Request","invoice":{"id":"inv-1"}}`, unknown, ""},
		{"a failure of the service", `{"statusCode":500,"message":"Internal error"}`, unknown, ""},
		{"a failure of the service, as a text", `{"status_code":"502","message":"Bad Gateway"}`, unknown, ""},
		{"a conflict", `{"status":409,"message":"Bad Request"}`, unknown, ""},
		{"a conflict, deeper", `{"error":{"code":409,"message":"Bad Request"}}`, unknown, ""},
		{"a failure behind the service", `{"code":503,"msg":"Bad Request"}`, unknown, ""},

		{"a page", page, unknown, ""},
		{"text", "Bad Request", unknown, ""},
		{"text in JSON", `"Bad Request"`, unknown, ""},
		{"a list", `["Bad Request"]`, unknown, ""},
		{"nothing", "", unknown, ""},
		{"a message that is a number", `{"status":400,"message":17,"error":400}`, unknown, ""},
		{"lists and something else", `{"price":["No."],"status":400}`, unknown, ""},
		{"an object without a message", `{"status":400,"path":"/api/invoice/create"}`, unknown, ""},
		{"an empty message", `{"message":"","errors":[],"error":null,"title":{}}`, unknown, ""},
		{"two objects", `{"message":"No."}{"message":"No."}`, unknown, ""},
		{"half an object", `{"message":"No.","error":"Bad Re`, unknown, ""},
		{"a message that is there twice", `{"message":"No.","message":"Yes."}`, unknown, ""},
	} {
		for _, status := range []int{400, 422} {
			t.Run(fmt.Sprint(status, ": ", tt.name), func(t *testing.T) {
				t.Parallel()
				_, err := cannedClient(t, status, tt.body).CreateInvoice(t.Context(), order(orderID))
				assertInvariants(t, nil, err)
				require.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
				if tt.want == rejected {
					assert.Equal(t, tt.message, err.(*gateway.APIError).Message)
				}
			})
		}
	}
	for name, body := range map[string]string{
		"403 of a framework, or of an edge": `{"message":"Forbidden"}`, "403 with an error": `{"error":"Forbidden"}`, "403 with a page": page,
		"403 in the envelope, with a result": `{"message":"Forbidden","result":{"id":"inv-1"},"meta":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cannedClient(t, 403, body).CreateInvoice(t.Context(), order(orderID))
			assert.Equal(t, unknown, gateway.OutcomeOf(err))
		})
	}
}

// A status that refuses by itself needs no body, and proves nothing against its body, or with a body of which the
// end is not known.
func TestRefusal_contradicted(t *testing.T) {
	t.Parallel()
	for _, status := range statuses {
		if !status.rejects {
			continue
		}
		for _, tt := range []struct {
			name, body string
			want       gateway.Outcome
		}{
			{"the documented envelope", refused("No."), gateway.OutcomeRejected},
			{"the documented success", enveloped(invoiceJSON), gateway.OutcomeUnknown},
			{"the status of a failure", `{"message":"No.","statusCode":500,"result":[]}`, gateway.OutcomeUnknown},
			{"JSON that breaks off", `{"message":"No.","result":[],"da`, gateway.OutcomeUnknown},
			{"a member twice", `{"message":"No.","result":[],"data":null,"data":{"id":1}}`, gateway.OutcomeUnknown},
			{"the success after 9 KiB", `{"x":"` + strings.Repeat("x", 9<<10) + `",` + enveloped(invoiceJSON)[1:], gateway.OutcomeUnknown},
			{"a refusal of 9 KiB", `{"x":"` + strings.Repeat("x", 9<<10) + `",` + refused("No.")[1:], gateway.OutcomeRejected},
			{"more than is read", refused("No.") + strings.Repeat(" ", 40<<10), gateway.OutcomeUnknown},
		} {
			t.Run(fmt.Sprint(status.status, " with ", tt.name), func(t *testing.T) {
				t.Parallel()
				_, err := cannedClient(t, status.status, tt.body).CreateInvoice(t.Context(), order("A-17"))
				assertInvariants(t, nil, err)
				assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
				assert.Equal(t, tt.want == gateway.OutcomeRejected && status.retried, gateway.SafeToRetry(err))
			})
		}
		t.Run(fmt.Sprint(status.status, " with a body that is cut"), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
				cut := reply(status.status, "")
				cut.Body = io.NopCloser(io.MultiReader(strings.NewReader(refused("No.")), brokenReader{io.ErrUnexpectedEOF}))
				return cut, nil
			}))
			_, err := c.CreateInvoice(t.Context(), order("A-17"))
			assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err), "%v", err)
		})
		t.Run(fmt.Sprint(status.status, " with a page"), func(t *testing.T) {
			t.Parallel()
			_, err := cannedClient(t, status.status, page).CreateInvoice(t.Context(), order("A-17"))
			assert.Equal(t, !status.needsMessage, gateway.OutcomeOf(err) == gateway.OutcomeRejected, "%v", err)
		})
	}
}

// The message of a framework's error is that of a read's, too, and bounded.
func TestRefusal_ofARead(t *testing.T) {
	t.Parallel()
	_, err := cannedClient(t, 404, `{"statusCode":404,"message":["no such coin"],"error":"Not Found"}`).CoinNetwork(t.Context(), pairID)
	assert.EqualError(t, err, `gateway: coin_network: 404: "no such coin"`)
	_, err = cannedClient(t, 400, `{"errors":["`+strings.Repeat("x", 2<<10)+`"]}`).CoinNetwork(t.Context(), pairID)
	assert.Len(t, err.(*gateway.APIError).Message, 1<<10)
	_, err = cannedClient(t, 400, `{"errors":["no `+canary+`"]}`).CoinNetwork(t.Context(), pairID)
	assertNoKey(t, err)
	assert.ErrorContains(t, err, "[REDACTED]")
}

// An error in a response of 2xx that has no result is an error of the service.
// I-36, I-157
func TestRefusal_withSuccess(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"null": `{"message":"x-api-key header is required","meta":{},"result":null}`, "null first": `{"result":null,"message":"x-api-key header is required"}`,
		"nothing": `{"message":"x-api-key header is required","meta":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, s := range subjects() {
				_, err := s.call(t.Context(), cannedClient(t, 200, body))
				if s.write {
					assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
					assert.ErrorContains(t, err, "x-api-key header is required")
					continue
				}
				refusal, ok := err.(*gateway.APIError)
				require.True(t, ok, "%s: %v", s.name, err)
				assert.Equal(t, "x-api-key header is required", refusal.Message)
				assert.ErrorIs(t, err, gateway.ErrMissingAPIKey)
			}
		})
	}
	for name, body := range map[string]string{"null": enveloped("null"), "nothing": `{"message":"Operation was successful.","meta":{}}`, "no message": `{"result":null}`, "none at all": `{}`} {
		t.Run("a success with "+name, func(t *testing.T) {
			t.Parallel()
			for _, s := range subjects() {
				_, err := s.call(t.Context(), cannedClient(t, s.status, body))
				assert.Equal(t, "/result", decodeErrorOf(t, s, err).Pointer)
			}
		})
	}
}
