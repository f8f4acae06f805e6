package money_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/money"
)

// amounts are texts that Parse accepts.
var amounts = []struct {
	name, text  string
	coefficient string
	exponent    int32
}{
	{"zero", "0", "0", 0},
	{"minus zero", "-0", "0", 0},
	{"minus zero with places", "-0.00", "0", -2},
	{"one digit", "7", "7", 0},
	{"one negative digit", "-7", "-7", 0},
	{"zeros at the end stay", "10.50", "1050", -2},
	{"a negative amount with places", "-10.50", "-1050", -2},
	{"the smallest unit of a coin with 18 places", "0.000000000000000001", "1", -18},
	{"18 digits, which always fit into an int64", "999999999999999999", "999999999999999999", 0},
	{"17 digits and a sign", "-99999999999999999", "-99999999999999999", 0},
	{"18 digits and a sign", "-999999999999999999", "-999999999999999999", 0},
	{"19 digits, which may not fit", "9999999999999999999", "9999999999999999999", 0},
	{"20 digits, which never fit", "99999999999999999999", "99999999999999999999", 0},
	{"the smallest int64", "-9223372036854775808", "-9223372036854775808", 0},
	{"beyond uint64, with places", "18446744073709551616.25", "1844674407370955161625", -2},
	{"a small e", "1e-7", "1", -7},
	{"a capital E", "1E-7", "1", -7},
	{"an exponent with a plus", "1e+7", "1", 7},
	{"an exponent of two digits", "1e12", "1", 12},
	{"an exponent of zero with a minus", "1e-0", "1", 0},
	{"the largest exponent", "1e64", "1", 64},
	{"the largest exponent with a plus", "1E+64", "1", 64},
	{"the smallest exponent is that which is written", "1.5e-64", "15", -65},
	{"leading zeros in an exponent", "1e" + strings.Repeat("0", 100) + "5", "1", 5},
	{"128 characters", strings.Repeat("9", 128), strings.Repeat("9", 128), 0},
	{"128 characters, 126 of them places", "0." + strings.Repeat("0", 125) + "1", "1", -126},
	{
		"128 characters with a sign and a point", "-" + strings.Repeat("1", 63) + "." + strings.Repeat("2", 63),
		"-" + strings.Repeat("1", 63) + strings.Repeat("2", 63), -63,
	},
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range amounts {
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

// notAmounts are texts that Parse refuses.
var notAmounts = []struct {
	name, text string
	want       error
}{
	{"nothing", "", money.ErrSyntax},
	{"a sign and nothing else", "-", money.ErrSyntax},
	{"a plus", "+1", money.ErrSyntax},
	{"two signs", "--1", money.ErrSyntax},
	{"a leading zero", "01", money.ErrSyntax},
	{"a leading zero after a sign", "-01", money.ErrSyntax},
	{"two zeros", "00", money.ErrSyntax},
	{"no digit before the point", ".5", money.ErrSyntax},
	{"no digit between sign and point", "-.5", money.ErrSyntax},
	{"no digit after the point", "5.", money.ErrSyntax},
	{"a point and nothing else", ".", money.ErrSyntax},
	{"two points", "1.2.3", money.ErrSyntax},
	{"a sign after the point", "1.-2", money.ErrSyntax},
	{"an exponent without digits", "1e", money.ErrSyntax},
	{"an exponent of a sign", "1e+", money.ErrSyntax},
	{"an exponent with two signs", "1e--1", money.ErrSyntax},
	{"two exponents", "1e1e1", money.ErrSyntax},
	{"an exponent with places", "1e1.0", money.ErrSyntax},
	{"an exponent and nothing else", "e1", money.ErrSyntax},
	{"an exponent after a point", "1.e1", money.ErrSyntax},
	{"spaces around", " 1 ", money.ErrSyntax},
	{"a space at the end", "1 ", money.ErrSyntax},
	{"a space in front", " 1", money.ErrSyntax},
	{"a NUL", "1\x00", money.ErrSyntax},
	{"an underscore", "1_0", money.ErrSyntax},
	{"a comma", "1,5", money.ErrSyntax},
	{"the character before 0", "/", money.ErrSyntax},
	{"the character after 9", ":", money.ErrSyntax},
	{"hexadecimal", "0x1", money.ErrSyntax},
	{"a suffix of Go", "1f", money.ErrSyntax},
	{"a suffix of JavaScript", "1n", money.ErrSyntax},
	{"infinity", "Infinity", money.ErrSyntax},
	{"infinity, in short", "Inf", money.ErrSyntax},
	{"not a number", "NaN", money.ErrSyntax},
	{"not a number, in lower case", "nan", money.ErrSyntax},
	{"a full-width digit", "１", money.ErrSyntax},
	{"a digit of Devanagari", "१", money.ErrSyntax},
	{"a fraction", "½", money.ErrSyntax},
	{"invalid UTF-8", "\xff", money.ErrSyntax},
	{"an exponent of 65", "1e65", money.ErrSize},
	{"an exponent of -65", "1e-65", money.ErrSize},
	{"a zero with an exponent of 65", "0e65", money.ErrSize},
	{"a huge exponent", "1e1000000000", money.ErrSize},
	{"a huge negative exponent", "1e-1000000000", money.ErrSize},
	{"an exponent of five digits", "1e99999", money.ErrSize},
	{"an exponent beyond any integer", "1e99999999999999999999999999999999", money.ErrSize},
	{"129 characters", strings.Repeat("9", 129), money.ErrSize},
	{"400 digits", strings.Repeat("9", 400), money.ErrSize},
	{"a megabyte of spaces", strings.Repeat(" ", 1<<20), money.ErrSize},
}

func TestParse_refuses(t *testing.T) {
	t.Parallel()
	for _, tt := range notAmounts {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := money.Parse([]byte(tt.text))
			require.ErrorIs(t, err, tt.want)
			assert.Equal(t, decimal.Decimal{}, got)
		})
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	power := func(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		want   string
	}{
		{"the zero value", decimal.Decimal{}, "0"},
		{"a zero with an exponent", decimal.New(0, 5), "0"},
		{"a zero with places", decimal.New(0, -2), "0.00"},
		{"one digit", decimal.New(5, 0), "5"},
		{"an exponent is written out", decimal.New(1, 5), "100000"},
		{"an exponent of a negative amount", decimal.New(-1, 5), "-100000"},
		{"zeros at the end stay", decimal.New(1050, -2), "10.50"},
		{"a negative amount with places", decimal.New(-1050, -2), "-10.50"},
		{"one place below 1", decimal.New(5, -1), "0.5"},
		{"three places of a negative amount", decimal.New(-5, -3), "-0.005"},
		{"as many places as digits", decimal.New(1234, -4), "0.1234"},
		{"one digit before the point", decimal.New(1234, -3), "1.234"},
		{"the largest int64", decimal.New(math.MaxInt64, 0), "9223372036854775807"},
		{"the smallest int64, with places", decimal.New(math.MinInt64, -18), "-9.223372036854775808"},
		{"2^63, which does not fit into an int64", decimal.NewFromBigInt(power(63), 0), "9223372036854775808"},
		{"18 digits", decimal.RequireFromString("999999999999999999"), "999999999999999999"},
		{"19 digits", decimal.RequireFromString("9.999999999999999999"), "9.999999999999999999"},
		{"20 digits", decimal.RequireFromString("99999999999999999999"), "99999999999999999999"},
		{"18 places of a negative amount", decimal.RequireFromString("-0.999999999999999999"), "-0.999999999999999999"},
		{"2^70 with places", decimal.NewFromBigInt(power(70), -5), "11805916207174113.03424"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := tt.amount.Coefficient()
			assert.Equal(t, tt.want, money.Format(tt.amount))
			assert.Zero(t, before.Cmp(tt.amount.Coefficient()), "the amount is not changed")
		})
	}
}

