package openapi

import (
	"context"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
)

// The document allows every request that the client can make, under every option
// that changes requests, and every response to it.
func TestOpenAPI_requests(t *testing.T) {
	source := func(context.Context) (string, error) { return "another key", nil }
	for _, tt := range []struct {
		name    string
		keyless bool // whether the client is made without a key
		opts    []gateway.Option
	}{
		{"defaults", false, nil},
		{"the invoice format of the sample", false, []gateway.Option{gateway.WithInvoiceFormat(gateway.InvoiceFormatSample)}},
		{"the invoice format of the table", false, []gateway.Option{gateway.WithInvoiceFormat(gateway.InvoiceFormatTable)}},
		{"the key on public calls too", false, []gateway.Option{
			gateway.WithAPIKeyOnPublicCalls(), gateway.WithUserAgent("shop/1.0 (+tests)"), gateway.WithOrderGuard(nil),
		}},
		{"a key from a source", true, []gateway.Option{gateway.WithAPIKeySource(source)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gw := startChecked(t)
			if tt.keyless {
				gw.APIKey = ""
			}
			client := gw.client(t, tt.opts...)
			for _, c := range everycall.Variations() {
				before := gw.count(c.OpenAPI)
				err := c.Send(t.Context(), client)
				require.NoError(t, gw.violations(), "%s: %v", c.Name, err)
				require.Equal(t, before+1, gw.count(c.OpenAPI), "%s: %v", c.Name, err)
			}
		})
	}
}

// The document allows requests with the call options that change them.
func TestOpenAPI_requests_with_call_options(t *testing.T) {
	gw := startChecked(t)
	client := gw.client(t)
	opts := []gateway.CallOption{gateway.WithHeader("X-Request-Id", "r-1"), gateway.WithAPIKey(gw.APIKey), gateway.WithMerchant("m")}
	_, err := client.Balance(t.Context(), gateway.BalanceQuery{CoinSymbol: "USDT"}, opts...)
	require.NoError(t, err)
	one := decimal.NewFromInt(1)
	_, err = client.CreateInvoice(t.Context(), gateway.InvoiceRequest{OrderID: "o", Price: one, Amount: one}, opts...)
	require.NoError(t, err)
	require.NoError(t, gw.violations())
	assert.Equal(t, []int{1, 1}, []int{gw.count("getBalance"), gw.count("createInvoice")})
}
