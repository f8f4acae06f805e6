package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Of a thousand equal calls at once one is sent, and all get its invoice.
// I-122
func TestOrder_sameAtOnce(t *testing.T) {
	t.Parallel()
	t.Run("1,000 for one order", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
				sent++
				time.Sleep(3 * time.Second)
				return reply(200, enveloped(invoiceJSON)), nil
			}))
			var first atomic.Int32
			var all sync.WaitGroup
			for range 1000 {
				all.Go(func() {
					got, err := c.CreateInvoice(t.Context(), order("A-17"))
					assertInvariants(t, got, err)
					if assert.NoError(t, err) && !got.Replayed {
						first.Add(1)
					}
					assert.JSONEq(t, invoiceJSON, string(got.Raw))
				})
			}
			all.Wait()
			assert.Equal(t, 1, sent)
			assert.EqualValues(t, 1, first.Load())
		})
	})
}

// An orderStep is a call for the order A-17, what the wire does to it and what its caller gets.
type orderStep struct {
	trip     func() (*http.Response, error) // nil for a call that must not be sent
	request  func(*gateway.InvoiceRequest)  // changes it; nil for nothing
	absent   bool                           // a person finds before the call that no invoice exists
	want     gateway.Outcome
	is       error // nil for none
	replayed bool
}

func cutOff() (*http.Response, error) { return nil, errors.New("cut") }

var errBreaker = errors.New("circuit breaker is open")

func brokenOff() (*http.Response, error) { return nil, errBreaker }

func otherPrice(r *gateway.InvoiceRequest) { r.Price = decimal.RequireFromString("99") }

// What becomes of an order, call by call.
// I-122
func TestOrder_steps(t *testing.T) {
	t.Parallel()
	good, no, fails := respondWith(200, enveloped(invoiceJSON)), respondWith(422, refused("No.")), respondWith(500, refused("No."))
	const (
		unknown, succeeded = gateway.OutcomeUnknown, gateway.OutcomeSucceeded
		notSent, rejected  = gateway.OutcomeNotSent, gateway.OutcomeRejected
		conflict           = gateway.OutcomeConflict
	)
	again := orderStep{want: succeeded, replayed: true}
	held := orderStep{want: unknown, replayed: true}
	for _, tt := range []struct {
		name  string
		steps []orderStep
	}{
		{"a success is returned again", []orderStep{{trip: good, want: succeeded}, again, again}},
		{"another request conflicts with it", []orderStep{
			{trip: good, want: succeeded},
			{request: otherPrice, want: conflict},
			again,
		}},
		{"an amount is compared by its value", []orderStep{
			{trip: good, want: succeeded},
			{request: func(r *gateway.InvoiceRequest) { r.Amount = decimal.RequireFromString(r.Amount.String() + "00") }, want: succeeded, replayed: true},
		}},
		{"a request that is not valid conflicts with it", []orderStep{
			{trip: good, want: succeeded},
			{request: func(r *gateway.InvoiceRequest) { r.Price = decimal.Zero }, want: conflict},
		}},
		{"a refusal by the service frees it", []orderStep{{trip: no, want: rejected}, {trip: good, want: succeeded}}},
		{"an invoice that was not sent frees it", []orderStep{{trip: brokenOff, want: notSent}, {trip: good, want: succeeded}}},
		{"a request that is not valid frees it", []orderStep{
			{request: func(r *gateway.InvoiceRequest) { r.Price = decimal.Zero }, want: notSent, is: gateway.ErrInvalidArgument},
			{trip: good, want: succeeded},
		}},
		{"an unknown outcome holds it", []orderStep{
			{trip: cutOff, want: unknown},
			held,
			{request: otherPrice, want: unknown, replayed: true},
			{request: func(r *gateway.InvoiceRequest) { r.Price = decimal.Zero }, want: unknown, replayed: true},
		}},
		{"after a finding that none exists it is sent", []orderStep{{trip: cutOff, want: unknown}, held, {trip: good, absent: true, want: succeeded}, again}},
		{"what is sent after the finding may be another request", []orderStep{
			{trip: cutOff, want: unknown},
			{trip: good, absent: true, request: otherPrice, want: succeeded},
			{want: conflict},
		}},
		{"a refusal after the finding frees it", []orderStep{{trip: cutOff, want: unknown}, {trip: no, absent: true, want: rejected}, {trip: good, want: succeeded}}},
		{"an unknown outcome after the finding holds it again", []orderStep{{trip: fails, want: unknown}, {trip: cutOff, absent: true, want: unknown}, held}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			runSteps(t, tt.steps)
		})
	}
}

