package strictjson

import "time"

// Fields is a table of the members of a record: how each is named and where its
// value goes. It has at most 64 members.
type Fields[T any] []Field[T]

// A Field is a member of a record.
type Field[T any] struct {
	name     string
	optional bool
	read     func(d *Decoder, field int, into *T)
}

// Required is a member that must be there, read by one of the methods of Decoder.
func Required[T, V any](name string, read func(*Decoder) V, at func(*T) *V) Field[T] {
	return Field[T]{name: name, read: func(d *Decoder, _ int, into *T) { *at(into) = read(d) }}
}

// Timestamp is a member that may be missing, read by [Decoder.Time].
func Timestamp[T any](name string, at func(*T) *time.Time) Field[T] {
	return Field[T]{name: name, optional: true, read: func(d *Decoder, _ int, into *T) { *at(into) = d.Time() }}
}

// Nested is a record within a record. In a list, equal ones are read once.
func Nested[T, R any](name string, inner Fields[R], at func(*T) *R) Field[T] {
	return Field[T]{name: name, read: func(d *Decoder, field int, into *T) {
		if d.intern == nil || d.Peek() != '{' {
			inner.fill(d, at(into))
		} else if value := d.Value(); d.err == nil {
			*at(into) = interned(d, nestedTable[R](d.intern, field), value, inner.fillFrom)
		}
	}}
}

// fillFrom makes a record of the value that was read last.
func (fs Fields[T]) fillFrom(d *Decoder, value []byte) (record T) {
	inner := d.nested(value)
	fs.fill(inner, &record)
	d.err = inner.err
	return record
}

// Matching is a member with an identifier that must equal another one of the same
// record. Where both are read and differ, that is a [Mismatch], not an error.
func Matching[T any](f Field[T], ids func(*T) (string, string)) Field[T] {
	read := f.read
	f.read = func(d *Decoder, field int, into *T) {
		read(d, field, into)
		if a, b := ids(into); a != "" && b != "" && a != b {
			d.note(Mismatch)
		}
	}
	return f
}

// fill reads one object into a record. A member that is not in the table is
// skipped; a required one that is missing is an error.
func (fs Fields[T]) fill(d *Decoder, into *T) {
	if !d.Begin('{') {
		return
	}
	var seen uint64
	for next := 0; d.More(); {
		i := fs.index(d.Name(), next)
		if i < 0 {
			d.SkipUnknown()
			continue
		}
		fs[i].read(d, i, into)
		seen |= 1 << i
		next = i + 1
	}
	if !d.End() {
		return
	}
	for i := range fs {
		if seen&(1<<i) == 0 && !fs[i].optional {
			d.FailMissing(fs[i].name)
			return
		}
	}
}

// index returns the place of a name in the table, or -1. Members mostly come in
// one order, so the one after the last is tried first.
func (fs Fields[T]) index(name []byte, next int) int {
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
