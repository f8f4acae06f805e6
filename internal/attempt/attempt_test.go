package attempt_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/attempt"
)

// The limits of the transports of these tests.
const (
	readTimeout, writeTimeout = 15 * time.Second, 30 * time.Second
	maxBody, maxErrorBody     = 64, 16
)

// newTransport returns a transport of these tests. An http.Transport stands for the client's own connections.
func newTransport(next http.RoundTripper) *attempt.Transport {
	transport := &attempt.Transport{
		ReadTimeout: attempt.Timeout(readTimeout), InvoiceTimeout: attempt.Timeout(writeTimeout),
		MaxBody: maxBody, MaxErrorBody: maxErrorBody, IsTransient: func(status int) bool { return status == 503 },
	}
	switch next := next.(type) {
	case *http.Transport:
		transport.Pools = attempt.PoolsOf(next)
	case *attempt.Pools:
		transport.Pools = next
	default:
		transport.Next = next
	}
	return transport
}

// A tripper is a RoundTripper in one function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// hooked returns a transport that makes a request by a function, which calls the hooks of the attempt.
func hooked(trip tripper) *http.Transport {
	next := new(http.Transport)
	next.RegisterProtocol("http", trip)
	return next
}

// newRequest returns a read, or a write of {}.
func newRequest(t testing.TB, ctx context.Context, method, address string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	require.NoError(t, err)
	if method == http.MethodPost {
		req.Body, req.ContentLength = &attempt.Template{Bytes: []byte("{}")}, 2
	}
	return req
}

// try makes one attempt by a transport of these tests.
func try(t testing.TB, next http.RoundTripper, method string) (*http.Response, *attempt.Result, *attempt.Error) {
	return send(newTransport(next), newRequest(t, t.Context(), method, "http://gateway.test/a"))
}

// send makes one attempt, as the client does: through an http.Client that follows no redirect.
func send(transport *attempt.Transport, req *http.Request) (*http.Response, *attempt.Result, *attempt.Error) {
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		failure, _ := errors.AsType[*attempt.Error](err)
		return nil, nil, failure
	}
	return resp, resp.Body.(*attempt.Result), nil
}

// inBubble runs a parallel subtest in a bubble of synctest. At its end net/http may still drain a body
// that was closed early, for a moment of the bubble's time.
func inBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			test(t)
			time.Sleep(time.Second)
		})
	})
}

// textOf is the text of an error, and empty for none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// over returns a transport whose connections are pipes to a peer.
func over(t testing.TB, peer func(net.Conn)) *http.Transport {
	next := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			peer(theirs)
		}()
		return ours, nil
	}}
	t.Cleanup(next.CloseIdleConnections)
	return next
}

// Ends of what a peer reads before it responds.
const (
	wholeHeader = "\r\n\r\n" // of a read: the whole request
	wholeWrite  = "{}"
)

func whole(method string) string {
	if method == http.MethodPost {
		return wholeWrite
	}
	return wholeHeader
}

// says returns a peer that reads up to a text, responds with raw text once the bubble has come to
// rest, and closes the connection. After a text that ends with "…" it keeps it, and is silent.
func says(after, text string) func(net.Conn) {
	return func(conn net.Conn) {
		if !hears(conn, after) {
			return
		}
		time.Sleep(time.Nanosecond)
		text, silent := strings.CutSuffix(text, "…")
		_, _ = io.WriteString(conn, text)
		if silent {
			_, _ = io.Copy(io.Discard, conn)
		}
	}
}

// hears reads up to a text, and not a byte more.
func hears(conn io.Reader, text string) bool {
	for heard := ""; !strings.HasSuffix(heard, text); {
		next := make([]byte, 1)
		if _, err := conn.Read(next); err != nil {
			return false
		}
		heard += string(next)
	}
	return true
}

