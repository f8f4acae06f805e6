package wire

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// A backend is one of several hosts behind a name: the first connections lead to a host that does not work.
type backend struct {
	name   string
	proto  int
	silent bool // it falls silent, else it answers 503
}

// policy has as many attempts as a read may need to leave a backend: over HTTP/2 the stream of an attempt
// may not have ended when the next begins, and then its connection is not idle.
func (b backend) policy() gateway.RetryPolicy {
	if b.proto == 1 {
		return gateway.RetryPolicy{MaxAttempts: 2, AttemptTimeout: patient / 30}
	}
	return gateway.RetryPolicy{MaxAttempts: 5, AttemptTimeout: patient / 60}
}

// TestRecovery has two backends behind one name, and the first no longer works: a read leaves
// it within its attempts.
func TestRecovery(t *testing.T) {
	for _, b := range []backend{
		{"HTTP/1.1, one answers 503", 1, false},
		{"HTTP/1.1, one falls silent", 1, true},
		{"HTTP/2, one answers 503", 2, false},
		{"HTTP/2, one falls silent", 2, true},
	} {
		for _, k := range secureKinds() {
			t.Run(b.name+": "+k.name, func(t *testing.T) {
				t.Parallel()
				var together sync.WaitGroup // two reads, which over HTTP/1.1 have two connections
				together.Add(2)
				var mu sync.Mutex
				broken := map[string]bool{} // the connections to the first backend, once it does not work
				works, done := true, make(chan struct{})
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					warming := works
					if warming {
						broken[r.RemoteAddr] = true
					}
					isBroken := broken[r.RemoteAddr]
					mu.Unlock()
					switch {
					case warming:
						together.Done()
						together.Wait()
					case isBroken && b.silent:
						<-done
						return
					case isBroken:
						w.Header().Set("Retry-After", "1")
						w.WriteHeader(http.StatusServiceUnavailable)
						return
					}
					assert.Equal(t, b.proto, r.ProtoMajor)
					_, _ = io.WriteString(w, call.Enveloped(call.WithdrawalResult))
				}))
				server.EnableHTTP2, server.TLS = b.proto == 2, certificate().Server()
				server.StartTLS()
				t.Cleanup(server.Close)
				t.Cleanup(func() { close(done) })
				client := k.connect(t, server.URL, b.policy())
				read := func() {
					_, err := client.Withdrawal(t.Context(), call.WithdrawalID)
					assert.NoError(t, err)
				}
				var warm sync.WaitGroup
				warm.Go(read)
				warm.Go(read)
				warm.Wait()
				mu.Lock()
				works = false
				mu.Unlock()
				read()
			})
		}
	}
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
