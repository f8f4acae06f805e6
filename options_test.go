package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/faultserver"
)

// tagged responds with additional headers.
func tagged(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "req-1")
		w.Header().Set("X-Other", "o")
		respond(status, body)(w, r)
	}
}

// I-39, I-40, I-41
func TestWithResponse_success(t *testing.T) {
	t.Parallel()
	forEach(t, "everything that came", func(t *testing.T, s subject) {
		body := `{"message":"Operation was successful.","result": ` + s.result + ` ,"meta":{"page": 1}}`
		w := serve(t, tagged(s.status, body))
		var response gateway.Response
		_, err := s.call(t.Context(), newClient(t, w.URL), gateway.WithResponse(&response))
		require.NoError(t, err)
		assert.Equal(t, s.status, response.StatusCode)
		assert.Equal(t, "req-1", response.Header.Get("X-Request-Id"))
		assert.Equal(t, "o", response.Header.Get("X-Other"))
		assert.Equal(t, "Operation was successful.", response.Message)
		assert.Equal(t, `{"page": 1}`, string(response.Meta))
		assert.Equal(t, s.result, string(response.Result), "the result byte for byte")
		assert.Equal(t, 1, response.Attempts)
		assert.Positive(t, response.Duration)
		assertNoKey(t, response)
		assertNoKey(t, &response)
	})
}

// A large result is there as a whole, not only its first 8 KiB.
func TestWithResponse_largeResult(t *testing.T) {
	t.Parallel()
	result := "[" + strings.Repeat(pairJSON+",", 40) + pairJSON + "]"
	var response gateway.Response
	c := cannedClient(t, 200, enveloped(result))
	_, err := c.CoinNetworks(t.Context(), gateway.WithResponse(&response))
	require.NoError(t, err)
	assert.Equal(t, result, string(response.Result))
}

func TestWithResponse_refusal(t *testing.T) {
	t.Parallel()
	forEach(t, "the envelope of a refusal", func(t *testing.T, s subject) {
		w := serve(t, tagged(404, `{"message":"Not found","result":[],"meta":{"a":1}}`))
		var response gateway.Response
		got, err := s.call(t.Context(), newClient(t, w.URL), gateway.WithResponse(&response))
		assertInvariants(t, got, err)
		require.Error(t, err)
		assert.Equal(t, 404, response.StatusCode)
		assert.Equal(t, "req-1", response.Header.Get("X-Request-Id"))
		assert.Equal(t, "Not found", response.Message)
		assert.Equal(t, `{"a":1}`, string(response.Meta))
		assert.Equal(t, "[]", string(response.Result))
		assert.Equal(t, 1, response.Attempts)
		assert.Positive(t, response.Duration)
		assertNoKey(t, response)
	})
	forEach(t, "a refusal with success in its status", func(t *testing.T, s subject) {
		var response gateway.Response
		c := cannedClient(t, 200, refused("Not today"))
		_, err := s.call(t.Context(), c, gateway.WithResponse(&response))
		require.Error(t, err)
		assert.Equal(t, 200, response.StatusCode)
		assert.Equal(t, "Not today", response.Message)
		assert.Equal(t, "[]", string(response.Result))
	})
	forEach(t, "a page", func(t *testing.T, s subject) {
		var response gateway.Response
		c := cannedClient(t, 501, "<html>")
		_, err := s.call(t.Context(), c, gateway.WithResponse(&response))
		require.Error(t, err)
		assert.Equal(t, 501, response.StatusCode)
		assert.Equal(t, "application/json", response.Header.Get("Content-Type"))
		assert.Empty(t, response.Message)
		assert.Nil(t, response.Meta)
		assert.Nil(t, response.Result)
	})
}

