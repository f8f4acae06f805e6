package gateway

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/validate"
)

// a key file that never ends, such as a named pipe without a writer, is an error
// after 5 seconds.
func TestInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, release := time.Now(), make(chan struct{})
		text, err := inTime(func() ([]byte, error) { <-release; return []byte("late"), nil })
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Empty(t, text)
		assert.Equal(t, 5*time.Second, time.Since(begun))
		close(release)

		text, err = inTime(func() ([]byte, error) { return []byte("in time"), io.EOF })
		assert.Equal(t, "in time", string(text))
		assert.Equal(t, io.EOF, err)
	})
}

// A file that never ends, such as /dev/zero, is read to the end of the longest key.
func TestStartOf(t *testing.T) {
	t.Parallel()
	text, err := startOf(strings.NewReader(strings.Repeat("k", 1<<20)))
	require.NoError(t, err)
	assert.Len(t, text, validate.MaxAPIKeyFile+1)
}
