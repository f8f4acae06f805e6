package attempt

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// A Phase is how far an attempt without a response came, as the trace of net/http reports.
type Phase int8

// Phases of an [Error].
const (
	Start Phase = iota // before net/http asked for a connection, or by a transport that does not report it
	Dial               // looking up or connecting to the host or to a proxy
	TLS                // the TLS handshake
	Write              // sending the request
	Wait               // waiting for the header of the response
)

// String returns the phase in a word, such as "dial".
func (p Phase) String() string {
	return [...]string{"start", "dial", "tls", "write", "wait"}[p]
}

// An Error is an attempt without a response: the error of a [Transport].
type Error struct {
	Phase  Phase
	Unread bool // nothing of the request's body was read
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// unencrypted replaces the error of a handshake to which a server without TLS has responded,
// as an [http.Client] does.
func unencrypted(err error) error {
	var record tls.RecordHeaderError
	if errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/" {
		return http.ErrSchemeMismatch
	}
	return err
}

// Retryable reports whether another attempt may do better.
func (e *Error) Retryable() bool {
	var lookup *net.DNSError
	switch {
	case errors.As(e.Err, &lookup):
		return !lookup.IsNotFound
	case IsNetworkError(e.Err):
		return true
	case e.Phase == TLS:
		return false // a certificate or a protocol version: it will not change
	default:
		// Errors that net/http itself makes have no types. Those that a caller's
		// RoundTripper makes before net/http is reached, such as the refusal of a
		// circuit breaker, are final.
		return e.Phase != Start && !strings.Contains(e.Err.Error(), "response headers exceeded")
	}
}

// IsNetworkError reports whether err is a connection that broke or took too long,
// or an error that reports itself as temporary.
func IsNetworkError(err error) bool {
	var number syscall.Errno
	isCut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
	if isCut || errors.As(err, &number) {
		return true
	}
	var temporary interface{ Temporary() bool }
	return IsTimeout(err) || errors.As(err, &temporary) && temporary.Temporary()
}

// IsTimeout reports whether err reports itself as a timeout.
func IsTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
