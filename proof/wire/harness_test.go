package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/internal/testing/measure"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// A faultCase is a fault, and how a read and a create-invoice end that meet it. An
// expectation without a kind skips that call.
type faultCase struct {
	name        string
	setup       func(h *harness)
	read, write expectation
}

// A place is where the client and the server meet.
type place int

const (
	inBubble  place = iota // in memory, and time is free
	onSockets              // on TCP
)

// The kinds of result.
const (
	success          = "success"
	transportFailure = "*TransportError"
	apiFailure       = "*APIError"
	decodeFailure    = "*DecodeError"
	notSent          = "not sent"
	unknown          = "unknown"
	rejected         = "rejected"
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
}

const anyNumber = -1

// done is a success after so many requests, on so many connections; 0 is not checked.
func done(requests, dials int) expectation {
	return expectation{kind: success, requests: requests, dials: dials}
}

// failed is a read without a response in so many attempts; the last one ended in a phase. Each of them was a
// whole request if it waited for the response.
func failed(phase gateway.Phase, attempts int, is ...error) expectation {
	e := expectation{kind: transportFailure, phase: phase, attempts: attempts, is: is}
	if phase == gateway.PhaseWait || phase == gateway.PhaseRead {
		e.requests = attempts
	}
	return e
}

// undecoded is a read whose response cannot be decoded.
func undecoded(requests int) expectation { return expectation{kind: decodeFailure, requests: requests} }

// apiError is a read that the service answers with a status in each of so many attempts.
func apiError(status, attempts int) expectation {
	return expectation{kind: apiFailure, status: status, attempts: attempts, requests: attempts}
}

// unsent is an invoice that was not sent in so many attempts.
func unsent(phase gateway.Phase, attempts int, is ...error) expectation {
	return expectation{kind: notSent, phase: phase, attempts: attempts, is: is}
}

// unsure is an invoice that was sent once, and may exist.
func unsure(phase gateway.Phase, is ...error) expectation {
	return expectation{kind: unknown, phase: phase, attempts: 1, requests: 1, is: is}
}

func (e expectation) at(status int) expectation      { e.status = status; return e }
func (e expectation) after(requests int) expectation { e.requests = requests; return e }
func (e expectation) over(dials int) expectation     { e.dials = dials; return e }
func (e expectation) committed() expectation         { e.commits = 1; return e }

// runFaults runs each case as a read and as a create-invoice, beside the others.
func runFaults(t *testing.T, at place, cases []faultCase) {
	certificate()
	for _, c := range cases {
		c.run(t, at, (*testing.T).Parallel)
	}
}

func (c faultCase) run(t *testing.T, at place, begin func(*testing.T)) {
	t.Run(c.name, func(t *testing.T) {
		for name, want := range map[string]expectation{"read": c.read, "create-invoice": c.write} {
			if want.kind == "" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				begin(t)
				at.test(t, func(t *testing.T) {
					h := newHarness(t, at, name != "read")
					c.setup(h)
					h.assert(want)
				})
			})
		}
	})
}

// test runs a test there.
func (at place) test(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if at == onSockets {
		test(t)
		return
	}
	synctest.Test(t, test)
}

// A harness is a client on one side, a server on the other, and the record of what crossed
// between them.
type harness struct {
	*testing.T
	at        place
	write     bool // the call is a create-invoice
	url       string
	server    *faultserver.Server
	http2     *faultserver.HTTP2 // nil for HTTP/1.1
	transport *http.Transport
	tripper   http.RoundTripper // instead of transport, if it is set
	policy    gateway.RetryPolicy
	options   []gateway.Option
	ctx       context.Context
	cancel    context.CancelFunc
	bound     context.Context // that no call reaches
	made      *gateway.Client
	secrets   []string // what must not be in an error, beside the key
	memory    uint64   // bytes that a call may allocate; 0 is not checked
}