func TestTransport_responses(t *testing.T) {
	t.Parallel()
	const half = "Content-Length: 9\r\n\r\nhalf"
	full, fullError := strings.Repeat("x", maxBody), strings.Repeat("x", maxErrorBody)
	cut, canceled, large := io.ErrUnexpectedEOF.Error(), context.Canceled.Error(), attempt.ErrTooLarge.Error()
	for _, tt := range []struct {
		name, text           string
		body, err            string // the part of the body that is read, and why not all of it, unless it takes too long
		readTakes, postTakes time.Duration
	}{
		{"a body is read", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody…", "body", "", 0, 0},
		{"a body in chunks is read", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n…", "body", "", 0, 0},
		{"a body without a length ends with its connection", "HTTP/1.1 200 OK\r\n\r\nbody", "body", "", 0, 0},
		{"a response can have no body", "HTTP/1.1 204 No Content\r\n\r\n…", "", "", 0, 0},
		{"an interim response is none", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody…", "body", "", 0, 0},
		{"the beginning of a body that is cut is kept", "HTTP/1.1 200 OK\r\n" + half, "half", cut, 0, 0},
		{"a silent body takes as long as the attempt", "HTTP/1.1 200 OK\r\n" + half + "…", "half", "", readTimeout, writeTimeout},
		{"a read waits a second for the silent body of a transient error", "HTTP/1.1 503 No\r\n" + half + "…", "half", canceled, time.Second, writeTimeout},
		{"a body can be as long as the limit", "HTTP/1.1 200 OK\r\n\r\n" + full, full, "", 0, 0},
		{"a longer body is cut at the limit", "HTTP/1.1 200 OK\r\n\r\n" + full + "y", full, large, 0, 0},
		{"the rest of a longer body is not read", "HTTP/1.1 200 OK\r\n\r\n" + full + "yzzz…", full, large, 0, 0},
		{"the body of an error has another limit", "HTTP/1.1 400 No\r\n\r\n" + fullError, fullError, "", 0, 0},
		{"a longer body of an error is cut at its limit", "HTTP/1.1 400 No\r\n\r\n" + fullError + "yzzz…", fullError, large, 0, 0},
		{"a connection that becomes another is not read", "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nbody…", "", "", 0, 0},
		{"the body of a redirect is not read", "HTTP/1.1 302 Found\r\nLocation: /x\r\n" + half + "…", "", "", 0, 0},
		{"the body of the last status of a redirect is not read", "HTTP/1.1 399 Found\r\n" + half + "…", "", "", 0, 0},
		{"a redirect can name a text that is no URL", "HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n…", "", "", 0, 0},
	} {
		for method, takes := range map[string]time.Duration{http.MethodGet: tt.readTakes, http.MethodPost: tt.postTakes} {
			inBubble(t, method+" "+tt.name, func(t *testing.T) {
				begun, want := time.Now(), tt.err
				resp, result, failure := try(t, over(t, says(whole(method), tt.text)), method)
				require.Nil(t, failure)
				assert.Equal(t, takes, time.Since(begun).Round(time.Second))
				assert.Contains(t, tt.text, resp.Status)
				assert.Equal(t, strings.Contains(tt.text, "Location: /"), resp.Header.Get("Location") != "")
				assert.Equal(t, tt.body, string(result.Text()))
				if takes > time.Second {
					want = attempt.Timeout(takes).Error()
				}
				assert.Equal(t, want, textOf(result.Err))
				assert.NoError(t, result.Ambiguous)
				assert.False(t, result.Unread)
				text, err := io.ReadAll(resp.Body)
				assert.NoError(t, err)
				assert.Equal(t, tt.body, string(text), "it is in memory")
			})
		}
	}
}

// An attempt that takes too long, or whose caller has gone, before there is a connection, a
// response or its end.
func TestTransport_ends(t *testing.T) {
	t.Parallel()
	gone := errors.New("the buyer has gone")
	for _, tt := range []struct {
		name, method string
		lasts        time.Duration // the caller's context
		cause        error         // of its end
		takes        time.Duration
		err          string
	}{
		{"a read has its time", http.MethodGet, time.Hour, nil, readTimeout, "no response within 15s"},
		{"a write has its time", http.MethodPost, time.Hour, nil, writeTimeout, "no response within 30s"},
		{"a caller's deadline ends a read", http.MethodGet, 5 * time.Second, nil, 5 * time.Second, "context deadline exceeded"},
		{"a caller's deadline ends a write", http.MethodPost, 5 * time.Second, nil, 5 * time.Second, "context deadline exceeded"},
		{"a caller ends a read", http.MethodGet, 5 * time.Second, gone, 5 * time.Second, gone.Error()},
		{"a caller ends a write", http.MethodPost, 5 * time.Second, gone, 5 * time.Second, gone.Error()},
	} {
		for text, phase := range map[string]attempt.Phase{
			"": attempt.Dial, "…": attempt.Wait, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf…": -1,
		} {
			inBubble(t, tt.name+" after "+text, func(t *testing.T) {
				begun := time.Now()
				ctx, cancel := context.WithTimeoutCause(t.Context(), tt.lasts, tt.cause)
				defer cancel()
				next := over(t, says(whole(tt.method), text))
				if phase == attempt.Dial {
					next.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
				}
				_, result, failure := send(newTransport(next), newRequest(t, ctx, tt.method, "http://gateway.test/a"))
				var err error
				if failure != nil {
					err = failure.Err
					assert.Equal(t, phase, failure.Phase)
				} else {
					err = result.Err
					assert.EqualValues(t, -1, phase)
				}
				assert.EqualError(t, err, tt.err)
				assert.Equal(t, tt.cause == nil, attempt.IsTimeout(err))
				assert.Equal(t, tt.cause == nil, errors.Is(err, context.DeadlineExceeded))
				assert.False(t, errors.Is(err, context.Canceled))
				assert.Equal(t, tt.takes, time.Since(begun).Round(time.Second))
			})
		}
	}
}

// How far an attempt without a response came, told by net/http.
func TestTransport_phases(t *testing.T) {
	t.Parallel()
	refused := opError("dial", "connect", syscall.ECONNREFUSED)
	noTLS := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 1<<16)) // the whole hello
			_, _ = io.WriteString(conn, text)
		}
	}
	for _, tt := range []struct {
		name, scheme string
		proxy        bool
		dial         error
		peer         func(net.Conn)
		phase        string
		unread       bool
		err          string
	}{
		{"a scheme that nobody knows", "gopher", false, nil, nil, "start", true, `unsupported protocol scheme "gopher"`},
		{"a host that is not found", "http", false, &net.DNSError{Err: "no such host", Name: "a"}, nil, "dial", true, "lookup a: no such host"},
		{"no connection", "https", false, refused, nil, "dial", true, refused.Error()},
		{"no connection to a proxy", "https", true, refused, nil, "dial", true, "proxyconnect tcp: " + refused.Error()},
		{"a proxy that asks for a password", "https", true, nil, says(wholeHeader, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n…"), "dial", true, "Proxy Authentication Required"},
		{"a proxy that never answers", "https", true, nil, says(wholeHeader, "…"), "dial", true, "no response within 30s"},
		{"no handshake behind a proxy", "https", true, nil, func(conn net.Conn) {
			says(wholeHeader, "HTTP/1.1 200 OK\r\n\r\n")(conn)
			_, _ = conn.Read(make([]byte, 1<<16))
		}, "tls", true, "EOF"},
		{"no handshake", "https", false, nil, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1<<16)) }, "tls", true, "EOF"},
		{"a server without TLS", "https", false, nil, noTLS("HTTP/1.1 400 Bad Request\r\n\r\n"), "tls", true, "http: server gave HTTP response to HTTPS client"},
		{"a server without HTTP", "https", false, nil, noTLS("SSH-2.0-OpenSSH_9.6\r\n"), "tls", true, "first record does not look like a TLS handshake"},
		{"an end within the header", "http", false, nil, says("POST", ""), "write", true, ""},
		{"an end within the body", "http", false, nil, says(wholeHeader+"{", ""), "write", false, ""},
		{"an end after the body", "http", false, nil, says(wholeWrite, ""), "wait", false, "EOF"},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			next := over(t, tt.peer)
			if tt.dial != nil {
				next.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, tt.dial }
			}
			next.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // as the environment has it without a proxy
			if tt.proxy {
				next.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test:3128"})
			}
			_, _, got := send(newTransport(next), newRequest(t, t.Context(), http.MethodPost, tt.scheme+"://gateway.test/a"))
			require.NotNil(t, got)
			assert.Equal(t, tt.phase, got.Phase.String(), got.Error())
			assert.Equal(t, tt.unread, got.Unread)
			assert.ErrorContains(t, got, tt.err)
			assert.Equal(t, got.Err, errors.Unwrap(got))
		})
	}
}

