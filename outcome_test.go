package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// The statuses of the matrix, with what each means: whether a read is tried
// again, and whether it proves that there is no invoice. It is written out
// once more, apart from the client's own lists.
var statuses = []statusCase{
	{400, false, true, nil},
	{401, false, true, gateway.ErrUnauthorized},
	{402, false, true, nil},
	{403, false, true, gateway.ErrForbidden},
	{404, false, true, gateway.ErrNotFound},
	{405, false, true, nil},
	{406, false, true, nil},
	{407, false, true, nil},
	{408, true, false, nil},
	{409, false, true, gateway.ErrConflict},
	{410, false, true, nil},
	{413, false, true, nil},
	{415, false, true, nil},
	{417, false, true, nil},
	{418, false, false, nil},
	{421, false, true, nil},
	{422, false, true, nil},
	{423, false, false, nil},
	{425, true, true, nil},
	{426, false, true, nil},
	{428, false, true, nil},
	{429, true, true, gateway.ErrRateLimited},
	{431, false, true, nil},
	{451, false, true, nil},
	{460, false, false, nil},
	{499, false, false, nil},
	{500, true, false, gateway.ErrServer},
	{501, false, false, gateway.ErrServer},
	{502, true, false, gateway.ErrServer},
	{503, true, false, gateway.ErrServer},
	{504, true, false, gateway.ErrServer},
	{505, false, false, gateway.ErrServer},
	{511, false, false, gateway.ErrServer},
	{520, true, false, gateway.ErrServer},
	{521, true, false, gateway.ErrServer},
	{522, true, false, gateway.ErrServer},
	{523, true, false, gateway.ErrServer},
	{524, true, false, gateway.ErrServer},
	{529, true, false, gateway.ErrServer},
	{600, false, false, gateway.ErrServer},
	{999, false, false, gateway.ErrServer},
}

type statusCase struct {
	status           int
	passing, rejects bool
	sentinel         error // nil for none
}

// The forms of a body that says no, with the message that is read from it.
var refusals = []refusalCase{
	{"the documented envelope", refused("Order is not acceptable"), "Order is not acceptable"},
	{"a web page", "<html><body>Bad Gateway</body></html>", ""},
	{"nothing", "", ""},
	{"cut JSON", `{"message":"Order is not acc`, ""},
	{"JSON that is cut after its message", `{"message":"Order is not acceptable","result":[`, "Order is not acceptable"},
	{"JSON of another shape", `["Order is not acceptable"]`, ""},
}

type refusalCase struct{ name, body, message string }

var sentinels = []error{
	gateway.ErrInvalidArgument, gateway.ErrMissingAPIKey, gateway.ErrUnauthorized, gateway.ErrForbidden,
	gateway.ErrNotFound, gateway.ErrConflict, gateway.ErrRateLimited, gateway.ErrServer, gateway.ErrTimeout,
	gateway.ErrNotSent, gateway.ErrOutcomeUnknown, gateway.ErrRedirect, gateway.ErrResponseTooLarge,
	gateway.ErrResponseMismatch, gateway.ErrOrderInFlight, gateway.ErrOrderOutcomeUnknown,
}

// Every method meets every status with every form of body.
func TestClient_EveryStatus(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, status := range statuses {
				for _, form := range refusals {
					synctest.Test(t, func(t *testing.T) { assertStatus(t, s, status, form) })
				}
			}
		})
	}
}

func assertStatus(t *testing.T, s subject, status statusCase, form refusalCase) {
	t.Helper()
	sent := 0
	c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
		sent++
		return reply(status.status, form.body), nil
	}))
	var seen gateway.Response
	got, err := s.call(t.Context(), c, gateway.WithResponse(&seen))
	at := fmt.Sprintf("%d with %s", status.status, form.name)
	assertInvariants(t, got, err)
	attempts := 1
	if status.passing && !s.write {
		attempts = 3
	}
	assert.Equal(t, attempts, sent, at)
	assert.Equal(t, attempts, seen.Attempts, at)
	assert.Equal(t, status.status, seen.StatusCode, at)
	assert.Equal(t, form.message, seen.Message, at)
	answer := assertRefusal(t, s, status.rejects, err)
	assert.Equal(t, s.op, answer.Op)
	assert.Equal(t, status.status, answer.StatusCode, at)
	assert.Equal(t, attempts, answer.Attempts, at)
	assert.Equal(t, form.message, answer.Message, at)
	assert.Equal(t, form.body, string(answer.Body), at)
	assertSentinels(t, answer, status.sentinel)
	assert.Equal(t, status.passing && (!s.write || status.rejects), gateway.SafeToRetry(answer), at)
	assert.Equal(t, status.passing && (!s.write || status.rejects), gateway.SafeToRetry(err), at)
}

