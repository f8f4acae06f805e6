package gateway

import (
	"context"
	"fmt"
	"net/http"
)

// newRequest checks everything that a caller can get wrong, and prepares what
// the request of each attempt is made of.
func (x *exchange) newRequest(ctx context.Context, opts []CallOption) error {
	if refusal := x.cfg.apply(x.call.op, opts); refusal != nil {
		return refusal
	}
	name, reason := x.client.checkCall(ctx)
	if reason != "" {
		return x.refuse(name, reason)
	}
	name, reason = x.client.base.aim(&x.target, &x.call)
	if reason == "" && x.call.write != nil {
		name, reason = x.call.write.check()
	}
	if reason != "" {
		return x.refuse(name, reason)
	}
	x.ctx, x.keys = callContext{ctx, x.call.op}, x.client.ring.keys()
	if err := x.takeKey(); err != nil {
		return err
	}
	x.header = x.newHeader()
	return nil
}

func (x *exchange) refuse(name, reason string) error {
	return &ArgumentError{Op: x.call.op, Name: name, Reason: reason}
}

// takeKey finds the key of the call, which it must have where it is sent.
func (x *exchange) takeKey() error {
	x.key = x.client.key
	switch {
	case x.cfg.key != nil:
		x.key = *x.cfg.key
		x.keys = x.keys.with(x.key)
	case x.client.cfg.keySource != nil && x.mayNeedKey():
		if err := x.askForKey(); err != nil {
			return err
		}
	}
	if x.call.key != keyNowhere && x.key.empty() {
		return &ArgumentError{
			Op: x.call.op, Name: "apiKey", err: ErrMissingAPIKey,
			Reason: "is required for this call: give it to New, WithAPIKeySource or WithAPIKey",
		}
	}
	return nil
}

func (x *exchange) mayNeedKey() bool {
	return x.call.key != keyNowhere || x.client.cfg.keyOnPublic
}

// askForKey asks the source that the caller has given.
func (x *exchange) askForKey() error {
	if x.ctx.Err() != nil {
		return x.transportError(PhaseStart, x.ctx.Err())
	}
	key, err := x.client.cfg.keySource(&x.ctx)
	if err != nil {
		x.keys = x.keys.with(newSecret(key))
		failure := x.transportError(PhaseStart, fmt.Errorf("the source of the API key: %w", foreign(err, x.keys)))
		failure.passing = x.ctx.Err() == nil && ioFault(err)
		return failure
	}
	if reason := checkKey(key); reason != "" && key != "" {
		return &ArgumentError{Op: x.call.op, Name: "WithAPIKeySource", Reason: "the key " + reason}
	}
	x.key = newSecret(key)
	x.keys = x.client.ring.add(x.key)
	return nil
}

// newAttemptRequest makes the request of one attempt. Those of a call share the
// URL and the header. Each of an invoice has a latch of its own, and no GetBody:
// with it net/http would replay the body by itself.
func (x *exchange) newAttemptRequest(ctx context.Context) *http.Request {
	req := &http.Request{
		Method: http.MethodGet, URL: &x.target, Host: x.client.base.host, Header: x.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if x.call.write != nil {
		x.latch = newLatch(x.call.write.encode(x.key.reveal(), x.client.cfg.format))
		req.Method, req.Body, req.ContentLength = http.MethodPost, x.latch, int64(x.latch.Len())
	}
	return req.WithContext(ctx)
}

// newHeader makes the header of a request. No call shares its values with
// another, for a RoundTripper could change them.
func (x *exchange) newHeader() http.Header {
	x.values = [...]string{"application/json", "application/json", x.client.cfg.userAgent, x.key.reveal()}
	accept, contentType, userAgent, key := x.values[0:1:1], x.values[1:2:2], x.values[2:3:3], x.values[3:]
	header := make(http.Header, 4)
	header["Accept"], header["User-Agent"] = accept, userAgent
	for name, values := range x.cfg.header {
		header[name] = values
	}
	if x.call.json || x.call.write != nil {
		header["Content-Type"] = contentType
	}
	if x.sendsKeyHeader() {
		header["X-Api-Key"] = key
	}
	return header
}

func (x *exchange) sendsKeyHeader() bool {
	if x.call.key == keyNowhere {
		return x.client.cfg.keyOnPublic && !x.key.empty()
	}
	return x.call.key == keyInHeader
}

// A callContext is the context of the caller during a call, which also knows
// the operation.
type callContext struct {
	context.Context
	op string
}

type operationKey struct{}

// Value implements [context.Context].
func (c *callContext) Value(key any) any {
	if key == (operationKey{}) {
		return c.op
	}
	return c.Context.Value(key)
}
