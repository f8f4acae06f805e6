package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/orders"
	"github.com/cryptogw/gateway/internal/redact"
)

// Sentinels for [errors.Is].
var (
	// ErrInvalidArgument matches every [*ArgumentError].
	ErrInvalidArgument = errors.New("gateway: invalid argument")

	// ErrMissingAPIKey matches the error of a call that needs a key and has none, and of a
	// response with the documented text for a missing key.
	ErrMissingAPIKey = errors.New("gateway: API key is missing")

	// These match an [*APIError] by its status.
	ErrUnauthorized = errors.New("gateway: unauthorized") // 401
	ErrForbidden    = errors.New("gateway: forbidden")    // 403
	ErrNotFound     = errors.New("gateway: not found")    // 404 in the documented envelope, or made by hand without a Body
	ErrConflict     = errors.New("gateway: conflict")     // 409, which proves nothing: see [OrderConflictError]
	ErrRateLimited  = errors.New("gateway: rate limited") // 429
	ErrServer       = errors.New("gateway: server error") // 500 and above

	// ErrRedirect matches a [*TransportError] for a redirect, a 3xx. Redirects are never followed.
	ErrRedirect = errors.New("gateway: redirect not followed")

	// ErrResponseTooLarge matches a [*TransportError] for a body of more than 8 MiB.
	ErrResponseTooLarge = errors.New("gateway: response too large")

	// ErrResponseMismatch matches a [*DecodeError] for a record whose identifier, or whose coin, differs from
	// the requested one.
	ErrResponseMismatch = errors.New("gateway: another record than the requested one")

	// ErrWithdrawalFailed matches the [*WaitError] of a withdrawal that is FAILED. Its Last is the withdrawal.
	ErrWithdrawalFailed = errors.New("gateway: the service reports FAILED")

	// ErrFinalStatus matches the [*WaitError] of a withdrawal with another status of [WaitOptions].Final.
	ErrFinalStatus = errors.New("gateway: the status is final by WaitOptions.Final")

	// ErrOrderInFlight matches the [*TransportError] of a call that sent no invoice because another call
	// for the order, which has another request or takes too long, has not ended. The outcome is
	// [OutcomeUnknown], because the other call may create the invoice; call again later.
	ErrOrderInFlight = errors.New("gateway: an invoice for this order is being created")

	// ErrStillSending matches the [*TransportError] of a call of [Client.CreateInvoice] whose context passed its deadline
	// while the invoice was being sent. The client goes on, and the [OrderGuard] records the outcome: call again later
	// with the same request. It does not match [ErrOrderInFlight], which means that the call has sent
	// nothing.
	ErrStillSending = errors.New("gateway: the invoice is still being sent")

	// ErrShutdown matches the [*TransportError] of an invoice that is not sent after [Client.Shutdown].
	ErrShutdown = errors.New("gateway: the client was shut down, and sends no more invoices")

	// ErrOtherGateway matches the [*TransportError] of an invoice that was not sent because the
	// [OrderGuard] knows the order from a gateway with another base URL.
	ErrOtherGateway = orders.ErrOtherGateway
)

// Operations, as errors, observers and drift name them.
const (
	OpCoinNetworks        = "coin_networks"          // [Client.CoinNetworks]
	OpCoinNetwork         = "coin_network"           // [Client.CoinNetwork]
	OpCoinNetworkBySymbol = "coin_network_by_symbol" // [Client.CoinNetworkBySymbol]
	OpCoinNetworksOf      = "coin_networks_of"       // [Client.CoinNetworksOf]
	OpExchangeRates       = "exchange_rates"         // [Client.ExchangeRates]
	OpBalance             = "balance"                // [Client.Balance]
	OpCreateInvoice       = "create_invoice"         // [Client.CreateInvoice]
	OpWithdrawal          = "withdrawal"             // [Client.Withdrawal], and the waits for one
)

// A Phase is how far the last attempt of a call got, as the trace of net/http reports it.
type Phase string

