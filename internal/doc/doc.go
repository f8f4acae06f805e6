// Package doc reads a JSON text strictly, once, and within bounds.
//
// [Doc.Parse] reads a text into a tree. A [Node] is a value in it, and knows its place. Trailing data is
// an error. A character that is not Unicode is read as U+FFFD, and noted. A [Record] fills structs from
// nodes by their tags: names match exactly, an amount is exact and never missing, and no text has a
// U+FFFD. Differences that are no errors and records that were skipped are kept as notes.
//
// Texts that a Node returns are free of the keys of the redactor, except those of [Node.Raw].
package doc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cryptogw/gateway/internal/redact"
)

const (
	// MaxListing is how many values a text of a documented form may have, at all depths together.
	// MaxUndocumented is the limit for another form, whose values cost more.
	MaxListing      = 1 << 20
	MaxUndocumented = 100_000

	maxPointer = 1 << 10 // bytes of a pointer
	maxValue   = 64      // bytes of a value in an Error
)

var (
	errEmptyBody = errors.New("the body is empty")
	errTrailing  = errors.New("there is more after the end")
	errCharacter = errors.New("has a character that is not Unicode")
)

// An Error says why and where a text cannot be read. It is not itself an error.
type Error struct {
	Pointer string // JSON pointer, at most 1 KiB; empty for the whole text
	Value   string // text, number or boolean there, as JSON of at most 64 bytes; empty for another value or none
	Err     error
	Syntax  bool // the text is not JSON
}

// Reason returns the value and why it cannot be read.
func (e *Error) Reason() string {
	switch {
	case e.Err == nil:
		return ""
	case e.Value == "":
		return e.Err.Error()
	default:
		return e.Value + " " + e.Err.Error()
	}
}

// A Doc is the tree of one text. The zero value is ready for Parse. It is used by one goroutine at a
// time.
type Doc struct {
	json   jsontext.Decoder
	buffer bytes.Buffer // from which json reads the text in place

	text   []byte
	keys   redact.Redactor
	most   int     // values that are read
	values []value // in the order of the text
	one    reading // of one record

	notes   []Note
	skipped int             // notes of kind Skipped
	seen    map[string]bool // kinds and patterns that were noted
}

// A value is a part of the text. It contains the values that follow it, up to next.
type value struct {
	start, end         int32 // end is 0 if the end of an object or array could not be read
	nameStart, nameEnd int32 // the quoted name of a member; 0 for an element
	next               int32 // the first value after all that this one contains
	parent             int32 // the object or array that contains this value; -1 for none
}

// Parse reads a text, which must not change as long as d is in use. One with more values than most, at all
// depths together, is an error, and so are duplicate names without [jsontext.AllowDuplicateNames]. After an
// error d has the values that were read before it.
func (d *Doc) Parse(text []byte, keys redact.Redactor, most int, opts ...jsontext.Options) *Error {
	wrong := d.parse(text, keys, most, opts)
	if wrong == nil || !wrong.Syntax {
		return wrong
	}
	mended := mend(text)
	if bytes.Equal(mended, text) {
		return wrong
	}
	lost := Note{Kind: UnexpectedValue, Error: Error{Pointer: wrong.Pointer, Err: errCharacter}}
	wrong = d.parse(mended, keys, most, opts)
	d.notes = append(d.notes, lost)
	return wrong
}

func (d *Doc) parse(text []byte, keys redact.Redactor, most int, opts []jsontext.Options) *Error {
	d.Reset()
	d.text, d.keys, d.most = text, keys, most
	d.values = slices.Grow(d.values[:0], min(expectedValues(text), most))
	d.buffer = *bytes.NewBuffer(text)
	d.json.Reset(&d.buffer, opts...)
	err := d.read()
	if err == nil {
		if _, end := d.json.ReadToken(); end != io.EOF {
			err = errTrailing
		}
	}
	if err == nil {
		return nil
	}
	for i := range d.values {
		if v := &d.values[i]; v.next == 0 {
			v.next = int32(len(d.values)) // #nosec G115 -- at most MaxListing
		}
	}
	if _, isLarge := errors.AsType[tooLarge](err); isLarge {
		return &Error{Err: err}
	}
	if err == io.EOF {
		err = errEmptyBody
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return &Error{Pointer: d.clean(syntax.JSONPointer), Err: syntax.Err, Syntax: true}
	}
	return &Error{Err: err, Syntax: true}
}

