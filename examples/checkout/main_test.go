package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// Requests for two pairs of the stand-in.
const (
	tether    = "58d98601-38df-47a2-83ee-e110f6faa833" // USDT on Tron
	inTether  = "/orders/A-17/invoice?offer=" + tether
	inBitcoin = "/orders/A-17/invoice?offer=17ba3f4e-0981-4182-b07a-73def1a047d7"
)

// shop returns a checkout with an order of 10.50 US dollars and one of a millionth.
func shop(t *testing.T, gw *gatewaytest.Server, opts ...gateway.Option) *checkout {
	t.Helper()
	opts = append(opts, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}), gateway.WithInvoiceDecoder(readDetails))
	client, err := gateway.New(gw.URL, gw.APIKey, opts...)
	require.NoError(t, err)
	c, err := newCheckout(client, map[string]decimal.Decimal{
		"A-17": decimal.RequireFromString("10.50"), "tiny": decimal.RequireFromString("0.000001"),
	})
	require.NoError(t, err)
	return c
}

func ask(t *testing.T, c *checkout, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, nil))
	return w
}

// The responses to the buyer. A second press of the button, also with another coin, creates no second invoice, and after an
// invoice or a lost response it shows the same.
func TestCheckout(t *testing.T) {
	t.Parallel()
	refuse, lose := gatewaytest.FaultRefuse, gatewaytest.FaultCommitThenDrop()
	for name, tt := range map[string]struct {
		target   string
		op       gatewaytest.Operation // which fails; "" for none
		fault    gatewaytest.Fault
		status   int
		text     string
		invoices int
	}{
		"an invoice is created":      {inTether, "", lose, 200, `{"coinSymbol":"USDT","networkName":"Tron","details":{"id":`, 1},
		"an order that is not known": {"/orders/B-1/invoice", "", lose, 404, "no such order", 0},
		"a coin that is not listed":  {"/orders/A-17/invoice?offer=nope", "", lose, 400, "not offered", 0},
		"a price below the limit":    {"/orders/tiny/invoice?offer=" + tether, "", lose, 422, "minAmount", 0},
		"no catalog":                 {inTether, gatewaytest.OpCoinNetworks, gatewaytest.FaultPage(502), 503, "not available", 0},
		"no rates":                   {inTether, gatewaytest.OpExchangeRates, gatewaytest.FaultPage(502), 503, "not available", 0},
		"a refusal":                  {inTether, gatewaytest.OpCreateInvoice, refuse(422, "no"), 422, "cannot be paid", 0},
		"a key that was revoked":     {inTether, gatewaytest.OpCreateInvoice, refuse(401, "no"), 503, "try again later", 0},
		"a busy gateway":             {inTether, gatewaytest.OpCreateInvoice, refuse(429, "slower").RetryAfter("90"), 503, "try again", 0},
		"a lost response":            {inTether, gatewaytest.OpCreateInvoice, lose, 202, "Do not order again", 1},
	} {
		gw := gatewaytest.NewServer()
		t.Cleanup(gw.Close)
		if tt.op != "" {
			gw.InjectFault(tt.op, 1, tt.fault)
		}
		c := shop(t, gw)
		w := ask(t, c, "POST", tt.target)
		assert.Equal(t, tt.status, w.Code, "%s: %s", name, w.Body)
		assert.Contains(t, w.Body.String(), tt.text, name)
		assert.Len(t, gw.Invoices(), tt.invoices, name)
		assert.Equal(t, name == "a busy gateway", w.Header().Get("Retry-After") == "90", name)
		assert.Equal(t, tt.status == 503, w.Header().Get("Retry-After") != "", name)
		for _, target := range []string{inTether, inBitcoin} {
			if again := ask(t, c, "POST", target); tt.invoices > 0 {
				assert.Equal(t, w.Body.String(), again.Body.String(), name)
				assert.Len(t, gw.Invoices(), 1, name)
			}
		}
	}
}

// A page does not wait for a gateway that takes long. It asks again, and the order is sent once.
func TestCheckout_slow(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultStall())
	c := shop(t, gw)
	c.patience = 100 * time.Millisecond
	for range 2 {
		w := ask(t, c, "POST", inTether)
		assert.Equal(t, http.StatusAccepted, w.Code)
		assert.Contains(t, w.Body.String(), "We are preparing your payment.")
	}
	gw.Close() // the response is lost
	require.NoError(t, c.client.Shutdown(t.Context()))
	assert.Contains(t, ask(t, c, "POST", inTether).Body.String(), "Do not order again")
}

// A refuser is an order guard that grants nothing.
type refuser struct {
	lease gateway.Lease
	err   error
}

func (r refuser) Begin(context.Context, gateway.Order) (gateway.Lease, error) { return r.lease, r.err }

func (refuser) End(_ context.Context, _ gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	return r, nil
}

// A refusal of the guard is never a failure of the order. A gateway that cannot be reached gets no invoice.
func TestCheckout_guard(t *testing.T) {
	t.Parallel()
	other := &gateway.OrderRecord{Request: gateway.InvoiceRequest{OrderID: "A-17"}}
	unreachable := func(transport http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPost {
				return nil, http.ErrServerClosed
			}
			return transport.RoundTrip(req)
		})
	}
	for name, tt := range map[string]struct {
		opt    gateway.Option
		status int
		text   string
	}{
		"no database":   {gateway.WithOrderGuard(refuser{err: errors.New("no database")}), 202, "We are preparing your payment."},
		"in flight":     {gateway.WithOrderGuard(refuser{lease: gateway.Lease{State: gateway.OrderInFlight, Known: other}}), 202, "We are preparing your payment."},
		"created":       {gateway.WithOrderGuard(refuser{lease: gateway.Lease{State: gateway.OrderCreated}}), 200, "We will write to you how to pay."},
		"another price": {gateway.WithOrderGuard(refuser{lease: gateway.Lease{State: gateway.OrderCreated, Known: other}}), 409, "at another price"},
		"unknown":       {gateway.WithOrderGuard(refuser{lease: gateway.Lease{State: gateway.OrderUnknown}}), 202, "Do not order again"},
		"unreachable":   {gateway.WithMiddleware(unreachable), 503, "Please try again later."},
	} {
		gw := gatewaytest.NewServer()
		t.Cleanup(gw.Close)
		w := ask(t, shop(t, gw, tt.opt), "POST", inTether)
		assert.Equal(t, tt.status, w.Code, name)
		assert.Contains(t, w.Body.String(), tt.text, name)
		assert.Empty(t, gw.Invoices(), name)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The page with the coins lists those that can be paid in.
func TestCheckout_coins(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	w := ask(t, shop(t, gw), "GET", "/orders/A-17/coins")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Contains(t, w.Body.String(), `{"id":"`+tether+`","coinSymbol":"USDT","networkName":"Tron","amount":"10.497901","payable":true}`)
}
