package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Of a thousand concurrent calls that create an invoice for one order, one is sent.
// The server holds its response until the others have returned.
// I-122
func TestOrderGuard_SameOrderAtOnce(t *testing.T) {
	t.Parallel()
	t.Run("rows A24, N51: 1,000 for one order", func(t *testing.T) {
		t.Parallel()
		const callers = 1000
		returned := make(chan struct{}, callers)
		w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
			for range callers - 1 {
				<-returned
			}
			respond(200, enveloped(invoiceJSON))(rw, r)
		})
		c := newClient(t, w.URL)
		var created, refused atomic.Int32
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				var opts []gateway.CallOption
				if i%2 == 0 {
					opts = append(opts, gateway.AllowResubmit()) // which does not help
				}
				got, err := c.CreateInvoice(t.Context(), order("A-17"), opts...)
				if err == nil {
					created.Add(1)
					return
				}
				if errors.Is(err, gateway.ErrOrderInFlight) && got == nil {
					assertRefused(t, err, "create_invoice", "orderId", "is being created")
					refused.Add(1)
				}
				returned <- struct{}{}
			})
		}
		all.Wait()
		assert.EqualValues(t, 1, created.Load())
		assert.EqualValues(t, callers-1, refused.Load())
		assert.Len(t, w.Requests(), 1)
	})
}

// Other orders do not wait.
func TestOrderGuard_OtherOrders(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, enveloped(invoiceJSON)))
	c := newClient(t, w.URL)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			_, err := c.CreateInvoice(t.Context(), order(fmt.Sprint("A-", i)))
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.Len(t, w.Requests(), 50)
}

// What the guard allows after each outcome of the previous invoices.
// I-122
func TestOrderGuard_Memory(t *testing.T) {
	t.Parallel()
	type step struct {
		trip     func() (*http.Response, error) // nil for a call that must not be sent
		resubmit bool
		want     error // nil for a success
	}
	cut := func() (*http.Response, error) { return nil, errors.New("cut") }
	good := func() (*http.Response, error) { return reply(200, enveloped(invoiceJSON)), nil }
	breaker := func() (*http.Response, error) { return nil, errBreaker }
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"a success ends the order", []step{{trip: good}, {want: gateway.ErrOrderCreated}, {want: gateway.ErrOrderCreated}}},
		{"a resubmission does not override it", []step{{trip: good}, {resubmit: true, want: gateway.ErrOrderCreated}}},
		{"a refusal by the service frees it", []step{{trip: respondWith(409, refused("No.")), want: gateway.ErrConflict}, {trip: good}}},
		{"an invoice that was not sent frees it", []step{{trip: breaker, want: gateway.ErrNotSent}, {trip: good}}},
		{
			"row A25: an unknown outcome holds it",
			[]step{{trip: cut, want: gateway.ErrOutcomeUnknown}, {want: gateway.ErrOrderOutcomeUnknown}, {want: gateway.ErrOrderOutcomeUnknown}},
		},
		{
			"row A25: a resubmission that succeeds ends it",
			[]step{{trip: cut, want: gateway.ErrOutcomeUnknown}, {trip: good, resubmit: true}, {resubmit: true, want: gateway.ErrOrderCreated}},
		},
		{
			"a resubmission that is refused leaves it unknown",
			[]step{
				{trip: cut, want: gateway.ErrOutcomeUnknown},
				{trip: respondWith(400, refused("No.")), resubmit: true, want: &gateway.APIError{}},
				{want: gateway.ErrOrderOutcomeUnknown},
			},
		},
		{
			"a resubmission that is not sent leaves it unknown",
			[]step{
				{trip: cut, want: gateway.ErrOutcomeUnknown},
				{trip: breaker, resubmit: true, want: gateway.ErrNotSent},
				{want: gateway.ErrOrderOutcomeUnknown},
			},
		},
		{
			"a resubmission that is unknown too leaves it unknown",
			[]step{
				{trip: respondWith(500, refused("No.")), want: gateway.ErrOutcomeUnknown},
				{trip: respondWith(504, refused("No.")), resubmit: true, want: gateway.ErrOutcomeUnknown},
				{want: gateway.ErrOrderOutcomeUnknown},
			},
		},
		{"allowing a resubmission of a free order changes nothing", []step{{trip: good, resubmit: true}, {want: gateway.ErrOrderCreated}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var trip func() (*http.Response, error)
			c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{
				Transport: tripper(func(req *http.Request) (*http.Response, error) {
					if trip == nil {
						return nil, errors.New("this invoice must not be sent")
					}
					response, err := trip()
					if !errors.Is(err, errBreaker) {
						drain(req)
					}
					return response, err
				}),
			}))
			for i, s := range tt.steps {
				trip = s.trip
				var opts []gateway.CallOption
				if s.resubmit {
					opts = append(opts, gateway.AllowResubmit())
				}
				got, err := c.CreateInvoice(t.Context(), order("A-17"), opts...)
				assertInvariants(t, got, err)
				assertStep(t, i, s.want, s.trip == nil, err)
			}
		})
	}
}

