package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
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

// Both forms of exchange rates, with the same rates.
// I-94, I-95, I-96, I-97, I-99
func TestClient_ExchangeRates_forms(t *testing.T) {
	t.Parallel()
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
		{"an array, codes in upper case", `[{"symbol":"BTC","USD":"64123.55","EUR":"59000.01"},{"symbol":"USDT","USD":"1.0001","EUR":"0.92"}]`},
		{"an array, numbers", `[{"symbol":"BTC","usd":64123.55,"eur":59000.01},{"symbol":"USDT","usd":1.0001,"eur":0.92}]`},
		{"an array with more in each record", `[{"id":7,"symbol":"BTC","usd":"64123.55","eur":"59000.01","gbp":null},{"symbol":"USDT","usd":"1.0001","eur":"0.92"}]`},
		{"a map by symbol", `{"BTC":{"usd":"64123.55","eur":"59000.01"},"USDT":{"usd":"1.0001","eur":"0.92"}}`},
		{"a map by symbol, numbers, codes in upper case", `{"BTC":{"USD":64123.55,"EUR":59000.01},"USDT":{"USD":1.0001,"EUR":0.92}}`},
		{"a map by symbol that repeats it", `{"BTC":{"symbol":"BTC","usd":"64123.55","eur":"59000.01"},"USDT":{"symbol":"USDT","usd":"1.0001","eur":"0.92"}}`},
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
			require.Len(t, got.Rates, 2)
			for i, want := range []gateway.Rate{
				{CoinSymbol: "BTC", USD: rateOf("64123.55"), EUR: rateOf("59000.01")},
				{CoinSymbol: "USDT", USD: rateOf("1.0001"), EUR: rateOf("0.92")},
			} {
				assert.Equal(t, want, got.Rates[i])
			}
			assert.Equal(t, strings.TrimSpace(tt.result), string(got.Raw))
			assert.False(t, got.FetchedAt.Before(before) || got.FetchedAt.After(time.Now()))
		})
	}
}

// The time of rates is that of the response, less its age in a cache.
// I-99
func TestClient_ExchangeRates_age(t *testing.T) {
	t.Parallel()
	const longest = (1<<31 - 1) * time.Second
	for age, want := range map[string]time.Duration{
		"": 0, "0": 0, "7200": 2 * time.Hour, " 60 ": time.Minute, "2147483647": longest, "99999999999999999999": longest,
		"-60": 0, "+60": 0, "60.5": 0, "60, 70": time.Minute, "yesterday": 0,
	} {
		t.Run(age, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
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
		})
	}
}

func TestClient_ExchangeRates_none(t *testing.T) {
	t.Parallel()
	got, err := cannedClient(t, 200, enveloped("[]")).ExchangeRates(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []gateway.Rate{}, got.Rates)
	_, ok := got.Rate("BTC")
	assert.False(t, ok)
}

