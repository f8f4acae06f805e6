package contract

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
)

// A toxic is a fault of the network, in the words of toxiproxy.
type toxic struct {
	name       string
	kind       string
	attributes string
	harmless   bool // every call succeeds in spite of it
}

func toxics() []toxic {
	return []toxic{
		{"packets are late", "latency", `{"latency":20,"jitter":10}`, true},
		{"packets are later than any timeout", "latency", `{"latency":60000}`, false},
		{"the bandwidth is low", "bandwidth", `{"rate":200}`, true},
		{"the bandwidth is zero", "bandwidth", `{"rate":0}`, false},
		{"the end of a connection is late", "slow_close", `{"delay":50}`, true},
		{"nothing passes, and the connection is closed soon", "timeout", `{"timeout":20}`, false},
		{"nothing passes, and the connection stays", "timeout", `{"timeout":0}`, false},
		{"the connection is reset at once", "reset_peer", `{"timeout":0}`, false},
		{"the connection is reset soon", "reset_peer", `{"timeout":10}`, false},
		{"packets are cut in pieces", "slicer", `{"average_size":64,"size_variation":32,"delay":10}`, true},
		{"the connection ends before the first byte", "limit_data", `{"bytes":0}`, false},
		{"the connection ends after 1 byte", "limit_data", `{"bytes":1}`, false},
		{"the connection ends after 100 bytes", "limit_data", `{"bytes":100}`, false},
		{"the connection ends after 250 bytes", "limit_data", `{"bytes":250}`, false},
		{"the connection ends after 100,000 bytes", "limit_data", `{"bytes":100000}`, true},
	}
}

// A read is one of the calls that may be repeated. It returns what it got.
type read func(ctx context.Context, c *gateway.Client) (any, error)

func reads(t *testing.T, gw *gatewaytest.Server, direct *gateway.Client) map[string]read {
	all, err := direct.CoinNetworks(t.Context())
	require.NoError(t, err)
	id, withdrawal := all[0].ID, gw.Withdrawals()[0].WithdrawRequestID
	return map[string]read{
		"coin networks": func(ctx context.Context, c *gateway.Client) (any, error) { return c.CoinNetworks(ctx) },
		"coin network":  func(ctx context.Context, c *gateway.Client) (any, error) { return c.CoinNetwork(ctx, id) },
		"coin network by symbol": func(ctx context.Context, c *gateway.Client) (any, error) {
			return c.CoinNetworkBySymbol(ctx, "USDT", "Tron")
		},
		"coin networks by symbol": func(ctx context.Context, c *gateway.Client) (any, error) {
			return c.CoinNetworksOf(ctx, "USDT")
		},
		"exchange rates": func(ctx context.Context, c *gateway.Client) (any, error) {
			rates, err := c.ExchangeRates(ctx)
			if err != nil {
				return rates, err
			}
			return rates.Rates, nil // without the time at which they were fetched
		},
		"balance": func(ctx context.Context, c *gateway.Client) (any, error) {
			return c.Balance(ctx, gateway.BalanceQuery{CoinSymbol: "USDT"})
		},
		"withdrawal": func(ctx context.Context, c *gateway.Client) (any, error) { return c.Withdrawal(ctx, withdrawal) },
	}
}

// newProxy starts a proxy with one toxic in front of upstream.
func newProxy(t *testing.T, upstream string, x toxic, stream string) *toxiproxy.Proxy {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, "contract", "127.0.0.1:0", upstream)
	require.NoError(t, proxy.Start())
	text := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":%s}`, x.kind, stream, x.attributes)
	_, err := proxy.Toxics.AddToxicJson(strings.NewReader(text))
	require.NoError(t, err)
	return proxy
}

// TestToxi makes every call through every toxic, both ways.
func TestToxi(t *testing.T) {
	all := &summary{}
	var succeeded, failed int
	t.Run("toxics", func(t *testing.T) {
		var mu sync.Mutex
		for _, x := range toxics() {
			for _, stream := range []string{"upstream", "downstream"} {
				t.Run(x.name+", "+stream, func(t *testing.T) {
					t.Parallel()
					good, bad := x.run(t, stream, all)
					mu.Lock()
					defer mu.Unlock()
					succeeded, failed = succeeded+good, failed+bad
				})
			}
		}
	})
	all.verify(t)
	t.Logf("toxi: %v; %d reads succeeded, %d failed", all, succeeded, failed)
	assert.NotZero(t, all.counts[gateway.OutcomeSucceeded])
	assert.NotZero(t, all.counts[gateway.OutcomeUnknown])
	assert.NotZero(t, failed)
}

