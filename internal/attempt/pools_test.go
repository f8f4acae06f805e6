package attempt_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/attempt"
)

// Nobody who holds a Transport can close connections that others use.
func TestTransport_hasOneMethod(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 1, reflect.TypeFor[*attempt.Transport]().NumMethod())
}

func TestNewPools_own(t *testing.T) {
	t.Parallel()
	got := attempt.NewPools(nil).Reads()
	assert.EqualValues(t, tls.VersionTLS12, got.TLSClientConfig.MinVersion)
	assert.False(t, got.TLSClientConfig.InsecureSkipVerify)
	assert.EqualValues(t, 256<<10, got.MaxResponseHeaderBytes)
	assert.NotNil(t, got.Proxy, "the proxy of the environment is used")
	assert.Equal(t, []any{90 * time.Second, 10 * time.Second, 256, 64}, []any{got.IdleConnTimeout, got.TLSHandshakeTimeout, got.MaxIdleConns, got.MaxIdleConnsPerHost})
}

// The settings of the pools, by those of the transport that they are made of.
func TestNewPools_settings(t *testing.T) {
	t.Parallel()
	cache := tls.NewLRUClientSessionCache(1)
	own := http.HTTP2Config{WriteByteTimeout: 5 * time.Second}
	short := http.HTTP2Config{SendPingTimeout: 1, PingTimeout: 2, WriteByteTimeout: 3}
	long := http.HTTP2Config{SendPingTimeout: time.Hour, WriteByteTimeout: time.Hour}
	for _, tt := range []struct {
		name  string
		given *http.Transport
		http2 http.HTTP2Config
		idle  [2]time.Duration // of reads, and of invoices
	}{
		{"the client's own", nil, own, [2]time.Duration{90 * time.Second, 2 * time.Second}},
		{"a caller's without settings", &http.Transport{}, own, [2]time.Duration{90 * time.Second, 2 * time.Second}},
		{"a caller's shorter times", &http.Transport{IdleConnTimeout: time.Second, HTTP2: &short}, short, [2]time.Duration{time.Second, time.Second}},
		{"a caller's longer times", &http.Transport{IdleConnTimeout: time.Hour, HTTP2: &long}, http.HTTP2Config{SendPingTimeout: time.Hour, WriteByteTimeout: 5 * time.Second}, [2]time.Duration{90 * time.Second, 2 * time.Second}},
	} {
		p := attempt.NewPools(tt.given)
		assert.Equal(t, tt.http2, *p.Reads().HTTP2, tt.name)
		assert.Equal(t, tt.http2, *p.Invoices().HTTP2, tt.name)
		assert.Equal(t, tt.idle, [2]time.Duration{p.Reads().IdleConnTimeout, p.Invoices().IdleConnTimeout}, tt.name)
		assert.Equal(t, -1, p.Invoices().MaxIdleConnsPerHost, "over HTTP/1.1 a connection carries one invoice")
		require.NotNil(t, p.Reads().TLSClientConfig.ClientSessionCache)
		assert.Same(t, p.Reads().TLSClientConfig.ClientSessionCache, p.Invoices().TLSClientConfig.ClientSessionCache)
	}
	assert.Equal(t, time.Hour, long.WriteByteTimeout, "the caller's is not changed")
	p := attempt.NewPools(&http.Transport{TLSClientConfig: &tls.Config{ClientSessionCache: cache}})
	assert.Same(t, cache, p.Reads().TLSClientConfig.ClientSessionCache)
}

// A resumed session would skip a check of the caller, so such a client resumes none.
func TestNewPools_sessions(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.StartTLS()
	t.Cleanup(server.Close)
	trusted := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for name, tt := range map[string]struct {
		set     func(*tls.Config)
		resumes bool
	}{
		"no check":                   {func(*tls.Config) {}, true},
		"a check of each connection": {func(c *tls.Config) { c.VerifyConnection = func(tls.ConnectionState) error { return nil } }, true},
		"a pin": {func(c *tls.Config) {
			c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return nil }
		}, false},
		"a certificate of the client that changes": {func(c *tls.Config) {
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return new(tls.Certificate), nil }
		}, false},
		"no check of the chain": {func(c *tls.Config) { c.InsecureSkipVerify = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{RootCAs: trusted}
			tt.set(config)
			p := attempt.NewPools(&http.Transport{TLSClientConfig: config})
			for i := range 3 {
				resp, _, failure := send(newTransport(p), newRequest(t, t.Context(), http.MethodPost, server.URL))
				require.Nil(t, failure)
				assert.Equal(t, tt.resumes && i > 0, resp.TLS.DidResume)
			}
		})
	}
}

