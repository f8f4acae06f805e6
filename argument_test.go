package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// assertRefused asserts that err is the refusal of one argument by the client
// itself.
func assertRefused(t testing.TB, err error, op, name, reason string) {
	t.Helper()
	var refusal *gateway.ArgumentError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, op, refusal.Operation)
	assert.Equal(t, name, refusal.Name)
	assert.Contains(t, refusal.Reason, reason)
	assert.NotEmpty(t, refusal.Reason)
	assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	assert.ErrorIs(t, err, gateway.ErrNotSent)
	assert.Equal(t, "gateway: "+op+": "+name+": "+refusal.Reason, err.Error())
	assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
	assert.False(t, gateway.SafeToRetry(err), "the same argument is refused again")
	assertInvariants(t, nil, err)
}

// What a base URL must be is tested in package endpoint. Here it is refused by name,
// and an unencrypted one is.
// I-3
func TestNew_baseURL(t *testing.T) {
	t.Parallel()
	const insecure = "plain http is for this machine only"
	for _, tt := range []struct{ name, url, reason string }{
		{"row A1: an empty URL", "", "is required"},
		{"row A1: an unreadable URL with a password", "https://user:s3cret@h:x", "is not a URL"},
		{"row A2: plain http to another machine", "http://api.example", insecure},
		{"row A2: a host that only looks local", "http://localhost.example", insecure},
		{"row A3: a user and a password", "https://user:s3cret@h", "must not hold a user or password"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New(tt.url, canary)
			assert.Nil(t, c)
			assertRefused(t, err, "new", "baseURL", tt.reason)
			assert.NotContains(t, fmt.Sprintf("%+v", err), "s3cret")
		})
	}
}

// I-3
func TestNew_baseURLAccepted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, url string
		opts      []gateway.Option
	}{
		{"row A2: plain http by choice", "http://api.example", []gateway.Option{gateway.WithPlainHTTP()}},
		{"row A2: this machine", "http://localhost", nil},
		{"row A5: a prefix", "https://gateway.example/merchant", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New(tt.url, canary, tt.opts...)
			require.NoError(t, err)
			assert.NotNil(t, c)
		})
	}
}

// badKeys are some API keys that cannot be sent. Package validate tests all rules.
var badKeys = []struct{ name, key, reason string }{
	{"row A6: spaces", "   ", "is blank"},
	{"row A7: a header after the key", canary + "\r\nX: y", "must be printable ASCII"},
	{"row A7: a space at the end is not trimmed", canary + " ", "must not begin or end with a space"},
	{"row A7: 4,097 bytes", canary + strings.Repeat("k", 4097-len(canary)), "is longer than 4,096 bytes"},
}

// I-29
func TestNew_apiKey(t *testing.T) {
	t.Parallel()
	for _, tt := range badKeys {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New("https://gateway.example", tt.key)
			assert.Nil(t, c)
			assertRefused(t, err, "new", "apiKey", tt.reason)
		})
	}
	t.Run("row A7: 4,096 bytes are sent whole", func(t *testing.T) {
		t.Parallel()
		key := strings.Repeat("k", 4096)
		w := serve(t, respond(200, enveloped(`"1"`)))
		c, err := gateway.New(w.URL, key)
		require.NoError(t, err)
		_, err = c.Balance(t.Context(), gateway.BalanceQuery{})
		require.NoError(t, err)
		assert.Equal(t, key, only(t, w).Header.Get("X-Api-Key"))
	})
}