// What comes close to a form is no rate, and never a rate of zero.
// I-95, I-98
func TestClient_ExchangeRates_nearMisses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("S", 100_000)
	const noRecord, noPrice = "is no record with usd and eur", "has no coin with a price in usd or eur"
	for _, tt := range []struct{ name, result, pointer, reason string }{
		{"a text", `"x"`, "/result", noPrice},
		{"a boolean", `true`, "/result", noPrice},
		{"null", `null`, "/result", "is null"},
		{"an array of texts", `["BTC"]`, "/result/0", noRecord},
		{"an array of nulls", `[null]`, "/result/0", noRecord},
		{"records that name no coin", `[{"usd":"1","eur":"2"},{"usd":"1","eur":"2"}]`, "/result/0", "names no coin"},
		{"a record that names the coin by a number", `[{"symbol":1,"usd":"1","eur":"2"}]`, "/result/0", "names no coin"},
		{"a record that names an empty coin", `[{"symbol":"","usd":"1","eur":"2"}]`, "/result/0", "names no coin"},
		{"a coin record without a symbol", `[{"coin":{"name":"Bitcoin"},"usd":"1","eur":"2"}]`, "/result/0", "names no coin"},
		{"no rate in a known currency", `[{"symbol":"BTC","gbp":"1"}]`, "/result/0", noRecord},
		{"codes in mixed case", `[{"symbol":"BTC","Usd":"1","Eur":"1"}]`, "/result/0", noRecord},
		{"rates under both spellings", `[{"symbol":"BTC","usd":"1","USD":"2","eur":"1","EUR":"1"}]`, "/result/0/usd", "is one of two USD rates"},
		{"a rate that is null, and no other", `[{"symbol":"BTC","usd":null}]`, "/result/0/usd", "is null, not an amount"},
		{"a rate that is empty, and no other", `[{"symbol":"BTC","usd":"","eur":""}]`, "/result/0/usd", "is empty"},
		{"rates that are no numbers", `{"BTC":{"usd":"-","eur":"n/a"}}`, "/result/BTC/usd", "is not a decimal number"},
		{"rates that are records", `{"BTC":{"usd":{"price":"1"},"eur":{"price":"1"}}}`, "/result/BTC/usd", "is an object, not an amount"},
		{"rates by currency", `{"usd":{"BTC":"1"},"eur":{"BTC":"1"}}`, "/result", noPrice},
		{"rates by currency, in upper case", `{"USD":{"BTC":"1"},"EUR":{"BTC":"1"}}`, "/result/USD", "has the name of a currency, and not of a coin"},
		{"rates by currency, of currencies too", `{"USD":{"BTC":"1","USD":"1","EUR":"2"},"EUR":{"BTC":"1","USD":"1","EUR":"1"}}`, "/result/USD", "has the name of a currency"},
		{"one record without an array", `{"symbol":"BTC","usd":"1","eur":"1"}`, "/result", noPrice + "; WithRatesDecoder reads another form"},
		{"one coin in many currencies", `{"currency":"BTC","rates":{"USD":"64123.55","EUR":"59000.01"}}`, "/result", noPrice},
		{"rates by symbol in another object", `{"data":{"BTC":{"usd":"1","eur":"2"}}}`, "/result", noPrice},
		{"rates by symbol in another object, in upper case", `{"DATA":{"BTC":{"usd":"1","eur":"2"}}}`, "/result/DATA", noRecord},
		{"pairs", `{"BTC/USD":"1","BTC/EUR":"1"}`, "/result/BTC~1USD", noRecord},
		{"rates in a list of their own", `{"rates":[{"symbol":"BTC","usd":"1","eur":"1"}]}`, "/result", noPrice},
		{"a coin twice with other rates, and no other coin", `[{"symbol":"BTC","usd":"1","eur":"1"},{"symbol":"BTC","usd":"2","eur":"3"}]`, "/result/1", `has other rates of "BTC" than a record before it`},
		{"a coin of another symbol than the member's name", `{"BTC":{"symbol":"ETH","usd":"1","eur":"1"}}`, "/result/BTC", `is of the coin "BTC" and of "ETH"`},
		{"a symbol and a coinSymbol that differ", `[{"symbol":"BTC","coinSymbol":"ETH","usd":"1","eur":"1"}]`, "/result/0", `is of the coin "BTC" and of "ETH"`},
		{"a symbol and a coin record that differ", `[{"coin":{"symbol":"ETH"},"symbol":"BTC","usd":"1","eur":"1"}]`, "/result/0", `is of the coin "BTC" and of "ETH"`},
		{"rates by symbol in lower case, beside something else", `{"btc":{"usd":"1","eur":"1"},"time":"2024-01-02"}`, "/result", noPrice},
		{"a currency that is another coin", `{"BTC":{"currency":"ETH","usd":"1","eur":"1"}}`, "/result/BTC", `is of the coin "BTC" and of "ETH"`},
		{"a coin twice in a map", `{"BTC":{"usd":"1","eur":"1"},"BTC":{"usd":"1","eur":"1"}}`, "/result/BTC", "duplicate"},
		{"a huge symbol", `[{"symbol":"` + long + `","eur":null}]`, "/result/0/eur", "is null, not an amount"},
		{"huge symbols that differ", `[{"symbol":"` + long + `","coin":"T` + long + `","usd":"1"}]`, "/result/0", "is of the coin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertNotUnderstood(t, subjectNamed("ExchangeRates"), enveloped(tt.result), tt.pointer, tt.reason)
		})
	}
}

