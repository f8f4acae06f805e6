package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// TestSilence has a proxy fall silent under invoices over HTTP/2, as after a failover without a reset: the
// pings find the connection dead. The invoices that it carries are unknown, and later ones have another.
func TestSilence(t *testing.T) {
	for _, k := range secureKinds(nil) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s, l, all := newHTTP2Server(t), &ledger{}, &call.Summary{}
			s.Server.Handler = faultserver.UntilDone(s.Server.Handler)
			s.Respond = func(_ bool, body []byte) string { return l.create(body) }
			s.Where, s.Fault = faultserver.Committed, faultserver.BreakOff(faultserver.Stall)
			client := k.connect(t, "https://"+s.Addr(), gateway.RetryPolicy{})
			create := func(order string) call.Result {
				r := call.Create(t.Context(), client, order, l.of(order))
				all.Add(order, r)
				return r
			}
			require.NoError(t, create("earlier").Err)
			s.Start()
			var lost sync.WaitGroup
			for n := range 3 {
				lost.Go(func() { assert.Equal(t, gateway.OutcomeUnknown, create(orderNumber(n)).Outcome()) })
			}
			lost.Wait()
			for n := range 3 {
				assert.NoError(t, create(orderNumber(n+3)).Err)
			}
			s.Close()
			all.Verify(t)
			assert.Equal(t, 2, s.Conns())
		})
	}
}

// A backend is one of those behind a name: the first connections lead to one that does not work.
type backend struct {
	name   string
	proto  int
	silent bool // it falls silent, else it answers 503
}

// policy has as many attempts as a read may need to leave a backend: over HTTP/2 the stream of an attempt
// may not have ended when the next begins, and then its connection is not idle.
func (b backend) policy() gateway.RetryPolicy {
	if b.proto == 1 {
		return gateway.RetryPolicy{MaxAttempts: 2, AttemptTimeout: patient / 30}
	}
	return gateway.RetryPolicy{MaxAttempts: 5, AttemptTimeout: patient / 60}
}

// TestRecovery has two backends behind one name, of which the first does not work any more: a read leaves
// it within its attempts.
func TestRecovery(t *testing.T) {
	for _, b := range []backend{
		{"HTTP/1.1, one answers 503", 1, false},
		{"HTTP/1.1, one falls silent", 1, true},
		{"HTTP/2, one answers 503", 2, false},
		{"HTTP/2, one falls silent", 2, true},
	} {
		for _, k := range secureKinds(nil)[:3] {
			t.Run(b.name+": "+k.name, func(t *testing.T) {
				t.Parallel()
				var together sync.WaitGroup // two reads, which over HTTP/1.1 have two connections
				together.Add(2)
				var mu sync.Mutex
				broken := map[string]bool{} // the connections to the first backend, once it does not work
				works, done := true, make(chan struct{})
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					warming := works
					if warming {
						broken[r.RemoteAddr] = true
					}
					isBroken := broken[r.RemoteAddr]
					mu.Unlock()
					switch {
					case warming:
						together.Done()
						together.Wait()
					case isBroken && b.silent:
						<-done
						return
					case isBroken:
						w.Header().Set("Retry-After", "1")
						w.WriteHeader(http.StatusServiceUnavailable)
						return
					}
					assert.Equal(t, b.proto, r.ProtoMajor)
					_, _ = io.WriteString(w, call.Enveloped(call.WithdrawalResult))
				}))
				server.EnableHTTP2, server.TLS = b.proto == 2, certificates().Server()
				server.StartTLS()
				t.Cleanup(server.Close)
				t.Cleanup(func() { close(done) })
				client := k.connect(t, server.URL, b.policy())
				read := func() {
					_, err := client.Withdrawal(t.Context(), call.WithdrawalID)
					assert.NoError(t, err)
				}
				var warm sync.WaitGroup
				warm.Go(read)
				warm.Go(read)
				warm.Wait()
				mu.Lock()
				works = false
				mu.Unlock()
				read()
			})
		}
	}
}

// TestMiddleware has middlewares send requests of their own, with the context of the call: that changes
// neither an invoice nor a read.
func TestMiddleware(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	t.Cleanup(other.Close)
	post := func(ctx context.Context, by http.RoundTripper) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, other.URL, strings.NewReader("{}"))
		if err != nil {
			return err
		}
		resp, err := by.RoundTrip(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	for name, before := range map[string]func(req *http.Request, next http.RoundTripper) error{
		"it dumps the request": func(req *http.Request, _ http.RoundTripper) error {
			_, err := httputil.DumpRequestOut(req, true)
			return err
		},
		"it has the request signed": func(req *http.Request, next http.RoundTripper) error { return post(req.Context(), next) },
		"it has the request signed through another transport": func(req *http.Request, _ http.RoundTripper) error {
			return post(req.Context(), http.DefaultTransport)
		},
		"it writes to an audit log, four times": func(req *http.Request, next http.RoundTripper) error {
			for range 4 {
				if err := post(req.Context(), next); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		for proto, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
			t.Run(proto+", "+name, func(t *testing.T) {
				server := newHandshakes(t, http2)
				client, err := gateway.New(server.URL+"/gateway", canary, gateway.WithMiddleware(func(next http.RoundTripper) http.RoundTripper {
					return tripper(func(req *http.Request) (*http.Response, error) {
						if err := before(req, next); err != nil {
							return nil, fmt.Errorf("a request of its own: %w", err)
						}
						return next.RoundTrip(req)
					})
				}))
				require.NoError(t, err)
				defer client.CloseIdleConnections()
				for n := range 3 {
					_, err := client.CreateInvoice(t.Context(), call.Order(orderNumber(n)))
					assert.NoError(t, err)
					_, err = client.Balance(t.Context(), gateway.BalanceQuery{})
					assert.NoError(t, err)
				}
			})
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
