package attempt

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	// preparedFor is how long a connection is held that was opened before it is needed.
	preparedFor = 15 * time.Second
	// maxPrepared is how many such connections are held, or being opened, at a time.
	maxPrepared = 4
)

// Posts sends each request over HTTP/1 on a connection of its own: a peer that sends a
// response too many, or too late, cannot have it taken for that of another request.
// HTTP/2, where responses have numbers, shares its connections.
//
// A connection can be opened before its request: [Sender.Prepare]. Nothing is sent on it
// but the handshake. net/http reads from it all the time, and closes it when the peer
// closes it, resets it, or sends on it what nobody has asked for; then it is not used.
type Posts struct {
	transport *http.Transport // opens a connection when a request needs one
	opener    *http.Transport // opens connections before

	mu      sync.Mutex
	opening int
	held    []*preparedConn
}

// NewPosts returns a Posts over a copy of t, which shares no connection with t.
func NewPosts(t *http.Transport) *Posts {
	p := &Posts{transport: t.Clone()}
	p.transport.MaxIdleConnsPerHost = -1
	p.opener = p.transport.Clone()
	p.opener.IdleConnTimeout = preparedFor
	p.opener.MaxConnsPerHost = 0 // net/http does not count a connection of NewClientConn, but discounts it, and panics
	if t.Proxy != nil {
		// The URL that NewClientConn makes up lacks the port, by which a proxy may be chosen.
		p.opener.Proxy = func(madeUp *http.Request) (*url.URL, error) {
			req, _ := madeUp.Context().Value(preparedKey{}).(*http.Request)
			return t.Proxy(req)
		}
	}
	return p
}

// preparedKey is the key of the request for which a connection is opened.
type preparedKey struct{}

// A preparedConn is a connection that was opened before it is needed.
type preparedConn struct {
	*http.ClientConn
	target string
	shared bool // by many requests: HTTP/2
	timer  *time.Timer
}

// targetOf is the server of a URL: a connection is for no other one.
func targetOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// RoundTrip implements [http.RoundTripper].
func (p *Posts) RoundTrip(req *http.Request) (*http.Response, error) {
	conn := p.take(targetOf(req.URL))
	if conn == nil {
		return p.transport.RoundTrip(req)
	}
	if a, ok := req.Context().Value(attemptKey{}).(*attempt); ok {
		a.reach(Write) // net/http calls no hook for a connection that it did not have to find
	}
	return conn.RoundTrip(req)
}

// CloseIdleConnections closes the idle connections, and those that were prepared.
func (p *Posts) CloseIdleConnections() {
	p.mu.Lock()
	held := p.held
	p.held = nil
	p.mu.Unlock()
	for _, conn := range held {
		conn.retire()
	}
	p.transport.CloseIdleConnections()
}

// take returns a prepared connection to a server, reserved for one request, or nil.
func (p *Posts) take(target string) *http.ClientConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, conn := range p.held {
		if conn.target != target || conn.Reserve() != nil {
			continue
		}
		if !conn.shared {
			p.held = slices.Delete(p.held, i, i+1)
			conn.retire()
		}
		return conn.ClientConn
	}
	return nil
}

// prepare opens a connection for a request, unless enough are open already.
func (p *Posts) prepare(ctx context.Context, req *http.Request) error {
	target := targetOf(req.URL)
	if !p.admit(target) {
		return nil
	}
	var conn *http.ClientConn
	defer func() { p.hold(conn, target) }()                         // also when a dialer of the caller's panics
	address := net.JoinHostPort(req.URL.Hostname(), req.URL.Port()) // without a port, it is that of the scheme
	conn, err := p.opener.NewClientConn(context.WithValue(ctx, preparedKey{}, req), req.URL.Scheme, address)
	return err
}

// admit reports whether a connection to a server is to be opened, and counts it.
func (p *Posts) admit(target string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = slices.DeleteFunc(p.held, func(conn *preparedConn) bool {
		gone := conn.Available() == 0 // closed by the peer, or about to be, or full
		if gone {
			conn.retire()
		}
		return gone
	})
	if len(p.held)+p.opening >= maxPrepared || p.hasShared(target) {
		return false
	}
	p.opening++
	return true
}

func (p *Posts) hasShared(target string) bool {
	return slices.ContainsFunc(p.held, func(conn *preparedConn) bool { return conn.shared && conn.target == target })
}

// hold keeps a connection, or none if it could not be opened, until it is used or its
// time is over.
func (p *Posts) hold(conn *http.ClientConn, target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opening--
	if conn == nil {
		return
	}
	c := &preparedConn{ClientConn: conn, target: target, shared: conn.Available() > 1}
	if c.shared && p.hasShared(target) {
		go conn.Close() // another call was faster; to close can take a while
		return
	}
	c.timer = time.AfterFunc(preparedFor, func() { p.drop(c) })
	p.held = append(p.held, c)
}

// drop drops a connection whose time is over.
func (p *Posts) drop(c *preparedConn) {
	p.mu.Lock()
	p.held = slices.DeleteFunc(p.held, func(held *preparedConn) bool { return held == c })
	p.mu.Unlock()
	c.retire()
}

// retire closes the connection as soon as it has no request. It is no longer held.
func (c *preparedConn) retire() {
	c.timer.Stop()
	closeIdle := func(conn *http.ClientConn) {
		if conn.InFlight() == 0 {
			_ = conn.Close()
		}
	}
	c.SetStateHook(closeIdle)
	closeIdle(c.ClientConn)
}

// ErrNoPrepare is the error of [Sender.Prepare] over a transport that cannot prepare.
var ErrNoPrepare = errors.New("the transport cannot open a connection before its request")

// Prepare opens a connection for a request like req, which is not sent, and holds it for
// the next one to the same server: for at most 15 seconds. If it is HTTP/2, all requests
// within that time share it. With 4 connections that are held or being opened, or one of
// HTTP/2, it does nothing. It needs a [Posts], or a [Split]. An error is an [*Error], or
// ErrNoPrepare.
func (s *Sender) Prepare(req *http.Request) error {
	var posts *Posts
	switch next := s.next.(type) {
	case *Posts:
		posts = next
	case *Split:
		posts = next.Posts
	default:
		return ErrNoPrepare
	}
	a := s.begin(req.Context())
	defer a.end(nil)
	a.reach(Dial)
	err := a.Err()
	if err == nil {
		err = posts.prepare(a.traced(), req)
	}
	if err != nil {
		return a.failure(err)
	}
	return nil
}
