package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// tagged responds with additional headers.
func tagged(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "req-1")
		w.Header().Set("X-Other", "o")
		respond(status, body)(w, r)
	}
}

// I-39, I-40, I-41
func TestWithResponse_success(t *testing.T) {
	t.Parallel()
	forEach(t, "everything that came", func(t *testing.T, s subject) {
		body := `{"message":"Operation was successful.","result": ` + s.result + ` ,"meta":{"page": null}}`
		w := serve(t, tagged(s.status, body))
		var response gateway.Response
		_, err := s.call(t.Context(), newClient(t, w.URL), gateway.WithResponse(&response))
		require.NoError(t, err)
		assert.Equal(t, s.status, response.StatusCode)
		assert.Equal(t, "req-1", response.Header.Get("X-Request-Id"))
		assert.Equal(t, "o", response.Header.Get("X-Other"))
		assert.Equal(t, "Operation was successful.", response.Message)
		assert.Equal(t, `{"page": null}`, string(response.Meta))
		assert.Equal(t, s.result, string(response.Result), "the result byte for byte")
		assert.Equal(t, 1, response.Attempts)
		assert.Positive(t, response.Duration)
		assertNoKey(t, response)
		assertNoKey(t, &response)
	})
}

func TestWithResponse_refusal(t *testing.T) {
	t.Parallel()
	forEach(t, "the envelope of a refusal", func(t *testing.T, s subject) {
		w := serve(t, tagged(404, `{"message":"Not found","result":[],"meta":{"a":1}}`))
		var response gateway.Response
		got, err := s.call(t.Context(), newClient(t, w.URL), gateway.WithResponse(&response))
		assertInvariants(t, got, err)
		require.Error(t, err)
		assert.Equal(t, 404, response.StatusCode)
		assert.Equal(t, "req-1", response.Header.Get("X-Request-Id"))
		assert.Equal(t, "Not found", response.Message)
		assert.Equal(t, `{"a":1}`, string(response.Meta))
		assert.Equal(t, "[]", string(response.Result))
		assert.Equal(t, 1, response.Attempts)
		assert.Positive(t, response.Duration)
		assertNoKey(t, response)
	})
	forEach(t, "a refusal with success in its status", func(t *testing.T, s subject) {
		var response gateway.Response
		c := cannedClient(t, 200, refused("Not today"))
		_, err := s.call(t.Context(), c, gateway.WithResponse(&response))
		require.Error(t, err)
		assert.Equal(t, 200, response.StatusCode)
		assert.Equal(t, "Not today", response.Message)
		assert.Equal(t, "[]", string(response.Result))
	})
	forEach(t, "a page", func(t *testing.T, s subject) {
		var response gateway.Response
		c := cannedClient(t, 501, "<html>")
		_, err := s.call(t.Context(), c, gateway.WithResponse(&response))
		require.Error(t, err)
		assert.Equal(t, 501, response.StatusCode)
		assert.Equal(t, "application/json", response.Header.Get("Content-Type"))
		assert.Empty(t, response.Message)
		assert.Nil(t, response.Meta)
		assert.Nil(t, response.Result)
	})
}

// WithResponse returns the whole of a response that cannot be decoded.
func TestWithResponse_decodeError(t *testing.T) {
	t.Parallel()
	bad := "[" + strings.Repeat(written(pairFields, "confirmation", `"x"`)+",", 40) + "null]"
	var response gateway.Response
	c := cannedClient(t, 200, enveloped(bad))
	_, err := c.CoinNetworks(t.Context(), gateway.WithResponse(&response))
	var wrong *gateway.DecodeError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "/result/0/confirmation", wrong.Pointer)
	assert.Equal(t, 200, response.StatusCode)
	assert.Equal(t, 1, response.Attempts)
	assert.Equal(t, bad, string(response.Result), "the raw result is what the error is about")
}

