package attempt_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
)

const preparedHost = "https://" + faultserver.Host

var certificates = sync.OnceValues(faultserver.NewCertificates)

// A peer is a server in memory, and the Dedicated that lead to it. Its fields are set before
// the first connection.
type peer struct {
	*testing.T
	dedicated *attempt.Dedicated
	sender    *attempt.Sender
	dial      func(ctx context.Context) error // before a connection is made; nil for nothing
	conns     chan net.Conn                   // to be accepted
	server    *http.Server
	newest    atomic.Pointer[net.Conn] // the server's end of the connection that was made last

	dialed   atomic.Int32
	open     atomic.Int32 // connections at the client's end
	requests atomic.Int32
}

// newPeer returns a peer that speaks these protocols over TLS, and responds with the
// address of the client's end of the connection: its number.
func newPeer(t *testing.T, protocols ...string) *peer {
	t.Helper()
	all, err := certificates()
	require.NoError(t, err)
	p := &peer{T: t, conns: make(chan net.Conn)}
	p.use(&http.Transport{
		DialContext: p.DialContext, TLSClientConfig: all.Client(), ForceAttemptHTTP2: true,
		MaxConnsPerHost: 20, IdleConnTimeout: time.Second,
	})
	config := all.Server(protocols...)
	config.SessionTicketsDisabled = true // both ends of a net.Pipe would write at the same time
	p.server = &http.Server{Handler: p, TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = p.server.ServeTLS(p, "", "") }()
	return p
}

// use replaces the transport.
func (p *peer) use(t *http.Transport) {
	p.dedicated = attempt.NewDedicated(t)
	p.sender = attempt.NewSender(p.dedicated, time.Minute)
}

// end closes everything.
func (p *peer) end() {
	p.dedicated.CloseIdleConnections()
	close(p.conns)
	_ = p.server.Close()
	synctest.Wait()
	assert.Zero(p, p.open.Load(), "connections that are still open")
}

func (p *peer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	p.dialed.Add(1)
	if p.dial != nil {
		if err := p.dial(ctx); err != nil {
			return nil, err
		}
	}
	client, server := net.Pipe()
	p.newest.Store(&server)
	p.conns <- server
	p.open.Add(1)
	return &countedConn{Conn: client, closed: sync.OnceFunc(func() { p.open.Add(-1) })}, nil
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// Accept, Close and Addr implement net.Listener.
func (p *peer) Accept() (net.Conn, error) {
	if conn, ok := <-p.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (p *peer) Close() error   { return nil }
func (p *peer) Addr() net.Addr { return &net.TCPAddr{} }

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	p.requests.Add(1)
	if r.URL.Path == "/slow" {
		time.Sleep(20 * time.Second)
	}
	_, _ = io.WriteString(w, "done")
}

func (p *peer) request(ctx context.Context, rawURL string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, rawURL, nil)
	require.NoError(p, err)
	req.Body, req.ContentLength = attempt.NewBody([]byte("body"), time.Time{}), 4
	return req
}

func (p *peer) prepare() error { return p.sender.Prepare(p.request(p.Context(), preparedHost+"/")) }

// post sends a request, which must succeed.
func (p *peer) post(rawURL string) {
	p.Helper()
	resp, err := p.sender.Send(p.request(p.Context(), rawURL), http.Header{}, nil)
	require.NoError(p, err)
	var text string
	require.NoError(p, await(resp, func(resp *http.Response) { readAndClose(resp, &text) }))
	assert.Equal(p, "done", text)
}

// either is the first for HTTP/1.1, and the second for HTTP/2.
func (p *peer) either(one, two int32) int32 {
	if p.server.TLSConfig.NextProtos[0] == "h2" {
		return two
	}
	return one
}

// counts asserts how many connections were made and are open.
func (p *peer) counts(dialed, open int32) {
	p.Helper()
	synctest.Wait()
	assert.Equal(p, dialed, p.dialed.Load(), "dialed")
	assert.Equal(p, open, p.open.Load(), "open")
}

