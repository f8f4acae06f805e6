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
	names     bool   // it names the order
	isThere   bool   // it names the order, or speaks of one that is there already
}

// messageNames are the members of a framework's error that have its message, the most telling one
// first.
var messageNames = [...]string{"message", "detail", "error", "title", "errors"}

// readRefusal reads the body of an error response. The orderID is that of the call, or "" if it creates
// no invoice.
func readRefusal(d *strictjson.Decoder, e envelope, text []byte, orderID string) refusal {
	r := refusal{message: e.message, enveloped: d.Err() == nil && e.message != "" && e.hasResult}
	d.Reset(text, strictjson.Options{Redactor: d.Redactor})
	raw := strictjson.Raw(d)
	if d.EndDocument(); d.Err() != nil || raw.Kind() != '{' {
		return r
	}
	body := strictjson.NodeOf(d, raw)
	for _, name := range messageNames {
		said := textsIn(body.Member(name), nil)
		r.formed = r.formed || len(said) > 0
		if r.message == "" {
			r.message = redact.Truncate(strings.Join(said, "; "), maxMessage)
		}
	}
	r.formed = r.formed || r.enveloped
	for _, text := range textsIn(body, nil) {
		r.names = r.names || namesOrder(text, orderID)
		r.isThere = r.isThere || r.names || saysIsThere(text)
	}
	return r
}

// textsIn appends the texts in n, at any depth, which are not empty. What frameworks repeat of the
// request beside the place of an error is none.
func textsIn(n strictjson.Node, texts []string) []string {
	if text := n.Text(); text != "" {
		return append(texts, text)
	}
	isPlace := !n.Member("msg").IsZero()
	for part := range n.Parts() {
		if name := part.Name(); !isPlace || name != "input" && name != "value" {
			texts = textsIn(part, texts)
		}
	}
	return texts
}

// namesOrder reports whether a text names an order: one whose name is a number only together with a word
// for what it is.
func namesOrder(text, orderID string) bool {
	text, orderID = strings.ToLower(text), strings.ToLower(orderID)
	if orderID == "" || text != orderID && isDigits(orderID) && !strings.Contains(text, "order") && !strings.Contains(text, "invoice") {
		return false
	}
	for before, after, found := strings.Cut(text, orderID); found; before, after, found = strings.Cut(after, orderID) {
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !isWord(last) && !isWord(next) {
			return true
		}
	}
	return false
}

func isWord(char rune) bool { return unicode.IsLetter(char) || unicode.IsDigit(char) }

// saysIsThere reports whether a text speaks of something that is there already.
func saysIsThere(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{
		"already", "exists", "existing", "duplicat", "taken", "unique", "conflict", "in use", "been used", "used before", "issued before", "repeated",
	}, func(word string) bool { return strings.Contains(text, word) })
}

// isOfService reports whether an error response with a status is the service's own, and not that of an
// intermediary. A 403 with a message in another form can be of either.
func (r refusal) isOfService(status int) bool {
	if status == 403 {
		return r.enveloped
	}
	return r.formed
}

// provesNoInvoice reports whether an error response with a status proves that no invoice was created.
// Most that do are decided before a service looks at the body, unless that names the order. Of 400, 403 and
// 422 an intermediary may have made the response, on the way back from a service that has created an
// invoice, or the service may speak of an earlier one. A status that is not listed proves nothing: 409 may
// be the response to the second delivery of a request that an intermediary has repeated.
func (r refusal) provesNoInvoice(status int) bool { // I-128
	switch status {
	case 400, 403, 422:
		return r.isOfService(status) && !r.isThere
	case 401, 402, 404, 405, 407, 410, 411, 413, 414, 415, 421, 425, 426, 429, 431, 451:
		return !r.names
	default:
		return false
	}
}
