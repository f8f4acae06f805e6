package main

import (
	"context"
	"net/http"

	"github.com/stripe/stripe-go/v85"
)

// stripeOwnKey is stripe-go, which sends a key of its own with every call and retries
// with it; stripeOrderKey gives it the order as the key, with SetIdempotencyKey.
func stripeOwnKey(honours bool) client {
	return stripeGo(honours, "key of the call", func(*stripe.InvoiceCreateParams, string) {})
}

func stripeOrderKey(honours bool) client {
	return stripeGo(honours, "key of the order", func(p *stripe.InvoiceCreateParams, order string) { p.SetIdempotencyKey(order) })
}

func stripeGo(honours bool, keys string, setKey func(*stripe.InvoiceCreateParams, string)) client {
	return client{
		name:    "stripe-go",
		variant: keys + ", " + honoured(honours),
		module:  "github.com/stripe/stripe-go/v85",
		madeFor: "a service that honours keys, which Stripe does",
		keys:    honours,
		success: `{"id":"in_1","object":"invoice"}`,
		open: func(e environment) (create, error) {
			c := stripe.NewClient("key", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
				URL: &e.url, HTTPClient: &http.Client{Timeout: e.timeout}, LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
			})))
			return func(ctx context.Context, order string) error {
				params := &stripe.InvoiceCreateParams{Customer: stripe.String("cus_1")}
				params.AddMetadata("order", order)
				setKey(params, order)
				_, err := c.V1Invoices.Create(ctx, params)
				return err
			}, nil
		},
	}
}
