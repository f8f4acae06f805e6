package codegen

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// startClient starts a stand-in, and returns a generated client that sends the key.
func startClient(t *testing.T, key func(*gatewaytest.Server) string) (*gatewaytest.Server, *ClientWithResponses) {
	t.Helper()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	client, err := NewClientWithResponses(gw.URL,
		WithHTTPClient(&http.Client{Transport: gw.Transport()}),
		WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("X-Api-Key", key(gw))
			return nil
		}))
	require.NoError(t, err)
	return gw, client
}

func ownKey(gw *gatewaytest.Server) string { return gw.APIKey }

// The generated client reads from the stand-in what is documented, typed.
func TestClient_documented(t *testing.T) {
	gw, client := startClient(t, ownKey)

	listing, err := client.ListCoinNetworksWithResponse(t.Context())
	require.NoError(t, err)
	require.NotNil(t, listing.JSON2XX)
	require.Len(t, listing.JSON2XX.Result, len(gw.Catalog()))
	want, got := gw.Catalog()[0], listing.JSON2XX.Result[0]
	assert.Equal(t, want.ID, got.Id.String())
	assert.Equal(t, want.MaxWithdraw, got.MaxWithdraw)
	assert.Equal(t, want.Coin.Symbol, got.Coin.Symbol)
	assert.Equal(t, want.Network.Name, got.Network.Name)
	assert.False(t, got.CreatedAt.IsZero())

	for i, status := range []WithdrawalStatus{PENDING, COMPLETED} {
		id := gw.Withdrawals()[i].WithdrawRequestID
		inquiry, err := client.GetWithdrawalWithResponse(t.Context(), id)
		require.NoError(t, err)
		require.NotNil(t, inquiry.JSON201)
		assert.Equal(t, status, inquiry.JSON201.Result.Status)
		assert.Equal(t, id, inquiry.JSON201.Result.WithdrawRequestId)
		assert.Equal(t, OperationWasSuccessful, inquiry.JSON201.Message)
	}
}

// It reads every other success as what it is, and knows nothing more of it.
func TestClient_notShown(t *testing.T) {
	gw, client := startClient(t, ownKey)
	pair := gw.Catalog()[0]
	symbol := pair.Coin.Symbol

	byID, err := client.GetCoinNetworkWithResponse(t.Context(), pair.ID)
	require.NoError(t, err)
	assert.NotNil(t, byID.JSON2XX)
	bySymbol, err := client.GetCoinNetworkBySymbolWithResponse(t.Context(), symbol, pair.Network.Name)
	require.NoError(t, err)
	assert.NotNil(t, bySymbol.JSON2XX)
	rates, err := client.GetExchangeRatesWithResponse(t.Context())
	require.NoError(t, err)
	assert.NotNil(t, rates.JSON2XX)
	balance, err := client.GetBalanceWithResponse(t.Context(), &GetBalanceParams{CoinSymbol: &symbol})
	require.NoError(t, err)
	assert.NotNil(t, balance.JSON2XX)
}

// It sends an invoice in either form.
func TestClient_invoice(t *testing.T) {
	gw, client := startClient(t, ownKey)
	var text, number SentAmount
	require.NoError(t, text.FromDecimal("10.50"))
	require.NoError(t, number.FromSentAmount1(10.5))
	var sample, table InvoiceRequest
	require.NoError(t, sample.FromInvoiceRequestOfSample(InvoiceRequestOfSample{ApiKey: gw.APIKey, OrderId: "sample", Price: text, Amount: text}))
	require.NoError(t, table.FromInvoiceRequestOfTable(InvoiceRequestOfTable{Apikey: gw.APIKey, OrderId: "table", Price: number, Amount: number}))

	for order, request := range map[string]InvoiceRequest{"sample": sample, "table": table} {
		created, err := client.CreateInvoiceWithResponse(t.Context(), request)
		require.NoError(t, err)
		assert.NotNil(t, created.JSON2XX, "%s", created.Body)
		require.Len(t, gw.InvoicesFor(order), 1)
		assert.Equal(t, order == "sample", gw.InvoicesFor(order)[0].PriceQuoted)
	}
}

// It reads an error, typed, whatever its status.
func TestClient_errors(t *testing.T) {
	gw, client := startClient(t, func(*gatewaytest.Server) string { return "" })
	inquiry, err := client.GetWithdrawalWithResponse(t.Context(), gw.Withdrawals()[0].WithdrawRequestID)
	require.NoError(t, err)
	assert.Nil(t, inquiry.JSON201)
	require.NotNil(t, inquiry.JSONDefault)
	assert.Equal(t, Error{Message: "x-api-key header is required", Result: []any{}, Meta: Meta{}}, *inquiry.JSONDefault)
}
