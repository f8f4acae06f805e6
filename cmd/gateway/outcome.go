package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/probe"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2 // a crash has another code: see start
	exitNotSent     = 3
	exitRefused     = 4
	exitUnknown     = 5
	exitWithdrawal  = 6
	exitDiffers     = 7
	exitInterrupted = 130
)

// An exit is an exit code and what it means.
type exit struct {
	code    int
	meaning string // in a few words, for JSON and tables
	text    string // for the help
}

// exits returns all exit codes, in order.
func exits() []exit {
	return []exit{
		{exitDone, "done", "The command did what it is for. The invoice exists."},
		{exitFailed, "failed", "The response was not understood, the time of a wait was over, or the output could not be\nwritten. No invoice was created, unless the message has one."},
		{exitUsage, "usage", "An argument or a setting is wrong, or the key is missing. Nothing was sent."},
		{exitNotSent, "nothing was sent", "No connection, or no response to a call that only reads. No invoice was sent: try again,\nand correct the URL if its host does not exist or has a wrong certificate."},
		{exitRefused, "refused by the service", "The service responded with an error. No invoice was created. After status 429 run it again\nlater; see below."},
		{exitUnknown, "outcome unknown", "The invoice may exist or not, or exists for another request. LOOK THE ORDER UP before you\nrun the command again, unless \"safeToRetry\" is true: another process is sending the\norder, or its record in -orders could not be read, and this one has sent nothing."},
		{exitWithdrawal, "withdrawal failed", "A withdrawal that was waited for has the status FAILED."},
		{exitDiffers, "differs from the interface", "Only of probe: the gateway differs from what is documented."},
		{exitInterrupted, "interrupted", "Ctrl-C. No invoice was sent; one that may have been sent has the exit code 5, and a\nsecond Ctrl-C too."},
	}
}

// exitCode returns the exit code for the error of a command, which may be nil.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*probe.DifferenceError](err); ok {
		return exitDiffers
	}
	if made, ok := errors.AsType[*invoiceError](err); ok && gateway.OutcomeOf(made.error) == gateway.OutcomeUnknown {
		return exitUnknown
	}
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, gateway.ErrInvalidArgument):
		return exitUsage
	}
	return exitOfCall(err)
}

// exitOfCall returns the exit code for the error of a call that was made.
func exitOfCall(err error) int {
	if _, ok := errors.AsType[*gateway.APIError](err); ok {
		return exitRefused
	}
	timeout := errors.Is(err, gateway.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
	if _, ok := errors.AsType[*gateway.WaitError](err); ok && timeout {
		return exitFailed // the time was over, whatever happened then
	}
	if last, ok := errors.AsType[*gateway.TransportError](err); ok && gateway.OutcomeOf(err) == gateway.OutcomeNotSent &&
		(timeout || isBeforeSending(last.Phase) || errors.Is(err, gateway.ErrNotSent) || gateway.SafeToRetry(err)) {
		return exitNotSent
	}
	if _, ok := errors.AsType[*gateway.WithdrawalFailedError](err); ok {
		return exitWithdrawal
	}
	return exitFailed
}

// isBeforeSending reports whether an attempt that came as far as a phase sent nothing.
func isBeforeSending(phase gateway.Phase) bool {
	switch phase {
	case gateway.PhaseStart, gateway.PhaseDial, gateway.PhaseProxy, gateway.PhaseTLS:
		return true
	default:
		return false
	}
}

// A usageError is a mistake in the arguments or settings. Nothing was sent.
type usageError struct {
	text string
	see  string // what to run for more, without the name of the command; "" for nothing
}

func (e *usageError) Error() string { return e.text }

// A failure is an error as JSON, on stderr. No member is ever renamed or redefined.
type failure struct {
	Error       string `json:"error"`       // what went wrong
	ExitCode    int    `json:"exitCode"`    // of the process
	Meaning     string `json:"meaning"`     // of the exit code, as in the table of `gateway help outcomes`
	Outcome     string `json:"outcome"`     // of an invoice; "" for any other command
	Status      int    `json:"status"`      // the HTTP status of a refusal; 0 for none
	SafeToRetry bool   `json:"safeToRetry"` // whether the same call may be made again, and may succeed
}

// reportError prints an error on stderr: as text with what to do next, or as JSON.
func (s *session) reportError(err error) {
	code := exitCode(err)
	if s.format == formatJSON {
		f := failure{Error: inTermsOfFlags(err.Error()), ExitCode: code, Meaning: meaning(code), SafeToRetry: gateway.SafeToRetry(err)}
		if made, ok := errors.AsType[*invoiceError](err); ok {
			f.Outcome = gateway.OutcomeOf(made.error).String()
		}
		if refusal, ok := errors.AsType[*gateway.APIError](err); ok {
			f.Status = refusal.StatusCode
		}
		_ = writeJSON(s.err, f) // there is nowhere left to report it
		return
	}
	text := ""
	for line := range strings.SplitSeq(strings.TrimSpace(inTermsOfFlags(err.Error())), "\n") {
		text += printable(strings.ReplaceAll(line, "\t", "    ")) + "\n"
	}
	if wrong, ok := errors.AsType[*usageError](err); ok && wrong.see != "" {
		text += fmt.Sprintf("See: gateway %s\n", wrong.see)
	}
	if errors.Is(err, gateway.ErrMissingAPIKey) && code == exitUsage {
		text += fmt.Sprintf("Set %s or %s; the key is never an argument.\n", envAPIKey, envAPIKeyFile)
	}
	if code == exitUnknown {
		text += advice(err) + "\n"
	}
	if refusal, ok := errors.AsType[*gateway.APIError](err); ok && errors.Is(err, gateway.ErrRateLimited) {
		text += fmt.Sprintf("Too many requests. Run it again after %v.\n", cmp.Or(refusal.RetryAfter, time.Minute))
	}
	_, _ = io.WriteString(s.err, text)
}

// inTermsOfFlags returns an error of the client with the flags and variables in the place of
// its options.
func inTermsOfFlags(text string) string {
	return strings.NewReplacer(
		"give it to New, WithAPIKeySource or WithAPIKey", "set "+envAPIKey+" or "+envAPIKeyFile,
		"look it up, then use AllowResubmit if there is none", "look it up, then use -resubmit if there is none",
		"or with WithPlainHTTP", "or with "+envPlainHTTP+"=1",
		" or that of WithSuccessMessage", "",
	).Replace(text)
}

// advice returns what to do after an invoice whose outcome is unknown.
func advice(err error) string {
	switch {
	case gateway.SafeToRetry(err):
		return "This run has sent nothing. Run it again."
	case errors.Is(err, gateway.ErrOrderInFlight):
		return "This run has sent nothing. Run it again, without -resubmit."
	case errors.Is(err, gateway.ErrOrderConflict):
		return "This run has sent nothing. Use that invoice, or another -order."
	case errors.Is(err, gateway.ErrOrderOutcomeUnknown):
		return "Look the order up. If it has no invoice, run this again with -resubmit."
	default:
		return "Do not run this again before you have looked the order up."
	}
}

// meaning returns the meaning of an exit code.
func meaning(code int) string {
	for _, e := range exits() {
		if e.code == code {
			return e.meaning
		}
	}
	return ""
}
