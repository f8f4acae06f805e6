package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
)

// document loads and validates the OpenAPI document. It must be read as 3.1, so that the
// validator applies JSON Schema 2020-12.
func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../../api/openapi.yaml")
	require.NoError(t, err)
	require.True(t, doc.IsOpenAPI31OrLater())
	require.NoError(t, doc.Validate(t.Context(), openapi3.EnableExamplesValidation()))
	return doc
}

// The document has an operation for each call. An operation has one success, and the envelope of an error for every
// other status. Each response has one example, which says so if it is invented.
// I-1
func TestOpenAPI_operations(t *testing.T) {
	doc := document(t)
	operations := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			operations[operation.OperationID+": "+method+" "+path] = true
			failure := operation.Responses.Default()
			require.NotNil(t, failure, path)
			assert.Same(t, doc.Components.Schemas["Error"].Value, failure.Value.Content.Get("application/json").Schema.Value, path)
			assert.Equal(t, 2, operation.Responses.Len(), "%s: one success and the errors", path)
			for status, response := range operation.Responses.Map() {
				media := response.Value.Content.Get("application/json")
				assert.Len(t, media.Examples, 1, "%s %s", path, status)
				for name, example := range media.Examples {
					invented := media.Schema.Value == doc.Components.Schemas["NotShown"].Value || name == "error"
					assert.Equal(t, invented, strings.HasPrefix(example.Value.Summary, "Invented: "), "%s %s %s", path, status, name)
				}
			}
		}
	}
	for _, c := range everycall.All() {
		if c.Name != "CoinNetworksOf" { // an operation has one path in OpenAPI, and getCoinNetwork has its
			assert.True(t, operations[c.OpenAPI+": "+c.Method+" "+c.Route], c.Name)
		}
	}
	assert.Len(t, operations, 7)
}

// startExamples serves the example of each operation, whatever it is asked, as a generic mock does: the example of
// its success, or of its errors.
func startExamples(t *testing.T, doc *openapi3.T, success bool) *gateway.Client {
	t.Helper()
	mux := http.NewServeMux() // has the templates of paths that OpenAPI has
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			status, response := http.StatusBadRequest, operation.Responses.Default()
			for _, code := range []int{200, 201} {
				if found := operation.Responses.Status(code); success && found != nil {
					status, response = code, found
				}
			}
			var body []byte
			for _, example := range response.Value.Content.Get("application/json").Examples {
				body, _ = json.Marshal(example.Value.Value)
			}
			if strings.HasSuffix(path, "/") {
				path += "{$}" // and nothing below
			}
			mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = w.Write(body)
			})
		}
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client, err := gateway.New(server.URL, "k", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}),
		gateway.WithObserver(gateway.Observer{Drift: func(_ context.Context, d gateway.Drift) { t.Errorf("drift: %v", d) }}))
	require.NoError(t, err)
	return client
}

// Every call of the client reads the examples that a mock made of the document answers, without drift. Results name
// the record that was asked for; the errors are refusals.
func TestOpenAPI_examples(t *testing.T) {
	doc := document(t)
	for _, c := range everycall.All() {
		t.Run(c.Name, func(t *testing.T) {
			result, err := c.Do(t.Context(), startExamples(t, doc, true), everycall.Documented())
			require.NoError(t, err)
			assert.NotEmpty(t, result)

			_, err = c.Do(t.Context(), startExamples(t, doc, false), everycall.Documented())
			refusal, ok := errors.AsType[*gateway.APIError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, http.StatusBadRequest, refusal.StatusCode)
			assert.Equal(t, c.Key == everycall.InHeader, errors.Is(err, gateway.ErrMissingAPIKey))
			assert.NotEmpty(t, refusal.Message)
			assert.Equal(t, c.Writes(), gateway.OutcomeOf(err) == gateway.OutcomeRejected)
		})
	}
}

const (
	invoice    = `{"apiKey":"k","price":"1.50","orderId":"o","amount":"1.50"}`
	inquiry    = "/merchant/api/withdrawal/inquiry/c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10"
	listing    = "/merchant/api/networks-coins"
	withdrawal = `{"message":"Operation was successful.","meta":{},"result":{"status":"FAILED",` +
		`"destination":"d","amount":"1","fee":"1","coin":"c","network":"n","withdrawRequestId":"w"}}`
)

