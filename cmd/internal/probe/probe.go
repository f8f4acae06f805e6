// Package probe makes every read of a gateway, and reports what the client makes of each response.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cryptogw/gateway"
)

// A Call is one read and its response.
type Call struct {
	Operation  string          `json:"operation"`          // such as "balance", as package gatewaytest names it
	Of         string          `json:"of,omitempty"`       // what it asks for; empty for everything
	NotAsked   string          `json:"notAsked,omitempty"` // why nothing was sent; empty if it was
	Status     int             `json:"status"`             // the HTTP status; 0 if nothing was sent
	Readable   bool            `json:"readable"`           // whether the client can read the response
	Error      string          `json:"error,omitempty"`    // why it cannot
	Unexpected []string        `json:"unexpected"`         // the places that differ from the documentation, and how
	Skipped    []string        `json:"skipped"`            // the records that the client cannot read, and why
	Result     json.RawMessage `json:"result"`             // without the key; without an envelope the body, if the error has all of it
}

// Differs reports whether the response differs from the documentation, or cannot be read.
func (c Call) Differs() bool {
	return c.NotAsked == "" && (!c.Readable || len(c.Unexpected)+len(c.Skipped) > 0)
}

// Run makes every read with a client that newClient returns, and reports each. The withdrawal is its identifier, or
// empty for none. Run ends early if a read got no response, if it could not be sent, or if ctx has ended.
func Run(ctx context.Context, newClient func(...gateway.Option) (*gateway.Client, error), withdrawal string, report func(Call)) error {
	var drift []gateway.Drift // in the last response
	client, err := newClient(gateway.WithObserver(gateway.Observer{
		Drift: func(_ context.Context, d gateway.Drift) { drift = append(drift, d) },
	}))
	if err != nil {
		return err
	}
	// ask makes a read of something. If that is empty, missing says why it cannot be asked.
	ask := func(operation, of, missing string, send func(gateway.CallOption) error) bool {
		call := Call{Operation: operation, Of: of, Unexpected: []string{}, Skipped: []string{}}
		if of == "" && missing != "" {
			call.NotAsked = missing
			report(call)
			return true
		}
		var response gateway.Response
		drift = nil
		failed := send(gateway.WithResponse(&response))
		if err = ctx.Err(); err == nil && response.StatusCode == 0 {
			err = failed
		}
		if err != nil {
			return false
		}
		call.read(response, drift, failed)
		report(call)
		return true
	}

	var pair gateway.CoinNetwork
	var amount gateway.BalanceAmount
	const noPair, noAmount = "the listing has no pair that can be read", "the balance has no coin that can be read"
	_ = ask(gateway.OpCoinNetworks, "", "", func(opt gateway.CallOption) error {
		pairs, err := client.CoinNetworks(ctx, opt)
		if len(pairs) > 0 {
			pair = pairs[0]
		}
		return err
	}) && ask(gateway.OpCoinNetwork, pair.ID, noPair, func(opt gateway.CallOption) error {
		return errorOf(client.CoinNetwork(ctx, pair.ID, opt))
	}) && ask(gateway.OpCoinNetworkBySymbol, strings.TrimSpace(pair.Coin.Symbol+" "+pair.Network.Name), noPair, func(opt gateway.CallOption) error {
		return errorOf(client.CoinNetworkBySymbol(ctx, pair.Coin.Symbol, pair.Network.Name, opt))
	}) && ask(gateway.OpCoinNetworksOf, pair.Coin.Symbol, noPair, func(opt gateway.CallOption) error {
		return errorOf(client.CoinNetworksOf(ctx, pair.Coin.Symbol, opt))
	}) && ask(gateway.OpExchangeRates, "", "", func(opt gateway.CallOption) error {
		return errorOf(client.ExchangeRates(ctx, opt))
	}) && ask(gateway.OpBalance, "", "", func(opt gateway.CallOption) error {
		balance, err := client.Balance(ctx, gateway.BalanceQuery{}, opt)
		if err == nil && len(balance.Amounts) > 0 {
			amount = balance.Amounts[0]
		}
		return err
	}) && ask(gateway.OpBalance, amount.CoinSymbol, noAmount, func(opt gateway.CallOption) error {
		return errorOf(client.Balance(ctx, gateway.BalanceQuery{CoinSymbol: amount.CoinSymbol, NetworkName: amount.NetworkName}, opt))
	}) && ask(gateway.OpWithdrawal, withdrawal, "no withdrawal is named", func(opt gateway.CallOption) error {
		return errorOf(client.Withdrawal(ctx, withdrawal, opt))
	})
	return err
}

func errorOf[T any](_ T, err error) error { return err }

// read records a response and what the client made of it.
func (c *Call) read(response gateway.Response, drift []gateway.Drift, err error) {
	c.Status, c.Readable, c.Result = response.StatusCode, err == nil, response.Result
	if err != nil {
		c.Error = err.Error()
	}
	if _, refused := errors.AsType[*gateway.APIError](err); refused {
		c.Result = nil // no result of the operation
	}
	if wrong, ok := errors.AsType[*gateway.DecodeError](err); ok && c.Result == nil && json.Valid(wrong.Body) {
		c.Result = wrong.Body
	}
	for _, d := range drift {
		if d.Kind != gateway.DriftUnknownShape { // of a record that is skipped, or the error
			c.Unexpected = append(c.Unexpected, fmt.Sprintf("%s: %s", d.Pointer, d.Kind))
		}
	}
	for _, s := range response.Skipped {
		c.Skipped = append(c.Skipped, fmt.Sprintf("%s: %s", s.Pointer, s.Reason))
	}
}
