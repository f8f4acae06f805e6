package strictjson

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/money"
)

// scalar reads a value that must be of the given kind; nil if it is not.
func (d *Decoder) scalar(kind jsontext.Kind) jsontext.Value {
	value := d.Value()
	if d.err == nil && value.Kind() != kind {
		d.Fail(notA(kind, value.Kind()))
		return nil
	}
	return value
}

// Text reads a string, which may be empty.
func (d *Decoder) Text() string {
	value := d.scalar('"')
	if value == nil {
		return ""
	}
	return d.text(Unquote(value))
}

// NonEmpty reads a string that is not empty.
func (d *Decoder) NonEmpty() string {
	value := d.scalar('"')
	if value == nil {
		return ""
	}
	return d.nonEmpty(value)
}

// Repeated is NonEmpty for a string that recurs in the records of a list: equal
// strings share their memory.
func (d *Decoder) Repeated() string {
	value := d.scalar('"')
	switch {
	case value == nil:
		return ""
	case d.intern == nil:
		return d.nonEmpty(value)
	default:
		return interned(d, &d.intern.texts, value, (*Decoder).nonEmpty)
	}
}

// text returns a copy of b, without keys.
func (d *Decoder) text(b []byte) string {
	if d.texts == nil {
		return d.Redactor.Text(string(b))
	}
	return d.Redactor.Text(d.texts.text(b))
}

func (d *Decoder) nonEmpty(value []byte) string {
	text := d.text(Unquote(value))
	if text == "" {
		d.Fail(errEmpty)
	}
	return text
}

// ID reads an identifier: a string that is not empty and, where the Decoder has an
// ExpectID, equals it. Another one fails with [ErrMismatch].
func (d *Decoder) ID() string {
	value := d.scalar('"')
	switch {
	case value == nil:
		return ""
	case d.ExpectID == "":
		return d.nonEmpty(value)
	case string(Unquote(value)) == d.ExpectID:
		return d.ExpectID
	default:
		id := d.nonEmpty(value)
		d.Fail(ErrMismatch)
		return id
	}
}

// Enum returns a method that reads one of the known texts. Another one that is not
// empty is kept and noted as an [UnknownValue].
func Enum[S ~string](known ...S) func(*Decoder) S {
	return func(d *Decoder) S {
		value := d.scalar('"')
		if value == nil {
			return ""
		}
		for _, k := range known {
			if string(Unquote(value)) == string(k) {
				return k
			}
		}
		d.note(UnknownValue)
		return S(d.nonEmpty(value))
	}
}

// Amount reads an amount as [money.Parse] does, from a string, or from a number, which
// is an [UnexpectedValue].
func (d *Decoder) Amount() decimal.Decimal {
	value := d.Value()
	switch {
	case d.err != nil:
		return decimal.Decimal{}
	case d.intern == nil:
		return d.amount(value)
	default:
		return interned(d, &d.intern.amounts, value, (*Decoder).amount)
	}
}

func (d *Decoder) amount(value []byte) decimal.Decimal {
	amount, err := parseAmount(value)
	if err != nil {
		d.Fail(err)
	} else if value[0] != '"' {
		d.note(UnexpectedValue)
	}
	return amount
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

// Bool reads a boolean.
func (d *Decoder) Bool() bool {
	kind := d.Value().Kind()
	if kind != 't' && kind != 'f' {
		d.Fail(notA('t', kind))
	}
	return kind == 't'
}

// Int reads an integer in any spelling: 3, 3.0 and 3e0.
func (d *Decoder) Int() int {
	value := d.scalar('0')
	if value == nil {
		return 0
	}
	if n, err := strconv.Atoi(string(value)); err == nil {
		return n
	}
	number, err := money.Parse(value)
	if err != nil || !number.IsInteger() {
		d.Fail(errInteger)
		return 0
	}
	whole := number.BigInt()
	if !whole.IsInt64() || int64(int(whole.Int64())) != whole.Int64() {
		d.Fail(errInteger)
		return 0
	}
	return int(whole.Int64())
}

// Time reads a timestamp leniently: what cannot be read is the zero time and an
// [UnexpectedValue].
func (d *Decoder) Time() time.Time {
	value := d.Value()
	switch {
	case d.err != nil:
		return time.Time{}
	case value.Kind() != '"':
		d.note(UnexpectedValue)
		return time.Time{}
	case d.intern == nil:
		return d.time(value)
	default:
		return interned(d, &d.intern.times, value, (*Decoder).time)
	}
}

// time accepts the usual spellings of a timestamp; one without a zone is in UTC.
func (d *Decoder) time(value []byte) time.Time {
	text := string(Unquote(value))
	for _, layout := range [...]string{
		time.RFC3339,
		"2006-01-02T15:04:05",
		"2006-01-02T15:04:05Z0700",
		"2006-01-02 15:04:05",
		"2006-01-02 15:04:05Z07:00",
	} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC()
		}
	}
	d.note(UnexpectedValue)
	return time.Time{}
}
