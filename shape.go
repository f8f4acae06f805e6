package gateway

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// A node is a value in a result whose shape the interface does not show, with
// its place. Such results are looked at from several sides; the records that
// are documented are read by a [fields] table instead.
type node struct {
	parent *node
	name   string // of the member that holds it, if one does
	index  int    // in the array that holds it, if one does
	value  jsontext.Value
}

// rootNode is the result that d has just read.
func rootNode(d *decoder, value jsontext.Value) node {
	return node{name: d.json.StackPointer().LastToken(), value: value}
}

func (n node) kind() jsontext.Kind { return n.value.Kind() }

// fault says what is wrong with n.
func (n node) fault(format string, args ...any) *fault {
	return &fault{pointer: string(n.pointer()), err: fmt.Errorf(format, args...)}
}

// pointer is built when it is needed, which is once at most: a name may be
// long, and many nodes may have it in their pointer.
func (n node) pointer() jsontext.Pointer {
	switch {
	case n.parent == nil:
		return jsontext.Pointer("").AppendToken(n.name)
	case n.parent.kind() == '[':
		return n.parent.pointer().AppendToken(strconv.Itoa(n.index))
	default:
		return n.parent.pointer().AppendToken(n.name)
	}
}

// holder is the name under which a value stands in the result, or "".
func (n node) holder() string {
	if n.parent == nil {
		return ""
	}
	return n.name
}

// members returns the members of an object, in order, or nothing.
func (n node) members() []node {
	if n.kind() != '{' {
		return nil
	}
	var all []node
	dec := jsontext.NewDecoder(bytes.NewReader(n.value))
	_, _ = dec.ReadToken() // the value is valid: the decoder has read it whole
	for dec.PeekKind() == '"' {
		name, _ := dec.ReadToken()
		all = append(all, node{parent: &n, name: name.String(), value: n.next(dec)})
	}
	return all
}

// elements yields the elements of an array, in order, or nothing.
func (n node) elements() iter.Seq[node] {
	return func(yield func(node) bool) {
		if n.kind() != '[' {
			return
		}
		dec := jsontext.NewDecoder(bytes.NewReader(n.value))
		_, _ = dec.ReadToken() // the value is valid: the decoder has read it whole
		for i := 0; dec.PeekKind() != ']'; i++ {
			if !yield(node{parent: &n, index: i, value: n.next(dec)}) {
				return
			}
		}
	}
}

// next reads a value with dec, and returns the part of n that it is.
func (n node) next(dec *jsontext.Decoder) jsontext.Value {
	value, _ := dec.ReadValue()
	end := int(dec.InputOffset())
	return n.value[end-len(value) : end]
}

// member finds the first of the names among the members.
func member(members []node, names ...string) (node, bool) {
	for _, name := range names {
		for _, m := range members {
			if m.name == name {
				return m, true
			}
		}
	}
	return node{}, false
}

// text is the text of a string, or "".
func (n node) text() string {
	if n.kind() != '"' {
		return ""
	}
	return string(unquote(n.value))
}

func (n node) amount() (decimal.Decimal, *fault) {
	amount, err := amountOf(n.kind(), n.value)
	if err != nil {
		return amount, n.fault("%w", err)
	}
	return amount, nil
}

// coinSymbol finds the symbol of the coin that a record is about: as text, or
// as a coin record.
func coinSymbol(members []node) string {
	m, _ := member(members, "symbol", "coinSymbol", "coin", "currency")
	if inner, ok := member(m.members(), "symbol"); ok {
		m = inner
	}
	return m.text()
}

// networkName finds the name of the network that a record is about: as text,
// or as a network record.
func networkName(members []node) string {
	m, _ := member(members, "networkName", "network")
	if inner, ok := member(m.members(), "name"); ok {
		m = inner
	}
	return m.text()
}

// fiat finds an amount in a fiat currency by its code, which may be spelled
// in lower or upper case. An amount under each of them is none: which of the
// two counts is not for us to say.
func fiat(members []node, code string) (node, bool) {
	lower, isLower := member(members, strings.ToLower(code))
	upper, isUpper := member(members, code)
	if isLower && isUpper {
		return node{}, false
	}
	if isUpper {
		return upper, true
	}
	return lower, isLower
}
