package main

import (
	"context"
	"net/http"

	"github.com/stripe/stripe-go/v85"
)

// stripeGo is stripe-go, which sends a key of its own with every call and retries with it, unless the
// caller gives it one with SetIdempotencyKey: that of the order.
func stripeGo(key keyOfWhat, honours bool) client {
	return client{
		name:    "stripe-go",
		variant: key.variant(honours),
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
				if key == ofTheOrder {
					params.SetIdempotencyKey(order)
				}
				_, err := c.V1Invoices.Create(ctx, params)
				return err
			}, nil
		},
	}
}
