package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/examples/internal/clitest"
	"github.com/cryptogw/gateway/gatewaytest"
)

// report probes a gateway, or a stand-in when gw is nil, and returns what -json
// prints.
func report(t *testing.T, gw *gatewaytest.Server, args ...string) (Report, error) {
	t.Helper()
	stdout, err := clitest.Call(t.Context(), t, run, gw, append([]string{"-json"}, args...)...)
	var r Report
	from := json.NewDecoder(strings.NewReader(stdout))
	from.DisallowUnknownFields()
	require.NoError(t, from.Decode(&r))
	return r, err
}

// shapesOf returns the shapes of all results as text, in the order of the calls.
func shapesOf(t *testing.T, r Report) []string {
	t.Helper()
	words := []string{}
	for _, call := range r.Calls {
		require.NotNil(t, call.Shape, call.Route)
		words = append(words, call.Shape.String())
	}
	return words
}

// shapeTexts returns the text of each shape, of all records and of one.
func shapeTexts() map[gatewaytest.Shape][2]string {
	balances := "array of 6 records (balance string, coinSymbol string, networkName string)"
	return map[gatewaytest.Shape][2]string{
		gatewaytest.PairAsRecord:     {"one record"},
		gatewaytest.PairInArray:      {"array of 1 record"},
		gatewaytest.SymbolAsArray:    {"array of 2 records"},
		gatewaytest.SymbolAsRecord:   {"one record"},
		gatewaytest.RatesAsRecords:   {"array of 14 records (eur string, symbol string, usd string)"},
		gatewaytest.RatesAsNumbers:   {"array of 14 records (eur number, symbol string, usd number)"},
		gatewaytest.RatesUpperCase:   {"array of 14 records (EUR string, USD string, currency string)"},
		gatewaytest.RatesWithCoin:    {"array of 14 records (coin object, eur string, usd string)"},
		gatewaytest.RatesBySymbol:    {"map by symbol of 14 coins (eur string, usd string)"},
		gatewaytest.RatesByFiat:      {"map by currency of 14 coins (string)"},
		gatewaytest.BalanceAsRecords: {balances, "array of 1 record (balance string, coinSymbol string, networkName string)"},
		gatewaytest.BalanceAsRecord:  {balances, "one record (balance string, coinSymbol string, networkName string)"},
		gatewaytest.BalanceBare:      {balances, "bare amount (string)"},
		gatewaytest.BalanceBySymbol:  {"map by symbol of 4 coins (string)", "map by symbol of 1 coin (string)"},
	}
}

// Every combination of undocumented bodies is recognised and read.
func TestRun_everyCombinationOfShapes(t *testing.T) {
	gw := clitest.Gateway(t)
	gw.SetCatalog(gw.Catalog()[:2]) // both of one coin
	id := gw.Withdrawals()[0].WithdrawRequestID
	words, groups := shapeTexts(), shapes()
	for _, pair := range groups[0] {
		for _, symbol := range groups[1] {
			for _, rates := range groups[2] {
				for _, balance := range groups[3] {
					name := fmt.Sprint(pair, symbol, rates, balance)
					for _, shape := range []gatewaytest.Shape{pair, symbol, rates, balance} {
						gw.SetShape(shape)
					}
					r, err := report(t, gw, "-withdrawal", id)
					require.NoError(t, err, name)
					assert.Equal(t, []string{
						"array of 2 records", words[pair][0], words[pair][0], words[symbol][0],
						words[rates][0], words[balance][0], words[balance][1], "one record",
					}, shapesOf(t, r), name)
					assert.Zero(t, r.Unread, name)
					assert.Zero(t, r.Findings, name)
				}
			}
		}
	}
	for _, request := range gw.Requests() {
		require.Equal(t, http.MethodGet, request.Method)
	}
}

func TestRun_standIn(t *testing.T) {
	drawn := map[string]bool{}
	for seed := range 12 {
		number := fmt.Sprint(seed + 1)
		r, err := report(t, nil, "-seed", number)
		require.NoError(t, err)
		assert.True(t, r.StandIn)
		assert.Equal(t, number, fmt.Sprint(r.Seed))
		assert.Len(t, r.Calls, 8)
		assert.Zero(t, r.Unread)
		assert.Zero(t, r.Findings)
		again, err := report(t, nil, "-seed", number)
		require.NoError(t, err)
		assert.Equal(t, shapesOf(t, r), shapesOf(t, again))
		drawn[strings.Join(shapesOf(t, r), "\n")] = true
	}
	assert.Greater(t, len(drawn), 6, "the seed makes the difference")
}

// The withdrawal in the arguments takes precedence over that of the stand-in.
func TestRun_standInsWithdrawal(t *testing.T) {
	r, err := report(t, nil, "-withdrawal", "w-1")
	require.EqualError(t, err, "1 response could not be read")
	assert.Equal(t, `gateway: withdrawal: 404: "no such withdrawal"`, r.Calls[7].Error)
}

// Shapes that the stand-in does not have, but the client reads.
func TestRun_furtherShapes(t *testing.T) {
	for _, tt := range []struct{ path, result, shape string }{
		{pathRates, `{"USD":{"USDT":1},"EUR":{"USDT":"0.9"}}`, "map by currency of 1 coin (number or string)"},
		{
			pathRates, `[{"coinSymbol":"USDT","usd":1,"EUR":"0.9"},{"coin":{"id":"7","symbol":"TRX","precision":"6"},"usd":"1","EUR":"0.9"}]`,
			"array of 2 records (EUR string, coin object, coinSymbol string, usd number or string)",
		},
		{pathBalance, `7`, "bare amount (number)"},
		{pathBalance, `{"symbol":"USDT","available":"1"}`, "one record (available string, symbol string)"},
		{pathBalance, `{"USDT":{"amount":0.5},"TRX":"7"}`, "map by symbol of 2 coins (amount number, string)"},
		{pathBalance, `[{"currency":"USDT","network":{"name":"Tron"},"balance":"1"}]`, "array of 1 record (balance string, currency string, network object)"},
		{pathBalance, `[]`, "array of 0 records"},
	} {
		call, err := probed(t, tt.path, response{tt.path, 200, enveloped(tt.result)})
		require.NoError(t, err, tt.result)
		assert.Equal(t, tt.shape, call.Shape.String())
		assert.Empty(t, call.Findings)
	}
}

func TestRun_anySeed(t *testing.T) {
	r, err := report(t, nil)
	require.NoError(t, err)
	assert.Positive(t, r.Seed)
	stdout, err := clitest.Call(t.Context(), t, run, nil)
	require.NoError(t, err)
	first, _, _ := strings.Cut(stdout, "\n")
	assert.Regexp(t, `^No gateway is configured: this is a stand-in .* -seed \d+ repeats them\.$`, first)
}
