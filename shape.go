package gateway

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// A node is a value in a result whose shape the interface does not show, with
// its place. Such results are small, and are looked at from several sides;
// the records that are documented are read by a [fields] table instead.
type node struct {
	pointer jsontext.Pointer
	name    string // the name of the member that holds it, if one does
	value   jsontext.Value
}

func (n node) kind() jsontext.Kind { return n.value.Kind() }

// fault says what is wrong with n.
func (n node) fault(format string, args ...any) *fault {
	return &fault{string(n.pointer), fmt.Errorf(format, args...)}
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
		text := name.String()
		value, _ := dec.ReadValue()
		all = append(all, node{n.pointer.AppendToken(text), text, value.Clone()})
	}
	return all
}

// elements returns the elements of an array, in order, or nothing.
func (n node) elements() []node {
	if n.kind() != '[' {
		return nil
	}
	var all []node
	dec := jsontext.NewDecoder(bytes.NewReader(n.value))
	_, _ = dec.ReadToken() // the value is valid: the decoder has read it whole
	for dec.PeekKind() != ']' {
		value, _ := dec.ReadValue()
		all = append(all, node{n.pointer.AppendToken(fmt.Sprint(len(all))), "", value.Clone()})
	}
	return all
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
