package gateway_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Package guardtest has the rules that every guard keeps. Here are those of a guard in memory.

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
		_, err := g.End(t.Context(), o, gateway.OrderRecord{Outcome: notSent})
		require.NoError(t, err)
	}
	return lease.Known, lease.State
}

func created(raw string) gateway.OrderRecord {
	return gateway.OrderRecord{Outcome: succeeded, Invoice: []byte(raw)}
}

// The orders that were created last are remembered, the unknown ones for good, and the free ones not at all.
func TestMemoryGuard_remembers(t *testing.T) {
	t.Parallel()
	g := &gateway.MemoryGuard{Remember: 3}
	settle(t, g, "unknown", gateway.OrderRecord{})
	for i := range 8 {
		settle(t, g, fmt.Sprint(i), created("{}"))
		settle(t, g, fmt.Sprint("free ", i), gateway.OrderRecord{Outcome: notSent})
		for j := range i + 1 {
			_, state := ask(t, g, fmt.Sprint(j))
			assert.Equal(t, j > i-3, state == gateway.OrderCreated, "%d after %d", j, i)
			assert.Equal(t, j <= i-3, state == gateway.OrderFree, "%d after %d", j, i)
		}
	}
	_, state := ask(t, g, "unknown")
	assert.Equal(t, gateway.OrderUnknown, state)
	assert.Equal(t, 3+1, gateway.OrdersOf(g))
}

// Forgetting an order makes room for another, and leaves all other orders as they are.
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

// That no invoice exists is not accepted at once because somebody has set the clock.
func TestMemoryGuard_Resolve_bothClocks(t *testing.T) {
	t.Parallel()
	var g gateway.MemoryGuard
	settle(t, &g, "A-17", gateway.OrderRecord{})
	gateway.SetClock(&g, "A-17", time.Hour)
	o, err := g.Order(t.Context(), "", "A-17")
	require.NoError(t, err)
	require.ErrorIs(t, g.Resolve(t.Context(), o, gateway.Finding{By: "anna"}), gateway.ErrTooEarly)
	o.ReadAt = o.ReadAt.Add(time.Hour)
	require.NoError(t, g.Resolve(t.Context(), o, gateway.Finding{By: "anna"}))
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
	assert.Equal(t, conflict, gateway.OutcomeOf(err))
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

// The texts of an order that is forgotten, or freed, count no longer: the guard keeps as many new ones as at first.
func TestMemoryGuard_bounds_counts(t *testing.T) {
	t.Parallel()
	const size, fit, remember = 8<<20 - 1<<10, 8, 10
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
		g := &gateway.MemoryGuard{Remember: remember}
		settle(t, g, "unknown", gateway.OrderRecord{Body: []byte(text)})
		for i := range remember + fit {
			round(g, fmt.Sprint(i))
		}
		for i := range remember {
			settle(t, g, fmt.Sprint("last ", i), created(text))
		}
		known, _ := ask(t, g, "unknown")
		assert.Len(t, known.Body, size, name)
		for i := range remember {
			known, state := ask(t, g, fmt.Sprint("last ", i))
			require.Equal(t, gateway.OrderCreated, state, name)
			assert.Equal(t, i > remember-fit, len(known.Invoice) == size, "%s: %d", name, i)
		}
	}
}

// Of the attempts of unknown outcome of one order the first is remembered, and the last seven.
func TestMemoryGuard_attempts(t *testing.T) {
	t.Parallel()
	var g gateway.MemoryGuard
	for i := range 10 {
		o := gateway.Order{Gateway: inMemoryURL, Request: order("A-17"), Resubmit: true}
		lease, err := g.Begin(t.Context(), o)
		require.NoError(t, err)
		o.Attempt = lease.Attempt
		_, err = g.End(t.Context(), o, gateway.OrderRecord{Request: o.Request, Cause: fmt.Sprint(i)})
		require.NoError(t, err)
	}
	o, err := g.Order(t.Context(), "", "A-17")
	require.NoError(t, err)
	var causes []string
	for _, r := range append(o.Earlier, o.Record) {
		causes = append(causes, r.Cause)
	}
	assert.Equal(t, []string{"0", "3", "4", "5", "6", "7", "8", "9"}, causes)
	assert.Equal(t, 10, o.Attempts)
}

