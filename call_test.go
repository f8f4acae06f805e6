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
// I-2, I-4, I-5, I-27
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
	forEach(t, "with the key", func(t *testing.T, s subject) {
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

// Without a key the calls that need one fail before they are sent, and the
// others work.
// I-30, I-31, I-32, I-34
func TestClient_missingAPIKey(t *testing.T) {
	t.Parallel()
	needKey := map[string]bool{"Balance": true, "CreateInvoice": true, "Withdrawal": true}
	forEach(t, "without a key", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		c, err := gateway.New(w.URL, "", gateway.WithoutAPIKey())
		require.NoError(t, err)
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

// An argument arrives as one segment of the path, whatever is in it, or is refused. Package endpoint tests all texts.
// I-15, I-16, I-23, I-24, I-25, I-149
func TestClient_Wire_pathArguments(t *testing.T) {
	t.Parallel()
	for _, call := range []struct {
		name, op, argument, target string
		do                         func(ctx context.Context, c *gateway.Client, text string) (any, error)
	}{
		{"CoinNetwork", "coin_network", "id", "networks-coins/*", func(ctx context.Context, c *gateway.Client, text string) (any, error) {
			return c.CoinNetwork(ctx, text)
		}},
		{"CoinNetworkBySymbol, the symbol", "coin_network_by_symbol", "coinSymbol", "networks-coins/*/Tron", func(ctx context.Context, c *gateway.Client, text string) (any, error) {
			return c.CoinNetworkBySymbol(ctx, text, "Tron")
		}},
		{"CoinNetworkBySymbol, the network", "coin_network_by_symbol", "networkName", "networks-coins/USDT/*", func(ctx context.Context, c *gateway.Client, text string) (any, error) {
			return c.CoinNetworkBySymbol(ctx, "USDT", text)
		}},
		{"CoinNetworksOf", "coin_networks_of", "coinSymbol", "networks-coins/*", func(ctx context.Context, c *gateway.Client, text string) (any, error) {
			return c.CoinNetworksOf(ctx, text)
		}},
		{"Withdrawal", "withdrawal", "withdrawRequestId", "withdrawal/inquiry/*", func(ctx context.Context, c *gateway.Client, text string) (any, error) {
			return c.Withdrawal(ctx, text)
		}},
	} {
		for _, tt := range []struct{ name, text, segment, refuses string }{
			{"spaces and parentheses", "Binance Smart Chain (BEP20)", "Binance%20Smart%20Chain%20%28BEP20%29", ""},
			{"a lower-case symbol stays so", "usdt", "usdt", ""},
			{"letters beyond ASCII", "é世", "%C3%A9%E4%B8%96", ""},
			{"characters that mean something in a URL", "../a?b#c%2F", "..%2Fa%3Fb%23c%252F", ""},
			{"nothing, which would ask for something else", "", "", "is required"},
			{"two dots", "..", "", "must not be a dot segment"},
			{"a line end", "a\r\nb", "", "control characters"},
			{"257 bytes", strings.Repeat("a", 257), "", "is longer than 256 bytes"},
		} {
			t.Run(call.name+": "+tt.name, func(t *testing.T) {
				t.Parallel()
				w := serve(t, respond(404, ""))
				got, err := call.do(t.Context(), newClient(t, w.URL), tt.text)
				assertInvariants(t, got, err)
				if tt.refuses != "" {
					assertRefused(t, err, call.op, call.argument, tt.refuses)
					assert.Empty(t, w.Requests())
					return
				}
				require.ErrorIs(t, err, gateway.ErrNotFound)
				assert.Equal(t, prefix+"/api/"+strings.Replace(call.target, "*", tt.segment, 1), only(t, w).Target)
			})
		}
	}
}

// Every method refuses a nil context and a client that New has not made, and none panics.
func TestClient_badReceiverOrContext(t *testing.T) {
	t.Parallel()
	forEach(t, "nothing to send with", func(t *testing.T, s subject) {
		var none context.Context
		for _, tt := range []struct {
			ctx              context.Context
			client           *gateway.Client
			argument, reason string
		}{
			{none, newClient(t, "http://localhost", neverSends()), "ctx", "must not be nil"},
			{t.Context(), nil, "client", "was not made by New"},
			{t.Context(), &gateway.Client{}, "client", "was not made by New"},
		} {
			got, err := s.call(tt.ctx, tt.client)
			assertRefused(t, err, s.op, tt.argument, tt.reason)
			assertInvariants(t, got, err)
		}
	})
}

// A context that has ended is no wrong argument: a read is a transport error
// without an attempt, and an invoice is not sent.
func TestClient_endedContext(t *testing.T) {
	t.Parallel()
	forEach(t, "a context that has ended", func(t *testing.T, s subject) {
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancelLate := context.WithDeadline(t.Context(), time.Unix(1, 0))
		defer cancelLate()
		for ctx, want := range map[context.Context]error{cancelled: context.Canceled, late: context.DeadlineExceeded} {
			got, err := s.call(ctx, newClient(t, "http://localhost", neverSends()))
			assertInvariants(t, got, err)
			var failure *gateway.TransportError
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, gateway.PhaseStart, failure.Phase)
			assert.Zero(t, failure.Attempts)
			assert.Equal(t, notSent, gateway.OutcomeOf(err))
			for _, is := range []error{context.Canceled, context.DeadlineExceeded} {
				assert.Equal(t, want == is, errors.Is(err, is))
			}
		}
	})
}