// run makes every call through x. It returns how many reads succeeded and failed.
func (x toxic) run(t *testing.T, stream string, all *summary) (succeeded, failed int) {
	gw := gatewaytest.NewServer(gatewaytest.WithAPIKey(canary))
	defer gw.Close()
	kinds := gatewaytest.AllRepeatedOrders()
	gw.SetRepeatedOrders(kinds[len(x.name+stream)%len(kinds)]) // each of them for some toxics
	proxy := newProxy(t, strings.TrimSuffix(strings.TrimPrefix(gw.URL, "http://"), "/gateway"), x, stream)
	defer proxy.Stop()
	transport := gateway.InvoiceTransport(&http.Transport{DisableKeepAlives: true}) // limits are for each connection
	closeIdle := (&http.Client{Transport: transport}).CloseIdleConnections
	defer closeIdle()
	timeout := 5 * short
	if x.harmless {
		timeout = patient
	}
	direct, through := newToxiClient(t, gw.URL, gw.APIKey, transport, patient), newToxiClient(t, "http://"+proxy.Listen+"/gateway", gw.APIKey, transport, timeout)
	var group sync.WaitGroup
	var good, bad atomic.Int64
	for name, call := range reads(t, gw, direct) {
		group.Go(func() {
			if x.read(t, name, call, direct, through) {
				good.Add(1)
			} else {
				bad.Add(1)
			}
		})
	}
	results := make([]result, 4)
	for i := range results {
		group.Go(func() {
			if i%2 == 0 {
				_ = through.PrepareInvoice(t.Context()) // the toxic may refuse it
			}
			results[i] = create(t.Context(), through, fmt.Sprintf("A-%d", i), &faultserver.Record{})
		})
	}
	group.Wait()
	closeIdle()
	proxy.Stop()
	gw.Close() // nothing arrives after this
	for _, r := range results {
		r.readJournal(gw)
		all.add(x.name+", "+stream, r)
		assert.False(t, x.harmless && r.err != nil, "%v", r.err)
	}
	return int(good.Load()), int(bad.Load())
}

func newToxiClient(t *testing.T, url, key string, transport http.RoundTripper, timeout time.Duration) *gateway.Client {
	c, err := gateway.New(url, key, gateway.WithUnknownLimit(0), gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithRetry(gateway.RetryPolicy{
		AttemptTimeout: timeout, InvoiceTimeout: timeout, BaseDelay: time.Millisecond, MaxDelay: time.Millisecond,
	}))
	require.NoError(t, err)
	return c
}

// read makes one read with x and without. It reports whether it succeeded.
func (x toxic) read(t *testing.T, name string, call read, direct, through *gateway.Client) bool {
	want, err := call(t.Context(), direct)
	assert.NoError(t, err, name)
	got, err := call(t.Context(), through)
	if err == nil {
		return assert.Equal(t, want, got, name)
	}
	assert.Empty(t, got, name)
	assert.False(t, x.harmless, "%s: %v", name, err)
	var cut *gateway.TransportError
	assert.ErrorAs(t, err, &cut, name)
	return false
}

// readJournal records what gw saw of r.
func (r *result) readJournal(gw *gatewaytest.Server) {
	for _, request := range gw.Requests() {
		if request.Operation == gatewaytest.OpCreateInvoice && journalOrder(request.Body) == r.order {
			r.record.Arrived(len(request.Body), true)
		}
	}
	for range gw.InvoicesFor(r.order) {
		r.record.Committed()
	}
	if r.invoice != nil {
		if order, _ := r.invoice.Text("orderId"); order != r.order {
			r.record.Violation("the response is for the order %q", order)
		}
		r.invoice.Raw = []byte(invoiceResult(r.order)) // which result.equal compares; the stand-in's own shape was just checked
	}
}
