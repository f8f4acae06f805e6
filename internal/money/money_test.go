package money_test

import (
	"cmp"
	"math"
	"math/big"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/money"
)

// jsonNumber is the grammar of an amount, written a second time.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE]([+-]?[0-9]+))?$`)

// An amount is a number of JSON within bounds, and has the value that the decimal package reads from it, with
// the same exponent; all else is refused.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "0", "-0.00", "-7", "10.50", "0.000000000000000001", "1e-7", "1E+7", "1e64", "1.5e-64", "1e65", "1e-65", "1e1000000000", "1e00001",
		"999999999999999999", "-999999999999999999", "9999999999999999999", "-9223372036854775809", "18446744073709551616.25",
		"01", ".5", "5.", "+1", "-", "1e", "1e+", "1.e1", "NaN", "Infinity", " 1", "1 ", "1,5", "0x1", "१", "1_0", "1e1_0", "1\x00",
		strings.Repeat("9", 128), strings.Repeat("9", 129), "0." + strings.Repeat("0", 126), "-1." + strings.Repeat("2", 123) + "e-5",
		"1e" + strings.Repeat("0", 100) + "5", "1e" + strings.Repeat("9", 100), strings.Repeat("9", 125) + "e64",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := money.Parse([]byte(text))
		require.Equal(t, isAmount(text), err == nil, "%q: %v", text, err)
		if err != nil {
			return
		}
		want, err := decimal.NewFromString(text)
		require.NoError(t, err, "the decimal package refuses %q", text)
		assert.Equal(t, want.Exponent(), got.Exponent(), "%q", text)
		assert.Zero(t, want.Coefficient().Cmp(got.Coefficient()), "%q is read as %v", text, got)
		assert.True(t, money.Representable(got), "%q", text)
	})
}

func isAmount(text string) bool {
	parts := jsonNumber.FindStringSubmatch(text)
	if parts == nil || len(text) > 128 {
		return false
	}
	exponent, ok := new(big.Int).SetString(cmp.Or(parts[4], "0"), 10)
	return ok && exponent.CmpAbs(big.NewInt(64)) <= 0
}

// Why a text is refused. FuzzParse has the value of each other.
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

// An amount that may be sent is written in plain digits, and reads back as it was.
func FuzzFormat(f *testing.F) {
	for digits, exponents := range map[string][]int32{
		"1": {5, -30, -31, 63, 64, 1 << 30, -1 << 31}, "1050": {-2}, "0": {0}, "-5": {0}, "18446744073709551616": {-18},
		strings.Repeat("9", 64): {0, -30}, strings.Repeat("9", 65): {-1},
	} {
		for _, exponent := range exponents {
			f.Add(digits, exponent)
		}
	}
	f.Fuzz(func(t *testing.T, digits string, exponent int32) {
		coefficient, ok := new(big.Int).SetString(digits[:min(len(digits), 200)], 10)
		if !ok {
			return
		}
		amount := decimal.NewFromBigInt(coefficient, exponent)
		if money.Check(amount) != "" {
			return
		}
		text := money.Format(amount)
		assert.Regexp(t, `^(0|[1-9][0-9]*)(\.[0-9]+)?$`, text)
		assert.LessOrEqual(t, len(text), money.MaxDigits+2)
		back, err := money.Parse([]byte(text))
		require.NoError(t, err)
		assert.True(t, back.Equal(amount), "%v·10^%d is written as %q, and read as %v", coefficient, exponent, text, back)
		assert.Equal(t, min(exponent, 0), back.Exponent())
	})
}

// Format writes an amount digit by digit and without an exponent.
func TestFormat(t *testing.T) {
	t.Parallel()
	zeros := func(n int) string { return strings.Repeat("0", n) }
	for want, amount := range map[string]decimal.Decimal{
		"0": {}, "0.00": decimal.New(0, -2), "1500": decimal.New(15, 2), "-1" + zeros(64): decimal.New(-1, 64),
		"-10.50": decimal.New(-1050, -2), "0.5": decimal.New(5, -1), "-0.005": decimal.New(-5, -3), "0.1234": decimal.New(1234, -4),
		"1.234": decimal.New(1234, -3), "9223372036854775807": decimal.New(math.MaxInt64, 0), "-9.223372036854775808": decimal.New(math.MinInt64, -18),
		"11805916207174113.03424": decimal.NewFromBigInt(new(big.Int).Lsh(big.NewInt(1), 70), -5), "0." + zeros(125) + "1": decimal.New(1, -126),
	} {
		before := amount.Coefficient()
		assert.Equal(t, want, money.Format(amount))
		assert.Zero(t, before.Cmp(amount.Coefficient()), "the amount is not changed")
	}
	assert.Equal(t, "0", money.Format(decimal.New(0, 3)))
}

// nines is an amount of n digits, all of them 9.
func nines(n int) decimal.Decimal {
	value, _ := new(big.Int).SetString(strings.Repeat("9", n), 10)
	return decimal.NewFromBigInt(value, 0)
}

