package gateway_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A repeatedCall is a call for the order A-17 of a client that may repeat orders.
type repeatedCall struct {
	trips   []func() (*http.Response, error) // of its attempts, which are as many
	request func(*gateway.InvoiceRequest)    // changes it; nil for nothing
	opts    []gateway.CallOption
	want    gateway.Outcome
	again   bool   // SafeToRetry
	text    string // in the error
}

// reset is a connection that breaks after the invoice was sent.
func reset() (*http.Response, error) {
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

func moreDigits(r *gateway.InvoiceRequest) { r.Price = decimal.RequireFromString("10.5000") }

// What is unknown is sent again, digit by digit, within a call and by later ones, until a success ends
// it; a refusal does not.
func TestWithIdempotentOrders(t *testing.T) {
	t.Parallel()
	type trips = []func() (*http.Response, error)
	good, exists := respondWith(201, enveloped(invoiceJSON)), respondWith(422, refused("Order exists."))
	fails, busy := respondWith(503, refused("Down.")), respondWith(429, refused("Slower."), "Retry-After", "1")
	lost := repeatedCall{trips: trips{reset, reset, reset}, want: gateway.OutcomeUnknown, again: true}
	for _, tt := range []struct {
		name  string
		calls []repeatedCall
	}{
		{"the next attempt ends it", []repeatedCall{{trips: trips{reset, good}, want: gateway.OutcomeSucceeded}}},
		{"an attempt after a failure of the service ends it", []repeatedCall{{trips: trips{fails, reset, good}, want: gateway.OutcomeSucceeded}}},
		{"so does one after a response that asks to wait, which follows another that is unknown", []repeatedCall{
			{trips: trips{reset, busy, good}, want: gateway.OutcomeSucceeded},
		}},
		{"a later call ends it", []repeatedCall{lost, lost, {trips: trips{good}, want: gateway.OutcomeSucceeded}, {want: gateway.OutcomeSucceeded}}},
		{"a later call with other digits sends those of the first", []repeatedCall{
			{trips: lost.trips, request: moreDigits, want: gateway.OutcomeUnknown, again: true},
			{trips: trips{good}, want: gateway.OutcomeSucceeded},
		}},
		{"a later call for another request sends nothing", []repeatedCall{lost, {request: otherPrice, want: gateway.OutcomeUnknown}}},
		{"a later call with another amount sends nothing, though it would replay a success", []repeatedCall{
			{trips: lost.trips, request: withCoin, want: gateway.OutcomeUnknown, again: true},
			{request: func(r *gateway.InvoiceRequest) { withCoin(r); otherAmount(r) }, want: gateway.OutcomeUnknown},
		}},
		{"a later call that is not valid sends nothing", []repeatedCall{
			lost, {opts: []gateway.CallOption{gateway.WithHeader("x\n", "bad")}, want: gateway.OutcomeUnknown},
		}},
		{"a refusal within the call does not end it", []repeatedCall{
			{trips: trips{reset, exists}, want: gateway.OutcomeUnknown, text: "Order exists."},
			{trips: trips{good}, want: gateway.OutcomeSucceeded},
		}},
		{"a refusal of a later call does not end it", []repeatedCall{
			lost,
			{trips: trips{exists}, want: gateway.OutcomeUnknown, text: "Order exists."},
			{trips: trips{good}, want: gateway.OutcomeSucceeded},
		}},
		{"a conflict is kept and not repeated", []repeatedCall{
			{trips: trips{respondWith(409, refused("Order exists."))}, want: gateway.OutcomeUnknown, text: "Order exists."},
		}},
		{"an attempt that is not sent does not end it", []repeatedCall{
			{trips: trips{reset, brokenOff, good}, want: gateway.OutcomeUnknown}, // a RoundTripper that refuses is not asked again
		}},
		{"what was refused at first is not repeated", []repeatedCall{{trips: trips{busy}, want: gateway.OutcomeRejected, again: true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runRepeated(t, tt.calls) })
		})
	}
}

func runRepeated(t *testing.T, calls []repeatedCall) {
	t.Helper()
	var left []func() (*http.Response, error)
	var first string
	c := newClient(t, "http://localhost", gateway.WithIdempotentOrders(), gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
		if !assert.NotEmpty(t, left, "this invoice must not be sent") {
			return nil, errBreaker
		}
		trip := left[0]
		left = left[1:]
		response, err := trip()
		if errors.Is(err, errBreaker) {
			return nil, err
		}
		body, failure := io.ReadAll(req.Body)
		assert.NoError(t, failure)
		if first == "" {
			first = string(body)
		}
		assert.Equal(t, first, string(body), "the invoice that is repeated")
		return response, err
	})}))
	for i, call := range calls {
		left = call.trips
		request := order("A-17")
		if call.request != nil {
			call.request(&request)
		}
		got, err := c.CreateInvoice(t.Context(), request, call.opts...)
		assertInvariants(t, got, err)
		assert.Equal(t, call.want, gateway.OutcomeOf(err), "call %d: %v", i, err)
		assert.Equal(t, call.again, gateway.SafeToRetry(err), "call %d: %v", i, err)
		if call.text != "" {
			assert.ErrorContains(t, err, call.text)
		}
		if call.want == gateway.OutcomeUnknown {
			assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
			assert.NotEqual(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
			assert.NotContains(t, err.Error(), "nothing was sent")
		}
		if i == len(calls)-1 && call.want != gateway.OutcomeUnknown {
			assert.Empty(t, left)
		}
	}
}

