//go:build ogen

package ogen

import (
	"context"
	"net/http"
	"testing"

	_ "github.com/go-faster/errors" // go.mod has it, and the next three, although what imports them is not kept
	_ "github.com/go-faster/jx"
	_ "github.com/google/uuid"
	_ "github.com/ogen-go/ogen/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// key is the key of a stand-in.
type key string

func (k key) ApiKeyHeader(context.Context, OperationName) (ApiKeyHeader, error) {
	return ApiKeyHeader{APIKey: string(k)}, nil
}

// The generated client reads what is documented, typed, and creates an invoice.
func TestClient(t *testing.T) {
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	client, err := NewClient(gw.URL, key(gw.APIKey), WithClient(&http.Client{Transport: gw.Transport()}))
	require.NoError(t, err)

	listing, err := client.ListCoinNetworks(t.Context())
	require.NoError(t, err)
	require.Len(t, listing.Response.Result, len(gw.Catalog()))
	want, got := gw.Catalog()[0], listing.Response.Result[0]
	assert.Equal(t, want.ID, got.ID.String())
	assert.Equal(t, want.Coin.Symbol, got.Coin.Symbol)
	assert.Equal(t, SuccessMessageOperationWasSuccessful, listing.Response.Message)

	id := gw.Withdrawals()[0].WithdrawRequestID
	inquiry, err := client.GetWithdrawal(t.Context(), GetWithdrawalParams{WithdrawRequestId: id})
	require.NoError(t, err)
	assert.Equal(t, WithdrawalStatusPENDING, inquiry.Result.Status)
	_, err = client.GetWithdrawal(t.Context(), GetWithdrawalParams{WithdrawRequestId: "none"})
	require.Error(t, err)

	balance, err := client.GetBalance(t.Context(), GetBalanceParams{})
	require.NoError(t, err)
	assert.Equal(t, 200, balance.StatusCode)

	created, err := client.CreateInvoice(t.Context(), NewInvoiceRequestOfTableInvoiceRequest(InvoiceRequestOfTable{
		Apikey: gw.APIKey, OrderId: "order-1", Price: NewDecimalSentAmount("10.50"), Amount: NewDecimalSentAmount("0.5"),
	}))
	require.NoError(t, err)
	assert.Equal(t, 201, created.StatusCode)
	assert.Len(t, gw.InvoicesFor("order-1"), 1)
}