// WithResponse returns the whole of a response that cannot be decoded.
func TestWithResponse_decodeError(t *testing.T) {
	t.Parallel()
	bad := "[" + strings.Repeat(pairJSON+",", 40) + written(pairFields, "confirmation", `"x"`) + "," + pairJSON + "]"
	var response gateway.Response
	c := cannedClient(t, 200, enveloped(bad))
	_, err := c.CoinNetworks(t.Context(), gateway.WithResponse(&response))
	var wrong *gateway.DecodeError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "/result/40/confirmation", wrong.Pointer)
	assert.Equal(t, 200, response.StatusCode)
	assert.Equal(t, 1, response.Attempts)
	assert.Equal(t, bad, string(response.Result), "the raw result is what the error is about")
}

func TestWithResponse_noResponse(t *testing.T) {
	t.Parallel()
	forEach(t, "there is no response", func(t *testing.T, s subject) {
		response := gateway.Response{StatusCode: 1, Message: "old", Attempts: 9}
		c := newClient(t, "https://gateway.example", once(), gateway.WithHTTPClient(&http.Client{Transport: broken{}}))
		got, err := s.call(t.Context(), c, gateway.WithResponse(&response))
		assertInvariants(t, got, err)
		require.Error(t, err)
		assert.Zero(t, response.StatusCode)
		assert.Empty(t, response.Message)
		assert.Nil(t, response.Header)
		assert.Equal(t, 1, response.Attempts)
	})
	forEach(t, "earlier contents are overwritten, although nothing is sent", func(t *testing.T, s subject) {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		response := gateway.Response{StatusCode: 200, Message: "old", Attempts: 9}
		_, err := s.call(ended, cannedClient(t, 200, s.body()), gateway.WithResponse(&response))
		require.Error(t, err)
		assert.Zero(t, response.StatusCode)
		assert.Empty(t, response.Message)
		assert.Zero(t, response.Attempts)
	})
	t.Run("earlier contents are overwritten, although an argument is refused", func(t *testing.T) {
		t.Parallel()
		response := gateway.Response{StatusCode: 200, Message: "old", Attempts: 9}
		_, err := cannedClient(t, 200, "").CoinNetwork(t.Context(), "", gateway.WithResponse(&response))
		require.ErrorIs(t, err, gateway.ErrInvalidArgument)
		assert.Equal(t, gateway.Response{}, response)
	})
}

// broken is a transport without a network behind it.
type broken struct{}

func (broken) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, io.ErrUnexpectedEOF
}

// The response is a copy: changing it changes nothing else.
func TestWithResponse_isACopy(t *testing.T) {
	t.Parallel()
	var response gateway.Response
	rates, err := cannedClient(t, 200, enveloped(ratesJSON)).ExchangeRates(t.Context(), gateway.WithResponse(&response))
	require.NoError(t, err)
	for i := range response.Result {
		response.Result[i] = 'x'
	}
	assert.Equal(t, ratesJSON, string(rates.Raw))
}

func TestWithHeader(t *testing.T) {
	t.Parallel()
	forEach(t, "headers of the caller's", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		_, err := s.call(t.Context(), newClient(t, w.URL),
			gateway.WithHeader("x-trace", "a"), gateway.WithHeader("X-Trace", "b"), gateway.WithHeader("Traceparent", "00-1"))
		require.NoError(t, err)
		got := only(t, w).Header
		assert.Equal(t, []string{"a", "b"}, got["X-Trace"])
		assert.Equal(t, "00-1", got.Get("Traceparent"))
	})
}

func TestWithUserAgent(t *testing.T) {
	t.Parallel()
	forEach(t, "the caller's name", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		_, err := s.call(t.Context(), newClient(t, w.URL, gateway.WithUserAgent("shop/1.0")))
		require.NoError(t, err)
		assert.Equal(t, []string{"shop/1.0"}, only(t, w).Header["User-Agent"])
	})
}

