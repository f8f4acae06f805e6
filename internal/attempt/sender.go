// Package attempt makes one HTTP attempt.
//
// A [Sender] sends the request that it is handed, under a timeout of its own, and
// reports with an [Error] how far an attempt without a response came. A [Body] is
// the body of a write, which proves whether any of it was read for sending.
package attempt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// NewTransport returns a transport with connections of its own, which are closed
// after having been idle for so long: TLS 1.2 or later, bounded headers, and pings
// that find a dead HTTP/2 connection.
func NewTransport(idle time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        idle,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// A Sender is an [http.RoundTripper] for attempts of at most a timeout. It has no
// CloseIdleConnections, so that nobody closes connections that others may use. It
// is safe for concurrent use if its transport is.
type Sender struct {
	next    http.RoundTripper
	timeout time.Duration
	expired error // the cause of the end of an attempt that took too long
}

// NewSender returns a sender over next.
func NewSender(next http.RoundTripper, timeout time.Duration) *Sender {
	return &Sender{next, timeout, &timeoutError{timeout}}
}

var errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")

// RoundTrip sends req. The attempt, and with it the timeout, ends when the body of
// the response is closed. An error is an [*Error].
func (s *Sender) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	ctx, cancel := context.WithTimeoutCause(req.Context(), s.timeout, s.expired)
	defer func() {
		if resp == nil {
			cancel()
		}
	}()
	a := &attempt{ctx: ctx, cancel: cancel}
	received, err := s.next.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, a.trace())))
	switch {
	case err != nil:
		discard(received)
		return nil, a.failure(err)
	case received == nil:
		return nil, a.failure(errNoResponse)
	}
	if received.Body == nil {
		received.Body = http.NoBody
	}
	a.ReadCloser = received.Body
	received.Body = a
	dropInvalidLocation(received)
	return received, nil
}

// discard closes a response that came together with an error.
func discard(resp *http.Response) {
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
}

// dropInvalidLocation keeps net/http from replacing a redirect that it cannot parse
// by an error without a status.
func dropInvalidLocation(resp *http.Response) {
	if resp.StatusCode/100 != 3 {
		return
	}
	if _, err := resp.Location(); err != nil {
		resp.Header.Del("Location")
	}
}

// An attempt is one request in flight, and then the body of its response. Its hooks
// may be called from other goroutines, and after the attempt has ended.
type attempt struct {
	ctx    context.Context
	cancel context.CancelFunc
	phase  atomic.Int32
	hooks  httptrace.ClientTrace

	io.ReadCloser // the body
}

// Read implements [io.Reader]. The error of a read that the attempt's timeout ended
// is that timeout.
func (a *attempt) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = a.timeoutOr(err)
	}
	return n, err
}

// Close closes the body and ends the attempt.
func (a *attempt) Close() error {
	defer a.cancel()
	return a.ReadCloser.Close()
}

func (a *attempt) reach(phase Phase) { a.phase.Store(int32(phase)) }

func (a *attempt) trace() *httptrace.ClientTrace {
	a.hooks = httptrace.ClientTrace{
		GetConn:           func(string) { a.reach(Dial) },
		TLSHandshakeStart: func() { a.reach(TLS) },
		GotConn:           func(httptrace.GotConnInfo) { a.reach(Write) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				a.reach(Wait)
			}
		},
	}
	return &a.hooks
}

// failure is the error of an attempt that has come so far. What the hooks report
// outweighs what an error looks like; some transports call no hooks.
func (a *attempt) failure(err error) *Error {
	phase := Phase(a.phase.Load()) // #nosec G115 -- one of the phases
	traced := phase != Start
	if !traced {
		phase = phaseOf(err)
	}
	if isProxyError(err, phase) {
		phase = Proxy
	}
	return &Error{phase, traced, a.timeoutOr(err)}
}

// timeoutOr returns the timeout of the attempt if that has ended it, else err.
func (a *attempt) timeoutOr(err error) error {
	var timeout *timeoutError
	if errors.As(context.Cause(a.ctx), &timeout) {
		return timeout
	}
	return err
}

// A timeoutError is the cause of the end of an attempt that took too long.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("no response within %v", e.after) }

// Timeout is true.
func (e *timeoutError) Timeout() bool { return true }
