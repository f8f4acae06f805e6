package strictjson

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// maxNodeDepth is how far below a result a [Node] can be.
const maxNodeDepth = 4

// A Node is a value in a result of an undocumented shape, with its place. It is a part
// of the result. The zero value is no value.
type Node struct {
	doc   *document
	value jsontext.Value
	depth int
	path  [maxNodeDepth]step // from the result to the value
}

// A step is a member or an element.
type step struct {
	name  jsontext.Value // of a member, quoted; nil for an element
	index int            // of an element
}

// text returns the name of a member or the index of an element.
func (s step) text() string {
	if s.name == nil {
		return strconv.Itoa(s.index)
	}
	return string(Unquote(s.name))
}

// A document is what the nodes of a result share.
type document struct {
	d       *Decoder
	root    jsontext.Pointer
	cursors []*cursor                  // that are not in use
	amounts map[string]decimal.Decimal // by their JSON
	noted   map[notedStep]bool
}

// A cursor reads the members or elements of one node after another.
type cursor struct {
	json  jsontext.Decoder
	value bytes.Buffer
}

// NodeOf returns the node of a value that d has read last.
func NodeOf(d *Decoder, value jsontext.Value) Node {
	return Node{doc: &document{d: d, root: d.pointer(), amounts: map[string]decimal.Decimal{}, noted: map[notedStep]bool{}}, value: value}
}

// Kind returns the kind of the value.
func (n Node) Kind() jsontext.Kind { return n.value.Kind() }

// IsZero reports whether there is no value.
func (n Node) IsZero() bool { return n.value == nil }

// Errorf returns an error at the place of n.
func (n Node) Errorf(format string, args ...any) *Error {
	return &Error{Pointer: n.pointer(), Err: fmt.Errorf(format, args...)}
}

func (n Node) pointer() string {
	pointer := n.doc.root
	for _, s := range n.path[:n.depth] {
		pointer = pointer.AppendToken(s.text())
	}
	return n.doc.d.cleanPointer(pointer)
}

// Name returns the name of the member that holds n within the result, or "".
func (n Node) Name() string {
	if n.depth == 0 || n.path[n.depth-1].name == nil {
		return ""
	}
	return n.path[n.depth-1].text()
}

// Members yields the members of an object in their order, or nothing.
func (n Node) Members() iter.Seq[Node] {
	return func(yield func(Node) bool) { n.each('{', yield) }
}

// Elements yields the elements of an array in their order, or nothing.
func (n Node) Elements() iter.Seq[Node] {
	return func(yield func(Node) bool) { n.each('[', yield) }
}

// Len returns how many members or elements there are.
func (n Node) Len() (all int) {
	n.each(n.Kind(), func(Node) bool {
		all++
		return true
	})
	return all
}

// each calls yield with what is in an object or array, until it returns false or the
// reading is interrupted.
func (n Node) each(kind jsontext.Kind, yield func(Node) bool) {
	if n.Kind() != kind || kind != '{' && kind != '[' || n.depth == maxNodeDepth {
		return
	}
	c := n.doc.open(n.value)
	defer n.doc.close(c)
	child := n
	child.depth++
	at := &child.path[n.depth]
	for at.index = 0; c.more() && !n.doc.d.interrupted(); at.index++ {
		if kind == '{' {
			at.name = c.next(n.value)
		}
		child.value = c.next(n.value)
		if !yield(child) {
			return
		}
	}
}

// open returns a cursor before the first member or element of a value. Neither the value
// nor its names, which the decoder has checked, are copied.
func (doc *document) open(value jsontext.Value) *cursor {
	if len(doc.cursors) == 0 {
		doc.close(&cursor{})
	}
	last := len(doc.cursors) - 1
	c := doc.cursors[last]
	doc.cursors = doc.cursors[:last]
	c.value = *bytes.NewBuffer(value)
	c.json.Reset(&c.value, jsontext.AllowDuplicateNames(true))
	_, _ = c.json.ReadToken()
	return c
}

func (doc *document) close(c *cursor) { doc.cursors = append(doc.cursors, c) }

func (c *cursor) more() bool {
	kind := c.json.PeekKind()
	return kind != '}' && kind != ']'
}

// next reads a name or a value and returns the part of the outer value that it is.
func (c *cursor) next(outer jsontext.Value) jsontext.Value {
	value, _ := c.json.ReadValue() // valid: the decoder has read it
	end := int(c.json.InputOffset())
	return outer[end-len(value) : end]
}

// Find puts those members of an object that have one of the names into the places of
// their names.
func (n Node) Find(names []string, into []Node) {
	n.each('{', func(m Node) bool {
		name := Unquote(m.path[n.depth].name)
		for i := range names {
			if names[i] == string(name) {
				into[i] = m
			}
		}
		return true
	})
}

// Member returns the member of an object with a name.
func (n Node) Member(name string) Node {
	var found [1]Node
	n.Find([]string{name}, found[:])
	return found[0]
}

// Text returns the text of a string, or "".
func (n Node) Text() string {
	if n.Kind() != '"' {
		return ""
	}
	return string(Unquote(n.value))
}

// Amount returns an amount from a string or a number, as [Decoder.Amount] does. Equal
// ones mostly share their memory.
func (n Node) Amount() (decimal.Decimal, error) {
	if known, ok := n.doc.amounts[string(n.value)]; ok {
		return known, nil
	}
	amount, err := parseAmount(n.value)
	if err != nil {
		return decimal.Decimal{}, err
	}
	if len(n.doc.amounts) == maxInterned {
		clear(n.doc.amounts)
	}
	n.doc.amounts[string(n.value)] = amount
	return amount, nil
}

// A notedStep is what is noted in the elements of an array.
type notedStep struct {
	kind Kind
	name string // of the member; empty for the element
}

// Note notes n, in the elements of an array only the first time: a pointer to each would
// take more than the result.
func (n Node) Note(kind Kind) {
	notes := n.doc.d.Notes
	if notes == nil || notes.isFull() {
		return
	}
	if n.depth > 0 && n.path[0].name == nil {
		place := notedStep{kind, n.Name()}
		if n.doc.noted[place] {
			return
		}
		n.doc.noted[place] = true
	}
	notes.add(kind, n.pointer())
}
