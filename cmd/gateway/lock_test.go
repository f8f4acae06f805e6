package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The file of an order is open for one at a time, on every system: .ci/emulated runs this on
// others.
func TestOpenLocked(t *testing.T) {
	t.Parallel()
	directory, err := os.MkdirTemp("", "") // t.TempDir cannot clean up in Wine 8
	require.NoError(t, err)
	name := filepath.Join(directory, "order")
	t.Cleanup(func() { assert.NoError(t, os.Remove(name)); assert.NoError(t, os.Remove(directory)) })
	_, err = openLocked(filepath.Join(directory, "absent", "order"))
	require.ErrorIs(t, err, os.ErrNotExist)
	for range 2 { // the second time, the file exists
		first, err := openLocked(name)
		require.NoError(t, err)
		for range 2 { // closing the second one does not end the lock of the first
			second, err := openLocked(name)
			require.ErrorIs(t, err, errLocked)
			if second != nil { // where it can be read
				require.NoError(t, second.Close())
			}
		}
		require.NoError(t, first.Close())
	}
}