// heapOf returns how many of the bytes that fill allocates stay in use.
func heapOf(fill func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	fill()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// Not parallel, because it measures.
func TestMemoryGuard_memory(t *testing.T) {
	const orders, more = 1 << 16, 1000
	var g, cut gateway.MemoryGuard
	idOf := func(i int) string { return fmt.Sprintf("7c9d6d0e-2f0f-4d7e-9a53-%012d", i) }
	taken := heapOf(func() {
		for i := range orders + more {
			settle(t, &g, idOf(i), created("{}"))
		}
	})
	assert.Less(t, taken, int64(64<<20), "the 65,536 orders that are remembered by default take less memory than their texts may")
	_, state := ask(t, &g, idOf(more))
	assert.Equal(t, gateway.OrderCreated, state, "the oldest that is remembered")
	_, state = ask(t, &g, idOf(more-1))
	assert.Equal(t, gateway.OrderFree, state, "the newest that is not")

	taken = heapOf(func() {
		for i := range 64 {
			form := strings.Repeat("x", 1<<20) + fmt.Sprintf("%08d", i)
			settle(t, &cut, form[1<<20:], created(""))
		}
	})
	assert.Less(t, taken, int64(16<<20), "a text does not keep what it was cut from")
	_, state = ask(t, &cut, "00000000")
	assert.Equal(t, gateway.OrderCreated, state)
}

// Merchants that share a guard have orders of their own. The same order with a key that has changed is the same order.
func TestMemoryGuard_merchants(t *testing.T) {
	t.Parallel()
	keys := 0
	c := clientWithKeySource(t, inMemoryURL, func(context.Context) (string, error) {
		keys++
		return fmt.Sprintf("key-number-%d", keys), nil
	}, gateway.WithHTTPClient(memory{enveloped(invoiceJSON)}.client()))
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

func TestWithOrderGuard_refuses(t *testing.T) {
	t.Parallel()
	for _, guard := range []*gateway.MemoryGuard{nil, {Remember: -1}} {
		_, err := gateway.New("https://gateway.example", canary, gateway.WithOrderGuard(guard))
		assertRefused(t, err, "new", "WithOrderGuard", "must not be a nil *MemoryGuard, and Remember must not be negative")
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
		is      error  // if no argument is wrong
	}{
		{"an invoice exists", gateway.Finding{Exists: true, By: "anna"}, gateway.OrderUnknown, "", nil},
		{"with its JSON", gateway.Finding{Exists: true, By: "anna", Invoice: []byte(found)}, gateway.OrderUnknown, "", nil},
		{"its JSON for a created order", gateway.Finding{Exists: true, By: "anna", Invoice: []byte(found)}, gateway.OrderCreated, "", nil},
		{"with the order in another case", gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`{"orderId":"8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B"}`)}, gateway.OrderUnknown, "", nil},
		{"with the order beside another", gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`[{"orderId":"A-18"},{"orderId":"8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"}]`)}, gateway.OrderUnknown, "", nil},
		{"none exists", gateway.Finding{By: "anna", Margin: time.Hour}, gateway.OrderUnknown, "", nil},
		{"with the longest note", gateway.Finding{By: "anna", Note: long[1:]}, gateway.OrderUnknown, "", nil},
		{"without a name", gateway.Finding{By: " "}, gateway.OrderUnknown, "By", nil},
		{"with a name that is too long", gateway.Finding{By: long}, gateway.OrderUnknown, "By", nil},
		{"with a NUL in the note", gateway.Finding{By: "anna", Note: "a\x00"}, gateway.OrderUnknown, "Note", nil},
		{"with a note that is not UTF-8", gateway.Finding{By: "anna", Note: "\xff"}, gateway.OrderUnknown, "Note", nil},
		{"with a negative margin", gateway.Finding{By: "anna", Margin: -1}, gateway.OrderUnknown, "Margin", nil},
		{"none exists, with an invoice", gateway.Finding{By: "anna", Invoice: []byte(found)}, gateway.OrderUnknown, "Invoice", nil},
		{"with an invoice that is no JSON", gateway.Finding{Exists: true, By: "anna", Invoice: []byte("i-1")}, gateway.OrderUnknown, "Invoice", nil},
		{"with an invoice that is too long", gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`"` + long + `"`)}, gateway.OrderUnknown, "Invoice", nil},
		{"with the invoice of another order", gateway.Finding{Exists: true, By: "anna", Invoice: []byte(`{"invoice":{"orderId":"A-18"}}`)}, gateway.OrderUnknown, "Invoice", nil},
		{"about a free order", gateway.Finding{By: "anna"}, gateway.OrderFree, "", gateway.ErrNotUnknown},
		{"about a created order, without JSON", gateway.Finding{Exists: true, By: "anna"}, gateway.OrderCreated, "", gateway.ErrNotUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.finding.Validate(gateway.OrderStatus{OrderID: "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b", State: tt.state})
			if tt.wrong != "" {
				assertRefused(t, err, "resolve", "Finding."+tt.wrong, "")
				return
			}
			assert.ErrorIs(t, err, tt.is)
		})
	}
}

func TestOrderState_String(t *testing.T) {
	t.Parallel()
	for state, want := range map[gateway.OrderState]string{
		gateway.OrderFree: "free", gateway.OrderInFlight: "in flight", gateway.OrderCreated: "created", gateway.OrderUnknown: "unknown",
		9: "OrderState(9)", -1: "OrderState(-1)",
	} {
		assert.Equal(t, want, state.String())
		text, err := state.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}