// Without a key the calls that need one fail before they are sent, and the
// others work.
// I-30, I-31, I-32, I-34
func TestClient_missingAPIKey(t *testing.T) {
	t.Parallel()
	needKey := map[string]bool{"Balance": true, "CreateInvoice": true, "Withdrawal": true}
	for _, s := range subjects() {
		t.Run("row A6: an empty key, "+s.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(s.status, s.body()))
			c, err := gateway.New(w.URL, "")
			require.NoError(t, err, "an empty key is allowed at construction")
			got, err := s.call(t.Context(), c)
			assertInvariants(t, got, err)
			if !needKey[s.name] {
				require.NoError(t, err)
				assert.NotContains(t, only(t, w).Header, "X-Api-Key")
				return
			}
			assertRefused(t, err, s.op, "apiKey", "is required for this call")
			assert.ErrorIs(t, err, gateway.ErrMissingAPIKey)
			assert.Empty(t, w.Requests())
			_, err = s.call(t.Context(), c, gateway.WithAPIKey(canary))
			require.NoError(t, err, "a key for the call is enough, and the refusal left nothing behind")
		})
	}
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
		{"row A8: a nil option", nil, "opts", "holds a nil option"},
		{"row A8: a nil http.Client", gateway.WithHTTPClient(nil), "WithHTTPClient", "must not be nil"},
		{"row A9: MaxAttempts -1", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: -1}), "WithRetry", "MaxAttempts must be from 1 to 10"},
		{"row A9: MaxAttempts 11", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 11}), "WithRetry", "MaxAttempts must be from 1 to 10"},
		{"row A9: MaxAttempts 1,000,000", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1_000_000}), "WithRetry", "MaxAttempts must be from 1 to 10"},
		{"row A9: a negative attempt timeout", gateway.WithRetry(gateway.RetryPolicy{AttemptTimeout: -1}), "WithRetry", "must not be negative"},
		{"row A9: a negative invoice timeout", gateway.WithRetry(gateway.RetryPolicy{InvoiceTimeout: -1}), "WithRetry", "must not be negative"},
		{"row A9: a negative base delay", gateway.WithRetry(gateway.RetryPolicy{BaseDelay: -1}), "WithRetry", "must not be negative"},
		{"row A9: a negative greatest delay", gateway.WithRetry(gateway.RetryPolicy{MaxDelay: -1}), "WithRetry", "must not be negative"},
		{"row A9: a negative Retry-After", gateway.WithRetry(gateway.RetryPolicy{MaxRetryAfter: -1}), "WithRetry", "must not be negative"},
		{"row A9: the least delay above the greatest", gateway.WithRetry(gateway.RetryPolicy{BaseDelay: 2, MaxDelay: 1}), "WithRetry", "BaseDelay must not be longer than MaxDelay"},
		{"row A9: an http.Client with a negative timeout", gateway.WithHTTPClient(&http.Client{Timeout: -1}), "WithHTTPClient", "must not be negative"},
		{"row A9: a limit of zero bytes", gateway.WithMaxResponseBytes(0), "WithMaxResponseBytes", "from 1 byte to 1 GiB"},
		{"row A9: a negative limit", gateway.WithMaxResponseBytes(-1), "WithMaxResponseBytes", "from 1 byte to 1 GiB"},
		{"row A9: a limit over 1 GiB", gateway.WithMaxResponseBytes(1<<30 + 1), "WithMaxResponseBytes", "from 1 byte to 1 GiB"},
		{"row A9: the largest number", gateway.WithMaxResponseBytes(math.MaxInt64), "WithMaxResponseBytes", "from 1 byte to 1 GiB"},
		{"row A10: a user agent with a line end", gateway.WithUserAgent("a\r\nX-Api-Key: b"), "WithUserAgent", "printable ASCII"},
		{"row A10: an empty user agent", gateway.WithUserAgent(""), "WithUserAgent", "printable ASCII"},
		{"row A10: a user agent beyond ASCII", gateway.WithUserAgent("é"), "WithUserAgent", "printable ASCII"},
		{"row A10: a long user agent", gateway.WithUserAgent(strings.Repeat("a", 257)), "WithUserAgent", "1 to 256"},
		{"an invoice format that there is not", gateway.WithInvoiceFormat(7), "WithInvoiceFormat", "must be"},
		{"a negative invoice format", gateway.WithInvoiceFormat(-1), "WithInvoiceFormat", "must be"},
		{"no source of a key", gateway.WithAPIKeySource(nil), "WithAPIKeySource", "must not be nil"},
		{"a key and a source of one", gateway.WithAPIKeySource(sameKey), "apiKey", "must be empty with WithAPIKeySource"},
		{"no observer", gateway.WithObserver(nil), "WithObserver", "must not be nil"},
		{"no logger", gateway.WithLogger(nil), "WithLogger", "must not be nil"},
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
		{"row A9: an empty policy is the default one", gateway.WithRetry(gateway.RetryPolicy{})},
		{"row A9: MaxAttempts 1", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1})},
		{"row A9: MaxAttempts 10", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 10})},
		{"row A9: a zero field takes its default", gateway.WithRetry(gateway.RetryPolicy{AttemptTimeout: time.Second})},
		{"row A9: the default of the greatest delay gives way to the least", gateway.WithRetry(gateway.RetryPolicy{BaseDelay: time.Hour})},
		{"row A9: the default of the least delay gives way to the greatest", gateway.WithRetry(gateway.RetryPolicy{MaxDelay: 1})},
		{"row A9: equal delays", gateway.WithRetry(gateway.RetryPolicy{BaseDelay: time.Second, MaxDelay: time.Second})},
		{"row A9: a limit of one byte", gateway.WithMaxResponseBytes(1)},
		{"row A9: a limit of 1 GiB", gateway.WithMaxResponseBytes(1 << 30)},
		{"row A10: 256 characters of user agent", gateway.WithUserAgent(strings.Repeat("a", 256))},
		{"an http.Client of zero fields", gateway.WithHTTPClient(&http.Client{})},
		{"no order guard", gateway.WithOrderGuard(nil)},
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
		{"row A8: a nil option", nil, "opts", "holds a nil option"},
		{"row A10: no header name", gateway.WithHeader("", "v"), "WithHeader", "not a header name"},
		{"row A10: a header name with a line end", gateway.WithHeader("X\r\nY", "v"), "WithHeader", "not a header name"},
		{"row A10: a value with a line end", gateway.WithHeader("X-Y", "v\r\nX-Api-Key: z"), "WithHeader", "printable ASCII"},
		{"row A10: a long value", gateway.WithHeader("X-Y", strings.Repeat("v", 1025)), "WithHeader", "1,024"},
		{"a nil response", gateway.WithResponse(nil), "WithResponse", "must not be nil"},
		{"row A6: an empty key for the call", gateway.WithAPIKey(""), "WithAPIKey", "is required"},
	}
	for _, name := range []string{
		"X-Api-Key", "x-api-key", "X-API-KEY", "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection",
		"Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE", "Trailer", "Upgrade", "Expect", "Range",
		"Accept", "Accept-Encoding", "User-Agent", "Idempotency-Key", "X-Idempotency-Key", "idempotency-key",
	} {
		rows = append(rows, row{"row A10: the header " + name, gateway.WithHeader(name, "v"), "WithHeader", "is set by the client"})
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

// Every method refuses what it cannot send with, and none panics.
func TestClient_badReceiverOrContext(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(s.status, s.body()))
			t.Run("row A11: a nil context", func(t *testing.T) {
				var none context.Context
				got, err := s.call(none, newClient(t, w.URL))
				assertRefused(t, err, s.op, "ctx", "must not be nil")
				assertInvariants(t, got, err)
			})
			t.Run("row A11: a nil client", func(t *testing.T) {
				got, err := s.call(t.Context(), nil)
				assertRefused(t, err, s.op, "client", "was not made by New")
				assertInvariants(t, got, err)
			})
			t.Run("row A11: a zero client", func(t *testing.T) {
				got, err := s.call(t.Context(), &gateway.Client{})
				assertRefused(t, err, s.op, "client", "was not made by New")
				assertInvariants(t, got, err)
			})
			assert.Empty(t, w.Requests())
		})
	}
}

