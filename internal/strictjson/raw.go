package strictjson

import (
	"errors"

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
	kind, start := d.Peek(), d.Offset()
	holds := d.readEntries()
	if d.err != nil {
		return nil
	}
	if (kind == '[' || kind == '{') && !holds {
		d.content = EmptyResult
	}
	return d.Redactor.JSON(d.Since(start))
}

// readEntries reads a value token by token, so that the names of no more than MaxEntries
// are kept to find one that is there twice. It reports whether the value holds anything.
func (d *Decoder) readEntries() (holds bool) {
	depth := d.json.StackDepth()
	for d.entries = -1; d.err == nil; { // the value itself is none
		token, err := d.json.ReadToken()
		if err != nil {
			d.failSyntax(err)
			break
		}
		within, count := d.json.StackIndex(d.json.StackDepth()) // of names and values: odd after a name
		kind, isName := token.Kind(), within == '{' && count%2 == 1 && d.json.StackDepth() > depth
		switch {
		case isName || kind == '}' || kind == ']':
		case d.entries == MaxEntries:
			d.failTooMany(depth)
		default:
			d.entries++
			holds = holds || kind == '0' || kind == 't' || kind == 'f' || kind == '"' && token.String() != ""
		}
		if d.json.StackDepth() == depth {
			break
		}
	}
	return holds
}

// failTooMany records that the value at a depth has too many entries, in one of which d is.
func (d *Decoder) failTooMany(depth int) {
	var place jsontext.Pointer
	for token := range d.json.StackPointer().Tokens() {
		if depth--; depth < 0 {
			break
		}
		place = place.AppendToken(token)
	}
	d.err = &Error{Pointer: d.cleanPointer(place), Err: errTooMany}
}
