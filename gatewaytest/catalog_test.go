package gatewaytest_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// The initial listing has the variety that tests of a client need, and its
// records have the documented form. The test reads it as plain JSON on purpose.
// I-46, I-57, I-68, I-69, I-70, I-71, I-79, I-82, I-83, I-84, I-86, I-88, I-90, I-91
func TestServer_seeded_listing(t *testing.T) {
	t.Parallel()
	s := start(t)
	var listing struct{ Result []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(get(t, s, "/api/networks-coins").body), &listing))
	require.Len(t, listing.Result, len(s.Catalog()))
	assert.GreaterOrEqual(t, len(listing.Result), 20)

	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	decimal := regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	stamp := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	ids, coins, networks, closed := map[any]bool{}, map[any]int{}, map[any]bool{}, map[string]int{}
	for _, p := range listing.Result {
		coin, network := p["coin"].(map[string]any), p["network"].(map[string]any)
		ids[p["id"]] = true
		coins[coin["symbol"]]++
		networks[network["name"]] = true
		assert.Equal(t, p["coinId"], coin["id"])
		assert.Equal(t, p["networkId"], network["id"])
		for _, amount := range []string{"withdrawalFee", "swapFee", "minWithdraw", "maxWithdraw"} {
			assert.Regexp(t, decimal, p[amount])
		}
		assert.Regexp(t, `^\d+\.\d{8}$`, coin["minAmount"])
		assert.Regexp(t, `^[A-Z]{3,4}$`, coin["symbol"])
		for _, record := range []map[string]any{p, coin, network} {
			assert.Regexp(t, uuid, record["id"])
			assert.Regexp(t, stamp, record["created_at"])
			assert.Regexp(t, stamp, record["updated_at"])
		}
		count := func(what string, open any) {
			if open == false {
				closed[what]++
			}
		}
		count("deposits", p["depositable"])
		count("withdrawals", p["withdrawable"])
		count("coin", coin["isActive"])
	}
	assert.Len(t, ids, len(listing.Result), "identifiers are unique")
	assert.GreaterOrEqual(t, len(coins), 12)
	assert.GreaterOrEqual(t, len(networks), 10)
	assert.Equal(t, 5, coins["USDT"])
	assert.Equal(t, map[string]int{"deposits": 1, "withdrawals": 1, "coin": 1}, closed)
	assert.Equal(t, s.Catalog(), start(t).Catalog(), "the same in every server")
}

func TestServer_Catalog_is_a_copy(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Catalog()[0].Coin.Symbol = "CHANGED"
	mine := s.Catalog()
	s.SetCatalog(mine)
	mine[0].Coin.Symbol = "CHANGED"
	assert.Equal(t, "BTC", s.Catalog()[0].Coin.Symbol)
}

// What a test sets is in the next response, as given.
func TestServer_sets_rates_and_balances(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewServer(gatewaytest.WithSeed(gatewaytest.Seed{Rates: []gatewaytest.Rate{}, Balances: []gatewaytest.BalanceEntry{}}))
	t.Cleanup(s.Close)
	assert.Equal(t, successBody(`[]`), get(t, s, "/api/exchange-rate").body)
	s.SetRate("A", "1", "2")
	s.SetRate("B", "12,5", "")
	s.SetRate("C", "1", "1")
	s.SetRate("A", "1.50", "3")
	s.SetRate("C", "", "")
	assert.Equal(t, successBody(`[{"symbol":"A","usd":"1.50","eur":"3"},{"symbol":"B","usd":"12,5"}]`), get(t, s, "/api/exchange-rate").body)
	s.SetBalance("A", "N", "1")
	s.SetBalance("A", "M", "")
	s.SetBalance("A", "N", "0.50")
	assert.Equal(t, successBody(`[{"coinSymbol":"A","networkName":"N","balance":"0.50"},{"coinSymbol":"A","networkName":"M","balance":""}]`), get(t, s, "/api/balance/").body)
}
