package money_test

import (
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/money"
)

// jsonNumber is the grammar of an amount, written a second time.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE]([+-]?[0-9]+))?$`)

// An amount is a number of JSON within bounds, and has the value that the decimal
// package reads from it; all else is refused. It is written so that it is read again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "0", "-0", "1", "10.50", "-10.50", "0.000000000000000001", "1e-7", "1E+7", "1e64", "1e65", "1e-65", "1e1000000000", "1e00001",
		"999999999999999999", "9999999999999999999", "-9223372036854775809", "01", ".5", "5.", "+1", "-", "1e", "1e+", "1.e1", "NaN", "Infinity",
		" 1", "1 ", "1,5", "0x1", "१", "1_0", "1\x00", strings.Repeat("9", 128), strings.Repeat("9", 129), "0." + strings.Repeat("0", 126),
		"1." + strings.Repeat("2", 123) + "e-5", "-0." + strings.Repeat("0", 100) + "1e-64", strings.Repeat("9", 125) + "e64", "1" + strings.Repeat("0", 62) + "." + strings.Repeat("3", 59) + "e-64",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := money.Parse([]byte(text))
		if accepted := isAmount(text); accepted != (err == nil) {
			t.Fatalf("%q: accepted %v, error %v", text, accepted, err)
		}
		if err != nil {
			return
		}
		want, err := decimal.NewFromString(text)
		if err != nil {
			t.Fatalf("%q: accepted, and not by the decimal package: %v", text, err)
		}
		if got.Exponent() != want.Exponent() || got.Coefficient().Cmp(want.Coefficient()) != 0 {
			t.Fatalf("%q: %v·10^%d, not %v·10^%d", text, got.Coefficient(), got.Exponent(), want.Coefficient(), want.Exponent())
		}
		if !money.Representable(got) {
			t.Fatalf("%q: read, and not representable", text)
		}
		written, err := money.Text(got)
		if err != nil {
			t.Fatalf("%q: read, and not written: %v", text, err)
		}
		again, err := money.Parse([]byte(written))
		if err != nil || again.Exponent() != got.Exponent() || !again.Equal(got) {
			t.Fatalf("%q: written as %q, and read as %v, %v", text, written, again, err)
		}
	})
}

func isAmount(text string) bool {
	parts := jsonNumber.FindStringSubmatch(text)
	if parts == nil || len(text) > 128 {
		return false
	}
	if parts[4] == "" {
		return true
	}
	exponent, ok := new(big.Int).SetString(parts[4], 10)
	return ok && exponent.CmpAbs(big.NewInt(64)) <= 0
}

// What may be sent is written in plain digits, and reads back as it was.
func FuzzFormat(f *testing.F) {
	for _, seed := range []struct {
		coefficient string
		exponent    int32
	}{
		{"1", 5},
		{"1050", -2},
		{"1", -30},
		{"1", -31},
		{"1", 63},
		{"1", 64},
		{"0", 0},
		{"-5", 0},
		{"1", 1 << 30},
		{"1", -1 << 31},
		{strings.Repeat("9", 64), 0},
		{strings.Repeat("9", 64), -30},
		{strings.Repeat("9", 65), -1},
		{"18446744073709551616", -18},
	} {
		f.Add(seed.coefficient, seed.exponent)
	}
	f.Fuzz(checkFormat)
}

func checkFormat(t *testing.T, digits string, exponent int32) {
	t.Helper()
	coefficient, ok := new(big.Int).SetString(digits[:min(len(digits), 200)], 10)
	if !ok {
		return
	}
	amount := decimal.NewFromBigInt(coefficient, exponent)
	if money.IsSmall(amount) && (money.CheckSize(amount) != "" || !money.Representable(amount)) {
		t.Fatalf("%v·10^%d is small, and beyond a limit", coefficient, exponent)
	}
	if money.Check(amount) != "" {
		return
	}
	text := money.Format(amount)
	if !jsonNumber.MatchString(text) || strings.ContainsAny(text, "eE-") || len(text) > money.MaxDigits+2 {
		t.Fatalf("%v·10^%d is written as %q", coefficient, exponent, text)
	}
	back, err := money.Parse([]byte(text))
	if err != nil || !back.Equal(amount) || back.Exponent() != min(exponent, 0) {
		t.Fatalf("%v·10^%d is written as %q, read as %v, %v", coefficient, exponent, text, back, err)
	}
}
