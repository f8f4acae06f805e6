package gateway_test

import (
	"compress/flate"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/invariant"
)

func withdrawalCall(ctx context.Context, c *gateway.Client) (any, error) {
	return c.Withdrawal(ctx, requestID)
}

func invoiceCall(ctx context.Context, c *gateway.Client) (any, error) {
	return c.CreateInvoice(ctx, order("A-17"))
}

// A callOf is a method with its arguments.
type callOf = func(context.Context, *gateway.Client) (any, error)

// within makes a call with a deadline.
func within(d time.Duration, call callOf) callOf {
	return func(ctx context.Context, c *gateway.Client) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return call(ctx, c)
	}
}

// cancelled makes a call with a context that is cancelled.
func cancelled(call callOf) callOf {
	return func(_ context.Context, c *gateway.Client) (any, error) {
		ctx, cancel := cancelledContext()
		defer cancel()
		return call(ctx, c)
	}
}

func respondAlways(status int) tripper {
	return func(*http.Request) (*http.Response, error) { return reply(status, refused("No.")), nil }
}

// Errors as the client returns them: the transport and the call that cause each, its exact text, what it means for the
// order, and all that errors.Is finds.
// I-35, I-36, I-37, I-150, I-152, I-153, I-156, I-158, I-160
func TestErrors(t *testing.T) {
	t.Parallel()
	const lost = `gateway: create_invoice: outcome unknown: an invoice for order "A-17" may exist, look it up before sending it again: `
	type is = []error
	long := strings.Repeat("a", 120)
	mismatch := enveloped(strings.Replace(withdrawalJSON, requestID, "another", 1))
	unreadSuccess := func(*http.Request) (*http.Response, error) { return reply(201, enveloped(invoiceJSON)), nil }
	for _, tt := range []struct {
		name    string
		trip    tripper
		call    callOf
		text    string // whole, or its beginning if it ends in ": "
		outcome gateway.Outcome
		again   bool // SafeToRetry
		is      []error
	}{
		{"a refusal with a message", statusTrip(404, refused("Not Found")), withdrawalCall, `gateway: withdrawal: 404: "Not Found"`, notSent, false, is{gateway.ErrNotFound}},
		{
			"a refusal in the form of a framework", statusTrip(404, `{"statusCode":404,"message":["no such coin"],"error":"Not Found"}`), withdrawalCall,
			`gateway: withdrawal: 404: "no such coin"`, notSent, false,
			is{gateway.ErrNotFound},
		},
		{
			"not found, where every gateway has it", statusTrip(404, refused("no such route")), func(ctx context.Context, c *gateway.Client) (any, error) { return c.ExchangeRates(ctx) },
			`gateway: exchange_rates: 404: "no such route"; is the path of the base URL right?`, notSent, false,
			is{gateway.ErrNotFound},
		},
		{
			"a refusal for a missing key", statusTrip(418, refused("x-api-key header is required")), withdrawalCall,
			`gateway: withdrawal: 418: "x-api-key header is required"`, notSent, false,
			is{gateway.ErrMissingAPIKey},
		},
		{
			"a refusal for a key, with another message", statusTrip(401, refused("X-API-KEY header is required")), withdrawalCall,
			`gateway: withdrawal: 401: "X-API-KEY header is required"`, notSent, false,
			is{gateway.ErrUnauthorized},
		},
		{
			"a refusal with a message of several lines", statusTrip(409, `{"message":"one\ntwo\u001b[31m","result":[],"meta":{}}`), withdrawalCall,
			`gateway: withdrawal: 409: "one\ntwo\x1b[31m"`, notSent, false,
			is{gateway.ErrConflict},
		},
		{
			"a refusal that is a web page", statusTrip(403, "<html>\nno</html>"), withdrawalCall,
			`gateway: withdrawal: 403: no message in the response: "<html>\nno</html>"`, notSent, false,
			is{gateway.ErrForbidden},
		},
		{"a refusal without a body", statusTrip(400, ""), withdrawalCall, `gateway: withdrawal: 400: no message in the response: empty body`, notSent, false, nil},
		{"a refusal with a long body", statusTrip(400, long+"a"), withdrawalCall, `gateway: withdrawal: 400: no message in the response: "` + long + `"…`, notSent, false, nil},
		{"a refusal with a body that just fits", statusTrip(400, long), withdrawalCall, `gateway: withdrawal: 400: no message in the response: "` + long + `"`, notSent, false, nil},
		{"a server error after all attempts", statusTrip(502, ""), withdrawalCall, `gateway: withdrawal: 502: no message in the response: empty body (3 attempts)`, notSent, true, is{gateway.ErrServer}},
		{
			"too many requests", statusTrip(429, refused("Slow down."), "Retry-After", "90"), withdrawalCall,
			`gateway: withdrawal: 429: "Slow down."; retry after 1m30s`, notSent, true,
			is{gateway.ErrRateLimited},
		},
		{"an error envelope with 200", statusTrip(200, refused("It did not work.")), withdrawalCall, `gateway: withdrawal: 200: "It did not work."`, notSent, false, nil},
		{"a response that cannot be decoded", statusTrip(200, "<html>"), withdrawalCall, "gateway: withdrawal: 200: response not understood: ", notSent, false, nil},
		{
			"another withdrawal", statusTrip(201, mismatch), withdrawalCall,
			"gateway: withdrawal: 201: response not understood: /result/withdrawRequestId: \"another\" is another record than the requested one: ", notSent, false,
			is{gateway.ErrResponseMismatch},
		},
		{
			"a redirect", statusTrip(302, "", "Location", "https://user:secret@evil.test/in?apiKey="+canary), withdrawalCall,
			"gateway: withdrawal: wait: redirect not followed: to https://evil.test/in; last status 302", notSent, false,
			is{gateway.ErrRedirect},
		},
		{"a redirect to the key", statusTrip(302, "", "Location", "/"+canary), withdrawalCall, "gateway: withdrawal: wait: redirect not followed: to /[REDACTED]; last status 302", notSent, false, is{gateway.ErrRedirect}},
		{"a redirect to nowhere", statusTrip(302, ""), withdrawalCall, "gateway: withdrawal: wait: redirect not followed; last status 302", notSent, false, is{gateway.ErrRedirect}},
		{
			"a refused connection", errorTrip(refusedConnection("connect")), withdrawalCall,
			"gateway: withdrawal: dial: dial tcp: connect: connection refused (3 attempts)", notSent, true,
			is{syscall.ECONNREFUSED},
		},
		{"an attempt that takes too long", hangTrip, withdrawalCall, "gateway: withdrawal: wait: no response within 15s (3 attempts)", notSent, true, is{context.DeadlineExceeded}},
		{"the caller's deadline", hangTrip, within(time.Second, withdrawalCall), "gateway: withdrawal: wait: context deadline exceeded", notSent, false, is{context.DeadlineExceeded}},
		{"a call that was cancelled before", hangTrip, cancelled(withdrawalCall), "gateway: withdrawal: start: context canceled", notSent, false, is{context.Canceled}},
		{
			"a bad argument", hangTrip, func(ctx context.Context, c *gateway.Client) (any, error) { return c.Withdrawal(ctx, "a\tb") },
			`gateway: withdrawal: withdrawRequestId: must not contain control characters`, notSent, false,
			is{gateway.ErrInvalidArgument},
		},

		{"a rejected invoice", statusTrip(422, refused("price is too small")), invoiceCall, `gateway: create_invoice: 422: "price is too small"`, rejected, false, nil},
		{"a throttled invoice", statusTrip(429, refused("Slow down.")), invoiceCall, `gateway: create_invoice: 429: "Slow down."`, rejected, true, is{gateway.ErrRateLimited}},
		{
			"an invoice without an order identifier", hangTrip, func(ctx context.Context, c *gateway.Client) (any, error) { return c.CreateInvoice(ctx, order("")) },
			"gateway: create_invoice: orderId: is required", notSent, false,
			is{gateway.ErrInvalidArgument},
		},
		{
			"an invoice over a refused connection", errorTrip(refusedConnection("connect")), invoiceCall,
			"gateway: create_invoice: dial: dial tcp: connect: connection refused; nothing was sent (3 attempts)", notSent, true,
			is{syscall.ECONNREFUSED},
		},
		{
			"an invoice to a host that does not exist", errorTrip(&net.DNSError{Err: "no such host", Name: "localhost", IsNotFound: true}), invoiceCall,
			"gateway: create_invoice: dial: lookup localhost: no such host; nothing was sent", notSent, true, nil,
		},
		{
			"an invoice to a host whose certificate has expired", errorTrip(x509.CertificateInvalidError{Reason: x509.Expired}), invoiceCall,
			"gateway: create_invoice: start: x509: certificate has expired or is not yet valid:; nothing was sent", notSent, true, nil,
		},
		{"an invoice of a caller who has gone", hangTrip, cancelled(invoiceCall), "gateway: create_invoice: start: context canceled; nothing was sent", notSent, false, is{context.Canceled}},
		{"an invoice whose response is lost", readThen(io.ErrUnexpectedEOF), invoiceCall, lost + "wait: unexpected EOF", unknown, false, nil},
		{"an invoice that took too long", hangAfterReading, invoiceCall, lost + "wait: no response within 1m0s", unknown, false, is{context.DeadlineExceeded}},
		{"an invoice and the caller's deadline", hangAfterReading, within(time.Second, invoiceCall), lost + "wait: context deadline exceeded", unknown, false, is{context.DeadlineExceeded}},
		{"an invoice and a server error", statusTrip(503, refused("Not now.")), invoiceCall, lost + `503: "Not now."`, unknown, false, is{gateway.ErrServer}},
		{"an invoice and an error envelope with 200", statusTrip(200, refused("It did not work.")), invoiceCall, lost + `200: "It did not work."`, unknown, false, nil},
		{
			"a success of a transport that has not read the invoice", unreadSuccess, invoiceCall,
			lost + "wait: the transport returned a success without having read the invoice; last status 201", unknown, false, nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got, err := tt.call(t.Context(), newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: tt.trip})))
				require.Error(t, err)
				assertInvariants(t, got, err)
				if strings.HasSuffix(tt.text, ": ") {
					assert.True(t, strings.HasPrefix(err.Error(), tt.text), err.Error())
				} else {
					assert.EqualError(t, err, tt.text)
				}
				for _, target := range append([]error{context.Canceled, syscall.ECONNREFUSED}, sentinels...) {
					assert.Equal(t, slices.Contains(tt.is, target), errors.Is(err, target), "%q of %v", target, err)
				}
				for _, wrapped := range []error{err, fmt.Errorf("shop: %w", err), errors.Join(nil, err)} {
					assert.Equal(t, tt.outcome, gateway.OutcomeOf(wrapped))
					assert.Equal(t, tt.again, gateway.SafeToRetry(wrapped))
				}
				var timeout interface{ Timeout() bool }
				isTimeout := tt.outcome != unknown && slices.Contains(tt.is, error(context.DeadlineExceeded))
				assert.Equal(t, isTimeout, errors.As(err, &timeout) && timeout.Timeout())
			})
		})
	}
}

