// Package attempt makes one HTTP attempt.
//
// A [Transport] makes a whole attempt: it sends a request under a timeout of its own and on a
// bounded number of connections, and reads the response into memory. An [Error] reports how far an
// attempt without a response came. A [Body] is the body of a write, which proves whether any of it
// was read for sending.
package attempt

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxConnections is how many new connections an attempt may use. net/http moves a
	// request to another one as often as the peer asks for it.
	maxConnections = 3

	// unneededBodyTime bounds the reading of a body whose status alone decides that the read
	// is attempted again.
	unneededBodyTime = time.Second

	maxPooled       = 1 << 20 // bytes of a buffer that is used again
	maxPreallocated = 8 << 20 // bytes for a Content-Length
)

// A Transport is an [http.RoundTripper] that makes a whole attempt: the response that it returns
// has a [Result] as its body. It has no other method: go-retryablehttp would close the idle
// connections after each error.
type Transport struct {
	Next           http.RoundTripper
	ReadTimeout    Timeout
	InvoiceTimeout Timeout
	MaxBody        int64                 // of a response below 400
	MaxErrorBody   int64                 // the rest of another one is not read
	IsTransient    func(status int) bool // the status alone decides that a read is made again

	buffers sync.Pool // of bytes.Buffers
}

// A Result is the body of a response, in memory, and what is known of its attempt.
type Result struct {
	bytes.Reader
	source io.LimitedReader
	buffer *bytes.Buffer
	pool   *sync.Pool

	Err       error // why the body is not whole
	Unread    bool  // nothing of the request's body was read
	Ambiguous error // why it may not be the only response to the request; nil for no reason
	Misuse
}

// A Misuse is what a RoundTripper has done with a write that it should not do.
type Misuse struct {
	Shared bool // it was sent over HTTP/1 on a connection that other requests had used
	Resent bool // its header was written again after its body was read
}

// Text returns the body, as far as it was read. It must not be used after Close.
func (r *Result) Text() []byte { return r.buffer.Bytes() }

// Close makes the buffer available for another response.
func (r *Result) Close() error {
	if r.buffer != nil && r.buffer.Cap() <= maxPooled {
		r.buffer.Reset()
		r.pool.Put(r.buffer)
	}
	r.buffer = nil
	r.Reader.Reset(nil)
	return nil
}

var (
	// ErrTooLarge is the error of a body over the limit.
	ErrTooLarge = errors.New("the body is too large")
	// ErrExpired is why a write was not begun: its time has passed.
	ErrExpired = errors.New("the time to send has passed")

	errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")
	errEarly      = errors.New("the response began before the invoice was sent: it may be to something else")
	errTwice      = errors.New("the invoice was written more than once: this may not be the only response")
)

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	template, isWrite := req.Body.(*Template)
	timeout := t.ReadTimeout
	if isWrite {
		timeout = t.InvoiceTimeout
		if HasPassed(template.Expires) {
			return nil, &Error{Phase: Start, Unread: true, Err: ErrExpired}
		}
	}
	a := &attempt{isWrite: isWrite}
	var ctx context.Context
	ctx, a.cancel = context.WithTimeoutCause(req.Context(), time.Duration(timeout), timeout)
	defer a.cancel()
	if isWrite {
		ctx = context.WithValue(ctx, attemptKey{}, a)
	}
	req = req.WithContext(httptrace.WithClientTrace(ctx, a.trace()))
	if isWrite {
		a.body.expires = template.Expires
		a.body.text.Reset(template.Bytes)
		req.Body = &a.body
		defer a.body.Stop()
	}
	next := t.Next
	if split, ok := next.(*Split); ok && !isWrite {
		g := split.begin()
		defer g.end()
		next = g.transport
	}
	resp, err := next.RoundTrip(req)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	unread := isWrite && a.body.Seal() // what was not read by now is never sent
	if err != nil {
		return nil, a.failure(ctx, err, unread, t.hasProxy(req))
	}
	result := &Result{Unread: unread, Ambiguous: a.ambiguous(resp), Misuse: a.misuse()}
	t.read(ctx, a, resp, result, isWrite)
	return resp, nil
}

// hasProxy reports whether a request goes through a proxy, if that is known.
func (t *Transport) hasProxy(req *http.Request) bool {
	split, ok := t.Next.(*Split)
	if !ok || split.Shared.Proxy == nil {
		return false
	}
	proxy, err := split.Shared.Proxy(req)
	return err == nil && proxy != nil
}

// read reads the body of a response into memory, and puts the result in its place.
func (t *Transport) read(ctx context.Context, a *attempt, resp *http.Response, result *Result, isWrite bool) {
	body := resp.Body
	if body == nil {
		body = http.NoBody
	}
	defer func() { _ = body.Close() }()
	if !isWrite && t.IsTransient(resp.StatusCode) {
		defer time.AfterFunc(unneededBodyTime, a.cancel).Stop()
	}
	limit := t.MaxBody
	if resp.StatusCode >= 400 {
		limit = t.MaxErrorBody
	}
	result.pool = &t.buffers
	if result.buffer, _ = t.buffers.Get().(*bytes.Buffer); result.buffer == nil {
		result.buffer = new(bytes.Buffer)
	}
	result.source = io.LimitedReader{R: body, N: limit + 1}
	if resp.StatusCode < 200 || resp.StatusCode/100 == 3 {
		result.source.N = 0 // the body of 101 is the connection, and no context ends its reading
	} else if resp.ContentLength > 0 {
		result.buffer.Grow(int(min(resp.ContentLength, limit, maxPreallocated)) + bytes.MinRead)
	}
	n, err := result.buffer.ReadFrom(&result.source)
	switch {
	case err != nil:
		result.Err = a.causeOr(ctx, err)
	case n > limit:
		result.buffer.Truncate(int(limit))
		result.Err = ErrTooLarge
	}
	result.Reader.Reset(result.buffer.Bytes())
	resp.Body = result
	if _, err := resp.Location(); err != nil {
		resp.Header.Del("Location") // of one that cannot be read an http.Client makes an error without the response
	}
}

