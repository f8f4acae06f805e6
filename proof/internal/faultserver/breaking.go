package faultserver

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// A Manner is how a connection breaks.
type Manner int

// The manners in which a connection breaks.
const (
	FIN        Manner = iota // it is closed
	RST                      // it is reset
	Stall                    // nothing moves any longer, and neither end gets an error
	WriteError               // a write fails, and a reader gets no error
)

func (m Manner) String() string { return [...]string{"FIN", "RST", "stall", "write error"}[m] }

// Unlimited is more bytes than any test transfers in one direction.
const Unlimited = -1

// A Break is where a connection breaks: after so many bytes from the client
// or to it.
type Break struct {
	Up, Down int // or Unlimited
	Manner   Manner
}

// A BreakingConn is the client's end of a connection that breaks. Until it is
// armed it carries everything.
type BreakingConn struct {
	net.Conn
	onBreak func()

	mu      sync.Mutex
	armed   bool
	at      Break
	broken  bool
	carried [2]int // up and down, since it was armed

	once   sync.Once
	closed chan struct{}
}

// NewBreakingConn returns a connection that calls onBreak, unless that is nil,
// when it breaks.
func NewBreakingConn(conn net.Conn, onBreak func()) *BreakingConn {
	if onBreak == nil {
		onBreak = func() {}
	}
	return &BreakingConn{Conn: conn, onBreak: onBreak, closed: make(chan struct{})}
}

// BreakFirst is for [Server.WrapClient]: the first connection breaks, and later
// ones do not.
func BreakFirst(at Break) func(conn net.Conn, number int) net.Conn {
	return func(conn net.Conn, number int) net.Conn {
		if number > 1 {
			return conn
		}
		c := NewBreakingConn(conn, nil)
		c.Arm(at)
		return c
	}
}

// Arm makes the connection break, counted from now.
func (c *BreakingConn) Arm(at Break) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed, c.at = true, at
}

// Carried is how many bytes have passed since the connection was armed.
func (c *BreakingConn) Carried() (up, down int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.carried[0], c.carried[1]
}

// Write carries what may still pass.
func (c *BreakingConn) Write(p []byte) (int, error) {
	n, last, broken := c.admit(len(p))
	if broken {
		return c.lose(0, len(p))
	}
	written, err := 0, error(nil)
	if n > 0 {
		written, err = c.Conn.Write(p[:n])
	}
	if last {
		c.snap()
	}
	if err == nil && n < len(p) {
		return c.lose(n, len(p))
	}
	return written, err
}

// admit is how many of so many bytes may be written, and whether they are the
// last. No lock is held while they are: a bubble does not see that a goroutine
// waits for one.
func (c *BreakingConn) admit(n int) (admitted int, last, broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken || !c.armed {
		return n, false, c.broken
	}
	if c.at.Up != Unlimited {
		n, last = min(n, c.at.Up), n >= c.at.Up
		c.at.Up -= n
	}
	c.carried[0] += n
	return n, last, false
}

// lose is the result of a write that passed only n bytes. A stall is no error: the rest stays in a
// buffer.
func (c *BreakingConn) lose(n, all int) (int, error) {
	switch c.manner() {
	case Stall:
		return all, nil
	case WriteError:
		return n, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.ECONNRESET)}
	case RST:
		return n, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	default:
		return n, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
}

// Read lets through what may still pass.
func (c *BreakingConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	last := c.armed && c.at.Down == 0
	if c.armed && c.at.Down > 0 {
		p = p[:min(len(p), c.at.Down)]
	}
	c.mu.Unlock()
	if last {
		c.snap()
	}
	if c.readFails() {
		return 0, c.readError()
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	if c.armed && c.at.Down > 0 {
		c.at.Down -= n
	}
	if c.armed {
		c.carried[1] += n
	}
	c.mu.Unlock()
	if c.readFails() && (err != nil || c.manner() == Stall) {
		return 0, c.readError()
	}
	return n, err
}

func (c *BreakingConn) readFails() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken && c.at.Manner != WriteError
}

// readError is what a reader of the broken connection gets, which in a stall
// waits until the client closes it.
func (c *BreakingConn) readError() error {
	switch c.manner() {
	case Stall:
		<-c.closed
		return net.ErrClosed
	case RST:
		return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	default:
		return io.EOF
	}
}

func (c *BreakingConn) manner() Manner {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at.Manner
}

// snap breaks the connection, once.
func (c *BreakingConn) snap() {
	c.mu.Lock()
	first, manner := !c.broken, c.at.Manner
	c.broken = true
	c.mu.Unlock()
	if !first {
		return
	}
	switch manner {
	case RST:
		reset(c.Conn)
	case FIN:
		_ = c.Conn.Close()
	}
	c.onBreak()
}

// Close closes the connection.
func (c *BreakingConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}
