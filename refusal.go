package gateway

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// A refusal is what the body of an error response says.
type refusal struct {
	message   string // at most maxMessage bytes, without keys; empty for none
	enveloped bool   // in the documented envelope: docs/interface.md, I-152 to I-155
	formed    bool   // in it, or in a form in which web frameworks refuse a request: I-170
	isThere   bool   // that the order may have an invoice already
}

// messageNames are the members of a framework's error that have its message, the most telling one
// first.
var messageNames = [...]string{"message", "detail", "error", "title", "errors"}

// readRefusal reads the body of an error response to a call for an order, or "" for another call.
func readRefusal(d *strictjson.Decoder, e envelope, text []byte, orderID string) refusal {
	r := refusal{message: e.message, enveloped: d.Err() == nil && e.message != "" && e.hasResult}
	d.Reset(text, strictjson.Options{Redactor: d.Redactor})
	raw := strictjson.Raw(d)
	if d.EndDocument(); d.Err() != nil || raw.Kind() != '{' {
		return r
	}
	body, texts := strictjson.NodeOf(d, raw), []string(nil)
	for _, name := range messageNames {
		said := textsIn(body.Member(name), nil)
		if r.message == "" {
			r.message = redact.Truncate(strings.Join(said, "; "), maxMessage)
		}
		texts = append(texts, said...)
	}
	r.formed = r.enveloped || len(texts) > 0
	texts = textsIn(body.Member("result"), texts)
	r.isThere = slices.ContainsFunc(texts, func(text string) bool { return saysIsThere(text, orderID) })
	return r
}

// textsIn appends the texts in n, at any depth, which are not empty. What frameworks repeat of the
// request is none.
func textsIn(n strictjson.Node, texts []string) []string {
	if text := n.Text(); text != "" {
		return append(texts, text)
	}
	for element := range n.Elements() {
		texts = textsIn(element, texts)
	}
	for member := range n.Members() {
		if name := member.Name(); name != "input" && name != "value" {
			texts = textsIn(member, texts)
		}
	}
	return texts
}

// saysIsThere reports whether a text speaks of an order that is there already: it names the order, or
// has one of these words.
func saysIsThere(text, orderID string) bool {
	text, orderID = strings.ToLower(text), strings.ToLower(orderID)
	for before, after, found := strings.Cut(text, orderID); orderID != "" && found; before, after, found = strings.Cut(after, orderID) {
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !isWord(last) && !isWord(next) {
			return true
		}
	}
	for word := range strings.FieldsFuncSeq(text, func(char rune) bool { return !unicode.IsLetter(char) }) {
		for _, stem := range [...]string{"already", "exists", "existing", "duplicat", "taken", "unique"} {
			if strings.HasPrefix(word, stem) {
				return true
			}
		}
	}
	return false
}

func isWord(char rune) bool { return unicode.IsLetter(char) || unicode.IsDigit(char) }

// provesNoInvoice reports whether an error response with a status proves that no invoice was created.
// Most that do are decided before a service looks at the body. Of 400, 403 and 422 an intermediary may
// have made the response, on the way back from a service that has created an invoice, or the service
// may speak of an earlier one. A status that is not listed proves nothing: 409 may be the response to
// the second delivery of a request that an intermediary has repeated.
func (r refusal) provesNoInvoice(status int) bool { // I-128
	switch status {
	case 400, 422:
		return r.formed && !r.isThere
	case 403:
		return r.enveloped && !r.isThere
	case 401, 402, 404, 405, 407, 410, 411, 413, 414, 415, 421, 425, 426, 429, 431, 451:
		return true
	default:
		return false
	}
}
