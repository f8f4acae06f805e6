package attempt

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/cryptogw/gateway/internal/caller"
)

const (
	// preparedLifetime is how long a prepared connection stays open without a request: a
	// buyer chooses a coin meanwhile. The longer it waits, the likelier it is to be lost.
	preparedLifetime = 15 * time.Second
	// maxPrepared bounds the prepared connections, with those that are being opened.
	maxPrepared = 4
)

// Dedicated sends each request over HTTP/1 on a connection of its own: a peer that sends a
// response too many, or too late, cannot have it taken for that of another request.
// Connections of HTTP/2 are shared: there the stream tells whose response it is.
//
// A connection can be opened before its request: [Sender.Prepare]. Nothing is sent on it
// but the handshake. net/http reads from it all the time, and closes it when the peer
// closes it, resets it, or sends anything before the request; then it is not used.
type Dedicated struct {
	transport *http.Transport // opens a connection when a request needs one
	opener    *http.Transport // opens a connection before its request

	mu       sync.Mutex
	opening  int // connections that are being opened
	prepared []*preparedConn
}

// NewDedicated returns a Dedicated over t, which is for its use alone from then on.
func NewDedicated(t *http.Transport) *Dedicated {
	t.MaxIdleConnsPerHost = -1
	watch(t)
	d := &Dedicated{transport: t, opener: t.Clone()}
	d.opener.IdleConnTimeout = preparedLifetime
	d.opener.MaxConnsPerHost = 0 // net/http does not count a connection of NewClientConn, but discounts it, and panics
	if d.opener.TLSNextProto["h2"] != nil {
		// NewClientConn supports the HTTP/2 of net/http only, and leaks a connection of another one.
		d.opener.TLSNextProto, d.opener.ForceAttemptHTTP2 = nil, true
	}
	if t.Proxy != nil {
		// The request that NewClientConn makes up is not the one by which a proxy is chosen.
		d.opener.Proxy = func(placeholder *http.Request) (*url.URL, error) {
			proxy, _ := placeholder.Context().Value(proxyKey{}).(*url.URL)
			return proxy, nil
		}
	}
	return d
}

// proxyKey is the context key of the proxy through which a connection is opened.
type proxyKey struct{}

// A preparedConn is a connection that was opened before its request.
type preparedConn struct {
	*http.ClientConn
	target      target
	shared      bool // by several requests: HTTP/2 with keep-alives
	multiplexed bool // HTTP/2
	opened      time.Time
	timer       *time.Timer

	watched *watchedConn // nil if it cannot be watched
}

// hasExpired reports whether the lifetime is over: the timer stands still while the machine is
// suspended.
func (c *preparedConn) hasExpired() bool { return HasPassed(c.opened.Add(preparedLifetime)) }

// A target is where a connection leads, and through which proxy; it is used for no other.
type target struct{ server, proxy string }

// targetOf returns the target of a request, and its proxy, which may differ by the request.
func (d *Dedicated) targetOf(req *http.Request) (to target, proxy *url.URL, err error) {
	to.server = req.URL.Scheme + "://" + req.URL.Host
	if d.transport.Proxy == nil {
		return to, nil, nil
	}
	proxy, err = d.transport.Proxy(req)
	if proxy != nil {
		to.proxy = proxy.String()
	}
	return to, proxy, err
}

// RoundTrip implements [http.RoundTripper].
func (d *Dedicated) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		conn := d.acquire(req)
		if conn == nil {
			return d.transport.RoundTrip(req)
		}
		if !conn.isClean() {
			conn.Release()
			_ = conn.Close()
			continue
		}
		if a, ok := req.Context().Value(attemptKey{}).(*attempt); ok {
			a.reach(Write) // net/http calls no hook when the connection is given
			a.watched.Store(conn.watched)
		}
		return conn.RoundTrip(req)
	}
}

// isClean reports whether nothing has come on a reserved connection that could be taken for a
// response. On one of HTTP/2 the stream tells whose response it is, once the reader has had what
// came before.
func (c *preparedConn) isClean() bool {
	if c.watched == nil {
		return c.Err() == nil
	}
	settled := c.watched.settle()
	if !c.multiplexed && settled {
		c.watched.arm()
	}
	return c.Err() == nil && (settled || c.multiplexed)
}

// CloseIdleConnections closes the idle connections, and those that were prepared.
func (d *Dedicated) CloseIdleConnections() {
	d.mu.Lock()
	prepared := d.prepared
	d.prepared = nil
	d.mu.Unlock()
	for _, conn := range prepared {
		conn.closeWhenIdle()
	}
	d.transport.CloseIdleConnections()
}

// acquire returns a prepared connection for a request, reserved for it, or nil.
func (d *Dedicated) acquire(req *http.Request) *preparedConn {
	if !d.hasPrepared() {
		return nil
	}
	target, _, err := d.targetOf(req)
	if err != nil {
		return nil // the transport will report it
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, conn := range d.prepared {
		if conn.target != target || conn.hasExpired() || conn.Reserve() != nil {
			continue
		}
		if !conn.shared {
			d.prepared = slices.Delete(d.prepared, i, i+1)
			conn.closeWhenIdle()
		}
		return conn
	}
	return nil
}

func (d *Dedicated) hasPrepared() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.prepared) > 0
}

