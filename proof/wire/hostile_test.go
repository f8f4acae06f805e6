package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// newClient returns a client of server, and the end of its connections.
func newClient(t *testing.T, server *faultserver.Server, timeout time.Duration) (client *gateway.Client, closeIdle func()) {
	transport := &http.Transport{MaxResponseHeaderBytes: 256 << 10, DialContext: server.DialContext}
	client, err := gateway.New("http://"+call.Host+"/merchant", canary,
		gateway.WithHTTPClient(&http.Client{Transport: transport}),
		gateway.WithRetry(gateway.RetryPolicy{AttemptTimeout: timeout, InvoiceTimeout: timeout, BaseDelay: time.Millisecond, MaxDelay: time.Millisecond}))
	require.NoError(t, err)
	return client, client.CloseIdleConnections
}

// sendAndClose sends a response and closes the connection.
func sendAndClose(response string) faultserver.Handler {
	return faultserver.OneRequest(func(c *faultserver.Conn) { c.Send(response) })
}

// flood sends a beginning, and then more of the same without end.
func flood(head, more string) faultserver.Handler {
	return faultserver.OneRequest(func(c *faultserver.Conn) { faultserver.Flood(c, head, more) })
}

// trickle sends a beginning, and then a byte every now and then without end.
func trickle(head string) faultserver.Handler {
	return faultserver.OneRequest(func(c *faultserver.Conn) { faultserver.Trickle(c, head, 5*time.Millisecond) })
}

const okHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

const (
	small = 8 << 20   // bytes for a response that is refused at its beginning, in three attempts
	large = 160 << 20 // for one that is read up to the limit of 8 MiB
)

// meets makes a server of a handler.
func meets(handler faultserver.Handler) func(*harness) {
	return func(h *harness) {
		h.transport.MaxResponseHeaderBytes = 256 << 10
		h.server.Handler = handler
	}
}

// slowly is meets for responses that end with their attempts.
func slowly(handler faultserver.Handler) func(*harness) {
	return func(h *harness) {
		h.policy.AttemptTimeout, h.policy.InvoiceTimeout = 4*short, 4*short
		meets(handler)(h)
	}
}

// sized is a handler that sends a success with a body of this length.
func sized(body string) faultserver.Handler {
	return faultserver.Respond(faultserver.WithLength(okHead, body))
}

