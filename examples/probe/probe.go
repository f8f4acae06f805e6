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

// A probe asks a gateway one question after another.
type probe struct {
	client     *gateway.Client
	withdrawal string // the identifier of one; "" for none
	drifts     drifts // in the answer to the last question
	calls      []Call
	tell       func(Call) // is told of each call
}

// drifts keeps what the client reports of an answer. It is not safe for
// concurrent use, as an observer must be that is not a probe's: a probe makes
// one call at a time.
type drifts struct{ all []gateway.Drift }

// Attempt implements [gateway.Observer].
func (d *drifts) Attempt(context.Context, gateway.Attempt) {}

// Drift implements [gateway.Observer].
func (d *drifts) Drift(_ context.Context, drift gateway.Drift) { d.all = append(d.all, drift) }

// ask makes a call, notes what came of it, and returns the result of the answer
// as JSON values. It does nothing once ctx has ended.
func (p *probe) ask(ctx context.Context, q question) any {
	if ctx.Err() != nil {
		return nil
	}
	call := Call{Method: q.method, Route: q.route, Skipped: q.skip, Findings: []Finding{}}
	defer func() {
		p.calls = append(p.calls, call)
		p.tell(call)
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
		return nil // it is built as errors are, and not as the result would be
	}
	return p.look(&call, q, r, err)
}

// look says how an answer is built, and where it is not as it should be.
func (p *probe) look(call *Call, q question, r gateway.Response, err error) any {
	c := newChecker()
	at := place{"/result", "/result"}
	result, enveloped := parse(r.Result)
	if enveloped {
		c.envelope(r, p.drifts.all)
	} else {
		result, enveloped = unclear(err)
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

// unclear finds a result in an answer that the client could not take apart, or
// what stands there instead of an envelope; nil is neither.
func unclear(err error) (result any, enveloped bool) {
	answer, ok := errors.AsType[*gateway.DecodeError](err)
	if !ok {
		return nil, false
	}
	whole, ok := parse(answer.Body)
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

// textAt returns the text of a member of a member, or of what is none, "".
func textAt(value any, path ...string) string {
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	text, _ := value.(string)
	return text
}