// A coin that lacks a rate does not take the others down, nor its other rate, and no rate
// is ever zero because it is missing.
// I-98
func TestClient_ExchangeRates_partly(t *testing.T) {
	t.Parallel()
	none := decimal.NullDecimal{}
	whole := gateway.Rate{CoinSymbol: "BTC", USD: rateOf("1"), EUR: rateOf("2")}
	for _, tt := range []struct {
		name, result string
		want         []gateway.Rate
		pointer      string
		kind         gateway.DriftKind
		reason       string
	}{
		{"a rate that is missing", `[{"symbol":"BTC","usd":1,"eur":2},{"symbol":"ETH","usd":3}]`, []gateway.Rate{whole, {"ETH", rateOf("3"), none}}, "/result/1", gateway.DriftUnexpectedValue, ""},
		{"a rate that is null", `[{"symbol":"ETH","usd":null,"eur":3},{"symbol":"BTC","usd":1,"eur":2}]`, []gateway.Rate{{"ETH", none, rateOf("3")}, whole}, "/result/0/usd", gateway.DriftUnknownShape, `is null, not an amount`},
		{"a rate that is no number", `{"BTC":{"usd":1,"eur":2},"ETH":{"usd":3,"eur":"n/a"}}`, []gateway.Rate{whole, {"ETH", rateOf("3"), none}}, "/result/ETH/eur", gateway.DriftUnknownShape, `"n/a" is not a decimal number`},
		{"a rate of absurd size", `{"BTC":{"usd":1,"eur":2},"ETH":{"usd":3,"eur":1e999}}`, []gateway.Rate{whole, {"ETH", rateOf("3"), none}}, "/result/ETH/eur", gateway.DriftUnknownShape, `1e999 is not an amount of money: over 128 characters or an exponent beyond 64`},
		{"a rate under both spellings", `{"BTC":{"usd":1,"eur":2},"ETH":{"usd":3,"eur":4,"EUR":4}}`, []gateway.Rate{whole, {"ETH", rateOf("3"), none}}, "/result/ETH/eur", gateway.DriftUnknownShape, `4 is one of two EUR rates`},
		{"a member that is no coin", `{"BTC":{"usd":1,"eur":2},"updatedAt":1700000000}`, []gateway.Rate{whole}, "/result/updatedAt", gateway.DriftUnknownField, ""},
		{"a record that is no coin", `{"meta":{"page":1},"BTC":{"usd":1,"eur":2}}`, []gateway.Rate{whole}, "/result/meta", gateway.DriftUnknownField, ""},
		{"a coin twice with another rate", `[{"symbol":"BTC","usd":1,"eur":2},{"symbol":"ETH","usd":3,"eur":4},{"symbol":"ETH","usd":3,"eur":5}]`, []gateway.Rate{whole, {"ETH", none, none}}, "/result/2", gateway.DriftUnknownShape, `has other rates of "ETH" than a record before it`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got *gateway.ExchangeRates
			drift := drifted(t, enveloped(tt.result), func(c *gateway.Client) (err error) {
				got, err = c.ExchangeRates(t.Context())
				return err
			})
			assert.Equal(t, tt.want, got.Rates)
			assert.Equal(t, tt.result, string(got.Raw))
			require.NotEmpty(t, drift)
			assert.Equal(t, gateway.Drift{"exchange_rates", tt.pointer, tt.kind, tt.reason}, drift[0])
			if tt.kind == gateway.DriftUnknownShape {
				assert.Equal(t, []gateway.Skipped{{tt.pointer, "ETH", "", "", tt.reason}}, got.Skipped)
			} else {
				assert.Nil(t, got.Skipped)
			}
		})
	}
}

