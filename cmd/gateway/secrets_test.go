package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/cmd/internal/cli/clitest"
	"github.com/cryptogw/gateway/gatewaytest"
)

// A key that is typed where something else belongs is in no text. Without a gateway nothing is called; with one
// the client names orders and withdrawals in its errors, but not the key of the settings.
func TestSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	right := map[string][]string{
		"quote": {"10.50"}, "invoice create": order()[2:], "withdrawal get": {"w-1"}, "withdrawal wait": {"w-1"}, "withdrawal watch": {"w-1"},
		"mock": {"--addr", "127.0.0.1:0"},
	}
	const key = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
	gw := gatewaytest.NewServer(gatewaytest.WithAPIKey(key))
	defer gw.Close()
	gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.FaultRefuse(422, "no"))
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(key+"\r\n"), 0o600))
	ended, end := context.WithCancel(t.Context())
	end()
	for name, settings := range map[string]struct{ url, key, file string }{
		"no gateway": {}, "the key": {gw.URL, key, ""}, "a file with it": {gw.URL, "", file},
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, nil)
			for _, line := range clitest.Misplaced((&session{}).root(), key, right) {
				t.Setenv(envBaseURL, settings.url) // of which --url of an earlier line took the place
				t.Setenv(envPlainHTTP, "")
				t.Setenv(envAPIKey, settings.key)
				t.Setenv(envAPIKeyFile, settings.file)
				ctx := t.Context()
				if strings.Contains(strings.Join(line, " "), "mock") { // which would not end
					ctx = ended
				}
				var stdout, stderr strings.Builder
				run(ctx, line, cli.Console{Out: &stdout, Err: &stderr})
				assert.NotContains(t, stdout.String()+stderr.String(), key, line)
			}
		})
	}
}