// withPeer runs a test over each version of HTTP, in a bubble.
func withPeer(t *testing.T, test func(p *peer)) {
	t.Parallel()
	_, _ = certificates() // outside of the bubble
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t, protocol)
				defer p.end()
				test(p)
			})
		})
	}
}

// What was prepared is used, once over HTTP/1.1, and needs no further connection.
func TestSender_Prepare(t *testing.T) {
	withPeer(t, func(p *peer) {
		require.NoError(p, p.prepare())
		p.counts(1, 1)
		assert.Zero(p, p.requests.Load(), "it has carried nothing")
		p.post(preparedHost + "/a")
		p.counts(1, p.either(0, 1))
		p.post(preparedHost + "/b")
		p.counts(p.either(2, 1), p.either(0, 1))
	})
}

// It is closed when its time is over, after the request that is under way.
func TestSender_Prepare_time(t *testing.T) {
	withPeer(t, func(p *peer) {
		require.NoError(p, p.prepare())
		time.Sleep(15*time.Second - time.Millisecond)
		p.counts(1, 1)
		time.Sleep(2 * time.Millisecond)
		p.counts(1, 0)
		require.NoError(p, p.prepare())
		p.post(preparedHost + "/slow")
		p.counts(2, 0)
	})
}

// At most 4 are held, and one of HTTP/2. One that was used makes room.
func TestSender_Prepare_bound(t *testing.T) {
	withPeer(t, func(p *peer) {
		for range 6 {
			require.NoError(p, p.prepare())
		}
		p.counts(p.either(4, 1), p.either(4, 1))
		p.post(preparedHost + "/")
		require.NoError(p, p.prepare())
		require.NoError(p, p.prepare())
		p.counts(p.either(5, 1), p.either(4, 1))
		p.dedicated.CloseIdleConnections()
		p.counts(p.either(5, 1), 0)
	})
}

// Of concurrent calls at most 4 open a connection, and no request waits for them.
func TestSender_Prepare_concurrently(t *testing.T) {
	withPeer(t, func(p *peer) {
		opened := make(chan struct{})
		p.dial = func(context.Context) error {
			if p.dialed.Load() <= 4 {
				<-opened
			}
			return nil
		}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { assert.NoError(p, p.prepare()) })
		}
		p.counts(4, 0)
		p.post(preparedHost + "/")
		p.counts(5, p.either(0, 1)) // over HTTP/2 it is idle
		close(opened)
		group.Wait()
		p.counts(5, p.either(4, 2))
	})
}

const otherHost = "https://127.0.0.1"

// A connection to one server carries no request to another.
func TestSender_Prepare_target(t *testing.T) {
	withPeer(t, func(p *peer) {
		require.NoError(p, p.prepare())
		p.post(otherHost + "/")
		p.counts(2, p.either(1, 2))
		p.post(preparedHost + "/")
		p.counts(2, p.either(0, 2))
	})
}

// Connections to several servers are held at the same time, each for its own time.
func TestSender_Prepare_targets(t *testing.T) {
	withPeer(t, func(p *peer) {
		require.NoError(p, p.prepare())
		time.Sleep(10 * time.Second)
		require.NoError(p, p.sender.Prepare(p.request(p.Context(), otherHost+"/")))
		p.counts(2, 2)
		time.Sleep(3 * time.Second)
		p.post(otherHost + "/") // over HTTP/2 it stays for others
		p.counts(2, p.either(1, 2))
		time.Sleep(3 * time.Second)
		p.counts(2, p.either(0, 1))
		p.post(otherHost + "/")
		p.counts(p.either(3, 2), p.either(0, 1))
	})
}

// NewClientConn would look up the name as it is, and not in Punycode as a request does:
// that can be another host.
func TestSender_Prepare_notASCII(t *testing.T) {
	withPeer(t, func(p *peer) {
		err := p.sender.Prepare(p.request(p.Context(), "https://gatew\u00e4y.test/"))
		failure := errorOf(t, err)
		assert.Equal(p, attempt.Dial, failure.Phase)
		assert.False(p, failure.Retryable())
		assert.EqualError(p, err, "lookup gatew\u00e4y.test: only a name in Punycode can be prepared")
		p.counts(0, 0)
	})
}

