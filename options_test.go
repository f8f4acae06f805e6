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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
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
	for name, opts := range map[string][]gateway.Option{
		"the client's own transport":         nil,
		"an http.Client without a transport": {gateway.WithHTTPClient(&http.Client{})},
		"a nil http.Transport":               {gateway.WithHTTPClient(&http.Client{Transport: (*http.Transport)(nil)})},
		"a caller's":                         {gateway.WithHTTPClient(&http.Client{Transport: &http.Transport{}})},
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

func TestWithDefaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		opts     []gateway.CallOption
		header   http.Header
		merchant string
	}{
		{"a call without options", nil, http.Header{"X-Mesh": {"0"}, "X-Trace": {"a", "b"}}, "shop-1"},
		{"a header of the call replaces the default", []gateway.CallOption{gateway.WithHeader("x-trace", "c")}, http.Header{"X-Mesh": {"0"}, "X-Trace": {"c"}}, "shop-1"},
		{"a merchant of the call", []gateway.CallOption{gateway.WithMerchant("shop-2")}, http.Header{"X-Mesh": {"0"}, "X-Trace": {"a", "b"}}, "shop-2"},
		{"a key of the call is no key of the default merchant", []gateway.CallOption{gateway.WithAPIKey("another-key")}, http.Header{"X-Mesh": {"0"}, "X-Trace": {"a", "b"}}, ""},
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

// Options that New does not accept are refused by name, and their limits are accepted.
func TestNew_options(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		opt              gateway.Option
		argument, reason string
	}{
		{"a nil option", nil, "opts", "holds a nil option"},
		{"a nil http.Client", gateway.WithHTTPClient(nil), "WithHTTPClient", "must not be nil"},
		{"MaxAttempts -1", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: -1}), "WithRetry", "MaxAttempts must be from 1 to 10"},
		{"MaxAttempts 11", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 11}), "WithRetry", "MaxAttempts must be from 1 to 10"},
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
		{"MaxAttempts 10 is accepted", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 10}), "", ""},
		{"equal delays are accepted", gateway.WithRetry(gateway.RetryPolicy{BaseDelay: time.Second, MaxDelay: time.Second}), "", ""},
		{"256 characters of user agent are accepted", gateway.WithUserAgent(strings.Repeat("a", 256)), "", ""},
		{"1,024 bytes of a message are accepted", gateway.WithSuccessMessage(strings.Repeat("a", 1024)), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New("https://gateway.example", canary, gateway.WithPlainHTTP(), tt.opt)
			assert.Equal(t, tt.argument == "", c != nil)
			if tt.argument == "" {
				assert.NoError(t, err)
				return
			}
			assertRefused(t, err, "new", tt.argument, tt.reason)
		})
	}
}

