package gateway_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

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

// Middlewares wrap the connections of the client: each invoice has one of its own. The last middleware is
// outermost.
func TestWithMiddleware(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]gateway.Option{
		"the client's own transport": nil,
		"a caller's":                 {gateway.WithHTTPClient(&http.Client{Transport: &http.Transport{}})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			onConnection := map[string][]string{} // the addresses of the client, by method
			w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
				assert.Equal(t, []string{"outer", "inner"}, r.Header["X-Wrapped"])
				mu.Lock()
				onConnection[r.Method] = append(onConnection[r.Method], r.RemoteAddr)
				mu.Unlock()
				body := withdrawalJSON
				if r.Method == http.MethodPost {
					body = invoiceJSON
				}
				respond(201, enveloped(body))(rw, r)
			})
			wrapped := func(name string) gateway.Option {
				return gateway.WithMiddleware(func(next http.RoundTripper) http.RoundTripper {
					return tripper(func(req *http.Request) (*http.Response, error) {
						req.Header.Add("X-Wrapped", name)
						return next.RoundTrip(req)
					})
				})
			}
			client := newClient(t, w.URL, append([]gateway.Option{wrapped("inner"), wrapped("outer"), gateway.WithOrderGuard(nil)}, opts...)...)
			for range 3 {
				_, err := client.Withdrawal(t.Context(), requestID)
				require.NoError(t, err)
				_, err = client.CreateInvoice(t.Context(), order("A-17"))
				require.NoError(t, err)
			}
			client.CloseIdleConnections()
			mu.Lock()
			defer mu.Unlock()
			reads, invoices := slices.Compact(onConnection[http.MethodGet]), onConnection[http.MethodPost]
			all := slices.Sorted(slices.Values(append(slices.Clone(reads), invoices...)))
			assert.Len(t, invoices, 3)
			assert.Equal(t, all, slices.Compact(slices.Clone(all)), "no connection has an invoice and anything else")
		})
	}
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

func TestWithDefaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		opts     []gateway.CallOption
		header   http.Header
		merchant string
	}{
		{"a call without options", nil, http.Header{"X-Mesh": {"0"}, "X-Trace": {"a", "b"}}, "shop-1"},
		{
			"a header of the call replaces the default",
			[]gateway.CallOption{gateway.WithHeader("x-trace", "c")},
			http.Header{"X-Mesh": {"0"}, "X-Trace": {"c"}},
			"shop-1",
		},
		{"a merchant of the call", []gateway.CallOption{gateway.WithMerchant("shop-2")}, http.Header{"X-Mesh": {"0"}, "X-Trace": {"a", "b"}}, "shop-2"},
		{
			"a key of the call is no key of the default merchant",
			[]gateway.CallOption{gateway.WithAPIKey("another-key")},
			http.Header{"X-Mesh": {"0"}, "X-Trace": {"a", "b"}},
			"",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(201, enveloped(withdrawalJSON)))
			var merchants []string
			c := newClient(t, w.URL, gateway.WithDefaults(gateway.WithMerchant("shop-1"), gateway.WithHeader("X-Mesh", "0"),
				gateway.WithHeader("X-Trace", "a"), gateway.WithHeader("X-Trace", "b")),
				gateway.WithObserver(gateway.Observer{End: func(_ context.Context, c gateway.Call) { merchants = append(merchants, c.Merchant) }}))
			for range 2 {
				_, err := c.Withdrawal(t.Context(), requestID, tt.opts...)
				require.NoError(t, err)
			}
			for i, got := range w.Requests() {
				assert.Equal(t, tt.header, http.Header{"X-Mesh": got.Header["X-Mesh"], "X-Trace": got.Header["X-Trace"]})
				assert.Equal(t, tt.merchant, merchants[i])
			}
		})
	}
}

// The order of an invoice is of the default merchant, unless the call has a key of its own, which does not say whose
// order it is.
func TestWithDefaults_merchantOfAnOrder(t *testing.T) {
	t.Parallel()
	var guard gateway.MemoryGuard
	w := serve(t, respond(200, enveloped(invoiceJSON)))
	c := newClient(t, w.URL, gateway.WithOrderGuard(&guard), gateway.WithDefaults(gateway.WithMerchant("shop-1")))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	require.NoError(t, err)
	status, _ := guard.Order(t.Context(), "shop-1", "A-17")
	assert.Equal(t, gateway.OrderCreated, status.State)
	_, err = c.CreateInvoice(t.Context(), order("A-18"), gateway.WithAPIKey("another-key"))
	assertRefused(t, err, "create_invoice", "WithMerchant", "is required with WithAPIKey")
}

