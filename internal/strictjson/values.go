package strictjson

import (
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/money"
	"github.com/cryptogw/gateway/internal/validate"
)

// is reports whether a value is of a kind. It fails where it is not.
func (d *Decoder) is(kind jsontext.Kind, value jsontext.Value) bool {
	if value.Kind() != kind {
		d.Fail(notA(kind, value.Kind()))
	}
	return d.err == nil
}

// text returns the text of a string, without keys.
func (d *Decoder) text(value jsontext.Value) string {
	if !d.is('"', value) {
		return ""
	}
	return d.Redactor.Text(string(Unquote(value)))
}

func (d *Decoder) nonEmpty(value jsontext.Value) string {
	text := d.text(value)
	if text == "" {
		d.Fail(errEmpty)
	}
	return text
}

// readText reads a string, which may be empty.
func readText(d *Decoder, value jsontext.Value, into reflect.Value) { into.SetString(d.text(value)) }

// readNonEmpty reads a string that is not empty.
func readNonEmpty(d *Decoder, value jsontext.Value, into reflect.Value) {
	into.SetString(d.nonEmpty(value))
}

// readID reads an identifier: a string that is not empty and, where the Decoder has an
// ExpectID, is the same. Another one fails with [ErrMismatch].
func readID(d *Decoder, value jsontext.Value, into reflect.Value) {
	if d.ExpectID != "" && value.Kind() == '"' && string(Unquote(value)) == d.ExpectID {
		into.SetString(d.ExpectID)
		return
	}
	into.SetString(d.nonEmpty(value))
	if d.ExpectID != "" && !validate.SameID(into.String(), d.ExpectID) {
		d.Fail(ErrMismatch)
	}
}

// An enumeration is a type of text.
type enumeration interface{ Known() bool }

// readEnum reads a string that is not empty, and notes one that is not known.
func readEnum(d *Decoder, value jsontext.Value, into reflect.Value) {
	readNonEmpty(d, value, into)
	if d.err == nil && !into.Addr().Interface().(enumeration).Known() && !slices.Contains(d.Known, into.String()) {
		d.Note(UnknownValue)
	}
}

// readAmount reads an amount as [money.Parse] does, from a string, or from a number, which
// is an [UnexpectedValue].
func readAmount(d *Decoder, value jsontext.Value, into reflect.Value) {
	amount, err := parseAmount(value)
	if err != nil {
		d.Fail(err)
		return
	}
	if value.Kind() != '"' {
		d.Note(UnexpectedValue)
	}
	*into.Addr().Interface().(*decimal.Decimal) = amount
}

// readNullAmount reads an amount, or null.
func readNullAmount(d *Decoder, value jsontext.Value, into reflect.Value) {
	if value.Kind() != 'n' {
		amount := into.Addr().Interface().(*decimal.NullDecimal)
		readAmount(d, value, reflect.ValueOf(&amount.Decimal).Elem())
		amount.Valid = true
	}
}

func parseAmount(value jsontext.Value) (decimal.Decimal, error) {
	switch kind := value.Kind(); kind {
	case '"':
		if len(value) == len(`""`) {
			return decimal.Decimal{}, errEmpty
		}
		return money.Parse(Unquote(value))
	case '0':
		return money.Parse(value)
	default:
		return decimal.Decimal{}, notAmount(kind)
	}
}

// A notAmount is the error of a value of a kind that is no amount. A result can have many,
// so that it is no text.
type notAmount jsontext.Kind

func (k notAmount) Error() string {
	return "is " + KindName(jsontext.Kind(k)) + ", not an amount"
}

// readBool reads a boolean.
func readBool(d *Decoder, value jsontext.Value, into reflect.Value) {
	kind := value.Kind()
	if kind != 't' && kind != 'f' {
		d.Fail(notA('t', kind))
	}
	into.SetBool(kind == 't')
}

// readInt reads an integer in any spelling: 3, 3.0 and 3e0.
func readInt(d *Decoder, value jsontext.Value, into reflect.Value) {
	if !d.is('0', value) {
		return
	}
	if n, err := strconv.Atoi(string(value)); err == nil {
		into.SetInt(int64(n))
		return
	}
	number, err := money.Parse(value)
	if err != nil || !number.IsInteger() {
		d.Fail(errInteger)
		return
	}
	whole := number.BigInt()
	if !whole.IsInt64() || into.OverflowInt(whole.Int64()) {
		d.Fail(errInteger)
		return
	}
	into.SetInt(whole.Int64())
}

// readTime reads a timestamp leniently: what cannot be read is the zero time and an
// [UnexpectedValue]. It accepts the usual spellings of the years 0 to 9999, which JSON is
// written with, too; one without a zone is in UTC.
func readTime(d *Decoder, value jsontext.Value, into reflect.Value) {
	if value.Kind() == '"' {
		text := string(Unquote(value))
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
				return
			}
		}
	}
	d.noteUnread(value, errTime)
}

// readRaw reads any value, without keys. Null is none.
func readRaw(d *Decoder, value jsontext.Value, into reflect.Value) {
	if value.Kind() != 'n' {
		into.SetBytes(d.Redactor.JSON(value)) // a copy
	}
}
