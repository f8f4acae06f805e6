package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/invariant"
)

// The last of an option wins, headers add, and the caller's list of options can be used again.
func TestOptions_headers(t *testing.T) {
	t.Parallel()
	forEach(t, "the caller's names and headers", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		c := newClient(t, w.URL, gateway.WithUserAgent("a"), gateway.WithUserAgent("shop/1.0"), gateway.WithOrderGuard(nil))
		opts := []gateway.CallOption{gateway.WithHeader("x-trace", "a"), gateway.WithHeader("X-Trace", "b"), gateway.WithHeader("Traceparent", "00-1")}
		for range 2 {
			_, err := s.call(t.Context(), c, opts...)
			require.NoError(t, err)
		}
		require.Len(t, w.Requests(), 2, "no guard has the invoice")
		for _, got := range w.Requests() {
			assert.Equal(t, []string{"shop/1.0"}, got.Header["User-Agent"])
			assert.Equal(t, []string{"a", "b"}, got.Header["X-Trace"])
			assert.Equal(t, "00-1", got.Header.Get("Traceparent"))
		}
	})
}

// The caller's transport is used, and nothing else of its client, which is not changed; what the caller changes later
// changes nothing.
func TestWithHTTPClient(t *testing.T) {
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
	sent := 0
	given := &http.Client{Timeout: time.Minute, Jar: jar, Transport: tripper(func(req *http.Request) (*http.Response, error) {
		sent++
		return http.DefaultTransport.RoundTrip(req)
	})}
	c := newClient(t, w.URL, gateway.WithHTTPClient(given))
	assert.Equal(t, time.Minute, given.Timeout)
	assert.Same(t, jar, given.Jar)
	assert.Nil(t, given.CheckRedirect)
	given.Transport = errorTrip(errors.New("it is not used"))
	_, err = c.ExchangeRates(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, sent)
	assert.NotContains(t, only(t, w).Header, "Cookie")
	assert.Len(t, jar.Cookies(base), 1, "none are stored")
}

// Middlewares wrap the connections of the client: each invoice has one of its own. The last middleware is
// outermost.
func TestWithMiddleware(t *testing.T) {
	t.Parallel()
	wrapped := func(name string) gateway.Option {
		return gateway.WithMiddleware(func(next http.RoundTripper) http.RoundTripper {
			return tripper(func(req *http.Request) (*http.Response, error) {
				req.Header.Add("X-Wrapped", name)
				return next.RoundTrip(req)
			})
		})
	}
	for name, given := range map[string]*http.Client{
		"an http.Client without a transport": {},
		"a nil http.Transport":               {Transport: (*http.Transport)(nil)},
		"a caller's":                         {Transport: &http.Transport{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			methods := map[string][]string{} // by the address of the client
			w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
				assert.Equal(t, []string{"outer", "inner"}, r.Header["X-Wrapped"])
				mu.Lock()
				defer mu.Unlock()
				methods[r.RemoteAddr] = append(methods[r.RemoteAddr], r.Method)
				respond(201, enveloped(withdrawalJSON))(rw, r)
			})
			client := newClient(t, w.URL, gateway.WithHTTPClient(given), wrapped("inner"), wrapped("outer"), gateway.WithOrderGuard(nil))
			for range 3 {
				require.NoError(t, withdrawal(t.Context(), client))
				_, err := client.CreateInvoice(t.Context(), order("A-17"))
				require.NoError(t, err)
			}
			client.CloseIdleConnections()
			mu.Lock()
			defer mu.Unlock()
			for _, onOne := range methods {
				assert.True(t, len(onOne) == 1 || !slices.Contains(onOne, "POST"), "a connection has an invoice and anything else: %v", onOne)
			}
		})
	}
}

