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
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// trips are what the wire does to the attempts of a call, in turn. A trip may leave the invoice unread.
type trips = []tripper

var (
	errBreaker    = errors.New("circuit breaker is open")
	reset         = readThen(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET})
	brokenOff     = errorTrip(errBreaker) // an invoice is not attempted again
	brokenConnect = errorTrip(refusedConnection("connect"))
	goodTrip      = statusTrip(201, enveloped(invoiceJSON))
)

// over sends requests as they are.
func over(trip tripper) gateway.Option { return gateway.WithHTTPClient(&http.Client{Transport: trip}) }

// neverSends is a wire that no invoice may reach.
func neverSends() gateway.Option {
	return through(func(*http.Request) (*http.Response, error) { panic("is not sent") })
}

func otherPrice(r *gateway.InvoiceRequest) { r.Price = decimal.RequireFromString("99") }

func noPrice(r *gateway.InvoiceRequest) { r.Price = decimal.Zero }

func otherAmount(r *gateway.InvoiceRequest) { r.Amount = decimal.RequireFromString("11") }

func moreDigits(r *gateway.InvoiceRequest) {
	r.Price, r.Amount = decimal.RequireFromString("10.5000"), decimal.RequireFromString("10.489500")
}

func withCoin(r *gateway.InvoiceRequest) { r.CoinSymbol, r.NetworkName = "BTC", "Bitcoin" }

func otherRate(r *gateway.InvoiceRequest) {
	withCoin(r)
	otherAmount(r)
}

// An orderStep is a call for the order A-17: what the wire does to it, and what its caller gets.
type orderStep struct {
	trips    trips                         // of its attempts; all of them are made
	request  func(*gateway.InvoiceRequest) // changes it; nil for nothing
	opts     []gateway.CallOption          // of the call
	absent   bool                          // a person finds before the call that no invoice exists
	want     gateway.Outcome               // of the call
	replayed bool                          // the caller gets what the guard knows of an earlier call
	again    bool                          // SafeToRetry
	says     string                        // in the error
}

const (
	unknown, succeeded = gateway.OutcomeUnknown, gateway.OutcomeSucceeded
	notSent, rejected  = gateway.OutcomeNotSent, gateway.OutcomeRejected
	conflict           = gateway.OutcomeConflict
)

// uuid is the name of an order that has no case.
const uuid = "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"

// The history of an order, call by call.
// I-122
func TestOrder_steps(t *testing.T) {
	t.Parallel()
	good, no, fails := trips{goodTrip}, trips{statusTrip(422, refused("No."))}, trips{statusTrip(500, refused("No."))}
	create := orderStep{trips: good, want: succeeded}
	again := orderStep{want: succeeded, replayed: true}
	lost := orderStep{trips: trips{reset}, want: unknown}
	held := orderStep{want: unknown, replayed: true}
	changed := orderStep{trips: good, absent: true, request: otherPrice, want: succeeded}
	type change = func(*gateway.InvoiceRequest)
	twice := func(first, second change, want gateway.Outcome) []orderStep {
		return []orderStep{{trips: good, request: first, want: succeeded}, {request: second, want: want, replayed: want == succeeded}}
	}
	with := func(coin, network string) change {
		return func(r *gateway.InvoiceRequest) { r.CoinSymbol, r.NetworkName = coin, network }
	}
	withUUID := func(id, currency string) change {
		return func(r *gateway.InvoiceRequest) { r.OrderID, r.BaseCurrency = id, currency }
	}
	for name, steps := range map[string][]orderStep{
		"a success is returned again":                       {create, again, again},
		"a request that conflicts leaves the invoice":       {create, {request: otherPrice, want: conflict}, again},
		"a request that is not valid conflicts":             twice(nil, noPrice, conflict),
		"another currency conflicts":                        twice(nil, func(r *gateway.InvoiceRequest) { r.BaseCurrency = "eur" }, conflict),
		"a coin conflicts with none":                        twice(nil, with("BTC", ""), conflict),
		"another coin conflicts":                            twice(withCoin, with("ETH", "Bitcoin"), conflict),
		"a network conflicts with none":                     twice(nil, with("", "Bitcoin"), conflict),
		"another network conflicts":                         twice(withCoin, with("BTC", "Lightning"), conflict),
		"another amount without a coin conflicts":           twice(nil, otherAmount, conflict),
		"another amount conflicts if a request has no coin": twice(withCoin, otherAmount, conflict),
		"another amount of the same coin is the same order": twice(withCoin, otherRate, succeeded),
		"amounts are compared by value":                     twice(nil, moreDigits, succeeded),
		"a UUID and a currency have no case":                twice(withUUID(strings.ToUpper(uuid), "usd"), withUUID(uuid, "USD"), succeeded),
		"another identifier has case":                       {create, {request: withUUID("a-17", ""), trips: good, want: succeeded}},
		"a refusal by the service frees it":                 {{trips: no, want: rejected}, create},
		"an invoice that was not sent frees it":             {{trips: trips{brokenOff}, want: notSent, again: true}, create},
		"a request that is not valid frees it":              {{request: noPrice, want: notSent, says: "price: is required"}, create},
		"an unknown outcome holds it, whatever the request": {
			lost, held, {request: otherPrice, want: unknown, replayed: true}, {request: noPrice, want: unknown, replayed: true},
		},
		"a second attempt may be the one of unknown outcome": {{trips: trips{brokenConnect, reset}, want: unknown}, held},
		"after a finding that none exists it is sent":        {lost, held, {trips: good, absent: true, want: succeeded}, again},
		"another request may be sent after the finding":      {lost, changed, {want: conflict}},
		"a refusal after the finding frees it":               {lost, {trips: no, absent: true, want: rejected}, create},
		"an unknown outcome after the finding holds it":      {lost, {trips: fails, absent: true, want: unknown}, held},
	} {
		inBubble(t, name, func(t *testing.T) { runSteps(t, steps) })
	}
}

