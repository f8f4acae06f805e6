package wire

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// The request is cut after every number of bytes: with the buffer of net/http,
// where the header leaves in one piece, and with a small one.
// I-123
func TestFaults_WhileWriting(t *testing.T) {
	t.Parallel()
	header, body := requestLengths(t)
	for _, buffer := range []struct {
		name  string
		bytes int
	}{{"in few pieces", 0}, {"in many pieces", 16}} {
		t.Run("the connection is cut within the header, which leaves "+buffer.name, func(t *testing.T) {
			t.Parallel()
			for k := range header {
				assertCut(t, k, buffer.bytes, false, success)
				assertCut(t, k, buffer.bytes, true, success)
			}
		})
		t.Run("the connection is cut within the body, which leaves "+buffer.name, func(t *testing.T) {
			t.Parallel()
			for k := range body {
				assertCut(t, header+k, buffer.bytes, true, unknown)
			}
		})
	}
	runFaults(t, inBubble, []faultCase{
		{
			name: "every connection is cut within the header",
			setup: func(h *harness) {
				h.server.Handler = (*faultserver.Conn).Hold
				h.server.WrapClient = func(conn net.Conn, _ int) net.Conn { return faultserver.BreakFirst(cutUp(20))(conn, 1) }
			},
			read:  expectation{kind: transportFailure, attempts: 3, dials: 3},
			write: expectation{kind: notSent, phase: gateway.PhaseWrite, attempts: 3, dials: 3},
		},
		{
			name:  "the server does not even read the header",
			setup: func(h *harness) { h.server.Handler = (*faultserver.Conn).Stop },
			read:  expectation{kind: transportFailure, attempts: 3, is: []error{context.DeadlineExceeded}},
			write: expectation{kind: notSent, phase: gateway.PhaseWrite, attempts: 3, is: []error{context.DeadlineExceeded}},
		},
		{
			name: "the server does not read the body",
			setup: func(h *harness) {
				h.server.Handler = func(c *faultserver.Conn) {
					_, _ = io.CopyN(io.Discard, c, int64(header))
					c.Stop()
				}
			},
			write: expectation{kind: unknown, attempts: 1, dials: 1, is: []error{context.DeadlineExceeded}},
		},
	})
}

// cutUp cuts a connection after so many bytes from the client; a write fails
// then, and a reader gets no error.
func cutUp(bytes int) faultserver.Break {
	return faultserver.Break{Up: bytes, Down: faultserver.Unlimited, Manner: faultserver.WriteError}
}

// requestLengths returns the lengths of the header and the body of a
// create-invoice, which is longer than a read in both.
func requestLengths(t *testing.T) (header, body int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, inBubble, true)
		h.server.Handler = func(c *faultserver.Conn) {
			req, whole := c.ReadBytes(always)
			assert.True(t, whole)
			header, body = len(req)-len(faultserver.Body(req)), len(faultserver.Body(req))
			c.Server.Record.Arrived(body, whole)
			h.respond(c)
		}
		h.assert(expectation{kind: success, requests: 1, commits: 1})
		assert.NotZero(t, body)
	})
	return header, body
}

// assertCut cuts the first connection after k bytes of the request.
func assertCut(t *testing.T, k, buffer int, write bool, kind string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		h := newHarness(t, inBubble, write)
		h.transport.WriteBufferSize = buffer
		seen := 0 // what arrived on the connection that is cut
		h.server.Handler = func(c *faultserver.Conn) {
			counted := &countingConn{Conn: c.Conn}
			c.Conn = counted
			h.succeed(c)
			if c.Number == 1 {
				seen = counted.n
			}
		}
		h.server.WrapClient = faultserver.BreakFirst(cutUp(k))
		want := expectation{kind: kind, requests: 1, commits: 1}
		if kind == unknown {
			want = expectation{kind: kind, attempts: 1, dials: 1}
		}
		h.assert(want)
		assert.LessOrEqual(t, seen, k, "a cut after %d bytes", k)
	})
}

// A countingConn counts what is read from it.
type countingConn struct {
	net.Conn
	n int
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n += n
	return n, err
}

func TestFaults_WaitingForTheResponse(t *testing.T) {
	t.Parallel()
	runFaults(t, inBubble, []faultCase{
		{
			name:  "the server never responds",
			setup: func(h *harness) { h.server.Handler = faultserver.OneRequest((*faultserver.Conn).Hold) },
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3, is: []error{context.DeadlineExceeded}},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, attempts: 1, requests: 1, is: []error{context.DeadlineExceeded}},
		},
		{
			name: "the caller cancels while waiting",
			setup: func(h *harness) {
				h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
					h.cancel()
					c.Hold()
				})
			},
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 1, requests: 1, is: []error{context.Canceled}},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, attempts: 1, requests: 1, is: []error{context.DeadlineExceeded}},
		},
		{
			name: "the caller's deadline passes while waiting",
			setup: func(h *harness) {
				h.ctx, h.cancel = context.WithTimeout(h.ctx, 5*time.Second)
				h.Cleanup(h.cancel)
				h.server.Handler = faultserver.OneRequest((*faultserver.Conn).Hold)
			},
			read: expectation{
				kind: transportFailure, phase: gateway.PhaseWait, attempts: 1, requests: 1,
				is: []error{context.DeadlineExceeded, context.DeadlineExceeded},
			},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, attempts: 1, requests: 1, is: []error{context.DeadlineExceeded}},
		},
	})
}
