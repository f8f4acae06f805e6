package strictjson

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// A Node is a value in a result of an undocumented shape, with its place. It is a part
// of the result. The zero value is no value.
type Node struct {
	doc *document // nil for no value
	at  int
}

// A document is a result of which the nodes are parts.
type document struct {
	d       *Decoder
	place   jsontext.Pointer           // of the result
	values  []value                    // the result and all that is in it, in the order of the text
	amounts map[string]decimal.Decimal // by their JSON
	noted   map[notedPart]bool
}

type value struct {
	json   jsontext.Value
	name   jsontext.Value // of a member, quoted; nil for an element
	parent int            // the object or array that it is in
	next   int            // the value after all that is in it
}

// NodeOf returns the node of a result that [Raw] has read last.
func NodeOf(d *Decoder, result jsontext.Value) Node {
	doc := &document{
		d: d, place: d.pointer(), values: make([]value, 0, d.entries+1),
		amounts: map[string]decimal.Decimal{}, noted: map[notedPart]bool{},
	}
	text := jsontext.NewDecoder(bytes.NewBuffer(result), jsontext.AllowDuplicateNames(true)) // without keys, two can be equal
	doc.read(text, result, value{})
	return Node{doc: doc}
}

// read reads the next value of a result, and all that is in it.
func (doc *document) read(text *jsontext.Decoder, result jsontext.Value, v value) {
	at := len(doc.values)
	doc.values = append(doc.values, v)
	if kind := text.PeekKind(); kind == '{' || kind == '[' {
		_, _ = text.ReadToken() // valid, as all that follows: the decoder has read it
		start := text.InputOffset() - 1
		for inner := text.PeekKind(); inner != '}' && inner != ']' && inner != 0; inner = text.PeekKind() {
			in := value{parent: at}
			if kind == '{' {
				in.name = part(text, result)
			}
			doc.read(text, result, in)
		}
		_, _ = text.ReadToken()
		doc.values[at].json = result[start:text.InputOffset()]
	} else {
		doc.values[at].json = part(text, result)
	}
	doc.values[at].next = len(doc.values)
}

// part reads a name or a value and returns the part of the result that it is.
func part(text *jsontext.Decoder, result jsontext.Value) jsontext.Value {
	read, _ := text.ReadValue()
	end := int(text.InputOffset())
	return result[end-len(read) : end]
}

func (n Node) value() value {
	if n.doc == nil {
		return value{}
	}
	return n.doc.values[n.at]
}

// Kind returns the kind of the value.
func (n Node) Kind() jsontext.Kind { return n.value().json.Kind() }

// IsZero reports whether there is no value.
func (n Node) IsZero() bool { return n.doc == nil }

// Errorf returns an error at the place of n.
func (n Node) Errorf(format string, args ...any) *Error {
	return &Error{Pointer: n.Pointer(), Value: shown(n.value().json, n.doc.d.Redactor), Err: fmt.Errorf(format, args...)}
}

// Pointer returns the JSON pointer of the place, at most 1 KiB.
func (n Node) Pointer() string { return n.doc.d.cleanPointer(n.doc.pointer(n.at)) }

func (doc *document) pointer(at int) jsontext.Pointer {
	if at == 0 {
		return doc.place
	}
	v, token := doc.values[at], ""
	if v.name != nil {
		token = string(Unquote(v.name))
	} else {
		index := 0
		for before := v.parent + 1; before < at; before = doc.values[before].next {
			index++
		}
		token = strconv.Itoa(index)
	}
	return doc.pointer(v.parent).AppendToken(token)
}

// Name returns the name of the member that holds n within the result, or "".
func (n Node) Name() string {
	if name := n.value().name; name != nil {
		return n.unquote(name)
	}
	return ""
}

// unquote returns a text of the result without keys. Those without an escape are removed from the result.
func (n Node) unquote(quoted jsontext.Value) string {
	text := string(Unquote(quoted))
	if len(text)+len(`""`) == len(quoted) {
		return text
	}
	return n.doc.d.Redactor.Text(text)
}

// maxLevels bounds how far [Node.Names] looks: a value can be in thousands of others.
const maxLevels = 8

