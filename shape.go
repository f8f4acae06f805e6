package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// A Skipped is a record of a list, or a price in one, that could not be read and was left out.
type Skipped struct {
	Pointer     string `json:"pointer"`     // where in the response, as a JSON pointer such as "/result/7/maxWithdraw"
	CoinSymbol  string `json:"coinSymbol"`  // that the record names, at most 256 bytes of it; empty if it names none that can be read
	NetworkName string `json:"networkName"` // likewise
	ID          string `json:"id,omitzero"` // of a pair of the listing, likewise
	Reason      string `json:"reason"`      // in one line, with the value, such as: "12,5" is not a decimal number
}

// maxSkipped is how many records are kept of one response. Which further ones were left out is
// not known.
const maxSkipped = strictjson.MaxLeftOut

// skippedIn returns the records that were left out of a result, each with the names of its coin
// and network, and its identifier. It is nil for none.
func skippedIn(d *strictjson.Decoder) (all []Skipped) {
	for _, left := range d.LeftOut() {
		all = append(all, Skipped{left.Pointer, left.Names[0], left.Names[1], left.Names[2], printable(left.Reason())})
	}
	return all
}

// A record is the members that are looked for in an undocumented record of a rate or a
// balance.
type record [13]strictjson.Node

// Places in a record.
const (
	recordSymbol  = 0 // the first of four that name the coin
	recordNetwork = 4 // the first of two that name the network
	recordAmount  = 6 // the first of three that are its amount
	recordUSD     = 9 // the first of two spellings
	recordEUR     = 11
)

// recordOf finds those members in n; the others are zero.
func recordOf(n strictjson.Node) (r record) {
	names := [len(r)]string{
		"symbol", "coinSymbol", "coin", "currency", "networkName", "network",
		"balance", "amount", "available", "usd", "USD", "eur", "EUR",
	}
	n.Find(names[:], r[:])
	return r
}

// maxQuotedName bounds a name from a response in the text of an error, in bytes.
const maxQuotedName = 64

// coinOf finds the symbol of the coin that n, a record or a value by symbol, is about: as
// text, in a coin record, or as the name of the member. Two that differ are an error.
func (r *record) coinOf(n strictjson.Node) (string, error) {
	symbol, fiat := n.Name(), ""
	for _, m := range r[recordSymbol:recordNetwork] {
		name := textOf(m, "symbol")
		switch {
		case name != "" && m.Name() == "currency" && isFiat(name):
			fiat = name // more likely what the coin is priced in
		case name != "" && symbol != "" && name != symbol:
			return "", fmt.Errorf("is of the coin %q and of %q", redact.Truncate(symbol, maxQuotedName), redact.Truncate(name, maxQuotedName))
		default:
			symbol = cmp.Or(symbol, name)
		}
	}
	return cmp.Or(symbol, fiat), nil
}

// networkOf finds the name of the network that a record is about: as text, or in a
// network record.
func (r *record) networkOf() string {
	return cmp.Or(textOf(r[recordNetwork], "name"), textOf(r[recordNetwork+1], "name"))
}

// amount finds the first member that can be the amount of a record, or none. An object or
// array is not passed over for the next member, which could be the amount of something else.
func (r *record) amount() strictjson.Node {
	for _, m := range r[recordAmount:recordUSD] {
		if kind := m.Kind(); kind == '{' || kind == '[' {
			break
		}
		if !m.IsZero() {
			return m
		}
	}
	return strictjson.Node{}
}

// fiat finds an amount in a fiat currency by its code in lower or upper case. If there
// is one under each, there is none: which of them counts is not stated.
func (r *record) fiat(lower int) strictjson.Node {
	switch {
	case r[lower].IsZero():
		return r[lower+1]
	case r[lower+1].IsZero():
		return r[lower]
	default:
		return strictjson.Node{}
	}
}

// errNoCoin is the error of a record that does not say of which coin it is.
var errNoCoin = errors.New("names no coin")

// holdsNothing reports whether a result is an array or object without anything in it, which every
// form can be.
func holdsNothing(result strictjson.Node) bool {
	return (result.Kind() == '[' || result.Kind() == '{') && result.Len() == 0
}

// explained adds to an error what can be done, or what was looked for.
func explained(wrong *strictjson.Error, text string) *strictjson.Error {
	if wrong == nil {
		return nil
	}
	return &strictjson.Error{Pointer: wrong.Pointer, Value: wrong.Value, Err: fmt.Errorf("%w; %s", wrong.Err, text)}
}

// textOf returns a text, or the member of a record that is one.
func textOf(n strictjson.Node, member string) string {
	return cmp.Or(n.Text(), n.Member(member).Text())
}

func isFiat(code string) bool {
	return strings.EqualFold(code, "usd") || strings.EqualFold(code, "eur")
}

// isSymbol reports whether a name can be a symbol, which is documented to be in upper
// case: docs/interface.md, I-86.
func isSymbol(name string) bool { return !strings.ContainsFunc(name, unicode.IsLower) }

// decoded returns what the function of a caller's option reads from a result, or records its error.
func decoded[T any](d *strictjson.Decoder, option string, decode func(json.RawMessage) ([]T, error), result json.RawMessage, check func([]T) error) []T {
	all, err := decode(result)
	if err == nil {
		err = check(all)
	}
	if err != nil {
		d.Fail(fmt.Errorf("the function of %s: %w", option, sanitize(err, d.Redactor)))
	}
	return append([]T{}, all...) // not nil
}

// firstLeftOut is the error of a list of which nothing could be read, or nil.
func firstLeftOut(d *strictjson.Decoder, read int) *strictjson.Error {
	if left := d.LeftOut(); read == 0 && len(left) > 0 {
		return left[0].Error
	}
	return nil
}