var errBreaker = errors.New("circuit breaker is open")

func assertStep(t *testing.T, number int, want error, byGuard bool, err error) {
	t.Helper()
	var refusal *gateway.APIError
	switch {
	case want == nil:
		assert.NoError(t, err, "step %d", number)
	case errors.As(want, &refusal):
		assert.ErrorAs(t, err, &refusal, "step %d", number)
	default:
		assert.ErrorIs(t, err, want, "step %d", number)
	}
	if !byGuard {
		return
	}
	remedy := map[error]string{gateway.ErrOrderOutcomeUnknown: "AllowResubmit"}
	assertRefused(t, err, "create_invoice", "orderId", remedy[want])
}

// The guards of two clients are independent.
func TestOrderGuard_BelongsToOneClient(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(500, ""))
	for range 3 {
		_, err := newClient(t, w.URL).CreateInvoice(t.Context(), order("A-17"))
		assert.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	}
	assert.Len(t, w.Requests(), 3)
}

func TestOrderGuard_TurnedOff(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(500, ""))
	c := newClient(t, w.URL, gateway.WithOrderGuard(nil))
	for range 3 {
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		assert.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	}
	assert.Len(t, w.Requests(), 3, "each is sent, and once")
}

// A recordingGuard is a guard that records its calls.
type recordingGuard struct {
	refuse error

	mu    sync.Mutex
	begun []string
	ended []string
	state []error // of the contexts of End
	left  []time.Duration
	value []any
}

type guardContextKey struct{}

func (n *recordingGuard) Begin(_ context.Context, orderID string, resubmit bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begun = append(n.begun, fmt.Sprint(orderID, " ", resubmit))
	return n.refuse
}

func (n *recordingGuard) End(ctx context.Context, orderID string, outcome gateway.Outcome) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = append(n.ended, fmt.Sprint(orderID, " ", outcome))
	n.state = append(n.state, ctx.Err())
	n.value = append(n.value, ctx.Value(guardContextKey{}))
	if deadline, ok := ctx.Deadline(); ok {
		n.left = append(n.left, time.Until(deadline))
	}
	return errors.New("what End returns changes nothing")
}

// End is called once with every outcome, with a context that has not ended although
// the caller's has.
func TestOrderGuard_EndReceivesEveryOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		trip func(cancel func()) (*http.Response, error)
		want string
	}{
		{"a success", func(func()) (*http.Response, error) { return reply(200, enveloped(invoiceJSON)), nil }, "succeeded"},
		{"a refusal", func(func()) (*http.Response, error) { return reply(422, refused("No.")), nil }, "rejected"},
		{"a response of 500", func(func()) (*http.Response, error) { return reply(500, ""), nil }, "unknown"},
		{"a response that cannot be decoded", func(func()) (*http.Response, error) { return reply(200, "<html>"), nil }, "unknown"},
		{
			"the caller cancels while waiting",
			func(cancel func()) (*http.Response, error) { cancel(); return nil, context.Canceled },
			"unknown",
		},
		{
			"the caller cancels when the response has arrived",
			func(cancel func()) (*http.Response, error) {
				cancel()
				return reply(200, enveloped(invoiceJSON)), nil
			},
			"",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.WithValue(t.Context(), guardContextKey{}, "the caller's"))
				n := &recordingGuard{}
				c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), through(func(*http.Request) (*http.Response, error) {
					return tt.trip(cancel)
				}))
				got, err := c.CreateInvoice(ctx, order("A-17"), gateway.AllowResubmit())
				assertInvariants(t, got, err)
				if tt.want != "" {
					assert.Equal(t, tt.want, gateway.OutcomeOf(err).String())
				}
				assert.Equal(t, []string{"A-17 true"}, n.begun)
				assert.Equal(t, []string{"A-17 " + gateway.OutcomeOf(err).String()}, n.ended, "End receives the outcome of the call")
				assert.Equal(t, []error{nil}, n.state, "the context of End has not ended")
				assert.Equal(t, []time.Duration{10 * time.Second}, n.left, "and has a deadline")
				assert.Equal(t, []any{"the caller's"}, n.value, "and has the caller's values")
				cancel()
			})
		})
	}
}

