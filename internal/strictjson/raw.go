package strictjson

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxEntries is how many members and elements a result of an undocumented shape may have,
// at all depths together.
const MaxEntries = 100_000

var errTooMany = errors.New("has more than 100000 members and elements")

// Raw reads a value of any shape, of at most [MaxEntries], and returns a copy without the
// keys. One that holds nothing but null, empty text and empty arrays and objects, at any
// depth, has the content [EmptyResult] if it is an array or object.
func Raw(d *Decoder) jsontext.Value {
	kind := d.Peek()
	if d.err != nil {
		return nil
	}
	start := d.Offset()
	if d.body == nil {
		d.source.record(d.json.UnreadBuffer())
	}
	holds := d.readEntries()
	var value jsontext.Value
	if d.body != nil {
		value = d.body[start:d.Offset()]
	} else {
		value = d.source.stop(d.Offset() - start)
	}
	value = bytes.TrimLeft(value, ",: \t\r\n")
	if d.err != nil {
		return nil
	}
	if (kind == '[' || kind == '{') && !holds {
		d.content = EmptyResult
	}
	return d.Redactor.JSON(value)
}

// readEntries reads a value token by token, so that the names of no more than MaxEntries
// are kept to find one that is there twice. It reports whether the value holds anything.
func (d *Decoder) readEntries() (holds bool) {
	depth := d.json.StackDepth()
	for d.entries = -1; !d.interrupted(); { // the value itself is none
		token, err := d.json.ReadToken()
		if err != nil {
			d.failSyntax(err)
			return holds
		}
		within, count := d.json.StackIndex(d.json.StackDepth()) // of names and values: odd after a name
		kind, isName := token.Kind(), within == '{' && count%2 == 1 && d.json.StackDepth() > depth
		switch {
		case isName || kind == '}' || kind == ']':
		case d.entries == MaxEntries:
			d.failTooMany(depth)
			return holds
		default:
			d.entries++
			holds = holds || kind == '0' || kind == 't' || kind == 'f' || kind == '"' && token.String() != ""
		}
		if d.json.StackDepth() == depth {
			return holds
		}
	}
	return holds
}

// failTooMany records that the value at a depth has too many entries.
func (d *Decoder) failTooMany(depth int) {
	place := d.pointer()
	below := d.json.StackDepth() - depth
	if _, count := d.json.StackIndex(d.json.StackDepth()); count == 0 {
		below-- // it has just begun, and is the place
	}
	for range below {
		place = place.Parent()
	}
	d.err = &Error{Pointer: d.cleanPointer(place), Err: errTooMany}
}

// interrupted reports whether the decoder has an error. Now and then it looks whether the
// context has ended, which is one.
func (d *Decoder) interrupted() bool {
	const interval = 1 << 10
	if d.steps++; d.steps%interval == 0 && d.err == nil && d.Context != nil && d.Context.Err() != nil {
		d.err = &Error{Err: d.Context.Err(), Ended: true}
	}
	return d.err != nil
}

// A recorder is a source of which a part is kept.
type recorder struct {
	src  io.Reader
	on   bool
	text bytes.Buffer
}

// Read implements [io.Reader].
func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	if r.on {
		r.text.Write(p[:n])
	}
	return n, err
}

// record starts to keep what is read, after what was read already.
func (r *recorder) record(read []byte) {
	r.on = true
	r.text.Reset()
	r.text.Write(read)
}

// stop returns the first n bytes that were kept, until the next record.
func (r *recorder) stop(n int64) jsontext.Value {
	r.on = false
	return r.text.Bytes()[:n]
}
