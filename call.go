package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/retry"
	"github.com/cryptogw/gateway/internal/validate"
)

// An operation is what a method asks of the service: route, arguments, place of the key and
// payload.
type operation struct {
	name             string
	route            string    // each {name} is replaced by an argument
	args             [2]string // for the route, in its order
	query            []endpoint.Param
	expectID         string // the identifier that the record in the response must have; empty for any
	key              keyPlace
	sendsContentType bool            // also for a read
	invoice          *InvoiceRequest // what is posted; nil for a read
}

// A keyPlace is where the key goes: docs/interface.md, I-30 to I-34.
type keyPlace int8

const (
	keyNowhere keyPlace = iota // not stated to be needed
	keyInHeader
	keyInBody
)

// A call is one use of an operation: what it sends, and what its attempts have shown so far.
type call struct {
	client    *Client
	operation operation
	decode    func(envelope) *doc.Error // reads the result of a response to where the method has it

	cfg      callConfig
	ctx      context.Context // with what [CallFromContext] returns
	url      url.URL
	key      redact.Secret
	redactor redact.Redactor // removes every key that a response may repeat

	library  retryablehttp.Client // makes the attempts
	started  time.Time            // when the call began
	attempts int                  // that were begun
	begun    time.Time            // when the last of them began
	response response             // to the last of them
	status   int                  // of the last response to any of them; 0 for none
	failure  callError            // of the last of them; nil for none
	next     retry.Next           // what follows it
	order    orderOfCall          // of an invoice
}

// A response is what is kept of the response to an attempt.
type response struct {
	status int     // 0 when none came
	body   []byte  // the beginning of one that failed an invoice, without keys
	drift  []Drift // where it differs from docs/interface.md

	unread    bool  // no byte of the invoice was read for sending, so none was sent
	ambiguous error // why it may not be the only response to the invoice; nil for no reason
}

// do makes a call whose result has a documented form, which read reads.
func do[T any](ctx context.Context, client *Client, what operation, read func(doc.Node) (T, *doc.Error), opts []CallOption) (T, error) {
	var result T
	c := &call{client: client, operation: what, decode: func(e envelope) *doc.Error {
		wrong := e.check()
		if wrong == nil {
			result, wrong = read(e.result)
		}
		return wrong
	}}
	if err := c.run(ctx, opts); err != nil {
		return *new(T), err
	}
	return result, nil
}

// errPanicked is what an [Observer] and an [OrderGuard] are told of a call that a panic or a
// Goexit in code of the caller's has ended.
var errPanicked = errors.New("gateway: a panic has ended the call")

// run makes the call: the only way from a method to the wire and back.
func (c *call) run(ctx context.Context, opts []CallOption) (err error) {
	c.started = time.Now()
	refusal := c.cfg.apply(c.operation.name, opts)
	if name, reason := c.client.check(ctx); reason != "" {
		return c.refuse(name, reason)
	}
	c.redactor = c.client.keyring.Redactor()
	if c.cfg.key != nil {
		c.redactor = c.redactor.With(*c.cfg.key)
	}
	c.ctx = c.observeStart(context.WithValue(ctx, callKey{}, c))
	err = errPanicked // until the call returns
	defer func() { c.observeEnd(err) }()
	if err := c.prepare(refusal); err != nil {
		return err
	}
	if c.operation.invoice != nil {
		return c.sendOrder()
	}
	return c.send()
}

// prepare checks the arguments of a call, and completes what it sends. The refusal is that of its
// options.
func (c *call) prepare(refusal *ArgumentError) error {
	if refusal != nil && c.operation.invoice == nil {
		return refusal
	}
	if name, reason := c.client.base.URL(&c.url, c.operation.route, c.operation.args[:], c.operation.query); reason != "" {
		return c.refuse(name, reason)
	}
	if err := c.refuseKeyInArguments(); err != nil {
		return err
	}
	if c.operation.invoice != nil {
		return c.prepareOrder(refusal)
	}
	if err := c.resolveKey(); err != nil {
		return err
	}
	return c.refuseKeyInArguments() // with the key of a source, too
}

// refuseKeyInArguments refuses an argument that has a key in it, which a URL, a record or an error would
// show.
func (c *call) refuseKeyInArguments() error {
	keys := c.redactor
	if keys.Contains(c.cfg.merchant) {
		return c.refuse("WithMerchant", "contains an API key")
	}
	if c.operation.invoice != nil {
		for _, text := range c.operation.invoice.texts() {
			if keys.Contains(text.Value) {
				return c.refuse(text.Name, "contains an API key")
			}
		}
	}
	for _, param := range c.operation.query {
		if keys.Contains(param.Value) {
			return c.refuse(param.Name, "contains an API key")
		}
	}
	for i, arg := range c.operation.args {
		if keys.Contains(arg) {
			return c.refuse(endpoint.Name(c.operation.route, i), "contains an API key")
		}
	}
	return nil
}

