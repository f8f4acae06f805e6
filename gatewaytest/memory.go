package gatewaytest

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// NewMemoryServer starts a server without a network and returns it. It differs
// from the server of [NewServer] only in its connections, which are pipes in
// memory (see [net.Pipe]): it is reachable only through [Server.Transport], and
// not by its URL. The URL is "http://localhost/gateway", for clients that accept
// plain HTTP on the local host only. The caller must call
// [Server.Close] when done.
//
// Such a server can be used in a bubble of testing/synctest, where a socket
// cannot; see the package documentation. Create it, use it and close it in the
// same bubble. A pipe cannot be reset: [FaultReset] closes it.
func NewMemoryServer(opts ...Option) *Server {
	listener := &pipeListener{pipes: make(chan net.Conn), closed: make(chan struct{})}
	return newServer(opts, "http://localhost", listener, listener.dial)
}

// Transport returns a new transport that connects to this server, whatever the
// URL of a request. The caller may modify it before its first use:
//
//	gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()})
//
// [Server.Close] closes its connections, which ends its goroutines, so that
// CloseIdleConnections need not be called.
func (s *Server) Transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) },
	}
}

// A pipeListener accepts the pipes that its dial method creates.
type pipeListener struct {
	pipes  chan net.Conn
	closed chan struct{}
}

// dial creates a pipe, passes one end of it to Accept and returns the other.
func (l *pipeListener) dial(context.Context) (net.Conn, error) {
	theirs, ours := net.Pipe()
	select {
	case l.pipes <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: l.Addr().Network(), Addr: l.Addr(), Err: errors.New("the server is closed")}
	}
}

// Accept implements [net.Listener].
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.pipes:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]. http.Server calls it once.
func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

// Addr implements [net.Listener].
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "gatewaytest", Net: "pipe"} }
