package shop

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// pay is your handler. Its deadline ends the wait, not the invoice.
func pay(client *gateway.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		price := decimal.RequireFromString("10.50")
		invoice, err := client.CreateInvoice(ctx, gateway.InvoiceRequest{OrderID: "A-17", Price: price, Amount: price})
		switch {
		case err == nil:
			_, _ = w.Write(invoice.Raw)
		case gateway.OutcomeOf(err) == gateway.OutcomeUnknown && gateway.SafeToRetry(err): // as with ErrStillSending
			http.Error(w, "We are preparing your payment.", http.StatusAccepted)
		default:
			http.Error(w, "Payments are not available.", http.StatusServiceUnavailable)
		}
	}
}

// The gateway takes longer than the handler waits. The page asks again, and gets the invoice, which was sent once.
func TestPay_slowGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw := gatewaytest.NewMemoryServer()
		defer gw.Close()
		client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Shutdown(t.Context()) }()
		gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultSlowBody(30*time.Millisecond)) // for each byte

		for _, want := range []int{http.StatusAccepted, http.StatusOK} {
			page := httptest.NewRecorder()
			pay(client)(page, httptest.NewRequest("POST", "/pay", nil))
			if page.Code != want {
				t.Errorf("the page is %d, want %d: %s", page.Code, want, page.Body)
			}
		}
		if sent := len(gw.Requests()); sent != 1 {
			t.Errorf("%d invoices were sent", sent)
		}
	})
}
