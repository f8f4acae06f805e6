package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// newClient returns a client of server, and the end of its connections.
func newClient(t *testing.T, server *faultserver.Server, timeout time.Duration) (client *gateway.Client, closeIdle func()) {
	transport := &http.Transport{MaxResponseHeaderBytes: 256 << 10, DialContext: server.DialContext}
	caller := &http.Client{Transport: gateway.InvoiceTransport(transport)}
	client, err := gateway.New("http://"+call.Host+"/merchant", canary,
		gateway.WithHTTPClient(caller),
		gateway.WithRetry(gateway.RetryPolicy{AttemptTimeout: timeout, InvoiceTimeout: timeout, BaseDelay: time.Millisecond, MaxDelay: time.Millisecond}))
	require.NoError(t, err)
	return client, caller.CloseIdleConnections
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

// A hostileCase is a hostile response and the result of both kinds of call.
type hostileCase struct {
	name     string
	handler  faultserver.Handler
	read     func(t assert.TestingT, err error) // nil for a read that succeeds
	write    gateway.Outcome                    // of a create-invoice that gets the same response
	memory   uint64                             // what one call may allocate, in bytes
	requests int                                // of the read; 0 for any
}

func transportError(is ...error) func(t assert.TestingT, err error) {
	return func(t assert.TestingT, err error) {
		var failure *gateway.TransportError
		assert.ErrorAs(t, err, &failure)
		for _, target := range is {
			assert.ErrorIs(t, err, target)
		}
	}
}

func decodeError(t assert.TestingT, err error) {
	var failure *gateway.DecodeError
	assert.ErrorAs(t, err, &failure)
}

func apiError(status int) func(t assert.TestingT, err error) {
	return func(t assert.TestingT, err error) {
		var refusal *gateway.APIError
		if assert.ErrorAs(t, err, &refusal) {
			assert.Equal(t, status, refusal.StatusCode)
			assert.LessOrEqual(t, len(refusal.Body), 8<<10)
		}
	}
}

const (
	small = 8 << 20   // bytes for a response that is refused at its beginning, in three attempts
	large = 160 << 20 // for one that is read up to the limit of 8 MiB
)

func hostileCases() []hostileCase {
	body := call.Enveloped(call.WithdrawalResult)
	list := `{"message":"Operation was successful.","result":[` + strings.Repeat("{},", 1_000_000) + `{}]}`
	return []hostileCase{
		{"a gzip bomb in a field that is not read", faultserver.Respond(faultserver.WithLength(okHead+"Content-Encoding: gzip\r\n", faultserver.Gzip(`{"x":`, 100))), transportError(gateway.ErrResponseTooLarge), gateway.OutcomeUnknown, large, 1},
		{"a gzip bomb under a status of a refusal", faultserver.Respond(faultserver.WithLength("HTTP/1.1 404 Not Found\r\nContent-Encoding: gzip\r\n", faultserver.Gzip(`{"message":"`, 100))), apiError(404), gateway.OutcomeRejected, small, 1},
		{"a million braces", faultserver.Respond(faultserver.WithLength(okHead, strings.Repeat(`{"a":`, 1_000_000))), decodeError, gateway.OutcomeUnknown, small, 1},
		{"a million brackets within the result", faultserver.Respond(faultserver.WithLength(okHead, `{"result":`+strings.Repeat(`[`, 1_000_000))), decodeError, gateway.OutcomeUnknown, small, 1},
		{"ten thousand levels of long names", faultserver.Respond(faultserver.WithLength(okHead, strings.Repeat(`{"`+strings.Repeat("n", 90)+`":`, 10_100))), decodeError, gateway.OutcomeUnknown, large, 1},
		{"a list of a million where a record should be", faultserver.Respond(faultserver.WithLength(okHead, list)), decodeError, gateway.OutcomeUnknown, large, 1},
		{"a header that never ends", flood("HTTP/1.1 200 OK\r\nX-Long: ", strings.Repeat("h", 1000)), transportError(), gateway.OutcomeUnknown, small, 1},
		{"headers that never end", flood("HTTP/1.1 200 OK\r\n", "X-One: more\r\n"), transportError(), gateway.OutcomeUnknown, small, 1},
		{"a status line that never ends", flood("HTTP/1.1 200 ", "OK"), transportError(), gateway.OutcomeUnknown, small, 1},
		{"a body that never ends", flood(okHead+"\r\n"+`{"x":"`, strings.Repeat("x", 1000)), transportError(gateway.ErrResponseTooLarge), gateway.OutcomeUnknown, large, 1},
		{"a body that never ends, under a status of a refusal", flood("HTTP/1.1 404 Not Found\r\n\r\n", strings.Repeat("x", 1000)), apiError(404), gateway.OutcomeRejected, small, 1},
		{"a body that never ends, under a status of a failing server", flood("HTTP/1.1 500 Oh\r\n\r\n", strings.Repeat("x", 1000)), apiError(500), gateway.OutcomeUnknown, small, 3},
		{"a body that trickles", trickle(okHead + "\r\n{"), transportError(gateway.ErrTimeout), gateway.OutcomeUnknown, small, 3},
		{"a body that trickles, under a status of a refusal", trickle("HTTP/1.1 404 Not Found\r\n\r\n{"), apiError(404), gateway.OutcomeRejected, small, 1},
		{"a header that trickles", trickle("HTTP/1.1 200 OK\r\nX-Slow:"), transportError(gateway.ErrTimeout), gateway.OutcomeUnknown, small, 3},
		{"informational responses that never end", flood("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), transportError(), gateway.OutcomeUnknown, small, 0},
		{"a few informational responses first", faultserver.Respond(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 5) + faultserver.WithLength(okHead, body)), nil, gateway.OutcomeSucceeded, small, 1},
		{"a Content-Length that is too large", sendAndClose(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", okHead, len(body)+1, body)), transportError(io.ErrUnexpectedEOF), gateway.OutcomeUnknown, small, 3},
		{"a Content-Length that is too small", faultserver.Respond(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", okHead, len(body)-1, body)), decodeError, gateway.OutcomeUnknown, small, 0},
		{"a Content-Length that is negative", sendAndClose(okHead + "Content-Length: -1\r\n\r\n" + body), transportError(), gateway.OutcomeUnknown, small, 3},
		{"two Content-Lengths", sendAndClose(okHead + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + body), transportError(), gateway.OutcomeUnknown, small, 3},
		{"a chunk of a size beyond belief", sendAndClose(okHead + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff0\r\n" + body), transportError(), gateway.OutcomeUnknown, small, 3},
		{"no HTTP at all", sendAndClose("SSH-2.0-OpenSSH_9.9\r\n"), transportError(), gateway.OutcomeUnknown, small, 3},
		{"two responses in one body", faultserver.Respond(faultserver.WithLength(okHead, body+body)), decodeError, gateway.OutcomeUnknown, small, 1},
		{"an unexpected switch of protocols", sendAndClose("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), transportError(), gateway.OutcomeUnknown, small, 0},
	}
}

// TestHostile gives every hostile response to a read and to a create-invoice,
// and checks their results, what they cost and what they leave behind.
func TestHostile(t *testing.T) {
	check := call.Leftovers(t)
	for _, c := range hostileCases() {
		t.Run(c.name, func(t *testing.T) {
			server := listening(t, c.handler)
			timeout := patient
			if strings.Contains(c.name, "trickles") {
				timeout = 4 * short
			}
			client, closeIdle := newClient(t, server, timeout)
			defer server.Close()
			defer closeIdle()
			ctx, cancel := context.WithTimeout(t.Context(), 4*patient)
			defer cancel()
			c.checkRead(t, ctx, server, client)
			c.checkOrder(t, ctx, server, client, call.Target)
			if c.memory == small {
				require.NoError(t, client.PrepareInvoice(ctx))
				c.checkOrder(t, ctx, server, client, "prepared")
			}
			assert.NoError(t, ctx.Err())
		})
	}
	check()
}

func (c hostileCase) checkRead(t *testing.T, ctx context.Context, server *faultserver.Server, client *gateway.Client) {
	var err error
	cost := allocated(func() { _, err = client.Withdrawal(ctx, call.WithdrawalID) })
	if c.read == nil {
		assert.NoError(t, err)
	} else if assert.Error(t, err) {
		c.read(t, err)
	}
	if c.requests > 0 {
		assert.Equal(t, c.requests, server.Record.Seen().Requests, "%v", err)
	}
	assert.Less(t, cost, c.memory, "a read")
	assert.Less(t, len(fmt.Sprint(err)), 16<<10, "the text of the error")
}

func (c hostileCase) checkOrder(t *testing.T, ctx context.Context, server *faultserver.Server, client *gateway.Client, order string) {
	var r call.Result
	before := server.Record.Seen().Requests
	cost := allocated(func() { r = call.Create(ctx, client, order, &faultserver.Record{}) })
	assert.Equal(t, 1, server.Record.Seen().Requests-before, "an invoice is sent once")
	assert.Equal(t, c.write, r.Outcome(), "%v", r.Err)
	assert.Empty(t, invariant.Broken(r.Invoice, r.Err))
	assert.False(t, invariant.ShowsKey(*r.Response))
	if c.write == gateway.OutcomeRejected {
		assert.Less(t, cost, c.memory, "a create-invoice that is rejected")
	} else {
		assert.Less(t, cost, uint64(large), "a create-invoice, of which more of the response is kept")
	}
}

// allocated is how much f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
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