func runSteps(t *testing.T, steps []orderStep) {
	t.Helper()
	var trip func() (*http.Response, error)
	guard := &gateway.MemoryGuard{}
	c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
		if !assert.NotNil(t, trip, "this invoice must not be sent") {
			return nil, errBreaker
		}
		response, err := trip()
		if !errors.Is(err, errBreaker) {
			drain(req)
		}
		return response, err
	})}))
	for i, s := range steps {
		trip = s.trip
		request := order("A-17")
		if s.request != nil {
			s.request(&request)
		}
		if s.absent {
			findAbsent(t, guard, "A-17")
		}
		got, err := c.CreateInvoice(t.Context(), request)
		assertInvariants(t, got, err)
		assert.Equal(t, s.want, gateway.OutcomeOf(err), "step %d: %v", i, err)
		if s.is != nil {
			assert.ErrorIs(t, err, s.is, "step %d", i)
		}
		assert.Equal(t, s.replayed, isReplayed(got, err), "step %d: %v", i, err)
		if s.replayed {
			assert.False(t, gateway.SafeToRetry(err), "step %d", i)
		}
		if err == nil {
			assert.JSONEq(t, invoiceJSON, string(got.Raw), "step %d", i)
		}
	}
}

// findAbsent records the finding that no invoice of an order exists.
func findAbsent(t *testing.T, guard *gateway.MemoryGuard, id string) {
	t.Helper()
	o, err := guard.Order(t.Context(), "", id)
	require.NoError(t, err)
	o.ReadAt, o.GuardReadAt = o.ReadAt.Add(time.Hour), o.GuardReadAt.Add(time.Hour) // as if it were read in an hour
	require.NoError(t, guard.Resolve(t.Context(), o, gateway.Finding{By: "anna"}))
}

func isReplayed(got *gateway.Invoice, err error) bool {
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		return unknown.Replayed
	}
	return err == nil && got.Replayed
}

// What a later call gets is that of the gateway, byte for byte, and no caller changes it for
// another.
func TestOrder_replaysBytes(t *testing.T) {
	t.Parallel()
	const odd = "{ \"a\":1.50,\t\"b\" : \"\\u0041\",\"c\":[ ] }"
	c := inMemory(t, enveloped(odd))
	var response gateway.Response
	for i, opts := range [][]gateway.CallOption{nil, {gateway.WithResponse(&response)}, {gateway.WithHeader("x\n", "bad")}} {
		got, err := c.CreateInvoice(t.Context(), order("A-17"), opts...)
		require.NoError(t, err)
		assert.Equal(t, odd, string(got.Raw))
		assert.Equal(t, i > 0, got.Replayed)
		clear(got.Raw)
	}
	assert.Zero(t, response)
	other := order("A-17")
	otherPrice(&other)
	_, err := c.CreateInvoice(t.Context(), other)
	var conflict *gateway.OrderConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, "A-17", conflict.OrderID)
	assert.Equal(t, order("A-17"), conflict.Request)
	require.NotNil(t, conflict.Invoice)
	assert.Equal(t, odd, string(conflict.Invoice.Raw))
	assert.True(t, conflict.Invoice.Replayed)
	assert.False(t, gateway.SafeToRetry(err))
	assert.EqualError(t, err, `gateway: create_invoice: order "A-17" has an invoice for another request, of price 10.50 and amount 10.4895: use that invoice, or another orderId`)
}

// Each field of a request makes it another one, except the amount of a request that names a coin.
// I-122
func TestOrder_conflictByField(t *testing.T) {
	t.Parallel()
	const conflict, succeeded = gateway.OutcomeConflict, gateway.OutcomeSucceeded
	for _, tt := range []struct {
		name          string
		first, second func(*gateway.InvoiceRequest) // change the request of the call
		want          gateway.Outcome
	}{
		{"price", nil, otherPrice, conflict},
		{"baseCurrency", nil, func(r *gateway.InvoiceRequest) { r.BaseCurrency = "eur" }, conflict},
		{"coinSymbol", nil, func(r *gateway.InvoiceRequest) { r.CoinSymbol = "BTC" }, conflict},
		{"coinSymbol, of requests with one", withCoin, func(r *gateway.InvoiceRequest) { withCoin(r); r.CoinSymbol = "ETH" }, conflict},
		{"networkName", nil, func(r *gateway.InvoiceRequest) { r.NetworkName = "Ethereum" }, conflict},
		{"networkName, of requests with a coin", withCoin, func(r *gateway.InvoiceRequest) { withCoin(r); r.NetworkName = "Lightning" }, conflict},
		{"amount, of requests without a coin", nil, otherAmount, conflict},
		{"amount, of requests with a coin: the rate has moved", withCoin, func(r *gateway.InvoiceRequest) { withCoin(r); otherAmount(r) }, succeeded},
		{"amount, and the second request has no coin", withCoin, otherAmount, conflict},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			runSteps(t, []orderStep{
				{trip: respondWith(200, enveloped(invoiceJSON)), request: tt.first, want: succeeded},
				{request: tt.second, want: tt.want, replayed: tt.want == succeeded},
			})
		})
	}
}

