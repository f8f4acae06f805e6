// Package strictjson reads JSON strictly, once, and within bounds.
//
// A [Decoder] reads a text from start to end and stops at the first error, which
// has the JSON pointer of its place. Duplicate names, invalid UTF-8 and trailing
// data are errors; names match exactly; an amount is exact and never missing.
// A [Record] is read by the tags of its type, with [One], [Many] and [OneOrMany], and goes
// through encoding/json by them. A result of an undocumented shape is read by [Raw], which bounds
// it, and examined as a [Node]. A record of a list that cannot be read is left out: see
// [Decoder.LeftOut]. What differs from the tags without being an error is collected in [Notes].
// Decoded values are free of the keys of the Redactor; [Decoder.Value], [Decoder.Name] and
// [Decoder.Since] return raw input.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cryptogw/gateway/internal/redact"
)

var (
	// ErrMismatch is the error of a record with another identifier than the one
	// asked for.
	ErrMismatch = errors.New("is another record than the one asked for")

	errMissing   = errors.New("is missing")
	errEmpty     = errors.New("is empty")
	errEmptyBody = errors.New("the body is empty")
	errTrailing  = errors.New("there is more after the end")
	errInteger   = errors.New("is not an integer in range")
	errTime      = errors.New("is not a time")
)

const (
	maxPointer = 1 << 10 // of an [Error] and of a [Note], in bytes
	maxValue   = 64      // of an [Error], in bytes
)

// An Error is what is wrong with a text, and where. It is not itself an error.
type Error struct {
	Pointer string // JSON pointer, at most 1 KiB; empty for the whole text
	Value   string // text, number or boolean there, as JSON of at most 64 bytes; empty for another value or none
	Err     error
	Syntax  bool // the text is not JSON, or not all of it
}

// Reason is what is wrong, with the value.
func (e *Error) Reason() string {
	if e.Value == "" {
		return e.Err.Error()
	}
	return e.Value + " " + e.Err.Error()
}

// Options are what a [Decoder] is told of a text.
type Options struct {
	Redactor redact.Redactor
	ExpectID string   // what a member with check:"id" must be; empty for anything
	Notes    *Notes   // collects what differs; nil for nothing
	Known    []string // further texts of an enumeration
}

// A Content is what a result amounts to.
type Content int8

// Contents of a result.
const (
	Present     Content = iota
	EmptyResult         // an empty collection, which can be a result
	NoRecord            // an empty array where one record is expected
)

// A Decoder reads one text after [Decoder.Reset]. After an error every method
// returns a zero value; look at [Decoder.Err] at the end. It is used by one
// goroutine at a time.
type Decoder struct {
	json   jsontext.Decoder
	buffer bytes.Buffer // from which json reads the text in place
	state
}

// state is what a Decoder knows of one text.
type state struct {
	Options
	whole     []byte // the text
	err       *Error
	content   Content
	recurring recurring // of the list that is read; nil outside of one
	outer     *Decoder  // reads the text that the text of this one is a value of; nil for none
	inner     *Decoder  // reads values of the text of this one; nil before the first
	entries   int       // in the result that Raw has read last
	leftOut   []LeftOut // at most [MaxLeftOut]
}

// Reset makes d read a text, of which it keeps nothing after the next Reset. Until then the
// text must not change.
func (d *Decoder) Reset(text []byte, o Options) {
	d.buffer = *bytes.NewBuffer(text)
	d.json.Reset(&d.buffer)
	d.state = state{Options: o, whole: text}
}

// Err returns the first error, or nil.
func (d *Decoder) Err() *Error { return d.err }

// SetErr records the error of a [Node] of the value that was read last.
func (d *Decoder) SetErr(err *Error) {
	if d.err == nil {
		d.err = err
	}
}

// Content returns what the result amounts to.
func (d *Decoder) Content() Content { return d.content }

// SetContent sets what [Decoder.Content] returns.
func (d *Decoder) SetContent(c Content) { d.content = c }

// Offset returns how many bytes were read.
func (d *Decoder) Offset() int { return int(d.json.InputOffset()) }

// Since returns the value that was read since an offset, or its beginning where its end could
// not be read. It is a part of the text.
func (d *Decoder) Since(offset int) jsontext.Value {
	return bytes.TrimLeft(d.whole[offset:d.Offset()], ",: \t\r\n")
}

// Fail records that the value that was read last is wrong.
func (d *Decoder) Fail(err error) { d.failAt(d.place, err) }

// FailMissing records that a member of the object that was read last is missing.
func (d *Decoder) FailMissing(name string) {
	d.failAt(func() string { return d.placeOf(name) }, errMissing)
}

// failAt records the first error, with its place unless nobody is told of it.
func (d *Decoder) failAt(place func() string, err error) {
	if d.err == nil {
		d.err = &Error{Err: err}
		if !d.tellsNoMore() {
			d.err.Pointer = place()
		}
	}
}

