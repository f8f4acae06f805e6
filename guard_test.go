package gateway_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Package guardtest has the rules that every guard keeps. This file has the rules of a guard in memory.

// begin asks a guard for the lease of an order, which it changes, and returns the order with the name of the attempt.
func begin(t *testing.T, g gateway.OrderGuard, id string, change ...func(*gateway.Order)) (gateway.Order, gateway.Lease) {
	t.Helper()
	o := gateway.Order{Gateway: inMemoryURL, Request: order(id)}
	for _, change := range change {
		change(&o)
	}
	lease, err := g.Begin(t.Context(), o)
	require.NoError(t, err)
	o.Attempt = lease.Attempt
	return o, lease
}

// again asks for an unknown order to be sent again.
func again(o *gateway.Order) { o.Resubmit = true }

// settle has a guard accept an order and records its outcome.
func settle(t *testing.T, g gateway.OrderGuard, id string, r gateway.OrderRecord, change ...func(*gateway.Order)) {
	t.Helper()
	o, _ := begin(t, g, id, change...)
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

func created(raw []byte) gateway.OrderRecord {
	return gateway.OrderRecord{Outcome: succeeded, Invoice: raw}
}

// The orders that were created last are remembered, the unknown ones for good, and the free ones not at all.
func TestMemoryGuard_remembers(t *testing.T) {
	t.Parallel()
	g := &gateway.MemoryGuard{Remember: 3}
	settle(t, g, "unknown", gateway.OrderRecord{})
	for i := range 8 {
		settle(t, g, fmt.Sprint(i), created([]byte("{}")))
		settle(t, g, fmt.Sprint("free ", i), gateway.OrderRecord{Outcome: notSent})
		for j := range i + 1 {
			_, state := ask(t, g, fmt.Sprint(j))
			assert.Equal(t, j > i-3, state == gateway.OrderCreated, "%d after %d is %s", j, i, state)
		}
	}
	_, state := ask(t, g, "unknown")
	assert.Equal(t, gateway.OrderUnknown, state)
	assert.Equal(t, 3+1, gateway.OrdersOf(g))
}

// statusOf reads an order of a merchant.
func statusOf(t *testing.T, g *gateway.MemoryGuard, merchant, id string) gateway.OrderStatus {
	t.Helper()
	o, err := g.Order(t.Context(), merchant, id)
	require.NoError(t, err)
	require.True(t, gateway.IsUnlocked(g))
	return o
}

func forget(t *testing.T, g *gateway.MemoryGuard, id string) {
	t.Helper()
	require.NoError(t, g.Forget(t.Context(), statusOf(t, g, "", id)))
}

// Calls with a merchant and calls without one do not mix: the same order would be sent twice. A free order is of no
// kind.
func TestMemoryGuard_kinds(t *testing.T) {
	t.Parallel()
	for _, outcome := range []gateway.Outcome{succeeded, unknown, notSent} {
		for _, tt := range []struct{ first, second, why string }{
			{"", "north", "names a merchant, and other calls with this guard name none: name it in every call"},
			{"north", "", "is missing, and other calls with this guard name a merchant: name it in every call"},
		} {
			var g gateway.MemoryGuard
			first := gateway.Order{Gateway: inMemoryURL, Merchant: tt.first, Request: order("A-17")}
			second, late := first, first
			second.Merchant, late.Merchant, late.Attempt = tt.second, tt.second, "of-another-guard"
			lease, err := g.Begin(t.Context(), first)
			require.NoError(t, err)
			_, err = g.Begin(t.Context(), second)
			assertRefused(t, err, "create_invoice", "WithMerchant", tt.why)
			_, err = g.End(t.Context(), late, created(nil))
			assertRefused(t, err, "create_invoice", "WithMerchant", tt.why)

			first.Attempt = lease.Attempt
			_, err = g.End(t.Context(), first, gateway.OrderRecord{Outcome: outcome, Request: first.Request})
			require.NoError(t, err)
			_, err = g.Begin(t.Context(), second)
			assert.Equal(t, outcome == notSent, err == nil, "after %s: %v", outcome, err)
		}
	}

	var g gateway.MemoryGuard
	settle(t, &g, "A-17", gateway.OrderRecord{})
	findAbsent(t, &g, "A-17")
	_, err := g.Begin(t.Context(), gateway.Order{Merchant: "north", Request: order("A-18")})
	require.NoError(t, err)
	_, err = g.Begin(t.Context(), gateway.Order{Request: order("A-17")})
	assertRefused(t, err, "create_invoice", "WithMerchant", "is missing")
}

// An order that a person found to be absent is remembered as long as a created one, and it can be sent again.
func TestMemoryGuard_remembersFindings(t *testing.T) {
	t.Parallel()
	g := &gateway.MemoryGuard{Remember: 2}
	absent := func(id string) {
		settle(t, g, id, gateway.OrderRecord{})
		findAbsent(t, g, id)
	}
	for _, id := range []string{"1", "2", "3"} {
		absent(id)
	}
	for id, findings := range map[string]int{"1": 0, "2": 1, "3": 1} {
		assert.Len(t, statusOf(t, g, "", id).Findings, findings, id)
	}
	o, _ := begin(t, g, "2")
	for _, id := range []string{"4", "5"} {
		absent(id)
	}
	assert.Equal(t, gateway.OrderInFlight, statusOf(t, g, "", "2").State, "an order that is sent again is not forgotten")
	_, err := g.End(t.Context(), o, gateway.OrderRecord{Outcome: notSent})
	require.NoError(t, err)
	for id, findings := range map[string]int{"2": 1, "3": 0, "4": 0, "5": 1} {
		assert.Len(t, statusOf(t, g, "", id).Findings, findings, id)
	}
	assert.Equal(t, 2, gateway.OrdersOf(g))
}

// Forgetting an order makes room for another, and leaves all other orders as they are.
func TestMemoryGuard_Forget(t *testing.T) {
	t.Parallel()
	g := &gateway.MemoryGuard{Remember: 2}
	settle(t, g, "first", created(nil))
	for i := range 5 {
		settle(t, g, fmt.Sprint(i), created(nil))
		forget(t, g, fmt.Sprint(i))
	}
	settle(t, g, "last", created(nil))
	for _, id := range []string{"first", "last"} {
		_, state := ask(t, g, id)
		assert.Equal(t, gateway.OrderCreated, state, id)
	}
	forget(t, g, "first")
	settle(t, g, "first", created(nil))
	forget(t, g, "last")
	_, state := ask(t, g, "first")
	assert.Equal(t, gateway.OrderCreated, state)
}

// If the attempts of an order had different requests, it is not known which of them its invoice is for.
func TestMemoryGuard_Resolve_differentRequests(t *testing.T) {
	t.Parallel()
	var g gateway.MemoryGuard
	settle(t, &g, "A-17", gateway.OrderRecord{})
	settle(t, &g, "A-17", gateway.OrderRecord{}, again, func(o *gateway.Order) { otherPrice(&o.Request) })
	o := statusOf(t, &g, "", "A-17")
	require.NoError(t, g.Resolve(t.Context(), o, gateway.Finding{Exists: true, By: "anna"}))
	known, state := ask(t, &g, "A-17")
	assert.Equal(t, gateway.OrderCreated, state)
	assert.Zero(t, known.Request)
}

// A finding that no invoice exists is not accepted early because somebody has set the clock.
func TestMemoryGuard_Resolve_bothClocks(t *testing.T) {
	t.Parallel()
	var g gateway.MemoryGuard
	settle(t, &g, "A-17", gateway.OrderRecord{})
	gateway.SetClock(&g, "A-17", time.Hour)
	o := statusOf(t, &g, "", "A-17")
	require.ErrorIs(t, g.Resolve(t.Context(), o, gateway.Finding{By: "anna"}), gateway.ErrTooEarly)
	o.ReadAt = o.ReadAt.Add(time.Hour)
	require.NoError(t, g.Resolve(t.Context(), o, gateway.Finding{By: "anna"}))
}

// A person's wait counts from the last attempt, by the clock that nobody can set.
func TestMemoryGuard_Resolve_sentAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, "", func(t *testing.T) {
		var g gateway.MemoryGuard
		settle(t, &g, "A-17", gateway.OrderRecord{})
		time.Sleep(time.Hour)
		o, _ := begin(t, &g, "A-17", again)
		assert.Zero(t, statusOf(t, &g, "", "A-17").SentUntil, "a lease in memory ends with its process")
		_, err := g.End(t.Context(), o, gateway.OrderRecord{})
		require.NoError(t, err)
		gateway.SetClock(&g, "A-17", time.Hour)
		require.ErrorIs(t, g.Resolve(t.Context(), statusOf(t, &g, "", "A-17"), gateway.Finding{By: "anna"}), gateway.ErrTooEarly)
		time.Sleep(gateway.DefaultMargin)
		require.NoError(t, g.Resolve(t.Context(), statusOf(t, &g, "", "A-17"), gateway.Finding{By: "anna"}))
	})
}

