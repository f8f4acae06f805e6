package shop

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// pay is your code. Its deadline ends the wait, not the invoice.
func pay(ctx context.Context, client *gateway.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	price := decimal.RequireFromString("10.50")
	_, err := client.CreateInvoice(ctx, gateway.InvoiceRequest{OrderID: "A-17", Price: price, Amount: price})
	return err
}

// The buyer clicks twice.
func TestPay(t *testing.T) {
	for name, test := range map[string]struct {
		fault         gatewaytest.Fault
		first, second gateway.Outcome
	}{
		"the response is lost": {gatewaytest.FaultCommitThenDrop(), gateway.OutcomeUnknown, gateway.OutcomeUnknown},
		"the gateway is slow":  {gatewaytest.FaultSlowBody(30 * time.Millisecond), gateway.OutcomeUnknown, gateway.OutcomeSucceeded},
		"the order is refused": {gatewaytest.FaultRefuse(422, "Too small."), gateway.OutcomeRejected, gateway.OutcomeSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gw := gatewaytest.NewMemoryServer()
				defer gw.Close()
				client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = client.Shutdown(t.Context()) }()

				gw.InjectFault(gatewaytest.OpCreateInvoice, 1, test.fault)
				for _, want := range []gateway.Outcome{test.first, test.second} {
					if got := gateway.OutcomeOf(pay(t.Context(), client)); got != want {
						t.Errorf("the outcome is %s, want %s", got, want)
					}
				}
				if n := len(gw.InvoicesFor("A-17")); n != 1 {
					t.Errorf("the order has %d invoices", n)
				}
			})
		})
	}
}
