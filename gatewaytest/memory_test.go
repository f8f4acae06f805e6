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

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := start(t).Transport().DialContext(gone, "tcp", "pay.example:80")
	require.ErrorIs(t, err, context.Canceled)
}

// A fault that takes time takes exactly that in a bubble, and a pipe cannot be reset.
func TestNewMemoryServer_faults(t *testing.T) {
	t.Parallel()
	isTimeout := func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
	for _, tt := range []struct {
		fault    gatewaytest.Fault
		status   int
		err      func(error) bool
		invoices int
		took     time.Duration
	}{
		{gatewaytest.FaultStall(), 0, isTimeout, 0, time.Hour},
		{gatewaytest.FaultReset(), 0, isCut, 0, 0},
		{gatewaytest.FaultSlowBody(time.Second), 201, nil, 1, 184 * time.Second},
		{gatewaytest.FaultSlowBody(time.Minute), 201, isTimeout, 1, time.Hour},
	} {
		t.Run(tt.fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := startInMemory(t)
				s.InjectFault(gatewaytest.OpCreateInvoice, 1, tt.fault)
				client := &http.Client{Transport: s.Transport(), Timeout: time.Hour}
				begun := time.Now()
				status, err := order(client, s)
				if tt.err == nil {
					require.NoError(t, err)
				} else {
					require.Truef(t, tt.err(err), "%v", err)
				}
				assert.Equal(t, tt.took, time.Since(begun))
				assert.Equal(t, tt.status, status)
				assert.Equal(t, tt.status, s.Requests()[0].Status)
				assert.Len(t, s.Invoices(), tt.invoices)
				synctest.Wait()
				status, err = order(client, s)
				require.NoError(t, err, "the fault has passed")
				assert.Equal(t, 201, status)
			})
		})
	}
}

// order requests an invoice, and reads the response to its end.
func order(client *http.Client, s *gatewaytest.Server) (status int, err error) {
	resp, err := client.Post(s.URL+"/api/invoice/create", "application/json", strings.NewReader(invoice(s, "o", "")))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
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

// Close ends connections that are idle, that wait, and that never sent a byte. A
// goroutine that remains would fail the bubble.
func TestNewMemoryServer_Close(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := gatewaytest.NewMemoryServer()
		transport := s.Transport()
		require.Equal(t, 200, tryBy(transport, s, "GET", "/api/exchange-rate", "").status)
		silent, err := transport.DialContext(t.Context(), "tcp", "localhost:80")
		require.NoError(t, err)
		s.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultStall())
		s.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultSlowBody(time.Hour))
		var waiting sync.WaitGroup
		for range 2 {
			waiting.Go(func() {
				assert.Error(t, tryBy(transport, s, "GET", "/api/balance/", "", "x-api-key", s.APIKey).err)
			})
		}
		synctest.Wait()
		begun := time.Now()
		s.Close()
		s.Close()
		waiting.Wait()
		_, err = silent.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		assert.Zero(t, time.Since(begun))
		assert.Len(t, s.Requests(), 3, "Close keeps the journal")

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
