// Package money reads and writes amounts of money, exactly.
//
// [Parse] reads the digits of a JSON string or number, [Format] writes the
// amount's own digits, and [Text] what Parse reads again; none uses a float or a setting
// of the decimal package.
// Every function bounds its work before it builds any digits, so that a short
// text with a huge exponent costs nothing.
package money

import (
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

const (
	// MaxDigits is how many digits an amount to be sent may have in all.
	MaxDigits = 64
	// MaxScale is how many of them may be decimal places.
	MaxScale = 30

	// Limits of an amount that is read: its characters, and its exponent. Both
	// are far above any amount of money.
	maxText     = 128
	maxExponent = 64

	// maxFastDigits is how many digits always fit into an int64.
	maxFastDigits = 18
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
	whole, fraction, ok := splitPoint(mantissa)
	if !ok {
		return decimal.Decimal{}, ErrSyntax
	}
	var buffer [maxText]byte
	digits := append(append(buffer[:0], whole...), fraction...)
	return newDecimal(digits, exponent-len(fraction)), nil
}

// splitExponent cuts "1.5e-7" into "1.5" and -7.
func splitExponent(text []byte) (mantissa []byte, exponent int, err error) {
	for i, char := range text {
		if char != 'e' && char != 'E' {
			continue
		}
		sign, digits := 1, text[i+1:]
		if len(digits) > 0 && (digits[0] == '+' || digits[0] == '-') {
			if digits[0] == '-' {
				sign = -1
			}
			digits = digits[1:]
		}
		if !isDigits(digits) {
			return nil, 0, ErrSyntax
		}
		for _, digit := range digits {
			if exponent = exponent*10 + int(digit-'0'); exponent > maxExponent {
				return nil, 0, ErrSize
			}
		}
		return text[:i], sign * exponent, nil
	}
	return text, 0, nil
}

// splitPoint cuts "-1.50" into "-1" and "50". The part before the point has no
// leading zero; where there is a point there is a digit after it.
func splitPoint(text []byte) (whole, fraction []byte, ok bool) {
	whole = text
	for i, char := range text {
		if char == '.' {
			whole, fraction = text[:i], text[i+1:]
			if !isDigits(fraction) {
				return nil, nil, false
			}
			break
		}
	}
	unsigned := whole
	if len(unsigned) > 0 && unsigned[0] == '-' {
		unsigned = unsigned[1:]
	}
	ok = isDigits(unsigned) && (len(unsigned) == 1 || unsigned[0] != '0')
	return whole, fraction, ok
}

func isDigits(text []byte) bool {
	for _, char := range text {
		if char < '0' || char > '9' {
			return false
		}
	}
	return len(text) > 0
}

// newDecimal returns digits·10^exponent. Digits may start with a minus.
func newDecimal(digits []byte, exponent int) decimal.Decimal {
	if len(digits) <= maxFastDigits {
		return decimal.New(smallInt(digits), int32(exponent)) // #nosec G115 -- from -192 to 64: see Parse
	}
	value, _ := new(big.Int).SetString(string(digits), 10) // digits only: it parses
	return decimal.NewFromBigInt(value, int32(exponent))   // #nosec G115 -- as above
}

// smallInt reads so few digits that they fit. They may start with a minus.
func smallInt(digits []byte) int64 {
	var value int64
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	for _, digit := range digits {
		value = value*10 + int64(digit-'0')
	}
	if negative {
		return -value
	}
	return value
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

// CheckSize returns the reason why an amount has too many digits to be sent, or
// "": at most [MaxDigits], at most [MaxScale] of them decimal places.
func CheckSize(amount decimal.Decimal) string {
	if IsSmall(amount) {
		return ""
	}
	scale := -int64(amount.Exponent())
	if scale > MaxScale {
		return "has more than 30 decimal places"
	}
	if digits := coefficientDigits(amount); digits > MaxDigits || digits-min(scale, 0) > MaxDigits {
		return "has more than 64 digits"
	}
	return ""
}

// Representable reports whether an amount has a size that [Parse] returns.
// Arithmetic on any other may not end.
func Representable(amount decimal.Decimal) bool {
	const most = maxText + maxExponent
	exponent := amount.Exponent()
	return -most <= exponent && exponent <= most && amount.Coefficient().BitLen() <= 4*maxText
}

// IsSmall reports whether an amount is at once seen to be within [MaxDigits],
// [MaxScale] and [Representable], as nearly all are. It does not allocate.
func IsSmall(amount decimal.Decimal) bool {
	exponent := amount.Exponent()
	return -MaxScale <= exponent && exponent <= 0 &&
		amount.Equal(decimal.New(amount.CoefficientInt64(), exponent)) // false where the coefficient overflows int64
}

// coefficientDigits counts the digits of the coefficient, or returns a number
// over the limit where counting would take long.
func coefficientDigits(amount decimal.Decimal) int64 {
	const maxBits = MaxDigits * 4
	coefficient := amount.Coefficient()
	if coefficient.BitLen() > maxBits {
		return MaxDigits + 1
	}
	return int64(len(coefficient.Abs(coefficient).String()))
}

// Format writes a [Representable] amount from its own digits: no exponent, no
// rounding, trailing zeros kept.
func Format(amount decimal.Decimal) string {
	digits := coefficientText(amount)
	digits, negative := strings.CutPrefix(digits, "-")
	sign := ""
	if negative {
		sign = "-"
	}
	scale := -int(amount.Exponent())
	if scale <= 0 {
		if digits == "0" {
			return digits
		}
		return sign + digits + strings.Repeat("0", -scale)
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - scale
	return sign + digits[:point] + "." + digits[point:]
}

// Text writes an amount as [Parse] reads it, digit by digit: without an exponent, unless the
// amount has one above zero or would be longer than Parse reads. The error is [ErrSize].
func Text(amount decimal.Decimal) (string, error) {
	if !Representable(amount) {
		return "", ErrSize
	}
	exponent := int(amount.Exponent())
	text := ""
	if exponent > 0 {
		text = coefficientText(amount) + "e" + strconv.Itoa(exponent)
	} else if text = Format(amount); len(text) > maxText {
		shift := min(maxExponent, 1-exponent-amount.NumDigits())               // one digit before the point
		text = Format(amount.Shift(int32(shift))) + "e" + strconv.Itoa(-shift) // #nosec G115 -- from -512 to 64
	}
	_, err := Parse([]byte(text))
	return text, err
}

func coefficientText(amount decimal.Decimal) string {
	if amount.NumDigits() <= maxFastDigits {
		return strconv.FormatInt(amount.CoefficientInt64(), 10)
	}
	return amount.Coefficient().String()
}
