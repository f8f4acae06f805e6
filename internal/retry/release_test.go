package retry

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A refused call has one attempt, whose failure is final.
type refused struct{ failure error }

func (c refused) Body() (io.ReadCloser, int64)                  { return nil, 0 }
func (c refused) NoResponse(error) error                        { return c.failure }
func (c refused) CheckStatus(*http.Response) error              { return nil }
func (c refused) Read(resp *http.Response) (any, error)         { return "text", resp.Body.Close() }
func (c refused) Discard(*http.Response)                        {}
func (c refused) Advise(error) Advice                           { return Advice{} }
func (c refused) OnRetry(error, time.Duration)                  {}
func (refused) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.EOF }

// A loop that waits for its next call holds nothing of the last one: neither its
// client, its result nor its failure.
func TestLoop_Release_holdsNothing(t *testing.T) {
	t.Parallel()
	loop := New(Policy{MaxAttempts: 3, BaseDelay: 1, MaxDelay: 1, MaxRetryAfter: 1}).Loop()
	c := refused{io.EOF}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://gateway.test", nil)
	require.NoError(t, err)
	_, failed := loop.Do(&http.Client{Transport: c}, req, c)
	require.Equal(t, io.EOF, failed)
	require.NotZero(t, loop.progress)
	loop.Release()
	assert.Zero(t, loop.progress)
	assert.Nil(t, loop.library.HTTPClient)
}
