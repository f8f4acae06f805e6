package attempt

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// tlsSessions is how many sessions of TLS a transport remembers, one for each server: the
// gateway, and a proxy.
const tlsSessions = 4

// NewTransport returns a transport with connections of its own, which are closed after
// having been idle for so long: TLS 1.2 or later, whose sessions are resumed, bounded
// headers, and pings and a write timeout that find a dead HTTP/2 connection.
func NewTransport(idle time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: dialer.DialContext,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(tlsSessions),
		},
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second, WriteByteTimeout: 10 * time.Second,
		},
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        idle,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// A Split sends each POST through Invoices, and any other request through Shared, or what has taken
// its place by [Split.Renew].
type Split struct {
	Invoices *http.Transport
	Shared   *http.Transport

	current atomic.Pointer[generation] // nil before the first Renew
}

// A generation is a transport and how many attempts use it. A retired one that none uses keeps no
// connections.
type generation struct {
	transport *http.Transport
	made      time.Time
	users     atomic.Int64
	retired   atomic.Bool
}

// NewSplit returns a Split of transports of [NewTransport] with these idle times, which
// share nothing but the sessions of TLS.
func NewSplit(invoices, shared time.Duration) *Split {
	t := NewTransport(shared)
	return &Split{Invoices: Dedicated(t, invoices), Shared: t}
}

// Dedicated returns a copy of t that sends each request over HTTP/1 on a connection of its own: a
// peer that sends a response too many, or too late, cannot have it taken for that of another
// request. Connections of HTTP/2 are shared, and closed after having been idle for so long: there
// the stream tells whose response it is.
//
// It notes which attempt's handshake has asked for a certificate.
func Dedicated(t *http.Transport, idle time.Duration) *http.Transport {
	t = t.Clone()
	t.MaxIdleConnsPerHost, t.IdleConnTimeout = -1, idle
	certificates := t.TLSClientConfig
	if certificates == nil {
		return t
	}
	choose := certificates.GetClientCertificate
	certificates.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if a, ok := asked.Context().Value(attemptKey{}).(*attempt); ok && asked.Version == tls.VersionTLS13 {
			a.certified.Store(true)
		}
		if choose != nil {
			return choose(asked)
		}
		return firstSupported(certificates.Certificates, asked), nil
	}
	return t
}

// firstSupported chooses a certificate as crypto/tls does: an empty one for none.
func firstSupported(all []tls.Certificate, asked *tls.CertificateRequestInfo) *tls.Certificate {
	for i := range all {
		if asked.SupportsCertificate(&all[i]) == nil {
			return &all[i]
		}
	}
	return &tls.Certificate{}
}

// RoundTrip implements [http.RoundTripper].
func (s *Split) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost {
		return s.Invoices.RoundTrip(req)
	}
	return s.generation().transport.RoundTrip(req)
}

// generation returns what has the place of Shared.
func (s *Split) generation() *generation {
	if g := s.current.Load(); g != nil {
		return g
	}
	s.current.CompareAndSwap(nil, &generation{transport: s.Shared})
	return s.current.Load()
}

// begin begins an attempt of a read. The generation must be ended with it.
func (s *Split) begin() *generation {
	g := s.generation()
	g.users.Add(1)
	return g
}

// end ends an attempt, with all of its response.
func (g *generation) end() {
	if g.users.Add(-1) == 0 && g.retired.Load() {
		g.transport.CloseIdleConnections()
	}
}

// Renew lets later reads have new connections, for which the name of the host is looked up again, unless
// it has done so since a time.
func (s *Split) Renew(since time.Time) {
	old := s.generation()
	if old.made.After(since) {
		return
	}
	if s.current.CompareAndSwap(old, &generation{transport: old.transport.Clone(), made: time.Now()}) {
		old.retired.Store(true)
		old.transport.CloseIdleConnections() // the last attempt closes the others
	}
}

// CloseIdleConnections closes the idle connections of both transports.
func (s *Split) CloseIdleConnections() {
	s.Invoices.CloseIdleConnections()
	s.generation().transport.CloseIdleConnections()
}