// show shows the value that an error is about.
func (d *Decoder) show(value jsontext.Value) {
	if d.err != nil && d.err.Value == "" && !d.err.Syntax && !d.tellsNoMore() {
		d.err.Value = shown(value, d.Redactor)
	}
}

// shown returns a value as an [Error] has it. Of null its kind says enough.
func shown(value jsontext.Value, keys redact.Redactor) string {
	const most, end = maxValue + utf8.UTFMax, `…"`
	switch value.Kind() {
	case '"':
		quoted, _ := jsontext.AppendQuote(nil, redact.Truncate(string(keys.Snippet(Unquote(value), most)), most))
		if len(quoted) <= maxValue {
			return string(quoted)
		}
		return redact.Truncate(string(quoted), maxValue-len(end)) + end
	case '0', 't', 'f':
		return redact.Truncate(string(keys.Snippet(value, most)), maxValue)
	default:
		return ""
	}
}

// failSyntax records an error of the JSON text itself.
func (d *Decoder) failSyntax(err error) {
	if d.err != nil {
		return
	}
	d.err = &Error{Err: err, Syntax: true}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		d.err = &Error{Pointer: d.cleanPointer(syntax.JSONPointer), Err: syntax.Err, Syntax: true}
	}
}

// pointer is the place of the value that was read last, or of the member whose
// name was.
func (d *Decoder) pointer() jsontext.Pointer {
	if d.outer == nil {
		return d.json.StackPointer()
	}
	return d.outer.pointer() + d.json.StackPointer()
}

func (d *Decoder) place() string { return d.cleanPointer(d.pointer()) }

// placeOf is the place of a member of the object that was read last.
func (d *Decoder) placeOf(name string) string {
	return d.cleanPointer(d.pointer().AppendToken(name))
}

// cleanPointer writes a pointer without the keys, which a service could repeat in the names
// of members.
func (d *Decoder) cleanPointer(pointer jsontext.Pointer) string {
	var clean jsontext.Pointer
	for token := range pointer.Tokens() {
		if clean = clean.AppendToken(d.Redactor.Text(token)); len(clean) > maxPointer {
			break
		}
	}
	return redact.Truncate(string(clean), maxPointer)
}

// BeginDocument reads the start of the object that the whole text is.
func (d *Decoder) BeginDocument() {
	if d.Peek() == 0 && d.atEnd() {
		d.failSyntax(errEmptyBody)
	}
	d.Begin('{')
}

// EndDocument checks that nothing follows the object that the whole text is.
func (d *Decoder) EndDocument() {
	if d.err == nil && !d.atEnd() {
		d.failSyntax(errTrailing)
	}
}

func (d *Decoder) atEnd() bool {
	_, err := d.json.ReadToken()
	return err == io.EOF
}

// Peek returns the kind of the next value or token; 0 after an error.
func (d *Decoder) Peek() jsontext.Kind {
	if d.err != nil {
		return 0
	}
	return d.json.PeekKind()
}

// More reports whether the object or array that is being read goes on.
func (d *Decoder) More() bool {
	kind := d.Peek()
	return d.err == nil && kind != '}' && kind != ']' && kind != 0
}

// Begin reads the start of an object or array.
func (d *Decoder) Begin(kind jsontext.Kind) bool {
	if got := d.Peek(); got != kind && got != 0 {
		value := d.Value()
		d.Fail(notA(kind, got))
		d.show(value)
	}
	return d.token()
}

// End reads the end of an object or array.
func (d *Decoder) End() bool { return d.token() }

func (d *Decoder) token() bool {
	if d.err != nil {
		return false
	}
	if _, err := d.json.ReadToken(); err != nil {
		d.failSyntax(err)
	}
	return d.err == nil
}

// Name reads the name of a member. It is valid until the next read.
func (d *Decoder) Name() []byte {
	quoted := d.Value()
	if d.err != nil {
		return nil
	}
	return Unquote(quoted)
}

// Value reads any value. It is valid until the next read.
func (d *Decoder) Value() jsontext.Value {
	if d.err != nil {
		return nil
	}
	value, err := d.json.ReadValue()
	if err != nil {
		d.failSyntax(err)
		return nil
	}
	return value
}

// Skip reads over any value.
func (d *Decoder) Skip() {
	if d.err != nil {
		return
	}
	if err := d.json.SkipValue(); err != nil {
		d.failSyntax(err)
	}
}

// SkipUnknown notes a member that no tag names, and reads over its value.
func (d *Decoder) SkipUnknown() {
	d.Note(UnknownField)
	d.Skip()
}

// Unquote returns the characters of a valid JSON string, mostly a part of it.
func Unquote(quoted jsontext.Value) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, quoted) // valid: the decoder has read it
	return text
}

func notA(want, got jsontext.Kind) error {
	return fmt.Errorf("is %s, not %s", KindName(got), KindName(want))
}

// KindName returns a kind with its article, such as "an object".
func KindName(kind jsontext.Kind) string {
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
