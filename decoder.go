package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	errMissing   = errors.New("is missing")
	errEmpty     = errors.New("is empty")
	errEmptyBody = errors.New("the body is empty")
	errTrailing  = errors.New("there is more after the end")
	errInteger   = errors.New("is not an integer in range")
)

// A decoder reads JSON, strictly and once. After the first error it reads
// nothing more; whoever uses it looks at err at the end.
type decoder struct {
	json jsontext.Decoder
	answerState
}

// An answerState is what a decoder knows of the answer that it reads.
type answerState struct {
	keys redactor
	want string // the identifier asked for; empty for any
	err  *fault

	terse  bool     // an empty meta is of no interest
	size   int64    // of the answer, in bytes; below 0 when it was not said
	drift  *drifts  // nil when nobody asks for it
	memory *memory  // of the list that is read; nil outside of one
	outer  *decoder // reads the answer in which the value stands that this one reads; mostly nil

	// What a result that says nothing means is for the envelope to say.
	empty   bool // nothing, where nothing could be meant
	refused bool // an empty array where a record is expected
}

// reset makes d ready for another answer.
func (d *decoder) reset(from io.Reader, keys redactor) {
	d.json.Reset(from)
	d.answerState = answerState{keys: keys}
}

// A fault is what is wrong with an answer, and where.
type fault struct {
	pointer string
	err     error
	broken  bool // it is not JSON, or not all of it
}

// inside returns a decoder for the value read last, with the same errors in the
// same places.
func (d *decoder) inside(value jsontext.Value) *decoder {
	inner := &d.memory.inner
	d.memory.value = *bytes.NewBuffer(value) // of which it reads without a copy
	inner.reset(&d.memory.value, d.keys)
	inner.drift, inner.outer = d.drift, d
	return inner
}

const (
	// sampled is how many records it takes to guess how many more there are.
	sampled = 64

	// maxAhead bounds, in bytes, how much of an answer is taken to come because
	// it was announced: a service could announce more than it sends.
	maxAhead = 64 << 20
)

// expected guesses how many records of a list are still to come, by the size
// of those that came since start and by the size of the answer. So a list is
// mostly stored once, and not moved to where there is more room. Where the size
// was not said, one more is expected.
func (d *decoder) expected(came int, start int64) int {
	at := d.json.InputOffset()
	left := min(d.size-at, maxAhead)
	if came == 0 || left <= 0 || at <= start {
		return 1
	}
	more := int(left*int64(came)/(at-start)) + 1
	if came < sampled {
		return min(more, sampled)
	}
	return more + more/sampled // for the rest may be a little shorter than these
}

// fail records that the value read last is wrong.
func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = &fault{pointer: d.place(), err: err}
	}
}

// pointer is where the value read last stands, or the member whose name was.
func (d *decoder) pointer() jsontext.Pointer {
	if d.outer == nil {
		return d.json.StackPointer()
	}
	return d.outer.pointer() + d.json.StackPointer()
}

func (d *decoder) place() string { return d.cleanPointer(d.pointer()) }

// failAt records that a member of the object read last is wrong.
func (d *decoder) failAt(name string, err error) {
	if d.err == nil {
		d.err = &fault{pointer: d.cleanPointer(d.pointer().AppendToken(name)), err: err}
	}
}

// broken records an error of the JSON decoder itself.
func (d *decoder) broken(err error) {
	if d.err != nil {
		return
	}
	d.err = &fault{err: err, broken: true}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		d.err = &fault{d.cleanPointer(syntax.JSONPointer), syntax.Err, true}
	}
}

// note records that the value read last, or the member whose name was, is not
// as the interface has it.
func (d *decoder) note(kind DriftKind) {
	if d.drift != nil && !d.drift.full() && d.err == nil {
		d.drift.add(kind, d.place())
	}
}

// drifted returns what differs from the interface in the answer, an error that
// ended the reading of it included.
func (d *decoder) drifted() []Drift {
	switch {
	case d.drift == nil:
		return nil
	case d.err == nil || d.err.broken:
	case errors.Is(d.err.err, ErrResponseMismatch):
		d.drift.add(DriftMismatch, d.err.pointer)
	default:
		d.drift.add(DriftUnknownShape, d.err.pointer)
	}
	return d.drift.all
}

// maxPointer bounds the pointer of a fault, in bytes.
const maxPointer = 1 << 10

// cleanPointer writes a pointer without the key, which a service could echo
// as the name of a member.
func (d *decoder) cleanPointer(pointer jsontext.Pointer) string {
	var clean jsontext.Pointer
	for token := range pointer.Tokens() {
		if clean = clean.AppendToken(d.keys.text(token)); len(clean) > maxPointer {
			break
		}
	}
	return bounded(string(clean), maxPointer)
}

func (d *decoder) peek() jsontext.Kind {
	if d.err != nil {
		return 0
	}
	return d.json.PeekKind()
}

// more reports whether the object or array that is being read goes on.
func (d *decoder) more() bool {
	kind := d.peek()
	return d.err == nil && kind != '}' && kind != ']' && kind != 0
}

// begin reads the start of an object or array.
func (d *decoder) begin(kind jsontext.Kind) bool {
	if got := d.peek(); got != kind && got != 0 {
		d.value()
		d.fail(notA(kind, got))
	}
	return d.token()
}

// end reads the end of an object or array.
func (d *decoder) end() bool { return d.token() }

func (d *decoder) token() bool {
	if d.err != nil {
		return false
	}
	if _, err := d.json.ReadToken(); err != nil {
		d.broken(err)
	}
	return d.err == nil
}

// name reads the name of a member. It is valid until the next read.
func (d *decoder) name() []byte {
	quoted := d.value()
	if d.err != nil {
		return nil
	}
	return unquote(quoted)
}

// value reads any value. It is valid until the next read.
func (d *decoder) value() jsontext.Value {
	if d.err != nil {
		return nil
	}
	value, err := d.json.ReadValue()
	if err != nil {
		d.broken(err)
		return nil
	}
	return value
}

func (d *decoder) skip() {
	if d.err != nil {
		return
	}
	if err := d.json.SkipValue(); err != nil {
		d.broken(err)
	}
}

// pass skips the value of a member that the interface does not list.
func (d *decoder) pass() {
	d.note(DriftUnknownField)
	d.skip()
}

// eof reports whether nothing is left to read.
func (d *decoder) eof() bool {
	_, err := d.json.ReadToken()
	return err == io.EOF
}

// unquote returns the characters of a valid JSON string.
func unquote(quoted jsontext.Value) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, quoted) // valid: the decoder has read it
	return text
}

func notA(want, got jsontext.Kind) error {
	return fmt.Errorf("is %s, not %s", kindName(got), kindName(want))
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "text"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return "not JSON"
	}
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