func TestWithOrderGuard_none(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(500, refused("oops")))
	c := newClient(t, w.URL, gateway.WithOrderGuard(nil))
	for range 2 {
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
	}
	assert.Len(t, w.Requests(), 2)
}

// badOptions are options that New does not accept.
func badOptions() []struct {
	name             string
	opt              gateway.Option
	argument, reason string
} {
	return []struct {
		name             string
		opt              gateway.Option
		argument, reason string
	}{
		{"a nil option", nil, "opts", "holds a nil option"},
		{"a nil http.Client", gateway.WithHTTPClient(nil), "WithHTTPClient", "must not be nil"},
		{"MaxAttempts -1", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: -1}), "WithRetry", "MaxAttempts must be from 1 to 10"},
		{"MaxAttempts 11", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 11}), "WithRetry", "MaxAttempts must be from 1 to 10"},
		{"MaxAttempts 1,000,000", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1_000_000}), "WithRetry", "MaxAttempts must be from 1 to 10"},
		{"a negative attempt timeout", gateway.WithRetry(gateway.RetryPolicy{AttemptTimeout: -1}), "WithRetry", "must not be negative"},
		{"a negative invoice timeout", gateway.WithRetry(gateway.RetryPolicy{InvoiceTimeout: -1}), "WithRetry", "must not be negative"},
		{"a negative base delay", gateway.WithRetry(gateway.RetryPolicy{BaseDelay: -1}), "WithRetry", "must not be negative"},
		{"a negative greatest delay", gateway.WithRetry(gateway.RetryPolicy{MaxDelay: -1}), "WithRetry", "must not be negative"},
		{"a negative Retry-After", gateway.WithRetry(gateway.RetryPolicy{MaxRetryAfter: -1}), "WithRetry", "must not be negative"},
		{"the least delay above the greatest", gateway.WithRetry(gateway.RetryPolicy{BaseDelay: 2, MaxDelay: 1}), "WithRetry", "BaseDelay must not be longer than MaxDelay"},
		{"no middleware", gateway.WithMiddleware(nil), "WithMiddleware", "must not be nil"},
		{"a middleware that returns nothing", gateway.WithMiddleware(func(http.RoundTripper) http.RoundTripper { return nil }), "WithMiddleware", "must not return nil"},
		{"an http.Client with a negative timeout", gateway.WithHTTPClient(&http.Client{Timeout: -1}), "WithHTTPClient", "must not be negative"},
		{"a user agent with a line end", gateway.WithUserAgent("a\r\nX-Api-Key: b"), "WithUserAgent", "printable ASCII"},
		{"an empty user agent", gateway.WithUserAgent(""), "WithUserAgent", "printable ASCII"},
		{"a user agent beyond ASCII", gateway.WithUserAgent("é"), "WithUserAgent", "printable ASCII"},
		{"a long user agent", gateway.WithUserAgent(strings.Repeat("a", 257)), "WithUserAgent", "1 to 256"},
		{"an invoice format that there is not", gateway.WithInvoiceFormat(7), "WithInvoiceFormat", "must be"},
		{"a negative invoice format", gateway.WithInvoiceFormat(-1), "WithInvoiceFormat", "must be"},
		{"no source of a key", gateway.WithAPIKeySource(nil), "WithAPIKeySource", "must not be nil"},
		{"a key and a source of one", gateway.WithAPIKeySource(sameKey), "apiKey", "must be empty with WithAPIKeySource"},
		{"defaults with a nil option", gateway.WithDefaults(nil), "opts", "holds a nil option"},
		{"defaults with a bad header", gateway.WithDefaults(gateway.WithHeader("Host", "a")), "WithHeader", "is set by the client"},
		{"defaults with a response", gateway.WithDefaults(gateway.WithResponse(new(gateway.Response))), "WithDefaults", "neither WithResponse nor WithAPIKey"},
		{"defaults with a key", gateway.WithDefaults(gateway.WithAPIKey(canary)), "WithDefaults", "neither WithResponse nor WithAPIKey"},
		{"no logger", gateway.WithLogger(nil), "WithLogger", "must not be nil"},
		{"no function for rates", gateway.WithRatesDecoder(nil), "WithRatesDecoder", "must not be nil"},
		{"no function for a balance", gateway.WithBalanceDecoder(nil), "WithBalanceDecoder", "must not be nil"},
		{"no function for an invoice", gateway.WithInvoiceDecoder(nil), "WithInvoiceDecoder", "must not be nil"},
		{"an empty message", gateway.WithSuccessMessage(""), "WithSuccessMessage", "1 to 1,024"},
		{"a long message", gateway.WithSuccessMessage(strings.Repeat("a", 1025)), "WithSuccessMessage", "1 to 1,024"},
	}
}

