package main

import (
	"context"
	"io"
	"log"
	"net/http"

	"github.com/adshao/go-binance/v2"
)

// binanceOrder is go-binance, which sends a newClientOrderId of its own with every call, unless the
// caller gives it one: that of the order. The exchange refuses one that it knows.
func binanceOrder(key keyOfWhat, honours bool) client {
	return client{
		name:    "go-binance",
		variant: key.variant(honours),
		module:  "github.com/adshao/go-binance/v2",
		madeFor: "an exchange where newClientOrderId is unique among open orders; it does not retry",
		keys:    honours,
		success: `{"symbol":"BTCUSDT","orderId":1,"status":"NEW"}`,
		again:   answer{http.StatusBadRequest, `{"code":-2010,"msg":"Duplicate order sent."}`},
		open: func(e environment) (create, error) {
			c := binance.NewClient("key", "secret")
			c.BaseURL, c.HTTPClient, c.Logger = e.url, &http.Client{Timeout: e.timeout}, log.New(io.Discard, "", 0)
			return func(ctx context.Context, order string) error {
				s := c.NewCreateOrderService().Symbol("BTCUSDT").Side(binance.SideTypeBuy).Type(binance.OrderTypeLimit).
					TimeInForce(binance.TimeInForceTypeGTC).Quantity("5").Price("0.0030000")
				if key == ofTheOrder {
					s = s.NewClientOrderID(order)
				}
				_, err := s.Do(ctx)
				return err
			}, nil
		},
	}
}
