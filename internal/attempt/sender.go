// Package attempt makes one HTTP attempt.
//
// A [Sender] sends a request under a timeout of its own and on a bounded number of
// connections, and reports with an [Error] how far an attempt without a response came.
// [Read] reads a [Response]. Both return soon after the attempt has ended, whatever the peer,
// a RoundTripper or the context does; what is inside an [http.Transport], such as its
// dialer, must itself honor the end. A [Body] is the body of a write, which proves whether
// any of it was read for sending.
package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/cryptogw/gateway/internal/caller"
)

// maxConnections is how many new connections an attempt may use. net/http moves a
// request to another one as often as the peer asks for it. It may be opening one more
// when the attempt ends.
const maxConnections = 3

// A Sender limits each attempt to a timeout. It is safe for concurrent use if its transport
// is.
type Sender struct {
	next          http.RoundTripper
	honorsContext bool // next returns soon after the end of a context
	closes        bool // a connection may be closed
	timeout       time.Duration
	expired       error        // the cause of the end of an attempt that took too long
	timed         reflect.Type // of a context of context.WithTimeout
}

// NewSender returns a sender over next, which need not honor the end of a context: it runs
// in a goroutine that can be left. An [http.Transport] and a [Dedicated] are relied on to honor
// it, and need none.
func NewSender(next http.RoundTripper, timeout time.Duration) *Sender {
	s := &Sender{next: next, timeout: timeout, expired: &timeoutError{timeout}, timed: timedContext()}
	switch next.(type) {
	case *http.Transport, *Dedicated:
		s.honorsContext = true
	}
	return s
}

// NewReadSender returns a sender of requests that can be repeated, over a transport of
// [NewTransport] that nothing else uses: where reading a response does not end with its
// attempt, the connection is closed, and with it every other request on it.
func NewReadSender(t *http.Transport, timeout time.Duration) *Sender {
	s := NewSender(t, timeout)
	s.closes = true
	return s
}

var errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")

// Send sends a request like req, with this header, and with this body unless it is nil. The
// attempt, and with it the timeout, ends when the body of the response is closed or [Read]
// returns. An error is an [*Error].
func (s *Sender) Send(req *http.Request, header http.Header, body *Body) (*Response, error) {
	a, sent := s.begin(req.Context()), false
	defer func() {
		if !sent { // also when the transport panics
			a.end(nil)
		}
	}()
	req = req.WithContext(a.traced())
	req.Header = header
	if body != nil {
		req.Body, req.ContentLength, a.latch = body, body.Size(), body
	}
	var resp *http.Response
	var err error
	if s.honorsContext {
		resp, err = s.next.RoundTrip(req)
	} else {
		resp, err = a.roundTrip(req)
	}
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err != nil {
		discard(resp)
		return nil, a.failure(caller.Examined(err))
	}
	a.body = resp.Body
	if a.body == nil {
		a.body = http.NoBody
	}
	resp.Body = a
	a.response, sent = Response{resp, a}, true
	return &a.response, nil
}

// roundTrip returns when the transport does, or soon after the attempt has ended.
func (a *attempt) roundTrip(req *http.Request) (*http.Response, error) {
	trip := &roundTrip{next: a.sender.next, req: req}
	if !a.await(trip) {
		return nil, a.cause()
	}
	return trip.resp, trip.err
}

// A roundTrip sends a request.
type roundTrip struct {
	next http.RoundTripper
	req  *http.Request
	resp *http.Response
	err  error
}

// Run implements [caller.Job].
func (t *roundTrip) Run() {
	t.resp, t.err = t.next.RoundTrip(t.req)
	if t.err != nil {
		discard(t.resp) // here, because closing it may take long
		t.resp = nil
	}
}

// Drop implements [caller.Job].
func (t *roundTrip) Drop() { discard(t.resp) }

// discard closes a response that nobody reads.
func discard(resp *http.Response) {
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
}

// An attempt is the context of one request in flight, and then the body of its
// response. Its hooks may be called from other goroutines, and after it has ended.
type attempt struct {
	context.Context
	cancel   context.CancelCauseFunc
	timer    *time.Timer // nil while the end of the parent is early enough
	deadline time.Time
	sender   *Sender
	awaited  bool           // Read ends the attempt, and not Close
	worker   *caller.Worker // nil until there is a job for it

	phase       atomic.Int32
	connections atomic.Int32                // new ones that were used
	conn        net.Conn                    // the last one, if it may be closed
	latch       *Body                       // of the request; nil for none
	watched     atomic.Pointer[watchedConn] // the last one, if it is watched
	hooks       httptrace.ClientTrace

	body     io.ReadCloser
	response Response
}