// check returns what is wrong with the client or the context of a call.
func (c *Client) check(ctx context.Context) (name, reason string) {
	switch {
	case c == nil || c.cfg == nil:
		return "client", "was not made by New"
	case ctx == nil:
		return "ctx", "must not be nil"
	default:
		return "", ""
	}
}

func (c *call) refuse(name, reason string) *ArgumentError {
	return &ArgumentError{Operation: c.operation.name, Name: name, Reason: reason}
}

// resolveKey finds the key of the call, which must not be empty where it is needed.
func (c *call) resolveKey() error {
	c.key = c.client.key
	switch {
	case c.cfg.key != nil:
		c.key = *c.cfg.key
	case c.client.cfg.keySource != nil && (c.operation.key != keyNowhere || c.client.cfg.keyOnPublic):
		if err := c.keyFromSource(); err != nil {
			return err
		}
	}
	if c.operation.key != keyNowhere && c.key.IsEmpty() {
		missing := c.refuse("apiKey", "is required for this call: give it to New, WithAPIKeySource or WithAPIKey")
		missing.err = ErrMissingAPIKey
		return missing
	}
	return nil
}

func (c *call) keyFromSource() error {
	if c.ctx.Err() != nil {
		return c.contextEnded(PhaseStart)
	}
	timeout := c.client.cfg.retry.AttemptTimeout
	if c.operation.invoice != nil {
		timeout = c.client.cfg.retry.InvoiceTimeout
	}
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	key, err := c.client.cfg.keySource(ctx)
	if err != nil {
		c.redactor = c.redactor.With(redact.NewSecret(key))
		return c.transportError(PhaseStart, fmt.Errorf("the source of the API key: %w", sanitize(err, c.redactor)), attempt.IsNetworkError(err))
	}
	if reason := validate.APIKey(key); reason != "" && key != "" {
		return c.refuse("WithAPIKeySource", "the key "+reason)
	}
	c.key = redact.NewSecret(key)
	c.redactor = c.client.keyring.Add(c.key)
	return nil
}

// send makes the attempts of a call.
func (c *call) send() error {
	if c.ctx.Err() != nil {
		return c.contextEnded(PhaseStart)
	}
	c.library.HTTPClient, c.library.RetryMax = c.client.http(), c.client.cfg.retry.MaxAttempts-1
	c.library.RequestLogHook, c.library.CheckRetry, c.library.Backoff = c.begin, c.check, c.backoff
	c.library.ErrorHandler = retryablehttp.PassthroughErrorHandler
	_, _ = c.library.Do(&retryablehttp.Request{Request: c.newHTTPRequest()}) // check has kept what it returns
	if c.next.Wait > 0 {
		// Do has returned before the next attempt: the context has ended.
		c.failure = c.contextEnded(PhaseBackoff)
	}
	if response := c.cfg.response; response != nil {
		response.StatusCode, response.Attempts, response.Duration = c.status, c.attempts, time.Since(c.started)
	}
	if c.failure != nil && !c.order.unknownSince.IsZero() {
		return c.outcomeUnknown(c.failure)
	}
	return c.failed()
}

// failed returns the failure of the last attempt, or nil.
func (c *call) failed() error {
	if c.failure == nil {
		return nil
	}
	return c.failure
}

// newHTTPRequest returns the request of all attempts. The body of each is made from its
// [attempt.Template]. It has no GetBody: with it, net/http would send an invoice again by itself.
func (c *call) newHTTPRequest() *http.Request {
	req := c.client.request.WithContext(c.ctx)
	req.URL = &c.url
	if c.operation.invoice != nil {
		text := c.order.Request.encode(c.key.Reveal(), c.client.cfg.format)
		req.Method, req.Body, req.ContentLength = http.MethodPost, &attempt.Template{Bytes: text, Expires: c.order.expires}, int64(len(text))
	}
	return req
}

// begin begins an attempt. go-retryablehttp calls it before each.
func (c *call) begin(_ retryablehttp.Logger, req *http.Request, _ int) {
	req.Header = c.newHeader()
	c.attempts++
	c.begun, c.response, c.next.Wait = time.Now(), response{}, 0
}

