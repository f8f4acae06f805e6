package gateway

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// maxKept is how much of an answer an error keeps, in bytes.
const maxKept = 8 << 10

// An exchange is one call on its way: what is to be sent, and what has come of
// it so far. It is used by one goroutine, but for the latch.
type exchange struct {
	client *Client
	ctx    context.Context
	call   call
	cfg    callConfig
	key    secret
	open   func(*decoder) (e envelope, refused bool)

	req   *retryablehttp.Request
	latch *latch // of the attempt under way; nil for a read

	attempts int
	status   int           // of the last answer
	kept     []byte        // the beginning of the last answer's body
	sentAt   time.Time     // when the last attempt began
	wait     time.Duration // before the next attempt
	waiting  bool          // between two attempts
	received bool          // the answer of the last attempt was read
	cost     int64         // what the last retry took from the budget
	note     string        // why there was no further attempt, where that is not plain
	failure  error         // what is wrong with the last attempt
}

// build makes the request.
func (x *exchange) build(target *url.URL) error {
	header := http.Header{
		"Accept":     {"application/json"},
		"User-Agent": {x.client.cfg.userAgent},
	}
	for name, values := range x.cfg.header {
		header[name] = values
	}
	if x.call.json || x.call.write != nil {
		header["Content-Type"] = []string{"application/json"}
	}
	if x.keyInHeader() {
		header["X-Api-Key"] = []string{x.key.reveal()}
	}
	method := http.MethodGet
	if x.call.write != nil {
		method = http.MethodPost
	}
	req := &http.Request{Method: method, URL: target, Host: target.Host, Header: header, ProtoMajor: 1, ProtoMinor: 1}
	var err error
	if x.req, err = retryablehttp.FromRequest(req.WithContext(x.ctx)); err != nil {
		return err
	}
	if x.call.write == nil {
		return nil
	}
	return x.attachBody(x.call.write.encode(x.key.reveal()))
}

func (x *exchange) keyInHeader() bool {
	public := x.call.key == keyNowhere && x.client.cfg.keyOnPublic && !x.key.empty()
	return x.call.key == keyInHeader || public
}

// attachBody gives each attempt a latch of its own over the body. GetBody must
// stay nil: with it net/http would replay the body by itself.
func (x *exchange) attachBody(body []byte) error {
	err := x.req.SetBody(retryablehttp.ReaderFunc(func() (io.Reader, error) {
		x.latch, x.sentAt = newLatch(body), time.Now()
		return x.latch, nil
	}))
	x.req.GetBody = nil
	return err
}

// run makes the attempts and says what came of them.
func (x *exchange) run() error {
	started := time.Now()
	err := x.attempt()
	if r := x.cfg.response; r != nil {
		r.StatusCode, r.Attempts, r.Duration = x.status, x.attempts, time.Since(started)
	}
	if err == nil {
		x.client.budget.refund(x.cost)
		return nil
	}
	if x.call.write != nil && OutcomeOf(err) == OutcomeUnknown {
		return &OutcomeUnknownError{
			Op: x.call.op, OrderID: x.call.write.order(),
			StatusCode: x.status, Body: x.key.snippet(x.kept, maxKept), SentAt: x.sentAt, Cause: err,
		}
	}
	return err
}

func (x *exchange) attempt() error {
	if x.ctx.Err() != nil {
		return x.transportError(PhaseStart, x.ctx.Err())
	}
	x.req.SetResponseHandler(x.receive)
	_, err := x.client.library(x).Do(x.req)
	if err != nil && x.waiting {
		return x.transportError(PhaseBackoff, err)
	}
	return x.failure
}

// checkRetry decides whether there is another attempt. The library asks once
// for what the wire did, and once more when the answer could not be used.
func (x *exchange) checkRetry(_ context.Context, resp *http.Response, err error) (bool, error) {
	if x.received {
		return x.mayPass() && x.again(false, 0), nil
	}
	x.waiting = false
	x.attempts++
	if err != nil {
		x.failure = x.noAnswer(err)
		return x.mayPass() && x.again(false, 0), nil
	}
	x.status, x.failure = resp.StatusCode, nil
	return x.call.write == nil && passingStatus(x.status) && x.again(throttles(x.status), retryAfter(resp.Header)), nil
}

// mayPass reports whether the last attempt failed in a way that may pass, and
// may be made again: a write only if none of it was sent.
func (x *exchange) mayPass() bool {
	switch failure := x.failure.(type) {
	case *TransportError:
		return failure.passing && (x.call.write == nil || failure.notSent)
	case *DecodeError:
		return failure.passing && x.call.write == nil
	default:
		return false
	}
}

// again decides whether an attempt that may be made again will be, and when.
func (x *exchange) again(throttled bool, asked time.Duration) bool {
	policy := &x.client.cfg.retry
	if x.attempts >= policy.MaxAttempts || x.ctx.Err() != nil || asked > policy.MaxRetryAfter {
		return false
	}
	x.wait = max(policy.delay(x.attempts, throttled), asked)
	if deadline, ok := x.ctx.Deadline(); ok && time.Until(deadline) < x.wait {
		x.remark("the next one would be after the deadline")
		return false
	}
	cost := int64(retryCost)
	if throttled {
		cost = throttledCost
	}
	if !x.client.budget.take(cost) {
		x.remark("the retry budget was empty")
		return false
	}
	x.cost = cost
	return true
}