// A tooLarge is the error of a text with more values than this number.
type tooLarge int

func (most tooLarge) Error() string {
	return fmt.Sprintf("has more than %d members and elements", int(most))
}

// Reset forgets the text, and keeps room for its values.
func (d *Doc) Reset() {
	*d = Doc{json: d.json, values: d.values[:0]}
	d.json.Reset(&d.buffer)
}

// expectedValues estimates the values in a text: each follows a comma, or is the first in an object, an array
// or the text. More objects and arrays than commas are nested, mostly too deep to be read.
func expectedValues(text []byte) int {
	commas := 1 + bytes.Count(text, []byte{','})
	return commas + min(commas, bytes.Count(text, []byte{'{'})+bytes.Count(text, []byte{'['}))
}

// read reads one value and all that it contains.
func (d *Doc) read() error {
	for parent := int32(-1); ; {
		kind := d.json.PeekKind()
		if kind == '}' || kind == ']' {
			if _, err := d.json.ReadToken(); err != nil {
				return err
			}
			v := &d.values[parent]
			v.end, v.next, parent = d.offset(), int32(len(d.values)), v.parent // #nosec G115 -- at most MaxListing
		} else if err := d.readNext(kind, &parent); err != nil {
			return err
		}
		if parent < 0 {
			return nil
		}
	}
}

// readNext reads a member or an element: all of a scalar, and the start of an object or array, which
// is the parent of the next value.
func (d *Doc) readNext(kind jsontext.Kind, parent *int32) error {
	v, at := value{parent: *parent}, int32(len(d.values)) // #nosec G115 -- at most MaxListing
	if len(d.values) == d.most {
		return tooLarge(d.most)
	}
	if *parent >= 0 && d.text[d.values[*parent].start] == '{' {
		name, err := d.json.ReadValue()
		if err != nil {
			return err
		}
		v.nameEnd = d.offset()
		v.nameStart = v.nameEnd - int32(len(name)) // #nosec G115 -- a part of the text
		kind = d.json.PeekKind()
	}
	if kind == '{' || kind == '[' {
		if _, err := d.json.ReadToken(); err != nil {
			return err
		}
		v.start, *parent = d.offset()-1, at
	} else {
		scalar, err := d.json.ReadValue()
		if err != nil {
			return err
		}
		v.end, v.next = d.offset(), at+1
		v.start = v.end - int32(len(scalar)) // #nosec G115 -- a part of the text
	}
	d.values = append(d.values, v)
	return nil
}

func (d *Doc) offset() int32 { return int32(d.json.InputOffset()) } // #nosec G115 -- a response has at most 1 GiB

// Root returns the outermost value, or no node if not even its start could be read.
func (d *Doc) Root() Node {
	if len(d.values) == 0 {
		return Node{}
	}
	return Node{doc: d}
}

// clean returns a pointer without keys, which a service could repeat as names of members.
func (d *Doc) clean(pointer jsontext.Pointer) string {
	var clean jsontext.Pointer
	for token := range pointer.Tokens() {
		if clean = clean.AppendToken(d.keys.Text(token)); len(clean) > maxPointer {
			break
		}
	}
	return redact.Truncate(string(clean), maxPointer)
}

// unquote returns the characters of a valid JSON string, mostly a part of it.
func unquote(quoted jsontext.Value) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, quoted) // valid: the decoder has read it
	return text
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

// notA is the error of a value of another kind. A listing can have very many, so no text is made before it is needed.
type notA struct {
	got  jsontext.Kind
	want string
}

func (e notA) Error() string { return fmt.Sprintf("is %s, not %s", KindName(e.got), e.want) }
