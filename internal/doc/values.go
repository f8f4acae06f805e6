package doc

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/money"
)

var (
	errInteger = errors.New("is not an integer in range")
	errTime    = errors.New("is not a time")
	errUnknown = errors.New("is not documented")
	errCase    = errors.New("is documented in upper case")
)

// readText reads a string, which may be empty.
func readText(_ *reading, n Node, into reflect.Value) *fault {
	if kind := n.Kind(); kind != '"' {
		return n.fault(notA{kind, KindName('"')})
	}
	text := n.Text()
	if strings.ContainsRune(text, unicode.ReplacementChar) {
		return n.fault(errCharacter)
	}
	into.SetString(text)
	return nil
}

// readNonEmpty reads a string that is not empty, but for one of a stored record that lacked it.
func readNonEmpty(from *reading, n Node, into reflect.Value) *fault {
	wrong := readText(from, n, into)
	if wrong == nil && into.Len() == 0 && !from.strict {
		wrong = n.fault(errEmpty)
	}
	return wrong
}

// readID reads an identifier: a string that is not empty and equals the requested one.
func readID(from *reading, n Node, into reflect.Value) *fault {
	if from.id != "" && n.Is(from.id) { // without a copy of it
		into.SetString(from.id)
		return nil
	}
	wrong := readNonEmpty(from, n, into)
	if wrong == nil && from.id != "" && !endpoint.SameID(into.String(), from.id) {
		wrong = n.fault(ErrMismatch)
	}
	return wrong
}

// An enumeration is a type of text whose known texts are in upper case, and known in any case.
type enumeration interface{ Known() bool }

// readEnum reads a string that is not empty. It notes an unknown value. A known value in another case is noted and
// returned in upper case.
func readEnum(from *reading, n Node, into reflect.Value) *fault {
	if wrong := readNonEmpty(from, n, into); wrong != nil {
		return wrong
	}
	text := into.String()
	switch upper := strings.ToUpper(text); {
	case !into.Addr().Interface().(enumeration).Known():
		n.fault(errUnknown).note(UnknownValue)
	case text != upper:
		into.SetString(upper)
		n.fault(errCase).note(UnexpectedValue)
	}
	return nil
}

// readAmount reads an amount as [money.Parse] does, from a string, or from a number, which is an
// [UnexpectedValue].
func readAmount(_ *reading, n Node, into reflect.Value) *fault {
	amount, err := n.Amount()
	if err != nil {
		return n.fault(err)
	}
	if n.Kind() != '"' {
		n.Note(UnexpectedValue)
	}
	*into.Addr().Interface().(*decimal.Decimal) = amount
	return nil
}

// readBool reads a boolean, or 0 or 1, also in a text, which is an [UnexpectedValue].
func readBool(_ *reading, n Node, into reflect.Value) *fault {
	kind, digit := n.Kind(), n.Scalar()
	switch isDigit := digit == "0" || digit == "1"; {
	case isDigit:
		n.Note(UnexpectedValue)
	case kind != 't' && kind != 'f':
		return n.fault(notA{kind, KindName('t')})
	}
	into.SetBool(kind == 't' || digit == "1")
	return nil
}

// readInt reads an integer in any spelling: 3, 3.0 and 3e0. One in a text is an [UnexpectedValue].
func readInt(_ *reading, n Node, into reflect.Value) *fault {
	switch kind, raw := n.Kind(), n.Raw(); {
	case kind == '0':
		if whole, err := strconv.Atoi(string(raw)); err == nil {
			into.SetInt(int64(whole))
			return nil
		}
		return readWhole(n, raw, into)
	case kind == '"' && len(raw) > len(`""`):
		wrong := readWhole(n, unquote(raw), into)
		if wrong == nil {
			n.Note(UnexpectedValue)
		}
		return wrong
	default:
		return n.fault(notA{kind, KindName('0')})
	}
}

// readWhole reads an amount that is an integer.
func readWhole(n Node, digits []byte, into reflect.Value) *fault {
	number, err := money.Parse(digits)
	if err != nil || !number.IsInteger() {
		return n.fault(errInteger)
	}
	whole, err := strconv.Atoi(number.BigInt().String())
	if err != nil {
		return n.fault(errInteger)
	}
	into.SetInt(int64(whole))
	return nil
}

// readTexts reads an array of strings.
func readTexts(from *reading, n Node, into reflect.Value) *fault {
	if kind := n.Kind(); kind != '[' {
		return n.fault(notA{kind, KindName('[')})
	}
	var texts []string
	for part := range n.Parts() {
		var text string
		if wrong := readText(from, part, reflect.ValueOf(&text).Elem()); wrong != nil {
			return wrong
		}
		texts = append(texts, text)
	}
	into.Set(reflect.ValueOf(texts))
	return nil
}

// readTime reads a timestamp in one of the usual spellings of the years 0 to 9999, which JSON can be written with,
// too. One without a zone is in UTC.
func readTime(_ *reading, n Node, into reflect.Value) *fault {
	if n.Kind() == '"' {
		text := string(unquote(n.Raw()))
		for _, layout := range [...]string{
			time.RFC3339,
			"2006-01-02T15:04:05",
			"2006-01-02T15:04:05Z0700",
			"2006-01-02 15:04:05",
			"2006-01-02 15:04:05Z07:00",
		} {
			at, err := time.Parse(layout, text)
			if at = at.UTC(); err == nil && at.Year() >= 0 && at.Year() <= 9999 {
				*into.Addr().Interface().(*time.Time) = at
				return nil
			}
		}
	}
	return n.fault(errTime)
}
