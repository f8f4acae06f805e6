package pricing_test

import (
	"cmp"
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

func testRates() *gateway.ExchangeRates {
	return &gateway.ExchangeRates{Rates: []gateway.Rate{
		{CoinSymbol: "BTC", USD: rateOf("64123.55"), EUR: rateOf("59000.01")},
		{CoinSymbol: "USDT", USD: rateOf("1"), EUR: rateOf("0.92")},
		{CoinSymbol: "SHIB", USD: rateOf("0.0000123"), EUR: rateOf("3")},
		{CoinSymbol: "HALF", USD: rateOf("1")},
		{CoinSymbol: "HUGE", USD: decimal.NewNullDecimal(decimal.New(1, math.MaxInt32)), EUR: decimal.NewNullDecimal(decimal.New(1, math.MinInt32))},
		{CoinSymbol: "DEAD", USD: rateOf("0"), EUR: rateOf("-1")},
		{CoinSymbol: "TINY", USD: decimal.NewNullDecimal(decimal.New(1, -64)), EUR: decimal.NewNullDecimal(decimal.New(1, 64))},
	}}
}

func TestToCoin(t *testing.T) {
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
			got, err := pricing.ToCoin(testRates(), decimal.RequireFromString(tt.price), tt.fiat, tt.symbol, tt.precision)
			require.NoError(t, err)
			assert.True(t, got.Equal(decimal.RequireFromString(tt.want)), "%s, not %s", got, tt.want)
			assert.LessOrEqual(t, -int(got.Exponent()), tt.precision)
		})
	}
}

func TestToFiat(t *testing.T) {
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
			got, err := pricing.ToFiat(testRates(), decimal.RequireFromString(tt.amount), tt.fiat, tt.symbol)
			require.NoError(t, err)
			assert.True(t, got.Equal(decimal.RequireFromString(tt.want)), "%s, not %s", got, tt.want)
			assert.LessOrEqual(t, -int(got.Exponent()), 2)
		})
	}
}

// What cannot be converted is named, and the result is zero.
// A symbol in another case is the same coin, where only one is meant.
func TestToCoin_case(t *testing.T) {
	t.Parallel()
	rates := &gateway.ExchangeRates{Rates: []gateway.Rate{
		{CoinSymbol: "btc", USD: rateOf("2")}, {CoinSymbol: "ABC", USD: rateOf("1")}, {CoinSymbol: "Abc", USD: rateOf("4")},
	}}
	got, err := pricing.ToCoin(rates, decimal.NewFromInt(1), "usd", "BTC", 8)
	require.NoError(t, err)
	assert.Equal(t, "0.5", got.String())
	got, err = pricing.ToFiat(rates, decimal.NewFromInt(1), "usd", "Abc")
	require.NoError(t, err)
	assert.Equal(t, "4", got.String())
	_, err = pricing.ToCoin(rates, decimal.NewFromInt(1), "usd", "abc", 8)
	assertRefused(t, err, "to_coin", "coinSymbol", `"abc" has no exchange rate`)
}

func TestToCoin_refuses(t *testing.T) {
	t.Parallel()
	one := decimal.NewFromInt(1)
	for _, tt := range []struct {
		name             string
		value            decimal.Decimal
		fiat, symbol     string
		precision        int
		argument, reason string // "" for the value
	}{
		{"an unknown coin", one, "usd", "XRP", 8, "coinSymbol", `"XRP" has no exchange rate; write it as the rates do`},
		{"a coin with a space", one, "usd", "BTC ", 8, "coinSymbol", `"BTC " has no exchange rate; write it as the rates do`},
		{"a coin without a rate in the currency", one, "EUR", "HALF", 8, "rate", `of "HALF" in EUR is missing in the response`},
		{"a rate of zero", one, "usd", "DEAD", 8, "rate", "is not an amount above zero"},
		{"a rate below zero", one, "eur", "DEAD", 8, "rate", "is not an amount above zero"},
		{"a rate that is too large", one, "usd", "HUGE", 8, "rate", "is not an amount above zero"},
		{"a rate that is too small", one, "eur", "HUGE", 8, "rate", "is not an amount above zero"},
		{"an unknown currency", one, "gbp", "BTC", 8, "fiat", "must be usd or eur"},
		{"no currency", one, "", "BTC", 8, "fiat", "must be usd or eur"},
		{"a negative value", decimal.NewFromInt(-1), "usd", "BTC", 8, "", "must not be negative"},
		{"1e1000000000", decimal.New(1, 1_000_000_000), "usd", "BTC", 8, "", "more than 64 digits"},
		{"1e-1000000000", decimal.New(1, -1_000_000_000), "usd", "BTC", 8, "", "more than 30 decimal places"},
		{"a zero with a huge exponent", decimal.New(0, 1_000_000_000), "usd", "BTC", 8, "", "more than 64 digits"},
		{"a negative precision", one, "usd", "BTC", -1, "precision", "must be from 0 to 30"},
		{"a precision over 30", one, "usd", "BTC", 31, "precision", "must be from 0 to 30"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := pricing.ToCoin(testRates(), tt.value, tt.fiat, tt.symbol, tt.precision)
			assertRefused(t, err, "to_coin", cmp.Or(tt.argument, "price"), tt.reason)
			assert.Zero(t, got)
			if tt.argument != "precision" {
				got, err = pricing.ToFiat(testRates(), tt.value, tt.fiat, tt.symbol)
				assertRefused(t, err, "to_fiat", cmp.Or(tt.argument, "amount"), tt.reason)
				assert.Zero(t, got)
			}
		})
	}
}

// Whatever the rate, the coins that are asked for are worth the price, and one
// unit of the last place less would not be.
// I-100
func TestToCoin_neverUndercharges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		price := decimal.New(random.Int64N(1_000_000_000_000), -int32(random.IntN(9)))
		rate := decimal.New(1+random.Int64N(1_000_000_000_000), 6-int32(random.IntN(25)))
		precision := random.IntN(31)
		rates := &gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "C", USD: decimal.NewNullDecimal(rate), EUR: decimal.NewNullDecimal(rate)}}}
		coins, err := pricing.ToCoin(rates, price, "usd", "C", precision)
		require.NoError(t, err)
		unit := decimal.New(1, -int32(precision))
		require.False(t, coins.Mul(rate).LessThan(price), "%s coins at %s are worth less than %s", coins, rate, price)
		require.True(t, price.IsZero() || coins.Sub(unit).Mul(rate).LessThan(price), "%s coins at %s are too many for %s", coins, rate, price)
		require.LessOrEqual(t, -int(coins.Exponent()), precision)
	}
}

func TestPriceIn(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"10.00", "1.27", "12.7"},
		{"9.99", "1.2651", "12.64"},
		{"0.01", "0.0001", "0.01"},
		{"1500000", "0.0000415", "62.25"},
	} {
		got, err := pricing.PriceIn(decimal.RequireFromString(tt[0]), decimal.RequireFromString(tt[1]))
		require.NoError(t, err)
		assert.Equal(t, tt[2], got.String())
	}
	one := decimal.NewFromInt(1)
	_, err := pricing.PriceIn(decimal.Zero, one)
	require.EqualError(t, err, "gateway: price_in: price: is required and must be greater than zero")
	_, err = pricing.PriceIn(decimal.New(1, 40), decimal.New(1, 40))
	require.EqualError(t, err, "gateway: price_in: price: after conversion has more than 64 digits")
	_, err = pricing.PriceIn(one, decimal.New(1, -31))
	require.EqualError(t, err, "gateway: price_in: rate: has more than 30 decimal places")
}
