package gatewaytest_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

func readAll(t *testing.T, conn net.Conn) string {
	t.Helper()
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(text)
}

// A fault has a name, leads to a status, and carries an operation out or not.
func TestServer_InjectFault(t *testing.T) {
	t.Parallel()
	isReset := func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
	const json, html, plain = "application/json; charset=utf-8", "text/html; charset=utf-8", "text/plain; charset=utf-8"
	for _, tt := range []struct {
		name        string // as in the journal
		fault       gatewaytest.Fault
		status      int // in the journal, and in the response unless that is lost
		err         func(error) bool
		body        string // a part of the response
		contentType string
		invoices    int // 1 if carried out
	}{
		{"refuse=503", gatewaytest.FaultRefuse(503, "try \"later\""), 503, nil, `{"message":"try \"later\"","result":[],"meta":{}}`, json, 0},
		{"refuse=200", gatewaytest.FaultRefuse(200, "no"), 200, nil, errorBody("no"), json, 0},
		{"refuse-as=400", gatewaytest.FaultRefuseAs(gatewaytest.ErrorNest, 400, "no"), 400, nil, `{"statusCode":400,"message":"no","error":"Bad Request"}`, json, 0},
		{"refuse-as=422", gatewaytest.FaultRefuseAs(gatewaytest.ErrorProblem, 422, "no"), 422, nil, `"status":422,"detail":"no"`, json, 0},
		{"page=502", gatewaytest.FaultPage(502), 502, nil, "<h1>502 Bad Gateway</h1>", html, 0},
		{"empty=200", gatewaytest.FaultEmpty(200), 200, nil, "", plain, 0},
		{"redirect=307", gatewaytest.FaultRedirect(307, "https://elsewhere.test/x"), 307, nil, "", plain, 0},
		{"reset", gatewaytest.FaultReset(), 0, isReset, "", "", 0},
		{"truncate=12", gatewaytest.FaultTruncate(12), 201, isCut, `{"message":"`, json, 1},
		{"truncate=-1", gatewaytest.FaultTruncate(-1), 201, isCut, "", json, 1},
		{"truncate=100000", gatewaytest.FaultTruncate(100_000), 201, nil, `"meta":{}}`, json, 1},
		{"slow-body=1ns", gatewaytest.FaultSlowBody(1), 201, nil, `"orderId":"o-1"`, json, 1},
		{"huge-body=1", gatewaytest.FaultHugeBody(1), 201, nil, `"orderId":"o-1"`, json, 1},
		{"commit-then-drop", gatewaytest.FaultCommitThenDrop(), 0, isCut, "", "", 1},
		{"", gatewaytest.Fault{}, 201, nil, `"orderId":"o-1"`, json, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.InjectFault(gatewaytest.OpCreateInvoice, 1, tt.fault.RetryAfter("-1"))
			got := post(s, invoice(s, "o-1", ""))
			if tt.err == nil {
				require.NoError(t, got.err)
			} else {
				require.Truef(t, tt.err(got.err), "%v", got.err)
			}
			assert.Equal(t, tt.status, got.status)
			assert.Contains(t, got.body, tt.body)
			assert.Equal(t, tt.body == "", got.body == "")
			if got.status != 0 {
				assert.Equal(t, tt.contentType, got.header.Get("Content-Type"))
				assert.Equal(t, "-1", got.header.Get("Retry-After"))
				assert.Equal(t, tt.name == "redirect=307", got.header.Get("Location") == "https://elsewhere.test/x")
			}
			assert.Len(t, s.InvoicesFor("o-1"), tt.invoices)
			assert.Equal(t, tt.name, tt.fault.String())
			entry := s.Requests()[0]
			assert.Equal(t, tt.name, entry.Fault)
			assert.Equal(t, tt.status, entry.Status)
			assert.True(t, entry.KeyOK)

			assert.Equal(t, 201, post(s, invoice(s, "o-2", "")).status, "the fault has passed")
			assert.Empty(t, s.Requests()[1].Fault)
		})
	}
}

// A truncated response has the Content-Length of the whole one and n bytes of it. A whole one ends without notice, too.
func TestTruncate_counts(t *testing.T) {
	t.Parallel()
	s := start(t)
	whole := get(t, s, "/api/balance/").body
	for _, n := range []int{0, 1, len(whole) - 1, len(whole)} {
		s.InjectFault(gatewaytest.AnyOperation, 1, gatewaytest.FaultTruncate(n))
		got := try(s, "GET", "/api/balance/", "", "x-api-key", s.APIKey)
		assert.Equal(t, whole[:n], got.body)
		assert.Equal(t, n == len(whole), got.err == nil)
	}
	s.InjectFault(gatewaytest.AnyOperation, 1, gatewaytest.FaultTruncate(1_000_000))
	conn := dial(t, s, "GET /gateway/api/exchange-rate HTTP/1.1\r\nHost: gateway\r\n\r\n")
	assert.NotContains(t, readAll(t, conn), "Connection: close")
}