// A transport that calls no hooks reports no phase, whatever its error looks like.
func TestTransport_phasesOfHooks(t *testing.T) {
	t.Parallel()
	refused := opError("dial", "connect", syscall.ECONNREFUSED)
	for _, tt := range []struct {
		name string
		call func(*httptrace.ClientTrace)
		want attempt.Phase
	}{
		{"none", func(*httptrace.ClientTrace) {}, attempt.Start},
		{"a connection is asked for", func(hooks *httptrace.ClientTrace) { hooks.GetConn("gateway.test:80") }, attempt.Dial},
		{"there is a connection", func(hooks *httptrace.ClientTrace) { hooks.GotConn(httptrace.GotConnInfo{}) }, attempt.Write},
		{"the request could not be written", func(hooks *httptrace.ClientTrace) {
			hooks.GotConn(httptrace.GotConnInfo{})
			hooks.WroteRequest(httptrace.WroteRequestInfo{Err: io.EOF})
		}, attempt.Write},
		{"the request was written", func(hooks *httptrace.ClientTrace) { hooks.WroteRequest(httptrace.WroteRequestInfo{}) }, attempt.Wait},
	} {
		_, _, got := try(t, tripper(func(req *http.Request) (*http.Response, error) {
			tt.call(httptrace.ContextClientTrace(req.Context()))
			return nil, refused
		}), http.MethodGet)
		assert.Equal(t, &attempt.Error{Phase: tt.want, Err: refused}, got, tt.name)
	}
}

