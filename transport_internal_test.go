package gateway

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Connections of the client's own are made with care.
func TestNewTransport(t *testing.T) {
	t.Parallel()
	c, err := New("https://gateway.test", "")
	require.NoError(t, err)
	reads, writes := c.reads().next.(*http.Transport), c.writes().next.(*http.Transport)
	assert.NotSame(t, reads, writes, "invoices have a pool of their own")
	assert.LessOrEqual(t, writes.IdleConnTimeout, 2*time.Second, "an invoice is not put on an old connection")
	for _, transport := range []*http.Transport{reads, writes} {
		assert.NotSame(t, http.DefaultTransport, transport)
		assert.EqualValues(t, tls.VersionTLS12, transport.TLSClientConfig.MinVersion)
		assert.False(t, transport.TLSClientConfig.InsecureSkipVerify)
		assert.Equal(t, 64, transport.MaxIdleConnsPerHost)
		assert.Positive(t, transport.MaxResponseHeaderBytes)
		assert.Positive(t, transport.TLSHandshakeTimeout)
		assert.Positive(t, transport.IdleConnTimeout)
		assert.Positive(t, transport.HTTP2.SendPingTimeout, "a dead HTTP/2 connection is found out")
		assert.Positive(t, transport.HTTP2.PingTimeout)
		assert.True(t, transport.ForceAttemptHTTP2)
	}
}

// The caller's client is neither changed nor used beyond its transport.
func TestNewCarrier_OfTheCaller(t *testing.T) {
	t.Parallel()
	transport := &http.Transport{}
	theirs := &http.Client{Transport: transport, Jar: panicJar{}, Timeout: time.Second}
	before := *theirs
	ours := newCarrier(theirs, time.Minute, time.Second)
	assert.Equal(t, before.Timeout, theirs.Timeout)
	assert.Nil(t, theirs.CheckRedirect)
	assert.Same(t, transport, ours.next)

	c, err := New("https://gateway.test", "", WithHTTPClient(theirs))
	require.NoError(t, err)
	x := &exchange{client: c}
	x.makeLoop()
	assert.Nil(t, x.http.Jar)
	assert.Zero(t, x.http.Timeout, "the timeout of an attempt is its own")
	assert.Equal(t, http.ErrUseLastResponse, x.http.CheckRedirect(nil, nil))
	_, closes := x.http.Transport.(interface{ CloseIdleConnections() })
	assert.False(t, closes, "the retry library must not be able to close the caller's connections")
}

type panicJar struct{ http.CookieJar }

// Which faults may pass, whether net/http was reached or not.
func TestPassingFault(t *testing.T) {
	t.Parallel()
	op := func(call string, number syscall.Errno) error {
		return &net.OpError{Op: call, Net: "tcp", Err: os.NewSyscallError(call, number)}
	}
	for _, tt := range []struct {
		name             string
		err              error
		phase            string
		traced, untraced bool // whether it passes
	}{
		{"no such host", &net.DNSError{IsNotFound: true}, PhaseDial, false, false},
		{"no such host, for now", &net.DNSError{IsNotFound: true, IsTemporary: true}, PhaseDial, false, false},
		{"the name server is down", &net.DNSError{IsTemporary: true}, PhaseDial, true, true},
		{"the name server is slow", &net.DNSError{IsTimeout: true}, PhaseDial, true, true},
		{"connection refused", op("connect", syscall.ECONNREFUSED), PhaseDial, true, true},
		{"no route to the host", op("connect", syscall.EHOSTUNREACH), PhaseDial, true, true},
		{"reset", op("read", syscall.ECONNRESET), PhaseWait, true, true},
		{"broken pipe", op("write", syscall.EPIPE), PhaseWrite, true, true},
		{"reset in the handshake", op("read", syscall.ECONNRESET), PhaseTLS, true, true},
		{"end in the handshake", io.EOF, PhaseTLS, true, true},
		{"end", io.EOF, PhaseWait, true, true},
		{"end too soon", io.ErrUnexpectedEOF, PhaseWait, true, true},
		{"closed", net.ErrClosed, PhaseWait, true, true},
		{"a certificate", &tls.CertificateVerificationError{Err: errors.New("unknown authority")}, PhaseTLS, false, false},
		{"a timeout", &attemptTimeout{time.Second}, PhaseWait, true, true},
		{"the proxy wants a password", errors.New("Proxy Authentication Required"), PhaseProxy, false, false},
		{"the proxy can not connect", errors.New("Bad Gateway"), PhaseProxy, true, false},
		{"a fault without a type", errors.New("http2: client connection lost"), PhaseWait, true, false},
		{"a header that is too large", errors.New("net/http: server response headers exceeded 9 bytes; aborted"), PhaseWait, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.traced, passingFault(tt.err, tt.phase, true), "net/http was reached")
			assert.Equal(t, tt.untraced, passingFault(tt.err, tt.phase, false), "it was not")
		})
	}
}