// What is written is what is read back, digit by digit.
func TestFormat_roundTrip(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	tried := 0
	for range 5_000 {
		amount := randomAmount(random)
		if money.Check(amount) != "" {
			continue
		}
		tried++
		text := money.Format(amount)
		back, err := money.Parse([]byte(text))
		require.NoError(t, err, text)
		require.True(t, back.Equal(amount), "%s", text)
		require.Equal(t, min(amount.Exponent(), 0), back.Exponent(), "the places of %s", text)
		require.NotContains(t, text, "e")
		require.LessOrEqual(t, len(text), money.MaxDigits+2)
	}
	assert.Greater(t, tried, 1_000)
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

// nines is an amount of n digits, all of them 9.
func nines(n int) decimal.Decimal {
	value, _ := new(big.Int).SetString(strings.Repeat("9", n), 10)
	return decimal.NewFromBigInt(value, 0)
}

const (
	tooManyDigits = "has more than 64 digits"
	tooManyPlaces = "has more than 30 decimal places"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		amount decimal.Decimal
		want   string
	}{
		{decimal.Decimal{}, "0"},
		{decimal.New(1050, -2), "10.50"},
		{decimal.New(-1, -8), "-0.00000001"},
		{decimal.New(0, -2), "0.00"},
		{decimal.New(15, 2), "15e2"},
		{decimal.New(-1, 64), "-1e64"},
		{decimal.New(1, -126), "0." + strings.Repeat("0", 125) + "1"},
		{decimal.New(1, -128), "0." + strings.Repeat("0", 63) + "1e-64"},
		{decimal.New(123, -130), "0." + strings.Repeat("0", 63) + "123e-64"},
		{decimal.New(0, 3), "0e3"},
	} {
		got, err := money.Text(tt.amount)
		require.NoError(t, err)
		assert.Equal(t, tt.want, got)
	}
	for _, amount := range []decimal.Decimal{
		decimal.New(1, 65), decimal.New(1, -193), decimal.New(1, math.MaxInt32), decimal.New(1, math.MinInt32),
		decimal.RequireFromString(strings.Repeat("9", 129)),
		decimal.RequireFromString(strings.Repeat("9", 127) + ".9"),
	} {
		_, err := money.Text(amount)
		assert.ErrorIs(t, err, money.ErrSize)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const (
		required = "is required and must be greater than zero"
		negative = "must be greater than zero"
	)
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		want   string
	}{
		{"the zero value is required", decimal.Decimal{}, required},
		{"zero", decimal.NewFromInt(0), required},
		{"zero with places", decimal.RequireFromString("0.00"), required},
		{"minus zero", decimal.RequireFromString("-0"), required},
		{"minus five", decimal.NewFromInt(-5), negative},
		{"a zero with a huge exponent", decimal.New(0, math.MaxInt32), required},
		{"minus 1e1000000000", decimal.New(-1, 1_000_000_000), negative},
		{"1e400", decimal.New(1, 400), tooManyDigits},
		{"31 decimal places that are zero", decimal.RequireFromString("1." + strings.Repeat("0", 31)), tooManyPlaces},
		{"the smallest amount", decimal.New(1, -money.MaxScale), ""},
		{"the largest amount", nines(money.MaxDigits), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, money.Check(tt.amount))
		})
	}
}

