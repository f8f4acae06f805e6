package gateway

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cryptogw/gateway/internal/doc"
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
	success    bool     // the message is the documented one, or the one of [WithSuccessMessage]
	missingKey bool     // the message is the documented one for a missing key
	meta       doc.Node // none if it is too large to be kept
	result     doc.Node
	asOf       time.Time // when the response was read, less its age
	isTwice    bool      // a message or a result is there twice
	isFailed   bool      // a member beside message, result and meta reports a failure
}

// openEnvelope finds the parts of a body, even of a broken one. A success has the documented message, or the declared
// message of [WithSuccessMessage], which is empty for none.
func openEnvelope(body doc.Node, declared string) envelope {
	e := envelope{body: body}
	if body.Kind() != '{' {
		return e
	}
	hasMessage := false
	for n := range body.Parts() {
		switch {
		case n.IsNamed("message"):
			e.isTwice, hasMessage = e.isTwice || hasMessage, true
			e.readMessage(n, declared)
		case n.IsNamed("meta"):
			// It is documented to be empty. Searching a large one for keys takes long.
			if raw := n.Raw(); string(raw) != "{}" {
				n.Note(doc.UnexpectedValue)
			}
			if len(n.Raw()) <= maxMeta {
				e.meta = n
			}
		case n.IsNamed("result"):
			e.isTwice = e.isTwice || !e.result.IsZero()
			e.result = n
		default:
			n.Note(doc.UnknownField)
			e.isFailed = e.isFailed || isFailure(n)
		}
	}
	return e
}

// readMessage accepts anything, and keeps text.
func (e *envelope) readMessage(n doc.Node, declared string) {
	if n.Is(successMessage) {
		e.message, e.success = n.Keys().Text(successMessage), true
		return
	}
	e.message, e.missingKey = n.Beginning(maxMessage), n.Is(missingKeyMessage)
	if e.success = declared != "" && n.Is(declared); !e.success {
		n.Note(doc.UnexpectedValue)
	}
}

// check returns an error if there is no result.
func (e envelope) check() *doc.Error {
	switch kind := e.body.Kind(); {
	case kind != '{':
		return e.body.Errorf("is %s, not an object", doc.KindName(kind))
	case e.result.IsZero():
		return &doc.Error{Pointer: "/result", Err: errors.New("is missing")}
	case e.result.Kind() == 'n':
		return e.result.Errorf("is null")
	default:
		return nil
	}
}

// isRefusal reports whether a body of 2xx is an error of the service: it lacks the message of a success, and has an
// empty result, or another message and no result.
func (e envelope) isRefusal() bool {
	hasPart := e.message != "" || e.result.Kind() == '[' || e.result.Kind() == '{'
	return !e.success && hasPart && !e.result.Holds()
}

// refusesInvoice reports whether a body of 2xx is an error of the service, as isRefusal does. Without the message of a
// success, a reported failure and a result that cannot be an invoice are errors, too.
func (e envelope) refusesInvoice() bool {
	cannotBe := strings.ContainsRune("tf0", rune(e.result.Kind()))
	return e.isRefusal() || !e.success && (cannotBe || e.reportsFailure() || reportsFailure(e.record()))
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

// record returns the result, or its only element if it is an array.
func (e envelope) record() doc.Node { return e.result.Only() }

// plainName returns the name of a member in lower case, without underscores and hyphens.
func plainName(n doc.Node) string { return strings.ToLower(plainer.Replace(n.Name())) }

var plainer = strings.NewReplacer("_", "", "-", "")

// A refusal describes the body of an error response.
type refusal struct {
	message   string // at most maxMessage bytes, without keys; empty for none
	enveloped bool   // in the documented envelope: docs/interface.md, I-152 to I-155
	formed    bool   // in it, or in the error format of a web framework: I-170
	doubtful  bool   // it contradicts its status, or may do so
}

// messageNames are the plain names of members of a framework's error that may have its message, the best one first.
var messageNames = [...]string{
	"message", "messages", "errormessage", "msg", "detail", "description", "desc", "reason", "error", "err", "title",
	"errors", "details",
}

// readRefusal reads an error response. Wrong says why its body is not JSON; nil if it is.
func readRefusal(e envelope, wrong *doc.Error) refusal {
	said := e.said()
	return refusal{
		message:   said,
		enveloped: wrong == nil && e.message != "" && !e.result.IsZero(),
		formed:    wrong == nil && (said != "" || e.saysNo()),
	}
}

// said returns the message of an error, from the envelope or in the format of a framework.
func (e envelope) said() string {
	if e.message != "" {
		return e.message
	}
	var said texts
	said.addMessage(e.body)
	return redact.Truncate(strings.Join(said.all, "; "), maxMessage)
}

// texts are texts of an error, of somewhat more than maxMessage bytes together at most.
type texts struct {
	all  []string
	size int
}

// addMessage adds a text, or all texts of an object of lists, such as the errors of each field, or those of the best
// member that has one, or of any other member that may have a message, or else of a record in it.
func (t *texts) addMessage(body doc.Node) {
	if hasListsAlone(body) {
		t.add(body)
		return
	}
	before := len(t.all)
	var named [len(messageNames)]doc.Node
	for n := range body.Parts() {
		if i := slices.Index(messageNames[:], plainName(n)); i >= 0 {
			named[i] = n
		}
	}
	for _, n := range named {
		if t.add(n); len(t.all) > before {
			return
		}
	}
	for n := range body.Parts() {
		if !mayHaveMessage(n) {
			continue
		}
		if t.add(n); len(t.all) > before {
			return
		}
	}
	for n := range body.Parts() {
		if isDone := t.size >= maxMessage || body.Kind() == '{' && len(t.all) > before; isDone {
			return
		}
		if n.Kind() != '"' && !mayHaveMessage(n) {
			t.addMessage(n)
		}
	}
}

// mayHaveMessage reports whether a member may have a message, by its name.
func mayHaveMessage(n doc.Node) bool {
	name := plainName(n)
	return slices.Contains(messageNames[:], name) ||
		strings.Contains(name, "message") || strings.Contains(name, "error") || strings.Contains(name, "msg")
}

// hasListsAlone reports whether a value has no parts that are not arrays of texts.
func hasListsAlone(body doc.Node) bool {
	for list := range body.Parts() {
		if list.Kind() != '[' {
			return false
		}
		for part := range list.Parts() {
			if part.Kind() != '"' {
				return false
			}
		}
	}
	return true
}

// add adds the texts in n, at any depth, that are not empty. It leaves out the values of the request that frameworks
// repeat beside the place of an error.
func (t *texts) add(n doc.Node) {
	if n.IsZero() {
		return
	}
	if text := n.Beginning(maxMessage); text != "" {
		t.all, t.size = append(t.all, text), t.size+len(text)
	}
	isOfInput := !n.Member("msg").IsZero() || !n.Member(inputNames...).IsZero()
	for part := range n.Parts() {
		if t.size >= maxMessage {
			return
		}
		name := part.Name()
		if !isOfInput || name != "input" && name != "value" && name != "target" && name != "rejectedValue" {
			t.add(part)
		}
	}
}

// isOfService reports whether the service itself sent an error response, and not an intermediary. Either may send a
// 403 with a message outside of the envelope.
func (r refusal) isOfService(status int) bool {
	if status == 403 {
		return r.enveloped
	}
	return r.formed
}