// remark says in the failure why it is the last.
func (x *exchange) remark(note string) {
	x.note = note
	if failure, ok := x.failure.(*TransportError); ok {
		failure.note = note
	}
}

func (x *exchange) backoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
	x.waiting, x.received = true, false
	return x.wait
}

// receive reads the answer of the last attempt, and closes it.
func (x *exchange) receive(resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }()
	x.received = true
	switch {
	case resp.StatusCode >= 400:
		x.failure = x.readRefusal(resp)
	case resp.StatusCode >= 300:
		x.describe(resp, envelope{})
		x.failure = x.transportError(PhaseWait, ErrRedirect)
	case resp.StatusCode < 200:
		x.describe(resp, envelope{})
		x.failure = x.transportError(PhaseWait, fmt.Errorf("status %d is no answer", resp.StatusCode))
	default:
		x.failure = x.readResult(resp)
	}
	return x.failure
}

// readResult reads the body of an answer that says yes.
func (x *exchange) readResult(resp *http.Response) error {
	b := &body{src: resp.Body, limit: x.client.cfg.maxBytes, keep: maxKept + x.key.overlap()}
	if x.cfg.response != nil {
		b.keep = int(b.limit)
	}
	d := x.newDecoder(b)
	d.want = x.call.id
	e, refused := x.open(d)
	broken := b.err
	if d.err != nil && broken == nil {
		b.fill()
	}
	x.kept = b.head
	if d.err != nil && x.cfg.response != nil {
		e = openRefusal(x.newDecoder(bytes.NewReader(x.kept)))
	}
	x.describe(resp, e)
	switch {
	case broken != nil:
		return x.unreadable(resp, broken)
	case d.err != nil:
		return x.decodeError(resp, d.err)
	case refused:
		return x.apiError(resp, e)
	default:
		return nil
	}
}

func (x *exchange) newDecoder(from io.Reader) *decoder {
	d := &decoder{key: x.key}
	d.json.Reset(from)
	return d
}

// readRefusal reads the beginning of the body of an answer that says no. That
// it may be cut does not matter: the status has been said.
func (x *exchange) readRefusal(resp *http.Response) error {
	b := &body{src: resp.Body, limit: int64(maxKept + x.key.overlap()), keep: maxKept + x.key.overlap()}
	e := openRefusal(x.newDecoder(b))
	b.fill()
	x.kept = b.head
	x.describe(resp, e)
	return x.apiError(resp, e)
}

// describe fills the caller's Response.
func (x *exchange) describe(resp *http.Response, e envelope) {
	r := x.cfg.response
	if r == nil {
		return
	}
	r.Header = x.key.header(resp.Header)
	r.Message, r.Meta = e.message, e.meta
	if result := e.cut(x.kept); result.IsValid() {
		r.Result = x.key.value(result)
	}
}

func (x *exchange) apiError(resp *http.Response, e envelope) error {
	return &APIError{
		Op: x.call.op, StatusCode: resp.StatusCode,
		Message: e.message, Meta: e.meta, missingKey: e.missingKey,
		Body: x.key.snippet(x.kept, maxKept), Header: boundedHeader(x.key.header(telling(resp.Header))),
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
		ContentType: bounded(x.key.text(resp.Header.Get("Content-Type")), maxPathText),
		Pointer:     bounded(f.pointer, maxPointer), Body: x.key.snippet(x.kept, maxKept), Err: f.err,
	}
}

// unreadable is an answer whose body broke off, was too large or is not what
// it is labelled as.
func (x *exchange) unreadable(resp *http.Response, err error) error {
	if err == ErrResponseTooLarge {
		return x.transportError(PhaseRead, err)
	}
	err = foreign(err, x.key)
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	if corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		failure := x.decodeError(resp, &fault{"", err})
		failure.passing = true
		return failure
	}
	failure := x.transportError(PhaseRead, err)
	failure.passing = x.ctx.Err() == nil
	return failure
}

// noAnswer is an attempt that got no answer.
func (x *exchange) noAnswer(err error) *TransportError {
	phase, traced := PhaseStart, false
	var attempt *attemptError
	if errors.As(err, &attempt) {
		phase, traced = attempt.phase, attempt.traced
	}
	err = plainError(err)
	failure := x.transportError(phase, foreign(err, x.key))
	failure.passing = x.ctx.Err() == nil && passingFault(err, phase, traced)
	return failure
}

// transportError is a call without a usable answer. When the caller's context
// has ended, that is why. Of a write without an answer it is proved that
// nothing was sent if the latch can be sealed, and in no other way.
func (x *exchange) transportError(phase string, err error) *TransportError {
	timeout := timedOut(err)
	if x.ctx.Err() != nil {
		err, timeout = ended(x.ctx, x.key), errors.Is(x.ctx.Err(), context.DeadlineExceeded)
	}
	return &TransportError{
		Op: x.call.op, Phase: phase, Attempts: x.attempts, LastStatus: x.status,
		Err: err, timeout: timeout,
		notSent: x.call.write != nil && x.status == 0 && x.latch.seal(),
	}
}