// With WithIdempotentOrders an invoice of unknown outcome is sent again, digit by digit, within a call and by later ones,
// until a success ends it; a refusal does not.
func TestWithIdempotentOrders(t *testing.T) {
	t.Parallel()
	exists, fails := statusTrip(422, refused("Order exists.")), statusTrip(503, refused("Down."))
	busy := statusTrip(429, refused("Slower."), "Retry-After", "1")
	create := orderStep{trips: trips{goodTrip}, want: succeeded}
	lost := orderStep{trips: trips{reset, reset, reset}, want: unknown, again: true}
	isRefused := orderStep{trips: trips{exists}, want: unknown, replayed: true, says: "Order exists."}
	isNotValid := orderStep{opts: []gateway.CallOption{gateway.WithHeader("x\n", "bad")}, want: unknown, replayed: true}
	for name, steps := range map[string][]orderStep{
		"the next attempt ends it":                                {{trips: trips{reset, goodTrip}, want: succeeded}},
		"an attempt after a failure of the service ends it":       {{trips: trips{fails, reset, goodTrip}, want: succeeded}},
		"an attempt after a response that asks to wait ends it":   {{trips: trips{reset, busy, goodTrip}, want: succeeded}},
		"a later call ends it":                                    {lost, lost, create, {want: succeeded, replayed: true}},
		"a later call with other digits sends those of the first": {{trips: lost.trips, request: moreDigits, want: unknown, again: true}, create},
		"a later call for another request sends nothing":          {lost, {request: otherPrice, want: unknown, replayed: true}},
		"a later call after the rate has moved sends the first request": {
			{trips: lost.trips, request: withCoin, want: unknown, again: true}, {trips: create.trips, request: otherRate, want: succeeded},
		},
		"a later call that is not valid sends nothing": {lost, isNotValid},
		"a refusal within the call does not end it":    {{trips: trips{reset, exists}, want: unknown, says: "Order exists."}, create},
		"a refusal of a later call does not end it":    {lost, isRefused, create},
		"a conflict is kept and not repeated":          {{trips: trips{statusTrip(409, refused("No."))}, want: unknown, says: "No."}},
		"an attempt that is not sent does not end it":  {{trips: trips{reset, brokenOff}, want: unknown}},
		"what was refused at first is not repeated":    {{trips: trips{busy}, want: rejected, again: true}},
	} {
		inBubble(t, name, func(t *testing.T) {
			sent := runSteps(t, steps, gateway.WithIdempotentOrders())
			for _, body := range sent {
				assert.Equal(t, sent[0], body, "the invoice that is repeated")
			}
		})
	}
}

// runSteps makes the calls of the steps with one client, and returns the invoices that were read.
func runSteps(t *testing.T, steps []orderStep, opts ...gateway.Option) (sent []string) {
	t.Helper()
	var left trips
	var sentAt []time.Time // of the call
	var openSince time.Time
	var first gateway.InvoiceRequest
	guard := &gateway.MemoryGuard{}
	c := newClient(t, "http://localhost", append(opts, gateway.WithOrderGuard(guard), over(func(req *http.Request) (*http.Response, error) {
		if !assert.NotEmpty(t, left, "this invoice must not be sent") {
			return nil, errBreaker
		}
		next := left[0]
		left = left[1:]
		var text strings.Builder
		req.Body = io.NopCloser(io.TeeReader(req.Body, &text))
		response, err := next(req)
		if text.Len() > 0 {
			sent, sentAt = append(sent, text.String()), append(sentAt, time.Now())
		}
		return response, err
	}))...)
	for i, s := range steps {
		left, sentAt = s.trips, nil
		request := order("A-17")
		if s.request != nil {
			s.request(&request)
		}
		if s.absent {
			findAbsent(t, guard, "A-17")
		}
		got, err := c.CreateInvoice(t.Context(), request, s.opts...)
		assertInvariants(t, got, err)
		require.Equal(t, s.want, gateway.OutcomeOf(err), "step %d: %v", i, err)
		assert.Equal(t, s.again, gateway.SafeToRetry(err), "step %d: %v", i, err)
		assert.Equal(t, s.replayed, isReplayed(got, err), "step %d: %v", i, err)
		assert.Empty(t, left, "step %d: attempts are missing", i)
		lost, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err)
		require.Equal(t, s.want == unknown, isUnknown, "step %d: %v", i, err)
		if err != nil {
			assert.ErrorContains(t, err, s.says, "step %d", i)
			assert.Equal(t, s.want == notSent && s.trips != nil, strings.Contains(err.Error(), "nothing was sent"), "step %d: %v", i, err)
			if isUnknown && !lost.Replayed {
				assert.Equal(t, sentAt[0], lost.SentAt, "step %d: the first attempt that may have created the invoice", i)
				assert.Equal(t, unknown, gateway.OutcomeOf(lost.Cause), "step %d: what a later attempt says proves nothing", i)
				openSince = lost.SentAt
			} else if isUnknown {
				assert.Equal(t, openSince, lost.SentAt, "step %d: as the guard has it", i)
			}
			continue
		}
		assert.JSONEq(t, invoiceJSON, string(got.Raw), "step %d", i)
		assert.Equal(t, request.OrderID, got.OrderID, "step %d: as it was given", i)
		if !got.Replayed {
			first = got.Request
			request.Amount = first.Amount // the amount of the first request, if that was sent again
			assert.True(t, request.Equal(first), "step %d", i)
		}
		assert.Equal(t, first, got.Request, "step %d: the request that the invoice was created for", i)
	}
	return sent
}