// I-28, I-101
func TestWithAPIKey(t *testing.T) {
	t.Parallel()
	const other = "OTHER-MERCHANT-KEY-77"
	forEach(t, "another merchant's key", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		c := newClient(t, w.URL)
		_, err := s.call(t.Context(), c, gateway.WithAPIKey(other))
		require.NoError(t, err)
		got := only(t, w)
		text := got.Body + got.Header.Get("X-Api-Key")
		assert.NotContains(t, text, canary)
		if s.op == "balance" || s.op == "withdrawal" || s.write {
			assert.Equal(t, 1, strings.Count(text, other))
			return
		}
		assert.Empty(t, text, "a public call carries no key")
	})
	t.Run("it is for one call", func(t *testing.T) {
		t.Parallel()
		w := serve(t, respond(200, enveloped(`"1"`)))
		c := newClient(t, w.URL)
		for _, opts := range [][]gateway.CallOption{{gateway.WithAPIKey(other)}, nil} {
			_, err := c.Balance(t.Context(), gateway.BalanceQuery{}, opts...)
			require.NoError(t, err)
		}
		got := w.Requests()
		require.Len(t, got, 2)
		assert.Equal(t, other, got[0].Header.Get("X-Api-Key"))
		assert.Equal(t, canary, got[1].Header.Get("X-Api-Key"))
	})
	t.Run("it is redacted in the response", func(t *testing.T) {
		t.Parallel()
		_, err := cannedClient(t, 400, refused("bad key "+other)).
			Balance(t.Context(), gateway.BalanceQuery{}, gateway.WithAPIKey(other))
		require.Error(t, err)
		assert.NotContains(t, err.Error(), other)
		assert.Contains(t, err.Error(), "[REDACTED]")
	})
}

// AllowResubmit is for CreateInvoice only; other calls refuse it.
func TestAllowResubmit(t *testing.T) {
	t.Parallel()
	forEach(t, "on every method", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		got, err := s.call(t.Context(), newClient(t, w.URL), gateway.AllowResubmit())
		assertInvariants(t, got, err)
		if s.write {
			require.NoError(t, err)
			return
		}
		assertRefused(t, err, s.op, "AllowResubmit", "is for CreateInvoice only")
		assert.Empty(t, w.Requests())
	})
}

// countingTransport counts requests and closings, and has no network.
type countingTransport struct {
	canned
	sent, closed atomic.Int64
}

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.sent.Add(1)
	return c.canned.RoundTrip(r)
}

func (c *countingTransport) CloseIdleConnections() { c.closed.Add(1) }

func TestWithHTTPClient(t *testing.T) {
	t.Parallel()
	forEach(t, "the caller's transport is used, and its client not changed", func(t *testing.T, s subject) {
		transport := &countingTransport{canned: canned{status: s.status, body: func() io.Reader { return strings.NewReader(s.body()) }}}
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		given := &http.Client{Transport: transport, Timeout: time.Minute, Jar: jar}
		before := *given
		c := newClient(t, "https://gateway.example", gateway.WithHTTPClient(given))
		_, err = s.call(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, int64(1), transport.sent.Load())
		assert.Zero(t, transport.closed.Load(), "the connections are the caller's")
		assert.Equal(t, before.Transport, given.Transport)
		assert.Equal(t, before.Timeout, given.Timeout)
		assert.Same(t, jar, given.Jar)
		assert.Nil(t, given.CheckRedirect)
	})
	t.Run("what the caller changes later changes nothing", func(t *testing.T) {
		t.Parallel()
		given := &http.Client{Transport: canned{status: 200, body: func() io.Reader { return strings.NewReader(enveloped(ratesJSON)) }}}
		c := newClient(t, "https://gateway.example", gateway.WithHTTPClient(given))
		given.Transport = broken{}
		_, err := c.ExchangeRates(t.Context())
		require.NoError(t, err)
	})
	t.Run("the caller's cookies are not sent, and none are stored", func(t *testing.T) {
		t.Parallel()
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
			http.SetCookie(rw, &http.Cookie{Name: "b", Value: "2", Path: "/"})
			respond(200, enveloped(ratesJSON))(rw, r)
		})
		base, err := url.Parse(w.URL)
		require.NoError(t, err)
		jar.SetCookies(base, []*http.Cookie{{Name: "a", Value: "1", Path: "/"}})
		_, err = newClient(t, w.URL, gateway.WithHTTPClient(&http.Client{Jar: jar})).ExchangeRates(t.Context())
		require.NoError(t, err)
		assert.NotContains(t, only(t, w).Header, "Cookie")
		assert.Len(t, jar.Cookies(base), 1)
	})
	t.Run("its CheckRedirect is not called", func(t *testing.T) {
		t.Parallel()
		w := serve(t, func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/elsewhere", http.StatusFound) })
		given := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			assert.Fail(t, "a redirect was about to be followed")
			return nil
		}}
		got, err := newClient(t, w.URL, gateway.WithHTTPClient(given)).ExchangeRates(t.Context())
		assertInvariants(t, got, err)
		assert.ErrorIs(t, err, gateway.ErrRedirect)
		assert.Len(t, w.Requests(), 1)
	})
}

