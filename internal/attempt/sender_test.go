package attempt_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/attempt"
)

// A tripper is a RoundTripper in one function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func newRequest(t *testing.T, ctx context.Context) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://gateway.test/path", strings.NewReader("body"))
	require.NoError(t, err)
	return req
}

// send sends a request that next fails, and returns the error.
func send(t *testing.T, next http.RoundTripper) *attempt.Error {
	t.Helper()
	resp, err := attempt.NewSender(next, time.Minute).Send(newRequest(t, t.Context()), http.Header{}, nil)
	assert.Nil(t, resp)
	return errorOf(t, err)
}

// errorOf is the error of an attempt, without what surrounds it.
func errorOf(t testing.TB, err error) *attempt.Error {
	t.Helper()
	var failure *attempt.Error
	require.ErrorAs(t, err, &failure)
	return failure
}

func failWith(err error) tripper {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func TestNewTransport(t *testing.T) {
	t.Parallel()
	got := attempt.NewTransport(7 * time.Second)
	assert.NotSame(t, got, attempt.NewTransport(7*time.Second), "each has connections of its own")
	assert.NotSame(t, http.DefaultTransport, got)
	assert.Equal(t, 7*time.Second, got.IdleConnTimeout)
	assert.EqualValues(t, tls.VersionTLS12, got.TLSClientConfig.MinVersion)
	assert.False(t, got.TLSClientConfig.InsecureSkipVerify)
	assert.Equal(t, 10*time.Second, got.TLSHandshakeTimeout)
	assert.True(t, got.ForceAttemptHTTP2)
	assert.Equal(t, 15*time.Second, got.HTTP2.SendPingTimeout, "a dead HTTP/2 connection is found")
	assert.Equal(t, 10*time.Second, got.HTTP2.PingTimeout)
	assert.Equal(t, 10*time.Second, got.HTTP2.WriteByteTimeout)
	assert.Equal(t, 256, got.MaxIdleConns)
	assert.Equal(t, 64, got.MaxIdleConnsPerHost)
	assert.EqualValues(t, 256<<10, got.MaxResponseHeaderBytes)
	assert.NotNil(t, got.Proxy, "the proxy of the environment is used")
}

// The transport connects, within a context.
func TestNewTransport_dials(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := attempt.NewTransport(time.Second).DialContext(ended, "tcp", "127.0.0.1:1")
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, "dial", op.Op)
}

// Nobody who holds a Sender can close connections that others use.
func TestSender_closesNoConnections(t *testing.T) {
	t.Parallel()
	var s any = attempt.NewSender(&http.Transport{}, time.Second)
	_, closes := s.(interface{ CloseIdleConnections() })
	assert.False(t, closes)
}

func TestSender_sendsTheRequestThatItIsHanded(t *testing.T) {
	t.Parallel()
	type key struct{}
	req := newRequest(t, context.WithValue(t.Context(), key{}, "value"))
	req.Header.Set("X-Test", "1")
	body, ctx := req.Body, req.Context()
	resp, err := attempt.NewSender(tripper(func(got *http.Request) (*http.Response, error) {
		assert.Equal(t, req.Method, got.Method)
		assert.Same(t, req.URL, got.URL)
		assert.Equal(t, req.Header, got.Header)
		assert.Equal(t, body, got.Body)
		assert.Equal(t, "value", got.Context().Value(key{}))
		return &http.Response{StatusCode: 201, Header: http.Header{"A": {"b"}}, Body: io.NopCloser(strings.NewReader("text"))}, nil
	}), time.Minute).Send(req, req.Header, nil)
	require.NoError(t, err)
	assert.Equal(t, 201, resp.StatusCode)
	assert.Equal(t, http.Header{"A": {"b"}}, resp.Header)
	text, err := io.ReadAll(resp.Body)
	assert.NoError(t, err)
	assert.Equal(t, "text", string(text))
	assert.NoError(t, resp.Body.Close())
	assert.Equal(t, ctx, req.Context(), "the request of the caller is not changed")
}

// What is sent has the header and the body of the attempt, whatever those of the request are.
func TestSender_Send(t *testing.T) {
	t.Parallel()
	body := attempt.NewBody([]byte("text"), time.Time{})
	req := newRequest(t, t.Context())
	req.Header.Set("Accept", "b")
	_, err := attempt.NewSender(tripper(func(got *http.Request) (*http.Response, error) {
		assert.Equal(t, http.Header{"X-Api-Key": {"a"}}, got.Header)
		assert.Equal(t, body, got.Body)
		assert.EqualValues(t, 4, got.ContentLength)
		return nil, io.EOF
	}), time.Minute).Send(req, http.Header{"X-Api-Key": {"a"}}, body)
	assert.ErrorIs(t, err, io.EOF)
	assert.Equal(t, http.Header{"Accept": {"b"}}, req.Header, "the request of the caller is not changed")
}

