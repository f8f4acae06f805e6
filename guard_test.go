package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Of a thousand that create an invoice for one order, one is sent. The server
// holds its answer back until the others are home.
func TestOrderGuard_SameOrderAtOnce(t *testing.T) {
	t.Parallel()
	t.Run("row 60: 1,000 for one order", func(t *testing.T) {
		t.Parallel()
		const callers = 1000
		home := make(chan struct{}, callers)
		w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
			for range callers - 1 {
				<-home
			}
			answer(200, enveloped(invoiceJSON))(rw, r)
		})
		c := newClient(t, w.URL)
		var created, refused atomic.Int32
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				got, err := c.CreateInvoice(t.Context(), order("A-17"))
				if err == nil {
					created.Add(1)
					return
				}
				if errors.Is(err, gateway.ErrOrderInFlight) && errors.Is(err, gateway.ErrNotSent) && got == nil {
					refused.Add(1)
				}
				home <- struct{}{}
			})
		}
		all.Wait()
		assert.EqualValues(t, 1, created.Load())
		assert.EqualValues(t, callers-1, refused.Load())
		assert.Len(t, w.Requests(), 1)
	})
}

// Other orders are not held up.
func TestOrderGuard_OtherOrders(t *testing.T) {
	t.Parallel()
	w := serve(t, answer(200, enveloped(invoiceJSON)))
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

// What the guard says after each outcome of the invoices before.
func TestOrderGuard_Memory(t *testing.T) {
	t.Parallel()
	type step struct {
		trip     func() (*http.Response, error) // nil for a call that must not come so far
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
		{"a success frees the order", []step{{trip: good}, {trip: good}}},
		{"a refusal by the service frees it", []step{{trip: saysStatus(409), want: gateway.ErrConflict}, {trip: good}}},
		{"an invoice that was not sent frees it", []step{{trip: breaker, want: gateway.ErrNotSent}, {trip: good}}},
		{
			"an unknown outcome holds it",
			[]step{{trip: cut, want: gateway.ErrOutcomeUnknown}, {want: gateway.ErrOrderOutcomeUnknown}, {want: gateway.ErrOrderOutcomeUnknown}},
		},
		{
			"a resubmission that succeeds frees it",
			[]step{{trip: cut, want: gateway.ErrOutcomeUnknown}, {trip: good, resubmit: true}, {trip: good}},
		},
		{
			"a resubmission that is refused leaves it unknown",
			[]step{
				{trip: cut, want: gateway.ErrOutcomeUnknown},
				{trip: saysStatus(400), resubmit: true, want: &gateway.APIError{}},
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
				{trip: saysStatus(500), want: gateway.ErrOutcomeUnknown},
				{trip: saysStatus(504), resubmit: true, want: gateway.ErrOutcomeUnknown},
				{want: gateway.ErrOrderOutcomeUnknown},
			},
		},
		{"allowing a resubmission of a free order changes nothing", []step{{trip: good, resubmit: true}, {trip: good}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var trip func() (*http.Response, error)
			c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{
				Transport: tripper(func(req *http.Request) (*http.Response, error) {
					if trip == nil {
						return nil, errors.New("this invoice must not be sent")
					}
					answer, err := trip()
					if !errors.Is(err, errBreaker) {
						drain(req)
					}
					return answer, err
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

func assertStep(t *testing.T, number int, want error, held bool, err error) {
	t.Helper()
	var answer *gateway.APIError
	switch {
	case want == nil:
		assert.NoError(t, err, "step %d", number)
	case errors.As(want, &answer):
		assert.ErrorAs(t, err, &answer, "step %d", number)
	default:
		assert.ErrorIs(t, err, want, "step %d", number)
	}
	if !held {
		return
	}
	var refusal *gateway.ArgumentError
	assert.ErrorAs(t, err, &refusal, "step %d", number)
	assert.ErrorIs(t, err, gateway.ErrNotSent)
	assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err), "of this call")
	assert.False(t, gateway.SafeToRetry(err))
}

// The guard of one client knows nothing of another's.
func TestOrderGuard_IsOfOneClient(t *testing.T) {
	t.Parallel()
	w := serve(t, answer(500, ""))
	for range 3 {
		_, err := newClient(t, w.URL).CreateInvoice(t.Context(), order("A-17"))
		assert.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	}
	assert.Len(t, w.Requests(), 3)
}

func TestOrderGuard_TurnedOff(t *testing.T) {
	t.Parallel()
	w := serve(t, answer(500, ""))
	c := newClient(t, w.URL, gateway.WithOrderGuard(nil))
	for range 3 {
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		assert.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	}
	assert.Len(t, w.Requests(), 3, "each is sent, and once")
}

// A notary is a guard that keeps what it is told.
type notary struct {
	refuse error

	mu    sync.Mutex
	begun []string
	ended []string
	state []error // of the contexts of End
	left  []time.Duration
	value []any
}

type notaryKey struct{}

func (n *notary) Begin(_ context.Context, orderID string, resubmit bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begun = append(n.begun, fmt.Sprint(orderID, " ", resubmit))
	return n.refuse
}

func (n *notary) End(ctx context.Context, orderID string, outcome gateway.Outcome) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = append(n.ended, fmt.Sprint(orderID, " ", outcome))
	n.state = append(n.state, ctx.Err())
	n.value = append(n.value, ctx.Value(notaryKey{}))
	if deadline, ok := ctx.Deadline(); ok {
		n.left = append(n.left, time.Until(deadline))
	}
	return errors.New("what End returns changes nothing")
}

// A guard of the caller is told every outcome once, with a context that lives
// though the caller's has ended.
func TestOrderGuard_IsToldEveryOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		trip func(cancel func()) (*http.Response, error)
		want string
	}{
		{"a success", func(func()) (*http.Response, error) { return reply(200, enveloped(invoiceJSON)), nil }, "succeeded"},
		{"a refusal", func(func()) (*http.Response, error) { return reply(422, refused("No.")), nil }, "rejected"},
		{"an answer of 500", func(func()) (*http.Response, error) { return reply(500, ""), nil }, "unknown"},
		{"an answer that is not understood", func(func()) (*http.Response, error) { return reply(200, "<html>"), nil }, "unknown"},
		{
			"the caller cancels while waiting",
			func(cancel func()) (*http.Response, error) { cancel(); return nil, context.Canceled },
			"unknown",
		},
		{
			"the caller cancels when the answer is there",
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
				ctx, cancel := context.WithCancel(context.WithValue(t.Context(), notaryKey{}, "kept"))
				n := &notary{}
				c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), through(func(*http.Request) (*http.Response, error) {
					return tt.trip(cancel)
				}))
				got, err := c.CreateInvoice(ctx, order("A-17"), gateway.AllowResubmit())
				assertInvariants(t, got, err)
				if tt.want != "" {
					assert.Equal(t, tt.want, gateway.OutcomeOf(err).String())
				}
				assert.Equal(t, []string{"A-17 true"}, n.begun)
				assert.Equal(t, []string{"A-17 " + gateway.OutcomeOf(err).String()}, n.ended, "what the call says is what the guard is told")
				assert.Equal(t, []error{nil}, n.state, "the context of End lives")
				assert.Equal(t, []time.Duration{10 * time.Second}, n.left, "and not for ever")
				assert.Equal(t, []any{"kept"}, n.value, "and has the caller's values")
				cancel()
			})
		})
	}
}

