package gateway

import (
	"fmt"
	"slices"
)

// Outcome is what is known of the invoice of an order, after a call for it. The zero value is
// [OutcomeUnknown], the safe one.
type Outcome int8

const (
	// OutcomeUnknown: the invoice may exist, or the [OrderGuard] cannot say.
	OutcomeUnknown Outcome = iota
	// OutcomeSucceeded: the invoice was created, by this call or by an earlier one.
	OutcomeSucceeded
	// OutcomeNotSent: this call sent no byte of the invoice, and the guard knows of no
	// invoice of the order.
	OutcomeNotSent
	// OutcomeRejected: the service refused the request. This call created no invoice, and
	// the guard knows of none.
	OutcomeRejected
	// OutcomeConflict: the order has an invoice, for another request: see [OrderConflictError].
	OutcomeConflict
)

var outcomes = [...]string{
	OutcomeUnknown: "unknown", OutcomeSucceeded: "succeeded", OutcomeNotSent: "not sent",
	OutcomeRejected: "rejected", OutcomeConflict: "conflict",
}

// String returns the outcome in words: "unknown", "succeeded", "not sent", "rejected" or
// "conflict".
func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomes) {
		return fmt.Sprintf("Outcome(%d)", int8(o))
	}
	return outcomes[o]
}

// MarshalText returns the text of String. An outcome that is none of the constants is an error.
func (o Outcome) MarshalText() ([]byte, error) {
	if o < 0 || int(o) >= len(outcomes) {
		return nil, fmt.Errorf("gateway: %v is no outcome", o)
	}
	return []byte(outcomes[o]), nil
}

// UnmarshalText sets o to the outcome of which text is the String.
func (o *Outcome) UnmarshalText(text []byte) error {
	i := slices.Index(outcomes[:], string(text))
	if i < 0 {
		return fmt.Errorf("gateway: %q is no outcome", text)
	}
	*o = Outcome(i) // #nosec G115 -- one of the outcomes
	return nil
}

// A decision is what an error means for its call. It is made once, where the error is made. The
// zero decision is the safe one.
type decision struct {
	outcome   Outcome // of the order; [OutcomeNotSent] of a call that creates no invoice
	transient bool    // the failure is temporary, which says nothing about safety
	retryable bool    // the same call may be made again
}

func (d decision) decided() decision { return d }

// A callError is an error of this package. It alone decides the outcome of its call:
// other errors in its chain prove nothing.
type callError interface {
	error
	decided() decision
}

// OutcomeOf returns what an error of [Client.CreateInvoice] means for the order. It is
// [OutcomeSucceeded] for nil, [OutcomeNotSent] for an error of another method, and
// [OutcomeUnknown] for an error that no call of this package has returned. Of joined errors the least
// certain counts: [OutcomeUnknown], then [OutcomeConflict], [OutcomeRejected], [OutcomeNotSent].
func OutcomeOf(err error) Outcome {
	if err == nil {
		return OutcomeSucceeded
	}
	return decisionOf(err).outcome
}

// SafeToRetry reports whether the same call may be made again: it cannot double an invoice, and it
// may succeed. It is false for nil, for an error that no call of this package has returned, and for
// a call whose context has ended, unless it was asking the [OrderGuard] or [WithIdempotentOrders] permits
// it. Of joined errors it must be true of each.
//
// This holds if no proxy on the way delivers a POST twice, and if what [WithIdempotentOrders]
// declares is true.
func SafeToRetry(err error) bool { return decisionOf(err).retryable }

// decisionOf returns the decision of an error of this package, and the least certain one of
// several that err wraps. What an error of this package wraps does not count, and an error of
// another package that wraps nothing decides nothing.
func decisionOf(err error) (all decision) {
	switch err := err.(type) {
	case callError:
		return err.decided()
	case interface{ Unwrap() error }:
		return decisionOf(err.Unwrap())
	case interface{ Unwrap() []error }:
		for i, inner := range err.Unwrap() {
			one := decisionOf(inner)
			if i == 0 {
				all = one
				continue
			}
			if certainty(one.outcome) < certainty(all.outcome) {
				all.outcome = one.outcome
			}
			all.retryable = all.retryable && one.retryable
		}
	}
	return all
}

// certainty orders the outcomes of errors, the least certain one first.
func certainty(o Outcome) int {
	return slices.Index([]Outcome{OutcomeUnknown, OutcomeConflict, OutcomeRejected, OutcomeNotSent}, o)
}
