package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/caller"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
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
	write            *InvoiceRequest // what is posted; nil for a read
	connects         bool            // a connection for the route is opened, and nothing is sent

	// statusIn finds the status in the body of a record that cannot be decoded; nil for
	// a record without one.
	statusIn func(body []byte) string
}

// A keyPlace is where the key goes: docs/interface.md, I-30 to I-34.
type keyPlace int8

const (
	keyNowhere keyPlace = iota // not stated to be needed
	keyInHeader
	keyInBody
)

// A call is one use of an operation: its inputs, which do not change once they are
// checked, and how far it has come.
type call struct {
	operation operation
	client    *Client
	ctx       callContext
	cfg       callConfig
	key       redact.Secret
	redactor  redact.Redactor // removes every key that a response may repeat
	url       url.URL
	values    [5]string // of the header of the first attempt
	requestID string    // of an invoice; empty for none
	invalid   error     // what is wrong with an invoice, its options or its key; nil for nothing

	requestInvalid bool // it is the request that is wrong

	progress
}

// prepare checks the arguments of a call, and completes its inputs. A refusal is what is wrong with
// its options.
func (c *call) prepare(ctx context.Context, refusal *ArgumentError) error {
	if refusal != nil && (c.operation.write == nil || c.cfg.nobody || c.cfg.badKey && c.cfg.merchant == "") {
		return refusal
	}
	if name, reason := c.client.check(ctx); reason != "" {
		return c.refuse(name, reason)
	}
	if name, reason := c.client.base.URL(&c.url, c.operation.route, c.operation.args[:], c.operation.query); reason != "" {
		return c.refuse(name, reason)
	}
	if c.operation.connects && !c.client.writes().CanPrepare() {
		return c.refuse("WithHTTPClient", "has a RoundTripper that opens no connection before a request: an http.Transport does, and one of InvoiceTransport")
	}
	c.ctx, c.redactor = callContext{ctx, c}, c.client.keyring.Redactor()
	if c.operation.write != nil {
		return c.prepareInvoice(refusal)
	}
	return c.resolveKey()
}

// prepareInvoice keeps what is wrong until the guard has admitted the order: it says nothing about
// an earlier call. What leaves unsaid which order it is, is an error at once.
func (c *call) prepareInvoice(refusal *ArgumentError) error {
	c.unsent = true
	if c.client.cfg.guard != nil && c.client.cfg.keySource != nil && c.cfg.key != nil && c.cfg.merchant == "" {
		return c.refuse("WithMerchant", "is required with a key of WithAPIKey beside WithAPIKeySource: the key does not say whose order it is")
	}
	name, reason := c.operation.write.check()
	if name == "orderId" {
		return c.refuse(name, reason)
	}
	switch {
	case reason != "":
		c.requestInvalid, c.invalid = true, c.refuse(name, reason)
	case refusal != nil:
		c.invalid = refusal
	default:
		c.invalid = c.resolveKey()
	}
	if c.invalid == nil {
		c.requestID = c.newRequestID()
	}
	return nil
}

// ready checks what is checked last, for an invoice when the guard has admitted the order.
func (c *call) ready() error {
	if c.invalid != nil {
		return c.invalid
	}
	if c.ctx.Err() != nil {
		return c.transportError(fault{phase: PhaseStart, err: c.ctx.Err()})
	}
	return nil
}

// requestIDHeader names the header of an invoice by which the operator of the gateway can find
// its request in a log. The interface does not document it, so that a gateway ignores it.
const requestIDHeader = "X-Request-Id"

// newRequestID returns the identifier of a call that creates an invoice, or "".
func (c *call) newRequestID() string {
	switch set := c.cfg.header.Get(requestIDHeader); {
	case set != "":
		return c.redactor.Text(set)
	case c.client.cfg.noRequestID:
		return ""
	default:
		return rand.Text()
	}
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
		c.redactor = c.redactor.With(c.key)
	case c.client.cfg.keySource != nil && (c.operation.key != keyNowhere || c.client.cfg.keyOnPublic && !c.operation.connects):
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
		return c.transportError(fault{phase: PhaseStart, err: c.ctx.Err()})
	}
	type result struct {
		key string
		err error
	}
	got, finished := caller.Await(&c.ctx, c.longestAttempt(), func() (r result) {
		r.key, r.err = c.client.cfg.keySource(&c.ctx)
		return r
	}, nil)
	if !finished {
		return c.transportError(fault{phase: PhaseStart, err: errKeySource})
	}
	key, err := got.key, got.err
	if err != nil {
		err = caller.Examined(err)
		c.redactor = c.redactor.With(redact.NewSecret(key))
		return c.transportError(fault{
			phase: PhaseStart, again: attempt.IsNetworkError(err),
			err: fmt.Errorf("the source of the API key: %w", sanitize(err, c.redactor)),
		})
	}
	if reason := validate.APIKey(key); reason != "" && key != "" {
		return c.refuse("WithAPIKeySource", "the key "+reason)
	}
	c.key = redact.NewSecret(key)
	c.redactor = c.client.keyring.Add(c.key)
	return nil
}

// errKeySource is why a call without a key was ended.
var errKeySource = errors.New("the source of the API key has not returned")

// longestAttempt is how long an attempt of the call may take.
func (c *call) longestAttempt() time.Duration {
	if c.operation.write != nil || c.operation.connects {
		return c.client.cfg.retry.InvoiceTimeout
	}
	return c.client.cfg.retry.AttemptTimeout
}

// newHeader makes the header of an attempt. No attempt shares it with another: a RoundTripper
// could change it, also after its attempt.
func (c *call) newHeader() http.Header {
	values := &c.values
	if c.attempts > 1 {
		values = new([5]string)
	}
	*values = [...]string{"application/json", "application/json", c.client.cfg.userAgent, c.requestID, ""}
	accept, contentType, userAgent, requestID, key := values[0:1:1], values[1:2:2], values[2:3:3], values[3:4:4], values[4:]
	header := make(http.Header, 5)
	header["Accept"], header["User-Agent"] = accept, userAgent
	if c.requestID != "" {
		header[requestIDHeader] = requestID
	}
	for name, values := range c.cfg.header {
		header[name] = slices.Clone(values)
	}
	if c.operation.sendsContentType || c.operation.write != nil {
		header["Content-Type"] = contentType
	}
	if c.operation.key == keyInHeader || c.operation.key == keyNowhere && c.client.cfg.keyOnPublic && !c.key.IsEmpty() {
		key[0] = c.key.Reveal()
		header["X-Api-Key"] = key
	}
	return header
}

// newBody returns the body of one attempt of a write.
func (c *call) newBody() *attempt.Body {
	return attempt.NewBody(c.operation.write.encode(c.key.Reveal(), c.client.cfg.format), c.until)
}

// newHTTPRequest returns what the requests of all attempts share: each is sent with a header
// and a body of its own. It has no GetBody: with it, net/http would send an invoice again by
// itself.
func (c *call) newHTTPRequest() *http.Request {
	req := http.Request{
		Method: http.MethodGet, URL: &c.url, Host: c.client.base.Host(), Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if c.operation.write != nil || c.operation.connects {
		req.Method = http.MethodPost
	}
	return req.WithContext(&c.ctx)
}

// A callContext is the caller's context during a call, which also has the call.
type callContext struct {
	context.Context
	call *call
}

// Unwrap returns the caller's context.
func (c *callContext) Unwrap() context.Context { return c.Context }

// Value implements [context.Context].
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call.described()
	}
	return c.Context.Value(key)
}
