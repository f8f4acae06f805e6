package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// asProcess makes a process of the tests the command.
const asProcess = "GATEWAY_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
	}
	code := m.Run()
	servers.stop()
	os.Exit(code)
}

// commandDir returns a directory that has the command by its name, for a process with asProcess.
func commandDir(t *testing.T) string {
	t.Helper()
	self, err := filepath.Abs(os.Args[0])
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "gateway")))
	return dir
}

// standIn returns a stand-in that is closed when the test ends.
func standIn(t *testing.T) *gatewaytest.Server {
	t.Helper()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	return gw
}

// setenv configures a gateway, or none if gw is nil, for the rest of the test, which therefore cannot be parallel.
func setenv(t *testing.T, gw *gatewaytest.Server) {
	t.Helper()
	if gw == nil {
		gw = &gatewaytest.Server{}
	}
	t.Setenv(envBaseURL, gw.URL)
	t.Setenv(envAPIKey, gw.APIKey)
	t.Setenv(envAPIKeyFile, "")
	t.Setenv(envPlainHTTP, "")
}

// An outcome is how one run of the command ended.
type outcome struct {
	code        int
	stdout, err string
}

// call runs the command in this process with a gateway, or with none configured if gw is nil. It fails the test if the
// output contains the key.
func call(ctx context.Context, t *testing.T, gw *gatewaytest.Server, args ...string) outcome {
	t.Helper()
	setenv(t, gw)
	var stdout, stderr strings.Builder
	code := run(ctx, args, console{out: &stdout, err: &stderr})
	if gw != nil {
		assert.NotContains(t, stdout.String(), gw.APIKey)
		assert.NotContains(t, stderr.String(), gw.APIKey)
	}
	return outcome{code, stdout.String(), stderr.String()}
}

// words splits the arguments of a command line without quotes.
func words(line string) []string { return strings.Fields(line) }

func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return value
}

// order is a command line that creates an invoice. A flag that is repeated replaces the first.
func order(more ...string) []string {
	return append([]string{"invoice", "create", "--order", "A-17", "--price", "10.50", "--amount", "10.490000"}, more...)
}

// refuses asserts that the command refuses each line of arguments with exit code 2 and the text that is its value in the
// map, before it prints or sends anything.
func refuses(t *testing.T, lines map[string]string) {
	t.Helper()
	for line, text := range lines {
		t.Run(line, func(t *testing.T) {
			gw := standIn(t)
			got := call(t.Context(), t, gw, words(line)...)
			assert.Equal(t, exitUsage, got.code)
			assert.Contains(t, got.err, text)
			assert.Empty(t, got.stdout)
			assert.Empty(t, gw.Requests())
		})
	}
}

// fullDisk fails every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
