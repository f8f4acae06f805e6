package attempt

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// NewTransport returns a transport with connections of its own, which are closed after
// having been idle for so long: TLS 1.2 or later, bounded headers, and pings and a write
// timeout that find a dead HTTP/2 connection.
func NewTransport(idle time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
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

// SingleUse returns a copy of t whose HTTP/1 connections each carry one request: a peer
// that sends a response too many, or too late, cannot have it taken for that of another
// request. HTTP/2, where responses have numbers, shares its connections.
func SingleUse(t *http.Transport) *http.Transport {
	c := t.Clone()
	c.MaxIdleConnsPerHost = -1
	return c
}

// A Split sends each POST through Posts, and any other request through Others.
type Split struct{ Posts, Others *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (s *Split) RoundTrip(req *http.Request) (*http.Response, error) {
	through := s.Others
	if req.Method == http.MethodPost {
		through = s.Posts
	}
	return through.RoundTrip(req)
}

// CloseIdleConnections closes the idle connections of both transports.
func (s *Split) CloseIdleConnections() {
	s.Posts.CloseIdleConnections()
	s.Others.CloseIdleConnections()
}
