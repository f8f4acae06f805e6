package gateway

import (
	"errors"
	"fmt"
	"iter"
)

// Outcome is what is known of the invoice of an order, after a call for it. The zero value is
// [OutcomeUnknown], the safe one.
type Outcome int8

const (
	// OutcomeUnknown: the invoice may exist, or exists for another request
	// ([OrderConflictError]), or the [OrderGuard] cannot say. If [SafeToRetry] is true, call
	// again; otherwise look the order up before anything else.
	OutcomeUnknown Outcome = iota
	// OutcomeSucceeded: the invoice was created, by this call or by an earlier one.
	OutcomeSucceeded
	// OutcomeNotSent: this call sent no byte of the invoice, and the guard knows of no
	// invoice of the order.
	OutcomeNotSent
	// OutcomeRejected: the service refused the request. This call created no invoice, and
	// the guard knows of none.
	OutcomeRejected
)

// String returns the outcome in words: "unknown", "succeeded", "not sent" or
// "rejected".
func (o Outcome) String() string {
	switch o {
	case OutcomeUnknown:
		return "unknown"
	case OutcomeSucceeded:
		return "succeeded"
	case OutcomeNotSent:
		return "not sent"
	case OutcomeRejected:
		return "rejected"
	default:
		return fmt.Sprintf("Outcome(%d)", int8(o))
	}
}

// A callError is an error of this package. It alone decides the outcome of its call:
// other errors in its chain prove nothing.
type callError interface {
	error
	outcome() Outcome
	isRetryable() bool // the same call may be made again
}

// OutcomeOf returns what an error of [Client.CreateInvoice] means for the order. It is
// [OutcomeSucceeded] for nil, [OutcomeNotSent] for an error of any other call of this
// package, and [OutcomeUnknown] for an error of another package. Of several errors of
// this package that are joined or wrapped together, the least certain counts:
// [OutcomeUnknown], then [OutcomeRejected], then [OutcomeNotSent].
func OutcomeOf(err error) Outcome {
	if err == nil {
		return OutcomeSucceeded
	}
	outcomes := map[Outcome]bool{}
	for own := range callErrors(err) {
		outcomes[own.outcome()] = true
	}
	switch {
	case errors.Is(err, ErrOutcomeUnknown), outcomes[OutcomeUnknown]:
		return OutcomeUnknown
	case outcomes[OutcomeRejected]:
		return OutcomeRejected
	case outcomes[OutcomeNotSent], errors.Is(err, ErrNotSent):
		return OutcomeNotSent
	default:
		return OutcomeUnknown
	}
}

// callErrors yields the errors of this package in a tree of errors. What one of them
// wraps is not yielded: it decides alone.
func callErrors(err error) iter.Seq[callError] {
	return func(yield func(callError) bool) { walkCallErrors(err, yield) }
}

func walkCallErrors(err error, yield func(callError) bool) bool {
	if own, ok := err.(callError); ok {
		return yield(own)
	}
	switch wrapping := err.(type) {
	case interface{ Unwrap() error }:
		if inner := wrapping.Unwrap(); inner != nil {
			return walkCallErrors(inner, yield)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range wrapping.Unwrap() {
			if inner != nil && !walkCallErrors(inner, yield) {
				return false
			}
		}
	}
	return true
}

// refusesInvoice reports whether a status proves that no invoice was created, in the documented
// envelope or in another body. Most that do are decided before a service looks at the body. Of
// 400, 403 and 422 an intermediary may have made the response, on the way back from a service
// that has created an invoice. A status that is not listed proves nothing: 409 may be the
// response to the second delivery of a request that an intermediary has repeated.
func refusesInvoice(status int, enveloped bool) bool {
	switch status {
	case 400, 403, 422:
		return enveloped
	case 401, 402, 404, 405, 407, 410, 411, 413, 414, 415, 421, 425, 426, 429, 431, 451:
		return true
	default:
		return false
	}
}

// SafeToRetry reports whether the same call may be made again: it cannot double an
// invoice, if what [WithRepeatableOrders] declares is true, and it may succeed. It is false for
// nil, for an error of another package and for a call without a response whose context has ended,
// unless it was asking the [OrderGuard], or by WithRepeatableOrders the order may be repeated. Of several errors of this package that are joined or wrapped together, it must be
// true of each.
func SafeToRetry(err error) bool {
	found, repeatable := false, false
	for own := range callErrors(err) {
		if !own.isRetryable() {
			return false
		}
		found = true
		repeatable = repeatable || errors.Is(own, ErrOutcomeUnknown)
	}
	return found && (repeatable || !errors.Is(err, ErrOutcomeUnknown))
}

// outcomeWithoutProof is the outcome of an error that proves nothing: of a call that
// sends no invoice it is [OutcomeNotSent]. An error without an operation was made by
// somebody else.
func outcomeWithoutProof(op string) Outcome {
	if op == OpCreateInvoice || op == "" {
		return OutcomeUnknown
	}
	return OutcomeNotSent
}
