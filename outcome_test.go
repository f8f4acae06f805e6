package gateway_test

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"runtime"
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
	retried, rejects bool
	sentinel         error // nil for none
}

// The forms of the body of a refusal, with the message that is read from it.
var refusals = []refusalCase{
	{"the documented envelope", refused("Order is not acceptable"), "Order is not acceptable"}, // I-152
	{"a web page", "<html><body>Bad Gateway</body></html>", ""},                                // I-158
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
	gateway.ErrResponseMismatch, gateway.ErrOrderInFlight, gateway.ErrOrderCreated, gateway.ErrOrderOutcomeUnknown,
}

// Every method meets every status with every form of body.
// I-37, I-128, I-156, I-159
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
	if status.retried && !s.write {
		attempts = 3
	}
	assert.Equal(t, attempts, sent, at)
	assert.Equal(t, attempts, seen.Attempts, at)
	assert.Equal(t, status.status, seen.StatusCode, at)
	assert.Equal(t, form.message, seen.Message, at)
	refusal := assertRefusal(t, s, status.rejects, err)
	assert.Equal(t, s.op, refusal.Operation)
	assert.Equal(t, status.status, refusal.StatusCode, at)
	assert.Equal(t, attempts, refusal.Attempts, at)
	assert.Equal(t, form.message, refusal.Message, at)
	assert.Equal(t, form.body, string(refusal.Body), at)
	assertSentinels(t, refusal, status.sentinel)
	assert.Equal(t, status.retried && (!s.write || status.rejects), gateway.SafeToRetry(refusal), at)
	assert.Equal(t, status.retried && (!s.write || status.rejects), gateway.SafeToRetry(err), at)
}

// assertRefusal returns the refusal in an error: an invoice of which a status
// does not prove that it was refused is unknown, with the refusal as the cause.
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
		assert.False(t, errors.As(err, &inner), "the refusal is a field only")
		require.ErrorAs(t, lost.Cause, &inner)
		assert.Equal(t, inner.StatusCode, lost.StatusCode)
		assert.Equal(t, string(inner.Body), string(lost.Body))
		return inner
	}
	refusal, ok := err.(*gateway.APIError) //nolint:errorlint // the error itself, not one in it
	require.True(t, ok, "%T: %v", err, err)
	return refusal
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

// reply is a response as a RoundTripper returns it. Headers are in pairs.
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

// A caller's transport may do what no correct one does.
func TestClient_IncorrectTransports(t *testing.T) {
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
			"it returns neither a response nor an error",
			func(*http.Request) (*http.Response, error) { return nil, nil },
			gateway.OutcomeNotSent, 1, 1,
		},
		{
			"it reads the body and returns neither a response nor an error",
			func(req *http.Request) (*http.Response, error) { drain(req); return nil, nil },
			gateway.OutcomeUnknown, 1, 1,
		},
		{
			"it refuses by itself, as a circuit breaker does",
			func(*http.Request) (*http.Response, error) { return nil, errors.New("circuit breaker is open") },
			gateway.OutcomeNotSent, 1, 1,
		},
		{
			"it refuses with an error that is temporary",
			func(*http.Request) (*http.Response, error) {
				return nil, fmt.Errorf("limiter: %w", temporaryError{})
			},
			gateway.OutcomeNotSent, 3, 3,
		},
		{
			"it returns a refusal without a body",
			func(req *http.Request) (*http.Response, error) {
				drain(req)
				return &http.Response{StatusCode: 400}, nil
			},
			gateway.OutcomeRejected, 1, 1,
		},
		{
			"it returns a response without a status",
			func(req *http.Request) (*http.Response, error) {
				drain(req)
				return &http.Response{}, nil
			},
			gateway.OutcomeUnknown, 1, 1,
		},
		{
			"it returns a success without a body, without having read the invoice",
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

func (temporaryError) Error() string { return "try again" }

func (temporaryError) Temporary() bool { return true }

// A RoundTripper that adds an idempotency header makes net/http believe that a
// request may be replayed. The header alone must not send an invoice twice.
// I-123
func TestClient_TransportAddsIdempotencyKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, true)
		closeReused(h)
		h.tripper = tripper(func(req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			req.Header.Set("Idempotency-Key", "of-the-transport")
			return h.transport.RoundTrip(req)
		})
		h.warm()
		h.assert(expectation{kind: unknown, requests: 1, commits: 1, dials: 1})
	})
}

