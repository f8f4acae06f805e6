package faultserver

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"
)

// A Conn is the server's end of a connection. One goroutine uses it at a time.
type Conn struct {
	net.Conn          // the TLS connection behind [Secure]
	Raw      net.Conn // the connection below TLS
	Number   int      // of the connection, from 1
	Server   *Server

	reader *bufio.Reader
}

// A Request is a request that has arrived as a whole.
type Request struct {
	Method, Target string
	Header         http.Header
	Body           []byte
}

// Secure is a handler behind TLS.
func Secure(config *tls.Config, handler Handler) Handler {
	return func(c *Conn) {
		c.Conn = tls.Server(c.Conn, config)
		handler(c)
	}
}

// EachRequest reads one request after the other and calls respond for each,
// until it returns false.
func EachRequest(respond func(c *Conn) bool) Handler {
	return func(c *Conn) {
		for {
			if _, whole := c.ReadRequest(); !whole || !respond(c) {
				return
			}
		}
	}
}

// OneRequest reads one request and calls respond.
func OneRequest(respond func(c *Conn)) Handler {
	return EachRequest(func(c *Conn) bool {
		respond(c)
		return false
	})
}

// UntilDone is a handler whose connections end with the test at the latest. It is for
// clients of whom nobody can close the idle connections.
func UntilDone(handler Handler) Handler {
	return func(c *Conn) {
		over := make(chan struct{})
		defer close(over)
		go func() {
			select {
			case <-c.Server.Done():
				_ = c.Raw.Close()
			case <-over:
			}
		}()
		handler(c)
	}
}

// AwaitRequest waits until a request begins to arrive. It reports whether one does.
func (c *Conn) AwaitRequest() bool {
	_, err := c.buffered().Peek(1)
	return err == nil
}

// Pause waits for a while, at most until the test is over.
func (c *Conn) Pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.Server.Done():
	}
}

func (c *Conn) buffered() *bufio.Reader {
	if c.reader == nil {
		c.reader = bufio.NewReader(c.Conn)
	}
	return c.reader
}

// ReadRequest reads a request to its end and records it. It reports whether
// there was a whole one.
func (c *Conn) ReadRequest() (Request, bool) {
	req, err := http.ReadRequest(c.buffered())
	if err != nil {
		return Request{}, false
	}
	body, err := io.ReadAll(req.Body)
	c.Server.Record.Arrived(len(body), err == nil)
	return Request{req.Method, req.RequestURI, req.Header, body}, err == nil
}

// Send writes text and reports whether all of it could be written.
func (c *Conn) Send(text string) bool {
	_, err := io.WriteString(c.Conn, text)
	return err == nil
}

// Hold reads until the client closes the connection.
func (c *Conn) Hold() { _, _ = io.Copy(io.Discard, c.Conn) }

// Stop neither reads nor writes until the test is over.
func (c *Conn) Stop() { <-c.Server.Done() }

// BreakOff ends the connection. It reports whether more may arrive. A stall goes on until the test is over.
func (c *Conn) BreakOff(how Manner) (goesOn bool) {
	switch how {
	case RST:
		c.Reset()
		return false
	case FIN:
		if half, ok := c.Raw.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	default:
		c.Stop()
	}
	return true
}

// Reset ends the connection with RST, where it is on TCP.
func (c *Conn) Reset() { reset(c.Raw) }

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
