package gateway

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// fields is a table of the members of a record: how each is named in the
// answer and where its value goes. The tables are kept under the structs that
// they fill.
type fields[T any] []field[T]

type field[T any] struct {
	name     string
	optional bool
	read     func(d *decoder, into *T)
}

// required is a member that must be there, read by one of the decoder's methods.
func required[T, V any](name string, read func(*decoder) V, at func(*T) *V) field[T] {
	return field[T]{name: name, read: func(d *decoder, into *T) { *at(into) = read(d) }}
}

// timeField is lenient: a time that is missing or unreadable is the zero time.
func timeField[T any](name string, at func(*T) *time.Time) field[T] {
	return field[T]{name: name, optional: true, read: func(d *decoder, into *T) { *at(into) = d.time() }}
}

// recordField is a record within a record. In a list it is kept, for it comes
// again.
func recordField[T, R any](name string, inner fields[R], at func(*T) *R, kept func(*memory) memo[R]) field[T] {
	return field[T]{name: name, read: func(d *decoder, into *T) {
		if d.memory == nil || d.peek() != '{' {
			inner.fill(d, at(into))
		} else if value := d.value(); d.err == nil {
			*at(into) = recall(d, value, kept, inner.fillFrom)
		}
	}}
}

// fillFrom makes a record of the value that was read last.
func (fs fields[T]) fillFrom(d *decoder, value []byte) (record T) {
	inner := d.inside(value)
	fs.fill(inner, &record)
	d.err = inner.err
	return record
}

// matching is a member whose identifier the interface says to equal another's.
// Whichever is read later is compared.
func matching[T any](f field[T], ids func(*T) (string, string)) field[T] {
	read := f.read
	f.read = func(d *decoder, into *T) {
		read(d, into)
		if a, b := ids(into); a != "" && b != "" && a != b {
			d.note(DriftMismatch)
		}
	}
	return f
}

// fill reads one object into a record. A member that is not in the table is
// passed over; one of the table that is not there is an error.
func (fs fields[T]) fill(d *decoder, into *T) {
	if !d.begin('{') {
		return
	}
	var seen uint64
	for next := 0; d.more(); {
		i := fs.index(d.name(), next)
		if i < 0 {
			d.pass()
			continue
		}
		fs[i].read(d, into)
		seen |= 1 << i
		next = i + 1
	}
	if !d.end() {
		return
	}
	for i := range fs {
		if seen&(1<<i) == 0 && !fs[i].optional {
			d.failAt(fs[i].name, errMissing)
			return
		}
	}
}

// index finds a name in the table. The service tends to send members in one
// order, so the one after the last is tried first.
func (fs fields[T]) index(name []byte, next int) int {
	if next < len(fs) && fs[next].name == string(name) {
		return next
	}
	for i := range fs {
		if fs[i].name == string(name) {
			return i
		}
	}
	return -1
}

// A reader reads the result of an answer.
type reader[T any] func(d *decoder) T

// one reads a record, or an array that holds exactly one.
func one[T any](fs fields[T]) reader[*T] {
	return func(d *decoder) *T {
		record := new(T)
		if d.peek() != '[' {
			fs.fill(d, record)
			return record
		}
		d.begin('[')
		if !d.more() {
			d.refused = d.end()
			return nil
		}
		fs.fill(d, record)
		if d.more() {
			d.fail(errors.New("is one of several records where one is expected"))
		}
		d.end()
		return record
	}
}

// many reads an array of records.
func many[T any](fs fields[T]) reader[[]T] {
	return func(d *decoder) []T {
		records := []T{}
		if !d.begin('[') {
			return nil
		}
		start := d.json.InputOffset()
		for d.more() {
			if len(records) == 1 {
				d.memory = newMemory()
			}
			if len(records) == cap(records) {
				records = slices.Grow(records, d.expected(len(records), start))
			}
			records = append(records, *new(T))
			fs.fill(d, &records[len(records)-1])
		}
		d.memory = nil
		d.empty = d.end() && len(records) == 0
		return records
	}
}

// oneOrMany reads an array of records, or one record as an array of one.
func oneOrMany[T any](fs fields[T]) reader[[]T] {
	return func(d *decoder) []T {
		if d.peek() == '[' {
			return many(fs)(d)
		}
		records := make([]T, 1)
		fs.fill(d, &records[0])
		return records
	}
}

// raw reads a result of which the shape is not documented.
func raw(d *decoder) jsontext.Value {
	value := d.value()
	if d.err != nil {
		return nil
	}
	if kind := value.Kind(); kind == '[' || kind == '{' {
		d.empty = len(bytes.TrimSpace(value[1:len(value)-1])) == 0
	}
	return d.keys.value(value)
}
