package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// settle has a guard accept an order and records its outcome.
func settle(t *testing.T, g gateway.OrderGuard, id string, r gateway.OrderRecord) {
	t.Helper()
	o := gateway.Order{Request: order(id)}
	_, err := g.Begin(t.Context(), o)
	require.NoError(t, err, id)
	r.Request = o.Request
	_, err = g.End(t.Context(), o, r)
	require.NoError(t, err, id)
}

// ask asks a guard for an order, and frees it again if the lease was granted.
func ask(t *testing.T, g gateway.OrderGuard, id string) (*gateway.OrderRecord, gateway.OrderState) {
	t.Helper()
	o := gateway.Order{Request: order(id)}
	lease, err := g.Begin(t.Context(), o)
	require.NoError(t, err)
	if lease.State == gateway.OrderFree {
		_, err = g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeNotSent})
		require.NoError(t, err)
	}
	return lease.Known, lease.State
}

func created(raw string) gateway.OrderRecord {
	return gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Invoice: []byte(raw)}
}

// The created orders that were created last are remembered, and the unknown ones for
// good.
func TestMemoryGuard_remembers(t *testing.T) {
	t.Parallel()
	g := &gateway.MemoryGuard{Remember: 3}
	settle(t, g, "unknown", gateway.OrderRecord{})
	for i := range 8 {
		settle(t, g, fmt.Sprint(i), created("{}"))
		for j := range i + 1 {
			_, state := ask(t, g, fmt.Sprint(j))
			if j > i-3 {
				assert.Equal(t, gateway.OrderCreated, state, "%d after %d", j, i)
				continue
			}
			assert.Equal(t, gateway.OrderFree, state, "%d after %d", j, i)
		}
	}
	_, state := ask(t, g, "unknown")
	assert.Equal(t, gateway.OrderUnknown, state)
}

// What is forgotten is not counted: the last orders keep their responses, however many were before. An order that
// is free again is not kept.
func TestMemoryGuard_forgets(t *testing.T) {
	t.Parallel()
	const size = 60 << 10
	g := &gateway.MemoryGuard{Remember: 3}
	for i := range 1000 { // more than three times what may be kept
		settle(t, g, fmt.Sprint(i), created(strings.Repeat("x", size)))
		settle(t, g, fmt.Sprint("free ", i), gateway.OrderRecord{Outcome: gateway.OutcomeNotSent})
	}
	for _, last := range []string{"997", "998", "999"} {
		known, _ := ask(t, g, last)
		assert.Len(t, known.Invoice, size)
	}
	assert.Equal(t, 3, gateway.OrdersOf(g))
}

// Of the responses of created orders and the bodies of failures 16 MiB are kept: first those of
// failures, then those that came last. What became of the orders stays known.
func TestMemoryGuard_bounds(t *testing.T) {
	t.Parallel()
	const size, orders = 60 << 10, 500 // of a response; twice what is kept
	var g gateway.MemoryGuard
	kept := map[string]int{}
	for i := range orders {
		settle(t, &g, fmt.Sprint("created ", i), created(strings.Repeat("x", size)))
		settle(t, &g, fmt.Sprint("unknown ", i), gateway.OrderRecord{Body: make([]byte, size/2)})
	}
	for i := range orders {
		known, state := ask(t, &g, fmt.Sprint("created ", i))
		require.Equal(t, gateway.OrderCreated, state)
		if known.Invoice != nil {
			kept["created"]++
			assert.Len(t, known.Invoice, size)
			assert.Equal(t, order(fmt.Sprint("created ", i)), known.Request)
		}
		assert.Equal(t, kept["created"] > 0, known.Invoice != nil, "the oldest are dropped")
		known, state = ask(t, &g, fmt.Sprint("unknown ", i))
		require.Equal(t, gateway.OrderUnknown, state)
		if known.Body != nil {
			kept["unknown"]++
		}
	}
	assert.InDelta(t, 16<<20, kept["created"]*size+kept["unknown"]*size/2, 1<<20)
	assert.Positive(t, kept["created"])
	assert.Positive(t, kept["unknown"])
}

// What is kept of a text does not keep what it was cut from. Not parallel, because it measures.
func TestMemoryGuard_keepsNoMore(t *testing.T) {
	var g gateway.MemoryGuard
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 64 {
		form := strings.Repeat("x", 1<<20) + fmt.Sprintf("%08d", i)
		o := gateway.Order{Request: order(form[1<<20:])}
		_, err := g.Begin(t.Context(), o)
		require.NoError(t, err)
		_, err = g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Request: o.Request})
		require.NoError(t, err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(16<<20))
}

