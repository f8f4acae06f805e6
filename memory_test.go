package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// manyPairs is a listing as a service has it: coins on networks, each of both
// again and again, with identifiers of their own and a few fees.
func manyPairs(n int) string {
	var all strings.Builder
	for i := range n {
		if i > 0 {
			all.WriteByte(',')
		}
		coin, network := fmt.Sprintf("c%d", i%40), fmt.Sprintf("n%d", i/40%12)
		all.WriteString(strings.NewReplacer(
			pairID, fmt.Sprintf("7c9d6d0e-2f0f-4d7e-9a53-%012d", i),
			`"1.5"`, fmt.Sprintf(`"%d.5"`, i%7),
			"1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33", "1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2"+network,
			"5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44", "5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3"+coin,
			"Tron (TRC20)", "Network "+network, "USDT", strings.ToUpper(coin),
		).Replace(pairJSON))
	}
	return "[" + all.String() + "]"
}

// A record of a list is what it is alone, wherever it stands in the list.
func TestClient_CoinNetworks_alike(t *testing.T) {
	t.Parallel()
	const n = 1000
	list := manyPairs(n)
	all, err := cannedClient(t, 200, enveloped(list)).CoinNetworks(t.Context())
	require.NoError(t, err)
	require.Len(t, all, n)
	records := strings.Split(strings.Trim(list, "[]"), `,{"id":"7c9d6d0e`)
	for i := 0; i < n; i += 37 {
		record := records[i]
		if i > 0 {
			record = `{"id":"7c9d6d0e` + record
		}
		alone, err := cannedClient(t, 200, enveloped(record)).CoinNetwork(t.Context(), all[i].ID)
		require.NoError(t, err)
		assert.Equal(t, *alone, all[i])
	}
}

// Records of a list share what is equal, and a change of one is none of
// another: no operation changes a decimal, and the rest are values.
func TestClient_CoinNetworks_shared(t *testing.T) {
	t.Parallel()
	all, err := cannedClient(t, 200, enveloped("["+pairJSON+","+pairJSON+","+pairJSON+"]")).CoinNetworks(t.Context())
	require.NoError(t, err)
	before := all[2]
	a := &all[1]
	a.Coin.Name, a.Network.IsActive, a.Coin.Precision = "changed", false, 0
	for _, amount := range []*decimal.Decimal{&a.WithdrawalFee, &a.Coin.MinAmount} {
		_ = amount.Add(decimal.New(1, 0)).Mul(*amount).Round(1).Neg()
		amount.Coefficient().SetInt64(7)
		require.NoError(t, amount.Scan("99.99"))
	}
	assert.Equal(t, before, all[2])
	assert.Equal(t, "1.5", all[2].WithdrawalFee.String())
	assert.Equal(t, "0.000001", all[2].Coin.MinAmount.String())
	require.NoError(t, all[2].WithdrawalFee.UnmarshalJSON([]byte(`"3"`)))
	require.NoError(t, all[2].WithdrawalFee.UnmarshalBinary([]byte{0, 0, 0, 0, 2, 9}))
	assert.Equal(t, "1.5", all[0].WithdrawalFee.String())
}

// What is wrong within a record of a list is named where it stands, also after
// records that were read without a fault.
func TestClient_CoinNetworks_faultWithin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, old, new, pointer string }{
		{"in a coin", `"minAmount":"0.00000100"`, `"minAmount":null`, "/result/2/coin/minAmount"},
		{"in a network", `"isActive":true,`, `"isActive":"yes",`, "/result/2/network/isActive"},
		{"a coin that lacks a field", `"symbol":"USDT",`, ``, "/result/2/coin/symbol"},
		{"a coin that is no object", coinJSON, `"USDT"`, "/result/2/coin"},
		{"a field that is listed twice in a coin", `"precision":6`, `"precision":6,"precision":6`, "/result/2/coin/precision"},
		{"an identifier that is empty", `"networkId":"1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33"`, `"networkId":""`, "/result/2/networkId"},
		{"an identifier that is a number", `"networkId":"1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33"`, `"networkId":7`, "/result/2/networkId"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			strange := strings.Replace(pairJSON, tt.old, tt.new, 1)
			require.NotEqual(t, pairJSON, strange)
			result, err := cannedClient(t, 200, enveloped("["+pairJSON+","+pairJSON+","+strange+"]")).CoinNetworks(t.Context())
			assertInvariants(t, result, err)
			var fault *gateway.DecodeError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, tt.pointer, fault.Pointer)
		})
	}
}

// A key that the service repeats in a coin of a list is in none of its records.
func TestClient_CoinNetworks_keyWithin(t *testing.T) {
	t.Parallel()
	record := strings.Replace(pairJSON, "Tether", "Tether "+canary, 1)
	all, err := cannedClient(t, 200, enveloped("["+record+","+record+","+record+"]")).CoinNetworks(t.Context())
	assertInvariants(t, all, err)
	require.Len(t, all, 3)
	for _, p := range all {
		assert.Equal(t, "Tether [REDACTED]", p.Coin.Name)
	}
}
