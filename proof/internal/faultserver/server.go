// Package faultserver has a raw server for tests of what goes wrong on a connection, over HTTP/1.1 and frame by frame
// over HTTP/2, and client connections that break after a given number of bytes. It works on TCP and in
// memory, in synctest bubbles, where time is free.
//
// A fault over HTTP/1.1 is a [Handler], the server's side of one connection:
//
//	server := faultserver.New(faultserver.EachRequest(func(c *faultserver.Conn) bool {
//		return c.Send(faultserver.Response(200, body)) && c.Send(faultserver.Response(400, stray))
//	}))
//	transport := &http.Transport{DialContext: server.DialContext}
//
// Over HTTP/2 a fault is a [StreamFault] at a [Boundary] between two frames. What has arrived is in the server's
// [Record].
package faultserver

import (
	"context"
	"net"
	"sync"
	"time"
)

// A Handler is the server's side of one connection, which is closed when it
// returns.
type Handler func(c *Conn)

// A Server leads connections to a Handler. Its fields are set before the first
// connection.
type Server struct {
	Handler Handler

	// OnDial is called before each connection is made, if it is set. Its error
	// fails the dial. Numbers count from 1.
	OnDial func(ctx context.Context, number int) error

	// WrapClient replaces the client's end of a connection, if it is set.
	WrapClient func(conn net.Conn, number int) net.Conn

	// Timeout is how long a connection on TCP may last; 0 is without limit. It
	// ends a connection that the client never closes.
	Timeout time.Duration

	Record Record

	listener net.Listener // nil in memory
	done     chan struct{}
	begin    sync.Once
	finish   sync.Once
	open     sync.WaitGroup // the clients' ends, and the handlers

	mu     sync.Mutex
	dialed []string
	wraps  int
	conns  int
	closed bool
}

// New returns a server whose connections exist in memory only. It can be used
// in a bubble of testing/synctest.
func New(handler Handler) *Server {
	return &Server{Handler: handler, done: make(chan struct{})}
}

// Listen makes the server use a TCP port of the loopback interface from now on.
func (s *Server) Listen(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.listener = listener
	return nil
}

// Addr is the address that the server listens on. It accepts connections from then on, so
// that the Handler can be set before.
func (s *Server) Addr() string {
	s.begin.Do(func() { s.open.Go(s.accept) })
	return s.listener.Addr().String()
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		if s.Timeout > 0 {
			_ = conn.SetDeadline(time.Now().Add(s.Timeout))
		}
		s.handle(conn)
	}
}

func (s *Server) handle(conn net.Conn) {
	s.mu.Lock()
	s.conns++
	c := &Conn{Conn: conn, Raw: conn, Number: s.conns, Server: s}
	s.mu.Unlock()
	s.Record.Connected()
	s.open.Go(func() {
		defer func() { _ = conn.Close() }()
		s.Handler(c)
	})
}

// DialContext connects to the server, whatever the address. It is for
// [net/http.Transport.DialContext].
func (s *Server) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	s.mu.Lock()
	s.dialed = append(s.dialed, addr)
	number := len(s.dialed)
	s.mu.Unlock()
	if s.OnDial != nil {
		if err := s.OnDial(ctx, number); err != nil {
			return nil, err
		}
	}
	if !s.joins() {
		return nil, net.ErrClosed
	}
	conn, err := s.connect(ctx)
	if err != nil {
		s.open.Done()
		return nil, err
	}
	if s.WrapClient != nil {
		s.mu.Lock()
		s.wraps++
		number := s.wraps
		s.mu.Unlock()
		conn = s.WrapClient(conn, number)
	}
	return &clientConn{Conn: conn, closed: sync.OnceFunc(s.open.Done)}, nil
}

// joins counts a connection of the client's, unless Close has begun: net/http may still
// dial after the call that it dialed for.
func (s *Server) joins() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.open.Add(1)
	return true
}

func (s *Server) connect(ctx context.Context) (net.Conn, error) {
	if s.listener != nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr())
	}
	client, server := net.Pipe()
	s.handle(server)
	return client, nil
}

// A clientConn reports that the client has closed it.
type clientConn struct {
	net.Conn
	closed func()
}

func (c *clientConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// Done is closed when the test is over. A handler that keeps its connection
// without reading waits for it.
func (s *Server) Done() <-chan struct{} { return s.done }

// Finish closes Done and the port. It does not wait.
func (s *Server) Finish() {
	s.finish.Do(func() {
		close(s.done)
		if s.listener != nil {
			_ = s.listener.Close()
		}
	})
}

// Close does what Finish does and waits until every handler has returned and
// the client has closed its end of every connection. The client's idle
// connections are closed before it.
func (s *Server) Close() {
	s.Finish()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.open.Wait()
}

// Dialed are the addresses that were dialed, in order, also those of dials that
// failed.
func (s *Server) Dialed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.dialed...)
}

// Conns is how many connections there were.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}