// The pools of a caller's transport speak the version of HTTP that it speaks, and HTTP/2 always by net/http.
func TestNewPools_version(t *testing.T) {
	t.Parallel()
	entries := func(names ...string) map[string]func(string, *tls.Conn) http.RoundTripper {
		all := map[string]func(string, *tls.Conn) http.RoundTripper{}
		for _, name := range names {
			all[name] = func(string, *tls.Conn) http.RoundTripper { // as x/net leaves it
				return tripper(func(*http.Request) (*http.Response, error) { return nil, syscall.ENOSYS })
			}
		}
		return all
	}
	protocols := func(http2 bool) *http.Protocols {
		p := new(http.Protocols)
		p.SetHTTP1(true)
		p.SetHTTP2(http2)
		return p
	}
	for _, tt := range []struct {
		name  string
		given *http.Transport
		want  string
	}{
		{"the client's own", nil, "HTTP/2.0"},
		{"no settings", &http.Transport{}, "HTTP/2.0"},
		{"a clone of the default", http.DefaultTransport.(*http.Transport).Clone(), "HTTP/2.0"},
		{"a TLS configuration, with which net/http speaks HTTP/1.1", &http.Transport{TLSClientConfig: &tls.Config{}}, "HTTP/1.1"},
		{"one with ForceAttemptHTTP2", &http.Transport{TLSClientConfig: &tls.Config{}, ForceAttemptHTTP2: true}, "HTTP/2.0"},
		{"no entry, which turns HTTP/2 off", &http.Transport{TLSNextProto: entries()}, "HTTP/1.1"},
		{"an entry of another protocol, which turns it off too", &http.Transport{TLSNextProto: entries("x"), ForceAttemptHTTP2: true}, "HTTP/1.1"},
		{"another HTTP/2", &http.Transport{TLSNextProto: entries("h2"), TLSClientConfig: &tls.Config{NextProtos: []string{"h2", "http/1.1"}}}, "HTTP/2.0"},
		{"another HTTP/2 beside another protocol", &http.Transport{TLSNextProto: entries("h2", "x")}, "HTTP/2.0"},
		{"another HTTP/2, with the protocols named", &http.Transport{TLSNextProto: entries("h2"), Protocols: protocols(true)}, "HTTP/2.0"},
		{"another HTTP/2, which net/http prefers to the protocols", &http.Transport{TLSNextProto: entries("h2"), Protocols: protocols(false)}, "HTTP/2.0"},
		{"HTTP/1.1 only", &http.Transport{Protocols: protocols(false)}, "HTTP/1.1"},
		{"both versions", &http.Transport{Protocols: protocols(true)}, "HTTP/2.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for speaksHTTP2, want := range map[bool]string{true: tt.want, false: "HTTP/1.1"} {
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
				server.EnableHTTP2 = speaksHTTP2
				server.StartTLS()
				t.Cleanup(server.Close)
				p := attempt.NewPools(tt.given)
				t.Cleanup(p.CloseIdleConnections)
				for _, next := range []*http.Transport{p.Reads(), p.Invoices()} {
					next.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
				}
				for _, method := range []string{http.MethodGet, http.MethodPost} {
					_, result, failure := send(newTransport(p), newRequest(t, t.Context(), method, server.URL))
					require.Nil(t, failure)
					assert.Equal(t, want, string(result.Text()))
				}
			}
		})
	}
}

// A pipe notes that it was closed.
type pipe struct {
	net.Conn
	closed *atomic.Int32
}

func (p pipe) Close() error { p.closed.Add(1); return p.Conn.Close() }

// A served is a server in memory, with a transport to it. It counts its connections.
type served struct {
	*http.Transport
	dialed, closed atomic.Int32
	conns          chan net.Conn
}

