package gatewaytest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// unknown is the undocumented member, as the first of several.
const unknown = `"undocumented":{"by":"gatewaytest"},`

// driftedPair returns the drifted record of a pair, written independently.
func driftedPair() string {
	return strings.NewReplacer(
		`"network": {`, `"network": {`+unknown,
		`"coin": {`, `"coin": {`+unknown,
	).Replace("{" + unknown + usdtOnTron[1:])
}

// I-6
func TestDrift(t *testing.T) {
	t.Parallel()
	const (
		list  = "/api/networks-coins"
		byID  = list + "/8f4c2f0e-2b7b-4a55-9a4e-0c1d2e3f4a5b"
		rates = "/api/exchange-rate"
		one   = "/api/balance/?coinSymbol=BTC"
		two   = "/api/balance/?networkName=Tron"
	)
	coin := driftedPair()[strings.Index(driftedPair(), `"coin": `)+len(`"coin": `):]
	coin = coin[:strings.LastIndex(coin, "}")]
	noCoin := `{` + unknown + `"id":"","name":"","symbol":"ABC","precision":0,"minAmount":"","isActive":false,"created_at":"","updated_at":""}`
	tests := []struct {
		name   string
		shape  gatewaytest.Shape
		path   string
		status int
		result string
	}{
		{"listing", gatewaytest.PairAsRecord, list, 200, "[" + driftedPair() + "," + driftedPair() + "]"},
		{"pair", gatewaytest.PairAsRecord, byID, 200, driftedPair()},
		{"pair in array", gatewaytest.PairInArray, byID, 200, "[" + driftedPair() + "]"},
		{"symbol", gatewaytest.SymbolAsArray, list + "/USDT", 200, "[" + driftedPair() + "," + driftedPair() + "]"},
		{"symbol as record", gatewaytest.SymbolAsRecord, list + "/USDT", 200, driftedPair()},
		{"no pair", gatewaytest.PairAsRecord, list + "/none", 404, "[]"},
		{"rates", gatewaytest.RatesAsRecords, rates, 200, `[{` + unknown + `"symbol":"USDT","usd":"1","eur":"2"},{` + unknown + `"symbol":"ABC","usd":"3","eur":"4"}]`},
		{"rates as numbers", gatewaytest.RatesAsNumbers, rates, 200, `[{` + unknown + `"symbol":"USDT","usd":1,"eur":2},{` + unknown + `"symbol":"ABC","usd":3,"eur":4}]`},
		{"rates in upper case", gatewaytest.RatesUpperCase, rates, 200, `[{` + unknown + `"currency":"USDT","USD":"1","EUR":"2"},{` + unknown + `"currency":"ABC","USD":"3","EUR":"4"}]`},
		{
			"rates with coin", gatewaytest.RatesWithCoin, rates, 200,
			`[{` + unknown + `"coin":` + coin + `,"usd":"1","eur":"2"},{` + unknown + `"coin":` + noCoin + `,"usd":"3","eur":"4"}]`,
		},
		{"rates by symbol", gatewaytest.RatesBySymbol, rates, 200, `{"USDT":{"usd":"1","eur":"2"},"ABC":{"usd":"3","eur":"4"}}`},
		{"rates by fiat", gatewaytest.RatesByFiat, rates, 200, `{"usd":{"USDT":"1","ABC":"3"},"eur":{"USDT":"2","ABC":"4"}}`},
		{
			"balances", gatewaytest.BalanceAsRecords, two, 200,
			`[{` + unknown + `"coinSymbol":"USDT","networkName":"Tron","balance":"1520.75"},{` + unknown + `"coinSymbol":"TRX","networkName":"Tron","balance":"845.120000"}]`,
		},
		{"balance", gatewaytest.BalanceAsRecord, one, 200, `{` + unknown + `"coinSymbol":"BTC","networkName":"Bitcoin","balance":"0.48215003"}`},
		{"bare balance", gatewaytest.BalanceBare, one, 200, `"0.48215003"`},
		{"balances by symbol", gatewaytest.BalanceBySymbol, two, 200, `{"USDT":"1520.75","TRX":"845.120000"}`},
		{
			"withdrawal", gatewaytest.PairAsRecord, "/api/withdrawal/inquiry/w", 201,
			`{` + unknown + `"status":"PENDING","destination":"","amount":"","fee":"","coin":"","network":"","withdrawRequestId":"w"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetCatalog([]gatewaytest.CoinNetwork{pair(), pair()})
			s.AddWithdrawal(gatewaytest.Withdrawal{WithdrawRequestID: "w"})
			for _, r := range s.Rates() {
				s.SetRate(r.Symbol, "", "")
			}
			s.SetRate("USDT", "1", "2")
			s.SetRate("ABC", "3", "4")
			s.SetShape(tt.shape)
			right := get(t, s, tt.path)
			s.InjectFault(gatewaytest.AnyOperation, 1, gatewaytest.FaultDrift())
			got := get(t, s, tt.path)
			assert.Equal(t, tt.status, got.status)
			assert.Equal(t, "application/json; charset=utf-8", got.header.Get("Content-Type"))
			envelope := strings.Replace(right.body, "{", "{"+unknown, 1)
			assert.True(t, strings.HasPrefix(got.body, envelope[:strings.Index(envelope, `,"result"`)]))
			var parsed struct{ Result json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(got.body), &parsed))
			assert.JSONEq(t, tt.result, string(parsed.Result))
			assert.Equal(t, right.body, strings.ReplaceAll(got.body, unknown, ""), "no other change, in the same order")
			assert.Equal(t, "drift", s.Requests()[1].Fault)
		})
	}
}

func TestDrift_of_an_invoice(t *testing.T) {
	t.Parallel()
	for shape, records := range map[gatewaytest.InvoiceShape]string{
		gatewaytest.InvoiceFlat:    `"result":{` + unknown + `"id":`,
		gatewaytest.InvoiceNested:  `"result":{"invoice":{` + unknown + `"id":`,
		gatewaytest.InvoicePayable: `"result":{` + unknown + `"id":`,
	} {
		t.Run(shape.String(), func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetShape(shape)
			s.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultDrift())
			got := post(s, invoice(s, "o-1", ""))
			assert.Equal(t, 201, got.status)
			assert.Contains(t, got.body, records)
			assert.Equal(t, 2, strings.Count(got.body, unknown), "one in the envelope, one in the invoice")
			assert.Len(t, s.InvoicesFor("o-1"), 1)
		})
	}
}

// Texts that resemble the beginning of a record, and symbols that resemble the
// name of one, are unchanged.
func TestDrift_lookalikes(t *testing.T) {
	t.Parallel()
	s := start(t)
	const text = `[{"id":1},{"coin":{"network":{"`
	id := s.AddWithdrawal(gatewaytest.Withdrawal{Destination: text})
	s.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.FaultDrift())
	var envelope struct{ Result gatewaytest.Withdrawal }
	body := get(t, s, "/api/withdrawal/inquiry/"+id).body
	require.NoError(t, json.Unmarshal([]byte(body), &envelope))
	assert.Equal(t, text, envelope.Result.Destination)
	assert.Equal(t, 2, strings.Count(body, unknown))

	s.SetShape(gatewaytest.BalanceBySymbol)
	for _, symbol := range []string{"id", "status", "coin", "network", "coinSymbol"} {
		s.SetBalance(symbol, "Lookalike", "1")
		assert.JSONEq(t, `{`+unknown+successBody(`{"` + symbol + `":"1"}`)[1:], get(t, s, "/api/balance/?coinSymbol="+symbol).body)
	}
}