// Errors mean what their fields say, also those that a fake makes by hand, through any wrapping. Of joined errors the least
// certain counts, an error of another package proves nothing, and a nil pointer is unknown.
func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	refusal := &gateway.APIError{StatusCode: 400, Outcome: rejected}
	throttled := &gateway.APIError{StatusCode: 429, Outcome: rejected, Retryable: true}
	argument, lost := &gateway.ArgumentError{Name: "price"}, &gateway.OutcomeUnknownError{OrderID: "A-17", Cause: io.EOF}
	for _, tt := range []struct {
		name  string
		err   error
		want  gateway.Outcome
		again bool
		shows string // the case of README's switch; "" if it is not asked
	}{
		{"no error", nil, succeeded, false, "the invoice"},
		{"an argument", argument, notSent, false, "there is no invoice"},
		{"a refusal", refusal, rejected, false, "refused"},
		{"a refusal for now", throttled, rejected, true, "refused"},
		{"a response that proves nothing", &gateway.APIError{StatusCode: 400}, unknown, false, "look it up"},
		{"a response that is not understood", &gateway.DecodeError{StatusCode: 200}, unknown, false, "look it up"},
		{"a response to a read that is not understood", &gateway.DecodeError{StatusCode: 200, Outcome: notSent, Retryable: true}, notSent, true, "there is no invoice"},
		{"a dial", &gateway.TransportError{Phase: gateway.PhaseDial, Outcome: notSent, Retryable: true}, notSent, true, "there is no invoice"},
		{"a dial without its outcome", &gateway.TransportError{Phase: gateway.PhaseDial}, unknown, false, "look it up"},
		{"an unknown outcome", lost, unknown, false, "look it up"},
		{"an unknown outcome, idempotent", &gateway.OutcomeUnknownError{OrderID: "A-17", Retryable: true}, unknown, true, "look it up"},
		{"a conflict", &gateway.OrderConflictError{OrderID: "A-17", Invoice: &gateway.Invoice{Raw: []byte("{}")}}, conflict, false, "the invoice"},
		{"a conflict without the invoice", &gateway.OrderConflictError{OrderID: "A-17"}, conflict, false, "look it up"},
		{"a withdrawal that failed", &gateway.WaitError{Err: gateway.ErrWithdrawalFailed}, notSent, false, "there is no invoice"},

		{"a nil ArgumentError", (*gateway.ArgumentError)(nil), unknown, false, ""},
		{"a nil APIError", (*gateway.APIError)(nil), unknown, false, ""},
		{"a nil DecodeError", (*gateway.DecodeError)(nil), unknown, false, ""},
		{"a nil TransportError", (*gateway.TransportError)(nil), unknown, false, ""},
		{"a nil OutcomeUnknownError", (*gateway.OutcomeUnknownError)(nil), unknown, false, ""},
		{"a nil OrderConflictError", (*gateway.OrderConflictError)(nil), unknown, false, ""},
		{"a nil WaitError", (*gateway.WaitError)(nil), unknown, false, ""},

		{"an error of another package", io.EOF, unknown, false, "look it up"},
		{"an error of a context", context.Canceled, unknown, false, "look it up"},
		{"a sentinel", gateway.ErrInvalidArgument, unknown, false, "look it up"},
		{"an error that wraps nothing", wrapsNothing{}, unknown, false, "look it up"},
		{"an error that only claims to match", claimsArgument{}, unknown, false, "look it up"},

		{"a refusal that is wrapped twice", fmt.Errorf("b: %w", fmt.Errorf("a: %w", refusal)), rejected, false, "refused"},
		{"a refusal joined with nil", errors.Join(refusal, nil), rejected, false, "refused"},
		{"a refusal joined with an argument", errors.Join(refusal, argument), rejected, false, "refused"},
		{"refusals for now joined", errors.Join(throttled, throttled), rejected, true, "refused"},
		{"a conflict joined with a refusal", errors.Join(refusal, &gateway.OrderConflictError{}), conflict, false, "look it up"},
		{"a refusal joined with an unknown outcome", errors.Join(refusal, lost), unknown, false, "look it up"},
		{"an argument joined with an unknown outcome", errors.Join(argument, lost), unknown, false, "look it up"},
		{"a refusal for now joined with an unknown outcome", errors.Join(throttled, lost), unknown, false, "look it up"},
		{"a refusal for now joined with an error of another package", errors.Join(throttled, io.EOF), unknown, false, "look it up"},
		{"an argument wrapped beside an error of another package", fmt.Errorf("%w: %w", io.EOF, argument), unknown, false, "look it up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wrapped := []error{tt.err}
			if v := reflect.ValueOf(tt.err); tt.err != nil && (v.Kind() != reflect.Pointer || !v.IsNil()) {
				wrapped = append(wrapped, errors.Join(tt.err), fmt.Errorf("shop: %w", tt.err))
			}
			for _, err := range wrapped {
				assert.Equal(t, tt.want, gateway.OutcomeOf(err))
				assert.Equal(t, tt.again, gateway.SafeToRetry(err))
				if tt.shows != "" {
					assert.Equal(t, tt.shows, readmeSwitch(err))
				}
			}
		})
	}
}