// Waiting for a withdrawal refuses the same things.
func TestClient_WaitWithdrawal_refuses(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(201, enveloped(withdrawalJSON)))
	good := newClient(t, w.URL)
	var none context.Context
	for _, tt := range []struct {
		name     string
		ctx      context.Context
		client   *gateway.Client
		id       string
		options  gateway.WaitOptions
		argument string
	}{
		{"row A11: a nil context", none, good, requestID, gateway.WaitOptions{}, "ctx"},
		{"row A11: a nil client", t.Context(), nil, requestID, gateway.WaitOptions{}, "client"},
		{"row A11: a zero client", t.Context(), &gateway.Client{}, requestID, gateway.WaitOptions{}, "client"},
		{"row A12: an empty identifier", t.Context(), good, "", gateway.WaitOptions{}, "withdrawRequestId"},
		{"row A9: a negative interval", t.Context(), good, requestID, gateway.WaitOptions{MinInterval: -1}, "w"},
		{"row A9: a negative greatest interval", t.Context(), good, requestID, gateway.WaitOptions{MaxInterval: -1}, "w"},
		{"row A9: the least above the greatest", t.Context(), good, requestID, gateway.WaitOptions{MinInterval: 2, MaxInterval: 1}, "w"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.client.WaitWithdrawal(tt.ctx, tt.id, tt.options)
			assertRefused(t, err, "withdrawal", tt.argument, "")
			assertInvariants(t, got, err)
			yielded := 0
			for got, err := range tt.client.WatchWithdrawal(tt.ctx, tt.id, tt.options) {
				yielded++
				assertRefused(t, err, "withdrawal", tt.argument, "")
				assert.Nil(t, got)
			}
			assert.Equal(t, 1, yielded)
			assert.Empty(t, w.Requests())
		})
	}
}