// Each invoice has a connection of its own, and everything else shares one.
func TestInvoiceTransport(t *testing.T) {
	t.Parallel()
	server := faultserver.New(nil)
	onConnection := map[string][]int{}
	var mu sync.Mutex
	server.Handler = func(c *faultserver.Conn) {
		for {
			req, whole := c.ReadRequest()
			if !whole {
				return
			}
			mu.Lock()
			onConnection[req.Method] = append(onConnection[req.Method], c.Number)
			mu.Unlock()
			body := withdrawalJSON
			if req.Method == http.MethodPost {
				body = invoiceJSON
			}
			c.Send(faultserver.Response(201, enveloped(body)))
		}
	}
	transport := gateway.InvoiceTransport(&http.Transport{DialContext: server.DialContext})
	client := newClient(t, "http://127.0.0.1", gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithOrderGuard(nil))
	for range 3 {
		_, err := client.Withdrawal(t.Context(), requestID)
		require.NoError(t, err)
		_, err = client.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err)
	}
	(&http.Client{Transport: transport}).CloseIdleConnections()
	server.Close()
	assert.Equal(t, map[string][]int{http.MethodGet: {1, 1, 1}, http.MethodPost: {2, 3, 4}}, onConnection)
}

// Both transports of it have the settings of the Client's own.
func TestInvoiceTransport_withoutATransport(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(201, enveloped(invoiceJSON)))
	transport := gateway.InvoiceTransport(nil)
	client := newClient(t, w.URL, gateway.WithHTTPClient(&http.Client{Transport: transport}))
	_, err := client.CreateInvoice(t.Context(), order("A-17"))
	require.NoError(t, err)
	_, _ = client.Withdrawal(t.Context(), requestID)
	assert.Len(t, w.Requests(), 2)
	(&http.Client{Transport: transport}).CloseIdleConnections()
}

// If an option is repeated, the last one wins.
func TestOptions_lastWins(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, enveloped(ratesJSON)))
	c := newClient(t, w.URL, gateway.WithUserAgent("a"), gateway.WithUserAgent("b"))
	_, err := c.ExchangeRates(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "b", only(t, w).Header.Get("User-Agent"))
}

// A list of options is the caller's: it can be used again.
func TestOptions_reused(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, enveloped(ratesJSON)))
	opts := []gateway.CallOption{gateway.WithHeader("X-Trace", "a")}
	c := newClient(t, w.URL)
	for range 2 {
		_, err := c.ExchangeRates(t.Context(), opts...)
		require.NoError(t, err)
	}
	for _, got := range w.Requests() {
		assert.Equal(t, []string{"a"}, got.Header["X-Trace"])
	}
}

func TestWithOrderGuard_none(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(500, refused("oops")))
	c := newClient(t, w.URL, gateway.WithOrderGuard(nil))
	for range 2 {
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	}
	assert.Len(t, w.Requests(), 2)
}