// A peer of HTTP/2 that sends each request away moves a read to two other connections, and a write
// to none. On a fourth, which net/http may have begun to make, nothing is sent.
func TestTransport_connections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method, err string
		connections int32
	}{
		{http.MethodGet, "the peer closed 3 connections in a row without a response", 3},
		{http.MethodPost, "define Request.GetBody to avoid this error", 1},
	} {
		inBubble(t, tt.method, func(t *testing.T) {
			const settings, goAway = "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
			var connections atomic.Int32
			next := over(t, func(conn net.Conn) {
				if hears(conn, wholeWrite) && connections.Add(1) < 9 {
					says("", settings+goAway+"…")(conn)
				}
			})
			next.Protocols = new(http.Protocols)
			next.Protocols.SetUnencryptedHTTP2(true)
			req := newRequest(t, t.Context(), tt.method, "http://gateway.test/a")
			if tt.method == http.MethodGet {
				req.Header.Set("User-Agent", wholeWrite) // HPACK leaves it as it is
			}
			_, _, got := send(newTransport(next), req)
			require.NotNil(t, got)
			assert.ErrorContains(t, got, tt.err)
			assert.True(t, got.Retryable())
			assert.Equal(t, tt.connections, connections.Load())
		})
	}
}

// frames is a peer of HTTP/2 without TLS that processes each write, and then sends frames with the number of its stream.
func frames(processed *atomic.Int32, text string) func(net.Conn) {
	return func(conn net.Conn) {
		settings := "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		for stream := byte(1); hears(conn, wholeWrite); stream += 2 {
			processed.Add(1)
			time.Sleep(time.Nanosecond)
			_, _ = io.WriteString(conn, settings+strings.ReplaceAll(text, "STREAM", string([]byte{0, 0, 0, stream})))
			settings = ""
		}
	}
}

// What says that a write was not processed is not believed. HAProxy also sends REFUSED_STREAM when the server behind it has
// processed the write, and then closed its connection without a response. The nghttp2 of Node hands on the streams that a
// GOAWAY excludes while the frame is queued.
func TestTransport_notProcessed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"REFUSED_STREAM": "\x00\x00\x04\x03\x00STREAM\x00\x00\x00\x07",
		"GOAWAY":         "\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		for _, wrapped := range []bool{false, true} { // by a middleware that has set GetBody, with which net/http would send it again
			inBubble(t, fmt.Sprint(name, ", a middleware: ", wrapped), func(t *testing.T) {
				var processed atomic.Int32
				next := over(t, frames(&processed, text))
				next.Protocols = new(http.Protocols)
				next.Protocols.SetUnencryptedHTTP2(true)
				transport := newTransport(next)
				if wrapped {
					transport.Next = tripper(func(req *http.Request) (*http.Response, error) {
						body, err := io.ReadAll(req.Body)
						require.NoError(t, err)
						again, err := http.NewRequestWithContext(req.Context(), req.Method, req.URL.String(), bytes.NewReader(body))
						require.NoError(t, err)
						return transport.Pools.RoundTrip(again)
					})
				}
				_, _, got := send(transport, newRequest(t, t.Context(), http.MethodPost, "http://gateway.test/a"))
				require.NotNil(t, got)
				assert.False(t, got.Unread, "it may have been processed")
				assert.EqualValues(t, 1, processed.Load())
				assert.NotSame(t, next, transport.Pools.Invoices(), "later ones use another connection")
			})
		}
	}
}