func newHarness(t *testing.T, at place, write bool) *harness {
	h := &harness{
		T: t, at: at, write: write, url: "http://" + call.Host,
		policy: gateway.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond},
	}
	longest := patient
	if at == onSockets {
		h.server = listening(t, nil)
	} else {
		h.server, longest = faultserver.New(nil), 24*time.Hour
	}
	h.server.Handler = h.succeed
	h.transport = &http.Transport{DialContext: h.server.DialContext}
	bound, end := context.WithTimeout(t.Context(), longest)
	t.Cleanup(end)
	h.bound = bound
	h.ctx, h.cancel = context.WithCancel(bound)
	t.Cleanup(h.cancel)
	return h
}

// client returns the one client of the harness.
func (h *harness) client() *gateway.Client {
	if h.made != nil {
		return h.made
	}
	caller := &http.Client{Transport: h.transport}
	if h.tripper != nil {
		caller.Transport = h.tripper
	}
	options := append([]gateway.Option{gateway.WithHTTPClient(caller), gateway.WithRetry(h.policy)}, h.options...)
	var err error
	h.made, err = gateway.New(h.url+"/merchant", canary, options...)
	require.NoError(h, err)
	return h.made
}

// warm makes a call that leaves an idle connection, and forgets it: a read, or over HTTP/2 one of the
// kind that follows, which uses the connection.
func (h *harness) warm() {
	var err error
	if h.http2 != nil && h.write {
		_, err = h.client().CreateInvoice(h.ctx, call.Order("earlier"))
	} else {
		_, err = h.client().Withdrawal(h.ctx, call.WithdrawalID)
	}
	require.NoError(h, err)
	h.server.Record.Reset()
}

// breaking makes the first connection break on demand, once it is there.
func (h *harness) breaking() (first func() *faultserver.BreakingConn) {
	var conn *faultserver.BreakingConn
	h.server.WrapClient = func(c net.Conn, number int) net.Conn {
		if number > 1 {
			return c
		}
		conn = faultserver.NewBreakingConn(c, func() {})
		return conn
	}
	return func() *faultserver.BreakingConn { return conn }
}

// commit records an invoice, if the call is for one.
func (h *harness) commit() {
	if h.write {
		h.server.Record.Committed()
	}
}

// body is the body of a success.
func (h *harness) body() string {
	if h.write {
		return call.Enveloped(call.InvoiceResult(call.Target))
	}
	return call.Enveloped(call.WithdrawalResult)
}

// respond commits and sends the response of a success.
func (h *harness) respond(c *faultserver.Conn) bool {
	h.commit()
	return c.Send(faultserver.Response(201, h.body()))
}

// succeed is the handler of a server without a fault.
func (h *harness) succeed(c *faultserver.Conn) { faultserver.EachRequest(h.respond)(c) }

// trust makes the client trust the certificates of the tests, and returns what a server
// behind TLS needs.
func (h *harness) trust() *tls.Config {
	h.url = "https://" + call.Host
	h.transport.TLSClientConfig = certificate().Client()
	config := certificate().Server()
	config.SessionTicketsDisabled = true // without a buffer an early ticket and an alert wait for each other
	return config
}

// assert makes the call and compares its result with the expectation and with the rules
// of every fault.
func (h *harness) assert(want expectation) {
	r := call.Result{Record: &h.server.Record}
	var read *gateway.Withdrawal
	if want.kind == rejected {
		h.server.Record.Refused()
	}
	h.client()
	cost := measure.Allocated(func() {
		if h.write {
			r = call.Create(h.ctx, h.client(), call.Target, &h.server.Record)
		} else {
			read, r.Err = h.client().Withdrawal(h.ctx, call.WithdrawalID)
		}
	})
	assert.NoError(h, h.bound.Err(), "the call returns within its deadline")
	h.finish()
	recordHosts(h.server)
	if h.write {
		assert.Empty(h, r.Violations())
	} else {
		h.assertRead(read, r.Err)
	}
	h.assertCost(want, cost)
	h.assertText(r.Err)
	h.assertRecord(want)
	if assert.Equal(h, want.kind, kindOf(r.Err, h.write), "the kind of %v", r.Err) {
		assertDetails(h, want, r.Err)
	}
}

