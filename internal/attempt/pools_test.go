package attempt_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"reflect"
	"strconv"
	"strings"
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
	got := attempt.NewPools(nil).Reads
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
	reads := http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second, WriteByteTimeout: 5 * time.Second}
	invoices := http.HTTP2Config{SendPingTimeout: 3 * time.Second, PingTimeout: 2 * time.Second, WriteByteTimeout: 5 * time.Second}
	short := http.HTTP2Config{SendPingTimeout: 1, PingTimeout: 2, WriteByteTimeout: 3}
	long := http.HTTP2Config{SendPingTimeout: time.Hour, PingTimeout: time.Hour}
	for _, tt := range []struct {
		name            string
		given           *http.Transport
		reads, invoices http.HTTP2Config
		idle            [2]time.Duration // of reads, and of invoices
	}{
		{"the client's own", nil, reads, invoices, [2]time.Duration{90 * time.Second, 2 * time.Second}},
		{"a caller's without settings", &http.Transport{}, reads, invoices, [2]time.Duration{0, 2 * time.Second}},
		{"a caller's shorter times", &http.Transport{IdleConnTimeout: time.Second, HTTP2: &short}, short, short, [2]time.Duration{time.Second, time.Second}},
		{"a caller's longer times", &http.Transport{IdleConnTimeout: time.Minute, HTTP2: &long}, reads, invoices, [2]time.Duration{time.Minute, 2 * time.Second}},
	} {
		p := attempt.NewPools(tt.given)
		assert.Equal(t, tt.reads, *p.Reads.HTTP2, tt.name)
		assert.Equal(t, tt.invoices, *p.Invoices.HTTP2, tt.name)
		assert.Equal(t, tt.idle, [2]time.Duration{p.Reads.IdleConnTimeout, p.Invoices.IdleConnTimeout}, tt.name)
		assert.Equal(t, -1, p.Invoices.MaxIdleConnsPerHost, "over HTTP/1.1 a connection carries one invoice")
		require.NotNil(t, p.Reads.TLSClientConfig.ClientSessionCache)
		assert.Same(t, p.Reads.TLSClientConfig.ClientSessionCache, p.Invoices.TLSClientConfig.ClientSessionCache)
	}
	assert.Equal(t, time.Hour, long.SendPingTimeout, "the caller's is not changed")
	p := attempt.NewPools(&http.Transport{TLSClientConfig: &tls.Config{ClientSessionCache: cache}})
	assert.Same(t, cache, p.Reads.TLSClientConfig.ClientSessionCache)
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
				for _, next := range []*http.Transport{p.Reads, p.Invoices} {
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

// counted returns a transport to a server of HTTP/1.1 that answers each request, and how many of its
// connections were dialed and closed.
func counted(t *testing.T) (next *http.Transport, dialed, closed *atomic.Int32) {
	dialed, closed = new(atomic.Int32), new(atomic.Int32)
	next = over(t, func(conn net.Conn) {
		for reader := bufio.NewReader(conn); ; {
			req, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")
		}
	})
	dial := next.DialContext
	next.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed.Add(1)
		conn, err := dial(ctx, network, address)
		return pipe{conn, closed}, err
	}
	return next, dialed, closed
}

// Over HTTP/1.1 each POST has a connection of its own, which is closed, and reads share one.
func TestPools_http1(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		next, dialed, closed := counted(t)
		pools := attempt.NewPools(next)
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
			_, result, failure := try(t, pools, tt.method)
			require.Nil(t, failure)
			assert.Equal(t, "body", string(result.Text()))
			synctest.Wait()
			assert.Equal(t, tt.dialed, dialed.Load(), "request %d", i)
			assert.Equal(t, tt.closed, closed.Load(), "request %d", i)
		}
		pools.CloseIdleConnections()
		synctest.Wait()
		assert.EqualValues(t, 4, closed.Load())

		resp, err := pools.RoundTrip(newRequest(t, t.Context(), http.MethodGet, "http://gateway.test/a"))
		require.NoError(t, err, "a request that is no part of an attempt")
		_ = resp.Body.Close()
		pools.CloseIdleConnections()
	})
}

// Refresh closes the idle connections of reads once a second, and none of the transport that the pools are
// made of.
func TestPools_Refresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		next, _, closed := counted(t)
		resp, err := next.RoundTrip(newRequest(t, t.Context(), http.MethodGet, "http://gateway.test/a"))
		require.NoError(t, err)
		_, _ = io.ReadAll(resp.Body)
		pools := attempt.NewPools(next)
		for _, tt := range []struct {
			wait time.Duration
			want int32 // closed ones afterwards
		}{{0, 1}, {0, 1}, {time.Second - 1, 1}, {1, 2}, {time.Second, 3}} {
			time.Sleep(tt.wait)
			_, _, failure := try(t, pools, http.MethodGet)
			require.Nil(t, failure)
			pools.Refresh()
			synctest.Wait()
			assert.Equal(t, tt.want, closed.Load())
		}
	})
}

// Over HTTP/2 POSTs share a connection, but never with reads, until the idle ones are closed.
func TestPools_http2(t *testing.T) {
	t.Parallel()
	type number struct{}
	connections := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+strconv.Itoa(r.Context().Value(number{}).(int)))
	}))
	server.EnableHTTP2 = true
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		connections++
		return context.WithValue(ctx, number{}, connections)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	pools := attempt.NewPools(server.Client().Transport.(*http.Transport))
	t.Cleanup(pools.CloseIdleConnections)
	use := func(method, want string) {
		_, result, failure := send(newTransport(pools), newRequest(t, t.Context(), method, server.URL))
		require.Nil(t, failure)
		assert.Equal(t, "HTTP/2.0 "+want, string(result.Text()))
		assert.NoError(t, result.Ambiguous)
	}
	for range 3 {
		use(http.MethodPost, "1")
		use(http.MethodGet, "2")
	}
	pools.CloseIdleConnections()
	use(http.MethodPost, "3")
	use(http.MethodGet, "4")
}

// What a middleware sends by itself is no part of the exchange with the gateway.
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
					for _, next := range []*http.Transport{pools.Invoices, pools.Reads} {
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
