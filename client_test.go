package gateway_test

import (
	"fmt"
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
		w := serve(t, respond(200, enveloped(`"1"`)))
		c, err := gateway.New(w.URL, key)
		require.NoError(t, err)
		_, err = c.Balance(t.Context(), gateway.BalanceQuery{})
		require.NoError(t, err)
		assert.Equal(t, key, only(t, w).Header.Get("X-Api-Key"))
	})
}