// certified returns the settings of TLS of a server and of its clients.
var certified = sync.OnceValues(func() (server, client *tls.Config) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS, &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
})

// serve begins a server with TLS that speaks HTTP/2, or HTTP/1.1. Its handler learns the number of its connection.
func serve(t *testing.T, http2 bool, handle func(w http.ResponseWriter, r *http.Request, connection int32)) *served {
	type number struct{}
	ours, theirs := certified()
	s := &served{conns: make(chan net.Conn)}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	server := http.Server{
		Protocols: protocols,
		TLSConfig: &tls.Config{Certificates: ours.Certificates},
		ErrorLog:  log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, number{}, s.dialed.Add(1))
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			handle(w, r, r.Context().Value(number{}).(int32))
		}),
	}
	dial := func(context.Context, string, string) (net.Conn, error) {
		client, peer := net.Pipe()
		s.conns <- peer
		return pipe{client, &s.closed}, nil
	}
	s.Transport = &http.Transport{Protocols: protocols, TLSClientConfig: theirs.Clone(), DialContext: dial}
	go func() { _ = server.ServeTLS(s, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		time.Sleep(10 * time.Second) // two ends that close at once wait 5 seconds for each other, to say so
	})
	return s
}

func (s *served) Accept() (net.Conn, error) {
	conn, ok := <-s.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (s *served) Close() error   { close(s.conns); return nil }
func (s *served) Addr() net.Addr { return &net.TCPAddr{} }

// answers is a handler that does what the path says, and tells the number of its connection.
func answers(w http.ResponseWriter, r *http.Request, connection int32) {
	flush := func() { _ = http.NewResponseController(w).Flush() }
	what := strings.TrimPrefix(r.URL.Path, "/")
	if status, err := strconv.Atoi(what); err == nil {
		w.Header().Set("Connection-Number", strconv.Itoa(int(connection)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "a body")
		return
	}
	if after, err := time.ParseDuration(what); err == nil {
		select {
		case <-time.After(after):
		case <-r.Context().Done():
		}
	}
	w.Header().Set("Connection-Number", strconv.Itoa(int(connection)))
	switch what {
	case "cut":
		panic(http.ErrAbortHandler)
	case "cut within the body":
		w.Header().Set("Content-Length", "9")
		_, _ = io.WriteString(w, "half")
		flush()
		panic(http.ErrAbortHandler)
	case "silent within the body of 503":
		w.WriteHeader(503)
		flush()
		<-r.Context().Done()
	case "too large":
		_, _ = io.WriteString(w, strings.Repeat("x", maxBody+1))
	case "silent within the body":
		flush()
		<-r.Context().Done()
	}
}

// ask makes one attempt, and the path tells the server how to answer.
func ask(t *testing.T, pools *attempt.Pools, method, what string) (*http.Response, *attempt.Result, *attempt.Error) {
	return send(newTransport(pools), newRequest(t, t.Context(), method, "https://gateway.test/"+what))
}

// Over HTTP/1.1 each POST has a connection of its own, which is closed, and reads share one.
func TestPools_http1(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, false, answers)
		pools := attempt.NewPools(s.Transport)
		for i, tt := range []struct {
			method         string
			dialed, closed int32
		}{
			{http.MethodPost, 1, 1},
			{http.MethodGet, 2, 1},
			{http.MethodPost, 3, 2},
			{http.MethodGet, 3, 2},
			{http.MethodPost, 4, 3},
		} {
			_, _, failure := ask(t, pools, tt.method, "200")
			require.Nil(t, failure)
			synctest.Wait()
			assert.Equal(t, tt.dialed, s.dialed.Load(), "request %d", i)
			assert.Equal(t, tt.closed, s.closed.Load(), "request %d", i)
		}
		pools.CloseIdleConnections()
		synctest.Wait()
		assert.EqualValues(t, 4, s.closed.Load())

		resp, err := pools.RoundTrip(newRequest(t, t.Context(), http.MethodGet, "https://gateway.test/200"))
		require.NoError(t, err, "a request that is no part of an attempt")
		_ = resp.Body.Close()
		pools.CloseIdleConnections()
	})
}

