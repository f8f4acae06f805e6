package gateway

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// successMessage is the constant text of a success: INTERFACE.md,
	// "Response envelope".
	successMessage = "Operation was successful."

	// missingKeyMessage is the text of an answer to a request without the key
	// header: INTERFACE.md, "Errors", 2.
	missingKeyMessage = "x-api-key header is required"

	// maxMessage bounds the part of a message that is kept, in bytes.
	maxMessage = 1 << 10
)

// An envelope is what stands around a result.
type envelope struct {
	message    string // at most maxMessage, without the key; empty when absent or not text
	meta       jsontext.Value
	success    bool // the message is the documented one
	missingKey bool // the message is the documented one for a missing key

	start, end int64 // where the result is in the body, as far as it was read
}

// open reads a whole answer: the envelope and, with read, the result in it.
// An error of d is in d.err; refused is an envelope that says no although the
// status said yes.
func open[T any](d *decoder, read reader[T]) (result T, e envelope, refused bool) {
	found := false
	if d.peek() == 0 && d.eof() {
		d.broken(errEmptyBody)
	}
	d.begin('{')
	for d.more() {
		switch string(d.name()) {
		case "message":
			e.readMessage(d)
		case "meta":
			e.readMeta(d)
		case "result":
			found = true
			e.start = d.json.InputOffset()
			result = read(d)
			e.end = d.json.InputOffset()
		default:
			d.pass()
		}
	}
	if d.end() && !found {
		d.failAt("result", errMissing)
	}
	if d.err == nil && !d.eof() {
		d.broken(errTrailing)
	}
	return result, e, d.refused || d.empty && !e.success
}

// openRefusal reads what there is of an envelope in the body of an answer that
// says no, which need not be an envelope, nor whole.
func openRefusal(d *decoder) envelope {
	_, e, _ := open(d, func(d *decoder) struct{} { d.skip(); return struct{}{} })
	return e
}

// cut returns the result as it stands in the body, or nothing if not all of it
// is there.
func (e envelope) cut(body []byte) jsontext.Value {
	if e.end <= e.start || e.end > int64(len(body)) {
		return nil
	}
	return bytes.TrimLeft(body[e.start:e.end], ": \t\r\n")
}

// readMessage accepts anything, and keeps text.
func (e *envelope) readMessage(d *decoder) {
	if d.peek() != '"' {
		d.skip()
		return
	}
	value := d.value()
	if d.err != nil {
		return
	}
	message := unquote(value)
	if e.success = string(message) == successMessage; e.success {
		e.message = d.keys.text(successMessage)
		return
	}
	e.missingKey = string(message) == missingKeyMessage
	e.message = strings.Clone(bounded(d.keys.text(string(message)), maxMessage))
}

// readMeta accepts anything. The empty object, which it is as described, is
// not kept for a success that nobody asked to hear more of.
func (e *envelope) readMeta(d *decoder) {
	value := d.value()
	if d.terse && string(value) == "{}" {
		return
	}
	e.meta = d.keys.value(value)
}

// bounded cuts text to at most so many bytes, between two characters where it
// is UTF-8.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for cut := most; cut > most-utf8.UTFMax; cut-- {
		if utf8.RuneStart(text[cut]) {
			return text[:cut]
		}
	}
	return text[:most]
}
