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
	m.Run()
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

func standIn(t *testing.T) *gatewaytest.Server {
	t.Helper()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	return gw
}

// An outcome is how one run of the command ended.
type outcome struct {
	code        int
	stdout, err string
}

// call runs a command line in this process with a gateway, or with none configured if gw is nil. More arguments may have
// spaces. It fails the test if the output contains the key.
func call(t *testing.T, gw *gatewaytest.Server, line string, more ...string) outcome {
	t.Helper()
	return callIn(t.Context(), t, gw, line, more...)
}

func callIn(ctx context.Context, t *testing.T, gw *gatewaytest.Server, line string, more ...string) outcome {
	t.Helper()
	if gw == nil {
		gw = &gatewaytest.Server{}
	}
	t.Setenv(envBaseURL, gw.URL)
	t.Setenv(envAPIKey, gw.APIKey)
	var stdout, stderr strings.Builder
	code := run(ctx, append(strings.Fields(line), more...), console{in: strings.NewReader(""), out: &stdout, err: &stderr})
	if gw.APIKey != "" {
		assert.NotContains(t, stdout.String()+stderr.String(), gw.APIKey)
	}
	return outcome{code, stdout.String(), stderr.String()}
}

func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return value
}

// order is a command line that creates an invoice. A flag that is repeated replaces the first.
const order = "invoice create --order A-17 --price 10.50 --amount 10.490000 "

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// fullDisk fails every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
