package contract

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// A manner is how a connection dies.
type manner int

const (
	fin   manner = iota // it is closed
	rst                 // it is reset
	stall               // nothing moves any more, and nobody is told
)

func (m manner) String() string { return [...]string{"FIN", "RST", "stall"}[m] }

// A line is the client's end of a connection that carries so many bytes and
// then breaks, with nobody's leave. Until it is armed it carries all.
type line struct {
	net.Conn
	how     manner
	reached func() // called when the line breaks

	mu       sync.Mutex
	armed    bool
	up, down int // bytes that may still pass; below zero for any number
	broken   bool
	carried  [2]int // up and down, since it was armed

	once   sync.Once
	closed chan struct{}
	gone   func()
}

func newLine(conn net.Conn, reached, gone func()) *line {
	return &line{Conn: conn, reached: reached, gone: gone, closed: make(chan struct{})}
}

// arm makes the line break after so many bytes.
func (l *line) arm(up, down int, how manner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed, l.up, l.down, l.how = true, up, down, how
}

// passed is how many bytes have passed since the line was armed.
func (l *line) passed() (up, down int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.carried[0], l.carried[1]
}

// Write carries what may still pass.
func (l *line) Write(p []byte) (int, error) {
	l.mu.Lock()
	if l.broken {
		l.mu.Unlock()
		return l.lose(0, len(p))
	}
	n, last := len(p), false
	if l.armed && l.up >= 0 {
		n, last = min(n, l.up), n >= l.up
		l.up -= n
	}
	if l.armed {
		l.carried[0] += n
	}
	written, err := l.Conn.Write(p[:n])
	if last {
		l.snap()
	}
	l.mu.Unlock()
	if err == nil && n < len(p) {
		return l.lose(n, len(p))
	}
	return written, err
}

// lose is a write of which only n bytes passed. In a stall nobody knows: the
// rest waits in a buffer for ever.
func (l *line) lose(n, all int) (int, error) {
	if l.how == stall {
		return all, nil
	}
	return n, l.fail(syscall.EPIPE)
}

// Read lets through what may still pass.
func (l *line) Read(p []byte) (int, error) {
	l.mu.Lock()
	if l.armed && l.down == 0 {
		l.snap()
	}
	if l.armed && l.down > 0 {
		p = p[:min(len(p), l.down)]
	}
	broken := l.broken
	l.mu.Unlock()
	if broken {
		return 0, l.fail(io.EOF)
	}
	n, err := l.Conn.Read(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.armed && l.down > 0 {
		l.down -= n
	}
	if l.armed {
		l.carried[1] += n
	}
	if l.broken && (err != nil || l.how == stall) {
		l.mu.Unlock()
		err, n = l.fail(io.EOF), 0
		l.mu.Lock()
	}
	return n, err
}

// snap breaks the line. The lock is held.
func (l *line) snap() {
	if l.broken {
		return
	}
	l.broken = true
	switch l.how {
	case rst:
		reset(l.Conn)
	case fin:
		_ = l.Conn.Close()
	}
	l.reached()
}

// fail is what whoever uses a broken line gets; a reader gets nothing from a stall.
func (l *line) fail(closed error) error {
	switch l.how {
	case stall:
		<-l.closed
		return net.ErrClosed
	case rst:
		return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	default:
		if errors.Is(closed, io.EOF) {
			return io.EOF
		}
		return &net.OpError{Op: "write", Net: "tcp", Err: closed}
	}
}

// Close closes the line.
func (l *line) Close() error {
	err := l.Conn.Close()
	l.once.Do(func() {
		close(l.closed)
		l.gone()
	})
	return err
}

// reset closes a connection with RST.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
