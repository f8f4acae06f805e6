package gateway_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// rateOf is a rate that there is.
func rateOf(text string) decimal.NullDecimal {
	return decimal.NewNullDecimal(decimal.RequireFromString(text))
}

// Both forms of exchange rates, with the same rates, and no coins in either.
// I-94, I-95, I-96, I-97, I-99
func TestClient_ExchangeRates_forms(t *testing.T) {
	t.Parallel()
	for _, result := range []string{`[]`, `{}`} {
		got, err := cannedClient(t, 200, enveloped(result)).ExchangeRates(t.Context())
		require.NoError(t, err, result)
		assert.Equal(t, []gateway.Rate{}, got.Rates, result)
		assert.Equal(t, result, string(got.Raw))
	}
	for _, tt := range []struct{ name, result string }{
		{"an array, symbol", `[{"symbol":"BTC","usd":"64123.55","eur":"59000.01"},{"symbol":"USDT","usd":"1.0001","eur":"0.92"}]`},
		{"an array, coinSymbol", `[{"coinSymbol":"BTC","usd":"64123.55","eur":"59000.01"},{"coinSymbol":"USDT","usd":"1.0001","eur":"0.92"}]`},
		{"an array, coin as text", `[{"coin":"BTC","usd":"64123.55","eur":"59000.01"},{"coin":"USDT","usd":"1.0001","eur":"0.92"}]`},
		{
			"an array, coin as a record",
			`[{"coin":{"id":"1","symbol":"BTC","name":"Bitcoin"},"usd":"64123.55","eur":"59000.01"},` +
				`{"coin":{"symbol":"USDT"},"usd":"1.0001","eur":"0.92"}]`,
		},
		{"an array, currency", `[{"currency":"BTC","usd":"64123.55","eur":"59000.01"},{"currency":"USDT","usd":"1.0001","eur":"0.92"}]`},
		{"an array with more in each record", `[{"id":7,"symbol":"BTC","usd":"64123.55","eur":"59000.01","gbp":null},{"symbol":"USDT","usd":"1.0001","eur":"0.92"}]`},
		{"a map by symbol", `{"BTC":{"usd":"64123.55","eur":"59000.01"},"USDT":{"usd":"1.0001","eur":"0.92"}}`},
		{"a map by symbol, numbers, codes in upper case", `{"BTC":{"USD":64123.55,"EUR":59000.01},"USDT":{"USD":1.0001,"EUR":0.92}}`},
		{
			"a coin once for each of its networks, with the same rates",
			`[{"symbol":"BTC","usd":"64123.55","eur":"59000.01"},{"symbol":"USDT","network":"Tron","usd":"1.0001","eur":"0.92"},` +
				`{"symbol":"USDT","network":"Ethereum","usd":"1.00010","eur":"0.920"}]`,
		},
		{"spaces", " [ {\"symbol\" : \"BTC\" , \"usd\":\"64123.55\",\"eur\":\"59000.01\"},\n{\"symbol\":\"USDT\",\"usd\":\"1.0001\",\"eur\":\"0.92\"} ] "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := time.Now()
			got, err := cannedClient(t, 200, enveloped(tt.result)).ExchangeRates(t.Context())
			require.NoError(t, err)
			assert.Equal(t, []gateway.Rate{
				{CoinSymbol: "BTC", USD: rateOf("64123.55"), EUR: rateOf("59000.01")},
				{CoinSymbol: "USDT", USD: rateOf("1.0001"), EUR: rateOf("0.92")},
			}, got.Rates)
			assert.Equal(t, strings.TrimSpace(tt.result), string(got.Raw))
			assert.Nil(t, got.Skipped)
			assert.False(t, got.FetchedAt.Before(before) || got.FetchedAt.After(time.Now()))
		})
	}
}

