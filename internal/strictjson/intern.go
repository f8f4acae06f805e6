package strictjson

import (
	"bytes"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// maxInterned bounds each generation of an intern table, in values.
const maxInterned = 256

// An internTable maps JSON to the value that was read from it, in two generations. When
// the recent one is full it replaces the older one. A value that is found in the older one
// is added to the recent one: so what recurs stays, however many values come once. The
// zero table is empty.
type internTable[T any] struct{ recent, older generation[T] }

type generation[T any] struct {
	values map[string]T
	keys   arena
}

func (t *internTable[T]) find(json []byte) (value T, found bool) {
	if value, found = t.recent.values[string(json)]; found {
		return value, true
	}
	if value, found = t.older.values[string(json)]; found {
		t.add(json, value)
	}
	return value, found
}

func (t *internTable[T]) add(json []byte, value T) {
	if len(t.recent.values) == maxInterned {
		t.recent, t.older = generation[T]{values: t.older.values}, t.recent // its map is reused
		clear(t.recent.values)
	}
	if t.recent.values == nil {
		t.recent.values = map[string]T{}
	}
	t.recent.values[t.recent.keys.text(json)] = value
}

// internTables hold what was read of one list by the JSON that it was read from:
// in a listing each coin comes with every network, and a few amounts and times
// recur. A repeated value is neither decoded nor stored a second time.
type internTables struct {
	amounts internTable[decimal.Decimal]
	times   internTable[time.Time]
	texts   internTable[string]
	results arena // texts of records
	nested  []any // by the index of a [Nested] field: an *internTable[R] of its records

	inner Decoder // reads nested records
	value bytes.Buffer
}

func newInternTables(fields int) *internTables {
	return &internTables{nested: make([]any, fields)}
}

// interned returns what equal JSON was read as before, or reads it.
func interned[T any](d *Decoder, table *internTable[T], json []byte, read func(*Decoder, []byte) T) T {
	value, found := table.find(json)
	if found {
		return value
	}
	if value = read(d, json); d.err == nil {
		table.add(json, value)
	}
	return value
}

// nestedTable returns the table of one field, whose records are R.
func nestedTable[R any](t *internTables, field int) *internTable[R] {
	table, ok := t.nested[field].(*internTable[R])
	if !ok {
		table = &internTable[R]{}
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
	inner.state = state{Options: Options{Redactor: d.Redactor, Notes: d.Notes}, outer: d, texts: d.texts}
	return inner
}
