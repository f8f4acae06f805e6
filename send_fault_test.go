package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
	"github.com/cryptogw/gateway/internal/testing/invariant"
)

// A faultCase is a row of the table of faults: how the fault is made, and the
// result of a read and of a create-invoice. It runs in a bubble, on connections
// in memory; the rows that need sockets or HTTP/2 are in module contract.
// An expectation without a kind skips that call.
type faultCase struct {
	name        string
	setup       func(h *harness)
	read, write expectation
}

// The kinds of result.
const (
	success        = "success"
	transportError = "*TransportError"
	apiError       = "*APIError"
	decodeError    = "*DecodeError"
	notSent        = "not sent"
	unknown        = "unknown"
	rejected       = "rejected"
)

// An expectation is the result of a call, and what the server sees of it.
type expectation struct {
	kind     string
	phase    gateway.Phase // of the *TransportError, which for an unknown outcome is the cause; "" is not checked
	is       []error       // what the error matches, or for an unknown outcome the cause
	status   int           // of the error; 0 for none
	attempts int           // the attempts that the error reports; 0 is not checked
	requests int           // those that the server read to the end, or anyNumber
	commits  int           // invoices that the server created
	dials    int           // connections that were dialed; 0 is not checked
	text     string        // contained in the text of the error
	body     string        // what is kept of the response to an unknown outcome; "" is not checked
}

const anyNumber = -1

// runFaults runs each case as a read and as a create-invoice.
func runFaults(t *testing.T, cases []faultCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Regexp(t, `^row N\d+: `, c.name)
			c.run(t, "read", c.read, false)
			c.run(t, "create-invoice", c.write, true)
		})
	}
}

func (c faultCase) run(t *testing.T, name string, want expectation, write bool) {
	if want.kind == "" {
		return
	}
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, write)
			c.setup(h)
			h.assert(want)
		})
	})
}

// A harness is a client on one side, a server on the other, and the record of
// what crossed between them.
type harness struct {
	*testing.T
	write     bool // the call is a create-invoice
	url       string
	server    *faultserver.Server
	transport *http.Transport
	tripper   http.RoundTripper // instead of transport, if it is set
	policy    gateway.RetryPolicy
	options   []gateway.Option
	ctx       context.Context
	cancel    context.CancelFunc
	made      *gateway.Client
	secrets   []string // what must not be in the text of an error, beside the key
}

// newHarness returns one whose deadline no case reaches: in a bubble time is
// free.
func newHarness(t *testing.T, write bool) *harness {
	h := &harness{
		T: t, write: write, url: "http://localhost", server: faultserver.New(nil),
		policy: gateway.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond},
	}
	h.server.Handler = h.succeed
	h.transport = &http.Transport{DialContext: h.server.DialContext}
	h.ctx, h.cancel = context.WithTimeout(t.Context(), 24*time.Hour)
	t.Cleanup(h.cancel)
	return h
}

// client returns the one client of the harness.
func (h *harness) client() *gateway.Client {
	if h.made == nil {
		if h.tripper == nil {
			h.tripper = gateway.InvoiceTransport(h.transport) // which finish closes
		}
		options := append([]gateway.Option{
			gateway.WithHTTPClient(&http.Client{Transport: h.tripper}), gateway.WithRetry(h.policy),
		}, h.options...)
		h.made = newClient(h, h.url+prefix, options...)
	}
	return h.made
}

// call makes the call that the case is about.
func (h *harness) call() (any, error) {
	if h.write {
		return h.client().CreateInvoice(h.ctx, order("A-17"))
	}
	return h.client().Withdrawal(h.ctx, requestID)
}

// warm makes a read that leaves an idle connection, and forgets it.
func (h *harness) warm() {
	_, err := h.client().Withdrawal(h.ctx, requestID)
	require.NoError(h, err)
	h.server.Record.Reset()
}

// commit records an invoice, if the call is for one.
func (h *harness) commit() {
	if h.write {
		h.server.Record.Committed()
	}
}

// body is that of the response of a success.
func (h *harness) body() string {
	if h.write {
		return enveloped(invoiceJSON)
	}
	return enveloped(withdrawalJSON)
}

// respond commits and sends the response of a success.
func (h *harness) respond(c *faultserver.Conn) bool {
	h.commit()
	return c.Send(faultserver.Response(200, h.body()))
}