const (
	PhaseOrder   Phase = "order"   // asking the [OrderGuard], or after its lease expired
	PhaseStart   Phase = "start"   // before a connection was requested, or in a RoundTripper that reports nothing
	PhaseDial    Phase = "dial"    // looking up or connecting to the host, or to a proxy
	PhaseTLS     Phase = "tls"     // the TLS handshake
	PhaseWrite   Phase = "write"   // sending the request
	PhaseWait    Phase = "wait"    // waiting for the header of the response
	PhaseRead    Phase = "read"    // reading the body of the response
	PhaseBackoff Phase = "backoff" // waiting between two attempts
)

// An ArgumentError means that the client's own checks refused a call or an option. Nothing was sent. It
// matches [ErrInvalidArgument].
type ArgumentError struct {
	Operation string // the operation, such as "create_invoice", "new" or "to_coin"
	Name      string // the argument, option or field, such as "orderId"
	Reason    string // why it is refused, without its value

	err error
}

// Error returns the operation, the argument and the reason in one line.
func (e *ArgumentError) Error() string {
	return fmt.Sprintf("gateway: %s: %s: %s", e.Operation, e.Name, e.Reason)
}

// Is reports whether target is [ErrInvalidArgument].
func (e *ArgumentError) Is(target error) bool { return target == ErrInvalidArgument }

// Unwrap returns the reason, [ErrMissingAPIKey] or [ErrNotFound], or nil.
func (e *ArgumentError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.err
}

func (e *ArgumentError) decided() decision {
	if e.Operation != OpCreateInvoice && e.Operation != "" { // an error made by hand may not name it
		return decision{}
	}
	return decision{outcome: OutcomeNotSent}
}

// An APIError is an error response of the service: a status of 400 or above, or a 2xx with an error
// envelope. For an invoice it is a refusal: an invoice that may exist is an [*OutcomeUnknownError].
type APIError struct {
	Operation  string          // the operation, such as "withdrawal"
	StatusCode int             // of the response
	Message    string          // of the envelope, or of a web framework's error, at most 1 KiB; empty for none
	Meta       json.RawMessage `json:",omitzero"` // the envelope's meta, at most 64 KiB; nil for none
	Body       []byte          `json:",omitzero"` // at most the first 8 KiB of the response
	Header     http.Header     `json:",omitzero"` // headers that help to find the response in a log, such as Date
	RetryAfter time.Duration   // how long the service asked to wait; 0 if it did not
	Attempts   int             // how many attempts were made
	Outcome    Outcome         // [OutcomeOf] returns it; [OutcomeRejected] for an invoice that was refused
	Retryable  bool            // [SafeToRetry] returns it: the same call may be made again

	transient    bool
	said         refusal
	missingKey   bool
	namesNothing bool  // the request names no record: a 404 then usually means a wrong base URL
	lost         error // why the body is incomplete; nil if it is complete
	note         string
}

// Error returns the operation, the status and the service's message in one line.
func (e *APIError) Error() string {
	message := fmt.Sprintf("%q", e.Message)
	if e.Message == "" {
		message = "no message in the response: " + sample(e.Body)
		if e.lost != nil {
			message += ", " + oneLine(e.lost)
		}
	}
	text := fmt.Sprintf("gateway: %s: %d: %s", e.Operation, e.StatusCode, message)
	if e.StatusCode < http.StatusBadRequest && e.Message == successMessage {
		text += ", but without a result"
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf("; retry after %v", e.RetryAfter)
	}
	if e.StatusCode == http.StatusNotFound && (e.namesNothing || !errors.Is(e, ErrNotFound)) {
		text += "; is the path of the base URL right?"
	}
	return text + attemptsText(e.Attempts, e.note)
}

// Is reports whether target is the sentinel of the status, or [ErrMissingAPIKey] if the message is the
// documented one.
func (e *APIError) Is(target error) bool {
	switch target {
	case ErrMissingAPIKey:
		return e.missingKey
	case ErrServer:
		return e.StatusCode >= 500
	case ErrNotFound: // a page or a router of somebody else says nothing about a record
		return e.StatusCode == http.StatusNotFound && (e.said.enveloped || e.Body == nil)
	default:
		return target == statusErrors[e.StatusCode]
	}
}

var statusErrors = map[int]error{
	http.StatusUnauthorized: ErrUnauthorized, http.StatusForbidden: ErrForbidden,
	http.StatusConflict: ErrConflict, http.StatusTooManyRequests: ErrRateLimited,
}

