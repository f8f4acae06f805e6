package suite_test

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/contract/suite"
	"github.com/cryptogw/gateway/gatewaytest"
)

// An interceptor is between the suite and a conforming gateway, and changes requests
// or responses so that the gateway does not conform.
type interceptor struct {
	next     http.RoundTripper
	request  func(*http.Request)
	response func(*http.Response, string) string // takes the body and returns another
}

func (w interceptor) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.request != nil {
		r = r.Clone(r.Context())
		w.request(r)
	}
	resp, err := w.next.RoundTrip(r)
	if err != nil || w.response == nil {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	changed := w.response(resp, string(body))
	resp.Body = io.NopCloser(strings.NewReader(changed))
	resp.ContentLength = int64(len(changed))
	resp.Header.Set("Content-Length", strconv.Itoa(len(changed)))
	return resp, nil
}

const (
	envelope   = "the listing is in the envelope of a success"
	records    = "every record of the listing has all its fields"
	ids        = "networkId and coinId are the identifiers of the records in the pair"
	once       = "the listing has one element per coin-network pair"
	rated      = "the exchange rates cover every active coin"
	byID       = "a pair is found by its identifier from the listing"
	bySymbol   = "a pair is found by the coin's symbol and the network's name"
	alone      = "a coin is found by its symbol alone, because the network's name is not required"
	unlisted   = "a lookup of a pair that is not listed returns a success or the envelope of an error"
	anyBalance = "the balance takes the key in a header, whose name is case-insensitive"
	own        = "the client can request the balance"
	narrow     = "a balance is narrowed by coin, by network and by both"
	noKey      = "a balance without the key header is refused"
	noKeyToo   = "a withdrawal inquiry without the key header is refused"
	anyInquiry = "a withdrawal inquiry takes the key in a header, whose name is case-insensitive"
	asked      = "a withdrawal inquiry returns status 201 with all its fields"
	sample     = "an invoice is created in the format of the sample: apiKey, and decimals in strings"
	table      = "an invoice is created in the format of the table: apikey, and numbers"
	short      = "an invoice needs no currency, coin or network"
	lacking    = "an invoice without a required field is refused"
)

// A defect makes a conforming gateway fail.
type defect func(*gatewaytest.Server, *suite.Target)

// changeRequest changes every request to the gateway.
func changeRequest(change func(*http.Request)) defect {
	return func(_ *gatewaytest.Server, t *suite.Target) {
		t.Transport = interceptor{next: t.Transport, request: change}
	}
}

// changeResponse changes every response of the gateway.
func changeResponse(change func(*http.Response, string) string) defect {
	return func(_ *gatewaytest.Server, t *suite.Target) {
		t.Transport = interceptor{next: t.Transport, response: change}
	}
}

// faulty injects a fault into every request of an operation.
func faulty(op gatewaytest.Operation, fault gatewaytest.Fault) defect {
	return func(gw *gatewaytest.Server, _ *suite.Target) { gw.InjectFault(op, -1, fault) }
}

// Every defect is found by the cases that are about it, and every case finds one.
func TestCases_find_defects(t *testing.T) {
	never := map[string]bool{}
	for _, c := range suite.Cases() {
		never[c.Name] = true
	}
	for _, bad := range brokenGateways() {
		t.Run(bad.name, func(t *testing.T) {
			gw, target := standIn(t)
			bad.defect(gw, &target)
			var found []string
			for _, c := range suite.Cases() {
				if c.Check(t.Context(), target) != nil {
					found = append(found, c.Name)
				}
			}
			assert.Subset(t, found, bad.foundBy)
		})
		for _, name := range bad.foundBy {
			delete(never, name)
		}
	}
	assert.Empty(t, never, "cases that no defect fails")
}

// A gateway with other bodies than the client can read conforms to the interface where
// it shows no body, unless the client must be able to read them.
func TestTarget_Readable(t *testing.T) {
	for _, body := range []string{"null", `"moved"`, `{"message":"Operation was successful.","result":null,"meta":{}}`, "[]"} {
		t.Run(body, func(t *testing.T) {
			_, target := standIn(t)
			target.Transport = interceptor{next: target.Transport, response: func(r *http.Response, shown string) string {
				path := r.Request.URL.Path
				if r.StatusCode > 299 || strings.HasSuffix(path, "/networks-coins") || strings.Contains(path, "/withdrawal/") {
					return shown // it is shown
				}
				return body
			}}
			target.Readable = false
			suite.Run(t, target)
			target.Readable = true
			for _, c := range suite.Cases() {
				if slices.Contains([]string{rated, byID, bySymbol, alone, own, sample, table, short}, c.Name) {
					assert.Error(t, c.Check(t.Context(), target), c.Name)
				}
			}
		})
	}
}
