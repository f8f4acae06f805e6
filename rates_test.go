package gateway_test

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Every accepted shape of exchange rates, with the same rates.
// I-94, I-95, I-96, I-97, I-99
func TestClient_ExchangeRates_shapes(t *testing.T) {
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
		{"a map by fiat", `{"usd":{"BTC":"64123.55","USDT":"1.0001"},"eur":{"BTC":"59000.01","USDT":"0.92"}}`},
		{"a map by fiat, upper case, numbers, another order", `{"EUR":{"USDT":0.92,"BTC":59000.01},"USD":{"BTC":64123.55,"USDT":1.0001}}`},
		{"a map by fiat with a third currency", `{"usd":{"BTC":"64123.55","USDT":"1.0001"},"gbp":{},"eur":{"BTC":"59000.01","USDT":"0.92"}}`},
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
				{CoinSymbol: "BTC", USD: decimal.New(6412355, -2), EUR: decimal.New(5900001, -2)},
				{CoinSymbol: "USDT", USD: decimal.New(10001, -4), EUR: decimal.New(92, -2)},
			} {
				assert.Equal(t, want, got.Rates[i])
			}
			assert.Equal(t, strings.TrimSpace(tt.result), string(got.Raw))
			assert.False(t, got.FetchedAt.Before(before) || got.FetchedAt.After(time.Now()))
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

// What comes close to a shape is no rate, and never a rate of zero.
// I-95, I-98
func TestClient_ExchangeRates_nearMisses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("S", 100_000)
	for _, tt := range []struct{ name, result, pointer, reason string }{
		{"a text", `"x"`, "/result", "is text, not exchange rates"},
		{"a number", `1`, "/result", "is a number, not exchange rates"},
		{"a boolean", `true`, "/result", "is a boolean, not exchange rates"},
		{"row 60: null", `null`, "/result", "is null, not exchange rates"},
		{"an array of texts", `["BTC"]`, "/result/0", "names no coin"},
		{"an array of arrays", `[["BTC","1","2"]]`, "/result/0", "names no coin"},
		{"an array of nulls", `[null]`, "/result/0", "names no coin"},
		{"a record that names no coin", `[{"symbol":"BTC","usd":"1","eur":"2"},{"usd":"1","eur":"2"}]`, "/result/1", "names no coin"},
		{"a record that names the coin by a number", `[{"symbol":1,"usd":"1","eur":"2"}]`, "/result/0", "names no coin"},
		{"a record that names an empty coin", `[{"symbol":"","usd":"1","eur":"2"}]`, "/result/0", "names no coin"},
		{"a coin record without a symbol", `[{"coin":{"name":"Bitcoin"},"usd":"1","eur":"2"}]`, "/result/0", "names no coin"},
		{"a coin without a rate to euros", `[{"symbol":"BTC","usd":"1"}]`, "/result/0", `"BTC" has no EUR rate`},
		{"a coin without a rate to dollars", `[{"symbol":"BTC","eur":"1"}]`, "/result/0", `"BTC" has no USD rate`},
		{"a coin without a rate in a map", `{"BTC":{"usd":"1","eur":"1"},"ETH":{"usd":"1"}}`, "/result/ETH", `"ETH" has no EUR rate`},
		{"a coin without a rate to euros by fiat", `{"usd":{"BTC":"1","ETH":"2"},"eur":{"BTC":"1"}}`, "/result/usd/ETH", `"ETH" has no EUR rate`},
		{"a coin without a rate to dollars by fiat", `{"usd":{"BTC":"1"},"eur":{"BTC":"1","ETH":"2"}}`, "/result/eur/ETH", `"ETH" has no USD rate`},
		{"a rate under both spellings", `[{"symbol":"BTC","usd":"1","USD":"2","eur":"1"}]`, "/result/0", `"BTC" has no USD rate, or two`},
		{"one currency only", `{"usd":{"BTC":"1"}}`, "/result/usd", "has no USD rate"},
		{"a rate that is null", `[{"symbol":"BTC","usd":null,"eur":"1"}]`, "/result/0/usd", `the USD rate of "BTC" is null`},
		{"a rate that is empty", `[{"symbol":"BTC","usd":"1","eur":""}]`, "/result/0/eur", `the EUR rate of "BTC" is empty`},
		{"a rate that is no number", `{"BTC":{"usd":"1","eur":"n/a"}}`, "/result/BTC/eur", `the EUR rate of "BTC" is not a decimal number`},
		{"a rate that is a record", `{"BTC":{"usd":{"price":"1"},"eur":"1"}}`, "/result/BTC/usd", `the USD rate of "BTC" is an object`},
		{"a rate by fiat that is null", `{"usd":{"BTC":null},"eur":{"BTC":"1"}}`, "/result/usd/BTC", `the USD rate of "BTC" is null`},
		{"codes in mixed case", `[{"symbol":"BTC","Usd":"1","Eur":"1"}]`, "/result/0", `"BTC" has no USD rate`},
		{"one record without an array", `{"symbol":"BTC","usd":"1","eur":"1"}`, "/result/symbol", "has no USD rate"},
		{"pairs", `{"BTC/USD":"1","BTC/EUR":"1"}`, "/result/BTC~1USD", "has no USD rate"},
		{"rates in a list of their own", `{"rates":[{"symbol":"BTC","usd":"1","eur":"1"}]}`, "/result/rates", "has no USD rate"},
		{"a coin twice with other rates", `[{"symbol":"BTC","usd":"1","eur":"1"},{"symbol":"BTC","usd":"2","eur":"1"}]`, "/result/1", "is listed before with other rates"},
		{"a coin twice in a map, by its symbol", `{"a":{"symbol":"BTC","usd":"1","eur":"1"},"b":{"symbol":"BTC","usd":"1","eur":"2"}}`, "/result/b", "is listed before with other rates"},
		{"row 58: a coin twice in a map", `{"BTC":{"usd":"1","eur":"1"},"BTC":{"usd":"1","eur":"1"}}`, "/result/BTC", "duplicate"},
		{"a huge symbol", `[{"symbol":"` + long + `","usd":"1"}]`, "/result/0", "has no EUR rate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertNotUnderstood(t, subjectNamed("ExchangeRates"), enveloped(tt.result), tt.pointer, tt.reason)
		})
	}
}

