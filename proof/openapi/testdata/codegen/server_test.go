package codegen

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/documented/everycall"
)

// A server implements the generated interface with the results of everycall.
type server struct{}

func (server) ListCoinNetworks(context.Context, ListCoinNetworksRequestObject) (ListCoinNetworksResponseObject, error) {
	body, err := documented[CoinNetworksSuccess]("CoinNetworks")
	return ListCoinNetworks2XXJSONResponse{Body: body, StatusCode: http.StatusOK}, err
}

func (server) GetWithdrawal(context.Context, GetWithdrawalRequestObject) (GetWithdrawalResponseObject, error) {
	body, err := documented[WithdrawalSuccess]("Withdrawal")
	return GetWithdrawal201JSONResponse(body), err
}

func (server) GetCoinNetwork(context.Context, GetCoinNetworkRequestObject) (GetCoinNetworkResponseObject, error) {
	return GetCoinNetwork2XXJSONResponse{Body: notShown("CoinNetwork"), StatusCode: http.StatusOK}, nil
}

func (server) GetCoinNetworkBySymbol(context.Context, GetCoinNetworkBySymbolRequestObject) (GetCoinNetworkBySymbolResponseObject, error) {
	return GetCoinNetworkBySymbol2XXJSONResponse{Body: notShown("CoinNetworkBySymbol"), StatusCode: http.StatusOK}, nil
}

func (server) GetExchangeRates(context.Context, GetExchangeRatesRequestObject) (GetExchangeRatesResponseObject, error) {
	return GetExchangeRates2XXJSONResponse{Body: notShown("ExchangeRates"), StatusCode: http.StatusOK}, nil
}

func (server) GetBalance(_ context.Context, r GetBalanceRequestObject) (GetBalanceResponseObject, error) {
	if r.Params.NetworkName != nil {
		missing := Error{Message: "x-api-key header is required", Result: []any{}, Meta: Meta{}}
		return GetBalancedefaultJSONResponse{Body: missing, StatusCode: http.StatusUnauthorized}, nil
	}
	return GetBalance2XXJSONResponse{Body: notShown("Balance"), StatusCode: http.StatusOK}, nil
}

func (server) CreateInvoice(context.Context, CreateInvoiceRequestObject) (CreateInvoiceResponseObject, error) {
	return CreateInvoice2XXJSONResponse{Body: notShown("CreateInvoice"), StatusCode: http.StatusCreated}, nil
}

// documented returns the body of a method's success, read into its generated type.
func documented[T any](method string) (body T, err error) {
	return body, json.Unmarshal([]byte(everycall.Named(method).Body()), &body)
}

func notShown(method string) NotShown { return json.RawMessage(everycall.Named(method).Body()) }

// startServer starts a generated server, and returns a client of it and the requests
// that the server has read, as it understands them.
func startServer(t *testing.T, opts ...gateway.Option) (*gateway.Client, map[string]any) {
	t.Helper()
	requests := map[string]any{}
	record := func(next StrictHandlerFunc, operation string) StrictHandlerFunc {
		return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
			requests[operation] = request
			return next(ctx, w, r, request)
		}
	}
	handler := NewStrictHandler(server{}, []StrictMiddlewareFunc{record})
	front := httptest.NewServer(HandlerFromMuxWithBaseURL(handler, http.NewServeMux(), "/gateway"))
	t.Cleanup(front.Close)
	client, err := gateway.New(front.URL+"/gateway", "k", append(opts, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))...)
	require.NoError(t, err)
	return client, requests
}

// A generated server understands every call of the client, and the client its responses.
func TestServer(t *testing.T) {
	values, usdt := everycall.Documented(), "USDT"
	want := map[string]any{ // by method
		"CoinNetworks":        ListCoinNetworksRequestObject{},
		"CoinNetwork":         GetCoinNetworkRequestObject{Id: values.PairID},
		"CoinNetworkBySymbol": GetCoinNetworkBySymbolRequestObject{CoinSymbol: usdt, NetworkName: values.NetworkName},
		"CoinNetworksOf":      GetCoinNetworkRequestObject{Id: usdt},
		"ExchangeRates":       GetExchangeRatesRequestObject{},
		"Balance":             GetBalanceRequestObject{Params: GetBalanceParams{CoinSymbol: &usdt}},
		"Withdrawal":          GetWithdrawalRequestObject{WithdrawRequestId: values.WithdrawalID},
	}
	for _, c := range everycall.All() {
		t.Run(c.Name, func(t *testing.T) {
			client, requests := startServer(t)
			result, err := c.Do(t.Context(), client, values)
			require.NoError(t, err)
			require.Len(t, requests, 1)
			for _, got := range requests {
				if !c.Writes() { // TestServer_invoice
					assert.Equal(t, want[c.Name], got)
				}
			}
			switch result := result.(type) {
			case []gateway.CoinNetwork:
				assert.Equal(t, values.PairID, result[0].ID)
			case *gateway.Withdrawal:
				assert.Equal(t, gateway.WithdrawalPending, result.Status)
			}
		})
	}
}

// A generated server reads an invoice in both formats of the client.
func TestServer_invoice(t *testing.T) {
	const operation = "CreateInvoice"
	order := everycall.Order("A-17")

	client, requests := startServer(t)
	_, err := client.CreateInvoice(t.Context(), order)
	require.NoError(t, err)
	sample, err := requests[operation].(CreateInvoiceRequestObject).Body.AsInvoiceRequestOfSample()
	require.NoError(t, err)
	text, err := sample.Price.AsDecimal()
	require.NoError(t, err)
	assert.Equal(t, []string{"k", "A-17", "10.50"}, []string{sample.ApiKey, sample.OrderId, text})

	client, requests = startServer(t, gateway.WithInvoiceFormat(gateway.InvoiceFormatTable))
	_, err = client.CreateInvoice(t.Context(), order)
	require.NoError(t, err)
	table, err := requests[operation].(CreateInvoiceRequestObject).Body.AsInvoiceRequestOfTable()
	require.NoError(t, err)
	number, err := table.Price.AsSentAmount1()
	require.NoError(t, err)
	assert.Equal(t, []string{"k", "A-17"}, []string{table.Apikey, table.OrderId})
	assert.InDelta(t, 10.50, number, 0)
}

// The client reads an error of a generated server.
func TestServer_errors(t *testing.T) {
	client, _ := startServer(t)
	_, err := client.Balance(t.Context(), gateway.BalanceQuery{NetworkName: "refused"})
	assert.ErrorIs(t, err, gateway.ErrMissingAPIKey)
}
