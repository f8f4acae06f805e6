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

	"github.com/cryptogw/gateway/internal/caller"
	"github.com/cryptogw/gateway/internal/money"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/retry"
)

// Sentinels for [errors.Is].
var (
	// ErrInvalidArgument matches every [*ArgumentError].
	ErrInvalidArgument = errors.New("gateway: invalid argument")

	// ErrMissingAPIKey matches a call that needs a key and has none, and a
	// response with the documented text for a missing key, whatever its status:
	// docs/interface.md, I-35 and I-36.
	ErrMissingAPIKey = errors.New("gateway: API key is missing")

	ErrUnauthorized = errors.New("gateway: unauthorized") // ErrUnauthorized matches an [*APIError] of status 401.
	ErrForbidden    = errors.New("gateway: forbidden")    // ErrForbidden matches an [*APIError] of status 403.
	ErrNotFound     = errors.New("gateway: not found")    // ErrNotFound matches an [*APIError] of status 404.
	ErrConflict     = errors.New("gateway: conflict")     // ErrConflict matches an [*APIError] of status 409.
	ErrRateLimited  = errors.New("gateway: rate limited") // ErrRateLimited matches an [*APIError] of status 429.
	ErrServer       = errors.New("gateway: server error") // ErrServer matches an [*APIError] of status 500 or above.

	// ErrTimeout matches a [*TransportError] caused by a timeout, of an attempt
	// or of a part of it, or by the deadline of the caller's context.
	ErrTimeout = errors.New("gateway: timeout")

	// ErrNotSent matches every [*ArgumentError], and a [*TransportError] of
	// [Client.CreateInvoice] where it is proved that the call sent no byte of the
	// invoice and the [OrderGuard] knows of none. It is [OutcomeNotSent].
	ErrNotSent = errors.New("gateway: invoice was not sent")

	// ErrOutcomeUnknown matches an [*OutcomeUnknownError].
	ErrOutcomeUnknown = errors.New("gateway: outcome unknown")

	// ErrRedirect matches a [*TransportError] for a response of 3xx. The client
	// follows none.
	ErrRedirect = errors.New("gateway: redirect not followed")

	// ErrResponseTooLarge matches a [*TransportError] for a body over the
	// limit of [WithMaxResponseBytes].
	ErrResponseTooLarge = errors.New("gateway: response too large")

	// ErrResponseMismatch matches a [*DecodeError] for a record with another
	// identifier than the one asked for.
	ErrResponseMismatch = errors.New("gateway: another record than the one asked for")

	// ErrCircuitOpen matches the [*TransportError] of an invoice that [WithCircuitBreaker] holds
	// back. It is [OutcomeNotSent], unless the order was unknown before, and the same call may be
	// made again.
	ErrCircuitOpen = errors.New("gateway: circuit open: too many orders have an unknown outcome")

	// ErrOrderInFlight is what [OrderGuard].Begin returns while another call for the order is
	// in flight. It matches the [*TransportError] of a call that has waited for that one in
	// vain, or that has another request, and has sent nothing.
	ErrOrderInFlight = errors.New("gateway: an invoice for this order is being created")

	// ErrOrderCreated is what [OrderGuard].Begin returns for an order that was created.
	// [Client.CreateInvoice] returns the invoice then, or an [*OrderConflictError].
	ErrOrderCreated = errors.New("gateway: the invoice for this order was already created")

	// ErrOrderConflict matches an [*OrderConflictError].
	ErrOrderConflict = errors.New("gateway: the order has an invoice for another request")

	// ErrOrderOutcomeUnknown is what [OrderGuard].Begin returns for an order whose earlier
	// outcome is unknown. It matches an [*OutcomeUnknownError] that is Replayed.
	// [AllowResubmit] permits another invoice, once it is known that there is none.
	ErrOrderOutcomeUnknown = errors.New("gateway: an earlier invoice for this order has an unknown outcome: look it up, then use AllowResubmit if there is none")
)

// Operations, as errors, contexts, attempts and drift name them.
const (
	OpCoinNetworks        = "coin_networks"          // [Client.CoinNetworks]
	OpCoinNetwork         = "coin_network"           // [Client.CoinNetwork]
	OpCoinNetworkBySymbol = "coin_network_by_symbol" // [Client.CoinNetworkBySymbol]
	OpCoinNetworksOf      = "coin_networks_of"       // [Client.CoinNetworksOf]
	OpExchangeRates       = "exchange_rates"         // [Client.ExchangeRates]
	OpBalance             = "balance"                // [Client.Balance]
	OpCreateInvoice       = "create_invoice"         // [Client.CreateInvoice]
	OpPrepareInvoice      = "prepare_invoice"        // [Client.PrepareInvoice]
	OpWithdrawal          = "withdrawal"             // [Client.Withdrawal], and what waits for one
)