// A guard keeps 64 MiB of texts: the oldest invoices lose theirs first, then new failures. The state and the request of
// each order stay known, and a replay reports that the text is gone.
func TestMemoryGuard_bounds(t *testing.T) {
	t.Parallel()
	const kept = 64
	text := make([]byte, 1<<20-1<<10)
	var g gateway.MemoryGuard
	for i := range kept + 10 {
		settle(t, &g, fmt.Sprint("created ", i), created(text))
	}
	for i := range 10 {
		settle(t, &g, fmt.Sprint("unknown ", i), gateway.OrderRecord{Body: text})
		known, _ := ask(t, &g, fmt.Sprint("unknown ", i))
		assert.Len(t, known.Body, len(text))
	}
	for i := range kept + 10 {
		known, state := ask(t, &g, fmt.Sprint("created ", i))
		require.Equal(t, gateway.OrderCreated, state)
		assert.Equal(t, order(fmt.Sprint("created ", i)), known.Request)
		assert.Equal(t, i >= 20, len(known.Invoice) == len(text), "the 20 oldest have lost their texts: %d", i)
	}

	c := inMemory(t, "", gateway.WithOrderGuard(&g))
	got, err := c.CreateInvoice(t.Context(), order("created 0"))
	require.NoError(t, err)
	assert.True(t, got.Replayed)
	assert.Nil(t, got.Raw)
	assert.EqualError(t, got.GuardErr,
		"the guard in memory has dropped the text of the invoice: it keeps the texts of the last 64 MiB")
	other := order("created 0")
	otherPrice(&other)
	_, err = c.CreateInvoice(t.Context(), other)
	assert.Equal(t, conflict, gateway.OutcomeOf(err))
	got, err = c.CreateInvoice(t.Context(), order(fmt.Sprint("created ", kept)))
	require.NoError(t, err)
	assert.NoError(t, got.GuardErr)

	forget(t, &g, "created 1") // which had no text any more
	for i := range kept + 10 { // with the 10 from before
		settle(t, &g, fmt.Sprint("more ", i), gateway.OrderRecord{Body: text})
		known, state := ask(t, &g, fmt.Sprint("more ", i))
		require.Equal(t, gateway.OrderUnknown, state)
		assert.Equal(t, i < kept-10, known.Body != nil, "%d", i)
	}
}

