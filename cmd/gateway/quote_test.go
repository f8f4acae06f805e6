package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/gatewaytest"
)

// quoted is a gateway with one coin that can be paid, one that is too little and one that is off.
func quoted(t *testing.T) *gatewaytest.Server {
	t.Helper()
	gw := standIn(t)
	pairs := gw.Catalog()
	small, off := pairs[5], pairs[6]
	small.Coin.MinAmount, off.Depositable = "20.00000000", false
	gw.SetCatalog([]gatewaytest.CoinNetwork{pairs[0], small, off})
	return gw
}

func TestQuote(t *testing.T) {
	gw := quoted(t)
	assert.Equal(t, outcome{stdout: "COIN  NETWORK  AMOUNT\nBTC   Bitcoin  0.00016343\n"}, call(t.Context(), t, gw, "quote", "10.50"))
	assert.Equal(t, `COIN  NETWORK   AMOUNT      PROBLEM
BTC   Bitcoin   0.00017704  
USDT  Tron      11.372252   gateway: coin.minAmount: 11.372252 is below 20; the nearest amount that passes is 20
USDT  Ethereum  0           gateway: depositable: is false; no amount passes
`, call(t.Context(), t, gw, "quote", "10.50", "--currency", "EUR", "--all").stdout)
	got := call(t.Context(), t, gw, "quote", "10.50", "-o", "json")
	offers := decode[[]offerRecord](t, got.stdout)
	require.Len(t, offers, 1)
	assert.True(t, offers[0].Payable)
	assert.Equal(t, "0.00016343", offers[0].Amount.String())
	assert.Empty(t, offers[0].Problem)
}

func TestQuote_usage(t *testing.T) {
	refuses(t, map[string]string{"quote": "the PRICE is missing", "quote ten": "write the price like 10.50"})
	gw := quoted(t)
	for line, want := range map[string]string{
		"quote 10 --currency gbp": "gateway quote: the currency must be usd or eur",
		"quote 0":                 "gateway quote: the price is required and must be greater than zero",
	} {
		got := call(t.Context(), t, gw, words(line)...)
		assert.Equal(t, cli.ExitUsage, got.code)
		assert.Contains(t, got.err, want)
	}
}
