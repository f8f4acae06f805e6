package gatewaytest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// successText is the documented message of every success.
const successText = "Operation was successful."

// jsonType is the media type of every response in the envelope.
const jsonType = "application/json; charset=utf-8"

// A response is what the server sends when no fault alters it.
type response struct {
	status  int
	message string
	result  json.RawMessage
	allow   string // the Allow header, set with a 405
}

// success is the response that carries a result. It encodes the result at once,
// while the lock on the state that it comes from is held.
func success(status int, result any) response {
	encoded, _ := json.Marshal(result) // plain data: cannot fail
	return response{status: status, message: successText, result: encoded}
}

// failure is the documented error envelope under a status.
func failure(status int, message string) response {
	return response{status: status, message: message, result: json.RawMessage("[]")}
}

func (r response) body() []byte {
	return []byte(`{"message":` + quote(r.message) + `,"result":` + string(r.result) + `,"meta":{}}`)
}

// padded encodes the envelope in two halves; any number of plain letters fits
// between them. The result is in the second half, so that no client reaches it
// without reading the padding.
func (r response) padded() (head, tail []byte) {
	head = []byte(`{"message":` + quote(r.message) + `,"meta":{"padding":"`)
	return head, []byte(`"},"result":` + string(r.result) + `}`)
}

// connKey is the context key of a request's connection.
type connKey struct{}

// A responder writes the response to one request.
type responder struct {
	w            http.ResponseWriter
	r            *http.Request
	closing      <-chan struct{}
	recordStatus func(status int) // writes the status into the journal
}

// writeHeader sends the status line and the headers. It records the status first,
// so that the journal has it before a client can have read it.
func (x responder) writeHeader(status int, contentType string) {
	x.recordStatus(status)
	x.w.Header().Set("Content-Type", contentType)
	x.w.WriteHeader(status)
}

// begin sends the headers of a response, with its length, and returns its body.
func (x responder) begin(resp response) []byte {
	body := resp.body()
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.writeHeader(resp.status, jsonType)
	return body
}

func (x responder) send(resp response) {
	if resp.allow != "" {
		x.w.Header().Set("Allow", resp.allow)
	}
	x.writeHeader(resp.status, jsonType)
	_, _ = x.w.Write(resp.body()) // #nosec G705 -- it is JSON and has that type: no browser runs it
}

// flush writes a piece of the body and flushes it to the connection. It drops
// the connection when that fails.
func (x responder) flush(piece []byte) {
	if _, err := x.w.Write(piece); err != nil { // #nosec G705 -- a piece of a response of type JSON
		x.drop()
	}
	if err := http.NewResponseController(x.w).Flush(); err != nil {
		x.drop()
	}
}

// wait waits for d, and drops the connection when the client disconnects or the
// server closes meanwhile.
func (x responder) wait(d time.Duration) {
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
func (x responder) drop() {
	panic(http.ErrAbortHandler)
}
