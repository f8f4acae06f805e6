package mock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cryptogw/gateway/gatewaytest"
)

// An Injection is a fault for the next requests of an operation, or for a share of them, as
// JSON too.
type Injection struct {
	Operation gatewaytest.Operation `json:"operation"`
	Times     int                   `json:"times,omitempty"` // of requests; -1 for all
	Share     string                `json:"share,omitempty"` // of the requests, such as "5%", in the place of Times
	Fault     string                `json:"fault"`           // such as "commit-then-drop" or "refuse=503"
}

// ParseInjection parses the form operation:times:fault, such as
// "create_invoice:1:commit-then-drop". The times may be "all", or a share such as "5%".
func ParseInjection(text string) (i Injection, err error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return i, errors.New("write it like create_invoice:1:commit-then-drop or create_invoice:5%:refuse=503")
	}
	i = Injection{Operation: gatewaytest.Operation(parts[0]), Fault: parts[2]}
	switch {
	case parts[1] == "all":
		i.Times = -1
	case strings.HasSuffix(parts[1], "%"):
		i.Share = parts[1]
	default:
		if i.Times, err = strconv.Atoi(parts[1]); err != nil {
			return i, errors.New("TIMES is neither a number of requests nor all nor a share such as 5%")
		}
	}
	_, _, err = i.parse()
	return i, err
}

// parse returns the fault and the share of an injection, or what is wrong with it.
func (i Injection) parse() (fault gatewaytest.Fault, share float64, err error) {
	switch {
	case !slices.Contains(operations(), i.Operation):
		return fault, 0, fmt.Errorf("there is no such operation, but %s", joined(operations()))
	case i.Share != "" && i.Times != 0:
		return fault, 0, errors.New("times and share exclude each other")
	case i.Share == "" && (i.Times == 0 || i.Times < -1):
		return fault, 0, fmt.Errorf("times is %d, not a number of requests nor -1 for all", i.Times)
	}
	if i.Share != "" {
		if share, err = gatewaytest.ParseShare(i.Share); err != nil {
			return fault, 0, fmt.Errorf("share: %w", err)
		}
	}
	fault, err = gatewaytest.ParseFault(i.Fault)
	return fault, share, err
}

// inject queues the fault of an injection.
func (i Injection) inject(server *gatewaytest.Server) error {
	fault, share, err := i.parse()
	switch {
	case err != nil:
		return err
	case i.Share != "":
		server.InjectFaultAtRate(i.Operation, share, fault)
	default:
		server.InjectFault(i.Operation, i.Times, fault)
	}
	return nil
}

// injections returns the queue of a stand-in.
func injections(server *gatewaytest.Server) []Injection {
	all := []Injection{}
	for _, q := range server.Faults() {
		i := Injection{Operation: q.Operation, Times: q.Times, Fault: q.Fault.String()}
		if q.Share < 1 {
			i.Times, i.Share = 0, strconv.FormatFloat(q.Share*100, 'f', -1, 64)+"%"
		}
		all = append(all, i)
	}
	return all
}

// operations returns the operations of gatewaytest.
func operations() []gatewaytest.Operation {
	return []gatewaytest.Operation{
		gatewaytest.OpCoinNetworks, gatewaytest.OpCoinNetwork, gatewaytest.OpCoinNetworkBySymbol, gatewaytest.OpCoinNetworksOf, gatewaytest.OpExchangeRates,
		gatewaytest.OpBalance, gatewaytest.OpCreateInvoice, gatewaytest.OpWithdrawal, gatewaytest.AnyOperation,
	}
}

// joined returns names, separated by commas.
func joined[T ~string](of []T) string {
	var names []string
	for _, name := range of {
		names = append(names, string(name))
	}
	return strings.Join(names, ", ")
}