// assertRefusal returns the answer in an error: an invoice of which a status
// does not prove that it was refused is unknown, with the answer as the cause.
func assertRefusal(t *testing.T, s subject, rejects bool, err error) *gateway.APIError {
	t.Helper()
	if s.write && rejects {
		assert.Equal(t, gateway.OutcomeRejected, gateway.OutcomeOf(err))
	}
	if s.write && !rejects {
		assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
		var lost *gateway.OutcomeUnknownError
		require.ErrorAs(t, err, &lost)
		assertSentinels(t, err, gateway.ErrOutcomeUnknown)
		var inner *gateway.APIError
		assert.False(t, errors.As(err, &inner), "the answer is a field only")
		require.ErrorAs(t, lost.Cause, &inner)
		assert.Equal(t, inner.StatusCode, lost.StatusCode)
		assert.Equal(t, string(inner.Body), string(lost.Body))
		return inner
	}
	answer, ok := err.(*gateway.APIError) //nolint:errorlint // the error itself, not one in it
	require.True(t, ok, "%T: %v", err, err)
	return answer
}

// assertSentinels asserts that an error matches these and no others.
func assertSentinels(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, sentinel := range sentinels {
		assert.Equal(t, slices.Contains(want, sentinel), errors.Is(err, sentinel), "%q of %v", sentinel, err)
	}
}

// through sends requests through one function.
func through(trip tripper) gateway.Option {
	return gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return nil, err
			}
			_ = req.Body.Close()
		}
		return trip(req)
	})})
}

// reply is an answer as a RoundTripper returns it. Headers stand in pairs.
func reply(status int, body string, headers ...string) *http.Response {
	header := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		header.Add(headers[i], headers[i+1])
	}
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// A caller's transport may do what no decent one does.
func TestClient_UnrulyTransports(t *testing.T) {
	t.Parallel()
	dialError := refusedConnection("connect")
	for _, tt := range []struct {
		name     string
		trip     tripper
		outcome  gateway.Outcome
		attempts int // of a read
		tries    int // of an invoice
	}{
		{
			"it reads the body and then reports that it could not connect",
			func(req *http.Request) (*http.Response, error) { drain(req); return nil, dialError },
			gateway.OutcomeUnknown, 3, 1,
		},
		{
			"it reads one byte of the body and then reports that it could not connect",
			func(req *http.Request) (*http.Response, error) {
				if req.Body != nil {
					_, _ = req.Body.Read(make([]byte, 1))
				}
				return nil, dialError
			},
			gateway.OutcomeUnknown, 3, 1,
		},
		{
			"it asks for nothing of the body, in no bytes, and reports that it could not connect",
			func(req *http.Request) (*http.Response, error) {
				if req.Body != nil {
					_, _ = req.Body.Read(nil)
				}
				return nil, dialError
			},
			gateway.OutcomeUnknown, 3, 1,
		},
		{
			"it closes the body unread and reports that it could not connect",
			func(req *http.Request) (*http.Response, error) {
				if req.Body != nil {
					_ = req.Body.Close()
				}
				return nil, dialError
			},
			gateway.OutcomeNotSent, 3, 3,
		},
		{
			"it returns neither an answer nor an error",
			func(*http.Request) (*http.Response, error) { return nil, nil },
			gateway.OutcomeNotSent, 1, 1,
		},
		{
			"it reads the body and returns neither an answer nor an error",
			func(req *http.Request) (*http.Response, error) { drain(req); return nil, nil },
			gateway.OutcomeUnknown, 1, 1,
		},
		{
			"it refuses by itself, as a circuit breaker does",
			func(*http.Request) (*http.Response, error) { return nil, errors.New("circuit breaker is open") },
			gateway.OutcomeNotSent, 1, 1,
		},
		{
			"it refuses with an error that says it is temporary",
			func(*http.Request) (*http.Response, error) {
				return nil, fmt.Errorf("limiter: %w", temporaryError{})
			},
			gateway.OutcomeNotSent, 3, 3,
		},
		{
			"it returns an answer without a body that says no",
			func(req *http.Request) (*http.Response, error) {
				drain(req)
				return &http.Response{StatusCode: 400}, nil
			},
			gateway.OutcomeRejected, 1, 1,
		},
		{
			"it returns an answer without a status",
			func(req *http.Request) (*http.Response, error) {
				drain(req)
				return &http.Response{}, nil
			},
			gateway.OutcomeUnknown, 1, 1,
		},
		{
			"it returns an answer without having read the invoice, which says yes without a body",
			func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil },
			gateway.OutcomeUnknown, 1, 1,
		},
		{
			"it wraps a panic in an error of many lines",
			func(req *http.Request) (*http.Response, error) {
				drain(req)
				return nil, errors.New("gateway: broke\n\tat once\n\twith key " + canary)
			},
			gateway.OutcomeUnknown, 1, 1,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range subjects() {
				synctest.Test(t, func(t *testing.T) {
					tries := 0
					c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{
						Transport: tripper(func(req *http.Request) (*http.Response, error) {
							tries++
							assert.Empty(t, req.Header["Idempotency-Key"])
							assert.Nil(t, req.GetBody, "with GetBody net/http would replay an invoice")
							return tt.trip(req)
						}),
					}))
					got, err := s.call(t.Context(), c)
					require.Error(t, err)
					assertInvariants(t, got, err)
					if !s.write {
						assert.Equal(t, tt.attempts, tries)
						return
					}
					assert.Equal(t, tt.tries, tries)
					assert.Equal(t, tt.outcome, gateway.OutcomeOf(err), "%v", err)
				})
			}
		})
	}
}

