package gatewaytest

import (
	"fmt"
	"net/http"
	"slices"
)

// RepeatedOrders tells a server how to handle an invoice request for an order that has an invoice. The interface does not
// say, so each way is an invention. Test code that must not create two invoices with all of them.
type RepeatedOrders string

// Ways to handle a repeated order.
const (
	RepeatAgain   RepeatedOrders = "again"   // creates another invoice; the default
	RepeatSame    RepeatedOrders = "same"    // responds with the first invoice, whatever else is requested, and status 200
	RepeatRefused RepeatedOrders = "refused" // responds with the error envelope and status 409
)

// AllRepeatedOrders returns every way to handle a repeated order, the default first.
func AllRepeatedOrders() []RepeatedOrders {
	return []RepeatedOrders{RepeatAgain, RepeatSame, RepeatRefused}
}

// SetRepeatedOrders sets how the server handles a repeated order, from the next request on. It panics if the kind is none
// of the constants.
func (s *Server) SetRepeatedOrders(kind RepeatedOrders) {
	if !slices.Contains(AllRepeatedOrders(), kind) {
		panic(fmt.Sprintf("gatewaytest: SetRepeatedOrders with %q, want one of its constants", string(kind)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repeated = kind
}

// repeat returns the response to a request for an order that has an invoice, and whether no other is created. The lock is
// held.
func (s *Server) repeat(orderID string) (resp response, ends bool) {
	first := slices.IndexFunc(s.invoices, func(i Invoice) bool { return i.OrderID == orderID })
	switch {
	case first < 0 || s.repeated == RepeatAgain:
		return response{}, false
	case s.repeated == RepeatSame:
		return s.invoiceResponse(http.StatusOK, s.invoices[first]), true
	default:
		return failure(http.StatusConflict, "the order has an invoice"), true
	}
}