// findAbsent records the finding that no invoice of an order exists.
func findAbsent(t *testing.T, guard *gateway.MemoryGuard, id string) {
	t.Helper()
	o := statusOf(t, guard, "", id)
	o.ReadAt, o.GuardReadAt = o.ReadAt.Add(time.Hour), o.GuardReadAt.Add(time.Hour) // as if it were read in an hour
	require.NoError(t, guard.Resolve(t.Context(), o, gateway.Finding{By: "anna"}))
}

func isReplayed(got *gateway.Invoice, err error) bool {
	if lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		return lost.Replayed
	}
	return err == nil && got.Replayed
}

// A replay is the gateway's response byte for byte, and no caller changes it for another.
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
	assert.EqualError(t, err, `gateway: create_invoice: order "A-17" has an invoice for another request, which differs in price: `+
		`use that invoice, or start a new order`)
	conflict := as[*gateway.OrderConflictError](t, err)
	assert.Equal(t, []string{"price"}, conflict.Differs)
	assert.Equal(t, order("A-17"), conflict.Request)
	assert.Equal(t, odd, string(conflict.Invoice.Raw))
	assert.True(t, conflict.Invoice.Replayed)
	assert.False(t, gateway.SafeToRetry(err))
}

// An invoice of up to 1 MiB is kept. A larger one is returned once, and GuardErr reports that it is not kept; the
// order is created.
func TestOrder_largeInvoice(t *testing.T) {
	t.Parallel()
	for size, kept := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		var ends []gateway.Call
		c := inMemory(t, enveloped(`{"a":"`+strings.Repeat("x", size-len(`{"a":""}`))+`"}`), recordEnds(&ends))
		for _, replayed := range []bool{false, true} {
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			require.NoError(t, err)
			assert.Equal(t, replayed, got.Replayed)
			assert.Equal(t, kept || !replayed, len(got.Raw) == size)
			if kept {
				assert.NoError(t, got.GuardErr)
			} else {
				assert.EqualError(t, got.GuardErr, "the invoice has 1048577 bytes, and a guard keeps at most 1 MiB")
			}
		}
		assert.Equal(t, kept, ends[0].GuardErr == nil)
	}
}

// The wait ends with the context, and when the other call should have ended long ago. Another request for the order
// does not wait.
func TestOrder_waitEnds(t *testing.T) {
	t.Parallel()
	policy := gateway.RetryPolicy{MaxAttempts: 2, InvoiceTimeout: 10 * time.Second, MaxDelay: time.Second}
	other := order("A-17")
	otherPrice(&other)
	for _, tt := range []struct {
		name    string
		timeout time.Duration // of the context
		request gateway.InvoiceRequest
		waits   time.Duration
		is      []error
	}{
		{"with the context", 3 * time.Second, order("A-17"), 3 * time.Second, []error{gateway.ErrOrderInFlight, context.DeadlineExceeded}},
		{"after the time that an invoice may take", time.Hour, order("A-17"), 21 * time.Second, []error{gateway.ErrOrderInFlight}},
		{"at once for another request", time.Hour, other, 0, []error{gateway.ErrOrderInFlight}},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			n := &recordingGuard{lease: gateway.Lease{State: gateway.OrderInFlight, Known: &gateway.OrderRecord{Request: order("A-17")}}}
			c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), gateway.WithRetry(policy), neverSends())
			begun := time.Now()
			got, err := c.CreateInvoice(lasting(t, tt.timeout), tt.request)
			assertInvariants(t, got, err)
			assert.InDelta(t, tt.waits, time.Since(begun), float64(500*time.Millisecond))
			assert.Equal(t, unknown, gateway.OutcomeOf(err))
			assert.True(t, gateway.SafeToRetry(err))
			assertSentinels(t, err, tt.is...)
			assert.ErrorContains(t, err, `order "A-17"`)
			assert.Less(t, len(n.begun), 100, "it asks at growing intervals")
		})
	}
	inBubble(t, "of a guard that does not answer", func(t *testing.T) {
		silent := &flightGuard{begin: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(silent), gateway.WithRetry(policy), neverSends())
		begun := time.Now()
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		assert.Equal(t, 21*time.Second, time.Since(begun))
		assert.Equal(t, unknown, gateway.OutcomeOf(err))
		assert.True(t, gateway.SafeToRetry(err))
	})
}