// A record of several that names no coin, or is none, is skipped.
// I-98
func TestClient_ExchangeRates_skipped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, result string
		want         gateway.Skipped
	}{
		{"a record that names no coin", `[{"symbol":"BTC","usd":"1","eur":"2"},{"usd":"1","eur":"2"}]`, gateway.Skipped{"/result/1", "", "", "", "names no coin"}},
		{"a record that names two", `[{"symbol":"BTC","usd":"1","eur":"2"},{"symbol":"ETH","coin":"LTC","usd":"1","eur":"2"}]`, gateway.Skipped{"/result/1", "", "", "", `is of the coin "ETH" and of "LTC"`}},
		{"null", `[null,{"symbol":"BTC","usd":"1","eur":"2"}]`, gateway.Skipped{"/result/0", "", "", "", "is no record with usd and eur"}},
		{"a coin without a rate", `{"ETH":{},"BTC":{"usd":"1","eur":"2"}}`, gateway.Skipped{"/result/ETH", "ETH", "", "", "is no record with usd and eur"}},
		{"a currency", `{"EUR":{"usd":1.1,"eur":1},"BTC":{"usd":"1","eur":"2"}}`, gateway.Skipped{"/result/EUR", "EUR", "", "", "has the name of a currency, and not of a coin"}},
		{"a coin that is null", `{"BTC":{"usd":"1","eur":"2"},"ETH":null}`, gateway.Skipped{"/result/ETH", "ETH", "", "", "is no record with usd and eur"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var response gateway.Response
			got, err := cannedClient(t, 200, enveloped(tt.result)).ExchangeRates(t.Context(), gateway.WithResponse(&response))
			require.NoError(t, err)
			assert.Equal(t, []gateway.Rate{{"BTC", rateOf("1"), rateOf("2")}}, got.Rates)
			assert.Equal(t, []gateway.Skipped{tt.want}, got.Skipped)
			assert.Equal(t, got.Skipped, response.Skipped)
			text, err := json.Marshal(got)
			require.NoError(t, err)
			var back gateway.ExchangeRates
			require.NoError(t, json.Unmarshal(text, &back))
			assert.Equal(t, got.Skipped, back.Skipped)
		})
	}
}

// A response without coins has no rates, and is no error.
func TestClient_ExchangeRates_empty(t *testing.T) {
	t.Parallel()
	for _, result := range []string{`[]`, `{}`} {
		got, err := cannedClient(t, 200, enveloped(result)).ExchangeRates(t.Context())
		require.NoError(t, err, result)
		assert.Equal(t, []gateway.Rate{}, got.Rates, result)
		assert.Equal(t, result, string(got.Raw))
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

func TestExchangeRates_Rate(t *testing.T) {
	t.Parallel()
	rates := &gateway.ExchangeRates{Rates: []gateway.Rate{
		{CoinSymbol: "USDT", USD: rateOf("1"), EUR: rateOf("0.92")},
		{CoinSymbol: "BTC", USD: rateOf("64123.55"), EUR: rateOf("59000.01")},
	}}
	got, ok := rates.Rate("BTC")
	assert.True(t, ok)
	assert.Equal(t, rates.Rates[1], got)
	got, ok = rates.Rate("btc")
	assert.True(t, ok, "the only one in another case")
	assert.Equal(t, rates.Rates[1], got)
	for _, symbol := range []string{"BTC ", "", "XRP"} {
		got, ok := rates.Rate(symbol)
		assert.False(t, ok, "%q", symbol)
		assert.Equal(t, gateway.Rate{}, got)
	}
}

// Two symbols that differ in case alone are two coins, and only their own spelling finds them.
func TestExchangeRates_Rate_case(t *testing.T) {
	t.Parallel()
	rates := &gateway.ExchangeRates{Rates: []gateway.Rate{
		{CoinSymbol: "Abc", USD: rateOf("1")}, {CoinSymbol: "ABC", USD: rateOf("2")}, {CoinSymbol: "btc", USD: rateOf("3")},
	}}
	for symbol, want := range map[string]string{"Abc": "1", "ABC": "2", "BTC": "3", "Btc": "3", "abc": ""} {
		got, ok := rates.Rate(symbol)
		assert.Equal(t, want != "", ok, symbol)
		if ok {
			assert.Equal(t, rateOf(want), got.USD, symbol)
		} else {
			assert.Equal(t, gateway.Rate{}, got, symbol)
		}
	}
}

// Rates in lower case are rates, in both forms.
// I-95, I-96
func TestClient_ExchangeRates_lowerCase(t *testing.T) {
	t.Parallel()
	for _, result := range []string{
		`[{"symbol":"btc","usd":"2","eur":"1"}]`,
		`{"btc":{"usd":"2","eur":"1"}}`,
		`{"btc":{"symbol":"BTC","usd":"2","eur":"1"}}`,
		`{"BTC":{"symbol":"btc","usd":"2","eur":"1"}}`,
	} {
		t.Run(result, func(t *testing.T) {
			t.Parallel()
			got, err := cannedClient(t, 200, enveloped(result)).ExchangeRates(t.Context())
			require.NoError(t, err)
			require.Len(t, got.Rates, 1)
			rate, ok := got.Rate("BTC")
			assert.True(t, ok)
			assert.Equal(t, rateOf("2"), rate.USD)
		})
	}
}