// Over HTTP/2 POSTs share a connection, but never with reads, until the idle ones are closed.
func TestPools_http2(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pools := attempt.NewPools(serve(t, true, answers).Transport)
		defer pools.CloseIdleConnections()
		use := func(method, want string) {
			resp, result, failure := ask(t, pools, method, "200")
			require.Nil(t, failure)
			assert.Equal(t, want, resp.Header.Get("Connection-Number"))
			assert.NoError(t, result.Ambiguous)
		}
		for range 3 {
			use(http.MethodPost, "1")
			use(http.MethodGet, "2")
		}
		pools.CloseIdleConnections()
		use(http.MethodPost, "3")
		use(http.MethodGet, "4")
	})
}

// Over HTTP/2, a request that fails makes later ones use another connection, and so does an invoice that takes more
// than three seconds. Over HTTP/1.1, where an invoice has its own, a read that fails closes idle connections.
func TestPools_leave(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what, read, invoice string        // which connection a later request has
		lasts               time.Duration // the caller's context; 0 for no deadline
		cancels             bool          // the caller cancels instead
	}{
		{what: "200", read: "same", invoice: "same"},
		{what: "429", read: "same", invoice: "same"},
		{what: "500", read: "same", invoice: "same"},
		{what: "501", read: "same", invoice: "same"},
		{what: "502", read: "another", invoice: "another"},
		{what: "503", read: "another", invoice: "another"},
		{what: "504", read: "another", invoice: "another"},
		{what: "505", read: "same", invoice: "same"},
		{what: "cut", read: "another", invoice: "another"},
		{what: "cut within the body", read: "another", invoice: "another"},
		{what: "silent within the body", read: "another", invoice: "another"},
		{what: "silent within the body of 503", read: "another", invoice: "another"},
		{what: "too large", read: "same", invoice: "same"},
		{what: "2.999s", read: "same", invoice: "same"},
		{what: "3.001s", read: "same", invoice: "another"},
		{what: "1h", read: "another", invoice: "another"},
		{what: "1h", read: "another", invoice: "another", lasts: 2 * time.Second},
		{what: "1h", read: "same", invoice: "another", lasts: 2 * time.Second, cancels: true}, // which does not end an invoice
	} {
		for method, want := range map[string]string{http.MethodGet: tt.read, http.MethodPost: tt.invoice} {
			for _, http2 := range []bool{true, false} {
				for _, wrapped := range []bool{true, false} {
					name := fmt.Sprintf("%s %s, HTTP/2 %t, a middleware %t, the caller %v %t", method, tt.what, http2, wrapped, tt.lasts, tt.cancels)
					inBubble(t, name, func(t *testing.T) {
						s := serve(t, http2, answers)
						pools := attempt.NewPools(s.Transport)
						defer pools.CloseIdleConnections()
						reads, invoices := pools.Reads(), pools.Invoices()
						transport := newTransport(pools)
						if wrapped {
							transport.Next = tripper(func(req *http.Request) (*http.Response, error) { return pools.RoundTrip(req) })
						}
						ctx, cancel := t.Context(), context.CancelFunc(func() {})
						if tt.cancels {
							ctx, cancel = context.WithCancel(ctx)
							time.AfterFunc(tt.lasts, cancel)
						} else if tt.lasts > 0 {
							ctx, cancel = context.WithTimeout(ctx, tt.lasts)
						}
						defer cancel()
						_, _, _ = send(transport, newRequest(t, ctx, method, "https://gateway.test/"+url.PathEscape(tt.what)))
						time.Sleep(drainTime)
						if !http2 {
							assert.Same(t, reads, pools.Reads())
							assert.Same(t, invoices, pools.Invoices())
							if method == http.MethodPost || tt.cancels || tt.what == "too large" {
								return // it has its own, or net/http closes it
							}
						}
						resp, _, failure := send(transport, newRequest(t, t.Context(), method, "https://gateway.test/200ms"))
						require.Nil(t, failure)
						got := map[string]string{"1": "same", "2": "another"}[resp.Header.Get("Connection-Number")]
						assert.Equal(t, want, got)
						assert.Equal(t, map[string]int32{"same": 0, "another": 1}[want], s.closed.Load())
						assert.Equal(t, want == "another" && method == http.MethodGet && http2, reads != pools.Reads())
						assert.Equal(t, want == "another" && method == http.MethodPost, invoices != pools.Invoices())
					})
				}
			}
		}
	}
}

