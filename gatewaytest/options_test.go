package gatewaytest_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

func TestWithAPIKey(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewServer(gatewaytest.WithAPIKey("other"), gatewaytest.WithAPIKey("key-of-mine"))
	t.Cleanup(s.Close)
	assert.Equal(t, "key-of-mine", s.APIKey)
	assert.Equal(t, 200, mustTry(t, s, "GET", "/api/balance/", "", "x-api-key", "key-of-mine").status)
	for _, key := range []string{"", "a key", "a\n", "schlüssel", string(make([]byte, 5000))} {
		assert.Panics(t, func() { gatewaytest.WithAPIKey(key) })
	}
}

// Each list of a seed replaces the default one, and nil keeps it.
func TestWithSeed(t *testing.T) {
	t.Parallel()
	usual := startInMemory(t)
	seed := gatewaytest.Seed{
		Coins: []gatewaytest.CoinNetwork{pair(t, usdtOnTron)}, Rates: []gatewaytest.Rate{},
		Withdrawals: []gatewaytest.Withdrawal{{WithdrawRequestID: "w-1"}},
	}
	s := startInMemory(t, gatewaytest.WithSeed(seed))
	seed.Coins[0].ID = "changed later"
	assert.Equal(t, []gatewaytest.CoinNetwork{pair(t, usdtOnTron)}, s.Catalog())
	assert.Empty(t, s.Rates())
	assert.Equal(t, usual.Balances(), s.Balances())
	assert.Equal(t, []gatewaytest.Withdrawal{{WithdrawRequestID: "w-1", Status: "PENDING"}}, s.Withdrawals())

	other := startInMemory(t, gatewaytest.WithSeed(gatewaytest.Seed{Balances: []gatewaytest.BalanceEntry{{"A", "B", "1"}}}))
	assert.Equal(t, []gatewaytest.BalanceEntry{{"A", "B", "1"}}, other.Balances())
	assert.Equal(t, usual.Catalog(), other.Catalog())
	assert.Equal(t, usual.Rates(), other.Rates())
	assert.Equal(t, usual.Withdrawals(), other.Withdrawals())
}

// A handler in another server is the same gateway, with the same faults. Close ends its requests that wait.
func TestServer_Handler(t *testing.T) {
	t.Parallel()
	s := startInMemory(t)
	host := httptest.NewServer(s.Handler())
	t.Cleanup(host.Close)
	outside := &gatewaytest.Server{URL: host.URL + "/gateway", APIKey: s.APIKey}
	create := func(order string) response {
		return tryBy(&http.Transport{DisableKeepAlives: true}, outside, "POST", "/api/invoice/create", invoice(outside, order, ""), "Content-Type", "application/json")
	}
	assert.Equal(t, 201, create("A-17").status)
	assert.Len(t, s.InvoicesFor("A-17"), 1)

	for _, fault := range []gatewaytest.Fault{gatewaytest.FaultReset(), gatewaytest.FaultCommitThenDrop()} {
		s.InjectFault(gatewaytest.AnyOperation, 1, fault)
		require.Error(t, create("A-18").err, fault)
	}
	assert.Len(t, s.InvoicesFor("A-18"), 1)
	s.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultReset())
	assert.ErrorContains(t, tryBy(&http.Transport{DisableKeepAlives: true}, outside, "GET", "/api/exchange-rate", "").err, "reset by peer")

	s.InjectFault(gatewaytest.AnyOperation, 1, gatewaytest.FaultStall())
	var waiting sync.WaitGroup
	waiting.Go(func() { assert.Error(t, create("A-19").err) })
	require.Eventually(t, func() bool { return s.Requests()[len(s.Requests())-1].Fault == "stall" }, 10*time.Second, time.Millisecond)
	s.Close()
	waiting.Wait()
}
