package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/gatewaytest"
)

// standIn returns a stand-in that is closed when the test ends.
func standIn(t *testing.T) *gatewaytest.Server {
	t.Helper()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	return gw
}

// setenv configures a gateway, or none if gw is nil, for the rest of the test, which
// therefore cannot be parallel.
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

// call runs the command in this process with a gateway, or with none configured if gw
// is nil. It fails the test if the output contains the key.
func call(ctx context.Context, t *testing.T, gw *gatewaytest.Server, args ...string) outcome {
	t.Helper()
	setenv(t, gw)
	var stdout, stderr strings.Builder
	code := run(ctx, args, cli.Console{Out: &stdout, Err: &stderr})
	if gw != nil {
		assert.NotContains(t, stdout.String(), gw.APIKey)
		assert.NotContains(t, stderr.String(), gw.APIKey)
	}
	return outcome{code, stdout.String(), stderr.String()}
}

// words splits the arguments of a command line without quotes.
func words(line string) []string { return strings.Fields(line) }

// refuses asserts that the command refuses each line of arguments with exit code 2 and
// the text that is its value in the map, before it prints or sends anything.
func refuses(t *testing.T, lines map[string]string) {
	t.Helper()
	require.NotEmpty(t, lines)
	for line, text := range lines {
		t.Run(line, func(t *testing.T) {
			gw := standIn(t)
			got := call(t.Context(), t, gw, words(line)...)
			assert.Equal(t, cli.ExitUsage, got.code)
			assert.Contains(t, got.err, text)
			assert.Empty(t, got.stdout)
			assert.Empty(t, gw.Requests())
		})
	}
}