// A connection that net/http begins after the last one does not hide why the attempt has ended.
func TestTransport_connectionsBegun(t *testing.T) {
	t.Parallel()
	_, _, got := try(t, hooked(func(req *http.Request) (*http.Response, error) {
		hooks := httptrace.ContextClientTrace(req.Context())
		for range 3 {
			hooks.GetConn("gateway.test:443")
			hooks.TLSHandshakeStart()
			hooks.GotConn(httptrace.GotConnInfo{})
		}
		hooks.GetConn("gateway.test:443")
		hooks.TLSHandshakeStart()
		return nil, context.Cause(req.Context())
	}), http.MethodGet)
	require.ErrorContains(t, got, "the peer closed 3 connections in a row without a response")
	assert.Equal(t, attempt.Dial, got.Phase)
	assert.True(t, got.Retryable())
}

// A peer that closes an idle connection at the next request moves a read to the next one, and to a
// new one in the end. A write is sent once.
func TestTransport_idleConnections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method         string
		dialed, closed int32
	}{{http.MethodGet, 5, 4}, {http.MethodPost, 4, 1}} {
		inBubble(t, tt.method, func(t *testing.T) {
			var dialed, closed atomic.Int32
			next := over(t, func(conn net.Conn) {
				dialed.Add(1)
				says(wholeHeader, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")(conn)
				if hears(conn, whole(tt.method)) {
					closed.Add(1)
				}
			})
			next.MaxIdleConnsPerHost = 4
			var warm [4]*http.Response
			for i := range warm {
				var err error
				warm[i], err = next.RoundTrip(newRequest(t, t.Context(), http.MethodGet, "http://gateway.test/a"))
				require.NoError(t, err)
			}
			for _, resp := range warm {
				_, _ = io.ReadAll(resp.Body)
				require.NoError(t, resp.Body.Close())
			}
			_, result, failure := try(t, next, tt.method)
			if tt.method == http.MethodGet {
				require.Nil(t, failure)
				assert.Equal(t, "body", string(result.Text()))
			} else {
				assert.False(t, failure.Unread)
			}
			assert.Equal(t, tt.dialed, dialed.Load())
			assert.Equal(t, tt.closed, closed.Load())
		})
	}
}

// A write whose body was not read was not sent, and never will be.
func TestTransport_unread(t *testing.T) {
	t.Parallel()
	read := func(n int) func(io.ReadCloser) { return func(body io.ReadCloser) { _, _ = body.Read(make([]byte, n)) } }
	for _, tt := range []struct {
		name string
		use  func(body io.ReadCloser)
		want bool
	}{
		{"nothing is done with it", func(io.ReadCloser) {}, true},
		{"it is closed", func(body io.ReadCloser) { _ = body.Close() }, true},
		{"nothing is read, but it could have been", read(0), false},
		{"a byte is read", read(1), false},
		{"all is read", read(2), false},
	} {
		for end, next := range map[string]tripper{
			"a response": func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 201}, nil },
			"an error":   func(*http.Request) (*http.Response, error) { return nil, io.EOF },
			"neither":    func(*http.Request) (*http.Response, error) { return nil, nil },
		} {
			var body io.ReadCloser
			req := newRequest(t, t.Context(), http.MethodPost, "http://gateway.test/a")
			template := req.Body
			resp, err := newTransport(tripper(func(req *http.Request) (*http.Response, error) {
				body = req.Body
				tt.use(body)
				assert.Nil(t, req.GetBody)
				return next(req)
			})).RoundTrip(req)
			if err == nil {
				assert.Equal(t, tt.want, resp.Body.(*attempt.Result).Unread, "%s, %s", tt.name, end)
			} else {
				failure, _ := errors.AsType[*attempt.Error](err)
				assert.Equal(t, tt.want, failure.Unread, "%s, %s", tt.name, end)
				assert.Contains(t, "EOF; the RoundTripper returned neither a response nor an error", failure.Error())
			}
			assert.Same(t, template, req.Body, "the caller's request is not changed")
			for _, over := range []io.Reader{body, template} {
				n, err := over.Read(make([]byte, 1))
				assert.Zero(t, n)
				assert.EqualError(t, err, sealedText)
			}
		}
	}
}

