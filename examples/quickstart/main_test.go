package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// reading has lines of what the program reads.
const reading = `
Coins and networks
COIN  NETWORK                  FEE      MIN WITHDRAW  MAX WITHDRAW
BTC   Bitcoin                  0.0002   0.001         5
…
Exchange rates
COIN  USD         EUR
BTC   64250.18    59310.72
…
Balance
COIN  NETWORK                  AMOUNT
BTC   Bitcoin                  0.48215003
ETH   Ethereum                 3.250000000000000001
`

// call runs the program with a gateway, or with none configured if its URL is empty, and returns its output.
func call(t *testing.T, gw *gatewaytest.Server) (string, error) {
	t.Helper()
	t.Setenv("GATEWAY_BASE_URL", gw.URL)
	t.Setenv("GATEWAY_API_KEY", gw.APIKey)
	t.Setenv("GATEWAY_API_KEY_FILE", "")
	var stdout strings.Builder
	err := run(t.Context(), &stdout)
	return stdout.String(), err
}

// With a stand-in it creates an invoice, and waits for a withdrawal; with a configured gateway it must not.
func TestRun(t *testing.T) {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	standIn, err := call(t, &gatewaytest.Server{})
	require.NoError(t, err)
	configured, err := call(t, gw)
	require.NoError(t, err)
	for lines := range strings.SplitSeq(reading, "…\n") {
		assert.Contains(t, standIn, lines)
		assert.Contains(t, configured, lines)
	}
	assert.Contains(t, standIn, "No gateway is configured: this is a stand-in inside this process, and all its data is invented.\n")
	assert.Regexp(t, regexp.MustCompile(`\nInvoice [0-9a-f-]{36} for order order-1: 25.00 usd, which is 24.995001 USDT\n\nWithdrawal `), standIn)
	assert.Regexp(t, `\nPENDING\nCOMPLETED\n120.5 USDT on Tron to \w+, with a fee of 1\n$`, standIn)
	assert.Contains(t, configured, "Using the gateway of GATEWAY_BASE_URL, read-only;")
	require.Len(t, gw.Requests(), 3)
	for _, r := range gw.Requests() {
		assert.Equal(t, "GET", r.Method)
	}
	gw.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultRefuse(401, "unknown key"))
	_, err = call(t, gw)
	require.ErrorIs(t, err, gateway.ErrUnauthorized)
}

// An amount that a response lacks is not printed as zero.
func TestRun_missing(t *testing.T) {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.SetResult(gatewaytest.OpCoinNetworks, `[{"id":"p-1","withdrawalFee":null,"minWithdraw":"2","depositable":true,
		"network":{"name":"Tron","isActive":true},
		"coin":{"id":"c-1","symbol":"USDT","precision":6,"minAmount":"1","isActive":true}}]`)
	out, err := call(t, gw)
	require.NoError(t, err)
	assert.Regexp(t, `\nUSDT +Tron +- +2 +-\n`, out)
}

// A lost response is unknown, and the same call again sends nothing.
func TestLose(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, lose(t.Context(), &out))
	for _, line := range []string{
		"the first call: unknown; SafeToRetry: false",
		"the same call again: unknown; SafeToRetry: false",
		"The gateway got 1 request, and has 1 invoice.",
	} {
		assert.Contains(t, out.String(), line)
	}
}
