package main

import (
	"bytes"
	"context"
	"errors"
	"io"
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

// The identifiers of two pairs of the stand-in.
const (
	tether  = "58d98601-38df-47a2-83ee-e110f6faa833" // USDT on Tron
	bitcoin = "17ba3f4e-0981-4182-b07a-73def1a047d7" // BTC on Bitcoin
)

// shop returns a checkout with an order of 10.50 US dollars and one of a millionth.
func shop(t *testing.T, gw *gatewaytest.Server, opts ...gateway.Option) *checkout {
	t.Helper()
	client, err := gateway.New(gw.URL, gw.APIKey, append(opts, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))...)
	require.NoError(t, err)
	c, err := newCheckout(client, map[string]decimal.Decimal{
		"A-17": decimal.RequireFromString("10.50"), "tiny": decimal.RequireFromString("0.000001"),
	})
	require.NoError(t, err)
	return c
}

func post(ctx context.Context, c *checkout, target string) *httptest.ResponseRecorder {
	return ask(ctx, c, http.MethodPost, target)
}

func ask(ctx context.Context, c *checkout, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, target, nil))
	return w
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	const inTether = "/orders/A-17/invoice?offer=" + tether
	fault := func(op gatewaytest.Operation, f gatewaytest.Fault) func(*gatewaytest.Server) {
		return func(gw *gatewaytest.Server) { gw.InjectFault(op, 1, f) }
	}
	for _, tt := range []struct {
		name, target string
		prepare      func(*gatewaytest.Server)
		status       int
		text         string
		invoices     int
	}{
		{"an invoice is created", inTether, nil, 201, `"orderId":"A-17"`, 1},
		{"an order that is not known", "/orders/B-1/invoice", nil, 404, "no such order", 0},
		{"a coin that is not listed", "/orders/A-17/invoice?offer=nope", nil, 400, "not offered", 0},
		{"a price below the limit", "/orders/tiny/invoice?offer=" + tether, nil, 422, "minAmount", 0},
		{"no catalog", inTether, fault(gatewaytest.OpCoinNetworks, gatewaytest.FaultPage(502)), 503, "not available", 0},
		{"no rates", inTether, fault(gatewaytest.OpExchangeRates, gatewaytest.FaultPage(502)), 503, "not available", 0},
		{"a refusal", inTether, fault(gatewaytest.OpCreateInvoice, gatewaytest.FaultRefuse(422, "no")), 502, "cannot be paid", 0},
		{"a busy gateway", inTether, fault(gatewaytest.OpCreateInvoice, gatewaytest.FaultRefuse(429, "slower").RetryAfter("90")), 503, "try again", 0},
		{"a lost response", inTether, fault(gatewaytest.OpCreateInvoice, gatewaytest.FaultCommitThenDrop()), 202, "Do not order again", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			gw := gatewaytest.NewServer()
			t.Cleanup(gw.Close)
			if tt.prepare != nil {
				tt.prepare(gw)
			}
			w := post(t.Context(), shop(t, gw), tt.target)
			assert.Equal(t, tt.status, w.Code, w.Body)
			assert.Contains(t, w.Body.String(), tt.text)
			assert.Len(t, gw.Invoices(), tt.invoices)
			assert.Equal(t, tt.name == "a busy gateway", w.Header().Get("Retry-After") == "90")
		})
	}
}

// A second press of the button creates no second invoice, and shows the first one, also with
// another coin; not after a lost response.
func TestCheckout_twice(t *testing.T) {
	t.Parallel()
	for _, first := range []int{http.StatusCreated, http.StatusAccepted} {
		gw := gatewaytest.NewServer()
		t.Cleanup(gw.Close)
		if first == http.StatusAccepted {
			gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
		}
		c := shop(t, gw)
		shown := post(t.Context(), c, "/orders/A-17/invoice?offer="+tether)
		assert.Equal(t, first, shown.Code)
		for _, offer := range []string{tether, bitcoin} {
			w := post(t.Context(), c, "/orders/A-17/invoice?offer="+offer)
			assert.Equal(t, first, w.Code, w.Body)
			assert.Equal(t, shown.Body.String(), w.Body.String())
		}
		assert.Len(t, gw.Invoices(), 1)
	}
}

