package shop

import (
	"testing"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// The outcome is unknown, and the second call sends nothing.
func TestCreateInvoice_lostResponse(t *testing.T) {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, err := gateway.New(gw.URL, gw.APIKey)
	if err != nil {
		t.Fatal(err)
	}
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	price := decimal.RequireFromString("10.50")
	for range 2 {
		_, err := client.CreateInvoice(t.Context(), gateway.InvoiceRequest{OrderID: "A-17", Price: price, Amount: price})
		if outcome := gateway.OutcomeOf(err); outcome != gateway.OutcomeUnknown || len(gw.InvoicesFor("A-17")) != 1 {
			t.Errorf("the order is %s, with %d invoices", outcome, len(gw.InvoicesFor("A-17")))
		}
	}
}
