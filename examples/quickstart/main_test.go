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

const reading = `
Coins and networks
COIN  NETWORK                  FEE      MIN WITHDRAW  MAX WITHDRAW
BTC   Bitcoin                  0.0002   0.001         5
BTC   BNB Smart Chain (BEP20)  0.00001  0.0005        5
ETH   Ethereum                 0.0016   0.01          100
ETH   Arbitrum One             0.0001   0.002         100
ETH   BNB Smart Chain (BEP20)  0.00022  0.002         100
USDT  Tron                     1        10            100000
USDT  Ethereum                 4.5      20            100000
USDT  BNB Smart Chain (BEP20)  0.29     10            100000
USDT  Polygon                  0.1      5             50000
USDT  Solana                   0.8      5             50000
USDC  Ethereum                 4.5      20            100000
USDC  Polygon                  0.1      5             50000
USDC  Solana                   0.8      5             50000
DAI   Ethereum                 4.2      20            50000
DAI   Polygon                  0.15     5             50000
BNB   BNB Smart Chain (BEP20)  0.0005   0.01          500
SOL   Solana                   0.008    0.1           5000
POL   Polygon                  0.1      5             200000
TRX   Tron                     1        10            1000000
LTC   Litecoin                 0.001    0.01          1000
DOGE  Dogecoin                 4        20            500000
XRP   XRP Ledger               0.2      10            250000
ADA   Cardano                  0.8      5             250000
AVAX  Avalanche C-Chain        0.01     0.1           10000
XMR   Monero                   0.0001   0.01          500

Exchange rates
COIN  USD         EUR
BTC   64250.18    59310.72
ETH   3127.45     2887.02
USDT  1.0002      0.9233
USDC  0.9999      0.923
DAI   0.9998      0.9229
BNB   584.3       539.38
SOL   148.62      137.19
POL   0.4127      0.381
TRX   0.1324      0.12222
LTC   71.08       65.61
DOGE  0.12345678  0.11396
XRP   0.5231      0.48288
ADA   0.3874      0.35761
AVAX  27.95       25.8

Balance
COIN  NETWORK                  AMOUNT
BTC   Bitcoin                  0.48215003
ETH   Ethereum                 3.250000000000000001
USDT  Tron                     1520.75
USDT  Ethereum                 310.5
USDT  BNB Smart Chain (BEP20)  0
TRX   Tron                     845.12
`

const writing = `
Invoice ID for order order-1: 25.00 usd, which is 24.995001 USDT

Withdrawal ID
PENDING: 50 USDT to TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE
COMPLETED: 50 USDT to TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE
`

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

func TestRun_standIn(t *testing.T) {
	stdout, err := call(t, nil)
	require.NoError(t, err)
	first, rest, _ := strings.Cut(stdout, "\n")
	assert.Equal(t, "No gateway is configured: this is a stand-in inside this process, and all its data is invented.", first)
	assert.Equal(t, reading+writing, anID.ReplaceAllString(rest, "ID"))
}

// With a configured gateway it must not create an invoice.
func TestRun_configured(t *testing.T) {
	gw := standIn(t)
	stdout, err := call(t, gw)
	require.NoError(t, err)
	first, rest, _ := strings.Cut(stdout, "\n")
	assert.Contains(t, first, "Using the gateway of GATEWAY_BASE_URL, read-only;")
	assert.Equal(t, reading, rest)
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
