package pricing_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/pricing"
)

const twice = `"0.9999" is another USD rate than 1.0001 before it`

func testRates() *gateway.ExchangeRates {
	many := gateway.Skipped{Pointer: "/result/3/usd", CoinSymbol: "MANY", Reason: twice}
	return &gateway.ExchangeRates{Rates: []gateway.Rate{
		rate("BTC", "64123.55", "59000.01"), rate("USDT", "1", "0.92"), rate("SHIB", "0.0000123", "3"), rate("HALF", "1", ""),
		rate("DEAD", "0", "-1"), rate("TINY", "1e-64", "1e64"), rate("TWICE", "", "1"),
		rate("low", "2", ""), rate("ABC", "1", ""), rate("Abc", "4", ""),
		{CoinSymbol: "HUGE", USD: decimal.NewNullDecimal(decimal.New(1, math.MaxInt32)), EUR: decimal.NewNullDecimal(decimal.New(1, math.MinInt32))},
	}, Skipped: []gateway.Skipped{
		{Pointer: "/result/9", Reason: "names no coin"},
		{Pointer: "/result/GONE", CoinSymbol: "gone", Reason: "is null"},
		{Pointer: "/result/6/usd", CoinSymbol: "TWICE", Reason: twice},
		many, many, many,
	}}
}

func pairWith(symbol string, precision int) *gateway.CoinNetwork {
	return &gateway.CoinNetwork{Coin: gateway.Coin{Symbol: symbol, Precision: precision}}
}

func TestToCoin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, price, fiat, coin string
		precision               int
		want                    string
	}{
		{"an exact amount stays", "10.50", "usd", "USDT", 6, "10.5"},
		{"the rest is rounded up in the last place", "10", "usd", "BTC", 8, "0.00015595"}, // 0.000155948941…
		{"where half would round down, too", "1", "eur", "SHIB", 2, "0.34"},
		{"to a whole unit", "0.01", "usd", "BTC", 0, "1"},
		{"to 30 places", "1", "eur", "SHIB", 30, "0.333333333333333333333333333334"},
		{"zero is zero", "0", "usd", "BTC", 8, "0"},
		{"a fiat code is read in any case", "9.2", "Eur", "USDT", 6, "10"},
		{"the smallest rate", "1", "usd", "TINY", 0, "1" + strings.Repeat("0", 64)},
		{"the largest rate", "1", "eur", "TINY", 8, "0.00000001"},
		{"a coin in another case, if only one is meant", "1", "usd", "LOW", 8, "0.5"},
		{"of two that differ in case, the one asked for", "1", "usd", "Abc", 8, "0.25"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := pricing.ToCoin(testRates(), dec(tt.price), tt.fiat, pairWith(tt.coin, tt.precision))
			require.NoError(t, err)
			assert.Equal(t, tt.want, got.String())
			assert.LessOrEqual(t, -int(got.Exponent()), tt.precision)
		})
	}
}

// Whatever the rate, the coins that are asked for are worth the price, and one unit of the last place less
// would not be.
// I-100
func TestToCoin_neverUndercharges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		price := decimal.New(random.Int64N(1_000_000_000_000), -int32(random.IntN(9)))
		rate := decimal.New(1+random.Int64N(1_000_000_000_000), 6-int32(random.IntN(25)))
		precision := random.IntN(31)
		rates := &gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "C", USD: decimal.NewNullDecimal(rate)}}}
		coins, err := pricing.ToCoin(rates, price, "usd", pairWith("C", precision))
		require.NoError(t, err)
		unit := decimal.New(1, -int32(precision))
		require.False(t, coins.Mul(rate).LessThan(price), "%s coins at %s are worth less than %s", coins, rate, price)
		require.True(t, price.IsZero() || coins.Sub(unit).Mul(rate).LessThan(price), "%s coins at %s are too many for %s", coins, rate, price)
		require.LessOrEqual(t, -int(coins.Exponent()), precision)
	}
}

func TestToFiat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, amount, coin, fiat, want string }{
		{"below half is rounded down", "0.00015594", "BTC", "usd", "10"}, // 9.99942…
		{"half is rounded to even, down", "0.125", "USDT", "usd", "0.12"},
		{"half is rounded to even, up", "0.135", "USDT", "usd", "0.14"},
		{"above half is rounded up", "0.1250001", "USDT", "usd", "0.13"},
		{"zero is zero", "0", "BTC", "EUR", "0"},
	} {
		got, err := pricing.ToFiat(testRates(), dec(tt.amount), tt.fiat, tt.coin)
		require.NoError(t, err, tt.name)
		assert.Equal(t, tt.want, got.String(), tt.name)
	}
}