func withCoin(r *gateway.InvoiceRequest) { r.CoinSymbol, r.NetworkName = "BTC", "Bitcoin" }

func otherAmount(r *gateway.InvoiceRequest) { r.Amount = decimal.RequireFromString("11") }

// A replay has the request that its invoice was created for.
func TestInvoice_Request(t *testing.T) {
	t.Parallel()
	c := inMemory(t, enveloped(invoiceJSON))
	first := order("A-17")
	withCoin(&first)
	later := first
	otherAmount(&later)
	for i, request := range []gateway.InvoiceRequest{first, first, later} {
		got, err := c.CreateInvoice(t.Context(), request)
		require.NoError(t, err)
		assert.Equal(t, i > 0, got.Replayed)
		assert.Equal(t, first, got.Request)
	}
}

// What is written otherwise is the same order: a UUID, and a currency.
func TestOrder_sameOtherwise(t *testing.T) {
	t.Parallel()
	const id = "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"
	c := inMemory(t, enveloped(invoiceJSON))
	first, second := order(strings.ToUpper(id)), order(id)
	first.BaseCurrency, second.BaseCurrency = "usd", "USD"
	got, err := c.CreateInvoice(t.Context(), first)
	require.NoError(t, err)
	assert.Equal(t, first.OrderID, got.OrderID, "as it was given")
	got, err = c.CreateInvoice(t.Context(), second)
	require.NoError(t, err)
	assert.True(t, got.Replayed)
	for _, other := range []string{"A-17", "a-17"} {
		got, err = c.CreateInvoice(t.Context(), order(other))
		require.NoError(t, err)
		assert.False(t, got.Replayed, "other identifiers are compared as they are")
	}
}

// A record goes through JSON and back as it is.
func TestOrderRecord_JSON(t *testing.T) {
	t.Parallel()
	for _, r := range []gateway.OrderRecord{
		{Request: order("A-17")},
		{Outcome: gateway.OutcomeNotSent, Request: order("A-17")},
		{
			Outcome: gateway.OutcomeSucceeded, Request: order("A-17"), Invoice: json.RawMessage(`{"id":1}`), Others: []json.RawMessage{[]byte(`{"id":2}`)},
			SentAt: time.Unix(17, 0).UTC(), CreatedAt: time.Unix(18, 0).UTC(), StatusCode: 201,
		},
		{Outcome: gateway.OutcomeUnknown, Request: order("A-17"), Body: []byte("<html>"), Cause: "a 502"},
	} {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		var back gateway.OrderRecord
		require.NoError(t, json.Unmarshal(text, &back))
		assert.True(t, back.Request.Price.Equal(r.Request.Price))
		back.Request = r.Request // equal by value
		assert.Equal(t, r, back, "%s", text)
	}
	text, err := json.Marshal(gateway.Response{StatusCode: 200})
	require.NoError(t, err)
	assert.NotContains(t, string(text), "Meta")
	assert.NotContains(t, string(text), "Result")
}

// An invoice of up to 1 MiB is kept. A larger one is returned once, and GuardErr reports that it is not kept; the
// order is created.
func TestOrder_largeInvoice(t *testing.T) {
	t.Parallel()
	for size, reason := range map[int]string{1 << 20: "", 1<<20 + 1: "the invoice has 1048577 bytes, and a guard keeps at most 1 MiB"} {
		var ends []gateway.Call
		c := inMemory(t, enveloped(`{"a":"`+strings.Repeat("x", size-len(`{"a":""}`))+`"}`), recordEnds(&ends))
		for i, replayed := range []bool{false, true} {
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			require.NoError(t, err)
			assert.Equal(t, replayed, got.Replayed)
			assert.Equal(t, reason == "" || !replayed, len(got.Raw) == size)
			if reason == "" {
				assert.NoError(t, got.GuardErr)
				assert.NoError(t, ends[i].GuardErr)
				continue
			}
			assert.EqualError(t, got.GuardErr, reason)
		}
		assert.Equal(t, reason != "", ends[0].GuardErr != nil)
	}
}

// Whoever waits for an equal call in flight gets its invoice or its unknown outcome. After a refusal each
// sends its own request.
func TestOrder_waits(t *testing.T) {
	t.Parallel()
	const takes, callers = 2 * time.Second, 20
	good, no := respondWith(201, enveloped(invoiceJSON)), respondWith(422, refused("No."))
	for _, tt := range []struct {
		name         string
		first, later func() (*http.Response, error)
		want         gateway.Outcome // of those that wait
		sent         int
	}{
		{"it succeeds", good, nil, gateway.OutcomeSucceeded, 1},
		{"its outcome is unknown", cutOff, nil, gateway.OutcomeUnknown, 1},
		{"it is refused, and so are all", no, no, gateway.OutcomeRejected, callers},
		{"it is refused, and the next one succeeds", no, good, gateway.OutcomeSucceeded, 2},
		{"it is not sent", brokenOff, good, gateway.OutcomeSucceeded, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var sent atomic.Int32
				c := newClient(t, "http://localhost", once(), gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
					trip := tt.first
					if sent.Add(1) > 1 {
						trip = tt.later
					} else {
						time.Sleep(takes)
					}
					response, err := trip()
					if !errors.Is(err, errBreaker) {
						drain(req)
					}
					return response, err
				})}))
				begun := time.Now()
				var all sync.WaitGroup
				all.Go(func() { _, _ = c.CreateInvoice(t.Context(), order("A-17")) })
				synctest.Wait()
				for range callers - 1 {
					all.Go(func() {
						got, err := c.CreateInvoice(t.Context(), order("A-17"))
						assertInvariants(t, got, err)
						assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
					})
				}
				all.Wait()
				assert.EqualValues(t, tt.sent, sent.Load())
				assert.Less(t, time.Since(begun), takes*3/2)
			})
		})
	}
}

