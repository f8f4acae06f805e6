package contract_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/contract/internal/surface"
)

// Every request that the client can make is one that the document allows, under
// every option that changes requests; and so is every answer to it.
func TestOpenAPI_requests(t *testing.T) {
	source := func(context.Context) (string, error) { return "another key", nil }
	for _, tt := range []struct {
		name    string
		keyless bool // whether the client is made without a key
		opts    []gateway.Option
	}{
		{"as it comes", false, nil},
		{"an invoice as the sample has it", false, []gateway.Option{gateway.WithInvoiceFormat(gateway.SampleInvoiceFormat)}},
		{"an invoice as the table has it", false, []gateway.Option{gateway.WithInvoiceFormat(gateway.TableInvoiceFormat)}},
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
			for _, u := range surface.Uses() {
				before := gw.count(u.Sends)
				err := u.Call(t.Context(), client)
				require.NoError(t, gw.verdict(), "%s: %v", u.Method, err)
				require.Equal(t, before+1, gw.count(u.Sends), "%s: %v", u.Method, err)
			}
		})
	}
}

// Call options that change a request leave it one that the document allows.
func TestOpenAPI_requests_with_call_options(t *testing.T) {
	gw := startChecked(t)
	client := gw.client(t)
	opts := []gateway.CallOption{gateway.WithHeader("X-Request-Id", "r-1"), gateway.WithAPIKey(gw.APIKey)}
	_, err := client.Balance(t.Context(), gateway.BalanceQuery{CoinSymbol: "USDT"}, opts...)
	require.NoError(t, err)
	one := decimal.NewFromInt(1)
	_, err = client.CreateInvoice(t.Context(), gateway.InvoiceRequest{OrderID: "o", Price: one, Amount: one},
		append(opts, gateway.AllowResubmit())...)
	require.NoError(t, err)
	require.NoError(t, gw.verdict())
	assert.Equal(t, []int{1, 1}, []int{gw.count("getBalance"), gw.count("createInvoice")})
}

// No method of the client is forgotten here, but for those that print it.
func TestOpenAPI_requests_of_every_method(t *testing.T) {
	sends := map[string]bool{}
	for _, u := range surface.Uses() {
		sends[u.Method] = true
	}
	printing := []string{"Format", "GoString", "LogValue", "MarshalJSON", "MarshalText", "String"}
	methods := reflect.TypeFor[*gateway.Client]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		assert.True(t, sends[name] || slices.Contains(printing, name), "%s is not in the table", name)
	}
}
