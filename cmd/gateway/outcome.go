package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// errLeft ends a command after which orders are pending.
var errLeft = errors.New("orders are pending")

// errDiffers ends a probe that found a difference.
var errDiffers = errors.New("a response differs from the documentation, or cannot be read")

// An invoiceError is the failure of an invoice.
type invoiceError struct{ error }

func (e *invoiceError) Unwrap() error { return e.error }

// exitCode returns the exit code for the error of a command, which may be nil.
func exitCode(err error) int {
	outcome := gateway.OutcomeNotSent // of everything but an invoice
	invoice := is[*invoiceError](err)
	if invoice {
		outcome = gateway.OutcomeOf(err)
	}
	wait, _ := errors.AsType[*gateway.WaitError](err)
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
	case wait == nil && is[*gateway.TransportError](err):
		return exitNotSent
	default:
		return exitFailed
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// A failure is an error as JSON, on stderr. No member is ever renamed or redefined.
type failure struct {
	Error       string          `json:"error"`
	ExitCode    int             `json:"exitCode"`
	Outcome     string          `json:"outcome,omitempty"` // of an invoice
	Status      int             `json:"status,omitempty"`  // the HTTP status of the last response
	SafeToRetry bool            `json:"safeToRetry"`       // whether the same call may be made again, and may succeed
	Invoice     json.RawMessage `json:"invoice,omitempty"` // the existing invoice for another request
}

// report prints an error on stderr, as text with what to do next, or as JSON.
func (s *session) report(err error, root *cobra.Command, args []string) {
	if err == errLeft { // the result says so
		return
	}
	code := exitCode(err)
	f := failure{Error: withoutArguments(s.text(err), root, args), ExitCode: code, SafeToRetry: gateway.SafeToRetry(err)}
	if is[*invoiceError](err) {
		f.Outcome = gateway.OutcomeOf(err).String()
	}
	if refusal, ok := errors.AsType[*gateway.APIError](err); ok {
		f.Status = refusal.StatusCode
	} else if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		f.Status = unknown.StatusCode
	}
	if conflict, ok := errors.AsType[*gateway.OrderConflictError](err); ok && conflict.Invoice != nil {
		f.Invoice = conflict.Invoice.Raw
	}
	if s.format == formatJSON {
		_ = writeJSON(s.err, f, "  ") // there is nowhere left to report it
		return
	}
	for line := range strings.SplitSeq(strings.TrimSpace(f.Error), "\n") {
		s.tell("%s", strings.ReplaceAll(line, "\t", "    "))
	}
	if f.Invoice != nil {
		s.tell("Its invoice: %s", f.Invoice)
	}
	if text := advice(err, code, f.SafeToRetry); text != "" {
		s.tell("%s", text)
	}
}

// advice says what to do next; "" for nothing.
func advice(err error, code int, safeToRetry bool) string {
	switch {
	case code == exitUnknown && (safeToRetry || errors.Is(err, gateway.ErrOrderInFlight)):
		return "This run has sent nothing. Run it again."
	case code == exitUnknown:
		return "The invoice may exist. Look the order up before you run this again; gateway orders resolve records what you found."
	case code == exitConflict:
		return "This run has sent nothing. Use that invoice, or another --order."
	case code == exitUsage && errors.Is(err, gateway.ErrMissingAPIKey):
		return "Set " + envAPIKey + " or " + envAPIKeyFile + "; the key is never an argument."
	case errors.Is(err, gateway.ErrRateLimited):
		return "Too many requests. Run it again later."
	default:
		return ""
	}
}

// text returns the text of an error. Commands, flags and variables replace the client's options.
func (s *session) text(err error) string {
	text := err.Error()
	if s.dialect != 0 {
		text = withoutURL(err)
	}
	return strings.NewReplacer(
		"give it to New, WithAPIKeySource or WithAPIKey", "set "+envAPIKey+" or "+envAPIKeyFile,
		"or with WithPlainHTTP", "or with "+envPlainHTTP+"=1",
	).Replace(text)
}

// least is the length of the shortest argument that can be a secret.
const least = 4

// withoutArguments returns the text of an error without the arguments of the command line: each could be the key in a
// wrong place. The names of commands and flags stay.
func withoutArguments(text string, root *cobra.Command, args []string) string {
	own := map[string]bool{}
	names(root, own)
	var secret []string
	for _, arg := range args {
		forms := []string{arg, strings.TrimLeft(arg, "-")}
		if name, value, ok := strings.Cut(arg, "="); ok {
			forms = append(forms, name, strings.TrimLeft(name, "-"), value)
		}
		if _, rest, ok := strings.Cut(arg, "://"); ok { // the parts of a URL
			forms = append(forms, strings.FieldsFunc(rest, func(char rune) bool { return strings.ContainsRune("/@?#:", char) })...)
		}
		if strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") { // short flags, and the value of the last one
			for i := range len(arg) {
				forms = append(forms, arg[i:], "-"+arg[i:])
			}
		}
		for _, form := range forms {
			quoted := strconv.Quote(form)
			for _, form := range []string{form, quoted[1 : len(quoted)-1], url.PathEscape(form), url.QueryEscape(form)} {
				if len(form) >= least && !own[form] {
					secret = append(secret, form)
				}
			}
		}
	}
	slices.SortFunc(secret, func(a, b string) int { return len(b) - len(a) })
	for _, form := range secret {
		text = strings.ReplaceAll(text, form, "…")
	}
	return text
}

// names adds the names of a command, of its flags, and of the commands below it.
func names(c *cobra.Command, to map[string]bool) {
	to[c.Name()] = true
	c.Flags().VisitAll(func(f *pflag.Flag) { to[f.Name], to["--"+f.Name] = true, true })
	c.PersistentFlags().VisitAll(func(f *pflag.Flag) { to[f.Name], to["--"+f.Name] = true, true })
	for _, sub := range c.Commands() {
		names(sub, to)
	}
}
