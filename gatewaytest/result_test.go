package gatewaytest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/gatewaytest"
)

// An operation answers with the result of a test, byte for byte, under the status and in the
// envelope of a success.
func TestServer_SetResult(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op     gatewaytest.Operation
		path   string
		status int
		result string
	}{
		{"coin_networks", "/api/networks-coins", 200, `{"data":[], "total":0}`},
		{"coin_network", "/api/networks-coins/unknown", 200, `[{"id":"unknown","fee":1.50}]`},
		{"coin_network_by_symbol", "/api/networks-coins/TON/Ton", 200, `{"symbol":"TON"}`},
		{"coin_networks_of", "/api/networks-coins/USDT", 200, `{"symbol":"USDT","text":"<{{orderId}}>"}`},
		{"exchange_rates", "/api/exchange-rate", 200, `{"BTC":64123.550000000000000000001,"A":1e999999}`},
		{"balance", "/api/balance/?coinSymbol=TON", 200, `"0.5"`},
		{"withdrawal", "/api/withdrawal/inquiry/unknown", 201, `null`},
	} {
		t.Run(string(tt.op), func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetResult(tt.op, `"replaced"`)
			s.SetResult(tt.op, tt.result)
			got := get(t, s, tt.path)
			assert.Equal(t, tt.status, got.status)
			assert.Equal(t, successBody(tt.result), got.body)
			assert.Equal(t, tt.op, s.Requests()[0].Operation)

			s.InjectFault(tt.op, 1, gatewaytest.FaultRefuse(503, "later"))
			assert.Equal(t, 503, get(t, s, tt.path).status, "a fault is met all the same")
			if tt.op == gatewaytest.OpBalance || tt.op == gatewaytest.OpWithdrawal {
				assert.Equal(t, 401, mustTry(t, s, "GET", tt.path, "").status, "the key is needed all the same")
			}
		})
	}
}

// The result of an invoice has the values of the request.
func TestServer_SetResult_of_an_invoice(t *testing.T) {
	t.Parallel()
	const result = `{"uuid":"u-1","order":"{{orderId}}","url":"https://pay.test/{{orderId}}?a={{amount}}","price":{{price}},"amount":"{{amount}}","other":"{{id}}"}`
	for _, tt := range []struct{ name, body, want string }{
		{"texts", `"orderId":"A-17","price":"10.50","amount":"0.5"`, `{"uuid":"u-1","order":"A-17","url":"https://pay.test/A-17?a=0.5","price":10.50,"amount":"0.5","other":"{{id}}"}`},
		{"an order with quotes and a placeholder", `"orderId":"\"{{price}}\\","price":1,"amount":2`, `{"uuid":"u-1","order":"\"{{price}}\\","url":"https://pay.test/\"{{price}}\\?a=2","price":1,"amount":"2","other":"{{id}}"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetRepeatedOrders(gatewaytest.RepeatSame)
			s.SetResult(gatewaytest.OpCreateInvoice, result)
			got := post(s, `{"apiKey":"`+s.APIKey+`",`+tt.body+`}`)
			assert.Equal(t, 201, got.status)
			assert.Equal(t, successBody(tt.want), got.body)
			assert.Len(t, s.Invoices(), 1)
			got = post(s, `{"apiKey":"`+s.APIKey+`",`+tt.body+`}`)
			assert.Equal(t, 200, got.status, "the order has that invoice")
			assert.Equal(t, successBody(tt.want), got.body)
			assert.Equal(t, 401, post(s, `{`+tt.body+`}`).status, "the key is needed all the same")
		})
	}
}

func TestServer_SetResult_refuses(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, tt := range []struct {
		op           gatewaytest.Operation
		result, want string
	}{
		{gatewaytest.OpBalance, "", `unexpected end of JSON input in `},
		{gatewaytest.OpBalance, "OK", `invalid character 'O' looking for beginning of value in OK`},
		{gatewaytest.OpCreateInvoice, `{"a":{{orderId}}}`, `invalid character 'o' looking for beginning of value in {"a":order-17}`},
		{gatewaytest.OpCreateInvoice, `[1{{amount}}]`, `invalid character '-' after array element in [1-1e2]`},
		{gatewaytest.OpBalance, `{"a":{{amount}}}`, `invalid character '{' looking for beginning of object key string in {"a":{{amount}}}`},
	} {
		want := "gatewaytest: SetResult for " + string(tt.op) + ", want JSON: " + tt.want
		assert.PanicsWithValue(t, want, func() { s.SetResult(tt.op, tt.result) })
	}
	assert.Equal(t, 200, get(t, s, "/api/balance/").status)
}
