package wire

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// A handshakes server is the stand-in behind TLS, and counts what its clients do there.
type handshakes struct {
	*httptest.Server
	mu      sync.Mutex
	resumed map[string]bool // by connection
	proto   int
}

func newHandshakes(t *testing.T, http2 bool) *handshakes {
	gw := gatewaytest.NewServer(gatewaytest.WithAPIKey(canary))
	t.Cleanup(gw.Close)
	s, next := &handshakes{resumed: map[string]bool{}}, gw.Handler()
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.resumed[r.RemoteAddr], s.proto = r.TLS.DidResume, r.ProtoMajor
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	}))
	s.EnableHTTP2, s.TLS = http2, certificates().Server()
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// counts are how many connections had requests, and how many of them resumed a session.
func (s *handshakes) counts() (conns, resumed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, did := range s.resumed {
		if did {
			resumed++
		}
	}
	return len(s.resumed), resumed
}

// TestHandshakes counts what a client of its own transport needs: the reads share one
// connection, and only that has a whole handshake.
func TestHandshakes(t *testing.T) {
	for _, c := range []struct {
		proto, conns int
	}{
		{1, 4}, // one for the reads, and one for each invoice
		{2, 2}, // one for the reads, and one for the invoices
	} {
		t.Run(fmt.Sprintf("HTTP/%d", c.proto), func(t *testing.T) {
			s := newHandshakes(t, c.proto == 2)
			client, err := gateway.New(s.URL+"/gateway", canary)
			require.NoError(t, err)
			for range 3 {
				_, err = client.Balance(t.Context(), gateway.BalanceQuery{})
				require.NoError(t, err)
			}
			conns, _ := s.counts()
			assert.Equal(t, 1, conns)
			for n := range 3 {
				_, err = client.CreateInvoice(t.Context(), call.Order(orderNumber(n)))
				require.NoError(t, err)
			}
			conns, resumed := s.counts()
			assert.Equal(t, c.proto, s.proto)
			assert.Equal(t, c.conns, conns)
			assert.Equal(t, conns-1, resumed, "all but the first")
		})
	}
}
