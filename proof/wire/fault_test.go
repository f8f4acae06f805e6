package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/h2server"
)

// A faultCase is a row of the table of faults that needs sockets or HTTP/2: how
// the fault is made, and the result of a read and of a create-invoice. The other
// rows are beside the client's code. An expectation without a kind skips that
// call.
type faultCase struct {
	name        string
	setup       func(h *harness)
	read, write expectation
}

// The kinds of result.
const (
	success          = "success"
	transportFailure = "*TransportError"
	notSent          = "not sent"
	unknown          = "unknown"
)

// An expectation is the result of a call, and what the server sees of it.
type expectation struct {
	kind     string
	phase    gateway.Phase // of the *TransportError, which for an unknown outcome is the cause; "" is not checked
	is       []error       // what that error matches
	status   int           // of the error; 0 for none
	attempts int           // the attempts that the error reports; 0 is not checked
	requests int           // those that the server read to the end, or anyNumber
	commits  int           // invoices that the server created
	dials    int           // connections that were dialed; 0 is not checked
}

const anyNumber = -1

// runFaults runs each case as a read and as a create-invoice, on a connection that was
// prepared and not.
func runFaults(t *testing.T, cases []faultCase) {
	certificates()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Regexp(t, `^row N\d+: `, c.name)
			for name, want := range map[string]expectation{"read": c.read, "create-invoice": c.write, "create-invoice, prepared": c.write} {
				if want.kind == "" {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					h := newHarness(t, name != "read")
					h.prepared = strings.HasSuffix(name, "prepared")
					c.setup(h)
					h.assert(want)
				})
			}
		})
	}
}

// A harness is a client on one side, and a server on TCP on the other.
type harness struct {
	*testing.T
	write     bool // the call is a create-invoice
	prepared  bool // after PrepareInvoice
	url       string
	server    *faultserver.Server
	http2     *h2server.Server // nil for HTTP/1.1
	transport *http.Transport
	policy    gateway.RetryPolicy
	made      *gateway.Client
	caller    *http.Client // of made
}

func newHarness(t *testing.T, write bool) *harness {
	h := &harness{
		T: t, write: write, url: "http://" + call.Host, server: listening(t, nil),
		policy: gateway.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond},
	}
	h.server.Handler = h.succeed
	h.transport = &http.Transport{DialContext: h.server.DialContext}
	return h
}

// client returns the one client of the harness.
func (h *harness) client() *gateway.Client {
	if h.made == nil {
		var err error
		h.caller = &http.Client{Transport: h.transport}
		if h.transport.ForceAttemptHTTP2 {
			h.caller.Transport = sharing(h.transport)
		}
		if h.prepared {
			h.caller.Transport = gateway.InvoiceTransport(h.transport)
		}
		h.made, err = gateway.New(h.url+"/merchant", canary, gateway.WithHTTPClient(h.caller), gateway.WithRetry(h.policy))
		require.NoError(h, err)
	}
	return h.made
}

// warm makes a read that leaves an idle connection, and forgets it.
func (h *harness) warm() {
	_, err := h.client().Withdrawal(h.Context(), call.WithdrawalID)
	require.NoError(h, err)
	h.server.Record.Reset()
}

// commit records an invoice, if the call is for one.
func (h *harness) commit() {
	if h.write {
		h.server.Record.Committed()
	}
}

// respond commits and sends the response of a success.
func (h *harness) respond(c *faultserver.Conn) bool {
	h.commit()
	if h.write {
		return c.Send(faultserver.Response(201, call.Enveloped(call.InvoiceResult(call.Target))))
	}
	return c.Send(faultserver.Response(201, call.Enveloped(call.WithdrawalResult)))
}

// succeed is the handler of a server without a fault.
func (h *harness) succeed(c *faultserver.Conn) { faultserver.EachRequest(h.respond)(c) }

// trust makes the client trust the certificates of the tests.
func (h *harness) trust() *tls.Config {
	h.url = "https://" + call.Host
	h.transport.TLSClientConfig = certificates().Client()
	return certificates().Server()
}

// assert makes the call and compares its result with the expectation and with
// what is true of every fault.
func (h *harness) assert(want expectation) {
	ctx, cancel := context.WithTimeout(h.Context(), patient)
	defer cancel()
	r := call.Result{Order: call.Target, Record: &h.server.Record}
	var read *gateway.Withdrawal
	if h.prepared {
		_ = h.client().PrepareInvoice(ctx) // the fault may be that it cannot
		want.dials = 0                     // one more, which is not always used
	}
	if h.write {
		r = call.Create(ctx, h.client(), call.Target, &h.server.Record)
	} else {
		read, r.Err = h.client().Withdrawal(ctx, call.WithdrawalID)
	}
	assert.NoError(h, ctx.Err(), "the call returns within its deadline")
	h.finish()
	recordHosts(h.server)
	if h.write {
		assert.Empty(h, r.Violations())
	} else {
		h.assertRead(read, r.Err)
	}
	h.assertRecord(want)
	if assert.Equal(h, want.kind, kindOf(r.Err, h.write), "the kind of %v", r.Err) {
		assertDetails(h, want, r.Err)
	}
}

