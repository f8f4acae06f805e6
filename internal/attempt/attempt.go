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
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
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
	Pools          *Pools            // nil if Next has connections of its own
	Next           http.RoundTripper // sends the requests; nil for Pools
	ReadTimeout    Timeout
	InvoiceTimeout Timeout
	MaxBody        int64                 // of a response below 400
	MaxErrorBody   int64                 // of any other response; the rest is not read
	IsTransient    func(status int) bool // the status alone decides that a read is made again

	buffers sync.Pool // of bytes.Buffers
}

// A Result is the body of a response, in memory, with facts about its attempt.
type Result struct {
	bytes.Reader
	source io.LimitedReader
	buffer *bytes.Buffer
	pool   *sync.Pool

	Err       error // why the body is not whole
	Unread    bool  // nothing of the request's body was read
	Ambiguous error // why it may not be the response to the request; nil for no reason
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
	// ErrTooLarge is the error of a body that exceeds the limit.
	ErrTooLarge = errors.New("the body is too large")
	// ErrExpired is why a write was not begun: its time has passed.
	ErrExpired = errors.New("the lease of the order has expired")

	errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")
	errFollowed   = errors.New("a middleware or transport has followed a redirect: this may answer something else")
	errEarly      = errors.New("the response began before the invoice was sent: it may answer something else")
)

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	template, isWrite := req.Body.(*Template)
	timeout, caller := t.ReadTimeout, req.Context()
	ctx := caller
	if isWrite {
		timeout = t.InvoiceTimeout
		if err := template.tooLate(caller); err != nil {
			return nil, &Error{Phase: Start, Unread: true, Err: err}
		}
		ctx = detached{caller}
	}
	a := &attempt{isWrite: isWrite, host: req.URL.Host, path: req.URL.Path}
	a.first.attempt, a.first.isInvoice = a, isWrite
	ctx, a.cancel = context.WithTimeoutCause(ctx, time.Duration(timeout), timeout)
	defer a.cancel()
	switch {
	case t.Next == nil:
		ctx = a.first.traced(ctx)
		defer a.first.end()
	case t.Pools == nil:
		ctx = a.first.watched(ctx)
	default: // a middleware, whose exchanges Pools.RoundTrip traces
		ctx = context.WithValue(ctx, attemptKey{}, a)
	}
	req = req.WithContext(ctx)
	if isWrite {
		a.body.load(template, caller)
		req.Body = &a.body
		defer func() {
			a.body.Stop()
			template.IsRead = !a.body.Seal()
		}()
		defer context.AfterFunc(caller, func() { a.callerEnded(ctx, caller) })()
	}
	resp, err := t.send(a, req)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	unread := isWrite && a.body.Seal() // what was not read by now is never sent
	if err != nil {
		return nil, a.failure(ctx, err, unread)
	}
	result := &Result{Unread: unread, Ambiguous: a.ambiguity(resp)}
	t.read(ctx, a, resp, result)
	if e := a.last.Load(); e != nil {
		e.answered(ctx, result.Err)
	}
	return resp, nil
}

// send sends the request on the first exchange, or has Next send it.
func (t *Transport) send(a *attempt, req *http.Request) (*http.Response, error) {
	if t.Next == nil {
		return a.first.send(t.Pools, req)
	}
	return t.Next.RoundTrip(req)
}

// read reads the body of a response into memory, and puts the result in its place.
func (t *Transport) read(ctx context.Context, a *attempt, resp *http.Response, result *Result) {
	body := resp.Body
	if body == nil {
		body = http.NoBody
	}
	defer func() { _ = body.Close() }()
	if !a.isWrite && t.IsTransient(resp.StatusCode) {
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
		resp.Header.Del("Location") // otherwise an http.Client drops the response and returns an error
	}
}

// An attempt is the state of one attempt. Other goroutines may call its hooks, even after it has ended.
type attempt struct {
	isWrite bool
	host    string // of the gateway
	path    string
	phase   atomic.Int32
	moved   atomic.Bool              // it was ended because it was moved from connection to connection
	early   atomic.Bool              // the response began before the header of the write was written
	sent    atomic.Bool              // a middleware has sent the write, and may not send it again
	twice   atomic.Bool              // a transport may have sent the write twice
	ended   atomic.Pointer[error]    // why it was ended with the caller's context; nil if it was not
	last    atomic.Pointer[exchange] // whose response may be read
	cancel  context.CancelFunc
	body    Body
	first   exchange // the only one of an attempt without a middleware
}

type attemptKey struct{}

// reach notes a phase. It ignores a connection that is made in the background after the attempt has ended.
func (a *attempt) reach(phase Phase) {
	if !a.moved.Load() {
		a.phase.Store(int32(phase))
	}
}

func (a *attempt) reached() Phase { return Phase(a.phase.Load()) } // #nosec G115 -- one of the phases

// isCancelled reports whether the attempt was ended by cancelling, and by no time.
func (a *attempt) isCancelled(ctx context.Context) bool {
	if why := a.ended.Load(); why != nil {
		return !IsTimeout(*why)
	}
	return errors.Is(ctx.Err(), context.Canceled)
}

// ambiguity returns why a response may not answer the write; nil for no reason.
//
// A 401 or 407 of the last exchange resets sent. If sent is set beside such a status, another exchange got that, or
// the middleware made it up: it says nothing about the last one.
func (a *attempt) ambiguity(resp *http.Response) error {
	switch {
	case a.early.Load():
		return errEarly
	case a.twice.Load() || a.sent.Load() && asksForToken(resp.StatusCode):
		return errSentTwice
	case a.isWrite && resp.Request != nil && resp.Request.Response != nil: // an http.Client notes a redirect there
		return errFollowed
	default:
		return nil
	}
}

// failure returns the error of an attempt without a response.
//
// Only the latch proves that a write was not sent. GOAWAY and REFUSED_STREAM of HTTP/2 do not, although RFC 9113,
// section 8.7, says that such a stream was not processed. HAProxy sends REFUSED_STREAM when the server behind it
// closes its connection without a response, also after that server has processed the request. While a GOAWAY waits to
// be sent, the nghttp2 of Node still processes streams that the GOAWAY excludes.
func (a *attempt) failure(ctx context.Context, err error, unread bool) *Error {
	return &Error{Phase: a.reached(), Unread: unread, Err: unencrypted(a.causeOr(ctx, err))}
}

// causeOr returns why this package has ended the attempt, or err if it has not.
func (a *attempt) causeOr(ctx context.Context, err error) error {
	if timeout, isTimeout := context.Cause(ctx).(Timeout); isTimeout {
		return timeout
	}
	if why := a.ended.Load(); why != nil {
		return *why
	}
	if a.moved.Load() {
		return errConnections
	}
	return err
}

// errSentTwice is the error of a second exchange for one write, and why the outcome of two is unknown.
var errSentTwice = errors.New("a middleware or transport has sent the invoice before: it may exist already")

// errConnections ends an attempt that is moved from connection to connection.
var errConnections = errors.New("the peer closed 3 connections in a row without a response")

// A Timeout is how long an attempt may take, and the error of an attempt that took longer.
type Timeout time.Duration

func (t Timeout) Error() string { return fmt.Sprintf("no response within %v", time.Duration(t)) }

// Timeout is true.
func (t Timeout) Timeout() bool { return true }

// Is reports whether target is [context.DeadlineExceeded].
func (t Timeout) Is(target error) bool { return target == context.DeadlineExceeded }
