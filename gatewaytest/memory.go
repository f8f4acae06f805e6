package gatewaytest

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// NewMemoryServer starts a server without a network and returns it. It is the
// server of [NewServer] in everything but its connections, which are pipes in
// memory (see [net.Pipe]): no URL leads to it, only the transport of
// [Server.Transport]. Its URL is "http://localhost/gateway", for clients that
// want plain http to stay on this machine. The caller calls [Server.Close] when
// done.
//
// Such a server can be used in a bubble of testing/synctest, where a socket
// cannot; see the package documentation. Make it, use it and close it in the
// same bubble. A pipe cannot be reset: [Reset] ends it.
func NewMemoryServer() *Server {
	listener := newPipeListener()
	return newServer("http://localhost", listener, func(context.Context) (net.Conn, error) {
		return listener.dial()
	})
}

// Transport returns a new transport of which every connection leads to this
// server, whatever the URL of a request. It is the caller's, who may change it
// before its first use:
//
//	gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()})
//
// [Server.Close] ends its connections and with them its goroutines, so that
// there is no need for CloseIdleConnections after it.
func (s *Server) Transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) },
	}
}

// A pipeListener is where the pipes arrive.
type pipeListener struct {
	pipes  chan net.Conn
	closed chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{pipes: make(chan net.Conn), closed: make(chan struct{})}
}

// dial makes a pipe, hands one end of it to Accept and returns the other.
func (l *pipeListener) dial() (net.Conn, error) {
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

// Close implements [net.Listener]. It is called once: http.Server sees to that.
func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

// Addr implements [net.Listener].
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "gatewaytest" }
