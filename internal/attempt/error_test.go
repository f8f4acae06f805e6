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

// How errors are classified: as the failure of a network, as a timeout, and as retryable, with net/http reached or not.
func TestError_Retryable(t *testing.T) {
	t.Parallel()
	const yes, no = true, false
	for _, tt := range []struct {
		name                               string
		err                                error
		phase                              attempt.Phase
		network, timeout, traced, untraced bool
	}{
		{"no such host, temporarily or not", &net.DNSError{IsNotFound: true, IsTemporary: true}, attempt.Dial, yes, no, no, no},
		{"the name server is down", &net.DNSError{IsTemporary: true}, attempt.Dial, yes, no, yes, yes},
		{"the name server is slow", &net.DNSError{IsTimeout: true}, attempt.Dial, yes, yes, yes, yes},
		{"a lookup that fails otherwise", &net.DNSError{}, attempt.Dial, no, no, yes, yes},
		{"a system call", opError("dial", "connect", syscall.ECONNREFUSED), attempt.Dial, yes, no, yes, yes},
		{"a system call that took too long", syscall.ETIMEDOUT, attempt.Dial, yes, yes, yes, yes},
		{"reset in the handshake", opError("read", "read", syscall.ECONNRESET), attempt.TLS, yes, no, yes, yes},
		{"an end in the handshake", io.EOF, attempt.TLS, yes, no, yes, yes},
		{"an end", io.EOF, attempt.Wait, yes, no, yes, yes},
		{"an unexpected end", io.ErrUnexpectedEOF, attempt.Wait, yes, no, yes, yes},
		{"a closed connection", net.ErrClosed, attempt.Wait, yes, no, yes, yes},
		{"a deadline", context.DeadlineExceeded, attempt.Wait, yes, yes, yes, yes},
		{"a timeout", selfDescribed{timeout: true}, attempt.Wait, yes, yes, yes, yes},
		{"a temporary error", selfDescribed{temporary: true}, attempt.Wait, yes, no, yes, yes},
		{"an error that is neither", selfDescribed{}, attempt.Wait, no, no, yes, no},
		{"a cancellation", context.Canceled, attempt.Wait, no, no, yes, no},
		{"a certificate", &tls.CertificateVerificationError{Err: errors.New("unknown authority")}, attempt.TLS, no, no, no, no},
		{"the proxy cannot connect", errors.New("Bad Gateway"), attempt.Dial, no, no, yes, no},
		{"an error without a type", errors.New("http2: client connection lost"), attempt.Wait, no, no, yes, no},
		{"a header that is too large", errors.New("net/http: server response headers exceeded 9 bytes; aborted"), attempt.Wait, no, no, no, no},
	} {
		for _, err := range []error{tt.err, fmt.Errorf("wrapped: %w", tt.err)} {
			assert.Equal(t, tt.network, attempt.IsNetworkError(err), "%s: a network error", tt.name)
			assert.Equal(t, tt.timeout, attempt.IsTimeout(err), "%s: a timeout", tt.name)
		}
		for phase, want := range map[attempt.Phase]bool{tt.phase: tt.traced, attempt.Start: tt.untraced} {
			e := attempt.Error{Phase: phase, Err: tt.err}
			assert.Equal(t, want, e.Retryable(), "%s, in the phase %v", tt.name, phase)
		}
	}
}
