package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/cmd/internal/probe"
)

// Exit codes beside those of package cli.
const (
	exitNotSent     = 3
	exitRefused     = 4
	exitUnknown     = 5
	exitWithdrawal  = 6
	exitDiffers     = 7
	exitConflict    = 8
	exitInterrupted = 130
)

// exits returns all exit codes, in order.
func exits() []cli.Exit {
	return []cli.Exit{
		{Code: cli.ExitDone, Meaning: "done", Text: "The command did what it is for. The invoice exists."},
		{Code: cli.ExitFailed, Meaning: "failed", Text: "The response was not understood, the time of a wait was over, or the output could not be\nwritten. No invoice was created, unless the message has one."},
		{Code: cli.ExitUsage, Meaning: "usage", Text: "An argument or a setting is wrong, or the key is missing. Nothing was sent."},
		{Code: exitNotSent, Meaning: "nothing was sent", Text: "No connection, or no response to a call that only reads. No invoice was sent: try again,\nand correct the URL if its host does not exist or has a wrong certificate."},
		{Code: exitRefused, Meaning: "refused by the service", Text: "The service responded with an error. No invoice was created. After status 429 run it again\nlater; see below."},
		{Code: exitUnknown, Meaning: "outcome unknown", Text: "The invoice may exist or not. LOOK THE ORDER UP before you run the command again,\nunless \"safeToRetry\" is true: another process is sending the order, or its record in\n--orders could not be read, and this one has sent nothing."},
		{Code: exitWithdrawal, Meaning: "withdrawal failed", Text: "A withdrawal that was waited for has the status FAILED, or another final one than COMPLETED."},
		{Code: exitDiffers, Meaning: "differs from the interface", Text: "Only of probe: the gateway differs from what is documented."},
		{Code: exitConflict, Meaning: "another request", Text: "The order has an invoice for another request, which the message has. Nothing was sent: use\nthat invoice, or another --order."},
		{Code: exitInterrupted, Meaning: "interrupted", Text: "Ctrl-C. No invoice was sent; one that may have been sent has the exit code 5, and a\nsecond Ctrl-C too."},
	}
}

// outcomes is the help of the exit codes.
func outcomes() *cobra.Command {
	return cli.Exits("outcomes", "The exit code is the outcome:", `
Stdout has the result, or nothing after an error; a withdrawal that failed, one that was
still waited for, and what could be read of a balance are results too. Stderr has the error,
and what was left out of a result. With -o json both are JSON: {"error", "exitCode",
"meaning", "outcome", "status", "safeToRetry"} and {"leftOut"}.

Status 429 is a refusal for now (code 4): too many requests. Run the command again after the
time that it names, or after a minute; ask less often, with one process and --every.

After a code that is not listed, such as that of a signal or a crash, an invoice may
exist: it counts as 5. In a shell:

  code=0
  gateway invoice create --order A-17 --price 10.50 --amount 10.50 || code=$?
  case $code in
    0)   echo "the invoice exists" ;;
    3)   echo "nothing was sent: try again later" ;;
    2|4) echo "correct it, or wait after status 429; no invoice exists" ;;
    8)   echo "the invoice of the order is for another request: use that, or another order" ;;
    130) echo "interrupted before anything was sent" ;;
    *)   echo "look the order up before anything else" ;;
  esac
`, exits())
}

// exitCode returns the exit code for the error of a command, which may be nil.
func exitCode(err error) int {
	if err == nil {
		return cli.ExitDone
	}
	if _, ok := errors.AsType[*cli.UsageError](err); ok {
		return cli.ExitUsage
	}
	if _, ok := errors.AsType[*probe.DifferenceError](err); ok {
		return exitDiffers
	}
	made, isInvoice := errors.AsType[*invoiceError](err)
	switch {
	case isInvoice && gateway.OutcomeOf(made.error) == gateway.OutcomeUnknown:
		return exitUnknown
	case isInvoice && gateway.OutcomeOf(made.error) == gateway.OutcomeConflict:
		return exitConflict
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, gateway.ErrInvalidArgument):
		return cli.ExitUsage
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
		return cli.ExitFailed // the time was over, whatever happened then
	}
	_, isInvoice := errors.AsType[*invoiceError](err) // which was not sent
	if last, ok := errors.AsType[*gateway.TransportError](err); ok && (isInvoice || timeout || isBeforeSending(last.Phase) || gateway.SafeToRetry(err)) {
		return exitNotSent
	}
	_, failed := errors.AsType[*gateway.WithdrawalFailedError](err)
	if wait, ok := errors.AsType[*gateway.WaitError](err); ok && wait.Status == gateway.WithdrawalFailed {
		failed = true // of which the rest could not be read
	}
	if failed || errors.Is(err, gateway.ErrFinalStatus) {
		return exitWithdrawal
	}
	return cli.ExitFailed
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

