//go:build unix

package cli

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Ctrl-C cancels the context of a program, which has an exit code of its own.
func TestMain_interrupted(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	code := Main(func(ctx context.Context, _ []string, _ io.Writer) error {
		if err := self.Signal(os.Interrupt); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	assert.Equal(t, 130, code)
}