func drain(req *http.Request) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
	}
}

type temporaryError struct{}

func (temporaryError) Error() string   { return "try again" }
func (temporaryError) Temporary() bool { return true }

// A RoundTripper that adds an idempotency header makes net/http believe that a
// request may be replayed. The header alone must not send an invoice twice.
func TestClient_TransportAddsIdempotencyKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fault{}
		s := newStage(t, f.deadline())
		s.write = true
		reusedThenClosed(s)
		inner := s.transport
		s.tripper = tripper(func(req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			req.Header.Set("Idempotency-Key", "of-the-transport")
			return inner.RoundTrip(req)
		})
		s.warm()
		s.assert(verdict{kind: unknown, sends: 1, commits: 1, dials: 1})
	})
}

// A transport that ignores the context answers late. What it answers counts.
func TestClient_TransportIgnoresTheContext(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
					sent++
					<-time.After(time.Hour)
					return reply(s.status, s.body()), nil
				}))
				got, err := s.call(context.Background(), c)
				assert.NoError(t, err)
				assertInvariants(t, got, err)
				assert.Equal(t, 1, sent)
			})
		})
	}
}

// net/http writes to the program's log about a transport that returns an
// answer together with an error. Not parallel: the log is of the program.
func TestClient_TransportReturnsAnAnswerAndAnError(t *testing.T) {
	var printed bytes.Buffer
	log.SetOutput(&printed)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for _, s := range subjects() {
		closed := 0
		c := newClient(t, "http://localhost", once(), through(func(*http.Request) (*http.Response, error) {
			answer := reply(200, s.body())
			answer.Body = closer{answer.Body, func() { closed++ }}
			return answer, errors.New("an error too")
		}))
		got, err := s.call(t.Context(), c)
		require.Error(t, err, s.name)
		assertInvariants(t, got, err)
		assert.Equal(t, 1, closed, s.name)
		if s.write {
			assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
		}
	}
	assert.Empty(t, printed.String())
}

type closer struct {
	io.ReadCloser
	closed func()
}

func (c closer) Close() error {
	c.closed()
	return c.ReadCloser.Close()
}