func TestWithResponse_noResponse(t *testing.T) {
	t.Parallel()
	forEach(t, "there is no response", func(t *testing.T, s subject) {
		response := gateway.Response{StatusCode: 1, Message: "old", Attempts: 9}
		c := newClient(t, "https://gateway.example", once(), gateway.WithHTTPClient(&http.Client{Transport: broken{}}))
		got, err := s.call(t.Context(), c, gateway.WithResponse(&response))
		assertInvariants(t, got, err)
		require.Error(t, err)
		assert.Zero(t, response.StatusCode)
		assert.Empty(t, response.Message)
		assert.Nil(t, response.Header)
		assert.Equal(t, 1, response.Attempts)
	})
	forEach(t, "earlier contents are overwritten, although nothing is sent", func(t *testing.T, s subject) {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		response := gateway.Response{StatusCode: 200, Message: "old", Attempts: 9}
		_, err := s.call(ended, cannedClient(t, 200, s.body()), gateway.WithResponse(&response))
		require.Error(t, err)
		assert.Zero(t, response.StatusCode)
		assert.Empty(t, response.Message)
		assert.Zero(t, response.Attempts)
	})
	t.Run("earlier contents are overwritten, although an argument is refused", func(t *testing.T) {
		t.Parallel()
		response := gateway.Response{StatusCode: 200, Message: "old", Attempts: 9}
		_, err := cannedClient(t, 200, "").CoinNetwork(t.Context(), "", gateway.WithResponse(&response))
		require.ErrorIs(t, err, gateway.ErrInvalidArgument)
		assert.Equal(t, gateway.Response{}, response)
	})
}

// broken is a transport without a network behind it.
type broken struct{}

func (broken) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, io.ErrUnexpectedEOF
}

// A Response holds one response, the last.
func TestWithResponse_IsTheLastResponse(t *testing.T) {
	t.Parallel()
	cut := func() (*http.Response, error) {
		whole := `{"message":"first","meta":{"first":1},"result":` + withdrawalJSON + `,`
		got := reply(201, whole, "X-First", "1")
		got.Body = io.NopCloser(io.MultiReader(strings.NewReader(whole), brokenReader{io.ErrUnexpectedEOF}))
		return got, nil
	}
	refuse := func(status int) func() (*http.Response, error) {
		return func() (*http.Response, error) { return reply(status, refused("No.")), nil }
	}
	for _, tt := range []struct {
		name    string
		second  func() (*http.Response, error)
		status  int
		message string
		result  string
	}{
		{"a refusal", refuse(404), 404, "No.", "[]"},
		{"a page", func() (*http.Response, error) { return reply(404, "<html>"), nil }, 404, "", ""},
		{"nothing", func() (*http.Response, error) { return reply(501, ""), nil }, 501, "", ""},
		{"a refusal until the last attempt", refuse(503), 503, "No.", "[]"},
		{"a page until the last attempt", func() (*http.Response, error) { return reply(503, "<html>"), nil }, 503, "", ""},
		{"a redirect", func() (*http.Response, error) { return reply(302, ""), nil }, 302, "", ""},
		{"a success", func() (*http.Response, error) { return reply(201, enveloped(withdrawalJSON)), nil }, 201, "Operation was successful.", withdrawalJSON},
		{"a response without a result", func() (*http.Response, error) { return reply(201, `{"message":"m"}`), nil }, 201, "m", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				response := gateway.Response{StatusCode: 1, Message: "old", Result: json.RawMessage("1")}
				p := paced(t, gateway.RetryPolicy{}, cut, tt.second)
				_, _ = p.client.Withdrawal(t.Context(), requestID, gateway.WithResponse(&response))
				assert.Equal(t, tt.status, response.StatusCode)
				assert.Equal(t, tt.message, response.Message)
				assert.Equal(t, tt.result, string(response.Result))
				assert.NotContains(t, string(response.Meta), "first")
				assert.NotContains(t, response.Header, "X-First")
				assert.Equal(t, len(p.at), response.Attempts)
			})
		})
	}
}
