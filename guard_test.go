package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// begin asks a guard for the lease of an order, and returns the order with the name of the attempt.
func begin(t *testing.T, g gateway.OrderGuard, id string) (gateway.Order, gateway.Lease) {
	t.Helper()
	o := gateway.Order{Gateway: inMemoryURL, Request: order(id)}
	lease, err := g.Begin(t.Context(), o)
	require.NoError(t, err)
	o.Attempt = lease.Attempt
	return o, lease
}

// settle has a guard accept an order and records its outcome.
func settle(t *testing.T, g gateway.OrderGuard, id string, r gateway.OrderRecord) {
	t.Helper()
	o, _ := begin(t, g, id)
	r.Request = o.Request
	_, err := g.End(t.Context(), o, r)
	require.NoError(t, err, id)
}

// ask asks a guard for an order, and frees it again if the lease was granted.
func ask(t *testing.T, g gateway.OrderGuard, id string) (*gateway.OrderRecord, gateway.OrderState) {
	t.Helper()
	o, lease := begin(t, g, id)
	if lease.State == gateway.OrderFree {
		_, err := g.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeNotSent})
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

// An order that is forgotten takes the place of none that is remembered, nor does it keep the texts of one.
func TestMemoryGuard_Forget(t *testing.T) {
	t.Parallel()
	g := &gateway.MemoryGuard{Remember: 2}
	forget := func(id string) {
		o, err := g.Order(t.Context(), "", id)
		require.NoError(t, err)
		require.NoError(t, g.Forget(t.Context(), o))
	}
	settle(t, g, "first", created("{}"))
	for i := range 5 {
		settle(t, g, fmt.Sprint(i), created("{}"))
		forget(fmt.Sprint(i))
	}
	settle(t, g, "last", created("{}"))
	for _, id := range []string{"first", "last"} {
		_, state := ask(t, g, id)
		assert.Equal(t, gateway.OrderCreated, state, id)
	}
	forget("first")
	settle(t, g, "first", created("{}"))
	forget("last")
	_, state := ask(t, g, "first")
	assert.Equal(t, gateway.OrderCreated, state)
}

// An order that is free again is not kept.
func TestMemoryGuard_forgets(t *testing.T) {
	t.Parallel()
	g := &gateway.MemoryGuard{Remember: 3}
	for i := range 100 {
		settle(t, g, fmt.Sprint(i), created("{}"))
		settle(t, g, fmt.Sprint("free ", i), gateway.OrderRecord{Outcome: gateway.OutcomeNotSent})
	}
	assert.Equal(t, 3, gateway.OrdersOf(g))
}

// A guard keeps 64 MiB of texts: the oldest invoices lose theirs first, then new failures. The state and the request of
// each order stay known, and a replay reports that the text is gone.
func TestMemoryGuard_bounds(t *testing.T) {
	t.Parallel()
	const size, kept = 1<<20 - 1<<10, 64
	var g gateway.MemoryGuard
	for i := range kept + 10 {
		settle(t, &g, fmt.Sprint("created ", i), created(strings.Repeat("x", size)))
	}
	for i := range 10 {
		settle(t, &g, fmt.Sprint("unknown ", i), gateway.OrderRecord{Body: make([]byte, size)})
		known, state := ask(t, &g, fmt.Sprint("unknown ", i))
		assert.Equal(t, gateway.OrderUnknown, state)
		assert.Len(t, known.Body, size)
	}
	for i := range kept + 10 {
		known, state := ask(t, &g, fmt.Sprint("created ", i))
		require.Equal(t, gateway.OrderCreated, state)
		assert.Equal(t, order(fmt.Sprint("created ", i)), known.Request)
		assert.Equal(t, i >= 20, len(known.Invoice) == size, "the 20 oldest have lost their texts: %d", i)
	}

	c := inMemory(t, "", gateway.WithOrderGuard(&g))
	got, err := c.CreateInvoice(t.Context(), order("created 0"))
	require.NoError(t, err)
	assert.True(t, got.Replayed)
	assert.Nil(t, got.Raw)
	assert.EqualError(t, got.GuardErr, "the guard in memory has dropped the text of the invoice: it keeps the texts of the last 64 MiB")
	other := order("created 0")
	otherPrice(&other)
	_, err = c.CreateInvoice(t.Context(), other)
	assert.Equal(t, gateway.OutcomeConflict, gateway.OutcomeOf(err))
	got, err = c.CreateInvoice(t.Context(), order(fmt.Sprint("created ", kept)))
	require.NoError(t, err)
	assert.NoError(t, got.GuardErr)

	for i := range kept + 10 { // with the 10 from before
		settle(t, &g, fmt.Sprint("more ", i), gateway.OrderRecord{Body: make([]byte, size)})
		known, state := ask(t, &g, fmt.Sprint("more ", i))
		require.Equal(t, gateway.OrderUnknown, state)
		assert.Equal(t, i < kept-10, known.Body != nil, "%d", i)
	}
}

// What is kept of a text does not keep what it was cut from. Not parallel, because it measures.
func TestMemoryGuard_keepsNoMore(t *testing.T) {
	var g gateway.MemoryGuard
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 64 {
		form := strings.Repeat("x", 1<<20) + fmt.Sprintf("%08d", i)
		settle(t, &g, form[1<<20:], created(""))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(16<<20))
}