// readmeSwitch is the switch of the README, which a shop copies. ExampleOutcomeOf runs it.
func readmeSwitch(err error) string {
	var invoice *gateway.Invoice
	if err == nil {
		invoice = &gateway.Invoice{Raw: []byte("{}")}
	}
	if conflict, ok := errors.AsType[*gateway.OrderConflictError](err); ok {
		invoice = conflict.Invoice
	}
	switch outcome := gateway.OutcomeOf(err); {
	case invoice != nil && len(invoice.Raw) > 0:
		return "the invoice"
	case outcome == gateway.OutcomeNotSent:
		return "there is no invoice"
	case outcome == gateway.OutcomeRejected:
		return "refused"
	default:
		return "look it up"
	}
}

// wrapsNothing is an error of another package with nothing in it.
type wrapsNothing struct{}

func (wrapsNothing) Error() string { return "nothing" }
func (wrapsNothing) Unwrap() error { return nil }

// claimsArgument is an error of another package.
type claimsArgument struct{}

func (claimsArgument) Error() string        { return "nothing was sent" }
func (claimsArgument) Is(target error) bool { return target == gateway.ErrInvalidArgument }

func TestOutcome_String(t *testing.T) {
	t.Parallel()
	var zero gateway.Outcome
	assert.Equal(t, unknown, zero, "the zero value is the safe one")
	for outcome, want := range map[gateway.Outcome]string{
		unknown: "unknown", succeeded: "succeeded", notSent: "not sent", rejected: "rejected", conflict: "conflict",
		5: "Outcome(5)", -1: "Outcome(-1)",
	} {
		assert.Equal(t, want, outcome.String())
		text, err := json.Marshal(map[string]gateway.Outcome{"outcome": outcome})
		if strings.HasPrefix(want, "Outcome") {
			assert.Error(t, err)
			continue
		}
		require.NoError(t, err)
		assert.JSONEq(t, `{"outcome":"`+want+`"}`, string(text))
		var back map[string]gateway.Outcome
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, outcome, back["outcome"])
	}
	assert.Error(t, new(gateway.Outcome).UnmarshalText([]byte("Succeeded")))
}