// finish ends the case: when it returns every connection is closed.
func (h *harness) finish() {
	h.server.Finish()
	h.caller.CloseIdleConnections()
	if h.http2 != nil {
		h.http2.Close()
		return
	}
	h.server.Close()
}

// assertRead asserts of a read what result.violations asserts of an invoice.
func (h *harness) assertRead(got *gateway.Withdrawal, err error) {
	assert.Empty(h, h.server.Record.Seen().Violations)
	assert.Empty(h, invariant.Broken(got, err))
	if err == nil {
		assert.Equal(h, call.WithdrawalID, got.WithdrawRequestID)
		assert.Equal(h, "12.5", got.Amount.String())
	}
}

func (h *harness) assertRecord(want expectation) {
	seen := h.server.Record.Seen()
	if want.requests != anyNumber {
		assert.Equal(h, want.requests, seen.Requests, "requests that the server read to the end")
	}
	if want.dials != 0 {
		assert.Len(h, h.server.Dialed(), want.dials, "connections that were dialed")
	}
	if h.write {
		assert.Equal(h, want.commits, seen.Commits, "invoices that the server created")
		assert.LessOrEqual(h, seen.Requests, 1, "an invoice was sent twice")
	}
}

// kindOf names the result of a call.
func kindOf(err error, write bool) string {
	if err == nil {
		return success
	}
	if write {
		return gateway.OutcomeOf(err).String()
	}
	return strings.Replace(fmt.Sprintf("%T", err), "gateway.", "", 1)
}

// assertDetails asserts what is expected of the error.
func assertDetails(t *harness, want expectation, err error) {
	if err == nil {
		return
	}
	var lost *gateway.OutcomeUnknownError
	if errors.As(err, &lost) {
		assertUnknown(t, want, lost)
		err = lost.Cause
	}
	for _, target := range want.is {
		assert.ErrorIs(t, err, target)
	}
	var failure *gateway.TransportError
	require.ErrorAs(t, err, &failure)
	if want.phase != "" {
		assert.Equal(t, want.phase, failure.Phase, "the phase of %v", err)
	}
	if want.attempts != 0 {
		assert.Equal(t, want.attempts, failure.Attempts, "the attempts of %v", err)
	}
	assert.Equal(t, want.status, failure.LastStatus, "the last status of %v", err)
}

// assertUnknown asserts what keeps a caller from repeating the call.
func assertUnknown(t *harness, want expectation, lost *gateway.OutcomeUnknownError) {
	assert.Equal(t, want.status, lost.StatusCode)
	assert.LessOrEqual(t, len(lost.Body), 8<<10)
	assert.Equal(t, call.Target, lost.OrderID)
	assert.False(t, lost.SentAt.IsZero())
	assert.False(t, gateway.SafeToRetry(lost))
	for _, other := range []error{context.Canceled, context.DeadlineExceeded, gateway.ErrTimeout, gateway.ErrNotSent} {
		assert.NotErrorIs(t, lost, other)
	}
	var network net.Error
	if assert.ErrorAs(t, lost, &network) {
		assert.False(t, network.Timeout())
	}
}