// The hooks of the caller's own trace are called too.
func TestSender_keepsTheCallersTrace(t *testing.T) {
	t.Parallel()
	called := false
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GetConn: func(string) { called = true }})
	_, err := attempt.NewSender(tripper(func(req *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(req.Context()).GetConn("gateway.test:443")
		return nil, io.EOF
	}), time.Minute).Send(newRequest(t, ctx), http.Header{}, nil)
	assert.ErrorIs(t, err, io.EOF)
	assert.True(t, called)
}

// What the hooks report outweighs what the error looks like.
func TestSender_phasesOfTheHooks(t *testing.T) {
	t.Parallel()
	type hooks = *httptrace.ClientTrace
	getConn := func(h hooks) { h.GetConn("gateway.test:443") }
	handshake := func(h hooks) { h.TLSHandshakeStart() }
	gotConn := func(h hooks) { h.GotConn(httptrace.GotConnInfo{}) }
	wrote := func(h hooks) { h.WroteRequest(httptrace.WroteRequestInfo{}) }
	failed := func(h hooks) { h.WroteRequest(httptrace.WroteRequestInfo{Err: io.EOF}) }
	for _, tt := range []struct {
		name   string
		called []func(hooks)
		want   attempt.Phase
	}{
		{"a connection was asked for", []func(hooks){getConn}, attempt.Dial},
		{"the handshake began", []func(hooks){getConn, handshake}, attempt.TLS},
		{"there is a connection", []func(hooks){getConn, handshake, gotConn}, attempt.Write},
		{"an idle connection is used", []func(hooks){getConn, gotConn}, attempt.Write},
		{"the request was not written", []func(hooks){getConn, gotConn, failed}, attempt.Write},
		{"the request was written", []func(hooks){getConn, gotConn, wrote}, attempt.Wait},
		{"another connection was asked for", []func(hooks){getConn, gotConn, wrote, getConn}, attempt.Dial},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{io.EOF, opError("write", "write", syscall.EPIPE), errors.New("no type")} {
				got := send(t, tripper(func(req *http.Request) (*http.Response, error) {
					for _, call := range tt.called {
						call(httptrace.ContextClientTrace(req.Context()))
					}
					return nil, err
				}))
				assert.Equal(t, attempt.Error{Phase: tt.want, Traced: true, Err: err}, *got)
			}
		})
	}
}

func TestSender_phasesWithoutHooks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  error
		want attempt.Phase
	}{
		{"a lookup", &net.DNSError{IsNotFound: true}, attempt.Dial},
		{"a lookup while dialing", &net.OpError{Op: "dial", Err: &net.DNSError{}}, attempt.Dial},
		{"a dial", opError("dial", "connect", syscall.ECONNREFUSED), attempt.Dial},
		{"a dial without a system call", &net.OpError{Op: "dial", Err: errors.New("no")}, attempt.Dial},
		{"a write", opError("write", "write", syscall.EPIPE), attempt.Write},
		{"a read", opError("read", "read", syscall.ECONNRESET), attempt.Wait},
		{"an end", io.EOF, attempt.Wait},
		{"a read without a system call", &net.OpError{Op: "read", Err: errors.New("no")}, attempt.Start},
		{"an error without a type", errors.New("the circuit is open"), attempt.Start},
		{"a proxy that cannot be reached", &net.OpError{Op: "proxyconnect", Err: opError("dial", "connect", syscall.ECONNREFUSED)}, attempt.Proxy},
		{"the text of a status, but no dial", errors.New("Bad Gateway"), attempt.Start},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, attempt.Error{Phase: tt.want, Err: tt.err}, *send(t, failWith(tt.err)))
		})
	}
}

// net/http returns the status of a proxy that does not connect as nothing but its text.
func TestSender_statusOfAProxy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]attempt.Phase{
		"Bad Request":                     attempt.Proxy, // 400, the lowest
		"Proxy Authentication Required":   attempt.Proxy,
		"Network Authentication Required": attempt.Proxy, // 511, the highest with a text
		"Bad Gateway":                     attempt.Proxy,
		"Permanent Redirect":              attempt.Dial, // 308
		"OK":                              attempt.Dial,
		"bad gateway":                     attempt.Dial,
		"Bad Gateway.":                    attempt.Dial,
		"":                                attempt.Dial, // as has a status without a text
	} {
		got := send(t, tripper(func(req *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(req.Context()).GetConn("gateway.test:443")
			return nil, errors.New(text)
		}))
		assert.Equal(t, want, got.Phase, "%q", text)
	}
}

