package strictjson

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/redact"
)

// A Node is a value in a result of an undocumented shape, with its place. The zero
// value is no value.
type Node struct {
	parent *Node
	name   string // of the member that holds it, if one does
	index  int    // in the array that holds it, if one does
	value  jsontext.Value
}

// NodeOf returns the node of a value that d has read last.
func NodeOf(d *Decoder, value jsontext.Value) Node {
	return Node{name: d.json.StackPointer().LastToken(), value: value}
}

// Kind returns the kind of the value.
func (n Node) Kind() jsontext.Kind { return n.value.Kind() }

// IsZero reports whether there is no value.
func (n Node) IsZero() bool { return n.value == nil }

// Errorf returns an error at the place of n.
func (n Node) Errorf(format string, args ...any) *Error {
	return &Error{Pointer: redact.Truncate(string(n.pointer()), maxPointer), Err: fmt.Errorf(format, args...)}
}

// pointer is built when it is needed, at most once: a name may be long, and many
// nodes may have it in their pointer.
func (n Node) pointer() jsontext.Pointer {
	switch {
	case n.parent == nil:
		return jsontext.Pointer("").AppendToken(n.name)
	case n.parent.Kind() == '[':
		return n.parent.pointer().AppendToken(strconv.Itoa(n.index))
	default:
		return n.parent.pointer().AppendToken(n.name)
	}
}

// Name returns the name of the member that holds n within the result, or "".
func (n Node) Name() string {
	if n.parent == nil {
		return ""
	}
	return n.name
}

// Members returns the members of an object in their order, or nil.
func (n Node) Members() []Node {
	if n.Kind() != '{' {
		return nil
	}
	var all []Node
	dec := jsontext.NewDecoder(bytes.NewReader(n.value))
	_, _ = dec.ReadToken() // the value is valid: the decoder has read it whole
	for dec.PeekKind() == '"' {
		name, _ := dec.ReadToken()
		all = append(all, Node{parent: &n, name: name.String(), value: n.next(dec)})
	}
	return all
}

// Elements yields the elements of an array in their order, or nothing.
func (n Node) Elements() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if n.Kind() != '[' {
			return
		}
		dec := jsontext.NewDecoder(bytes.NewReader(n.value))
		_, _ = dec.ReadToken() // the value is valid: the decoder has read it whole
		for i := 0; dec.PeekKind() != ']'; i++ {
			if !yield(Node{parent: &n, index: i, value: n.next(dec)}) {
				return
			}
		}
	}
}

// next reads a value with dec and returns the part of n that it is.
func (n Node) next(dec *jsontext.Decoder) jsontext.Value {
	value, _ := dec.ReadValue()
	end := int(dec.InputOffset())
	return n.value[end-len(value) : end]
}

// Member returns the member with the first of the names that is among members.
func Member(members []Node, names ...string) (Node, bool) {
	for _, name := range names {
		for _, m := range members {
			if m.name == name {
				return m, true
			}
		}
	}
	return Node{}, false
}

// Text returns the text of a string, or "".
func (n Node) Text() string {
	if n.Kind() != '"' {
		return ""
	}
	return string(Unquote(n.value))
}

// Amount returns an amount from a string or a number, as [Decoder.Amount] does.
func (n Node) Amount() (decimal.Decimal, *Error) {
	amount, err := parseAmount(n.value)
	if err != nil {
		return amount, n.Errorf("%w", err)
	}
	return amount, nil
}
