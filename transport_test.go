package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A transportCase is what a caller's transport does with a request, which no correct one does.
type transportCase struct {
	name     string
	trip     func(req *http.Request, s subject) (*http.Response, error)
	outcome  gateway.Outcome // of an invoice
	attempts int             // of a read
	tries    int             // of an invoice
}

func transportCases() []transportCase {
	refusal := refusedConnection("connect")
	return []transportCase{
		{"it reads the body and then reports that it could not connect", func(req *http.Request, _ subject) (*http.Response, error) {
			drain(req)
			return nil, refusal
		}, gateway.OutcomeUnknown, 3, 1},
		{"it reads the body and then reports that the server refuses its certificate", func(req *http.Request, _ subject) (*http.Response, error) {
			drain(req)
			return nil, &net.OpError{Op: "remote error", Err: tls.AlertError(116)}
		}, gateway.OutcomeUnknown, 1, 1},
		{"it reports that it could not connect, and keeps the body", func(*http.Request, subject) (*http.Response, error) {
			return nil, refusal
		}, gateway.OutcomeNotSent, 3, 3},
		{"it closes the body unread and reports that it could not connect", func(req *http.Request, _ subject) (*http.Response, error) {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, refusal
		}, gateway.OutcomeNotSent, 3, 3},
		{"it refuses by itself, as a circuit breaker does", func(*http.Request, subject) (*http.Response, error) {
			return nil, errors.New("circuit breaker is open")
		}, gateway.OutcomeNotSent, 1, 1},
		{"it refuses with an error that is temporary", func(*http.Request, subject) (*http.Response, error) {
			return nil, fmt.Errorf("limiter: %w", temporaryError{})
		}, gateway.OutcomeNotSent, 3, 3},
		{"it returns a refusal without a body", func(req *http.Request, _ subject) (*http.Response, error) {
			drain(req)
			return &http.Response{StatusCode: 401}, nil
		}, gateway.OutcomeRejected, 1, 1},
		{"it returns a refusal before it has read the body", func(*http.Request, subject) (*http.Response, error) {
			return reply(429, refused("Not now.")), nil
		}, gateway.OutcomeRejected, 3, 1},
		{"it returns a success without a body, without having read the invoice", func(*http.Request, subject) (*http.Response, error) {
			return &http.Response{StatusCode: 200}, nil
		}, gateway.OutcomeUnknown, 1, 1},
		{"it returns a success, and has read a part of the body", func(req *http.Request, s subject) (*http.Response, error) {
			if req.Body != nil {
				_, _ = io.ReadFull(req.Body, make([]byte, 10))
			}
			return reply(s.status, s.body()), nil
		}, gateway.OutcomeSucceeded, 1, 1},
		{"it wraps a panic in an error of many lines", func(req *http.Request, _ subject) (*http.Response, error) {
			drain(req)
			return nil, errors.New("gateway: broke\n\tat once\n\twith key " + canary)
		}, gateway.OutcomeUnknown, 1, 1},
	}
}

// A caller's transport may do what no correct one does: the client says what it knows of an
// invoice, and shows nothing more of the invoice afterwards.
// I-123
func TestClient_IncorrectTransports(t *testing.T) {
	t.Parallel()
	for _, tt := range transportCases() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range subjects() {
				synctest.Test(t, func(t *testing.T) { tt.assert(t, s) })
			}
		})
	}
}

func (tt transportCase) assert(t *testing.T, s subject) {
	t.Helper()
	tries := 0
	var bodies []io.Reader
	c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
		tries++
		assert.Empty(t, req.Header["Idempotency-Key"])
		assert.Nil(t, req.GetBody, "with GetBody net/http would replay an invoice")
		if req.Body != nil {
			bodies = append(bodies, req.Body)
		}
		return tt.trip(req, s)
	})}))
	got, err := s.call(t.Context(), c)
	assertInvariants(t, got, err)
	assert.Equal(t, tt.outcome == gateway.OutcomeSucceeded, err == nil, "%v", err)
	for _, body := range bodies {
		late, err := io.ReadAll(body)
		assert.Error(t, err)
		assert.Empty(t, late, "a transport that goes on reads nothing more")
	}
	if !s.write {
		assert.Equal(t, tt.attempts, tries)
		return
	}
	assert.Equal(t, tt.tries, tries)
	assert.Equal(t, tt.outcome, gateway.OutcomeOf(err), "%v", err)
}

// A call that its caller has ended is not to be made again, whatever the cause.
func TestClient_CauseOfACancelledRead(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{&gateway.APIError{Operation: "balance", StatusCode: 503}, errors.New("the buyer has gone")} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("nothing must be sent")
		}))
		got, err := c.Withdrawal(ctx, requestID)
		assertInvariants(t, got, err)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, strings.TrimPrefix(cause.Error(), "gateway: "))
		_, isOwn := errors.AsType[*gateway.APIError](err)
		assert.False(t, isOwn, "an error of another call is not the error of this one")
		assert.False(t, gateway.SafeToRetry(err), "of %v", err)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
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
					assert.Equal(t, s.write, gateway.OutcomeOf(err) == gateway.OutcomeUnknown)
				}
			})
		}
	}
}

