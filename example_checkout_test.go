package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

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
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second) // ends the wait, not the invoice
	defer cancel()
	invoice, err := s.client.CreateInvoice(ctx, gateway.InvoiceRequest{OrderID: id, Price: price, Amount: price})
	conflict, isConflict := errors.AsType[*gateway.OrderConflictError](err)
	if isConflict && !slices.Contains(conflict.Differs, "price") && !slices.Contains(conflict.Differs, "baseCurrency") {
		invoice, err = conflict.Invoice, nil // the order has this one
	}
	switch outcome := gateway.OutcomeOf(err); {
	case err == nil && invoice != nil && invoice.Details != nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(invoice.Details) // which WithInvoiceDecoder reads
	case err == nil:
		http.Error(w, "Your order is saved. We will write to you how to pay.", http.StatusOK)
	case outcome == gateway.OutcomeUnknown && gateway.SafeToRetry(err): // the page asks again
		http.Error(w, "We are preparing your payment.", http.StatusAccepted)
	case outcome == gateway.OutcomeUnknown:
		http.Error(w, "We are checking your payment. Do not order again: we will write to you.", http.StatusAccepted)
	case isConflict:
		http.Error(w, "This order was placed at another price. Please start a new order.", http.StatusConflict)
	case errors.Is(err, gateway.ErrInvalidArgument):
		http.Error(w, "Payments are not available.", http.StatusInternalServerError)
	case outcome == gateway.OutcomeNotSent, gateway.SafeToRetry(err), isOurs(err):
		w.Header().Set("Retry-After", "30")
		http.Error(w, "Payments are not available now. Please try again later.", http.StatusServiceUnavailable)
	default:
		http.Error(w, "This order cannot be paid.", http.StatusUnprocessableEntity)
	}
	if err != nil {
		log.Printf("order %q: %v", id, err)
	}
}

// isOurs reports whether a rejected invoice is the fault of the shop's key or base URL, and not of the order.
func isOurs(err error) bool {
	refusal, ok := errors.AsType[*gateway.APIError](err)
	return errors.Is(err, gateway.ErrRedirect) ||
		ok && slices.Contains([]int{401, 402, 403, 404, 405, 407}, refusal.StatusCode)
}

// readDetails reads the response of your gateway: its operator names the members.
func readDetails(result json.RawMessage) (d gateway.InvoiceDetails, err error) {
	var of struct{ ID, Address string }
	err = json.Unmarshal(result, &of)
	d.ID, d.Address = of.ID, of.Address
	return d, err
}

// A handler that shows how to pay, and tells the buyer the truth when there is nothing to show.
func Example_checkout() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	prices := map[string]decimal.Decimal{}
	for _, id := range []string{"A-17", "A-18", "A-19", "A-20"} {
		prices[id] = decimal.RequireFromString("10.50")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{order}/pay", (&shop{connect(gw, gateway.WithInvoiceDecoder(readDetails)), prices}).pay)
	click := func(order string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/orders/"+order+"/pay", nil))
		fmt.Println(order, w.Code, "invoices:", len(gw.InvoicesFor(order)))
	}

	click("A-17")
	click("A-17")
	prices["A-17"] = decimal.RequireFromString("11.00")
	click("A-17")
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop()) // the response is lost
	click("A-18")
	click("A-18")
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(422, "amount is too small"))
	click("A-19")
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(401, "the key was revoked"))
	click("A-20")
	// Output:
	// A-17 200 invoices: 1
	// A-17 200 invoices: 1
	// A-17 409 invoices: 1
	// A-18 202 invoices: 1
	// A-18 202 invoices: 1
	// A-19 422 invoices: 0
	// A-20 503 invoices: 0
}