// The texts of an order that is forgotten, or freed, count no longer: the guard keeps as many new ones as at first.
func TestMemoryGuard_bounds_counts(t *testing.T) {
	t.Parallel()
	const fit, remember = 8, 10
	text := make([]byte, 8<<20-1<<10)
	for name, round := range map[string]func(g *gateway.MemoryGuard, id string){
		"Remember": func(g *gateway.MemoryGuard, id string) { settle(t, g, id, created(text)) },
		"Forget": func(g *gateway.MemoryGuard, id string) {
			settle(t, g, id, created(text))
			forget(t, g, id)
		},
		"Resolve": func(g *gateway.MemoryGuard, id string) {
			settle(t, g, id, gateway.OrderRecord{Body: text})
			findAbsent(t, g, id)
		},
	} {
		g := &gateway.MemoryGuard{Remember: remember}
		settle(t, g, "unknown", gateway.OrderRecord{Body: text})
		for i := range remember + fit {
			round(g, fmt.Sprint(i))
		}
		for i := range remember {
			settle(t, g, fmt.Sprint("last ", i), created(text))
		}
		known, _ := ask(t, g, "unknown")
		assert.Len(t, known.Body, len(text), name)
		for i := range remember {
			known, state := ask(t, g, fmt.Sprint("last ", i))
			require.Equal(t, gateway.OrderCreated, state, name)
			assert.Equal(t, i > remember-fit, len(known.Invoice) == len(text), "%s: %d", name, i)
		}
	}
}

