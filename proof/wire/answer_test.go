package wire

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// An answer is a RoundTripper that responds to every request in the same way, without a
// network: for what responses cost, and what they may be.
type answer struct {
	status int
	body   []byte
}

func (a *answer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a.body)),
	}, nil
}

// answering returns a client that gets this answer, once, and has no order guard.
func answering(t testing.TB, a *answer, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	c, err := gateway.New("https://gateway.example/merchant", canary, append([]gateway.Option{
		gateway.WithHTTPClient(&http.Client{Transport: a}), gateway.WithOrderGuard(nil),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}),
	}, opts...)...)
	require.NoError(t, err)
	return c
}

// answered returns a client that gets this response.
func answered(t testing.TB, status int, body string, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	return answering(t, &answer{status, []byte(body)}, opts...)
}

// causeOf is the cause of an unknown outcome, or any other error itself.
func causeOf(err error) error {
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		return unknown.Cause
	}
	return err
}