func TestNew_options(t *testing.T) {
	t.Parallel()
	for _, tt := range badOptions() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New("https://gateway.example", canary, gateway.WithPlainHTTP(), tt.opt)
			assert.Nil(t, c)
			assertRefused(t, err, "new", tt.argument, tt.reason)
		})
	}
}

func TestNew_optionsAccepted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		opt  gateway.Option
	}{
		{"an empty policy is the default one", gateway.WithRetry(gateway.RetryPolicy{})},
		{"MaxAttempts 1", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1})},
		{"MaxAttempts 10", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 10})},
		{"a zero field takes its default", gateway.WithRetry(gateway.RetryPolicy{AttemptTimeout: time.Second})},
		{"the default of the greatest delay gives way to the least", gateway.WithRetry(gateway.RetryPolicy{BaseDelay: time.Hour})},
		{"the default of the least delay gives way to the greatest", gateway.WithRetry(gateway.RetryPolicy{MaxDelay: 1})},
		{"equal delays", gateway.WithRetry(gateway.RetryPolicy{BaseDelay: time.Second, MaxDelay: time.Second})},
		{"256 characters of user agent", gateway.WithUserAgent(strings.Repeat("a", 256))},
		{"an http.Client of zero fields", gateway.WithHTTPClient(&http.Client{})},
		{"no order guard", gateway.WithOrderGuard(nil)},
		{"1,024 bytes of a message", gateway.WithSuccessMessage(strings.Repeat("a", 1024))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New("https://gateway.example", canary, tt.opt)
			require.NoError(t, err)
			assert.NotNil(t, c)
		})
	}
}

// badCallOptions are options that no call accepts.
func badCallOptions() []struct {
	name             string
	opt              gateway.CallOption
	argument, reason string
} {
	type row = struct {
		name             string
		opt              gateway.CallOption
		argument, reason string
	}
	rows := []row{
		{"a nil option", nil, "opts", "holds a nil option"},
		{"no header name", gateway.WithHeader("", "v"), "WithHeader", "not a header name"},
		{"a header name with a line end", gateway.WithHeader("X\r\nY", "v"), "WithHeader", "not a header name"},
		{"a value with a line end", gateway.WithHeader("X-Y", "v\r\nX-Api-Key: z"), "WithHeader", "printable ASCII"},
		{"a long value", gateway.WithHeader("X-Y", strings.Repeat("v", 1025)), "WithHeader", "1,024"},
		{"a nil response", gateway.WithResponse(nil), "WithResponse", "must not be nil"},
		{"an empty key for the call", gateway.WithAPIKey(""), "WithAPIKey", "is required"},
	}
	for _, name := range []string{
		"X-Api-Key", "x-api-key", "X-API-KEY", "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection",
		"Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE", "Trailer", "Upgrade", "Expect", "Range",
		"Accept", "Accept-Encoding", "User-Agent", "Idempotency-Key", "X-Idempotency-Key", "idempotency-key",
	} {
		rows = append(rows, row{"the header " + name, gateway.WithHeader(name, "v"), "WithHeader", "is set by the client"})
	}
	for _, bad := range badKeys {
		rows = append(rows, row{bad.name + ", for the call", gateway.WithAPIKey(bad.key), "WithAPIKey", bad.reason})
	}
	return rows
}

func TestCallOptions_refused(t *testing.T) {
	t.Parallel()
	for _, tt := range badCallOptions() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(200, ""))
			c := newClient(t, w.URL)
			for _, s := range subjects() {
				got, err := s.call(t.Context(), c, tt.opt)
				assertRefused(t, err, s.op, tt.argument, tt.reason)
				assertInvariants(t, got, err)
			}
			assert.Empty(t, w.Requests())
		})
	}
}