// A body that was begun is sent to its end while the response comes.
func TestTransport_sendsWhileItReads(t *testing.T) {
	t.Parallel()
	var rest []byte
	_, result, failure := try(t, tripper(func(req *http.Request) (*http.Response, error) {
		_, _ = req.Body.Read(make([]byte, 1))
		response, send := io.Pipe()
		go func() {
			rest, _ = io.ReadAll(req.Body)
			_ = send.Close()
		}()
		return &http.Response{StatusCode: 201, Body: response}, nil
	}), http.MethodPost)
	require.Nil(t, failure)
	assert.NoError(t, result.Err)
	assert.Equal(t, "}", string(rest))
}

// A write whose time has passed is not begun.
func TestTransport_expires(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		until time.Duration
		err   string
		phase attempt.Phase
		heard string // the end of what the peer has heard; "" for nothing
	}{
		{"before the attempt", 0, attempt.ErrExpired.Error(), attempt.Start, ""},
		{"while it connects", time.Second, sealedText, attempt.Write, wholeHeader},
		{"later", 3 * time.Second, "EOF", attempt.Wait, wholeHeader + wholeWrite},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			var heard strings.Builder
			next := over(t, func(conn net.Conn) {
				if hears(io.TeeReader(conn, &heard), wholeWrite) {
					time.Sleep(time.Nanosecond)
				}
			})
			dial := next.DialContext
			next.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				time.Sleep(2 * time.Second)
				return dial(ctx, network, address)
			}
			req := newRequest(t, t.Context(), http.MethodPost, "http://gateway.test/a")
			req.Body = &attempt.Template{Bytes: []byte(wholeWrite), Expires: time.Now().Add(tt.until)}
			_, _, got := send(newTransport(next), req)
			synctest.Wait()
			assert.ErrorContains(t, got, tt.err)
			assert.Equal(t, tt.phase, got.Phase)
			assert.Equal(t, tt.err != "EOF", got.Unread)
			assert.Equal(t, tt.heard == "", heard.Len() == 0)
			assert.True(t, strings.HasSuffix(heard.String(), tt.heard), heard.String())
		})
	}
}

const early = "the response began before the invoice was sent: it may answer something else"

// An agreed is a connection over TLS, with an agreement on the protocol.
type agreed struct {
	net.Conn
	protocol string
}

func agreedOn(protocol string) net.Conn { return agreed{protocol: protocol} }

func (a agreed) ConnectionState() tls.ConnectionState {
	return tls.ConnectionState{NegotiatedProtocol: a.protocol}
}

// A response that begins before the header of a write is written may be to something else, unless its
// connection has streams.
func TestTransport_early(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		conn net.Conn
		want string // of a write
	}{
		{"without TLS", pipe{}, early},
		{"over TLS", agreedOn(""), early},
		{"where HTTP/1.1 was agreed on", agreedOn("http/1.1"), early},
		{"over HTTP/2", agreedOn("h2"), ""},
	} {
		for method, want := range map[string]string{http.MethodPost: tt.want, http.MethodGet: ""} {
			trip := tripper(func(req *http.Request) (*http.Response, error) {
				hooks := httptrace.ContextClientTrace(req.Context())
				hooks.GotConn(httptrace.GotConnInfo{Conn: tt.conn})
				if hooks.GotFirstResponseByte != nil {
					hooks.GotFirstResponseByte()
					hooks.WroteHeaders()
				}
				return &http.Response{StatusCode: 201, ProtoMajor: 2}, nil
			})
			_, result, _ := try(t, hooked(trip), method)
			assert.Equal(t, want, textOf(result.Ambiguous), "%s %s", method, tt.name)
			_, result, _ = try(t, trip, method)
			assert.NoError(t, result.Ambiguous, "%s %s, by a RoundTripper of the caller's", method, tt.name)
			_, _, failure := try(t, hooked(func(req *http.Request) (*http.Response, error) { _, _ = trip(req); return nil, io.EOF }), method)
			assert.EqualError(t, failure, "EOF", "%s %s, and there is no response in the end", method, tt.name)
		}
	}
}

