package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/examples/internal/cli"
	"github.com/cryptogw/gateway/examples/internal/clitest"
	"github.com/cryptogw/gateway/gatewaytest"
)

const tether = `COIN  NETWORK                  FEE   MIN WITHDRAW  MAX WITHDRAW  DEPOSIT  WITHDRAW  CONFIRMATIONS  ACTIVE
USDT  Tron                     1     10            100000        yes      yes       20             yes
USDT  Ethereum                 4.5   20            100000        yes      yes       12             yes
USDT  BNB Smart Chain (BEP20)  0.29  10            100000        yes      yes       15             yes
USDT  Polygon                  0.1   5             50000         yes      yes       128            yes
USDT  Solana                   0.8   5             50000         yes      yes       32             yes
`

func TestRun_oneCoin(t *testing.T) {
	stdout, err := clitest.Call(t.Context(), t, run, clitest.Gateway(t), "USDT")
	require.NoError(t, err)
	assert.Equal(t, tether, stdout)
}

func TestRun_allCoins(t *testing.T) {
	gw := clitest.Gateway(t)
	stdout, err := clitest.Call(t.Context(), t, run, gw)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 1+len(gw.Catalog()))
	for _, line := range []string{
		"BTC   Bitcoin                  0.0002   0.001         5             yes      yes       2              yes",
		"DOGE  Dogecoin                 4        20            500000        yes      no        20             yes",
		"ADA   Cardano                  0.8      5             250000        no       yes       15             yes",
		"XMR   Monero                   0.0001   0.01          500           yes      yes       10             no",
	} {
		assert.Contains(t, lines, line)
	}
}

func TestRun_unknownCoin(t *testing.T) {
	stdout, err := clitest.Call(t.Context(), t, run, clitest.Gateway(t), "usdt")
	require.ErrorIs(t, err, gateway.ErrNotFound)
	require.ErrorContains(t, err, `the gateway has no coin "usdt"; symbols are upper case`)
	assert.Equal(t, 1, cli.Code(err))
	assert.Empty(t, stdout)
}

func TestRun_refused(t *testing.T) {
	gw := clitest.Gateway(t)
	gw.InjectFault(gatewaytest.OpCoinNetworks, 1, gatewaytest.Refuse(403, "not from there"))
	stdout, err := clitest.Call(t.Context(), t, run, gw)
	require.EqualError(t, err, `gateway: coin_networks: 403: "not from there"`)
	assert.Equal(t, 1, cli.Code(err))
	assert.Empty(t, stdout)
}

func TestRun_arguments(t *testing.T) {
	clitest.NeedsGateway(t, run)
	clitest.RefusesArguments(t, run, map[string][]string{
		"\"Tron\" is one argument too many\nusage: coins [SYMBOL]": {"USDT", "Tron"},
		"flag provided but not defined: -all":                      {"-all"},
		"coinSymbol: must not contain any of":                      {"a/b"},
	})
}
