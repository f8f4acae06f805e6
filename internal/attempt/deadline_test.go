package attempt_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/caller"
)

// A held body waits until it is released, whatever happens to its attempt.
type held struct {
	release chan struct{}
	closed  atomic.Int32
}

func newHeld() *held { return &held{release: make(chan struct{})} }

func (h *held) Read([]byte) (int, error) { <-h.release; return 0, io.EOF }
func (h *held) Close() error             { h.closed.Add(1); return nil }

// respondTo returns a response with a body, over a transport that is not ours.
func respondTo(t *testing.T, ctx context.Context, body io.ReadCloser) *attempt.Response {
	t.Helper()
	s := attempt.NewSender(tripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, ProtoMajor: 1, Body: body}, nil
	}), time.Minute)
	resp, err := s.Send(newRequest(t, ctx), http.Header{}, nil)
	require.NoError(t, err)
	return resp
}

// await awaits a reading without a result.
func await(resp *attempt.Response, read func(*http.Response)) error {
	_, err := attempt.Read(resp, func(resp *http.Response) struct{} { read(resp); return struct{}{} })
	return err
}

func readAndClose(resp *http.Response, text *string) {
	all, _ := io.ReadAll(resp.Body)
	*text = string(all)
	_ = resp.Body.Close()
}

// A reading that returns has been made once, and ends the attempt.
func TestRead_returns(t *testing.T) {
	t.Parallel()
	var ctx context.Context
	body := &watchedBody{Reader: strings.NewReader("text")}
	resp, err := attempt.NewSender(respondWith(body, &ctx), time.Minute).Send(newRequest(t, t.Context()), http.Header{}, nil)
	require.NoError(t, err)
	var text string
	require.NoError(t, await(resp, func(resp *http.Response) {
		readAndClose(resp, &text)
		assert.NoError(t, ctx.Err(), "the attempt ends after the reading")
	}))
	assert.Equal(t, "text", text)
	assert.Equal(t, 1, body.closed)
	assert.ErrorIs(t, ctx.Err(), context.Canceled)
}

// a reading that nothing ends is left half a second after its attempt.
func TestRead_leavesAReading(t *testing.T) {
	t.Parallel()
	errStop := errors.New("stop")
	for _, tt := range []struct {
		name  string
		after time.Duration // of the end of the context; 0 for never
		took  time.Duration
		want  string
	}{
		{"after the timeout of the attempt", 0, time.Minute + time.Second/2, "no response within 1m0s"},
		{"after the end of the caller's context", time.Second, time.Second + time.Second/2, "context canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.after > 0 {
					time.AfterFunc(tt.after, func() { cancel(errStop) })
				}
				body, begun := newHeld(), time.Now()
				resp := respondTo(t, ctx, body)
				err := await(resp, func(resp *http.Response) {
					_, _ = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
				})
				assert.EqualError(t, err, tt.want)
				assert.Equal(t, tt.after == 0, attempt.IsTimeout(err))
				assert.Equal(t, tt.took, time.Since(begun))
				close(body.release)
				synctest.Wait()
				assert.EqualValues(t, 1, body.closed.Load(), "the reading goes on and closes the body")
			})
		})
	}
}

// A reading that ends within half a second of its attempt is waited for.
func TestRead_waitsForALateReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		resp := respondTo(t, t.Context(), newHeld())
		read := false
		require.NoError(t, await(resp, func(*http.Response) {
			time.Sleep(time.Minute + 499*time.Millisecond)
			read = true
		}))
		assert.True(t, read)
	})
}

// A panic and the end of a goroutine reach the caller, and end the attempt.
func TestRead_passesOn(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){
		"a panic":            func() { panic("of the reading") },
		"the end of routine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ctx context.Context
			resp, err := attempt.NewSender(respondWith(newHeld(), &ctx), time.Minute).Send(newRequest(t, t.Context()), http.Header{}, nil)
			require.NoError(t, err)
			returned, recovered := passedOn(func() { _ = await(resp, func(*http.Response) { end() }) })
			assert.False(t, returned)
			assert.Equal(t, name == "a panic", valueOf(recovered) == "of the reading", "%v", recovered)
			assert.Error(t, ctx.Err())

			s := attempt.NewSender(tripper(func(req *http.Request) (*http.Response, error) {
				ctx = req.Context()
				end()
				return nil, io.EOF
			}), time.Minute)
			returned, recovered = passedOn(func() { _, _ = s.Send(newRequest(t, t.Context()), http.Header{}, nil) })
			assert.False(t, returned)
			assert.Equal(t, name == "a panic", valueOf(recovered) == "of the reading", "%v", recovered)
			assert.Error(t, ctx.Err())
		})
	}
}

