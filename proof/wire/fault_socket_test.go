package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

func TestFaults_Sockets(t *testing.T) {
	runFaults(t, onSockets, []faultCase{
		{
			name: "the connection is refused",
			setup: func(h *harness) {
				h.server.OnDial = func(ctx context.Context, _ int) error {
					conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:1") // nothing listens on tcpmux
					if err == nil {
						_ = conn.Close()
					}
					return err
				}
			},
			read:  expectation{kind: transportFailure, phase: gateway.PhaseDial, attempts: 3, dials: 3, is: []error{syscall.ECONNREFUSED}},
			write: expectation{kind: notSent, phase: gateway.PhaseDial, attempts: 3, dials: 3, is: []error{syscall.ECONNREFUSED}},
		},
		{
			name:  "every TLS handshake is reset",
			setup: resetHandshakes(1 << 20),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseTLS, attempts: 3},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 3},
		},
		{
			name:  "one TLS handshake is reset",
			setup: resetHandshakes(1),
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2},
		},
		{
			name:  "the idle connection was reset",
			setup: resetIdle,
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2},
		},
		{
			name:  "read all, then FIN",
			setup: afterRequest(func(*harness, *faultserver.Conn) {}),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3, is: []error{io.EOF}},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1, is: []error{io.EOF}},
		},
		{
			name:  "read all, then RST",
			setup: afterRequest(func(_ *harness, c *faultserver.Conn) { c.Reset() }),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1},
		},
		{
			name:  "read all, commit, then FIN",
			setup: afterRequest(func(h *harness, _ *faultserver.Conn) { h.commit() }),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1, commits: 1},
		},
		{
			name: "read all, commit, then FIN in the middle of the response's header",
			setup: afterRequest(func(h *harness, c *faultserver.Conn) {
				h.commit()
				c.Send("HTTP/1.1 200 OK\r\nContent-Ty")
			}),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1, commits: 1},
		},
		{
			name:  "the handler panics",
			setup: panicInHandler,
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1},
		},
	})
}

// afterRequest reads one request of each connection and then calls fault.
func afterRequest(fault func(h *harness, c *faultserver.Conn)) func(*harness) {
	return func(h *harness) {
		h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) { fault(h, c) })
	}
}

// resetHandshakes resets so many connections within the ClientHello.
func resetHandshakes(times int) func(*harness) {
	return func(h *harness) {
		config := h.trust()
		h.server.Handler = func(c *faultserver.Conn) {
			if c.Number > times {
				faultserver.Secure(config, h.succeed)(c)
				return
			}
			_, _ = c.Read(make([]byte, 1))
			c.Reset()
		}
	}
}

// resetIdle resets the first connection after its first response, and waits
// until the client has seen that.
func resetIdle(h *harness) {
	seen := make(chan struct{})
	h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
		if c.Number == 1 {
			c.Send(faultserver.Response(201, call.Enveloped(call.WithdrawalResult)))
			c.Reset()
			return
		}
		h.respond(c)
	})
	h.server.WrapClient = func(conn net.Conn, number int) net.Conn {
		if number > 1 {
			return conn
		}
		return &watchedConn{Conn: conn, closed: sync.OnceFunc(func() { close(seen) })}
	}
	h.warm()
	<-seen
}

// A watchedConn reports that the client has closed it.
type watchedConn struct {
	net.Conn
	closed func()
}

func (c *watchedConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// panicInHandler is a server of net/http whose handler panics when it has read
// the request.
func panicInHandler(h *harness) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h.server.Record.Arrived(len(body), err == nil)
		panic(http.ErrAbortHandler)
	}))
	h.Cleanup(server.Close)
	h.transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
}