// clientWithKeySource makes a client whose key comes from source.
func clientWithKeySource(t *testing.T, url string, source func(context.Context) (string, error), opts ...gateway.Option) *gateway.Client {
	t.Helper()
	c, err := gateway.New(url, "", append(opts, gateway.WithAPIKeySource(source))...)
	require.NoError(t, err)
	return c
}

// Each call has the key that the source returns at that time. The source is called once
// per call, however many attempts it makes.
// I-28
func TestWithAPIKeySource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var sent []string
		c := clientWithKeySource(t, "http://localhost", func(ctx context.Context) (string, error) {
			calls++
			assert.Equal(t, "shop-1", ctx.Value(tenantKey{}), "the source has the context of the call")
			op, _ := gateway.OperationFromContext(ctx)
			assert.Equal(t, "withdrawal", op)
			return fmt.Sprintf("key-number-%d", calls), nil
		}, through(func(req *http.Request) (*http.Response, error) {
			sent = append(sent, req.Header.Get("x-api-key"))
			if len(sent) == 1 {
				return reply(500, refused("No.")), nil
			}
			return reply(201, enveloped(withdrawalJSON)), nil
		}))
		ctx := context.WithValue(t.Context(), tenantKey{}, "shop-1")
		for range 2 {
			_, err := c.Withdrawal(ctx, requestID)
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"key-number-1", "key-number-1", "key-number-2"}, sent)
	})
}

// The source is called where the interface requires a key, and nowhere else.
func TestWithAPIKeySource_WhereAKeyIsSent(t *testing.T) {
	t.Parallel()
	forEach(t, "the source is called if a key is sent", func(t *testing.T, s subject) {
		for _, everywhere := range []bool{false, true} {
			calls := 0
			w := serve(t, respond(s.status, s.body()))
			opts := []gateway.Option{}
			if everywhere {
				opts = append(opts, gateway.WithAPIKeyOnPublicCalls())
			}
			c := clientWithKeySource(t, w.URL, func(context.Context) (string, error) { calls++; return canary, nil }, opts...)
			result, err := s.call(t.Context(), c)
			require.NoError(t, err)
			assertInvariants(t, result, err)
			assertNoKey(t, c)
			want := 0
			if s.keyed || everywhere {
				want = 1
			}
			assert.Equal(t, want, calls)
			got := w.Requests()[0]
			assert.Equal(t, want, strings.Count(got.Body+got.Header.Get("x-api-key"), canary))
		}
	})
}

func TestWithAPIKeySource_Fails(t *testing.T) {
	t.Parallel()
	unavailable := errors.New("the store is unavailable")
	forEach(t, "its error is the error of the call", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		c := clientWithKeySource(t, w.URL, func(context.Context) (string, error) { return canary, fmt.Errorf("%s: %w", canary, unavailable) }, gateway.WithAPIKeyOnPublicCalls())
		result, err := s.call(t.Context(), c)
		assertInvariants(t, result, err)
		assert.ErrorIs(t, err, unavailable)
		assert.Contains(t, err.Error(), "the source of the API key: [REDACTED]: the store is unavailable")
		var failure *gateway.TransportError
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, gateway.PhaseStart, failure.Phase)
		assert.Zero(t, failure.Attempts)
		assert.Empty(t, w.Requests())
		if s.write {
			assert.ErrorIs(t, err, gateway.ErrNotSent)
			assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
		}
	})
}

func TestWithAPIKeySource_BadKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, key string
		want      string
		missing   bool
	}{
		{"no key", "", "gateway: create_invoice: apiKey: is required for this call: give it to New, WithAPIKeySource or WithAPIKey", true},
		{"a line end, as at the end of a file", canary + "\n", "gateway: create_invoice: WithAPIKeySource: the key must be printable ASCII: no line end, tab or other control character", false},
		{"too long", strings.Repeat("k", 4097), "gateway: create_invoice: WithAPIKeySource: the key is longer than 4,096 bytes", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(200, enveloped(invoiceJSON)))
			c := clientWithKeySource(t, w.URL, func(context.Context) (string, error) { return tt.key, nil })
			result, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, result, err)
			require.EqualError(t, err, tt.want)
			assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
			assert.Equal(t, tt.missing, errors.Is(err, gateway.ErrMissingAPIKey))
			assert.Empty(t, w.Requests())
		})
	}
}

