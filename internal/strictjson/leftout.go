package strictjson

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/validate"
)

// MaxLeftOut is how many records a [Decoder] tells of that were left out.
const MaxLeftOut = 64

// MaxName is how much is kept of a name of a record that was left out, in bytes: no longer one can be
// asked for.
const MaxName = validate.MaxURLText

// A LeftOut is a record of a list that could not be read.
type LeftOut struct {
	*Error
	Names []string // that it is known by, without keys, each at most MaxName bytes; empty for one that it does not have
}

// LeftOut returns the first records that were left out, in the order of the text.
func (d *Decoder) LeftOut() []LeftOut { return d.leftOut }

// tellsNoMore reports whether nobody is told of the record that is read, if it is left out: a list can
// have millions of those, and to find places takes longer than to read them.
func (d *Decoder) tellsNoMore() bool {
	for d.outer != nil {
		d = d.outer
	}
	return len(d.leftOut) == MaxLeftOut
}

func (d *Decoder) leaveOut(err *Error, names []string) {
	for i, name := range names {
		names[i] = strings.Clone(redact.Truncate(name, MaxName))
	}
	d.leftOut = append(d.leftOut, LeftOut{err, names})
	d.Notes.add(UnknownShape, err.Pointer, err.Reason())
}

// leaveOutRecord leaves out the record that begins at an offset, in an array at a depth: it
// reads to the end of it, and goes on after the error.
func (d *Decoder) leaveOutRecord(depth, at int, names []jsontext.Pointer) {
	wrong := d.err
	for d.err = nil; d.err == nil && d.json.StackDepth() > depth; {
		d.token()
	}
	if d.err != nil || len(d.leftOut) == MaxLeftOut {
		return
	}
	var again Decoder
	again.Reset(d.Since(at), Options{Redactor: d.Redactor})
	record := NodeOf(&again, Raw(&again))
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = record.At(name).Text()
	}
	d.leaveOut(wrong, texts)
}

// LeaveOut leaves out the record that n is or is a part of, with what is wrong at n.
func (n Node) LeaveOut(wrong error, names ...string) {
	if d := n.doc.d; len(d.leftOut) < MaxLeftOut { // to make an error takes time
		d.leaveOut(n.Errorf("%w", wrong), names)
	}
}
