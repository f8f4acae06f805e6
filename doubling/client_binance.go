package main

import (
	"context"
	"io"
	"log"
	"net/http"

	"github.com/adshao/go-binance/v2"
)

// binanceOrder is go-binance, which sends a newClientOrderId of its own with every call.
var binanceOrder = client{
	name:    "go-binance",
	module:  "github.com/adshao/go-binance/v2",
	madeFor: "an exchange where newClientOrderId is unique among open orders; it does not retry",
	success: `{"symbol":"BTCUSDT","orderId":1,"status":"NEW"}`,
	open: func(e environment) (create, error) {
		c := binance.NewClient("key", "secret")
		c.BaseURL, c.HTTPClient, c.Logger = e.url, &http.Client{Timeout: e.timeout}, log.New(io.Discard, "", 0)
		return func(ctx context.Context, _ string) error {
			_, err := c.NewCreateOrderService().Symbol("BTCUSDT").Side(binance.SideTypeBuy).Type(binance.OrderTypeLimit).
				TimeInForce(binance.TimeInForceTypeGTC).Quantity("5").Price("0.0030000").Do(ctx)
			return err
		}, nil
	},
}
