package wire

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/internal/testing/leak"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// canary is the key of every client here. No text may show it.
const canary = invariant.Key

// TestMain fails when the tests leave a goroutine behind.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // what net/http and the client log
	leak.Main(m)
}

// A network leads the connections of a client to a gateway, in memory: in a bubble of synctest, where time is free.
type network struct {
	call.Record
	serve func(c *peer)                      // the gateway's end of each connection
	dials func(number int) error             // why a dial fails; nil for never
	cuts  func(number int, conn *connection) // arms a connection before it is used; nil for never
	over  chan struct{}                      // closed when the call has ended

	mu    sync.Mutex
	conns []*connection
}

// DialContext connects to the gateway. Another address is a violation.
func (n *network) DialContext(_ context.Context, _, address string) (net.Conn, error) {
	if address != call.Host {
		n.Violation("another host was contacted: %s", address)
	}
	c := &connection{left: cutAt{up: unlimited, down: unlimited}}
	c.changed.L = &c.mu
	n.mu.Lock()
	n.conns = append(n.conns, c)
	number := len(n.conns)
	n.mu.Unlock()
	if n.dials != nil {
		if err := n.dials(number); err != nil {
			c.isLeft = true
			return nil, err
		}
	}
	if n.cuts != nil {
		n.cuts(number, c)
	}
	n.Connected()
	go func() {
		far := far{c}
		defer func() { _ = far.Close() }()
		n.serve(&peer{far, number, n, bufio.NewReader(far)})
	}()
	return near{c}, nil
}

// dialed returns all connections, in order.
func (n *network) dialed() []*connection {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.conns)
}

// settle waits until nothing is left of the calls of a client. A connection that stays open is a violation.
func (n *network) settle(client *gateway.Client, transport http.RoundTripper) {
	if err := client.Shutdown(context.Background()); err != nil {
		n.Violation("%v", err)
	}
	client.CloseIdleConnections()
	(&http.Client{Transport: transport}).CloseIdleConnections() // of a wrapper
	close(n.over)
	time.Sleep(time.Minute) // for what net/http does in the background
	for i, c := range n.dialed() {
		c.change(func() {
			if !c.isLeft {
				n.Violation("connection %d is left open", i+1)
			}
			c.isLeft = true
		})
	}
	synctest.Wait()
}

// A peer is the gateway's end of a connection.
type peer struct {
	net.Conn
	number  int // of the connection, from 1
	network *network
	reader  *bufio.Reader
}

// secure is the same peer behind TLS.
func (p *peer) secure() *peer {
	conn := tls.Server(p.Conn, serverTLS())
	return &peer{conn, p.number, p.network, bufio.NewReader(conn)}
}

// request reads a request to its end, and reports whether all of it has arrived.
func (p *peer) request() bool {
	req, err := http.ReadRequest(p.reader)
	if err != nil {
		return false
	}
	body, err := io.ReadAll(req.Body)
	p.network.Arrived(len(body), err == nil)
	return err == nil
}

// send writes a text, and reports whether the connection is open.
func (p *peer) send(text string) bool {
	_, err := io.WriteString(p, text)
	return err == nil
}

// A manner is how a connection breaks.
type manner string

const (
	fin   manner = "FIN"   // the gateway sends no more, and reads on
	rst   manner = "RST"   // it is reset
	stall manner = "stall" // nothing moves any longer, and neither end gets an error
)

const (
	unlimited = 1 << 30 // more bytes than any call sends
	full      = 1 << 20 // how much waits for the client before the gateway waits, too
)

// A cutAt is where a connection breaks: after so many bytes from the client or to it.
type cutAt struct {
	up, down int
	manner   manner
}

// A connection has buffers, as in a kernel, and may break.
type connection struct {
	mu       sync.Mutex
	changed  sync.Cond
	up, down []byte // what waits in the buffers
	left     cutAt  // what may still pass
	isBroken bool
	onBreak  func()
	isLeft   bool // the client has closed it
	isEnded  bool // the gateway has closed it
	expired  bool // a deadline of the gateway's reader
}

// change changes the connection, and wakes who waits for that.
func (c *connection) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	c.changed.Broadcast()
}

// arm makes the connection break, counted from now.
func (c *connection) arm(at cutAt, onBreak func()) {
	c.change(func() { c.left, c.onBreak = at, onBreak })
}

