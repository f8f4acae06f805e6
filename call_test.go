package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Bodies of an invoice as they are documented, in the sample request and in the field
// table.
const (
	sampleBody = `{"apiKey":"` + canary + `","price":"10.50","orderId":"A-17","amount":"10.4895"}`
	tableBody  = `{"apikey":"` + canary + `","price":10.50,"orderId":"A-17","amount":10.4895}`
	fullBody   = `{"apiKey":"` + canary + `","price":"10.50","orderId":"A-17",` +
		`"baseCurrency":"usd","coinSymbol":"USDT","networkName":"Tron (TRC20)","amount":"10.4895"}`
	fullTable = `{"apikey":"` + canary + `","price":10.50,"orderId":"A-17",` +
		`"baseCurrency":"usd","coinSymbol":"USDT","networkName":"Tron (TRC20)","amount":10.4895}`
)

// The header fields that are the same in every request.
func plainHeader() http.Header {
	return http.Header{
		"Accept":          {"application/json"},
		"Accept-Encoding": {"gzip"},
		"User-Agent":      {"cryptogw-gateway-go/" + gateway.Version},
	}
}

func headerWith(pairs ...string) http.Header {
	h := plainHeader()
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// Each method sends this one request and nothing else, and reads the response.
// I-4, I-5, I-27
func TestClient_Wire(t *testing.T) {
	t.Parallel()
	public := headerWith("Cache-Control", "no-cache")
	keyed := headerWith("Cache-Control", "no-cache", "X-Api-Key", canary)
	inquiry := headerWith("Cache-Control", "no-cache", "X-Api-Key", canary, "Content-Type", "application/json")
	post := headerWith("Content-Type", "application/json", "Content-Length", strconv.Itoa(len(sampleBody)))
	want := map[string]received{
		"CoinNetworks":        {"GET", "/api/networks-coins", public, ""},                         // I-13, I-47
		"CoinNetwork":         {"GET", "/api/networks-coins/" + pairID, public, ""},               // I-14
		"CoinNetworkBySymbol": {"GET", "/api/networks-coins/USDT/Tron%20%28TRC20%29", public, ""}, // I-15
		"CoinNetworksOf":      {"GET", "/api/networks-coins/USDT", public, ""},                    // I-16
		"ExchangeRates":       {"GET", "/api/exchange-rate", public, ""},                          // I-18
		"Balance":             {"GET", "/api/balance/?coinSymbol=USDT", keyed, ""},                // I-19, I-30, I-101
		"CreateInvoice":       {"POST", "/api/invoice/create", post, sampleBody},                  // I-20, I-78, I-100
		"Withdrawal":          {"GET", "/api/withdrawal/inquiry/" + requestID, inquiry, ""},       // I-21, I-22, I-31, I-130
	}
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(s.status, s.body()))
			got, err := s.call(t.Context(), newClient(t, w.URL))
			require.NoError(t, err)
			assertInvariants(t, got, err)
			expected := want[s.name]
			expected.Target = prefix + expected.Target
			assert.Equal(t, expected, only(t, w))
		})
	}
}

// A public call has the key only with WithAPIKeyOnPublicCalls, and only if there is
// one; a call with the key in its body never has it in a header.
// I-32, I-34
func TestClient_Wire_keyOnPublicCalls(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(s.status, s.body()))
			_, err := s.call(t.Context(), newClient(t, w.URL, gateway.WithAPIKeyOnPublicCalls()))
			require.NoError(t, err)
			got := only(t, w)
			assert.NotContains(t, got.Target, canary)
			if s.write {
				assert.NotContains(t, got.Header, "X-Api-Key")
				assert.Equal(t, 1, strings.Count(got.Body, canary))
				return
			}
			assert.Equal(t, []string{canary}, got.Header["X-Api-Key"])
		})
	}
	t.Run("an empty key is not sent as an empty header", func(t *testing.T) {
		t.Parallel()
		w := serve(t, respond(200, enveloped(ratesJSON)))
		c, err := gateway.New(w.URL, "", gateway.WithoutAPIKey(), gateway.WithAPIKeyOnPublicCalls())
		require.NoError(t, err)
		_, err = c.ExchangeRates(t.Context())
		require.NoError(t, err)
		assert.NotContains(t, only(t, w).Header, "X-Api-Key")
	})
}

// I-2
func TestClient_Wire_baseURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, suffix, balance, listing string }{
		{"a prefix loses its final slash", "/a/b/", "/a/b/api/balance/", "/a/b/api/networks-coins"},
		{"escapes in a prefix are kept", "/a%20b%3F", "/a%20b%3F/api/balance/", "/a%20b%3F/api/networks-coins"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(200, enveloped("[]")))
			c := newClient(t, strings.TrimSuffix(w.URL, prefix)+tt.suffix)
			_, err := c.Balance(t.Context(), gateway.BalanceQuery{})
			require.NoError(t, err)
			_, err = c.CoinNetworks(t.Context())
			require.NoError(t, err)
			got := w.Requests()
			require.Len(t, got, 2)
			assert.Equal(t, tt.balance, got[0].Target)
			assert.Equal(t, tt.listing, got[1].Target)
		})
	}
}

