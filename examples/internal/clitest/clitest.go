// Package clitest runs the examples in tests.
package clitest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/examples/internal/cli"
	"github.com/cryptogw/gateway/gatewaytest"
)

// Gateway returns a stand-in that is closed when the test ends.
func Gateway(t *testing.T) *gatewaytest.Server {
	t.Helper()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	return gw
}

// Setenv configures a gateway, or none if gw is nil, for the rest of the test,
// which therefore cannot be parallel.
func Setenv(t *testing.T, gw *gatewaytest.Server) {
	t.Helper()
	if gw == nil {
		gw = &gatewaytest.Server{}
	}
	t.Setenv(cli.BaseURL, gw.URL)
	t.Setenv(cli.APIKey, gw.APIKey)
	t.Setenv(cli.APIKeyFile, "")
}

// Call runs a program with a gateway, or with none configured if gw is nil, and
// returns its output. It fails the test if the output or error contains the key.
func Call(ctx context.Context, t *testing.T, program cli.Program, gw *gatewaytest.Server, args ...string) (string, error) {
	t.Helper()
	Setenv(t, gw)
	var stdout strings.Builder
	err := program(ctx, args, &stdout)
	if gw != nil {
		assert.NotContains(t, stdout.String(), gw.APIKey)
	}
	if gw != nil && err != nil {
		assert.NotContains(t, err.Error(), gw.APIKey)
	}
	return stdout.String(), err
}

// RefusesArguments asserts that a program refuses each list of arguments with
// exit code 2 and the text that is its key in the map, before it prints or sends
// anything.
func RefusesArguments(t *testing.T, program cli.Program, lists map[string][]string) {
	t.Helper()
	require.NotEmpty(t, lists)
	for text, args := range lists {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			gw := Gateway(t)
			stdout, err := Call(t.Context(), t, program, gw, args...)
			require.ErrorContains(t, err, text)
			assert.Equal(t, 2, cli.Code(err))
			assert.Empty(t, stdout)
			assert.Empty(t, gw.Requests())
		})
	}
}

// NeedsGateway asserts that a program fails if no gateway is configured.
func NeedsGateway(t *testing.T, program cli.Program, args ...string) {
	t.Helper()
	stdout, err := Call(t.Context(), t, program, nil, args...)
	require.EqualError(t, err,
		"set GATEWAY_BASE_URL, and GATEWAY_API_KEY or GATEWAY_API_KEY_FILE, to use a gateway; `go run ./examples/quickstart` needs none of them")
	assert.Equal(t, 2, cli.Code(err))
	assert.Empty(t, stdout)
}