// The same with net/http, and a header that it does not write at once.
func TestTransport_ambiguous(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, after, text, want string }{
		{"a response after the first byte", "P", "HTTP/1.1 201 OK\r\nContent-Length: 0\r\n\r\n…", early},
		{"a response that says HTTP/2", "P", "HTTP/2.0 201 OK\r\nContent-Length: 0\r\n\r\n…", early},
		{"a response to the header alone", wholeHeader, "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n…", ""},
		{"a response to all", wholeWrite, "HTTP/1.1 201 OK\r\nContent-Length: 0\r\n\r\n…", ""},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			req := newRequest(t, t.Context(), http.MethodPost, "http://gateway.test/a")
			req.Header.Set("User-Agent", strings.Repeat("x", 8<<10))
			_, result, failure := send(newTransport(over(t, says(tt.after, tt.text))), req)
			require.Nil(t, failure)
			assert.Equal(t, tt.want, textOf(result.Ambiguous))
		})
	}
}

// An announced length is believed to 8 MiB, and not beyond the limit.
func TestTransport_announcedLengths(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		announced, limit int64
		come             int
		least, most      int // of the buffer
	}{
		{"the announced body comes, and the buffer does not grow", 1 << 20, 1 << 40, 1 << 20, 1 << 20, 3 << 19},
		{"of 1 TiB 8 MiB are believed", 1 << 40, 1 << 40, 1, 8 << 20, 9 << 20},
		{"no more than the limit is believed", 1 << 40, 1 << 10, 1, 1 << 10, 2 << 10},
		{"nothing is announced", -1, 1 << 40, 1, 1, 1 << 10},
	} {
		transport := newTransport(tripper(func(*http.Request) (*http.Response, error) {
			body := bytes.NewReader(make([]byte, tt.come))
			return &http.Response{StatusCode: 200, ContentLength: tt.announced, Body: io.NopCloser(body)}, nil
		}))
		transport.MaxBody = tt.limit
		_, result, _ := send(transport, newRequest(t, t.Context(), http.MethodGet, "http://gateway.test/a"))
		assert.NoError(t, result.Err, tt.name)
		assert.Len(t, result.Text(), tt.come, tt.name)
		assert.GreaterOrEqual(t, cap(result.Text()), tt.least, tt.name)
		assert.LessOrEqual(t, cap(result.Text()), tt.most, tt.name)
	}
}

// Close gives the buffer to another attempt, once, unless it is large. Until then it is nobody else's.
func TestResult_Close(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]bool{1 << 10: true, 1<<20 - bytes.MinRead: true, 1<<20 + 1: false} {
		fill := byte(0)
		transport := newTransport(tripper(func(*http.Request) (*http.Response, error) {
			fill++
			body := bytes.NewReader(bytes.Repeat([]byte{fill}, length))
			return &http.Response{StatusCode: 200, ContentLength: int64(length), Body: io.NopCloser(body)}, nil
		}))
		transport.MaxBody = 2 << 20
		get := func() (*attempt.Result, *byte) {
			_, result, _ := send(transport, newRequest(t, t.Context(), http.MethodGet, "http://gateway.test/a"))
			require.Equal(t, length, bytes.Count(result.Text(), []byte{fill}))
			return result, unsafe.SliceData(result.Text())
		}
		again := false
		for range 8 { // a pool may drop what it is given
			first, buffer := get()
			assert.NoError(t, first.Close())
			rest, err := io.ReadAll(first)
			assert.NoError(t, err)
			assert.Empty(t, rest)
			assert.NoError(t, first.Close())
			second, secondBuffer := get()
			third, thirdBuffer := get()
			again = again || secondBuffer == buffer
			require.NotSame(t, secondBuffer, thirdBuffer)
			require.NotEqual(t, second.Text()[0], third.Text()[0])
		}
		assert.Equal(t, want, again, length)
	}
}

