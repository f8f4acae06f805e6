package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

func TestFaults_BeforeAConnection(t *testing.T) {
	t.Parallel()
	play(t, []fault{
		{
			name:  "row 1: the host does not exist",
			set:   dialFails(always, &net.DNSError{Err: "no such host", Name: "localhost", IsNotFound: true}),
			read:  verdict{kind: transport, phase: gateway.PhaseDial, attempts: 1, dials: 1},
			write: verdict{kind: notSent, phase: gateway.PhaseDial, attempts: 1, dials: 1},
		},
		{
			name:  "row 2: looking up the host fails once",
			set:   dialFails(1, &net.DNSError{Err: "server misbehaving", Name: "localhost", IsTemporary: true}),
			read:  verdict{kind: works, sends: 1, dials: 2},
			write: verdict{kind: works, sends: 1, commits: 1, dials: 2},
		},
		{
			name: "row 3: the connection is refused",
			real: true,
			set: func(s *stage) {
				s.dial(func(ctx context.Context, _ int) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:1") // nothing listens on tcpmux
				})
			},
			read:  verdict{kind: transport, phase: gateway.PhaseDial, attempts: 3, dials: 3, is: []error{syscall.ECONNREFUSED}},
			write: verdict{kind: notSent, phase: gateway.PhaseDial, attempts: 3, dials: 3, is: []error{syscall.ECONNREFUSED}},
		},
		{
			name:  "row 4: connecting takes for ever",
			set:   dialHangs(func(*stage) {}),
			read:  verdict{kind: transport, phase: gateway.PhaseDial, attempts: 3, is: []error{gateway.ErrTimeout}},
			write: verdict{kind: notSent, phase: gateway.PhaseDial, attempts: 3, is: []error{gateway.ErrTimeout}},
		},
		{
			name:  "row 5: the caller cancels while it connects",
			set:   dialHangs(func(s *stage) { s.cancel() }),
			read:  verdict{kind: transport, attempts: 1, dials: 1, is: []error{context.Canceled}},
			write: verdict{kind: notSent, attempts: 1, dials: 1, is: []error{context.Canceled}},
		},
		{
			name: "row 6: the caller has cancelled before",
			set: func(s *stage) {
				s.piped(func(_ int, conn net.Conn) { s.serve(conn) })
				s.cancel()
				s.Cleanup(func() { assert.Empty(s, s.dialed) })
			},
			read:  verdict{kind: transport, phase: gateway.PhaseStart, is: []error{context.Canceled}},
			write: verdict{kind: notSent, phase: gateway.PhaseStart, is: []error{context.Canceled}},
		},
		{
			name: "row 7: the caller cancels between two attempts to connect",
			set: func(s *stage) {
				s.policy = gateway.RetryPolicy{BaseDelay: time.Hour, MaxDelay: time.Hour}
				s.dial(func(context.Context, int) (net.Conn, error) {
					time.AfterFunc(time.Microsecond, s.cancel)
					return nil, syscall.ECONNREFUSED
				})
			},
			read:  verdict{kind: transport, phase: gateway.PhaseBackoff, attempts: 1, dials: 1, is: []error{context.Canceled}},
			write: verdict{kind: notSent, phase: gateway.PhaseBackoff, attempts: 1, dials: 1, is: []error{context.Canceled}},
		},
		{
			name: "row 7: the caller cancels after an answer of 503",
			set: func(s *stage) {
				s.piped(s.each(func(_ int, conn net.Conn) {
					_, _ = conn.Write([]byte(plainAnswer(503, refused("down"), "Retry-After: 20")))
					time.AfterFunc(10*time.Second, s.cancel)
				}))
			},
			read: verdict{
				kind: transport, phase: gateway.PhaseBackoff, attempts: 1, sends: 1, status: 503,
				is: []error{context.Canceled}, text: "last status 503",
			},
			write: verdict{kind: unknown, status: 503, sends: 1},
		},
		{
			name:  "row 8: the proxy wants a password",
			set:   proxied("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"),
			read:  verdict{kind: transport, phase: gateway.PhaseProxy, attempts: 1, dials: 1},
			write: verdict{kind: notSent, phase: gateway.PhaseProxy, attempts: 1, dials: 1},
		},
		{
			name:  "row 8: the proxy can not connect",
			set:   proxied("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"),
			read:  verdict{kind: transport, phase: gateway.PhaseProxy, attempts: 3},
			write: verdict{kind: notSent, phase: gateway.PhaseProxy, attempts: 3},
		},
		{
			name:  "row 8: the proxy refuses with words of its own",
			set:   proxied("HTTP/1.1 503 Out Of Lines\r\nContent-Length: 0\r\n\r\n"),
			read:  verdict{kind: transport, attempts: 3},
			write: verdict{kind: notSent, attempts: 3},
		},
		{
			name: "row 9: the proxy can not be reached",
			set: func(s *stage) {
				proxied("")(s)
				s.dial(func(context.Context, int) (net.Conn, error) { return nil, refusedConnection("connect") })
			},
			read:  verdict{kind: transport, phase: gateway.PhaseProxy, attempts: 3, is: []error{syscall.ECONNREFUSED}},
			write: verdict{kind: notSent, phase: gateway.PhaseProxy, attempts: 3, is: []error{syscall.ECONNREFUSED}},
		},
		{
			name:  "row 10: the certificate is of an unknown authority",
			set:   tlsServer(func(s *stage, _ *tls.Config) { s.transport.TLSClientConfig.RootCAs = x509.NewCertPool() }),
			read:  verdict{kind: transport, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: verdict{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
		{
			name:  "row 11: the certificate is of another host",
			set:   tlsServer(func(_ *stage, c *tls.Config) { c.Certificates = []tls.Certificate{certificates().other} }),
			read:  verdict{kind: transport, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: verdict{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
		{
			name:  "row 11: the certificate has expired",
			set:   tlsServer(func(_ *stage, c *tls.Config) { c.Certificates = []tls.Certificate{certificates().expired} }),
			read:  verdict{kind: transport, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: verdict{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
		{
			name: "row 12: the TLS handshake is never answered",
			set: func(s *stage) {
				s.url = "https://gateway.test"
				s.piped(func(_ int, conn net.Conn) { hold(conn) })
			},
			read:  verdict{kind: transport, phase: gateway.PhaseTLS, attempts: 3, is: []error{gateway.ErrTimeout}},
			write: verdict{kind: notSent, phase: gateway.PhaseTLS, attempts: 3, is: []error{gateway.ErrTimeout}},
		},
		{
			name: "row 12: the TLS handshake is over its own time",
			set: func(s *stage) {
				s.url = "https://gateway.test"
				s.transport.TLSHandshakeTimeout = time.Second
				s.piped(func(_ int, conn net.Conn) { hold(conn) })
			},
			read:  verdict{kind: transport, phase: gateway.PhaseTLS, attempts: 3, is: []error{gateway.ErrTimeout}},
			write: verdict{kind: notSent, phase: gateway.PhaseTLS, attempts: 3, is: []error{gateway.ErrTimeout}},
		},
		{
			name:  "row 13: every TLS handshake is reset",
			real:  true,
			set:   handshakeReset(always),
			read:  verdict{kind: transport, phase: gateway.PhaseTLS, attempts: 3},
			write: verdict{kind: notSent, phase: gateway.PhaseTLS, attempts: 3},
		},
		{
			name:  "row 13: one TLS handshake is reset",
			real:  true,
			set:   handshakeReset(1),
			read:  verdict{kind: works, sends: 1, dials: 2},
			write: verdict{kind: works, sends: 1, commits: 1, dials: 2},
		},
		{
			name: "row 14: the server speaks plain HTTP",
			set: func(s *stage) {
				s.url = "https://gateway.test"
				s.piped(func(_ int, conn net.Conn) {
					_, _ = conn.Read(make([]byte, 1<<16))
					_, _ = conn.Write([]byte("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request.\n"))
				})
			},
			read:  verdict{kind: transport, phase: gateway.PhaseTLS, attempts: 1, dials: 1, is: []error{http.ErrSchemeMismatch}},
			write: verdict{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1, is: []error{http.ErrSchemeMismatch}},
		},
		{
			name:  "row 15: the server knows TLS 1.1 only",
			set:   tlsServer(func(_ *stage, c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }),
			read:  verdict{kind: transport, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: verdict{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
		{
			name: "row 16: there are no descriptors left",
			set: dialFails(always, &net.OpError{
				Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE),
			}),
			read:  verdict{kind: transport, phase: gateway.PhaseDial, attempts: 3, dials: 3, is: []error{syscall.EMFILE}},
			write: verdict{kind: notSent, phase: gateway.PhaseDial, attempts: 3, dials: 3, is: []error{syscall.EMFILE}},
		},
	})
}

// always is more often than any call is tried.
const always = 1 << 20

// dialFails fails so many times to connect, and then works.
func dialFails(times int, err error) func(*stage) {
	return func(s *stage) {
		s.piped(func(_ int, conn net.Conn) { s.serve(conn) })
		works := s.transport.DialContext
		failed := 0
		s.transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			s.mu.Lock()
			failed++
			fail := failed <= times
			if fail {
				s.dialed = append(s.dialed, addr)
			}
			s.mu.Unlock()
			if fail {
				return nil, err
			}
			return works(ctx, network, addr)
		}
	}
}

// dialHangs connects until its context ends.
func dialHangs(meanwhile func(*stage)) func(*stage) {
	return func(s *stage) {
		s.dial(func(ctx context.Context, _ int) (net.Conn, error) {
			meanwhile(s)
			<-ctx.Done()
			return nil, ctx.Err()
		})
	}
}

func refusedConnection(call string) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(call, syscall.ECONNREFUSED)}
}

// proxied puts a proxy, with a password, in between, which answers CONNECT.
// The password must not be in the text of any error.
func proxied(answer string) func(*stage) {
	const password = "PROXY-PASSWORD-7d1c"
	return func(s *stage) {
		s.url = "https://gateway.test"
		s.transport.Proxy = http.ProxyURL(&url.URL{
			Scheme: "http", Host: "proxy.test:3128", User: url.UserPassword("merchant", password),
		})
		s.piped(func(_ int, conn net.Conn) {
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if assert.NoError(s, err) && assert.Equal(s, http.MethodConnect, req.Method) {
				_, _ = conn.Write([]byte(answer))
			}
		})
		s.secrets = append(s.secrets, password)
	}
}

// tlsServer serves well behind TLS, but for what wrong changes.
func tlsServer(wrong func(*stage, *tls.Config)) func(*stage) {
	return func(s *stage) {
		config := s.trust()
		wrong(s, config)
		s.piped(func(_ int, conn net.Conn) { s.serve(tls.Server(conn, config)) })
	}
}

// trust makes the client trust the test's authority, and returns what a server
// of https://gateway.test needs.
func (s *stage) trust() *tls.Config {
	s.url = "https://gateway.test"
	s.transport.TLSClientConfig = &tls.Config{RootCAs: certificates().pool}
	return &tls.Config{Certificates: []tls.Certificate{certificates().good}}
}

// handshakeReset resets so many connections after the client's first word.
func handshakeReset(times int) func(*stage) {
	return func(s *stage) {
		config := s.trust()
		s.socketed(func(number int, conn net.Conn) {
			if number > times {
				s.serve(tls.Server(conn, config))
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			reset(conn)
		})
	}
}

type certified struct {
	pool                 *x509.CertPool
	good, other, expired tls.Certificate
}

// certificates are made once: keys take a while. They are valid in the year
// 2000 too, which is when the bubbles of testing/synctest begin.
var certificates = sync.OnceValue(func() certified {
	year := func(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: year(1990), NotAfter: year(2190),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root = must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key))))
	issue := func(host string, until int) tls.Certificate {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(2), NotBefore: year(1990), NotAfter: year(until), DNSNames: []string{host},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		der := must(x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, key))
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
	pool := x509.NewCertPool()
	pool.AddCert(root)
	return certified{pool, issue("gateway.test", 2190), issue("other.test", 2190), issue("gateway.test", 1991)}
})

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestFaults_ConnectionReuse(t *testing.T) {
	t.Parallel()
	play(t, []fault{
		{
			name: "row 17: the server has closed the idle connection",
			set: func(s *stage) {
				s.piped(s.each(func(number int, conn net.Conn) { s.first(number, conn) }))
				s.warm()
				synctest.Wait() // until the client has seen the end of the connection
			},
			read:  verdict{kind: works, sends: 1, dials: 2},
			write: verdict{kind: works, sends: 1, commits: 1, dials: 2},
		},
		{
			name: "row 18: the idle connection was reset",
			real: true,
			set: func(s *stage) {
				seen := make(chan struct{})
				s.socketed(s.each(func(number int, conn net.Conn) {
					s.first(number, conn)
					if number == 1 {
						reset(conn)
					}
				}))
				s.transport.DialContext = watched(s.transport.DialContext, seen)
				s.warm()
				<-seen
			},
			read:  verdict{kind: works, sends: 1, dials: 2},
			write: verdict{kind: works, sends: 1, commits: 1, dials: 2},
		},
		{
			name: "row 18: the header can not be written to the idle connection",
			set: func(s *stage) {
				s.transport.WriteBufferSize = 16 // the header goes out before the body is looked at
				s.piped(func(number int, conn net.Conn) {
					if r := bufio.NewReader(conn); s.receive(r) {
						s.first(number, conn)
						hold(conn)
					}
				})
				cut := &cutter{left: always}
				s.transport.DialContext = cut.first(s.transport.DialContext)
				s.warm()
				cut.left = 0
			},
			read:  verdict{kind: works, sends: 1, dials: 2},
			write: verdict{kind: works, sends: 1, commits: 1, dials: 2},
		},
		{
			name: "row 19: the reused connection is closed after the whole request",
			set: func(s *stage) {
				reusedThenClosed(s)
				s.warm()
			},
			read:  verdict{kind: works, sends: 2, dials: 2}, // net/http replays a read by itself
			write: verdict{kind: unknown, sends: 1, commits: 1, dials: 1},
		},
	})
}

// reusedThenClosed answers the first request of its first connection, and
// commits the second without an answer.
func reusedThenClosed(s *stage) {
	s.piped(func(number int, conn net.Conn) {
		r := bufio.NewReader(conn)
		if !s.receive(r) {
			return
		}
		s.first(number, conn)
		if number == 1 && s.receive(r) {
			s.commit()
		}
	})
}

// warm makes a read that leaves an idle connection, and forgets it.
func (s *stage) warm() {
	_, err := s.client().Withdrawal(s.ctx, requestID)
	require.NoError(s, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sends = 0
}

// first answers the read that warms up the first connection, and on later
// ones what the stage is about.
func (s *stage) first(number int, conn net.Conn) {
	if number == 1 {
		_, _ = conn.Write([]byte(plainAnswer(200, enveloped(withdrawalJSON))))
		return
	}
	s.respond(conn)
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// watched closes seen when the client closes its first connection.
func watched(dial dialFunc, seen chan struct{}) dialFunc {
	seeing := sync.OnceFunc(func() { close(seen) })
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &line{Conn: conn, closed: seeing}, nil
	}
}

// A cutter lets so many bytes through and then breaks the connection, without
// a word to whoever reads from it.
type cutter struct {
	net.Conn
	left  int
	wrote bytes.Buffer
}

// first cuts the first connection, and leaves the others alone.
func (c *cutter) first(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil || c.Conn != nil {
			return conn, err
		}
		c.Conn = conn
		return c, nil
	}
}

func (c *cutter) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	c.wrote.Write(p[:n])
	if n < len(p) {
		_, _ = c.Conn.Write(p[:n])
		return n, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.ECONNRESET)}
	}
	return c.Conn.Write(p)
}