// The outcome of a call follows what the guard has when the call ends.
func TestOrderGuard_EndRaises(t *testing.T) {
	t.Parallel()
	createdAt := time.Unix(1_700_000_000, 0)
	unknown := gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Request: order("A-17"), Cause: "create_invoice: a 502"}
	created := gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Request: order("A-17"), Invoice: []byte(`{"id":"of another call"}`), CreatedAt: createdAt}
	another := created
	otherPrice(&another.Request)
	two := created
	two.Others = []json.RawMessage{[]byte(`{"id":"of a third call"}`)}
	no, fails, good := respondWith(422, refused("No.")), respondWith(500, refused("No.")), respondWith(201, enveloped(invoiceJSON))
	for _, tt := range []struct {
		name     string
		trip     func() (*http.Response, error)
		has      gateway.OrderRecord
		want     gateway.Outcome
		replayed bool
	}{
		{"rejected, and the guard has the same", no, gateway.OrderRecord{Outcome: gateway.OutcomeRejected}, gateway.OutcomeRejected, false},
		{"rejected, and the guard has an unknown outcome", no, unknown, gateway.OutcomeUnknown, true},
		{"rejected, and the guard has an invoice", no, created, gateway.OutcomeSucceeded, true},
		{"rejected, and the guard has an invoice for another request", no, another, gateway.OutcomeConflict, false},
		{"not sent, and the guard has an unknown outcome", brokenOff, unknown, gateway.OutcomeUnknown, true},
		{"not sent, and the guard has an invoice", brokenOff, created, gateway.OutcomeSucceeded, true},
		{"unknown, and the guard has an invoice", fails, created, gateway.OutcomeSucceeded, true},
		{"unknown, and the guard has less", fails, gateway.OrderRecord{Outcome: gateway.OutcomeNotSent}, gateway.OutcomeUnknown, false},
		{"succeeded, and the guard has the same", good, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, CreatedAt: createdAt}, gateway.OutcomeSucceeded, false},
		{"succeeded, and the guard has another invoice", good, two, gateway.OutcomeSucceeded, false},
		{"succeeded, and the guard has an unknown outcome", good, unknown, gateway.OutcomeSucceeded, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var ends []gateway.Call
			var log bytes.Buffer
			n := &recordingGuard{has: &tt.has}
			c := newClient(t, "http://localhost", once(), gateway.WithOrderGuard(n), recordEnds(&ends), gateway.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), gateway.WithHTTPClient(&http.Client{
				Transport: tripper(func(req *http.Request) (*http.Response, error) {
					response, err := tt.trip()
					if err == nil {
						drain(req)
					}
					return response, err
				}),
			}))
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
			assert.Equal(t, tt.replayed, isReplayed(got, err))
			require.Len(t, ends, 1)
			assert.Equal(t, tt.want, ends[0].Outcome)
			if err == nil {
				assert.Equal(t, tt.has.CreatedAt, got.CreatedAt)
				assert.Equal(t, tt.has.Others, got.Others)
				assert.Equal(t, len(tt.has.Others), ends[0].Others)
				assert.Equal(t, len(tt.has.Others) > 0, strings.Contains(log.String(), "more than one invoice"))
			}
		})
	}
}

