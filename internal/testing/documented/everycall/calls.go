// Package everycall lists every method of the client that sends a request, so that
// a test that has to cover all of them does not list them again. It is for tests, and the
// client does not import it. So, unlike the packages in internal/ that the client imports, it may name
// resources of the service.
package everycall

import (
	"context"
	"net/http"

	"github.com/cryptogw/gateway"
)

// A Call is one method of the client, as docs/interface.md describes it.
type Call struct {
	Name      string // of the method
	Operation string // as in [gateway.Attempt] and as a gatewaytest.Operation
	OpenAPI   string // the operationId in api/openapi.yaml
	Method    string // of HTTP
	Route     string // with the names of the path parameters in braces
	Key       Key
	Status    int    // of a success
	Result    string // of a success, for the values of [Documented]

	// Do makes the call, and returns the result of the method.
	Do func(context.Context, *gateway.Client, Values, ...gateway.CallOption) (any, error)
}

// A Key is where a call has the API key by default.
type Key string

// The places of the API key.
const (
	NoKey    Key = ""
	InHeader Key = "header"
	InBody   Key = "body"
)

// Values are the arguments of all calls. Each call takes what it needs.
type Values struct {
	PairID                  string
	CoinSymbol, NetworkName string
	Balance                 gateway.BalanceQuery
	Invoice                 gateway.InvoiceRequest
	WithdrawalID            string
}

// All returns every method that sends one request, once.
func All() []Call { return append(catalog(), account()...) }

// Named returns the call of one method. It panics when there is none.
func Named(name string) Call {
	for _, c := range All() {
		if c.Name == name {
			return c
		}
	}
	panic("everycall: no method " + name)
}

// Writes reports whether the call creates something.
func (c Call) Writes() bool { return c.Method == http.MethodPost }

// Body is the whole body of a success.
func (c Call) Body() string { return Enveloped(c.Result) }

// catalog are the calls that are the same for every merchant.
func catalog() []Call {
	return []Call{
		{
			"CoinNetworks", "coin_networks", "listCoinNetworks", http.MethodGet, "/api/networks-coins", NoKey, 200, "[" + PairJSON + "]",
			func(ctx context.Context, c *gateway.Client, _ Values, opts ...gateway.CallOption) (any, error) {
				return c.CoinNetworks(ctx, opts...)
			},
		},
		{
			"CoinNetwork", "coin_network", "getCoinNetwork", http.MethodGet, "/api/networks-coins/{id}", NoKey, 200, PairJSON,
			func(ctx context.Context, c *gateway.Client, v Values, opts ...gateway.CallOption) (any, error) {
				return c.CoinNetwork(ctx, v.PairID, opts...)
			},
		},
		{
			"CoinNetworkBySymbol", "coin_network_by_symbol", "getCoinNetworkBySymbol", http.MethodGet,
			"/api/networks-coins/{coinSymbol}/{networkName}", NoKey, 200, PairJSON,
			func(ctx context.Context, c *gateway.Client, v Values, opts ...gateway.CallOption) (any, error) {
				return c.CoinNetworkBySymbol(ctx, v.CoinSymbol, v.NetworkName, opts...)
			},
		},
		{
			"CoinNetworksOf", "coin_networks_of", "getCoinNetwork", http.MethodGet, // one path in OpenAPI
			"/api/networks-coins/{coinSymbol}", NoKey, 200, "[" + PairJSON + "]",
			func(ctx context.Context, c *gateway.Client, v Values, opts ...gateway.CallOption) (any, error) {
				return c.CoinNetworksOf(ctx, v.CoinSymbol, opts...)
			},
		},
		{
			"ExchangeRates", "exchange_rates", "getExchangeRates", http.MethodGet, "/api/exchange-rate", NoKey, 200, RatesJSON,
			func(ctx context.Context, c *gateway.Client, _ Values, opts ...gateway.CallOption) (any, error) {
				return c.ExchangeRates(ctx, opts...)
			},
		},
	}
}

// account are the calls that are made for the holder of a key.
func account() []Call {
	return []Call{
		{
			"Balance", "balance", "getBalance", http.MethodGet, "/api/balance/", InHeader, 200, BalanceJSON,
			func(ctx context.Context, c *gateway.Client, v Values, opts ...gateway.CallOption) (any, error) {
				return c.Balance(ctx, v.Balance, opts...)
			},
		},
		{
			"CreateInvoice", "create_invoice", "createInvoice", http.MethodPost, "/api/invoice/create", InBody, 200, InvoiceJSON,
			func(ctx context.Context, c *gateway.Client, v Values, opts ...gateway.CallOption) (any, error) {
				return c.CreateInvoice(ctx, v.Invoice, opts...)
			},
		},
		{
			"Withdrawal", "withdrawal", "getWithdrawal", http.MethodGet, "/api/withdrawal/inquiry/{withdrawRequestId}", InHeader, 201, WithdrawalJSON,
			func(ctx context.Context, c *gateway.Client, v Values, opts ...gateway.CallOption) (any, error) {
				return c.Withdrawal(ctx, v.WithdrawalID, opts...)
			},
		},
	}
}
