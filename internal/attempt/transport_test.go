package attempt_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
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

func TestNewTransport(t *testing.T) {
	t.Parallel()
	got := attempt.NewTransport(7 * time.Second)
	assert.NotSame(t, got, attempt.NewTransport(7*time.Second), "each has connections of its own")
	assert.Equal(t, 7*time.Second, got.IdleConnTimeout)
	assert.EqualValues(t, tls.VersionTLS12, got.TLSClientConfig.MinVersion)
	assert.False(t, got.TLSClientConfig.InsecureSkipVerify)
	assert.Equal(t, 10*time.Second, got.TLSHandshakeTimeout)
	assert.True(t, got.ForceAttemptHTTP2)
	assert.Equal(t, http.HTTP2Config{
		SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second, WriteByteTimeout: 10 * time.Second,
	}, *got.HTTP2, "a dead connection is found")
	assert.Equal(t, []int{256, 64}, []int{got.MaxIdleConns, got.MaxIdleConnsPerHost})
	assert.EqualValues(t, 256<<10, got.MaxResponseHeaderBytes)
	assert.NotNil(t, got.Proxy, "the proxy of the environment is used")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := got.DialContext(ended, "tcp", "127.0.0.1:1")
	assert.ErrorContains(t, err, "dial tcp")
}

// The transports of a Split share the sessions of TLS, and nothing else.
func TestNewSplit(t *testing.T) {
	t.Parallel()
	s := attempt.NewSplit(2*time.Second, time.Minute)
	assert.Equal(t, 2*time.Second, s.Invoices.IdleConnTimeout)
	assert.Equal(t, time.Minute, s.Shared.IdleConnTimeout)
	assert.Equal(t, -1, s.Invoices.MaxIdleConnsPerHost)
	assert.Equal(t, 64, s.Shared.MaxIdleConnsPerHost, "a Dedicated is a copy")
	assert.Same(t, s.Shared.TLSClientConfig.ClientSessionCache, s.Invoices.TLSClientConfig.ClientSessionCache)
}

// A pipe notes that it was closed.
type pipe struct {
	net.Conn
	closed *atomic.Int32
}

func (p pipe) Close() error { p.closed.Add(1); return p.Conn.Close() }

// Over HTTP/1.1 each POST has a connection of its own, which is closed, and reads share one.
func TestSplit_http1(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dialed, closed atomic.Int32
		shared := over(t, func(conn net.Conn) {
			for reader := bufio.NewReader(conn); ; {
				req, err := http.ReadRequest(reader)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")
			}
		})
		dial := shared.DialContext
		shared.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed.Add(1)
			conn, err := dial(ctx, network, address)
			return pipe{conn, &closed}, err
		}
		split := &attempt.Split{Invoices: attempt.Dedicated(shared, time.Minute), Shared: shared}
		assert.Zero(t, [2]int64{int64(shared.MaxIdleConnsPerHost), int64(shared.IdleConnTimeout)}, "it is not changed")
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
			_, result, failure := try(t, split, tt.method)
			require.Nil(t, failure)
			assert.Equal(t, "body", string(result.Text()))
			synctest.Wait()
			assert.Equal(t, tt.dialed, dialed.Load(), "request %d", i)
			assert.Equal(t, tt.closed, closed.Load(), "request %d", i)
		}
		begun := time.Now()
		time.Sleep(time.Second)
		split.Renew(begun)
		synctest.Wait()
		assert.EqualValues(t, 4, closed.Load(), "the old connection is closed")
		for range 2 {
			split.Renew(begun)
			_, _, failure := try(t, split, http.MethodGet)
			require.Nil(t, failure)
			assert.EqualValues(t, 5, dialed.Load(), "reads have a new connection, once for all that failed before")
		}
		time.Sleep(time.Minute)
		split.Renew(begun)
		split.Renew(time.Now())
		_, _, failure := try(t, split, http.MethodGet)
		require.Nil(t, failure)
		assert.EqualValues(t, 6, dialed.Load())
		split.CloseIdleConnections()
		synctest.Wait()
		assert.EqualValues(t, 6, closed.Load())
	})
}

// Over HTTP/2 POSTs share a connection, but never with reads, until the idle ones are closed.
func TestSplit_http2(t *testing.T) {
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
	shared := attempt.NewTransport(time.Minute)
	shared.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	split := &attempt.Split{Invoices: attempt.Dedicated(shared, time.Minute), Shared: shared}
	t.Cleanup(split.CloseIdleConnections)
	use := func(method, want string) {
		_, result, failure := send(newTransport(split), newRequest(t, t.Context(), method, server.URL))
		require.Nil(t, failure)
		assert.Equal(t, "HTTP/2.0 "+want, string(result.Text()))
		assert.NoError(t, result.Ambiguous)
	}
	for range 3 {
		use(http.MethodPost, "1")
		use(http.MethodGet, "2")
	}
	split.CloseIdleConnections()
	use(http.MethodPost, "3")
	use(http.MethodGet, "4")
	split.Renew(time.Now())
	use(http.MethodGet, "5")
	use(http.MethodPost, "3")
}

// What is in use when a transport is renewed is closed when it is not any more, over both versions of
// HTTP and whatever else goes on.
func TestSplit_Renew(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint("HTTP/2: ", http2), func(t *testing.T) {
			t.Parallel()
			var open atomic.Int64
			arrived, answer := make(chan struct{}, 64), make(chan struct{})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					arrived <- struct{}{}
					<-answer
				}
				_, _ = io.WriteString(w, "body")
			}))
			server.EnableHTTP2 = http2
			gone := make(chan struct{}, 256)
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				switch state {
				case http.StateNew:
					open.Add(1)
				case http.StateClosed:
					open.Add(-1)
					gone <- struct{}{}
				}
			}
			server.StartTLS()
			t.Cleanup(server.Close)
			split := attempt.NewSplit(time.Minute, time.Minute)
			split.Shared.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			t.Cleanup(split.CloseIdleConnections)
			transport := newTransport(split)
			get := func(path string) {
				_, _, failure := send(transport, newRequest(t, t.Context(), http.MethodGet, server.URL+path))
				assert.Nil(t, failure)
			}
			var slow sync.WaitGroup
			for range 8 {
				slow.Go(func() { get("/slow") })
				<-arrived
			}
			before := open.Load()
			split.Renew(time.Now())
			get("/") // on a new connection
			assert.Equal(t, before+1, open.Load())
			close(answer)
			slow.Wait()
			for range before {
				<-gone
			}
			assert.EqualValues(t, 1, open.Load())
		})
	}
}
