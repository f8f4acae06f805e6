package gateway

import (
	"fmt"
	"reflect"

	"github.com/cryptogw/gateway/internal/caller"
)

// Outcome is what is known of the invoice of an order, after a call for it. The zero value is
// [OutcomeUnknown], the safe one.
type Outcome int8

const (
	// OutcomeUnknown: the invoice may exist, or exists for another request
	// ([OrderConflictError]), or the [OrderGuard] cannot say.
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
// package, and [OutcomeUnknown] for an error of another package. Of several errors that are
// joined or wrapped together, the least certain counts: [OutcomeUnknown], then
// [OutcomeRejected], then [OutcomeNotSent]. So a rejection that is joined with an error of
// another package is unknown: that one may be about another invoice. To add words to an error,
// wrap it alone. A nil pointer, and an error that cannot be walked through, prove nothing.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return OutcomeSucceeded
	}
	found := map[Outcome]bool{}
	examine(err, func(e error, own callError) {
		switch {
		case own != nil:
			found[own.outcome()] = true
		case e == ErrNotSent:
			found[OutcomeNotSent] = true
		default:
			found[OutcomeUnknown] = true
		}
	})
	switch {
	case found[OutcomeUnknown]:
		return OutcomeUnknown
	case found[OutcomeRejected]:
		return OutcomeRejected
	default:
		return OutcomeNotSent
	}
}

// examine shows the errors of this package in a tree, and those of others that wrap nothing, for
// which own is nil. What an error of this package wraps is not shown: it decides alone. Where the
// tree cannot be walked through, an error of neither kind is shown.
func examine(err error, show func(e error, own callError)) {
	leaves, whole := caller.Leaves(err, func(e error) bool {
		_, own := e.(callError)
		return own
	})
	if !whole {
		show(nil, nil)
	}
	for _, e := range leaves {
		own, _ := e.(callError)
		if own != nil && reflect.ValueOf(own).IsNil() {
			own = nil // its methods would panic
		}
		show(e, own)
	}
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
// invoice, if what [WithIdempotentOrders] declares is true, and it may succeed. It is false for
// nil, for an error of another package and for a call without a response whose context has ended,
// unless it was asking the [OrderGuard], or by WithIdempotentOrders the order may be repeated. Of
// several errors that are joined or wrapped together, it must be true of each.
//
// All of this holds if no proxy or mesh on the way delivers a POST twice: one that does makes two
// invoices, or turns a success into a refusal.
func SafeToRetry(err error) bool {
	safe := err != nil
	examine(err, func(_ error, own callError) { safe = safe && own != nil && own.isRetryable() })
	return safe
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