// The time of the first attempt that may have reached the service is what the gateway's operator
// looks for.
func TestWithIdempotentOrders_sentAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := scriptedClient(t, reset)
		s.connect(t, gateway.WithIdempotentOrders())
		_, err := s.client.CreateInvoice(t.Context(), order("A-17"))
		var unknown *gateway.OutcomeUnknownError
		require.ErrorAs(t, err, &unknown)
		require.Len(t, s.at, 3)
		assert.Equal(t, s.at[0], unknown.SentAt)
		assert.True(t, s.at[2].After(s.at[0]))
	})
}

// A call that waits for an equal one repeats what that one has left unknown, and what another
// request has left unknown meanwhile is not repeated.
func TestWithIdempotentOrders_guard(t *testing.T) {
	t.Parallel()
	unknown := &gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Request: order("A-17")}
	other := *unknown
	otherPrice(&other.Request)
	for _, tt := range []struct {
		name   string
		begins []beginning
		want   gateway.Outcome
		sent   bool
	}{
		{"it was in flight", []beginning{
			{gateway.OrderInFlight, unknown, false}, {gateway.OrderUnknown, unknown, false}, {gateway.OrderFree, unknown, true},
		}, gateway.OutcomeSucceeded, true},
		{"a person has found that there is none since", []beginning{{gateway.OrderUnknown, unknown, false}, {gateway.OrderFree, nil, true}}, gateway.OutcomeSucceeded, true},
		{"another request was sent since", []beginning{{gateway.OrderUnknown, unknown, false}, {gateway.OrderFree, &other, true}}, gateway.OutcomeUnknown, false},
		{"its request is not known", []beginning{{gateway.OrderUnknown, &gateway.OrderRecord{}, false}}, gateway.OutcomeUnknown, false},
		{"nothing of it is known", []beginning{{gateway.OrderUnknown, nil, false}}, gateway.OutcomeUnknown, false},
		{"the guard insists", []beginning{{gateway.OrderUnknown, unknown, false}, {gateway.OrderUnknown, unknown, true}}, gateway.OutcomeUnknown, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sent := false
				guard := &scriptedGuard{t: t, begins: tt.begins}
				c := newClient(t, "http://localhost", gateway.WithIdempotentOrders(), gateway.WithOrderGuard(guard), through(func(*http.Request) (*http.Response, error) {
					sent = true
					return reply(201, enveloped(invoiceJSON)), nil
				}))
				got, err := c.CreateInvoice(t.Context(), order("A-17"))
				assertInvariants(t, got, err)
				assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
				assert.Equal(t, tt.sent, sent)
				assert.Empty(t, guard.begins)
			})
		})
	}
}

// A beginning is an answer of a guard, and what it must have been asked.
type beginning struct {
	state    gateway.OrderState
	known    *gateway.OrderRecord
	resubmit bool
}

// A scriptedGuard gives its answers one after the other.
type scriptedGuard struct {
	t      *testing.T
	begins []beginning
}

func (g *scriptedGuard) Begin(_ context.Context, o gateway.Order) (gateway.Lease, error) {
	if !assert.NotEmpty(g.t, g.begins, "is not asked again") {
		return gateway.Lease{}, errors.New("is asked again")
	}
	next := g.begins[0]
	g.begins = g.begins[1:]
	assert.Equal(g.t, next.resubmit, o.Resubmit)
	return gateway.Lease{State: next.state, Known: next.known}, nil
}

func (g *scriptedGuard) End(context.Context, gateway.Order, gateway.OrderRecord) (gateway.OrderRecord, error) {
	return gateway.OrderRecord{}, nil
}

// What the attempts may take together, with a wait that a response asks for, is what a lease
// must last.
func TestWithIdempotentOrders_longest(t *testing.T) {
	t.Parallel()
	policy := gateway.RetryPolicy{MaxAttempts: 3, InvoiceTimeout: 10 * time.Second, MaxDelay: time.Second, MaxRetryAfter: 20 * time.Second}
	for _, tt := range []struct {
		lasts time.Duration
		opts  []gateway.Option
		want  gateway.Outcome
	}{
		{33 * time.Second, nil, gateway.OutcomeSucceeded},
		{69 * time.Second, []gateway.Option{gateway.WithIdempotentOrders()}, gateway.OutcomeNotSent},
		{71 * time.Second, []gateway.Option{gateway.WithIdempotentOrders()}, gateway.OutcomeSucceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			guard := &recordingGuard{lease: gateway.Lease{Expires: time.Now().Add(tt.lasts)}}
			c := newClient(t, "http://localhost", append(tt.opts, gateway.WithOrderGuard(guard), gateway.WithRetry(policy), through(func(*http.Request) (*http.Response, error) {
				return reply(201, enveloped(invoiceJSON)), nil
			}))...)
			_, err := c.CreateInvoice(t.Context(), order("A-17"))
			assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
		})
	}
}
