// Package engines shows how an invoice is created from a job of an engine that runs
// jobs again: Temporal and asynq. The README of rivergateway describes it.
package engines

import (
	"errors"

	"github.com/cryptogw/gateway"
)

// final reports whether an engine must not, or need not, run a job again after this
// error of CreateInvoice.
func final(err error) bool {
	switch {
	case err == nil, gateway.SafeToRetry(err):
		return false
	case gateway.OutcomeOf(err) == gateway.OutcomeNotSent: // what is not an argument may pass
		return errors.Is(err, gateway.ErrInvalidArgument)
	default: // the invoice may exist, or the service refuses it again
		return true
	}
}
