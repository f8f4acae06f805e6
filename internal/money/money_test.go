package money_test

import (
	"cmp"
	"math"
	"math/big"
	"runtime"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/money"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text  string
		coefficient string
		exponent    int32
	}{
		{"zero", "0", "0", 0},
		{"minus zero with places", "-0.00", "0", -2},
		{"one negative digit", "-7", "-7", 0},
		{"zeros at the end stay", "10.50", "1050", -2},
		{"the smallest unit of a coin with 18 places", "0.000000000000000001", "1", -18},
		{"18 digits, which always fit into an int64", "999999999999999999", "999999999999999999", 0},
		{"18 digits and a sign", "-999999999999999999", "-999999999999999999", 0},
		{"19 digits, which may not fit", "9999999999999999999", "9999999999999999999", 0},
		{"beyond uint64, with places", "18446744073709551616.25", "1844674407370955161625", -2},
		{"a small e", "1e-7", "1", -7},
		{"a capital E and a plus", "1E+64", "1", 64},
		{"the smallest exponent is written", "1.5e-64", "15", -65},
		{"leading zeros in an exponent", "1e" + strings.Repeat("0", 100) + "5", "1", 5},
		{"128 characters, 126 of them places", "0." + strings.Repeat("0", 125) + "1", "1", -126},
		{
			"128 characters with a sign and a point", "-" + strings.Repeat("1", 63) + "." + strings.Repeat("2", 63),
			"-" + strings.Repeat("1", 63) + strings.Repeat("2", 63), -63,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := []byte(tt.text)
			got, err := money.Parse(text)
			require.NoError(t, err)
			assert.Equal(t, tt.coefficient, got.Coefficient().String())
			assert.Equal(t, tt.exponent, got.Exponent())
			assert.Equal(t, tt.text, string(text), "the text is not changed")
		})
	}
}

func TestParse_refuses(t *testing.T) {
	t.Parallel()
	for want, texts := range map[error][]string{
		money.ErrSyntax: {
			"", "-", "+1", "--1", "01", "-01", "00", ".5", "-.5", "5.", ".", "1.2.3", "1.-2", "1e", "1e+", "1e--1", "1e1e1", "1e1.0", "e1", "1.e1",
			" 1", "1 ", "1\x00", "1_0", "1,5", "/", ":", "0x1", "1f", "1n", "Infinity", "NaN", "１", "१", "½", "\xff",
		},
		money.ErrSize: {
			"1e65", "1e-65", "0e65", "1e1000000000", "1e-1000000000", "1e99999999999999999999999999999999",
			strings.Repeat("9", 129), strings.Repeat(" ", 1<<20),
		},
	} {
		for _, text := range texts {
			got, err := money.Parse([]byte(text))
			assert.ErrorIs(t, err, want, "%.99q", text)
			assert.Equal(t, decimal.Decimal{}, got)
		}
	}
}

// Format writes an amount digit by digit and without an exponent, Text as Parse reads it.
func TestFormat(t *testing.T) {
	t.Parallel()
	power := func(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }
	zeros := func(n int) string { return strings.Repeat("0", n) }
	const same = ""
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		want   string
		text   string // what Text writes, if it is not the same
	}{
		{"the zero value", decimal.Decimal{}, "0", same},
		{"a zero with an exponent", decimal.New(0, 3), "0", "0e3"},
		{"a zero with places", decimal.New(0, -2), "0.00", same},
		{"an exponent", decimal.New(15, 2), "1500", "15e2"},
		{"the largest exponent of a negative amount", decimal.New(-1, 64), "-1" + zeros(64), "-1e64"},
		{"zeros at the end stay", decimal.New(-1050, -2), "-10.50", same},
		{"one place below 1", decimal.New(5, -1), "0.5", same},
		{"three places of a negative amount", decimal.New(-5, -3), "-0.005", same},
		{"as many places as digits", decimal.New(1234, -4), "0.1234", same},
		{"one digit before the point", decimal.New(1234, -3), "1.234", same},
		{"the largest int64", decimal.New(math.MaxInt64, 0), "9223372036854775807", same},
		{"the smallest int64, with places", decimal.New(math.MinInt64, -18), "-9.223372036854775808", same},
		{"2^63, which does not fit into an int64", decimal.NewFromBigInt(power(63), 0), "9223372036854775808", same},
		{"18 digits", decimal.New(-999999999999999999, -18), "-0.999999999999999999", same},
		{"2^70 with places", decimal.NewFromBigInt(power(70), -5), "11805916207174113.03424", same},
		{"126 places", decimal.New(1, -126), "0." + zeros(125) + "1", same},
		{"more places than Parse reads", decimal.New(123, -130), "0." + zeros(127) + "123", "0." + zeros(63) + "123e-64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := tt.amount.Coefficient()
			assert.Equal(t, tt.want, money.Format(tt.amount))
			text, err := money.Text(tt.amount)
			require.NoError(t, err)
			assert.Equal(t, cmp.Or(tt.text, tt.want), text)
			assert.Zero(t, before.Cmp(tt.amount.Coefficient()), "the amount is not changed")
		})
	}
}