// What is known of an order takes the place of what was known before, also in what is counted.
func TestMemoryGuard_boundsWithResubmissions(t *testing.T) {
	t.Parallel()
	body := make([]byte, 3<<20) // more than half of what is kept
	for _, last := range []gateway.Outcome{gateway.OutcomeUnknown, gateway.OutcomeSucceeded} {
		var g gateway.MemoryGuard
		for i := range 10 {
			o := gateway.Order{Request: order(fmt.Sprint("A-", i)), Resubmit: true}
			for _, outcome := range []gateway.Outcome{gateway.OutcomeUnknown, last, gateway.OutcomeSucceeded} {
				lease, err := g.Begin(t.Context(), o)
				require.NoError(t, err)
				if lease.State == gateway.OrderCreated {
					continue
				}
				if lease.Known != nil {
					require.Len(t, lease.Known.Body, len(body), "order %d", i)
				}
				_, err = g.End(t.Context(), o, gateway.OrderRecord{Outcome: outcome, Request: o.Request, Body: body})
				require.NoError(t, err)
			}
		}
	}
}

// What is dropped of a forgotten order is not dropped again.
func TestMemoryGuard_boundsWithRemember(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	g := &gateway.MemoryGuard{Remember: 300}
	for i := range 2000 {
		raw := "{}"
		if i/250%2 == 0 {
			raw = strings.Repeat("x", size)
		}
		settle(t, g, fmt.Sprint(i), created(raw))
		known, state := ask(t, g, fmt.Sprint(i))
		require.Equal(t, gateway.OrderCreated, state)
		require.NotNil(t, known, "the last one is kept")
		require.Len(t, known.Invoice, len(raw))
	}
}

func TestWithOrderGuard_negativeRemember(t *testing.T) {
	t.Parallel()
	for _, guard := range []*gateway.MemoryGuard{nil, {Remember: -1}} {
		_, err := gateway.New("https://gateway.example", "", gateway.WithOrderGuard(guard))
		assertRefused(t, err, "new", "WithOrderGuard", "must not be a nil *MemoryGuard, and Remember must not be negative")
	}
}

// The orders that are remembered by default take at most 8 MiB, and their records 16,
// however long their identifiers. Not parallel, because it measures.
func TestMemoryGuard_memory(t *testing.T) {
	const orders = 1 << 16
	var before, after runtime.MemStats
	padding := strings.Repeat("x", 1016)
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	var g gateway.MemoryGuard
	for i := range 2 * orders {
		settle(t, &g, fmt.Sprintf("%08d", i)+padding, created("{}"))
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	taken := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d KiB", taken>>10)
	assert.Less(t, taken, int64((8+16)<<20))
	_, state := ask(t, &g, fmt.Sprintf("%08d", orders)+padding)
	assert.Equal(t, gateway.OrderCreated, state, "the oldest that is remembered")
	_, state = ask(t, &g, fmt.Sprintf("%08d", orders-1)+padding)
	assert.Equal(t, gateway.OrderFree, state, "the newest that is not")
}

// The merchant of an order is the name of WithMerchant.
func TestOrder_Merchant(t *testing.T) {
	t.Parallel()
	const other = "another-key-of-32-characters-len"
	for _, tt := range []struct {
		name string
		opts []gateway.CallOption
		want string
	}{
		{"none", nil, ""},
		{"a name", []gateway.CallOption{gateway.WithMerchant("shop 1")}, "shop 1"},
		{"a name and another key", []gateway.CallOption{gateway.WithAPIKey(other), gateway.WithMerchant("shop 1")}, "shop 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := &recordingGuard{}
			_, err := inMemory(t, enveloped(invoiceJSON), gateway.WithOrderGuard(n)).CreateInvoice(t.Context(), order("A-17"), tt.opts...)
			require.NoError(t, err)
			require.Len(t, n.begun, 1)
			assert.Equal(t, tt.want, n.begun[0].Merchant)
			assert.Equal(t, inMemoryURL, n.begun[0].Gateway)
		})
	}
}

// A key does not say whose order it is: a rotated one would be another merchant.
func TestWithAPIKey_needsMerchant(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]gateway.CallOption{
		"another key":          {gateway.WithAPIKey("key-1-of-merchant")},
		"the client's own key": {gateway.WithAPIKey(canary)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &recordingGuard{}
			_, err := inMemory(t, enveloped(invoiceJSON), gateway.WithOrderGuard(n)).CreateInvoice(t.Context(), order("A-17"), opts...)
			assertRefused(t, err, "create_invoice", "WithMerchant", "is required with WithAPIKey")
			assert.Empty(t, n.begun, "it is nobody's order")
		})
	}
	_, err := inMemory(t, enveloped(invoiceJSON), gateway.WithOrderGuard(nil)).CreateInvoice(t.Context(), order("A-17"), gateway.WithAPIKey("key-1-of-merchant"))
	assert.NoError(t, err, "without a guard nobody asks")
}

