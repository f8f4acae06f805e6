package gateway

import (
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

const (
	// Limits of an amount in an answer: of its text, and of an exponent in it.
	// They bound the work, far above any amount of money.
	maxAmountText     = 128
	maxAmountExponent = 64

	// Limits of an amount in a request.
	maxSentDigits = 64
	maxSentScale  = 30

	// maxFastDigits is how many digits an int64 surely holds.
	maxFastDigits = 18
)

var (
	errAmountSyntax = errors.New("is not a decimal number")
	errAmountSize   = errors.New("is not an amount of money: over 128 characters or an exponent beyond 64")
)

// parseAmount reads a decimal number in the grammar of JSON, exactly. It looks
// at the exponent before it builds anything, and at no switch of the decimal
// package.
func parseAmount(text []byte) (decimal.Decimal, error) {
	if len(text) > maxAmountText {
		return decimal.Decimal{}, errAmountSize
	}
	mantissa, exponent, err := splitExponent(text)
	if err != nil {
		return decimal.Decimal{}, err
	}
	whole, fraction, ok := splitPoint(mantissa)
	if !ok {
		return decimal.Decimal{}, errAmountSyntax
	}
	var buffer [maxAmountText]byte
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
		if !allDigits(digits) {
			return nil, 0, errAmountSyntax
		}
		for _, digit := range digits {
			if exponent = exponent*10 + int(digit-'0'); exponent > maxAmountExponent {
				return nil, 0, errAmountSize
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
			if !allDigits(fraction) {
				return nil, nil, false
			}
			break
		}
	}
	unsigned := whole
	if len(unsigned) > 0 && unsigned[0] == '-' {
		unsigned = unsigned[1:]
	}
	ok = allDigits(unsigned) && (len(unsigned) == 1 || unsigned[0] != '0')
	return whole, fraction, ok
}

func allDigits(text []byte) bool {
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
		return decimal.New(smallInt(digits), int32(exponent)) // #nosec G115 -- from -192 to 64: see parseAmount
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

// checkAmount says what is wrong with an amount to be sent, or "".
func checkAmount(amount decimal.Decimal) string {
	switch {
	case amount.Sign() == 0:
		return "is required and must be greater than zero"
	case amount.Sign() < 0:
		return "must be greater than zero"
	default:
		return checkSize(amount)
	}
}

// checkSize says what is wrong with the size of an amount, or "". It judges by
// the exponent and the coefficient, without building the digits.
func checkSize(amount decimal.Decimal) string {
	scale := -int64(amount.Exponent())
	if scale > maxSentScale {
		return "has more than 30 decimal places"
	}
	if digits := coefficientDigits(amount); digits > maxSentDigits || digits-min(scale, 0) > maxSentDigits {
		return "has more than 64 digits"
	}
	return ""
}

// readable reports whether an amount is of a size that parseAmount gives. One
// that is made by hand can be of any.
func readable(amount decimal.Decimal) bool {
	const most = maxAmountText + maxAmountExponent
	exponent := amount.Exponent()
	return -most <= exponent && exponent <= most && amount.Coefficient().BitLen() <= 4*maxAmountText
}

// coefficientDigits counts the digits of the coefficient, or returns a number
// over the limit where counting would take long.
func coefficientDigits(amount decimal.Decimal) int64 {
	const maxBits = maxSentDigits * 4
	coefficient := amount.Coefficient()
	if coefficient.BitLen() > maxBits {
		return maxSentDigits + 1
	}
	return int64(len(coefficient.Abs(coefficient).String()))
}

// plainText writes an amount that checkSize accepts from its own digits: no
// exponent, no rounding, zeros at the end kept.
func plainText(amount decimal.Decimal) string {
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

// coefficientText writes the coefficient of an amount that checkSize accepts.
func coefficientText(amount decimal.Decimal) string {
	if amount.NumDigits() <= maxFastDigits {
		return strconv.FormatInt(amount.CoefficientInt64(), 10)
	}
	return amount.Coefficient().String()
}
