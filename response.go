package gateway

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/retry"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// Limits of what an error keeps of a response, in bytes.
const (
	maxSnippet     = 8 << 10 // of the body
	maxHeaderValue = 1 << 10
	maxContentType = 256
	maxLocation    = 256
)

// A response is what is known of the response to an attempt.
type response struct {
	status int     // 0 when none came
	body   []byte  // the beginning of one that failed an invoice, without keys
	drift  []Drift // where it differs from docs/interface.md
}

// received is what a response is once it is read.
type received[T any] struct {
	result   T
	failure  error
	body     []byte
	drift    []Drift
	response Response // for a caller who asked for it
}

// A responseReader reads one response at a time. Results do not alias its buffers.
type responseReader struct {
	text    strictjson.Reader
	decoder strictjson.Decoder
}

func newReaderPool() *sync.Pool { return &sync.Pool{New: func() any { return &responseReader{} }} }

// readResponse reads a response and closes it. It changes nothing that the caller has:
// nobody may be waiting for it any more.
func readResponse[T any](c *call, resp *http.Response, read func(*strictjson.Decoder) T) (all received[T]) {
	defer func() { _ = resp.Body.Close() }()
	rr := c.client.readers().Get().(*responseReader)
	var e envelope
	switch {
	case resp.StatusCode >= 400:
		e = rr.readErrorBody(c, resp)
		refusal := c.apiError(resp, e, rr.text.Kept())
		refusal.noEnvelope = rr.decoder.Err() != nil || e.message == ""
		all.failure = refusal
	case resp.StatusCode >= 300:
		all.failure = fault{phase: PhaseWait, err: c.redirect(resp)}
	case resp.StatusCode < 200:
		all.failure = fault{phase: PhaseWait, err: fmt.Errorf("status %d is not a response", resp.StatusCode)}
	default:
		all.result, e, all.failure = readResult(rr, c, resp, read)
		all.drift = drifts(c.operation.name, rr.decoder.Notes)
	}
	if all.failure != nil && c.operation.write != nil {
		all.body = c.redactor.Snippet(rr.text.Kept(), maxSnippet)
	}
	if c.cfg.response != nil {
		all.response = c.newResponse(resp, e, rr.text.Kept())
	}
	rr.release(c.client.readers())
	return all
}

// unreadable is a response of which only the header came in time.
func (c *call) unreadable(resp *http.Response, err error) error {
	if resp.StatusCode >= 400 {
		refusal := c.apiError(resp, envelope{}, nil)
		refusal.noEnvelope = true
		return refusal
	}
	return fault{PhaseRead, sanitize(err, c.redactor), true}
}

// release lets another call use the reader, unless it has become large.
func (rr *responseReader) release(pool *sync.Pool) {
	rr.decoder.Release()
	if rr.text.Release() {
		pool.Put(rr)
	}
}

// maxKept is how much of a body is kept for an error: beyond what it shows, so much
// that no key is cut in two.
func (c *call) maxKept() int { return maxSnippet + c.redactor.Overlap() }

// readErrorBody reads the beginning of the body of an error response. Truncation is
// harmless here: the status code is known.
func (rr *responseReader) readErrorBody(c *call, resp *http.Response) envelope {
	rr.text.Reset(resp.Body, int64(c.maxKept()), c.maxKept())
	rr.decoder.Reset(&rr.text, strictjson.Options{Redactor: c.redactor})
	_, e := readEnvelope(&rr.decoder, "", skipResult)
	rr.text.Fill()
	return e
}

// readResult reads the body of a response of 2xx and keeps its beginning; all of it
// for a caller who asked for the [Response].
func readResult[T any](rr *responseReader, c *call, resp *http.Response, read func(*strictjson.Decoder) T) (T, envelope, error) {
	limit, keep := c.client.cfg.maxBytes, c.maxKept()
	if c.cfg.response != nil {
		keep = int(limit)
	}
	rr.text.Reset(resp.Body, limit, keep)
	rr.decoder.Reset(&rr.text, strictjson.Options{
		Redactor: c.redactor, ExpectID: c.operation.expectID, Size: min(resp.ContentLength, limit), Notes: c.client.newNotes(),
		Context: &c.ctx,
	})
	result, e := readEnvelope(&rr.decoder, c.client.cfg.successMessage, read)
	rr.decoder.NoteError()
	failure := rr.failure(c, resp, e)
	if rr.decoder.Err() != nil && c.cfg.response != nil {
		e = reread(c, rr.text.Kept())
	}
	if failure != nil {
		return *new(T), e, failure
	}
	return result, e, nil
}

