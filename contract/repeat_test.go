package contract

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// lostOrders is how many orders lose the response to their first request.
const lostOrders = 200

// A repeatingGateway creates the invoice of each order, and loses the response. What it does with
// the order from then on is repeated.
type repeatingGateway struct {
	repeated func(g *repeatingGateway, w http.ResponseWriter, order string)

	mu     sync.Mutex
	bodies map[string][]string // of the requests, by order
	ids    map[string][]string // of the invoices, by order
}

func (g *repeatingGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	id := orderIn(body)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bodies[id] = append(g.bodies[id], string(body))
	if len(g.bodies[id]) > 1 {
		g.repeated(g, w, id)
		return
	}
	g.create(id)
	switch len(g.bodies) % 3 {
	case 0:
		panic(http.ErrAbortHandler) // the connection is closed
	case 1:
		w.WriteHeader(http.StatusBadGateway)
	case 2:
		w.Header().Set("Content-Length", "200")
		respondWith(w, http.StatusCreated, enveloped(g.invoice(id))) // is shorter
	}
}

func (g *repeatingGateway) create(id string) {
	g.ids[id] = append(g.ids[id], fmt.Sprint(len(g.ids[id])+1))
}

// invoice is the last one of an order.
func (g *repeatingGateway) invoice(id string) string {
	return fmt.Sprintf(`{"id":"inv-%s-%s","orderId":%q}`, id, g.ids[id][len(g.ids[id])-1], id)
}

func respondWith(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func returnsTheFirst(g *repeatingGateway, w http.ResponseWriter, id string) {
	respondWith(w, http.StatusOK, enveloped(g.invoice(id)))
}

func refusesWith(status int) func(*repeatingGateway, http.ResponseWriter, string) {
	return func(_ *repeatingGateway, w http.ResponseWriter, id string) {
		respondWith(w, status, `{"message":"Order `+id+` exists.","result":[],"meta":{}}`)
	}
}

func createsAnother(g *repeatingGateway, w http.ResponseWriter, id string) {
	g.create(id)
	respondWith(w, http.StatusCreated, enveloped(g.invoice(id)))
}

// What WithRepeatableOrders does with three gateways, of which the second and the third make it a false
// declaration: docs/money.md refers to it.
func TestRepeatableOrders_gateways(t *testing.T) {
	declared := []gateway.Option{gateway.WithRepeatableOrders()}
	for _, c := range []struct {
		name     string
		repeated func(*repeatingGateway, http.ResponseWriter, string)
		options  []gateway.Option
		resolved int // calls that return an invoice
		invoices int // at the gateway
		requests int
		status   int // of the refusal, in the evidence of the others; 0 for none
	}{
		{"a gateway that returns the first invoice resolves every order", returnsTheFirst, declared, 200, 200, 400, 0},
		{"a gateway that refuses with 409 leaves every order unknown", refusesWith(409), declared, 0, 200, 400, 409},
		{"a gateway that refuses with 422 leaves every order unknown", refusesWith(422), declared, 0, 200, 400, 422},
		{"a gateway that creates another doubles every order, and nobody notices", createsAnother, declared, 200, 400, 400, 0},
		{"without the declaration nothing is repeated", createsAnother, nil, 0, 200, 200, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := &repeatingGateway{repeated: c.repeated, bodies: map[string][]string{}, ids: map[string][]string{}}
			calls := g.lose(t, c.options)
			resolved := 0
			for _, r := range calls {
				if r.err == nil {
					resolved++
					assert.Equal(t, g.invoice(r.order), string(r.invoice.Raw))
					continue
				}
				checkEvidence(t, r, c.status)
			}
			invoices, requests := 0, 0
			for id, bodies := range g.bodies {
				invoices, requests = invoices+len(g.ids[id]), requests+len(bodies)
				for _, body := range bodies {
					assert.Equal(t, bodies[0], body, "a repeated request is the first one, byte for byte")
				}
			}
			assert.Equal(t, []int{c.resolved, c.invoices, c.requests}, []int{resolved, invoices, requests}, "resolved, invoices, requests")
		})
	}
}

// What becomes of an order that has lost its response, at each kind of gateway: without the
// declaration it is sent again only where somebody says so.
func TestRepeatedOrders(t *testing.T) {
	for kind, want := range map[gatewaytest.RepeatedOrders]struct {
		outcome  gateway.Outcome // of a request that is repeated
		invoices int
	}{
		gatewaytest.RepeatAgain:   {gateway.OutcomeSucceeded, 2},
		gatewaytest.RepeatSame:    {gateway.OutcomeSucceeded, 1},
		gatewaytest.RepeatRefused: {gateway.OutcomeUnknown, 1},
	} {
		for name, options := range map[string][]gateway.Option{"declared": {gateway.WithRepeatableOrders()}, "resubmitted": nil} {
			t.Run(string(kind)+", "+name, func(t *testing.T) {
				t.Parallel()
				gw := gatewaytest.NewServer(gatewaytest.WithAPIKey(canary))
				t.Cleanup(gw.Close)
				gw.SetRepeatedOrders(kind)
				client, err := gateway.New(gw.URL, gw.APIKey, append(options, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))...)
				require.NoError(t, err)
				gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
				request := gateway.InvoiceRequest{OrderID: "A-1", Price: decimal.NewFromInt(10), Amount: decimal.NewFromInt(10)}
				_, err = client.CreateInvoice(t.Context(), request)
				require.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))

				var again []gateway.CallOption
				if options == nil {
					_, err = client.CreateInvoice(t.Context(), request)
					require.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
					require.Len(t, gw.Requests(), 1, "nothing is sent by itself")
					again = append(again, gateway.AllowResubmit())
				}
				invoice, err := client.CreateInvoice(t.Context(), request, again...)
				assert.Equal(t, want.outcome, gateway.OutcomeOf(err), "%v", err)
				assert.Len(t, gw.InvoicesFor("A-1"), want.invoices)
				if err == nil {
					assert.Contains(t, string(invoice.Raw), gw.InvoicesFor("A-1")[want.invoices-1].ID)
				}
			})
		}
	}
}

// lose calls for each order until it need not be called again: by the limit of retries in a row, most
// requests are repeated by a second call.
func (g *repeatingGateway) lose(t *testing.T, options []gateway.Option) []result {
	server := httptest.NewServer(g)
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client, err := gateway.New(server.URL, canary, append([]gateway.Option{
		gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithUnknownLimit(0),
		gateway.WithRetry(gateway.RetryPolicy{BaseDelay: time.Millisecond}),
	}, options...)...)
	require.NoError(t, err)
	calls := make([]result, lostOrders)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for n := worker; n < lostOrders; n += 8 {
				id := orderNumber(n)
				for again := true; again; again = gateway.SafeToRetry(calls[n].err) {
					invoice, err := client.CreateInvoice(context.Background(), order(id))
					calls[n] = result{order: id, invoice: invoice, err: err}
				}
			}
		})
	}
	all.Wait()
	return calls
}

// checkEvidence compares what is told of an order that is unknown.
func checkEvidence(t *testing.T, r result, status int) {
	t.Helper()
	unknown := &gateway.OutcomeUnknownError{}
	require.ErrorAs(t, r.err, &unknown)
	assert.False(t, gateway.SafeToRetry(r.err))
	assert.NotEmpty(t, unknown.RequestID)
	if status > 0 {
		assert.Contains(t, fmt.Sprint(unknown.Cause), fmt.Sprintf("%d: %q", status, "Order "+r.order+" exists."))
	}
}
