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

// A faultKind is a fault of gatewaytest by the name that it has here.
type faultKind struct {
	name     string
	argument string // what follows "=", for the help; "" for nothing
	make     func(argument string) (gatewaytest.Fault, error)
}

// faultKinds returns every fault of gatewaytest.
func faultKinds() []faultKind {
	plain := func(f func() gatewaytest.Fault) func(string) (gatewaytest.Fault, error) {
		return func(string) (gatewaytest.Fault, error) { return f(), nil }
	}
	return []faultKind{
		{"bad-gateway", "", plain(gatewaytest.FaultBadGateway)},
		{"commit-then-drop", "", plain(gatewaytest.FaultCommitThenDrop)},
		{"drift", "", plain(gatewaytest.FaultDrift)},
		{"drift-fields", "", plain(gatewaytest.FaultDriftFields)},
		{"drift-status", "", plain(gatewaytest.FaultDriftStatus)},
		{"huge-body", "BYTES", number(0, 1<<30, func(n int) gatewaytest.Fault { return gatewaytest.FaultHugeBody(int64(n)) })},
		{"malformed-json", "", plain(gatewaytest.FaultMalformedJSON)},
		{"redirect", "STATUS", number(300, 399, func(n int) gatewaytest.Fault { return gatewaytest.FaultRedirect(n, "https://other.invalid/") })},
		{"refuse", "STATUS", number(200, 999, func(n int) gatewaytest.Fault { return gatewaytest.FaultRefuse(n, "refused as injected") })},
		{"reset", "", plain(gatewaytest.FaultReset)},
		{"slow-body", "INTERVAL", func(argument string) (gatewaytest.Fault, error) {
			interval, err := time.ParseDuration(argument)
			if err != nil || interval < 0 {
				return gatewaytest.Fault{}, errors.New("it takes a duration such as 100ms")
			}
			return gatewaytest.FaultSlowBody(interval), nil
		}},
		{"stall", "", plain(gatewaytest.FaultStall)},
		{"truncate", "BYTES", number(0, 1<<30, gatewaytest.FaultTruncate)},
	}
}

// number makes a fault from a number in a range.
func number(low, high int, f func(int) gatewaytest.Fault) func(string) (gatewaytest.Fault, error) {
	return func(argument string) (gatewaytest.Fault, error) {
		n, err := strconv.Atoi(argument)
		if err != nil || n < low || n > high {
			return gatewaytest.Fault{}, fmt.Errorf("it takes a number from %d to %d", low, high)
		}
		return f(n), nil
	}
}

// FaultNames returns the names of all faults, with what follows them.
func FaultNames() []string {
	var names []string
	for _, kind := range faultKinds() {
		if kind.argument != "" {
			kind.name += "=" + kind.argument
		}
		names = append(names, kind.name)
	}
	return names
}

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
	name, argument, given := strings.Cut(i.Fault, "=")
	for _, kind := range faultKinds() {
		switch {
		case kind.name != name:
		case given != (kind.argument != ""):
			return gatewaytest.Fault{}, fmt.Errorf("write %s", strings.TrimSuffix(kind.name+"="+kind.argument, "="))
		default:
			f, err := kind.make(argument)
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			return f, err
		}
	}
	return gatewaytest.Fault{}, fmt.Errorf("there is no such fault, but %s", strings.Join(FaultNames(), ", "))
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