// finish ends the case: when it returns every connection is closed, and every handler has
// returned.
func (h *harness) finish() {
	h.server.Finish()
	h.made.CloseIdleConnections()
	h.transport.CloseIdleConnections() // of a tripper
	end := h.server.Close
	if h.http2 != nil {
		end = h.http2.Close
	}
	assert.True(h, call.Returns(end), "every connection is closed")
}

// assertRead asserts of a read what call.Result.Violations asserts of an invoice.
func (h *harness) assertRead(got *gateway.Withdrawal, err error) {
	assert.Empty(h, h.server.Record.Seen().Violations)
	assert.Empty(h, invariant.Broken(got, err))
	if err == nil {
		assert.Equal(h, call.WithdrawalID, got.WithdrawRequestID)
		assert.Equal(h, "12.5", got.Amount.String())
	}
}

// assertCost asserts that a call stays within the memory of its case. More is kept of the
// response to an invoice whose status was a success, and which is not understood.
func (h *harness) assertCost(want expectation, cost uint64) {
	if h.memory == 0 {
		return
	}
	most := h.memory
	if h.write && want.status == 200 {
		most = large
	}
	assert.Less(h, cost, most, "bytes that the call has allocated")
}

// assertText asserts what the error says, and what it does not.
func (h *harness) assertText(err error) {
	text := fmt.Sprintf("%v %+v %#v", err, err, err)
	assert.Less(h, len(fmt.Sprint(err)), 16<<10)
	for _, secret := range h.secrets {
		assert.NotContains(h, text, secret)
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
		commits := want.commits
		if want.kind == success {
			commits = 1
		}
		assert.Equal(h, commits, seen.Commits, "invoices that the server created")
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

// assertDetails asserts the fields of the error.
func assertDetails(h *harness, want expectation, err error) {
	if err == nil {
		return
	}
	if lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		assertUnknown(h, want, lost)
		err = lost.Cause
	}
	for _, target := range want.is {
		assert.ErrorIs(h, err, target)
	}
	if failure, ok := errors.AsType[*gateway.TransportError](err); ok {
		if want.phase != "" {
			assert.Equal(h, want.phase, failure.Phase, "the phase of %v", err)
		}
		if want.attempts != 0 {
			assert.Equal(h, want.attempts, failure.Attempts, "the attempts of %v", err)
		}
		assert.Equal(h, want.status, failure.LastStatus, "the last status of %v", err)
	}
	if refusal, ok := errors.AsType[*gateway.APIError](err); ok {
		assert.Equal(h, want.status, refusal.StatusCode)
		assert.LessOrEqual(h, len(refusal.Body), 8<<10)
		if want.attempts != 0 {
			assert.Equal(h, want.attempts, refusal.Attempts)
		}
	}
}

// assertUnknown asserts what keeps a caller from repeating the call.
func assertUnknown(h *harness, want expectation, lost *gateway.OutcomeUnknownError) {
	assert.Equal(h, want.status, lost.StatusCode)
	assert.LessOrEqual(h, len(lost.Body), 8<<10)
	assert.Equal(h, call.Target, lost.OrderID)
	assert.False(h, lost.SentAt.IsZero())
	assert.False(h, gateway.SafeToRetry(lost))
	for _, other := range []error{context.Canceled, context.DeadlineExceeded} {
		assert.Equal(h, errors.Is(lost.Cause, other), errors.Is(lost, other))
	}
	var network net.Error
	if assert.ErrorAs(h, lost, &network) {
		assert.False(h, network.Timeout())
	}
}

// A tripper is a RoundTripper in one function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
