package probe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// report probes a gateway, with the identifier of a withdrawal if there is one, and
// returns the report as it is in JSON.
func report(t *testing.T, gw *gatewaytest.Server, withdrawal ...string) Report {
	t.Helper()
	return reportOf(t, gw, &Probe{Withdrawal: strings.Join(withdrawal, "")})
}

func reportOf(t *testing.T, gw *gatewaytest.Server, p *Probe) Report {
	t.Helper()
	opts := []gateway.Option{gateway.WithObserver(p.Observer())}
	if p.KeyOnPublic {
		opts = append(opts, gateway.WithAPIKeyOnPublicCalls())
	}
	client, err := gateway.New(gw.URL, gw.APIKey, opts...)
	require.NoError(t, err)
	encoded, err := json.Marshal(p.Run(t.Context(), client, gw.URL))
	require.NoError(t, err)
	if gw.APIKey != "" {
		assert.NotContains(t, string(encoded), gw.APIKey)
	}
	var r Report
	from := json.NewDecoder(strings.NewReader(string(encoded)))
	from.DisallowUnknownFields()
	require.NoError(t, from.Decode(&r))
	return r
}

// standIn returns a stand-in that is closed when the test ends.
func standIn(t *testing.T) *gatewaytest.Server {
	t.Helper()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	return gw
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
	gw := standIn(t)
	gw.SetCatalog(gw.Catalog()[:2]) // both of one coin
	id := gw.Withdrawals()[0].WithdrawRequestID
	words := shapeTexts()
	for _, pair := range shapes[gatewaytest.PairShape]() {
		for _, symbol := range shapes[gatewaytest.SymbolShape]() {
			for _, rates := range shapes[gatewaytest.RatesShape]() {
				for _, balance := range shapes[gatewaytest.BalanceShape]() {
					name := fmt.Sprint(pair, symbol, rates, balance)
					for _, shape := range []gatewaytest.Shape{pair, symbol, rates, balance} {
						gw.SetShape(shape)
					}
					r := report(t, gw, id)
					require.NoError(t, r.Err(), name)
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

// Shapes that the stand-in does not have, but the client reads.
func TestRun_furtherShapes(t *testing.T) {
	for _, tt := range []struct{ path, result, shape string }{
		{pathRates, `{"USD":{"USDT":1},"EUR":{"USDT":"0.9"}}`, "map by currency of 1 coin (number or string)"},
		{
			pathRates, `[{"coinSymbol":"USDT","usd":1,"EUR":"0.9"},{"coin":{"id":"7","symbol":"TRX","precision":"6"},"usd":"1","EUR":"0.9"}]`,
			"array of 2 records (EUR string, coin object, coinSymbol string, usd number or string)",
		},
		{pathBalance, `{"symbol":"USDT","available":"1"}`, "one record (available string, symbol string)"},
		{pathBalance, `{"USDT":{"amount":0.5},"TRX":"7"}`, "map by symbol of 2 coins (amount number, string)"},
		{pathBalance, `[{"currency":"USDT","network":{"name":"Tron"},"balance":"1"}]`, "array of 1 record (balance string, currency string, network object)"},
		{pathBalance, `[]`, "array of 0 records"},
	} {
		call, r := probed(t, tt.path, response{tt.path, 200, enveloped(tt.result)})
		require.NoError(t, r.Err(), tt.result)
		assert.Equal(t, tt.shape, call.Shape.String())
		assert.Empty(t, call.Findings)
	}
}

// shapes returns the shapes of one type.
func shapes[S gatewaytest.Shape]() (all []gatewaytest.Shape) {
	for _, shape := range gatewaytest.Shapes() {
		if _, ok := shape.(S); ok {
			all = append(all, shape)
		}
	}
	return all
}
