package mock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cryptogw/gateway/gatewaytest"
)

// An Injection is a fault for the next requests of an operation, as JSON too.
type Injection struct {
	Operation gatewaytest.Operation `json:"operation"`
	Times     int                   `json:"times"` // of requests; -1 for all
	Fault     string                `json:"fault"` // such as "commit-then-drop" or "refuse=503"
}

// ParseInjection parses the form operation:times:fault, such as
// "create_invoice:1:commit-then-drop". The times may be "all".
func ParseInjection(text string) (i Injection, err error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return i, fmt.Errorf("write it like create_invoice:1:commit-then-drop")
	}
	i = Injection{Operation: gatewaytest.Operation(parts[0]), Times: -1, Fault: parts[2]}
	if parts[1] != "all" {
		if i.Times, err = strconv.Atoi(parts[1]); err != nil {
			return i, errors.New("TIMES is neither a number of requests nor all")
		}
	}
	_, err = i.fault()
	return i, err
}

// fault returns the fault of an injection, or what is wrong with the injection.
func (i Injection) fault() (gatewaytest.Fault, error) {
	if !slices.Contains(operations(), i.Operation) {
		return gatewaytest.Fault{}, fmt.Errorf("there is no such operation, but %s", join(operations()))
	}
	if i.Times == 0 || i.Times < -1 {
		return gatewaytest.Fault{}, fmt.Errorf("times is %d, not a number of requests nor -1 for all", i.Times)
	}
	return gatewaytest.ParseFault(i.Fault)
}

// operations returns the operations of gatewaytest.
func operations() []gatewaytest.Operation {
	return []gatewaytest.Operation{
		gatewaytest.OpCoinNetworks, gatewaytest.OpCoinNetwork, gatewaytest.OpCoinNetworkBySymbol, gatewaytest.OpCoinNetworksOf, gatewaytest.OpExchangeRates,
		gatewaytest.OpBalance, gatewaytest.OpCreateInvoice, gatewaytest.OpWithdrawal, gatewaytest.AnyOperation,
	}
}

func join(operations []gatewaytest.Operation) string {
	var names []string
	for _, op := range operations {
		names = append(names, string(op))
	}
	return strings.Join(names, ", ")
}
