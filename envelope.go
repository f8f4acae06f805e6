package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
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
}

// openEnvelope finds the parts of a body, even of a broken one. A success has the documented message, or
// another.
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
			// It is documented to be empty. Searching a large one for keys takes long.
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

// isRefusal reports whether a body of 2xx has no result, and a message that is not a success.
func (e envelope) isRefusal() bool {
	return e.message != "" && !e.success && (e.result.IsZero() || e.result.Kind() == 'n')
}

// isNothing reports whether an envelope has an empty result, and no message of a success.
func (e envelope) isNothing() bool { return !e.success && !e.result.IsZero() && !e.result.Holds() }

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

// holds reports whether a member is there, and is neither false, nor 0, nor empty at every depth.
func holds(n doc.Node) bool {
	return n.Holds() && n.Kind() != 'f' && n.Scalar() != "0"
}

// isError reports whether the members beside the result report an error.
func (e envelope) isError() bool {
	for n := range e.body.Parts() {
		switch name := plainName(n); {
		case n.IsNamed("result"):
		case name == "error" || name == "errors":
			if holds(n) {
				return true
			}
		case name == "success" || name == "ok":
			if n.Kind() == 'f' {
				return true
			}
		default:
			if status := statusIn(n); status >= 400 && (name != "code" || status < 600) {
				return true
			}
		}
	}
	return false
}

// mayHaveInvoice reports whether the body of an error response contradicts its status: it has the message of a
// success, a result, or the status of a conflict or of a failure of the service.
func (e envelope) mayHaveInvoice() bool {
	if e.success {
		return true
	}
	for n := range e.body.Parts() {
		if name := plainName(n); (name == "result" || name == "data" || name == "invoice") && holds(n) {
			return true
		}
	}
	for n := range e.body.All() {
		if status := statusIn(n); status == 409 || status >= 500 && (plainName(n) != "code" || status < 600) {
			return true
		}
	}
	return false
}

// statusIn returns the status in a member, or 0 if there is none. A member named code may hold a number of the
// service's own instead.
func statusIn(n doc.Node) int64 {
	switch plainName(n) {
	case "status", "statuscode", "httpstatus", "httpstatuscode", "code":
		if status, err := n.Amount(); err == nil {
			return status.IntPart()
		}
	}
	return 0
}

// plainName returns the name of a member in lower case, without underscores.
func plainName(n doc.Node) string { return strings.ToLower(strings.ReplaceAll(n.Name(), "_", "")) }

// A refusal describes the body of an error response.
type refusal struct {
	message   string // at most maxMessage bytes, without keys; empty for none
	enveloped bool   // in the documented envelope: docs/interface.md, I-152 to I-155
	formed    bool   // in it, or in the error format of a web framework: I-170
	doubtful  bool   // it contradicts its status, or may do so
}

// messageNames are the members of a framework's error that may have its message, by their plain names, the best one
// first.
var messageNames = [...]string{
	"message", "errormessage", "msg", "detail", "description", "desc", "reason", "error", "title", "errors", "modelstate",
}

// readRefusal reads an error response. Wrong says why its body is not JSON; nil if it is.
func readRefusal(e envelope, wrong *doc.Error) refusal {
	r := refusal{message: e.message, enveloped: wrong == nil && e.message != "" && !e.result.IsZero()}
	kind := e.body.Kind()
	if wrong != nil {
		r.doubtful = kind == '{' || kind == '['
		return r
	}
	r.doubtful = e.mayHaveInvoice()
	if kind != '{' {
		return r
	}
	r.formed = r.enveloped || len(messageIn(e.body)) > 0
	r.message = e.said()
	return r
}

// said returns the message of an error, from the envelope or in the format of a framework.
func (e envelope) said() string {
	if e.message != "" {
		return e.message
	}
	return redact.Truncate(strings.Join(messageIn(e.body), "; "), maxMessage)
}

// messageIn returns the texts of a framework's error: from the first member that has one, or from all members if each
// is a list, such as the errors of each field.
func messageIn(body doc.Node) (texts []string) {
	for _, name := range messageNames {
		for m := range body.Parts() {
			if plainName(m) == name {
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

// textsIn returns the texts in n, at any depth, that are not empty. It leaves out the values of the request that
// frameworks repeat beside the place of an error.
func textsIn(n doc.Node) (texts []string) {
	if text := n.Text(); text != "" {
		return []string{text}
	}
	isPlace := !n.Member("msg", "loc", "field", "property", "constraints").IsZero()
	for part := range n.Parts() {
		name := part.Name()
		if !isPlace || name != "input" && name != "value" && name != "target" && name != "rejectedValue" {
			texts = append(texts, textsIn(part)...)
		}
	}
	return texts
}

// isOfService reports whether the service itself sent an error response, and not an intermediary. Either may send a
// 403 with a message outside of the envelope.
func (r refusal) isOfService(status int) bool {
	if status == 403 {
		return r.enveloped
	}
	return r.formed
}

// provesNoInvoice reports whether an error response proves that no invoice was created. A service decides most of
// these statuses before it reads the body. An intermediary may send a 400, 403 or 422 after the service has created
// an invoice, so these need a message of the service. A body that contradicts its status proves nothing, and neither
// does a status that is not listed: 409 may answer the second delivery of a request by an intermediary.
func (r refusal) provesNoInvoice(status int) bool { // I-128
	switch status {
	case 400, 403, 422:
		return r.isOfService(status) && !r.doubtful
	case 401, 402, 404, 405, 407, 410, 411, 413, 414, 415, 421, 425, 426, 429, 431, 451:
		return !r.doubtful
	default:
		return false
	}
}