// respondAfterWarming responds to the read of warm, which is the first request
// of the first connection, and then to the call.
func (h *harness) respondAfterWarming(c *faultserver.Conn) {
	if c.Number == 1 {
		c.Send(faultserver.Response(200, enveloped(withdrawalJSON)))
		return
	}
	h.respond(c)
}

// succeed is the handler of a server without a fault.
func (h *harness) succeed(c *faultserver.Conn) { faultserver.EachRequest(h.respond)(c) }

// trust makes the client trust the authority of the tests, and returns what a
// server of https://gateway.test needs.
func (h *harness) trust() *tls.Config {
	h.url = "https://" + faultserver.Host
	h.transport.TLSClientConfig = certificates().Client()
	return certificates().Server()
}

// certificates are made once: keys take a while.
var certificates = sync.OnceValue(func() *faultserver.Certificates {
	all, err := faultserver.NewCertificates()
	if err != nil {
		panic(err)
	}
	return all
})

// assert makes the call and compares its result with the expectation and with
// what is true of every fault.
func (h *harness) assert(want expectation) {
	result, err := h.call()
	h.finish()
	assertInvariants(h, result, err)
	for _, secret := range h.secrets {
		assert.NotContains(h, fmt.Sprintf("%v %+v %#v", err, err, err), secret)
	}
	h.assertRecord(want, err)
	h.assertHosts()
	if err == nil {
		h.assertData(result)
	}
	if assert.Equal(h, want.kind, kindOf(err, h.write), "the kind of %v", err) {
		assertDetails(h, want, err)
	}
}

// finish ends the case: when it returns every connection is closed and every
// handler has returned.
func (h *harness) finish() {
	h.server.Finish()
	(&http.Client{Transport: h.tripper}).CloseIdleConnections()
	h.transport.CloseIdleConnections()
	done := make(chan struct{})
	go func() {
		h.server.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		assert.Fail(h, "a connection was left open")
	}
}

func (h *harness) assertRecord(want expectation, err error) {
	seen := h.server.Record.Seen()
	if want.requests != anyNumber {
		assert.Equal(h, want.requests, seen.Requests, "requests that the server read to the end")
	}
	if want.dials != 0 {
		assert.Len(h, h.server.Dialed(), want.dials, "connections that were dialed")
	}
	if h.write {
		assert.Equal(h, want.commits, seen.Commits, "invoices that the server created")
		assert.Empty(h, invariant.BrokenInvoice(seen, err))
	}
}

// assertHosts asserts that nothing but the gateway was connected to.
func (h *harness) assertHosts() {
	for _, addr := range h.server.Dialed() {
		host, _, err := net.SplitHostPort(addr)
		assert.NoError(h, err)
		assert.Contains(h, []string{"localhost", "127.0.0.1", faultserver.Host, "proxy.test"}, host, "another host was contacted")
	}
}

