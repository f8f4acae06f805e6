package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
)

// The request is cut after every number of bytes: with the buffer of net/http,
// where the header leaves in one piece, and with a small one.
func TestFaults_WhileWriting(t *testing.T) {
	t.Parallel()
	header, body := requestLengths(t)
	for _, buffer := range []struct {
		name  string
		bytes int
	}{{"in few pieces", 0}, {"in many pieces", 16}} {
		t.Run("row 20: the connection is cut within the header, which leaves "+buffer.name, func(t *testing.T) {
			t.Parallel()
			for k := range header {
				assertCut(t, k, buffer.bytes, false, works)
				assertCut(t, k, buffer.bytes, true, works)
			}
		})
		t.Run("row 21: the connection is cut within the body, which leaves "+buffer.name, func(t *testing.T) {
			t.Parallel()
			for k := range body {
				assertCut(t, header+k, buffer.bytes, true, unknown)
			}
		})
	}
	play(t, []fault{
		{
			name: "row 20: every connection is cut within the header",
			set: func(s *stage) {
				s.piped(func(_ int, conn net.Conn) { hold(conn) })
				dial := s.transport.DialContext
				s.transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					return (&cutter{left: 20}).first(dial)(ctx, network, addr)
				}
			},
			read:  verdict{kind: transport, attempts: 3, dials: 3},
			write: verdict{kind: notSent, phase: gateway.PhaseWrite, attempts: 3, dials: 3},
		},
		{
			name:  "row 22: the server does not even read the header",
			set:   func(s *stage) { s.piped(func(int, net.Conn) { <-s.struck }) },
			read:  verdict{kind: transport, attempts: 3, is: []error{gateway.ErrTimeout}},
			write: verdict{kind: notSent, phase: gateway.PhaseWrite, attempts: 3, is: []error{gateway.ErrTimeout}},
		},
		{
			name: "row 22: the server does not read the body",
			set: func(s *stage) {
				s.piped(func(_ int, conn net.Conn) {
					_, _ = io.CopyN(io.Discard, conn, int64(header))
					<-s.struck
				})
			},
			write: verdict{kind: unknown, attempts: 1, dials: 1, is: []error{gateway.ErrTimeout}},
		},
	})
}

// requestLengths says how long the header and the body of a create-invoice
// are, which is longer than a read in both.
func requestLengths(t *testing.T) (header, body int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cut := &cutter{left: always}
		s := newStage(t, time.Hour)
		s.write = true
		s.piped(func(_ int, conn net.Conn) { s.serve(conn) })
		s.transport.DialContext = cut.first(s.transport.DialContext)
		s.assert(verdict{kind: works, sends: 1, commits: 1})
		head, tail, found := strings.Cut(cut.wrote.String(), "\r\n\r\n")
		assert.True(t, found)
		assert.NotEmpty(t, tail)
		header, body = len(head)+4, len(tail)
	})
	return header, body
}

// assertCut cuts the first connection after k bytes of the request.
func assertCut(t *testing.T, k, buffer int, write bool, kind string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		s := newStage(t, time.Hour)
		s.write, s.transport.WriteBufferSize = write, buffer
		seen := 0 // what arrived on the connection that is cut
		s.piped(func(number int, conn net.Conn) {
			counted := &counter{Reader: conn}
			for r := bufio.NewReader(counted); s.receive(r); {
				s.respond(conn)
			}
			if number == 1 {
				seen = counted.n
			}
		})
		cut := &cutter{left: k}
		s.transport.DialContext = cut.first(s.transport.DialContext)
		v := verdict{kind: kind, sends: 1, commits: 1}
		if kind == unknown {
			v = verdict{kind: kind, attempts: 1, dials: 1}
		}
		s.assert(v)
		assert.LessOrEqual(t, seen, k, "a cut after %d bytes", k)
	})
}

// A counter counts what is read.
type counter struct {
	io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// A tripper is a RoundTripper in one function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestFaults_WaitingForTheAnswer(t *testing.T) {
	t.Parallel()
	play(t, []fault{
		{
			name:  "row 23: read all, then FIN",
			real:  true,
			set:   func(s *stage) { s.socketed(s.each(func(int, net.Conn) {})) },
			read:  verdict{kind: transport, phase: gateway.PhaseWait, attempts: 3, sends: 3, is: []error{io.EOF}},
			write: verdict{kind: unknown, phase: gateway.PhaseWait, sends: 1, is: []error{io.EOF}},
		},
		{
			name:  "row 24: read all, then RST",
			real:  true,
			set:   func(s *stage) { s.socketed(s.each(func(_ int, conn net.Conn) { reset(conn) })) },
			read:  verdict{kind: transport, phase: gateway.PhaseWait, attempts: 3, sends: 3},
			write: verdict{kind: unknown, phase: gateway.PhaseWait, sends: 1},
		},
		{
			name:  "row 25: read all, commit, then FIN",
			real:  true,
			set:   func(s *stage) { s.socketed(s.each(func(int, net.Conn) { s.commit() })) },
			read:  verdict{kind: transport, phase: gateway.PhaseWait, attempts: 3, sends: 3},
			write: verdict{kind: unknown, phase: gateway.PhaseWait, sends: 1, commits: 1},
		},
		{
			name: "row 25: read all, commit, then FIN in the middle of the answer's header",
			real: true,
			set: func(s *stage) {
				s.socketed(s.each(func(_ int, conn net.Conn) {
					s.commit()
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Ty")
				}))
			},
			read:  verdict{kind: transport, phase: gateway.PhaseWait, attempts: 3, sends: 3},
			write: verdict{kind: unknown, phase: gateway.PhaseWait, sends: 1, commits: 1},
		},
		{
			name:  "row 26: the server never answers",
			set:   func(s *stage) { s.piped(s.each(func(_ int, conn net.Conn) { hold(conn) })) },
			read:  verdict{kind: transport, phase: gateway.PhaseWait, attempts: 3, sends: 3, is: []error{gateway.ErrTimeout}},
			write: verdict{kind: unknown, phase: gateway.PhaseWait, attempts: 1, sends: 1, is: []error{gateway.ErrTimeout}},
		},
		{
			name: "row 27: the caller cancels while waiting",
			set: func(s *stage) {
				s.piped(s.each(func(_ int, conn net.Conn) {
					s.cancel()
					hold(conn)
				}))
			},
			read:  verdict{kind: transport, phase: gateway.PhaseWait, attempts: 1, sends: 1, is: []error{context.Canceled}},
			write: verdict{kind: unknown, phase: gateway.PhaseWait, attempts: 1, sends: 1, is: []error{context.Canceled}},
		},
		{
			name: "row 28: the caller's deadline passes while waiting",
			set: func(s *stage) {
				s.ctx, s.cancel = context.WithTimeout(s.ctx, 5*time.Second)
				s.Cleanup(s.cancel)
				s.piped(s.each(func(_ int, conn net.Conn) { hold(conn) }))
			},
			read: verdict{
				kind: transport, phase: gateway.PhaseWait, attempts: 1, sends: 1,
				is: []error{context.DeadlineExceeded, gateway.ErrTimeout},
			},
			write: verdict{kind: unknown, phase: gateway.PhaseWait, attempts: 1, sends: 1, is: []error{context.DeadlineExceeded}},
		},
		{
			name: "row 29: the handler panics",
			real: true,
			set: func(s *stage) {
				s.handled(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			},
			read:  verdict{kind: transport, phase: gateway.PhaseWait, attempts: 3, sends: 3},
			write: verdict{kind: unknown, phase: gateway.PhaseWait, sends: 1},
		},
	})
}