// drainTime is how long a connection may stay open that was left.
const drainTime = time.Second + 1

// Connections are left at most once a second.
func TestPools_leaveInterval(t *testing.T) {
	t.Parallel()
	for http2, name := range map[bool]string{true: "HTTP/2", false: "HTTP/1.1"} {
		inBubble(t, name, func(t *testing.T) {
			s := serve(t, http2, answers)
			pools := attempt.NewPools(s.Transport)
			defer pools.CloseIdleConnections()
			for i, tt := range []struct {
				wait time.Duration
				want int32 // connections
			}{{0, 1}, {0, 2}, {time.Second - 1, 2}, {1, 2}, {0, 3}, {time.Second, 3}, {0, 4}} {
				time.Sleep(tt.wait)
				_, _, failure := ask(t, pools, http.MethodGet, "503")
				require.Nil(t, failure)
				assert.Equal(t, tt.want, s.dialed.Load(), "request %d", i)
			}
		})
	}
}

// Requests that are under way stay on the connection that later ones have left. It closes when the last one has ended,
// with a response or without.
func TestPools_underWay(t *testing.T) {
	t.Parallel()
	for method, closed := range map[string]int32{http.MethodGet: 1, http.MethodPost: 2} { // no connection of invoices is idle for long
		inBubble(t, method, func(t *testing.T) {
			s := serve(t, true, answers)
			pools := attempt.NewPools(s.Transport)
			defer pools.CloseIdleConnections()
			var all sync.WaitGroup
			request := func(what string) {
				resp, _, failure := ask(t, pools, method, what)
				if what == "1h" {
					assert.NotNil(t, failure)
				} else if assert.Nil(t, failure) && what == "10s" {
					assert.Equal(t, "1", resp.Header.Get("Connection-Number"))
				}
			}
			request("200")
			for _, what := range []string{"10s", "1h"} {
				all.Go(func() { request(what) })
			}
			synctest.Wait()
			request("503")
			for i := range 9 {
				resp, _, failure := ask(t, pools, method, "1s")
				require.Nil(t, failure)
				assert.Equal(t, "2", resp.Header.Get("Connection-Number"), "request %d", i)
			}
			assert.Zero(t, s.closed.Load())
			all.Wait()
			time.Sleep(drainTime)
			assert.Equal(t, closed, s.closed.Load())
			assert.EqualValues(t, 2, s.dialed.Load())
		})
	}
}

// A middleware that tries a read again, over HTTP/2, has another connection.
func TestPools_middlewareRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pools := attempt.NewPools(serve(t, true, answers).Transport)
		defer pools.CloseIdleConnections()
		transport := newTransport(pools)
		transport.Next = tripper(func(req *http.Request) (*http.Response, error) {
			first, err := pools.RoundTrip(req)
			require.NoError(t, err)
			_ = first.Body.Close()
			req.URL.Path = "/200"
			return pools.RoundTrip(req)
		})
		resp, _, failure := send(transport, newRequest(t, t.Context(), http.MethodGet, "https://gateway.test/503"))
		require.Nil(t, failure)
		assert.Equal(t, "2", resp.Header.Get("Connection-Number"))
	})
}

// Over HTTP/1.1, the connection to a sick host is closed as well if other requests begin before its response has ended.
func TestPools_sickHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, false, func(w http.ResponseWriter, r *http.Request, connection int32) {
			if r.URL.Path == "/503" {
				w.WriteHeader(503)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Second / 2)
				_, _ = io.WriteString(w, "a body")
				return
			}
			answers(w, r, connection)
		})
		pools := attempt.NewPools(s.Transport)
		defer pools.CloseIdleConnections()
		read := func(what string) string {
			resp, _, failure := ask(t, pools, http.MethodGet, what)
			require.Nil(t, failure)
			return resp.Header.Get("Connection-Number")
		}
		var sick sync.WaitGroup
		sick.Go(func() { read("503") })
		synctest.Wait()
		assert.Equal(t, "2", read("200"))
		sick.Wait()
		assert.NotEqual(t, "1", read("200"))
	})
}