// A recordingGuard is a guard that records its calls.
type recordingGuard struct {
	fails error
	first []gateway.Lease // the answers before lease
	lease gateway.Lease
	has   *gateway.OrderRecord // what End returns; nil for an error

	begun   []gateway.Order
	endedOf []gateway.Order
	ended   []gateway.OrderRecord
	context []any // of End: its error, how long it lasts, and a value
}

type guardContextKey struct{}

func (n *recordingGuard) Begin(_ context.Context, o gateway.Order) (gateway.Lease, error) {
	n.begun = append(n.begun, o)
	if i := len(n.begun); i <= len(n.first) {
		return n.first[i-1], nil
	}
	return n.lease, n.fails
}

func (n *recordingGuard) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	n.endedOf, n.ended = append(n.endedOf, o), append(n.ended, r)
	deadline, _ := ctx.Deadline()
	n.context = append(n.context, ctx.Err(), time.Until(deadline), ctx.Value(guardContextKey{}))
	if n.has != nil {
		return *n.has, nil
	}
	return gateway.OrderRecord{}, errors.New("an error of End changes nothing")
}

// The guard is asked before an invoice is called not sent, with the merchant of WithMerchant. A key does not say whose
// order it is: a rotated one would be another merchant.
func TestOrderGuard_isAsked(t *testing.T) {
	t.Parallel()
	type opts = []gateway.CallOption
	header, key, badKey := gateway.WithHeader("x\n", ""), gateway.WithAPIKey("key-1-of-merchant"), gateway.WithAPIKey("x\n")
	merchant, good, longest := gateway.WithMerchant, order("A-17"), strings.Repeat("x", 256)
	asked := func(merchant string) *gateway.Order {
		return &gateway.Order{Gateway: inMemoryURL, Merchant: merchant, Request: order("A-17")}
	}
	bad := gateway.InvoiceRequest{OrderID: "A-17", CoinSymbol: "a\nb"}
	withoutRest := &gateway.Order{Gateway: inMemoryURL, Request: gateway.InvoiceRequest{OrderID: "A-17"}}
	for _, tt := range []struct {
		name    string
		request gateway.InvoiceRequest
		opts    opts
		asked   *gateway.Order // nil if the guard is not asked
		refuses string         // the argument; "" for a success
	}{
		{"an order of the client's own", good, nil, asked(""), ""},
		{"an order of a merchant with another key", good, opts{key, merchant("shop 1")}, asked("shop 1"), ""},
		{"the longest name of a merchant", good, opts{merchant(longest)}, asked(longest), ""},
		{"another key is of no merchant that is known", good, opts{key}, nil, "WithMerchant"},
		{"the client's own key as the key of the call, likewise", good, opts{gateway.WithAPIKey(canary)}, nil, "WithMerchant"},
		{"an empty name of a merchant", good, opts{header, merchant("")}, nil, "WithMerchant"},
		{"a name of a merchant with a line end", good, opts{merchant("a\nb")}, nil, "WithMerchant"},
		{"a name of a merchant that is not UTF-8", good, opts{merchant("\xff")}, nil, "WithMerchant"},
		{"a name of a merchant that is too long", good, opts{merchant(longest + "x")}, nil, "WithMerchant"},
		{"no order", order(""), nil, nil, "orderId"},
		{"an order that is not valid", order("a\nb"), nil, nil, "orderId"},
		{"the guard does not get an invalid request", bad, nil, withoutRest, "price"},
		{"a header that is not valid", good, opts{header}, asked(""), "WithHeader"},
		{"a key that is not valid, of no merchant", good, opts{badKey}, nil, "WithAPIKey"},
		{"a key that is not valid, of a merchant", good, opts{badKey, merchant("anna")}, asked("anna"), "WithAPIKey"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := &recordingGuard{}
			got, err := inMemory(t, enveloped(invoiceJSON), gateway.WithOrderGuard(n)).CreateInvoice(t.Context(), tt.request, tt.opts...)
			assertInvariants(t, got, err)
			if tt.refuses == "" {
				assert.NoError(t, err)
			} else {
				assertRefused(t, err, "create_invoice", tt.refuses, "")
			}
			if tt.asked == nil {
				assert.Empty(t, n.begun, "it is nobody's order")
				return
			}
			assert.Equal(t, []gateway.Order{*tt.asked}, n.begun)
			assert.Len(t, n.ended, 1)
		})
	}
	t.Run("a context that has ended", func(t *testing.T) {
		t.Parallel()
		n := &recordingGuard{}
		_, err := cancelled(invoiceCall)(t.Context(), inMemory(t, "", gateway.WithOrderGuard(n)))
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, notSent, gateway.OutcomeOf(err))
		assert.Len(t, n.ended, 1)
	})
	t.Run("reads are about no order, and without a guard nobody asks whose order it is", func(t *testing.T) {
		t.Parallel()
		n := &recordingGuard{}
		for _, s := range subjects() {
			if !s.write {
				_, err := s.call(t.Context(), cannedClient(t, s.status, s.body(), gateway.WithOrderGuard(n)))
				assert.NoError(t, err)
			}
		}
		assert.Empty(t, n.begun)
		_, err := inMemory(t, enveloped(invoiceJSON), gateway.WithOrderGuard(nil)).CreateInvoice(t.Context(), good, key)
		assert.NoError(t, err)
	})
}

