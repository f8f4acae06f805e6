package attempt

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// settling bounds how long a connection's own reader may take for what has come.
const settling = 100 * time.Millisecond

// errEarly is why nothing was sent on a connection on which something has come before.
var errEarly = errors.New("the peer sent something before the request")

// A watchedConn is a connection that net/http reads from all the time. It knows whether the reader
// has had all that has come: what has not been read before a request is sent would be taken for its
// response. The reader also knows what is none, such as the ticket of a TLS session.
type watchedConn struct {
	net.Conn
	raw syscall.RawConn // nil where the system cannot be asked
	h2c bool            // without TLS it is one of HTTP/2

	mu      sync.Mutex
	reading bool          // the reader waits for more
	closed  bool          // by this end
	armed   bool          // the next Write begins a request
	early   bool          // something unread was there when a request was to be written
	changed chan struct{} // is closed at the next change; nil if nobody waits
}

// dialsWithoutContext returns the deprecated dialers, which a transport of a merchant's may
// have.
func dialsWithoutContext(t *http.Transport) (dial, dialTLS func(network, address string) (net.Conn, error)) {
	//nolint:staticcheck // SA1019: they are read, not used by choice
	return t.Dial, t.DialTLS
}

// watch has a transport watch its connections. Those of a DialTLSContext cannot be watched.
func watch(t *http.Transport) {
	plain, plainTLS := dialsWithoutContext(t)
	if t.TLSClientConfig == nil && t.DialContext == nil && plain == nil && t.DialTLSContext == nil && plainTLS == nil && t.TLSNextProto == nil {
		t.ForceAttemptHTTP2 = true // net/http would not, because of the dialer
	}
	dial := t.DialContext
	if dial == nil && plain != nil {
		dial = func(_ context.Context, network, address string) (net.Conn, error) { return plain(network, address) }
	}
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	h2c := t.Protocols != nil && t.Protocols.UnencryptedHTTP2() && !t.Protocols.HTTP1()
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil || conn == nil {
			return conn, err
		}
		w := &watchedConn{Conn: conn, h2c: h2c}
		if system, ok := conn.(syscall.Conn); ok {
			w.raw, _ = system.SyscallConn()
		}
		if newest, ok := ctx.Value(watchedKey{}).(**watchedConn); ok {
			*newest = w
		}
		return w, nil
	}
}

// isMultiplexed reports whether a connection over w is one of HTTP/2: its reader writes, too.
func (w *watchedConn) isMultiplexed(conn net.Conn) bool {
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.ConnectionState().NegotiatedProtocol == "h2"
	}
	return w.h2c
}

// watchedKey is the context key of where the connection is stored that is dialed.
type watchedKey struct{}

// watchedOf returns the watched connection below another, or nil.
func watchedOf(conn net.Conn) *watchedConn {
	for {
		switch c := conn.(type) {
		case *watchedConn:
			return c
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// Read implements [net.Conn].
func (w *watchedConn) Read(p []byte) (int, error) {
	if _, socket := w.Conn.(*net.TCPConn); socket && w.raw != nil {
		return w.readSocket(p)
	}
	return w.readOther(p)
}

// readOther reads from what is no socket: for a moment bytes may be with the reader unseen.
func (w *watchedConn) readOther(p []byte) (int, error) {
	w.change(func() { w.reading = true })
	defer w.change(func() { w.reading = false })
	return w.Conn.Read(p)
}

// Write implements [net.Conn]. Of a request it writes nothing while something is unread.
func (w *watchedConn) Write(p []byte) (int, error) {
	armed := false
	w.change(func() { armed, w.armed = w.armed, false })
	if armed && !w.settle() {
		w.change(func() { w.early = true })
		return 0, errEarly
	}
	return w.Conn.Write(p)
}

// Close implements [net.Conn].
func (w *watchedConn) Close() error {
	w.change(func() { w.closed = true })
	return w.Conn.Close()
}

func (w *watchedConn) change(state func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state()
	w.notify()
}

// notify tells those who wait of a change. The lock is held.
func (w *watchedConn) notify() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// settle waits for a bounded time until the reader has had all that has come, or has closed the
// connection because of it, and reports whether it has.
func (w *watchedConn) settle() bool {
	timer := time.NewTimer(settling)
	defer timer.Stop()
	for {
		settled, changed := w.isSettled()
		if settled {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		}
	}
}

func (w *watchedConn) isSettled() (settled bool, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.reading && (w.raw == nil || !hasUnread(w.raw)) {
		return true, nil
	}
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return false, w.changed
}

// arm has the next Write look at the connection once more.
func (w *watchedConn) arm() { w.change(func() { w.armed = true }) }

func (w *watchedConn) wasEarly() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.early
}