func TestCheckSize(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		want   string
	}{
		{"zero", decimal.Zero, ""},
		{"64 digits", nines(64), ""},
		{"65 digits", nines(65), tooManyDigits},
		{"a negative amount of 64 digits", nines(64).Neg(), ""},
		{"a negative amount of 65 digits", nines(65).Neg(), tooManyDigits},
		{"64 digits, 30 of them places", nines(64).Shift(-30), ""},
		{"65 digits, 30 of them places", nines(65).Shift(-30), tooManyDigits},
		{"30 places", decimal.New(1, -30), ""},
		{"31 places", decimal.New(1, -31), tooManyPlaces},
		{"64 digits by an exponent", decimal.New(1, 63), ""},
		{"65 digits by an exponent", decimal.New(1, 64), tooManyDigits},
		{"10,000 digits", nines(10_000), tooManyDigits},
		{"100,000 digits", nines(100_000), tooManyDigits},
		{"100,000 digits and the largest exponent", decimal.NewFromBigInt(nines(100_000).Coefficient(), math.MaxInt32), tooManyDigits},
		{"1e-400", decimal.New(1, -400), tooManyPlaces},
		{"1e1000000000", decimal.New(1, 1_000_000_000), tooManyDigits},
		{"1e-1000000000", decimal.New(1, -1_000_000_000), tooManyPlaces},
		{"the largest exponent", decimal.New(1, math.MaxInt32), tooManyDigits},
		{"the smallest exponent", decimal.New(1, math.MinInt32), tooManyPlaces},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := tt.amount.Coefficient()
			assert.Equal(t, tt.want, money.CheckSize(tt.amount))
			assert.Zero(t, before.Cmp(tt.amount.Coefficient()), "the amount is not changed")
		})
	}
}