// The wait ends with the context, and when the other call should have ended long ago. Another
// request for the order does not wait.
func TestOrder_waitEnds(t *testing.T) {
	t.Parallel()
	policy := gateway.RetryPolicy{MaxAttempts: 2, InvoiceTimeout: 10 * time.Second, MaxDelay: time.Second}
	for _, tt := range []struct {
		name    string
		timeout time.Duration // of the context
		request func(*gateway.InvoiceRequest)
		waits   time.Duration
		is      []error
	}{
		{"with the context", 3 * time.Second, nil, 3 * time.Second, []error{context.DeadlineExceeded, context.DeadlineExceeded}},
		{"after the time that an invoice may take", time.Hour, nil, 21 * time.Second, nil},
		{"at once for another request", time.Hour, otherPrice, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &recordingGuard{lease: gateway.Lease{State: gateway.OrderInFlight, Known: &gateway.OrderRecord{Request: order("A-17")}}}
				c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), gateway.WithRetry(policy), through(func(*http.Request) (*http.Response, error) {
					panic("is not sent")
				}))
				ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
				defer cancel()
				request, begun := order("A-17"), time.Now()
				if tt.request != nil {
					tt.request(&request)
				}
				got, err := c.CreateInvoice(ctx, request)
				assertInvariants(t, got, err)
				assert.InDelta(t, tt.waits, time.Since(begun), float64(500*time.Millisecond))
				assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
				assert.True(t, gateway.SafeToRetry(err))
				assertSentinels(t, err, append([]error{gateway.ErrOrderInFlight}, tt.is[min(1, len(tt.is)):]...)...)
				for _, is := range tt.is {
					assert.ErrorIs(t, err, is)
				}
				assert.Contains(t, err.Error(), `order "A-17"`)
				assert.Less(t, len(n.begun), 100, "it asks at growing intervals")
			})
		})
	}
}

// A recordingGuard is a guard that records its calls.
type recordingGuard struct {
	fails error
	lease gateway.Lease
	has   *gateway.OrderRecord // what End returns; nil for an error

	mu      sync.Mutex
	begun   []gateway.Order
	endedOf []gateway.Order
	ended   []gateway.OrderRecord
	state   []error // of the contexts of End
	left    []time.Duration
	value   []any
}

type guardContextKey struct{}

func (n *recordingGuard) Begin(_ context.Context, o gateway.Order) (gateway.Lease, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begun = append(n.begun, o)
	return n.lease, n.fails
}

func (n *recordingGuard) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.endedOf = append(n.endedOf, o)
	n.ended = append(n.ended, r)
	n.state = append(n.state, ctx.Err())
	n.value = append(n.value, ctx.Value(guardContextKey{}))
	if deadline, ok := ctx.Deadline(); ok {
		n.left = append(n.left, time.Until(deadline))
	}
	if n.has != nil {
		return *n.has, nil
	}
	return gateway.OrderRecord{}, errors.New("an error of End changes nothing")
}

// End receives the outcome of the attempt once, with its name and a context that has not ended although the
// caller's has.
func TestOrderGuard_End(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		trip func(cancel func()) (*http.Response, error)
		want gateway.OrderRecord
	}{
		{
			"a success", func(func()) (*http.Response, error) { return reply(200, enveloped(invoiceJSON)), nil },
			gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, StatusCode: 200, Invoice: []byte(invoiceJSON)},
		},
		{
			"a refusal", func(func()) (*http.Response, error) { return reply(422, refused("No.")), nil },
			gateway.OrderRecord{Outcome: gateway.OutcomeRejected, StatusCode: 422, Body: []byte(refused("No.")), Cause: `create_invoice: 422: "No."`},
		},
		{
			"a response of 500", func(func()) (*http.Response, error) { return reply(500, "oops"), nil },
			gateway.OrderRecord{StatusCode: 500, Body: []byte("oops"), Cause: `create_invoice: 500: no message in the response: "oops"`},
		},
		{
			"a response that cannot be decoded", func(func()) (*http.Response, error) { return reply(200, "<html>"), nil },
			gateway.OrderRecord{StatusCode: 200, Body: []byte("<html>"), Cause: "create_invoice: 200: response not understood: invalid character '<' at start of value: \"<html>\""},
		},
		{
			"the caller cancels while waiting", func(cancel func()) (*http.Response, error) { cancel(); return nil, context.Canceled },
			gateway.OrderRecord{Cause: "create_invoice: start: context canceled"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.WithValue(t.Context(), guardContextKey{}, "the caller's"))
				defer cancel()
				n, sentAt := &recordingGuard{lease: gateway.Lease{Attempt: "attempt-7"}}, time.Now()
				c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), through(func(*http.Request) (*http.Response, error) {
					return tt.trip(cancel)
				}))
				got, err := c.CreateInvoice(ctx, order("A-17"))
				assertInvariants(t, got, err)
				assert.Equal(t, tt.want.Outcome, gateway.OutcomeOf(err))
				asked := gateway.Order{Gateway: "http://localhost", Request: order("A-17")}
				assert.Equal(t, []gateway.Order{asked}, n.begun)
				asked.Attempt = "attempt-7"
				assert.Equal(t, []gateway.Order{asked}, n.endedOf)
				tt.want.Request, tt.want.SentAt = order("A-17"), sentAt
				if tt.want.Outcome == gateway.OutcomeSucceeded {
					tt.want.CreatedAt = sentAt
				}
				assert.Equal(t, []gateway.OrderRecord{tt.want}, n.ended)
				assert.Equal(t, []error{nil}, n.state, "the context of End has not ended")
				assert.Equal(t, []time.Duration{10 * time.Second}, n.left, "and has a deadline")
				assert.Equal(t, []any{"the caller's"}, n.value, "and has the caller's values")
			})
		})
	}
}

