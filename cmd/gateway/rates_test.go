package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/cli"
)

func TestRates_all(t *testing.T) {
	gw := standIn(t)
	got := call(t.Context(), t, gw, "rates")
	require.Zero(t, got.code, got.err)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	require.Len(t, lines, 1+len(gw.Rates()))
	assert.Equal(t, []string{
		"COIN  USD         EUR",
		"BTC   64250.18    59310.72",
		"ETH   3127.45     2887.02",
	}, lines[:3])
}

func TestRates_one(t *testing.T) {
	gw := standIn(t)
	assert.Equal(t, outcome{stdout: "COIN  USD         EUR\nDOGE  0.12345678  0.11396\n"}, call(t.Context(), t, gw, "rates", "--coin", "DOGE"))
	got := call(t.Context(), t, gw, "rates", "--coin", "DOGE", "-o", "json")
	assert.JSONEq(t, `[{"coinSymbol":"DOGE","usd":"0.12345678","eur":"0.11396"}]`, got.stdout)
}

func TestRates_unknown(t *testing.T) {
	gw := standIn(t)
	for _, coin := range []string{"doge", gw.APIKey} {
		assert.Equal(t, outcome{code: cli.ExitFailed, err: "the gateway has no rate of that coin; symbols are upper case\n"},
			call(t.Context(), t, gw, "rates", "--coin", coin))
	}
}

// A rate that is missing is shown as missing, not as a price of zero.
func TestRates_missing(t *testing.T) {
	gw := standIn(t)
	gw.SetRate("ETH", "3127.45", "")
	assert.Equal(t, outcome{stdout: "COIN  USD      EUR\nETH   3127.45  -\n"}, call(t.Context(), t, gw, "rates", "--coin", "ETH"))
	got := call(t.Context(), t, gw, "rates", "--coin", "ETH", "-o", "json")
	assert.JSONEq(t, `[{"coinSymbol":"ETH","usd":"3127.45","eur":null}]`, got.stdout)
}