// The texts of evidence count too, of orders that are created or were found to be absent: the oldest lose theirs.
func TestMemoryGuard_bounds_evidence(t *testing.T) {
	t.Parallel()
	const fit = 8
	text := make([]byte, 8<<20-1<<10)
	for name, settled := range map[string]func(g *gateway.MemoryGuard, id string){
		"absent":  func(g *gateway.MemoryGuard, id string) { findAbsent(t, g, id) },
		"created": func(g *gateway.MemoryGuard, id string) { settle(t, g, id, created(nil), again) },
	} {
		var g gateway.MemoryGuard
		for i := range fit + 2 {
			settle(t, &g, fmt.Sprint(i), gateway.OrderRecord{Body: text})
			settled(&g, fmt.Sprint(i))
		}
		for i := range fit + 2 {
			o := statusOf(t, &g, "", fmt.Sprint(i))
			evidence := append(o.Earlier, o.Record)[0]
			assert.Equal(t, i >= 2, len(evidence.Body) == len(text), "%s: %d", name, i)
		}
	}
}

// A text that was dropped counts no longer: when there is room, a new one is kept.
func TestMemoryGuard_bounds_dropped(t *testing.T) {
	t.Parallel()
	const fit = 8
	text := make([]byte, 8<<20-1<<10)
	var g gateway.MemoryGuard
	for i := range fit + 4 {
		settle(t, &g, fmt.Sprint(i), gateway.OrderRecord{Body: text})
	}
	findAbsent(t, &g, "0")
	settle(t, &g, "last", gateway.OrderRecord{Body: text})
	known, _ := ask(t, &g, "last")
	assert.Len(t, known.Body, len(text))
}

// The notes of findings count too, and those of the oldest orders are dropped.
func TestMemoryGuard_bounds_notes(t *testing.T) {
	t.Parallel()
	const fit = 1 << 10
	note := strings.Repeat("x", 64<<10-len("anna"))
	var g gateway.MemoryGuard
	for i := range fit + 1 {
		settle(t, &g, fmt.Sprint(i), gateway.OrderRecord{})
		finding := gateway.Finding{Exists: true, By: "anna", Note: note}
		require.NoError(t, g.Resolve(t.Context(), statusOf(t, &g, "", fmt.Sprint(i)), finding))
	}
	for id, kept := range map[string]bool{"0": false, "10": true, fmt.Sprint(fit): true} {
		assert.Equal(t, kept, statusOf(t, &g, "", id).Findings[0].Note != "", id)
	}
}

// An End without the name of an attempt is recorded as an attempt of its own.
func TestMemoryGuard_End_nameless(t *testing.T) {
	t.Parallel()
	var g gateway.MemoryGuard
	_, err := g.End(t.Context(), gateway.Order{Gateway: inMemoryURL, Request: order("A-17")}, gateway.OrderRecord{})
	require.NoError(t, err)
	o := statusOf(t, &g, "", "A-17")
	assert.NotEmpty(t, o.Attempt)
	_, lease := begin(t, &g, "A-18")
	assert.NotEqual(t, o.Attempt, lease.Attempt)
}

// The guard remembers the first attempt of unknown outcome of an order, and the last seven.
func TestMemoryGuard_attempts(t *testing.T) {
	t.Parallel()
	var g gateway.MemoryGuard
	for i := range 10 {
		settle(t, &g, "A-17", gateway.OrderRecord{Cause: fmt.Sprint(i)}, again)
	}
	o := statusOf(t, &g, "", "A-17")
	causes := ""
	for _, r := range append(o.Earlier, o.Record) {
		causes += r.Cause
	}
	assert.Equal(t, "03456789", causes)
	assert.Equal(t, 10, o.Attempts)
}

// heapOf returns how many of the bytes that fill allocates stay in use.
func heapOf(fill func()) int64 {
	inUse := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := inUse()
	fill()
	return inUse() - before
}