// rows H2, H3: a transport that heeds no context is left half a second after the
// attempt, whatever the caller's context reports of itself. An invoice that it has read is
// unknown, and one that it has not read is never sent.
func TestClient_TransportIgnoresTheContext(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		for _, reads := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, read: %t", s.name, reads), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for _, ctx := range []context.Context{context.Background(), lyingContext{context.Background()}} {
						assertLeaves(ctx, t, s, reads)
					}
				})
			})
		}
	}
}

// A lyingContext has a deadline in the past and never ends.
type lyingContext struct{ context.Context }

func (lyingContext) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

func assertLeaves(ctx context.Context, t *testing.T, s subject, reads bool) {
	t.Helper()
	release, late := make(chan struct{}), make(chan error, 1)
	c := newClient(t, "http://localhost", once(), gateway.WithHTTPClient(&http.Client{
		Transport: tripper(func(req *http.Request) (*http.Response, error) {
			if reads {
				drain(req)
			}
			<-release
			if s.write && !reads {
				_, err := io.ReadAll(req.Body)
				late <- err
			}
			return reply(s.status, s.body()), nil
		}),
	}))
	begun, timeout := time.Now(), 15*time.Second
	if s.write {
		timeout = time.Minute
	}
	got, err := s.call(ctx, c)
	assert.Equal(t, timeout+time.Second/2, time.Since(begun))
	assertInvariants(t, got, err)
	close(release)
	synctest.Wait()
	switch {
	case s.write && reads:
		assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
		return
	case s.write:
		assert.ErrorIs(t, err, gateway.ErrNotSent)
		assert.EqualError(t, <-late, "gateway: the attempt is over")
	}
	assert.ErrorIs(t, err, gateway.ErrTimeout)
	assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
}

// net/http writes to the program's log about a transport that returns a
// response together with an error. Not parallel: the log is of the program.
func TestClient_TransportReturnsAResponseAndAnError(t *testing.T) {
	var printed bytes.Buffer
	log.SetOutput(&printed)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for _, s := range subjects() {
		closed := 0
		c := newClient(t, "http://localhost", once(), through(func(*http.Request) (*http.Response, error) {
			response := reply(200, s.body())
			response.Body = closer{response.Body, func() { closed++ }}
			return response, errors.New("an error too")
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
	assertPassedOn(t, "of the transport", func() { _, _ = c.CreateInvoice(t.Context(), order("A-17")) })
	panics = false
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	assert.ErrorIs(t, err, gateway.ErrOrderOutcomeUnknown)
	_, err = c.CreateInvoice(t.Context(), order("A-17"), gateway.AllowResubmit())
	assert.NoError(t, err)
}

// A transport that has read a part of an invoice, and goes on after its attempt or its
// response, gets no more of it.
func TestClient_CreateInvoice_restIsNotRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		respond bool
		outcome gateway.Outcome
	}{
		{"after its attempt", false, gateway.OutcomeUnknown},
		{"after its response", true, gateway.OutcomeSucceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				type reading struct {
					text string
					err  error
				}
				late := make(chan reading, 1)
				c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
					part := make([]byte, 10)
					_, err := io.ReadFull(req.Body, part)
					assert.NoError(t, err)
					assert.Equal(t, `{"apiKey":`, string(part))
					readOn := func() {
						time.Sleep(2 * time.Minute) // of the bubble; it does not heed the end
						rest, err := io.ReadAll(req.Body)
						late <- reading{string(rest), err}
					}
					if tt.respond {
						go readOn()
						return reply(200, enveloped(invoiceJSON)), nil
					}
					readOn()
					return nil, io.EOF
				})}))
				_, err := c.CreateInvoice(t.Context(), order("A-17"))
				assert.Equal(t, tt.outcome, gateway.OutcomeOf(err))
				got := <-late
				assert.Empty(t, got.text)
				assert.EqualError(t, got.err, "gateway: the attempt is over")
			})
		})
	}
}