func (h *harness) assertData(result any) {
	switch got := result.(type) {
	case *gateway.Withdrawal:
		assert.Equal(h, "25.000001", got.Amount.String())
		assert.Equal(h, requestID, got.WithdrawRequestID)
	case *gateway.Invoice:
		assert.Equal(h, "A-17", got.OrderID)
		assert.JSONEq(h, invoiceJSON, string(got.Raw))
	default:
		assert.Fail(h, "a result of an unknown type", "%T", result)
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
func assertDetails(t testing.TB, want expectation, err error) {
	t.Helper()
	if err == nil {
		return
	}
	assert.Contains(t, err.Error(), want.text)
	var lost *gateway.OutcomeUnknownError
	if errors.As(err, &lost) {
		assertUnknown(t, want, lost)
		err = lost.Cause
	}
	for _, target := range want.is {
		assert.ErrorIs(t, err, target)
	}
	var failure *gateway.TransportError
	if errors.As(err, &failure) {
		if want.phase != "" {
			assert.Equal(t, want.phase, failure.Phase, "the phase of %v", err)
		}
		if want.attempts != 0 {
			assert.Equal(t, want.attempts, failure.Attempts, "the attempts of %v", err)
		}
		assert.Equal(t, want.status, failure.LastStatus, "the last status of %v", err)
	}
	var refusal *gateway.APIError
	if errors.As(err, &refusal) {
		assert.Equal(t, want.status, refusal.StatusCode)
		if want.attempts != 0 {
			assert.Equal(t, want.attempts, refusal.Attempts)
		}
	}
}

// assertUnknown asserts what keeps a caller from repeating the call.
func assertUnknown(t testing.TB, want expectation, lost *gateway.OutcomeUnknownError) {
	t.Helper()
	assert.Equal(t, want.status, lost.StatusCode)
	if want.body != "" {
		assert.Equal(t, want.body, string(lost.Body))
	}
	assert.Equal(t, "A-17", lost.OrderID)
	assert.False(t, lost.SentAt.IsZero())
	assert.False(t, gateway.SafeToRetry(lost))
	for _, target := range []error{context.Canceled, context.DeadlineExceeded, gateway.ErrTimeout, gateway.ErrNotSent} {
		assert.NotErrorIs(t, lost, target)
	}
	var network net.Error
	if assert.ErrorAs(t, lost, &network) {
		assert.False(t, network.Timeout())
	}
}

func TestFaults_BeforeAConnection(t *testing.T) {
	t.Parallel()
	runFaults(t, []faultCase{
		{
			name:  "row N1: the host does not exist",
			setup: failDials(always, &net.DNSError{Err: "no such host", Name: "localhost", IsNotFound: true}),
			read:  expectation{kind: transportError, phase: gateway.PhaseDial, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseDial, attempts: 1, dials: 1},
		},
		{
			name:  "row N2: looking up the host fails once",
			setup: failDials(1, &net.DNSError{Err: "server misbehaving", Name: "localhost", IsTemporary: true}),
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2},
		},
		{
			name:  "row N4: connecting never ends",
			setup: hangDials(func(*harness) {}),
			read:  expectation{kind: transportError, phase: gateway.PhaseDial, attempts: 3, is: []error{gateway.ErrTimeout}},
			write: expectation{kind: notSent, phase: gateway.PhaseDial, attempts: 3, is: []error{gateway.ErrTimeout}},
		},
		{
			name:  "row N5: the caller cancels while it connects",
			setup: hangDials(func(h *harness) { h.cancel() }),
			read:  expectation{kind: transportError, attempts: 1, dials: 1, is: []error{context.Canceled}},
			write: expectation{kind: notSent, attempts: 1, dials: 1, is: []error{context.Canceled}},
		},
		{
			name: "row N6: the caller has cancelled before",
			setup: func(h *harness) {
				h.cancel()
				h.Cleanup(func() { assert.Empty(h, h.server.Dialed()) })
			},
			read:  expectation{kind: transportError, phase: gateway.PhaseStart, is: []error{context.Canceled}},
			write: expectation{kind: notSent, phase: gateway.PhaseStart, is: []error{context.Canceled}},
		},
		{
			name: "row N7: the caller cancels between two attempts to connect",
			setup: func(h *harness) {
				h.policy = gateway.RetryPolicy{BaseDelay: time.Hour, MaxDelay: time.Hour}
				h.server.OnDial = func(context.Context, int) error {
					time.AfterFunc(time.Microsecond, h.cancel)
					return syscall.ECONNREFUSED
				}
			},
			read:  expectation{kind: transportError, phase: gateway.PhaseBackoff, attempts: 1, dials: 1, is: []error{context.Canceled}},
			write: expectation{kind: notSent, phase: gateway.PhaseBackoff, attempts: 1, dials: 1, is: []error{context.Canceled}},
		},
		{
			name: "row N7: the caller cancels after a response of 503",
			setup: func(h *harness) {
				h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
					c.Send(faultserver.Response(503, refused("down"), "Retry-After: 20"))
					time.AfterFunc(10*time.Second, h.cancel)
				})
			},
			read: expectation{
				kind: transportError, phase: gateway.PhaseBackoff, attempts: 1, requests: 1, status: 503,
				is: []error{context.Canceled}, text: "last status 503",
			},
			write: expectation{kind: unknown, status: 503, requests: 1},
		},
		{
			name:  "row N8: the proxy requires a password",
			setup: throughProxy("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"),
			read:  expectation{kind: transportError, phase: gateway.PhaseProxy, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseProxy, attempts: 1, dials: 1},
		},
		{
			name:  "row N8: the proxy cannot connect",
			setup: throughProxy("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"),
			read:  expectation{kind: transportError, phase: gateway.PhaseProxy, attempts: 3},
			write: expectation{kind: notSent, phase: gateway.PhaseProxy, attempts: 3},
		},
		{
			name:  "row N8: the proxy refuses with a reason of its own",
			setup: throughProxy("HTTP/1.1 503 Out Of Lines\r\nContent-Length: 0\r\n\r\n"),
			read:  expectation{kind: transportError, attempts: 3},
			write: expectation{kind: notSent, attempts: 3},
		},
		{
			name: "row N9: the proxy cannot be reached",
			setup: func(h *harness) {
				throughProxy("")(h)
				failDials(always, refusedConnection("connect"))(h)
			},
			read:  expectation{kind: transportError, phase: gateway.PhaseProxy, attempts: 3, is: []error{syscall.ECONNREFUSED}},
			write: expectation{kind: notSent, phase: gateway.PhaseProxy, attempts: 3, is: []error{syscall.ECONNREFUSED}},
		},
		{
			name: "row N15: there are no descriptors left",
			setup: failDials(always, &net.OpError{
				Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE),
			}),
			read:  expectation{kind: transportError, phase: gateway.PhaseDial, attempts: 3, dials: 3, is: []error{syscall.EMFILE}},
			write: expectation{kind: notSent, phase: gateway.PhaseDial, attempts: 3, dials: 3, is: []error{syscall.EMFILE}},
		},
	})
}

