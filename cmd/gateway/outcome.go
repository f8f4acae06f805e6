package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cryptogw/gateway"
)

// Exit codes. cmd/README.md says what each means.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotSent     = 3
	exitRefused     = 4
	exitUnknown     = 5
	exitLeft        = 6
	exitDiffers     = 7
	exitConflict    = 8
	exitInterrupted = 130
)

// An exitError ends a command that has said everything. It is the exit code.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// errLeft ends a command after which orders are pending.
var errLeft = errors.New("orders are pending")

// errDiffers ends a probe that found a difference.
var errDiffers = errors.New("a response differs from the documentation, or cannot be read")

// An invoiceError is the failure of an invoice.
type invoiceError struct{ error }

func (e *invoiceError) Unwrap() error { return e.error }

// exitCode returns the exit code for the error of a command, which may be nil.
func exitCode(err error) int {
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	outcome := gateway.OutcomeNotSent // of everything but an invoice
	if is[*invoiceError](err) {
		outcome = gateway.OutcomeOf(err)
	}
	switch {
	case err == nil:
		return exitDone
	case is[*usageError](err):
		return exitUsage
	case errors.Is(err, errDiffers):
		return exitDiffers
	case errors.Is(err, errLeft):
		return exitLeft
	case outcome == gateway.OutcomeUnknown:
		return exitUnknown
	case outcome == gateway.OutcomeConflict:
		return exitConflict
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, gateway.ErrInvalidArgument):
		return exitUsage
	case errors.Is(err, gateway.ErrWithdrawalFailed):
		return exitLeft
	case is[*gateway.APIError](err):
		return exitRefused
	case is[*gateway.TransportError](err) && !is[*gateway.WaitError](err):
		return exitNotSent
	default:
		return exitFailed
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isAbout reports whether an error refuses the argument, option or variable of that name.
func isAbout(err error, name string) bool {
	refused, ok := errors.AsType[*gateway.ArgumentError](err)
	return ok && refused.Name == name
}

// report prints an error on stderr, with what to do next.
func (s *session) report(err error) {
	if err == errLeft || is[exitError](err) { // the result says so
		return
	}
	text := strings.TrimSpace(err.Error())
	if errors.Is(err, gateway.ErrMissingAPIKey) {
		text = "This needs the API key." // the error names options of Go
	}
	for line := range strings.SplitSeq(text, "\n") {
		s.tell("%s", line)
	}
	if conflict, ok := errors.AsType[*gateway.OrderConflictError](err); ok && conflict.Invoice != nil {
		s.tell("Its invoice: %s", escaped(string(conflict.Invoice.Raw)))
	}
	if text := advice(err, exitCode(err)); text != "" {
		s.tell("%s", text)
	}
}

// advice says what to do next; "" for nothing.
func advice(err error, code int) string {
	switch {
	case code == exitUnknown && errors.Is(err, gateway.ErrStillSending):
		return "This run ends before the outcome of the invoice is known. Look the order up before you run this again; gateway orders resolve records what you found."
	case code == exitUnknown && (gateway.SafeToRetry(err) || errors.Is(err, gateway.ErrOrderInFlight)):
		return "This run has sent nothing. Run it again."
	case code == exitUnknown:
		return "The invoice may exist. Look the order up before you run this again; gateway orders resolve records what you found."
	case code == exitConflict:
		return "This run has sent nothing. Use that invoice, or another --order."
	case code == exitUsage && isAbout(err, envBaseURL):
		return "To try the command without a gateway, start a stand-in: gateway mock prints the variables to set."
	case code == exitUsage && errors.Is(err, gateway.ErrMissingAPIKey):
		return "Set " + envAPIKey + " or " + envAPIKeyFile + "; the key is never an argument."
	case errors.Is(err, gateway.ErrRateLimited):
		return "Too many requests. Run it again later."
	default:
		return ""
	}
}
