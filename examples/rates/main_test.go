package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/examples/internal/cli"
	"github.com/cryptogw/gateway/examples/internal/clitest"
)

func TestRun_allCoins(t *testing.T) {
	gw := clitest.Gateway(t)
	stdout, err := clitest.Call(t.Context(), t, run, gw)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 1+len(gw.Rates()))
	assert.Equal(t, []string{
		"COIN  USD         EUR",
		"BTC   64250.18    59310.72",
		"ETH   3127.45     2887.02",
	}, lines[:3])
}

func TestRun_oneCoin(t *testing.T) {
	stdout, err := clitest.Call(t.Context(), t, run, clitest.Gateway(t), "DOGE")
	require.NoError(t, err)
	assert.Equal(t, "COIN  USD         EUR\nDOGE  0.12345678  0.11396\n", stdout)
}

func TestRun_unknownCoin(t *testing.T) {
	stdout, err := clitest.Call(t.Context(), t, run, clitest.Gateway(t), "doge")
	require.EqualError(t, err, `the gateway has no rate of "doge"; symbols are upper case`)
	assert.Equal(t, 1, cli.Code(err))
	assert.Empty(t, stdout)
}

// A rate that is missing is shown as missing, not as a price of zero.
func TestRun_missingRate(t *testing.T) {
	gw := clitest.Gateway(t)
	gw.SetRate("ETH", "3127.45", "")
	stdout, err := clitest.Call(t.Context(), t, run, gw, "ETH")
	require.NoError(t, err)
	assert.Equal(t, "COIN  USD      EUR\nETH   3127.45  -\n", stdout)
}

func TestRun_arguments(t *testing.T) {
	clitest.NeedsGateway(t, run)
	clitest.RefusesArguments(t, run, map[string][]string{
		"\"usd\" is one argument too many\nusage: rates [SYMBOL]": {"BTC", "usd"},
		"flag provided but not defined: -fiat":                    {"-fiat"},
	})
}
