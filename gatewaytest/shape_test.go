package gatewaytest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/gatewaytest"
)

// I-18, I-94
func TestServer_SetShape(t *testing.T) {
	t.Parallel()
	const (
		list   = "/api/networks-coins"
		byID   = list + "/8f4c2f0e-2b7b-4a55-9a4e-0c1d2e3f4a5b"
		rates  = "/api/exchange-rate"
		one    = "/api/balance/?coinSymbol=BTC"
		usdt   = "/api/balance/?coinSymbol=USDT"
		record = `{"coinSymbol":"BTC","networkName":"Bitcoin","balance":"0.48215003"}`
		usdts  = `[{"coinSymbol":"USDT","networkName":"Tron","balance":"1520.75"},
			{"coinSymbol":"USDT","networkName":"Ethereum","balance":"310.5"},
			{"coinSymbol":"USDT","networkName":"BNB Smart Chain (BEP20)","balance":"0"}]`
		coin = `{"id":"66666666-7777-4888-8999-aaaaaaaaaaaa","name":"Tether","symbol":"USDT","precision":6,
			"minAmount":"1.00000000","isActive":false,
			"created_at":"2023-05-03T00:00:00.000Z","updated_at":"2023-05-04T00:00:00.000Z"}`
		noCoin = `{"id":"","name":"","symbol":"ABC","precision":0,"minAmount":"","isActive":false,"created_at":"","updated_at":""}`
	)
	tests := []struct {
		shape        gatewaytest.Shape
		path, result string
	}{
		{gatewaytest.PairAsRecord, byID, usdtOnTron},            // I-50
		{gatewaytest.PairInArray, byID, "[" + usdtOnTron + "]"}, // I-50
		{gatewaytest.PairInArray, list + "/USDT/Tron", "[" + usdtOnTron + "]"},
		{gatewaytest.SymbolAsArray, list + "/USDT", "[" + usdtOnTron + "]"}, // I-51
		{gatewaytest.SymbolAsRecord, list + "/USDT", usdtOnTron},            // I-51
		// I-95
		{gatewaytest.RatesAsRecords, rates, `[{"symbol":"USDT","usd":"1.10","eur":"0.9"},{"symbol":"ABC","usd":"1,5"}]`},
		// I-97
		{gatewaytest.RatesAsNumbers, rates, `[{"symbol":"USDT","usd":1.10,"eur":0.9},{"symbol":"ABC","usd":"1,5"}]`},
		// I-96
		{gatewaytest.RatesUpperCase, rates, `[{"currency":"USDT","USD":"1.10","EUR":"0.9"},{"currency":"ABC","USD":"1,5"}]`},
		// I-96
		{gatewaytest.RatesWithCoin, rates, `[{"coin":` + coin + `,"usd":"1.10","eur":"0.9"},{"coin":` + noCoin + `,"usd":"1,5"}]`},
		{gatewaytest.RatesBySymbol, rates, `{"USDT":{"usd":"1.10","eur":"0.9"},"ABC":{"usd":"1,5"}}`}, // I-95
		{gatewaytest.RatesByFiat, rates, `{"usd":{"USDT":"1.10","ABC":"1,5"},"eur":{"USDT":"0.9"}}`},  // I-95
		{gatewaytest.BalanceAsRecords, one, "[" + record + "]"},                                       // I-105
		{gatewaytest.BalanceAsRecord, one, record},                                                    // I-105
		{gatewaytest.BalanceAsRecord, usdt, usdts},
		{gatewaytest.BalanceBare, one, `"0.48215003"`}, // I-105
		{gatewaytest.BalanceBare, usdt, usdts},
		// I-105
		{gatewaytest.BalanceBySymbol, "/api/balance/", `{"BTC":"0.48215003","ETH":"3.250000000000000001","USDT":"1831.25","TRX":"845.120000"}`},
	}
	for _, tt := range tests {
		t.Run(tt.shape.String(), func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetCatalog([]gatewaytest.CoinNetwork{pair()})
			for _, r := range s.Rates() {
				s.SetRate(r.Symbol, "", "")
			}
			s.SetRate("USDT", "2", "2")
			s.SetRate("USDT", "1.10", "0.9")
			s.SetRate("ABC", "1,5", "")
			s.SetShape(tt.shape)
			got := get(t, s, tt.path)
			assert.Equal(t, 200, got.status)
			assert.JSONEq(t, successBody(tt.result), got.body)
		})
	}
}

// I-124
func TestServer_SetShape_of_an_invoice(t *testing.T) {
	t.Parallel()
	tests := []struct {
		shape         gatewaytest.Shape
		before, after string
	}{
		{gatewaytest.InvoiceFlat, "", ""},
		{gatewaytest.InvoiceNested, `{"invoice":`, `}`},
	}
	for _, tt := range tests {
		t.Run(tt.shape.String(), func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetShape(gatewaytest.InvoiceNested)
			s.SetShape(tt.shape)
			got := post(s, invoice(s, "o-1", `,"baseCurrency":"usd","coinSymbol":"BTC"`))
			made := s.InvoicesFor("o-1")[0]
			assert.Equal(t, 201, got.status)
			assert.JSONEq(t, successBody(tt.before+`{"id":"`+made.ID+`","orderId":"o-1","price":"10.50","amount":"0.5",`+
				`"baseCurrency":"usd","coinSymbol":"BTC","createdAt":"`+made.CreatedAt.Format(time.RFC3339Nano)+`"}`+tt.after), got.body)
		})
	}
}

