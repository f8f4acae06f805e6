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

// Lines of what the program reads, and of what it writes at a stand-in.
const (
	reading = `
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
	writing = `
Invoice ID for order order-1: 25.00 usd, which is 24.995001 USDT

Withdrawal ID
PENDING: 50 USDT to TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE
COMPLETED: 50 USDT to TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE
`
)

var anID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// call runs the program with a gateway, or with none configured if gw is nil, and
// returns its output.
func call(t *testing.T, gw *gatewaytest.Server) (string, error) {
	t.Helper()
	if gw == nil {
		gw = &gatewaytest.Server{}
	}
	t.Setenv("GATEWAY_BASE_URL", gw.URL)
	t.Setenv("GATEWAY_API_KEY", gw.APIKey)
	t.Setenv("GATEWAY_API_KEY_FILE", "")
	var stdout strings.Builder
	err := run(t.Context(), &stdout)
	return stdout.String(), err
}

// standIn returns a stand-in that is closed when the test ends.
func standIn(t *testing.T) *gatewaytest.Server {
	t.Helper()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	return gw
}

// assertReads asserts the lines about reads.
func assertReads(t *testing.T, stdout string) {
	t.Helper()
	for lines := range strings.SplitSeq(reading, "…\n") {
		assert.Contains(t, stdout, lines)
	}
}

func TestRun_standIn(t *testing.T) {
	stdout, err := call(t, nil)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(stdout, "No gateway is configured: this is a stand-in inside this process, and all its data is invented.\n"))
	assertReads(t, stdout)
	assert.True(t, strings.HasSuffix(anID.ReplaceAllString(stdout, "ID"), writing), stdout)
}

// With a configured gateway it must not create an invoice.
func TestRun_configured(t *testing.T) {
	gw := standIn(t)
	stdout, err := call(t, gw)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(stdout, "Using the gateway of GATEWAY_BASE_URL, read-only;"))
	assertReads(t, stdout)
	require.Len(t, gw.Requests(), 3)
	for _, r := range gw.Requests() {
		assert.Equal(t, "GET", r.Method)
	}
}

func TestRun_refused(t *testing.T) {
	for _, op := range []gatewaytest.Operation{gatewaytest.OpCoinNetworks, gatewaytest.OpExchangeRates, gatewaytest.OpBalance} {
		gw := standIn(t)
		gw.InjectFault(op, 1, gatewaytest.FaultRefuse(401, "unknown key"))
		_, err := call(t, gw)
		require.ErrorIs(t, err, gateway.ErrUnauthorized, op)
	}
}

// The error states the outcome of the invoice.
func TestInvoice_unknown(t *testing.T) {
	t.Parallel()
	gw := standIn(t)
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	client, err := gateway.New(gw.URL, gw.APIKey)
	require.NoError(t, err)
	var stdout strings.Builder
	require.ErrorContains(t, invoice(t.Context(), client, &stdout), "invoice unknown: gateway: create_invoice: outcome unknown")
	assert.Empty(t, stdout.String())
}

func TestWatch_failed(t *testing.T) {
	t.Parallel()
	gw := standIn(t)
	id := gw.AddWithdrawal(gatewaytest.Withdrawal{Status: "FAILED", Destination: "T", Amount: "50", Fee: "1", Coin: "USDT"})
	client, err := gateway.New(gw.URL, gw.APIKey)
	require.NoError(t, err)
	var stdout strings.Builder
	require.ErrorContains(t, watch(t.Context(), client, id, &stdout), "the service reports FAILED")
	assert.Equal(t, "\nWithdrawal "+id+"\nFAILED: 50 USDT to T\n", stdout.String())
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