// A Phase is how far the last attempt of a call came.
type Phase string

const (
	PhaseOrder   Phase = "order"   // asking the [OrderGuard]: it failed, another call for the order is in flight, or the admission is over
	PhaseStart   Phase = "start"   // before a connection was requested: the context had ended, or the key's source or the caller's transport refused, or [WithCircuitBreaker] held the invoice back
	PhaseDial    Phase = "dial"    // looking up or connecting to the host
	PhaseProxy   Phase = "proxy"   // connecting through the proxy
	PhaseTLS     Phase = "tls"     // the TLS handshake
	PhaseWrite   Phase = "write"   // sending the request
	PhaseWait    Phase = "wait"    // waiting for the header of the response, or in a [Cache] for a load
	PhaseRead    Phase = "read"    // reading the body of the response
	PhaseBackoff Phase = "backoff" // waiting between two attempts
)

// An ArgumentError is a refusal by the client's own checks. Nothing was sent.
// It matches [ErrInvalidArgument] and [ErrNotSent].
type ArgumentError struct {
	Operation string // the operation, such as "create_invoice"; else "new", "cache", "memory_guard" or the computation, such as "to_coin"
	Name      string // the argument, option or field, as docs/interface.md names it where it does, such as "orderId"
	Reason    string // what is wrong with it; of its value at most the name of a coin or a currency

	err error
}

// Error returns one line: the operation, the argument and what is wrong.
func (e *ArgumentError) Error() string {
	return fmt.Sprintf("gateway: %s: %s: %s", e.Operation, e.Name, e.Reason)
}

// Is reports whether target is [ErrInvalidArgument] or [ErrNotSent].
func (e *ArgumentError) Is(target error) bool {
	return target == ErrInvalidArgument || target == ErrNotSent
}

// Unwrap returns the reason, [ErrMissingAPIKey], or nil.
func (e *ArgumentError) Unwrap() error { return e.err }

func (e *ArgumentError) outcome() Outcome  { return OutcomeNotSent }
func (e *ArgumentError) isRetryable() bool { return false }

// An APIError is an error response of the service: any status of 400 or above, or a
// 2xx with an error envelope.
type APIError struct {
	Operation  string          // the operation, such as "withdrawal"
	StatusCode int             // of the response
	Message    string          // the envelope's message, at most 1 KiB; empty when the response was not an envelope
	Meta       json.RawMessage // the envelope's meta; nil when there was none, or more than 64 KiB
	Body       []byte          // at most the first 8 KiB of the response, without the key
	Header     http.Header     // what helps to find the response in a log, such as Date and X-Request-Id
	RetryAfter time.Duration   // what the service asked to wait; 0 for nothing
	Attempts   int             // how many attempts were made, this one included
	RequestID  string          // what the invoice sent as X-Request-Id; empty for none

	missingKey bool
	once       bool // the call is not to be made again
	noEnvelope bool // the body is not the documented envelope: an intermediary may have written it
	premature  bool // it may have come before the invoice was sent
	note       string
	keys       redact.Redactor // of the whole text: its parts can be a key together, or quoted
}

// Error returns one line: the operation, the status and the service's message, quoted.
func (e *APIError) Error() string {
	message := fmt.Sprintf("%q", e.Message)
	if e.Message == "" {
		message = "no message in the response: " + sample(e.Body)
	}
	text := fmt.Sprintf("gateway: %s: %d: %s", e.Operation, e.StatusCode, message)
	if e.RetryAfter > 0 {
		text += fmt.Sprintf("; retry after %v", e.RetryAfter)
	}
	if e.StatusCode == http.StatusNotFound && namesNothing(e.Operation) {
		text += "; is the path of the base URL right?"
	}
	return e.keys.Text(text + history(e.Attempts, e.note))
}

// namesNothing reports whether the path of an operation names no record: what is not found then
// is hardly one.
func namesNothing(operation string) bool {
	switch operation {
	case OpCoinNetworks, OpExchangeRates, OpCreateInvoice:
		return true
	default:
		return false
	}
}

