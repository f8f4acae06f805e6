package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

func TestReadDetails(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{ // the details as JSON, or the error
		`{"address":"bc1q","amount":"0.1","more":[1]}`:          `{"address":"bc1q","amount":"0.1"}`,
		`{"address":"r9","tag":"77","amount":34.410247}`:        `{"address":"r9","tag":"77","amount":"34.410247"}`,
		`{"paymentUrl":"https://pay.example/1"}`:                `{"paymentUrl":"https://pay.example/1"}`,
		`{"paymentUrl":"p","expiresAt":"2026-01-02T15:04:05Z"}`: `{"paymentUrl":"p","expiresAt":"2026-01-02T15:04:05Z"}`,
		`{"id":"7"}`:                                "the invoice has neither address nor paymentUrl",
		`{"address":"bc1q"}`:                        "the invoice has no amount",
		`{"address":"bc1q","amount":"0"}`:           "the invoice has no amount",
		`{"address":"bc1q","amount":"1e999999999"}`: "the invoice cannot be read",
		`"bc1q"`: "the invoice cannot be read",
		``:       "the invoice cannot be read",
	} {
		d, err := readDetails(json.RawMessage(body))
		if err != nil {
			assert.ErrorContains(t, err, want)
			assert.Zero(t, d)
			continue
		}
		text, err := json.Marshal(d)
		assert.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}

func TestNewOrderPage(t *testing.T) {
	t.Parallel()
	now := time.Now()
	created := func(invoice string) gateway.OrderStatus {
		request := gateway.InvoiceRequest{Amount: decimal.RequireFromString("1"), CoinSymbol: "LTC", NetworkName: "Litecoin"}
		return gateway.OrderStatus{State: gateway.OrderCreated, Record: gateway.OrderRecord{Request: request, Invoice: json.RawMessage(invoice)}}
	}
	const payable = `{"address":"ltc1","amount":"1.02"}`
	noRequest := created(`{"paymentUrl":"https://pay.example/1"}`)
	noRequest.Record.Request = gateway.InvoiceRequest{}
	young, old := order{MadeAt: now}, order{MadeAt: now.Add(-orderLifetime)}
	for name, test := range map[string]struct {
		order  order
		status gateway.OrderStatus
		view   string
	}{
		"an order that was never sent":                        {young, gateway.OrderStatus{State: gateway.OrderFree}, "choose"},
		"an old order that was never sent":                    {old, gateway.OrderStatus{State: gateway.OrderFree}, "expired"},
		"an order in flight":                                  {young, gateway.OrderStatus{State: gateway.OrderInFlight}, "sending"},
		"an old order of unknown outcome":                     {old, gateway.OrderStatus{State: gateway.OrderUnknown}, "unknown"},
		"an invoice with a fee":                               {young, created(payable), "pay"},
		"an old invoice":                                      {old, created(payable), "late"},
		"an invoice that has expired":                         {young, created(`{"address":"ltc1","amount":"1","expiresAt":"2020-01-01T00:00:00Z"}`), "late"},
		"an invoice over more than the amount":                {young, created(`{"address":"ltc1","amount":"1.04"}`), "nodetails"},
		"an invoice over less than the amount":                {young, created(`{"address":"ltc1","amount":"0.96"}`), "nodetails"},
		"an invoice over the price and not the amount":        {young, created(`{"address":"ltc1","amount":"72"}`), "nodetails"},
		"an invoice that cannot be read":                      {young, created(`[]`), "nodetails"},
		"an invoice that a person has found without its text": {young, created(""), "nodetails"},
		"an invoice for one of several requests":              {young, noRequest, "nodetails"},
		"an order that is paid":                               {order{MadeAt: old.MadeAt, Paid: true}, created(payable), "paid"},
	} {
		p := newOrderPage(test.order, test.status)
		assert.Equal(t, test.view, p.View, name)
		assert.Equal(t, test.view == "pay", p.Details.Address != "", "%s: only the page of a payment has an address", name)
	}
}

// A wallet that reads a QR code leaves out the tag, and the payment is lost.
func TestShowQR(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, s := h.open()
	withTag, without := h.order(server, "mug"), h.order(server, "mug")
	h.pay(without, "LTC").has(t, "/qr.png")
	h.gw.SetResult(gatewaytest.OpCreateInvoice, `{"address":"invented-address","tag":"77","amount":"{{amount}}"}`)
	h.pay(withTag, "XRP").has(t, "Without it the payment is lost.")
	assert.Equal(t, 404, h.get(withTag+"/qr.png").status)
	assert.Equal(t, 200, h.get(without+"/qr.png").status)
	s.age(t)
	assert.Equal(t, 404, h.get(without+"/qr.png").status, "after the time to pay")
}
