package gatewaytest

import (
	"fmt"
	"net/http"
	"slices"
)

// RepeatedOrders is what a server does with an invoice request for an order that has an
// invoice. The interface does not say, so each is an invention; a test of code that
// must not be charged twice runs under all of them. The header [InventedHeader] names it.
type RepeatedOrders string

// What a server does with a repeated order.
const (
	// RepeatAgain creates another invoice, as for any other order. It is the default.
	RepeatAgain RepeatedOrders = "again"
	// RepeatSame creates nothing, whatever else the request has in it, and responds with
	// the first invoice of the order and status 200.
	RepeatSame RepeatedOrders = "same"
	// RepeatRefused creates nothing and responds with the error envelope and status 409.
	RepeatRefused RepeatedOrders = "refused"
)

// AllRepeatedOrders returns all kinds of RepeatedOrders, the default first.
func AllRepeatedOrders() []RepeatedOrders {
	return []RepeatedOrders{RepeatAgain, RepeatSame, RepeatRefused}
}

// SetRepeatedOrders sets what the server does with a repeated order, from the next request
// on. It panics if the kind is none of the constants.
func (s *Server) SetRepeatedOrders(kind RepeatedOrders) {
	if !slices.Contains(AllRepeatedOrders(), kind) {
		panic(fmt.Sprintf("gatewaytest: SetRepeatedOrders with %q, want one of its constants", string(kind)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repeated = kind
}

// repeat returns the response to a request for an order that has an invoice, and whether
// no other is created. The lock is held.
func (s *Server) repeat(orderID string) (resp response, ends bool) {
	if s.repeated == RepeatAgain {
		return response{}, false
	}
	first, ok := s.firstOf(orderID)
	if !ok {
		return response{}, false
	}
	if s.repeated == RepeatSame {
		resp = s.invoiceResponse(http.StatusOK, first)
	} else {
		resp = failure(http.StatusConflict, "the order has an invoice")
	}
	resp.invented = append(resp.invented, "repeated/"+string(s.repeated))
	return resp, true
}
