package shop

import (
	"encoding/json"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// readDetails is your function: it reads an invoice of your gateway.
func readDetails(result json.RawMessage) (gateway.InvoiceDetails, error) {
	var invoice struct{ UUID, Address string }
	err := json.Unmarshal(result, &invoice)
	return gateway.InvoiceDetails{ID: invoice.UUID, Address: invoice.Address}, err
}

func TestReadDetails(t *testing.T) {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.SetResult(gatewaytest.OpCreateInvoice, `{"uuid":"u-1","order":"{{orderId}}","amount":"{{amount}}","address":"TXYZ"}`)
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithInvoiceDecoder(readDetails))
	if err != nil {
		t.Fatal(err)
	}
	price := decimal.RequireFromString("10.50")
	invoice, err := client.CreateInvoice(t.Context(), gateway.InvoiceRequest{OrderID: "A-17", Price: price, Amount: price})
	if err != nil || invoice.Details == nil || invoice.Details.Address != "TXYZ" {
		t.Errorf("%+v, %v", invoice, err)
	}
}