type databaseError struct{ table string }

func (e *databaseError) Error() string { return "relation " + e.table + " is locked" }

var errOfTheGuard = errors.New("of the guard")

// If the guard fails, the outcome is unknown. Asking it again does no harm, and helps unless it is not set up for the call
// or the gateway. Errors.As finds the error of the guard, unless its text has a password or it belongs to another call.
func TestOrderGuard_fails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		err          error
		again, found bool
	}{
		{"a plain error", errors.New("disk full"), true, true},
		{"a timeout", context.DeadlineExceeded, true, true},
		{"a refusal of the service", &gateway.APIError{Operation: "create_invoice", StatusCode: 429}, true, false},
		{"a previous call's unknown outcome", &gateway.OutcomeUnknownError{OrderID: "A-17", Cause: io.EOF}, true, false},
		{"a database's address", errors.New("postgres://shop:" + password + "@db:5432/orders: refused"), true, false},
		{"a guard that is not set up", &gateway.ArgumentError{Operation: "sqlguard", Name: "WithMerchants"}, false, false},
		{"an order of another gateway", gateway.ErrOtherGateway, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := &recordingGuard{fails: fmt.Errorf("%w: %w: %w", tt.err, errOfTheGuard, &databaseError{"orders"})}
			got, err := invoiceCall(t.Context(), newClient(t, "http://localhost", gateway.WithOrderGuard(n), neverSends()))
			assertInvariants(t, got, err)
			assert.NotErrorIs(t, err, gateway.ErrInvalidArgument)
			assert.Equal(t, unknown, gateway.OutcomeOf(err))
			assert.Equal(t, tt.again, gateway.SafeToRetry(err))
			failure := as[*gateway.TransportError](t, err)
			assert.Equal(t, gateway.PhaseOrder, failure.Phase)
			assert.Zero(t, failure.Attempts)
			assert.Contains(t, err.Error(), `gateway: create_invoice: order: order "A-17": the order guard: `)
			if tt.name != "a database's address" {
				assert.ErrorContains(t, err, strings.TrimPrefix(tt.err.Error(), "gateway: "))
			}
			_, isDatabase := errors.AsType[*databaseError](err)
			found := []bool{isDatabase, errors.Is(err, errOfTheGuard), errors.Is(err, tt.err)}
			assert.Equal(t, []bool{tt.found, tt.found, tt.found}, found)
			_, isRefusal := errors.AsType[*gateway.APIError](err)
			_, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err)
			assert.False(t, isRefusal || isUnknown)
			assertSilent(t, err, password)
			assert.Empty(t, n.ended, "End is not called without a lease")
		})
	}
}

// The caller gets the guard's record of an order, and no caller changes it. A guard may know nothing but the state.
func TestOrderGuard_knows(t *testing.T) {
	t.Parallel()
	const (
		inFlight = `order "A-17": gateway: an invoice for this order is being created`
		earlier  = `outcome unknown: an earlier invoice for order "A-17" may exist, look it up before sending it again: ` +
			`an earlier invoice for this order has an unknown outcome: look it up, then record the finding with the Resolve of the guard`
		failed = `outcome unknown: an invoice of 2023-11-14T22:13:20Z for order "A-17" may exist, look it up before sending it again: a 502`
	)
	first, further := json.RawMessage(`{"id":"1"}`), []json.RawMessage{[]byte(`{"id":"2"}`)}
	createdAt, sentAt := time.Unix(17, 0), time.Unix(1_700_000_000, 0)
	known := &gateway.OrderRecord{Request: order("A-17"), Invoice: first, Others: further, CreatedAt: createdAt, Cause: "of one before"}
	lost := &gateway.OrderRecord{Request: order("A-17"), SentAt: sentAt, StatusCode: 502, Body: []byte("bad"), Cause: "create_invoice: a 502"}
	bare := &gateway.Invoice{OrderID: "A-17", Replayed: true}
	whole := &gateway.Invoice{
		OrderID: "A-17", Raw: slices.Clone(first), Others: []json.RawMessage{slices.Clone(further[0])}, CreatedAt: createdAt,
		Replayed: true, Request: order("A-17"), Details: &gateway.InvoiceDetails{ID: "1"},
	}
	isUnknown := func(known *gateway.OrderRecord) gateway.Lease {
		return gateway.Lease{State: gateway.OrderUnknown, Known: known}
	}
	before := &gateway.OutcomeUnknownError{Operation: "create_invoice", OrderID: "A-17", Replayed: true}
	badGateway := &gateway.OutcomeUnknownError{
		Operation: "create_invoice", OrderID: "A-17", SentAt: sentAt, StatusCode: 502, Body: []byte("bad"), Replayed: true,
	}
	other := order("A-17")
	otherPrice(&other)
	for _, tt := range []struct {
		name    string
		lease   gateway.Lease
		invoice *gateway.Invoice
		is      []error
		text    string // of the error
		unknown *gateway.OutcomeUnknownError
	}{
		{"in flight", gateway.Lease{State: gateway.OrderInFlight}, nil, []error{gateway.ErrOrderInFlight}, inFlight, nil},
		{"a state that does not exist", gateway.Lease{State: 9}, nil, []error{gateway.ErrOrderInFlight}, inFlight, nil},
		{"created", gateway.Lease{State: gateway.OrderCreated}, bare, nil, "", nil},
		{"created, with an empty record", gateway.Lease{State: gateway.OrderCreated, Known: &gateway.OrderRecord{}}, bare, nil, "", nil},
		{"created, with an invoice", gateway.Lease{State: gateway.OrderCreated, Known: known}, whole, nil, "", nil},
		{"unknown", isUnknown(&gateway.OrderRecord{}), nil, nil, earlier, before},
		{"unknown, with what failed", isUnknown(lost), nil, []error{gateway.ErrServer}, failed, badGateway},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			n := &recordingGuard{lease: tt.lease}
			c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), gateway.WithInvoiceDecoder(decodeInvoice), neverSends())
			for range 2 {
				got, err := c.CreateInvoice(t.Context(), order("A-17"))
				assertInvariants(t, got, err)
				assert.Equal(t, tt.invoice, got)
				assertSentinels(t, err, tt.is...)
				if tt.text != "" {
					assert.ErrorContains(t, err, tt.text)
					assert.Equal(t, unknown, gateway.OutcomeOf(err))
				}
				if lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err); assert.Equal(t, tt.unknown != nil, ok) && ok {
					seen := *lost
					seen.Cause = nil
					assert.Equal(t, *tt.unknown, seen)
					clear(lost.Body)
				}
				if got != nil && len(got.Others) > 0 {
					clear(got.Raw)
					clear(got.Others[0])
				}
			}
			assert.Empty(t, n.ended)
		})
	}
	t.Run("created for another request, without the invoice", func(t *testing.T) {
		t.Parallel()
		n := &recordingGuard{lease: gateway.Lease{State: gateway.OrderCreated, Known: &gateway.OrderRecord{Request: other}}}
		_, err := invoiceCall(t.Context(), newClient(t, "http://localhost", gateway.WithOrderGuard(n), neverSends()))
		assert.Equal(t, &gateway.OrderConflictError{OrderID: "A-17", Differs: []string{"price"}, Request: other}, err)
	})
}

