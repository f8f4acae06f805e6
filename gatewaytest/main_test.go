package gatewaytest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// TestMain sees that the servers of all tests have left no goroutine.
func TestMain(m *testing.M) {
	code := m.Run()
	left := ""
	for range 100_000 { // a goroutine that has said goodbye still needs a moment to go
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		left = stacks.String()
		if !strings.Contains(left, "gatewaytest.(*Server)") && !strings.Contains(left, "net/http.(*conn)") {
			os.Exit(code)
		}
		runtime.Gosched()
	}
	fmt.Fprintln(os.Stderr, "goroutines left behind:\n"+left)
	os.Exit(1)
}

// A reply is an answer as a plain HTTP client sees it. Err is what went wrong on
// the way to it, or while its body was read.
type reply struct {
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

// try sends one request, with pairs of header names and values, on a connection
// of its own, and follows no redirect.
func try(s *gatewaytest.Server, method, path, body string, headers ...string) reply {
	return tryBy(&http.Transport{DisableKeepAlives: true}, s, method, path, body, headers...)
}

// tryBy is try with the connections of a transport.
func tryBy(transport *http.Transport, s *gatewaytest.Server, method, path, body string, headers ...string) reply {
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text), err}
}

// ask is try for a request that has to be answered in full.
func ask(t *testing.T, s *gatewaytest.Server, method, path, body string, headers ...string) reply {
	t.Helper()
	r := try(s, method, path, body, headers...)
	require.NoError(t, r.err)
	return r
}

// get asks with the server's key in the header.
func get(t *testing.T, s *gatewaytest.Server, path string) reply {
	t.Helper()
	return ask(t, s, "GET", path, "", "x-api-key", s.APIKey)
}

// invoice is the body of a good invoice request; extra is put before its end.
func invoice(s *gatewaytest.Server, orderID, extra string) string {
	return fmt.Sprintf(`{"apiKey":%q,"price":"10.50","orderId":%q,"amount":"0.5"%s}`, s.APIKey, orderID, extra)
}

// post sends an invoice request.
func post(s *gatewaytest.Server, body string) reply {
	return try(s, "POST", "/api/invoice/create", body, "Content-Type", "application/json")
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

// awaitRequests returns once the journal has that many entries whose body was read.
func awaitRequests(s *gatewaytest.Server, n int) {
	for {
		read := 0
		for _, r := range s.Requests() {
			if r.KeyIn != "" {
				read++
			}
		}
		if read >= n {
			return
		}
		runtime.Gosched()
	}
}

// errorBody is the documented error envelope with a message.
func errorBody(message string) string {
	return fmt.Sprintf(`{"message":%q,"result":[],"meta":{}}`, message)
}

// successBody is the documented envelope with a result.
func successBody(result string) string {
	return fmt.Sprintf(`{"message":"Operation was successful.","result":%s,"meta":{}}`, result)
}

// isCut reports whether an error is a connection that ended too early.
func isCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
