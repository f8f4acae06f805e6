package main

import (
	"context"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// The client of this repository: with the guard in memory that it comes with, with sqlguard, with it
// and a service that is declared to return the invoice of an order again, and without a guard.
var (
	gatewayInMemory = ours("guard in memory", func(environment) []gateway.Option { return nil })

	gatewaySQLGuard = ours("sqlguard", func(e environment) []gateway.Option {
		return []gateway.Option{gateway.WithOrderGuard(e.guard())}
	})

	gatewayRepeatable = ours(repeats, func(e environment) []gateway.Option {
		return []gateway.Option{gateway.WithOrderGuard(e.guard()), gateway.WithRepeatableOrders()}
	})

	gatewayUnguarded = ours("no guard", func(environment) []gateway.Option {
		return []gateway.Option{gateway.WithOrderGuard(nil)}
	})
)

const repeats = "sqlguard and `WithRepeatableOrders`, service repeats the invoice of an order"

func ours(variant string, options func(environment) []gateway.Option) client {
	return client{
		name:    "gateway",
		variant: variant,
		module:  "github.com/cryptogw/gateway",
		madeFor: "a service without keys, in which a second invoice is a loss",
		keys:    variant == repeats,
		success: `{"message":"Operation was successful.","result":{"id":1},"meta":{}}`,
		open: func(e environment) (create, error) {
			c, err := gateway.New(e.url, "key", append(options(e), gateway.WithUnknownLimit(0), gateway.WithRetry(gateway.RetryPolicy{InvoiceTimeout: e.timeout}))...)
			return func(ctx context.Context, order string) error {
				_, err := c.CreateInvoice(ctx, gateway.InvoiceRequest{
					OrderID: order, Price: decimal.NewFromInt(10), Amount: decimal.NewFromInt(10), BaseCurrency: "usd",
				})
				return err
			}, err
		},
	}
}