// failure is what is wrong with a response of 2xx that was read, or nil.
func (rr *responseReader) failure(c *call, resp *http.Response, e envelope) error {
	readErr, decodeErr := rr.text.Err(), rr.decoder.Err()
	if readErr == nil && decodeErr != nil && decodeErr.Ended {
		readErr = decodeErr.Err
	}
	if decodeErr != nil && readErr == nil {
		rr.text.Fill() // the decoder has stopped early
	}
	switch {
	case readErr != nil:
		return c.bodyError(resp, readErr, rr.text.Kept())
	case decodeErr != nil:
		return c.decodeError(resp, decodeErr, rr.text.Kept())
	case e.isError(rr.decoder.Content()):
		return c.apiError(resp, e, rr.text.Kept())
	case c.operation.write != nil && (!e.success || resp.StatusCode > http.StatusCreated):
		return c.decodeError(resp, &strictjson.Error{Err: errNoSuccess}, rr.text.Kept())
	default:
		return nil
	}
}

// redirect returns the error of a response of 3xx, with the place that it names: neither its
// user nor its query, which may be secret.
func (c *call) redirect(resp *http.Response) error {
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host+to.Path == "" {
		return ErrRedirect
	}
	place := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
	return fmt.Errorf("%w: to %s", ErrRedirect, redact.Truncate(c.redactor.Text(place.String()), maxLocation))
}

// errNoSuccess is a response of 2xx to an invoice that may be to something else, or be about
// something that has not been done yet.
var errNoSuccess = errors.New("an invoice was created if the status is 200 or 201, with the documented message or that of WithSuccessMessage")

// reread finds the message, meta and result of a body whose result was not read to
// its end.
func reread(c *call, body []byte) envelope {
	var d strictjson.Decoder
	d.Reset(bytes.NewReader(body), strictjson.Options{Redactor: c.redactor})
	_, e := readEnvelope(&d, c.client.cfg.successMessage, skipResult)
	return e
}

// newResponse is what a response has besides its result.
func (c *call) newResponse(resp *http.Response, e envelope, body []byte) Response {
	response := Response{Header: c.redactor.Header(resp.Header), Message: e.message, Meta: e.metaValue()}
	if result := e.resultIn(body); result.IsValid() {
		response.Result = json.RawMessage(c.redactor.JSON(result))
	}
	return response
}

func (c *call) apiError(resp *http.Response, e envelope, body []byte) *APIError {
	return &APIError{
		Operation: c.operation.name, StatusCode: resp.StatusCode,
		Message: e.message, Meta: e.metaValue(), missingKey: e.missingKey,
		Body: c.redactor.Snippet(body, maxSnippet), Header: c.diagnosticHeaders(resp.Header),
		RetryAfter: retry.After(resp.Header), RequestID: c.requestID, keys: c.redactor,
	}
}

// diagnosticHeaders returns the headers that help to find a response in a log. They
// are truncated after the key is removed: a part of it would not be recognized.
func (c *call) diagnosticHeaders(all http.Header) http.Header {
	some := http.Header{}
	for _, name := range [...]string{
		"Content-Type", "Date", "Server", "Via", "Retry-After",
		"X-Request-Id", "X-Correlation-Id", "X-Trace-Id", "Traceparent", "Cf-Ray",
	} {
		if values := all[name]; len(values) > 0 {
			some[name] = values[:1]
		}
	}
	some = c.redactor.Header(some)
	for _, values := range some {
		values[0] = redact.Truncate(values[0], maxHeaderValue)
	}
	return some
}

// decodeError converts an error of strictjson to a [*DecodeError].
func (c *call) decodeError(resp *http.Response, wrong *strictjson.Error, body []byte) *DecodeError {
	err := wrong.Err
	if errors.Is(err, strictjson.ErrMismatch) {
		err = ErrResponseMismatch
	} else if c.redactor.Contains(err.Error()) { // together or quoted, its parts are a key
		err = sanitize(err, c.redactor)
	}
	failure := &DecodeError{
		Operation: c.operation.name, StatusCode: resp.StatusCode,
		ContentType: redact.Truncate(c.redactor.Text(resp.Header.Get("Content-Type")), maxContentType),
		Pointer:     c.redactor.Text(wrong.Pointer), Body: c.redactor.Snippet(body, maxSnippet), Err: err, keys: c.redactor,
	}
	if c.operation.statusIn != nil && !wrong.Syntax && err != ErrResponseMismatch {
		failure.status = c.operation.statusIn(failure.Body)
	}
	return failure
}

// bodyError returns the error of a body that was cut, is too large or cannot be
// decompressed.
func (c *call) bodyError(resp *http.Response, err error, body []byte) error {
	if errors.Is(err, strictjson.ErrTooLarge) {
		return fault{phase: PhaseRead, err: ErrResponseTooLarge}
	}
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	if corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		failure := c.decodeError(resp, &strictjson.Error{Err: sanitize(err, c.redactor)}, body)
		failure.retryable = true
		return failure
	}
	return fault{PhaseRead, sanitize(err, c.redactor), true}
}
