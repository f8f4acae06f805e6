package gateway

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseAmount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text        string
		coefficient string
		exponent    int32
	}{
		{"0", "0", 0},
		{"-0", "0", 0},
		{"-0.00", "0", -2},
		{"7", "7", 0},
		{"-7", "-7", 0},
		{"10.50", "1050", -2},
		{"-10.50", "-1050", -2},
		{"0.000000000000000001", "1", -18},
		{"999999999999999999", "999999999999999999", 0},           // 18 digits, the fast way
		{"-99999999999999999", "-99999999999999999", 0},           // 17 and a sign
		{"-999999999999999999", "-999999999999999999", 0},         // 18 and a sign
		{"9999999999999999999", "9999999999999999999", 0},         // 19, the other way
		{"-9223372036854775808", "-9223372036854775808", 0},       // the edge of int64
		{"18446744073709551616.25", "1844674407370955161625", -2}, // beyond uint64
		{"1e64", "1", 64},      // the limit
		{"1E+64", "1", 64},     // with a sign
		{"1.5e-64", "15", -65}, // the exponent as it is written counts
		{"1e-0", "1", 0},       //
		{"1e" + strings.Repeat("0", 100) + "5", "1", 5},         // leading zeros of an exponent
		{strings.Repeat("9", 128), strings.Repeat("9", 128), 0}, // the limit
		{"0." + strings.Repeat("0", 125) + "1", "1", -126},      // the limit, in places
		{"-" + strings.Repeat("1", 63) + "." + strings.Repeat("2", 63), "-" + strings.Repeat("1", 63) + strings.Repeat("2", 63), -63},
	} {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			got, err := parseAmount([]byte(tt.text))
			require.NoError(t, err)
			assert.Equal(t, tt.coefficient, got.Coefficient().String())
			assert.Equal(t, tt.exponent, got.Exponent())
		})
	}
}

func TestParseAmount_refuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want error
	}{
		{"", errAmountSyntax},
		{"-", errAmountSyntax},
		{"+1", errAmountSyntax},
		{"--1", errAmountSyntax},
		{"01", errAmountSyntax},
		{"-01", errAmountSyntax},
		{"00", errAmountSyntax},
		{".5", errAmountSyntax},
		{"-.5", errAmountSyntax},
		{"5.", errAmountSyntax},
		{".", errAmountSyntax},
		{"1.2.3", errAmountSyntax},
		{"1.-2", errAmountSyntax},
		{"1e", errAmountSyntax},
		{"1e+", errAmountSyntax},
		{"1e1e1", errAmountSyntax},
		{"1e1.0", errAmountSyntax},
		{"e1", errAmountSyntax},
		{"1 ", errAmountSyntax},
		{" 1", errAmountSyntax},
		{"1\x00", errAmountSyntax},
		{"1_0", errAmountSyntax},
		{"1,5", errAmountSyntax},
		{"0x1", errAmountSyntax},
		{"1f", errAmountSyntax},
		{"1n", errAmountSyntax},
		{"Inf", errAmountSyntax},
		{"nan", errAmountSyntax},
		{"１", errAmountSyntax},
		{"१", errAmountSyntax},
		{"½", errAmountSyntax},
		{"\xff", errAmountSyntax},
		{"1e65", errAmountSize},
		{"1e-65", errAmountSize},
		{"0e65", errAmountSize},
		{"1e1000000000", errAmountSize},
		{"1e99999999999999999999999999999999", errAmountSize},
		{strings.Repeat("9", 129), errAmountSize},
		{strings.Repeat(" ", 1<<20), errAmountSize},
	} {
		t.Run(tt.text[:min(len(tt.text), 40)], func(t *testing.T) {
			t.Parallel()
			got, err := parseAmount([]byte(tt.text))
			require.ErrorIs(t, err, tt.want)
			assert.Equal(t, decimal.Decimal{}, got)
		})
	}
}