// Options that no call accepts are refused by name, and nothing is sent.
func TestCallOptions_refused(t *testing.T) {
	t.Parallel()
	type row struct {
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
	for _, tt := range rows {
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

// I-28, I-101
func TestWithAPIKey(t *testing.T) {
	t.Parallel()
	const other = "OTHER-MERCHANT-KEY-77"
	forEach(t, "another merchant's key, for one call", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		c := newClient(t, w.URL, gateway.WithOrderGuard(nil))
		for _, tt := range []struct {
			key  string
			opts []gateway.CallOption
		}{
			{other, []gateway.CallOption{gateway.WithAPIKey(other)}},
			{canary, nil},
		} {
			_, err := s.call(t.Context(), c, tt.opts...)
			require.NoError(t, err)
			requests := w.Requests()
			got := requests[len(requests)-1]
			text, want := got.Body+got.Header.Get("X-Api-Key"), 0 // a public call carries no key
			if s.keyed {
				want = 1
			}
			assert.Equal(t, want, strings.Count(text, tt.key))
			assert.Equal(t, want, strings.Count(text, other)+strings.Count(text, canary), "no other key is sent")
		}
	})
	_, err := cannedClient(t, 400, refused("bad key "+other)).Balance(t.Context(), gateway.BalanceQuery{}, gateway.WithAPIKey(other))
	assert.ErrorContains(t, err, "bad key [REDACTED]")
}

// Each call has the key that the source returns at that time. The source is called once
// per call, however many attempts it makes, and knows the merchant by its name only.
// I-28
func TestWithAPIKeySource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var sent []string
		c := clientWithKeySource(t, "http://localhost", func(ctx context.Context) (string, error) {
			calls++
			assert.Nil(t, ctx.Value(tenantKey{}))
			assert.NotNil(t, ctx.Done())
			call, _ := gateway.CallFromContext(ctx)
			assert.Equal(t, "withdrawal", call.Operation)
			assert.Equal(t, "shop-1", call.Merchant)
			return fmt.Sprintf("key-number-%d", calls), nil
		}, through(func(req *http.Request) (*http.Response, error) {
			sent = append(sent, req.Header.Get("x-api-key"))
			switch len(sent) {
			case 1:
				return reply(500, refused("No.")), nil
			case 4:
				return reply(404, refused("unknown to "+req.Header.Get("x-api-key"))), nil
			default:
				return reply(201, enveloped(withdrawalJSON)), nil
			}
		}))
		ctx := context.WithValue(t.Context(), tenantKey{}, "shop-2")
		for range 2 {
			_, err := c.Withdrawal(ctx, requestID, gateway.WithMerchant("shop-1"))
			require.NoError(t, err)
		}
		_, err := c.Withdrawal(ctx, requestID, gateway.WithMerchant("shop-1"))
		assert.ErrorContains(t, err, `"unknown to [REDACTED]"`)
		assert.Equal(t, []string{"key-number-1", "key-number-1", "key-number-2", "key-number-3"}, sent)
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

// What a source cannot return ends the call before anything is sent. A source that respects its context ends with the
// timeout of an attempt.
func TestWithAPIKeySource_Fails(t *testing.T) {
	t.Parallel()
	unavailable := errors.New("the store is unavailable")
	returns := func(key string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return key, err }
	}
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
				c := clientWithKeySource(t, "http://localhost", tt.source, through(func(*http.Request) (*http.Response, error) {
					t.Error("something is sent")
					return nil, io.ErrUnexpectedEOF
				}))
				begun := time.Now()
				result, err := subjectNamed(method).call(t.Context(), c)
				assertInvariants(t, result, err)
				assert.ErrorContains(t, err, tt.text)
				assert.True(t, tt.is == nil || errors.Is(err, tt.is), "%v", err)
				assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
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

// A key of the call takes precedence over the source, and a bad argument or an ended
// context is reported before the source is called.
func TestWithAPIKeySource_NotCalled(t *testing.T) {
	t.Parallel()
	calls := 0
	w := serve(t, respond(201, enveloped(withdrawalJSON)))
	c := clientWithKeySource(t, w.URL, func(context.Context) (string, error) { calls++; return canary, nil })

	_, err := c.Withdrawal(t.Context(), requestID, gateway.WithAPIKey("another-key"))
	require.NoError(t, err)
	assert.Equal(t, "another-key", w.Requests()[0].Header.Get("x-api-key"))
	_, err = c.Withdrawal(t.Context(), "..")
	require.ErrorIs(t, err, gateway.ErrInvalidArgument)
	ended, cancel := cancelledContext()
	defer cancel()
	_, err = c.Withdrawal(ended, requestID)
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, calls)
}

// A Response has what came with the result, and nothing of what it held before.
// I-39, I-40, I-41
func TestWithResponse(t *testing.T) {
	t.Parallel()
	forEach(t, "what came", func(t *testing.T, s subject) {
		for _, tt := range []struct {
			name   string
			status int // 0 for no response
			body   string
			want   gateway.Response
		}{
			{
				"a success, with the result byte for byte", s.status,
				`{"message":"Operation was successful.","result": ` + s.result + ` ,"meta":{"page": null}}`,
				gateway.Response{Message: "Operation was successful.", Meta: json.RawMessage(`{"page": null}`), Result: json.RawMessage(s.result)},
			},
			{
				"a refusal", 404, `{"message":"Not found","result":[],"meta":{"a":1}}`,
				gateway.Response{Message: "Not found", Meta: json.RawMessage(`{"a":1}`), Result: json.RawMessage("[]")},
			},
			{
				"a refusal with success in its status", 200, refused("Not today"),
				gateway.Response{Message: "Not today", Meta: json.RawMessage("{}"), Result: json.RawMessage("[]")},
			},
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
		ended, cancel := cancelledContext()
		defer cancel()
		response := gateway.Response{StatusCode: 200, Message: "old", Attempts: 9}
		_, err := s.call(ended, cannedClient(t, 200, s.body()), gateway.WithResponse(&response))
		require.Error(t, err)
		response.Duration = 0
		assert.Equal(t, gateway.Response{}, response, "although nothing is sent")
	})
	response := gateway.Response{StatusCode: 200, Message: "old", Attempts: 9}
	_, err := cannedClient(t, 200, "").CoinNetwork(t.Context(), "", gateway.WithResponse(&response))
	require.ErrorIs(t, err, gateway.ErrInvalidArgument)
	assert.Equal(t, gateway.Response{}, response, "although an argument is refused")
}

// WithResponse returns the whole of a response that cannot be decoded.
func TestWithResponse_decodeError(t *testing.T) {
	t.Parallel()
	bad := "[" + strings.Repeat(written(pairFields, "confirmation", `"x"`)+",", 40) + "null]"
	var response gateway.Response
	c := cannedClient(t, 200, enveloped(bad))
	_, err := c.CoinNetworks(t.Context(), gateway.WithResponse(&response))
	var wrong *gateway.DecodeError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "/result/0/confirmation", wrong.Pointer)
	assert.Equal(t, 200, response.StatusCode)
	assert.Equal(t, 1, response.Attempts)
	assert.Equal(t, bad, string(response.Result), "the raw result is what the error is about")
}

// A Response holds one response, the last.
func TestWithResponse_IsTheLastResponse(t *testing.T) {
	t.Parallel()
	cut := func() (*http.Response, error) {
		whole := `{"message":"first","meta":{"first":1},"result":` + withdrawalJSON + `,`
		got := reply(201, whole, "X-First", "1")
		got.Body = io.NopCloser(io.MultiReader(strings.NewReader(whole), brokenReader{io.ErrUnexpectedEOF}))
		return got, nil
	}
	for _, tt := range []struct {
		name    string
		second  func() (*http.Response, error)
		status  int
		message string
		result  string
	}{
		{"a refusal", respondWith(404, refused("No.")), 404, "No.", "[]"},
		{"a page", respondWith(404, "<html>"), 404, "", ""},
		{"nothing", respondWith(501, ""), 501, "", ""},
		{"a refusal until the last attempt", respondWith(503, refused("No.")), 503, "No.", "[]"},
		{"a page until the last attempt", respondWith(503, "<html>"), 503, "", ""},
		{"a redirect", respondWith(302, ""), 302, "", ""},
		{"a success", respondWith(201, enveloped(withdrawalJSON)), 201, "Operation was successful.", withdrawalJSON},
		{"a response without a result", respondWith(201, `{"message":"m"}`), 201, "m", ""},
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