// passedOn reports how a function ends in a goroutine of its own.
func passedOn(call func()) (returned bool, recovered any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { recovered = recover() }()
		call()
		returned = true
	}()
	<-done
	return returned, recovered
}

// valueOf is the value of a panic that was passed on.
func valueOf(recovered any) any {
	if passed, ok := recovered.(*caller.Panic); ok {
		return passed.Value
	}
	return nil
}

// A panic of a reading that nobody waits for any more ends nothing else.
func TestRead_dropsALatePanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body := newHeld()
		resp := respondTo(t, t.Context(), body)
		assert.Error(t, await(resp, func(*http.Response) {
			<-body.release
			panic("too late")
		}))
		close(body.release)
		synctest.Wait()
	})
}

// a transport that does not heed the end of its context is left, and a response
// that comes later is closed.
func TestSender_leavesATransport(t *testing.T) {
	t.Parallel()
	for _, late := range []*http.Response{nil, {StatusCode: 200}, {StatusCode: 200, Body: newHeld()}} {
		synctest.Test(t, func(t *testing.T) {
			release, begun := make(chan struct{}), time.Now()
			got := send(t, tripper(func(*http.Request) (*http.Response, error) {
				<-release
				return late, nil
			}))
			assert.EqualError(t, got, "no response within 1m0s")
			assert.True(t, attempt.IsTimeout(got))
			assert.Equal(t, time.Minute+time.Second/2, time.Since(begun))
			close(release)
			synctest.Wait()
			if late != nil && late.Body != nil {
				assert.EqualValues(t, 1, late.Body.(*held).closed.Load())
			}
		})
	}
}

// An attempt has ended with its context.
func TestResponse_HasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	resp := respondTo(t, ctx, http.NoBody)
	assert.False(t, resp.HasEnded())
	cancel()
	assert.True(t, resp.HasEnded())
	assert.NoError(t, resp.Body.Close())
}

// A body that nobody needs is read for as long as it is worth, and not longer than any other.
func TestResponse_EndWithin(t *testing.T) {
	t.Parallel()
	for within, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, time.Minute: time.Minute, time.Hour: time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			body, begun := newHeld(), time.Now()
			resp := respondTo(t, t.Context(), body)
			resp.EndWithin(within)
			err := await(resp, func(resp *http.Response) { _, _ = io.ReadAll(resp.Body) })
			assert.True(t, attempt.IsTimeout(err))
			assert.Equal(t, want+time.Second/2, time.Since(begun))
			close(body.release)
		})
	}
}

// An attempt that ends with its parent ends earlier where its body is not needed for so long.
func TestResponse_EndWithin_ofATimedContext(t *testing.T) {
	t.Parallel()
	for within, want := range map[time.Duration]error{time.Second: nil, time.Minute: context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			body, begun := newHeld(), time.Now()
			resp := respondTo(t, ctx, body)
			resp.EndWithin(within)
			err := await(resp, func(resp *http.Response) { _, _ = io.ReadAll(resp.Body) })
			assert.True(t, attempt.IsTimeout(err))
			assert.Equal(t, want != nil, errors.Is(err, context.DeadlineExceeded), "%v", err)
			assert.Equal(t, min(within, 30*time.Second)+time.Second/2, time.Since(begun))
			close(body.release)
		})
	}
}

// A lying context has a deadline in the past and never ends.
type lying struct{ context.Context }

func (lying) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }
func (lying) Done() <-chan struct{}       { return nil }
func (lying) Err() error                  { return nil }

// the timer of an attempt runs, whatever deadline the caller's context has.
func TestSender_lyingContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := attempt.NewSender(tripper(func(req *http.Request) (*http.Response, error) {
			deadline, ok := req.Context().Deadline()
			assert.True(t, ok)
			assert.Equal(t, begun.Add(time.Minute), deadline, "that of the attempt")
			return untilDone(req)
		}), time.Minute)
		_, err := s.Send(newRequest(t, lying{t.Context()}), http.Header{}, nil)
		assert.EqualError(t, err, "no response within 1m0s")
		assert.Equal(t, time.Minute, time.Since(begun))

		resp := respondTo(t, lying{t.Context()}, newHeld())
		begun = time.Now()
		err = await(resp, func(resp *http.Response) { <-t.Context().Done() })
		assert.EqualError(t, err, "no response within 1m0s")
		assert.Equal(t, time.Minute+time.Second/2, time.Since(begun))
	})
}