// No generic helper may send an unknown invoice again, and no handler of
// cancelled requests may swallow it.
// I-127
func TestOutcomeUnknownError(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{
		context.Canceled, context.DeadlineExceeded, io.EOF, syscall.ECONNRESET,
		&gateway.APIError{StatusCode: 503}, &net.OpError{Op: "read", Err: temporaryError{}}, &gateway.ArgumentError{},
	} {
		err := error(&gateway.OutcomeUnknownError{Operation: "create_invoice", OrderID: "A\n17", Cause: cause})
		assertInvariants(t, nil, err)
		ended := cause == context.Canceled || cause == context.DeadlineExceeded
		assert.Equal(t, ended, errors.Is(err, cause), "%v", cause)
		assert.NotErrorIs(t, err, gateway.ErrInvalidArgument)
		assert.Nil(t, errors.Unwrap(err))
		var network net.Error
		require.ErrorAs(t, err, &network)
		assert.False(t, network.Timeout())
		var temporary interface{ Temporary() bool }
		require.ErrorAs(t, err, &temporary)
		assert.False(t, temporary.Temporary())
		var refusal *gateway.APIError
		assert.False(t, errors.As(err, &refusal))
	}
}

// An error that is made by hand, and its zero value, is one line and does no harm.
func TestErrors_madeByHand(t *testing.T) {
	t.Parallel()
	broken := errors.New("gateway: it\nbroke\r\n\tat once")
	for _, err := range append(
		zeroErrors(),
		&gateway.TransportError{Operation: "balance", Phase: gateway.PhaseWait, Err: broken},
		&gateway.WaitError{WithdrawRequestID: "w\n1", Err: broken, Fault: broken},
		&gateway.APIError{Operation: "balance", StatusCode: 500, Message: "it\nbroke"},
		&gateway.APIError{Operation: "balance", StatusCode: 500, Body: []byte("it\nbroke")},
		&gateway.DecodeError{Operation: "balance", StatusCode: 200, Err: broken, Body: []byte("it\nbroke")},
	) {
		t.Run(fmt.Sprintf("%T", err), func(t *testing.T) {
			t.Parallel()
			assertInvariants(t, nil, err)
			assert.False(t, gateway.SafeToRetry(err))
			assert.NotEqual(t, succeeded, gateway.OutcomeOf(err))
		})
	}
}