func TestWithDefaults(t *testing.T) {
	t.Parallel()
	mesh, traces := []string{"0"}, []string{"a", "b"}
	for _, tt := range []struct {
		name     string
		opts     []gateway.CallOption
		traces   []string // of the header
		merchant string
	}{
		{"a call without options", nil, traces, "shop-1"},
		{"a header of the call replaces the default", []gateway.CallOption{gateway.WithHeader("x-trace", "c")}, []string{"c"}, "shop-1"},
		{"a merchant of the call", []gateway.CallOption{gateway.WithMerchant("shop-2")}, traces, "shop-2"},
		{"a key of the call is no key of the default merchant", []gateway.CallOption{gateway.WithAPIKey("another-key")}, traces, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(201, enveloped(withdrawalJSON)))
			var guard gateway.MemoryGuard
			var ends []gateway.Call
			c := newClient(t, w.URL, recordEnds(&ends), gateway.WithOrderGuard(&guard), gateway.WithDefaults(
				gateway.WithMerchant("shop-1"), gateway.WithHeader("X-Mesh", "0"), gateway.WithHeader("X-Trace", "a"), gateway.WithHeader("X-Trace", "b")))
			for range 2 {
				_, err := c.Withdrawal(t.Context(), requestID, tt.opts...)
				require.NoError(t, err)
			}
			for i, got := range w.Requests() {
				assert.Equal(t, mesh, got.Header["X-Mesh"])
				assert.Equal(t, tt.traces, got.Header["X-Trace"])
				assert.Equal(t, tt.merchant, ends[i].Merchant)
			}
			_, err := c.CreateInvoice(t.Context(), order("A-17"), tt.opts...)
			if tt.merchant == "" {
				assertRefused(t, err, "create_invoice", "WithMerchant", "is required with WithAPIKey")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, gateway.OrderCreated, statusOf(t, &guard, tt.merchant, "A-17").State)
		})
	}
}