// The texts of an order that is forgotten, or freed, count no longer.
func TestMemoryGuard_bounds_counts(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	text := strings.Repeat("x", size)
	for name, round := range map[string]func(g *gateway.MemoryGuard, id string){
		"Remember": func(g *gateway.MemoryGuard, id string) { settle(t, g, id, created(text)) },
		"Forget": func(g *gateway.MemoryGuard, id string) {
			settle(t, g, id, created(text))
			o, err := g.Order(t.Context(), "", id)
			require.NoError(t, err)
			require.NoError(t, g.Forget(t.Context(), o))
		},
		"Resolve": func(g *gateway.MemoryGuard, id string) {
			settle(t, g, id, gateway.OrderRecord{Body: []byte(text)})
			findAbsent(t, g, id)
		},
	} {
		g := &gateway.MemoryGuard{Remember: 3}
		settle(t, g, "unknown", gateway.OrderRecord{Body: []byte(text)})
		for i := range 200 { // more than three times what may be kept
			round(g, fmt.Sprint(i))
		}
		settle(t, g, "last", created(text))
		for _, id := range []string{"unknown", "last"} {
			known, _ := ask(t, g, id)
			assert.Equal(t, size, len(known.Invoice)+len(known.Body), "%s: %s", name, id)
		}
	}
}

func TestFinding_Validate(t *testing.T) {
	t.Parallel()
	const found = `{"id":"i-1"}`
	long := strings.Repeat("x", 64<<10+1)
	for _, tt := range []struct {
		name    string
		finding gateway.Finding
		state   gateway.OrderState
		wrong   string // the argument; "" for none
		is      error
	}{
		{"an invoice exists", gateway.Finding{Exists: true, By: "anna"}, gateway.OrderUnknown, "", nil},
		{"with its JSON", gateway.Finding{Exists: true, By: "anna", Invoice: []byte(found)}, gateway.OrderUnknown, "", nil},
		{"its JSON for a created order", gateway.Finding{Exists: true, By: "anna", Invoice: []byte(found)}, gateway.OrderCreated, "", nil},
		{"with the order in another case", gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`{"orderId":"8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B"}`)}, gateway.OrderUnknown, "", nil},
		{"none exists", gateway.Finding{By: "anna", Margin: time.Hour}, gateway.OrderUnknown, "", nil},
		{"without a name", gateway.Finding{By: " "}, gateway.OrderUnknown, "Finding.By", gateway.ErrInvalidArgument},
		{"with a name that is too long", gateway.Finding{By: long}, gateway.OrderUnknown, "Finding.By", gateway.ErrInvalidArgument},
		{"with a NUL in the note", gateway.Finding{By: "anna", Note: "a\x00"}, gateway.OrderUnknown, "Finding.Note", gateway.ErrInvalidArgument},
		{"with a note that is not UTF-8", gateway.Finding{By: "anna", Note: "\xff"}, gateway.OrderUnknown, "Finding.Note", gateway.ErrInvalidArgument},
		{"with a negative margin", gateway.Finding{By: "anna", Margin: -1}, gateway.OrderUnknown, "Finding.Margin", gateway.ErrInvalidArgument},
		{"none exists, with an invoice", gateway.Finding{By: "anna", Invoice: []byte(found)}, gateway.OrderUnknown, "Finding.Invoice", gateway.ErrInvalidArgument},
		{"with an invoice that is no JSON", gateway.Finding{Exists: true, By: "anna", Invoice: []byte("i-1")}, gateway.OrderUnknown, "Finding.Invoice", gateway.ErrInvalidArgument},
		{"with an invoice that is too long", gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`"` + long + `"`)}, gateway.OrderUnknown, "Finding.Invoice", gateway.ErrInvalidArgument},
		{"with the invoice of another order", gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`{"invoice":{"orderId":"A-18"}}`)}, gateway.OrderUnknown, "Finding.Invoice", gateway.ErrInvalidArgument},
		{"about a free order", gateway.Finding{By: "anna"}, gateway.OrderFree, "", gateway.ErrNotUnknown},
		{"about a created order, without JSON", gateway.Finding{Exists: true, By: "anna"}, gateway.OrderCreated, "", gateway.ErrNotUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.finding.Validate(gateway.OrderStatus{OrderID: "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b", State: tt.state})
			assert.ErrorIs(t, err, tt.is)
			wrong, _ := errors.AsType[*gateway.ArgumentError](err)
			if tt.wrong != "" {
				require.NotNil(t, wrong)
				assert.Equal(t, tt.wrong, wrong.Name)
			}
		})
	}
}

func TestWithOrderGuard_negativeRemember(t *testing.T) {
	t.Parallel()
	for _, guard := range []*gateway.MemoryGuard{nil, {Remember: -1}} {
		_, err := gateway.New("https://gateway.example", canary, gateway.WithOrderGuard(guard))
		assertRefused(t, err, "new", "WithOrderGuard", "must not be a nil *MemoryGuard, and Remember must not be negative")
	}
}

// The 65,536 orders that are remembered by default take less memory than their texts may. Not parallel, because it
// measures.
func TestMemoryGuard_memory(t *testing.T) {
	const orders, more = 1 << 16, 1000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	var g gateway.MemoryGuard
	idOf := func(i int) string { return fmt.Sprintf("7c9d6d0e-2f0f-4d7e-9a53-%012d", i) }
	for i := range orders + more {
		settle(t, &g, idOf(i), created("{}"))
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	taken := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d KiB", taken>>10)
	assert.Less(t, taken, int64(64<<20))
	_, state := ask(t, &g, idOf(more))
	assert.Equal(t, gateway.OrderCreated, state, "the oldest that is remembered")
	_, state = ask(t, &g, idOf(more-1))
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
