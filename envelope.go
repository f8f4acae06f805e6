package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
)

const (
	// successMessage is the constant text of a success: docs/interface.md, I-40.
	successMessage = "Operation was successful."

	// missingKeyMessage is the text of a response to a request without the key
	// header: docs/interface.md, I-35.
	missingKeyMessage = "x-api-key header is required"

	// maxMessage bounds the part of a message that is kept, in bytes.
	maxMessage = 1 << 10

	// maxMeta bounds a meta that is kept, in bytes.
	maxMeta = 64 << 10
)

// An envelope is a body and the parts of it that surround a result.
type envelope struct {
	body       doc.Node
	message    string   // at most maxMessage bytes, without the key; empty when absent or not text
	success    bool     // the message is the documented one, or that of [WithSuccessMessage]
	missingKey bool     // the message is the documented one for a missing key
	meta       doc.Node // none if it is too large to be kept
	result     doc.Node
}

// openEnvelope finds the parts of a body, also of a broken one. The message of a success is the
// documented one, or another.
func openEnvelope(body doc.Node, another string) envelope {
	e := envelope{body: body}
	if body.Kind() != '{' {
		return e
	}
	for n := range body.Parts() {
		switch {
		case n.IsNamed("message"):
			e.readMessage(n, another)
		case n.IsNamed("meta"):
			// It is documented to be empty, and to search a large one for keys takes long.
			if raw := n.Raw(); string(raw) != "{}" {
				n.Note(doc.UnexpectedValue)
			}
			if len(n.Raw()) <= maxMeta {
				e.meta = n
			}
		case n.IsNamed("result"):
			e.result = n
		default:
			n.Note(doc.UnknownField)
		}
	}
	return e
}

// readMessage accepts anything, and keeps text.
func (e *envelope) readMessage(n doc.Node, another string) {
	if n.Is(successMessage) {
		e.message, e.success = n.Keys().Text(successMessage), true
		return
	}
	e.message, e.missingKey = n.Beginning(maxMessage), n.Is(missingKeyMessage)
	if e.success = another != "" && n.Is(another); !e.success {
		n.Note(doc.UnexpectedValue)
	}
}

var (
	errNull     = errors.New("is null")
	errNoResult = errors.New("is missing")
)

// check returns an error if there is no result.
func (e envelope) check() *doc.Error {
	switch kind := e.body.Kind(); {
	case kind != '{':
		return e.body.Errorf("%w", fmt.Errorf("is %s, not an object", doc.KindName(kind)))
	case e.result.IsZero():
		return &doc.Error{Pointer: "/result", Err: errNoResult}
	case e.result.Kind() == 'n':
		return e.result.Errorf("%w", errNull)
	default:
		return nil
	}
}

// isRefusal reports whether a body of 2xx has a message, which is not that of a success, and no result.
func (e envelope) isRefusal() bool {
	return e.message != "" && !e.success && (e.result.IsZero() || e.result.Kind() == 'n')
}

// undocumented returns a result of an undocumented form, or an error if there is none. With a caller's
// decoder, a body without an envelope is the result.
func (e envelope) undocumented(hasDecoder bool) (doc.Node, *doc.Error) {
	result, wrong := e.result, e.check()
	if kind := e.body.Kind(); hasDecoder && result.IsZero() && (kind == '[' || kind == '{' && e.body.Len() > 0) {
		result, wrong = e.body, nil
	}
	return result, wrong
}

// metaValue returns a copy of the meta, or nil when there was none or it is not kept.
func (e envelope) metaValue() json.RawMessage { return json.RawMessage(e.meta.JSON()) }

// A refusal is what the body of an error response says.
type refusal struct {
	message   string // at most maxMessage bytes, without keys; empty for none
	enveloped bool   // in the documented envelope: docs/interface.md, I-152 to I-155
	formed    bool   // in it, or in a form in which web frameworks refuse a request: I-170
	names     bool   // it names the order
	isThere   bool   // it names the order, or speaks of one that is there already
}

// messageNames are the members of a framework's error that have its message, in any case, the most
// telling one first.
var messageNames = [...]string{"message", "msg", "detail", "error", "title", "errors", "modelState"}