// Options that New does not accept are refused by name, and their limits are accepted.
func TestNew_options(t *testing.T) {
	t.Parallel()
	retry := func(p gateway.RetryPolicy) gateway.Option { return gateway.WithRetry(p) }
	noTransport := func(http.RoundTripper) http.RoundTripper { return nil }
	const unitless = " looks like a number without a unit: write 30 * time.Second"
	const attempts, negative, agent, both = "MaxAttempts must be from 1 to 10", "must not be negative", "1 to 256 printable ASCII", "neither WithResponse nor WithAPIKey"
	for _, tt := range []struct {
		opt              gateway.Option
		argument, reason string // none for an option that is accepted
	}{
		{nil, "opts", "holds a nil option"},
		{gateway.WithHTTPClient(nil), "WithHTTPClient", "must not be nil"},
		{gateway.WithHTTPClient(&http.Client{Timeout: -1}), "WithHTTPClient", negative},
		{gateway.WithHTTPClient(retryablehttp.NewClient().StandardClient()), "WithHTTPClient", "go-retryablehttp may send an invoice twice: pass the HTTPClient of its Client, and set retries by WithRetry"},
		{retry(gateway.RetryPolicy{MaxAttempts: -1}), "WithRetry", attempts},
		{retry(gateway.RetryPolicy{MaxAttempts: 11}), "WithRetry", attempts},
		{retry(gateway.RetryPolicy{MaxAttempts: 10}), "", ""},
		{retry(gateway.RetryPolicy{AttemptTimeout: -1}), "WithRetry", negative},
		{retry(gateway.RetryPolicy{InvoiceTimeout: -1}), "WithRetry", negative},
		{retry(gateway.RetryPolicy{BaseDelay: -1}), "WithRetry", negative},
		{retry(gateway.RetryPolicy{MaxDelay: -1}), "WithRetry", negative},
		{retry(gateway.RetryPolicy{MaxRetryAfter: -1}), "WithRetry", negative},
		{retry(gateway.RetryPolicy{BaseDelay: time.Second, MaxDelay: time.Millisecond}), "WithRetry", "BaseDelay must not be longer than MaxDelay"},
		{retry(gateway.RetryPolicy{BaseDelay: time.Microsecond, MaxDelay: time.Microsecond}), "", ""},
		{retry(gateway.RetryPolicy{BaseDelay: 1, MaxDelay: 1}), "", ""},
		{retry(gateway.RetryPolicy{BaseDelay: time.Microsecond - 1}), "WithRetry", "999ns" + unitless},
		{retry(gateway.RetryPolicy{MaxDelay: 5}), "WithRetry", "5ns" + unitless},
		{retry(gateway.RetryPolicy{MaxRetryAfter: 30}), "WithRetry", "30ns" + unitless},
		{retry(gateway.RetryPolicy{AttemptTimeout: 15}), "WithRetry", "15ns" + unitless},
		{retry(gateway.RetryPolicy{InvoiceTimeout: 60}), "WithRetry", "60ns" + unitless},
		{gateway.WithMiddleware(nil), "WithMiddleware", "must not be nil"},
		{gateway.WithMiddleware(noTransport), "WithMiddleware", "must not return nil"},
		{gateway.WithUserAgent("a\r\nX-Api-Key: b"), "WithUserAgent", agent},
		{gateway.WithUserAgent(""), "WithUserAgent", agent},
		{gateway.WithUserAgent(strings.Repeat("a", 257)), "WithUserAgent", agent},
		{gateway.WithUserAgent(strings.Repeat("a", 256)), "", ""},
		{gateway.WithAPIKeySource(nil), "WithAPIKeySource", "must not be nil"},
		{gateway.WithDefaults(nil), "opts", "holds a nil option"},
		{gateway.WithDefaults(gateway.WithHeader("Host", "a")), "WithHeader", "is set by the client"},
		{gateway.WithDefaults(gateway.WithResponse(new(gateway.Response))), "WithDefaults", both},
		{gateway.WithDefaults(gateway.WithAPIKey(canary)), "WithDefaults", both},
		{gateway.WithLogger(nil), "WithLogger", "must not be nil"},
		{gateway.WithRatesDecoder(nil), "WithRatesDecoder", "must not be nil"},
		{gateway.WithBalanceDecoder(nil), "WithBalanceDecoder", "must not be nil"},
		{gateway.WithCoinNetworkDecoder(nil), "WithCoinNetworkDecoder", "must not be nil"},
		{gateway.WithInvoiceDecoder(nil), "WithInvoiceDecoder", "must not be nil"},
		{gateway.WithSuccessMessage(""), "WithSuccessMessage", "1 to 1,024"},
		{gateway.WithSuccessMessage(strings.Repeat("a", 1025)), "WithSuccessMessage", "1 to 1,024"},
		{gateway.WithSuccessMessage(strings.Repeat("a", 1024)), "", ""},
	} {
		c, err := gateway.New("https://gateway.example", canary, gateway.WithPlainHTTP(), tt.opt)
		assert.Equal(t, tt.argument == "", c != nil)
		if tt.argument == "" {
			assert.NoError(t, err)
		} else {
			assertRefused(t, err, "new", tt.argument, tt.reason)
		}
	}
}

// Options that no call accepts are refused by name, and nothing is sent.
func TestCallOptions_refused(t *testing.T) {
	t.Parallel()
	type row struct {
		opt              gateway.CallOption
		argument, reason string
	}
	rows := []row{
		{nil, "opts", "holds a nil option"},
		{gateway.WithHeader("", "v"), "WithHeader", "not a header name"},
		{gateway.WithHeader("X\r\nY", "v"), "WithHeader", "not a header name"},
		{gateway.WithHeader("X-Y", "v\r\nX-Api-Key: z"), "WithHeader", "printable ASCII"},
		{gateway.WithHeader("X-Y", strings.Repeat("v", 1025)), "WithHeader", "1,024"},
		{gateway.WithResponse(nil), "WithResponse", "must not be nil"},
		{gateway.WithAPIKey(""), "WithAPIKey", "is required"},
	}
	for _, name := range []string{
		"X-Api-Key", "x-api-key", "X-API-KEY", "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection",
		"Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE", "Trailer", "Upgrade", "Expect", "Range",
		"Accept", "Accept-Encoding", "User-Agent", "Idempotency-Key", "X-Idempotency-Key", "idempotency-key",
	} {
		reason := "is set by the client"
		if strings.HasSuffix(strings.ToLower(name), "idempotency-key") {
			reason = "is refused: net/http resends a request that has it"
		}
		rows = append(rows, row{gateway.WithHeader(name, "v"), "WithHeader", reason})
	}
	for _, bad := range badKeys {
		rows = append(rows, row{gateway.WithAPIKey(bad.key), "WithAPIKey", bad.reason})
	}
	c := newClient(t, "http://localhost", neverSends())
	for _, tt := range rows {
		for _, s := range subjects() {
			got, err := s.call(t.Context(), c, tt.opt)
			assertRefused(t, err, s.op, tt.argument, tt.reason)
			assertInvariants(t, got, err)
		}
	}
}