// begin begins an attempt.
func (s *Sender) begin(parent context.Context) *attempt {
	now := time.Now()
	a := &attempt{sender: s, deadline: now.Add(s.timeout)}
	deadline, ok := parent.Deadline()
	first := ok && deadline.After(now) && !deadline.After(a.deadline)
	if first {
		a.deadline = deadline
	}
	a.Context, a.cancel = context.WithCancelCause(parent)
	if !first || !s.endsBy(parent, deadline) {
		a.endAfter(s.timeout)
	}
	return a
}

// endAfter ends the attempt after d, and not when it would have ended.
func (a *attempt) endAfter(d time.Duration) {
	if a.timer == nil {
		a.timer = time.AfterFunc(d, func() { a.cancel(a.sender.expired) })
		return
	}
	a.timer.Reset(d)
}

// end ends the attempt, for a cause unless that is nil.
func (a *attempt) end(cause error) {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.cancel(cause)
}

// Deadline returns the end of the attempt, or that of the parent if it is not later and has
// not passed: a parent that has not ended by then may never do.
func (a *attempt) Deadline() (time.Time, bool) { return a.deadline, true }

// Read implements [io.Reader]. The error of a read that the attempt's end has ended is
// the cause of that. Where nobody can leave a read, it reads nothing after the end: what
// net/http has buffered by then can be large when it is decompressed.
func (a *attempt) Read(p []byte) (int, error) {
	if a.conn != nil && a.Err() != nil {
		return 0, a.cause()
	}
	n, err := a.body.Read(p)
	if err != nil && err != io.EOF {
		err = a.causeOr(caller.Examined(err))
	}
	return n, err
}

// Close closes the body and ends the attempt.
func (a *attempt) Close() error {
	if !a.awaited {
		defer a.end(nil)
	}
	return a.body.Close()
}

func (a *attempt) reach(phase Phase) { a.phase.Store(int32(phase)) }

// attemptKey is the key of an attempt in the context of its request.
type attemptKey struct{}

// Value implements [context.Context].
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// traced is the context of the request.
func (a *attempt) traced() context.Context { return httptrace.WithClientTrace(a, a.trace()) }

func (a *attempt) trace() *httptrace.ClientTrace {
	a.hooks = httptrace.ClientTrace{
		GetConn: func(string) {
			a.reach(Dial)
			if a.connections.Load() >= maxConnections {
				a.cancel(errConnections)
			}
		},
		TLSHandshakeStart: func() { a.reach(TLS) },
		GotConn: func(info httptrace.GotConnInfo) {
			a.reach(Write)
			if !info.Reused {
				a.connections.Add(1)
			}
			a.look(info.Conn)
			if a.sender.closes { // net/http calls this before its RoundTrip returns
				a.conn = info.Conn
			}
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				a.reach(Wait)
			}
		},
	}
	return &a.hooks
}

// look ends an attempt before its request is sent on a connection of HTTP/1 on which something
// has come that nobody has read.
func (a *attempt) look(conn net.Conn) {
	watched := watchedOf(conn)
	if watched == nil {
		return
	}
	a.watched.Store(watched)
	settled := watched.settle()
	switch {
	case watched.isMultiplexed(conn): // the reader has had what came before, and a stream tells whose response it is
	case settled:
		watched.arm()
	default:
		if a.latch != nil {
			a.latch.Seal()
		}
		a.cancel(errEarly)
	}
}

// failure is the error of an attempt that has come so far. What the hooks report
// outweighs what an error looks like; some transports call no hooks.
func (a *attempt) failure(err error) *Error {
	phase := Phase(a.phase.Load()) // #nosec G115 -- one of the phases
	traced := phase != Start
	if !traced {
		phase = phaseOf(a.causeOr(err))
	}
	if isProxyError(err, phase) {
		phase = Proxy
	}
	return &Error{phase, traced, unencrypted(a.causeOr(err))}
}

// causeOr returns why the attempt was ended if we have ended it, else err.
func (a *attempt) causeOr(err error) error {
	if cause := context.Cause(a); errors.Is(cause, errConnections) || errors.Is(cause, errEarly) || isOwnTimeout(cause) {
		return cause
	}
	return err
}

// cause returns why the attempt has ended.
func (a *attempt) cause() error { return a.causeOr(a.Err()) }

// errConnections ends an attempt that is moved from connection to connection.
var errConnections = errors.New("the peer closed 3 connections in a row without a response")

// A timeoutError is the cause of the end of an attempt that took too long.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("no response within %v", e.after) }

// Timeout is true.
func (e *timeoutError) Timeout() bool { return true }

func isOwnTimeout(err error) bool {
	_, own := errors.AsType[*timeoutError](err)
	return own
}
