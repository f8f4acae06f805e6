package attempt_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/attempt"
)

// doubling is a RoundTripper that sends each request twice.
type doubling struct{ http.RoundTripper }

func (d doubling) RoundTrip(req *http.Request) (*http.Response, error) {
	text, _ := io.ReadAll(req.Body)
	for range 2 {
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(text))
		resp, err := d.RoundTripper.RoundTrip(req)
		if err != nil || resp.StatusCode != 502 {
			return resp, err
		}
	}
	return nil, io.EOF
}

func post(t *testing.T, url string, next http.RoundTripper) (*http.Response, *attempt.Result) {
	t.Helper()
	transport := &attempt.Transport{
		Next: next, ReadTimeout: attempt.Timeout(time.Second), InvoiceTimeout: attempt.Timeout(time.Second),
		MaxBody: 1 << 20, MaxErrorBody: 1 << 10, IsTransient: func(int) bool { return false },
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, &attempt.Text{Bytes: []byte("{}")})
	require.NoError(t, err)
	req.ContentLength = 2
	resp, err := (&http.Client{Transport: transport}).Do(req)
	require.NoError(t, err)
	return resp, resp.Body.(*attempt.Result)
}

func TestTransport_twice(t *testing.T) {
	t.Parallel()
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			w.WriteHeader(502)
		}
	}))
	defer server.Close()
	_, result := post(t, server.URL, doubling{&http.Transport{MaxIdleConnsPerHost: -1}})
	assert.ErrorContains(t, result.Doubt, "more than once")
	_, result = post(t, server.URL, doubling{&http.Transport{MaxIdleConnsPerHost: -1}})
	assert.NoError(t, result.Doubt)
}

// raw answers each connection with a text, once a whole request has come.
func raw(t *testing.T, text string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, req.Body) // a response to the header alone would seal the body
			}
			_, _ = io.WriteString(conn, text)
			time.AfterFunc(2*time.Second, func() { _ = conn.Close() })
		}
	}()
	return "http://" + listener.Addr().String()
}

func TestTransport_responses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text, body, err string
		status          int
	}{
		"a redirect to what is no URL":     {"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n", "", "", 302},
		"a change of the protocol":         {"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "", "", 101},
		"a failure of which the end lacks": {"HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nhalf", "half", "no response within 1s", 500},
		"a success of which the end lacks": {"HTTP/1.1 201 OK\r\nContent-Length: 9\r\n\r\nhalf", "half", "no response within 1s", 201},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, result := post(t, raw(t, tt.text), &http.Transport{MaxIdleConnsPerHost: -1})
			assert.Equal(t, tt.status, resp.StatusCode)
			assert.Equal(t, tt.body, string(result.Text()))
			if tt.err != "" {
				assert.EqualError(t, result.Err, tt.err)
			}
		})
	}
}