// What is legal in an argument arrives as one segment of the path, unchanged.
// I-23, I-149
func TestClient_Wire_pathArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, argument, segment string }{
		{"spaces and parentheses", "Binance Smart Chain (BEP20)", "Binance%20Smart%20Chain%20%28BEP20%29"},
		{"a lower-case symbol stays so", "usdt", "usdt"}, // I-25
		{"letters beyond ASCII", "é世", "%C3%A9%E4%B8%96"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := strings.ReplaceAll(enveloped(pairJSON), pairID, tt.argument)
			w := serve(t, respond(200, body))
			c, ctx := newClient(t, w.URL), t.Context()
			_, err := c.CoinNetwork(ctx, tt.argument)
			require.NoError(t, err)
			_, err = c.CoinNetworksOf(ctx, tt.argument)
			require.NoError(t, err)
			_, err = c.CoinNetworkBySymbol(ctx, tt.argument, "n")
			require.NoError(t, err)
			_, err = c.CoinNetworkBySymbol(ctx, "s", tt.argument)
			require.NoError(t, err)
			_, _ = c.Withdrawal(ctx, tt.argument) // the response is no withdrawal
			var targets []string
			for _, r := range w.Requests() {
				targets = append(targets, strings.TrimPrefix(r.Target, prefix+"/api/"))
			}
			assert.Equal(t, []string{
				"networks-coins/" + tt.segment, "networks-coins/" + tt.segment, "networks-coins/" + tt.segment + "/n",
				"networks-coins/s/" + tt.segment, "withdrawal/inquiry/" + tt.segment,
			}, targets)
		})
	}
}

// Without a key the calls that need one fail before they are sent, and the
// others work.
// I-30, I-31, I-32, I-34
func TestClient_missingAPIKey(t *testing.T) {
	t.Parallel()
	needKey := map[string]bool{"Balance": true, "CreateInvoice": true, "Withdrawal": true}
	for _, s := range subjects() {
		t.Run("an empty key, "+s.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(s.status, s.body()))
			c, err := gateway.New(w.URL, "", gateway.WithoutAPIKey())
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
			_, err = s.call(t.Context(), c, gateway.WithAPIKey(canary), gateway.WithMerchant("a"))
			require.NoError(t, err, "a key for the call is enough, and the refusal left nothing behind")
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
			t.Run("a nil context", func(t *testing.T) {
				var none context.Context
				got, err := s.call(none, newClient(t, w.URL))
				assertRefused(t, err, s.op, "ctx", "must not be nil")
				assertInvariants(t, got, err)
			})
			t.Run("a nil client", func(t *testing.T) {
				got, err := s.call(t.Context(), nil)
				assertRefused(t, err, s.op, "client", "was not made by New")
				assertInvariants(t, got, err)
			})
			t.Run("a zero client", func(t *testing.T) {
				got, err := s.call(t.Context(), &gateway.Client{})
				assertRefused(t, err, s.op, "client", "was not made by New")
				assertInvariants(t, got, err)
			})
			assert.Empty(t, w.Requests())
		})
	}
}

// badPathTexts are some texts that are not one segment of a path. Package validate
// tests all rules.
var badPathTexts = []struct{ name, text, reason string }{
	{"nothing", "", "is required"},
	{"two dots", "..", "must not be a dot segment"},
	{"a dot", ".", "must not be a dot segment"},
	{"a line end", "a\r\nb", "control characters"},
	{"257 bytes", strings.Repeat("a", 257), "is longer than 256 bytes"},
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

// Row A14, an empty name of a network, is among these: it would ask for the
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
	t.Run("a name with characters that mean something in a URL stays one segment", func(t *testing.T) {
		t.Parallel()
		w := serve(t, respond(200, enveloped(pairJSON)))
		_, err := newClient(t, w.URL).CoinNetworkBySymbol(t.Context(), "../a?b#c%2F", "BSC/BEP20")
		require.NoError(t, err)
		assert.Equal(t, prefix+"/api/networks-coins/..%2Fa%3Fb%23c%252F/BSC%2FBEP20", only(t, w).Target)
	})
	t.Run("an empty network name on a lookup by symbol and network", func(t *testing.T) { // I-16
		t.Parallel()
		w := serve(t, respond(200, enveloped(pairJSON)))
		_, err := newClient(t, w.URL).CoinNetworkBySymbol(t.Context(), "USDT", "")
		assertRefused(t, err, "coin_network_by_symbol", "networkName", "is required")
		assert.Empty(t, w.Requests())
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
			{"a cancelled context", cancelled, context.Canceled},
			{"a deadline in the past", late, context.DeadlineExceeded},
			{"a deadline in the past, with a value", context.WithValue(late, contextKey{}, 1), context.DeadlineExceeded},
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
				assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
				assert.Equal(t, tt.want == context.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded))
				assert.Empty(t, w.Requests())
			})
		}
	}
}

type contextKey struct{}