func TestPlainText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		amount decimal.Decimal
		want   string
	}{
		{decimal.Decimal{}, "0"},
		{decimal.New(0, 5), "0"},
		{decimal.New(0, -2), "0.00"},
		{decimal.New(5, 0), "5"},
		{decimal.New(1, 5), "100000"},
		{decimal.New(-1, 5), "-100000"},
		{decimal.New(1050, -2), "10.50"},
		{decimal.New(-1050, -2), "-10.50"},
		{decimal.New(5, -1), "0.5"},
		{decimal.New(-5, -3), "-0.005"},
		{decimal.New(1234, -4), "0.1234"},
		{decimal.New(1234, -3), "1.234"},
		{decimal.New(math.MaxInt64, 0), "9223372036854775807"},
		{decimal.New(math.MinInt64, -18), "-9.223372036854775808"},
		{decimal.NewFromBigInt(new(big.Int).Lsh(big.NewInt(1), 63), 0), "9223372036854775808"},
		{decimal.RequireFromString("9.999999999999999999"), "9.999999999999999999"},
		{decimal.RequireFromString("-0.999999999999999999"), "-0.999999999999999999"},
		{decimal.NewFromBigInt(new(big.Int).Lsh(big.NewInt(1), 70), -5), "11805916207174113.03424"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			before := tt.amount.Coefficient()
			assert.Equal(t, tt.want, plainText(tt.amount))
			assert.Zero(t, before.Cmp(tt.amount.Coefficient()), "the amount is not changed")
		})
	}
}

// What is written is what is read back, digit by digit.
func TestPlainText_roundTrip(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 5_000 {
		amount := randomAmount(random)
		if checkAmount(amount) != "" {
			continue
		}
		text := plainText(amount)
		back, err := parseAmount([]byte(text))
		require.NoError(t, err, text)
		require.True(t, back.Equal(amount), "%s", text)
		require.Equal(t, min(amount.Exponent(), 0), back.Exponent(), "the places of %s", text)
		require.NotContains(t, text, "e")
		require.LessOrEqual(t, len(text), maxSentDigits+2)
	}
}

func randomAmount(random *rand.Rand) decimal.Decimal {
	coefficient := new(big.Int)
	for range 1 + random.IntN(3) {
		coefficient.Lsh(coefficient, 64)
		coefficient.Add(coefficient, new(big.Int).SetUint64(random.Uint64()))
	}
	coefficient.Rsh(coefficient, uint(random.IntN(64)))
	return decimal.NewFromBigInt(coefficient, int32(random.IntN(70))-35)
}

func TestCheckSize(t *testing.T) {
	t.Parallel()
	digits := func(n int) decimal.Decimal {
		value, _ := new(big.Int).SetString(strings.Repeat("9", n), 10)
		return decimal.NewFromBigInt(value, 0)
	}
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		want   string
	}{
		{"64 digits", digits(64), ""},
		{"65 digits", digits(65), "has more than 64 digits"},
		{"a negative amount of 64 digits", digits(64).Neg(), ""},
		{"a negative amount of 65 digits", digits(65).Neg(), "has more than 64 digits"},
		{"64 digits, 30 of them places", digits(64).Shift(-30), ""},
		{"30 places", decimal.New(1, -30), ""},
		{"31 places", decimal.New(1, -31), "has more than 30 decimal places"},
		{"64 digits by an exponent", decimal.New(1, 63), ""},
		{"65 digits by an exponent", decimal.New(1, 64), "has more than 64 digits"},
		{"100,000 digits", digits(100_000), "has more than 64 digits"},
		{"100,000 digits and the largest exponent", decimal.NewFromBigInt(digits(100_000).Coefficient(), math.MaxInt32), "has more than 64 digits"},
		{"the largest exponent", decimal.New(1, math.MaxInt32), "has more than 64 digits"},
		{"the smallest exponent", decimal.New(1, math.MinInt32), "has more than 30 decimal places"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, checkSize(tt.amount))
		})
	}
}

// What parseAmount gives is readable; what only a program can make need not be.
func TestReadable(t *testing.T) {
	t.Parallel()
	bits := func(n uint) decimal.Decimal {
		return decimal.NewFromBigInt(new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), n), big.NewInt(1)), 0)
	}
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		want   bool
	}{
		{"nothing", decimal.Zero, true},
		{"the largest exponent that 128 characters and an exponent of 64 can make", decimal.New(1, 192), true},
		{"an exponent beyond it", decimal.New(1, 193), false},
		{"the smallest exponent that they can make", decimal.New(1, -192), true},
		{"an exponent below it", decimal.New(1, -193), false},
		{"a coefficient of 512 bits, in which 128 digits find room", bits(512), true},
		{"a coefficient of 513 bits", bits(513), false},
		{"a negative coefficient of 513 bits", bits(513).Neg(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, readable(tt.amount))
		})
	}
}