// Is reports whether target is the sentinel of the status, or
// [ErrMissingAPIKey] where the message is the documented one.
func (e *APIError) Is(target error) bool {
	switch target {
	case ErrUnauthorized:
		return e.StatusCode == http.StatusUnauthorized
	case ErrForbidden:
		return e.StatusCode == http.StatusForbidden
	case ErrNotFound:
		return e.StatusCode == http.StatusNotFound
	case ErrConflict:
		return e.StatusCode == http.StatusConflict
	case ErrRateLimited:
		return e.StatusCode == http.StatusTooManyRequests
	case ErrServer:
		return e.StatusCode >= 500
	case ErrMissingAPIKey:
		return e.missingKey
	}
	return false
}

func (e *APIError) outcome() Outcome {
	if e.Operation == OpCreateInvoice && refusesInvoice(e.StatusCode, !e.noEnvelope) && !e.premature {
		return OutcomeRejected
	}
	return outcomeWithoutProof(e.Operation)
}

func (e *APIError) isRetryable() bool {
	return retry.IsRetryableStatus(e.StatusCode) && !e.once && (e.Operation != OpCreateInvoice || e.outcome() == OutcomeRejected)
}

// A DecodeError is a response that the client cannot decode.
type DecodeError struct {
	Operation   string // the operation, such as "withdrawal"
	StatusCode  int    // of the response
	ContentType string // of the response, at most 256 bytes of it
	Pointer     string // where in the response, as a JSON pointer such as "/result/17/withdrawalFee"; empty for the whole
	Body        []byte // at most the first 8 KiB of the response, without the key
	Err         error  // what is wrong there

	status    string // of a withdrawal of which another field cannot be decoded; see [WithdrawalStatusOf]
	retryable bool
	keys      redact.Redactor // of the whole text
}

// Error returns one line: the operation, the status, the place, what is wrong there and
// a sample of the response.
func (e *DecodeError) Error() string {
	place := ""
	if e.Pointer != "" {
		place = printable(e.Pointer) + ": "
	}
	status := ""
	if e.status != "" {
		status = fmt.Sprintf(" (the status is %q)", e.status)
	}
	return e.keys.Text(fmt.Sprintf("gateway: %s: %d: response not understood: %s%s%s: %s",
		e.Operation, e.StatusCode, place, oneLine(e.Err), status, sample(e.Body)))
}

// Unwrap returns Err.
func (e *DecodeError) Unwrap() error { return e.Err }

func (e *DecodeError) outcome() Outcome  { return outcomeWithoutProof(e.Operation) }
func (e *DecodeError) isRetryable() bool { return e.retryable && e.Operation != OpCreateInvoice }

// A TransportError is a call without a usable response: none came, it was cut, it was
// too large ([ErrResponseTooLarge]), it was a redirect ([ErrRedirect]), or the [OrderGuard]
// did not let the invoice be sent ([PhaseOrder]).
type TransportError struct {
	Operation  string // the operation, such as "withdrawal"
	Phase      Phase  // how far the last attempt came
	Attempts   int    // how many attempts were made; 0 for none
	LastStatus int    // the status of the last response of any attempt; 0 for none
	Err        error  // why there is no usable response

	notSent   bool
	timeout   bool
	retryable bool
	note      string
	keys      redact.Redactor // of the whole text
}

// Error returns one line: the operation, how far it came and why it ended.
func (e *TransportError) Error() string {
	text := fmt.Sprintf("gateway: %s: %s: %s", e.Operation, e.Phase, oneLine(e.Err))
	if e.LastStatus != 0 {
		text += fmt.Sprintf("; last status %d", e.LastStatus)
	}
	if e.notSent {
		text += "; nothing was sent"
	}
	return e.keys.Text(text + history(e.Attempts, e.note))
}

// Is reports whether target is [ErrNotSent] or [ErrTimeout] and true of e.
func (e *TransportError) Is(target error) bool {
	return target == ErrNotSent && e.notSent || target == ErrTimeout && e.timeout
}

// Timeout reports whether e matches [ErrTimeout].
func (e *TransportError) Timeout() bool { return e.timeout }

// Unwrap returns Err.
func (e *TransportError) Unwrap() error { return e.Err }

func (e *TransportError) outcome() Outcome {
	if e.notSent {
		return OutcomeNotSent
	}
	return outcomeWithoutProof(e.Operation)
}

func (e *TransportError) isRetryable() bool {
	return e.retryable && (e.Operation != OpCreateInvoice || e.notSent || e.Phase == PhaseOrder)
}