// A nil pointer to an error is unknown, and a switch over types and outcomes survives it.
func TestErrors_nilPointer(t *testing.T) {
	t.Parallel()
	for _, zero := range zeroErrors() {
		err := reflect.Zero(reflect.TypeOf(zero)).Interface().(error)
		_, isConflict := errors.AsType[*gateway.OrderConflictError](err)
		assert.Equal(t, reflect.TypeOf(err) == reflect.TypeFor[*gateway.OrderConflictError](), isConflict, "%T", err)
		assert.Equal(t, unknown, gateway.OutcomeOf(err), "%T", err)
		assert.False(t, gateway.SafeToRetry(err), "%T", err)
	}
}

// zeroErrors returns an error of each type.
func zeroErrors() []error {
	return []error{
		&gateway.ArgumentError{}, &gateway.APIError{}, &gateway.DecodeError{}, &gateway.TransportError{}, &gateway.OutcomeUnknownError{},
		&gateway.OrderConflictError{}, &gateway.WaitError{},
	}
}

// Every sentinel is distinct and has the prefix of the package.
func TestSentinels(t *testing.T) {
	t.Parallel()
	for i, a := range sentinels {
		if a == context.DeadlineExceeded {
			continue
		}
		assert.True(t, strings.HasPrefix(a.Error(), "gateway: "), a.Error())
		for _, b := range sentinels[i+1:] {
			assert.NotErrorIs(t, a, b)
			assert.NotEqual(t, a.Error(), b.Error())
		}
	}
}