// exchange validates a request and its response. It returns what the document does not allow.
func (k *checker) exchange(method, target, header, sent string, status int, received string) error {
	r := httptest.NewRequest(method, target, strings.NewReader(sent))
	name, value, _ := strings.Cut(header, ": ")
	r.Header.Set(name, value)
	k.wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, received)
	})).ServeHTTP(httptest.NewRecorder(), r)
	_, _, wrong := k.seen()
	return wrong
}

// The document allows these requests, and the validator rejects the others.
func TestOpenAPI_validatesRequests(t *testing.T) {
	const balance, create = "/merchant/api/balance/", "/merchant/api/invoice/create"
	const key, isJSON, isText = "X-Api-Key: k", "Content-Type: application/json", "Content-Type: text/plain"
	k := newChecker(t, "/merchant")
	for _, tt := range []struct {
		name, method, target, header, body string
		reason                             string // empty for a request that is right
	}{
		{"a balance", "GET", balance, key, "", ""},
		{"an invoice", "POST", create, isJSON, invoice, ""},
		{"an invoice with a member that is not listed", "POST", create, isJSON, `{"note":1,` + invoice[1:], ""},
		{"/api/balance without its slash", "GET", "/merchant/api/balance", key, "", "no matching operation was found"},
		{"a balance without the key header", "GET", balance, "", "", "the header x-api-key is missing"},
		{"a query that is not listed", "GET", balance + "?coin=USDT", key, "", "which is no parameter"},
		{"an invoice without a body", "POST", create, isJSON, "", "value is required but missing"},
		{"an invoice whose type is not JSON", "POST", create, isText, invoice, "text/plain"},
		{"an invoice with the key under both names", "POST", create, isJSON, `{"apikey":"k",` + invoice[1:], "more than one"},
		{"an invoice without a price", "POST", create, isJSON, strings.Replace(invoice, "price", "cost", 1), "price"},
		{"an invoice without an order", "POST", create, isJSON, strings.Replace(invoice, "orderId", "order", 1), "orderId"},
		{"an invoice with words for an amount", "POST", create, isJSON, strings.Replace(invoice, "1.50", "a lot", 2), "amount"},
		{"an invoice with a number for an order", "POST", create, isJSON, strings.Replace(invoice, `"o"`, "17", 1), "orderId"},
	} {
		err := k.exchange(tt.method, tt.target, tt.header, tt.body, http.StatusBadRequest, `{"message":"no","result":[],"meta":{}}`)
		if tt.reason == "" {
			assert.NoError(t, err, tt.name)
		} else {
			assert.ErrorContains(t, err, tt.reason, tt.name)
		}
	}
}

// Values that the document does not allow are rejected, and bodies that are not shown may be anything.
func TestOpenAPI_validatesResponses(t *testing.T) {
	const good, bad = true, false
	const rates, create = "/merchant/api/exchange-rate", "/merchant/api/invoice/create"
	k := newChecker(t, "/merchant")
	for _, tt := range []struct {
		path   string
		status int
		body   string
		want   bool
	}{
		{inquiry, 201, withdrawal, good},
		{inquiry, 201, strings.Replace(withdrawal, "FAILED", "DONE", 1), bad},
		{inquiry, 200, withdrawal, bad}, // I-130
		{inquiry, 201, strings.Replace(withdrawal, `"fee":"1"`, `"fee":null`, 1), bad},
		{inquiry, 201, strings.Replace(withdrawal, `"coin":"c",`, "", 1), bad},
		{inquiry, 401, `{"message":"x-api-key header is required","result":[],"meta":{}}`, good},
		{inquiry, 401, `{"message":"x-api-key header is required","result":{},"meta":{}}`, bad},
		{inquiry, 401, `{"result":[],"meta":{}}`, bad},
		{listing, 200, `{"message":"Operation was successful.","result":[],"meta":{}}`, good},
		{listing, 200, `{"message":"OK","result":[],"meta":{}}`, bad},
		{listing, 200, `{"message":"Operation was successful.","result":{},"meta":{}}`, bad},
		{listing + "/USDT", 200, `null`, good},
		{rates, 299, `"anything"`, good},
		{rates, 200, `17.`, bad},
		{create, 422, `{"a":{"b":[]}}`, bad},
		{create, 303, `{"message":"elsewhere","result":[],"meta":{}}`, bad},
	} {
		method, header, body := http.MethodGet, "X-Api-Key: k", ""
		if tt.path == create {
			method, header, body = http.MethodPost, "Content-Type: application/json", invoice
		}
		err := k.exchange(method, tt.path, header, body, tt.status, tt.body)
		assert.Equal(t, tt.want, err == nil, "%s: %d %s: %v", tt.path, tt.status, tt.body, err)
	}
}