// Not parallel, because it measures.
func TestMemoryGuard_memory(t *testing.T) {
	const orders, more = 1 << 16, 1000
	var g, cut gateway.MemoryGuard
	idOf := func(i int) string { return fmt.Sprintf("7c9d6d0e-2f0f-4d7e-9a53-%012d", i) }
	taken := heapOf(func() {
		for i := range orders + more {
			settle(t, &g, idOf(i), created([]byte("{}")))
		}
	})
	assert.Less(t, taken, int64(64<<20), "the 65,536 orders of the default take less memory than their texts may")
	_, state := ask(t, &g, idOf(more))
	assert.Equal(t, gateway.OrderCreated, state, "the oldest that is remembered")
	_, state = ask(t, &g, idOf(more-1))
	assert.Equal(t, gateway.OrderFree, state, "the newest that is not")

	taken = heapOf(func() {
		for i := range 32 {
			form := strings.Repeat("x", 1<<20) + fmt.Sprintf("%08d", i)
			settle(t, &cut, form[1<<20:], created(nil))
		}
	})
	assert.Less(t, taken, int64(8<<20), "a text does not keep what it was cut from")
	_, state = ask(t, &cut, "00000000")
	assert.Equal(t, gateway.OrderCreated, state)
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
	const (
		pending, created = gateway.OrderUnknown, gateway.OrderCreated
		id               = "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"
	)
	type finding = gateway.Finding
	exists := func(invoice string) finding { return finding{Exists: true, Invoice: json.RawMessage(invoice)} }
	long := strings.Repeat("x", 64<<10+1)
	for _, tt := range []struct {
		name    string
		finding finding // by anna, if by nobody
		state   gateway.OrderState
		wrong   string // the argument; "" for none
		is      error  // if no argument is wrong
	}{
		{"an invoice exists", exists(""), pending, "", nil},
		{"with its JSON", exists(`{"id":"i-1"}`), pending, "", nil},
		{"its JSON for a created order", exists(`{"id":"i-1"}`), created, "", nil},
		{"with the order in another case", exists(`{"orderId":"` + strings.ToUpper(id) + `"}`), pending, "", nil},
		{"with the order beside another", exists(`[{"orderId":"A-18"},{"orderId":"` + id + `"}]`), pending, "", nil},
		{"with the order by its other name", exists(`{"order_id":"` + id + `","orderId":"A-18"}`), pending, "", nil},
		{"with another reference", exists(`{"reference":"A-18"}`), pending, "", nil},
		{"none exists", finding{Margin: time.Hour}, pending, "", nil},
		{"with the longest note", finding{Note: long[1:]}, pending, "", nil},
		{"without a name", finding{By: " "}, pending, "By", nil},
		{"with a name that is too long", finding{By: long}, pending, "By", nil},
		{"with a NUL in the note", finding{Note: "a\x00"}, pending, "Note", nil},
		{"with a note that is not UTF-8", finding{Note: "\xff"}, pending, "Note", nil},
		{"with a negative margin", finding{Margin: -1}, pending, "Margin", nil},
		{"none exists, with an invoice", finding{Invoice: json.RawMessage(`{"id":"i-1"}`)}, pending, "Invoice", nil},
		{"with an invoice that is no JSON", exists("i-1"), pending, "Invoice", nil},
		{"with an invoice that is too long", exists(`"` + long + `"`), pending, "Invoice", nil},
		{"with the invoice of another order", exists(`{"invoice":{"orderId":"A-18"}}`), pending, "Invoice", nil},
		{"with the invoice of another order, by a number", exists(`{"orderId":18}`), pending, "Invoice", nil},
		{"with the invoice of another order, by its other name", exists(`[{"order_id":"A-18"}]`), pending, "Invoice", nil},
		{"about a free order", finding{}, gateway.OrderFree, "", gateway.ErrNotUnknown},
		{"about a created order, without JSON", exists(""), created, "", gateway.ErrNotUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.finding.By = cmp.Or(tt.finding.By, "anna")
			err := tt.finding.Validate(gateway.OrderStatus{OrderID: id, State: tt.state})
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
		gateway.OrderFree: "free", gateway.OrderInFlight: "in flight", gateway.OrderCreated: "created",
		gateway.OrderUnknown: "unknown", 9: "OrderState(9)", -1: "OrderState(-1)",
	} {
		assert.Equal(t, want, state.String())
	}
}