// A key of the call takes precedence over the source, and a bad argument or an ended
// context is reported before the source is called.
func TestWithAPIKeySource_NotCalled(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	w := serve(t, respond(201, enveloped(withdrawalJSON)))
	c := clientWithKeySource(t, w.URL, func(context.Context) (string, error) { calls.Add(1); return canary, nil })

	_, err := c.Withdrawal(t.Context(), requestID, gateway.WithAPIKey("another-key"))
	require.NoError(t, err)
	assert.Equal(t, "another-key", w.Requests()[0].Header.Get("x-api-key"))
	_, err = c.Withdrawal(t.Context(), "..")
	require.ErrorIs(t, err, gateway.ErrInvalidArgument)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Withdrawal(ended, requestID)
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, calls.Load())
}

// A source that respects its context ends with that of the call.
func TestWithAPIKeySource_Slow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clientWithKeySource(t, "http://localhost", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		result, err := c.CreateInvoice(ctx, order("A-17"))
		assertInvariants(t, result, err)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, gateway.ErrTimeout)
		assert.ErrorIs(t, err, gateway.ErrNotSent)
	})
}

// A key of the source is redacted like any other.
func TestWithAPIKeySource_Echo(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(400, refused("bad key "+canary)))
	c := clientWithKeySource(t, w.URL, func(context.Context) (string, error) { return canary, nil })
	result, err := c.Withdrawal(t.Context(), requestID)
	assertInvariants(t, result, err)
	assert.EqualError(t, err, `gateway: withdrawal: 400: "bad key [REDACTED]"`)
}

// The same order with a key that has changed is the same order.
func TestWithAPIKeySource_Guard(t *testing.T) {
	t.Parallel()
	calls := 0
	c := clientWithKeySource(t, "http://localhost", func(context.Context) (string, error) {
		calls++
		return fmt.Sprintf("key-number-%d", calls), nil
	}, through(func(*http.Request) (*http.Response, error) { return reply(500, refused("No.")), nil }))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	_, err = c.CreateInvoice(t.Context(), order("A-17"))
	require.ErrorIs(t, err, gateway.ErrOrderOutcomeUnknown)
}

func sameKey(context.Context) (string, error) { return canary, nil }

// setenv sets the variables of FromEnv, and no others of them.
func setenv(t *testing.T, baseURL, key, file string) {
	t.Helper()
	t.Setenv("GATEWAY_BASE_URL", baseURL)
	t.Setenv("GATEWAY_API_KEY", key)
	t.Setenv("GATEWAY_API_KEY_FILE", file)
}

func keyFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestFromEnv(t *testing.T) {
	for _, tt := range []struct{ name, key, file string }{
		{"the key in a variable", canary, ""},
		{"the key in a file", "", canary},
		{"a file that ends in a line end", "", canary + "\n"},
		{"a file from Windows", "", canary + "\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(t, respond(201, enveloped(withdrawalJSON)))
			file := ""
			if tt.file != "" {
				file = keyFile(t, tt.file)
			}
			setenv(t, w.URL, tt.key, file)
			c, err := gateway.FromEnv(once())
			require.NoError(t, err)
			assertNoKey(t, c)
			_, err = c.Withdrawal(t.Context(), requestID)
			require.NoError(t, err)
			assert.Equal(t, canary, w.Requests()[0].Header.Get("x-api-key"))
		})
	}
}

// Without a key there are the public calls.
func TestFromEnv_WithoutAKey(t *testing.T) {
	w := serve(t, respond(200, enveloped(ratesJSON)))
	setenv(t, w.URL, "", "")
	c, err := gateway.FromEnv()
	require.NoError(t, err)
	_, err = c.ExchangeRates(t.Context())
	require.NoError(t, err)
	_, err = c.Withdrawal(t.Context(), requestID)
	assert.ErrorIs(t, err, gateway.ErrMissingAPIKey)
}

