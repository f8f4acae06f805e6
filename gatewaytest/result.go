package gatewaytest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// SetResult makes an operation answer with a result that you recorded from your own gateway,
// instead of the result that this package invents. The result is JSON. From
// the next request on, each success of the operation has it in the documented envelope,
// byte for byte and whatever the request asks for; refusals, faults and the rate limit
// stay as they are. In the result of [OpCreateInvoice], {{orderId}}, {{price}} and
// {{amount}} stand for the values of the request:
//
//	gw.SetResult(gatewaytest.OpCreateInvoice,
//		`{"id":"inv-1","orderId":"{{orderId}}","payAmount":{{amount}},"address":"TXYZ"}`)
//
// Write {{orderId}} inside of a JSON string. {{price}} and {{amount}} may be a part of a
// string or a number. [Server.Invoices] still records each invoice. A path with a coin
// symbol is [OpCoinNetworksOf] only if the catalog has the coin, see [Server.SetCatalog].
//
// SetResult panics unless the operation is one of the constants other than [AnyOperation],
// and the result is valid JSON once the values are in it.
func (s *Server) SetResult(op Operation, result string) {
	if _, ok := op.route(); !ok {
		panic(fmt.Sprintf("gatewaytest: SetResult for operation %q, want one operation of the service", string(op)))
	}
	sample := result
	if op == OpCreateInvoice {
		sample = Invoice{OrderID: "order-17", Price: "-1e2", Amount: "-1e2"}.fill(result) // where these fit, all do
	}
	var value json.RawMessage
	if err := json.Unmarshal([]byte(sample), &value); err != nil {
		panic(fmt.Sprintf("gatewaytest: SetResult for %s, want JSON: %v in %.200s", op, err, sample))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[op] = result
}

// fill returns a result with the values of the invoice.
func (i Invoice) fill(result string) string {
	orderID := quote(i.OrderID)
	return strings.NewReplacer(
		"{{orderId}}", orderID[1:len(orderID)-1],
		"{{price}}", i.Price,
		"{{amount}}", i.Amount,
	).Replace(result)
}

func quote(s string) string {
	quoted, _ := json.Marshal(s) // a text: cannot fail
	return string(quoted)
}
