package gateway

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/strictjson"
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

// An envelope is what surrounds a result.
type envelope struct {
	message    string // at most maxMessage bytes, without the key; empty when absent or not text
	meta       jsontext.Value
	emptyMeta  bool           // meta is the documented empty object, of which no copy is kept
	success    bool           // the message is the documented one, or that of [WithSuccessMessage]
	missingKey bool           // the message is the documented one for a missing key
	result     jsontext.Value // a part of the body, as far as it was read; nil before it
	hasResult  bool           // there is a result
	isNull     bool           // which is null
}

// readEnvelope reads a whole body: the envelope and, with read, the result in it. An
// error is in d. The message of a success is the documented one, or another.
func readEnvelope(d *strictjson.Decoder, another string, read func(*strictjson.Decoder)) (e envelope) {
	d.BeginDocument()
	for d.More() {
		switch string(d.Name()) {
		case "message":
			e.readMessage(d, another)
		case "meta":
			e.readMeta(d)
		case "result":
			start := d.Offset()
			e.hasResult, e.isNull = true, d.Peek() == 'n'
			if e.isNull {
				read = (*strictjson.Decoder).Skip
			}
			read(d)
			e.result = d.Since(start)
		default:
			d.SkipUnknown()
		}
	}
	isResult := e.success || e.message == "" // or it is the error that the message has
	switch ended := d.End(); {
	case ended && isResult && e.isNull:
		d.SetErr(&strictjson.Error{Pointer: "/result", Err: errNull})
	case ended && isResult && !e.hasResult:
		d.FailMissing("result")
	}
	d.EndDocument()
	return e
}

// isError reports whether an envelope is that of an error although the status is 2xx: an empty
// array where a record is expected, or without the message of a success an empty result or none.
func (e *envelope) isError(result strictjson.Content) bool {
	return result == strictjson.NoRecord || !e.success && (result == strictjson.EmptyResult || e.isNull || !e.hasResult)
}

var errNull = errors.New("is null")

// readMessage accepts anything, and keeps text.
func (e *envelope) readMessage(d *strictjson.Decoder, another string) {
	if d.Peek() != '"' {
		d.Skip()
		d.Note(strictjson.UnexpectedValue)
		return
	}
	value := d.Value()
	if d.Err() != nil {
		return
	}
	message := strictjson.Unquote(value)
	if e.success = string(message) == successMessage; e.success {
		e.message = d.Redactor.Text(successMessage)
		return
	}
	if e.success = another != "" && string(message) == another; !e.success {
		d.Note(strictjson.UnexpectedValue)
	}
	e.missingKey = string(message) == missingKeyMessage
	e.message = keptMessage(d.Redactor, message)
}

// keptMessage returns the part of a message that is kept. No more of a long one is
// searched for keys.
func keptMessage(keys redact.Redactor, message []byte) string {
	if len(message) <= maxMessage {
		return redact.Truncate(keys.Text(string(message)), maxMessage)
	}
	beginning := redact.Truncate(string(message[:maxMessage+1]), maxMessage)
	return redact.Truncate(string(keys.Snippet(message, len(beginning))), maxMessage)
}

// readMeta accepts anything, and keeps what is not too large: a meta is documented to be
// empty, and to search a large one for keys takes long.
func (e *envelope) readMeta(d *strictjson.Decoder) {
	value := d.Value()
	if e.emptyMeta = string(value) == "{}"; e.emptyMeta {
		return
	}
	d.Note(strictjson.UnexpectedValue)
	if len(value) <= maxMeta {
		e.meta = d.Redactor.JSON(value)
	}
}

// metaValue returns a copy of the meta, or nil when there was none or it is not kept.
func (e *envelope) metaValue() json.RawMessage {
	if e.emptyMeta {
		return json.RawMessage("{}")
	}
	return bytes.Clone(e.meta)
}
