package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cryptogw/gateway"
)

// callTimeout is how long a call may take, all its attempts together.
const callTimeout = time.Minute

// A probe makes one call to a gateway after another.
type probe struct {
	client     *gateway.Client
	withdrawal string // the identifier of one; "" for none
	drifts     drifts // in the last response
	calls      []Call
	print      func(Call) // prints each call
}

// drifts collects the drift that the client reports. Unlike other observers it
// need not be safe for concurrent use, because a probe makes one call at a time.
type drifts struct {
	gateway.NopObserver
	all []gateway.Drift
}

// Drift implements [gateway.Observer].
func (d *drifts) Drift(_ context.Context, drift gateway.Drift) { d.all = append(d.all, drift) }

// ask makes a call, records its report, and returns the result in the response as
// JSON values. It does nothing after ctx has ended.
func (p *probe) ask(ctx context.Context, q question) any {
	if ctx.Err() != nil {
		return nil
	}
	call := Call{Method: q.method, Route: q.route, Skipped: q.skip, Findings: []Finding{}}
	defer func() {
		p.calls = append(p.calls, call)
		p.print(call)
	}()
	if q.skip != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var r gateway.Response
	p.drifts.all = nil
	_, err := q.send(ctx, gateway.WithResponse(&r))
	if errors.Is(err, gateway.ErrInvalidArgument) && errors.Is(err, gateway.ErrMissingAPIKey) {
		call.Skipped = "it needs a key: set GATEWAY_API_KEY or GATEWAY_API_KEY_FILE"
		return nil
	}
	call.Status, call.Attempts, call.Milliseconds = r.StatusCode, r.Attempts, r.Duration.Milliseconds()
	if err != nil {
		call.Error = err.Error()
	}
	if _, refused := errors.AsType[*gateway.APIError](err); refused {
		return nil // the response has the form of an error, not of the result
	}
	return p.inspect(&call, q, r, err)
}

// inspect reports the shape of a response and its differences from docs/interface.md.
func (p *probe) inspect(call *Call, q question, r gateway.Response, err error) any {
	c := newChecker()
	at := place{"/result", "/result"}
	result, enveloped := parse(r.Result)
	if enveloped {
		c.envelope(r, p.drifts.all)
	} else {
		result, enveloped = undecoded(err)
	}
	if !enveloped {
		at = place{}
	}
	if !enveloped && result == nil {
		return nil
	}
	if q.of == withdrawal && call.Status != http.StatusCreated {
		c.add(otherCode, place{}, fmt.Sprintf("%d, not 201", call.Status))
	}
	shape, items := recognise(result, at, q.of)
	shape.Enveloped = enveloped
	c.result(items, q.of)
	call.Shape, call.Findings = &shape, c.findings
	return result
}

// undecoded returns the result in a response that the client could not decode, or
// the whole body if it is JSON without an envelope, or nil.
func undecoded(err error) (result any, enveloped bool) {
	failed, ok := errors.AsType[*gateway.DecodeError](err)
	if !ok {
		return nil, false
	}
	whole, ok := parse(failed.Body)
	if !ok {
		return nil, false
	}
	if envelope, isObject := whole.(map[string]any); isObject {
		if result, enveloped := envelope["result"]; enveloped {
			return result, true
		}
	}
	return whole, false
}

// textAt returns the text of the member at a path, or "" if there is none.
func textAt(value any, path ...string) string {
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	text, _ := value.(string)
	return text
}
