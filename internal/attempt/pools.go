package attempt

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// tlsSessions is how many TLS sessions the connections of a client remember, one for each
	// server: the gateway, and a proxy.
	tlsSessions = 4

	// refreshInterval is the shortest time between two refreshes of the reads' connections.
	refreshInterval = time.Second
)

// Pools are the connections of a client. Reads share some. Over HTTP/1.1 an invoice has a connection
// of its own, which is closed after it, so that an unsolicited response is never taken for the
// response to an invoice. Over HTTP/2, where a stream pairs the two, invoices share a connection.
type Pools struct {
	Invoices *http.Transport
	Reads    *http.Transport

	mu        sync.Mutex
	refreshed time.Time // when the idle connections of Reads were closed last
}

// NewPools returns pools with the settings of t, which it clones; nil means the client's own settings.
// Both have a cache of TLS sessions. Both find a dead HTTP/2 connection by its silence and by writes
// that make no progress, and a connection for invoices is not idle for long: the server may be about
// to close it.
func NewPools(t *http.Transport) *Pools {
	if t == nil {
		t = newTransport()
	}
	reads := clone(t)
	invoices := clone(reads)
	limitSilence(reads, 5*time.Second, 5*time.Second)
	limitSilence(invoices, 3*time.Second, 2*time.Second)
	invoices.MaxIdleConnsPerHost = -1
	invoices.IdleConnTimeout = shorter(invoices.IdleConnTimeout, 2*time.Second)
	return &Pools{Invoices: invoices, Reads: reads}
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
	if c.TLSClientConfig == nil {
		c.TLSClientConfig = new(tls.Config)
	}
	if c.TLSClientConfig.ClientSessionCache == nil {
		c.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(tlsSessions)
	}
	return c
}

// limitSilence makes t ping an HTTP/2 connection after a silence, and close the connection if no answer comes or
// nothing can be written. It keeps shorter limits.
func limitSilence(t *http.Transport, silence, answer time.Duration) {
	if t.HTTP2 == nil {
		t.HTTP2 = new(http.HTTP2Config)
	}
	t.HTTP2.SendPingTimeout = shorter(t.HTTP2.SendPingTimeout, silence)
	t.HTTP2.PingTimeout = shorter(t.HTTP2.PingTimeout, answer)
	t.HTTP2.WriteByteTimeout = shorter(t.HTTP2.WriteByteTimeout, 5*time.Second)
}

// shorter returns the shorter of two limits; zero for the first means no limit.
func shorter(limit, other time.Duration) time.Duration { return min(cmp.Or(limit, other), other) }

// RoundTrip implements [http.RoundTripper], for a middleware that wraps it. It notes how far an attempt
// comes by its exchange with the gateway alone: a middleware may send requests of its own, to other hosts.
func (p *Pools) RoundTrip(req *http.Request) (*http.Response, error) {
	a, ok := req.Context().Value(attemptKey{}).(*attempt)
	if !ok || req.URL.Host != a.host {
		return p.of(req).RoundTrip(req)
	}
	e := &exchange{attempt: a}
	return e.send(p, req.WithContext(e.traced(req.Context())))
}

// of returns the pool for a request.
func (p *Pools) of(req *http.Request) *http.Transport {
	if req.Method == http.MethodPost {
		return p.Invoices
	}
	return p.Reads
}

// Refresh closes the idle connections of reads, at most once a second: a new connection may reach a host
// that works.
func (p *Pools) Refresh() {
	p.mu.Lock()
	now := time.Now()
	isDue := now.Sub(p.refreshed) >= refreshInterval
	if isDue {
		p.refreshed = now
	}
	p.mu.Unlock()
	if isDue {
		p.Reads.CloseIdleConnections()
	}
}

// CloseIdleConnections closes the idle connections of both pools.
func (p *Pools) CloseIdleConnections() {
	p.Invoices.CloseIdleConnections()
	p.Reads.CloseIdleConnections()
}
