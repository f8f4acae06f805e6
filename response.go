package gateway

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/retry"
)

// Limits of what an error keeps of a response, in bytes.
const (
	maxSnippet     = 8 << 10 // of the body
	maxHeaderValue = 1 << 10
	maxContentType = 256
	maxLocation    = 256

	// maxErrorBody bounds the body of an error that is read: beyond what an error shows, so much
	// that no key of 4,096 characters, each of them escaped, is cut in two.
	maxErrorBody  = maxSnippet + 6*4096
	maxPooledBody = 1 << 20 // whose tree is used for another
	byteOrderMark = "\uFEFF"
)

// receive reads the response to an attempt, and returns what is wrong with it.
func (c *call) receive(resp *http.Response) (failure callError) {
	body := resp.Body.(*attempt.Result)
	defer func() { _ = body.Close() }() // go-retryablehttp finds it empty
	c.status = resp.StatusCode
	c.response = response{status: resp.StatusCode, unread: body.Unread, ambiguous: body.Ambiguous}
	c.client.warning.check(body.Misuse)
	text := bytes.TrimPrefix(body.Text(), []byte(byteOrderMark))
	tree := c.client.trees().Get().(*doc.Doc)
	tree.Reset()
	defer func() {
		if tree.Reset(); len(text) <= maxPooledBody {
			c.client.trees().Put(tree)
		}
	}()

	var e envelope
	switch {
	case resp.StatusCode >= 400:
		text = text[:min(len(text), c.maxKept())] // its end may be missing: the status says enough
		e, failure = c.readError(tree, resp, text, body.Err)
	case resp.StatusCode >= 300:
		failure = c.transportError(PhaseWait, c.redirect(resp), false)
	case resp.StatusCode < 200:
		failure = c.transportError(PhaseWait, fmt.Errorf("status %d is not a response", resp.StatusCode), false)
	case body.Err != nil:
		e, _ = c.open(tree, text)
		failure = c.bodyError(resp, body.Err, text)
	default:
		e, failure = c.readResult(tree, resp, text)
	}
	if failure == nil && body.Unread {
		failure = c.transportError(PhaseWait, errUnsentSuccess, false)
	}
	if failure == nil && body.Ambiguous != nil {
		failure = c.transportError(PhaseWait, body.Ambiguous, false)
	}
	if failure != nil && c.operation.invoice != nil {
		c.response.body = c.redactor.Snippet(text, maxSnippet)
	}
	if c.cfg.response != nil {
		*c.cfg.response = c.newResponse(resp, e)
		c.cfg.response.Skipped = skippedIn(tree)
	}
	return failure
}

// errUnsentSuccess is a success that cannot be that of the invoice.
var errUnsentSuccess = errors.New("the transport returned a success without having read the invoice")

// maxKept is how much of a body is kept for an error: beyond what it shows, so much
// that no key is cut in two.
func (c *call) maxKept() int { return maxSnippet + c.redactor.Overlap() }

// open reads a body as a tree, and finds the parts of its envelope.
func (c *call) open(tree *doc.Doc, text []byte) (envelope, *doc.Error) {
	wrong := tree.Parse(text, c.redactor)
	return openEnvelope(tree.Root(), c.client.cfg.successMessage), wrong
}

// readError reads the body of an error response.
func (c *call) readError(tree *doc.Doc, resp *http.Response, text []byte, lost error) (envelope, *APIError) {
	e, wrong := c.open(tree, text)
	failure := c.apiError(resp, e, text, readRefusal(e, wrong == nil, c.order.Request.OrderID))
	if lost != nil && !errors.Is(lost, attempt.ErrTooLarge) {
		failure.lost = sanitize(lost, c.redactor)
	}
	return e, failure
}

// readResult reads the body of a response of 2xx.
func (c *call) readResult(tree *doc.Doc, resp *http.Response, text []byte) (envelope, callError) {
	e, wrong := c.open(tree, text)
	isRefusal := wrong == nil && e.isRefusal()
	if wrong == nil && !isRefusal {
		wrong = c.decode(e)
		isRefusal = wrong == nil && c.isNothing(e) || wrong != nil && errors.Is(wrong.Err, doc.ErrNoRecord)
	}
	if !isRefusal {
		tree.NoteError(wrong)
	}
	c.response.drift = drifts(c.operation.name, tree)
	switch {
	case isRefusal:
		return e, c.apiError(resp, e, text, refusal{message: e.message})
	case wrong != nil:
		failure := c.decodeError(resp, wrong, text)
		if c.operation.name == OpWithdrawal && !wrong.Syntax && !errors.Is(wrong.Err, doc.ErrMismatch) {
			failure.status = withdrawalStatusIn(e.result, c.operation.expectID)
		}
		return e, failure
	case c.operation.invoice != nil && resp.StatusCode > http.StatusCreated:
		return e, c.decodeError(resp, &doc.Error{Err: errStatusNoSuccess}, text)
	case c.operation.invoice != nil && !e.success:
		return e, c.decodeError(resp, &doc.Error{Pointer: "/message", Err: c.client.messageNoSuccess(e)}, text)
	default:
		return e, nil
	}
}