// snap breaks the connection. The lock is held.
func (c *connection) snap() {
	c.isBroken = true
	c.isEnded = c.isEnded || c.left.manner == rst
	c.onBreak()
}

// LocalAddr and the other methods serve both ends. Only a server of net/http sets a deadline, which has passed.
func (c *connection) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *connection) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *connection) SetDeadline(time.Time) error      { return nil }
func (c *connection) SetWriteDeadline(time.Time) error { return nil }
func (c *connection) SetReadDeadline(at time.Time) error {
	c.change(func() { c.expired = !at.IsZero() })
	return nil
}

// A near end is the client's.
type near struct{ *connection }

func (c near) Close() error {
	c.change(func() { c.isLeft = true })
	return nil
}

func (c near) Read(p []byte) (n int, err error) {
	c.change(func() {
		for {
			if c.left.down == 0 && !c.isBroken {
				c.snap()
			}
			switch {
			case c.isLeft:
				err = net.ErrClosed
				return
			case c.isBroken && c.left.manner == fin:
				err = io.EOF
				return
			case c.isBroken && c.left.manner == rst:
				err = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
				return
			case c.isBroken:
			case len(c.down) > 0:
				n = copy(p, c.down[:min(len(c.down), c.left.down)])
				c.down, c.left.down = c.down[n:], c.left.down-n
				return
			case c.isEnded:
				err = io.EOF
				return
			}
			c.changed.Wait()
		}
	})
	return n, err
}

func (c near) Write(p []byte) (n int, err error) {
	c.change(func() {
		if c.isLeft || c.isEnded {
			err = &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
			return
		}
		n = min(len(p), c.left.up)
		c.up, c.left.up = append(c.up, p[:n]...), c.left.up-n
		if c.left.up == 0 && !c.isBroken {
			c.snap()
		}
		switch {
		case c.left.manner == rst && n < len(p):
			err = &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
		case c.left.manner == fin:
			c.up = append(c.up, p[n:]...)
			n = len(p)
		default: // of a stall, the rest stays in a buffer for ever
			n = len(p)
		}
	})
	return n, err
}

// A far end is the gateway's.
type far struct{ *connection }

func (c far) Close() error {
	c.change(func() { c.isEnded = true })
	return nil
}

func (c far) Read(p []byte) (n int, err error) {
	c.change(func() {
		for len(c.up) == 0 && !c.isLeft && !c.isEnded && !c.expired {
			c.changed.Wait()
		}
		n = copy(p, c.up)
		c.up = c.up[n:]
		switch {
		case n > 0:
		case c.expired:
			err = os.ErrDeadlineExceeded
		default:
			err = io.EOF
		}
	})
	return n, err
}

func (c far) Write(p []byte) (n int, err error) {
	c.change(func() {
		for len(c.down) >= full && !c.isLeft && !c.isEnded {
			c.changed.Wait()
		}
		if c.isLeft || c.isEnded {
			err = &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
			return
		}
		n, c.down = len(p), append(c.down, p...)
	})
	return n, err
}

// newServer returns a server of net/http that creates the invoice of each request that arrives as a whole.
func newServer(n *network, protocols *http.Protocols) *http.Server {
	return &http.Server{Protocols: protocols, ErrorLog: log.Default(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		n.Arrived(len(body), err == nil)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		n.Committed()
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, call.Enveloped(call.InvoiceResult(call.OrderIn(body))))
	})}
}

// A single is a listener of one connection, which ends with it.
type single struct {
	net.Conn
	closed   chan struct{}
	close    sync.Once
	accepted bool
}

func (s *single) Accept() (net.Conn, error) {
	if s.accepted {
		<-s.closed
		return nil, net.ErrClosed
	}
	s.accepted, s.closed = true, make(chan struct{})
	return s, nil
}

func (s *single) Addr() net.Addr { return s.LocalAddr() }

func (s *single) Close() error {
	s.close.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// certificate is one of 127.0.0.1 that is its own authority. It is valid from 1990 on: bubbles begin in the year 2000.
var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(631152000, 0), NotAfter: time.Unix(4102444800, 0),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	template, _ = x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: template}
})

func serverTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{certificate()}, MinVersion: tls.VersionTLS12}
}

// clientTLS trusts the certificate, and has a short handshake.
func clientTLS() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(certificate().Leaf)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, CurvePreferences: []tls.CurveID{tls.CurveP256}}
}

// A tripper is a RoundTripper in one function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