// No password of a proxy's URL is in the text of an error.
func TestWithoutPassword(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "",
		"no URL":                               "no URL",
		"http://host/path":                     "http://host/path",
		"http://host/a@b":                      "http://host/a@b",
		"http://u:p@host/path":                 "http://[REDACTED]@host/path",
		"http://u:p@ss@host/path":              "http://[REDACTED]@host/path",
		`dial "http://u:p@host": no`:           `dial "http://[REDACTED]@host": no`,
		"http://u:p@a and socks5://v:q@b both": "http://[REDACTED]@a and socks5://[REDACTED]@b both",
		"proxyconnect tcp: http://u:p@proxy.test:3128/x": "proxyconnect tcp: http://[REDACTED]@proxy.test:3128/x",
	} {
		assert.Equal(t, want, withoutPassword(text, false))
	}
}

// An error whose text is cleaned still matches what it matched.
func TestForeign(t *testing.T) {
	t.Parallel()
	key := newRedactor(newSecret("CANARY-KEY-12345"))
	dirty := errors.Join(errors.New("with CANARY-KEY-12345"), context.Canceled)
	clean := foreign(dirty, key)
	assert.NotContains(t, clean.Error(), "CANARY")
	assert.ErrorIs(t, clean, context.Canceled)
	assert.NotErrorIs(t, clean, context.DeadlineExceeded)
	assert.Nil(t, errors.Unwrap(clean), "the text is not to be found one step further")
	assert.EqualError(t, foreign(errors.New("dial http://u:p@proxy.test: no"), key), "dial http://[REDACTED]@proxy.test: no")
	assert.ErrorIs(t, foreign(io.EOF, key), io.EOF)
	var op *net.OpError
	assert.ErrorAs(t, foreign(&net.OpError{Op: "dial", Err: io.EOF}, key), &op)
	assert.NotErrorIs(t, foreign(fmt.Errorf("of another: %w", ErrNotSent), key), ErrNotSent)
	var refusal *APIError
	assert.False(t, errors.As(foreign(&APIError{StatusCode: 400}, key), &refusal), "an answer to another call")
	assert.LessOrEqual(t, len(foreign(errors.New(strings.Repeat("://", 1<<20)), key).Error()), 1<<10)
	text, err := json.Marshal(foreign(io.EOF, key))
	assert.NoError(t, err)
	assert.Equal(t, `"EOF"`, string(text))
}

// A text of just the length that is kept was not cut: its last URL is whole,
// and no password was cut off from it.
func TestForeign_aTextThatJustFits(t *testing.T) {
	t.Parallel()
	const end = " https://gateway.example"
	whole := strings.Repeat("p", maxForeignText-len(end)) + end

	assert.Equal(t, whole, foreign(errors.New(whole), redactor{}).Error())
	assert.True(t, strings.HasSuffix(foreign(errors.New("p"+whole), redactor{}).Error(), " https://"+redacted))
}

// What has read much has large buffers, and serves no other call.
func TestExchange_giveBack(t *testing.T) {
	t.Parallel()
	c, err := New("https://gateway.test", "")
	require.NoError(t, err)
	for read, again := range map[int64]bool{0: true, largestReading: true, largestReading + 1: false} {
		x := &exchange{client: c, reading: &reading{body: body{read: read}}}
		x.giveBack()
		assert.Equal(t, again, x.reading == nil, "after %d bytes", read)
	}
}
