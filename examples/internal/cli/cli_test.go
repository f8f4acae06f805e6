package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

func TestCode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"success":             {nil, 0},
		"failure":             {errors.New("no"), 1},
		"the service refused": {&gateway.APIError{StatusCode: 404}, 1},
		"an argument":         {&gateway.ArgumentError{}, 2},
		"Ctrl-C":              {fmt.Errorf("wait: %w", context.Canceled), 130},
		"the program's own":   {fmt.Errorf("invoice: %w", Exit(5, context.Canceled)), 5},
		"an unknown outcome":  {&gateway.OutcomeUnknownError{Cause: context.Canceled}, 1},
	} {
		assert.Equal(t, test.want, Code(test.err), name)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	err := Exit(5, io.ErrUnexpectedEOF)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.EqualError(t, err, "unexpected EOF")
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		left []string
		code int
		text string
	}{
		"as wanted":    {args: []string{"-n", "7", "a"}, left: []string{"a"}},
		"too few":      {args: []string{"-n", "7"}, code: 2, text: "an argument is missing\nusage: p [-n N] A [B]\n  -n int\n    \ta number (default 3)"},
		"too many":     {args: []string{"a", "b", "c"}, code: 2, text: "\"c\" is one argument too many\nusage: p [-n N] A [B]\n  -n int\n    \ta number (default 3)"},
		"a wrong flag": {args: []string{"-m"}, code: 2, text: "flag provided but not defined: -m\nusage: p [-n N] A [B]\n  -n int\n    \ta number (default 3)"},
		"help":         {args: []string{"-h"}, code: 0, text: "usage: p [-n N] A [B]\n  -n int\n    \ta number (default 3)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := flag.NewFlagSet("p [-n N] A [B]", flag.ContinueOnError)
			flags.Int("n", 3, "a number")
			left, err := Parse(flags, test.args, 1, 2)
			assert.Equal(t, test.left, left)
			assert.Equal(t, test.code, Code(err))
			if test.text != "" {
				assert.EqualError(t, err, test.text)
			}
		})
	}
}

// setenv sets the variables that [Client] reads.
func setenv(t *testing.T, baseURL, key, file string) {
	t.Helper()
	t.Setenv(BaseURL, baseURL)
	t.Setenv(APIKey, key)
	t.Setenv(APIKeyFile, file)
}

func TestClient(t *testing.T) {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(gw.APIKey+"\n"), 0o600))
	for name, keys := range map[string][2]string{
		"a key":            {gw.APIKey, ""},
		"a file for a key": {"", file},
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, gw.URL, keys[0], keys[1])
			assert.True(t, Configured())
			client, err := Client()
			require.NoError(t, err)
			_, err = client.Balance(t.Context(), gateway.BalanceQuery{})
			assert.NoError(t, err)
		})
	}
}

func TestClient_noKey(t *testing.T) {
	setenv(t, "https://gateway.example", "", "")
	client, err := Client()
	require.NoError(t, err)
	_, err = client.Balance(t.Context(), gateway.BalanceQuery{})
	assert.ErrorIs(t, err, gateway.ErrMissingAPIKey)
}

func TestClient_refused(t *testing.T) {
	setenv(t, "http://gateway.example", "", "")
	_, err := Client()
	require.ErrorContains(t, err, "GATEWAY_BASE_URL: must begin with https://")
	assert.Equal(t, 2, Code(err))
	_, err = Client(gateway.WithPlainHTTP())
	assert.NoError(t, err, "options are the client's")
}

func TestClient_notConfigured(t *testing.T) {
	setenv(t, "", "key", "")
	assert.False(t, Configured())
	_, err := Client()
	require.EqualError(t, err, "set GATEWAY_BASE_URL, and GATEWAY_API_KEY or GATEWAY_API_KEY_FILE, to use a gateway; "+
		"`go run ./examples/quickstart` needs none of them")
	assert.Equal(t, 2, Code(err))
}

func TestRun(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	code := run(t.Context(), func(context.Context, []string, io.Writer) error {
		return Exit(3, errors.New("out of range"))
	}, &stderr)
	assert.Equal(t, 3, code)
	assert.Equal(t, "out of range\n", stderr.String())
}

func TestMain_success(t *testing.T) {
	t.Parallel()
	assert.Zero(t, Main(func(context.Context, []string, io.Writer) error { return nil }))
}