// The outcome of a call follows what the guard has when the call ends. An error of the guard changes nothing for the
// caller: observers and the log receive it.
func TestOrderGuard_EndRaises(t *testing.T) {
	t.Parallel()
	const mayExist, endFails = "an invoice may exist", `guard_error="an error of End changes nothing"`
	createdAt := time.Unix(1_700_000_000, 0)
	held := gateway.OrderRecord{Outcome: unknown, Request: order("A-17"), Cause: "create_invoice: a 502"}
	created := gateway.OrderRecord{Outcome: succeeded, Request: order("A-17"), Invoice: []byte(`{"id":"of another"}`), CreatedAt: createdAt}
	same, another, two := gateway.OrderRecord{Outcome: succeeded, CreatedAt: createdAt}, created, created
	otherPrice(&another.Request)
	two.Others = []json.RawMessage{[]byte(`{"id":"of a third call"}`)}
	no, busy, fails := statusTrip(422, refused("No.")), statusTrip(429, ""), statusTrip(500, refused("No."))
	for _, tt := range []struct {
		name     string
		trip     tripper
		has      *gateway.OrderRecord // nil for an error
		want     gateway.Outcome
		replayed bool
		log      string
	}{
		{"rejected, and the guard has the same", no, &gateway.OrderRecord{Outcome: rejected}, rejected, false, ""},
		{"rejected, and the guard has an unknown outcome", no, &held, unknown, true, mayExist},
		{"rejected for now, and the guard has an unknown outcome", busy, &held, unknown, true, mayExist},
		{"rejected, and the guard has an invoice", no, &created, succeeded, true, ""},
		{"rejected, and the guard has an invoice for another request", no, &another, conflict, false, ""},
		{"not sent, and the guard has an unknown outcome", brokenOff, &held, unknown, true, mayExist},
		{"not sent, and the guard has an invoice", brokenOff, &created, succeeded, true, ""},
		{"unknown, and the guard has an invoice", fails, &created, succeeded, true, ""},
		{"unknown, and the guard has less", fails, &gateway.OrderRecord{Outcome: notSent}, unknown, false, mayExist},
		{"succeeded, and the guard has the same", goodTrip, &same, succeeded, false, ""},
		{"succeeded, and the guard has another invoice", goodTrip, &two, succeeded, false, "more than one invoice"},
		{"succeeded, and the guard has an unknown outcome", goodTrip, &held, succeeded, false, ""},
		{"succeeded, and the guard fails", goodTrip, nil, succeeded, false, endFails},
		{"rejected, and the guard fails", no, nil, rejected, false, endFails},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var ends []gateway.Call
			var log bytes.Buffer
			c := newClient(t, "http://localhost", once(), gateway.WithOrderGuard(&recordingGuard{has: tt.has}), recordEnds(&ends),
				gateway.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), over(tt.trip))
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
			assert.Equal(t, tt.replayed, isReplayed(got, err))
			assert.False(t, gateway.SafeToRetry(err))
			assert.Contains(t, log.String(), tt.log)
			assert.Equal(t, tt.log != "", log.Len() > 0, log.String())
			require.Len(t, ends, 1)
			assert.Equal(t, tt.want, ends[0].Outcome)
			if tt.has == nil {
				assert.EqualError(t, ends[0].GuardErr, "an error of End changes nothing")
				assert.Contains(t, log.String(), "level=ERROR")
			} else if err == nil {
				assert.Equal(t, tt.has.CreatedAt, got.CreatedAt)
				assert.Equal(t, tt.has.Others, got.Others)
				assert.Equal(t, len(tt.has.Others), ends[0].Others)
			}
		})
	}
}

