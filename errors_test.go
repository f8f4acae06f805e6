package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// failures are errors as the client returns them, each with the transport and the call
// that cause it, its exact text and all that it matches.
var failures = []struct {
	name      string
	trip      tripper
	call      func(ctx context.Context, c *gateway.Client) (any, error)
	ctx       func() (context.Context, context.CancelFunc)
	text      string
	matches   []error
	outcome   gateway.Outcome
	safe      bool // to try again
	isTimeout bool
}{
	{
		name: "a refusal with a message", trip: statusTrip(404, refused("Not Found")), call: withdrawalCall, // I-152, I-153
		text:    `gateway: withdrawal: 404: "Not Found"`,
		matches: []error{gateway.ErrNotFound}, outcome: gateway.OutcomeRejected,
	},
	{
		name: "not found, what is always there", trip: statusTrip(404, refused("no such route")), call: ratesCall,
		text:    `gateway: exchange_rates: 404: "no such route"; is the path of the base URL right?`,
		matches: []error{gateway.ErrNotFound},
	},
	{
		// I-35, I-36
		name: "a refusal for a missing key", trip: statusTrip(418, refused("x-api-key header is required")), call: withdrawalCall,
		text:    `gateway: withdrawal: 418: "x-api-key header is required"`,
		matches: []error{gateway.ErrMissingAPIKey},
	},
	{
		// I-37
		name: "a refusal for a key, with another message", trip: statusTrip(401, refused("X-API-KEY header is required")), call: withdrawalCall,
		text:    `gateway: withdrawal: 401: "X-API-KEY header is required"`,
		matches: []error{gateway.ErrUnauthorized}, outcome: gateway.OutcomeRejected,
	},
	{
		name: "a refusal with a message of several lines", trip: statusTrip(409, `{"message":"one\ntwo\u001b[31m","result":[],"meta":{}}`), call: withdrawalCall,
		text:    `gateway: withdrawal: 409: "one\ntwo\x1b[31m"`,
		matches: []error{gateway.ErrConflict}, outcome: gateway.OutcomeRejected,
	},
	{
		name: "a refusal that is a web page", trip: statusTrip(403, "<html>\nno</html>"), call: withdrawalCall, // I-158
		text:    `gateway: withdrawal: 403: no message in the response: "<html>\nno</html>"`,
		matches: []error{gateway.ErrForbidden}, outcome: gateway.OutcomeRejected,
	},
	{
		name: "a refusal without a body", trip: statusTrip(400, ""), call: withdrawalCall,
		text:    `gateway: withdrawal: 400: no message in the response: empty body`,
		outcome: gateway.OutcomeRejected,
	},
	{
		name: "a refusal with a long body", trip: statusTrip(400, strings.Repeat("a", 500)), call: withdrawalCall,
		text:    `gateway: withdrawal: 400: no message in the response: "` + strings.Repeat("a", 120) + `"…`,
		outcome: gateway.OutcomeRejected,
	},
	{
		name: "a refusal with a body that just fits", trip: statusTrip(400, strings.Repeat("a", 120)), call: withdrawalCall,
		text:    `gateway: withdrawal: 400: no message in the response: "` + strings.Repeat("a", 120) + `"`,
		outcome: gateway.OutcomeRejected,
	},
	{
		name: "a server error after all attempts", trip: statusTrip(502, ""), call: withdrawalCall,
		text:    `gateway: withdrawal: 502: no message in the response: empty body (3 attempts)`,
		matches: []error{gateway.ErrServer}, safe: true,
	},
	{
		// I-160
		name: "too many requests", trip: statusTrip(429, refused("Slow down."), "Retry-After", "90"), call: withdrawalCall,
		text:    `gateway: withdrawal: 429: "Slow down."; retry after 1m30s`,
		matches: []error{gateway.ErrRateLimited}, outcome: gateway.OutcomeRejected, safe: true,
	},
	{
		name: "an error envelope with 200", trip: statusTrip(200, refused("It did not work.")), call: withdrawalCall,
		text: `gateway: withdrawal: 200: "It did not work."`,
	},
	{
		name: "a response that cannot be decoded", trip: statusTrip(200, "<html>"), call: withdrawalCall,
		text: "gateway: withdrawal: 200: response not understood: ",
	},
	{
		// I-150
		name: "another withdrawal", trip: statusTrip(201, enveloped(strings.Replace(withdrawalJSON, requestID, "another", 1))),
		call: withdrawalCall, text: "gateway: withdrawal: 201: response not understood: /result/withdrawRequestId: \"another\" is another record than the one asked for: ",
		matches: []error{gateway.ErrResponseMismatch},
	},
	{
		name: "a redirect", trip: statusTrip(302, "", "Location", "https://user:secret@evil.test/in?apiKey="+canary), call: withdrawalCall,
		text:    "gateway: withdrawal: wait: redirect not followed: to https://evil.test/in; last status 302",
		matches: []error{gateway.ErrRedirect},
	},
	{
		name: "a redirect to the key", trip: statusTrip(302, "", "Location", "/"+canary), call: withdrawalCall,
		text:    "gateway: withdrawal: wait: redirect not followed: to /[REDACTED]; last status 302",
		matches: []error{gateway.ErrRedirect},
	},
	{
		name: "a redirect to nowhere", trip: statusTrip(302, ""), call: withdrawalCall,
		text:    "gateway: withdrawal: wait: redirect not followed; last status 302",
		matches: []error{gateway.ErrRedirect},
	},
	{
		name: "a refused connection", trip: errorTrip(refusedConnection("connect")), call: withdrawalCall,
		text:    "gateway: withdrawal: dial: dial tcp: connect: connection refused (3 attempts)",
		matches: []error{syscall.ECONNREFUSED}, safe: true,
	},
	{
		name: "an attempt that takes too long", trip: hangTrip, call: withdrawalCall,
		text:    "gateway: withdrawal: wait: no response within 15s (3 attempts)",
		matches: []error{context.DeadlineExceeded}, safe: true, isTimeout: true,
	},
	{
		name: "the caller's deadline", trip: hangTrip, call: withdrawalCall,
		ctx: func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), time.Second)
		},
		text:    "gateway: withdrawal: wait: context deadline exceeded",
		matches: []error{context.DeadlineExceeded}, isTimeout: true,
	},
	{
		name: "a call that was cancelled before", trip: hangTrip, call: withdrawalCall, ctx: cancelledContext,
		text:    "gateway: withdrawal: start: context canceled",
		matches: []error{context.Canceled},
	},
	{
		name: "a bad argument", trip: hangTrip,
		call:    func(ctx context.Context, c *gateway.Client) (any, error) { return c.Withdrawal(ctx, "a\tb") },
		text:    `gateway: withdrawal: withdrawRequestId: must not contain control characters`,
		matches: []error{gateway.ErrInvalidArgument},
		outcome: gateway.OutcomeNotSent,
	},
	{
		name: "a rejected invoice", trip: statusTrip(422, refused("price is too small")), call: invoiceCall,
		text:    `gateway: create_invoice: 422: "price is too small"`,
		outcome: gateway.OutcomeRejected,
	},
	{
		name: "a throttled invoice", trip: statusTrip(429, refused("Slow down.")), call: invoiceCall,
		text:    `gateway: create_invoice: 429: "Slow down."`,
		matches: []error{gateway.ErrRateLimited}, outcome: gateway.OutcomeRejected, safe: true,
	},
	{
		name: "an invoice that was not sent", trip: errorTrip(refusedConnection("connect")), call: invoiceCall,
		text:    "gateway: create_invoice: dial: dial tcp: connect: connection refused; nothing was sent (3 attempts)",
		matches: []error{syscall.ECONNREFUSED}, outcome: gateway.OutcomeNotSent, safe: true,
	},
	{
		name: "an invoice whose response is lost", trip: readThen(io.ErrUnexpectedEOF), call: invoiceCall,
		text: `gateway: create_invoice: outcome unknown: an invoice for order "A-17" may exist, ` +
			`look it up before sending it again: wait: unexpected EOF`,
	},
	{
		name: "an invoice that took too long", trip: hangAfterReading, call: invoiceCall,
		text: `gateway: create_invoice: outcome unknown: an invoice for order "A-17" may exist, ` +
			`look it up before sending it again: wait: no response within 1m0s`,
		matches: []error{context.DeadlineExceeded},
	},
	{
		name: "an invoice and the caller's deadline", trip: hangAfterReading, call: invoiceCall,
		ctx: func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), time.Second)
		},
		text: `gateway: create_invoice: outcome unknown: an invoice for order "A-17" may exist, ` +
			`look it up before sending it again: wait: context deadline exceeded`,
		matches: []error{context.DeadlineExceeded},
	},
	{
		name: "an invoice and a server error", trip: statusTrip(503, refused("Not now.")), call: invoiceCall,
		text: `gateway: create_invoice: outcome unknown: an invoice for order "A-17" may exist, ` +
			`look it up before sending it again: 503: "Not now."`,
		matches: []error{gateway.ErrServer},
	},
	{
		name: "an invoice and an error envelope with 200", trip: statusTrip(200, refused("It did not work.")), call: invoiceCall,
		text: `gateway: create_invoice: outcome unknown: an invoice for order "A-17" may exist, ` +
			`look it up before sending it again: 200: "It did not work."`,
	},
	{
		name: "an invoice without an order identifier", trip: hangTrip,
		call: func(ctx context.Context, c *gateway.Client) (any, error) { return c.CreateInvoice(ctx, order("")) },
		text: "gateway: create_invoice: orderId: is required", matches: []error{gateway.ErrInvalidArgument},
		outcome: gateway.OutcomeNotSent,
	},
}

