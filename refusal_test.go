package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A refusal in a usual form proves that there is no invoice, unless it speaks of an order that is there:
// I-170.
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
		{"the envelope with details", `{"message":"Invalid.","result":{"coinSymbol":["is not supported"]},"meta":{}}`, rejected, "Invalid."},
		{"a coin that does not exist", refused("The coin does not exist."), rejected, "The coin does not exist."},
		{"another order's name that has this one's in it", refused("A-170 is no price, nor is AA-17."), rejected, "A-170 is no price, nor is AA-17."},

		{"the envelope, of an order that exists", refused("Order exists."), unknown, ""},
		{"in another case", refused("ORDER ALREADY THERE"), unknown, ""},
		{"a duplicate", refused("Duplicated orderId"), unknown, ""},
		{"a rule of the database", refused("orderId must be unique"), unknown, ""},
		{"a name that is taken", `{"message":"Invalid.","errors":{"orderId":["has been taken"]}}`, unknown, ""},
		{"a name that is taken, in the result of the envelope", `{"message":"Invalid.","result":{"orderId":["has been taken"]},"meta":{}}`, unknown, ""},
		{"an existing order, of a framework", `{"statusCode":400,"message":["see the existing order"],"error":"Bad Request"}`, unknown, ""},
		{"the order's name", refused("No second invoice for a-17."), unknown, ""},
		{"the order's name alone", `{"detail":"A-17"}`, unknown, ""},

		{"a description of the error, by OAuth", `{"error":"invalid_request","error_description":"it already exists"}`, unknown, ""},
		{"a text with its language, by OData", `{"error":{"code":"x","message":{"lang":"en-US","value":"An invoice of it already exists"}}}`, unknown, ""},
		{"a code", `{"statusCode":400,"code":"ORDER_ALREADY_EXISTS","message":"Bad Request"}`, unknown, ""},
		{"a type of problem", `{"type":"https://gw.example/problems/order-already-exists","title":"Bad Request"}`, unknown, ""},
		{"the name of an exception", `{"error":"OrderAlreadyExistsException","message":"Bad Request"}`, unknown, ""},
		{"the name of a rule", `{"name":"SequelizeUniqueConstraintError","message":"Validation error"}`, unknown, ""},
		{"the order with its invoice", `{"message":"Bad Request","data":{"invoiceId":"inv-1","orderId":"A-17"}}`, unknown, ""},
		{"a code of words", `{"error":"ORDER_ID_IN_USE"}`, unknown, ""},
		{"a code in camel case", `{"error":"OrderIdInUse"}`, unknown, ""},
		{"a code without grammar", `{"error":"ORDER_EXIST"}`, unknown, ""},
		{"the name of a member", `{"error":"Bad Request","alreadyExists":true}`, unknown, ""},
		{"the order as a member", `{"errors":{"A-17":["not possible"]}}`, unknown, ""},
		{"an order that was sent before", refused("The order was previously created."), unknown, ""},
		{"a conflict", refused("Order conflict"), unknown, ""},
		{"an orderId in use", refused("orderId is in use"), unknown, ""},
		{"an orderId that was used before", refused("orderId was used before"), unknown, ""},

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
		"403 in the envelope, of an order that exists": refused("The order already exists."),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cannedClient(t, 403, body).CreateInvoice(t.Context(), order(orderID))
			assert.Equal(t, unknown, gateway.OutcomeOf(err))
		})
	}
}

// A status that refuses by itself proves nothing of an order that its body names; one whose name is a
// number only counts with a word for what it is.
func TestRefusal_names(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status   int
		id, body string
		want     gateway.Outcome
	}{
		{404, "A-17", refused("Order A-17 has an invoice."), gateway.OutcomeUnknown},
		{429, "A-17", refused("A duplicate of A-17 is being processed."), gateway.OutcomeUnknown},
		{429, "A-17", refused("You have already sent too many requests."), gateway.OutcomeRejected},
		{429, "60", refused("Try again in 60 seconds."), gateway.OutcomeRejected},
		{429, "60", refused("Order 60 is being processed."), gateway.OutcomeUnknown},
		{400, "10", refused("The price must be at least 10.50."), gateway.OutcomeRejected},
		{400, "10", refused("Invoice #10 is there."), gateway.OutcomeUnknown},
		{400, "10", refused("The order amount must not be less than 10."), gateway.OutcomeRejected},
		{400, "10", refused("10"), gateway.OutcomeUnknown},
		{400, "10", `{"message":"Bad Request","data":{"orderId":10}}`, gateway.OutcomeUnknown},
		{400, "10", `{"message":"Bad Request","data":{"orderId":11}}`, gateway.OutcomeRejected},
		{400, "10", `{"message":"Bad Request","data":{"minimum":10}}`, gateway.OutcomeRejected},
	} {
		t.Run(fmt.Sprint(tt.status, " ", tt.body), func(t *testing.T) {
			t.Parallel()
			_, err := cannedClient(t, tt.status, tt.body).CreateInvoice(t.Context(), order(tt.id))
			assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
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
