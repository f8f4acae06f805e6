package openapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const (
	anInvoice  = `{"apiKey":"k","price":"1.50","orderId":"o","amount":"1.50"}`
	balanceURL = "/merchant/api/balance/"
	inquiryURL = "/merchant/api/withdrawal/inquiry/c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10"
	listingURL = "/merchant/api/networks-coins"
	invoiceURL = "/merchant/api/invoice/create"
)

// raw sends a request through the checker to a server that always returns this
// response, and returns the violations.
func (k *checker) raw(r *http.Request, status int, contentType, body string) error {
	server := k.wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	server.ServeHTTP(httptest.NewRecorder(), r)
	return k.violations()
}

// newRequest is a request to the raw server, with the key in its header.
func newRequest(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("X-Api-Key", "k")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// The validator is effective: it rejects requests that the document does not allow.
func TestOpenAPI_rejects_requests(t *testing.T) {
	k := newChecker(t, "/merchant")
	keyless := func(target string) *http.Request {
		r := newRequest(http.MethodGet, target, "")
		r.Header.Del("X-Api-Key")
		return r
	}
	post := func(body string) *http.Request { return newRequest(http.MethodPost, invoiceURL, body) }
	invoice := func(old, value string) *http.Request { return post(strings.Replace(anInvoice, old, value, 1)) }
	plain := post(anInvoice)
	plain.Header.Set("Content-Type", "text/plain")
	for _, tt := range []struct {
		name    string
		request *http.Request
		reason  string // empty for a request that is right
	}{
		{"a balance", newRequest(http.MethodGet, balanceURL, ""), ""},
		{"an inquiry", newRequest(http.MethodGet, inquiryURL, ""), ""},
		{"an invoice", post(anInvoice), ""},
		{"an invoice with a member that is not listed", invoice("{", `{"note":1,`), ""},
		{"/api/balance without its slash", newRequest(http.MethodGet, "/merchant/api/balance", ""), "no matching operation was found"},
		{"a path outside of the base URL", newRequest(http.MethodGet, "/api/balance/", ""), "no matching operation was found"},
		{"a method that the path does not have", newRequest(http.MethodPost, balanceURL, ""), "method not allowed"},
		{"a balance without the key header", keyless(balanceURL), "the header x-api-key is missing"},
		{"a query that is not listed", newRequest(http.MethodGet, balanceURL+"?coin=USDT", ""), "which is no parameter"},
		{"a read with a body", newRequest(http.MethodGet, listingURL, "{}"), "request body not allowed"},
		{"an invoice without a body", post(""), "value is required but missing"},
		{"an invoice whose type is not JSON", plain, "text/plain"},
		{"an invoice with the key under both names", invoice("{", `{"apikey":"k",`), "more than one"},
		{"an invoice without a price", invoice(`"price":"1.50",`, ""), "price"},
		{"an invoice without an order", invoice(`"orderId":"o",`, ""), "orderId"},
		{"an invoice with words for an amount", invoice(`"amount":"1.50"`, `"amount":"a lot"`), "amount"},
		{"an invoice with a number for an order", invoice(`"o"`, "17"), "orderId"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := k.raw(tt.request, http.StatusBadRequest, "application/json", `{"message":"no","result":[],"meta":{}}`)
			if tt.reason == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tt.reason)
		})
	}
}

// Values that the document does not allow are rejected, and bodies that are not
// shown may be anything.
func TestOpenAPI_validates_responses(t *testing.T) {
	const good, bad = true, false
	k := newChecker(t, "/merchant")
	withdrawal := `{"message":"Operation was successful.","meta":{},"result":{"status":"%s",` +
		`"destination":"d","amount":"1","fee":"1","coin":"c","network":"n","withdrawRequestId":"w"}}`
	for _, tt := range []struct {
		method, path string
		status       int
		body         string
		want         bool
	}{
		{"GET", inquiryURL, 201, fmt.Sprintf(withdrawal, "FAILED"), good},
		{"GET", inquiryURL, 201, fmt.Sprintf(withdrawal, "DONE"), bad},
		{"GET", inquiryURL, 200, fmt.Sprintf(withdrawal, "FAILED"), bad}, // I-130
		{"GET", inquiryURL, 401, `{"message":"x-api-key header is required","result":[],"meta":{}}`, good},
		{"GET", inquiryURL, 401, `{"message":"x-api-key header is required","result":{},"meta":{}}`, bad},
		{"GET", inquiryURL, 401, `{"message":"x-api-key header is required","result":[]}`, bad},
		{"GET", inquiryURL, 401, `{"result":[],"meta":{}}`, bad},
		{"GET", listingURL, 200, `{"message":"Operation was successful.","result":[],"meta":{}}`, good},
		{"GET", listingURL, 200, `{"message":"OK","result":[],"meta":{}}`, bad},
		{"GET", listingURL, 200, `{"message":"Operation was successful.","result":{},"meta":{}}`, bad},
		{"GET", listingURL, 200, `[]`, bad},
		{"GET", inquiryURL, 201, strings.Replace(fmt.Sprintf(withdrawal, "FAILED"), `"fee":"1"`, `"fee":null`, 1), bad},
		{"GET", inquiryURL, 201, strings.Replace(fmt.Sprintf(withdrawal, "FAILED"), `"coin":"c",`, "", 1), bad},
		{"GET", listingURL + "/USDT", 200, `null`, good},
		{"GET", "/merchant/api/exchange-rate", 299, `"anything"`, good},
		{"GET", balanceURL, 200, `17.5`, good},
		{"GET", balanceURL, 200, `17.`, bad},
		{"POST", invoiceURL, 200, `{"a":{"b":[]}}`, good},
		{"POST", invoiceURL, 422, `{"a":{"b":[]}}`, bad},
		{"POST", invoiceURL, 303, `{"message":"elsewhere","result":[],"meta":{}}`, bad},
	} {
		body := ""
		if tt.method == http.MethodPost {
			body = anInvoice
		}
		err := k.raw(newRequest(tt.method, tt.path, body), tt.status, "application/json", tt.body)
		assert.Equal(t, tt.want, err == nil, "%s: %d %s: %v", tt.path, tt.status, tt.body, err)
	}
}
