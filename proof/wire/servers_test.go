package wire

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// The servers of these tests are real ones, of Debian's packages, which .ci/install installs. They say that a request was
// not processed when it was, so that a client that believed them would create a second invoice.

// signing is a middleware that makes each request anew, with GetBody: net/http would send it again by itself.
func signing(next http.RoundTripper) http.RoundTripper {
	return tripper(func(req *http.Request) (*http.Response, error) {
		if req.Body == nil {
			return next.RoundTrip(req)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		again, err := http.NewRequestWithContext(req.Context(), req.Method, req.URL.String(), bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		again.Header = req.Header
		return next.RoundTrip(again)
	})
}

// speaking returns clients of a version of HTTP, without a middleware and with one.
func speaking(t *testing.T, url string, http2 bool) map[string]*gateway.Client {
	t.Helper()
	clients := map[string]*gateway.Client{}
	for name, more := range map[string][]gateway.Option{"no middleware": nil, "signing": {gateway.WithMiddleware(signing)}} {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!http2)
		protocols.SetHTTP2(http2)
		transport := &http.Transport{TLSClientConfig: clientTLS(), Protocols: protocols}
		client, err := gateway.New(url, canary, append(more, gateway.WithHTTPClient(&http.Client{Transport: transport}))...)
		require.NoError(t, err)
		t.Cleanup(client.CloseIdleConnections)
		clients[name] = client
	}
	return clients
}

// keyPair writes the certificate, with its key, for a server.
func keyPair(t *testing.T) string {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(certificate().PrivateKey)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "pair.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate().Certificate[0]})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	require.NoError(t, os.WriteFile(name, text, 0o600))
	return name
}

// run starts a server, which ends with the test, and returns what it writes.
func run(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start(), ".ci/install installs it")
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return bufio.NewReader(out)
}

// TestHAProxy has a server behind HAProxy that creates an invoice and closes its connection. HAProxy responds with 502, or
// over HTTP/2 with REFUSED_STREAM.
func TestHAProxy(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	created := map[string]int{}
	behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		created[call.OrderIn(body)]++
		mu.Unlock()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(behind.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	file, err := listener.(*net.TCPListener).File()
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
defaults
  mode http
  timeout connect 9s
  timeout client 9s
  timeout server 9s
listen gateway
  bind fd@3 ssl crt %s alpn h2,http/1.1
  server behind %s
`, keyPair(t), strings.TrimPrefix(behind.URL, "http://")), 0o600))
	cmd := exec.Command("haproxy", "-db", "-f", config)
	cmd.ExtraFiles = []*os.File{file}
	run(t, cmd)
	for version, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		for name, client := range speaking(t, "https://"+listener.Addr().String(), http2) {
			for n := range 5 {
				order := fmt.Sprintf("%s, %s, %d", version, name, n)
				r := call.Create(t.Context(), client, order, nil)
				assert.Equal(t, gateway.OutcomeUnknown, r.Outcome(), "%s: %v", order, r.Err)
				mu.Lock()
				assert.Equal(t, 1, created[order], order)
				mu.Unlock()
			}
		}
	}
}

// TestNode has a server of Node whose handler sends a GOAWAY at each tenth invoice. It goes on to serve streams that the
// GOAWAY excludes.
func TestNode(t *testing.T) {
	t.Parallel()
	out := run(t, exec.Command("node", "-e", `
		const created = {}, pair = require('fs').readFileSync(process.argv[1]);
		let invoices = 0;
		const server = require('http2').createSecureServer({key: pair, cert: pair}, (request, response) => {
			response.on('error', () => {});
			let body = '';
			request.on('data', data => body += data).on('error', () => {});
			request.on('end', () => {
				if (request.url === '/created') return response.end(JSON.stringify(created));
				if (!body) return; // the stream ended early
				const {orderId} = JSON.parse(body);
				created[orderId] = (created[orderId] || 0) + 1;
				if (++invoices % 10 === 0) request.stream.session?.goaway();
				if (!response.stream.destroyed) response.writeHead(201).end(JSON.stringify({message: 'Operation was successful.', result: {id: '1', orderId}, meta: {}}));
			});
		});
		server.on('sessionError', () => {}).listen(0, '127.0.0.1', () => console.log(server.address().port));
	`, keyPair(t)))
	port, err := out.ReadString('\n')
	require.NoError(t, err)
	url := "https://127.0.0.1:" + strings.TrimSpace(port)
	outcomes := map[string]gateway.Outcome{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for name, client := range speaking(t, url, true) {
		for caller := range 20 {
			all.Go(func() {
				for n := range 10 {
					order := fmt.Sprintf("%s, %d, %d", name, caller, n)
					r := call.Create(t.Context(), client, order, nil)
					mu.Lock()
					outcomes[order] = r.Outcome()
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	transport := &http.Transport{TLSClientConfig: clientTLS(), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: patient}).Get(url + "/created")
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var created map[string]int
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&created))
	for order, outcome := range outcomes {
		assert.LessOrEqual(t, created[order], 1, order)
		assert.True(t, outcome == gateway.OutcomeUnknown || (outcome == gateway.OutcomeSucceeded) == (created[order] == 1), "%s: %v", order, outcome)
	}
}
