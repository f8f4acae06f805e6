package gateway

import (
	"errors"
	"fmt"
	"iter"
)

// Outcome is what is known of the invoice of one call. The zero value is
// [OutcomeUnknown], the safe one.
type Outcome int8

const (
	// OutcomeUnknown: the invoice may or may not exist. Look it up before sending it
	// again.
	OutcomeUnknown Outcome = iota
	// OutcomeSucceeded: the invoice was created.
	OutcomeSucceeded
	// OutcomeNotSent: this call sent no byte of the invoice. It implies nothing about
	// an earlier call for the order: an error that matches [ErrOrderOutcomeUnknown]
	// has this outcome too.
	OutcomeNotSent
	// OutcomeRejected: the service refused the request. This call created no
	// invoice.
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

// OutcomeOf returns what an error means for the invoice of a [Client.CreateInvoice]. It
// is [OutcomeSucceeded] for nil, [OutcomeNotSent] for an error of any other call of this
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

// refusesInvoice reports whether status proves that no invoice was created. A code
// that is not listed proves nothing.
func refusesInvoice(status int) bool {
	switch {
	case status >= 400 && status <= 407, status >= 409 && status <= 417:
		return true
	}
	switch status {
	case 421, 422, 425, 426, 428, 429, 431, 451:
		return true
	}
	return false
}

// SafeToRetry reports whether the same call may be made again: it cannot double an
// invoice, and it may succeed. It is false for nil, for an error of another package
// and for a call without a response whose context has ended. Of several errors of this
// package that are joined or wrapped together, it must be true of each.
func SafeToRetry(err error) bool {
	found := false
	for own := range callErrors(err) {
		if !own.isRetryable() {
			return false
		}
		found = true
	}
	return found && !errors.Is(err, ErrOutcomeUnknown)
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