// after three new connections an attempt gets no fourth. One that was used
// before does not count.
func TestSender_connections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		reused []bool // of the connections, in turn
		ended  bool
	}{
		{"three new ones", []bool{false, false, false}, true},
		{"two new ones", []bool{false, false}, false},
		{"many that were used before", []bool{true, true, true, true, true, true}, false},
		{"three new ones among others", []bool{false, true, false, true, false}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := send(t, tripper(func(req *http.Request) (*http.Response, error) {
				hooks := httptrace.ContextClientTrace(req.Context())
				for _, reused := range tt.reused {
					hooks.GetConn("gateway.test:443")
					assert.NoError(t, req.Context().Err())
					hooks.GotConn(httptrace.GotConnInfo{Reused: reused})
				}
				hooks.GetConn("gateway.test:443")
				assert.Equal(t, tt.ended, req.Context().Err() != nil)
				return nil, io.EOF
			}))
			if !tt.ended {
				assert.Equal(t, io.EOF, got.Err)
				return
			}
			assert.EqualError(t, got, "the peer closed 3 connections in a row without a response")
			assert.True(t, got.Traced)
			assert.False(t, attempt.IsTimeout(got))
		})
	}
}

// A server for connection tests counts the connections that requests come on.
func servedOver(t *testing.T, http2 bool) (server *httptest.Server, own *http.Transport) {
	t.Helper()
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RemoteAddr)
	}))
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	own = attempt.NewTransport(time.Minute)
	own.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	t.Cleanup(own.CloseIdleConnections)
	return server, own
}

// over HTTP/1.1 no connection carries a second request.
func TestPosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		http2, single bool
		connections   int
	}{
		{"HTTP/1.1", false, true, 5},
		{"HTTP/2", true, true, 1},
		{"HTTP/1.1 without it", false, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, own := servedOver(t, tt.http2)
			var next http.RoundTripper = own
			if tt.single {
				posts := attempt.NewDedicated(own.Clone())
				t.Cleanup(posts.CloseIdleConnections)
				next = posts
			}
			s, from := attempt.NewSender(next, time.Minute), map[string]bool{}
			for range 5 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
				require.NoError(t, err)
				resp, err := s.Send(req, http.Header{}, nil)
				require.NoError(t, err)
				assert.Equal(t, tt.http2, resp.ProtoMajor == 2)
				var text string
				require.NoError(t, await(resp, func(resp *http.Response) { readAndClose(resp, &text) }))
				from[text] = true
			}
			assert.Len(t, from, tt.connections)
		})
	}
}

// Over HTTP/1 the body of an http.Transport is read by the caller's goroutine: net/http
// ends a read with the attempt. Over HTTP/2 it is where the connection may be closed, and
// with another RoundTripper it is not.
func TestRead_readsDirectly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		http2, directly bool
		sender          func(own *http.Transport) *attempt.Sender
	}{
		{"an http.Transport over HTTP/1", false, true, func(own *http.Transport) *attempt.Sender {
			return attempt.NewSender(own, time.Minute)
		}},
		{"an http.Transport over HTTP/2", true, false, func(own *http.Transport) *attempt.Sender {
			return attempt.NewSender(own, time.Minute)
		}},
		{"an http.Transport of reads over HTTP/1", false, true, func(own *http.Transport) *attempt.Sender {
			return attempt.NewReadSender(own, time.Minute)
		}},
		{"an http.Transport of reads over HTTP/2", true, true, func(own *http.Transport) *attempt.Sender {
			return attempt.NewReadSender(own, time.Minute)
		}},
		{"another RoundTripper over HTTP/1", false, false, func(own *http.Transport) *attempt.Sender {
			return attempt.NewSender(tripper(own.RoundTrip), time.Minute)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, own := servedOver(t, tt.http2)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			require.NoError(t, err)
			resp, err := tt.sender(own).Send(req, http.Header{}, nil)
			require.NoError(t, err)
			stack, err := attempt.Read(resp, func(resp *http.Response) string {
				defer func() { _ = resp.Body.Close() }()
				text := make([]byte, 64<<10)
				return string(text[:runtime.Stack(text, false)])
			})
			require.NoError(t, err)
			assert.Equal(t, tt.directly, strings.Contains(stack, "testing.tRunner"), "%s", stack)
		})
	}
}

// A deafConn blocks in Write from the moment that its peer is deaf until it is closed.
type deafConn struct {
	net.Conn
	deaf    atomic.Bool
	blocked chan struct{} // has room for one
	closed  chan struct{}
	once    sync.Once
}

