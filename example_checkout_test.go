package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// A shop has orders, by their prices.
type shop struct {
	client *gateway.Client
	prices map[string]decimal.Decimal
}

// pay responds with the invoice of an order. The first request creates it.
func (s *shop) pay(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("order")
	price, found := s.prices[id] // from your database, never from the request
	if !found {
		http.NotFound(w, r)
		return
	}
	invoice, err := s.client.CreateInvoice(r.Context(), gateway.InvoiceRequest{OrderID: id, Price: price, Amount: price})
	if conflict, ok := errors.AsType[*gateway.OrderConflictError](err); ok {
		invoice = conflict.Invoice // the order already has this one, for another price
	}
	switch outcome := gateway.OutcomeOf(err); {
	case invoice != nil && len(invoice.Raw) > 0:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(invoice.Raw)
	case gateway.SafeToRetry(err):
		http.Error(w, "We are still working on your order. Please try again in a moment.", http.StatusServiceUnavailable)
	case outcome == gateway.OutcomeNotSent, outcome == gateway.OutcomeRejected:
		log.Print("no invoice was created: ", err)
		http.Error(w, "This order cannot be paid at the moment.", http.StatusBadGateway)
	default: // an invoice may exist, or exists without its text
		log.Printf("look order %q up at the gateway: %v", id, err)
		http.Error(w, "We are checking your payment. Do not order again: we will write to you.", http.StatusAccepted)
	}
}

// A handler that shows the invoice, and tells the buyer the truth when there is none to show.
func Example_checkout() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	prices := map[string]decimal.Decimal{}
	for _, id := range []string{"A-17", "A-18", "A-19"} {
		prices[id] = decimal.RequireFromString("10.50")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{order}/pay", (&shop{connect(gw), prices}).pay)
	click := func(order string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/orders/"+order+"/pay", nil))
		fmt.Println(order, w.Code, "invoices:", len(gw.InvoicesFor(order)))
	}

	click("A-17")
	click("A-17")
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop()) // the response is lost
	click("A-18")
	click("A-18")
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(422, "amount is too small"))
	click("A-19")
	// Output:
	// A-17 200 invoices: 1
	// A-17 200 invoices: 1
	// A-18 202 invoices: 1
	// A-18 202 invoices: 1
	// A-19 502 invoices: 0
}