// A huge body has the given size, and the usual result after its padding.
func TestHugeBody(t *testing.T) {
	t.Parallel()
	s := start(t)
	message, result, _ := strings.Cut(strings.TrimSuffix(get(t, s, "/api/balance/").body, `,"meta":{}}`), `"result"`)
	for _, size := range []int{10_000, 1 << 20} {
		s.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultHugeBody(int64(size)))
		got := get(t, s, "/api/balance/").body
		assert.Len(t, got, size)
		assert.True(t, strings.HasPrefix(got, message+`"meta":{"padding":"xxx`))
		assert.True(t, strings.HasSuffix(got, `xxx"},"result"`+result+`}`))
	}
	s.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultHugeBody(100))
	assert.Equal(t, 401, mustTry(t, s, "GET", "/api/balance/", "").status, "a refusal stays one")
}

// A client that disconnects in the middle of its body releases Stall.
func TestStall_with_half_a_body(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, body := range []string{"Content-Length: 9\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n9\r\n{"} {
		s.InjectFault(gatewaytest.AnyOperation, 1, gatewaytest.FaultStall())
		conn := dial(t, s, "POST /gateway/api/invoice/create HTTP/1.1\r\nHost: gateway\r\n"+body)
		require.NoError(t, conn.CloseWrite())
		assert.Empty(t, readAll(t, conn))
	}
}

func TestServer_InjectFault_queue(t *testing.T) {
	t.Parallel()
	s := start(t)
	refuse := func(status int) gatewaytest.Fault { return gatewaytest.FaultRefuse(status, "") }
	s.InjectFault(gatewaytest.OpBalance, 0, refuse(500)) // never
	s.InjectFault(gatewaytest.OpBalance, 2, refuse(501))
	s.InjectFault(gatewaytest.AnyOperation, 1, refuse(502))
	s.InjectFault(gatewaytest.OpExchangeRates, 1, refuse(503))
	s.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.Fault{})
	s.InjectFault(gatewaytest.OpBalance, -1, refuse(504))
	s.InjectFault(gatewaytest.OpBalance, 1, refuse(505)) // queued after one without end
	for _, want := range []int{501, 501, 502, 200, 504, 504, 504} {
		assert.Equal(t, want, get(t, s, "/api/balance/").status)
	}
	assert.Equal(t, []int{503, 200}, rates(t, s, 2))
	s.ClearFaults()
	assert.Equal(t, 200, get(t, s, "/api/balance/").status)
	s.InjectFault(gatewaytest.AnyOperation, 1, refuse(418))
	assert.Equal(t, 418, get(t, s, "/elsewhere").status, "unknown routes count")
	s.InjectFault(gatewaytest.OpBalance, 1, refuse(418))
	assert.Equal(t, 418, mustTry(t, s, "DELETE", "/api/balance/", "").status, "so do wrong methods")
}

// Every form is JSON with the message in it.
func TestErrorForms(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, form := range gatewaytest.ErrorForms() {
		s.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultRefuseAs(form, 418, `no "coin"`))
		got := get(t, s, "/api/balance/")
		assert.Equal(t, 418, got.status)
		assert.True(t, json.Valid([]byte(got.body)), got.body)
		assert.Contains(t, got.body, `"no \"coin\""`)
	}
}

// A call with a mistake panics at its line, and changes nothing.
func TestServer_panics(t *testing.T) {
	t.Parallel()
	s := start(t)
	for want, call := range map[string]func(){
		`gatewaytest: InjectFault for operation "other", want one of its constants`:           func() { s.InjectFault("other", 1, gatewaytest.Fault{}) },
		"gatewaytest: FaultRefuse with status 103, want 200 to 999":                           func() { gatewaytest.FaultRefuse(103, "") },
		"gatewaytest: FaultRefuse with status 1000, want 200 to 999":                          func() { gatewaytest.FaultRefuse(1000, "") },
		"gatewaytest: FaultRedirect with status 299, want 300 to 399":                         func() { gatewaytest.FaultRedirect(299, "") },
		`gatewaytest: SetRepeatedOrders with "first", want one of its constants`:              func() { s.SetRepeatedOrders("first") },
		"gatewaytest: Advance with -1ns, want 0 or more":                                      func() { s.Advance(-1) },
		"gatewaytest: SetRateLimit with -1 requests in 1s, want 0 or more in more than 0s":    func() { s.SetRateLimit(-1, time.Second) },
		"gatewaytest: SetRateLimit with 1 requests in 0s, want 0 or more in more than 0s":     func() { s.SetRateLimit(1, 0) },
		"gatewaytest: WithAPIKey wants 1 to 4,096 printable ASCII characters without a space": func() { gatewaytest.WithAPIKey("a key") },
		`gatewaytest: SetResult for operation "other", want one operation of the service`:     func() { s.SetResult("other", `[]`) },
		`gatewaytest: SetResult for operation "any", want one operation of the service`:       func() { s.SetResult(gatewaytest.AnyOperation, `[]`) },
	} {
		assert.PanicsWithValue(t, want, call)
	}
	assert.Equal(t, []int{200, 200}, rates(t, s, 2))
}
