package suite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/documented/fields"
)

const (
	balancePath    = "/api/balance/"
	withdrawalPath = "/api/withdrawal/inquiry/"
)

// keyed are the cases of the operations with the key in a header.
func keyed() []Case {
	return []Case{
		{
			Name: "the balance takes the key in a header, whose name is case-insensitive", Where: "I-30",
			Check: func(ctx context.Context, t Target) error { return t.anyCase(ctx, balancePath) },
		},
		{Name: "the client can request the balance", Where: "I-19, I-101", Check: balance},
		{Name: "a balance is narrowed by coin, by network and by both", Where: "I-102, I-103, I-152", Check: narrowed},
		{
			Name: "a balance without the key header is refused", Where: "I-35, I-154", Invalid: true,
			Check: func(ctx context.Context, t Target) error { return t.keyless(ctx, balancePath) },
		},
		{
			Name: "a withdrawal inquiry without the key header is refused", Where: "I-35, I-154", Invalid: true,
			Check: func(ctx context.Context, t Target) error {
				return t.keyless(ctx, withdrawalPath+url.PathEscape(t.withdrawal()))
			},
		},
		{
			Name: "a withdrawal inquiry takes the key in a header, whose name is case-insensitive", Where: "I-31",
			Withdrawal: true,
			Check: func(ctx context.Context, t Target) error {
				return t.anyCase(ctx, withdrawalPath+url.PathEscape(t.WithdrawalID))
			},
		},
		{
			Name: "a withdrawal inquiry returns status 201 with all its fields", Where: "I-130 to I-138",
			Withdrawal: true, Check: inquiry,
		},
	}
}

// withdrawal is an identifier to request, known or not.
func (t Target) withdrawal() string {
	if t.WithdrawalID == "" {
		return "c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10"
	}
	return t.WithdrawalID
}

// anyCase sends the header in each documented spelling, and in upper case.
func (t Target) anyCase(ctx context.Context, path string) error {
	for _, name := range []string{"x-api-key", "x-api-Key", "X-API-KEY"} {
		r, err := t.get(ctx, path, http.Header{name: {t.APIKey}, "Content-Type": {"application/json"}})
		if err == nil {
			err = r.success()
		}
		if err != nil {
			return fmt.Errorf("with the header %s: %w", name, err)
		}
	}
	return nil
}

func (t Target) keyless(ctx context.Context, path string) error {
	r, err := t.get(ctx, path, http.Header{"Content-Type": {"application/json"}})
	if err != nil {
		return err
	}
	return r.refusal(missingKeyMessage)
}

func balance(ctx context.Context, t Target) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	var r gateway.Response
	_, err = c.Balance(ctx, gateway.BalanceQuery{}, gateway.WithResponse(&r))
	return t.accept(r, err)
}

// narrowed accepts an error too, in its envelope: the response for a coin without a
// balance is not documented.
func narrowed(ctx context.Context, t Target) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	pairs, err := c.CoinNetworks(ctx)
	if err != nil {
		return err
	}
	var wrong []error
	for _, p := range samples(pairs) {
		for _, query := range []url.Values{
			{"coinSymbol": {p.Coin.Symbol}},
			{"networkName": {p.Network.Name}},
			{"coinSymbol": {p.Coin.Symbol}, "networkName": {p.Network.Name}},
		} {
			r, err := t.get(ctx, balancePath+"?"+query.Encode(), http.Header{"X-Api-Key": {t.APIKey}})
			if err == nil && r.success() != nil {
				err = r.refusal("")
			}
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

func inquiry(ctx context.Context, t Target) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	var r gateway.Response
	if _, err := c.Withdrawal(ctx, t.WithdrawalID, gateway.WithResponse(&r)); err != nil {
		return err
	}
	if r.StatusCode != http.StatusCreated {
		return fmt.Errorf("status %d, want 201", r.StatusCode)
	}
	result, _ := fields.Parse(r.Result)
	return errors.Join(documented(r), check(result, fields.Withdrawal))
}
