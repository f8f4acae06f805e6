package attempt

import (
	"crypto/tls"
	"net"
	"net/http"
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

// A Split sends each POST through Dedicated, and any other request through Shared.
type Split struct {
	Dedicated *Dedicated
	Shared    *http.Transport
}

// NewSplit returns a Split of transports of [NewTransport] with these idle times, which
// share nothing but the sessions of TLS.
func NewSplit(dedicated, shared time.Duration) *Split {
	s := &Split{Shared: NewTransport(shared)}
	t := s.Shared.Clone()
	t.IdleConnTimeout = dedicated
	s.Dedicated = NewDedicated(t)
	return s
}

// RoundTrip implements [http.RoundTripper].
func (s *Split) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost {
		return s.Dedicated.RoundTrip(req)
	}
	return s.Shared.RoundTrip(req)
}

// CloseIdleConnections closes the idle connections of both transports.
func (s *Split) CloseIdleConnections() {
	s.Dedicated.CloseIdleConnections()
	s.Shared.CloseIdleConnections()
}