// A body is closed once, whatever the response, and with it the attempt is over:
// its context, and the timer in that, are not left behind.
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
						response := reply(status, s.body())
						response.Body = closer{response.Body, func() { closed++ }}
						return response, nil
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
		{"it claims not to have been sent", fmt.Errorf("pool: %w", gateway.ErrNotSent)},
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
	for _, cause := range []error{&gateway.APIError{Operation: "balance", StatusCode: 503}, context.DeadlineExceeded} {
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
// nothing of an invoice that was reported as not sent.
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

// A panic of the caller's transport comes out where the caller can recover from
// it, and so does the end of its goroutine.
func TestClient_WaitWithdrawals_Panics(t *testing.T) {
	t.Parallel()
	for value, end := range map[any]func(){
		"the transport's": func() { panic("the transport's") },
		nil:               runtime.Goexit,
	} {
		t.Run(fmt.Sprint(value), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) { end(); return nil, nil }))
				assertPassedOn(t, value, func() {
					for range c.WaitWithdrawals(t.Context(), []string{"a", "b", "c"}, nil, gateway.WaitOptions{}) {
						assert.Fail(t, "nothing has ended")
					}
				})
			})
		})
	}
}

// A RoundTripper that writes into the values of a header changes its own request
// only.
func TestClient_HeaderValuesAreOfOneCall(t *testing.T) {
	t.Parallel()
	var sent []string
	c := newClient(t, "http://localhost", through(func(req *http.Request) (*http.Response, error) {
		for _, name := range []string{"X-Api-Key", "User-Agent", "Accept", "Content-Type"} {
			sent = append(sent, req.Header[name][0])
			req.Header[name][0] = "***"
		}
		return reply(201, enveloped(withdrawalJSON)), nil
	}))
	for range 2 {
		_, err := c.Withdrawal(t.Context(), requestID)
		require.NoError(t, err)
	}
	assert.Equal(t, sent[:4], sent[4:])
	assert.NotContains(t, sent, "***")
}

// A RoundTripper that changes the header of a request, perhaps after its attempt, changes
// that of no other attempt.
func TestClient_HeaderIsOfOneAttempt(t *testing.T) {
	t.Parallel()
	var sent []http.Header
	policy := gateway.RetryPolicy{MaxAttempts: 3, BaseDelay: 1, MaxDelay: 1}
	c := newClient(t, "http://localhost", gateway.WithRetry(policy), through(func(req *http.Request) (*http.Response, error) {
		sent = append(sent, req.Header.Clone())
		req.Header["Accept"][0], req.Header["X-Trace"][0] = "***", "***"
		req.Header.Add("X-Trace", "more")
		req.Header.Del("X-Api-Key")
		return reply(502, ""), nil
	}))
	_, err := c.Withdrawal(t.Context(), requestID, gateway.WithHeader("X-Trace", "1"))
	require.Error(t, err)
	require.Len(t, sent, policy.MaxAttempts)
	assert.Equal(t, []string{canary}, sent[0]["X-Api-Key"])
	for _, header := range sent {
		assert.Equal(t, sent[0], header)
	}
}

// idle returns what it has, and then neither bytes nor an error.
type idle struct{ left io.Reader }

func (b idle) Read(p []byte) (int, error) {
	n, _ := b.left.Read(p)
	return n, nil
}

// A body that returns nothing again and again does not keep a core busy.
func TestClient_BodiesWithoutProgress(t *testing.T) {
	t.Parallel()
	forEach(t, "the call ends", func(t *testing.T, s subject) {
		for _, status := range []int{s.status, 404} {
			for _, begun := range []string{"", "\xef", `{"message":`} {
				c := newClient(t, "http://localhost", once(), gateway.WithOrderGuard(nil), through(func(*http.Request) (*http.Response, error) {
					response := reply(status, "")
					response.Body, response.ContentLength = io.NopCloser(idle{strings.NewReader(begun)}), -1
					return response, nil
				}))
				result, err := s.call(t.Context(), c)
				assertInvariants(t, result, err)
				require.Error(t, err)
				if status == s.status && !s.write {
					assert.ErrorIs(t, err, io.ErrNoProgress)
				}
			}
		}
	})
}

