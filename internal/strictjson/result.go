package strictjson

import (
	"errors"
	"slices"
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

// Many returns what reads an array of records. An empty one has the content
// [EmptyResult] and is not nil.
func Many[T any](r *Record[T]) func(*Decoder) []T {
	return func(d *Decoder) []T {
		records := []T{}
		if !d.Begin('[') {
			return nil
		}
		start := d.Offset()
		for d.More() {
			if len(records) == 1 {
				d.recurring = make(recurring, len(r.members))
			}
			if len(records) == cap(records) {
				records = slices.Grow(records, d.estimateRemaining(len(records), start))
			}
			records = append(records, *new(T))
			r.fill(d, &records[len(records)-1])
		}
		d.recurring = nil
		if d.End() && len(records) == 0 {
			d.content = EmptyResult
		}
		return records
	}
}

// OneOrMany returns what reads an array of records, or one record as an array of
// one.
func OneOrMany[T any](r *Record[T]) func(*Decoder) []T {
	many := Many(r)
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