// A write sees the values and the deadline of its caller's context. After cancelling, no reading of its body begins. A
// write that was begun goes on until it has a response, for as long as its own time, or until the caller's deadline.
func TestTransport_callerEnds(t *testing.T) {
	t.Parallel()
	type valueKey struct{}
	for _, tt := range []struct {
		name     string
		lasts    time.Duration // the caller's context; 0 for no deadline
		cancelAt int           // what was read of the body by then; below zero for before the attempt
		silent   bool          // there is no response
		read     string        // of the body
		err      string
		takes    time.Duration
	}{
		{"before the attempt", time.Second, -1, false, "not asked", "the buyer has gone", 0},
		{"while it connects", time.Hour, 0, true, "not asked", "the buyer has gone", 0},
		{"before the body is read", time.Second, 0, false, "", sealedText, 0},
		{"within the body", time.Second, 1, false, "{}", "", 0},
		{"after the body", time.Second, 2, false, "{}", "", 0},
		{"after the body, without a deadline", 0, 2, false, "{}", "", 0},
		{"after the body, and no response comes before the deadline", time.Second, 2, true, "{}", "context deadline exceeded", time.Second},
		{"after the body, and no response comes before a late deadline", time.Hour, 2, true, "{}", "no response within 30s", writeTimeout},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			ctx := context.WithValue(t.Context(), valueKey{}, "the caller's")
			if tt.lasts > 0 {
				bounded, stop := context.WithTimeout(ctx, tt.lasts)
				defer stop()
				ctx = bounded
			}
			ctx, cancel := context.WithCancelCause(ctx)
			gone, read, begun := errors.New("the buyer has gone"), "not asked", time.Now()
			if tt.cancelAt < 0 {
				cancel(gone)
			}
			_, _, failure := send(newTransport(tripper(func(req *http.Request) (*http.Response, error) {
				assert.Equal(t, "the caller's", req.Context().Value(valueKey{}))
				deadline, _ := req.Context().Deadline()
				assert.Equal(t, min(cmp.Or(tt.lasts, writeTimeout), writeTimeout), time.Until(deadline))
				first := make([]byte, tt.cancelAt)
				_, err := io.ReadFull(req.Body, first)
				assert.NoError(t, err)
				cancel(gone)
				if tt.read == "not asked" {
					<-req.Context().Done()
					return nil, req.Context().Err()
				}
				rest, err := io.ReadAll(req.Body)
				if read = string(first) + string(rest); err != nil {
					return nil, err
				}
				synctest.Wait()
				assert.NoError(t, req.Context().Err())
				if tt.silent {
					<-req.Context().Done()
					return nil, req.Context().Err()
				}
				return &http.Response{StatusCode: 201, Header: http.Header{}, Body: http.NoBody}, nil
			})), newRequest(t, ctx, http.MethodPost, "http://gateway.test/a"))
			assert.Equal(t, tt.read, read)
			assert.Equal(t, tt.takes, time.Since(begun))
			if tt.err == "" {
				assert.Nil(t, failure)
				return
			}
			require.NotNil(t, failure)
			assert.EqualError(t, failure, tt.err)
			assert.Equal(t, tt.read != "{}", failure.Unread)
		})
	}
}

// Whoever decides when a write begins to send its body also decides when it ends: it ends with its context.
func TestTransport_begin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		begins bool
		reads  int // of the body before the context ends; below zero for none
		unread bool
		err    string
	}{
		{"the context ends before the body is read", true, -1, true, "the flight is over"},
		{"the context ends within the body", true, 1, false, "the flight is over"},
		{"the context ends after the body", true, 2, false, "the flight is over"},
		{"the body may not be read", false, 1, true, sealedText},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			asked := 0
			req := newRequest(t, ctx, http.MethodPost, "http://gateway.test/a")
			req.Body.(*attempt.Template).Begin = func() bool { asked++; return tt.begins }
			_, _, failure := send(newTransport(tripper(func(req *http.Request) (*http.Response, error) {
				assert.Zero(t, asked)
				for range tt.reads {
					if _, err := io.ReadFull(req.Body, make([]byte, 1)); err != nil {
						return nil, err
					}
				}
				cancel(errors.New("the flight is over"))
				<-req.Context().Done()
				return nil, req.Context().Err()
			})), req)
			require.NotNil(t, failure)
			assert.EqualError(t, failure, tt.err)
			assert.Equal(t, tt.unread, failure.Unread)
			assert.Equal(t, min(max(tt.reads, 0), 1), asked, "once")
		})
	}
}
