// Package probe asks a gateway every question that changes nothing there, and compares
// the responses with docs/interface.md: which shape a result has if none is documented,
// which members are new, missing or of another type, and what the client cannot read.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/documented/fields"
)

// callTimeout is how long a call may take, all its attempts together.
const callTimeout = time.Minute

// maxErrorBody is the length from which the body in an error may be cut, in bytes. It has at most 8 KiB,
// and ends with a whole character.
const maxErrorBody = 8000

// A Probe makes one call to a gateway after another. It is not safe for concurrent use.
type Probe struct {
	// Withdrawal is the identifier of one that is inquired about; "" for none.
	Withdrawal string
	// KeyOnPublic reports whether the client sends the key with every call.
	KeyOnPublic bool
	// Print is called after each call, unless it is nil.
	Print func(Call)

	client *gateway.Client
	drifts []gateway.Drift // in the last response
	calls  []Call
}

// Run makes all calls with a client that has the Observer of p, and returns the report
// about the gateway with this base URL. When ctx ends, the report has the calls made
// so far.
func (p *Probe) Run(ctx context.Context, client *gateway.Client, url string) Report {
	p.client, p.calls = client, []Call{}
	p.all(ctx)
	return newReport(url, p.calls)
}

// documentedMessage is the message of a success: I-40.
const documentedMessage = "Operation was successful."

// Observer returns what the client of p needs.
func (p *Probe) Observer() gateway.Observer {
	return gateway.Observer{Drift: func(_ context.Context, d gateway.Drift) { p.drifts = append(p.drifts, d) }}
}

// ask makes a call, records its report, and returns the result in the response as
// JSON values. It does nothing after ctx has ended.
func (p *Probe) ask(ctx context.Context, q question) any {
	if ctx.Err() != nil {
		return nil
	}
	call := Call{Method: q.method, Route: q.route, Skipped: q.skip, Findings: []Finding{}, question: q}
	defer func() {
		p.calls = append(p.calls, call)
		if p.Print != nil {
			p.Print(call)
		}
	}()
	if q.skip != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var r gateway.Response
	p.drifts = nil
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
		call.refused = true
		return nil // the response has the form of an error, not of the result
	}
	_, failed := errors.AsType[*gateway.TransportError](err)
	call.refused = failed || errors.Is(err, gateway.ErrInvalidArgument) // which the client refuses, without a request
	return p.inspect(&call, q, r, err)
}

// inspect reports the shape of a response and its differences from docs/interface.md.
func (p *Probe) inspect(call *Call, q question, r gateway.Response, err error) any {
	c := newChecker()
	at := place{"/result", "/result"}
	result, enveloped := fields.Parse(r.Result)
	if enveloped {
		c.envelope(r, p.drifts)
	} else {
		result, enveloped = undecoded(err)
	}
	if !enveloped {
		at = place{}
	}
	if !enveloped && result == nil {
		failed, ok := errors.AsType[*gateway.DecodeError](err)
		if ok && strings.HasPrefix(failed.Pointer, "/result") && len(failed.Body) >= maxErrorBody && !q.of.Documented {
			call.Shape = &Shape{Kind: shapeUnknown, Enveloped: true, Members: map[string]string{}} // the error has only its beginning
		}
		return nil
	}
	if q.of == fields.Withdrawal && call.Status != http.StatusCreated {
		c.add(otherCode, "I-130", place{}, fmt.Sprintf("%d, not 201", call.Status))
	}
	if !enveloped && q.of.Documented {
		c.add(noEnvelope, "I-38", place{}, "")
	}
	shape, items := recognise(result, at, q.of)
	shape.Enveloped = enveloped
	c.result(items, q.of)
	if err == nil {
		for _, s := range r.Skipped {
			c.add(leftOut, "", place{pointer: s.Pointer}, s.Reason)
		}
	}
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
	whole, ok := fields.Parse(failed.Body)
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