// What Parse returns is representable; what only a program can make need not be.
func TestRepresentable(t *testing.T) {
	t.Parallel()
	bits := func(n uint) decimal.Decimal {
		return decimal.NewFromBigInt(new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), n), big.NewInt(1)), 0)
	}
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		want   bool
	}{
		{"zero", decimal.Zero, true},
		{"128 digits", nines(128), true},
		{"the largest exponent that 128 characters and an exponent of 64 can make", decimal.New(1, 192), true},
		{"an exponent beyond it", decimal.New(1, 193), false},
		{"the largest exponent", decimal.New(1, math.MaxInt32), false},
		{"the smallest exponent that they can make", decimal.New(1, -192), true},
		{"an exponent below it", decimal.New(1, -193), false},
		{"the smallest exponent", decimal.New(1, math.MinInt32), false},
		{"a coefficient of 512 bits, in which 128 digits fit", bits(512), true},
		{"a coefficient of 513 bits", bits(513), false},
		{"a negative coefficient of 513 bits", bits(513).Neg(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, money.Representable(tt.amount))
		})
	}
}

func TestIsSmall(t *testing.T) {
	t.Parallel()
	beyond := new(big.Int).Lsh(big.NewInt(1), 63)
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		want   bool
	}{
		{"the zero value", decimal.Decimal{}, true},
		{"a price", decimal.RequireFromString("10.50"), true},
		{"a negative amount", decimal.RequireFromString("-10.50"), true},
		{"30 places", decimal.New(1, -30), true},
		{"31 places", decimal.New(1, -31), false},
		{"an exponent, which may add any number of digits", decimal.New(1, 1), false},
		{"the largest int64", decimal.New(math.MaxInt64, -30), true},
		{"the smallest int64", decimal.New(math.MinInt64, 0), true},
		{"2^63, which overflows an int64", decimal.NewFromBigInt(beyond, 0), false},
		{"2^64 + 5, whose low bits are 5", decimal.NewFromBigInt(new(big.Int).Add(new(big.Int).Lsh(beyond, 1), big.NewInt(5)), 0), false},
		{"64 digits, which CheckSize accepts", nines(64), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, money.IsSmall(tt.amount))
			if tt.want {
				assert.Empty(t, money.CheckSize(tt.amount))
				assert.True(t, money.Representable(tt.amount))
			}
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
		{"1e1000000000", decimal.New(1, 1_000_000_000), 64 << 10},
		{"1e-1000000000", decimal.New(1, -1_000_000_000), 64 << 10},
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
}

func TestParse_hugeExponentAllocatesNothing(t *testing.T) {
	huge := []byte("1e1000000000")
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = money.Parse(huge) }))
}

func TestIsSmall_allocatesNothing(t *testing.T) {
	amount := decimal.RequireFromString("10.50")
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = money.IsSmall(amount) }))
}

// The documentation of an invoice and the texts of the reasons state the limits.
func TestLimits(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 64, money.MaxDigits)
	assert.Equal(t, 30, money.MaxScale)
}