func (c *deafConn) Write(p []byte) (int, error) {
	if !c.deaf.Load() {
		return c.Conn.Write(p)
	}
	select {
	case c.blocked <- struct{}{}:
	default:
	}
	<-c.closed
	return 0, net.ErrClosed
}

func (c *deafConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// readOver reads the response to a request for path through a sender; a read that has
// begun is shown to begun.
func readOver(ctx context.Context, t *testing.T, s *attempt.Sender, url string, begun func()) (text string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := s.Send(req, http.Header{}, nil)
	require.NoError(t, err)
	begun()
	failure, err := attempt.Read(resp, func(resp *http.Response) error {
		defer func() { _ = resp.Body.Close() }()
		all, err := io.ReadAll(resp.Body)
		text = string(all)
		return err
	})
	require.NoError(t, err)
	return text, failure
}

// over HTTP/2 net/http confirms what it has read, and waits for that while the peer
// accepts nothing. The connection of a read is closed then, and another read on it may be
// attempted again; a connection on which none is held is kept.
func TestRead_closesTheConnectionOfAHeldRead(t *testing.T) {
	t.Parallel()
	server, own := servedOver(t, true)
	arrived := make(chan struct{})
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			close(arrived)
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, r.RemoteAddr)
		if r.URL.Path == "/long" {
			_, _ = w.Write(make([]byte, 64<<10)) // more than net/http reads without confirming it
		}
		if r.URL.Path != "/" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	conn := &deafConn{blocked: make(chan struct{}, 1), closed: make(chan struct{})}
	dial := own.DialContext
	own.DialContext = func(ctx context.Context, network, address string) (_ net.Conn, err error) {
		conn.Conn, err = dial(ctx, network, address)
		return conn, err
	}
	reads := attempt.NewReadSender(own, time.Minute)

	from, err := readOver(t.Context(), t, reads, server.URL, func() {})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = readOver(ctx, t, reads, server.URL+"/endless", cancel)
	require.ErrorIs(t, err, context.Canceled)
	again, err := readOver(t.Context(), t, reads, server.URL, func() {})
	require.NoError(t, err)
	assert.Equal(t, from, again, "the connection of a read that ends with its attempt is kept")

	other := make(chan error)
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/silent", nil)
		_, err := reads.Send(req, http.Header{}, nil)
		other <- err
	}()
	<-arrived
	ctx, cancel = context.WithCancel(t.Context())
	_, err = readOver(ctx, t, reads, server.URL+"/long", func() {
		conn.deaf.Store(true)
		go func() {
			<-conn.blocked
			cancel()
		}()
	})
	require.ErrorIs(t, err, context.Canceled)
	<-conn.closed
	assert.True(t, errorOf(t, <-other).Retryable())
}

// What net/http has buffered is not read after the end of an attempt: decompressed, 4 MiB
// can be gigabytes.
func TestRead_readsNothingAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		server, own := servedOver(t, http2)
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		resp, err := attempt.NewReadSender(own, time.Minute).Send(req, http.Header{}, nil)
		require.NoError(t, err)
		require.NoError(t, await(resp, func(resp *http.Response) {
			defer func() { _ = resp.Body.Close() }()
			_, err := io.ReadFull(resp.Body, make([]byte, 1))
			assert.NoError(t, err)
			cancel()
			n, err := resp.Body.Read(make([]byte, 1))
			assert.Zero(t, n)
			assert.ErrorIs(t, err, context.Canceled)
		}))
	}
}

// A Split has connections for POST that nothing else uses, and closes all that are idle.
func TestSplit(t *testing.T) {
	t.Parallel()
	server, own := servedOver(t, false)
	s := &attempt.Split{Dedicated: attempt.NewDedicated(own.Clone()), Shared: own}
	on := map[string]map[string]bool{http.MethodGet: {}, http.MethodPost: {}}
	send := func(method string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
		require.NoError(t, err)
		resp, err := s.RoundTrip(req)
		require.NoError(t, err)
		var from string
		readAndClose(resp, &from)
		on[method][from] = true
		return from
	}
	for range 3 {
		send(http.MethodGet)
		send(http.MethodPost)
	}
	assert.Len(t, on[http.MethodGet], 1)
	assert.Len(t, on[http.MethodPost], 3)
	s.CloseIdleConnections()
	send(http.MethodGet)
	assert.Len(t, on[http.MethodGet], 2)
	s.CloseIdleConnections()
}