// Names yields the name of n and of the members that it is in, up to 8 levels above.
func (n Node) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for at, level := n.at, 0; at > 0 && level <= maxLevels; at, level = n.doc.values[at].parent, level+1 {
			if name := (Node{n.doc, at}).Name(); name != "" && !yield(name) {
				return
			}
		}
	}
}

// Members yields the members of an object in their order, or nothing.
func (n Node) Members() iter.Seq[Node] { return n.parts('{') }

// Elements yields the elements of an array in their order, or nothing.
func (n Node) Elements() iter.Seq[Node] { return n.parts('[') }

// Parts yields the members of an object or the elements of an array, or nothing of another value.
func (n Node) Parts() iter.Seq[Node] { return n.parts(n.Kind()) }

func (n Node) parts(of jsontext.Kind) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if n.Kind() != of {
			return
		}
		for at := n.at + 1; at < n.value().next && yield(Node{n.doc, at}); at = n.doc.values[at].next {
		}
	}
}

// Len returns how many members or elements there are.
func (n Node) Len() (all int) {
	for range n.Parts() {
		all++
	}
	return all
}

// Find puts those members of an object that have one of the names into the places of
// their names.
func (n Node) Find(names []string, into []Node) {
	for m := range n.Members() {
		name := Unquote(m.value().name)
		for i := range names {
			if names[i] == string(name) {
				into[i] = m
			}
		}
	}
}

// Member returns the member of an object with a name.
func (n Node) Member(name string) Node {
	var found [1]Node
	n.Find([]string{name}, found[:])
	return found[0]
}

// At returns the value at a JSON pointer from n, or none.
func (n Node) At(pointer jsontext.Pointer) Node {
	for token := range pointer.Tokens() {
		index := 0
		found := n.Member(token)
		for element := range n.Elements() {
			if strconv.Itoa(index) == token {
				found = element
				break
			}
			index++
		}
		n = found
	}
	return n
}

// Text returns the text of a string, or "".
func (n Node) Text() string {
	if n.Kind() != '"' {
		return ""
	}
	return n.unquote(n.value().json)
}

// Scalar returns the text of a string, or the digits of a number, or "".
func (n Node) Scalar() string {
	if n.Kind() == '0' {
		return string(n.value().json)
	}
	return n.Text()
}

// Scalars yields the strings and numbers in n, at any depth, in the order of the text.
func (n Node) Scalars() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for at := n.at; n.doc != nil && at < n.value().next; at++ {
			inner := Node{n.doc, at}
			if kind := inner.Kind(); (kind == '"' || kind == '0') && !yield(inner) {
				return
			}
		}
	}
}

// Amount returns an amount from a string or a number, as in a [Record]. Equal ones mostly
// share their memory.
func (n Node) Amount() (decimal.Decimal, error) {
	text := n.value().json
	if known, ok := n.doc.amounts[string(text)]; ok {
		return known, nil
	}
	amount, err := parseAmount(text)
	if err != nil {
		return decimal.Decimal{}, err
	}
	if len(n.doc.amounts) == maxRecurring {
		clear(n.doc.amounts)
	}
	n.doc.amounts[string(text)] = amount
	return amount, nil
}

// A notedPart is what is noted in the elements of an array.
type notedPart struct {
	array int // that is in no other one
	kind  Kind
	name  string // of the member; empty for the element
}

// Note notes n, in the elements of an array only the first time: a pointer to each would
// take more than the result.
func (n Node) Note(kind Kind) {
	notes := n.doc.d.Notes
	if notes == nil || notes.isFull() {
		return
	}
	if array := n.doc.outermostArray(n.at); array >= 0 {
		part := notedPart{array, kind, n.Name()}
		if n.doc.noted[part] {
			return
		}
		n.doc.noted[part] = true
	}
	notes.add(kind, n.Pointer(), "")
}

// outermostArray returns the array that has a value in it and is in no other one, or -1.
func (doc *document) outermostArray(at int) (array int) {
	for array = -1; at > 0; {
		if at = doc.values[at].parent; doc.values[at].json.Kind() == '[' {
			array = at
		}
	}
	return array
}
