package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/cli"
)

const tether = `COIN  NETWORK                  MIN AMOUNT  FEE   MIN WITHDRAW  MAX WITHDRAW  DEPOSIT  WITHDRAW  CONFIRMATIONS  ACTIVE
USDT  Tron                     1           1     10            100000        yes      yes       20             yes
USDT  Ethereum                 1           4.5   20            100000        yes      yes       12             yes
USDT  BNB Smart Chain (BEP20)  1           0.29  10            100000        yes      yes       15             yes
USDT  Polygon                  1           0.1   5             50000         yes      yes       128            yes
USDT  Solana                   1           0.8   5             50000         yes      yes       32             yes
`

func TestCoins_one(t *testing.T) {
	gw := standIn(t)
	assert.Equal(t, outcome{stdout: tether}, call(t.Context(), t, gw, "coins", "--coin", "USDT"))
	got := call(t.Context(), t, gw, "coins", "--coin", "USDT", "--network", "BNB Smart Chain (BEP20)")
	assert.Zero(t, got.code)
	assert.Equal(t, 2, strings.Count(got.stdout, "\n"))
	assert.Contains(t, got.stdout, "USDT  BNB Smart Chain (BEP20)  1           0.29 ")
	assert.Equal(t, "/gateway/api/networks-coins/USDT/BNB%20Smart%20Chain%20%28BEP20%29", gw.Requests()[1].Target)
}

func TestCoins_all(t *testing.T) {
	gw := standIn(t)
	got := call(t.Context(), t, gw, "coins")
	require.Zero(t, got.code, got.err)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	require.Len(t, lines, 1+len(gw.Catalog()))
	for _, line := range []string{
		"BTC   Bitcoin                  0.00001     0.0002   0.001         5             yes      yes       2              yes",
		"DOGE  Dogecoin                 5           4        20            500000        yes      no        20             yes",
		"ADA   Cardano                  1           0.8      5             250000        no       yes       15             yes",
		"XMR   Monero                   0.005       0.0001   0.01          500           yes      yes       10             no",
	} {
		assert.Contains(t, lines, line)
	}
}

// Scripts may rely on every word of the JSON.
func TestCoins_json(t *testing.T) {
	gw := standIn(t)
	got := call(t.Context(), t, gw, "coins", "--coin", "LTC", "-o", "json")
	require.Zero(t, got.code, got.err)
	assert.JSONEq(t, `[{"id":"`+gw.Catalog()[19].ID+`","coinSymbol":"LTC","coinName":"Litecoin","networkName":"Litecoin",
		"active":true,"precision":8,"minAmount":"0.005","withdrawalFee":"0.001","swapFee":"0.002","minWithdraw":"0.01",
		"maxWithdraw":"1000","depositable":true,"withdrawable":true,"confirmations":6,"arrivalTime":20,"expirationTime":90}]`, got.stdout)
	gw.SetCatalog(nil)
	assert.Equal(t, outcome{stdout: "[]\n"}, call(t.Context(), t, gw, "coins", "-o", "json"))
}

func TestCoins_unknown(t *testing.T) {
	gw := standIn(t)
	for _, args := range [][]string{{"--coin", "usdt"}, {"--coin", "USDT", "--network", "tron"}} {
		got := call(t.Context(), t, gw, append([]string{"coins"}, args...)...)
		assert.Equal(t, exitRefused, got.code)
		assert.Contains(t, got.err, "the gateway has no such coin, or not on that network; symbols are upper case")
		assert.Empty(t, got.stdout)
	}
	got := call(t.Context(), t, gw, "coins", "--coin", gw.APIKey)
	assert.Equal(t, cli.ExitUsage, got.code)
	assert.Equal(t, "gateway: coin_networks_of: coinSymbol: contains an API key\n", got.err)
}

// decode reads a JSON document that is all of a text.
func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	from := json.NewDecoder(strings.NewReader(text))
	from.DisallowUnknownFields()
	require.NoError(t, from.Decode(&value), text)
	assert.False(t, from.More())
	return value
}