// Each call has the key that the source returns at that time. The source is called once
// per call, however many attempts it makes, and knows the merchant by its name only.
// I-28
func TestWithAPIKeySource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var sent []string
		answers := trips{saysStatus(500), withdrawalIn("PENDING"), withdrawalIn("PENDING"), statusTrip(404, refused("unknown to key-number-3"))}
		c := clientWithKeySource(t, "http://localhost", func(ctx context.Context) (string, error) {
			calls++
			call, _ := gateway.CallFromContext(ctx)
			assert.Equal(t, []any{nil, "shop-1"}, []any{ctx.Value(guardContextKey{}), call.Merchant})
			return fmt.Sprintf("key-number-%d", calls), nil
		}, through(func(req *http.Request) (*http.Response, error) {
			sent = append(sent, req.Header.Get("x-api-key"))
			return answers[len(sent)-1](req)
		}))
		ctx := context.WithValue(t.Context(), guardContextKey{}, "shop-2")
		for range 2 {
			_, err := c.Withdrawal(ctx, requestID, gateway.WithMerchant("shop-1"))
			require.NoError(t, err)
		}
		_, err := c.Withdrawal(ctx, requestID, gateway.WithMerchant("shop-1"))
		assert.ErrorContains(t, err, `"unknown to [REDACTED]"`)
		assert.Equal(t, []string{"key-number-1", "key-number-1", "key-number-2", "key-number-3"}, sent)
	})
}

// What a source cannot return ends the call before anything is sent. A source that respects its context ends with the
// timeout of an attempt. It is not called for a bad argument, or a context that has ended.
func TestWithAPIKeySource_Fails(t *testing.T) {
	t.Parallel()
	unavailable := errors.New("the store is unavailable")
	returns := func(key string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return key, err }
	}
	idle := clientWithKeySource(t, "http://localhost", func(context.Context) (string, error) { panic("is not called") })
	_, err := idle.Withdrawal(t.Context(), "..")
	assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	assert.ErrorIs(t, withdrawal(cancelledContext(), idle), context.Canceled)
	for _, tt := range []struct {
		name   string
		source func(context.Context) (string, error)
		text   string
		is     error
	}{
		{"an error", returns(canary, unavailable), ": the source of the API key: the store is unavailable", unavailable},
		{"an error with the key in it", returns(canary, fmt.Errorf("%s: %w", canary, unavailable)), "the source of the API key: [REDACTED]: the store is unavailable", nil},
		{"it waits for its context", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, "the source of the API key: ", context.DeadlineExceeded},
		{"no key", returns("", nil), ": apiKey: is required for this call: give it to New, WithAPIKeySource or WithAPIKey", gateway.ErrMissingAPIKey},
		{"a line end, as at the end of a file", returns(canary+"\n", nil), ": WithAPIKeySource: the key must be printable ASCII: no line end, tab or other control character", gateway.ErrInvalidArgument},
		{"too long", returns(strings.Repeat("k", 4097), nil), ": WithAPIKeySource: the key is longer than 4,096 bytes", gateway.ErrInvalidArgument},
	} {
		for method, timeout := range map[string]time.Duration{"Withdrawal": 15 * time.Second, "CreateInvoice": time.Minute} {
			inBubble(t, tt.name+", "+method, func(t *testing.T) {
				c := clientWithKeySource(t, "http://localhost", tt.source, neverSends())
				begun := time.Now()
				result, err := subjectNamed(method).call(t.Context(), c)
				assertInvariants(t, result, err)
				assert.ErrorContains(t, err, tt.text)
				assert.True(t, tt.is == nil || errors.Is(err, tt.is), "%v", err)
				assert.Equal(t, map[bool]gateway.Outcome{true: notSent, false: unknown}[method == "CreateInvoice"], gateway.OutcomeOf(err))
				if failure, ok := errors.AsType[*gateway.TransportError](err); ok {
					assert.Equal(t, gateway.PhaseStart, failure.Phase)
					assert.Zero(t, failure.Attempts)
				} else {
					assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
				}
				assert.True(t, time.Since(begun) == 0 || time.Since(begun) == timeout && errors.Is(err, context.DeadlineExceeded))
			})
		}
	}
}

