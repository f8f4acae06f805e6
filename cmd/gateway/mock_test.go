package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// startMock runs `gateway mock` on a free port, and returns its gateway after its first line on stderr. The function
// is Ctrl-C, and returns the exit code and stdout.
func startMock(t *testing.T, args ...string) (*gatewaytest.Server, func() (int, string)) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	stderr, code := make(firstLine, 1), make(chan int, 1)
	var stdout strings.Builder
	go func() {
		code <- run(ctx, append([]string{"mock", "--addr", "127.0.0.1:0", "--key", "it's-a-key"}, args...), console{out: &stdout, err: stderr})
	}()
	line := <-stderr
	assert.NotContains(t, line, "it's-a-key")
	url := regexp.MustCompile(`http://\S+/gateway`).FindString(line)
	require.NotEmpty(t, url, line)
	stop := func() (int, string) {
		interrupt()
		return <-code, stdout.String()
	}
	return &gatewaytest.Server{URL: url, APIKey: "it's-a-key"}, stop
}

// A firstLine is a stderr with one line.
type firstLine chan string

func (l firstLine) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

// The mock serves the command itself, and Ctrl-C ends it.
func TestMock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seed.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"rates":[{"symbol":"ABC","usd":"2","eur":"1"}]}`), 0o600))
	for name, test := range map[string]struct {
		args                         []string
		rates, coins, balance, onEnd string
	}{
		"the usual data": {rates: "BTC", coins: "Litecoin", balance: "USDT"},
		"a seed":         {args: []string{"--seed", file}, rates: "COIN  USD  EUR\nABC   2    1\n", coins: "Litecoin", balance: "USDT"},
		"no data":        {args: []string{"--empty"}, rates: "COIN  USD  EUR\n", coins: "COIN  NETWORK"},
		"--env":          {args: []string{"--env"}, onEnd: "export GATEWAY_BASE_URL='…'\nexport GATEWAY_API_KEY='it'\\''s-a-key'\n"},
	} {
		t.Run(name, func(t *testing.T) {
			gw, stop := startMock(t, test.args...)
			addr := strings.TrimSuffix(strings.TrimPrefix(gw.URL, "http://"), "/gateway")
			assert.Zero(t, call(t.Context(), t, nil, "mock", "--wait", "--addr", addr).code)
			assert.Contains(t, call(t.Context(), t, gw, "rates").stdout, test.rates)
			assert.Contains(t, call(t.Context(), t, gw, "coins").stdout, test.coins)
			assert.Contains(t, call(t.Context(), t, gw, "balance").stdout, test.balance)
			code, stdout := stop()
			assert.Equal(t, exitDone, code)
			assert.Equal(t, strings.ReplaceAll(test.onEnd, "…", gw.URL), stdout)
		})
	}
}

// A bad argument is reported before anything is served.
func TestMock_refused(t *testing.T) {
	used, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, used.Close()) })
	directory := t.TempDir()
	for name, content := range map[string]string{"unknown.json": `{"prices":[]}`, "none.json": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600))
	}
	refuses(t, map[string]string{
		"mock now":                                   `unknown command "now" for "gateway mock"`,
		"mock --key schlüssel":                       "--key: WithAPIKey wants 1 to 4,096 printable ASCII characters",
		"mock --addr foo":                            "the address of --addr cannot be used: ",
		"mock --addr 127.0.0.1:65536":                "invalid port",
		"mock --wait --addr %":                       "--addr is HOST:PORT, such as 127.0.0.1:8090",
		"mock --empty --seed none.json":              "none of the others can be",
		"mock --seed absent.json":                    "the file of --seed: no such file",
		"mock --seed " + directory + "/unknown.json": `the file of --seed: json: unknown field "prices"`,
		"mock --seed " + directory + "/none.json":    "the file of --seed: EOF",
		"mock --addr " + used.Addr().String():        "address already in use",
	})
	assert.Equal(t, exitFailed, run(t.Context(), words("mock --addr 127.0.0.1:0 --env"), console{out: fullDisk{}, err: io.Discard}))
}

// A wait ends without a mock, and says what responds instead.
func TestMock_wait(t *testing.T) {
	gw := standIn(t)
	addr := strings.TrimSuffix(strings.TrimPrefix(gw.URL, "http://"), "/gateway")
	assert.Contains(t, call(t.Context(), t, nil, "mock", "--wait", "--addr", addr).err, "what responds at --addr is no mock: 404 Not Found")
	gw.Close()
	got := call(t.Context(), t, nil, "mock", "--wait", "--timeout", "1ms", "--addr", addr)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "no mock responds at --addr: ")
}

// Only an address that other machines can reach needs plain HTTP.
func TestSettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		origin string
		plain  bool
	}{
		"127.0.0.1:8090": {"http://127.0.0.1:8090", false},
		"[::1]:8090":     {"http://[::1]:8090", false},
		"0.0.0.0:8090":   {"http://localhost:8090", false},
		"[::]:8090":      {"http://localhost:8090", false},
		"192.0.2.7:8090": {"http://192.0.2.7:8090", true},
	} {
		addr, err := net.ResolveTCPAddr("tcp", text)
		require.NoError(t, err)
		origin, variables := settings(addr, "k")
		assert.Equal(t, want.origin, origin)
		assert.Equal(t, want.plain, strings.Contains(variables, "export GATEWAY_PLAIN_HTTP=1\n"), text)
	}
}