// I-124: the address and the deadline of an invoice are inventions, and marked as such.
func TestServer_SetShape_of_a_payable_invoice(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, address, tag string }{
		{"no coin", "", `invented-[0-9a-f]{32}`, ``},
		{"a coin", `,"coinSymbol":"BTC","networkName":"BNB Smart Chain (BEP20)"`, `invented-btc-bnb-smart-chain-bep20-[0-9a-f]{32}`, ``},
		{"a coin with tags", `,"coinSymbol":"XRP","networkName":"XRP Ledger"`, `invented-xrp-xrp-ledger-[0-9a-f]{32}`, `\d{1,10}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetShape(gatewaytest.InvoicePayable)
			got := post(s, invoice(s, "o-1", tt.fields))
			deadline := s.Invoices()[0].CreatedAt.Add(30 * time.Minute).Format(time.RFC3339Nano)
			assert.Equal(t, []string{"invoice/payable"}, got.header.Values(gatewaytest.InventedHeader))
			assert.Contains(t, got.body, `"orderId":"o-1","price":"10.50","amount":"0.5",`)
			assert.Regexp(t, `"address":"`+tt.address+`","tag":"`+tt.tag+`","expiresAt":"`+deadline+`"`, got.body)
		})
	}
}

func TestServer_SetShape_of_an_odd_invoice(t *testing.T) {
	t.Parallel()
	const price = `"orderId":"o-1","price":"10.50",`
	tests := []struct{ name, fields, amount, network, tag string }{
		{"a coin without tags", `,"coinSymbol":"BTC","networkName":"BNB Smart Chain (BEP20)"`, `"amount":"0.505",`, `"networkName":"BNB-SMART-CHAIN-\(BEP20\)",`, ``},
		{"a coin with tags", `,"coinSymbol":"XRP","networkName":"XRP Ledger"`, `"amount":"0.505",`, `"networkName":"XRP-LEDGER",`, `"tag":"\d{1,10}",`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetShape(gatewaytest.InvoiceOdd)
			got := post(s, invoice(s, "o-1", tt.fields))
			made := s.Invoices()[0]
			assert.Equal(t, "0.5", made.Amount, "the invoice itself is not changed")
			assert.Contains(t, got.body, price+tt.amount)
			assert.Regexp(t, tt.network+`"createdAt":"[^"]*","address":"invented-[^"]*",`+tt.tag+
				`"expiresAt":"`+made.CreatedAt.Add(30*time.Minute).Format("2006-01-02 15:04:05")+`"}`, got.body)
		})
	}
	s := start(t)
	s.SetShape(gatewaytest.InvoiceOdd)
	huge := strings.Replace(invoice(s, "o-1", ""), `"0.5"`, `1e999999`, 1)
	assert.Contains(t, post(s, huge).body, `"amount":"1e999999"`, "a number with an exponent stays")
}

func TestServer_SetShape_unknown(t *testing.T) {
	t.Parallel()
	s := start(t)
	for want, shape := range map[string]gatewaytest.Shape{
		"gatewaytest.PairShape(none)":             gatewaytest.PairShape("none"),
		"gatewaytest.SymbolShape()":               gatewaytest.SymbolShape(""),
		"gatewaytest.RatesShape(balance/records)": gatewaytest.RatesShape(gatewaytest.BalanceAsRecords),
		"gatewaytest.BalanceShape(none)":          gatewaytest.BalanceShape("none"),
		"gatewaytest.InvoiceShape(none)":          gatewaytest.InvoiceShape("none"),
		"<nil>(<nil>)":                            nil,
	} {
		assert.PanicsWithValue(t, "gatewaytest: SetShape with "+want+", want one of its constants", func() { s.SetShape(shape) })
	}
}

// A coin's amounts add up exactly, and a text that is not a number is served.
func TestServer_balances_summed(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, tron, ethereum, want string }{
		{"exact", "0.1", "0.000000000000000000002", "0.100000000000000000002"},
		{"negative", "-1.5", "1", "-0.5"},
		{"whole", "1", "2", "3"},
		{"first is not a number", "NaN", "1", "NaN"},
		{"second is not a number", "1", "", ""},
		{"incomplete number", "1.", "1", "1."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetShape(gatewaytest.BalanceBySymbol)
			s.SetBalance("NEW", "Tron", "9")
			s.SetBalance("NEW", "Tron", tt.tron)
			s.SetBalance("NEW", "Ethereum", tt.ethereum)
			assert.JSONEq(t, successBody(`{"NEW":"`+tt.want+`"}`), get(t, s, "/api/balance/?coinSymbol=NEW").body)
			all := s.Balances()
			assert.Equal(t, gatewaytest.BalanceEntry{CoinSymbol: "NEW", NetworkName: "Tron", Balance: tt.tron}, all[len(all)-2])
		})
	}
}

// Only a text that is both a decimal and a JSON number becomes a JSON number.
func TestRatesAsNumbers_of_texts(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, r := range s.Rates() {
		s.SetRate(r.Symbol, "", "")
	}
	s.SetShape(gatewaytest.RatesAsNumbers)
	assert.JSONEq(t, successBody(`[]`), get(t, s, "/api/exchange-rate").body)
	s.SetRate("A", "null", "01")
	s.SetRate("B", "-0.10", "1e5")
	assert.Contains(t, get(t, s, "/api/exchange-rate").body, `[{"eur":"01","symbol":"A","usd":"null"},{"eur":"1e5","symbol":"B","usd":-0.10}]`)
}