// A Response has what came with the result, and nothing of what it held before.
// I-39, I-40, I-41
func TestWithResponse(t *testing.T) {
	t.Parallel()
	forEach(t, "what came", func(t *testing.T, s subject) {
		success, notFound := `{"message":"Operation was successful.","result": `+s.result+` ,"meta":{"page": null}}`, `{"message":"Not found","result":[],"meta":{"a":1}}`
		raw := func(text string) json.RawMessage { return json.RawMessage(text) }
		for _, tt := range []struct {
			name   string
			status int // 0 for no response
			body   string
			want   gateway.Response
		}{
			{"a success", s.status, success, gateway.Response{Message: "Operation was successful.", Meta: raw(`{"page": null}`), Result: raw(s.result)}},
			{"a refusal", 404, notFound, gateway.Response{Message: "Not found", Meta: raw(`{"a":1}`), Result: raw("[]")}},
			{"a refusal with 200", 200, refused("No."), gateway.Response{Message: "No.", Meta: raw("{}"), Result: raw("[]")}},
			{"a page", 501, "<html>", gateway.Response{}},
			{"no response", 0, "", gateway.Response{}},
		} {
			synctest.Test(t, func(t *testing.T) {
				response := gateway.Response{StatusCode: 1, Message: "old", Meta: json.RawMessage("1"), Attempts: 9, Header: http.Header{}}
				c := newClient(t, "http://localhost", once(), through(func(*http.Request) (*http.Response, error) {
					time.Sleep(time.Second) // of the bubble
					if tt.status == 0 {
						return nil, io.ErrUnexpectedEOF
					}
					return reply(tt.status, tt.body, "X-Request-Id", "req-1"), nil
				}))
				got, err := s.call(t.Context(), c, gateway.WithResponse(&response))
				assertInvariants(t, got, err)
				assertNoKey(t, response)
				assertNoKey(t, &response)
				assert.Equal(t, tt.status == 0, response.Header == nil, tt.name)
				assert.Equal(t, tt.status != 0, response.Header.Get("X-Request-Id") == "req-1", tt.name)
				tt.want.StatusCode, tt.want.Attempts, tt.want.Duration = tt.status, 1, time.Second
				tt.want.Header, tt.want.FetchedAt = response.Header, response.FetchedAt
				assert.Equal(t, tt.want, response, tt.name)
			})
		}
		response := gateway.Response{StatusCode: 200, Message: "old", Attempts: 9}
		_, err := s.call(cancelledContext(), cannedClient(t, 200, s.body()), gateway.WithResponse(&response))
		require.Error(t, err)
		response.Duration = 0
		assert.Equal(t, gateway.Response{}, response, "although nothing is sent")
	})
	response := gateway.Response{StatusCode: 200, Message: "old", Attempts: 9}
	_, err := cannedClient(t, 200, "").CoinNetwork(t.Context(), "", gateway.WithResponse(&response))
	require.ErrorIs(t, err, gateway.ErrInvalidArgument)
	assert.Equal(t, gateway.Response{}, response, "although an argument is refused")
}