func withdrawalCall(ctx context.Context, c *gateway.Client) (any, error) {
	return c.Withdrawal(ctx, requestID)
}

func ratesCall(ctx context.Context, c *gateway.Client) (any, error) { return c.ExchangeRates(ctx) }

func invoiceCall(ctx context.Context, c *gateway.Client) (any, error) {
	return c.CreateInvoice(ctx, order("A-17"))
}

// I-156
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range failures {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				if tt.ctx != nil {
					ctx, cancel = tt.ctx()
				}
				defer cancel()
				c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: tt.trip}))
				got, err := tt.call(ctx, c)
				require.Error(t, err)
				assertInvariants(t, got, err)
				assertText(t, tt.text, err)
				assertMatches(t, err, tt.matches)
				want := gateway.OutcomeNotSent // a read sends no invoice
				if strings.HasPrefix(err.Error(), "gateway: create_invoice: ") {
					want = tt.outcome
				}
				for _, wrapped := range []error{err, fmt.Errorf("shop: %w", err), errors.Join(nil, err)} {
					assert.Equal(t, want, gateway.OutcomeOf(wrapped))
					assert.Equal(t, tt.safe, gateway.SafeToRetry(wrapped))
				}
				joined := errors.Join(errors.New("other"), err)
				assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(joined))
				assert.False(t, gateway.SafeToRetry(joined))
				var network net.Error
				if errors.As(err, &network) {
					assert.Equal(t, tt.isTimeout, network.Timeout())
				}
				var timeout interface{ Timeout() bool }
				assert.Equal(t, tt.isTimeout, errors.As(err, &timeout) && timeout.Timeout())
			})
		})
	}
}