// The time of rates is the time of the response, less its age in a cache.
// I-99
func TestClient_ExchangeRates_age(t *testing.T) {
	t.Parallel()
	const longest = (1<<31 - 1) * time.Second
	for age, want := range map[string]time.Duration{
		"": 0, "0": 0, "7200": 2 * time.Hour, " 60 ": time.Minute, "2147483647": longest, "99999999999999999999": longest,
		"-60": 0, "+60": 0, "60.5": 0, "60, 70": time.Minute, "yesterday": 0,
	} {
		inBubble(t, age, func(t *testing.T) {
			var response gateway.Response
			c, err := gateway.New("https://gateway.example", canary, through(func(*http.Request) (*http.Response, error) {
				return reply(200, enveloped(`[{"symbol":"BTC","usd":"1","eur":"1"}]`), "Age", age), nil
			}))
			require.NoError(t, err)
			got, err := c.ExchangeRates(t.Context(), gateway.WithResponse(&response))
			require.NoError(t, err)
			assert.Equal(t, want, time.Since(got.FetchedAt))
			assert.Equal(t, got.FetchedAt, response.FetchedAt)
		})
	}
}

// What comes close to a form is no rate, and never a rate of zero. Real gateways have some of these.
// I-95, I-98
func TestClient_ExchangeRates_nearMisses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("S", 100_000)
	const noRecord, noPrice = "is no record with usd and eur", "has no coin with a price in usd or eur"
	for _, tt := range []struct{ name, result, pointer, reason string }{
		{"null", `null`, "/result", "is null"},
		{"records that name no coin", `[{"usd":"1","eur":"2"},{"usd":"1","eur":"2"}]`, "/result/0", "names no coin"},
		{"a record that names the coin by a number", `[{"symbol":1,"usd":"1","eur":"2"}]`, "/result/0", "names no coin"},
		{"no rate in a known currency", `[{"symbol":"BTC","gbp":"1"}]`, "/result/0", noRecord},
		{"codes in mixed case", `[{"symbol":"BTC","Usd":"1","Eur":"1"}]`, "/result/0", noRecord},
		{"rates under both spellings", `[{"symbol":"BTC","usd":"1","USD":"2","eur":"1","EUR":"1"}]`, "/result/0/usd", "is one of two USD rates"},
		{"records by symbol in lower case", `{"btc":{"usd":"2","eur":"1"}}`, "/result/btc", "names no coin"},
		{"a rate that is null, and no other", `[{"symbol":"BTC","usd":null}]`, "/result/0/usd", "is null, not an amount"},
		{"rates that are no numbers", `{"BTC":{"usd":"-","eur":"n/a"}}`, "/result/BTC/usd", "is not a decimal number"},
		{"rates by currency", `{"usd":{"BTC":"1"},"eur":{"BTC":"1"}}`, "/result/usd", noRecord},
		{"rates by currency, in upper case", `{"USD":{"BTC":"1"},"EUR":{"BTC":"1"}}`, "/result/USD", noRecord},
		{"one coin in many currencies, as Coinbase has it", `{"currency":"BTC","rates":{"USD":"64123.55","EUR":"59000.01"}}`, "/result/currency", noRecord},
		{"the estimate of one pair, as NOWPayments has it", `{"currency_from":"BTC","amount_from":1,"currency_to":"usd","estimated_amount":"64123.55"}`, "/result/currency_from", noRecord},
		{"a price by coin, as OxaPay has it", `{"BTC":64123.55,"USDT":1.0001}`, "/result/BTC", noRecord},
		{"another name of the price, as Plisio has it", `[{"cid":"BTC","currency":"BTC","price_usd":"64123.55"}]`, "/result/0", noRecord},
		{"names that must be escaped", `{"BTC/USD":"1","BTC/EUR":"1"}`, "/result/BTC~1USD", noRecord},
		{"rates in a list of their own", `{"rates":[{"symbol":"BTC","usd":"1","eur":"1"}]}`, "/result/rates", noRecord},
		{"a number", `7`, "/result", noPrice},
		{"a coin twice with other rates, and no other coin", `[{"symbol":"BTC","usd":"1","eur":"1"},{"symbol":"BTC","usd":"2","eur":"3"}]`, "/result/1", `has other rates of "BTC" than a record before it`},
		{"a coin of another symbol than the member's name", `{"BTC":{"symbol":"ETH","usd":"1","eur":"1"}}`, "/result/BTC", `is of the coin "BTC" and of "ETH"`},
		{"a currency that is another coin", `{"BTC":{"currency":"ETH","usd":"1","eur":"1"}}`, "/result/BTC", `is of the coin "BTC" and of "ETH"`},
		{"a huge symbol", `[{"symbol":"` + long + `","eur":null}]`, "/result/0/eur", "is null, not an amount"},
		{"huge symbols that differ", `[{"symbol":"` + long + `","coin":"T` + long + `","usd":"1"}]`, "/result/0", "is of the coin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertNotUnderstood(t, subjectNamed("ExchangeRates"), enveloped(tt.result), tt.pointer, tt.reason, "; WithRatesDecoder reads another form")
		})
	}
}

