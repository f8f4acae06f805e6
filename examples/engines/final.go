// Package engines shows how an invoice is created from a job of an engine that runs
// jobs again: Temporal and asynq. docs/engines.md describes it.
package engines

import (
	"errors"

	"github.com/cryptogw/gateway"
)

// final reports whether an engine must not, or need not, run a job again after this
// error of CreateInvoice.
func final(err error) bool {
	switch gateway.OutcomeOf(err) {
	case gateway.OutcomeUnknown: // the invoice may exist: look it up first
		return true
	case gateway.OutcomeRejected: // the service refuses it again, unless it was busy
		return !gateway.SafeToRetry(err)
	case gateway.OutcomeNotSent: // refused by the guard or by a check; anything else may pass
		return errors.Is(err, gateway.ErrInvalidArgument) && !errors.Is(err, gateway.ErrOrderInFlight)
	default:
		return false
	}
}
