package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/validate"
)

// A call describes an API call: route, arguments, place of the key and payload.
type call struct {
	op               string
	route            string    // each {name} is replaced by an argument
	args             [2]string // for the route, in its order
	query            []endpoint.Param
	expectID         string // the identifier that the record in the response must have; empty for any
	key              keyPlace
	sendsContentType bool    // also for a read
	write            payload // what is posted; nil for a read

	// statusIn finds the status in the body of a record that cannot be decoded; nil for
	// a record without one.
	statusIn func(body []byte) string
}

// A payload is the body of a write.
type payload interface {
	check() (name, reason string)
	order() string
	encode(key string, format InvoiceFormat) []byte
}

// A keyPlace is where the key goes: docs/interface.md, I-30 to I-34.
type keyPlace int8

const (
	keyNowhere keyPlace = iota // not stated to be needed
	keyInHeader
	keyInBody
)

// A request holds the checked inputs of one API call.
type request struct {
	client *Client
	ctx    callContext
	call   call
	cfg    callConfig
	key    redact.Secret
	keys   redact.Redactor // removes every key that a response may repeat

	url    url.URL
	header http.Header
	values [4]string // of the header
}

// prepare checks everything that a caller can get wrong, and completes the request.
func (r *request) prepare(ctx context.Context, opts []CallOption) error {
	if refusal := r.cfg.apply(r.call.op, opts); refusal != nil {
		return refusal
	}
	if name, reason := r.client.check(ctx); reason != "" {
		return r.refuse(name, reason)
	}
	if name, reason := r.client.base.URL(&r.url, r.call.route, r.call.args[:], r.call.query); reason != "" {
		return r.refuse(name, reason)
	}
	if r.call.write != nil {
		if name, reason := r.call.write.check(); reason != "" {
			return r.refuse(name, reason)
		}
	}
	r.ctx, r.keys = callContext{ctx, r}, r.client.keyring.Redactor()
	if err := r.resolveKey(); err != nil {
		return err
	}
	r.header = r.newHeader(&r.values)
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

func (r *request) refuse(name, reason string) *ArgumentError {
	return &ArgumentError{Operation: r.call.op, Name: name, Reason: reason}
}

// resolveKey finds the key of the call, which must not be empty where it is needed.
func (r *request) resolveKey() error {
	r.key = r.client.key
	switch {
	case r.cfg.key != nil:
		r.key = *r.cfg.key
		r.keys = r.keys.With(r.key)
	case r.client.cfg.keySource != nil && (r.call.key != keyNowhere || r.client.cfg.keyOnPublic):
		if err := r.keyFromSource(); err != nil {
			return err
		}
	}
	if r.call.key != keyNowhere && r.key.IsEmpty() {
		missing := r.refuse("apiKey", "is required for this call: give it to New, WithAPIKeySource or WithAPIKey")
		missing.err = ErrMissingAPIKey
		return missing
	}
	return nil
}

func (r *request) keyFromSource() error {
	if r.ctx.Err() != nil {
		return r.notSentError(r.ctx.Err())
	}
	key, err := r.client.cfg.keySource(&r.ctx)
	if err != nil {
		r.keys = r.keys.With(redact.NewSecret(key))
		failure := r.notSentError(fmt.Errorf("the source of the API key: %w", sanitize(err, r.keys)))
		failure.retryable = r.ctx.Err() == nil && attempt.IsNetworkError(err)
		return failure
	}
	if reason := validate.APIKey(key); reason != "" && key != "" {
		return r.refuse("WithAPIKeySource", "the key "+reason)
	}
	r.key = redact.NewSecret(key)
	r.keys = r.client.keyring.Add(r.key)
	return nil
}

// newHeader makes the header of an attempt, in values. No attempt shares it with another:
// a RoundTripper could change it, also after its attempt.
func (r *request) newHeader(values *[4]string) http.Header {
	*values = [...]string{"application/json", "application/json", r.client.cfg.userAgent, ""}
	accept, contentType, userAgent, key := values[0:1:1], values[1:2:2], values[2:3:3], values[3:]
	header := make(http.Header, 4)
	header["Accept"], header["User-Agent"] = accept, userAgent
	for name, values := range r.cfg.header {
		header[name] = slices.Clone(values)
	}
	if r.call.sendsContentType || r.call.write != nil {
		header["Content-Type"] = contentType
	}
	if r.call.key == keyInHeader || r.call.key == keyNowhere && r.client.cfg.keyOnPublic && !r.key.IsEmpty() {
		key[0] = r.key.Reveal()
		header["X-Api-Key"] = key
	}
	return header
}

// newBody returns the body of one attempt of a write.
func (r *request) newBody() *attempt.Body {
	return attempt.NewBody(r.call.write.encode(r.key.Reveal(), r.client.cfg.format))
}

// newHTTPRequest returns the request of the first attempt, without its body, and without
// its header, which the sender sets. It has no GetBody: with it, net/http would send an
// invoice again by itself.
func (r *request) newHTTPRequest() *http.Request {
	req := http.Request{
		Method: http.MethodGet, URL: &r.url, Host: r.client.base.Host(), Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if r.call.write != nil {
		req.Method = http.MethodPost
	}
	return req.WithContext(&r.ctx)
}

// A callContext is the caller's context during a call, which also has the
// operation and the merchant.
type callContext struct {
	context.Context
	request *request
}

type operationKey struct{}

// Value implements [context.Context].
func (c *callContext) Value(key any) any {
	switch key {
	case operationKey{}:
		return c.request.call.op
	case merchantKey{}:
		if name := c.request.merchant(); name != "" {
			return name
		}
		return nil
	}
	return c.Context.Value(key)
}
