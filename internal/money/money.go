// Package money reads and writes amounts of money, exactly.
//
// [Parse] reads the digits of a JSON string or number, and [Format] writes the amount's own digits;
// neither uses a float or a setting of the decimal package.
// Every function bounds its work before it builds any digits, so that a short
// text with a huge exponent costs nothing.
package money

import (
	"bytes"
	"errors"
	"math/big"
	"strconv"

	"github.com/shopspring/decimal"
)

const (
	// MaxDigits is how many digits an amount to be sent may have in all.
	MaxDigits = 64
	// MaxScale is how many of them may be decimal places.
	MaxScale = 30
	// PriceScale is how many decimal places a price may have.
	PriceScale = 8

	// Limits of an amount that is read: its characters, and its exponent. Both
	// are far above any amount of money.
	maxText     = 128
	maxExponent = 64
)

// Errors of [Parse]. Their texts follow the name of a field.
var (
	ErrSyntax = errors.New("is not a decimal number")
	ErrSize   = errors.New("is not an amount of money: over 128 characters or an exponent beyond 64")
)

// Parse reads a decimal number in the grammar of JSON, exactly: at most 128
// characters with an exponent from -64 to 64. It returns [ErrSyntax] or [ErrSize].
func Parse(text []byte) (decimal.Decimal, error) {
	if len(text) > maxText {
		return decimal.Decimal{}, ErrSize
	}
	mantissa, exponent, err := splitExponent(text)
	if err != nil {
		return decimal.Decimal{}, err
	}
	whole, fraction, hasPoint := bytes.Cut(mantissa, []byte("."))
	unsigned := bytes.TrimPrefix(whole, []byte("-"))
	if !isDigits(unsigned) || len(unsigned) > 1 && unsigned[0] == '0' || hasPoint && !isDigits(fraction) {
		return decimal.Decimal{}, ErrSyntax
	}
	var buffer [maxText]byte
	digits := append(append(buffer[:0], whole...), fraction...)
	exponent -= int32(len(fraction)) // #nosec G115 -- at most maxText
	if value, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
		return decimal.New(value, exponent), nil
	}
	value, _ := new(big.Int).SetString(string(digits), 10) // digits only: it parses
	return decimal.NewFromBigInt(value, exponent), nil
}

// splitExponent cuts "1.5e-7" into "1.5" and -7.
func splitExponent(text []byte) (mantissa []byte, exponent int32, err error) {
	for i, char := range text {
		if char != 'e' && char != 'E' {
			continue
		}
		exponent, err := strconv.ParseInt(string(text[i+1:]), 10, 64)
		switch {
		case errors.Is(err, strconv.ErrSyntax):
			return nil, 0, ErrSyntax
		case err != nil || exponent < -maxExponent || exponent > maxExponent:
			return nil, 0, ErrSize
		}
		return text[:i], int32(exponent), nil
	}
	return text, 0, nil
}

func isDigits(text []byte) bool {
	for _, char := range text {
		if char < '0' || char > '9' {
			return false
		}
	}
	return len(text) > 0
}

// Check returns the reason why an amount cannot be sent, or "": it must be
// above zero and pass [CheckSize].
func Check(amount decimal.Decimal) string {
	switch {
	case amount.Sign() == 0:
		return "is required and must be greater than zero"
	case amount.Sign() < 0:
		return "must be greater than zero"
	default:
		return CheckSize(amount)
	}
}

// CheckPrice returns the reason why a price cannot be sent, or "": it must pass [Check], and have at most [PriceScale]
// decimal places, without zeros at the end.
func CheckPrice(price decimal.Decimal) string {
	reason := Check(price)
	if reason == "" && price.Exponent() < -PriceScale && !price.Truncate(PriceScale).Equal(price) {
		return "has more than 8 decimal places, as a float has: round it, or make it from a text"
	}
	return reason
}

// CheckSize returns the reason why an amount has too many digits to be sent, or
// "": at most [MaxDigits], at most [MaxScale] of them decimal places.
func CheckSize(amount decimal.Decimal) string {
	const maxBits = 4 * MaxDigits // the digits of more would take long to count
	scale := -int64(amount.Exponent())
	switch {
	case isSmall(amount):
		return ""
	case scale > MaxScale:
		return "has more than 30 decimal places"
	case amount.Coefficient().BitLen() > maxBits, int64(amount.NumDigits())-min(scale, 0) > MaxDigits:
		return "has more than 64 digits"
	default:
		return ""
	}
}

// Representable reports whether an amount has a size that [Parse] returns.
// Arithmetic on any other may not end.
func Representable(amount decimal.Decimal) bool {
	const most = maxText + maxExponent
	exponent := amount.Exponent()
	return isSmall(amount) || -most <= exponent && exponent <= most && amount.Coefficient().BitLen() <= 4*maxText
}

// isSmall reports whether an amount is at once seen to be within all limits, as nearly all are. It does
// not allocate.
func isSmall(amount decimal.Decimal) bool {
	exponent := amount.Exponent()
	return -MaxScale <= exponent && exponent <= 0 &&
		amount.Equal(decimal.New(amount.CoefficientInt64(), exponent)) // false where the coefficient overflows int64
}

// Format writes a [Representable] amount from its own digits: no exponent, no
// rounding, trailing zeros kept.
func Format(amount decimal.Decimal) string { return amount.StringFixed(-amount.Exponent()) }