// A coin that lacks a rate does not take the others down, nor its other rate, and no rate is ever zero because it is
// missing. A record of several that names no coin, or is none, is skipped.
// I-98
func TestClient_ExchangeRates_partly(t *testing.T) {
	t.Parallel()
	const noRecord = "is no record with usd and eur"
	none, skipped := decimal.NullDecimal{}, gateway.DriftUnknownShape
	btc := gateway.Rate{CoinSymbol: "BTC", USD: rateOf("1"), EUR: rateOf("2")}
	eth := gateway.Rate{CoinSymbol: "ETH", USD: rateOf("3")}
	for _, tt := range []struct {
		name, result string
		want         []gateway.Rate
		pointer      string
		kind         gateway.DriftKind
		symbol       string // of what was skipped
		reason       string
	}{
		{"a rate that is missing", `[{"symbol":"BTC","usd":1,"eur":2},{"symbol":"ETH","usd":3}]`, []gateway.Rate{btc, eth}, "/result/1", gateway.DriftUnexpectedValue, "", ""},
		{"a member that is no coin", `{"BTC":{"usd":1,"eur":2},"updatedAt":1700000000}`, []gateway.Rate{btc}, "/result/updatedAt", skipped, "", "1700000000 " + noRecord},
		{"a record that is no coin", `{"meta":{"page":1},"BTC":{"usd":1,"eur":2}}`, []gateway.Rate{btc}, "/result/meta", skipped, "", noRecord},
		{"a rate that is null", `[{"symbol":"ETH","usd":null,"eur":3},{"symbol":"BTC","usd":1,"eur":2}]`, []gateway.Rate{{"ETH", none, rateOf("3")}, btc}, "/result/0/usd", skipped, "ETH", `is null, not an amount`},
		{"a rate that is no number", `{"BTC":{"usd":1,"eur":2},"ETH":{"usd":3,"eur":"n/a"}}`, []gateway.Rate{btc, eth}, "/result/ETH/eur", skipped, "ETH", `"n/a" is not a decimal number`},
		{"a rate of absurd size", `{"BTC":{"usd":1,"eur":2},"ETH":{"usd":3,"eur":1e999}}`, []gateway.Rate{btc, eth}, "/result/ETH/eur", skipped, "ETH", `1e999 is not an amount of money: over 128 characters or an exponent beyond 64`},
		{"a rate under both spellings", `{"BTC":{"usd":1,"eur":2},"ETH":{"usd":3,"eur":4,"EUR":4}}`, []gateway.Rate{btc, eth}, "/result/ETH/eur", skipped, "ETH", `4 is one of two EUR rates`},
		{"a coin twice with another rate", `[{"symbol":"BTC","usd":1,"eur":2},{"symbol":"ETH","usd":3,"eur":4},{"symbol":"ETH","usd":3,"eur":5}]`, []gateway.Rate{btc, {"ETH", none, none}}, "/result/2", skipped, "ETH", `has other rates of "ETH" than a record before it`},
		{"a record that names no coin", `[{"symbol":"BTC","usd":"1","eur":"2"},{"usd":"1","eur":"2"}]`, []gateway.Rate{btc}, "/result/1", skipped, "", "names no coin"},
		{"a record that names two", `[{"symbol":"BTC","usd":"1","eur":"2"},{"symbol":"ETH","coin":"LTC","usd":"1","eur":"2"}]`, []gateway.Rate{btc}, "/result/1", skipped, "", `is of the coin "ETH" and of "LTC"`},
		{"a record that is null", `[null,{"symbol":"BTC","usd":"1","eur":"2"}]`, []gateway.Rate{btc}, "/result/0", skipped, "", noRecord},
		{"a coin without a rate", `{"ETH":{},"BTC":{"usd":"1","eur":"2"}}`, []gateway.Rate{btc}, "/result/ETH", skipped, "ETH", noRecord},
		{"a coin that is null", `{"BTC":{"usd":"1","eur":"2"},"ETH":null}`, []gateway.Rate{btc}, "/result/ETH", skipped, "ETH", noRecord},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var w recorder
			var response gateway.Response
			got, err := cannedClient(t, 200, enveloped(tt.result), w.option()).ExchangeRates(t.Context(), gateway.WithResponse(&response))
			require.NoError(t, err)
			assert.Equal(t, tt.want, got.Rates)
			assert.Equal(t, tt.result, string(got.Raw))
			require.NotEmpty(t, w.drifts)
			assert.Equal(t, gateway.Drift{"exchange_rates", tt.pointer, tt.kind, tt.reason}, w.drifts[0])
			var want []gateway.Skipped
			if tt.kind == skipped {
				want = []gateway.Skipped{{tt.pointer, tt.symbol, "", "", tt.reason}}
			}
			assert.Equal(t, want, got.Skipped)
			assert.Equal(t, want, response.Skipped)
		})
	}
}