func TestOrderGuard_EndReceivesNotSent(t *testing.T) {
	t.Parallel()
	n := &recordingGuard{}
	c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), gateway.WithHTTPClient(&http.Client{
		Transport: tripper(func(*http.Request) (*http.Response, error) { return nil, errBreaker }),
	}))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	assert.ErrorIs(t, err, gateway.ErrNotSent)
	assert.Equal(t, []string{"A-17 false"}, n.begun)
	assert.Equal(t, []string{"A-17 not sent"}, n.ended)
}

// After a panic of the transport the outcome is unknown.
func TestOrderGuard_EndIsCalledAfterAPanic(t *testing.T) {
	t.Parallel()
	n := &recordingGuard{}
	c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), through(func(*http.Request) (*http.Response, error) {
		panic("of the transport")
	}))
	assert.Panics(t, func() { _, _ = c.CreateInvoice(t.Context(), order("A-17")) })
	assert.Equal(t, []string{"A-17 unknown"}, n.ended)
}

// The guard is not called for what the client itself refuses, nor for reads.
func TestOrderGuard_IsNotCalledNeedlessly(t *testing.T) {
	t.Parallel()
	n := &recordingGuard{}
	w := serve(t, respond(404, ""))
	c := newClient(t, w.URL, gateway.WithOrderGuard(n))
	_, err := c.CreateInvoice(t.Context(), gateway.InvoiceRequest{OrderID: "A-17"})
	assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.CreateInvoice(ended, order("A-17"))
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, gateway.ErrNotSent)
	for _, s := range subjects() {
		if !s.write {
			_, err := s.call(t.Context(), c)
			assert.ErrorIs(t, err, gateway.ErrNotFound)
		}
	}
	assert.Empty(t, n.begun)
	assert.Empty(t, n.ended)
}

type databaseError struct{ table string }

func (e *databaseError) Error() string { return "relation " + e.table + " is locked" }

// An error of the guard stops the invoice: nothing is sent, and the error is wrapped.
func TestOrderGuard_BeginFails(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, enveloped(invoiceJSON)))
	n := &recordingGuard{refuse: fmt.Errorf("guard: %w", &databaseError{"orders"})}
	got, err := newClient(t, w.URL, gateway.WithOrderGuard(n)).CreateInvoice(t.Context(), order("A-17"))
	assertInvariants(t, got, err)
	assert.ErrorIs(t, err, gateway.ErrNotSent)
	assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
	var failure *gateway.TransportError
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, gateway.PhaseStart, failure.Phase)
	assert.Zero(t, failure.Attempts)
	var down *databaseError
	require.ErrorAs(t, err, &down)
	assert.Equal(t, "orders", down.table)
	assert.Empty(t, n.ended, "End is not called without a successful Begin")
	assert.Empty(t, w.Requests())
}

// The error of a guard may wrap more than the sentinels.
func TestOrderGuard_RefusesWithADetail(t *testing.T) {
	t.Parallel()
	for _, sentinel := range []error{gateway.ErrOrderInFlight, gateway.ErrOrderCreated, gateway.ErrOrderOutcomeUnknown} {
		w := serve(t, respond(200, enveloped(invoiceJSON)))
		n := &recordingGuard{refuse: fmt.Errorf("%w: %w", sentinel, &databaseError{"orders"})}
		got, err := newClient(t, w.URL, gateway.WithOrderGuard(n)).CreateInvoice(t.Context(), order("A-17"))
		assertInvariants(t, got, err)
		assert.ErrorIs(t, err, sentinel)
		var down *databaseError
		assert.ErrorAs(t, err, &down)
		assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
		assert.Empty(t, n.ended)
		assert.Empty(t, w.Requests())
	}
}

// settle has a guard accept an order and records its outcome.
func settle(t *testing.T, g gateway.OrderGuard, id string, o gateway.Outcome) {
	t.Helper()
	require.NoError(t, g.Begin(t.Context(), id, false), id)
	require.NoError(t, g.End(t.Context(), id, o), id)
}