func TestFaults_TLS(t *testing.T) {
	t.Parallel()
	runFaults(t, []faultCase{
		{
			name:  "row N10: the certificate is of an unknown authority",
			setup: behindTLS(func(h *harness, _ *tls.Config) { h.transport.TLSClientConfig.RootCAs = x509.NewCertPool() }),
			read:  expectation{kind: transportError, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
		{
			name:  "row N10: the certificate is of another host",
			setup: behindTLS(func(_ *harness, c *tls.Config) { c.Certificates = []tls.Certificate{certificates().OtherHost} }),
			read:  expectation{kind: transportError, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
		{
			name:  "row N10: the certificate has expired",
			setup: behindTLS(func(_ *harness, c *tls.Config) { c.Certificates = []tls.Certificate{certificates().Expired} }),
			read:  expectation{kind: transportError, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
		{
			name: "row N11: the TLS handshake gets no response",
			setup: func(h *harness) {
				h.url = "https://" + faultserver.Host
				h.server.Handler = (*faultserver.Conn).Hold
			},
			read:  expectation{kind: transportError, phase: gateway.PhaseTLS, attempts: 3, is: []error{gateway.ErrTimeout}},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 3, is: []error{gateway.ErrTimeout}},
		},
		{
			name: "row N11: the TLS handshake exceeds its own timeout",
			setup: func(h *harness) {
				h.url = "https://" + faultserver.Host
				h.transport.TLSHandshakeTimeout = time.Second
				h.server.Handler = (*faultserver.Conn).Hold
			},
			read:  expectation{kind: transportError, phase: gateway.PhaseTLS, attempts: 3, is: []error{gateway.ErrTimeout}},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 3, is: []error{gateway.ErrTimeout}},
		},
		{
			name: "row N13: the server speaks plain HTTP",
			setup: func(h *harness) {
				h.url = "https://" + faultserver.Host
				h.server.Handler = func(c *faultserver.Conn) {
					_, _ = c.Read(make([]byte, 1<<16))
					c.Send("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request.\n")
				}
			},
			read:  expectation{kind: transportError, phase: gateway.PhaseTLS, attempts: 1, dials: 1, is: []error{http.ErrSchemeMismatch}},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1, is: []error{http.ErrSchemeMismatch}},
		},
		{
			name:  "row N14: the server knows TLS 1.1 only",
			setup: behindTLS(func(_ *harness, c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }),
			read:  expectation{kind: transportError, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
			write: expectation{kind: notSent, phase: gateway.PhaseTLS, attempts: 1, dials: 1},
		},
	})
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
		h.url = "https://" + faultserver.Host
		h.transport.Proxy = http.ProxyURL(&url.URL{
			Scheme: "http", Host: "proxy.test:3128", User: url.UserPassword("merchant", password),
		})
		h.server.Handler = func(c *faultserver.Conn) {
			req, err := http.ReadRequest(bufio.NewReader(c)) // not recorded: it is not for the gateway
			if assert.NoError(h, err) && assert.Equal(h, http.MethodConnect, req.Method) {
				c.Send(response)
			}
		}
		h.secrets = append(h.secrets, password)
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

func TestFaults_ConnectionReuse(t *testing.T) {
	t.Parallel()
	runFaults(t, []faultCase{
		{
			name: "row N16: the server has closed the idle connection",
			setup: func(h *harness) {
				h.server.Handler = faultserver.OneRequest(h.respondAfterWarming)
				h.warm()
				synctest.Wait() // until the client has seen the end of the connection
			},
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2},
		},
		{
			name: "row N16: the header cannot be written to the idle connection",
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
			name: "row N17: the reused connection is closed after the whole request",
			setup: func(h *harness) {
				closeReused(h)
				h.warm()
			},
			read:  expectation{kind: success, requests: 2, dials: 2},             // net/http replays a read by itself
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2}, // it reuses none
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
		t.Run("row N18: the connection is cut within the header, which leaves "+buffer.name, func(t *testing.T) {
			t.Parallel()
			for k := range header {
				assertCut(t, k, buffer.bytes, false, success)
				assertCut(t, k, buffer.bytes, true, success)
			}
		})
		t.Run("row N19: the connection is cut within the body, which leaves "+buffer.name, func(t *testing.T) {
			t.Parallel()
			for k := range body {
				assertCut(t, header+k, buffer.bytes, true, unknown)
			}
		})
	}
	runFaults(t, []faultCase{
		{
			name: "row N18: every connection is cut within the header",
			setup: func(h *harness) {
				h.server.Handler = (*faultserver.Conn).Hold
				h.server.WrapClient = func(conn net.Conn, _ int) net.Conn { return faultserver.BreakFirst(cutUp(20))(conn, 1) }
			},
			read:  expectation{kind: transportError, attempts: 3, dials: 3},
			write: expectation{kind: notSent, phase: gateway.PhaseWrite, attempts: 3, dials: 3},
		},
		{
			name:  "row N20: the server does not even read the header",
			setup: func(h *harness) { h.server.Handler = (*faultserver.Conn).Stop },
			read:  expectation{kind: transportError, attempts: 3, is: []error{gateway.ErrTimeout}},
			write: expectation{kind: notSent, phase: gateway.PhaseWrite, attempts: 3, is: []error{gateway.ErrTimeout}},
		},
		{
			name: "row N20: the server does not read the body",
			setup: func(h *harness) {
				h.server.Handler = func(c *faultserver.Conn) {
					_, _ = io.CopyN(io.Discard, c, int64(header))
					c.Stop()
				}
			},
			write: expectation{kind: unknown, attempts: 1, dials: 1, is: []error{gateway.ErrTimeout}},
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
		h := newHarness(t, true)
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
		h := newHarness(t, write)
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
	runFaults(t, []faultCase{
		{
			name:  "row N23: the server never responds",
			setup: func(h *harness) { h.server.Handler = faultserver.OneRequest((*faultserver.Conn).Hold) },
			read:  expectation{kind: transportError, phase: gateway.PhaseWait, attempts: 3, requests: 3, is: []error{gateway.ErrTimeout}},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, attempts: 1, requests: 1, is: []error{gateway.ErrTimeout}},
		},
		{
			name: "row N24: the caller cancels while waiting",
			setup: func(h *harness) {
				h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
					h.cancel()
					c.Hold()
				})
			},
			read:  expectation{kind: transportError, phase: gateway.PhaseWait, attempts: 1, requests: 1, is: []error{context.Canceled}},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, attempts: 1, requests: 1, is: []error{context.Canceled}},
		},
		{
			name: "row N24: the caller's deadline passes while waiting",
			setup: func(h *harness) {
				h.ctx, h.cancel = context.WithTimeout(h.ctx, 5*time.Second)
				h.Cleanup(h.cancel)
				h.server.Handler = faultserver.OneRequest((*faultserver.Conn).Hold)
			},
			read: expectation{
				kind: transportError, phase: gateway.PhaseWait, attempts: 1, requests: 1,
				is: []error{context.DeadlineExceeded, gateway.ErrTimeout},
			},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, attempts: 1, requests: 1, is: []error{context.DeadlineExceeded}},
		},
	})
}

// sendEach sends the same bytes in response to each request, and commits
// nothing.
func sendEach(response string) func(*harness) {
	return func(h *harness) { h.server.Handler = faultserver.Respond(response) }
}

// sendInTurn sends one status after the other; 200 is a success.
func sendInTurn(statuses ...int) func(*harness) {
	return func(h *harness) {
		next := 0
		h.server.Handler = faultserver.EachRequest(func(c *faultserver.Conn) bool {
			status := statuses[next]
			next++
			if status == 200 {
				return h.respond(c)
			}
			return c.Send(faultserver.Response(status, refused("Not now.")))
		})
	}
}