// newHeader makes the header of an attempt. No attempt shares it with another: a RoundTripper
// could change it.
func (c *call) newHeader() http.Header {
	header := make(http.Header, 5)
	values := [...]string{"application/json", "application/json", c.client.cfg.userAgent, c.order.RequestID, ""}
	accept, contentType, userAgent, requestID, key := values[0:1:1], values[1:2:2], values[2:3:3], values[3:4:4], values[4:]
	header["Accept"], header["User-Agent"] = accept, userAgent
	if c.order.RequestID != "" {
		header[requestIDHeader] = requestID
	}
	for name, values := range c.cfg.header {
		header[name] = slices.Clone(values)
	}
	if c.operation.sendsContentType || c.operation.invoice != nil {
		header["Content-Type"] = contentType
	}
	if c.operation.key == keyInHeader || c.operation.key == keyNowhere && c.client.cfg.keyOnPublic && !c.key.IsEmpty() {
		key[0] = c.key.Reveal()
		header["X-Api-Key"] = key
	}
	return header
}

// check reads the response to an attempt and decides whether another one follows: the policy of
// go-retryablehttp.
func (c *call) check(_ context.Context, resp *http.Response, err error) (bool, error) {
	if err != nil {
		c.failure = c.noResponse(err)
	} else {
		c.failure = c.receive(resp)
	}
	c.next = c.whatFollows()
	c.reportAttempt()
	if c.next.Wait > 0 && c.client.renew != nil && retry.IsHostFailure(c.response.status) {
		c.client.renew(c.begun)
	}
	return c.next.Wait > 0, nil
}

func (c *call) backoff(time.Duration, time.Duration, int, *http.Response) time.Duration {
	return c.next.Wait
}

// whatFollows decides whether another attempt follows, and when.
func (c *call) whatFollows() retry.Next {
	if c.failure == nil {
		c.client.retrier.Refund(c.next.Cost)
		return retry.Next{}
	}
	decision := c.failure.decided()
	if c.operation.invoice != nil && decision.outcome == OutcomeUnknown && c.order.unknownSince.IsZero() {
		c.order.unknownSince = c.begun
	}
	failed := retry.Failure{Retry: decision.transient && c.ctx.Err() == nil && c.mayRepeat(decision)}
	if refusal, ok := c.failure.(*APIError); ok {
		failed.Throttled, failed.After = retry.IsThrottled(refusal.StatusCode), refusal.RetryAfter
	}
	deadline, _ := c.ctx.Deadline()
	next := c.client.retrier.Next(c.attempts, failed, deadline)
	switch failure := c.failure.(type) {
	case *TransportError:
		failure.note = next.Note
	case *APIError:
		failure.note = next.Note
	}
	return next
}

// mayRepeat reports whether another attempt is safe. An invoice is attempted again only if it is
// proved that nothing of it was sent, or with [WithIdempotentOrders].
func (c *call) mayRepeat(failed decision) bool {
	switch {
	case c.operation.invoice == nil:
		return true
	case !c.order.unknownSince.IsZero():
		return c.client.cfg.idempotent
	default:
		return failed.outcome == OutcomeNotSent
	}
}

// decide returns what a failed attempt means for the call. What is proved applies to an invoice
// only.
func (c *call) decide(proved Outcome, transient bool) decision {
	if c.operation.invoice == nil {
		return decision{outcome: OutcomeNotSent, transient: transient, retryable: transient}
	}
	if !c.order.unknownSince.IsZero() {
		proved = OutcomeUnknown
	}
	safe := proved == OutcomeNotSent || proved == OutcomeRejected
	return decision{outcome: proved, transient: transient, retryable: transient && safe && !c.cfg.resubmit}
}

// noResponse makes the error of an attempt without a response.
func (c *call) noResponse(err error) callError {
	cause, _ := errors.AsType[*attempt.Error](err) // a Transport returns no other
	c.response.unread = cause.Unread
	c.client.warning.check(cause.Misuse)
	if errors.Is(cause, attempt.ErrExpired) {
		return c.transportError(PhaseOrder, errLeaseExpired, false)
	}
	return c.transportError(Phase(cause.Phase.String()), sanitize(cause.Err, c.redactor), cause.Retryable())
}

// contextEnded makes the error of a call whose context has ended.
func (c *call) contextEnded(phase Phase) *TransportError {
	return c.transportError(phase, c.ctx.Err(), false)
}

// transportError makes the error of a call, or of an attempt, without a usable response. When the
// caller's context has ended, that is the reason.
func (c *call) transportError(phase Phase, err error, transient bool) *TransportError {
	timeout := attempt.IsTimeout(err)
	if c.ctx.Err() != nil {
		err, transient = contextError(c.ctx, c.redactor), false
		timeout = errors.Is(c.ctx.Err(), context.DeadlineExceeded)
	}
	proved := OutcomeUnknown
	if c.status == 0 && (c.attempts == 0 || c.response.unread) {
		proved = OutcomeNotSent
	}
	failure := &TransportError{Operation: c.operation.name, Phase: phase, Attempts: c.attempts, LastStatus: c.status, Err: err, timeout: timeout}
	failure.decision = c.decide(proved, transient)
	return failure
}