func TestFaults_Sockets(t *testing.T) {
	runFaults(t, []faultCase{
		{
			name: "row N3: the connection is refused",
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
			name:  "row N12: every TLS handshake is reset",
			setup: resetHandshakes(1 << 20),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseTLS, attempts: 3},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 3},
		},
		{
			name:  "row N12: one TLS handshake is reset",
			setup: resetHandshakes(1),
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2},
		},
		{
			name:  "row N16: the idle connection was reset",
			setup: resetIdle,
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2},
		},
		{
			name:  "row N21: read all, then FIN",
			setup: afterRequest(func(*harness, *faultserver.Conn) {}),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3, is: []error{io.EOF}},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1, is: []error{io.EOF}},
		},
		{
			name:  "row N21: read all, then RST",
			setup: afterRequest(func(_ *harness, c *faultserver.Conn) { c.Reset() }),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1},
		},
		{
			name:  "row N22: read all, commit, then FIN",
			setup: afterRequest(func(h *harness, _ *faultserver.Conn) { h.commit() }),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1, commits: 1},
		},
		{
			name: "row N22: read all, commit, then FIN in the middle of the response's header",
			setup: afterRequest(func(h *harness, c *faultserver.Conn) {
				h.commit()
				c.Send("HTTP/1.1 200 OK\r\nContent-Ty")
			}),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1, commits: 1},
		},
		{
			name:  "row N25: the handler panics",
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

func TestFaults_HTTP2(t *testing.T) {
	refused := h2server.Reset(http2.ErrCodeRefusedStream)
	runFaults(t, []faultCase{
		{
			name:  "row N26: a success over HTTP/2, to compare with",
			setup: overHTTP2(func(*h2server.Server) {}),
			read:  expectation{kind: success, requests: 1},
			write: expectation{kind: success, requests: 1, commits: 1},
		},
		{
			name:  "row N26: the stream is refused once, after the whole request",
			setup: faultOnce(h2server.RequestWhole, refused),
			read:  expectation{kind: success, requests: 2, dials: 1}, // net/http repeats a read by itself
			write: expectation{kind: unknown, attempts: 1, requests: 1},
		},
		{
			name: "row N26: the stream is refused as soon as its header is there",
			setup: func(h *harness) {
				h.policy.AttemptTimeout = 4 * short // net/http repeats a read by itself, ever slower
				faultEachTime(h2server.RequestHeader, refused)(h)
				h.http2.Window = 0
			},
			read:  expectation{kind: transportFailure, requests: anyNumber},
			write: expectation{kind: unknown, attempts: 1, requests: anyNumber, dials: 1}, // the body was read, though it may not have left
		},
		{
			name:  "row N27: the server goes away without the stream, after the whole request",
			setup: faultOnce(h2server.RequestWhole, h2server.GoAway(-2, http2.ErrCodeNo)),
			read:  expectation{kind: success, requests: 2, dials: 2}, // net/http repeats a read by itself
			write: expectation{kind: unknown, attempts: 1, requests: 1, dials: 1},
		},
		{
			name: "row N27: the server commits and goes away with the stream",
			setup: faultEachTime(h2server.Committed, func(c *h2server.Conn, stream uint32) bool {
				_ = c.WriteGoAway(stream, http2.ErrCodeNo, nil)
				return false
			}),
			read:  expectation{kind: transportFailure, attempts: 3, requests: 3},
			write: expectation{kind: unknown, attempts: 1, requests: 1, commits: 1, dials: 1},
		},
		{
			name: "row N28: the server went away before the request",
			setup: func(h *harness) {
				// Within the response to the read, so that the client has seen it when the read is over.
				faultOnce(h2server.ResponseHeader, h2server.GoAway(0, http2.ErrCodeNo))(h)
				h.warm()
			},
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2},
		},
		{
			name:  "row N29: the stream ends in an internal error",
			setup: faultEachTime(h2server.RequestWhole, h2server.Reset(http2.ErrCodeInternal)),
			read:  expectation{kind: transportFailure, attempts: 3, requests: 3},
			write: expectation{kind: unknown, attempts: 1, requests: 1},
		},
		{
			name:  "row N29: the stream is cancelled",
			setup: faultEachTime(h2server.RequestWhole, h2server.Reset(http2.ErrCodeCancel)),
			read:  expectation{kind: transportFailure, attempts: 3, requests: 3},
			write: expectation{kind: unknown, attempts: 1, requests: 1},
		},
		{
			name:  "row N29: the stream is cancelled after the response's header",
			setup: faultEachTime(h2server.ResponseHeader, h2server.Reset(http2.ErrCodeCancel)),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseRead, status: 201, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseRead, status: 201, attempts: 1, requests: 1, commits: 1},
		},
		{
			name:  "row N30: packets are dropped on a connection that was good",
			setup: dropPackets,
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: unknown, attempts: 1, dials: 1},
		},
	})
}

// overHTTP2 makes the server speak HTTP/2.
func overHTTP2(change func(s *h2server.Server)) func(*harness) {
	return func(h *harness) {
		h.trust()
		h.transport.ForceAttemptHTTP2 = true
		h.transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 4 * short, PingTimeout: 4 * short}
		h.http2 = h2server.New(h.server, certificates().Server("h2"), func(post bool, _ []byte) string {
			if !post {
				return call.Enveloped(call.WithdrawalResult)
			}
			h.commit()
			return call.Enveloped(call.InvoiceResult(call.Target))
		})
		change(h.http2)
		h.http2.Start()
	}
}

// faultOnce is one fault at the first boundary of a name.
func faultOnce(where h2server.Boundary, fault h2server.Fault) func(*harness) {
	return overHTTP2(func(s *h2server.Server) { s.Where, s.Fault = where, fault })
}

// faultEachTime is a fault at every boundary of a name.
func faultEachTime(where h2server.Boundary, fault h2server.Fault) func(*harness) {
	return overHTTP2(func(s *h2server.Server) { s.Where, s.Fault, s.EachTime = where, fault, true })
}

// dropPackets loses everything on the first connection once it has been used,
// without an error at either end.
func dropPackets(h *harness) {
	overHTTP2(func(*h2server.Server) {})(h)
	var first *faultserver.BreakingConn
	h.server.WrapClient = func(conn net.Conn, number int) net.Conn {
		if number > 1 {
			return conn
		}
		first = faultserver.NewBreakingConn(conn, nil)
		return first
	}
	if h.prepared {
		require.NoError(h, h.client().PrepareInvoice(h.Context()))
	} else {
		h.warm()
	}
	first.Arm(faultserver.Break{Up: 0, Down: faultserver.Unlimited, Manner: faultserver.Stall})
}