func TestNewMemoryGuard_repeats(t *testing.T) {
	t.Parallel()
	g, err := gateway.NewMemoryGuard(gateway.MemoryGuardOptions{Repeats: true})
	require.NoError(t, err)
	settle(t, g, "A-17", gateway.OutcomeSucceeded)
	settle(t, g, "A-17", gateway.OutcomeSucceeded)
	settle(t, g, "A-17", gateway.OutcomeUnknown)
	assert.ErrorIs(t, g.Begin(t.Context(), "A-17", false), gateway.ErrOrderOutcomeUnknown, "what is unknown is held all the same")
}

// The created orders that were created last are remembered, and the unknown ones for
// good.
func TestNewMemoryGuard_remembers(t *testing.T) {
	t.Parallel()
	g, err := gateway.NewMemoryGuard(gateway.MemoryGuardOptions{Remember: 3})
	require.NoError(t, err)
	settle(t, g, "unknown", gateway.OutcomeUnknown)
	for i := range 8 {
		settle(t, g, fmt.Sprint(i), gateway.OutcomeSucceeded)
		for j := range i + 1 {
			err := g.Begin(t.Context(), fmt.Sprint(j), false)
			if j > i-3 {
				assert.ErrorIs(t, err, gateway.ErrOrderCreated, "%d after %d", j, i)
				continue
			}
			assert.NoError(t, err, "%d after %d", j, i)
			assert.NoError(t, g.End(t.Context(), fmt.Sprint(j), gateway.OutcomeNotSent))
		}
	}
	assert.ErrorIs(t, g.Begin(t.Context(), "unknown", false), gateway.ErrOrderOutcomeUnknown)
}

// A guard that was refused is no guard that is turned off.
func TestNewMemoryGuard_negativeRemember(t *testing.T) {
	t.Parallel()
	g, err := gateway.NewMemoryGuard(gateway.MemoryGuardOptions{Remember: -1})
	assert.Nil(t, g)
	assertRefused(t, err, "memory_guard", "o", "Remember must not be negative")
	_, err = gateway.New("https://gateway.example", "", gateway.WithOrderGuard(g))
	assertRefused(t, err, "new", "WithOrderGuard", "must not be a nil *MemoryGuard")
}

// The orders that are remembered by default take at most 8 MiB, however long their
// identifiers. Not parallel, because it measures.
func TestNewMemoryGuard_memory(t *testing.T) {
	const orders = 1 << 16
	var before, after runtime.MemStats
	padding := strings.Repeat("x", 1016)
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	var g gateway.MemoryGuard
	for i := range 2 * orders {
		settle(t, &g, fmt.Sprintf("%08d", i)+padding, gateway.OutcomeSucceeded)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(8<<20))
	assert.ErrorIs(t, g.Begin(t.Context(), fmt.Sprintf("%08d", orders)+padding, false), gateway.ErrOrderCreated, "the oldest that is remembered")
	assert.NoError(t, g.Begin(t.Context(), fmt.Sprintf("%08d", orders-1)+padding, false), "the newest that is not")
}

// A merchantWatch is a guard that records the merchants of the contexts.
type merchantWatch struct{ seen []string }

func (w *merchantWatch) note(ctx context.Context, where string) {
	name, ok := gateway.MerchantFromContext(ctx)
	w.seen = append(w.seen, fmt.Sprintf("%s %q %t", where, name, ok))
}

func (w *merchantWatch) Begin(ctx context.Context, _ string, _ bool) error {
	w.note(ctx, "Begin")
	return nil
}

func (w *merchantWatch) End(ctx context.Context, _ string, _ gateway.Outcome) error {
	w.note(ctx, "End")
	return nil
}

// A merchantObserver is an observer that records them in the same list.
type merchantObserver struct {
	gateway.NopObserver
	watch *merchantWatch
}

func (o merchantObserver) Attempt(ctx context.Context, _ gateway.Attempt) {
	o.watch.note(ctx, "Attempt")
}