// The phases of net/http itself, with a proxy and without.
func TestSender_phasesOfNetHTTP(t *testing.T) {
	t.Parallel()
	refused := opError("dial", "connect", syscall.ECONNREFUSED)
	for _, tt := range []struct {
		name      string
		proxy     bool
		response  string // to the first request on a connection; "" for no connection
		want      attempt.Phase
		retryable bool
	}{
		{"no connection", false, "", attempt.Dial, true},
		{"no connection to the proxy", true, "", attempt.Proxy, true},
		{"the proxy asks for a password", true, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", attempt.Proxy, false},
		{"the proxy cannot connect", true, "HTTP/1.1 502 Bad Gateway\r\n\r\n", attempt.Proxy, true},
		{"the server closes in the handshake", true, "HTTP/1.1 200 OK\r\n\r\n", attempt.TLS, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				if tt.response == "" {
					return nil, refused
				}
				ours, theirs := net.Pipe()
				go respond(theirs, tt.response)
				return ours, nil
			}}
			if tt.proxy {
				transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test:3128"})
			}
			got := send(t, transport)
			assert.Equal(t, tt.want, got.Phase, got.Error())
			assert.True(t, got.Traced)
			assert.Equal(t, tt.retryable, got.Retryable(), got.Error())
		})
	}
}

// respond reads one request, writes a response, and closes the connection at what
// comes next.
func respond(conn net.Conn, response string) {
	defer conn.Close()
	if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
		_, _ = io.WriteString(conn, response)
		_, _ = conn.Read(make([]byte, 1<<16))
	}
}

func TestSender_neitherAResponseNorAnError(t *testing.T) {
	t.Parallel()
	got := send(t, tripper(func(*http.Request) (*http.Response, error) { return nil, nil }))
	assert.EqualError(t, got, "the RoundTripper returned neither a response nor an error")
	assert.Equal(t, attempt.Start, got.Phase)
	assert.False(t, got.Retryable())
}

// A response that comes together with an error is closed and dropped.
func TestSender_aResponseAndAnError(t *testing.T) {
	t.Parallel()
	body := &watchedBody{Reader: strings.NewReader("text")}
	for _, resp := range []*http.Response{{Body: body}, {}} {
		assert.ErrorIs(t, send(t, tripper(func(*http.Request) (*http.Response, error) { return resp, io.EOF })), io.EOF)
	}
	assert.Equal(t, 1, body.closed)
}

// Closing a response that comes together with an error is not waited for.
func TestSender_aResponseAndAnError_held(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, release := time.Now(), make(chan struct{})
		body := closerFunc(func() error { <-release; return nil })
		got := send(t, tripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{Body: struct {
				io.Reader
				io.Closer
			}{http.NoBody, body}}, io.EOF
		}))
		assert.True(t, attempt.IsTimeout(got))
		assert.Equal(t, time.Minute+time.Second/2, time.Since(begun))
		close(release)
	})
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// A panic inside of an http.Transport ends the attempt.
func TestSender_panicOfAProxyFunction(t *testing.T) {
	t.Parallel()
	var ctx context.Context
	transport := &http.Transport{Proxy: func(req *http.Request) (*url.URL, error) {
		ctx = req.Context()
		panic("a bug of the caller")
	}}
	assert.PanicsWithValue(t, "a bug of the caller", func() {
		_, _ = attempt.NewSender(transport, time.Minute).Send(newRequest(t, t.Context()), http.Header{}, nil)
	})
	assert.ErrorIs(t, ctx.Err(), context.Canceled)
}

// A watchedBody counts how often it is closed.
type watchedBody struct {
	io.Reader
	closed int
	err    error // of Close
}

func (b *watchedBody) Close() error { b.closed++; return b.err }

// respondWith responds with a body, and keeps the context of the attempt.
func respondWith(body io.ReadCloser, ctx *context.Context) tripper {
	return func(req *http.Request) (*http.Response, error) {
		*ctx = req.Context()
		return &http.Response{StatusCode: 200, Body: body}, nil
	}
}

func TestSender_withoutABody(t *testing.T) {
	t.Parallel()
	var ctx context.Context
	resp, err := attempt.NewSender(respondWith(nil, &ctx), time.Minute).Send(newRequest(t, t.Context()), http.Header{}, nil)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	assert.NoError(t, err)
	assert.Empty(t, text)
	assert.NoError(t, resp.Body.Close())
}