// MaxConnsPerHost holds over HTTP/1.1, whatever fails.
func TestPools_maxConnsPerHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, false, answers)
		s.MaxConnsPerHost = 4
		pools := attempt.NewPools(s.Transport)
		var all sync.WaitGroup
		for range 40 {
			time.Sleep(time.Second / 2)
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				for _, what := range []string{"503", "cut", "10s"} {
					all.Go(func() { _, _, _ = ask(t, pools, method, what) })
				}
			}
			synctest.Wait()
			assert.LessOrEqual(t, s.dialed.Load()-s.closed.Load(), int32(8), "four for reads, and four for invoices")
		}
		all.Wait()
		pools.CloseIdleConnections()
	})
}

// Requests that a middleware sends by itself are no part of the exchange with the gateway.
func TestPools_middleware(t *testing.T) {
	t.Parallel()
	times := func(n int, address string) func(*http.Request, http.RoundTripper) {
		return func(req *http.Request, next http.RoundTripper) {
			for range n {
				own, err := http.NewRequestWithContext(req.Context(), http.MethodPost, address, strings.NewReader("{}"))
				require.NoError(t, err)
				if resp, err := next.RoundTrip(own); err == nil {
					_ = resp.Body.Close()
				}
			}
		}
	}
	for _, tt := range []struct {
		name   string
		before func(req *http.Request, next http.RoundTripper)
	}{
		{"it dumps the request", func(req *http.Request, _ http.RoundTripper) {
			_, err := httputil.DumpRequestOut(req, true)
			require.NoError(t, err)
		}},
		{"it asks another host for a signature", times(1, "http://signer.test/")},
		{"it asks the gateway for tokens", times(4, "http://gateway.test/token")},
		{"what it asks for breaks", times(1, "http://broken.test/")},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for _, answer := range []string{"whole", "early", "broken"} {
				inBubble(t, method+" "+tt.name+", the response is "+answer, func(t *testing.T) {
					pools := attempt.NewPools(over(t, nil))
					for _, next := range []*http.Transport{pools.Invoices(), pools.Reads()} {
						next.RegisterProtocol("http", tripper(func(req *http.Request) (*http.Response, error) {
							if hooks := httptrace.ContextClientTrace(req.Context()); hooks != nil {
								hooks.GetConn("")
								hooks.GotConn(httptrace.GotConnInfo{})
								isEarly := answer == "early" && req.URL.Path == "/a" || req.URL.Host != "gateway.test"
								if isEarly && hooks.GotFirstResponseByte != nil {
									hooks.GotFirstResponseByte()
								}
								if hooks.WroteHeaders != nil {
									hooks.WroteHeaders()
									hooks.GotFirstResponseByte()
								}
								hooks.WroteRequest(httptrace.WroteRequestInfo{})
							}
							if req.URL.Host == "broken.test" || answer == "broken" && req.URL.Path == "/a" {
								return nil, io.EOF
							}
							return &http.Response{StatusCode: 201, Body: http.NoBody}, req.Context().Err()
						}))
					}
					transport := newTransport(nil)
					transport.Pools = pools
					transport.Next = tripper(func(req *http.Request) (*http.Response, error) {
						tt.before(req, pools)
						return pools.RoundTrip(req)
					})
					_, result, failure := send(transport, newRequest(t, t.Context(), method, "http://gateway.test/a"))
					if answer == "broken" {
						require.NotNil(t, failure)
						assert.Equal(t, attempt.Wait, failure.Phase)
						return
					}
					require.Nil(t, failure)
					assert.Equal(t, method == http.MethodPost && answer == "early", result.Ambiguous != nil)
				})
			}
		}
	}
}

