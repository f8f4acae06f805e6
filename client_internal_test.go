package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/attempt"
)

// Invoices have connections of their own, which are not idle for long: an old one may
// be closed by the server just when an invoice is sent on it.
func TestNew_pools(t *testing.T) {
	t.Parallel()
	split := func(c *Client) *attempt.Split { return c.http().Transport.(*attempt.Transport).Next.(*attempt.Split) }
	c, err := New("https://gateway.test", "")
	require.NoError(t, err)
	assert.Equal(t, 90*time.Second, split(c).Shared.IdleConnTimeout)
	assert.Equal(t, 2*time.Second, split(c).Invoices.IdleConnTimeout)
	assert.Negative(t, split(c).Invoices.MaxIdleConnsPerHost, "a connection carries one invoice")

	given := &http.Transport{MaxResponseHeaderBytes: 17}
	c, err = New("https://gateway.test", "", WithHTTPClient(&http.Client{Transport: given}))
	require.NoError(t, err)
	assert.Same(t, given, split(c).Shared, "a caller's transport is used as it is")
	assert.Equal(t, int64(17), split(c).Invoices.MaxResponseHeaderBytes, "and invoices go through a copy")
	assert.Equal(t, 2*time.Second, split(c).Invoices.IdleConnTimeout)
	assert.Zero(t, given.MaxIdleConnsPerHost, "the caller's is not changed")
}