// The attempt ends when the body of its response is closed, and not before.
func TestSender_endsWithTheBody(t *testing.T) {
	t.Parallel()
	var ctx context.Context
	body := &watchedBody{Reader: strings.NewReader("text"), err: io.ErrClosedPipe}
	resp, err := attempt.NewSender(respondWith(body, &ctx), time.Minute).Send(newRequest(t, t.Context()), http.Header{}, nil)
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	assert.NoError(t, err)
	assert.NoError(t, ctx.Err())
	assert.Zero(t, body.closed)
	assert.ErrorIs(t, resp.Body.Close(), io.ErrClosedPipe)
	assert.Equal(t, 1, body.closed)
	assert.ErrorIs(t, ctx.Err(), context.Canceled)
}

// An attempt without a response leaves no timer behind, also after a panic.
func TestSender_endsWithoutAResponse(t *testing.T) {
	t.Parallel()
	for _, last := range []func() (*http.Response, error){
		func() (*http.Response, error) { return nil, io.EOF },
		func() (*http.Response, error) { return nil, nil },
		func() (*http.Response, error) { panic("a bug of the transport") },
	} {
		var ctx context.Context
		func() {
			defer func() { _ = recover() }()
			_, _ = attempt.NewSender(tripper(func(req *http.Request) (*http.Response, error) {
				ctx = req.Context()
				return last()
			}), time.Minute).Send(newRequest(t, t.Context()), http.Header{}, nil)
		}()
		assert.ErrorIs(t, ctx.Err(), context.Canceled)
	}
}

// untilDone is a RoundTripper or a body that waits for the end of the attempt.
func untilDone(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func TestSender_timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		for range 2 { // each attempt has the whole time
			got := send(t, tripper(untilDone))
			assert.EqualError(t, got, "no response within 1m0s")
			assert.True(t, attempt.IsTimeout(got))
			assert.True(t, got.Retryable())
			assert.NotErrorIs(t, got, context.DeadlineExceeded, "which is the caller's")
		}
		assert.Equal(t, 2*time.Minute, time.Since(begun))
	})
}

// The end of the caller's context is not a timeout of the attempt.
func TestSender_endOfTheCallersContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			if want == context.Canceled {
				time.AfterFunc(10*time.Second, cancel)
			}
			_, err := attempt.NewSender(tripper(untilDone), time.Minute).Send(newRequest(t, ctx), http.Header{}, nil)
			cancel()
			var failure *attempt.Error
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, want, failure.Err)
		}
	})
}

// The time of an attempt includes the reading of the body.
func TestSender_timeoutOfABody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		resp, err := attempt.NewSender(tripper(func(req *http.Request) (*http.Response, error) {
			stall := readerFunc(func([]byte) (int, error) { _, err := untilDone(req); return 0, err })
			return &http.Response{Body: io.NopCloser(io.MultiReader(strings.NewReader("begun"), stall))}, nil
		}), time.Minute).Send(newRequest(t, t.Context()), http.Header{}, nil)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		assert.Equal(t, "begun", string(text))
		assert.EqualError(t, err, "no response within 1m0s")
		assert.True(t, attempt.IsTimeout(err))
		assert.Equal(t, time.Minute, time.Since(begun))
		assert.NoError(t, resp.Body.Close())
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A body that is whole is no timeout, however late it is read; nor is one that was
// cut in time.
func TestSender_errorsOfABody(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for _, want := range []error{io.EOF, io.ErrUnexpectedEOF} {
			synctest.Test(t, func(t *testing.T) {
				var ctx context.Context
				body := readerFunc(func([]byte) (int, error) { return 0, want })
				resp, err := attempt.NewSender(respondWith(io.NopCloser(body), &ctx), time.Minute).Send(newRequest(t, t.Context()), http.Header{}, nil)
				require.NoError(t, err)
				defer resp.Body.Close()
				if late {
					<-ctx.Done()
				}
				_, err = resp.Body.Read(make([]byte, 1))
				if late && want != io.EOF {
					assert.True(t, attempt.IsTimeout(err), "%v", err)
					return
				}
				assert.Equal(t, want, err)
			})
		}
	}
}

// The deadline of an attempt is the earlier one of its own and its parent's, unless that
// has passed without the parent's end.
func TestSender_deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct{ parent, want time.Duration }{
			"the parent's is earlier": {time.Second, time.Second},
			"the parent's is later":   {time.Hour, time.Minute},
			"the parent's has passed": {-time.Second, time.Minute},
		} {
			var got time.Time
			parent := deadlineOnly{t.Context(), time.Now().Add(tt.parent)}
			_, _ = attempt.NewSender(tripper(func(req *http.Request) (*http.Response, error) {
				got, _ = req.Context().Deadline()
				return nil, io.EOF
			}), time.Minute).Send(newRequest(t, parent), http.Header{}, nil)
			assert.Equal(t, tt.want, time.Until(got), name)
		}
	})
}

// A deadlineOnly has a deadline that does not end it.
type deadlineOnly struct {
	context.Context
	at time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.at, true }
