package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

func TestFaults_BeforeAConnection(t *testing.T) {
	t.Parallel()
	runFaults(t, inBubble, []faultCase{
		{
			name:  "the host does not exist",
			setup: failDials(always, &net.DNSError{Err: "no such host", Name: "localhost", IsNotFound: true}),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseDial, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseDial, attempts: 1, dials: 1},
		},
		{
			name:  "looking up the host fails once",
			setup: failDials(1, &net.DNSError{Err: "server misbehaving", Name: "localhost", IsTemporary: true}),
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2},
		},
		{
			name:  "connecting never ends",
			setup: hangDials(func(*harness) {}),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseDial, attempts: 3, is: []error{context.DeadlineExceeded}},
			write: expectation{kind: notSent, phase: gateway.PhaseDial, attempts: 3, is: []error{context.DeadlineExceeded}},
		},
		{
			name:  "the caller cancels while it connects",
			setup: hangDials(func(h *harness) { h.cancel() }),
			read:  expectation{kind: transportFailure, attempts: 1, dials: 1, is: []error{context.Canceled}},
			write: expectation{kind: notSent, attempts: 1, dials: 1, is: []error{context.Canceled}},
		},
		{
			name: "the caller has cancelled before",
			setup: func(h *harness) {
				h.cancel()
				h.Cleanup(func() { assert.Empty(h, h.server.Dialed()) })
			},
			read:  expectation{kind: transportFailure, phase: gateway.PhaseStart, is: []error{context.Canceled}},
			write: expectation{kind: notSent, phase: gateway.PhaseStart, is: []error{context.Canceled}},
		},
		{
			name: "the caller cancels between two attempts to connect",
			setup: func(h *harness) {
				h.policy = gateway.RetryPolicy{BaseDelay: time.Hour, MaxDelay: time.Hour}
				h.server.OnDial = func(context.Context, int) error {
					time.AfterFunc(time.Microsecond, h.cancel)
					return syscall.ECONNREFUSED
				}
			},
			read:  expectation{kind: transportFailure, phase: gateway.PhaseBackoff, attempts: 1, dials: 1, is: []error{context.Canceled}},
			write: expectation{kind: notSent, phase: gateway.PhaseBackoff, attempts: 1, dials: 1, is: []error{context.Canceled}},
		},
		{
			name: "the caller cancels after a response of 503",
			setup: func(h *harness) {
				h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
					c.Send(faultserver.Response(503, refused("down"), "Retry-After: 20"))
					time.AfterFunc(10*time.Second, h.cancel)
				})
			},
			read: expectation{
				kind: transportFailure, phase: gateway.PhaseBackoff, attempts: 1, requests: 1, status: 503,
				is: []error{context.Canceled}, text: "last status 503",
			},
			write: expectation{kind: unknown, status: 503, requests: 1},
		},
		{
			name:  "the proxy requires a password",
			setup: throughProxy("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseProxy, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseProxy, attempts: 1, dials: 1},
		},
		{
			name:  "the proxy cannot connect",
			setup: throughProxy("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseProxy, attempts: 3},
			write: expectation{kind: notSent, phase: gateway.PhaseProxy, attempts: 3},
		},
		{
			name:  "the proxy refuses with a reason of its own",
			setup: throughProxy("HTTP/1.1 503 Out Of Lines\r\nContent-Length: 0\r\n\r\n"),
			read:  expectation{kind: transportFailure, attempts: 3},
			write: expectation{kind: notSent, attempts: 3},
		},
		{
			name: "the proxy cannot be reached",
			setup: func(h *harness) {
				throughProxy("")(h)
				failDials(always, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})(h)
			},
			read:  expectation{kind: transportFailure, phase: gateway.PhaseProxy, attempts: 3, is: []error{syscall.ECONNREFUSED}},
			write: expectation{kind: notSent, phase: gateway.PhaseProxy, attempts: 3, is: []error{syscall.ECONNREFUSED}},
		},
		{
			name: "there are no descriptors left",
			setup: failDials(always, &net.OpError{
				Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE),
			}),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseDial, attempts: 3, dials: 3, is: []error{syscall.EMFILE}},
			write: expectation{kind: notSent, phase: gateway.PhaseDial, attempts: 3, dials: 3, is: []error{syscall.EMFILE}},
		},
	})
}