// After a panic of the transport the outcome is unknown.
func TestOrderGuard_EndIsCalledAfterAPanic(t *testing.T) {
	t.Parallel()
	n := &recordingGuard{}
	c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), through(func(*http.Request) (*http.Response, error) {
		panic("of the transport")
	}))
	assert.Panics(t, func() { _, _ = c.CreateInvoice(t.Context(), order("A-17")) })
	require.Len(t, n.ended, 1)
	assert.Equal(t, gateway.OutcomeUnknown, n.ended[0].Outcome)
}

// The error of End is told to observers and to the log, and changes nothing for the caller.
func TestOrderGuard_EndFails(t *testing.T) {
	t.Parallel()
	var ends []gateway.Call
	var out bytes.Buffer
	c := inMemory(t, enveloped(invoiceJSON), gateway.WithOrderGuard(&recordingGuard{}),
		recordEnds(&ends), gateway.WithLogger(slog.New(slog.NewJSONHandler(&out, nil))))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	require.NoError(t, err)
	require.Len(t, ends, 1)
	assert.EqualError(t, ends[0].GuardErr, "an error of End changes nothing")
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	assert.Equal(t, "ERROR", line["level"])
	assert.Equal(t, "an error of End changes nothing", line["guard_error"])
}

// The guard is asked before an invoice is called not sent, and not for what is about no order.
func TestOrderGuard_isAsked(t *testing.T) {
	t.Parallel()
	n := &recordingGuard{}
	w := serve(t, respond(404, ""))
	c := newClient(t, w.URL, gateway.WithOrderGuard(n))
	for _, id := range []string{"", "a\nb"} {
		_, err := c.CreateInvoice(t.Context(), gateway.InvoiceRequest{OrderID: id})
		assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	}
	for _, s := range subjects() {
		if !s.write {
			_, err := s.call(t.Context(), c)
			assert.ErrorIs(t, err, gateway.ErrNotFound)
		}
	}
	assert.Empty(t, n.begun)

	_, err := c.CreateInvoice(t.Context(), gateway.InvoiceRequest{OrderID: "A-17", CoinSymbol: "a\nb"})
	assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	require.Len(t, n.begun, 1)
	assert.Equal(t, gateway.InvoiceRequest{OrderID: "A-17"}, n.begun[0].Request, "what is not valid is kept from the guard")
	_, err = c.CreateInvoice(t.Context(), order("A-17"), gateway.WithHeader("x\n", ""))
	assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	assert.Len(t, n.begun, 2)
	_, err = c.CreateInvoice(t.Context(), order("A-17"), gateway.WithHeader("x\n", ""), gateway.WithMerchant(""))
	assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	_, err = c.CreateInvoice(t.Context(), order("A-17"), gateway.WithAPIKey("x\n"))
	assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	assert.Len(t, n.begun, 2, "it is nobody's order")
	_, err = c.CreateInvoice(t.Context(), order("A-17"), gateway.WithAPIKey("x\n"), gateway.WithMerchant("anna"))
	assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	require.Len(t, n.begun, 3)
	assert.Equal(t, "anna", n.begun[2].Merchant)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.CreateInvoice(ended, order("A-17"))
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
	assert.Len(t, n.ended, 4)
}

type databaseError struct{ table string }

func (e *databaseError) Error() string { return "relation " + e.table + " is locked" }

var errOfTheGuard = errors.New("of the guard")

// A guard that cannot say is not believed about other calls, and asking it again does no harm.
func TestOrderGuard_fails(t *testing.T) {
	t.Parallel()
	address := "postgres://shop:" + password + "@db:5432/orders: refused"
	previous := &gateway.OutcomeUnknownError{Operation: "create_invoice", OrderID: "A-17", Cause: io.EOF}
	for _, tt := range []struct {
		name string
		err  error
	}{
		{"a plain error", errors.New("disk full")},
		{"a timeout", context.DeadlineExceeded},
		{"a refusal of the service", &gateway.APIError{Operation: "create_invoice", StatusCode: 429}},
		{"a failure of the service", &gateway.APIError{Operation: "create_invoice", StatusCode: 500}},
		{"a previous call's unknown outcome", previous},
		{"a database's address", errors.New(address)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := &recordingGuard{fails: fmt.Errorf("%w: %w: %w", tt.err, errOfTheGuard, &databaseError{"orders"})}
			got, err := newClient(t, "http://localhost", gateway.WithOrderGuard(n), through(func(*http.Request) (*http.Response, error) {
				panic("is not sent")
			})).CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			assert.NotErrorIs(t, err, gateway.ErrInvalidArgument)
			assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
			assert.True(t, gateway.SafeToRetry(err))
			failure, ok := errors.AsType[*gateway.TransportError](err)
			require.True(t, ok)
			assert.Equal(t, gateway.PhaseOrder, failure.Phase)
			assert.Zero(t, failure.Attempts)
			assert.Contains(t, err.Error(), `gateway: create_invoice: order: order "A-17": the order guard: `)
			assertGuardErrorKept(t, err, tt.name == "a plain error" || tt.name == "a timeout")
			assert.Empty(t, n.ended, "End is not called without a lease")
		})
	}
}

