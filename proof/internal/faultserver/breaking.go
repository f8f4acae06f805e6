package faultserver

import (
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// A Manner is how a connection breaks.
type Manner string

// The manners in which a connection breaks.
const (
	FIN        Manner = "FIN"         // the server sends no more, and may read on
	RST        Manner = "RST"         // it is reset
	Stall      Manner = "stall"       // nothing moves any longer, and neither end gets an error
	WriteError Manner = "write error" // a write fails, and a reader gets no error
)

// Unlimited is more bytes than any test transfers in one direction.
const Unlimited = 1 << 30

// A Break is where a connection breaks: after so many bytes from the client or to it.
type Break struct {
	Up, Down int // or Unlimited
	Manner   Manner
}

// A BreakingConn is the client's end of a connection that breaks once it is armed.
type BreakingConn struct {
	net.Conn
	onBreak func()

	mu     sync.Mutex
	left   Break
	broken bool
	closed chan struct{}
	close  func()
}

// NewBreakingConn returns a connection that calls onBreak when it breaks.
func NewBreakingConn(conn net.Conn, onBreak func()) *BreakingConn {
	c := &BreakingConn{Conn: conn, onBreak: onBreak, closed: make(chan struct{})}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	c.Arm(Break{Up: Unlimited, Down: Unlimited})
	return c
}

// Arm makes the connection break, counted from now.
func (c *BreakingConn) Arm(at Break) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = at
}

// Carried is how many bytes have passed since an Arm without limits.
func (c *BreakingConn) Carried() (up, down int) {
	left, _ := c.state()
	return Unlimited - left.Up, Unlimited - left.Down
}

// state returns what may still pass. No lock is held while it does: a bubble does not see that a goroutine waits for one.
func (c *BreakingConn) state() (left Break, broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left, c.broken
}

// passed notes that bytes have passed. It returns how many of those down may: a reader may have waited when the
// connection was armed.
func (c *BreakingConn) passed(up, down int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	down = min(down, c.left.Down)
	c.left.Up -= up
	c.left.Down -= down
	return down
}

// Write carries what may still pass. The rest is lost in a stall without an error: it stays in a buffer.
func (c *BreakingConn) Write(p []byte) (int, error) {
	left, broken := c.state()
	n := min(len(p), left.Up)
	if n > 0 && !(broken && left.Manner == RST) {
		written, err := c.Conn.Write(p[:n])
		c.passed(written, 0)
		if err != nil {
			return written, err
		}
	}
	if n == left.Up {
		c.snap()
	}
	switch {
	case n == len(p):
		return n, nil
	case left.Manner == FIN:
		rest, err := c.Conn.Write(p[n:])
		return n + rest, err
	case left.Manner == Stall:
		return len(p), nil
	default:
		return n, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
	}
}

// Read lets through what may still pass.
func (c *BreakingConn) Read(p []byte) (int, error) {
	left, _ := c.state()
	if left.Down == 0 {
		c.snap()
	}
	n, err := 0, error(nil)
	if left, broken := c.state(); !broken || left.Manner == WriteError {
		n, err = c.Conn.Read(p[:min(len(p), left.Down)])
		n = c.passed(0, n)
	}
	left, broken := c.state()
	switch {
	case !broken || left.Manner == WriteError:
		return n, err
	case left.Manner == FIN:
		return 0, io.EOF
	case left.Manner == Stall:
		<-c.closed
	}
	return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// snap breaks the connection, once.
func (c *BreakingConn) snap() {
	c.mu.Lock()
	first, manner := !c.broken, c.left.Manner
	c.broken = true
	c.mu.Unlock()
	if !first {
		return
	}
	switch manner {
	case RST:
		reset(c.Conn)
	case FIN:
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // wakes a reader
	}
	c.onBreak()
}

// Close closes the connection.
func (c *BreakingConn) Close() error {
	defer c.close()
	return c.Conn.Close()
}
