package gateway_test

import (
	"compress/flate"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// The outcome of a call is proved by the latch and by the service's response,
// and by nothing in the chain of an error: the cause of a context may
// be the error of another invoice, as it is in an errgroup, and a transport
// may fail with any error.
func TestClient_ErrorsOfOthersProveNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  error
	}{
		{"another invoice was rejected", &gateway.APIError{Operation: "create_invoice", StatusCode: 400, Message: "of another"}},
		{"another invoice was not sent", &gateway.ArgumentError{Operation: "create_invoice", Name: "orderId", Reason: "of another"}},
		{"another read may be made again", &gateway.APIError{Operation: "balance", StatusCode: 503}},
		{"another order is held", fmt.Errorf("guard: %w", gateway.ErrOrderInFlight)},
	} {
		t.Run(tt.name+", and the context ends with that", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				c := newClient(t, "http://localhost", through(func(req *http.Request) (*http.Response, error) {
					cancel(tt.err)
					<-req.Context().Done()
					return nil, req.Context().Err()
				}))
				assertProvesNothing(ctx, t, c)
			})
		})
		t.Run(tt.name+", and the transport fails with that", func(t *testing.T) {
			t.Parallel()
			c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
				return nil, tt.err
			}))
			assertProvesNothing(t.Context(), t, c)
		})
		t.Run(tt.name+", and the body fails with that", func(t *testing.T) {
			t.Parallel()
			c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
				response := reply(200, "")
				response.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"result":`), brokenReader{tt.err}))
				return response, nil
			}))
			assertProvesNothing(t.Context(), t, c)
		})
	}
}

func assertProvesNothing(ctx context.Context, t *testing.T, c *gateway.Client) {
	t.Helper()
	got, err := c.CreateInvoice(ctx, order("A-17"))
	assertInvariants(t, got, err)
	var lost *gateway.OutcomeUnknownError
	assert.ErrorAs(t, err, &lost)
	assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err), "the invoice was sent: %v", err)
	assert.False(t, gateway.SafeToRetry(err))
	_, err = c.CreateInvoice(t.Context(), order("A-17"))
	assertUnknownBefore(t, err, "the guard holds the order")
}

// The cause of an unknown outcome is for a person to read. SafeToRetry of it is
// false.
func TestOutcomeUnknownError_CauseIsNotSafeToRetry(t *testing.T) {
	t.Parallel()
	trips := map[string]tripper{
		"a name server that did not respond, after reading": readThen(temporaryError{}),
		"a connection that was refused, after reading":      readThen(refusedConnection("connect")),
		"an end":                     readThen(io.EOF),
		"an end in the middle":       readThen(io.ErrUnexpectedEOF),
		"a timeout":                  readThen(context.DeadlineExceeded),
		"an attempt's timeout":       hangAfterReading,
		"a redirect":                 statusTrip(302, "", "Location", "/"),
		"a status that is not final": statusTrip(101, ""),
		"a page":                     statusTrip(200, "<html>"),
		"a body that is cut":         statusTrip(200, `{"message":`),
		"a refusal with success":     statusTrip(200, refused("No.")),
		"a body that breaks off": func(req *http.Request) (*http.Response, error) {
			drain(req)
			got := reply(200, "")
			got.Body = io.NopCloser(brokenReader{io.ErrUnexpectedEOF})
			return got, nil
		},
	}
	for _, status := range statuses {
		if !status.rejects {
			trips[fmt.Sprint("a status of ", status.status)] = statusTrip(status.status, refused("No."), "Retry-After", "1")
		}
	}
	trips["a body that is not what it is labelled as"] = func(req *http.Request) (*http.Response, error) {
		drain(req)
		got := reply(200, "")
		got.Body = io.NopCloser(brokenReader{fmt.Errorf("gzip: %w", flate.CorruptInputError(1))})
		return got, nil
	}
	for name, trip := range trips {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: trip}))
				_, err := c.CreateInvoice(t.Context(), order("A-17"))
				lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
				require.True(t, ok, "%v", err)
				for _, e := range []error{err, lost.Cause, fmt.Errorf("shop: %w", lost.Cause), errors.Join(io.EOF, lost.Cause)} {
					assert.False(t, gateway.SafeToRetry(e), "%v", e)
				}
				assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(lost.Cause))
			})
		})
	}
}

// A success of which the transport has read nothing, such as that of a cache, is not
// that of the invoice.
func TestClient_SuccessWithoutTheInvoice(t *testing.T) {
	t.Parallel()
	c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: tripper(func(*http.Request) (*http.Response, error) {
		return reply(201, enveloped(invoiceJSON)), nil
	})}))
	created, err := c.CreateInvoice(t.Context(), order("A-17"))
	assert.Nil(t, created)
	assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
	assert.ErrorContains(t, err, "without having read the invoice")
}

// failure returns the error of a call whose response has a status.
func failure(t *testing.T, call func(context.Context, *gateway.Client) (any, error), status int) error {
	t.Helper()
	_, err := call(t.Context(), newClient(t, "http://localhost", once(), through(respondAlways(status))))
	require.Error(t, err)
	if lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		return lost.Cause
	}
	return err
}

func respondAlways(status int) tripper {
	return func(*http.Request) (*http.Response, error) { return reply(status, refused("No.")), nil }
}

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	unknown := &gateway.OutcomeUnknownError{Cause: io.EOF}
	argument := &gateway.ArgumentError{}
	refusal, temporary := failure(t, invoiceCall, 400), failure(t, invoiceCall, 429)
	for _, tt := range []struct {
		name string
		err  error
		want gateway.Outcome
		safe bool
	}{
		{"nil", nil, gateway.OutcomeSucceeded, false},
		{"an error of another package", io.EOF, gateway.OutcomeUnknown, false},
		{"a context's", context.Canceled, gateway.OutcomeUnknown, false},
		{"an APIError that no call has made", &gateway.APIError{Operation: "create_invoice", StatusCode: 400}, gateway.OutcomeUnknown, false},
		{"a conflict", &gateway.OrderConflictError{}, gateway.OutcomeConflict, false},
		{"a conflict joined with a refusal", errors.Join(refusal, &gateway.OrderConflictError{}), gateway.OutcomeConflict, false},
		{"an error that wraps nothing", wrapsNothing{}, gateway.OutcomeUnknown, false},
		{"a zero TransportError", &gateway.TransportError{Err: io.EOF}, gateway.OutcomeUnknown, false},
		{"a zero DecodeError", &gateway.DecodeError{Err: io.EOF}, gateway.OutcomeUnknown, false},
		{"an ArgumentError", argument, gateway.OutcomeNotSent, false},
		{"a refusal", refusal, gateway.OutcomeRejected, false},
		{"a temporary refusal", temporary, gateway.OutcomeRejected, true},
		{"an unknown outcome", unknown, gateway.OutcomeUnknown, false},
		{"an unknown outcome that is wrapped", fmt.Errorf("%w", unknown), gateway.OutcomeUnknown, false},
		{"a refusal that is wrapped twice", fmt.Errorf("b: %w", fmt.Errorf("a: %w", refusal)), gateway.OutcomeRejected, false},
		{"a refusal joined with an unknown outcome", errors.Join(refusal, unknown), gateway.OutcomeUnknown, false},
		{"a bad argument joined with an unknown outcome", errors.Join(argument, unknown), gateway.OutcomeUnknown, false},
		{"a temporary refusal joined with an unknown outcome", errors.Join(temporary, unknown), gateway.OutcomeUnknown, false},
		{"a sentinel", gateway.ErrInvalidArgument, gateway.OutcomeUnknown, false},
		{"a refusal joined with an error of another package", errors.Join(refusal, io.EOF), gateway.OutcomeUnknown, false},
		{"a temporary refusal joined with an error of another package", errors.Join(temporary, io.EOF), gateway.OutcomeUnknown, false},
		{"a bad argument wrapped beside an error of another package", fmt.Errorf("%w: %w", io.EOF, argument), gateway.OutcomeUnknown, false},
		{"a refusal joined with nil", errors.Join(refusal, nil), gateway.OutcomeRejected, false},
		{"a sentinel of an error that another package only claims to match", claimsArgument{}, gateway.OutcomeUnknown, false},
		{"a withdrawal that failed", &gateway.WaitError{Err: gateway.ErrWithdrawalFailed}, gateway.OutcomeNotSent, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, gateway.OutcomeOf(tt.err))
			assert.Equal(t, tt.safe, gateway.SafeToRetry(tt.err))
		})
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
	assert.Equal(t, gateway.OutcomeUnknown, zero, "the zero value is the safe one")
	for outcome, want := range map[gateway.Outcome]string{
		gateway.OutcomeUnknown: "unknown", gateway.OutcomeSucceeded: "succeeded",
		gateway.OutcomeNotSent: "not sent", gateway.OutcomeRejected: "rejected", gateway.OutcomeConflict: "conflict",
		9: "Outcome(9)", -1: "Outcome(-1)",
	} {
		assert.Equal(t, want, outcome.String())
		text, err := json.Marshal(map[string]gateway.Outcome{"outcome": outcome})
		var back map[string]gateway.Outcome
		if strings.HasPrefix(want, "Outcome") {
			assert.Error(t, err)
			continue
		}
		require.NoError(t, err)
		assert.JSONEq(t, `{"outcome":"`+want+`"}`, string(text))
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, outcome, back["outcome"])
	}
	assert.Error(t, new(gateway.Outcome).UnmarshalText([]byte("Succeeded")))
}

func TestOrderState_String(t *testing.T) {
	t.Parallel()
	for state, want := range map[gateway.OrderState]string{
		gateway.OrderFree: "free", gateway.OrderInFlight: "in flight", gateway.OrderCreated: "created", gateway.OrderUnknown: "unknown",
		9: "OrderState(9)", -1: "OrderState(-1)",
	} {
		assert.Equal(t, want, state.String())
		text, err := state.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}

// Errors that a fake makes by hand mean what their fields say, through any wrapping, and a nil pointer is unknown.
func TestOutcomeOf_madeByHand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err     error
		outcome gateway.Outcome
		safe    bool
	}{
		{&gateway.ArgumentError{Name: "price"}, gateway.OutcomeNotSent, false},
		{&gateway.APIError{StatusCode: 400}, gateway.OutcomeUnknown, false},
		{&gateway.APIError{StatusCode: 400, Outcome: gateway.OutcomeRejected}, gateway.OutcomeRejected, false},
		{&gateway.APIError{StatusCode: 429, Outcome: gateway.OutcomeRejected, Retryable: true}, gateway.OutcomeRejected, true},
		{&gateway.DecodeError{StatusCode: 200}, gateway.OutcomeUnknown, false},
		{&gateway.DecodeError{StatusCode: 200, Outcome: gateway.OutcomeNotSent, Retryable: true}, gateway.OutcomeNotSent, true},
		{&gateway.TransportError{Phase: gateway.PhaseDial}, gateway.OutcomeUnknown, false},
		{&gateway.TransportError{Phase: gateway.PhaseDial, Outcome: gateway.OutcomeNotSent, Retryable: true}, gateway.OutcomeNotSent, true},
		{&gateway.OutcomeUnknownError{OrderID: "A-17"}, gateway.OutcomeUnknown, false},
		{&gateway.OutcomeUnknownError{OrderID: "A-17", Retryable: true}, gateway.OutcomeUnknown, true},
		{&gateway.OrderConflictError{OrderID: "A-17"}, gateway.OutcomeConflict, false},
		{&gateway.WaitError{Err: gateway.ErrWithdrawalFailed}, gateway.OutcomeNotSent, false},
		{(*gateway.ArgumentError)(nil), gateway.OutcomeUnknown, false},
		{(*gateway.APIError)(nil), gateway.OutcomeUnknown, false},
		{(*gateway.DecodeError)(nil), gateway.OutcomeUnknown, false},
		{(*gateway.TransportError)(nil), gateway.OutcomeUnknown, false},
		{(*gateway.OutcomeUnknownError)(nil), gateway.OutcomeUnknown, false},
		{(*gateway.OrderConflictError)(nil), gateway.OutcomeUnknown, false},
		{(*gateway.WaitError)(nil), gateway.OutcomeUnknown, false},
	} {
		wrapped := []error{tt.err, errors.Join(tt.err)}
		if !reflect.ValueOf(tt.err).IsNil() {
			wrapped = append(wrapped, fmt.Errorf("shop: %w", tt.err))
		}
		for _, err := range wrapped {
			assert.Equal(t, tt.outcome, gateway.OutcomeOf(err), "%T", tt.err)
			assert.Equal(t, tt.safe, gateway.SafeToRetry(err), "%T", tt.err)
		}
	}
}

// What was not sent may be called again later, whatever the reason, unless the caller has ended the call.
func TestSafeToRetry_notSent(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx   context.Context
		cause error
		safe  bool
	}{
		"a name that does not exist":     {t.Context(), &net.DNSError{Err: "no such host", IsNotFound: true}, true},
		"a certificate that has expired": {t.Context(), x509.CertificateInvalidError{Reason: x509.Expired}, true},
		"the caller has gone":            {ended, context.Canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, "http://localhost", once(), gateway.WithHTTPClient(&http.Client{Transport: errorTrip(tt.cause)}))
			_, err := c.CreateInvoice(tt.ctx, order("A-17"))
			assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err), "%v", err)
			assert.Equal(t, tt.safe, gateway.SafeToRetry(err), "%v", err)
		})
	}
}