// The outcome of a call is proved by the latch and by the service's response, and by nothing in the chain of an error: the
// cause of a context may be the error of another invoice, as it is in an errgroup, and a transport may fail with any error.
func TestErrors_ofOthersProveNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  error
	}{
		{"another invoice was rejected", &gateway.APIError{Operation: "create_invoice", StatusCode: 400, Outcome: rejected, Message: "of another"}},
		{"another invoice was not sent", &gateway.ArgumentError{Operation: "create_invoice", Name: "orderId", Reason: "of another"}},
		{"another read may be made again", &gateway.APIError{Operation: "balance", StatusCode: 503, Retryable: true}},
		{"another order is held", fmt.Errorf("guard: %w", gateway.ErrOrderInFlight)},
	} {
		for where, trip := range map[string]func(req *http.Request, cancel context.CancelCauseFunc) (*http.Response, error){
			"the context ends": func(req *http.Request, cancel context.CancelCauseFunc) (*http.Response, error) {
				cancel(tt.err)
				return hangTrip(req)
			},
			"the transport fails": func(*http.Request, context.CancelCauseFunc) (*http.Response, error) { return nil, tt.err },
			"the body fails": func(*http.Request, context.CancelCauseFunc) (*http.Response, error) {
				response := reply(200, "")
				response.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"result":`), brokenReader{tt.err}))
				return response, nil
			},
		} {
			t.Run(where+" with that "+tt.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					c := newClient(t, "http://localhost", through(func(req *http.Request) (*http.Response, error) { return trip(req, cancel) }))
					got, err := c.CreateInvoice(ctx, order("A-17"))
					assertInvariants(t, got, err)
					var lost *gateway.OutcomeUnknownError
					assert.ErrorAs(t, err, &lost)
					assert.Equal(t, unknown, gateway.OutcomeOf(err), "the invoice was sent: %v", err)
					assert.False(t, gateway.SafeToRetry(err))
					_, err = c.CreateInvoice(t.Context(), order("A-17"))
					assertUnknownBefore(t, err, "the guard holds the order")
				})
			})
		}
	}
	t.Run("a source of keys fails with the error of a call of its own", func(t *testing.T) {
		t.Parallel()
		for _, other := range zeroErrors() {
			c := clientWithKeySource(t, "http://localhost", func(context.Context) (string, error) {
				return "", fmt.Errorf("no key: %w", errors.Join(other, io.ErrUnexpectedEOF))
			})
			_, err := c.Balance(t.Context(), gateway.BalanceQuery{})
			require.ErrorContains(t, err, "unexpected EOF")
			found := reflect.New(reflect.TypeOf(other))
			if errors.As(err, found.Interface()) {
				assert.NotSame(t, other, found.Elem().Interface())
			}
		}
	})
}

// The cause of an unknown outcome is for a person to read: it is unknown itself, and SafeToRetry of it is false.
// [TestClient_EveryStatus] has the statuses.
func TestOutcomeUnknownError_Cause(t *testing.T) {
	t.Parallel()
	brokenBody := func(err error) tripper {
		return func(req *http.Request) (*http.Response, error) {
			drain(req)
			got := reply(200, "")
			got.Body = io.NopCloser(brokenReader{err})
			return got, nil
		}
	}
	for name, trip := range map[string]tripper{
		"a name server that did not respond, after reading": readThen(temporaryError{}),
		"a connection that was refused, after reading":      readThen(refusedConnection("connect")),
		"an end":                                 readThen(io.EOF),
		"an end in the middle":                   readThen(io.ErrUnexpectedEOF),
		"a timeout":                              readThen(context.DeadlineExceeded),
		"an attempt's timeout":                   hangAfterReading,
		"a redirect":                             statusTrip(302, "", "Location", "/"),
		"a status that is not final":             statusTrip(101, ""),
		"a page":                                 statusTrip(200, "<html>"),
		"a body that is cut":                     statusTrip(200, `{"message":`),
		"a refusal with success":                 statusTrip(200, refused("No.")),
		"a body that breaks off":                 brokenBody(io.ErrUnexpectedEOF),
		"a body that is not what it is labelled": brokenBody(fmt.Errorf("gzip: %w", flate.CorruptInputError(1))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: trip}))
				_, err := c.CreateInvoice(t.Context(), order("A-17"))
				lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
				require.True(t, ok, "%v", err)
				for _, e := range []error{err, lost.Cause, fmt.Errorf("shop: %w", lost.Cause), errors.Join(io.EOF, lost.Cause)} {
					assert.False(t, gateway.SafeToRetry(e), "%v", e)
					assert.Equal(t, unknown, gateway.OutcomeOf(e))
				}
			})
		})
	}
}

// An error helps a person at night: it names the value that could not be read, a compression that nobody asked for, the
// expected message of a success, and why there is no body.
func TestErrors_say(t *testing.T) {
	t.Parallel()
	falseGzip := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(503)
		_, _ = io.WriteString(w, "<html>Service Unavailable</html>")
	})
	_, err := newClient(t, falseGzip.URL, once()).ExchangeRates(t.Context())
	assert.EqualError(t, err, "gateway: exchange_rates: 503: no message in the response: empty body, gzip: invalid header")
	_, err = cannedClient(t, 200, enveloped(strings.Replace(pairJSON, `"1.5"`, `"12,5"`, 1))).CoinNetwork(t.Context(), pairID)
	assert.ErrorContains(t, err, `/result/withdrawalFee: "12,5" is not a decimal number`)
	assert.Equal(t, `"12,5"`, err.(*gateway.DecodeError).Value)
	brotli := newClient(t, "https://gateway.test", through(func(*http.Request) (*http.Response, error) {
		return reply(200, "\x1f\x8b", "Content-Encoding", "br"), nil
	}))
	_, err = brotli.ExchangeRates(t.Context())
	assert.ErrorContains(t, err, `Content-Encoding "br", which was not asked for`)
	assert.Equal(t, "br", err.(*gateway.DecodeError).ContentEncoding)
	another := strings.Replace(enveloped(invoiceJSON), "Operation was successful.", "OK", 1)
	_, err = cannedClient(t, 200, another).CreateInvoice(t.Context(), order("A-17"))
	assert.ErrorContains(t, err, `/message: "OK" is not the message of a success, "Operation was successful.": name it by WithSuccessMessage, or read the result by WithInvoiceDecoder`)
	_, err = cannedClient(t, 200, another, gateway.WithSuccessMessage("Done")).CreateInvoice(t.Context(), order("A-17"))
	assert.ErrorContains(t, err, `"OK" is not the message of a success, "Done"`)
	_, err = cannedClient(t, 201, invoiceJSON).CreateInvoice(t.Context(), order("A-17"))
	assert.ErrorContains(t, err, "/result: is missing; WithInvoiceDecoder reads a body without an envelope")
}

// No text of an error without a response shows the key or a password, also where the text is cut, nor does what it wraps. A
// timeout stays one. Package redact tests which texts are passwords.
func TestErrors_keepNoSecret(t *testing.T) {
	t.Parallel()
	account := "http://user:" + password + "@proxy:3128"
	at := func(size int, text string) error { return errors.New(strings.Repeat("p", size-len(text)) + text) }
	for _, tt := range []struct {
		name    string
		err     error
		timeout bool
	}{
		{"the key", errors.New("bad header X-Api-Key: " + canary), false},
		{"the key in an error that is wrapped", fmt.Errorf("a: %w", silent{errors.New(canary)}), false},
		{"a password", errors.New("cannot reach " + account), false},
		{"a password across the cut of the text", errors.New(strings.Repeat("p", 1024-len("http://user:")-len(password)+4) + account), false},
		{"a password in a bad address at the cut", errors.New(strings.Repeat("p", 1024-30) + `invalid proxy address "` + account + `"`), false},
		{"a password beyond the examined part", at(16<<10+40, account), false},
		{"the end of another context", context.Canceled, false},
		{"a timeout with the key", timeoutError{canary}, true},
		{"a timeout with a password", timeoutError{account}, true},
		{"a timeout with neither", timeoutError{"of the wire"}, true},
		{"a timeout of many lines", timeoutError{"a\nb"}, true},
		{"a timeout that is too long", timeoutError{strings.Repeat("p", 8<<10)}, true},
		{"a timeout that is wrapped with the key", fmt.Errorf("%s: %w", canary, timeoutError{}), true},
		{"a deadline that is wrapped with the key", fmt.Errorf("%s: %w", canary, context.DeadlineExceeded), true},
		{"a timeout with an error of ours", errors.Join(gateway.ErrInvalidArgument, timeoutError{canary}), true},
		{"a timeout with a refusal of ours", errors.Join(&gateway.APIError{StatusCode: 400}, timeoutError{canary}), true},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			for _, trip := range []tripper{readThen(tt.err), func(req *http.Request) (*http.Response, error) {
				drain(req)
				got := reply(s.status, "")
				got.Body = io.NopCloser(brokenReader{tt.err})
				return got, nil
			}} {
				c := newClient(t, "http://localhost", once(), gateway.WithOrderGuard(nil), gateway.WithHTTPClient(&http.Client{Transport: trip}))
				got, err := s.call(t.Context(), c)
				assertInvariants(t, got, err)
				assertSilent(t, err, canary)
				assertSilent(t, err, password[:6])
				assert.Less(t, len(err.Error()), 4<<10)
				if tt.timeout {
					assertTimedOut(t, s, err)
				}
			}
		})
	}
}

// assertTimedOut asserts that a read timed out, and that for an invoice this is
// the cause of its unknown outcome only.
func assertTimedOut(t *testing.T, s subject, err error) {
	t.Helper()
	if s.write {
		assertSentinels(t, err, context.DeadlineExceeded)
		lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
		require.True(t, ok)
		err = lost.Cause
	}
	assertSentinels(t, err, context.DeadlineExceeded)
	failure, ok := errors.AsType[*gateway.TransportError](err)
	require.True(t, ok)
	assert.True(t, failure.Timeout())
}

// assertSilent asserts that nothing that prints, encodes, logs or dumps v shows a key.
func assertSilent(t testing.TB, v any, key string) {
	t.Helper()
	assert.Empty(t, invariant.Shows(v, key), "a key is shown")
}

// silent is an error whose text leaves out the text of the error that it wraps.
type silent struct{ error }

func (silent) Error() string   { return "nothing to see" }
func (s silent) Unwrap() error { return s.error }

// sanitizedBy is the error of a call whose transport fails with err. The key of the client has characters that encodings change.
func sanitizedBy(t *testing.T, err error, opts ...gateway.Option) error {
	t.Helper()
	c, failure := gateway.New("https://gateway.example", redactedKey, append(opts, once(), gateway.WithHTTPClient(&http.Client{Transport: errorTrip(err)}))...)
	require.NoError(t, failure)
	_, failure = c.CoinNetworks(t.Context())
	require.Error(t, failure)
	return failure
}

const redactedKey = `Canary/5f1d 8e0b+7a"64<c9`

// Errors.As finds no error that has the key in its text, or in the text of an error that it wraps.
func TestRedaction_As(t *testing.T) {
	t.Parallel()
	named := errors.New("at " + redactedKey)
	for name, err := range map[string]error{
		"a protocol error":         textproto.ProtocolError("malformed header " + redactedKey),
		"a wrapped protocol error": fmt.Errorf("a: %w", textproto.ProtocolError(redactedKey)),
		"a URL":                    &url.Error{Op: "Get", URL: "https://gateway.example/" + url.PathEscape(redactedKey), Err: io.EOF},
		"a URL with a password":    &url.Error{Op: "Get", URL: "http://user:hunter2@proxy", Err: io.EOF},
		"an operation":             &net.OpError{Op: "dial", Net: "tcp", Err: named},
		"a lookup":                 &net.DNSError{Err: "no such host", Name: redactedKey},
		"a silent wrapper":         silent{named},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := sanitizedBy(t, fmt.Errorf("a: %w", errors.Join(io.EOF, err)))
			var (
				protocol textproto.ProtocolError
				located  *url.Error
				op       *net.OpError
				lookup   *net.DNSError
				wrapper  silent
				timeout  interface{ Timeout() bool }
				unwrap   interface{ Unwrap() error }
				many     interface{ Unwrap() []error }
			)
			for _, target := range []any{&protocol, &located, &op, &lookup, &wrapper, &timeout, &unwrap, &many} {
				for inner := failure; inner != nil; inner = errors.Unwrap(inner) {
					_ = errors.As(inner, target)
				}
				text := fmt.Sprintf("%v %+v %s", target, target, invariant.Dump(target))
				assert.NotContains(t, text, redactedKey, "%T", target)
				assert.NotContains(t, text, "hunter2", "%T", target)
				assert.NotContains(t, text, url.PathEscape(redactedKey), "%T", target)
			}
		})
	}
}

// A requestError is an error that holds the request, as some transports return.
type requestError struct{ Header http.Header }

func (e *requestError) Error() string { return "cannot send" }

// Callers can still tell errors apart. An error that holds the key, but shows it in no text, is found too.
func TestRedaction_As_keeps(t *testing.T) {
	t.Parallel()
	held := &requestError{http.Header{"X-Api-Key": {redactedKey}}}
	for _, wrapped := range []error{held, fmt.Errorf("pool: %w", held), errors.Join(io.ErrUnexpectedEOF, held)} {
		failure := sanitizedBy(t, wrapped)
		found, _ := errors.AsType[*requestError](failure)
		assert.Same(t, held, found)
		encoded, err := json.Marshal(failure)
		require.NoError(t, err)
		assert.NotContains(t, fmt.Sprintf("%v %+v %s", failure, failure, encoded), redactedKey)
	}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	failure := sanitizedBy(t, reset)
	op, _ := errors.AsType[*net.OpError](failure)
	assert.Same(t, reset, op)
	assert.ErrorIs(t, failure, syscall.ECONNRESET)
	_, isUntrusted := errors.AsType[x509.UnknownAuthorityError](sanitizedBy(t, x509.UnknownAuthorityError{Cert: &x509.Certificate{Raw: []byte("a")}}))
	assert.True(t, isUntrusted)
	assert.ErrorIs(t, sanitizedBy(t, fmt.Errorf("at %s: %w", redactedKey, context.DeadlineExceeded)), context.DeadlineExceeded)
	assert.ErrorIs(t, sanitizedBy(t, fmt.Errorf("at %s: %w", redactedKey, context.Canceled)), context.Canceled)

	slow := sanitizedBy(t, &net.DNSError{Err: "slow", Name: redactedKey, IsTimeout: true})
	var timeout net.Error
	require.ErrorAs(t, slow, &timeout, "a timeout that names the key is a timeout")
	assert.True(t, timeout.Timeout())
	assert.NotContains(t, fmt.Sprintf("%v %+v %s", timeout, timeout, invariant.Dump(timeout)), redactedKey)
}

// plainHandler writes records without quotes.
type plainHandler struct{ out *strings.Builder }

func (plainHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h plainHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h plainHandler) WithGroup(string) slog.Handler          { return h }
func (h plainHandler) Handle(_ context.Context, r slog.Record) error {
	h.out.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(h.out, " %s=%s", a.Key, a.Value); return true })
	h.out.WriteString("\n")
	return nil
}

