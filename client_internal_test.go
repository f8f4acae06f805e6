package gateway

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A caller's transport is cloned, whoever wraps it, and any other RoundTripper is used as it is.
func TestNew_transport(t *testing.T) {
	t.Parallel()
	given, other := &http.Transport{MaxResponseHeaderBytes: 17}, http.NewFileTransport(http.Dir("."))
	through := func(next http.RoundTripper) Option { return WithHTTPClient(&http.Client{Transport: next}) }
	wrap := WithMiddleware(func(next http.RoundTripper) http.RoundTripper { return struct{ http.RoundTripper }{next} })
	for _, tt := range []struct {
		name  string
		opts  []Option
		pools bool
		limit int64 // of the header of a response
		next  bool
	}{
		{"none", nil, true, 256 << 10, false},
		{"an http.Client without one", []Option{through(nil)}, true, 256 << 10, false},
		{"a nil http.Transport", []Option{through((*http.Transport)(nil))}, true, 256 << 10, false},
		{"an http.Transport", []Option{through(given)}, true, 17, false},
		{"an http.Transport and a middleware", []Option{wrap, through(given)}, true, 17, true},
		{"another RoundTripper", []Option{through(other)}, false, 0, true},
		{"another RoundTripper and a middleware", []Option{through(other), wrap}, false, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := New("https://gateway.test", "a-key-for-tests", tt.opts...)
			require.NoError(t, err)
			got := c.transport()
			assert.Equal(t, tt.next, got.Next != nil)
			require.Equal(t, tt.pools, got.Pools != nil)
			if tt.pools {
				assert.NotSame(t, given, got.Pools.Reads)
				assert.Equal(t, tt.limit, got.Pools.Reads.MaxResponseHeaderBytes)
				assert.Equal(t, tt.limit, got.Pools.Invoices.MaxResponseHeaderBytes)
			}
		})
	}
}
