package gateway_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// tagged answers with headers of its own.
func tagged(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "req-1")
		w.Header().Set("X-Other", "o")
		answer(status, body)(w, r)
	}
}

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
	forEach(t, "what a refusal says", func(t *testing.T, s subject) {
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

// An answer that is not understood is kept whole for whoever asked for it.
func TestWithResponse_notUnderstood(t *testing.T) {
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

func TestWithResponse_noAnswer(t *testing.T) {
	t.Parallel()
	forEach(t, "nothing came", func(t *testing.T, s subject) {
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
	forEach(t, "what it held before is overwritten, though nothing was sent", func(t *testing.T, s subject) {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		response := gateway.Response{StatusCode: 200, Message: "old", Attempts: 9}
		_, err := s.call(ended, cannedClient(t, 200, s.body()), gateway.WithResponse(&response))
		require.Error(t, err)
		assert.Zero(t, response.StatusCode)
		assert.Empty(t, response.Message)
		assert.Zero(t, response.Attempts)
	})
	t.Run("what it held before is overwritten, though an argument is refused", func(t *testing.T) {
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

// What is handed out is the caller's own: changing it changes nothing else.
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
		w := serve(t, answer(s.status, s.body()))
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
		w := serve(t, answer(s.status, s.body()))
		_, err := s.call(t.Context(), newClient(t, w.URL, gateway.WithUserAgent("shop/1.0")))
		require.NoError(t, err)
		assert.Equal(t, []string{"shop/1.0"}, only(t, w).Header["User-Agent"])
	})
}

func TestWithAPIKey(t *testing.T) {
	t.Parallel()
	const other = "OTHER-MERCHANT-KEY-77"
	forEach(t, "another merchant's key", func(t *testing.T, s subject) {
		w := serve(t, answer(s.status, s.body()))
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
		w := serve(t, answer(200, enveloped(`"1"`)))
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
	t.Run("it is what is looked for in the answer", func(t *testing.T) {
		t.Parallel()
		_, err := cannedClient(t, 400, refused("bad key "+other)).
			Balance(t.Context(), gateway.BalanceQuery{}, gateway.WithAPIKey(other))
		require.Error(t, err)
		assert.NotContains(t, err.Error(), other)
		assert.Contains(t, err.Error(), "[REDACTED]")
	})
}

// AllowResubmit means something for CreateInvoice only; elsewhere it is a
// mistake, and says so.
func TestAllowResubmit(t *testing.T) {
	t.Parallel()
	forEach(t, "on every method", func(t *testing.T, s subject) {
		w := serve(t, answer(s.status, s.body()))
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

// countingTransport counts requests and closings, and knows no network.
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
	t.Run("the caller's cookies are not sent, and none are kept", func(t *testing.T) {
		t.Parallel()
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
			http.SetCookie(rw, &http.Cookie{Name: "b", Value: "2", Path: "/"})
			answer(200, enveloped(ratesJSON))(rw, r)
		})
		base, err := url.Parse(w.URL)
		require.NoError(t, err)
		jar.SetCookies(base, []*http.Cookie{{Name: "a", Value: "1", Path: "/"}})
		_, err = newClient(t, w.URL, gateway.WithHTTPClient(&http.Client{Jar: jar})).ExchangeRates(t.Context())
		require.NoError(t, err)
		assert.NotContains(t, only(t, w).Header, "Cookie")
		assert.Len(t, jar.Cookies(base), 1)
	})
	t.Run("its CheckRedirect is not asked", func(t *testing.T) {
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

// The last of several options for the same thing counts.
func TestOptions_lastCounts(t *testing.T) {
	t.Parallel()
	w := serve(t, answer(200, enveloped(ratesJSON)))
	c := newClient(t, w.URL, gateway.WithUserAgent("a"), gateway.WithUserAgent("b"))
	_, err := c.ExchangeRates(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "b", only(t, w).Header.Get("User-Agent"))
}

// A list of options is the caller's: it can be used again.
func TestOptions_reused(t *testing.T) {
	t.Parallel()
	w := serve(t, answer(200, enveloped(ratesJSON)))
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
	w := serve(t, answer(500, refused("oops")))
	c := newClient(t, w.URL, gateway.WithOrderGuard(nil))
	for range 2 {
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	}
	assert.Len(t, w.Requests(), 2)
}