func (e *APIError) decided() decision { return decision{e.Outcome, e.Retryable, e.transient} }

// A DecodeError means that the client cannot decode a response.
type DecodeError struct {
	Operation   string // the operation, such as "withdrawal"
	StatusCode  int    // of the response
	ContentType string // of the response, at most 256 bytes of it
	Pointer     string // where, as a JSON pointer such as "/result/17/withdrawalFee"; empty for the whole body
	Value       string // the text, number or boolean there, as JSON cut to 64 bytes; empty for anything else
	Body        []byte `json:",omitzero"` // at most the first 8 KiB of the response
	Err         error  `json:"-"`         // why it cannot be decoded

	Outcome   Outcome // [OutcomeOf] returns it
	Retryable bool    // [SafeToRetry] returns it: the same call may be made again

	transient bool
	status    string // of a withdrawal with a field that cannot be decoded; see [WithdrawalStatusOf]
}

// Error returns the operation, the status, the place, the reason and a sample of the response in
// one line.
func (e *DecodeError) Error() string {
	place := ""
	if e.Pointer != "" {
		place = printable(e.Pointer) + ": "
	}
	switch {
	case e.Value == "":
	case errors.Is(e.Err, ErrResponseMismatch):
		place += printable(e.Value) + " is "
	default:
		place += printable(e.Value) + " "
	}
	status := ""
	if e.status != "" {
		status = fmt.Sprintf(" (the status is %q)", e.status)
	}
	return fmt.Sprintf("gateway: %s: %d: response not understood: %s%s%s: %s",
		e.Operation, e.StatusCode, place, oneLine(e.Err), status, sample(e.Body))
}

