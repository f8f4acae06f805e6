package gateway_test

import (
	"compress/flate"
	"compress/gzip"
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
		return call(cancelledContext(), c)
	}
}

func respondAlways(status int) tripper {
	return func(*http.Request) (*http.Response, error) { return reply(status, refused("No.")), nil }
}

// Errors as the client returns them: the transport and the call that cause each, its exact text, what it means for the
// order, and all that errors.Is finds. The cause of an unknown outcome is for a person to read: it proves nothing either.
// I-35, I-36, I-37, I-150, I-152, I-153, I-156, I-158, I-160
func TestErrors(t *testing.T) {
	t.Parallel()
	// The text is whole, or its beginning if it ends in ": "; again is SafeToRetry.
	check := func(name string, trip tripper, call callOf, text string, outcome gateway.Outcome, again bool, is ...error) {
		inBubble(t, name, func(t *testing.T) {
			got, err := call(t.Context(), newClient(t, "http://localhost", over(trip)))
			require.Error(t, err)
			assertInvariants(t, got, err)
			if strings.HasSuffix(text, ": ") {
				assert.True(t, strings.HasPrefix(err.Error(), text), err.Error())
			} else {
				assert.EqualError(t, err, text)
			}
			for _, target := range append([]error{context.Canceled, syscall.ECONNREFUSED}, sentinels...) {
				assert.Equal(t, slices.Contains(is, target), errors.Is(err, target), "%q of %v", target, err)
			}
			errs := []error{err, fmt.Errorf("shop: %w", err), errors.Join(nil, err)}
			lost, isLost := errors.AsType[*gateway.OutcomeUnknownError](err)
			if isLost {
				errs = append(errs, lost.Cause, fmt.Errorf("shop: %w", lost.Cause), errors.Join(io.EOF, lost.Cause))
			}
			for _, wrapped := range errs {
				assert.Equal(t, outcome, gateway.OutcomeOf(wrapped))
				assert.Equal(t, again, gateway.SafeToRetry(wrapped))
			}
			var timeout interface{ Timeout() bool }
			isTimeout := !isLost && slices.Contains(is, error(context.DeadlineExceeded))
			assert.Equal(t, isTimeout, errors.As(err, &timeout) && timeout.Timeout())
		})
	}
	read := func(name string, trip tripper, text string, again bool, is ...error) {
		check(name, trip, withdrawalCall, "gateway: withdrawal: "+text, unknown, again, is...) // of an invoice
	}
	const noKey, redirected, last = "x-api-key header is required", "wait: redirect not followed", "; last status 302"
	long, secret := strings.Repeat("a", 120), "https://user:secret@evil.test/in?apiKey="+canary
	mismatch := enveloped(strings.Replace(withdrawalJSON, requestID, "another", 1))
	read("a refusal", statusTrip(404, refused("Not Found")), `404: "Not Found"`, false, gateway.ErrNotFound)
	check("not found, where every gateway has it", statusTrip(404, refused("No.")), func(ctx context.Context, c *gateway.Client) (any, error) {
		return c.ExchangeRates(ctx)
	}, `gateway: exchange_rates: 404: "No."; is the path of the base URL right?`, unknown, false, gateway.ErrNotFound)
	read("a missing key", statusTrip(418, refused(noKey)), `418: "`+noKey+`"`, false, gateway.ErrMissingAPIKey)
	read("another message of it", statusTrip(401, refused("X-API-key")), `401: "X-API-key"`, false, gateway.ErrUnauthorized)
	read("several lines", statusTrip(409, `{"message":"a\nb\u001b[31m","result":[]}`), `409: "a\nb\x1b[31m"`, false, gateway.ErrConflict)
	read("a web page", statusTrip(403, "<html>\nno"), `403: no message in the response: "<html>\nno"`, false, gateway.ErrForbidden)
	read("a long body", statusTrip(400, long+"a"), `400: no message in the response: "`+long+`"…`, false)
	read("a body that fits", statusTrip(400, long), `400: no message in the response: "`+long+`"`, false)
	read("a server error", statusTrip(502, ""), `502: no message in the response: empty body (3 attempts)`, true, gateway.ErrServer)
	read("a wait", statusTrip(429, refused("No."), "Retry-After", "90"), `429: "No."; retry after 1m30s`, true, gateway.ErrRateLimited)
	read("an error envelope with 200", statusTrip(200, refused("No.")), `200: "No."`, false)
	read("a success without a result", statusTrip(201, refused("Operation was successful.")),
		`201: "Operation was successful.", but without a result`, false)
	read("a response that cannot be decoded", statusTrip(200, "<html>"), "200: response not understood: ", false)
	read("a response without a body", statusTrip(200, ""), "200: response not understood: the body is empty: empty body", false)
	read("another withdrawal", statusTrip(201, mismatch),
		`201: response not understood: /result/withdrawRequestId: "another" is another record than the requested one: `, false,
		gateway.ErrResponseMismatch)
	read("a redirect", statusTrip(302, "", "Location", secret), redirected+": to https://evil.test/in"+last, false, gateway.ErrRedirect)
	read("a redirect to a key", statusTrip(302, "", "Location", canary), redirected+": to [REDACTED]"+last, false, gateway.ErrRedirect)
	read("a redirect to nowhere", statusTrip(302, ""), redirected+last, false, gateway.ErrRedirect)
	read("a refused connection", brokenConnect, "start: dial tcp: connect: connection refused (3 attempts)", true, syscall.ECONNREFUSED)
	read("an attempt that takes too long", hangTrip, "start: no response within 15s (3 attempts)", true, context.DeadlineExceeded)
	check("the caller's deadline", hangTrip, within(time.Second, withdrawalCall),
		"gateway: withdrawal: start: context deadline exceeded", unknown, false, context.DeadlineExceeded)
	check("a call that was cancelled", hangTrip, cancelled(withdrawalCall),
		"gateway: withdrawal: start: context canceled", unknown, false, context.Canceled)

	invoice := func(name string, trip tripper, text string, outcome gateway.Outcome, again bool, is ...error) {
		if outcome == unknown {
			text = `outcome unknown: an invoice for order "A-17" may exist, look it up before sending it again: ` + text
		}
		check(name, trip, invoiceCall, "gateway: create_invoice: "+text, outcome, again, is...)
	}
	lookup := &net.DNSError{Err: "no such host", Name: "localhost", IsNotFound: true}
	expired := x509.CertificateInvalidError{Reason: x509.Expired}
	unread := func(*http.Request) (*http.Response, error) { return reply(201, enveloped(invoiceJSON)), nil }
	const cause = "wait: the transport returned a success without having read the invoice; last status 201"
	invoice("a rejected invoice", statusTrip(422, refused("No.")), `422: "No."`, rejected, false)
	invoice("a throttled invoice", statusTrip(429, refused("No.")), `429: "No."`, rejected, true, gateway.ErrRateLimited)
	invoice("an invoice over a refused connection", brokenConnect,
		"start: dial tcp: connect: connection refused; nothing was sent (3 attempts)", notSent, true, syscall.ECONNREFUSED)
	invoice("an invoice to no host", errorTrip(lookup), "start: lookup localhost: no such host; nothing was sent", notSent, true)
	invoice("an old certificate", errorTrip(expired),
		"start: x509: certificate has expired or is not yet valid:; nothing was sent", notSent, true)
	check("an invoice of a caller who has gone", hangTrip, cancelled(invoiceCall),
		"gateway: create_invoice: start: context canceled; nothing was sent", notSent, false, context.Canceled)
	invoice("an invoice whose response is lost", readThen(io.ErrUnexpectedEOF), "start: unexpected EOF", unknown, false)
	invoice("an invoice that took too long", hangAfterReading, "start: no response within 1m0s", unknown, false, context.DeadlineExceeded)
	invoice("a name server that did not respond, after reading", readThen(temporaryError{}), "start: try again", unknown, false)
	invoice("a refusal to connect, after reading", readThen(refusedConnection("x")), "start: dial tcp: x: connection refused", unknown, false)
	invoice("an invoice and a redirect", statusTrip(302, ""), redirected+last, unknown, false)
	invoice("an invoice and no final status", statusTrip(101, ""), "wait: status 101 is not a response; last status 101", unknown, false)
	invoice("an invoice and a page", statusTrip(200, "<html>"), "200: response not understood: ", unknown, false)
	invoice("an invoice and a refusal with success", statusTrip(200, refused("No.")), `200: "No."`, unknown, false)
	invoice("a body that breaks off", brokenBody(200, "", io.ErrUnexpectedEOF), "read: unexpected EOF; last status 200", unknown, false)
	invoice("a false gzip", brokenBody(200, "", flate.CorruptInputError(1)), "200: response not understood: ", unknown, false)
	invoice("an invoice and a server error", statusTrip(503, refused("No.")), `503: "No."`, unknown, false, gateway.ErrServer)
	invoice("a success of a transport that has not read the invoice", unread, cause, unknown, false)
}