func assertGuardErrorKept(t *testing.T, err error, whole bool) {
	t.Helper()
	assert.Equal(t, whole, errors.Is(err, errOfTheGuard))
	_, isDatabase := errors.AsType[*databaseError](err)
	assert.Equal(t, whole, isDatabase, "the error of the guard is found, unless its text has a password or it is of another call")
	_, isRefusal := errors.AsType[*gateway.APIError](err)
	assert.False(t, isRefusal)
	_, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err)
	assert.False(t, isUnknown)
	assertSilent(t, err, password)
}

// A guard that is not set up for the call refuses it again.
func TestOrderGuard_refusesArgument(t *testing.T) {
	t.Parallel()
	n := &recordingGuard{fails: fmt.Errorf("guard: %w", &gateway.ArgumentError{Operation: "sqlguard", Name: "WithMerchants", Reason: "is not set"})}
	_, err := inMemory(t, "", gateway.WithOrderGuard(n)).CreateInvoice(t.Context(), order("A-17"))
	assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
	assert.False(t, gateway.SafeToRetry(err))
	assertSentinels(t, err)
	assert.ErrorContains(t, err, "WithMerchants: is not set")
}

// An order is one of a gateway: a client with another base URL is refused, whatever became of it.
func TestOrderGuard_otherGateway(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]gateway.Outcome{"created": gateway.OutcomeSucceeded, "unknown": gateway.OutcomeUnknown} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard := &gateway.MemoryGuard{}
			o := gateway.Order{Gateway: "https://test.example", Request: order("A-17")}
			_, err := guard.Begin(t.Context(), o)
			require.NoError(t, err)
			_, err = guard.End(t.Context(), o, gateway.OrderRecord{Outcome: outcome, Request: o.Request})
			require.NoError(t, err)
			got, err := newClient(t, "https://live.example", gateway.WithOrderGuard(guard), through(func(*http.Request) (*http.Response, error) {
				panic("is not sent")
			})).CreateInvoice(t.Context(), order("A-17"))
			assert.Nil(t, got)
			require.ErrorIs(t, err, gateway.ErrOtherGateway)
			assert.ErrorContains(t, err, "https://test.example")
			assert.ErrorContains(t, err, "https://live.example")
			assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
			assert.False(t, gateway.SafeToRetry(err))
		})
	}
}

// A guard may know nothing of an order but its state.
func TestOrderGuard_states(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state gateway.OrderState
		want  gateway.Outcome
		is    []error
	}{
		{gateway.OrderInFlight, gateway.OutcomeUnknown, []error{gateway.ErrOrderInFlight}},
		{gateway.OrderCreated, gateway.OutcomeSucceeded, nil},
		{gateway.OrderUnknown, gateway.OutcomeUnknown, nil},
		{9, gateway.OutcomeUnknown, []error{gateway.ErrOrderInFlight}},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &recordingGuard{lease: gateway.Lease{State: tt.state}}
			c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), through(func(*http.Request) (*http.Response, error) { panic("is not sent") }))
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			assert.Equal(t, tt.want, gateway.OutcomeOf(err))
			assertSentinels(t, err, tt.is...)
			if err == nil {
				assert.Equal(t, &gateway.Invoice{OrderID: "A-17", Replayed: true}, got)
			}
			assert.Empty(t, n.ended)
		})
	}
}

// What a guard knows of a created order is what the invoice has, and no caller changes it.
func TestOrderGuard_knowsCreated(t *testing.T) {
	t.Parallel()
	known := &gateway.OrderRecord{
		Request: order("A-17"), Invoice: []byte(`{"id":1}`), Others: []json.RawMessage{[]byte(`{"id":2}`)}, CreatedAt: time.Unix(17, 0),
	}
	c := inMemory(t, "", gateway.WithOrderGuard(&recordingGuard{lease: gateway.Lease{State: gateway.OrderCreated, Known: known}}))
	for range 2 {
		got, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err)
		assert.Equal(t, &gateway.Invoice{
			OrderID: "A-17", Raw: []byte(`{"id":1}`), Others: []json.RawMessage{[]byte(`{"id":2}`)}, CreatedAt: time.Unix(17, 0), Replayed: true, Request: order("A-17"),
		}, got)
		clear(got.Raw)
		clear(got.Others[0])
	}
}

