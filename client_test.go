package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// What a base URL must be is tested in package endpoint. Here it is refused by name,
// and an unencrypted one is.
// I-3
func TestNew_baseURL(t *testing.T) {
	t.Parallel()
	const insecure = "plain http is for this machine only"
	for _, tt := range []struct{ name, url, reason string }{
		{"an empty URL", "", "is required"},
		{"an unreadable URL with a password", "https://user:s3cret@h:x", "is not a URL"},
		{"plain http to another machine", "http://api.example", insecure},
		{"a host that only looks local", "http://localhost.example", insecure},
		{"a user and a password", "https://user:s3cret@h", "must not hold a user or password"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New(tt.url, canary)
			assert.Nil(t, c)
			assertRefused(t, err, "new", "baseURL", tt.reason)
			assert.NotContains(t, fmt.Sprintf("%+v", err), "s3cret")
		})
	}
}

// I-3
func TestNew_baseURLAccepted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, url string
		opts      []gateway.Option
	}{
		{"plain http by choice", "http://api.example", []gateway.Option{gateway.WithPlainHTTP()}},
		{"this machine", "http://localhost", nil},
		{"a prefix", "https://gateway.example/merchant", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New(tt.url, canary, tt.opts...)
			require.NoError(t, err)
			assert.NotNil(t, c)
		})
	}
}

// I-29
func TestNew_apiKey(t *testing.T) {
	t.Parallel()
	for _, tt := range badKeys {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New("https://gateway.example", tt.key)
			assert.Nil(t, c)
			assertRefused(t, err, "new", "apiKey", tt.reason)
		})
	}
	t.Run("4,096 bytes are sent whole", func(t *testing.T) {
		t.Parallel()
		key := strings.Repeat("k", 4096)
		w := serve(t, respond(200, enveloped(`{"USDT":"1"}`)))
		c, err := gateway.New(w.URL, key)
		require.NoError(t, err)
		_, err = c.Balance(t.Context(), gateway.BalanceQuery{})
		require.NoError(t, err)
		assert.Equal(t, key, only(t, w).Header.Get("X-Api-Key"))
	})
}

// A countingCloser is a RoundTripper that counts how often its idle connections are closed.
type countingCloser struct {
	http.RoundTripper
	closed int
}

func (c *countingCloser) CloseIdleConnections() { c.closed++ }

// The idle connections are those of the caller's transport; errors of calls do not close them.
func TestClient_CloseIdleConnections(t *testing.T) {
	t.Parallel()
	counting := &countingCloser{RoundTripper: tripper(respondAlways(404))}
	c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: counting}))
	for range 3 {
		require.Error(t, withdrawal(t.Context(), c))
	}
	assert.Zero(t, counting.closed)
	c.CloseIdleConnections()
	assert.Equal(t, 1, counting.closed)

	newClient(t, "http://localhost", through(respondAlways(404))).CloseIdleConnections() // a RoundTripper without the method
	w := serve(t, respond(201, enveloped(withdrawalJSON)))
	own, err := gateway.New(w.URL, canary)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, withdrawal(t.Context(), own))
		own.CloseIdleConnections()
	}
}