func TestMerchantFromContext(t *testing.T) {
	t.Parallel()
	const other = "another-key-of-32-characters-len"
	for _, tt := range []struct {
		name string
		opts []gateway.CallOption
		want string // "" for none, "key:" for one that is made from the key
	}{
		{"the client's own key", nil, ""},
		{"the client's own key, as an option", []gateway.CallOption{gateway.WithAPIKey(canary)}, ""},
		{"another key", []gateway.CallOption{gateway.WithAPIKey(other)}, "key:"},
		{"a name", []gateway.CallOption{gateway.WithMerchant("shop 1")}, "shop 1"},
		{"a name and another key", []gateway.CallOption{gateway.WithAPIKey(other), gateway.WithMerchant("shop 1")}, "shop 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			merchants := map[string]bool{}
			for range 2 {
				w := &merchantWatch{}
				c := inMemory(t, enveloped(invoiceJSON), gateway.WithOrderGuard(w), gateway.WithObserver(merchantObserver{watch: w}))
				_, err := c.CreateInvoice(t.Context(), order("A-17"), tt.opts...)
				require.NoError(t, err)
				require.Len(t, w.seen, 3)
				for i, where := range []string{"Begin", "Attempt", "End"} {
					seen, ok := strings.CutPrefix(w.seen[i], where+" ")
					assert.True(t, ok, w.seen[i])
					merchants[seen] = true
				}
			}
			require.Len(t, merchants, 1, "it is the same everywhere and in each client")
			for seen := range merchants {
				assert.NotContains(t, seen, other)
				if tt.want == "key:" {
					assert.Regexp(t, `^"key:[0-9a-f]{32}" true$`, seen)
					continue
				}
				assert.Equal(t, fmt.Sprintf("%q %t", tt.want, tt.want != ""), seen)
			}
		})
	}
}

// row H8: merchants that share a guard have orders of their own.
func TestNewMemoryGuard_merchants(t *testing.T) {
	t.Parallel()
	var g gateway.MemoryGuard
	c := inMemory(t, enveloped(invoiceJSON), gateway.WithOrderGuard(&g))
	for _, opts := range [][]gateway.CallOption{
		nil,
		{gateway.WithAPIKey("key-1-of-merchant")},
		{gateway.WithAPIKey("key-2-of-merchant")},
		{gateway.WithMerchant("a")},
		{gateway.WithMerchant("b")},
	} {
		_, err := c.CreateInvoice(t.Context(), order("A-17"), opts...)
		require.NoError(t, err)
		_, err = c.CreateInvoice(t.Context(), order("A-17"), opts...)
		require.ErrorIs(t, err, gateway.ErrOrderCreated)
	}
	_, err := c.CreateInvoice(t.Context(), order("A-17"), gateway.WithMerchant("a"), gateway.WithAPIKey("key-3-of-merchant"))
	assert.ErrorIs(t, err, gateway.ErrOrderCreated, "a name stays when the key changes")
}

func TestWithMerchant_refuses(t *testing.T) {
	t.Parallel()
	c := inMemory(t, enveloped(invoiceJSON))
	for _, name := range []string{"", "key:1", "a\nb", "\xff", strings.Repeat("x", 257)} {
		_, err := c.CreateInvoice(t.Context(), order("A-17"), gateway.WithMerchant(name))
		assert.ErrorIs(t, err, gateway.ErrInvalidArgument, "%q", name)
	}
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
	const cut, good, held, created = "cut", "good", "held", "created"
	type step struct{ key, what string }
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"a success of one does not free the order of the other", []step{{merchantA, cut}, {merchantB, good}, {merchantA, held}}},
		{"an unknown outcome of one does not hold the order of the other", []step{{merchantA, cut}, {merchantB, good}, {merchantB, created}}},
		{"the client's own key is a third", []step{{"", cut}, {merchantA, good}, {merchantB, good}, {"", held}}},
		{"an unknown outcome of another does not hold the client's own order", []step{{merchantA, cut}, {"", good}, {merchantA, held}}},
		{"each holds its own", []step{{merchantA, cut}, {merchantB, cut}, {"", cut}, {merchantA, held}, {merchantB, held}, {"", held}}},
		{"the client's own key, given for a call, is the client's own", []step{{"", cut}, {canary, held}}},
		{"and the other way round", []step{{canary, cut}, {"", held}}},
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
			wants := map[string]error{cut: gateway.ErrOutcomeUnknown, held: gateway.ErrOrderOutcomeUnknown, created: gateway.ErrOrderCreated}
			for i, s := range tt.steps {
				what = s.what
				_, err := c.CreateInvoice(t.Context(), order("A-17"), keyOption(s.key)...)
				if what == good {
					assert.NoError(t, err, "step %d", i)
					continue
				}
				assert.ErrorIs(t, err, wants[what], "step %d", i)
			}
		})
	}
}