// Errors mean what their fields say, also those that a fake makes by hand, through any wrapping. Of joined errors the least
// certain counts, and an error of another package proves nothing.
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
	}{
		{"no error", nil, succeeded, false},
		{"an argument", argument, notSent, false},
		{"a refusal", refusal, rejected, false},
		{"a refusal for now", throttled, rejected, true},
		{"a response that proves nothing", &gateway.APIError{StatusCode: 400}, unknown, false},
		{"a response that is not understood", &gateway.DecodeError{StatusCode: 200}, unknown, false},
		{"a response to a read that is not understood", &gateway.DecodeError{Outcome: notSent, Retryable: true}, notSent, true},
		{"a dial", &gateway.TransportError{Phase: gateway.PhaseDial, Outcome: notSent, Retryable: true}, notSent, true},
		{"a dial without its outcome", &gateway.TransportError{Phase: gateway.PhaseDial}, unknown, false},
		{"an unknown outcome", lost, unknown, false},
		{"an unknown outcome, idempotent", &gateway.OutcomeUnknownError{OrderID: "A-17", Retryable: true}, unknown, true},
		{"a conflict", &gateway.OrderConflictError{OrderID: "A-17"}, conflict, false},
		{"a withdrawal that failed", &gateway.WaitError{Err: gateway.ErrWithdrawalFailed}, unknown, false},
		{"an argument of another method", &gateway.ArgumentError{Operation: gateway.OpBalance, Name: "networkName"}, unknown, false},

		{"an error of another package", io.EOF, unknown, false},
		{"an error of a context", context.Canceled, unknown, false},
		{"a sentinel", gateway.ErrInvalidArgument, unknown, false},
		{"an error that wraps nothing", fmt.Errorf("nothing: %w", error(nil)), unknown, false},
		{"an error that only claims to match", claimsArgument{}, unknown, false},

		{"a refusal that is wrapped twice", fmt.Errorf("b: %w", fmt.Errorf("a: %w", refusal)), rejected, false},
		{"a refusal joined with an argument", errors.Join(refusal, argument), rejected, false},
		{"refusals for now joined", errors.Join(throttled, throttled), rejected, true},
		{"a conflict joined with a refusal", errors.Join(refusal, &gateway.OrderConflictError{}), conflict, false},
		{"a refusal joined with an unknown outcome", errors.Join(refusal, lost), unknown, false},
		{"an argument joined with an unknown outcome", errors.Join(argument, lost), unknown, false},
		{"a refusal for now joined with an unknown outcome", errors.Join(throttled, lost), unknown, false},
		{"a refusal for now joined with an error of another package", errors.Join(throttled, io.EOF), unknown, false},
		{"an argument wrapped beside an error of another package", fmt.Errorf("%w: %w", io.EOF, argument), unknown, false},
	} {
		wrapped := []error{tt.err}
		if tt.err != nil {
			wrapped = append(wrapped, errors.Join(tt.err), fmt.Errorf("shop: %w", tt.err))
		}
		for _, err := range wrapped {
			assert.Equal(t, tt.want, gateway.OutcomeOf(err), tt.name)
			assert.Equal(t, tt.again, gateway.SafeToRetry(err), tt.name)
		}
	}
}

