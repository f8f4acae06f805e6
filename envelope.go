package gateway

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cryptogw/gateway/internal/doc"
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