// End receives the outcome of the attempt once, with its name and a context that has not ended although the
// caller's has.
func TestOrderGuard_End(t *testing.T) {
	t.Parallel()
	record := func(outcome gateway.Outcome, status int, body, cause string) gateway.OrderRecord {
		r := gateway.OrderRecord{Outcome: outcome, StatusCode: status, Cause: cause}
		if body != "" {
			r.Body = []byte(body)
		}
		return r
	}
	success := gateway.OrderRecord{Outcome: succeeded, StatusCode: 200, Invoice: []byte(invoiceJSON)}
	const noPage = `create_invoice: 200: response not understood: invalid character '<' at start of value: "<html>"`
	for _, tt := range []struct {
		name string
		trip tripper // the caller cancels while waiting
		want gateway.OrderRecord
	}{
		{"a success", statusTrip(200, enveloped(invoiceJSON)), success},
		{"a refusal", statusTrip(422, refused("No.")), record(rejected, 422, refused("No."), `create_invoice: 422: "No."`)},
		{"a response of 500", statusTrip(500, "oops"), record(unknown, 500, "oops", `create_invoice: 500: no message in the response: "oops"`)},
		{"a response that cannot be decoded", statusTrip(200, "<html>"), record(unknown, 200, "<html>", noPage)},
		{"no response", readThen(context.Canceled), record(unknown, 0, "", "create_invoice: start: context canceled")},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), guardContextKey{}, "the caller's"))
			defer cancel()
			n, sentAt := &recordingGuard{lease: gateway.Lease{Attempt: "attempt-7"}}, time.Now()
			c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), through(func(req *http.Request) (*http.Response, error) {
				cancel()
				return tt.trip(req)
			}))
			got, err := c.CreateInvoice(ctx, order("A-17"))
			assertInvariants(t, got, err)
			assert.Equal(t, tt.want.Outcome, gateway.OutcomeOf(err))
			asked := gateway.Order{Gateway: "http://localhost", Request: order("A-17")}
			assert.Equal(t, []gateway.Order{asked}, n.begun)
			asked.Attempt = "attempt-7"
			assert.Equal(t, []gateway.Order{asked}, n.endedOf)
			tt.want.Request, tt.want.SentAt = order("A-17"), sentAt
			if tt.want.Outcome == succeeded {
				tt.want.CreatedAt = sentAt
			}
			assert.Equal(t, []gateway.OrderRecord{tt.want}, n.ended)
			assert.Equal(t, []any{nil, 10 * time.Second, "the caller's"}, n.context)
		})
	}
	t.Run("after a panic of the transport the outcome is unknown", func(t *testing.T) {
		t.Parallel()
		n := &recordingGuard{}
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), neverSends())
		assert.Panics(t, func() { _, _ = c.CreateInvoice(t.Context(), order("A-17")) })
		require.Len(t, n.ended, 1)
		assert.Equal(t, unknown, n.ended[0].Outcome)
	})
}

// A lease that is shorter than the call may last, with all attempts and waits, is refused with both named.
func TestOrderGuard_shortLease(t *testing.T) {
	t.Parallel()
	const never, forever = 24 * time.Hour, time.Duration(math.MaxInt64)
	idempotent := []gateway.Option{gateway.WithIdempotentOrders()}
	for _, tt := range []struct {
		name           string
		lease, timeout time.Duration // the timeout of an attempt
		deadline       time.Duration // of the context
		opts           []gateway.Option
		want           string // of the refusal; "" for a success
	}{
		{"it is as long as a call with all attempts", 125 * time.Second, time.Minute, never, nil, ""},
		{"it is shorter", 124 * time.Second, time.Minute, never, nil, "the lease of the order is 2m4s, and a call may last 2m5s by WithRetry"},
		{"a response may ask an idempotent order to wait", 139 * time.Second, time.Minute, never, idempotent, "and a call may last 2m20s"},
		{"it is as long as that", 140 * time.Second, time.Minute, never, idempotent, ""},
		{"it is over", 0, time.Minute, never, nil, "the lease of the order"},
		{"attempts have no end", time.Hour, forever, never, nil, "the lease of the order is"},
		{"a deadline does not end an invoice", time.Minute, time.Minute, time.Minute, nil, "is 1m0s, and a call may last 2m5s"},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			policy := gateway.RetryPolicy{MaxAttempts: 2, InvoiceTimeout: tt.timeout, MaxDelay: 5 * time.Second, MaxRetryAfter: 20 * time.Second}
			n := &recordingGuard{lease: gateway.Lease{Expires: time.Now().Add(tt.lease)}}
			got, err := invoiceCall(lasting(t, tt.deadline),
				newClient(t, "http://localhost", append(tt.opts, gateway.WithOrderGuard(n), gateway.WithRetry(policy), over(goodTrip))...))
			assertInvariants(t, got, err)
			require.Len(t, n.ended, 1)
			assert.Equal(t, tt.want == "", n.ended[0].Outcome == succeeded)
			switch {
			case tt.want == "":
				assert.NoError(t, err)
			case tt.lease > 0:
				assertRefused(t, err, "create_invoice", "WithOrderGuard", tt.want)
			default:
				assert.ErrorContains(t, err, tt.want)
			}
		})
	}
}