const (
	merchantA = "MERCHANT-A-0c1d2e3f4a5b"
	merchantB = "MERCHANT-B-9a8b7c6d5e4f"
)

// Two merchants may number their orders alike, and their invoices have nothing
// to do with each other.
func TestOrderGuard_TwoMerchants(t *testing.T) {
	t.Parallel()
	const cut, good, held, created = "cut", "good", "held", "created"
	type step struct{ key, what string }
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"a success of one does not free the order of the other", []step{{merchantA, cut}, {merchantB, good}, {merchantA, held}}},
		{"an unknown outcome of one does not hold the order of the other", []step{{merchantA, cut}, {merchantB, good}, {merchantB, created}}},
		{"the client's own key is a third", []step{{"", cut}, {merchantA, good}, {merchantB, good}, {"", held}}},
		{"an unknown outcome of another does not hold the client's own order", []step{{merchantA, cut}, {"", good}, {merchantA, held}}},
		{"each holds its own", []step{{merchantA, cut}, {merchantB, cut}, {"", cut}, {merchantA, held}, {merchantB, held}, {"", held}}},
		{"the client's own key, given for a call, is the client's own", []step{{"", cut}, {canary, held}}},
		{"and the other way round", []step{{canary, cut}, {"", held}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			what := ""
			c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
				if what == good {
					return reply(200, enveloped(invoiceJSON)), nil
				}
				assert.NotEqual(t, held, what, "this invoice must not be sent")
				return nil, errors.New(cut)
			}))
			wants := map[string]error{cut: gateway.ErrOutcomeUnknown, held: gateway.ErrOrderOutcomeUnknown, created: gateway.ErrOrderCreated}
			for i, s := range tt.steps {
				what = s.what
				_, err := c.CreateInvoice(t.Context(), order("A-17"), keyOption(s.key)...)
				if what == good {
					assert.NoError(t, err, "step %d", i)
					continue
				}
				assert.ErrorIs(t, err, wants[what], "step %d", i)
			}
		})
	}
}

func keyOption(key string) []gateway.CallOption {
	if key == "" {
		return nil
	}
	return []gateway.CallOption{gateway.WithAPIKey(key)}
}

// Nor does an invoice of one merchant wait for that of another.
func TestOrderGuard_TwoMerchantsAtOnce(t *testing.T) {
	t.Parallel()
	var c *gateway.Client
	keys := []string{merchantB, ""}
	c = newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
		if len(keys) > 0 {
			key := keys[0]
			keys = keys[1:]
			_, err := c.CreateInvoice(t.Context(), order("A-17"), keyOption(key)...)
			assert.NoError(t, err)
			_, err = c.CreateInvoice(t.Context(), order("A-17"), keyOption(merchantA)...)
			assert.ErrorIs(t, err, gateway.ErrOrderInFlight, "its own is under way")
		}
		return reply(200, enveloped(invoiceJSON)), nil
	}))
	_, err := c.CreateInvoice(t.Context(), order("A-17"), keyOption(merchantA)...)
	assert.NoError(t, err)
	assert.Empty(t, keys)
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

var errOfTheGuard = errors.New("of the guard")

