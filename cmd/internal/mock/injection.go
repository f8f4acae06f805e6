package mock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
)

// An Injection is a fault for the next requests of an operation, for a share of them, or for
// some time, as JSON too.
type Injection struct {
	Operation gatewaytest.Operation `json:"operation"`
	Times     int                   `json:"times,omitempty"` // of requests; -1 for all
	Share     string                `json:"share,omitempty"` // of the requests, such as "5%", in the place of Times
	For       string                `json:"for,omitempty"`   // a duration by the clock of the mock, such as "30s", likewise
	Fault     string                `json:"fault"`           // such as "commit-then-drop" or "refuse=503"
}

// ParseInjection parses the form operation:times:fault, such as
// "create_invoice:1:commit-then-drop". The times may be "all", a share such as
// "5%", or a duration such as "30s".
func ParseInjection(text string) (i Injection, err error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return i, errors.New("write it like create_invoice:1:commit-then-drop, create_invoice:5%:refuse=503 or any:30s:page=502")
	}
	i = Injection{Operation: gatewaytest.Operation(parts[0]), Fault: parts[2]}
	switch {
	case parts[1] == "all":
		i.Times = -1
	case strings.HasSuffix(parts[1], "%"):
		i.Share = parts[1]
	default:
		if i.Times, err = strconv.Atoi(parts[1]); err != nil {
			i.For = parts[1]
		}
		if _, wrong := duration(i.For); i.For != "" && wrong != nil {
			return i, errors.New("TIMES is not a number of requests, all, a share such as 5% or a duration such as 30s")
		}
	}
	return i, i.inject(nil)
}

// inject queues the fault of an injection at a stand-in, unless it is nil, or returns what is
// wrong with the injection.
func (i Injection) inject(server *gatewaytest.Server) (err error) {
	var share float64
	var within time.Duration
	switch {
	case !slices.Contains(operations(), i.Operation):
		return fmt.Errorf("there is no such operation, but %s", joined(operations()))
	case i.Share != "" && i.Times != 0 || i.For != "" && (i.Times != 0 || i.Share != ""):
		return errors.New("times, share and for exclude each other")
	case i.Share != "":
		if share, err = gatewaytest.ParseShare(i.Share); err != nil {
			return fmt.Errorf("share: %w", err)
		}
	case i.For != "":
		if within, err = duration(i.For); err != nil {
			return fmt.Errorf("for: %w", err)
		}
	case i.Times == 0 || i.Times < -1:
		return fmt.Errorf("times is %d, not a number of requests nor -1 for all", i.Times)
	}
	fault, err := gatewaytest.ParseFault(i.Fault)
	switch {
	case err != nil || server == nil:
		return err
	case i.Share != "":
		server.InjectFaultAtRate(i.Operation, share, fault)
	case i.For != "":
		server.InjectFaultFor(i.Operation, within, fault)
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
		if !q.Until.IsZero() {
			i.Times, i.For = 0, max(0, q.Until.Sub(server.Now())).String()
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
