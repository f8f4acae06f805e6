package gatewaytest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"time"
)

// successText is the documented message of every success.
const successText = "Operation was successful."

// jsonType is the media type of every answer in the envelope.
const jsonType = "application/json; charset=utf-8"

// An answer is what the server would say when nothing goes wrong.
type answer struct {
	status  int
	message string
	result  json.RawMessage
	allow   string // the method that would have been right, with a 405

	isRecord bool   // whether the result is one record, rather than a list of any kind
	extra    string // members in front of the envelope's own, with their commas
}

// success is the answer that carries a result. It encodes the result at once,
// while the state it comes from is still locked.
func success(status int, result any) answer {
	encoded, _ := json.Marshal(result) // plain data: cannot fail
	return answer{
		status: status, message: successText, result: encoded,
		isRecord: reflect.TypeOf(result).Kind() == reflect.Struct,
	}
}

// failure is the documented error envelope under a status.
func failure(status int, message string) answer {
	return answer{status: status, message: message, result: json.RawMessage("[]")}
}

// body encodes the envelope.
func (a answer) body() []byte {
	text, _ := json.Marshal(a.message)
	return bytes.Join([][]byte{[]byte("{" + a.extra + `"message":`), text, []byte(`,"result":`), a.result, []byte(`,"meta":{}}`)}, nil)
}

// padded encodes the envelope in two halves, with room for any number of plain
// letters between them. The result stands in the second half, so that nobody
// finds it without having read the padding.
func (a answer) padded() (head, tail []byte) {
	text, _ := json.Marshal(a.message)
	head = bytes.Join([][]byte{[]byte(`{"message":`), text, []byte(`,"meta":{"padding":"`)}, nil)
	tail = bytes.Join([][]byte{[]byte(`"},"result":`), a.result, []byte(`}`)}, nil)
	return head, tail
}

// connKey is the context key of a request's connection.
type connKey struct{}

// An exchange is the way back to whoever asked.
type exchange struct {
	w        http.ResponseWriter
	r        *http.Request
	closing  <-chan struct{}
	answered func(status int) // writes the status into the journal
}

// head sends the status line and the headers. The journal has the status before
// anybody can have read it.
func (x exchange) head(status int, contentType string) {
	x.answered(status)
	x.w.Header().Set("Content-Type", contentType)
	x.w.WriteHeader(status)
}

// send answers in full.
func (x exchange) send(a answer) {
	if a.allow != "" {
		x.w.Header().Set("Allow", a.allow)
	}
	x.head(a.status, jsonType)
	_, _ = x.w.Write(a.body()) // #nosec G705 -- it is JSON, and says so: no browser runs it
}

// push writes a piece of the body and sees it onto the wire.
func (x exchange) push(piece []byte) {
	if _, err := x.w.Write(piece); err != nil { // #nosec G705 -- a piece of an answer that says it is JSON
		x.drop()
	}
	if err := http.NewResponseController(x.w).Flush(); err != nil {
		x.drop()
	}
}

// wait lets some time pass, and drops the exchange when the client leaves or the
// server closes meanwhile.
func (x exchange) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.r.Context().Done():
		x.drop()
	case <-x.closing:
		x.drop()
	}
}

// drop closes the connection without another byte. It does not return.
func (x exchange) drop() {
	panic(http.ErrAbortHandler)
}