// An attempt is what the hooks of one attempt note. They may be called from other goroutines, and
// after it has ended.
type attempt struct {
	isWrite     bool
	phase       atomic.Int32
	connections atomic.Int32 // new ones that were used
	moved       atomic.Bool  // it was ended because it was moved from connection to connection
	reused      atomic.Bool  // the last connection was used before
	shared      atomic.Bool  // a connection of HTTP/1 was used before
	certified   atomic.Bool  // the server has asked for a certificate, in a handshake of TLS 1.3
	answered    atomic.Bool  // a response, or an interim one, began
	written     atomic.Int32 // how often a header was written, also by a RoundTripper for a request of its own
	resent      atomic.Bool  // a header was written after the body was read, and not for the first time
	early       atomic.Bool  // the response began before the header was written
	cancel      context.CancelFunc
	body        Body
	hooks       httptrace.ClientTrace
}

// reach notes a phase. What is made in the background for an attempt that was ended is none of it.
func (a *attempt) reach(phase Phase) {
	if !a.moved.Load() {
		a.phase.Store(int32(phase))
	}
}

func (a *attempt) reached() Phase { return Phase(a.phase.Load()) } // #nosec G115 -- one of the phases

func (a *attempt) misuse() Misuse { return Misuse{Shared: a.shared.Load(), Resent: a.resent.Load()} }

func (a *attempt) trace() *httptrace.ClientTrace {
	a.hooks = httptrace.ClientTrace{
		GetConn: func(string) {
			a.reach(Dial)
			if a.connections.Load() >= maxConnections {
				a.moved.Store(true)
				a.cancel()
			}
		},
		TLSHandshakeStart: func() { a.reach(TLS) },
		GotConn: func(info httptrace.GotConnInfo) {
			a.reach(Write)
			a.reused.Store(info.Reused)
			if !info.Reused {
				a.connections.Add(1)
			}
			if a.isWrite && info.Reused && !hasStreams(stateOf(info.Conn)) {
				a.shared.Store(true)
			}
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				a.reach(Wait)
			}
		},
	}
	if a.isWrite {
		a.hooks.WroteHeaders = func() {
			if a.written.Add(1) > 1 && a.body.wasRead() {
				a.resent.Store(true)
			}
		}
		a.hooks.GotFirstResponseByte = func() {
			a.answered.Store(true)
			if a.written.Load() == 0 {
				a.early.Store(true)
			}
		}
	}
	return &a.hooks
}

// ambiguous is why a response may not be the only one to the request, or not to it.
func (a *attempt) ambiguous(resp *http.Response) error {
	switch {
	case a.resent.Load():
		return errTwice
	case a.early.Load() && !hasStreams(resp.TLS):
		return errEarly
	default:
		return nil
	}
}

// hasStreams reports whether a connection has streams, which tell whose response it is. The version that a
// response names itself proves nothing: a peer of HTTP/1 can write another one.
func hasStreams(state *tls.ConnectionState) bool {
	return state != nil && state.NegotiatedProtocol != "" && state.NegotiatedProtocol != "http/1.1"
}

type attemptKey struct{}

// isHandshake reports whether an alert of the peer is its answer to the certificate that it has asked
// for, on the only connection of the attempt: the peer has not ended the handshake, and has decrypted
// nothing.
func (a *attempt) isHandshake() bool {
	return a.certified.Load() && !a.reused.Load() && a.connections.Load() == 1 && a.written.Load() <= 1 && !a.answered.Load()
}

// stateOf returns the state of TLS on a connection, or nil.
func stateOf(conn net.Conn) *tls.ConnectionState {
	encrypted, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	state := encrypted.ConnectionState()
	return &state
}

// failure returns the error of an attempt without a response. What the hooks report outweighs what
// the error looks like; some transports call no hooks.
func (a *attempt) failure(ctx context.Context, err error, unread, hasProxy bool) *Error {
	phase := a.reached()
	traced := phase != Start
	err = a.causeOr(ctx, err)
	if !traced {
		phase = phaseOf(err)
	}
	if isProxyError(err, phase) || phase == Dial && hasProxy {
		phase = Proxy
	}
	if isRefusedCertificate(err) && (a.isHandshake() || traced && !a.isWrite) {
		phase, unread = TLS, a.isWrite
	}
	return &Error{Phase: phase, Traced: traced, Unread: unread, Err: unencrypted(err), Misuse: a.misuse()}
}

// causeOr returns why the attempt was ended if we have ended it, else err.
func (a *attempt) causeOr(ctx context.Context, err error) error {
	if cause, own := context.Cause(ctx).(Timeout); own {
		return cause
	}
	if a.moved.Load() {
		return errConnections
	}
	return err
}

// errConnections ends an attempt that is moved from connection to connection.
var errConnections = errors.New("the peer closed 3 connections in a row without a response")

// A Timeout is how long an attempt may take, and the cause of the end of one that took longer.
type Timeout time.Duration

func (t Timeout) Error() string { return fmt.Sprintf("no response within %v", time.Duration(t)) }

// Timeout is true.
func (t Timeout) Timeout() bool { return true }
