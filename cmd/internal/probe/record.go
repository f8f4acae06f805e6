package probe

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/cryptogw/gateway/gatewaytest"
)

// maxRecorded is the largest body of a response that is recorded, in bytes.
const maxRecorded = 32 << 20

// A Recorder is a transport that remembers the last response, so that a [Probe] makes a
// profile of the gateway. It is safe for concurrent use by no more than one call at a time.
type Recorder struct {
	Base    http.RoundTripper // sends the requests
	Profile gatewaytest.Profile

	last *gatewaytest.Exchange // nil without a response
}

// RoundTrip implements [http.RoundTripper].
func (r *Recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.last = nil
	response, err := r.Base.RoundTrip(request)
	if err != nil {
		return response, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRecorded+1))
	_ = response.Body.Close()
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxRecorded:
		return nil, fmt.Errorf("the response is larger than %d bytes, which is more than is recorded", maxRecorded)
	}
	r.last = &gatewaytest.Exchange{Keyed: request.Header.Get("X-Api-Key") != "", Status: response.StatusCode, Body: body}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// keep adds the response to a question to the profile.
func (r *Recorder) keep(q question) error {
	if r == nil || r.last == nil {
		return nil
	}
	e := *r.last
	e.Operation, e.Narrowed = q.operation, q.narrowed
	return r.Profile.Record(e)
}
