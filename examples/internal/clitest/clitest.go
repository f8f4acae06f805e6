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

// Call runs a program with a gateway, or with none configured when gw is nil,
// and returns what it printed. No program may print the key.
func Call(ctx context.Context, t *testing.T, program cli.Program, gw *gatewaytest.Server, args ...string) (string, error) {
	t.Helper()
	env := map[string]string{}
	if gw != nil {
		env[cli.BaseURL], env[cli.APIKey] = gw.URL, gw.APIKey
	}
	var stdout strings.Builder
	err := program(ctx, args, func(name string) string { return env[name] }, &stdout)
	if gw != nil {
		assert.NotContains(t, stdout.String(), gw.APIKey)
	}
	if gw != nil && err != nil {
		assert.NotContains(t, err.Error(), gw.APIKey)
	}
	return stdout.String(), err
}

// RefusesArguments asserts that a program refuses each list of arguments with
// the exit code for that and the text that belongs to the list, before it
// prints or sends anything.
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

// NeedsGateway asserts what a program says when no gateway is configured.
func NeedsGateway(t *testing.T, program cli.Program, args ...string) {
	t.Helper()
	stdout, err := Call(t.Context(), t, program, nil, args...)
	require.EqualError(t, err,
		"set GATEWAY_BASE_URL and GATEWAY_API_KEY to use a gateway; `go run ./examples/quickstart` needs neither")
	assert.Equal(t, 2, cli.Code(err))
	assert.Empty(t, stdout)
}