// No text of a service or a transport, a name of a member included, begins a line of its own in a log, nor does it change
// the terminal that shows it.
func TestErrors_forgeNoLine(t *testing.T) {
	t.Parallel()
	for name, forged := range map[string]string{
		"a line end": "\n", "a return": "\r", "a terminal's escape": "\x1b", "a bidi control": "\u202e", "a line separator": "\u2028",
		"a C1 control": "\u009b", "a line end of Unicode": "\u0085", "a DEL": "\x7f", "a byte that is not UTF-8": "\x9b",
	} {
		quoted := `"a` + strings.NewReplacer("\n", `\n`, "\r", `\r`, "\x1b", `\u001b`).Replace(forged) + `forged"`
		forEach(t, name, func(t *testing.T, s subject) {
			var log strings.Builder
			logger := gateway.WithLogger(slog.New(plainHandler{&log}))
			for _, result := range []string{
				`{` + quoted + `:[]}`,
				`{` + quoted + `:nope}`,
				`{` + quoted + `:{"deep":nope}}`,
				`{` + quoted + `:{"usd":"x","eur":"1","balance":"x"}}`,
				`[{"symbol":` + quoted + `,"usd":"x","eur":"1","balance":"x"}]`,
			} {
				for _, status := range []int{s.status, 400} {
					body := `{"message":` + quoted + `,"meta":{` + quoted + `:1},"result":` + result + `,` + quoted + `:2}`
					got, err := s.call(t.Context(), cannedClient(t, status, body, logger))
					assertInvariants(t, got, err)
					if err != nil {
						log.WriteString(err.Error())
						assert.False(t, strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }), "%q", err.Error())
					}
				}
			}
			_, err := s.call(t.Context(), newClient(t, "http://localhost", once(), logger, through(errorTrip(errors.New("a"+forged+"forged")))))
			log.WriteString(err.Error())
			assert.Contains(t, log.String(), "forged")
			assert.NotContains(t, log.String(), forged+"forged")
		})
	}
}