func TestRate_In(t *testing.T) {
	t.Parallel()
	rate := gateway.Rate{CoinSymbol: "BTC", USD: rateOf("1.50")}
	for fiat, want := range map[string]bool{"usd": true, "USD": true, "Usd": true, "eur": false, "EUR": false, "gbp": false, "": false} {
		got, ok := rate.In(fiat)
		assert.Equal(t, want, ok, "%q", fiat)
		assert.Equal(t, want, !got.IsZero(), "%q", fiat)
	}
	got, ok := gateway.Rate{EUR: rateOf("2")}.In("EUR")
	assert.True(t, ok)
	assert.Equal(t, rateOf("2").Decimal, got)
}

// The own spelling of a symbol finds its rate, and another one if it can mean only one.
func TestExchangeRates_Rate(t *testing.T) {
	t.Parallel()
	of := map[string]gateway.Rate{"1": {"Abc", rateOf("1"), decimal.NullDecimal{}}, "2": {"ABC", rateOf("2"), decimal.NullDecimal{}}, "3": {"btc", rateOf("3"), decimal.NullDecimal{}}}
	rates := &gateway.ExchangeRates{Rates: []gateway.Rate{of["1"], of["2"], of["3"]}}
	for symbol, want := range map[string]string{"Abc": "1", "ABC": "2", "btc": "3", "BTC": "3", "Btc": "3", "abc": "", "BTC ": "", "": "", "XRP": ""} {
		got, ok := rates.Rate(symbol)
		assert.Equal(t, want != "", ok, symbol)
		assert.Equal(t, of[want], got, symbol)
	}
}