func TestOrderGuard_IsToldOfWhatWasNotSent(t *testing.T) {
	t.Parallel()
	n := &notary{}
	c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), gateway.WithHTTPClient(&http.Client{
		Transport: tripper(func(*http.Request) (*http.Response, error) { return nil, errBreaker }),
	}))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	assert.ErrorIs(t, err, gateway.ErrNotSent)
	assert.Equal(t, []string{"A-17 false"}, n.begun)
	assert.Equal(t, []string{"A-17 not sent"}, n.ended)
}

// A panic of the transport is told as unknown.
func TestOrderGuard_IsToldOfAPanic(t *testing.T) {
	t.Parallel()
	n := &notary{}
	c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), through(func(*http.Request) (*http.Response, error) {
		panic("of the transport")
	}))
	assert.Panics(t, func() { _, _ = c.CreateInvoice(t.Context(), order("A-17")) })
	assert.Equal(t, []string{"A-17 unknown"}, n.ended)
}

// The guard is not asked about what the client itself refuses, nor about reads.
func TestOrderGuard_IsNotAskedInVain(t *testing.T) {
	t.Parallel()
	n := &notary{}
	w := serve(t, answer(404, ""))
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

// A guard that can not answer stops the invoice: nothing is sent, and its
// error is kept.
func TestOrderGuard_IsDown(t *testing.T) {
	t.Parallel()
	w := serve(t, answer(200, enveloped(invoiceJSON)))
	n := &notary{refuse: fmt.Errorf("guard: %w", &databaseError{"orders"})}
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
	assert.Empty(t, n.ended, "what was not let through does not end")
	assert.Empty(t, w.Requests())
}

// A guard may say more than the sentinels do.
func TestOrderGuard_RefusesInItsOwnWords(t *testing.T) {
	t.Parallel()
	for _, sentinel := range []error{gateway.ErrOrderInFlight, gateway.ErrOrderOutcomeUnknown} {
		w := serve(t, answer(200, enveloped(invoiceJSON)))
		n := &notary{refuse: fmt.Errorf("%w: %w", sentinel, &databaseError{"orders"})}
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