func TestFaults_TLS(t *testing.T) {
	t.Parallel()
	runFaults(t, inBubble, []faultCase{
		{
			name:  "the certificate is of an unknown authority",
			setup: behindTLS(func(h *harness, _ *tls.Config) { h.transport.TLSClientConfig.RootCAs = x509.NewCertPool() }),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
		{
			name:  "the certificate is of another host",
			setup: behindTLS(func(_ *harness, c *tls.Config) { c.Certificates = []tls.Certificate{certificates().OtherHost} }),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
		{
			name:  "the certificate has expired",
			setup: behindTLS(func(_ *harness, c *tls.Config) { c.Certificates = []tls.Certificate{certificates().Expired} }),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
		{
			name: "the TLS handshake gets no response",
			setup: func(h *harness) {
				h.url = "https://" + call.Host
				h.server.Handler = (*faultserver.Conn).Hold
			},
			read:  expectation{kind: transportFailure, phase: gateway.PhaseTLS, attempts: 3, is: []error{context.DeadlineExceeded}},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 3, is: []error{context.DeadlineExceeded}},
		},
		{
			name: "the TLS handshake exceeds its own timeout",
			setup: func(h *harness) {
				h.url = "https://" + call.Host
				h.transport.TLSHandshakeTimeout = time.Second
				h.server.Handler = (*faultserver.Conn).Hold
			},
			read:  expectation{kind: transportFailure, phase: gateway.PhaseTLS, attempts: 3, is: []error{context.DeadlineExceeded}},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 3, is: []error{context.DeadlineExceeded}},
		},
		{
			name: "the server speaks plain HTTP",
			setup: func(h *harness) {
				h.url = "https://" + call.Host
				h.server.Handler = func(c *faultserver.Conn) {
					_, _ = c.Read(make([]byte, 1<<16))
					c.Send("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request.\n")
				}
			},
			read:  expectation{kind: transportFailure, phase: gateway.PhaseTLS, attempts: 1, dials: 1, is: []error{http.ErrSchemeMismatch}},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1, is: []error{http.ErrSchemeMismatch}},
		},
		{
			name:  "the server knows TLS 1.1 only",
			setup: behindTLS(func(_ *harness, c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
	})
}

func TestFaults_ConnectionReuse(t *testing.T) {
	t.Parallel()
	runFaults(t, inBubble, []faultCase{
		{
			name: "the server has closed the idle connection",
			setup: func(h *harness) {
				h.server.Handler = faultserver.OneRequest(h.respondAfterWarming)
				h.warm()
				synctest.Wait() // until the client has seen the end of the connection
			},
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2},
		},
		{
			name: "the header cannot be written to the idle connection",
			setup: func(h *harness) {
				h.transport.WriteBufferSize = 16 // the header leaves before the body is read
				h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
					h.respondAfterWarming(c)
					c.Hold()
				})
				var first *faultserver.BreakingConn
				h.server.WrapClient = func(conn net.Conn, number int) net.Conn {
					if number > 1 {
						return conn
					}
					first = faultserver.NewBreakingConn(conn, nil)
					return first
				}
				h.warm()
				first.Arm(faultserver.Break{Up: 0, Down: faultserver.Unlimited, Manner: faultserver.WriteError})
			},
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2},
		},
		{
			name: "the reused connection is closed after the whole request",
			setup: func(h *harness) {
				closeReused(h)
				h.warm()
			},
			read:  expectation{kind: success, requests: 2, dials: 2},             // net/http replays a read by itself
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2}, // it reuses none
		},
		{
			// net/http believes that a request with this header may be replayed.
			name: "the reused connection of a RoundTripper that adds Idempotency-Key is closed after the whole request",
			setup: func(h *harness) {
				closeReused(h)
				h.tripper = tripper(func(req *http.Request) (*http.Response, error) {
					req = req.Clone(req.Context())
					req.Header.Set("Idempotency-Key", "of-the-transport")
					return h.transport.RoundTrip(req)
				})
				h.warm()
			},
			write: expectation{kind: unknown, requests: 1, commits: 1, dials: 1},
		},
	})
}

// closeReused responds to the first request of the first connection, and
// commits the second without a response.
func closeReused(h *harness) {
	h.server.Handler = func(c *faultserver.Conn) {
		if _, whole := c.ReadRequest(); !whole {
			return
		}
		h.respondAfterWarming(c)
		if _, whole := c.ReadRequest(); whole && c.Number == 1 {
			h.commit()
		}
	}
}

// respondAfterWarming responds to the read of warm, which is the first request
// of the first connection, and then to the call.
func (h *harness) respondAfterWarming(c *faultserver.Conn) {
	if c.Number == 1 {
		c.Send(faultserver.Response(201, call.Enveloped(call.WithdrawalResult)))
		return
	}
	h.respond(c)
}

// always is more often than any call is attempted.
const always = 1 << 20

// failDials fails so many dials, and then none.
func failDials(times int, err error) func(*harness) {
	return func(h *harness) {
		h.server.OnDial = func(_ context.Context, number int) error {
			if number > times {
				return nil
			}
			return err
		}
	}
}

// hangDials dials until the context ends.
func hangDials(meanwhile func(*harness)) func(*harness) {
	return func(h *harness) {
		h.server.OnDial = func(ctx context.Context, _ int) error {
			meanwhile(h)
			<-ctx.Done()
			return ctx.Err()
		}
	}
}

// throughProxy puts a proxy with a password in between, which responds to
// CONNECT. The password must not be in the text of any error.
func throughProxy(response string) func(*harness) {
	const password = "PROXY-PASSWORD-7d1c"
	return func(h *harness) {
		h.url = "https://" + call.Host
		h.transport.Proxy = http.ProxyURL(&url.URL{
			Scheme: "http", Host: "proxy.test:3128", User: url.UserPassword("merchant", password),
		})
		h.server.Handler = func(c *faultserver.Conn) {
			req, err := http.ReadRequest(bufio.NewReader(c)) // not recorded: it is not for the gateway
			if assert.NoError(h, err) && assert.Equal(h, http.MethodConnect, req.Method) {
				c.Send(response)
			}
		}
		h.secrets, h.hosts = append(h.secrets, password), append(h.hosts, "proxy.test:3128")
	}
}

// behindTLS is a server without a fault behind TLS, but for what change makes.
func behindTLS(change func(*harness, *tls.Config)) func(*harness) {
	return func(h *harness) {
		config := h.trust()
		change(h, config)
		h.server.Handler = faultserver.Secure(config, h.succeed)
	}
}