// claimsArgument is an error of another package.
type claimsArgument struct{}

func (claimsArgument) Error() string        { return "nothing was sent" }
func (claimsArgument) Is(target error) bool { return target == gateway.ErrInvalidArgument }

func TestOutcome_String(t *testing.T) {
	t.Parallel()
	assert.Equal(t, unknown, *new(gateway.Outcome), "the zero value is the safe one")
	for outcome, want := range map[gateway.Outcome]string{
		unknown: "unknown", succeeded: "succeeded", notSent: "not sent", rejected: "rejected", conflict: "conflict",
	} {
		assert.Equal(t, want, outcome.String())
		text, err := json.Marshal(outcome)
		require.NoError(t, err)
		assert.Equal(t, `"`+want+`"`, string(text))
		back := gateway.Outcome(-1)
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, outcome, back)
	}
	for outcome, want := range map[gateway.Outcome]string{5: "Outcome(5)", -1: "Outcome(-1)"} {
		assert.Equal(t, want, outcome.String())
		_, err := json.Marshal(outcome)
		assert.Error(t, err)
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
		_, isNetwork := errors.AsType[net.Error](err) // a generic helper would look whether it may retry
		assert.False(t, isNetwork)
		_, isRefusal := errors.AsType[*gateway.APIError](err)
		assert.False(t, isRefusal)
	}
}