// isNothing reports whether the message of an envelope is not that of a success, and the result holds
// nothing, or is no object or array that an invoice could be.
func (c *call) isNothing(e envelope) bool {
	kind := e.result.Kind()
	return !e.success && !e.result.IsZero() && (!e.result.Holds() || c.operation.invoice != nil && kind != '{' && kind != '[')
}

// errStatusNoSuccess is the error of a status of 2xx that does not prove that the invoice was created.
var errStatusNoSuccess = errors.New("an invoice was created if the status is 200 or 201")

// messageNoSuccess is the error of a message that does not prove that the invoice was created.
func (c *Client) messageNoSuccess(e envelope) error {
	return fmt.Errorf("%q is not the message of a success, %q: set another one by WithSuccessMessage",
		redact.Truncate(e.message, maxQuotedName), cmp.Or(c.cfg.successMessage, successMessage))
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

// newResponse is what a response has besides its result.
func (c *call) newResponse(resp *http.Response, e envelope) Response {
	return Response{Header: c.redactor.Header(resp.Header), Message: e.message, Meta: e.metaValue(), Result: json.RawMessage(e.result.JSON())}
}

func (c *call) apiError(resp *http.Response, e envelope, body []byte, said refusal) *APIError {
	proved := OutcomeUnknown
	if resp.StatusCode >= 400 && said.provesNoInvoice(resp.StatusCode) && c.response.ambiguous == nil {
		proved = OutcomeRejected
	}
	return &APIError{
		Operation: c.operation.name, StatusCode: resp.StatusCode,
		Message: said.message, Meta: e.metaValue(), missingKey: e.missingKey, said: said,
		Body: c.redactor.Snippet(body, maxSnippet), Header: c.diagnosticHeaders(resp.Header),
		RetryAfter: retry.After(resp.Header), Attempts: c.attempts, RequestID: c.order.RequestID,
		decision: c.decide(proved, retry.IsRetryableStatus(resp.StatusCode)),
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

// decodeError converts an error of a tree to a [*DecodeError].
func (c *call) decodeError(resp *http.Response, wrong *doc.Error, body []byte) *DecodeError {
	err := wrong.Err
	if errors.Is(err, doc.ErrMismatch) {
		err = fmt.Errorf("%w%s", ErrResponseMismatch, strings.TrimPrefix(err.Error(), doc.ErrMismatch.Error()))
	} else if c.redactor.Contains(err.Error()) {
		err = sanitize(err, c.redactor) // it quotes what could not be read
	}
	return &DecodeError{
		Operation: c.operation.name, StatusCode: resp.StatusCode,
		ContentType:     redact.Truncate(c.redactor.Text(resp.Header.Get("Content-Type")), maxContentType),
		ContentEncoding: redact.Truncate(c.redactor.Text(resp.Header.Get("Content-Encoding")), maxContentType),
		Pointer:         wrong.Pointer, Value: wrong.Value, Body: c.redactor.Snippet(body, maxSnippet), Err: err,
		decision: c.decide(OutcomeUnknown, false),
	}
}

// bodyError returns the error of a body that was cut, is too large or cannot be
// decompressed.
func (c *call) bodyError(resp *http.Response, err error, body []byte) callError {
	switch {
	case errors.Is(err, attempt.ErrTooLarge):
		return c.transportError(PhaseRead, ErrResponseTooLarge, false)
	case isDamaged(err):
		failure := c.decodeError(resp, &doc.Error{Err: sanitize(err, c.redactor)}, body)
		failure.decision = c.decide(OutcomeUnknown, true)
		return failure
	default:
		return c.transportError(PhaseRead, sanitize(err, c.redactor), true)
	}
}

// isDamaged reports whether a body cannot be decompressed: another attempt may get a whole one.
func isDamaged(err error) bool {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	return corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum)
}
