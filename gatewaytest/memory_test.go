package gatewaytest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// Each server has a URL and a key of its own, and the same data.
func TestNewServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		start func(...gatewaytest.Option) *gatewaytest.Server
		url   string
	}{{gatewaytest.NewServer, `^http://127\.0\.0\.1:\d+/gateway$`}, {gatewaytest.NewMemoryServer, `^http://localhost/gateway$`}} {
		one, other := tt.start(), tt.start()
		t.Cleanup(one.Close)
		t.Cleanup(other.Close)
		assert.Regexp(t, tt.url, one.URL)
		assert.Regexp(t, `^test-key-[A-Z2-7]{26}$`, one.APIKey)
		assert.Equal(t, `gatewaytest.Server{URL:"`+one.URL+`", APIKey:"[REDACTED]"}`, one.String())
		assert.Equal(t, one.Catalog(), other.Catalog())
		for s, status := range map[*gatewaytest.Server]int{one: 200, other: 401} {
			assert.Empty(t, s.Requests())
			assert.Equal(t, status, mustTry(t, s, "GET", "/api/balance/", "", "x-api-key", one.APIKey).status)
		}
	}
}

// The transport of a server with a port connects to it, whatever the URL.
func TestServer_Transport(t *testing.T) {
	t.Parallel()
	s := start(t)
	transport := s.Transport()
	assert.Equal(t, 200, tryBy(transport, s, "GET", "/api/exchange-rate", "").status)
	s.URL = "http://pay.example/gateway"
	assert.Equal(t, 200, tryBy(transport, s, "GET", "/api/exchange-rate", "").status)
	assert.NotSame(t, transport, s.Transport())
	s.Close()
	assert.Error(t, tryBy(transport, s, "GET", "/api/exchange-rate", "").err)
}

// A slow body takes exactly its time in a bubble, and a pipe cannot be reset.
func TestNewMemoryServer_faults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t)
		s.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultSlowBody(time.Minute))
		begun := time.Now()
		got := post(s, invoice(s, "o", ""))
		require.NoError(t, got.err)
		assert.Equal(t, time.Duration(len(got.body))*time.Minute, time.Since(begun))
		s.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultReset())
		assert.True(t, isCut(post(s, invoice(s, "o", "")).err))
		assert.Len(t, s.Invoices(), 1)
	})
}

// A pipe has no buffer, so that a write waits for a read: a body that is refused
// before it has been read must not block both sides.
func TestNewMemoryServer_large_request(t *testing.T) {
	t.Parallel()
	for _, size := range []int{64<<10 + 1, 4 << 20} {
		synctest.Test(t, func(t *testing.T) {
			s := startInMemory(t)
			got := tryBy(s.Transport(), s, "POST", "/api/invoice/create", strings.Repeat(" ", size), "Content-Type", "application/json")
			require.NoError(t, got.err)
			assert.Equal(t, 413, got.status)
		})
	}
}

// Close ends connections that are idle, that wait, that sent half a request, whose body is not read, and that never sent a byte. A
// goroutine that remains would fail the bubble.
func TestNewMemoryServer_Close(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := gatewaytest.NewMemoryServer()
		transport := s.Transport()
		require.Equal(t, 200, tryBy(transport, s, "GET", "/api/exchange-rate", "").status)
		s.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultStall())
		s.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultSlowBody(time.Hour))
		var waiting sync.WaitGroup
		for range 2 {
			waiting.Go(func() {
				assert.Error(t, tryBy(transport, s, "GET", "/api/balance/", "", "x-api-key", s.APIKey).err)
			})
		}
		s.InjectFault(gatewaytest.OpCreateInvoice, -1, gatewaytest.FaultSlowBody(time.Hour))
		const create = "POST /gateway/api/invoice/create HTTP/1.1\r\nHost: gateway\r\nContent-Length: 1000000\r\n\r\n"
		for _, text := range []string{"", create + "{", create + strings.Repeat(" ", 100_000)} { // net/http does not read the last to its end
			conn, err := transport.DialContext(t.Context(), "tcp", "localhost:80")
			require.NoError(t, err)
			waiting.Go(func() { _, _ = io.WriteString(conn, text) })
			waiting.Go(func() { _, _ = io.Copy(io.Discard, conn) })
		}
		synctest.Wait()
		begun := time.Now()
		s.Close()
		s.Close()
		waiting.Wait()
		assert.Zero(t, time.Since(begun))
		assert.Len(t, s.Requests(), 5, "Close keeps the journal")

		got := tryBy(transport, s, "GET", "/api/exchange-rate", "")
		require.ErrorContains(t, got.err, "dial pipe gatewaytest: the server is closed")
	})
}

// A client that disconnects releases its handler.
func TestNewMemoryServer_disconnect(t *testing.T) {
	t.Parallel()
	for _, fault := range []gatewaytest.Fault{gatewaytest.FaultStall(), gatewaytest.FaultSlowBody(time.Hour), gatewaytest.FaultHugeBody(1 << 60)} {
		synctest.Test(t, func(t *testing.T) {
			s := startInMemory(t)
			s.InjectFault(gatewaytest.AnyOperation, 1, fault)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var waiting sync.WaitGroup
			waiting.Go(func() {
				req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/api/exchange-rate", nil)
				assert.NoError(t, err)
				resp, err := s.Transport().RoundTrip(req)
				if err == nil {
					_, err = io.ReadFull(resp.Body, make([]byte, 2))
					<-ctx.Done()
					assert.NoError(t, resp.Body.Close())
				}
				assert.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
			})
			synctest.Wait()
			cancel()
			waiting.Wait()
		})
	}
}
