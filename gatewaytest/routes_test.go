package gatewaytest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// usdtOnTron has every documented field, with the documented names and types.
// I-57, I-58, I-59, I-60, I-61, I-62, I-63, I-64, I-65, I-66, I-68, I-69, I-70, I-71, I-72, I-73,
// I-79, I-80, I-81, I-82, I-83, I-84, I-85, I-86, I-87, I-88, I-89, I-90, I-91
const usdtOnTron = `{"id":"8f4c2f0e-2b7b-4a55-9a4e-0c1d2e3f4a5b","withdrawalFee":"1","swapFee":"0.5","minWithdraw":"10","maxWithdraw":"100000",
	"depositable":true,"withdrawable":false,"confirmation":20,"arrivalTime":3,"expirationTime":60,
	"networkId":"11111111-2222-4333-8444-555555555555","coinId":"66666666-7777-4888-8999-aaaaaaaaaaaa",
	"created_at":"2023-05-14T09:21:43.000Z","updated_at":"2023-06-14T09:21:43.000Z",
	"network":{"id":"11111111-2222-4333-8444-555555555555","name":"Tron","isActive":true,
		"created_at":"2023-05-01T00:00:00.000Z","updated_at":"2023-05-02T00:00:00.000Z"},
	"coin":{"id":"66666666-7777-4888-8999-aaaaaaaaaaaa","name":"Tether","symbol":"USDT","precision":6,"minAmount":"1.00000000","isActive":false,
		"created_at":"2023-05-03T00:00:00.000Z","updated_at":"2023-05-04T00:00:00.000Z"}}`

func pair(t *testing.T, text string) (p gatewaytest.CoinNetwork) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	return p
}