// Nothing is sent after the lease has expired. Others may have sent the order since, so the outcome is unknown.
func TestOrderGuard_leaseExpires(t *testing.T) {
	t.Parallel()
	const lasts = time.Hour
	standsStill := gateway.WithObserver(gateway.Observer{Attempt: func(_ context.Context, a gateway.Attempt) {
		if a.Number == 1 {
			time.Sleep(lasts)
		}
	}})
	for _, tt := range []struct {
		name string
		trip tripper
		want gateway.Outcome // that the guard receives
	}{
		{"before it sends again", brokenConnect, notSent},
		{"after it was refused", statusTrip(422, refused("No.")), rejected},
	} {
		inBubble(t, "the process stands still "+tt.name, func(t *testing.T) {
			n, sent := &recordingGuard{lease: gateway.Lease{Expires: time.Now().Add(lasts)}}, 0
			c := newClient(t, "http://localhost", gateway.WithOrderGuard(n), standsStill, over(func(req *http.Request) (*http.Response, error) {
				sent++
				return tt.trip(req)
			}))
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			assert.Equal(t, 1, sent)
			assert.Equal(t, unknown, gateway.OutcomeOf(err))
			assert.True(t, gateway.SafeToRetry(err), "the guard knows more")
			assertSentinels(t, err)
			assert.ErrorContains(t, err, "the lease of the order has expired")
			require.Len(t, n.ended, 1)
			assert.Equal(t, tt.want, n.ended[0].Outcome)
			assert.Equal(t, tt.want == notSent, n.ended[0].SentAt.IsZero())
		})
	}
}

// With WithIdempotentOrders a call that waits for an equal one sends the invoice again if that one ends unknown. It sends
// nothing if another request has become unknown meanwhile. A guard that fails at the end hides no earlier invoice.
func TestWithIdempotentOrders_guard(t *testing.T) {
	t.Parallel()
	type leases = []gateway.Lease
	lost := &gateway.OrderRecord{Outcome: unknown, Request: order("A-17")}
	other := *lost
	otherPrice(&other.Request)
	inFlight, isUnknown := gateway.Lease{State: gateway.OrderInFlight, Known: lost}, gateway.Lease{State: gateway.OrderUnknown, Known: lost}
	nothing, noRequest := gateway.Lease{State: gateway.OrderUnknown}, gateway.Lease{State: gateway.OrderUnknown, Known: &gateway.OrderRecord{}}
	free, ofOther, again := gateway.Lease{}, gateway.Lease{Known: &other}, leases{isUnknown, {Known: lost}}
	no, busy := statusTrip(422, refused("No.")), statusTrip(429, "")
	for _, tt := range []struct {
		name   string
		leases leases
		trip   tripper // nil if nothing is sent
		has    *gateway.OrderRecord
		want   gateway.Outcome
		again  bool
	}{
		{"it was in flight", append(leases{inFlight}, again...), goodTrip, lost, succeeded, false},
		{"a person has found that there is none since", leases{isUnknown, free}, goodTrip, lost, succeeded, false},
		{"another request was sent since", leases{isUnknown, ofOther}, nil, lost, unknown, false},
		{"its request is not known", leases{noRequest}, nil, nil, unknown, false},
		{"nothing of it is known", leases{nothing}, nil, nil, unknown, false},
		{"the guard insists", leases{isUnknown, isUnknown}, nil, nil, unknown, false},
		{"it is refused now", again, no, lost, unknown, false},
		{"it is refused for now", again, busy, lost, unknown, true},
		{"it is refused for now, and another request is unknown", again, busy, &other, unknown, false},
		{"it is refused, and the guard fails", again, no, nil, unknown, false},
		{"it is not sent, and the guard fails", again, brokenOff, nil, unknown, false},
		{"it succeeds, and the guard fails", again, goodTrip, nil, succeeded, false},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			sent, guard := 0, &recordingGuard{first: tt.leases, fails: errOfTheGuard, has: tt.has}
			counted := over(func(req *http.Request) (*http.Response, error) {
				if sent++; tt.trip == nil {
					return goodTrip(req)
				}
				return tt.trip(req)
			})
			c := newClient(t, "http://localhost", gateway.WithIdempotentOrders(), gateway.WithOrderGuard(guard), counted)
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
			assert.Equal(t, tt.again, gateway.SafeToRetry(err), "%v", err)
			assert.Equal(t, tt.trip != nil, sent == 1)
			require.Len(t, guard.begun, len(tt.leases))
			for i, o := range guard.begun {
				assert.Equal(t, i > 0 && tt.leases[i-1].State == gateway.OrderUnknown, o.Resubmit)
			}
		})
	}
}