// assertText asserts the text of an error; one that ends in ": " is how the
// text begins, before the text of another package.
func assertText(t *testing.T, want string, err error) {
	t.Helper()
	if strings.HasSuffix(want, ": ") {
		assert.True(t, strings.HasPrefix(err.Error(), want), err.Error())
		return
	}
	assert.EqualError(t, err, want)
}

func assertMatches(t *testing.T, err error, want []error) {
	t.Helper()
	others := []error{context.Canceled, context.DeadlineExceeded, syscall.ECONNREFUSED}
	for _, target := range append(others, sentinels...) {
		wanted := false
		for _, w := range want {
			wanted = wanted || w == target //nolint:errorlint // the sentinel itself
		}
		assert.Equal(t, wanted, errors.Is(err, target), "%q of %v", target, err)
	}
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
		err := error(&gateway.OutcomeUnknownError{Operation: "create_invoice", OrderID: "A-17", Cause: cause})
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
		assert.NotContains(t, err.Error(), "\n")
	}
}

// zeroErrors returns an error of each type.
func zeroErrors() []error {
	return []error{
		&gateway.ArgumentError{}, &gateway.APIError{}, &gateway.DecodeError{}, &gateway.TransportError{}, &gateway.OutcomeUnknownError{},
		&gateway.OrderConflictError{}, &gateway.WaitError{},
	}
}

