package order

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// lostOrders is how many orders lose the response to their first request.
const lostOrders = 200

// loss returns a fault that carries a request out, and loses its response.
func loss(n int) gatewaytest.Fault {
	return []gatewaytest.Fault{gatewaytest.FaultCommitThenDrop(), gatewaytest.FaultTruncate(0), gatewaytest.FaultTruncate(40)}[n%3]
}

// What WithIdempotentOrders does with three gateways, of which the second and the third make it a false
// declaration. Without it, all of them are alike.
func TestIdempotentOrders_gateways(t *testing.T) {
	declared := []gateway.Option{gateway.WithIdempotentOrders()}
	for _, c := range []struct {
		name     string
		repeated gatewaytest.RepeatedOrders
		options  []gateway.Option
		resolved int // calls that return an invoice
		invoices int // at the gateway
		requests int
		evidence string // of the refusal, in that of the others
	}{
		{"a gateway that returns the first invoice resolves every order", gatewaytest.RepeatSame, declared, 200, 200, 400, ""},
		{"a gateway that refuses leaves every order unknown", gatewaytest.RepeatRefused, declared, 0, 200, 400, `409: "the order has an invoice"`},
		{"a gateway that creates another doubles every order, and nobody notices", gatewaytest.RepeatAgain, declared, 200, 400, 400, ""},
		{"without the declaration nothing is repeated: one that would create another", gatewaytest.RepeatAgain, nil, 0, 200, 200, ""},
		{"without the declaration nothing is repeated: one that would return the first", gatewaytest.RepeatSame, nil, 0, 200, 200, ""},
		{"without the declaration nothing is repeated: one that would refuse", gatewaytest.RepeatRefused, nil, 0, 200, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			gw := gatewaytest.NewServer(gatewaytest.WithAPIKey(canary))
			defer gw.Close()
			gw.SetRepeatedOrders(c.repeated)
			resolved := 0
			for _, r := range lose(t, gw, c.options) {
				if r.Err != nil {
					checkEvidence(t, r, c.evidence)
					continue
				}
				resolved++
				invoices := gw.InvoicesFor(r.Order)
				id, _ := r.Invoice.Text("id")
				assert.Equal(t, invoices[len(invoices)-1].ID, id, "the only invoice, unless there are two")
			}
			assert.Equal(t, []int{c.resolved, c.invoices, c.requests}, []int{resolved, len(gw.Invoices()), len(gw.Requests())}, "resolved, invoices, requests")
			bodies := map[string]string{}
			for _, request := range gw.Requests() {
				id, body := orderOf(request.Body), string(request.Body)
				if bodies[id] == "" {
					bodies[id] = body
				}
				assert.Equal(t, bodies[id], body, "a repeated request is the first one, byte for byte")
			}
			assert.Len(t, bodies, lostOrders)
		})
	}
}

// What a second call sends to a gateway that has the invoice of its order, and what it is told.
func TestRepeatedOrders(t *testing.T) {
	type told struct {
		outcome  gateway.Outcome
		invoices int // at the gateway
		requests int
	}
	for _, kind := range gatewaytest.AllRepeatedOrders() {
		repeated := map[gatewaytest.RepeatedOrders]told{
			gatewaytest.RepeatAgain:   {gateway.OutcomeSucceeded, 2, 2},
			gatewaytest.RepeatSame:    {gateway.OutcomeSucceeded, 1, 2},
			gatewaytest.RepeatRefused: {gateway.OutcomeUnknown, 1, 2},
		}[kind]
		for _, c := range []struct {
			name    string
			loss    gatewaytest.Fault // of the first request
			options []gateway.Option
			absent  bool // the merchant wrongly finds before the second call that no invoice exists
			want    told
		}{
			{"the first call returned the invoice: so does the second", gatewaytest.Fault{}, nil, false, told{gateway.OutcomeSucceeded, 1, 1}},
			{"the response was lost: the order stays unknown", loss(0), nil, false, told{gateway.OutcomeUnknown, 1, 1}},
			{"the merchant has wrongly found no invoice", loss(0), nil, true, repeated},
			{"no guard keeps the order", gatewaytest.Fault{}, []gateway.Option{gateway.WithOrderGuard(nil)}, false, repeated},
			{"no guard keeps the order, and the response was lost", loss(0), []gateway.Option{gateway.WithOrderGuard(nil)}, false, repeated},
		} {
			t.Run(string(kind)+": "+c.name, func(t *testing.T) {
				gw := gatewaytest.NewServer(gatewaytest.WithAPIKey(canary))
				defer gw.Close()
				gw.SetRepeatedOrders(kind)
				guard := &gateway.MemoryGuard{}
				client, err := gateway.New(gw.URL, canary, append([]gateway.Option{gateway.WithOrderGuard(guard)}, c.options...)...)
				require.NoError(t, err)
				gw.InjectFault(gatewaytest.OpCreateInvoice, 1, c.loss)
				_, _ = client.CreateInvoice(t.Context(), call.Order("A-17"))
				if c.absent {
					order, err := guard.Order(t.Context(), "", "A-17")
					require.NoError(t, err)
					require.NoError(t, guard.Resolve(t.Context(), order, gateway.Finding{By: "anna", Margin: time.Nanosecond}))
				}
				invoice, err := client.CreateInvoice(t.Context(), call.Order("A-17"))
				assert.Equal(t, c.want, told{gateway.OutcomeOf(err), len(gw.Invoices()), len(gw.Requests())}, "%v", err)
				if err == nil {
					id, _ := invoice.Text("id")
					assert.Equal(t, gw.Invoices()[c.want.invoices-1].ID, id)
				}
				assert.False(t, gateway.SafeToRetry(err))
			})
		}
	}
}

// lose calls for each order until it need not be called again: by the limit of retries in a row, most
// requests are repeated by a second call. Without options it calls twice.
func lose(t *testing.T, gw *gatewaytest.Server, options []gateway.Option) []call.Result {
	client, err := gateway.New(gw.URL, canary, append([]gateway.Option{
		gateway.WithRetry(gateway.RetryPolicy{BaseDelay: time.Millisecond}),
	}, options...)...)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	calls := make([]call.Result, lostOrders)
	for n := range calls {
		id := fmt.Sprintf("order-%d", n)
		gw.InjectFault(gatewaytest.OpCreateInvoice, 1, loss(n))
		for made := 0; made == 0 || made == 1 && options == nil || gateway.SafeToRetry(calls[n].Err); made++ {
			invoice, err := client.CreateInvoice(context.Background(), call.Order(id))
			calls[n] = call.Result{Order: id, Invoice: invoice, Err: err}
		}
	}
	return calls
}

// checkEvidence compares what is told of an order that is unknown.
func checkEvidence(t *testing.T, r call.Result, refusal string) {
	t.Helper()
	unknown := &gateway.OutcomeUnknownError{}
	require.ErrorAs(t, r.Err, &unknown)
	assert.False(t, gateway.SafeToRetry(r.Err))
	assert.Contains(t, fmt.Sprint(unknown.Cause), refusal)
}
