package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A brokenError is an error of a caller's whose methods do not do what they should.
type brokenError struct {
	text   func() string
	unwrap func() error
	is     func() bool
}

func (e *brokenError) Error() string {
	if e.text != nil {
		return e.text()
	}
	return "broken"
}

func (e *brokenError) Unwrap() error {
	if e.unwrap != nil {
		return e.unwrap()
	}
	return nil
}

func (e *brokenError) Is(error) bool { return e.is != nil && e.is() }

// row H25: errors whose methods block, panic or have no end do not hold a call, wherever
// they come from.
func TestCreateInvoice_brokenErrors(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(release chan struct{}) error{
		"its Error blocks": func(release chan struct{}) error {
			return &brokenError{text: func() string { <-release; return "" }}
		},
		"its Error panics": func(chan struct{}) error { return &brokenError{text: func() string { panic("of the error") }} },
		"its Is blocks": func(release chan struct{}) error {
			return &brokenError{is: func() bool { <-release; return false }}
		},
		"its Unwrap returns itself": func(chan struct{}) error {
			e := &brokenError{}
			e.unwrap = func() error { return e }
			return e
		},
		"it is a nil pointer":                 func(chan struct{}) error { return (*brokenError)(nil) },
		"it is a nil pointer of this package": func(chan struct{}) error { return (*gateway.APIError)(nil) },
	} {
		for place, at := range map[string]struct {
			opts    func(t *testing.T, broken error) []gateway.Option
			outcome gateway.Outcome
		}{
			"of a transport": {func(_ *testing.T, broken error) []gateway.Option {
				return []gateway.Option{through(func(*http.Request) (*http.Response, error) { return nil, broken })}
			}, gateway.OutcomeUnknown},
			"of the body of a response": {func(_ *testing.T, broken error) []gateway.Option {
				return []gateway.Option{through(func(*http.Request) (*http.Response, error) {
					resp := reply(201, "")
					resp.Body = io.NopCloser(iotest.ErrReader(broken))
					return resp, nil
				})}
			}, gateway.OutcomeUnknown},
			"of Begin": {func(_ *testing.T, broken error) []gateway.Option {
				return []gateway.Option{gateway.WithOrderGuard(&failingGuard{begin: broken})}
			}, gateway.OutcomeUnknown},
			"of End": {func(_ *testing.T, broken error) []gateway.Option {
				return []gateway.Option{gateway.WithOrderGuard(&failingGuard{end: broken}), through(func(*http.Request) (*http.Response, error) {
					return reply(201, enveloped(invoiceJSON)), nil
				})}
			}, gateway.OutcomeSucceeded},
		} {
			t.Run(name+" "+place, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					release, begun := make(chan struct{}), time.Now()
					defer close(release)
					_, err := newClient(t, "http://localhost", at.opts(t, breaks(release))...).CreateInvoice(t.Context(), order("A-17"))
					assert.Equal(t, at.outcome, gateway.OutcomeOf(err), "%v", err)
					assert.LessOrEqual(t, time.Since(begun), time.Second)
				})
			})
		}
	}
}

// A failingGuard is a guard whose methods fail.
type failingGuard struct {
	gateway.MemoryGuard
	begin, end error
}

func (g *failingGuard) Begin(ctx context.Context, o gateway.Order) (gateway.Admission, error) {
	if g.begin != nil {
		return gateway.Admission{}, g.begin
	}
	return g.MemoryGuard.Begin(ctx, o)
}

func (g *failingGuard) End(context.Context, gateway.Order, gateway.OrderRecord) error { return g.end }

// A closing body blocks in Close until it is released.
type closing struct {
	io.Reader
	release chan struct{}
}

func (c *closing) Close() error { <-c.release; return nil }

// row H24: a RoundTripper that returns a response and an error, and whose body blocks when it is
// closed, does not hold a call.
func TestCreateInvoice_responseAndError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, begun := make(chan struct{}), time.Now()
		defer close(release)
		c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
			resp := reply(201, "")
			resp.Body = &closing{strings.NewReader(""), release}
			return resp, errors.New("both")
		}))
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
		assert.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		assert.Equal(t, time.Minute+time.Second/2, time.Since(begun))
		_, err = c.CreateInvoice(t.Context(), order("A-17"))
		assert.ErrorIs(t, err, gateway.ErrOrderOutcomeUnknown, "the order is not in flight for ever")
	})
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
				return &http.Response{StatusCode: 401}, nil
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

// No method follows a redirect, whichever transport it has.
// I-10
func TestClient_RedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(func() {
		evil.Close()
		assert.Zero(t, hits.Load(), "the other host was contacted")
	})
	following := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	for _, s := range subjects() {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(s.name, "/", status), func(t *testing.T) {
				t.Parallel()
				for _, opts := range [][]gateway.Option{nil, {gateway.WithHTTPClient(following)}} {
					w := serve(t, func(w http.ResponseWriter, r *http.Request) {
						http.Redirect(w, r, evil.URL, status)
					})
					got, err := s.call(t.Context(), newClient(t, w.URL, opts...))
					assertInvariants(t, got, err)
					assert.Len(t, w.Requests(), 1)
					assert.Equal(t, !s.write, errors.Is(err, gateway.ErrRedirect))
					assert.Equal(t, s.write, errors.Is(err, gateway.ErrOutcomeUnknown))
				}
			})
		}
	}
}