// A failure is an error as JSON, on stderr. No member is ever renamed or redefined.
type failure struct {
	Error       string `json:"error"`       // what went wrong
	ExitCode    int    `json:"exitCode"`    // of the process
	Meaning     string `json:"meaning"`     // of the exit code, as in the table of `gateway help outcomes`
	Outcome     string `json:"outcome"`     // of an invoice; "" for any other command
	Status      int    `json:"status"`      // the HTTP status of the last response; 0 for none
	SafeToRetry bool   `json:"safeToRetry"` // whether the same call may be made again, and may succeed
}

// reportError prints an error on stderr: as text with what to do next, or as JSON.
func (s *session) reportError(err error) {
	code := exitCode(err)
	if s.format == cli.FormatJSON {
		f := failure{Error: inTermsOfFlags(err.Error()), ExitCode: code, Meaning: cli.Meaning(exits(), code), SafeToRetry: gateway.SafeToRetry(err)}
		if made, ok := errors.AsType[*invoiceError](err); ok {
			f.Outcome = gateway.OutcomeOf(made.error).String()
		}
		if refusal, ok := errors.AsType[*gateway.APIError](err); ok {
			f.Status = refusal.StatusCode
		} else if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
			f.Status = unknown.StatusCode
		}
		_ = cli.EncodeJSON(s.Err, f, "  ") // there is nowhere left to report it
		return
	}
	var next []string
	if wrong, ok := errors.AsType[*cli.UsageError](err); ok && wrong.See != "" {
		next = append(next, "See: "+wrong.See)
	}
	if errors.Is(err, gateway.ErrMissingAPIKey) && code == cli.ExitUsage {
		next = append(next, fmt.Sprintf("Set %s or %s; the key is never an argument.", envAPIKey, envAPIKeyFile))
	}
	switch code {
	case exitUnknown:
		next = append(next, advice(err))
	case exitConflict:
		next = append(next, "This run has sent nothing. Use that invoice, or another --order.")
	}
	if refusal, ok := errors.AsType[*gateway.APIError](err); ok && errors.Is(err, gateway.ErrRateLimited) {
		next = append(next, fmt.Sprintf("Too many requests. Run it again after %v.", cmp.Or(refusal.RetryAfter, time.Minute)))
	}
	s.WriteError(inTermsOfFlags(err.Error()), next...)
}

// inTermsOfFlags returns an error of the client with the flags and variables in the place of
// its options.
func inTermsOfFlags(text string) string {
	return strings.NewReplacer(
		"give it to New, WithAPIKeySource or WithAPIKey", "set "+envAPIKey+" or "+envAPIKeyFile,
		"look it up, then use AllowResubmit if there is none", "look it up, then use --resubmit if there is none",
		"or with WithPlainHTTP", "or with "+envPlainHTTP+"=1",
		"set another one by WithSuccessMessage", "set another one in the file of "+envProfile,
		"by WaitOptions.Final or WithProfile", "by --final or the file of "+envProfile,
		"with WithRatesDecoder or WithProfile", "by the file of "+envProfile,
		"with WithBalanceDecoder or WithProfile", "by the file of "+envProfile,
		"ask for one coin, or read it with WithBalanceDecoder", "ask for one coin with --coin",
	).Replace(text)
}

// advice returns what to do after an invoice whose outcome is unknown.
func advice(err error) string {
	unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
	switch {
	case gateway.SafeToRetry(err):
		return "This run has sent nothing. Run it again."
	case errors.Is(err, gateway.ErrOrderInFlight):
		return "This run has sent nothing. Run it again, without --resubmit."
	case ok && unknown.Replayed:
		return "Look the order up. If it has no invoice, run this again with --resubmit."
	default:
		return "Do not run this again before you have looked the order up."
	}
}
