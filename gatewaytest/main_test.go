package gatewaytest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/leak"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { leak.Main(m) }

// A response is what a plain HTTP client receives. Its err is the error of the
// request or of reading the body.
type response struct {
	status int
	header http.Header
	body   string
	err    error
}

// start returns a server that is closed when the test ends.
func start(t *testing.T) *gatewaytest.Server {
	t.Helper()
	s := gatewaytest.NewServer()
	t.Cleanup(s.Close)
	return s
}

// try sends one request, with pairs of header names and values, on its own
// connection, and follows no redirect.
func try(s *gatewaytest.Server, method, path, body string, headers ...string) response {
	transport := s.Transport()
	transport.DisableKeepAlives = true
	return tryBy(transport, s, method, path, body, headers...)
}

// tryBy is try with the connections of a transport.
func tryBy(transport *http.Transport, s *gatewaytest.Server, method, path, body string, headers ...string) response {
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return response{err: err}
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return response{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(text), err}
}

// mustTry is try for a request whose response must arrive completely.
func mustTry(t *testing.T, s *gatewaytest.Server, method, path, body string, headers ...string) response {
	t.Helper()
	r := try(s, method, path, body, headers...)
	require.NoError(t, r.err)
	return r
}

// get sends a GET request with the server's key in the header.
func get(t *testing.T, s *gatewaytest.Server, path string) response {
	t.Helper()
	return mustTry(t, s, "GET", path, "", "x-api-key", s.APIKey)
}

// invoice returns the body of a valid invoice request; extra precedes its end.
func invoice(s *gatewaytest.Server, orderID, extra string) string {
	return fmt.Sprintf(`{"apiKey":%q,"price":"10.50","orderId":%q,"amount":"0.5"%s}`, s.APIKey, orderID, extra)
}

func post(s *gatewaytest.Server, body string) response {
	return try(s, "POST", "/api/invoice/create", body, "Content-Type", "application/json")
}

// startInMemory returns a server without a network, which the end of the bubble closes.
func startInMemory(t *testing.T, opts ...gatewaytest.Option) *gatewaytest.Server {
	t.Helper()
	s := gatewaytest.NewMemoryServer(opts...)
	t.Cleanup(s.Close)
	return s
}

// dial opens a connection and writes a text to it.
func dial(t *testing.T, s *gatewaytest.Server, text string) *net.TCPConn {
	t.Helper()
	host, _, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), "/")
	conn, err := net.Dial("tcp", host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	return conn.(*net.TCPConn)
}

// errorBody returns the documented error envelope with a message.
func errorBody(message string) string {
	return fmt.Sprintf(`{"message":%q,"result":[],"meta":{}}`, message)
}

// successBody returns the documented envelope with a result.
func successBody(result string) string {
	return fmt.Sprintf(`{"message":"Operation was successful.","result":%s,"meta":{}}`, result)
}

// isCut reports whether an error means that the connection ended early.
func isCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