func TestText_refuses(t *testing.T) {
	t.Parallel()
	for _, amount := range []decimal.Decimal{
		decimal.New(1, 65), decimal.New(1, -193), decimal.New(1, math.MaxInt32), decimal.New(1, math.MinInt32),
		nines(129), nines(128).Shift(-1),
	} {
		_, err := money.Text(amount)
		assert.ErrorIs(t, err, money.ErrSize)
	}
}

// nines is an amount of n digits, all of them 9.
func nines(n int) decimal.Decimal {
	value, _ := new(big.Int).SetString(strings.Repeat("9", n), 10)
	return decimal.NewFromBigInt(value, 0)
}

// Check and CheckSize bound the amounts that are sent, Representable those that Parse can return; IsSmall is a quick test of both.
func TestCheck(t *testing.T) {
	t.Parallel()
	const (
		yes, no  = true, false
		required = "is required and must be greater than zero"
		negative = "must be greater than zero"
		digits   = "has more than 64 digits"
		places   = "has more than 30 decimal places"
	)
	power := func(n uint, less int64) decimal.Decimal {
		return decimal.NewFromBigInt(new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), n), big.NewInt(less)), 0)
	}
	for _, tt := range []struct {
		name                 string
		amount               decimal.Decimal
		sign, size           string // the reasons of Check; CheckSize has the second alone
		representable, small bool
	}{
		{"the zero value", decimal.Decimal{}, required, "", yes, yes},
		{"zero with places", decimal.New(0, -2), required, "", yes, yes},
		{"a zero with a huge exponent", decimal.New(0, math.MaxInt32), required, digits, no, no},
		{"a price", decimal.New(1050, -2), "", "", yes, yes},
		{"a negative amount", decimal.New(-5, 0), negative, "", yes, yes},
		{"a negative amount of 65 digits", nines(65).Neg(), negative, digits, yes, no},
		{"30 places", decimal.New(1, -30), "", "", yes, yes},
		{"31 places", decimal.New(1, -31), "", places, yes, no},
		{"31 places that are zero", decimal.New(1, 0).Add(decimal.New(0, -31)), "", places, yes, no},
		{"an exponent, which may add any number of digits", decimal.New(1, 1), "", "", yes, no},
		{"64 digits by an exponent", decimal.New(1, 63), "", "", yes, no},
		{"65 digits by an exponent", decimal.New(1, 64), "", digits, yes, no},
		{"64 digits", nines(64), "", "", yes, no},
		{"65 digits", nines(65), "", digits, yes, no},
		{"64 digits, 30 of them places", nines(64).Shift(-30), "", "", yes, no},
		{"65 digits, 30 of them places", nines(65).Shift(-30), "", digits, yes, no},
		{"the largest int64", decimal.New(math.MaxInt64, -30), "", "", yes, yes},
		{"the smallest int64", decimal.New(math.MinInt64, 0), negative, "", yes, yes},
		{"2^63, which overflows an int64", power(63, 0), "", "", yes, no},
		{"2^64 + 5, whose low bits are 5", power(64, -5), "", "", yes, no},
		{"128 digits", nines(128), "", digits, yes, no},
		{"512 bits, in which 128 digits fit", power(512, 1), "", digits, yes, no},
		{"513 bits", power(513, 1), "", digits, no, no},
		{"the largest exponent that Parse returns", decimal.New(1, 192), "", digits, yes, no},
		{"an exponent beyond it", decimal.New(1, 193), "", digits, no, no},
		{"the smallest exponent that Parse returns", decimal.New(1, -192), "", places, yes, no},
		{"an exponent below it", decimal.New(1, -193), "", places, no, no},
		{"the largest exponent", decimal.New(1, math.MaxInt32), "", digits, no, no},
		{"the smallest exponent", decimal.New(1, math.MinInt32), "", places, no, no},
		{"100,000 digits and the largest exponent", decimal.NewFromBigInt(nines(100_000).Coefficient(), math.MaxInt32), "", digits, no, no},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := tt.amount.Coefficient()
			assert.Equal(t, cmp.Or(tt.sign, tt.size), money.Check(tt.amount))
			assert.Equal(t, tt.size, money.CheckSize(tt.amount))
			assert.Equal(t, tt.representable, money.Representable(tt.amount))
			assert.Equal(t, tt.small, money.IsSmall(tt.amount))
			assert.Zero(t, before.Cmp(tt.amount.Coefficient()), "the amount is not changed")
		})
	}
}

// Too many digits are refused before they are built, which could take gigabytes. What
// is counted is what the whole program allocates, so that this test is not parallel.
func TestCheck_hugeAmountsAllocateLittle(t *testing.T) {
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		most   uint64 // bytes
	}{
		{"the largest exponent", decimal.New(1, math.MaxInt32), 64 << 10},
		{"the smallest exponent", decimal.New(1, math.MinInt32), 64 << 10},
		{"a coefficient of 1 MiB, which is copied", decimal.NewFromBigInt(new(big.Int).Lsh(big.NewInt(1), 8<<20), 0), 3 << 20},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = money.Check(tt.amount), money.Representable(tt.amount)
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, tt.most, tt.name)
	}
	huge, price := []byte("1e1000000000"), decimal.New(1050, -2)
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = money.Parse(huge) }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = money.IsSmall(price) }))
}