// prepare opens a connection for a request, unless enough are open already.
func (d *Dedicated) prepare(ctx context.Context, req *http.Request) error {
	host := req.URL.Hostname()
	if strings.ContainsFunc(host, func(char rune) bool { return char > unicode.MaxASCII }) {
		// NewClientConn would look it up as it is, which can be another host.
		return &net.DNSError{Err: "only a name in Punycode can be prepared", Name: host, IsNotFound: true}
	}
	target, proxy, err := d.targetOf(req)
	if err != nil || !d.startOpening(target) {
		return err
	}
	var conn *http.ClientConn
	var watched *watchedConn
	ctx = context.WithValue(ctx, watchedKey{}, &watched)
	defer func() { d.add(conn, target, watched) }()   // also when a dialer of the caller's panics
	address := net.JoinHostPort(host, req.URL.Port()) // without a port, it is that of the scheme
	conn, err = d.opener.NewClientConn(context.WithValue(ctx, proxyKey{}, proxy), req.URL.Scheme, address)
	return err
}

// startOpening reports whether a connection to a server is to be opened, and counts it.
func (d *Dedicated) startOpening(target target) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prepared = slices.DeleteFunc(d.prepared, func(conn *preparedConn) bool {
		// Closed, being closed, or full. One of HTTP/2 that was closed before its first request
		// has requests available.
		unusable := conn.hasExpired() || conn.Err() != nil || conn.Available() == 0
		if unusable {
			conn.closeWhenIdle()
		}
		return unusable
	})
	if len(d.prepared)+d.opening >= maxPrepared || d.hasShared(target) {
		return false
	}
	d.opening++
	return true
}

func (d *Dedicated) hasShared(target target) bool {
	return slices.ContainsFunc(d.prepared, func(conn *preparedConn) bool { return conn.shared && conn.target == target })
}

// add ends what startOpening began: it stores the connection until it is used or its
// lifetime is over. conn is nil if it could not be opened.
func (d *Dedicated) add(conn *http.ClientConn, target target, watched *watchedConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opening--
	if conn == nil {
		return
	}
	// Without keep-alives net/http reserves a second request, and refuses to send it.
	multiplexed := conn.Available() > 1
	c := &preparedConn{ClientConn: conn, target: target, multiplexed: multiplexed, watched: watched, opened: time.Now()}
	c.shared = multiplexed && !d.opener.DisableKeepAlives
	if c.shared && d.hasShared(target) {
		go conn.Close() // another call was faster; closing may take long, and the lock is held
		return
	}
	c.timer = time.AfterFunc(preparedLifetime, func() { d.expire(c) })
	d.prepared = append(d.prepared, c)
}

// expire removes a connection whose lifetime is over.
func (d *Dedicated) expire(c *preparedConn) {
	d.mu.Lock()
	d.prepared = slices.DeleteFunc(d.prepared, func(other *preparedConn) bool { return other == c })
	d.mu.Unlock()
	c.closeWhenIdle()
}

// closeWhenIdle closes the connection as soon as it has no request. It must have been
// removed from those that are prepared.
func (c *preparedConn) closeWhenIdle() {
	c.timer.Stop()
	closeIdle := func(conn *http.ClientConn) {
		if conn.InFlight() == 0 {
			_ = conn.Close()
		}
	}
	c.SetStateHook(closeIdle)
	closeIdle(c.ClientConn)
}

// CanPrepare reports whether [Sender.Prepare] can be called: the transport is a [Dedicated].
func (s *Sender) CanPrepare() bool {
	_, ok := s.next.(*Dedicated)
	return ok
}

// Prepare opens a connection for a request like req, which is not sent. The next request
// to the same server uses it, within 15 seconds; over HTTP/2, all requests of that time
// share it. Prepare does nothing if there are 4 such connections, with those that are
// being opened, or one of HTTP/2. An error is an [*Error].
func (s *Sender) Prepare(req *http.Request) error {
	a := s.begin(req.Context())
	defer a.end(nil)
	a.reach(Dial)
	if a.Err() == nil {
		opening := &opening{dedicated: s.next.(*Dedicated), ctx: a.traced(), req: req}
		if a.await(opening) && opening.err != nil {
			return a.failure(caller.Examined(opening.err))
		}
	}
	if err := a.Err(); err != nil {
		return a.failure(err)
	}
	return nil
}

// An opening opens a connection before its request. A dialer of the caller's that does not heed
// the end of its context is left in it.
type opening struct {
	dedicated *Dedicated
	ctx       context.Context
	req       *http.Request
	err       error
}

// Run implements [caller.Job].
func (o *opening) Run() { o.err = o.dedicated.prepare(o.ctx, o.req) }

// Drop implements [caller.Job]. What was opened too late is kept for a request, as any other.
func (o *opening) Drop() {}
