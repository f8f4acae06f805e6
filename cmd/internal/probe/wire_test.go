package probe

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// key must not occur in any output.
const key = "CANARY-5f1d8e0b7a64c932"

// Wire text as in docs/interface.md, written out so that it does not depend on structs.
const (
	pairID    = "7c9d6d0e-2f0f-4d7e-9a53-0d1f6f1c2b11"
	requestID = "c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10"

	pairJSON = `{"id":"7c9d6d0e-2f0f-4d7e-9a53-0d1f6f1c2b11","withdrawalFee":"1.5","swapFee":"0.5",` +
		`"minWithdraw":"10","maxWithdraw":"100000","depositable":true,"withdrawable":true,` +
		`"confirmation":20,"arrivalTime":5,"expirationTime":60,` +
		`"networkId":"1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33","coinId":"5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44",` +
		`"created_at":"2023-05-14T09:21:43.000Z","updated_at":"2023-06-01T00:00:00.000Z",` +
		`"network":{"id":"1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33","name":"Tron","isActive":true,` +
		`"created_at":"2023-05-14T09:21:43.000Z","updated_at":"2023-06-01T00:00:00.000Z"},` +
		`"coin":{"id":"5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44","name":"Tether","symbol":"USDT","precision":6,` +
		`"minAmount":"0.00000100","isActive":true,` +
		`"created_at":"2023-05-14T09:21:43.000Z","updated_at":"2023-06-01T00:00:00.000Z"}}`
	withdrawalJSON = `{"status":"PENDING","destination":"TXYZ","amount":"25.5","fee":"1.5",` +
		`"coin":"USDT","network":"Tron","withdrawRequestId":"` + requestID + `"}`
	ratesJSON   = `[{"symbol":"USDT","usd":"1.0001","eur":"0.92"}]`
	balanceJSON = `[{"coinSymbol":"USDT","networkName":"Tron","balance":"250.75"}]`
)

// enveloped puts the documented envelope of a success around a result.
func enveloped(result string) string {
	return `{"message":"Operation was successful.","result":` + result + `,"meta":{}}`
}

// A response is the gateway's response to the request with a path.
type response struct {
	path   string
	status int
	body   string
}

// The paths of the calls, in their order; the second balance has a query.
const (
	pathListing    = "/api/networks-coins"
	pathByID       = "/api/networks-coins/" + pairID
	pathByNetwork  = "/api/networks-coins/USDT/Tron"
	pathBySymbol   = "/api/networks-coins/USDT"
	pathRates      = "/api/exchange-rate"
	pathBalance    = "/api/balance/"
	pathOneBalance = "/api/balance/?coinSymbol=USDT&networkName=Tron"
	pathWithdrawal = "/api/withdrawal/inquiry/" + requestID
)

func paths() []string {
	return []string{pathListing, pathByID, pathByNetwork, pathBySymbol, pathRates, pathBalance, pathOneBalance, pathWithdrawal}
}

// serve returns the base URL of a gateway that responds as documented, except for
// the given responses.
func serve(t *testing.T, other ...response) *gatewaytest.Server {
	t.Helper()
	responses := map[string]response{}
	for _, a := range append([]response{
		{pathListing, 200, enveloped("[" + pairJSON + "]")},
		{pathByID, 200, enveloped(pairJSON)},
		{pathByNetwork, 200, enveloped(pairJSON)},
		{pathBySymbol, 200, enveloped("[" + pairJSON + "]")},
		{pathRates, 200, enveloped(ratesJSON)},
		{pathBalance, 200, enveloped(balanceJSON)},
		{pathOneBalance, 200, enveloped(balanceJSON)},
		{pathWithdrawal, 201, enveloped(withdrawalJSON)},
	}, other...) {
		responses[a.path] = a
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.RequestURI()
		if strings.HasPrefix(path, "/api/balance/?") {
			path = pathOneBalance // for any coin
		}
		a, known := responses[path]
		if !known {
			a = response{status: 404, body: `{"message":"Not Found","result":[],"meta":{}}`}
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(server.Close)
	return &gatewaytest.Server{URL: server.URL, APIKey: key}
}

// probed returns the report about the call with a path, and that about all.
func probed(t *testing.T, path string, other ...response) (Call, Report) {
	t.Helper()
	r := report(t, serve(t, other...), requestID)
	for i, of := range paths() {
		if of == path {
			return r.Calls[i], r
		}
	}
	t.Fatalf("no call is of %s", path)
	return Call{}, r
}

// with replaces a part of wire text, which must be there.
func with(t *testing.T, text, old, replacement string) string {
	t.Helper()
	require.Contains(t, text, old)
	return strings.Replace(text, old, replacement, 1)
}

func TestRun_asDocumented(t *testing.T) {
	r := report(t, serve(t), requestID)
	require.NoError(t, r.Err())
	require.Len(t, r.Calls, 8)
	require.Zero(t, r.Findings)
	for _, call := range r.Calls {
		require.NotZero(t, call.Status)
		require.Equal(t, 1, call.Attempts)
	}
}
