package doc

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/money"
	"github.com/cryptogw/gateway/internal/redact"
)

var errEmpty = errors.New("is empty")

// A Node is a value of a [Doc]. The zero Node is no value.
type Node struct {
	doc *Doc
	at  int32
}

// IsZero reports whether there is no value.
func (n Node) IsZero() bool { return n.doc == nil }

// Keys returns the redactor of the document.
func (n Node) Keys() redact.Redactor { return n.doc.keys }

// Doc returns the tree that the value is in.
func (n Node) Doc() *Doc { return n.doc }

func (n Node) value() value {
	if n.doc == nil {
		return value{}
	}
	return n.doc.values[n.at]
}

// Kind returns the kind of the value, or 0 for none.
func (n Node) Kind() jsontext.Kind {
	if n.doc == nil {
		return 0
	}
	return jsontext.Value(n.doc.text[n.value().start:]).Kind()
}

// Raw returns the JSON of the value: a part of the text. It is nil if the end of the value could not be
// read.
func (n Node) Raw() jsontext.Value {
	v := n.value()
	if v.end == 0 {
		return nil
	}
	return jsontext.Value(n.doc.text[v.start:v.end])
}

// JSON returns a copy of Raw without keys.
func (n Node) JSON() jsontext.Value {
	raw := n.Raw()
	if raw == nil {
		return nil
	}
	return n.doc.keys.JSON(raw)
}

// Parts yields the members of an object or the elements of an array.
func (n Node) Parts() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for at, end := n.at+1, n.value().next; at < end && yield(Node{n.doc, at}); at = n.doc.values[at].next {
		}
	}
}

// All yields the value and those that it contains, at any depth, in the order of the text.
func (n Node) All() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for at, end := n.at, n.value().next; at < end && yield(Node{n.doc, at}); at++ {
		}
	}
}

// Len returns how many members or elements there are.
func (n Node) Len() (count int) {
	for range n.Parts() {
		count++
	}
	return count
}

// Only returns the only element of an array, or the value itself if it is no array. It returns no value for an array
// of none or several.
func (n Node) Only() Node {
	if n.Kind() != '[' {
		return n
	}
	if n.Len() != 1 {
		return Node{}
	}
	return Node{n.doc, n.at + 1}
}

// Member returns the member of an object with the first of the names that is there.
func (n Node) Member(names ...string) (found Node) {
	for m := range n.Parts() {
		quoted := m.quotedName()
		if quoted == nil {
			return Node{}
		}
		name := unquote(quoted)
		for i, want := range names {
			if want == string(name) {
				found, names = m, names[:i]
				break
			}
		}
	}
	return found
}

// Holds reports whether the value is or contains a number, a boolean or a text that is not empty.
func (n Node) Holds() bool {
	for inner := range n.All() {
		switch inner.Kind() {
		case '0', 't', 'f':
			return true
		case '"':
			if len(inner.Raw()) > len(`""`) {
				return true
			}
		}
	}
	return false
}

func (n Node) quotedName() jsontext.Value {
	v := n.value()
	if v.nameEnd == 0 {
		return nil
	}
	return jsontext.Value(n.doc.text[v.nameStart:v.nameEnd])
}

// Name returns the name of a member, or "".
func (n Node) Name() string {
	if quoted := n.quotedName(); quoted != nil {
		return n.doc.keys.Text(string(unquote(quoted)))
	}
	return ""
}

// IsNamed reports whether the value is the member of an object with this name.
func (n Node) IsNamed(name string) bool {
	quoted := n.quotedName()
	return quoted != nil && string(unquote(quoted)) == name
}

// Text returns the text of a string, or "".
func (n Node) Text() string {
	if n.Kind() != '"' {
		return ""
	}
	return n.doc.keys.Text(string(unquote(n.Raw())))
}

// Is reports whether the value is a string of this text.
func (n Node) Is(text string) bool { return n.Kind() == '"' && string(unquote(n.Raw())) == text }

// Contains reports whether the value is a string with this text in it.
func (n Node) Contains(text string) bool {
	return n.Kind() == '"' && bytes.Contains(unquote(n.Raw()), []byte(text))
}

// Beginning returns at most limit bytes of the text of a string. Only so much of a long one is searched
// for keys.
func (n Node) Beginning(limit int) string {
	if n.Kind() != '"' {
		return ""
	}
	more := n.doc.keys.Snippet(unquote(n.Raw()), limit+utf8.UTFMax)
	return redact.Truncate(string(more), limit)
}

// Scalar returns the text of a string, the digits of a number, or "".
func (n Node) Scalar() string {
	if n.Kind() == '0' {
		return n.doc.keys.Text(string(n.Raw()))
	}
	return n.Text()
}

// Amount returns an amount from a string or a number.
func (n Node) Amount() (decimal.Decimal, error) {
	raw := n.Raw()
	switch kind := n.Kind(); kind {
	case '"':
		if len(raw) == len(`""`) {
			return decimal.Decimal{}, errEmpty
		}
		return money.Parse(unquote(raw))
	case '0':
		return money.Parse(raw)
	default:
		return decimal.Decimal{}, notA{kind, "an amount"}
	}
}

// shown returns the value as an [Error] has it. For null its kind says enough.
func (n Node) shown() string {
	const end = `…"`
	switch n.Kind() {
	case '"':
		quoted, _ := jsontext.AppendQuote(nil, n.Beginning(maxValue+utf8.UTFMax))
		if len(quoted) <= maxValue {
			return string(quoted)
		}
		return redact.Truncate(string(quoted), maxValue-len(end)) + end
	case '0', 't', 'f':
		return string(n.doc.keys.Snippet(n.Raw(), maxValue))
	default:
		return ""
	}
}

// Errorf returns an error about the value.
func (n Node) Errorf(format string, args ...any) *Error {
	return (&fault{at: n, err: fmt.Errorf(format, args...)}).located()
}

// Pointer returns the JSON pointer of the value, at most 1 KiB.
func (n Node) Pointer() string { return n.path(true) }

// path returns the pointer of the value, or a pattern that is equal for all elements of an array. An
// index takes long to find in a long array, a pattern does not.
func (n Node) path(indices bool) string {
	var room [16]int32
	way := room[:0]
	for at := n.at; at > 0; at = n.doc.values[at].parent {
		way = append(way, at)
	}
	var path jsontext.Pointer
	for _, at := range slices.Backward(way) {
		part := Node{n.doc, at}
		switch {
		case part.quotedName() != nil:
			path = path.AppendToken(part.Name())
		case indices:
			path = path.AppendToken(strconv.Itoa(part.index()))
		default:
			path += "/*"
		}
		if len(path) > maxPointer {
			break
		}
	}
	return redact.Truncate(string(path), maxPointer)
}

// index returns how many elements of an array are before this one.
func (n Node) index() (index int) {
	for at := n.value().parent + 1; at < n.at; at = n.doc.values[at].next {
		index++
	}
	return index
}

// A fault is an error before its place is known: a long array can have many, and few are reported.
type fault struct {
	at      Node
	missing string // the member that the object lacks; empty for an error about the value itself
	err     error
}

// path returns the place of the error, as Node.path does.
func (f *fault) path(indices bool) string {
	path := f.at.path(indices)
	if f.missing != "" {
		path = string(jsontext.Pointer(path).AppendToken(f.at.doc.keys.Text(f.missing)))
	}
	return redact.Truncate(path, maxPointer)
}

func (f *fault) located() *Error {
	return &Error{Pointer: f.path(true), Value: f.at.shown(), Err: f.err}
}

func (n Node) fault(err error) *fault { return &fault{at: n, err: err} }