// I-7, I-38, I-40, I-42
func TestServer_responds(t *testing.T) {
	t.Parallel()
	s := start(t)
	slash := strings.NewReplacer(`8f4c2f0e-2b7b-4a55-9a4e-0c1d2e3f4a5b`, `a/b`, `"Tron"`, `"BNB Smart Chain (BEP20)"`, `"USDT"`, `"X/Y"`).Replace(usdtOnTron)
	s.SetCatalog([]gatewaytest.CoinNetwork{pair(t, usdtOnTron), pair(t, slash)})
	s.AddWithdrawal(gatewaytest.Withdrawal{Destination: "T123", Amount: "120.50", Fee: "1", Coin: "USDT", Network: "Tron", WithdrawRequestID: "w 1"})
	withdrawal := successBody(`{"status":"PENDING","destination":"T123","amount":"120.50","fee":"1","coin":"USDT","network":"Tron","withdrawRequestId":"w 1"}`)

	const balances = "/api/balance/"
	const none = "no such coin and network"
	tests := []struct {
		name, method, path, key string
		op                      gatewaytest.Operation
		status                  int
		body                    string
	}{
		// I-13, I-34, I-45
		{"listing", "GET", "/api/networks-coins", "", "coin_networks", 200, successBody("[" + usdtOnTron + "," + slash + "]")},
		// I-14, I-49
		{"by id", "GET", "/api/networks-coins/8f4c2f0e-2b7b-4a55-9a4e-0c1d2e3f4a5b", "", "coin_network", 200, successBody(usdtOnTron)},
		{"by id in upper case", "GET", "/api/networks-coins/8F4C2F0E-2B7B-4A55-9A4E-0C1D2E3F4A5B", "", "coin_network", 200, successBody(usdtOnTron)},
		{"by id with slash", "GET", "/api/networks-coins/a%2Fb", "", "coin_network", 200, successBody(slash)},
		{"by unknown id", "GET", "/api/networks-coins/nothing", "", "coin_network", 404, errorBody(none)},
		// I-16
		{"by symbol", "GET", "/api/networks-coins/USDT", "", "coin_networks_of", 200, successBody("[" + usdtOnTron + "]")},
		// I-15, I-49
		{"by symbol and network", "GET", "/api/networks-coins/USDT/Tron", "", "coin_network_by_symbol", 200, successBody(usdtOnTron)},
		// I-23
		{"by symbol and network escaped", "GET", "/api/networks-coins/X%2FY/BNB%20Smart%20Chain%20%28BEP20%29", "", "coin_network_by_symbol", 200, successBody(slash)},
		{"by symbol and other network", "GET", "/api/networks-coins/USDT/Bitcoin", "", "coin_network_by_symbol", 404, errorBody(none)},
		{"by other symbol and network", "GET", "/api/networks-coins/BTC/Tron", "", "coin_network_by_symbol", 404, errorBody(none)},

		// I-102
		{"balance", "GET", balances + "?coinSymbol=BTC", s.APIKey, "balance", 200, successBody(`[{"coinSymbol":"BTC","networkName":"Bitcoin","balance":"0.48215003"}]`)},
		// I-103
		{"balance by both", "GET", balances + "?coinSymbol=USDT&networkName=BNB%20Smart+Chain%20(BEP20)", s.APIKey, "balance", 200, successBody(`[{"coinSymbol":"USDT","networkName":"BNB Smart Chain (BEP20)","balance":"0"}]`)},
		{"balance of unknown coin", "GET", balances + "?coinSymbol=NONE", s.APIKey, "balance", 404, errorBody("no such balance")},
		{"balance with broken query", "GET", balances + "?coinSymbol=%zz", s.APIKey, "balance", 400, errorBody("the query is not valid")},
		// I-35
		{"balance without key", "GET", balances, "", "balance", 401, errorBody("x-api-key header is required")},
		// I-30, I-31
		{"balance with wrong key", "GET", balances, "wrong", "balance", 401, errorBody("x-api-key is not valid")},
		{"balance without slash", "GET", "/api/balance", s.APIKey, "", 404, errorBody("no such route")}, // I-19

		// I-21, I-130, I-131, I-132, I-133, I-134, I-135, I-136, I-137, I-138
		{"withdrawal", "GET", "/api/withdrawal/inquiry/w%201", s.APIKey, "withdrawal", 201, withdrawal},
		{"withdrawal in upper case", "GET", "/api/withdrawal/inquiry/W%201", s.APIKey, "withdrawal", 201, withdrawal},
		// I-152, I-153, I-154, I-155
		{"withdrawal unknown", "GET", "/api/withdrawal/inquiry/w2", s.APIKey, "withdrawal", 404, errorBody("no such withdrawal")},
		// I-35
		{"withdrawal without key", "GET", "/api/withdrawal/inquiry/w%201", "", "withdrawal", 401, errorBody("x-api-key header is required")},

		{"listing with slash", "GET", "/api/networks-coins/", "", "", 404, errorBody("no such route")},
		{"empty network", "GET", "/api/networks-coins/USDT/", "", "", 404, errorBody("no such route")},
		{"dots stay data", "GET", "/api/networks-coins/%2e%2e", "", "coin_network", 404, errorBody(none)},
		{"too deep", "GET", "/api/networks-coins/USDT/Tron/more", "", "", 404, errorBody("no such route")},
		{"wrong method", "POST", "/api/networks-coins", "", "coin_networks", 405, errorBody("method not allowed")},
	}
	for _, tt := range tests {
		var headers []string
		if tt.key != "" {
			headers = []string{"x-api-Key", tt.key}
		}
		before := len(s.Requests())
		got := mustTry(t, s, tt.method, tt.path, "", headers...)
		entry := s.Requests()[before]
		assert.Equal(t, tt.status, got.status, tt.name)
		assert.JSONEq(t, tt.body, got.body, tt.name)
		assert.Equal(t, "application/json; charset=utf-8", got.header.Get("Content-Type"), tt.name)
		assert.Equal(t, tt.op, entry.Operation, tt.name)
		assert.Equal(t, tt.status, entry.Status, tt.name)
		assert.Equal(t, "/gateway"+tt.path, entry.Target, tt.name)
	}
}

// I-2, I-17
func TestServer_routes(t *testing.T) {
	t.Parallel()
	s := start(t)
	assert.Equal(t, "GET", mustTry(t, s, "DELETE", "/api/balance/", "").header.Get("Allow"))
	assert.Equal(t, "POST", mustTry(t, s, "PUT", "/api/invoice/create", "").header.Get("Allow"))
	assert.Equal(t, 405, mustTry(t, s, "HEAD", "/api/exchange-rate", "").status)
	assert.Empty(t, get(t, s, "/api/balance/").header.Get("Allow"))

	p := pair(t, usdtOnTron)
	p.ID = "USDT"
	s.SetCatalog([]gatewaytest.CoinNetwork{p})
	get(t, s, "/api/networks-coins/USDT")
	assert.Equal(t, gatewaytest.OpCoinNetwork, s.Requests()[4].Operation, "an identifier that is also a symbol stays an identifier")
	s.SetCatalog(nil)
	assert.JSONEq(t, successBody(`[]`), get(t, s, "/api/networks-coins").body)
	assert.Empty(t, s.Catalog())

	s.URL = strings.TrimSuffix(s.URL, "/gateway")
	got := mustTry(t, s, "GET", "/api/networks-coins", "")
	assert.Equal(t, 404, got.status)
	assert.JSONEq(t, errorBody("no such route: the base URL has the path /gateway"), got.body)
}