// badPathTexts are some texts that are not one segment of a path. Package validate
// tests all rules.
var badPathTexts = []struct{ name, text, reason string }{
	{"row A12: nothing", "", "is required"},
	{"row A12: two dots", "..", "must not be a dot segment"},
	{"row A12: a path that climbs", "../balance", "must not contain any of"},
	{"row A12: a query", "a?x=1", "must not contain any of"},
	{"row A12: a line end", "a\r\nb", "control characters"},
	{"row A12: 257 bytes", strings.Repeat("a", 257), "is longer than 256 bytes"},
}

// pathCalls are the methods with an argument in the path, one for each such
// argument.
var pathCalls = []struct {
	name, op, argument string
	call               func(c *gateway.Client, text string) (any, error)
}{
	{"CoinNetwork", "coin_network", "id", func(c *gateway.Client, text string) (any, error) {
		return c.CoinNetwork(context.Background(), text)
	}},
	{"CoinNetworkBySymbol, the symbol", "coin_network_by_symbol", "coinSymbol", func(c *gateway.Client, text string) (any, error) {
		return c.CoinNetworkBySymbol(context.Background(), text, "Tron")
	}},
	{"CoinNetworkBySymbol, the network", "coin_network_by_symbol", "networkName", func(c *gateway.Client, text string) (any, error) {
		return c.CoinNetworkBySymbol(context.Background(), "USDT", text)
	}},
	{"CoinNetworksOf", "coin_networks_of", "coinSymbol", func(c *gateway.Client, text string) (any, error) {
		return c.CoinNetworksOf(context.Background(), text)
	}},
	{"Withdrawal", "withdrawal", "withdrawRequestId", func(c *gateway.Client, text string) (any, error) {
		return c.Withdrawal(context.Background(), text)
	}},
}

// Row 32, an empty name of a network, is among these: it would ask for the
// record of an identifier.
// I-15, I-24, I-149
func TestClient_pathTexts(t *testing.T) {
	t.Parallel()
	for _, call := range pathCalls {
		t.Run(call.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(200, enveloped(pairJSON)))
			c := newClient(t, w.URL)
			for _, tt := range badPathTexts {
				t.Run(tt.name, func(t *testing.T) {
					got, err := call.call(c, tt.text)
					assertRefused(t, err, call.op, call.argument, tt.reason)
					assertInvariants(t, got, err)
				})
			}
			assert.Empty(t, w.Requests())
		})
	}
	t.Run("row A14: an empty network name on a lookup by symbol and network", func(t *testing.T) { // I-16
		t.Parallel()
		w := serve(t, respond(200, enveloped(pairJSON)))
		_, err := newClient(t, w.URL).CoinNetworkBySymbol(t.Context(), "USDT", "")
		assertRefused(t, err, "coin_network_by_symbol", "networkName", "is required")
		assert.Empty(t, w.Requests())
	})
}