// A connection that cannot be opened is an error, leaves nothing, and takes no room.
func TestSender_Prepare_fails(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, tt := range []struct {
		name  string
		dial  func(ctx context.Context, cancel func()) error
		phase attempt.Phase
		is    error
	}{
		{"the host refuses", func(context.Context, func()) error { return refused }, attempt.Dial, refused},
		{"the host is dead", func(ctx context.Context, _ func()) error { <-ctx.Done(); return ctx.Err() }, attempt.Dial, nil},
		{"the caller cancels", func(ctx context.Context, cancel func()) error { cancel(); return ctx.Err() }, attempt.Dial, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withPeer(t, func(p *peer) {
				for range 5 {
					ctx, cancel := context.WithCancel(p.Context())
					p.dial = func(ctx context.Context) error { return tt.dial(ctx, cancel) }
					begun, err := time.Now(), p.sender.Prepare(p.request(ctx, preparedHost+"/"))
					cancel()
					failure := errorOf(t, err)
					assert.Equal(p, tt.phase, failure.Phase)
					assert.LessOrEqual(p, time.Since(begun), time.Minute)
					assert.Equal(p, tt.is == nil, attempt.IsTimeout(err), "%v", err)
					if tt.is != nil {
						assert.ErrorIs(p, err, tt.is)
					}
				}
				p.counts(5, 0)
				p.dial = nil
				p.post(preparedHost + "/")
				require.NoError(p, p.prepare())
			})
		})
	}
}

// A context that has ended opens nothing, and one whose deadline only claims to have
// passed has the timeout of the sender.
func TestSender_Prepare_contexts(t *testing.T) {
	withPeer(t, func(p *peer) {
		ended, cancel := context.WithCancel(p.Context())
		cancel()
		err := p.sender.Prepare(p.request(ended, preparedHost+"/"))
		assert.ErrorIs(p, err, context.Canceled)
		p.counts(0, 0)
		p.dial = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		begun := time.Now()
		err = p.sender.Prepare(p.request(pastDeadline{p.Context()}, preparedHost+"/"))
		assert.True(p, attempt.IsTimeout(err), "%v", err)
		assert.Equal(p, time.Minute, time.Since(begun))
		p.dial = nil
	})
}

// a dialer that knows no context is left when the context has ended.
func TestSender_Prepare_leavesADialer(t *testing.T) {
	for name, within := range map[string]time.Duration{
		"it returns much later": 4 * time.Second, "it returns a little later": 400 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			withPeer(t, func(p *peer) {
				p.dial = func(context.Context) error { time.Sleep(within); return nil }
				ctx, cancel := context.WithTimeout(p.Context(), 200*time.Millisecond)
				defer cancel()
				begun := time.Now()
				err := p.sender.Prepare(p.request(ctx, preparedHost+"/"))
				assert.ErrorIs(p, err, context.DeadlineExceeded)
				assert.LessOrEqual(p, time.Since(begun), 700*time.Millisecond)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				p.dial = nil
				require.NoError(p, p.prepare())
			})
		})
	}
}

// A pastDeadline is a context whose deadline has passed and that does not end.
type pastDeadline struct{ context.Context }

func (pastDeadline) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

// A dialer that panics takes no room.
func TestSender_Prepare_panic(t *testing.T) {
	withPeer(t, func(p *peer) {
		p.dial = func(context.Context) error { panic("dialer") }
		for range 5 {
			assert.Panics(p, func() { _ = p.prepare() })
		}
		p.dial = nil
		require.NoError(p, p.prepare())
		p.counts(6, 1)
	})
}

// merchantKey is the context key of the merchant whose request it is.
type merchantKey struct{}

