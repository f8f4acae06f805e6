package openapi

import (
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every program of examples/ makes requests that the document allows. A program that
// the table does not name runs without arguments.
func TestOpenAPI_examples(t *testing.T) {
	const examples = "github.com/cryptogw/gateway/examples"
	bin := t.TempDir()
	programs := strings.Fields(goTool(t, "list", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, examples+"/..."))
	require.NotEmpty(t, programs)
	goTool(t, append([]string{"build", "-o", bin + string(filepath.Separator)}, programs...)...)

	const completed = "COMPLETED" // a placeholder for the identifier of a completed withdrawal
	arguments := map[string][][]string{
		"withdrawal": {{completed}},
		"checkout":   {}, // a server, which does not end; its own test sends it requests
	}
	for _, program := range programs {
		name := path.Base(program)
		calls, listed := arguments[name]
		if !listed {
			calls = [][]string{{}}
		}
		for _, args := range calls {
			t.Run(strings.Join(append([]string{name}, args...), " "), func(t *testing.T) {
				gw := startChecked(t)
				for i, arg := range args {
					if arg == completed {
						args[i] = gw.Withdrawals()[1].WithdrawRequestID
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				command := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
				command.Env = append(os.Environ(), "GATEWAY_BASE_URL="+gw.url, "GATEWAY_API_KEY="+gw.APIKey)
				output, err := command.CombinedOutput()
				require.NoError(t, err, "%s", output)
				require.NoError(t, gw.violations())
				assert.NotZero(t, gw.validated())
			})
		}
	}
}

// goTool runs the go command and returns what it printed.
func goTool(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	require.NoError(t, err, "%s%s", output, &stderr)
	return string(output)
}
