package attempt

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// tlsSessions is how many TLS sessions the connections of a client remember, one for each
	// server: the gateway, and a proxy.
	tlsSessions = 4

	// patience is how long an invoice may take over HTTP/2 before later ones use other connections.
	patience = 3 * time.Second

	// leaveInterval is the shortest time between two times that connections are left.
	leaveInterval = time.Second

	// drainTime is how long the end of a failed request may be on its way to its connection.
	drainTime = time.Second
)

// Pools are the connections of a client. Reads share some. Over HTTP/1.1 an invoice has a connection
// of its own, which is closed after it, so that an unsolicited response is never taken for the
// response to an invoice. Over HTTP/2, where a stream pairs the two, invoices share a connection.
type Pools struct{ invoices, reads pool }

// A pool has the connections for later requests: those of its current transport.
type pool struct {
	current atomic.Pointer[http.Transport]

	mu   sync.Mutex
	left time.Time // when connections were left last
}

// NewPools returns pools with the settings of t, which it clones; nil means the client's own settings.
// They close a connection of HTTP/2 on which nothing can be written. A connection for invoices is not idle
// for long: the server may be about to close it.
func NewPools(t *http.Transport) *Pools {
	if t == nil {
		t = newTransport()
	}
	reads := clone(t)
	reads.IdleConnTimeout = shorter(reads.IdleConnTimeout, 90*time.Second)
	invoices := clone(reads)
	invoices.MaxIdleConnsPerHost = -1
	invoices.IdleConnTimeout = shorter(invoices.IdleConnTimeout, 2*time.Second)
	p := new(Pools)
	p.reads.current.Store(reads)
	p.invoices.current.Store(invoices)
	return p
}

// leave makes later requests use other connections than those of t, at most once a second: one of them may be
// silent, or lead to a host that does not work. Requests that are under way go on. Over HTTP/2, where requests
// share a connection, a clone of t takes its place. Over HTTP/1.1 a request in flight has its connection for
// itself, and it is enough to close the idle ones.
func (p *pool) leave(t *http.Transport, http2 bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current.Load() != t || time.Since(p.left) < leaveInterval {
		return
	}
	p.left = time.Now()
	if !http2 {
		t.CloseIdleConnections()
		return
	}
	p.current.Store(t.Clone())
	drain(t)
}

// drain closes the idle connections of a transport that was left, and again once the end of a request that has
// failed is known to its connection.
func drain(t *http.Transport) {
	t.CloseIdleConnections()
	time.AfterFunc(drainTime, t.CloseIdleConnections)
}

func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// clone returns a copy of t with a cache of TLS sessions. It speaks HTTP/2 if t does, by net/http and
// not by an implementation that t was given: that would ignore the HTTP2Config.
//
// It adds no cache where a resumed session would skip a check of the caller: crypto/tls then neither calls
// VerifyPeerCertificate nor asks GetClientCertificate, and does not verify what InsecureSkipVerify has let pass.
func clone(t *http.Transport) *http.Transport {
	c := t.Clone() // which initializes t: then it has an entry for h2 if it speaks HTTP/2
	if _, ok := t.TLSNextProto["h2"]; ok && c.Protocols == nil {
		c.Protocols = new(http.Protocols)
		c.Protocols.SetHTTP1(true)
		c.Protocols.SetHTTP2(true)
	}
	if _, ok := c.TLSNextProto["h2"]; ok { // not by net/http, whose own entry is not cloned
		delete(c.TLSNextProto, "h2")
		c.Protocols.SetHTTP2(true)
	}
	if c.HTTP2 == nil {
		c.HTTP2 = new(http.HTTP2Config)
	}
	c.HTTP2.WriteByteTimeout = shorter(c.HTTP2.WriteByteTimeout, 5*time.Second)
	if c.TLSClientConfig == nil {
		c.TLSClientConfig = new(tls.Config)
	}
	own := c.TLSClientConfig
	isChecked := own.VerifyPeerCertificate != nil || own.GetClientCertificate != nil || own.InsecureSkipVerify
	if own.ClientSessionCache == nil && !isChecked {
		own.ClientSessionCache = tls.NewLRUClientSessionCache(tlsSessions)
	}
	return c
}

// shorter returns the shorter of two limits; zero for the first means no limit.
func shorter(limit, other time.Duration) time.Duration { return min(cmp.Or(limit, other), other) }

// RoundTrip implements [http.RoundTripper], for a middleware that wraps it. It notes how far an attempt
// comes by its exchanges with the gateway alone: a middleware may send requests of its own, to other hosts.
// It refuses a second exchange for an invoice.
func (p *Pools) RoundTrip(req *http.Request) (*http.Response, error) {
	a, ok := req.Context().Value(attemptKey{}).(*attempt)
	if !ok || req.URL.Host != a.host {
		return p.of(req).current.Load().RoundTrip(req)
	}
	e := &exchange{attempt: a}
	e.isInvoice = a.isWrite && req.Method == http.MethodPost && req.URL.Path == a.path
	if e.isInvoice && a.sent.Swap(true) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errSentTwice
	}
	req = req.WithContext(e.traced(req.Context()))
	if e.isInvoice {
		req.GetBody = nil // with it, net/http would send the invoice again by itself
	}
	resp, err := e.send(p, req)
	context.AfterFunc(req.Context(), e.end)
	if e.isInvoice && (err != nil && !e.connected.Load() || err == nil && asksForToken(resp.StatusCode)) {
		a.sent.Store(false)
	}
	return resp, err
}

// asksForToken reports whether a status proves that a token was not accepted, so that a middleware may send the
// invoice again with another.
func asksForToken(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusProxyAuthRequired
}

// of returns the pool for a request.
func (p *Pools) of(req *http.Request) *pool {
	if req.Method == http.MethodPost {
		return &p.invoices
	}
	return &p.reads
}

// CloseIdleConnections closes the idle connections of both pools.
func (p *Pools) CloseIdleConnections() {
	p.invoices.current.Load().CloseIdleConnections()
	p.reads.current.Load().CloseIdleConnections()
}