func TestExchangeRates_Rate(t *testing.T) {
	t.Parallel()
	rates := testRates()
	got, ok := rates.Rate("BTC")
	assert.True(t, ok)
	assert.Equal(t, rates.Rates[0], got)
	for _, symbol := range []string{"btc", "BTC ", "", "XRP"} {
		got, ok := rates.Rate(symbol)
		assert.False(t, ok, "%q", symbol)
		assert.Equal(t, gateway.Rate{}, got)
	}
}

func testRates() *gateway.ExchangeRates {
	return &gateway.ExchangeRates{Rates: []gateway.Rate{
		{CoinSymbol: "BTC", USD: decimal.RequireFromString("64123.55"), EUR: decimal.RequireFromString("59000.01")},
		{CoinSymbol: "USDT", USD: decimal.RequireFromString("1"), EUR: decimal.RequireFromString("0.92")},
		{CoinSymbol: "SHIB", USD: decimal.RequireFromString("0.0000123"), EUR: decimal.RequireFromString("3")},
		{CoinSymbol: "DEAD", USD: decimal.Decimal{}, EUR: decimal.RequireFromString("-1")},
		{CoinSymbol: "TINY", USD: decimal.New(1, -64), EUR: decimal.New(1, 64)},
	}}
}

func TestExchangeRates_ToCoin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, price, fiat, symbol string
		precision                 int
		want                      string
	}{
		{"exact", "10.50", "usd", "USDT", 6, "10.5"},
		{"rounded up in the last place", "10", "usd", "BTC", 8, "0.00015595"}, // 0.000155948941…
		{"rounded up by the least", "10", "eur", "USDT", 6, "10.869566"},      // 10.8695652…
		{"rounded up where half would round down", "1", "eur", "SHIB", 2, "0.34"},
		{"rounded up to a whole unit", "0.01", "usd", "BTC", 0, "1"},
		{"to no places, exact", "7", "usd", "USDT", 0, "7"},
		{"to 30 places", "1", "eur", "SHIB", 30, "0.333333333333333333333333333334"},
		{"zero is zero", "0", "usd", "BTC", 8, "0"},
		{"an upper-case code", "10.50", "USD", "USDT", 6, "10.5"},
		{"a mixed-case code", "9.2", "Eur", "USDT", 6, "10"},
		{"the smallest rate", "1", "usd", "TINY", 0, "1" + strings.Repeat("0", 64)},
		{"the largest rate", "1", "eur", "TINY", 8, "0.00000001"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := testRates().ToCoin(decimal.RequireFromString(tt.price), tt.fiat, tt.symbol, tt.precision)
			require.NoError(t, err)
			assert.True(t, got.Equal(decimal.RequireFromString(tt.want)), "%s, not %s", got, tt.want)
			assert.LessOrEqual(t, -int(got.Exponent()), tt.precision)
		})
	}
}