// A Response holds one response, the last.
func TestWithResponse_IsTheLastResponse(t *testing.T) {
	t.Parallel()
	cut := func(*http.Request) (*http.Response, error) {
		whole := `{"message":"first","meta":{"first":1},"result":` + withdrawalJSON + `,`
		got := reply(201, whole, "X-First", "1")
		got.Body = io.NopCloser(io.MultiReader(strings.NewReader(whole), brokenReader{io.ErrUnexpectedEOF}))
		return got, nil
	}
	for _, tt := range []struct {
		name    string
		second  tripper
		status  int
		message string
		result  string
	}{
		{"a refusal", statusTrip(404, refused("No.")), 404, "No.", "[]"},
		{"a page", statusTrip(404, "<html>"), 404, "", ""},
		{"nothing", statusTrip(501, ""), 501, "", ""},
		{"a refusal until the last attempt", statusTrip(503, refused("No.")), 503, "No.", "[]"},
		{"a page until the last attempt", statusTrip(503, "<html>"), 503, "", ""},
		{"a redirect", statusTrip(302, ""), 302, "", ""},
		{"a success", statusTrip(201, enveloped(withdrawalJSON)), 201, "Operation was successful.", withdrawalJSON},
		{"a result that cannot be read", statusTrip(201, enveloped(`{"x": 1}`)), 201, "Operation was successful.", `{"x": 1}`},
		{"a response without a result", statusTrip(201, `{"message":"m"}`), 201, "m", ""},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			response := gateway.Response{StatusCode: 1, Message: "old", Result: json.RawMessage("1")}
			p := paced(t, gateway.RetryPolicy{}, cut, tt.second)
			_, _ = p.client.Withdrawal(t.Context(), requestID, gateway.WithResponse(&response))
			assert.Equal(t, tt.status, response.StatusCode)
			assert.Equal(t, tt.message, response.Message)
			assert.Equal(t, tt.result, string(response.Result))
			assert.NotContains(t, string(response.Meta), "first")
			assert.NotContains(t, response.Header, "X-First")
			assert.Equal(t, len(p.at), response.Attempts)
		})
	}
}

// A header that holds a secret by its name is redacted like the key, of a call as of all calls.
func TestWithHeader_secrets(t *testing.T) {
	t.Parallel()
	const secret, other = "eyJhbGciOi/JIUzI1NiJ9", "w4Jf9s+Qk2"
	for _, header := range [][2]string{
		{"Authorization", "Bearer " + secret}, {"X-Auth-Token", secret}, {"cookie", "theme=dark; session=" + secret}, {"Client-Secret", secret}, {"x-access-key", secret},
	} {
		echo := strings.NewReplacer("/", `\/`).Replace(secret)
		option, another := gateway.WithHeader(header[0], header[1]), gateway.WithHeader("X-Other-Token", other)
		var begun context.Context
		opts := []gateway.Option{
			over(statusTrip(404, `{"message":"`+echo+` and `+other+`"}`, "X-Request-Id", secret, "Set-Cookie", "a=b")),
			gateway.WithObserver(gateway.Observer{Start: func(ctx context.Context, _ gateway.Call) context.Context {
				begun = ctx
				return ctx
			}}),
		}
		ofAll := newClient(t, "http://localhost", append(opts, gateway.WithDefaults(option))...)
		for _, c := range []*gateway.Client{ofAll, newClient(t, "http://localhost", opts...)} {
			var response gateway.Response
			_, err := c.Withdrawal(t.Context(), requestID, option, another, gateway.WithResponse(&response))
			assert.ErrorContains(t, err, `"[REDACTED] and [REDACTED]"`)
			assert.Equal(t, "[REDACTED]", response.Header.Get("X-Request-Id"))
			assert.Equal(t, "[REDACTED]", response.Header.Get("Set-Cookie"))
			for _, v := range []any{c, err, response, begun} {
				text := invariant.Dump(v)
				for _, secret := range []string{secret, echo, other} {
					assert.NotContains(t, text, secret, "%s: %T", header[0], v)
				}
			}
		}
	}
	_, err := newClient(t, "http://localhost", over(statusTrip(404, refused("of eyJhbGciOi")))).Withdrawal(t.Context(), requestID, gateway.WithHeader("X-Trace", "eyJhbGciOi"))
	assert.ErrorContains(t, err, "eyJhbGciOi", "another header")
}