// a connection that leads through the proxy of one merchant carries no request of
// another, also where both ask the same server.
func TestSender_Prepare_proxyOfTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proxies := faultserver.New(faultserver.OneRequest(func(c *faultserver.Conn) { c.Send(faultserver.Response(200, "done")) }))
		posts := attempt.NewDedicated(&http.Transport{DialContext: proxies.DialContext, Proxy: func(req *http.Request) (*url.URL, error) {
			return url.Parse("http://proxy-of-" + req.Context().Value(merchantKey{}).(string) + ".test:3128")
		}})
		sender := attempt.NewSender(posts, time.Minute)
		request := func(merchant string) *http.Request {
			ctx := context.WithValue(t.Context(), merchantKey{}, merchant)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gateway.test/path", nil)
			require.NoError(t, err)
			return req
		}
		const a, b = "proxy-of-a.test:3128", "proxy-of-b.test:3128"
		require.NoError(t, sender.Prepare(request("a")))
		assert.Equal(t, []string{a}, proxies.Dialed())
		for _, next := range []struct {
			merchant string
			dialed   []string
		}{
			{"b", []string{a, b}},
			{"a", []string{a, b}}, // the one that waits
			{"a", []string{a, b, a}},
		} {
			resp, err := sender.Send(request(next.merchant), http.Header{}, nil)
			require.NoError(t, err)
			var text string
			require.NoError(t, await(resp, func(resp *http.Response) { readAndClose(resp, &text) }))
			assert.Equal(t, next.dialed, proxies.Dialed())
		}
		posts.CloseIdleConnections()
		proxies.Close()
	})
}

// A proxy is asked about the URL of the request, port included, and its refusal is an error.
func TestSender_Prepare_proxy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proxy := faultserver.New(faultserver.Respond(faultserver.Response(407, "")))
		var asked []string
		posts := attempt.NewDedicated(&http.Transport{DialContext: proxy.DialContext, Proxy: func(req *http.Request) (*url.URL, error) {
			asked = append(asked, req.URL.String())
			return url.Parse("http://proxy.test:3128")
		}})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://gateway.test:8443/path", nil)
		require.NoError(t, err)
		failure := errorOf(t, attempt.NewSender(posts, time.Minute).Prepare(req))
		assert.Equal(t, attempt.Proxy, failure.Phase)
		assert.False(t, failure.Retryable())
		assert.Equal(t, []string{"https://gateway.test:8443/path"}, asked)
		assert.Equal(t, []string{"proxy.test:3128"}, proxy.Dialed())
		proxy.Close()
	})
}

// What the peer has closed, reset or written to is not used, and takes no room.
func TestSender_Prepare_closedByPeer(t *testing.T) {
	all, err := certificates()
	require.NoError(t, err)
	log.SetOutput(io.Discard) // net/http logs what it got on an idle connection
	for name, end := range map[string]func(c *faultserver.Conn){
		"closed":       func(*faultserver.Conn) {},
		"cut":          func(c *faultserver.Conn) { _ = c.Raw.Close() },
		"a stray 400":  func(c *faultserver.Conn) { c.Send(faultserver.Response(400, "no")); c.Hold() },
		"a stray byte": func(c *faultserver.Conn) { c.Send("H"); c.Hold() },
	} {
		for _, secure := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					idle := make(chan struct{})
					handler := func(c *faultserver.Conn) {
						if handshake, ok := c.Conn.(*tls.Conn); ok {
							_ = handshake.Handshake()
						}
						if c.Number <= 4 {
							<-idle
							end(c)
							return
						}
						faultserver.Respond(faultserver.Response(200, "done"))(c)
					}
					address := "http://" + faultserver.Host
					if secure {
						handler, address = faultserver.Secure(all.Server(), handler), preparedHost
					}
					server := faultserver.New(handler)
					p := &peer{T: t}
					p.use(&http.Transport{DialContext: server.DialContext, TLSClientConfig: all.Client()})
					for range 4 {
						require.NoError(t, p.sender.Prepare(p.request(t.Context(), address)))
					}
					close(idle)
					synctest.Wait()
					p.post(address)
					assert.Len(t, server.Dialed(), 5)
					require.NoError(t, p.sender.Prepare(p.request(t.Context(), address)))
					assert.Len(t, server.Dialed(), 6)
					p.dedicated.CloseIdleConnections()
					server.Close()
				})
			})
		}
	}
}