// A source of keys may use a client of its own. Its error is not that of this call.
func TestErrors_ofAnotherCall(t *testing.T) {
	t.Parallel()
	for _, other := range zeroErrors() {
		c, err := gateway.New("http://localhost", "", gateway.WithAPIKeySource(func(context.Context) (string, error) {
			return "", fmt.Errorf("no key: %w", errors.Join(other, io.ErrUnexpectedEOF))
		}))
		require.NoError(t, err)
		_, err = c.Balance(t.Context(), gateway.BalanceQuery{})
		require.ErrorContains(t, err, "unexpected EOF")
		found := reflect.New(reflect.TypeOf(other))
		if errors.As(err, found.Interface()) {
			assert.NotSame(t, other, found.Elem().Interface())
		}
	}
}

// An error of the network may have several lines; the text of an error has one.
func TestErrors_OneLine(t *testing.T) {
	t.Parallel()
	broken := errors.New("gateway: it\nbroke\r\n\tat once")
	for _, err := range []error{
		&gateway.TransportError{Operation: "balance", Phase: gateway.PhaseWait, Err: broken},
		&gateway.OutcomeUnknownError{Operation: "create_invoice", OrderID: "A\n17", Cause: broken},
		&gateway.WaitError{WithdrawRequestID: "w\n1", Err: broken, Fault: broken},
		&gateway.APIError{Operation: "balance", StatusCode: 500, Message: "it\nbroke"},
		&gateway.APIError{Operation: "balance", StatusCode: 500, Body: []byte("it\nbroke")},
		&gateway.DecodeError{Operation: "balance", StatusCode: 200, Err: broken, Body: []byte("it\nbroke")},
	} {
		t.Run(fmt.Sprintf("%T", err), func(t *testing.T) {
			t.Parallel()
			assert.NotContains(t, err.Error(), "\n")
			assert.True(t, strings.HasPrefix(err.Error(), "gateway: "))
		})
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

// No name of a member forges a line of a log.
func TestErrors_namesOfMembers(t *testing.T) {
	t.Parallel()
	for name, member := range map[string]string{
		"a line end":              "a\nlevel=INFO msg=paid",
		"a terminal's escape":     "a\x1b[2Jb",
		"both":                    "a\r\n\x1b]0;title\a",
		"a line end of Unicode":   "a\u2028b\u0085c",
		"another writing order":   "a\u202eb",
		"a character without use": "a\x00b\x7fc",
	} {
		for where, result := range map[string]string{
			"of a bad value":        `{` + quotedJSON(member) + `:nope}`,
			"of bad amounts":        `{` + quotedJSON(member) + `:{"usd":"x","eur":"1","balance":"x"}}`,
			"above a bad value":     `{` + quotedJSON(member) + `:{"deep":nope}}`,
			"as a coin of an array": `[{"symbol":` + quotedJSON(member) + `,"usd":"x","eur":"1","balance":"x"}]`,
		} {
			forEach(t, name+" in the name "+where, func(t *testing.T, s subject) {
				got, err := s.call(t.Context(), cannedClient(t, s.status, enveloped(result)))
				if err == nil {
					return // an invoice may be anything
				}
				assertInvariants(t, got, err)
				for _, e := range []error{err, decodeErrorOf(t, s, err)} {
					for _, char := range e.Error() {
						assert.True(t, unicode.IsPrint(char), "%q in %q", char, e.Error())
					}
				}
			})
		}
	}
}

// A timeout whose text is redacted is a timeout.
func TestTransportError_RedactedTimeout(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{
		"with the key":           timeoutError{canary},
		"with a password":        timeoutError{"http://user:" + password + "@proxy"},
		"with neither":           timeoutError{"of the wire"},
		"of many lines":          timeoutError{"a\nb"},
		"too long":               timeoutError{strings.Repeat("p", 8<<10)},
		"wrapped, with the key":  fmt.Errorf("%s: %w", canary, timeoutError{}),
		"of a context, with it":  fmt.Errorf("%s: %w", canary, context.DeadlineExceeded),
		"with an error of ours":  errors.Join(gateway.ErrInvalidArgument, timeoutError{canary}),
		"with a refusal of ours": errors.Join(&gateway.APIError{StatusCode: 400}, timeoutError{canary}),
	} {
		forEach(t, name, func(t *testing.T, s subject) {
			for _, trip := range []tripper{readThen(cause), func(req *http.Request) (*http.Response, error) {
				drain(req)
				got := reply(s.status, "")
				got.Body = io.NopCloser(brokenReader{cause})
				return got, nil
			}} {
				c := newClient(t, "http://localhost", once(), gateway.WithOrderGuard(nil), gateway.WithHTTPClient(&http.Client{Transport: trip}))
				got, err := s.call(t.Context(), c)
				assertInvariants(t, got, err)
				assertSilent(t, err, canary)
				assertSilent(t, err, password)
				assertTimedOut(t, s, err)
			}
		})
	}
}

// assertTimedOut asserts that a read timed out, and that of an invoice this is
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

// Values made by hand do no harm.
func TestErrors_valuesMadeByHand(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"half a character":              `{"a":"\ud800"}`,
		"half a character in the name":  `{"\ud800":"x","a":"b"}`,
		"no UTF-8":                      "{\"a\":\"\x80\"}",
		"a number that is none":         `{"a":-}`,
		"a text that does not end":      `{"a":"x`,
		"a value that is not there":     `{"a"`,
		"nothing":                       "",
		"a text":                        `"a"`,
		"a name that is no text":        `{1:2}`,
		"an end without a beginning":    `}`,
		"an escape that does not exist": `{"a":"\x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, ok := (&gateway.Invoice{Raw: json.RawMessage(raw)}).Text("a")
			assert.False(t, ok)
			assert.Empty(t, text)
		})
	}
	for _, err := range zeroErrors() {
		t.Run(fmt.Sprintf("a zero %T", err), func(t *testing.T) {
			t.Parallel()
			assertInvariants(t, nil, err)
			assert.False(t, gateway.SafeToRetry(err))
			assert.NotEqual(t, gateway.OutcomeSucceeded, gateway.OutcomeOf(err))
		})
	}
}

// What a person needs at night: the value that could not be read, a compression that nobody asked for, the
// message of a success that was expected, and why there is no body.
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
	_, err = cannedClient(t, 200, another, gateway.WithSuccessMessage("OK")).CreateInvoice(t.Context(), order("A-17"))
	assert.NoError(t, err)
	_, err = cannedClient(t, 201, invoiceJSON).CreateInvoice(t.Context(), order("A-17"))
	assert.ErrorContains(t, err, "/result: is missing; WithInvoiceDecoder reads a body without an envelope")
}
