package strictjson

import (
	"bytes"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// maxInterned bounds an intern table, which is emptied when it is full.
const maxInterned = 256

// internTables hold what was read of one list by the JSON that it was read from:
// in a listing each coin comes with every network, and a few amounts and times
// recur. A repeated value is neither decoded nor stored a second time.
type internTables struct {
	amounts map[string]decimal.Decimal
	times   map[string]time.Time
	texts   map[string]string
	nested  []any // by the index of a [Nested] field: a map[string]R of its records

	inner Decoder // reads nested records
	value bytes.Buffer
}

func newInternTables(fields int) *internTables {
	return &internTables{
		amounts: map[string]decimal.Decimal{},
		times:   map[string]time.Time{},
		texts:   map[string]string{},
		nested:  make([]any, fields),
	}
}

// interned returns what equal JSON was read as before, or reads it.
func interned[T any](d *Decoder, table map[string]T, json []byte, read func(*Decoder, []byte) T) T {
	if value, ok := table[string(json)]; ok {
		return value
	}
	value := read(d, json)
	if d.err != nil {
		return value
	}
	if len(table) == maxInterned {
		clear(table)
	}
	table[string(json)] = value
	return value
}

// nestedTable returns the table of one field, whose records are R.
func nestedTable[R any](t *internTables, field int) map[string]R {
	table, ok := t.nested[field].(map[string]R)
	if !ok {
		table = map[string]R{}
		t.nested[field] = table
	}
	return table
}

// nested returns a decoder for the value that was read last, with the same errors
// and notes in the same places.
func (d *Decoder) nested(value jsontext.Value) *Decoder {
	inner := &d.intern.inner
	d.intern.value = *bytes.NewBuffer(value) // read without a copy
	inner.json.Reset(&d.intern.value)
	inner.state = state{Options: Options{Redactor: d.Redactor, Notes: d.Notes}, outer: d}
	return inner
}
