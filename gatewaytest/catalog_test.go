package gatewaytest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/gatewaytest"
)

// The initial listing has the variety that tests of a client need.
// I-46, I-57, I-83, I-84
func TestServer_seeded_listing(t *testing.T) {
	t.Parallel()
	ids, coins, off := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, p := range start(t).Catalog() {
		ids[p.ID] = true
		coins[p.Coin.Symbol]++
		for what, on := range map[string]bool{"deposits": p.Depositable, "withdrawals": p.Withdrawable, "coin": p.Coin.IsActive} {
			if !on {
				off[what]++
			}
		}
		assert.Equal(t, []string{p.Coin.ID, p.Network.ID}, []string{p.CoinID, p.NetworkID})
	}
	assert.Len(t, ids, 25, "identifiers are unique")
	assert.Len(t, coins, 15)
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

// Records that a test sets are in the next response, as given.
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
