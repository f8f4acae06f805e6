package openapi

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
)

// The document allows every request that the client can make, under every option that changes requests, and every
// response of the stand-in to it.
func TestOpenAPI_requests(t *testing.T) {
	source := func(context.Context) (string, error) { return "another key", nil }
	calls := []gateway.CallOption{gateway.WithHeader("X-Request-Id", "r-1"), gateway.WithAPIKey("k"), gateway.WithMerchant("m")}
	for _, tt := range []struct {
		name, key string
		opts      []gateway.Option
		calls     []gateway.CallOption
	}{
		{"defaults", "k", nil, nil},
		{"the invoice format of the sample", "k", []gateway.Option{gateway.WithInvoiceFormat(gateway.InvoiceFormat{})}, nil},
		{"the invoice format of the table", "k", []gateway.Option{gateway.WithInvoiceFormat(gateway.InvoiceFormat{LowerCaseKeyName: true, Numbers: true})}, nil},
		{"the key on public calls too", "k", []gateway.Option{gateway.WithAPIKeyOnPublicCalls(), gateway.WithUserAgent("shop/1.0 (+tests)")}, nil},
		{"a key from a source", "", []gateway.Option{gateway.WithAPIKeySource(source)}, nil},
		{"options of calls", "k", nil, calls},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gw := startChecked(t)
			gw.APIKey = tt.key
			client := gw.client(t, tt.opts...)
			for _, c := range everycall.Variations() {
				err := c.Send(t.Context(), client, tt.calls...)
				operation, responses, wrong := gw.seen()
				require.NoError(t, wrong, "%s: %v", c.Name, err)
				require.Equal(t, c.OpenAPI, operation, "%s: %v", c.Name, err)
				require.Equal(t, 1, responses, "%s: %v", c.Name, err)
			}
		})
	}
}

// The document allows the responses of the stand-in without a fault: each success, and each error.
func TestOpenAPI_responses(t *testing.T) {
	gw := startChecked(t)
	client := gw.client(t)
	for _, c := range everycall.Accepted(gw.Server) {
		require.NoError(t, c.Send(t.Context(), client), c.Name)
	}
	gw.APIKey = "wrong"
	for _, c := range everycall.Accepted(gw.Server) {
		_ = c.Send(t.Context(), gw.client(t))
	}
	gw.SetRateLimit(1, time.Hour)
	for range 2 {
		_, _ = client.ExchangeRates(t.Context())
	}
	gw.SetRateLimit(0, 0)
	_, err := client.CoinNetworkBySymbol(t.Context(), "NO", "SUCH")
	require.ErrorIs(t, err, gateway.ErrNotFound)
	_, _, wrong := gw.seen()
	require.NoError(t, wrong)
	var statuses []int
	for _, r := range gw.Requests() {
		statuses = append(statuses, r.Status)
	}
	for _, status := range []int{200, 201, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusNotFound} {
		assert.Contains(t, statuses, status)
	}
}

// The document allows the responses to which a fault leads, unless the fault is a response that no gateway sends.
func TestOpenAPI_responses_underFaults(t *testing.T) {
	const allowed, forbidden = true, false
	for _, tt := range []struct {
		fault gatewaytest.Fault
		want  bool
	}{
		{gatewaytest.Fault{}.RetryAfter("1"), allowed},
		{gatewaytest.FaultRefuse(404, `"quoted" and молчание`), allowed},
		{gatewaytest.FaultRefuse(429, "slow down").RetryAfter("120"), allowed},
		{gatewaytest.FaultRefuse(599, ""), allowed},
		{gatewaytest.FaultRefuseAs(gatewaytest.ErrorNest, 400, "no"), forbidden},
		{gatewaytest.FaultPage(502), forbidden},
		{gatewaytest.FaultEmpty(200), forbidden},
		{gatewaytest.FaultRedirect(307, "/elsewhere"), forbidden},
	} {
		t.Run(tt.fault.String(), func(t *testing.T) {
			gw := startChecked(t)
			gw.InjectFault(gatewaytest.AnyOperation, -1, tt.fault)
			client := gw.client(t, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}), gateway.WithOrderGuard(nil))
			for _, c := range everycall.Accepted(gw.Server) {
				_ = c.Send(t.Context(), client)
				_, responses, wrong := gw.seen()
				assert.Equal(t, 1, responses, c.Name)
				assert.Equal(t, tt.want, wrong == nil, "%s: %v", c.Name, wrong)
			}
		})
	}
}
