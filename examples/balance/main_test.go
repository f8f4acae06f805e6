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

func TestRun(t *testing.T) {
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
		"a coin": {[]string{"USDT"}, `COIN  NETWORK                  AMOUNT
USDT  Tron                     1520.75
USDT  Ethereum                 310.5
USDT  BNB Smart Chain (BEP20)  0
`},
		"a coin on a network": {[]string{"USDT", "Tron"}, `COIN  NETWORK  AMOUNT
USDT  Tron     1520.75
`},
		"a network": {[]string{"", "Tron"}, `COIN  NETWORK  AMOUNT
USDT  Tron     1520.75
TRX   Tron     845.12
`},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, err := clitest.Call(t.Context(), t, run, clitest.Gateway(t), test.args...)
			require.NoError(t, err)
			assert.Equal(t, test.want, stdout)
		})
	}
}

func TestRun_nothingThere(t *testing.T) {
	stdout, err := clitest.Call(t.Context(), t, run, clitest.Gateway(t), "DOGE")
	require.ErrorIs(t, err, gateway.ErrNotFound)
	assert.Equal(t, 1, cli.Code(err))
	assert.Empty(t, stdout)
}

func TestRun_noKey(t *testing.T) {
	gw := clitest.Gateway(t)
	clitest.Setenv(t, &gatewaytest.Server{URL: gw.URL})
	var stdout strings.Builder
	err := run(t.Context(), nil, &stdout)
	require.ErrorIs(t, err, gateway.ErrMissingAPIKey)
	assert.Equal(t, 2, cli.Code(err))
	assert.Empty(t, stdout.String())
	assert.Empty(t, gw.Requests())
}

func TestRun_arguments(t *testing.T) {
	clitest.NeedsGateway(t, run)
	clitest.RefusesArguments(t, run, map[string][]string{
		"\"c\" is one argument too many\nusage: balance [SYMBOL [NETWORK]]": {"a", "b", "c"},
		"coinSymbol: must not begin or end with a space":                    {" USDT"},
	})
}
