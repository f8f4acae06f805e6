package strictjson

import (
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

var errSeveral = errors.New("is one of several records where one is expected")

// One returns what reads a record, or an array that holds exactly one. An empty
// array is a nil record with the content [NoRecord].
func One[T any](r *Record[T]) func(*Decoder) *T {
	return func(d *Decoder) *T {
		record := new(T)
		if d.Peek() != '[' {
			r.fill(d, record)
			return record
		}
		d.Begin('[')
		if !d.More() {
			if d.End() {
				d.content = NoRecord
			}
			return nil
		}
		r.fill(d, record)
		if d.More() {
			d.Fail(errSeveral)
		}
		d.End()
		return record
	}
}

// Many returns what reads an array of records. One that cannot be read is left out, and known
// by the texts at the pointers; if none can be read, that is an error. An empty array has the
// content [EmptyResult] and is not nil.
func Many[T any](r *Record[T], names ...jsontext.Pointer) func(*Decoder) []T {
	return func(d *Decoder) []T {
		records := []T{}
		if !d.Begin('[') {
			return nil
		}
		depth, start := d.json.StackDepth(), d.Offset()
		for d.More() {
			if len(records) == 1 && d.recurring == nil {
				d.recurring = make(recurring, len(r.members))
			}
			at := d.Offset()
			if len(records) == cap(records) {
				records = slices.Grow(records, d.estimateRemaining(len(records), start))
			}
			records = append(records, *new(T))
			if r.fill(d, &records[len(records)-1]); d.err != nil && !d.err.Syntax {
				records = records[:len(records)-1]
				d.leaveOutRecord(depth, at, names)
			}
		}
		d.recurring = nil
		switch none := len(records) == 0; {
		case !d.End():
		case none && len(d.leftOut) > 0:
			d.err = d.leftOut[0].Error
		case none:
			d.content = EmptyResult
		}
		return records
	}
}

// OneOrMany returns what reads an array of records, or one record as an array of
// one. That one must be readable.
func OneOrMany[T any](r *Record[T], names ...jsontext.Pointer) func(*Decoder) []T {
	many := Many(r, names...)
	return func(d *Decoder) []T {
		if d.Peek() == '[' {
			return many(d)
		}
		records := make([]T, 1)
		r.fill(d, &records[0])
		return records
	}
}

// sampleSize is how many records it takes to estimate how many follow.
const sampleSize = 64

// estimateRemaining estimates how many records of a list follow, from the size of those
// that were read since start, so that a list is mostly stored once and not moved as it grows.
func (d *Decoder) estimateRemaining(records, start int) int {
	if records == 0 {
		return 1
	}
	at := d.Offset()
	remaining := int(int64(len(d.whole)-at)*int64(records)/int64(at-start)) + 1 // more than 32 bits
	if records < sampleSize {
		return min(remaining, sampleSize)
	}
	return remaining + remaining/sampleSize // the rest may be a little shorter than these
}
