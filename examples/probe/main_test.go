package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/examples/internal/cli"
	"github.com/cryptogw/gateway/examples/internal/clitest"
	"github.com/cryptogw/gateway/gatewaytest"
)

var milliseconds = regexp.MustCompile(`\d+ ms`)

func TestRun_text(t *testing.T) {
	gw := clitest.Gateway(t)
	gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.Refuse(500, "try again"))
	gw.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.Refuse(403, "not you"))
	gw.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.Drift())
	stdout, err := clitest.Call(t.Context(), t, run, gw)
	require.EqualError(t, err, "1 response could not be read")
	assert.Equal(t, 1, cli.Code(err))
	assert.Equal(t, `Using the gateway of GATEWAY_BASE_URL, read-only.

CoinNetworks, GET /api/networks-coins
  200 in N ms: array of 25 records

CoinNetwork, GET /api/networks-coins/{id}
  200 in N ms: one record

CoinNetworkBySymbol, GET /api/networks-coins/{coinSymbol}/{networkName}
  200 in N ms: one record

CoinNetworksBySymbol, GET /api/networks-coins/{coinSymbol}
  200 in N ms: array of 2 records

ExchangeRates, GET /api/exchange-rate
  200 in N ms and 2 attempts: array of 14 records (eur string, symbol string, usd string)

Balance, GET /api/balance/
  403 in N ms
  could not be read: gateway: balance: 403: "not you"

Balance, GET /api/balance/?coinSymbol={coinSymbol}&networkName={networkName}
  200 in N ms: array of 1 record (balance string, coinSymbol string, networkName string, undocumented object)
  unknown field /undocumented
  unknown field /result/0/undocumented: object

Withdrawal, GET /api/withdrawal/inquiry/{withdrawRequestId}
  skipped: give an identifier with -withdrawal

Read: 6. Could not be read: 1. Skipped: 1. Differences from docs/interface.md: 2.
`, milliseconds.ReplaceAllString(stdout, "N ms"))
}

// Scripts may rely on every word of the JSON.
func TestRun_json(t *testing.T) {
	gw := clitest.Gateway(t)
	gw.SetCatalog(nil)
	gw.InjectFault(gatewaytest.OpBalance, 2, gatewaytest.DriftFields())
	gw.SetBalance("BTC", "Bitcoin", "x")
	stdout, err := clitest.Call(t.Context(), t, run, gw, "-json")
	require.EqualError(t, err, "1 response could not be read")
	stdout = regexp.MustCompile(`"milliseconds": \d+`).ReplaceAllString(stdout, `"milliseconds": 0`)
	text := `{
  "standIn": false,
  "seed": 0,
  "unread": 1,
  "findings": 2,
  "calls": [
    {
      "method": "CoinNetworks",
      "route": "GET /api/networks-coins",
      "skipped": "",
      "status": 200,
      "attempts": 1,
      "milliseconds": 0,
      "shape": {
        "kind": "array of records",
        "count": 0,
        "enveloped": true,
        "members": {}
      },
      "findings": [],
      "error": ""
    },
    {
      "method": "CoinNetwork",
      "route": "GET /api/networks-coins/{id}",
      "skipped": "no earlier response has an id to request",
      "status": 0,
      "attempts": 0,
      "milliseconds": 0,
      "shape": null,
      "findings": [],
      "error": ""
    },
`
	assert.True(t, strings.HasPrefix(stdout, text), stdout)
	assert.Contains(t, stdout, `
      "method": "Balance",
      "route": "GET /api/balance/",
      "skipped": "",
      "status": 200,
      "attempts": 1,
      "milliseconds": 0,
      "shape": {
        "kind": "array of records",
        "count": 6,
        "enveloped": true,
        "members": {
          "balance": "string",
          "coinSymbol": "string",
          "networkName": "string",
          "undocumented": "object"
        }
      },
      "findings": [
        {
          "kind": "unknown field",
          "pointer": "/undocumented",
          "detail": "",
          "count": 1
        },
`)
}

// Without a key, fewer calls are made.
func TestRun_noKey(t *testing.T) {
	gw := clitest.Gateway(t)
	clitest.Setenv(t, &gatewaytest.Server{URL: gw.URL})
	var stdout strings.Builder
	require.NoError(t, run(t.Context(), []string{"-withdrawal", "w-1"}, &stdout))
	assert.Equal(t, 3, strings.Count(stdout.String(), "\n  skipped: it needs a key: set GATEWAY_API_KEY or GATEWAY_API_KEY_FILE\n"))
	assert.Contains(t, stdout.String(), "\nRead: 5. Could not be read: 0. Skipped: 3. Differences from docs/interface.md: 0.\n")
	assert.Len(t, gw.Requests(), 5)
}

func TestRun_keyOnPublic(t *testing.T) {
	for _, args := range [][]string{{}, {"-key-on-public"}} {
		gw := clitest.Gateway(t)
		_, err := report(t, gw, args...)
		require.NoError(t, err)
		require.Len(t, gw.Requests(), 7)
		for _, request := range gw.Requests() {
			sent := request.Operation == gatewaytest.OpBalance || len(args) > 0
			assert.Equal(t, sent, request.KeyIn == "header", request.Operation)
		}
	}
}

// Ctrl-C ends the probe; the report has the calls made so far.
func TestRun_interrupted(t *testing.T) {
	gw := clitest.Gateway(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	printed := ""
	out := writer(func(text string) {
		printed += text
		if strings.Contains(text, "CoinNetworksBySymbol") {
			interrupt()
		}
	})
	clitest.Setenv(t, gw)
	err := run(ctx, nil, out)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 130, cli.Code(err))
	assert.Len(t, gw.Requests(), 4)
	assert.NotContains(t, printed, "ExchangeRates")
	assert.Contains(t, printed, "\nRead: 4. ")
}

type writer func(string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

func TestRun_arguments(t *testing.T) {
	clitest.RefusesArguments(t, run, map[string][]string{
		"\"now\" is one argument too many\nusage: probe [flags]": {"now"},
		`invalid value "-1" for flag -seed`:                      {"-seed", "-1"},
	})
}
