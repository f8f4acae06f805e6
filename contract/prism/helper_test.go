package prism_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/contract/internal/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs Prism on a free loopback port and returns its URL. With --errors it
// responds with an error of its own to what the document does not allow.
func start(t *testing.T, mode string, upstream ...string) string {
	t.Helper()
	args := []string{mode, "--errors", "--multiprocess=false", "--host=127.0.0.1", "--port=0", "../../api/openapi.yaml"}
	return process.Start(t, regexp.MustCompile(`listening on (http://127\.0\.0\.1:\d+)`),
		"../npm/node_modules/.bin/prism", append(args, upstream...)...)
}

// A recorder is a transport that records the responses of Prism.
type recorder struct {
	next http.RoundTripper

	mu       sync.Mutex
	statuses []int
	errors   []string // responses of Prism's own
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &recorder{next: transport}
}

func (w *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.statuses = append(w.statuses, resp.StatusCode)
	own := strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json")
	if own || resp.Header.Get("Sl-Violations") != "" {
		w.errors = append(w.errors, fmt.Sprintf("%s %s: %s %s", r.Method, r.URL.RequestURI(), body, resp.Header.Get("Sl-Violations")))
	}
	return resp, nil
}

// take returns the statuses since the last call, and the errors of Prism's own.
func (w *recorder) take() (statuses []int, errors []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	statuses, errors, w.statuses, w.errors = w.statuses, w.errors, nil, nil
	return statuses, errors
}

// newClient returns a client that makes one attempt.
func newClient(t *testing.T, url, key string, w *recorder, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	opts = append([]gateway.Option{
		gateway.WithHTTPClient(&http.Client{Transport: w}), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}),
	}, opts...)
	client, err := gateway.New(url, key, opts...)
	require.NoError(t, err)
	return client
}

// options are the client options that change requests.
func options() map[string][]gateway.Option {
	return map[string][]gateway.Option{
		"the invoice format of the sample": {gateway.WithInvoiceFormat(gateway.InvoiceFormatSample)},
		"the invoice format of the table":  {gateway.WithInvoiceFormat(gateway.InvoiceFormatTable)},
		"the key on public calls too":      {gateway.WithAPIKeyOnPublicCalls()},
	}
}

// An invalidRequest is a request that the document does not allow.
type invalidRequest struct {
	name         string
	method, path string
	header, body string
	status       int
	reason       string // in the response of a proxy; that of a mock has less detail
}

func invalidRequests() []invalidRequest {
	const inquiry, create = "/api/withdrawal/inquiry/w", "/api/invoice/create"
	return []invalidRequest{
		{"/api/balance without its slash", "GET", "/api/balance", "k", "", 404, "NO_PATH_MATCHED_ERROR"},
		{"a balance without the key header", "GET", "/api/balance/", "", "", 401, "UNAUTHORIZED"},
		{"an inquiry without the key header", "GET", inquiry, "", "", 401, "UNAUTHORIZED"},
		{"a balance with the method POST", "POST", "/api/balance/", "k", "", 405, "NO_METHOD_MATCHED_ERROR"},
		{"an invoice without a key", "POST", create, "", `{"price":"1","orderId":"o","amount":"1"}`, 422, "'apiKey'"},
		{"an invoice without a price", "POST", create, "", `{"apiKey":"k","orderId":"o","amount":"1"}`, 422, "'price'"},
		{"an invoice without an order", "POST", create, "", `{"apikey":"k","price":1,"amount":1}`, 422, "'orderId'"},
		{"an invoice without an amount", "POST", create, "", `{"apiKey":"k","price":"1","orderId":"o"}`, 422, "'amount'"},
		{"an invoice with a price that is no number", "POST", create, "", `{"apiKey":"k","price":"one","orderId":"o","amount":"1"}`, 422, "must match pattern"},
		{"an invoice without a body", "POST", create, "", "", 422, "Body parameter is required"},
	}
}

// send sends the request and returns the response.
func (m invalidRequest) send(t *testing.T, url string, w *recorder) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), m.method, url+m.path, strings.NewReader(m.body))
	require.NoError(t, err)
	if m.header != "" {
		req.Header.Set("X-Api-Key", m.header)
	}
	if m.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := (&http.Client{Transport: w}).Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}