// A symbol may be in lower case, but not as the name of a record, which can be anything.
// I-95, I-96
func TestClient_ExchangeRates_lowerCase(t *testing.T) {
	t.Parallel()
	for _, result := range []string{
		`[{"symbol":"btc","usd":"2","eur":"1"}]`,
		`{"btc":{"symbol":"BTC","usd":"2","eur":"1"}}`,
		`{"BTC":{"symbol":"btc","usd":"2","eur":"1"}}`,
	} {
		got, err := cannedClient(t, 200, enveloped(result)).ExchangeRates(t.Context())
		require.NoError(t, err, result)
		require.Len(t, got.Rates, 1, result)
		rate, ok := got.Rate("BTC")
		assert.True(t, ok, result)
		assert.Equal(t, rateOf("2"), rate.USD, result)
	}
}

// The result of a caller's function is checked, and its error fails the call.
func TestWithDecoder(t *testing.T) {
	t.Parallel()
	huge, errMine := decimal.New(1, 1_000_000), errors.New("no accounts for "+canary)
	one := decimal.New(1, 0)
	for _, tt := range []struct {
		rates   []gateway.Rate
		amounts []gateway.BalanceAmount
		err     error
		reason  string
	}{
		{nil, nil, errMine, "no accounts for [REDACTED]"},
		{[]gateway.Rate{{USD: rateOf("1")}}, []gateway.BalanceAmount{{Amount: one}}, nil, "0 names no coin"},
		{
			[]gateway.Rate{{CoinSymbol: "BTC", EUR: decimal.NewNullDecimal(huge)}},
			[]gateway.BalanceAmount{{CoinSymbol: "BTC", Amount: huge}},
			nil,
			`of "BTC" is not an amount of money`,
		},
		// a symbol twice, which only rates must not have
		{[]gateway.Rate{{CoinSymbol: "BTC"}, {CoinSymbol: "BTC"}}, []gateway.BalanceAmount{{CoinSymbol: "BTC", Amount: huge}}, nil, `"BTC" is`},
	} {
		c := cannedClient(t, 200, enveloped(`{"x":"a `+canary+`"}`),
			gateway.WithRatesDecoder(func(result json.RawMessage) ([]gateway.Rate, error) {
				assert.Equal(t, `{"x":"a [REDACTED]"}`, string(result), "it is without keys")
				return tt.rates, tt.err
			}),
			gateway.WithBalanceDecoder(func(json.RawMessage) ([]gateway.BalanceAmount, error) { return tt.amounts, tt.err }))
		_, ofRates := c.ExchangeRates(t.Context())
		_, ofBalance := c.Balance(t.Context(), gateway.BalanceQuery{})
		for option, err := range map[string]error{"WithRatesDecoder": ofRates, "WithBalanceDecoder": ofBalance} {
			wrong := as[*gateway.DecodeError](t, err)
			assert.Equal(t, "/result", wrong.Pointer)
			assert.ErrorContains(t, wrong.Err, "the function of "+option+": ")
			assert.ErrorContains(t, wrong.Err, tt.reason)
			assert.False(t, errors.Is(err, errMine), "an error with the key in its text is not wrapped")
			assertNoKey(t, err)
		}
	}
	none := cannedClient(t, 200, enveloped(`{"x":1}`), gateway.WithRatesDecoder(func(json.RawMessage) ([]gateway.Rate, error) { return nil, nil }))
	got, err := none.ExchangeRates(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []gateway.Rate{}, got.Rates, "it can find none")
	t.Run("its panic is its error", func(t *testing.T) {
		t.Parallel()
		c := cannedClient(t, 200, enveloped(`{"x":1}`),
			gateway.WithRatesDecoder(func(json.RawMessage) ([]gateway.Rate, error) { panic("no rates for " + canary) }),
			gateway.WithBalanceDecoder(func(json.RawMessage) ([]gateway.BalanceAmount, error) { panic(errMine) }),
			gateway.WithCoinNetworkDecoder(func(json.RawMessage) ([]gateway.CoinNetwork, error) {
				var none []gateway.CoinNetwork
				return none[1:], nil
			}),
			gateway.WithInvoiceDecoder(func(json.RawMessage) (gateway.InvoiceDetails, error) { panic("no invoices") }))
		_, ofRates := c.ExchangeRates(t.Context())
		_, ofBalance := c.Balance(t.Context(), gateway.BalanceQuery{})
		_, ofPairs := c.CoinNetworksOf(t.Context(), "USDT")
		invoice, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err, "the message proves it")
		for reason, err := range map[string]error{
			"WithRatesDecoder: it panicked: no rates for [REDACTED]": ofRates, "WithBalanceDecoder: it panicked: no accounts for [REDACTED]": ofBalance,
			"WithCoinNetworkDecoder: it panicked: runtime error": ofPairs, "WithInvoiceDecoder: it panicked: no invoices": invoice.DetailsErr,
		} {
			assert.ErrorContains(t, err, "the function of "+reason)
			assertNoKey(t, err)
		}
	})
	t.Run("it is not asked about nothing", func(t *testing.T) {
		t.Parallel()
		for result, fails := range map[string]bool{`[]`: false, `{}`: false, `null`: true} {
			c := cannedClient(t, 200, enveloped(result),
				gateway.WithRatesDecoder(func(json.RawMessage) ([]gateway.Rate, error) { return nil, errMine }),
				gateway.WithBalanceDecoder(func(json.RawMessage) ([]gateway.BalanceAmount, error) { return nil, errMine }))
			_, err := c.ExchangeRates(t.Context())
			assert.Equal(t, fails, err != nil, result)
			_, err = c.Balance(t.Context(), gateway.BalanceQuery{})
			assert.Equal(t, fails, err != nil, result)
		}
	})
	t.Run("it gets the whole body where there is no envelope", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct {
			body string
			want string // what the function gets; empty for an error
		}{
			{`[{"symbol":"BTC"}]`, `[{"symbol":"BTC"}]`},
			{` {"BTC":{"USD":1}} `, `{"BTC":{"USD":1}}`},
			{`{"status":"success","data":[]}`, `{"status":"success","data":[]}`},
			{`{"message":"Operation was successful.","data":[1]}`, `{"message":"Operation was successful.","data":[1]}`},
			{`{"result":[1]}`, `[1]`},
			{`{"result":[1],"data":[2]}`, `[1]`},
			{`{"message":"no such account","data":[1]}`, ``},
			{`{"message":"no such account","result":null,"data":[1]}`, ``},
			{`{"result":null,"data":[1]}`, ``},
			{`{}`, ``},
			{`null`, ``},
			{`"soon"`, ``},
			{`[`, ``},
		} {
			got := ""
			c := cannedClient(t, 200, tt.body, once(), gateway.WithBalanceDecoder(func(body json.RawMessage) ([]gateway.BalanceAmount, error) {
				got = string(body)
				clear(body) // Raw stays as it came
				return []gateway.BalanceAmount{{CoinSymbol: "BTC", NetworkName: "Lightning"}, {CoinSymbol: "BTC"}}, nil
			}))
			balance, err := c.Balance(t.Context(), gateway.BalanceQuery{})
			assert.Equal(t, tt.want, got, tt.body)
			assert.Equal(t, tt.want == "", err != nil, tt.body)
			if err == nil {
				assert.Equal(t, tt.want, string(balance.Raw))
				assert.Len(t, balance.Amounts, 2, "a coin can have several amounts")
			}
		}
	})
	t.Run("without it, a body without an envelope is an error that names the option", func(t *testing.T) {
		t.Parallel()
		for body, reason := range map[string]string{
			`[{"symbol":"BTC","usd":1,"eur":1}]`: ": is an array, not an object; WithRatesDecoder reads another form",
			`{"BTC":{"usd":1,"eur":1}}`:          "/result: is missing; WithRatesDecoder reads another form",
		} {
			_, err := cannedClient(t, 200, body).ExchangeRates(t.Context())
			wrong := as[*gateway.DecodeError](t, err)
			assert.Equal(t, reason, wrong.Pointer+": "+wrong.Err.Error())
		}
	})
}
