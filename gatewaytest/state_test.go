package gatewaytest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// What a server has, as JSON too, makes another one like it.
func TestServer_State(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.Equal(t, 201, post(s, invoice(s, "o-1", `,"coinSymbol":"BTC"`)).status)
	s.SetRate("BTC", "1", "2")
	s.SetBalance("BTC", "Bitcoin", "3")
	id := s.AddWithdrawal(gatewaytest.Withdrawal{Amount: "4"})

	encoded, err := json.Marshal(s.State())
	require.NoError(t, err)
	var seed gatewaytest.Seed
	require.NoError(t, json.Unmarshal(encoded, &seed))
	again := gatewaytest.NewServer(gatewaytest.WithSeed(seed), gatewaytest.WithAPIKey(s.APIKey))
	t.Cleanup(again.Close)
	again.SetRepeatedOrders(gatewaytest.RepeatSame)
	for _, path := range []string{"/api/networks-coins", "/api/exchange-rate", "/api/balance/", "/api/withdrawal/inquiry/" + id} {
		assert.Equal(t, get(t, s, path).body, get(t, again, path).body, path)
	}
	assert.Equal(t, 200, post(again, invoice(again, "o-1", "")).status, "its order has an invoice")
	assert.JSONEq(t, string(encoded), encode(t, again.State()))

	again.SetState(gatewaytest.Seed{Rates: []gatewaytest.Rate{}, Invoices: []gatewaytest.Invoice{}})
	assert.Empty(t, again.Rates())
	assert.Empty(t, again.Invoices())
	assert.NotEmpty(t, again.Catalog(), "a list that is nil is not replaced")
	assert.Equal(t, 201, post(again, invoice(again, "o-1", "")).status)
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

// The oldest requests and invoices are dropped, and what is kept stays right.
func TestWithHistory(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewMemoryServer(gatewaytest.WithHistory(20_000))
	t.Cleanup(s.Close)
	s.SetRepeatedOrders(gatewaytest.RepeatSame)
	transport := s.Transport()
	create := func(i int) int {
		return tryBy(transport, s, "POST", "/api/invoice/create", invoice(s, fmt.Sprintf("o-%d", i), ""), "Content-Type", "application/json").status
	}
	for i := range 500 {
		require.Equal(t, 201, create(i))
	}
	requests, invoices := s.Dropped()
	assert.Equal(t, 500, requests+len(s.Requests()))
	assert.Equal(t, 500, invoices+len(s.Invoices()))
	assert.Positive(t, len(s.Requests()))
	assert.Less(t, len(s.Requests()), 40)
	assert.Less(t, len(s.Invoices()), 60)
	assert.Equal(t, "o-499", s.Invoices()[len(s.Invoices())-1].OrderID)
	assert.Contains(t, string(s.Requests()[len(s.Requests())-1].Body), `"o-499"`)
	assert.Equal(t, 200, create(499), "its invoice is kept")
	assert.Equal(t, 201, create(0), "its invoice is not: the order is new")
	assert.Equal(t, 200, create(0))
	assert.Panics(t, func() { gatewaytest.WithHistory(0) })
}

// The log has every request once its response is sent, without a key.
func TestWithRequestLog(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var logged []gatewaytest.Request
	s := gatewaytest.NewServer(gatewaytest.WithRequestLog(func(r gatewaytest.Request) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, r)
	}))
	t.Cleanup(s.Close)
	get(t, s, "/api/balance/")
	s.InjectFault(gatewaytest.AnyOperation, 1, gatewaytest.FaultCommitThenDrop())
	post(s, invoice(s, "o-1", ""))
	s.Close() // every handler has ended
	require.Len(t, logged, 2)
	assert.Equal(t, []any{gatewaytest.OpBalance, 200, ""}, []any{logged[0].Operation, logged[0].Status, logged[0].Fault})
	assert.Equal(t, []any{gatewaytest.OpCreateInvoice, 0, "commit-then-drop"}, []any{logged[1].Operation, logged[1].Status, logged[1].Fault})
	assert.Equal(t, s.Requests(), logged)
	assert.False(t, strings.Contains(fmt.Sprintf("%+v", logged), s.APIKey))
	assert.Contains(t, string(logged[1].Body), `"orderId":"o-1"`)
}
