package codegen

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// api_gen_test.go is what oapi-codegen makes of the document, without a warning.
func TestGenerated(t *testing.T) {
	generated := filepath.Join(t.TempDir(), "api_gen_test.go")
	command := exec.CommandContext(t.Context(), "go", "tool", "oapi-codegen",
		"-config", "oapi-codegen.yaml", "-o", generated, "../../api/openapi.yaml")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Empty(t, string(output))
	want, err := os.ReadFile(generated)
	require.NoError(t, err)
	got, err := os.ReadFile("api_gen_test.go")
	require.NoError(t, err)
	assert.True(t, string(want) == string(got), "run go generate in contract/codegen")
}
