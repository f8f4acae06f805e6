package openapi

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "github.com/oapi-codegen/runtime" // go.mod has it although what imports it is not kept
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What oapi-codegen makes of the document, in the version of tools/go.mod and without a
// warning, works with the stand-in and with the client: the tests of testdata/codegen say
// how. What is generated is not kept, so they are compiled with it by an overlay.
func TestCodegen(t *testing.T) {
	work := t.TempDir()
	goTool(t, "-C", "../../tools", "build", "-o", work+string(filepath.Separator), "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen")
	generated := filepath.Join(work, "api_gen.go")
	generate := exec.CommandContext(t.Context(), filepath.Join(work, "oapi-codegen"), "-config", "testdata/codegen/oapi-codegen.yaml", "-o", generated, "../../api/openapi.yaml")
	warnings, err := generate.CombinedOutput()
	require.NoError(t, err, "%s", warnings)
	assert.Empty(t, string(warnings))

	added, err := filepath.Abs("testdata/codegen/api_gen_test.go")
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{added: generated}})
	require.NoError(t, err)
	file := filepath.Join(work, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	t.Log(goTool(t, "test", "-count=1", "-overlay", file, "./testdata/codegen"))
}
