package suite

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// invoices are the cases that write.
func invoices() []Case {
	return []Case{
		{
			Name: "an invoice is created in the format of the sample: apiKey, and decimals in strings", Where: "I-33, I-113", Writes: true,
			Check: func(ctx context.Context, t Target) error { return t.create(ctx, gateway.InvoiceFormatSample, order()) },
		},
		{
			Name: "an invoice is created in the format of the table: apikey, and numbers", Where: "I-33, I-113", Writes: true,
			Check: func(ctx context.Context, t Target) error { return t.create(ctx, gateway.InvoiceFormatTable, order()) },
		},
		{Name: "an invoice needs no currency, coin or network", Where: "I-114 to I-116", Writes: true, Check: optional},
		{
			Name: "an invoice without a required field is refused", Where: "I-110 to I-112, I-152",
			Writes: true, Invalid: true, Check: incomplete,
		},
	}
}

// order is a request for an invoice of a new order, with every field.
func order() gateway.InvoiceRequest {
	return gateway.InvoiceRequest{
		OrderID: "suite-" + rand.Text()[:16], Price: decimal.New(100, -2), Amount: decimal.New(100, -2),
		BaseCurrency: "usd", CoinSymbol: "USDT", NetworkName: "Tron",
	}
}

// create creates an invoice for the first pair that the gateway lists.
func (t Target) create(ctx context.Context, format gateway.InvoiceFormat, request gateway.InvoiceRequest) error {
	c, err := t.client(gateway.WithInvoiceFormat(format))
	if err != nil {
		return err
	}
	pairs, err := c.CoinNetworks(ctx)
	if err != nil {
		return err
	}
	if len(pairs) > 0 && request.CoinSymbol != "" {
		request.CoinSymbol = pairs[0].Coin.Symbol
	}
	if len(pairs) > 0 && request.NetworkName != "" {
		request.NetworkName = pairs[0].Network.Name
	}
	var r gateway.Response
	_, err = c.CreateInvoice(ctx, request, gateway.WithResponse(&r))
	return t.accept(r, err)
}

// optional omits each of the fields that are not required, then all.
func optional(ctx context.Context, t Target) error {
	var wrong []error
	for _, drop := range []struct {
		what string
		from func(*gateway.InvoiceRequest)
	}{
		{"baseCurrency", func(r *gateway.InvoiceRequest) { r.BaseCurrency = "" }},
		{"coinSymbol", func(r *gateway.InvoiceRequest) { r.CoinSymbol = "" }},
		{"networkName", func(r *gateway.InvoiceRequest) { r.NetworkName = "" }},
		{"baseCurrency, coinSymbol and networkName", func(r *gateway.InvoiceRequest) {
			r.BaseCurrency, r.CoinSymbol, r.NetworkName = "", "", ""
		}},
	} {
		request := order()
		drop.from(&request)
		if err := t.create(ctx, gateway.InvoiceFormatSample, request); err != nil {
			wrong = append(wrong, fmt.Errorf("without %s: %w", drop.what, err))
		}
	}
	return errors.Join(wrong...)
}

// incomplete sends requests that the client refuses to send.
func incomplete(ctx context.Context, t Target) error {
	var wrong []error
	for _, missing := range []string{"apiKey", "price", "orderId", "amount"} {
		body := map[string]string{"apiKey": t.APIKey, "price": "1.00", "orderId": order().OrderID, "amount": "1.00"}
		delete(body, missing)
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r, err := t.post(ctx, string(encoded))
		if err == nil {
			err = r.refusal("")
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("without %s: %w", missing, err))
		}
	}
	return errors.Join(wrong...)
}
