package bench

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"time"
)

// A Setting is how long the calls of all clients may take.
type Setting struct {
	Name     string        // bare or used
	Deadline time.Duration // of each call; 0 is none
}

// Settings returns both: bare is what a library does by itself, which is nothing in most of
// them, and used is as their users are told to run them.
func Settings() []Setting { return []Setting{{"bare", 0}, {"used", 15 * time.Second}} }

// memory responds to every request from memory.
type memory struct{ body string }

func (m memory) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(m.body)), ContentLength: int64(len(m.body)), Request: req,
	}, nil
}

// InMemory returns a Read of a client whose requests go nowhere.
func InMemory(p Peer, s Setting) Read {
	t := &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}} // HTTP/1 only
	t.RegisterProtocol("https", memory{p.Response})
	return p.New("https://service.example", &http.Client{Transport: t}, s.Deadline)
}