// A price has at most 8 decimal places; a float has more.
func TestCheckPrice(t *testing.T) {
	t.Parallel()
	const float = "has more than 8 decimal places, as a float has: round it, or make it from a text"
	tenth, fifth := 0.1, 0.2
	for _, tt := range []struct {
		price  decimal.Decimal
		reason string
	}{
		{decimal.New(1050, -2), ""},
		{decimal.New(1, -8), ""},
		{decimal.New(12345678901, -8), ""},
		{decimal.New(1050000000000000, -14), ""},
		{decimal.New(105, 3), ""},
		{decimal.New(1, -9), float},
		{decimal.New(100000001, -9), float},
		{decimal.NewFromFloat(tenth + fifth), float},
		{decimal.New(1, -31), "has more than 30 decimal places"},
		{decimal.Decimal{}, "is required and must be greater than zero"},
		{decimal.New(-1, -9), "must be greater than zero"},
	} {
		assert.Equal(t, tt.reason, money.CheckPrice(tt.price), tt.price.String())
	}
}

// Check and CheckSize bound the amounts that are sent, Representable those that Parse can return.
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
		name          string
		amount        decimal.Decimal
		sign, size    string // the reasons of Check; CheckSize has the second alone
		representable bool
	}{
		{"the zero value", decimal.Decimal{}, required, "", yes},
		{"zero with places", decimal.New(0, -2), required, "", yes},
		{"a zero with a huge exponent", decimal.New(0, math.MaxInt32), required, digits, no},
		{"a price", decimal.New(1050, -2), "", "", yes},
		{"a negative amount", decimal.New(-5, 0), negative, "", yes},
		{"a negative amount of 65 digits", nines(65).Neg(), negative, digits, yes},
		{"30 places", decimal.New(1, -30), "", "", yes},
		{"31 places", decimal.New(1, -31), "", places, yes},
		{"31 places that are zero", decimal.New(1, 0).Add(decimal.New(0, -31)), "", places, yes},
		{"an exponent, which may add any number of digits", decimal.New(1, 1), "", "", yes},
		{"64 digits by an exponent", decimal.New(1, 63), "", "", yes},
		{"65 digits by an exponent", decimal.New(1, 64), "", digits, yes},
		{"64 digits", nines(64), "", "", yes},
		{"65 digits", nines(65), "", digits, yes},
		{"64 digits, 30 of them places", nines(64).Shift(-30), "", "", yes},
		{"65 digits, 30 of them places", nines(65).Shift(-30), "", digits, yes},
		{"the largest int64", decimal.New(math.MaxInt64, -30), "", "", yes},
		{"the smallest int64", decimal.New(math.MinInt64, 0), negative, "", yes},
		{"2^63, which overflows an int64", power(63, 0), "", "", yes},
		{"2^64 + 5, whose low bits are 5", power(64, -5), "", "", yes},
		{"128 digits", nines(128), "", digits, yes},
		{"512 bits, in which 128 digits fit", power(512, 1), "", digits, yes},
		{"513 bits", power(513, 1), "", digits, no},
		{"the largest exponent that Parse returns", decimal.New(1, 192), "", digits, yes},
		{"an exponent beyond it", decimal.New(1, 193), "", digits, no},
		{"the smallest exponent that Parse returns", decimal.New(1, -192), "", places, yes},
		{"an exponent below it", decimal.New(1, -193), "", places, no},
		{"the largest exponent", decimal.New(1, math.MaxInt32), "", digits, no},
		{"the smallest exponent", decimal.New(1, math.MinInt32), "", places, no},
		{"100,000 digits and the largest exponent", decimal.NewFromBigInt(nines(100_000).Coefficient(), math.MaxInt32), "", digits, no},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := tt.amount.Coefficient()
			assert.Equal(t, cmp.Or(tt.sign, tt.size), money.Check(tt.amount))
			assert.Equal(t, tt.size, money.CheckSize(tt.amount))
			assert.Equal(t, tt.representable, money.Representable(tt.amount))
			assert.Zero(t, before.Cmp(tt.amount.Coefficient()), "the amount is not changed")
		})
	}
}

// Too many digits are refused before they are built, which could take gigabytes. What
// is counted is what the whole program allocates, so that this test is not parallel.
func TestCheck_hugeAmountsAllocateLittle(t *testing.T) {
	megabyte := decimal.NewFromBigInt(new(big.Int).Lsh(big.NewInt(1), 8<<20), 0) // it is copied
	for most, amount := range map[uint64]decimal.Decimal{
		64 << 10: decimal.New(1, math.MaxInt32), 65 << 10: decimal.New(1, math.MinInt32), 3 << 20: megabyte,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = money.Check(amount), money.Representable(amount)
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, most)
	}
	huge, price := []byte("1e1000000000"), decimal.New(1050, -2)
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = money.Parse(huge) }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = money.CheckSize(price) == "" && money.Representable(price) }))
}