func TestExchangeRates_ToFiat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, amount, symbol, fiat, want string }{
		{"exact", "10", "USDT", "usd", "10"},
		{"rounded down", "0.00015594", "BTC", "usd", "10"},     // 9.99942…
		{"half to even, down", "0.125", "USDT", "usd", "0.12"}, // 0.125
		{"half to even, up", "0.135", "USDT", "usd", "0.14"},   // 0.135
		{"above half", "0.1250001", "USDT", "usd", "0.13"},
		{"zero", "0", "BTC", "EUR", "0"},
		{"less than a cent", "0.001", "USDT", "usd", "0"},
		{"large", "1000000", "BTC", "eur", "59000010000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := testRates().ToFiat(decimal.RequireFromString(tt.amount), tt.symbol, tt.fiat)
			require.NoError(t, err)
			assert.True(t, got.Equal(decimal.RequireFromString(tt.want)), "%s, not %s", got, tt.want)
			assert.LessOrEqual(t, -int(got.Exponent()), 2)
		})
	}
}

func TestExchangeRates_refuses(t *testing.T) {
	t.Parallel()
	one := decimal.NewFromInt(1)
	for _, tt := range []struct {
		name             string
		value            decimal.Decimal
		fiat, symbol     string
		precision        int
		argument, reason string
	}{
		{"an unknown coin", one, "usd", "XRP", 8, "coinSymbol", "has no exchange rate"},
		{"a coin in lower case", one, "usd", "btc", 8, "coinSymbol", "has no exchange rate"},
		{"an unknown currency", one, "gbp", "BTC", 8, "fiat", "must be usd or eur"},
		{"no currency", one, "", "BTC", 8, "fiat", "must be usd or eur"},
		{"a negative value", decimal.NewFromInt(-1), "usd", "BTC", 8, "", "must not be negative"},
		{"row 38: 1e1000000000", decimal.New(1, 1_000_000_000), "usd", "BTC", 8, "", "more than 64 digits"},
		{"row 38: 1e-1000000000", decimal.New(1, -1_000_000_000), "usd", "BTC", 8, "", "more than 30 decimal places"},
		{"row 38: a zero with a huge exponent", decimal.New(0, 1_000_000_000), "usd", "BTC", 8, "", "more than 64 digits"},
		{"a negative precision", one, "usd", "BTC", -1, "precision", "must be from 0 to 30"},
		{"a precision over 30", one, "usd", "BTC", 31, "precision", "must be from 0 to 30"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := testRates().ToCoin(tt.value, tt.fiat, tt.symbol, tt.precision)
			assertRefused(t, err, "to_coin", cmp.Or(tt.argument, "price"), tt.reason)
			assert.Equal(t, decimal.Decimal{}, got)
			if tt.argument == "precision" {
				return
			}
			got, err = testRates().ToFiat(tt.value, tt.symbol, tt.fiat)
			assertRefused(t, err, "to_fiat", cmp.Or(tt.argument, "amount"), tt.reason)
			assert.Equal(t, decimal.Decimal{}, got)
		})
	}
	t.Run("a rate that is not above zero", func(t *testing.T) {
		t.Parallel()
		for _, fiat := range []string{"usd", "eur"} {
			got, err := testRates().ToCoin(one, fiat, "DEAD", 8)
			assertRefused(t, err, "to_coin", "rate", "is not an amount above zero")
			assert.Equal(t, decimal.Decimal{}, got)
			got, err = testRates().ToFiat(one, "DEAD", fiat)
			assertRefused(t, err, "to_fiat", "rate", "is not an amount above zero")
			assert.Equal(t, decimal.Decimal{}, got)
		}
	})
	t.Run("a rate beyond what a response can contain", func(t *testing.T) {
		t.Parallel()
		for _, rate := range []decimal.Decimal{decimal.New(1, 193), decimal.New(1, -193)} {
			rates := gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "C", USD: rate}}}
			_, err := rates.ToCoin(one, "usd", "C", 8)
			assertRefused(t, err, "to_coin", "rate", "is not an amount above zero")
			_, err = rates.ToFiat(one, "C", "usd")
			assertRefused(t, err, "to_fiat", "rate", "is not an amount above zero")
		}
	})
}

