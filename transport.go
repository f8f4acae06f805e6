package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// A carrier sends attempts of at most timeout.
type carrier struct {
	next    http.RoundTripper
	timeout time.Duration
	expired error // the cause of the end of an attempt that took too long
}

// newCarrier returns a carrier that shares nothing with base but the transport.
func newCarrier(base *http.Client, timeout, idle time.Duration) *carrier {
	c := &carrier{timeout: timeout, expired: &attemptTimeout{timeout}}
	if base != nil {
		c.next = base.Transport
	}
	if c.next == nil {
		c.next = newTransport(idle)
	}
	return c
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

const (
	readIdle = 90 * time.Second

	// writeIdle keeps an invoice off a connection that the server is about to
	// close: that race can not be told from a lost invoice.
	writeIdle = 2 * time.Second
)

// newTransport returns the default transport, with connections of its own.
func newTransport(idle time.Duration) *http.Transport {
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

// RoundTrip sends one attempt: under its own timeout, and watched. The exchange
// is its own transport, and what it is handed is only the errand: the request is
// made here. So net/http has no header to copy for redirects and no body to send
// again, and the retry library finds no idle connections to close, which others
// may use too.
func (x *exchange) RoundTrip(*http.Request) (resp *http.Response, err error) {
	a := x.newAttempt()
	ctx, cancel := context.WithDeadlineCause(&x.ctx, x.begun.Add(x.carrier.timeout), x.carrier.expired)
	defer func() {
		if resp == nil {
			cancel()
		}
	}()
	answer, err := x.carrier.next.RoundTrip(x.newAttemptRequest(httptrace.WithClientTrace(ctx, a.watch())))
	switch {
	case err != nil:
		discard(answer)
		return nil, a.failure(ctx, err)
	case answer == nil:
		return nil, a.failure(ctx, errNoAnswer)
	}
	if answer.Body == nil {
		answer.Body = http.NoBody
	}
	a.body = attemptBody{answer.Body, ctx, cancel}
	answer.Body = &a.body
	dropBadLocation(answer)
	return answer, nil
}

// newAttempt returns the attempt that begins. The first, which mostly is the
// only one, is a part of the exchange.
func (x *exchange) newAttempt() *attempt {
	if x.attempts > 0 {
		return &attempt{}
	}
	return &x.first
}

var errNoAnswer = errors.New("the RoundTripper returned neither an answer nor an error")

// discard closes an answer that came together with an error.
func discard(answer *http.Response) {
	if answer != nil && answer.Body != nil {
		_ = answer.Body.Close()
	}
}

// dropBadLocation keeps net/http from turning a redirect that it can not parse
// into an error without a status.
func dropBadLocation(answer *http.Response) {
	if answer.StatusCode/100 != 3 {
		return
	}
	if _, err := answer.Location(); err != nil {
		answer.Header.Del("Location")
	}
}

// An attemptTimeout is the cause of an attempt that took too long.
type attemptTimeout struct{ after time.Duration }

func (e *attemptTimeout) Error() string { return fmt.Sprintf("no answer within %v", e.after) }

// Timeout is true.
func (e *attemptTimeout) Timeout() bool { return true }

// An attemptError is an attempt that got no answer, and how far it came.
type attemptError struct {
	phase  string
	traced bool // net/http was reached
	err    error
}

func (e *attemptError) Error() string { return e.err.Error() }
func (e *attemptError) Unwrap() error { return e.err }

// An attemptBody ends the attempt's context when it is closed.
type attemptBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc
}

// Read says of a read that ended with the attempt that it timed out.
func (b *attemptBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = timeoutOr(b.ctx, err)
	}
	return n, err
}

// Close closes the body.
func (b *attemptBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// timeoutOr returns the timeout of the attempt if that is what ended it, else
// err.
func timeoutOr(ctx context.Context, err error) error {
	var timeout *attemptTimeout
	if errors.As(context.Cause(ctx), &timeout) {
		return timeout
	}
	return err
}

// An attempt is one request on its way, and how far it comes. Its hooks may be
// called from other goroutines, and after the attempt is over.
type attempt struct {
	step  atomic.Int32 // an index into steps
	trace httptrace.ClientTrace
	body  attemptBody
}

// steps are how far an attempt has come; the first is before net/http was
// reached.
var steps = [...]string{PhaseStart, PhaseDial, PhaseTLS, PhaseWrite, PhaseWait}

const (
	stepDial int32 = iota + 1
	stepTLS
	stepWrite
	stepWait
)

func (a *attempt) watch() *httptrace.ClientTrace {
	a.trace = httptrace.ClientTrace{
		GetConn:           func(string) { a.step.Store(stepDial) },
		TLSHandshakeStart: func() { a.step.Store(stepTLS) },
		GotConn:           func(httptrace.GotConnInfo) { a.step.Store(stepWrite) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				a.step.Store(stepWait)
			}
		},
	}
	return &a.trace
}

// failure says how far the attempt came. What a transport reported beats what
// an error looks like; some report nothing.
func (a *attempt) failure(ctx context.Context, err error) *attemptError {
	step := a.step.Load()
	phase, traced := steps[step], step > 0
	if !traced {
		phase = phaseOf(err)
	}
	if isProxy(err, phase) {
		phase = PhaseProxy
	}
	return &attemptError{phase, traced, timeoutOr(ctx, err)}
}

func isProxy(err error, phase string) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		return true
	}
	return phase == PhaseDial && connectStatus(err) != 0
}

// phaseOf guesses the phase of an error from a transport that reports none.
func phaseOf(err error) string {
	var lookup *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &lookup):
		return PhaseDial
	case errors.As(err, &op) && (op.Op == "dial" || op.Op == "write"):
		return op.Op
	case ioFault(err):
		return PhaseWait
	default:
		return PhaseStart
	}
}

// plainError returns err without what net/http wraps around it: the URL, and
// our own note of the phase.
func plainError(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var attempt *attemptError
	if errors.As(err, &attempt) {
		err = attempt.err
	}
	var record tls.RecordHeaderError
	if errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/" {
		err = http.ErrSchemeMismatch
	}
	return err
}

// withoutPassword removes what could be a password in a URL from a text: what
// stands before the @ of each, and all of a proxy's address that is so wrong
// that net/http quotes it. In a text that was cut the @ may be missing.
func withoutPassword(text string, cut bool) string {
	const badProxy = "invalid proxy address"
	if before, _, found := strings.Cut(text, badProxy); found {
		text = before + badProxy
	}
	var clean strings.Builder
	for {
		before, after, found := strings.Cut(text, "://")
		clean.WriteString(before)
		if !found {
			return clean.String()
		}
		clean.WriteString("://")
		end := strings.IndexAny(after, "/ \"'")
		if end < 0 && cut {
			return clean.String() + redacted
		}
		if end < 0 {
			end = len(after)
		}
		if at := strings.LastIndex(after[:end], "@"); at >= 0 {
			clean.WriteString(redacted)
			after = after[at:]
		}
		text = after
	}
}