// I-24
func TestClient_Balance_refuses(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, enveloped(balanceJSON)))
	c := newClient(t, w.URL)
	for _, tt := range []struct{ name, text, reason string }{
		{"row A12: a NUL", "a\x00b", "control characters"},
		{"row A12: an encoded surrogate", "\xed\xa0\x80", "not valid UTF-8"},
		{"row A12: a space at the end", "a ", "a space"},
		{"row A12: 257 bytes", strings.Repeat("a", 257), "is longer than 256 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.Balance(t.Context(), gateway.BalanceQuery{CoinSymbol: tt.text})
			assertRefused(t, err, "balance", "coinSymbol", tt.reason)
			assertInvariants(t, got, err)
			got, err = c.Balance(t.Context(), gateway.BalanceQuery{CoinSymbol: "USDT", NetworkName: tt.text})
			assertRefused(t, err, "balance", "networkName", tt.reason)
			assertInvariants(t, got, err)
		})
	}
	assert.Empty(t, w.Requests())
}

// assertInvoiceRefused asserts that an invoice is refused in both formats, and that
// the order is free afterwards.
func assertInvoiceRefused(t *testing.T, request gateway.InvoiceRequest, argument, reason string) {
	t.Helper()
	for _, format := range []gateway.InvoiceFormat{gateway.InvoiceFormatSample, gateway.InvoiceFormatTable} {
		w := serve(t, respond(200, enveloped(invoiceJSON)))
		c := newClient(t, w.URL, gateway.WithInvoiceFormat(format))
		got, err := c.CreateInvoice(t.Context(), request)
		assertRefused(t, err, "create_invoice", argument, reason)
		assertInvariants(t, got, err)
		assert.Equal(t, err, request.Validate(), "it is refused before it is sent, too")
		assert.Empty(t, w.Requests())
		require.NoError(t, order("A-17").Validate())
		_, err = c.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err, "a refusal leaves the order free")
	}
}

// invoiceTexts set a text of an invoice by the name that an error has for it.
var invoiceTexts = map[string]func(r *gateway.InvoiceRequest, text string){
	"orderId":      func(r *gateway.InvoiceRequest, text string) { r.OrderID = text },
	"baseCurrency": func(r *gateway.InvoiceRequest, text string) { r.BaseCurrency = text },
	"coinSymbol":   func(r *gateway.InvoiceRequest, text string) { r.CoinSymbol = text },
	"networkName":  func(r *gateway.InvoiceRequest, text string) { r.NetworkName = text },
}

// I-110, I-121
func TestClient_CreateInvoice_refusesTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, field, text, reason string }{
		{"row A22: no order", "orderId", "", "is required"},
		{"row A22: a line end in an order", "orderId", "a\nb", "control characters"},
		{"row A22: half a character in an order", "orderId", "a\xe4\xb8", "not valid UTF-8"},
		{"row A12: a space in front of an order", "orderId", " a", "a space"},
		{"row A12: 1,025 bytes of order", "orderId", strings.Repeat("o", 1025), "is longer than 1024 bytes"},
		{"row A23: a currency with a space", "baseCurrency", "US D", "must not contain spaces"}, // I-117
		{"row A23: a currency of 65 bytes", "baseCurrency", strings.Repeat("u", 65), "is longer than 64 bytes"},
		{"row A12: an encoded surrogate in a coin", "coinSymbol", "\xed\xa0\x80", "not valid UTF-8"},
		{"row A12: 1,025 bytes of coin", "coinSymbol", strings.Repeat("o", 1025), "is longer than 1024 bytes"},
		{"row A12: a NUL in a network", "networkName", "a\x00b", "control characters"},
		{"row A12: 1,025 bytes of network", "networkName", strings.Repeat("o", 1025), "is longer than 1024 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			request := order("A-17")
			invoiceTexts[tt.field](&request, tt.text)
			assertInvoiceRefused(t, request, tt.field, tt.reason)
		})
	}
}

