package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// A mockRun is a mock that runs in this process.
type mockRun struct {
	url    string // the base URL
	banner string
	stdout *strings.Builder
	// stop is Ctrl-C. It returns the exit code, and what stderr has after the banner.
	stop func() (int, string)
}

// startMock runs `gateway mock` on a free port, and returns after its banner.
func startMock(t *testing.T, args ...string) mockRun {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	read, write := io.Pipe()
	m := mockRun{stdout: &strings.Builder{}}
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"mock", "-addr", "127.0.0.1:0"}, args...), console{out: m.stdout, err: write})
		_ = write.Close()
	}()
	stderr := bufio.NewReader(read)
	for !strings.Contains(m.banner, "X-Gatewaytest-Invented") {
		line, err := stderr.ReadString('\n')
		require.NoError(t, err, m.banner)
		m.banner += line
	}
	m.url = regexp.MustCompile(`http://\S+/gateway`).FindString(m.banner)
	m.stop = func() (int, string) {
		interrupt()
		rest, err := io.ReadAll(stderr)
		assert.NoError(t, err)
		return <-code, string(rest)
	}
	t.Cleanup(interrupt)
	return m
}

// The mock serves the command itself, with faults and a key, and ends with a summary.
func TestMock(t *testing.T) {
	m := startMock(t, "-key", "key-of-the-mock", "-fault", "create_invoice:1:commit-then-drop", "-fault", "balance:all:refuse=403")
	gw := &gatewaytest.Server{URL: m.url, APIKey: "key-of-the-mock"}
	assert.NotContains(t, m.banner, gw.APIKey)
	assert.Zero(t, call(t.Context(), t, gw, "rates").code)
	assert.Equal(t, exitUnknown, call(t.Context(), t, gw, order()...).code)
	assert.Zero(t, call(t.Context(), t, gw, order("-order", "A-18")...).code)
	assert.Equal(t, exitRefused, call(t.Context(), t, gw, "balance").code)
	resp, err := http.Get(strings.TrimSuffix(m.url, "/gateway") + "/other")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, 404, resp.StatusCode)

	code, rest := m.stop()
	assert.Equal(t, exitDone, code)
	assert.Empty(t, m.stdout.String())
	assert.Equal(t, `
Requests: 5
  exchange_rates: 1, of which 1 had a success and 0 met a fault
  create_invoice: 2, of which 1 had a success and 1 met a fault
  balance: 1, of which 0 had a success and 1 met a fault
  unknown route: 1, of which 0 had a success and 0 met a fault
Invoices committed: 2
  A-17: 1
  A-18: 1
`, rest)
}

// The names of -addr and -host are those of the mock.
func TestMock_host(t *testing.T) {
	for _, args := range [][]string{{"-host", "other", "-host", "mock"}, {"-addr", "localhost:0", "-host", "mock"}} {
		m := startMock(t, args...)
		for host, status := range map[string]int{"mock:8090": 200, "localhost": 200, "other.example": 421} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(m.url, "/gateway")+"/_mock/requests", nil)
			require.NoError(t, err)
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, status, resp.StatusCode, host)
		}
		code, _ := m.stop()
		assert.Zero(t, code)
	}
}

// What is not an address is a mistake in the arguments, and the text has an example.
func TestMock_addr(t *testing.T) {
	for _, addr := range []string{"foo", ":notaport", "1.2.3.4", ":65536", ":-1", "127.0.0.1:", "::1:80", "http://127.0.0.1:80", ":http"} {
		got := call(t.Context(), t, nil, "mock", "-addr", addr)
		assert.Equal(t, exitUsage, got.code, addr)
		assert.Contains(t, got.err, "gateway mock: -addr is HOST:PORT with a number as port, such as 127.0.0.1:8090", addr)
	}
}

// The settings are for the shell that evaluates them.
func TestMock_env(t *testing.T) {
	m := startMock(t, "-env", "-key", "it's-a-key")
	_, _ = m.stop()
	assert.Equal(t, "export GATEWAY_BASE_URL='"+m.url+"'\nexport GATEWAY_API_KEY='it'\\''s-a-key'\n", m.stdout.String())
}

func TestMock_seed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seed.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"rates":[{"symbol":"ABC","usd":"2","eur":"1"}],"withdrawals":[]}`), 0o600))
	m := startMock(t, "-seed", file)
	gw := &gatewaytest.Server{URL: m.url, APIKey: "k"}
	assert.Equal(t, "COIN  USD  EUR\nABC   2    1\n", call(t.Context(), t, gw, "rates").stdout)
	assert.Contains(t, call(t.Context(), t, gw, "coins").stdout, "Litecoin")
	code, _ := m.stop()
	assert.Zero(t, code)
}

func TestMock_usage(t *testing.T) {
	directory := t.TempDir()
	for name, content := range map[string]string{"unknown.json": `{"prices":[]}`, "more.json": `{} {}`, "none.json": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600))
	}
	refuses(t, map[string]string{
		"mock now":            "is one argument too many",
		"mock -o json":        "flag provided but not defined: -o",
		"mock -fault stall":   "write it like create_invoice:1:commit-then-drop",
		"mock -host mock:80":  "flag -host: it is a name without a port",
		"mock -host=":         "flag -host: it is a name without a port",
		"mock -key schlüssel": "it is 1 to 4,096 printable ASCII characters",
		"mock -seed " + directory + "/absent.json":  "no such file",
		"mock -seed " + directory + "/unknown.json": `unknown field "prices"`,
		"mock -seed " + directory + "/more.json":    "there is more after the end of the object",
		"mock -seed " + directory + "/none.json":    "EOF",
	})
}

// An address in use is a failure; a banner or a summary that cannot be written too.
func TestMock_failed(t *testing.T) {
	used, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	got := call(t.Context(), t, nil, "mock", "-addr", used.Addr().String())
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "the address of -addr cannot be used: ")
	assert.Contains(t, got.err, "address already in use")
	require.NoError(t, used.Close())
	assert.Equal(t, exitFailed, run(t.Context(), []string{"mock", "-addr", "127.0.0.1:0"}, console{out: io.Discard, err: fullDisk{}}))
	assert.Equal(t, exitFailed, run(t.Context(), []string{"mock", "-addr", "127.0.0.1:0", "-env"}, console{out: fullDisk{}, err: io.Discard}))
}

// Only an address of this machine is local; every other one needs plain HTTP.
func TestReachable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		host  string
		local bool
	}{
		"127.0.0.1:8090": {"127.0.0.1:8090", true},
		"[::1]:8090":     {"[::1]:8090", true},
		"0.0.0.0:8090":   {"localhost:8090", false},
		"[::]:8090":      {"localhost:8090", false},
		"192.0.2.7:8090": {"192.0.2.7:8090", false},
	} {
		addr, err := net.ResolveTCPAddr("tcp", text)
		require.NoError(t, err)
		host, local := reachable(addr)
		assert.Equal(t, want.host, host)
		assert.Equal(t, want.local, local, text)
	}
	var stdout, stderr strings.Builder
	s := &session{console: console{out: &stdout, err: &stderr}}
	require.NoError(t, (&mockFlags{env: true}).announce(s, &net.TCPAddr{IP: net.IPv4zero, Port: 1}, "k"))
	assert.Contains(t, stdout.String(), "export GATEWAY_PLAIN_HTTP='1'\n")
	assert.Contains(t, stderr.String(), "Other machines can reach this address; by a name only with -host.\n")
}