// Whatever the rate, the coins that are asked for are worth the price, and one
// unit of the last place less would not be.
// I-100
func TestExchangeRates_ToCoin_neverUndercharges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		price := decimal.New(random.Int64N(1_000_000_000_000), -int32(random.IntN(9)))
		rate := decimal.New(1+random.Int64N(1_000_000_000_000), 6-int32(random.IntN(25)))
		precision := random.IntN(31)
		rates := gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "C", USD: rate, EUR: rate}}}
		coins, err := rates.ToCoin(price, "usd", "C", precision)
		require.NoError(t, err)
		unit := decimal.New(1, -int32(precision))
		require.False(t, coins.Mul(rate).LessThan(price), "%s coins at %s are worth less than %s", coins, rate, price)
		require.True(t, price.IsZero() || coins.Sub(unit).Mul(rate).LessThan(price), "%s coins at %s are too many for %s", coins, rate, price)
		require.LessOrEqual(t, -int(coins.Exponent()), precision)
	}
}

// What is asked for in coins is worth the price again, less at most a cent, and
// nothing less where the price has no more than two places: whatever the rate
// and the precision. A number of coins that no amount can hold is refused.
func TestExchangeRates_thereAndBack(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 12))
	cent, refused := decimal.New(1, -2), 0
	for range 5_000 {
		places := int32(random.IntN(13))
		price := decimal.New(random.Int64N(1_000_000_000_000), -places)
		rate := decimal.New(1+random.Int64N(1_000_000_000_000), int32(random.IntN(81)-60))
		rates := gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "C", USD: decimal.NewFromInt(1), EUR: rate}}}
		coins, err := rates.ToCoin(price, "eur", "C", random.IntN(31))
		require.NoError(t, err)
		back, err := rates.ToFiat(coins, "C", "eur")
		if err != nil {
			assertRefused(t, err, "to_fiat", "amount", "has more than 64 digits")
			require.Greater(t, coins.NumDigits(), 64, "%s coins", coins)
			refused++
			continue
		}
		require.False(t, back.LessThan(price.Sub(cent)), "%s at %s is %s coins, which are worth %s", price, rate, coins, back)
		require.False(t, places <= 2 && back.LessThan(price), "%s at %s is %s coins, which are worth %s", price, rate, coins, back)
	}
	assert.Less(t, refused, 1_500)
}