// A transport that panics takes its caller along, but not what is known of the
// order.
func TestClient_TransportPanics(t *testing.T) {
	t.Parallel()
	panics := true
	c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
		if panics {
			panic("of the transport")
		}
		return reply(200, enveloped(invoiceJSON)), nil
	}))
	assert.PanicsWithValue(t, "of the transport", func() { _, _ = c.CreateInvoice(t.Context(), order("A-17")) })
	panics = false
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	assert.ErrorIs(t, err, gateway.ErrOrderOutcomeUnknown)
	_, err = c.CreateInvoice(t.Context(), order("A-17"), gateway.AllowResubmit())
	assert.NoError(t, err)
}

// A body is closed once, whatever its answer says, and with it the attempt is
// over: its context, and the timer in that, are not left behind.
func TestClient_BodiesAreClosedOnce(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []int{101, 200, 204, 302, 404, 503} {
				synctest.Test(t, func(t *testing.T) {
					sent, closed := 0, 0
					var attempts []context.Context
					c := newClient(t, "http://localhost", through(func(req *http.Request) (*http.Response, error) {
						sent++
						attempts = append(attempts, req.Context())
						answer := reply(status, s.body())
						answer.Body = closer{answer.Body, func() { closed++ }}
						return answer, nil
					}))
					_, _ = s.call(t.Context(), c)
					assert.Equal(t, sent, closed, "bodies closed after %d", status)
					for _, attempt := range attempts {
						assert.Error(t, attempt.Err(), "the attempt is over")
					}
				})
			}
		})
	}
}

// What a call came to is proved by the latch and by the service's answer, and
// by nothing that stands in the chain of an error: the cause of a context may
// be the error of another invoice, as it is in an errgroup, and a transport
// may fail with any error.
func TestClient_ForeignErrorsProveNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  error
	}{
		{"another invoice was rejected", &gateway.APIError{Op: "create_invoice", StatusCode: 400, Message: "of another"}},
		{"another invoice was not sent", &gateway.ArgumentError{Op: "create_invoice", Name: "orderId", Reason: "of another"}},
		{"it says so itself", fmt.Errorf("pool: %w", gateway.ErrNotSent)},
		{"another read may be made again", &gateway.APIError{Op: "balance", StatusCode: 503}},
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
				answer := reply(200, "")
				answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"result":`), brokenReader{tt.err}))
				return answer, nil
			}))
			assertProvesNothing(t.Context(), t, c)
		})
	}
}

type brokenReader struct{ err error }

func (f brokenReader) Read([]byte) (int, error) { return 0, f.err }

func assertProvesNothing(ctx context.Context, t *testing.T, c *gateway.Client) {
	t.Helper()
	got, err := c.CreateInvoice(ctx, order("A-17"))
	assertInvariants(t, got, err)
	var lost *gateway.OutcomeUnknownError
	assert.ErrorAs(t, err, &lost)
	assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err), "the invoice was sent: %v", err)
	assert.False(t, gateway.SafeToRetry(err))
	_, err = c.CreateInvoice(t.Context(), order("A-17"))
	assert.ErrorIs(t, err, gateway.ErrOrderOutcomeUnknown, "the guard holds the order")
}

// A call that its caller has ended is not to be made again, whatever the cause.
func TestClient_CauseOfACancelledRead(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{&gateway.APIError{Op: "balance", StatusCode: 503}, context.DeadlineExceeded} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("nothing must be sent")
		}))
		got, err := c.Withdrawal(ctx, requestID)
		assertInvariants(t, got, err)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, cause)
		assert.False(t, gateway.SafeToRetry(err), "of %v", err)
		assert.NotErrorIs(t, err, gateway.ErrTimeout)
	}
}

// A transport that keeps the body and reads it when the call is over gets
// nothing of an invoice that was said not to be sent.
func TestClient_TransportReadsLater(t *testing.T) {
	t.Parallel()
	var bodies []io.ReadCloser
	c := newClient(t, "http://localhost", gateway.WithRetry(gateway.RetryPolicy{BaseDelay: 1, MaxDelay: 1}),
		gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
			bodies = append(bodies, req.Body)
			return nil, refusedConnection("connect")
		})}))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	assert.ErrorIs(t, err, gateway.ErrNotSent)
	assert.Len(t, bodies, 3)
	for _, body := range bodies {
		late, err := io.ReadAll(body)
		assert.Error(t, err)
		assert.Empty(t, late)
	}
}