// Whatever a guard refuses with, this call sent nothing, and matches nothing
// that is true of another call only.
func TestOrderGuard_Errors(t *testing.T) {
	t.Parallel()
	address := "postgres://shop:" + password + "@db:5432/orders: refused"
	previous := &gateway.OutcomeUnknownError{Operation: "create_invoice", OrderID: "A-17", Cause: io.EOF}
	refusal := []error{gateway.ErrInvalidArgument, gateway.ErrNotSent}
	for _, tt := range []struct {
		name string
		err  error
		want []error
	}{
		{"an unknown outcome", gateway.ErrOutcomeUnknown, nil},
		{"a limit", gateway.ErrRateLimited, nil},
		{"a timeout", gateway.ErrTimeout, nil},
		{"every sentinel but those of orders", errors.Join(sentinels[:14]...), nil},
		{"a refusal of the service", &gateway.APIError{Operation: "create_invoice", StatusCode: 429}, nil},
		{"a failure of the service", &gateway.APIError{Operation: "create_invoice", StatusCode: 500}, nil},
		{"a previous call's unknown outcome", previous, nil},
		{"a database's address", errors.New(address), nil},
		{"an order that is in flight", fmt.Errorf("%w: %s", gateway.ErrOrderInFlight, address), append(refusal, gateway.ErrOrderInFlight)},
		{
			"an order that is unknown, and the previous error",
			fmt.Errorf("%w: %w: %s", gateway.ErrOrderOutcomeUnknown, previous, address),
			append(refusal, gateway.ErrOrderOutcomeUnknown),
		},
		{
			"an order that is in flight, and a limit",
			errors.Join(gateway.ErrRateLimited, gateway.ErrOrderInFlight, previous),
			append(refusal, gateway.ErrOrderInFlight),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sent := 0
			accept := through(func(*http.Request) (*http.Response, error) {
				sent++
				return reply(200, enveloped(invoiceJSON)), nil
			})
			n := &recordingGuard{refuse: fmt.Errorf("%w: %w: %w", tt.err, errOfTheGuard, &databaseError{address})}
			got, err := newClient(t, "http://localhost", accept, gateway.WithOrderGuard(n)).CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			assertSentinels(t, err, append([]error{gateway.ErrNotSent}, tt.want...)...)
			assertGuardRefused(t, err)
			assert.Empty(t, n.ended)
			assert.Zero(t, sent)
		})
	}
}

func assertGuardRefused(t *testing.T, err error) {
	t.Helper()
	assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
	assert.False(t, gateway.SafeToRetry(err))
	assert.ErrorIs(t, err, errOfTheGuard)
	_, isDatabase := errors.AsType[*databaseError](err)
	assert.True(t, isDatabase, "the error of the guard is kept")
	_, isRefusal := errors.AsType[*gateway.APIError](err)
	assert.False(t, isRefusal)
	_, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err)
	assert.False(t, isUnknown)
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		assert.NotContains(t, inner.Error(), password)
	}
	assertSilent(t, err, password)
}

type timeoutError struct{ text string }

func (e timeoutError) Error() string { return "no response: " + e.text }

func (timeoutError) Timeout() bool { return true }

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
		"with an error of ours":  errors.Join(gateway.ErrNotSent, timeoutError{canary}),
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
		assertSentinels(t, err, gateway.ErrOutcomeUnknown)
		lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
		require.True(t, ok)
		err = lost.Cause
	}
	assertSentinels(t, err, gateway.ErrTimeout)
	failure, ok := errors.AsType[*gateway.TransportError](err)
	require.True(t, ok)
	assert.True(t, failure.Timeout())
}

// row H10: a transport that reads an invoice after its response gets nothing of it. One
// that was read before stays what its response makes of it.
func TestClient_TransportReadsAfterTheResponse(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			late := make(chan error, 1)
			c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{
				Transport: tripper(func(req *http.Request) (*http.Response, error) {
					if before {
						drain(req)
					}
					go func() {
						time.Sleep(50 * time.Millisecond) // of the bubble
						_, err := io.ReadAll(req.Body)
						late <- err
					}()
					return reply(429, refused("Not now.")), nil
				}),
			}))
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			assert.Equal(t, gateway.OutcomeRejected, gateway.OutcomeOf(err))
			assert.EqualError(t, <-late, "gateway: the attempt is over")
		})
	}
}

// A transport that does not heed the end of an attempt can read the invoice because of
// it, and return a refusal of what it has not sent yet: that proves nothing.
func TestClient_RefusalAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		read bool
		want gateway.Outcome
	}{
		{"the invoice was read", true, gateway.OutcomeUnknown},
		{"nothing of it was read", false, gateway.OutcomeRejected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
				cancel()
				if tt.read {
					_, _ = io.ReadAll(req.Body)
				}
				return reply(429, refused("Later.")), nil
			})}))
			_, err := c.CreateInvoice(ctx, order("A-17"))
			require.Error(t, err)
			assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
			assert.Equal(t, tt.want == gateway.OutcomeRejected, gateway.SafeToRetry(err))
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