func TestFromEnv_refuses(t *testing.T) {
	const url = "https://gateway.example"
	for _, tt := range []struct{ name, url, key, file, want string }{
		{"no base URL", "", canary, "", "gateway: new: GATEWAY_BASE_URL: is required"},
		{"a bad base URL", "ftp://gateway.example", canary, "", "gateway: new: GATEWAY_BASE_URL: must begin with https://"},
		{"a bad key", url, " " + canary, "", "gateway: new: GATEWAY_API_KEY: must not begin or end with a space"},
		{"both ways of a key", url, canary, "/etc/key", "gateway: new: GATEWAY_API_KEY_FILE: must not be set together with GATEWAY_API_KEY"},
		{"a file that is not there", url, "", filepath.Join(t.TempDir(), canary), "gateway: new: GATEWAY_API_KEY_FILE: the file cannot be read: no such file or directory"},
		{"a directory", url, "", t.TempDir(), "gateway: new: GATEWAY_API_KEY_FILE: the file cannot be read: is a directory"},
		{"an empty file", url, "", keyFile(t, ""), "gateway: new: GATEWAY_API_KEY_FILE: the key in the file is required"},
		{"a file of a line end", url, "", keyFile(t, "\n"), "gateway: new: GATEWAY_API_KEY_FILE: the key in the file is required"},
		{"a file of two lines", url, "", keyFile(t, canary+"\n"+canary+"\n"), "gateway: new: GATEWAY_API_KEY_FILE: the key in the file must be printable ASCII: no line end, tab or other control character"},
		{"a file that never ends", url, "", "/dev/zero", "gateway: new: GATEWAY_API_KEY_FILE: the key in the file is longer than 4,096 bytes"},
		{"a large file", url, "", keyFile(t, strings.Repeat("k", 1<<20)), "gateway: new: GATEWAY_API_KEY_FILE: the key in the file is longer than 4,096 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setenv(t, tt.url, tt.key, tt.file)
			c, err := gateway.FromEnv()
			assert.Nil(t, c)
			require.EqualError(t, err, tt.want)
			assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
			assertNoKey(t, err)
		})
	}
}

// The longest key there is may stand in a file from Windows.
func TestFromEnv_theLongestKey(t *testing.T) {
	setenv(t, "https://gateway.example", "", keyFile(t, strings.Repeat("k", 4096)+"\r\n"))
	_, err := gateway.FromEnv()
	assert.NoError(t, err)
}

// A key's source and a key's variable are two sources.
func TestFromEnv_options(t *testing.T) {
	setenv(t, "https://gateway.example", canary, "")
	_, err := gateway.FromEnv(gateway.WithAPIKeySource(nil))
	assert.EqualError(t, err, "gateway: new: WithAPIKeySource: must not be nil")
	_, err = gateway.FromEnv(gateway.WithAPIKeySource(sameKey))
	assert.EqualError(t, err, "gateway: new: GATEWAY_API_KEY: must be empty with WithAPIKeySource")
	setenv(t, "https://gateway.example", "", keyFile(t, canary))
	_, err = gateway.FromEnv(gateway.WithAPIKeySource(sameKey))
	assert.EqualError(t, err, "gateway: new: GATEWAY_API_KEY_FILE: must be empty with WithAPIKeySource")
}

func TestFromEnv_plainHTTP(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "0": false, "": false, "true": false} {
		setenv(t, "http://gateway.example", canary, "")
		t.Setenv("GATEWAY_PLAIN_HTTP", value)
		_, err := gateway.FromEnv()
		assert.Equal(t, want, err == nil, "%q", value)
		if value == "true" {
			assert.ErrorContains(t, err, "GATEWAY_PLAIN_HTTP")
		}
	}
}