// A middleware sends an invoice once. It may send it again if the first found no connection, or if its token was not
// accepted.
func TestPools_sentTwice(t *testing.T) {
	t.Parallel()
	post := func(req *http.Request, next http.RoundTripper, text string) (*http.Response, error) {
		again, err := http.NewRequestWithContext(req.Context(), http.MethodPost, req.URL.String(), strings.NewReader(text))
		if err != nil {
			return nil, err
		}
		return next.RoundTrip(again)
	}
	until := func(isLast func(*http.Response, error) bool) func(*http.Request, http.RoundTripper, string) (*http.Response, error) {
		return func(req *http.Request, next http.RoundTripper, text string) (resp *http.Response, err error) {
			for range 4 {
				if resp, err = post(req, next, text); isLast(resp, err) {
					break
				}
			}
			return resp, err
		}
	}
	retries := until(func(resp *http.Response, err error) bool { return err == nil && resp.StatusCode == 201 })
	const refused = "a middleware or transport has sent the invoice before: it may exist already"
	for _, tt := range []struct {
		name       string
		middleware func(*http.Request, http.RoundTripper, string) (*http.Response, error)
		answers    []string // of the server; "" for none
		noDials    int      // dials that fail
		sent       int32
		err        string // of the attempt
		ambiguous  bool
	}{
		{name: "it sends once", middleware: retries, answers: []string{"201"}, sent: 1},
		{name: "it tries again after 503", middleware: retries, answers: []string{"503", "201"}, sent: 1, err: refused},
		{name: "it tries again after 429", middleware: retries, answers: []string{"429", "201"}, sent: 1, err: refused},
		{name: "it tries again after 403", middleware: retries, answers: []string{"403", "201"}, sent: 1, err: refused},
		{name: "it tries again without a response", middleware: retries, answers: []string{"", "201"}, sent: 1, err: refused},
		{name: "it tries again without a connection", middleware: retries, answers: []string{"201"}, noDials: 3, sent: 1},
		{name: "it renews a token after 401", middleware: retries, answers: []string{"401", "201"}, sent: 2},
		{name: "it renews a token of a proxy after 407", middleware: retries, answers: []string{"407", "201"}, sent: 2},
		{name: "it renews a token twice", middleware: retries, answers: []string{"401", "401", "201"}, sent: 3},
		{name: "it renews a token, and tries again after 503", middleware: retries, answers: []string{"401", "503", "201"}, sent: 2, err: refused},
		{name: "it returns a 401 that a request without a response followed", middleware: func(req *http.Request, next http.RoundTripper, text string) (*http.Response, error) {
			first, err := post(req, next, text)
			_, _ = post(req, next, text)
			return first, err
		}, answers: []string{"401", ""}, sent: 2, ambiguous: true},
		{name: "it sends two at once", middleware: func(req *http.Request, next http.RoundTripper, text string) (*http.Response, error) {
			var second error
			var both sync.WaitGroup
			both.Go(func() { _, second = post(req, next, text) })
			_, first := post(req, next, text)
			both.Wait()
			return nil, cmp.Or(first, second)
		}, answers: []string{"1s"}, sent: 1, err: refused},
		{name: "it reads what was created", middleware: func(req *http.Request, next http.RoundTripper, text string) (*http.Response, error) {
			for _, address := range []string{req.URL.String(), "https://gateway.test/token"} {
				ask, err := http.NewRequestWithContext(req.Context(), http.MethodGet, address, nil)
				require.NoError(t, err)
				resp, err := next.RoundTrip(ask)
				require.NoError(t, err)
				_ = resp.Body.Close()
			}
			return post(req, next, text)
		}, answers: []string{"201"}, sent: 1},
	} {
		for _, http2 := range []bool{true, false} {
			inBubble(t, fmt.Sprintf("%s, HTTP/2 %t", tt.name, http2), func(t *testing.T) {
				var sent, dials atomic.Int32
				s := serve(t, http2, func(w http.ResponseWriter, r *http.Request, connection int32) {
					if r.Method == http.MethodPost {
						r.URL.Path = "/" + cmp.Or(tt.answers[sent.Add(1)-1], "cut")
					}
					answers(w, r, connection)
				})
				dial := s.DialContext
				s.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					if dials.Add(1) <= int32(tt.noDials) {
						return nil, syscall.ECONNREFUSED
					}
					return dial(ctx, network, address)
				}
				pools := attempt.NewPools(s.Transport)
				defer pools.CloseIdleConnections()
				transport := newTransport(pools)
				transport.Next = tripper(func(req *http.Request) (*http.Response, error) {
					text, err := io.ReadAll(req.Body)
					require.NoError(t, err)
					return tt.middleware(req, pools, string(text))
				})
				resp, result, failure := send(transport, newRequest(t, t.Context(), http.MethodPost, "https://gateway.test/a"))
				assert.Equal(t, tt.sent, sent.Load())
				if tt.err != "" {
					require.NotNil(t, failure)
					assert.EqualError(t, failure, tt.err)
					assert.False(t, failure.Unread)
					return
				}
				require.Nil(t, failure)
				assert.Equal(t, tt.answers[len(tt.answers)-1] == "201", resp.StatusCode == 201)
				assert.Equal(t, tt.ambiguous, result.Ambiguous != nil)
			})
		}
	}
}

