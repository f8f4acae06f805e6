package main

import (
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Nothing is shown unless all that the merchant has named is there, and agrees with the
// order.
func TestPayment(t *testing.T) {
	t.Parallel()
	all := paymentFields{address: "/pay/to", tag: "/pay/memo", amount: "/pay/amount", deadline: "/until"}
	link := paymentFields{link: "/links/0"}
	const at = `"until":"2026-01-02T15:04:05Z"`
	deadline := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		fields   paymentFields
		response string
		want     payment
		problem  string
	}{
		"everything":           {all, `{"pay":{"to":"bc1q","memo":"7","amount":"1.50"},` + at + `}`, payment{"bc1q", "7", "", deadline}, ""},
		"numbers, no tag":      {all, `{"pay":{"to":"bc1q","memo":null,"amount":1.5},"until":1767366245}`, payment{"bc1q", "", "", deadline}, ""},
		"link":                 {link, `{"links":["https://pay.example/1"]}`, payment{Link: "https://pay.example/1"}, ""},
		"echoes":               {link, `{"order":{"orderId":"A","coinSymbol":"BTC","networkName":"Bitcoin"},"links":["https://pay.example/1"]}`, payment{Link: "https://pay.example/1"}, ""},
		"not set":              {paymentFields{}, `{"address":"bc1q"}`, payment{}, "SHOP_INVOICE_ADDRESS and SHOP_INVOICE_LINK are not set"},
		"no response":          {all, ``, payment{}, "response is not known"},
		"no address":           {all, `{"pay":{"memo":"7","amount":"1.5"},` + at + `}`, payment{}, "no readable /pay/to"},
		"address is null":      {all, `{"pay":{"to":null,"memo":"7","amount":"1.5"},` + at + `}`, payment{}, "address or the link is empty"},
		"address is an object": {all, `{"pay":{"to":{},"memo":"7","amount":"1.5"},` + at + `}`, payment{}, "no readable /pay/to"},
		"address with a space": {all, `{"pay":{"to":"bc1q bc1p","memo":"7","amount":"1.5"},` + at + `}`, payment{}, "no readable /pay/to"},
		"no tag":               {all, `{"pay":{"to":"bc1q","amount":"1.5"},` + at + `}`, payment{}, "no readable /pay/memo"},
		"another amount":       {all, `{"pay":{"to":"bc1q","memo":"7","amount":"1.51"},` + at + `}`, payment{}, "/pay/amount is not the amount of the order, 1.5"},
		"amount is a word":     {all, `{"pay":{"to":"bc1q","memo":"7","amount":"NaN"},` + at + `}`, payment{}, "is not the amount"},
		"two addresses":        {all, `{"pay":{"to":"bc1q","to":"bc1p","memo":"7","amount":"1.5"},` + at + `}`, payment{}, "duplicate"},
		"deadline is a word":   {all, `{"pay":{"to":"bc1q","memo":"7","amount":"1.5"},"until":"soon"}`, payment{}, "/until is not a time"},
		"no deadline":          {all, `{"pay":{"to":"bc1q","memo":"7","amount":"1.5"}}`, payment{}, "no readable /until"},
		"another coin":         {link, `{"coinSymbol":"LTC","links":["https://pay.example/1"]}`, payment{}, `its coinSymbol is "LTC", not "BTC"`},
		"another network":      {link, `{"x":{"networkName":"Tron"},"links":["https://pay.example/1"]}`, payment{}, `its networkName is "Tron"`},
		"another order":        {link, `{"orderId":"B","links":["https://pay.example/1"]}`, payment{}, `its orderId is "B"`},
		"link without https":   {link, `{"links":["http://pay.example/1"]}`, payment{}, "/links/0 is not an https address"},
		"link is a script":     {link, `{"links":["javascript:alert(1)"]}`, payment{}, "is not an https address"},
		"too many levels":      {paymentFields{link: strings.Repeat("/0", 33)}, strings.Repeat("[", 33) + `"https://pay.example/1"` + strings.Repeat("]", 33), payment{}, "no readable /0"},
		"no such element":      {link, `{"links":[]}`, payment{}, "no readable /links/0"},
		"not an object":        {link, `[]`, payment{}, "no readable /links/0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := order{ID: "A", Coin: "BTC", Network: "Bitcoin", Amount: decimal.RequireFromString("1.5"), Invoice: []byte(test.response)}
			got, problem := test.fields.payment(o)
			assert.Equal(t, test.want, got)
			if test.problem != "" {
				assert.ErrorContains(t, problem, test.problem)
			} else {
				assert.NoError(t, problem)
			}
		})
	}
}

func TestPaymentFields_settings(t *testing.T) {
	t.Setenv("SHOP_INVOICE_ADDRESS", "/result/address")
	_, err := fieldsFromEnv(paymentFields{})
	require.ErrorContains(t, err, "SHOP_INVOICE_ADDRESS needs SHOP_INVOICE_AMOUNT")
	t.Setenv("SHOP_INVOICE_AMOUNT", "amount")
	_, err = fieldsFromEnv(paymentFields{})
	require.ErrorContains(t, err, "SHOP_INVOICE_AMOUNT must be a JSON pointer")
	t.Setenv("SHOP_INVOICE_AMOUNT", "/a~1b")
	fields, err := fieldsFromEnv(paymentFields{deadline: "/until"})
	require.NoError(t, err)
	assert.Equal(t, paymentFields{address: "/result/address", amount: "/a~1b", deadline: "/until"}, fields)
}

// With a response that the settings do not fit, the buyer sees no address and the
// merchant is told.
func TestPayment_notShown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.gw.SetShape(gatewaytest.InvoiceFlat)
	_, server := h.open()
	v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
	at := v.order(server.URL, "mug")
	v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))
	res := v.get(server.URL + at)
	assert.Contains(t, res.visibleText(), "The invoice exists, but we cannot show you here where to pay.")
	assert.NotContains(t, res.text, "<img class")
	assert.Equal(t, 404, v.get(server.URL+at+"/qr.png").status)
	for _, page := range []string{"/admin", "/admin" + at} {
		assert.Contains(t, anna.get(server.URL+page).visibleText(), "there is no readable /address", page)
	}
}