// TestHostile is about responses that cost as much as they can: what a call allocates for
// them is bounded, and nothing is left behind.
func TestHostile(t *testing.T) {
	const gzipped = "Content-Encoding: gzip\r\n"
	body := call.Enveloped(call.WithdrawalResult)
	var (
		notDecoded    = expectation{kind: decodeFailure, requests: 1}
		notUnderstood = expectation{kind: unknown, status: 200, requests: 1}
		noHeader      = expectation{kind: transportFailure, phase: gateway.PhaseWait, requests: 1}
		badHeader     = expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3}
		lost          = expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1}
		refusal       = expectation{kind: apiFailure, status: 404, attempts: 1, requests: 1}
		refusedOrder  = expectation{kind: unknown, status: 404, attempts: 1, requests: 1} // its body is not known
	)
	check := call.Leftovers(t)
	runFaults(t, onSockets, []faultCase{
		{
			name:   "a gzip bomb in a field that is not read",
			setup:  meets(faultserver.Respond(faultserver.WithLength(okHead+gzipped, faultserver.Gzip(`{"x":`, 100)))),
			read:   expectation{kind: transportFailure, phase: gateway.PhaseRead, status: 200, requests: 1, is: []error{gateway.ErrResponseTooLarge}},
			write:  expectation{kind: unknown, phase: gateway.PhaseRead, status: 200, requests: 1, is: []error{gateway.ErrResponseTooLarge}},
			memory: large,
		},
		{
			name:  "a gzip bomb under a status of a refusal",
			setup: meets(faultserver.Respond(faultserver.WithLength("HTTP/1.1 404 Not Found\r\n"+gzipped, faultserver.Gzip(`{"message":"`, 100)))),
			read:  refusal, write: refusedOrder, memory: small,
		},
		{name: "a million braces", setup: meets(sized(strings.Repeat(`{"a":`, 1_000_000))), read: notDecoded, write: notUnderstood, memory: 2 * small},
		{name: "a million brackets within the result", setup: meets(sized(`{"result":` + strings.Repeat(`[`, 1_000_000))), read: notDecoded, write: notUnderstood, memory: small},
		{
			name:  "ten thousand levels of long names",
			setup: meets(sized(strings.Repeat(`{"`+strings.Repeat("n", 90)+`":`, 10_100))),
			read:  notDecoded, write: notUnderstood, memory: large,
		},
		{
			name:  "a list of a million where a record should be",
			setup: meets(sized(`{"message":"Operation was successful.","result":[` + strings.Repeat("{},", 1_000_000) + `{}]}`)),
			read:  notDecoded, write: notUnderstood, memory: large,
		},
		{name: "a header that never ends", setup: meets(flood("HTTP/1.1 200 OK\r\nX-Long: ", strings.Repeat("h", 1000))), read: noHeader, write: lost, memory: small},
		{name: "headers that never end", setup: meets(flood("HTTP/1.1 200 OK\r\n", "X-One: more\r\n")), read: noHeader, write: lost, memory: small},
		{name: "a status line that never ends", setup: meets(flood("HTTP/1.1 200 ", "OK")), read: noHeader, write: lost, memory: small},
		{
			name:  "informational responses that never end",
			setup: meets(flood("", earlyHints)),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, requests: anyNumber}, write: lost, memory: small,
		},
		{
			name:   "a body that trickles",
			setup:  slowly(trickle(okHead + "\r\n{")),
			read:   expectation{kind: transportFailure, phase: gateway.PhaseRead, status: 200, attempts: 3, requests: 3, is: []error{context.DeadlineExceeded}},
			write:  expectation{kind: unknown, phase: gateway.PhaseRead, status: 200, requests: 1, is: []error{context.DeadlineExceeded}},
			memory: small,
		},
		{name: "a body that trickles, under a status of a refusal", setup: slowly(trickle("HTTP/1.1 404 Not Found\r\n\r\n{")), read: refusal, write: refusedOrder, memory: small},
		{
			name:   "a header that trickles",
			setup:  slowly(trickle("HTTP/1.1 200 OK\r\nX-Slow:")),
			read:   expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3, is: []error{context.DeadlineExceeded}},
			write:  expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1, is: []error{context.DeadlineExceeded}},
			memory: small,
		},
		{
			name:  "a Content-Length that is too small",
			setup: meets(faultserver.Respond(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", okHead, len(body)-1, body))),
			read:  expectation{kind: decodeFailure, requests: anyNumber}, write: notUnderstood, memory: small,
		},
		{name: "a Content-Length that is negative", setup: meets(sendAndClose(okHead + "Content-Length: -1\r\n\r\n" + body)), read: badHeader, write: lost, memory: small},
		{name: "two Content-Lengths", setup: meets(sendAndClose(okHead + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + body)), read: badHeader, write: lost, memory: small},
		{
			name:   "a chunk of a size beyond belief",
			setup:  meets(sendAndClose(chunkedHead + "ffffffffffffffff0\r\n" + body)),
			read:   expectation{kind: transportFailure, phase: gateway.PhaseRead, status: 200, attempts: 3, requests: 3},
			write:  expectation{kind: unknown, phase: gateway.PhaseRead, status: 200, requests: 1},
			memory: small,
		},
		{name: "two responses in one body", setup: meets(sized(body + body)), read: notDecoded, write: notUnderstood, memory: small},
	})
	check()
}

// net/http quotes a response that is not HTTP as a whole. Cleaning that text of URLs with
// passwords costs memory in proportion to its size.
func TestHostile_QuotedResponses(t *testing.T) {
	const password = "hunter2-and-more"
	many, account := strings.Repeat("://", 80_000), "http://user:"+password+"@host/ "
	var cases []faultCase
	for name, response := range map[string]string{
		"many URLs for a length":              "HTTP/1.1 200 OK\r\nContent-Length: " + many + "\r\n\r\n",
		"many URLs for a status":              "HTTP/1.1 " + many + "\r\n\r\n",
		"many URLs for a protocol":            many + " 200 OK\r\n\r\n",
		"a password and many URLs":            "HTTP/1.1 200 OK\r\nContent-Length: " + account + many + "\r\n\r\n",
		"a password and many URLs, as status": "HTTP/1.1 " + account + many + "\r\n\r\n",
		"many passwords":                      "HTTP/1.1 " + strings.Repeat(account, 5000) + "\r\n\r\n",
	} {
		cases = append(cases, faultCase{
			name: name,
			setup: func(h *harness) {
				h.policy.MaxAttempts, h.secrets = 1, []string{password}
				sendEach(response)(h)
			},
			read:   expectation{kind: transportFailure, phase: gateway.PhaseWait, requests: 1},
			write:  expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1},
			memory: small,
		})
	}
	runFaults(t, inBubble, cases)
}

