package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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
	source := gateway.WithAPIKeySource(func(context.Context) (string, error) { return canary, nil })
	for _, tt := range []struct {
		name, key, reason string
		opts              []gateway.Option
	}{
		{"no key", "", "is required; a client without a key of its own needs WithAPIKeySource or WithoutAPIKey", nil},
		{"a key beside a source", canary, "must be empty with WithAPIKeySource", []gateway.Option{source}},
		{"a key in a client without one", canary, "must be empty with WithoutAPIKey", []gateway.Option{gateway.WithoutAPIKey()}},
		{"a source instead", "", "", []gateway.Option{source}},
		{"a client without a key", "", "", []gateway.Option{gateway.WithoutAPIKey()}},
		{"a source for named merchants", "", "", []gateway.Option{source, gateway.WithoutAPIKey()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := gateway.New("https://gateway.example", tt.key, tt.opts...)
			if tt.reason == "" {
				assert.NoError(t, err)
				return
			}
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

// A leasing guard says how long its leases are.
type leasing struct {
	gateway.OrderGuard
	lease time.Duration
}

func (g leasing) Lease() time.Duration { return g.lease }

func TestNew_lease(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		lease  time.Duration
		opts   []gateway.Option
		reason string
	}{
		{"the default of sqlguard", 5 * time.Minute, nil, ""},
		{"three attempts of a minute and two pauses of 5 s, less a second", 189 * time.Second, nil,
			"the lease of the guard is 3m9s, and must be longer than an invoice may take, which is 3m10s by WithRetry"},
		{"nothing is left for asking the guard", 190 * time.Second, nil, "the lease of the guard is 3m10s"},
		{"a little is left", 191 * time.Second, nil, ""},
		{"pauses that a response asks for", 4 * time.Minute, []gateway.Option{gateway.WithIdempotentOrders()}, "is 4m0s, and must be longer than an invoice may take, which is 4m0s"},
		{"one attempt", 61 * time.Second, []gateway.Option{once()}, ""},
		{"the Timeout of the http.Client", 100 * time.Second, []gateway.Option{gateway.WithHTTPClient(&http.Client{Timeout: 30 * time.Second})}, "which is 1m40s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			guard := leasing{new(gateway.MemoryGuard), tt.lease}
			_, err := gateway.New("https://gateway.example", canary, append(tt.opts, gateway.WithOrderGuard(guard))...)
			if tt.reason == "" {
				assert.NoError(t, err)
				return
			}
			assertRefused(t, err, "new", "WithOrderGuard", tt.reason)
		})
	}
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
