package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
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

// A screen is a stderr that can be read while it is written. The first write, which is the
// banner, is announced.
type screen struct {
	mu     sync.Mutex
	text   strings.Builder
	banner chan string
}

func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.banner != nil {
		s.banner <- string(text)
		s.banner = nil
		return len(text), nil
	}
	return s.text.Write(text)
}

// startMock runs `gateway mock` on a free port, and returns after its banner.
func startMock(t *testing.T, args ...string) mockRun {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	t.Cleanup(interrupt)
	banner, code := make(chan string, 1), make(chan int, 1)
	m, stderr := mockRun{stdout: &strings.Builder{}}, &screen{banner: banner}
	go func() {
		code <- run(ctx, append([]string{"mock", "--addr", "127.0.0.1:0"}, args...), console{out: m.stdout, err: stderr})
	}()
	m.banner = <-banner
	m.url = regexp.MustCompile(`https?://\S+/gateway`).FindString(m.banner)
	require.NotEmpty(t, m.url, m.banner)
	m.stop = func() (int, string) {
		interrupt()
		ended := <-code
		stderr.mu.Lock()
		defer stderr.mu.Unlock()
		return ended, stderr.text.String()
	}
	return m
}

// The mock serves the command itself, with faults and a key, and ends with a summary.
func TestMock(t *testing.T) {
	m := startMock(t, "--key", "key-of-the-mock", "--fault", "create_invoice:1:commit-then-drop", "--fault", "balance:all:refuse=403")
	gw := &gatewaytest.Server{URL: m.url, APIKey: "key-of-the-mock"}
	assert.NotContains(t, m.banner, gw.APIKey)
	assert.Zero(t, call(t.Context(), t, gw, "rates").code)
	assert.Equal(t, exitUnknown, call(t.Context(), t, gw, order()...).code)
	assert.Zero(t, call(t.Context(), t, gw, order("--order", "A-18")...).code)
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

// The names of --addr and --host are those of the mock.
func TestMock_host(t *testing.T) {
	for _, args := range [][]string{{"--host", "other", "--host", "mock"}, {"--addr", "localhost:0", "--host", "mock"}} {
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
		got := call(t.Context(), t, nil, "mock", "--addr", addr)
		assert.Equal(t, exitUsage, got.code, addr)
		assert.Contains(t, got.err, "--addr is HOST:PORT with a number as port", addr)
	}
}

// The settings are for the shell that evaluates them.
func TestMock_env(t *testing.T) {
	m := startMock(t, "--env", "--key", "it's-a-key")
	_, _ = m.stop()
	assert.Equal(t, "export GATEWAY_BASE_URL='"+m.url+"'\nexport GATEWAY_API_KEY='it'\\''s-a-key'\n", m.stdout.String())
}

func TestMock_seed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seed.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"rates":[{"symbol":"ABC","usd":"2","eur":"1"}],"withdrawals":[]}`), 0o600))
	m := startMock(t, "--seed", file)
	gw := &gatewaytest.Server{URL: m.url, APIKey: "k"}
	assert.Equal(t, "COIN  USD  EUR\nABC   2    1\n", call(t.Context(), t, gw, "rates").stdout)
	assert.Contains(t, call(t.Context(), t, gw, "coins").stdout, "Litecoin")
	code, _ := m.stop()
	assert.Zero(t, code)
}

// A scenario sets all of it, a flag goes before it, and a reset restores both.
func TestMock_scenario(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scenario.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"state":{"rates":[]},"settings":{"repeatedOrders":"same","latency":"1ms","shapes":["rates/fiat"]},
		"faults":[{"operation":"balance","times":1,"fault":"refuse=503"}]}`), 0o600))
	m := startMock(t, "--fault", "balance:5%:reset", "--latency", "2ms-3ms", "--shape", "balance/bare", "--scenario", file, "--strict")
	control := strings.TrimSuffix(m.url, "/gateway") + "/_mock/"
	for range 2 {
		assert.JSONEq(t, `{"shapes":["pair/record","symbol/array","rates/fiat","balance/bare","invoice/flat"],
			"repeatedOrders":"same","rateLimit":"off","latency":"2ms-3ms"}`, body(t, control+"settings"))
		assert.JSONEq(t, `[{"operation":"balance","times":1,"fault":"refuse=503"},{"operation":"balance","share":"5%","fault":"reset"}]`, body(t, control+"faults"))
		assert.Contains(t, body(t, control+"state"), `"rates":[],`)
		assert.Contains(t, body(t, m.url+"/api/exchange-rate?coin=BTC"), "is not documented")
		resp, err := http.Post(control+"reset", "application/json", nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	_, _ = m.stop()
}

// body returns the body of a response.
func body(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer func() { assert.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

// With --tls the settings name the authority, and its certificate is enough for a client.
func TestMock_tls(t *testing.T) {
	for _, args := range [][]string{nil, {"--tls-ca", filepath.Join(t.TempDir(), "ca.pem")}, {"--addr", "localhost:0", "--host", "mock"}} {
		m := startMock(t, append([]string{"--tls", "--env", "--key", "k"}, args...)...)
		require.True(t, strings.HasPrefix(m.url, "https://"), m.url)
		found := regexp.MustCompile(`Its authority is in (.*)\.\n`).FindStringSubmatch(m.banner)
		require.Len(t, found, 2)
		pem, err := os.ReadFile(found[1])
		require.NoError(t, err)
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(pem))
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
		resp, err := client.Get(m.url + "/api/exchange-rate")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		host := strings.TrimSuffix(strings.TrimPrefix(m.url, "https://"), "/gateway")
		assert.Zero(t, call(t.Context(), t, nil, "mock", "--wait", "--tls", "--addr", host).code)
		_, _ = m.stop()
		assert.Contains(t, m.stdout.String(), "export SSL_CERT_FILE='"+found[1]+"'\nexport NODE_EXTRA_CA_CERTS='"+found[1]+"'\n")
		_, err = os.Stat(found[1])
		assert.Equal(t, len(args) != 2 || args[0] != "--tls-ca", os.IsNotExist(err), "a temporary file is removed")
	}
}

func TestMock_wait(t *testing.T) {
	m := startMock(t)
	host := strings.TrimSuffix(strings.TrimPrefix(m.url, "http://"), "/gateway")
	assert.Zero(t, call(t.Context(), t, nil, "mock", "--wait", "--addr", host).code)
	_, _ = m.stop()
	got := call(t.Context(), t, nil, "mock", "--wait", "--timeout", "50ms", "--addr", host)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "no mock responds at the address of --addr within ")
	gw := standIn(t)
	host = strings.TrimSuffix(strings.TrimPrefix(gw.URL, "http://"), "/gateway")
	assert.Contains(t, call(t.Context(), t, nil, "mock", "--wait", "--addr", host).err, "what responds at this address is no mock: 404 Not Found")
}

// The log has a line for each request, without a key and in one line.
func TestMock_log(t *testing.T) {
	m := startMock(t, "-v", "--key", "key-of-the-mock")
	gw := &gatewaytest.Server{URL: m.url, APIKey: "key-of-the-mock"}
	assert.Equal(t, exitUnknown, call(t.Context(), t, gw, order("--order", "mock-commit-then-drop-17")...).code)
	assert.Contains(t, body(t, m.url+"/api/%0Axx?apiKey=key-of-the-mock"), "no such route")
	_, rest := m.stop()
	assert.Regexp(t, `^[\d:.]+ POST /gateway/api/invoice/create: no response, order mock-commit-then-drop-17, fault commit-then-drop
[\d:.]+ GET /gateway/api/%0Axx\?apiKey=\[REDACTED\]: 404
`, rest)
	assert.NotContains(t, rest, gw.APIKey)
}

func TestMock_usage(t *testing.T) {
	directory := t.TempDir()
	for name, content := range map[string]string{"unknown.json": `{"prices":[]}`, "more.json": `{} {}`, "none.json": "", "wrong.json": `{"settings":{"shapes":["rates"]}}`} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600))
	}
	refuses(t, map[string]string{
		"mock now":              `unknown command "now" for "gateway mock"`,
		"mock --fault stall":    "write it like create_invoice:1:commit-then-drop",
		"mock --host mock:80":   "it is a name without a port",
		"mock --host=":          "it is a name without a port",
		"mock --key schlüssel":  "it is 1 to 4,096 printable ASCII characters",
		"mock --shape rates":    "there is no such shape, but pair/record",
		"mock --repeated twice": "a repeated order gets one of again, same, refused",
		"mock --limit 10":       "write a limit like 10/1s, or off",
		"mock --latency slow":   "write a latency like 50ms",
		"mock --tls-ca ca.pem":  "--tls-ca is for --tls",
		"mock --scenario " + directory + "/unknown.json": `unknown field "prices"`,
		"mock --scenario " + directory + "/wrong.json":   "there is no such shape, but",
		"mock --seed " + directory + "/absent.json":      "no such file",
		"mock --seed " + directory + "/unknown.json":     `unknown field "prices"`,
		"mock --seed " + directory + "/more.json":        "there is more after the end of the object",
		"mock --seed " + directory + "/none.json":        "EOF",
	})
}

// An address in use is a failure; a banner or a summary that cannot be written too.
func TestMock_failed(t *testing.T) {
	used, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	got := call(t.Context(), t, nil, "mock", "--addr", used.Addr().String())
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "the address of --addr cannot be used: ")
	assert.Contains(t, got.err, "address already in use")
	require.NoError(t, used.Close())
	assert.Equal(t, exitFailed, run(t.Context(), []string{"mock", "--addr", "127.0.0.1:0"}, console{out: io.Discard, err: fullDisk{}}))
	assert.Equal(t, exitFailed, run(t.Context(), []string{"mock", "--addr", "127.0.0.1:0", "--env"}, console{out: fullDisk{}, err: io.Discard}))
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
	assert.Contains(t, stderr.String(), "Other machines can reach this address; by a name only with --host.\n")
}