// An error that is made by hand, its zero value and a nil pointer, is one line and does no harm.
func TestErrors_madeByHand(t *testing.T) {
	t.Parallel()
	for _, zero := range zeroErrors() {
		err := reflect.Zero(reflect.TypeOf(zero)).Interface().(error)
		_, _ = errors.AsType[*gateway.WaitError](err) // it does not panic
		assert.Equal(t, unknown, gateway.OutcomeOf(err), "%T", err)
		assert.False(t, gateway.SafeToRetry(err), "%T", err)
	}
	broken := errors.New("gateway: it\nbroke\r\n\tat once")
	for _, err := range append(
		zeroErrors(),
		&gateway.TransportError{Operation: "balance", Phase: gateway.PhaseWait, Err: broken},
		&gateway.WaitError{WithdrawRequestID: "w\n1", Err: broken, Fault: broken},
		&gateway.APIError{Operation: "balance", StatusCode: 500, Message: "it\nbroke"},
		&gateway.APIError{Operation: "balance", StatusCode: 500, Body: []byte("it\nbroke")},
		&gateway.DecodeError{Operation: "balance", StatusCode: 200, Err: broken, Body: []byte("it\nbroke")},
	) {
		assertInvariants(t, nil, err)
		assert.False(t, gateway.SafeToRetry(err), "%T", err)
		assert.NotEqual(t, succeeded, gateway.OutcomeOf(err), "%T", err)
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
	for _, a := range sentinels {
		assert.True(t, a == context.DeadlineExceeded || strings.HasPrefix(a.Error(), "gateway: "), a.Error())
		assertSentinels(t, a, a)
	}
}

// brokenBody responds with a body that begins and then fails.
func brokenBody(status int, text string, err error) tripper {
	return func(req *http.Request) (*http.Response, error) {
		drain(req)
		response := reply(status, "")
		response.Body = io.NopCloser(io.MultiReader(strings.NewReader(text), brokenReader{err}))
		return response, nil
	}
}

// The outcome of a call is proved by the latch and by the service's response, and by nothing in the chain of an error: the
// cause of a context may be the error of another invoice, as it is in an errgroup, and a transport may fail with any error.
func TestErrors_ofOthersProveNothing(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]error{
		"another invoice was rejected":   &gateway.APIError{Operation: "create_invoice", StatusCode: 400, Outcome: rejected},
		"another invoice was not sent":   &gateway.ArgumentError{Operation: "create_invoice", Name: "orderId", Reason: "of another"},
		"another read may be made again": &gateway.APIError{Operation: "balance", StatusCode: 503, Retryable: true},
		"another order is held":          fmt.Errorf("guard: %w", gateway.ErrOrderInFlight),
	} {
		for where, trip := range map[string]tripper{
			"the context ends": hangAfterReading, "the transport fails": readThen(other), "the body fails": brokenBody(200, `{"result":`, other),
		} {
			inBubble(t, where+" with that "+name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if where == "the context ends" {
					time.AfterFunc(time.Second, func() { cancel(other) })
				}
				defer cancel(nil)
				c := newClient(t, "http://localhost", over(trip))
				got, err := c.CreateInvoice(ctx, order("A-17"))
				assertInvariants(t, got, err)
				_ = as[*gateway.OutcomeUnknownError](t, err)
				assert.Equal(t, unknown, gateway.OutcomeOf(err), "the invoice was sent: %v", err)
				assert.False(t, gateway.SafeToRetry(err))
				_, err = c.CreateInvoice(t.Context(), order("A-17"))
				assertUnknownBefore(t, err, "the guard holds the order")
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

// An error helps a person at night: it names the value that could not be read, a compression that nobody asked for, the
// expected message of a success, and why there is no body.
func TestErrors_say(t *testing.T) {
	t.Parallel()
	_, err := withdrawalCall(t.Context(), newClient(t, "http://localhost", once(), over(brokenBody(503, "", gzip.ErrHeader))))
	assert.EqualError(t, err, "gateway: withdrawal: 503: no message in the response: empty body, gzip: invalid header")
	_, err = cannedClient(t, 200, enveloped(strings.Replace(pairJSON, `"0.00000100"`, `"12,5"`, 1))).CoinNetwork(t.Context(), pairID)
	assert.ErrorContains(t, err, `/result/coin/minAmount: "12,5" is not a decimal number; WithCoinNetworkDecoder reads another form`)
	assert.Equal(t, `"12,5"`, err.(*gateway.DecodeError).Value)
	_, err = withdrawalCall(t.Context(), newClient(t, "http://localhost", over(statusTrip(200, "\x1f\x8b", "Content-Encoding", "br"))))
	assert.ErrorContains(t, err, `Content-Encoding "br", which was not asked for`)
	another := strings.Replace(enveloped(invoiceJSON), "Operation was successful.", "OK", 1)
	_, err = invoiceCall(t.Context(), cannedClient(t, 200, another))
	assert.ErrorContains(t, err, `/message: "OK" is not the message of a success, "Operation was successful.": `+
		`name it by WithSuccessMessage, or read the result by WithInvoiceDecoder`)
	_, err = invoiceCall(t.Context(), cannedClient(t, 200, another, gateway.WithSuccessMessage("Done")))
	assert.ErrorContains(t, err, `"OK" is not the message of a success, "Done"`)
	_, err = invoiceCall(t.Context(), cannedClient(t, 201, invoiceJSON))
	assert.ErrorContains(t, err, "/result: is missing; WithInvoiceDecoder reads a body without an envelope")
}

// No text of an error without a response shows the key or a password, also where the text is cut, nor does what it wraps. A
// timeout stays one. Package redact tests which texts are passwords.
func TestErrors_keepNoSecret(t *testing.T) {
	t.Parallel()
	account := "http://user:" + password + "@proxy:3128"
	at := func(size int, text string) error { return errors.New(strings.Repeat("p", size-len(text)) + text) }
	for name, failure := range map[string]error{
		"the key":                                 errors.New("bad header X-Api-Key: " + canary),
		"the key in an error that is wrapped":     fmt.Errorf("a: %w", silent{errors.New(canary)}),
		"a password":                              errors.New("cannot reach " + account),
		"a password across the cut of the text":   at(1024+len("@proxy:3128")+4, account),
		"a password in a bad address at the cut":  errors.New(strings.Repeat("p", 1024-30) + `invalid proxy address "` + account + `"`),
		"a password beyond the examined part":     at(16<<10+40, account),
		"the end of another context":              context.Canceled,
		"a timeout with the key":                  timeoutError{canary},
		"a timeout that is too long":              timeoutError{strings.Repeat("p", 8<<10)},
		"a timeout that is wrapped with the key":  fmt.Errorf("%s: %w", canary, timeoutError{}),
		"a deadline that is wrapped with the key": fmt.Errorf("%s: %w", canary, context.DeadlineExceeded),
		"a timeout with an error of ours":         errors.Join(gateway.ErrInvalidArgument, timeoutError{canary}),
	} {
		for _, call := range []callOf{withdrawalCall, invoiceCall} {
			inBubble(t, name, func(t *testing.T) {
				for _, trip := range []tripper{readThen(failure), brokenBody(201, "", failure)} {
					got, err := call(t.Context(), newClient(t, "http://localhost", once(), over(trip)))
					assertInvariants(t, got, err)
					assertSilent(t, err, canary)
					assertSilent(t, err, password[:6])
					assert.Less(t, len(err.Error()), 4<<10)
					if !strings.HasPrefix(name, "a timeout") && !strings.HasPrefix(name, "a deadline") {
						continue
					}
					assertSentinels(t, err, context.DeadlineExceeded)
					assertSentinels(t, causeOf(err), context.DeadlineExceeded)
					assert.True(t, as[*gateway.TransportError](t, causeOf(err)).Timeout())
				}
			})
		}
	}
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
func sanitizedBy(t *testing.T, err error) error {
	t.Helper()
	c, failure := gateway.New("https://gateway.example", redactedKey, once(), over(errorTrip(err)))
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
		"a wrapped protocol error": fmt.Errorf("a: %w", textproto.ProtocolError(redactedKey)),
		"a URL":                    &url.Error{Op: "Get", URL: "https://gateway.example/" + url.PathEscape(redactedKey), Err: io.EOF},
		"a URL with a password":    &url.Error{Op: "Get", URL: "http://user:hunter2@proxy", Err: io.EOF},
		"an operation":             &net.OpError{Op: "dial", Net: "tcp", Err: named},
		"a silent wrapper":         silent{named},
	} {
		failure := sanitizedBy(t, fmt.Errorf("a: %w", errors.Join(io.EOF, err)))
		for _, target := range []any{
			new(textproto.ProtocolError), new(*url.Error), new(*net.OpError), new(silent),
			new(interface{ Timeout() bool }), new(interface{ Unwrap() error }), new(interface{ Unwrap() []error }),
		} {
			for inner := failure; inner != nil; inner = errors.Unwrap(inner) {
				_ = errors.As(inner, target)
			}
			text := fmt.Sprintf("%v %+v %s", target, target, invariant.Dump(target))
			for _, secret := range []string{redactedKey, "hunter2", url.PathEscape(redactedKey)} {
				assert.NotContains(t, text, secret, "%s as %T", name, target)
			}
		}
	}
}

// A requestError is an error that holds the request, as some transports return.
type requestError struct{ Header http.Header }

func (e *requestError) Error() string { return "cannot send" }

// Callers can still tell errors apart. An error that holds the key, but shows it in no text, is found too.
func TestRedaction_As_keeps(t *testing.T) {
	t.Parallel()
	held := &requestError{http.Header{"X-Api-Key": {redactedKey}}}
	failure := sanitizedBy(t, fmt.Errorf("pool: %w", errors.Join(io.ErrUnexpectedEOF, held)))
	assert.Same(t, held, as[*requestError](t, failure))
	encoded, err := json.Marshal(failure)
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprintf("%v %+v %s", failure, failure, encoded), redactedKey)
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	assert.Same(t, reset, as[*net.OpError](t, sanitizedBy(t, reset)))
	for _, ended := range []error{context.DeadlineExceeded, context.Canceled} {
		assert.ErrorIs(t, sanitizedBy(t, fmt.Errorf("at %s: %w", redactedKey, ended)), ended)
	}
	var timeout net.Error
	require.ErrorAs(t, sanitizedBy(t, &net.DNSError{Err: "slow", Name: redactedKey, IsTimeout: true}), &timeout)
	assert.True(t, timeout.Timeout(), "a timeout that names the key is a timeout")
	assert.NotContains(t, fmt.Sprintf("%v %+v %s", timeout, timeout, invariant.Dump(timeout)), redactedKey)
}

// A header that is too long is cut after the key is removed: a part of the key would not be recognized.
func TestRedaction_headerThatIsCut(t *testing.T) {
	t.Parallel()
	const limit, shown = 1 << 10, 8 // bytes of the value, and of the key within them
	value := strings.Repeat("x", limit-shown) + canary
	_, err := withdrawalCall(t.Context(), newClient(t, "http://localhost", once(), over(statusTrip(404, "", "Server", value))))
	header := as[*gateway.APIError](t, err).Header.Get("Server")
	assert.LessOrEqual(t, len(header), limit)
	assert.Contains(t, header, "xxx")
	assert.False(t, strings.Contains(header, canary[:shown]), "a part of the key is shown")
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
		"a line end": "\n", "a terminal's escape": "\x1b", "a bidi control": "\u202e", "a C1 control": "\u009b", "a broken byte": "\x9b",
	} {
		quoted := `"a` + strings.NewReplacer("\n", `\n`, "\x1b", `\u001b`).Replace(forged) + `forged"`
		forEach(t, name, func(t *testing.T, s subject) {
			var log strings.Builder
			logger := gateway.WithLogger(slog.New(plainHandler{&log}))
			calls := []tripper{errorTrip(errors.New("a" + forged + "forged"))}
			for _, result := range []string{
				`{` + quoted + `:{"deep":nope}}`,
				`{` + quoted + `:{"usd":"x","eur":"1","balance":"x"}}`,
				`[{"symbol":` + quoted + `,"usd":"x","eur":"1","balance":"x"}]`,
			} {
				body := `{"message":` + quoted + `,"meta":{` + quoted + `:1},"result":` + result + `,` + quoted + `:2}`
				calls = append(calls, statusTrip(s.status, body), statusTrip(400, body))
			}
			for _, trip := range calls {
				got, err := s.call(t.Context(), newClient(t, "http://localhost", gateway.WithOrderGuard(nil), once(), logger, over(trip)))
				assertInvariants(t, got, err)
				if err != nil {
					log.WriteString(err.Error())
					assert.False(t, strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }), "%q", err.Error())
				}
			}
			assert.Contains(t, log.String(), "forged")
			assert.NotContains(t, log.String(), forged+"forged")
		})
	}
}
