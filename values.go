package gateway

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// scalar reads a value that must be of the given kind.
func (d *decoder) scalar(kind jsontext.Kind) jsontext.Value {
	value := d.value()
	if d.err == nil && value.Kind() != kind {
		d.fail(notA(kind, value.Kind()))
		return nil
	}
	return value
}

func (d *decoder) text() string {
	value := d.scalar('"')
	if value == nil {
		return ""
	}
	return d.keys.text(string(unquote(value)))
}

func (d *decoder) nonEmpty() string {
	value := d.scalar('"')
	if value == nil {
		return ""
	}
	return d.nonEmptyIn(value)
}

// reference is a text that stands in many records of a list.
func (d *decoder) reference() string {
	value := d.scalar('"')
	if value == nil {
		return ""
	}
	return recall(d, value, keptTexts, (*decoder).nonEmptyIn)
}

func (d *decoder) nonEmptyIn(value []byte) string {
	text := d.keys.text(string(unquote(value)))
	if text == "" {
		d.fail(errEmpty)
	}
	return text
}

func (d *decoder) identifier() string {
	value := d.scalar('"')
	switch {
	case value == nil:
		return ""
	case d.want == "":
		return d.nonEmptyIn(value)
	case string(unquote(value)) == d.want:
		return d.want
	default:
		id := d.nonEmptyIn(value)
		d.fail(ErrResponseMismatch)
		return id
	}
}

func (d *decoder) amount() decimal.Decimal {
	value := d.value()
	if d.err != nil {
		return decimal.Decimal{}
	}
	return recall(d, value, keptAmounts, (*decoder).amountIn)
}

func (d *decoder) amountIn(value []byte) decimal.Decimal {
	amount, err := amountOf(jsontext.Value(value).Kind(), value)
	if err != nil {
		d.fail(err)
	}
	return amount
}

// amountOf reads an amount from a JSON string or number.
func amountOf(kind jsontext.Kind, value jsontext.Value) (decimal.Decimal, error) {
	switch kind {
	case '"':
		if len(value) == len(`""`) {
			return decimal.Decimal{}, errEmpty
		}
		return parseAmount(unquote(value))
	case '0':
		return parseAmount(value)
	default:
		return decimal.Decimal{}, fmt.Errorf("is %s, not an amount", kindName(kind))
	}
}

func (d *decoder) flag() bool {
	kind := d.value().Kind()
	if kind != 't' && kind != 'f' {
		d.fail(notA('t', kind))
	}
	return kind == 't'
}

// integer accepts any spelling of an integral value: 3, 3.0 and 3e0.
func (d *decoder) integer() int {
	value := d.scalar('0')
	if value == nil {
		return 0
	}
	if n, err := strconv.Atoi(string(value)); err == nil {
		return n
	}
	number, err := parseAmount(value)
	if err != nil || !number.IsInteger() {
		d.fail(errInteger)
		return 0
	}
	whole := number.BigInt()
	if !whole.IsInt64() || int64(int(whole.Int64())) != whole.Int64() {
		d.fail(errInteger)
		return 0
	}
	return int(whole.Int64())
}

func (d *decoder) time() time.Time {
	value := d.value()
	if d.err != nil || value.Kind() != '"' {
		return time.Time{}
	}
	return recall(d, value, keptTimes, (*decoder).timeIn)
}

func (d *decoder) timeIn(value []byte) time.Time {
	return parseTime(string(unquote(value)))
}

// parseTime reads the usual spellings of a timestamp; one without a zone is
// in UTC. What it can not read is the zero time.
func parseTime(text string) time.Time {
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
	return time.Time{}
}
