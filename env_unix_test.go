//go:build unix

package gateway_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A named pipe is refused: one without a writer would hold up the call.
func TestAPIKeyFile_namedPipe(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "key")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	_, err := gateway.APIKeyFile(name)(t.Context())
	assert.EqualError(t, err, "the file cannot be read: it is not a regular file")
}
