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

// newHTTPClient returns the client that sends attempts of at most timeout. It
// shares nothing with base but the transport.
func newHTTPClient(base *http.Client, timeout, idle time.Duration) *http.Client {
	var next http.RoundTripper
	if base != nil {
		next = base.Transport
	}
	if next == nil {
		next = newTransport(idle)
	}
	return &http.Client{
		Transport:     &attemptTripper{next: next, timeout: timeout},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

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

// attemptTripper sends one attempt at a time: under its own timeout, watched, and
// with no way for the retry library to close the idle connections of a
// transport that others may use too.
type attemptTripper struct {
	next    http.RoundTripper
	timeout time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (t *attemptTripper) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	seen := &progress{}
	ctx, cancel := context.WithTimeoutCause(req.Context(), t.timeout, &attemptTimeout{t.timeout})
	defer func() {
		if resp == nil {
			cancel()
		}
	}()
	answer, err := t.next.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, seen.trace())))
	switch {
	case err != nil:
		discard(answer)
		return nil, seen.failure(ctx, err)
	case answer == nil:
		return nil, seen.failure(ctx, errNoAnswer)
	}
	if answer.Body == nil {
		answer.Body = http.NoBody
	}
	answer.Body = &attemptBody{answer.Body, ctx, cancel}
	dropBadLocation(answer)
	return answer, nil
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

// A progress watches how far an attempt comes. Its hooks may be called from
// other goroutines, and after the attempt is over.
type progress struct {
	phase atomic.Value
}

func (p *progress) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn:           func(string) { p.phase.Store(PhaseDial) },
		TLSHandshakeStart: func() { p.phase.Store(PhaseTLS) },
		GotConn:           func(httptrace.GotConnInfo) { p.phase.Store(PhaseWrite) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				p.phase.Store(PhaseWait)
			}
		},
	}
}

// failure says how far the attempt came. What a transport reported beats what
// an error looks like; some report nothing.
func (p *progress) failure(ctx context.Context, err error) *attemptError {
	phase, traced := p.phase.Load().(string)
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