func keyOption(key string) []gateway.CallOption {
	if key == "" {
		return nil
	}
	return []gateway.CallOption{gateway.WithAPIKey(key)}
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
			_, err = c.CreateInvoice(t.Context(), order("A-17"), keyOption(merchantA)...)
			assert.ErrorIs(t, err, gateway.ErrOrderInFlight, "its own is under way")
		}
		return reply(200, enveloped(invoiceJSON)), nil
	}))
	_, err := c.CreateInvoice(t.Context(), order("A-17"), keyOption(merchantA)...)
	assert.NoError(t, err)
	assert.Empty(t, keys)
}

var errOfTheGuard = errors.New("of the guard")

// Whatever a guard refuses with, this call sent nothing, and matches nothing
// that is true of another call only.
func TestOrderGuard_Errors(t *testing.T) {
	t.Parallel()
	address := "postgres://shop:" + password + "@db:5432/orders: refused"
	previous := &gateway.OutcomeUnknownError{Operation: "create_invoice", OrderID: "A-17", Cause: io.EOF}
	refusal := []error{gateway.ErrInvalidArgument, gateway.ErrNotSent}
	for _, tt := range []struct {
		name string
		err  error
		want []error
	}{
		{"an unknown outcome", gateway.ErrOutcomeUnknown, nil},
		{"a limit", gateway.ErrRateLimited, nil},
		{"a timeout", gateway.ErrTimeout, nil},
		{"every sentinel but those of orders", errors.Join(sentinels[:14]...), nil},
		{"a refusal of the service", &gateway.APIError{Operation: "create_invoice", StatusCode: 429}, nil},
		{"a failure of the service", &gateway.APIError{Operation: "create_invoice", StatusCode: 500}, nil},
		{"a previous call's unknown outcome", previous, nil},
		{"a database's address", errors.New(address), nil},
		{"an order that is in flight", fmt.Errorf("%w: %s", gateway.ErrOrderInFlight, address), append(refusal, gateway.ErrOrderInFlight)},
		{
			"an order that is unknown, and the previous error",
			fmt.Errorf("%w: %w: %s", gateway.ErrOrderOutcomeUnknown, previous, address),
			append(refusal, gateway.ErrOrderOutcomeUnknown),
		},
		{
			"an order that is in flight, and a limit",
			errors.Join(gateway.ErrRateLimited, gateway.ErrOrderInFlight, previous),
			append(refusal, gateway.ErrOrderInFlight),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sent := 0
			accept := through(func(*http.Request) (*http.Response, error) {
				sent++
				return reply(200, enveloped(invoiceJSON)), nil
			})
			n := &recordingGuard{refuse: fmt.Errorf("%w: %w: %w", tt.err, errOfTheGuard, &databaseError{address})}
			got, err := newClient(t, "http://localhost", accept, gateway.WithOrderGuard(n)).CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			assertSentinels(t, err, append([]error{gateway.ErrNotSent}, tt.want...)...)
			assertGuardRefused(t, err)
			assert.Empty(t, n.ended)
			assert.Zero(t, sent)
		})
	}
}

func assertGuardRefused(t *testing.T, err error) {
	t.Helper()
	assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
	assert.False(t, gateway.SafeToRetry(err))
	assert.ErrorIs(t, err, errOfTheGuard)
	_, isDatabase := errors.AsType[*databaseError](err)
	assert.True(t, isDatabase, "the error of the guard is kept")
	_, isRefusal := errors.AsType[*gateway.APIError](err)
	assert.False(t, isRefusal)
	_, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err)
	assert.False(t, isUnknown)
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		assert.NotContains(t, inner.Error(), password)
	}
	assertSilent(t, err, password)
}

// An order is guarded whether its key came from the source or with the call.
func TestWithAPIKeySource_GuardAndCallKey(t *testing.T) {
	t.Parallel()
	c := clientWithKeySource(t, "http://localhost", sameKey,
		through(func(*http.Request) (*http.Response, error) { return reply(500, refused("No.")), nil }))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	_, err = c.CreateInvoice(t.Context(), order("A-17"), gateway.WithAPIKey(canary))
	require.ErrorIs(t, err, gateway.ErrOrderOutcomeUnknown)
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
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	_, err = c.CreateInvoice(t.Context(), order("A-17"))
	require.ErrorIs(t, err, gateway.ErrOrderOutcomeUnknown)
}
