package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
)

// A Skipped is a record of a list, or a price in one, that could not be read.
type Skipped struct {
	Pointer     string `json:"pointer"`     // where in the response, as a JSON pointer such as "/result/7/maxWithdraw"
	CoinSymbol  string `json:"coinSymbol"`  // the coin that the record names, at most 256 bytes; empty if it names none
	NetworkName string `json:"networkName"` // the network, likewise
	ID          string `json:"id,omitzero"` // the identifier of a pair of the listing, likewise
	Reason      string `json:"reason"`      // in one line, with the value, such as: "12,5" is not a decimal number
}

const (
	maxSkipped    = doc.MaxSkipped      // of one response; further ones are not known
	maxName       = endpoint.MaxURLText // bytes of a name in a Skipped: no longer one can be asked for
	maxQuotedName = 64                  // bytes of a name from a response in the text of an error
)

// skippedIn returns the notes of a response that are about skipped records, or nil.
func skippedIn(tree *doc.Doc) (all []Skipped) {
	for _, note := range tree.Notes() {
		if note.Kind == doc.Skipped {
			symbol, _ := coinOf(note.Record)
			all = append(all, Skipped{
				Pointer:     note.Pointer,
				CoinSymbol:  redact.Truncate(symbol, maxName),
				NetworkName: redact.Truncate(networkOf(note.Record), maxName),
				ID:          redact.Truncate(note.Record.Member("id").Text(), maxName),
				Reason:      printable(note.Reason()),
			})
		}
	}
	return all
}

var errNoCoin = errors.New("names no coin")

// The members of a record that name its coin, and its network.
var (
	coinNames    = []string{"symbol", "coinSymbol", "coin", "currency"}
	networkNames = []string{"networkName", "network"}
)

// coinOf finds the symbol of a record's coin: under one of the usual names, in a record of the coin, or as the
// name of the record itself. Two different symbols are an error. A symbol that has lost a character does not count.
func coinOf(record doc.Node) (symbol string, err error) {
	if name := record.Name(); isSymbol(name) {
		symbol = name
	}
	for _, name := range coinNames {
		m := record.Member(name)
		text := cmp.Or(m.Text(), m.Member("symbol").Text())
		if text != "" && symbol != "" && !strings.EqualFold(text, symbol) {
			return "", fmt.Errorf("is of the coin %q and of %q", quotable(symbol), quotable(text))
		}
		symbol = cmp.Or(symbol, text)
	}
	if symbol == "" || isMended(symbol) {
		return "", errNoCoin
	}
	return symbol, nil
}

// networkOf finds the name of a record's network: as text, or in a record of the network. It returns "" if there is
// none, or if it has lost a character.
func networkOf(record doc.Node) string {
	m := record.Member(networkNames...)
	name := cmp.Or(m.Text(), m.Member("name").Text())
	if isMended(name) {
		return ""
	}
	return name
}

// isSymbol reports whether a name can be a symbol, which is documented to be in upper
// case: docs/interface.md, I-86.
func isSymbol(name string) bool {
	return name == strings.ToUpper(name) && strings.ContainsFunc(name, unicode.IsUpper)
}

// quotable returns the part of a response's text that the text of an error may have.
func quotable(text string) string { return redact.Truncate(text, maxQuotedName) }