// Package money tests all limits of an amount.
// I-111, I-112, I-120
func TestClient_CreateInvoice_refusesAmounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		reason string
	}{
		{"row A18: a zero amount is required", decimal.Decimal{}, "is required"},
		{"row A18: minus five", decimal.NewFromInt(-5), "must be greater than zero"},
		{"row A19: 1e1000000000", decimal.New(1, 1_000_000_000), "more than 64 digits"},
		{"row A19: 65 digits", decimal.RequireFromString(strings.Repeat("9", 65)), "more than 64 digits"},
		{"row A19: 31 decimal places", decimal.New(1, -31), "more than 30 decimal places"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			request := order("A-17")
			request.Price = tt.amount
			assertInvoiceRefused(t, request, "price", tt.reason)
			request = order("A-17")
			request.Amount = tt.amount
			assertInvoiceRefused(t, request, "amount", tt.reason)
		})
	}
}

func TestClient_CreateInvoice_orderInFlight(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		respond(200, enveloped(invoiceJSON))(rw, r)
	})
	c := newClient(t, w.URL)
	first := make(chan error, 1)
	go func() {
		_, err := c.CreateInvoice(context.Background(), order("A-17"))
		first <- err
	}()
	select {
	case <-arrived:
	case err := <-first:
		require.FailNow(t, "the first invoice did not arrive", "%v", err)
	}
	t.Run("row A24: an order in flight", func(t *testing.T) {
		for _, opts := range [][]gateway.CallOption{nil, {gateway.AllowResubmit()}} {
			got, err := c.CreateInvoice(t.Context(), order("A-17"), opts...)
			assertRefused(t, err, "create_invoice", "orderId", "is being created")
			assert.ErrorIs(t, err, gateway.ErrOrderInFlight)
			assertInvariants(t, got, err)
		}
	})
	close(release)
	require.NoError(t, <-first)
	assert.Len(t, w.Requests(), 1)
}

func TestClient_CreateInvoice_orderUnknown(t *testing.T) {
	t.Parallel()
	t.Run("row A25: an order whose outcome is unknown", func(t *testing.T) {
		t.Parallel()
		w := serve(t, respond(500, refused("oops")))
		c := newClient(t, w.URL)
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		got, err := c.CreateInvoice(t.Context(), order("A-17"))
		assertRefused(t, err, "create_invoice", "orderId", "AllowResubmit")
		assert.ErrorIs(t, err, gateway.ErrOrderOutcomeUnknown)
		assertInvariants(t, got, err)
		assert.Len(t, w.Requests(), 1, "nothing more was sent")
		_, err = c.CreateInvoice(t.Context(), order("A-18"))
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown, "another order is another order")
		_, err = c.CreateInvoice(t.Context(), order("A-17"), gateway.AllowResubmit())
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown, "by choice it is sent")
		assert.Len(t, w.Requests(), 3)
	})
}

// A context that has ended is no wrong argument: a read is a transport error
// without an attempt, and an invoice is not sent.
func TestClient_endedContext(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancelLate := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancelLate()
	for _, s := range subjects() {
		for _, tt := range []struct {
			name string
			ctx  context.Context
			want error
		}{
			{"row A26: a cancelled context", cancelled, context.Canceled},
			{"row A26: a deadline in the past", late, context.DeadlineExceeded},
			{"row A26: a deadline in the past, with a value", context.WithValue(late, contextKey{}, 1), context.DeadlineExceeded},
		} {
			t.Run(tt.name+", "+s.name, func(t *testing.T) {
				t.Parallel()
				w := serve(t, respond(s.status, s.body()))
				got, err := s.call(tt.ctx, newClient(t, w.URL))
				assertInvariants(t, got, err)
				var failure *gateway.TransportError
				require.ErrorAs(t, err, &failure)
				assert.Equal(t, gateway.PhaseStart, failure.Phase)
				assert.Zero(t, failure.Attempts)
				assert.ErrorIs(t, err, tt.want)
				assert.Equal(t, s.write, errors.Is(err, gateway.ErrNotSent))
				assert.Equal(t, tt.want == context.DeadlineExceeded, errors.Is(err, gateway.ErrTimeout))
				assert.Empty(t, w.Requests())
			})
		}
	}
}

type contextKey struct{}
