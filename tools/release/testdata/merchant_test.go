package merchant

import (
	"context"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

func TestCheckout(t *testing.T) {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, err := gateway.New(gw.URL, gw.APIKey)
	if err != nil {
		t.Fatal(err)
	}
	ten := decimal.NewFromInt(10)
	order := gateway.InvoiceRequest{OrderID: "A-17", Price: ten, Amount: ten}
	for _, replayed := range []bool{false, true} {
		invoice, err := client.CreateInvoice(context.Background(), order)
		if err != nil || invoice.Replayed != replayed || len(gw.InvoicesFor("A-17")) != 1 {
			t.Errorf("%+v, %v, %d invoices", invoice, err, len(gw.Invoices()))
		}
	}
}