// An OutcomeUnknownError reports that an invoice may or may not have been created.
// Look the order up at the service before sending it again, unless [SafeToRetry] is true, which it is
// only with [WithIdempotentOrders].
//
// It matches [ErrOutcomeUnknown], and [ErrOrderOutcomeUnknown] if it is Replayed, and nothing
// else. As a [net.Error] it is neither a timeout nor temporary, so that no generic helper
// repeats the call.
//
// [Client.CreateInvoice] returns the error itself, not wrapped, and its type keeps its
// name: rivergateway/README.md.
//
// [net.Error]: https://pkg.go.dev/net#Error
type OutcomeUnknownError struct {
	Operation  string    // the operation, "create_invoice"
	OrderID    string    // the order of the invoice
	StatusCode int       // the status of the response; 0 when none came
	Body       []byte    // at most the first 8 KiB of the response, without the key
	SentAt     time.Time // when the attempt that may have reached the service began; zero if that is not known
	RequestID  string    // what that attempt sent as X-Request-Id; empty for none, or if it is not known
	Replayed   bool      // whether the invoice is that of an earlier call, as the [OrderGuard] knows it: this one has sent nothing, or was refused
	Cause      error     // why the outcome is unknown; deliberately not unwrapped

	again bool // by WithIdempotentOrders the call may be made again
}

// Error returns one line: the order, what to do and the cause.
func (e *OutcomeUnknownError) Error() string {
	invoice, details := "an invoice", ""
	if e.Replayed {
		invoice = "an earlier invoice"
		if !e.SentAt.IsZero() {
			invoice = "an invoice of " + e.SentAt.UTC().Format(time.RFC3339)
		}
	}
	if e.RequestID != "" {
		details = "; X-Request-Id " + printable(e.RequestID)
	}
	cause := strings.TrimPrefix(oneLine(e.Cause), e.Operation+": ")
	return fmt.Sprintf("gateway: %s: outcome unknown: %s for order %q may exist, look it up before sending it again: %s%s",
		e.Operation, invoice, e.OrderID, cause, details)
}

// Is reports whether target is [ErrOutcomeUnknown], or [ErrOrderOutcomeUnknown] and true of e.
func (e *OutcomeUnknownError) Is(target error) bool {
	return target == ErrOutcomeUnknown || target == ErrOrderOutcomeUnknown && e.Replayed
}

// Timeout is false.
func (e *OutcomeUnknownError) Timeout() bool { return false }

// Temporary is false.
func (e *OutcomeUnknownError) Temporary() bool { return false }

func (e *OutcomeUnknownError) outcome() Outcome  { return OutcomeUnknown }
func (e *OutcomeUnknownError) isRetryable() bool { return e.again }

// An OrderConflictError reports that the order has an invoice already, and that it was created
// for another request: with another price, amount, currency, coin or network. Nothing was sent.
// Show the buyer that invoice, or use another orderId. It matches [ErrOrderConflict].
type OrderConflictError struct {
	OrderID string         // of both requests
	Request InvoiceRequest // of the invoice
	Invoice *Invoice       // the invoice, Replayed; nil if the [OrderGuard] has no response
}

// Error returns one line: the order, the earlier request and what to do.
func (e *OrderConflictError) Error() string {
	return fmt.Sprintf("gateway: %s: order %q has an invoice for another request, of price %s and amount %s: use that invoice, or another orderId",
		OpCreateInvoice, e.OrderID, money.Format(e.Request.Price), money.Format(e.Request.Amount))
}

// Is reports whether target is [ErrOrderConflict].
func (e *OrderConflictError) Is(target error) bool { return target == ErrOrderConflict }

func (e *OrderConflictError) outcome() Outcome  { return OutcomeUnknown }
func (e *OrderConflictError) isRetryable() bool { return false }

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