// merchants that share a guard have orders of their own.
func TestMemoryGuard_merchants(t *testing.T) {
	t.Parallel()
	var g gateway.MemoryGuard
	c := inMemory(t, enveloped(invoiceJSON), gateway.WithOrderGuard(&g))
	for _, opts := range [][]gateway.CallOption{nil, {gateway.WithMerchant("a")}, {gateway.WithMerchant("b")}} {
		for _, replayed := range []bool{false, true} {
			got, err := c.CreateInvoice(t.Context(), order("A-17"), opts...)
			require.NoError(t, err)
			assert.Equal(t, replayed, got.Replayed)
		}
	}
	got, err := c.CreateInvoice(t.Context(), order("A-17"), gateway.WithMerchant("a"), gateway.WithAPIKey("key-3-of-merchant"))
	require.NoError(t, err)
	assert.True(t, got.Replayed, "a name stays when the key changes")
}

func TestWithMerchant_refuses(t *testing.T) {
	t.Parallel()
	n := &recordingGuard{}
	c := inMemory(t, enveloped(invoiceJSON), gateway.WithOrderGuard(n))
	for _, name := range []string{"", "a\nb", "\xff", strings.Repeat("x", 257)} {
		_, err := c.CreateInvoice(t.Context(), order("A-17"), gateway.WithHeader("x\n", "bad"), gateway.WithMerchant(name))
		assertRefused(t, err, "create_invoice", "WithMerchant", "")
	}
	assert.Empty(t, n.begun, "it is nobody's order")
	_, err := c.CreateInvoice(t.Context(), order("A-17"), gateway.WithMerchant(strings.Repeat("x", 256)))
	assert.NoError(t, err)
}

const (
	merchantA = "MERCHANT-A-0c1d2e3f4a5b"
	merchantB = "MERCHANT-B-9a8b7c6d5e4f"
)

// Two merchants may number their orders alike, and their invoices have nothing
// to do with each other.
func TestOrderGuard_TwoMerchants(t *testing.T) {
	t.Parallel()
	const cut, good, held, again = "cut", "good", "held", "again"
	type step struct{ key, what string }
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"a success of one does not free the order of the other", []step{{merchantA, cut}, {merchantB, good}, {merchantA, held}}},
		{"an unknown outcome of one does not hold the order of the other", []step{{merchantA, cut}, {merchantB, good}, {merchantB, again}}},
		{"the client's own key is a third", []step{{"", cut}, {merchantA, good}, {merchantB, good}, {"", held}}},
		{"an unknown outcome of another does not hold the client's own order", []step{{merchantA, cut}, {"", good}, {merchantA, held}}},
		{"each holds its own", []step{{merchantA, cut}, {merchantB, cut}, {"", cut}, {merchantA, held}, {merchantB, held}, {"", held}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			what := ""
			c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
				if what == good {
					return reply(200, enveloped(invoiceJSON)), nil
				}
				assert.NotEqual(t, held, what, "this invoice must not be sent")
				return nil, errors.New(cut)
			}))
			for i, s := range tt.steps {
				what = s.what
				got, err := c.CreateInvoice(t.Context(), order("A-17"), keyOption(s.key)...)
				assert.Equal(t, what == cut || what == held, gateway.OutcomeOf(err) == gateway.OutcomeUnknown, "step %d", i)
				assert.Equal(t, what == again || what == held, isReplayed(got, err), "step %d", i)
			}
		})
	}
}

func keyOption(key string) []gateway.CallOption {
	if key == "" {
		return nil
	}
	return []gateway.CallOption{gateway.WithAPIKey(key), gateway.WithMerchant("of " + key[:10])}
}

// Nor does an invoice of one merchant wait for that of another.
func TestOrderGuard_TwoMerchantsAtOnce(t *testing.T) {
	t.Parallel()
	var c *gateway.Client
	keys := []string{merchantB, ""}
	c = newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
		if len(keys) > 0 {
			key := keys[0]
			keys = keys[1:]
			_, err := c.CreateInvoice(t.Context(), order("A-17"), keyOption(key)...)
			assert.NoError(t, err)
			other := order("A-17")
			other.CoinSymbol = "BTC" // or it would wait
			_, err = c.CreateInvoice(t.Context(), other, keyOption(merchantA)...)
			assert.ErrorIs(t, err, gateway.ErrOrderInFlight, "its own is under way")
		}
		return reply(200, enveloped(invoiceJSON)), nil
	}))
	_, err := c.CreateInvoice(t.Context(), order("A-17"), keyOption(merchantA)...)
	assert.NoError(t, err)
	assert.Empty(t, keys)
}

// The same order with a key that has changed is the same order.
func TestWithAPIKeySource_Guard(t *testing.T) {
	t.Parallel()
	calls := 0
	c := clientWithKeySource(t, "http://localhost", func(context.Context) (string, error) {
		calls++
		return fmt.Sprintf("key-number-%d", calls), nil
	}, through(func(*http.Request) (*http.Response, error) { return reply(500, refused("No.")), nil }))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	require.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
	_, err = c.CreateInvoice(t.Context(), order("A-17"))
	assertUnknownBefore(t, err)
}