// TestHostile_Connections checks whether a connection is used again after a
// response.
func TestHostile_Connections(t *testing.T) {
	good := faultserver.WithLength(okHead, call.Enveloped(call.WithdrawalResult))
	for _, c := range []struct {
		name    string
		handler faultserver.Handler
		again   bool
	}{
		{"after a success it is", faultserver.Respond(good), true},
		{"after a refusal it is", faultserver.Respond(faultserver.Response(404, `{"message":"no","result":[],"meta":{}}`)), true},
		{"after a short response that is not understood it is", faultserver.Respond(faultserver.WithLength(okHead, `{"result":7}`)), true},
		{"after a response with a tail it is not", faultserver.Respond(good + "tail"), false},
		{"after a refusal with a body that never ends it is not", flood("HTTP/1.1 404 Not Found\r\n\r\n", "xxxxxxxx"), false},
		{"after a body that never ends it is not", flood(okHead+"\r\n"+`{"x":"`, strings.Repeat("x", 1000)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := listening(t, c.handler)
			client, closeIdle := newClient(t, server, patient)
			defer server.Close()
			defer closeIdle()
			for range 2 {
				_, _ = client.Withdrawal(t.Context(), call.WithdrawalID)
			}
			assert.Equal(t, 2, server.Record.Seen().Requests)
			if c.again {
				assert.Equal(t, 1, server.Conns())
			} else { // net/http may dial once more than it needs
				assert.Greater(t, server.Conns(), 1)
			}
		})
	}
}

// TestHostile_Unsolicited is about a server that responds twice: the second
// response is on the connection when the next request is sent.
func TestHostile_Unsolicited(t *testing.T) {
	check := call.Leftovers(t)
	other := strings.ReplaceAll(call.WithdrawalResult, call.WithdrawalID, "another")
	for _, c := range []struct{ name, extra string }{
		{"a response to an earlier read", faultserver.WithLength(okHead, call.Enveloped(other))},
		{"an invoice of another order", faultserver.WithLength(okHead, call.Enveloped(call.InvoiceResult("another")))},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := listening(t, faultserver.Respond(faultserver.WithLength(okHead, call.Enveloped(call.WithdrawalResult))+c.extra))
			client, closeIdle := newClient(t, server, patient)
			defer server.Close()
			defer closeIdle()
			for range 20 {
				w, err := client.Withdrawal(t.Context(), call.WithdrawalID)
				if err == nil {
					assert.Equal(t, call.WithdrawalID, w.WithdrawRequestID)
					continue
				}
				var mismatch *gateway.DecodeError // the second response was taken
				assert.ErrorAs(t, err, &mismatch)
			}
			assert.GreaterOrEqual(t, server.Conns(), 2, "a connection with a response too many is given up")
		})
	}
	check()
}

// TestHostile_LogOfNetHTTP records what net/http writes to the logger of the
// program, which the client cannot turn off: for a connection that was idle, and
// only where the server broke the protocol.
func TestHostile_LogOfNetHTTP(t *testing.T) {
	good := faultserver.WithLength(okHead, call.Enveloped(call.WithdrawalResult))
	for _, c := range []struct {
		name string
		want string // "" for nothing
	}{
		{"a success", ""},
		{"a success and a second response that comes later", "Unsolicited response received on idle HTTP channel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var logged safeBuffer
			log.SetOutput(&logged)
			defer log.SetOutput(io.Discard)
			idle := make(chan struct{})
			server := listening(t, faultserver.EachRequest(func(conn *faultserver.Conn) bool {
				conn.Send(good)
				<-idle
				if c.want != "" {
					conn.Send(good)
				}
				return true
			}))
			client, closeIdle := newClient(t, server, patient)
			defer server.Close()
			defer closeIdle()
			_, err := client.Withdrawal(t.Context(), call.WithdrawalID)
			require.NoError(t, err)
			close(idle)
			if c.want != "" {
				call.Until(t, "net/http logs it", func() bool { return strings.Contains(logged.String(), c.want) })
				assert.NotContains(t, logged.String(), canary)
			} else {
				assert.Empty(t, logged.String())
			}
		})
	}
}

// A safeBuffer is a buffer for two goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
