package gatewaytest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/gatewaytest"
)

// The initial listing has the variety that tests of a client need, and the same in every server.
// I-46, I-57, I-68, I-69, I-70, I-71, I-79, I-82, I-83, I-84, I-86, I-88, I-90, I-91
func TestServer_seeded_listing(t *testing.T) {
	t.Parallel()
	all := start(t).Catalog()
	assert.Equal(t, all, start(t).Catalog())
	ids, coins, networks, off := map[string]bool{}, map[string]int{}, map[string]bool{}, map[string]int{}
	for _, p := range all {
		ids[p.ID], networks[p.Network.Name] = true, true
		coins[p.Coin.Symbol]++
		for what, on := range map[string]bool{"deposits": p.Depositable, "withdrawals": p.Withdrawable, "coin": p.Coin.IsActive} {
			if !on {
				off[what]++
			}
		}
		assert.Equal(t, []string{p.Coin.ID, p.Network.ID}, []string{p.CoinID, p.NetworkID})
		for _, id := range []string{p.ID, p.Coin.ID, p.Network.ID} {
			assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
		}
		for _, at := range []string{p.CreatedAt, p.UpdatedAt, p.Coin.CreatedAt, p.Coin.UpdatedAt, p.Network.CreatedAt, p.Network.UpdatedAt} {
			assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, at)
		}
		for _, amount := range []string{p.WithdrawalFee, p.SwapFee, p.MinWithdraw, p.MaxWithdraw} {
			assert.Regexp(t, `^[0-9]+(\.[0-9]+)?$`, amount)
		}
		assert.Regexp(t, `^\d+\.\d{8}$`, p.Coin.MinAmount)
	}
	assert.Len(t, ids, len(all), "identifiers are unique")
	assert.GreaterOrEqual(t, len(all), 20)
	assert.GreaterOrEqual(t, len(coins), 12)
	assert.GreaterOrEqual(t, len(networks), 10)
	assert.Equal(t, 5, coins["USDT"])
	assert.Equal(t, map[string]int{"deposits": 1, "withdrawals": 1, "coin": 1}, off)
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
