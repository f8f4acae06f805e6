package gatewaytest_test

import (
	"net"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

func TestNewServer_options(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	assert.Panics(t, func() { gatewaytest.NewServer(gatewaytest.WithAddr(addr)) }, "the address is in use")
	require.NoError(t, free.Close())

	s := gatewaytest.NewServer(gatewaytest.WithAddr("in use"), gatewaytest.WithAddr(addr), gatewaytest.WithAPIKey("key-of-mine"))
	t.Cleanup(s.Close)
	assert.Equal(t, "http://"+addr+"/gateway", s.URL)
	assert.Equal(t, "key-of-mine", s.APIKey)
	assert.Equal(t, 200, mustTry(t, s, "GET", "/api/balance/", "", "x-api-key", "key-of-mine").status)
	assert.NotContains(t, s.Requests()[0].Header.Get("X-Api-Key"), "mine")
	assert.NotContains(t, s.String(), "mine")
}

func TestWithAPIKey_refused(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "a key", "a\n", "schlüssel", string(make([]byte, 5000))} {
		assert.Panics(t, func() { gatewaytest.WithAPIKey(key) })
	}
}

// What a seed has takes the place of the initial data, and what it has not stays.
func TestWithSeed(t *testing.T) {
	t.Parallel()
	usual := gatewaytest.NewMemoryServer()
	t.Cleanup(usual.Close)
	seed := gatewaytest.Seed{
		Coins: []gatewaytest.CoinNetwork{pair()}, Rates: []gatewaytest.Rate{},
		Withdrawals: []gatewaytest.Withdrawal{{WithdrawRequestID: "w-1"}, {Status: "FAILED"}},
	}
	s := gatewaytest.NewMemoryServer(gatewaytest.WithSeed(seed))
	t.Cleanup(s.Close)
	seed.Coins[0].ID = "changed later"
	assert.Equal(t, []gatewaytest.CoinNetwork{pair()}, s.Catalog())
	assert.Empty(t, s.Rates())
	assert.Equal(t, usual.Balances(), s.Balances())
	require.Len(t, s.Withdrawals(), 2)
	assert.Equal(t, gatewaytest.Withdrawal{WithdrawRequestID: "w-1", Status: "PENDING"}, s.Withdrawals()[0])
	assert.NotEmpty(t, s.Withdrawals()[1].WithdrawRequestID)

	other := gatewaytest.NewMemoryServer(gatewaytest.WithSeed(gatewaytest.Seed{Balances: []gatewaytest.BalanceEntry{{"A", "B", "1"}}}))
	t.Cleanup(other.Close)
	assert.Equal(t, []gatewaytest.BalanceEntry{{"A", "B", "1"}}, other.Balances())
	assert.Equal(t, usual.Catalog(), other.Catalog())
	assert.Equal(t, usual.Rates(), other.Rates())
	assert.Equal(t, usual.Withdrawals(), other.Withdrawals())
}

// A handler in another server is the same gateway, with the same faults.
func TestServer_Handler(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewMemoryServer()
	t.Cleanup(s.Close)
	host := httptest.NewServer(s.Handler())
	t.Cleanup(host.Close)
	outside := &gatewaytest.Server{URL: host.URL + "/gateway", APIKey: s.APIKey}
	assert.Equal(t, 201, post(outside, invoice(outside, "A-17", "")).status)
	assert.Len(t, s.InvoicesFor("A-17"), 1)

	for _, fault := range []gatewaytest.Fault{gatewaytest.FaultReset(), gatewaytest.FaultCommitThenDrop()} {
		s.InjectFault(gatewaytest.AnyOperation, 1, fault)
		require.Error(t, post(outside, invoice(outside, "A-18", "")).err, fault)
	}
	assert.Len(t, s.InvoicesFor("A-18"), 1)
	s.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultReset())
	assert.ErrorContains(t, try(outside, "GET", "/api/exchange-rate", "").err, "reset by peer")
}

// Every response with an invention names it.
// I-16, I-26, I-34, I-36, I-50, I-51, I-95, I-105, I-124, I-156
func TestInventedHeader(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := []string{"x-api-key", s.APIKey}
	id, pair := s.Withdrawals()[0].WithdrawRequestID, s.Catalog()[0]
	s.SetShape(gatewaytest.RatesByFiat)
	s.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultRefuse(503, "later"))
	s.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultDrift())
	for _, test := range []struct {
		path   string
		header []string
		want   []string
	}{
		{"/api/networks-coins", nil, nil},
		{"/api/withdrawal/inquiry/" + id, key, nil},
		{"/api/networks-coins/" + pair.ID, nil, []string{"pair/record"}},
		{"/api/networks-coins/BTC/Bitcoin", nil, []string{"pair/record"}},
		{"/api/networks-coins/BTC", nil, []string{"symbol/array"}},
		{"/api/exchange-rate", nil, []string{"rates/fiat"}},
		{"/api/balance/", key, []string{"fault/refuse=503"}},
		{"/api/balance/", key, []string{"fault/drift", "balance/records"}},
		{"/api/balance/", key, []string{"balance/records"}},
		{"/api/balance/", nil, []string{"error/401"}},
		{"/api/other", nil, []string{"error/404"}},
	} {
		got := mustTry(t, s, "GET", test.path, "", test.header...)
		assert.Equal(t, test.want, got.header.Values(gatewaytest.InventedHeader), test.path)
	}
	assert.Equal(t, []string{"invoice/flat"}, post(s, invoice(s, "A-17", "")).header.Values(gatewaytest.InventedHeader))
	s.SetShape(gatewaytest.InvoiceNested)
	assert.Equal(t, []string{"invoice/nested"}, post(s, invoice(s, "A-18", "")).header.Values(gatewaytest.InventedHeader))
}