// Unwrap returns Err.
func (e *DecodeError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

func (e *DecodeError) decided() decision { return decision{e.Outcome, e.Retryable, e.transient} }

// A TransportError means that a call got no usable response: none came, it was cut, too large
// ([ErrResponseTooLarge]) or a redirect ([ErrRedirect]), or the invoice was not sent ([PhaseOrder]).
type TransportError struct {
	Operation  string // the operation, such as "withdrawal"
	Phase      Phase  // how far the last attempt got
	Attempts   int    // how many attempts were made; 0 for none
	LastStatus int    // the status of the last response of any attempt; 0 for none
	Err        error  `json:"-"` // why there is no usable response

	Outcome   Outcome // [OutcomeOf] returns it; [OutcomeNotSent] is certain; [OutcomeRejected] after some redirects
	Retryable bool    // [SafeToRetry] returns it: the same call may be made again

	transient bool
	timeout   bool
	note      string
}

// Error returns the operation, the phase and the reason in one line.
func (e *TransportError) Error() string {
	text := fmt.Sprintf("gateway: %s: %s: %s", e.Operation, e.Phase, oneLine(e.Err))
	if e.LastStatus != 0 {
		text += fmt.Sprintf("; last status %d", e.LastStatus)
	}
	if e.Outcome == OutcomeNotSent {
		text += "; nothing was sent"
	}
	return text + attemptsText(e.Attempts, e.note)
}

// Is reports whether target is [context.DeadlineExceeded] and a timeout ended the call.
func (e *TransportError) Is(target error) bool {
	return target == context.DeadlineExceeded && e.timeout
}

// Timeout reports whether a timeout, or the deadline of the caller's context, ended the call.
func (e *TransportError) Timeout() bool { return e.timeout }

func (e *TransportError) decided() decision { return decision{e.Outcome, e.Retryable, e.transient} }

// Unwrap returns Err.
func (e *TransportError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// An OutcomeUnknownError means that an invoice may exist. Look the order up at the gateway before anything else,
// unless Retryable is true.
//
// It matches [context.DeadlineExceeded], [context.Canceled], [ErrConflict] and [ErrServer] where they are true. It
// does not wrap its Response: an [*APIError] of an invoice would mean a refusal. It is no net.Error, so that no generic
// helper retries the call.
type OutcomeUnknownError struct {
	Operation  string    // the operation, "create_invoice"
	OrderID    string    // the order of the invoice
	Response   *APIError // the error response, which proves nothing; nil if there was none
	StatusCode int       // the status of the response; 0 when none came
	Body       []byte    `json:",omitzero"` // at most the first 8 KiB of the response
	SentAt     time.Time // when the attempt began that may have reached the service; zero if unknown
	Replayed   bool      // an earlier call sent the invoice, says the [OrderGuard]
	Retryable  bool      // [SafeToRetry] returns it: the same call may be made again, by [WithIdempotentOrders]
	Cause      error     `json:"-"` // why the outcome is unknown; not unwrapped
}

// Error returns the order, what to do and the cause in one line.
func (e *OutcomeUnknownError) Error() string {
	invoice := "an invoice"
	if e.Replayed {
		invoice = "an earlier invoice"
		if !e.SentAt.IsZero() {
			invoice = "an invoice of " + e.SentAt.UTC().Format(time.RFC3339)
		}
	}
	cause := strings.TrimPrefix(oneLine(e.Cause), e.Operation+": ")
	return fmt.Sprintf("gateway: %s: outcome unknown: %s for order %q may exist, look it up before sending it again: %s",
		e.Operation, invoice, e.OrderID, cause)
}

// Is reports whether target is [context.DeadlineExceeded], [context.Canceled], [ErrConflict] or [ErrServer], and
// describes the attempt that may have created the invoice.
func (e *OutcomeUnknownError) Is(target error) bool {
	switch target {
	case context.DeadlineExceeded, context.Canceled:
		return errors.Is(e.Cause, target)
	case ErrConflict:
		return e.StatusCode == http.StatusConflict
	case ErrServer:
		return e.StatusCode >= 500
	default:
		return false
	}
}

func (e *OutcomeUnknownError) decided() decision { return decision{retryable: e.Retryable} }

// sample quotes the beginning of a body for a one-line text.
func sample(body []byte) string {
	const most = 120
	if len(body) == 0 {
		return "empty body"
	}
	if len(body) > most {
		return fmt.Sprintf("%q…", body[:most])
	}
	return fmt.Sprintf("%q", body)
}

// oneLine returns the text of an error for the text of another.
func oneLine(err error) string {
	if err == nil {
		return "no reason is known"
	}
	return flat(strings.TrimPrefix(err.Error(), "gateway: "))
}

// flat returns a text in one line, of at most maxSanitizedText bytes.
func flat(text string) string {
	return redact.Truncate(printable(strings.Join(strings.Fields(text), " ")), maxSanitizedText)
}

// printable escapes what could forge a line in a log, such as a line end or a control
// of the direction of writing.
func printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(char rune) bool { return !unicode.IsPrint(char) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// attemptsText says how many attempts a call made, if there were several, and why no other one followed.
func attemptsText(attempts int, note string) string {
	var parts []string
	if attempts > 1 {
		parts = append(parts, fmt.Sprintf("%d attempts", attempts))
	}
	if note != "" {
		parts = append(parts, note)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// A cleanError replaces an error that shows a key or a password, or that is an error of this package from another
// call. It still matches the errors of a context.
type cleanError struct {
	text              string // one line
	timeout           bool
	deadline, aborted bool
}

const (
	// maxSanitizedText bounds the text of an error inside another's, in bytes.
	maxSanitizedText = 1 << 10

	// maxExaminedText bounds how much of an error's text is examined for passwords:
	// the @ that ends one may be far behind.
	maxExaminedText = 16 << 10
)

// sanitize returns an error of the caller's code or of the network, without keys and passwords. It returns an error
// that shows none as it is.
func sanitize(err error, keys redact.Redactor) error {
	if !reveals(err, keys) && !isOwn(err) {
		return err
	}
	whole := err.Error()
	examined := string(keys.Snippet([]byte(whole), maxExaminedText))
	return &cleanError{
		text:    flat(redact.Passwords(examined, len(whole) > maxExaminedText)),
		timeout: attempt.IsTimeout(err),
		aborted: errors.Is(err, context.Canceled), deadline: errors.Is(err, context.DeadlineExceeded),
	}
}

// isOwn reports whether an error wraps an error of this package, which a caller would take for the error of this call.
func isOwn(err error) bool {
	_, own := errors.AsType[callError](err)
	return own || errors.Is(err, ErrInvalidArgument)
}

// reveals reports whether the text of an error, or of an error that it wraps, has a key or a password.
func reveals(err error, keys redact.Redactor) bool {
	if err == nil {
		return false
	}
	if text := err.Error(); len(text) > maxExaminedText || keys.Contains(text) || redact.Passwords(text, false) != text {
		return true
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return reveals(err.Unwrap(), keys)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), func(inner error) bool { return reveals(inner, keys) })
	default:
		return false
	}
}

func (e *cleanError) Error() string { return e.text }

// Timeout reports whether the error was a timeout.
func (e *cleanError) Timeout() bool { return e.timeout }

// Temporary is false. With it, a timeout is a net.Error, as callers expect.
func (e *cleanError) Temporary() bool { return false }

func (e *cleanError) Is(target error) bool {
	return target == context.DeadlineExceeded && e.deadline || target == context.Canceled && e.aborted
}

// contextError returns the error of a context that has ended, with the cause that the caller gave.
func contextError(ctx context.Context, keys redact.Redactor) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, sanitize(cause, keys))
}

// An Outcome says, after a call for an order, whether the order has an invoice. The zero value is
// [OutcomeUnknown], which is safe.
type Outcome int8

const (
	// OutcomeUnknown: an invoice may exist. No response proves otherwise, or the [OrderGuard] cannot say.
	OutcomeUnknown Outcome = iota
	// OutcomeSucceeded: the invoice was created, by this call or by an earlier one.
	OutcomeSucceeded
	// OutcomeNotSent: this call sent no byte of the invoice, and the guard knows no
	// invoice of the order.
	OutcomeNotSent
	// OutcomeRejected: the service refused the request, or redirected it to another base URL. This call created no
	// invoice, and the guard knows none.
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

// UnmarshalText parses the text that String returns.
func (o *Outcome) UnmarshalText(text []byte) error {
	i := slices.Index(outcomes[:], string(text))
	if i < 0 {
		return fmt.Errorf("gateway: %q is no outcome", text)
	}
	*o = Outcome(i) // #nosec G115 -- one of the outcomes
	return nil
}

// A decision is what an error means for its call. It is made once, where the error is made. The
// zero decision is safe.
type decision struct {
	outcome   Outcome // of the order; [OutcomeUnknown] of a call that creates no invoice
	retryable bool    // the same call may be made again
	transient bool    // another attempt may do better, which says nothing about safety
}

// A callError is an error of this package. It alone decides the outcome of its call: the errors
// that it wraps prove nothing. A nil pointer decides nothing.
type callError interface {
	error
	decided() decision
}

// OutcomeOf returns what an error of [Client.CreateInvoice] means for the order. It returns
// [OutcomeSucceeded] for nil, and [OutcomeUnknown], after which an invoice may exist, for an error of another method
// or package: that says nothing about an invoice. Among joined errors the least certain one counts: [OutcomeUnknown],
// then [OutcomeConflict], [OutcomeRejected], [OutcomeNotSent].
func OutcomeOf(err error) Outcome {
	if err == nil {
		return OutcomeSucceeded
	}
	return decisionOf(err).outcome
}

// SafeToRetry reports whether the same call may be made again: it cannot double an invoice, and it
// may succeed. It is false for nil and for an error that is not of this package. It is false after the
// context of the call has ended, unless the invoice is still being sent, see [ErrStillSending], or the call was asking
// the [OrderGuard] or has [WithIdempotentOrders]. Joined errors are safe to retry if each of them is.
//
// This holds as long as no proxy delivers a POST twice, the promise of [WithIdempotentOrders] is true, and the
// [OrderGuard] remembers the order: a queue that survives a restart needs a guard that does.
func SafeToRetry(err error) bool { return decisionOf(err).retryable }

// decisionOf returns the decision of the error of this package that err is or wraps, and of several
// the least certain one. It does not look into an error of this package.
func decisionOf(err error) (all decision) {
	switch err := err.(type) {
	case callError:
		if reflect.ValueOf(err).IsNil() {
			return decision{}
		}
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