// Each conversion names the argument that it refuses, and returns zero. It says why a rate was skipped.
// I-98
func TestToCoin_ToFiat_refuse(t *testing.T) {
	t.Parallel()
	const noAmount = " is not an amount above zero"
	const nameless = "; a record that names no coin was left out: /result/9: names no coin"
	const unlisted = " has no exchange rate; write it as the rates do" + nameless
	for _, tt := range []struct {
		name, value, fiat, coin string
		precision               int
		want                    string // %: the name of the value
	}{
		{"an unknown coin", "1", "usd", "XRP", 8, `coinSymbol: "XRP"` + unlisted},
		{"a coin with a space", "1", "usd", "BTC ", 8, `coinSymbol: "BTC "` + unlisted},
		{"a case that means two coins", "1", "usd", "abc", 8, `coinSymbol: "abc"` + unlisted},
		{"a skipped record", "1", "usd", "GONE", 8, `coinSymbol: "GONE" was left out: /result/GONE: is null` + nameless},
		{"a skipped rate", "1", "usd", "TWICE", 8, `rate: of "TWICE" in usd was left out: /result/6/usd: ` + twice},
		{"three skipped records of a coin", "1", "usd", "MANY", 8, `coinSymbol: "MANY" was left out: /result/3/usd: ` + twice + `; /result/3/usd: ` + twice + nameless},
		{"a coin without a rate in the currency", "1", "EUR", "HALF", 8, `rate: of "HALF" in EUR is missing in the response`},
		{"a rate of zero", "1", "usd", "DEAD", 8, `rate: of "DEAD" in usd` + noAmount},
		{"a rate below zero", "1", "eur", "DEAD", 8, `rate: of "DEAD" in eur` + noAmount},
		{"a rate that is too large", "1", "usd", "HUGE", 8, `rate: of "HUGE" in usd` + noAmount},
		{"a rate that is too small", "1", "eur", "HUGE", 8, `rate: of "HUGE" in eur` + noAmount},
		{"an unknown currency", "1", "gbp", "BTC", 8, "fiat: must be usd or eur; convert another currency with PriceIn"},
		{"no currency", "1", "", "BTC", 8, "fiat: must be usd or eur; convert another currency with PriceIn"},
		{"a negative value", "-1", "usd", "BTC", 8, "%: must not be negative"},
		{"a value with a huge exponent", "1e9999", "usd", "BTC", 8, "%: has more than 64 digits"},
		{"a zero with a huge exponent", "0e9999", "usd", "BTC", 8, "%: has more than 64 digits"},
		{"a negative precision", "1", "usd", "BTC", -1, "precision: must be from 0 to 30"},
		{"a precision over 30", "1", "usd", "BTC", 31, "precision: must be from 0 to 30"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := pricing.ToCoin(testRates(), dec(tt.value), tt.fiat, pairWith(tt.coin, tt.precision))
			assertRefused(t, err, "to_coin", strings.Replace(tt.want, "%", "price", 1))
			assert.Zero(t, got)
			if tt.precision == 8 {
				got, err = pricing.ToFiat(testRates(), dec(tt.value), tt.fiat, tt.coin)
				assertRefused(t, err, "to_fiat", strings.Replace(tt.want, "%", "amount", 1))
				assert.Zero(t, got)
			}
		})
	}
}

func TestPriceIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, price, rate, want, err string }{
		{"an exact price stays", "10.00", "1.27", "12.7", ""},
		{"the rest is rounded up to a cent", "9.99", "1.2651", "12.64", ""},
		{"also from less than a cent", "0.01", "0.0001", "0.01", ""},
		{"no price", "0", "1", "0", "price: is required and must be greater than zero"},
		{"a rate that is too fine", "1", "1e-31", "0", "rate: has more than 30 decimal places"},
		{"a price that is too large afterwards", "1e40", "1e40", "0", "price: after conversion has more than 64 digits"},
	} {
		got, err := pricing.PriceIn(dec(tt.price), dec(tt.rate))
		assert.Equal(t, tt.want, got.String(), tt.name)
		if tt.err == "" {
			require.NoError(t, err)
		} else {
			assertRefused(t, err, "price_in", tt.err)
		}
	}
}