// A RoundTripper of the caller's own that sends an invoice twice is seen by its trace, also through a proxy. Requests to
// other hosts do not count, nor those to the gateway before the invoice, such as for a token.
func TestTransport_sentTwice(t *testing.T) {
	t.Parallel()
	post := func(req *http.Request, next http.RoundTripper, address, text string) *http.Response {
		again, err := http.NewRequestWithContext(req.Context(), http.MethodPost, address, strings.NewReader(text))
		require.NoError(t, err)
		resp, err := next.RoundTrip(again)
		if err != nil {
			return nil
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp
	}
	type trip = func(*http.Request, http.RoundTripper) *http.Response
	copies := func(before ...string) trip { // sends the invoice there, and then a copy where it belongs
		return func(req *http.Request, next http.RoundTripper) *http.Response {
			text, _ := io.ReadAll(req.Body)
			for _, address := range before {
				post(req, next, address, string(text))
			}
			return post(req, next, req.URL.String(), string(text))
		}
	}
	for _, tt := range []struct {
		name  string
		trip  trip
		proxy bool
		want  bool // it is seen
	}{
		{"it sends once", func(req *http.Request, next http.RoundTripper) *http.Response {
			resp, _ := next.RoundTrip(req)
			return resp
		}, false, false},
		{"it sends a copy once", copies(), false, false},
		{"it tries again after 503", copies("http://gateway.test/503"), false, true},
		{"it tries again through a proxy", copies("http://gateway.test/503"), true, true},
		{"it tries again without a response", copies("http://gateway.test/cut"), false, true},
		{"it renews a token after 401", copies("http://gateway.test/401"), false, true},
		{"it asks another host for a signature", copies("http://signer.test/200"), false, false},
		{"it copies what it sends, and sends it again", func(req *http.Request, next http.RoundTripper) *http.Response {
			var copied strings.Builder
			req.Body = io.NopCloser(io.TeeReader(req.Body, &copied))
			resp, err := next.RoundTrip(req)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			return post(req, next, req.URL.String(), copied.String())
		}, false, true},
		{"it asks the gateway for a token before", func(req *http.Request, next http.RoundTripper) *http.Response {
			post(req, next, "http://gateway.test/200", "")
			resp, _ := next.RoundTrip(req)
			return resp
		}, false, false},
	} {
		for _, http2 := range []bool{true, false} {
			if http2 && tt.proxy {
				continue
			}
			inBubble(t, fmt.Sprintf("%s, HTTP/2 %t", tt.name, http2), func(t *testing.T) {
				s := serve(t, http2, answers)
				defer s.CloseIdleConnections()
				if tt.proxy {
					s.Proxy = http.ProxyURL(&url.URL{Scheme: "https", Host: "proxy.test:3128"})
				}
				trip := tripper(func(req *http.Request) (*http.Response, error) {
					return tt.trip(req, tripper(func(req *http.Request) (*http.Response, error) {
						if req.URL.Scheme = "https"; tt.proxy {
							req.URL.Scheme = "http" // which the proxy gets as it is
						}
						return s.RoundTrip(req)
					})), nil
				})
				resp, result, failure := send(newTransport(trip), newRequest(t, t.Context(), http.MethodPost, "http://gateway.test/201"))
				require.Nil(t, failure)
				assert.Equal(t, 201, resp.StatusCode)
				assert.Equal(t, tt.want, result.Ambiguous != nil)
			})
		}
	}
}