// readRefusal reads an error response, of which the whole body could be read or not. The orderID is that of
// the call, or "" if it creates no invoice.
func readRefusal(e envelope, isWhole bool, orderID string) refusal {
	r := refusal{message: e.message, enveloped: isWhole && e.message != "" && !e.result.IsZero()}
	if !isWhole || e.body.Kind() != '{' {
		return r
	}
	said := messageIn(e.body)
	r.formed = r.enveloped || len(said) > 0
	r.message = cmp.Or(r.message, redact.Truncate(strings.Join(said, "; "), maxMessage))
	for n := range told(e.body) {
		for _, text := range [...]string{n.Name(), n.Text()} {
			r.names = r.names || namesOrder(text, orderID)
			r.isThere = r.isThere || saysIsThere(text)
		}
		r.names = r.names || n.Scalar() == orderID && orderID != "" && endpoint.IsOrderName(n.Names())
	}
	r.isThere = r.isThere || r.names
	return r
}

// messageIn returns the texts of the message of a framework's error: those of the first of its members,
// or of all of them if each is a list, as of fields that are not valid.
func messageIn(body doc.Node) (texts []string) {
	for _, name := range messageNames {
		for m := range body.Parts() {
			if strings.EqualFold(m.Name(), name) {
				texts = append(texts, textsIn(m)...)
			}
		}
		if len(texts) > 0 {
			return texts
		}
	}
	for m := range body.Parts() {
		if m.Kind() != '[' || m.Len() != len(textsIn(m)) {
			return nil
		}
		texts = append(texts, textsIn(m)...)
	}
	return texts
}

// textsIn returns the texts in n, at any depth, which are not empty.
func textsIn(n doc.Node) (texts []string) {
	for inner := range told(n) {
		if text := inner.Text(); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// told yields n and what is in it, at any depth, but for what frameworks repeat of the request beside the
// place of an error.
func told(n doc.Node) iter.Seq[doc.Node] {
	return func(yield func(doc.Node) bool) { tell(n, yield) }
}

func tell(n doc.Node, yield func(doc.Node) bool) bool {
	if !yield(n) {
		return false
	}
	isPlace := !n.Member("msg", "loc", "field", "property", "constraints").IsZero()
	for part := range n.Parts() {
		name := part.Name()
		repeats := isPlace && (name == "input" || name == "value" || name == "target" || name == "rejectedValue")
		if !repeats && !tell(part, yield) {
			return false
		}
	}
	return true
}

// namesOrder reports whether a text names an order: one whose name is a number only after a word for what
// it is.
func namesOrder(text, orderID string) bool {
	text, orderID = strings.ToLower(text), strings.ToLower(orderID)
	if orderID == "" || text == orderID {
		return orderID != ""
	}
	for before, after, found := strings.Cut(text, orderID); found; before, after, found = strings.Cut(after, orderID) {
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !isWord(last) && !isWord(next) && (!isDigits(orderID) || endsAsName(before)) {
			return true
		}
	}
	return false
}

func isWord(char rune) bool { return unicode.IsLetter(char) || unicode.IsDigit(char) }

// endsAsName reports whether the name of an order follows a text.
func endsAsName(text string) bool {
	words := strings.FieldsFunc(text, func(char rune) bool { return char != '#' && !isWord(char) })
	return len(words) > 0 && slices.Contains([]string{"order", "orderid", "invoice", "id", "number", "no", "reference", "ref", "#"}, words[len(words)-1])
}

// saysIsThere reports whether a text, or the name of a code or of a member, speaks of something that is
// there already.
func saysIsThere(text string) bool {
	var words strings.Builder
	for i, char := range text {
		if i > 0 && unicode.IsUpper(char) {
			last, _ := utf8.DecodeLastRuneInString(text[:i])
			if unicode.IsLower(last) {
				words.WriteByte(' ')
			}
		}
		if char == '_' || char == '-' {
			char = ' '
		}
		words.WriteRune(unicode.ToLower(char))
	}
	said := strings.NewReplacer("not exist", "", "n't exist", "", "non exist", "", "nonexist", "", "no exist", "").Replace(words.String())
	return slices.ContainsFunc([]string{
		"already", "exist", "duplicat", "taken", "unique", "conflict", "in use", "been used", "used before", "issued before", "previous", "repeated", "twice",
	}, func(word string) bool { return strings.Contains(said, word) })
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
// be the response to the second delivery of a request by an intermediary.
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
