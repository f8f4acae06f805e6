package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBalance(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"everything": {nil, `COIN  NETWORK                  AMOUNT
BTC   Bitcoin                  0.48215003
ETH   Ethereum                 3.250000000000000001
USDT  Tron                     1520.75
USDT  Ethereum                 310.5
USDT  BNB Smart Chain (BEP20)  0
TRX   Tron                     845.12
`},
		"a coin": {[]string{"--coin", "USDT"}, `COIN  NETWORK                  AMOUNT
USDT  Tron                     1520.75
USDT  Ethereum                 310.5
USDT  BNB Smart Chain (BEP20)  0
`},
		"a coin on a network": {[]string{"--coin", "USDT", "--network", "Tron"}, `COIN  NETWORK  AMOUNT
USDT  Tron     1520.75
`},
		"a network": {[]string{"--network", "Tron"}, `COIN  NETWORK  AMOUNT
USDT  Tron     1520.75
TRX   Tron     845.12
`},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, outcome{stdout: test.want}, call(t.Context(), t, standIn(t), append([]string{"balance"}, test.args...)...))
		})
	}
}

func TestBalance_json(t *testing.T) {
	got := call(t.Context(), t, standIn(t), "balance", "--coin", "ETH", "-o", "json")
	assert.JSONEq(t, `[{"coinSymbol":"ETH","networkName":"Ethereum","amount":"3.250000000000000001"}]`, got.stdout)
}

// Text in JSON is as it came, also where HTML would need another form.
func TestBalance_jsonText(t *testing.T) {
	gw := standIn(t)
	gw.SetBalance("A&B", "<C>", "1")
	assert.Contains(t, call(t.Context(), t, gw, "balance", "--coin", "A&B", "-o", "json").stdout, "\"A&B\",\n    \"networkName\": \"<C>\"")
}

func TestBalance_none(t *testing.T) {
	got := call(t.Context(), t, standIn(t), "balance", "--coin", "DOGE")
	assert.Equal(t, outcome{code: exitRefused, err: "gateway: balance: 404: \"no such balance\"\n"}, got)
}
