package gatewaytest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A faultKind is a function of this package that returns a fault, by the fault's name.
type faultKind struct {
	name     string
	argument string // what follows "="; "" for nothing
	make     func(argument string) (Fault, error)
}

// injected is the message of a refusal that is injected by its name.
const injected = "refused as injected"

// faultKinds returns every fault of this package. No name begins with another one and
// a hyphen that comes before it.
func faultKinds() []faultKind {
	plain := func(f func() Fault) func(string) (Fault, error) {
		return func(string) (Fault, error) { return f(), nil }
	}
	kinds := []faultKind{
		{"commit-then-drop", "", plain(FaultCommitThenDrop)},
		{"drift", "", plain(FaultDrift)},
		{"edit", "POINTER=JSON", func(argument string) (Fault, error) {
			pointer, value, hasValue := strings.Cut(argument, "=")
			if !hasValue || !isPointer(pointer) {
				return Fault{}, errors.New("it takes a JSON pointer and a value, such as /result/fee=null")
			}
			return FaultEdit(pointer, value), nil
		}},
		{"empty", "STATUS", inRange(200, 999, FaultEmpty)},
		{"huge-body", "BYTES", inRange(0, math.MaxInt32, func(n int) Fault { return FaultHugeBody(int64(n)) })},
		{"other-case", "", plain(FaultOtherCase)},
		{"page", "STATUS", inRange(200, 999, FaultPage)},
		{"redirect", "STATUS", inRange(300, 399, func(n int) Fault { return FaultRedirect(n, "https://other.invalid/") })},
		{"refuse", "STATUS", inRange(200, 999, func(n int) Fault { return FaultRefuse(n, injected) })},
		{"reset", "", plain(FaultReset)},
		{"slow-body", "INTERVAL", func(argument string) (Fault, error) {
			interval, err := time.ParseDuration(argument)
			if err != nil || interval < 0 {
				return Fault{}, errors.New("it takes a duration such as 100ms")
			}
			return FaultSlowBody(interval), nil
		}},
		{"stall", "", plain(FaultStall)},
		{"truncate", "BYTES", inRange(0, math.MaxInt32, FaultTruncate)},
	}
	for _, f := range errorForms() {
		kinds = append(kinds, faultKind{"refuse-" + f.name, "STATUS", inRange(200, 999, func(n int) Fault {
			return FaultRefuseAs(f.form, n, injected)
		})})
	}
	return kinds
}

// inRange makes a fault from a number in a range.
func inRange(low, high int, f func(int) Fault) func(string) (Fault, error) {
	return func(argument string) (Fault, error) {
		n, err := strconv.Atoi(argument)
		if err != nil || n < low || n > high {
			return Fault{}, fmt.Errorf("it takes a number from %d to %d", low, high)
		}
		return f(n), nil
	}
}

// named returns the name of a fault with an argument.
func named(name string, argument any) string { return fmt.Sprintf("%s=%v", name, argument) }

// FaultNames returns the names of all faults as [ParseFault] has them, with what stands for
// their arguments: "commit-then-drop", "refuse=STATUS".
func FaultNames() []string {
	var names []string
	for _, kind := range faultKinds() {
		if kind.argument != "" {
			kind.name = named(kind.name, kind.argument)
		}
		names = append(names, kind.name)
	}
	return names
}

// ParseFault returns the fault of a name, which is that of [Fault.String]: "commit-then-drop",
// "refuse=503", "page=502", "slow-body=100ms", "edit=/result/fee=null". A refusal has a text of
// this package's, and a redirect leads to https://other.invalid/.
func ParseFault(name string) (Fault, error) {
	name, argument, given := strings.Cut(name, "=")
	for _, kind := range faultKinds() {
		if kind.name != name {
			continue
		}
		if given != (kind.argument != "") {
			return Fault{}, fmt.Errorf("write %s", strings.TrimSuffix(named(kind.name, kind.argument), "="))
		}
		fault, err := kind.make(argument)
		if err != nil {
			return Fault{}, fmt.Errorf("%s: %w", name, err)
		}
		return fault, nil
	}
	return Fault{}, fmt.Errorf("there is no such fault, but %s", strings.Join(FaultNames(), ", "))
}

// OrderFaultPrefix begins the identifier of an order that asks for a fault: the first
// invoice request of order "mock-commit-then-drop-17" meets [FaultCommitThenDrop], and
// that of "mock-refuse=503-17" a refusal, unless a fault is queued for it. What follows
// the name, after a hyphen, is any text, so that every order has its own. A person who
// tests a shop in a browser needs nothing else.
const OrderFaultPrefix = "mock-"

// orderFault returns the fault that an order asks for.
func orderFault(orderID string) (Fault, bool) {
	rest, asks := strings.CutPrefix(orderID, OrderFaultPrefix)
	if !asks {
		return Fault{}, false
	}
	for _, kind := range faultKinds() {
		after, ok := strings.CutPrefix(rest, kind.name)
		if !ok {
			continue
		}
		argument, hasArgument := strings.CutPrefix(after, "=")
		if hasArgument {
			argument, after, _ = strings.Cut(argument, "-")
			after = "-" + after
		}
		if hasArgument != (kind.argument != "") || after != "" && !strings.HasPrefix(after, "-") {
			continue
		}
		fault, err := kind.make(argument)
		return fault, err == nil
	}
	return Fault{}, false
}