// A response that begins before the request is written is not believed, whatever it says.
func TestCreateInvoice_earlyResponse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, status string
		opts         []gateway.Option
	}{
		{"a success", "201 Created", nil},
		{"a refusal", "422 No", nil},
		{"a success under a middleware", "201 Created", []gateway.Option{
			gateway.WithMiddleware(func(next http.RoundTripper) http.RoundTripper { return tripper(next.RoundTrip) }),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				body := enveloped(invoiceJSON)
				direct := &http.Transport{WriteBufferSize: 1, DialContext: func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					go func() {
						first := make([]byte, 1)
						_, _ = theirs.Read(first)
						_, _ = io.WriteString(theirs, "HTTP/1.1 ")
						time.Sleep(time.Nanosecond) // until it is read
						if req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(first), theirs))); err == nil {
							_, _ = io.Copy(io.Discard, req.Body)
						}
						_, _ = fmt.Fprintf(theirs, "%s\r\nContent-Length: %d\r\n\r\n%s", tt.status, len(body), body)
					}()
					return ours, nil
				}}
				c := newClient(t, "http://localhost", append(tt.opts, gateway.WithHTTPClient(&http.Client{Transport: direct}))...)
				got, err := c.CreateInvoice(t.Context(), order("A-17"))
				assertInvariants(t, got, err)
				assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
				assert.False(t, gateway.SafeToRetry(err))
			})
		})
	}
}

// What the service said is kept although the context ends meanwhile.
func TestClient_contextEndsInAnAttempt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
		cancel()
		return reply(503, refused("Not now.")), nil
	}))
	var said *gateway.APIError
	require.ErrorAs(t, withdrawal(ctx, c), &said)
	assert.Equal(t, "Not now.", said.Message)
	assert.Equal(t, 1, said.Attempts)
}

// A retry of a read that got 502, 503 or 504 dials anew, and so do later reads: the name of
// the host may lead to one that works. It does so once a second.
func TestClient_retryDialsAnew(t *testing.T) {
	t.Parallel()
	wrap := func(next http.RoundTripper) http.RoundTripper { return tripper(next.RoundTrip) }
	through := func(next http.RoundTripper) []gateway.Option {
		return []gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: next})}
	}
	for _, tt := range []struct {
		name   string
		status int
		opts   []gateway.Option
		broken int // connections that do not work
		want   int // connections
		fails  int // reads
	}{
		{"502", 502, nil, 1, 2, 0},
		{"503", 503, nil, 1, 2, 0},
		{"504", 504, nil, 1, 2, 0},
		{"429, which another host would say too", 429, nil, 1, 1, 3},
		{"503 without a retry", 503, []gateway.Option{once()}, 1, 1, 3},
		{"two that do not work, of which the second is met in the same second", 503, nil, 2, 2, 3},
		{"a caller's transport", 503, through(&http.Transport{}), 1, 2, 0},
		{"a middleware", 503, []gateway.Option{gateway.WithMiddleware(wrap)}, 1, 2, 0},
		{"a middleware around a caller's transport", 503, append(through(&http.Transport{}), gateway.WithMiddleware(wrap)), 1, 2, 0},
		{"a RoundTripper, whose connections are the caller's business", 503, through(wrap(&http.Transport{})), 1, 1, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			type number struct{}
			var connections atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Context().Value(number{}).(int64) <= int64(tt.broken) {
					respond(tt.status, "")(w, r)
					return
				}
				respond(200, enveloped(ratesJSON))(w, r)
			}))
			server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
				return context.WithValue(ctx, number{}, connections.Add(1))
			}
			server.Start()
			t.Cleanup(server.Close)
			quick := gateway.WithRetry(gateway.RetryPolicy{BaseDelay: 1, MaxDelay: 1})
			c := newClient(t, server.URL, append([]gateway.Option{quick}, tt.opts...)...)
			t.Cleanup(c.CloseIdleConnections)
			fails := 0
			for range 3 {
				if _, err := c.ExchangeRates(t.Context()); err != nil {
					fails++
				}
			}
			assert.Equal(t, tt.fails, fails)
			assert.EqualValues(t, tt.want, connections.Load())
		})
	}
}

// A retry of a read that got no response meets no other dead connection.
func TestClient_deadConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dialed, dead atomic.Int64 // the first connections are dead
		c := newClient(t, "http://localhost", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 2}), gateway.WithHTTPClient(&http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 3,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				number := dialed.Add(1)
				go func() {
					for reader := bufio.NewReader(theirs); ; {
						if _, err := http.ReadRequest(reader); err != nil {
							return
						}
						time.Sleep(time.Millisecond) // others dial meanwhile
						if number > dead.Load() {
							_, _ = fmt.Fprintf(theirs, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(enveloped(ratesJSON)), enveloped(ratesJSON))
						}
					}
				}()
				return ours, nil
			},
		}}))
		read := func() {
			_, err := c.ExchangeRates(t.Context())
			assert.NoError(t, err)
		}
		var together sync.WaitGroup
		for range 3 {
			together.Go(read)
		}
		together.Wait()
		require.EqualValues(t, 3, dialed.Load())
		dead.Store(3)
		read()
		assert.EqualValues(t, 4, dialed.Load())
		c.CloseIdleConnections()
	})
}
