package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

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

// A response that began before the request is not believed, whatever it says, and that to a request
// that was written twice is not the only one.
func TestCreateInvoice_ambiguousResponse(t *testing.T) {
	t.Parallel()
	early := func(hooks *httptrace.ClientTrace) { hooks.GotFirstResponseByte(); hooks.WroteHeaders() }
	twice := func(hooks *httptrace.ClientTrace) { hooks.WroteHeaders(); hooks.WroteHeaders() }
	for name, hook := range map[string]func(*httptrace.ClientTrace){"early": early, "twice": twice} {
		for _, status := range []int{201, 422} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				t.Parallel()
				c := newClient(t, "http://localhost", through(func(req *http.Request) (*http.Response, error) {
					hook(httptrace.ContextClientTrace(req.Context()))
					return reply(status, enveloped(invoiceJSON)), nil
				}))
				got, err := c.CreateInvoice(t.Context(), order("A-17"))
				assertInvariants(t, got, err)
				assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
				assert.False(t, gateway.SafeToRetry(err))
			})
		}
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

// A retry after 502, 503 or 504 dials anew, and so do later reads, where the transport is the client's own:
// the name of the host may lead to a healthy one by now.
func TestClient_retryDialsAnew(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		opts   []gateway.Option
		want   int // the connection of the last read
	}{
		{"502", 502, nil, 2},
		{"503", 503, nil, 2},
		{"504", 504, nil, 2},
		{"429, which another host would say too", 429, nil, 1},
		{"503 without a retry", 503, []gateway.Option{once()}, 1},
		{"a transport of the caller's", 503, []gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: &http.Transport{}})}, 1},
		{"no transport of the caller's", 503, []gateway.Option{gateway.WithHTTPClient(&http.Client{})}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			type number struct{}
			var connections, last atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				last.Store(r.Context().Value(number{}).(int64))
				if last.Load() == 1 {
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
			for range 3 {
				_, err := c.ExchangeRates(t.Context())
				assert.Equal(t, tt.want == 1, err != nil, "%v", err)
			}
			assert.EqualValues(t, tt.want, last.Load())
			assert.EqualValues(t, tt.want, connections.Load())
		})
	}
}

// A RoundTripper that shares the connections of invoices, or sends one twice, is warned of once.
func TestWithLogger_transport(t *testing.T) {
	t.Parallel()
	wrapped := func(next http.RoundTripper) gateway.Option {
		return gateway.WithHTTPClient(&http.Client{Transport: tripper(next.RoundTrip)})
	}
	for _, tt := range []struct {
		name  string
		http2 bool
		opts  func(*httptest.Server) gateway.Option
		want  []string
	}{
		{"a plain transport", false, func(s *httptest.Server) gateway.Option { return gateway.WithHTTPClient(s.Client()) }, nil},
		{"a wrapped transport", false, func(s *httptest.Server) gateway.Option { return wrapped(s.Client().Transport) }, []string{"shares the connections"}},
		{"a wrapped transport over HTTP/2", true, func(s *httptest.Server) gateway.Option { return wrapped(s.Client().Transport) }, nil},
		{"a wrapped InvoiceTransport", false, func(s *httptest.Server) gateway.Option {
			return wrapped(gateway.InvoiceTransport(s.Client().Transport.(*http.Transport)))
		}, nil},
		{"one that sends twice", false, func(s *httptest.Server) gateway.Option {
			next := gateway.InvoiceTransport(s.Client().Transport.(*http.Transport))
			return gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
				if req.Body == nil {
					return next.RoundTrip(req)
				}
				body, _ := io.ReadAll(req.Body)
				for attempt := 0; ; attempt++ {
					again := req.Clone(req.Context())
					again.Body = io.NopCloser(bytes.NewReader(body))
					resp, err := next.RoundTrip(again)
					if err != nil || attempt == 1 {
						return resp, err
					}
					_ = resp.Body.Close()
				}
			})})
		}, []string{"sends a request more than once"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(respond(201, enveloped(invoiceJSON)))
			server.EnableHTTP2 = tt.http2
			server.StartTLS()
			t.Cleanup(server.Close)
			var text bytes.Buffer
			c := newClient(t, server.URL, tt.opts(server), gateway.WithLogger(slog.New(slog.NewTextHandler(&text, nil))))
			for i := range 4 {
				_, _ = c.CreateInvoice(t.Context(), order(fmt.Sprint("A-", i)))
			}
			var warned []string
			for line := range strings.Lines(text.String()) {
				if strings.Contains(line, "the RoundTripper") {
					warned = append(warned, line)
				}
			}
			require.Len(t, warned, len(tt.want), text.String())
			for i, want := range tt.want {
				assert.Contains(t, warned[i], want)
				assert.Contains(t, warned[i], "level=WARN")
			}
		})
	}
}
