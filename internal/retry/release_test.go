package retry

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A refused call has one attempt, whose failure is final.
type refused struct{}

func (refused) Attempt(*http.Request) Failure { return Failure{Err: io.EOF} }
func (refused) Ended(error, Next)             {}

// A loop that waits for its next call holds nothing of the last one.
func TestLoop_release(t *testing.T) {
	t.Parallel()
	l := newLoop(New(Policy{MaxAttempts: 3, BaseDelay: 1, MaxDelay: 1, MaxRetryAfter: 1}))
	l.call, l.attempts, l.failure, l.waiting, l.wait, l.cost = refused{}, 1, Failure{Err: io.EOF}, true, 1, 1
	l.release()
	fresh := newLoop(l.retrier)
	assert.Nil(t, l.call)
	assert.Equal(t, fresh.failure, l.failure)
	assert.Zero(t, l.attempts)
	assert.False(t, l.waiting)
	assert.Zero(t, l.wait)
	assert.Zero(t, l.cost)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://gateway.test", nil)
	require.NoError(t, err)
	failure, interrupted := l.retrier.Do(req, refused{})
	assert.Equal(t, io.EOF, failure)
	assert.False(t, interrupted)
}