// oneLine is the text of an error inside another's.
func oneLine(err error) string {
	if err == nil {
		return "no reason is known"
	}
	text := strings.TrimPrefix(err.Error(), "gateway: ")
	return printable(strings.Join(strings.Fields(text), " "))
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

// history describes what came before the last attempt.
func history(attempts int, note string) string {
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

// A sanitizedError replaces an error of the caller's: of a transport, context, key
// source or order guard. Its text is one line without keys and passwords. It passes on
// [errors.Is], except for what is ours, which only this call may decide: the error may
// be that of another call. It passes on [errors.As] too, except for what is ours and
// for an error whose text, or that of an error within it, has a key or a password.
type sanitizedError struct {
	text string
	keys redact.Redactor
	is   func(target error) bool
	as   func(target any) bool

	ofGuard bool // a password in it is not a proxy's, but that of the guard's own database
}

const (
	// maxSanitizedText bounds the text of a sanitizedError, in bytes.
	maxSanitizedText = 1 << 10

	// maxExaminedText bounds how much of an error's text is examined for passwords:
	// the @ that ends one may be far behind.
	maxExaminedText = 16 << 10
)

func sanitize(err error, keys redact.Redactor) *sanitizedError {
	whole := err.Error()
	text := redact.Passwords(string(keys.Snippet([]byte(whole), maxExaminedText)), len(whole) > maxExaminedText)
	text = keys.Text(printable(strings.Join(strings.Fields(text), " ")))
	return &sanitizedError{
		text: redact.Truncate(text, maxSanitizedText),
		keys: keys,
		is:   func(target error) bool { return errors.Is(err, target) },
		as:   func(target any) bool { return errors.As(err, target) },
	}
}

func (e *sanitizedError) Error() string { return e.text }

// MarshalText returns the text, for loggers that write errors as JSON.
func (e *sanitizedError) MarshalText() ([]byte, error) { return []byte(e.text), nil }

func (e *sanitizedError) Is(target error) bool { return !isSentinel(target) && e.is(target) }

// As sets target to the caller's error, if no text that can be reached from it has a
// key or a password. Of one that has, it keeps whether it is a timeout.
func (e *sanitizedError) As(target any) bool {
	switch target.(type) {
	case **ArgumentError, **APIError, **DecodeError, **TransportError, **OutcomeUnknownError,
		**OrderConflictError, **WithdrawalFailedError, **WaitError, **LimitError, *callError:
		return false
	}
	found := reflect.New(reflect.TypeOf(target).Elem())
	if !e.as(found.Interface()) {
		return false
	}
	if !e.isHarmless(found.Elem().Interface()) {
		timeout, ok := found.Elem().Interface().(interface{ Timeout() bool })
		found = reflect.ValueOf(&sanitizedNetError{e, ok && timeout.Timeout()})
		if !ok || !found.Type().AssignableTo(reflect.TypeOf(target).Elem()) {
			return false
		}
		reflect.ValueOf(target).Elem().Set(found)
		return true
	}
	reflect.ValueOf(target).Elem().Set(found.Elem())
	return true
}

// isHarmless reports whether the text of v and of the errors that it wraps has no key
// and no password.
func (e *sanitizedError) isHarmless(v any) bool {
	text := fmt.Sprintf("%+v", v)
	if err, ok := v.(error); ok {
		text = err.Error() + "\n" + text
	}
	if e.keys.Contains(text) || !e.ofGuard && redact.Passwords(text, false) != text {
		return false
	}
	switch wrapping := v.(type) {
	case interface{ Unwrap() error }:
		inner := wrapping.Unwrap()
		return inner == nil || e.isHarmless(inner)
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(wrapping.Unwrap(), func(inner error) bool { return inner != nil && !e.isHarmless(inner) })
	}
	return true
}

// A sanitizedNetError is a sanitizedError that replaces a [net.Error].
type sanitizedNetError struct {
	*sanitizedError
	timeout bool
}

func (e *sanitizedNetError) Timeout() bool { return e.timeout }

// Temporary is false, as it is in every error of this package.
func (e *sanitizedNetError) Temporary() bool { return false }

func isSentinel(err error) bool { return slices.Contains(sentinels(), err) }

func sentinels() []error {
	return []error{
		ErrInvalidArgument, ErrMissingAPIKey, ErrUnauthorized, ErrForbidden, ErrNotFound, ErrConflict,
		ErrRateLimited, ErrServer, ErrTimeout, ErrNotSent, ErrOutcomeUnknown, ErrRedirect,
		ErrResponseTooLarge, ErrResponseMismatch, ErrOrderInFlight, ErrOrderCreated,
		ErrOrderConflict, ErrOrderOutcomeUnknown, ErrCircuitOpen,
	}
}

// contextError is the error of a context that has ended, with its cause where the
// caller gave one.
func contextError(ctx context.Context, keys redact.Redactor) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err != context.Canceled && err != context.DeadlineExceeded {
		err = sanitize(caller.Examined(err), keys) // a context of the caller's own type
	}
	if cause != nil {
		cause = caller.Examined(cause)
	}
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, sanitize(cause, keys))
}
