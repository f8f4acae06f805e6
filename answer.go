package gateway

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxKept is how much of an answer an error keeps, in bytes.
const maxKept = 8 << 10

// receive reads an answer, closes it, and says what is wrong with it.
func (x *exchange) receive(resp *http.Response) (failure error) {
	defer func() {
		_ = resp.Body.Close()
		resp.Body = http.NoBody // what the library drains before it tries again
	}()
	var e envelope
	switch {
	case resp.StatusCode >= 400:
		e = x.readRefusal(resp)
		failure = x.apiError(resp, e)
	case resp.StatusCode >= 300:
		failure = x.transportError(PhaseWait, ErrRedirect)
	case resp.StatusCode < 200:
		failure = x.transportError(PhaseWait, fmt.Errorf("status %d is no answer", resp.StatusCode))
	default:
		e, failure = x.readResult(resp)
	}
	x.describe(resp, e)
	return failure
}

// readResult reads the body of an answer that says yes, and keeps the beginning
// of it: all of it for a caller who asked for the Response.
func (x *exchange) readResult(resp *http.Response) (envelope, error) {
	b, d := x.readFrom(resp.Body, x.client.cfg.maxBytes)
	if x.cfg.response != nil {
		b.keep = int(b.limit)
	}
	d.want, d.size, d.drift, d.terse = x.call.id, min(resp.ContentLength, b.limit), x.newDrifts(), x.cfg.response == nil
	e, refused := x.answer.open(d)
	broken := b.err
	if d.err != nil && broken == nil {
		b.fill() // the decoder stopped early, at what is wrong
	}
	x.kept = b.head
	x.drift = d.drifted()
	if d.err != nil && x.cfg.response != nil {
		e = openRefusal(x.newDecoder(bytes.NewReader(x.kept))) // the whole result, which was not understood
	}
	switch {
	case broken != nil:
		return e, x.unreadable(resp, broken)
	case d.err != nil:
		return e, x.decodeError(resp, d.err)
	case refused:
		if e.meta == nil {
			e.meta = openRefusal(x.newDecoder(bytes.NewReader(x.kept))).meta
		}
		return e, x.apiError(resp, e)
	default:
		return e, nil
	}
}

// keep is how much of a body is kept for an error: beyond what it shows, so
// much that no key is cut in two.
func (x *exchange) keep() int { return maxKept + x.keys.overlap() }

// A reading is what an answer is read with. It serves many calls, one at a
// time, and nothing that is handed out is a part of it.
type reading struct {
	body    body
	decoder decoder
}

// readFrom begins to read an answer of at most limit bytes.
func (x *exchange) readFrom(src io.Reader, limit int64) (*body, *decoder) {
	if x.reading == nil {
		x.reading = x.client.readings().Get().(*reading)
	}
	b, d := &x.reading.body, &x.reading.decoder
	*b = body{src: src, limit: limit, keep: x.keep(), head: b.head[:0], read: b.read}
	d.reset(b, x.keys)
	return b, d
}

// largestReading bounds what was read, in bytes, by a reading that is used again:
// its buffers may be as large.
const largestReading = 64 << 10

// giveBack lets the next call use the reading.
func (x *exchange) giveBack() {
	r := x.reading
	if r == nil || r.body.read > largestReading || cap(r.body.head) > largestReading {
		return
	}
	x.reading, r.body.src, r.body.read, r.decoder.answerState = nil, nil, 0, answerState{}
	x.client.readings().Put(r)
}

func (x *exchange) newDecoder(from io.Reader) *decoder {
	d := &decoder{}
	d.reset(from, x.keys)
	return d
}

// readRefusal reads the beginning of the body of an answer that says no. That
// it may be cut does not matter: the status has been said.
func (x *exchange) readRefusal(resp *http.Response) envelope {
	b, d := x.readFrom(resp.Body, int64(x.keep()))
	e := openRefusal(d)
	b.fill()
	x.kept = b.head
	return e
}

// describe fills the caller's Response.
func (x *exchange) describe(resp *http.Response, e envelope) {
	r := x.cfg.response
	if r == nil {
		return
	}
	*r = Response{Header: x.keys.header(resp.Header), Message: e.message, Meta: e.meta.Clone()}
	if result := e.cut(x.kept); result.IsValid() {
		r.Result = x.keys.value(result)
	}
}

func (x *exchange) apiError(resp *http.Response, e envelope) error {
	return &APIError{
		Op: x.call.op, StatusCode: resp.StatusCode,
		Message: e.message, Meta: e.meta, missingKey: e.missingKey,
		Body: x.keys.snippet(x.kept, maxKept), Header: boundedHeader(x.keys.header(telling(resp.Header))),
		RetryAfter: retryAfter(resp.Header), Attempts: x.attempts, note: x.note,
	}
}

// telling returns the headers that help to find an answer in somebody's log.
func telling(all http.Header) http.Header {
	some := http.Header{}
	for _, name := range [...]string{
		"Content-Type", "Date", "Server", "Via", "Retry-After",
		"X-Request-Id", "X-Correlation-Id", "X-Trace-Id", "Traceparent", "Cf-Ray",
	} {
		if values := all[name]; len(values) > 0 {
			some[name] = values[:1]
		}
	}
	return some
}

// boundedHeader cuts the values of h. It comes after the key is taken out, of
// which it could leave a part that nobody recognises.
func boundedHeader(h http.Header) http.Header {
	for _, values := range h {
		for i := range values {
			values[i] = bounded(values[i], maxBodyText)
		}
	}
	return h
}

func (x *exchange) decodeError(resp *http.Response, f *fault) *DecodeError {
	return &DecodeError{
		Op: x.call.op, StatusCode: resp.StatusCode,
		ContentType: bounded(x.keys.text(resp.Header.Get("Content-Type")), maxPathText),
		Pointer:     bounded(f.pointer, maxPointer), Body: x.keys.snippet(x.kept, maxKept), Err: f.err,
	}
}

// unreadable is an answer whose body broke off, was too large or is not what
// it is labelled as.
func (x *exchange) unreadable(resp *http.Response, err error) error {
	if errors.Is(err, ErrResponseTooLarge) {
		return x.transportError(PhaseRead, err)
	}
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	if corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		failure := x.decodeError(resp, &fault{err: foreign(err, x.keys)})
		failure.passing = true
		return failure
	}
	failure := x.transportError(PhaseRead, foreign(err, x.keys))
	failure.passing = x.ctx.Err() == nil
	return failure
}
