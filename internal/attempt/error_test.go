package attempt_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/attempt"
)

// selfDescribed is an error that reports itself as a timeout, as temporary, or neither.
type selfDescribed struct{ timeout, temporary bool }

func (e selfDescribed) Error() string   { return "an error with a description" }
func (e selfDescribed) Timeout() bool   { return e.timeout }
func (e selfDescribed) Temporary() bool { return e.temporary }

// opError is the failure of a system call, as package net returns it.
func opError(op, call string, number syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(call, number)}
}

func TestError_Retryable(t *testing.T) {
	t.Parallel()
	headers := errors.New("net/http: server response headers exceeded 9 bytes; aborted")
	for _, tt := range []struct {
		name             string
		err              error
		phase            attempt.Phase
		traced, untraced bool // what it reports when net/http was reached, and when not
	}{
		{"no such host", &net.DNSError{IsNotFound: true}, attempt.Dial, false, false},
		{"no such host, temporarily", &net.DNSError{IsNotFound: true, IsTemporary: true}, attempt.Dial, false, false},
		{"the name server is down", &net.DNSError{IsTemporary: true}, attempt.Dial, true, true},
		{"the name server is slow", &net.DNSError{IsTimeout: true}, attempt.Dial, true, true},
		{"connection refused", opError("dial", "connect", syscall.ECONNREFUSED), attempt.Dial, true, true},
		{"no route to the host", opError("dial", "connect", syscall.EHOSTUNREACH), attempt.Dial, true, true},
		{"too many open files", opError("dial", "socket", syscall.EMFILE), attempt.Dial, true, true},
		{"reset", opError("read", "read", syscall.ECONNRESET), attempt.Wait, true, true},
		{"broken pipe", opError("write", "write", syscall.EPIPE), attempt.Write, true, true},
		{"reset in the handshake", opError("read", "read", syscall.ECONNRESET), attempt.TLS, true, true},
		{"end in the handshake", io.EOF, attempt.TLS, true, true},
		{"end", io.EOF, attempt.Wait, true, true},
		{"unexpected end", io.ErrUnexpectedEOF, attempt.Wait, true, true},
		{"closed", net.ErrClosed, attempt.Wait, true, true},
		{"a certificate", &tls.CertificateVerificationError{Err: errors.New("unknown authority")}, attempt.TLS, false, false},
		{"a timeout", selfDescribed{timeout: true}, attempt.Wait, true, true},
		{"the proxy asks for a password", errors.New("Proxy Authentication Required"), attempt.Proxy, false, false},
		{"that text in another phase", errors.New("Proxy Authentication Required"), attempt.Wait, true, false},
		{"the proxy cannot connect", errors.New("Bad Gateway"), attempt.Proxy, true, false},
		{"an error without a type", errors.New("http2: client connection lost"), attempt.Wait, true, false},
		{"a header that is too large", headers, attempt.Wait, false, false},
		{"an error of a RoundTripper", errors.New("the circuit is open"), attempt.Start, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			traced := attempt.Error{Phase: tt.phase, Traced: true, Err: tt.err}
			assert.Equal(t, tt.traced, traced.Retryable(), "net/http was reached")
			untraced := attempt.Error{Phase: tt.phase, Err: tt.err}
			assert.Equal(t, tt.untraced, untraced.Retryable(), "net/http was not reached")
		})
	}
}

func TestIsNetworkError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		err              error
		network, timeout bool
	}{
		{"a system call", syscall.ECONNRESET, true, false},
		{"a system call that took too long", syscall.ETIMEDOUT, true, true},
		{"an end", io.EOF, true, false},
		{"an unexpected end", io.ErrUnexpectedEOF, true, false},
		{"a closed connection", net.ErrClosed, true, false},
		{"a deadline", context.DeadlineExceeded, true, true},
		{"a cancellation", context.Canceled, false, false},
		{"a timeout", selfDescribed{timeout: true}, true, true},
		{"a temporary error", selfDescribed{temporary: true}, true, false},
		{"neither of the two", selfDescribed{}, false, false},
		{"an error without a type", errors.New("no"), false, false},
		{"a closed pipe", io.ErrClosedPipe, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{tt.err, fmt.Errorf("wrapped: %w", tt.err)} {
				assert.Equal(t, tt.network, attempt.IsNetworkError(err), "a network error: %v", err)
				assert.Equal(t, tt.timeout, attempt.IsTimeout(err), "a timeout: %v", err)
			}
		})
	}
}