// One of HTTP/2 that the peer has closed before any request takes no room either.
func TestSender_Prepare_closedByPeer_HTTP2(t *testing.T) {
	_, _ = certificates() // outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, "h2")
		defer p.end()
		require.NoError(t, p.prepare())
		p.counts(1, 1)
		_ = (*p.newest.Load()).Close()
		p.counts(1, 0)
		require.NoError(t, p.prepare())
		p.counts(2, 1)
		p.post(preparedHost + "/")
		p.counts(2, 1)
	})
}

// A transport with an HTTP/2 of its own, such as that of golang.org/x/net, is prepared
// with that of net/http.
func TestSender_Prepare_otherHTTP2(t *testing.T) {
	all, err := certificates()
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, "h2")
		defer p.end()
		config := all.Client()
		config.NextProtos = []string{"h2", "http/1.1"}
		p.use(&http.Transport{
			DialContext: p.DialContext, TLSClientConfig: config,
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{
				"h2": func(string, *tls.Conn) http.RoundTripper { return tripper(nil) },
			},
		})
		require.NoError(t, p.prepare())
		p.counts(1, 1)
		p.post(preparedHost + "/")
		p.counts(1, 1)
	})
}

// Without keep-alives one of HTTP/2 carries one request too: net/http would refuse another
// one after it has let it be reserved.
func TestSender_Prepare_withoutKeepAlives(t *testing.T) {
	withPeer(t, func(p *peer) {
		all, err := certificates()
		require.NoError(p, err)
		p.use(&http.Transport{
			DialContext: p.DialContext, TLSClientConfig: all.Client(), ForceAttemptHTTP2: true, DisableKeepAlives: true,
		})
		require.NoError(p, p.prepare())
		var group sync.WaitGroup
		for i := range int32(2) {
			group.Go(func() { p.post(preparedHost + "/slow") })
			p.counts(i+1, i+1)
		}
		group.Wait()
		time.Sleep(5 * time.Second) // both ends write a last alert into a net.Pipe, until they time out
		p.counts(2, 0)
	})
}

// A request that is lost on a prepared connection fails as on any other.
func TestSender_Prepare_lost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		phase  attempt.Phase
		up     int // how much of the request passes
		is     error
		unread bool
	}{
		{attempt.Write, 0, syscall.ECONNRESET, true}, // net/http sends the header first
		{attempt.Wait, faultserver.Unlimited, io.EOF, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := faultserver.New(faultserver.OneRequest(func(*faultserver.Conn) {}))
			var conn *faultserver.BreakingConn
			server.WrapClient = func(c net.Conn, _ int) net.Conn {
				conn = faultserver.NewBreakingConn(c, nil)
				return conn
			}
			p := &peer{T: t}
			p.use(&http.Transport{DialContext: server.DialContext})
			require.NoError(t, p.sender.Prepare(p.request(t.Context(), "http://gateway.test")))
			conn.Arm(faultserver.Break{Up: tt.up, Down: faultserver.Unlimited, Manner: faultserver.WriteError})
			req := p.request(t.Context(), "http://gateway.test")
			resp, err := p.sender.Send(req, http.Header{}, nil)
			assert.Nil(t, resp)
			failure := errorOf(t, err)
			assert.Equal(t, tt.phase, failure.Phase)
			assert.True(t, failure.Traced)
			assert.ErrorIs(t, err, tt.is)
			assert.Equal(t, tt.unread, req.Body.(*attempt.Body).Seal())
			assert.Len(t, server.Dialed(), 1)
			server.Close()
		})
	}
}

// Only a Dedicated can be prepared.
func TestSender_CanPrepare(t *testing.T) {
	t.Parallel()
	for want, next := range map[bool]http.RoundTripper{true: attempt.NewDedicated(&http.Transport{}), false: &http.Transport{}} {
		assert.Equal(t, want, attempt.NewSender(next, time.Minute).CanPrepare())
	}
}