// A second press of the button while the invoice is on its way shows the same one.
func TestCheckout_inFlight(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	const target = "/orders/A-17/invoice?offer=" + tether
	var c *checkout
	second := make(chan *httptest.ResponseRecorder)
	c = shop(t, gw, gateway.WithHTTPClient(&http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPost {
			go func() { second <- post(t.Context(), c, target) }()
		}
		return http.DefaultTransport.RoundTrip(req)
	})}))
	w := post(t.Context(), c, target)
	assert.Equal(t, http.StatusCreated, w.Code)
	assert.Equal(t, w.Body.String(), (<-second).Body.String())
	assert.Len(t, gw.Invoices(), 1)
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

// What the guard refuses is never a failure of the order.
func TestCheckout_guard(t *testing.T) {
	t.Parallel()
	other := &gateway.OrderRecord{Request: gateway.InvoiceRequest{OrderID: "A-17"}}
	for _, tt := range []struct {
		guard      refuser
		status     int
		retryAfter string
	}{
		{refuser{err: errors.New("no database")}, http.StatusServiceUnavailable, "5"},
		{refuser{lease: gateway.Lease{State: gateway.OrderInFlight, Known: other}}, http.StatusServiceUnavailable, "5"},
		{refuser{lease: gateway.Lease{State: gateway.OrderCreated}}, http.StatusAccepted, ""},
		{refuser{lease: gateway.Lease{State: gateway.OrderCreated, Known: other}}, http.StatusAccepted, ""},
		{refuser{lease: gateway.Lease{State: gateway.OrderUnknown}}, http.StatusAccepted, ""},
	} {
		gw := gatewaytest.NewServer()
		t.Cleanup(gw.Close)
		w := post(t.Context(), shop(t, gw, gateway.WithOrderGuard(tt.guard)), "/orders/A-17/invoice?offer="+tether)
		assert.Equal(t, tt.status, w.Code, "%v", tt.guard)
		assert.Equal(t, tt.retryAfter, w.Header().Get("Retry-After"), "%v", tt.guard)
		assert.Empty(t, gw.Invoices())
	}
}

// A gateway that cannot be reached gets no invoice.
func TestCheckout_notSent(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	c := shop(t, gw, gateway.WithHTTPClient(&http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPost {
			return nil, http.ErrServerClosed
		}
		return http.DefaultTransport.RoundTrip(req)
	})}))
	assert.Equal(t, http.StatusServiceUnavailable, post(t.Context(), c, "/orders/A-17/invoice?offer="+tether).Code)
	assert.Empty(t, gw.Invoices())
}

// A buyer who leaves while the invoice is sent does not cut it off.
func TestCheckout_buyerLeaves(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	c := shop(t, gw, gateway.WithHTTPClient(&http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPost {
			body, err := io.ReadAll(req.Body)
			require.NoError(t, err)
			leave()
			req = req.Clone(req.Context())
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		return http.DefaultTransport.RoundTrip(req)
	})}))
	w := post(ctx, c, "/orders/A-17/invoice?offer="+tether)
	assert.Equal(t, http.StatusCreated, w.Code, w.Body)
	assert.Len(t, gw.Invoices(), 1)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The page with the coins lists those that can be paid in, or states that there are none now.
func TestCheckout_coins(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	gw.InjectFault(gatewaytest.OpCoinNetworks, 1, gatewaytest.FaultPage(502))
	c := shop(t, gw)
	w := ask(t.Context(), c, http.MethodGet, "/orders/A-17/coins")
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Contains(t, w.Body.String(), "not available")

	w = ask(t.Context(), c, http.MethodGet, "/orders/A-17/coins")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Contains(t, w.Body.String(), `{"id":"`+tether+`","coinSymbol":"USDT","networkName":"Tron","amount":"10.497901","payable":true}`)
}