// What a guard knows of an order of unknown outcome is what the error has.
func TestOrderGuard_knowsUnknown(t *testing.T) {
	t.Parallel()
	known := &gateway.OrderRecord{
		Request: order("A-17"), SentAt: time.Unix(1_700_000_000, 0), StatusCode: 502, Body: []byte("bad"), Cause: "create_invoice: a 502",
	}
	n := &recordingGuard{lease: gateway.Lease{State: gateway.OrderUnknown, Known: known}}
	_, err := inMemory(t, "", gateway.WithOrderGuard(n)).CreateInvoice(t.Context(), order("A-17"))
	unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
	require.True(t, ok)
	assert.Equal(t, &gateway.OutcomeUnknownError{
		Operation: "create_invoice", OrderID: "A-17", SentAt: known.SentAt, StatusCode: 502, Body: []byte("bad"),
		Replayed: true, Cause: errors.New("create_invoice: a 502"),
	}, unknown)
	assert.EqualError(t, err, `gateway: create_invoice: outcome unknown: an invoice of 2023-11-14T22:13:20Z for order "A-17" may exist, `+
		`look it up before sending it again: a 502`)
}

// a lease that is shorter than the call may last is refused with both named.
func TestOrderGuard_shortLease(t *testing.T) {
	t.Parallel()
	const forever = 24 * time.Hour // with the longest InvoiceTimeout
	for _, tt := range []struct {
		name     string
		lasts    time.Duration // the lease
		deadline time.Duration // of the context; 0 for none
		want     string        // of the refusal; "" for a success
	}{
		{"it is as long as a call with all attempts", 125 * time.Second, 0, ""},
		{"it is shorter", 124 * time.Second, 0, "the lease of the order is 2m4s, and a call may last 2m5s by WithRetry"},
		{"it is over", 0, 0, "the lease of the order is 0s"},
		{"attempts have no end", forever, 0, "the lease of the order is"},
		{"the context ends before it", time.Minute, time.Minute, ""},
		{"the context ends after it", time.Minute, 61 * time.Second, "the lease of the order is 1m0s, and a call may last 1m1s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				policy := gateway.RetryPolicy{MaxAttempts: 2, InvoiceTimeout: time.Minute, MaxDelay: 5 * time.Second}
				if tt.lasts == forever {
					policy.InvoiceTimeout = math.MaxInt64
				}
				n := &recordingGuard{lease: gateway.Lease{Expires: time.Now().Add(tt.lasts)}}
				c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), gateway.WithRetry(policy), through(func(*http.Request) (*http.Response, error) {
					return reply(201, enveloped(invoiceJSON)), nil
				}))
				ctx, cancel := t.Context(), func() {}
				if tt.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.deadline)
				}
				defer cancel()
				got, err := c.CreateInvoice(ctx, order("A-17"))
				assertInvariants(t, got, err)
				require.Len(t, n.ended, 1)
				assert.Equal(t, gateway.OutcomeOf(err) == gateway.OutcomeSucceeded, n.ended[0].Outcome == gateway.OutcomeSucceeded)
				if tt.want == "" {
					assert.NoError(t, err)
				} else if tt.lasts > 0 {
					assertRefused(t, err, "create_invoice", "WithOrderGuard", tt.want)
				} else {
					assert.ErrorContains(t, err, tt.want)
				}
			})
		})
	}
}

// slowObserver returns an observer that holds a call up after its first attempt.
func slowObserver(takes time.Duration) gateway.Observer {
	return gateway.Observer{Attempt: func(_ context.Context, a gateway.Attempt) {
		if a.Number == 1 {
			time.Sleep(takes)
		}
	}}
}

// nothing is sent after the lease has expired, and what others may have done since is not denied.
func TestOrderGuard_leaseExpires(t *testing.T) {
	t.Parallel()
	const lasts = time.Hour
	for _, tt := range []struct {
		name string
		trip func() (*http.Response, error)
		want gateway.Outcome // that the guard is told
	}{
		{"before it sends again", brokenConnect, gateway.OutcomeNotSent},
		{"after it was refused", respondWith(422, refused("No.")), gateway.OutcomeRejected},
	} {
		t.Run("the process stands still "+tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, sent := &recordingGuard{lease: gateway.Lease{Expires: time.Now().Add(lasts)}}, 0
				c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), gateway.WithObserver(slowObserver(lasts)), gateway.WithHTTPClient(&http.Client{
					Transport: tripper(func(*http.Request) (*http.Response, error) { sent++; return tt.trip() }),
				}))
				got, err := c.CreateInvoice(t.Context(), order("A-17"))
				assertInvariants(t, got, err)
				assert.Equal(t, 1, sent)
				assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
				assert.True(t, gateway.SafeToRetry(err), "the guard knows more")
				assertSentinels(t, err)
				assert.ErrorContains(t, err, "the lease of the order has expired")
				require.Len(t, n.ended, 1)
				assert.Equal(t, tt.want, n.ended[0].Outcome)
			})
		})
	}
}

func brokenConnect() (*http.Response, error) { return nil, refusedConnection("connect") }
