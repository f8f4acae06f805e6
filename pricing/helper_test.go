package pricing_test

import (
	"io"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/internal/testing/leak"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // clients warn of what the tests cause
	leak.Main(m)
}

// connect returns a client of a stand-in.
func connect(gw *gatewaytest.Server, opts ...gateway.Option) *gateway.Client {
	client, err := gateway.New(gw.URL, gw.APIKey, opts...)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// A tripper is a RoundTripper in one function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// through returns a client that tries once, with the canary key and this transport.
func through(t testing.TB, trip tripper) *gateway.Client {
	t.Helper()
	client, err := gateway.New("https://gateway.example", invariant.Key, gateway.WithAPIKeyOnPublicCalls(),
		gateway.WithHTTPClient(&http.Client{Transport: trip}), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))
	require.NoError(t, err)
	return client
}

// reply is a response as a RoundTripper returns it.
func reply(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// assertRefused asserts that err is the refusal of one argument.
func assertRefused(t testing.TB, err error, op, name, reason string) {
	t.Helper()
	var refusal *gateway.ArgumentError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, op, refusal.Operation)
	assert.Equal(t, name, refusal.Name)
	assert.Contains(t, refusal.Reason, reason)
	assert.NotEmpty(t, refusal.Reason)
	assert.Equal(t, "gateway: "+op+": "+name+": "+refusal.Reason, err.Error())
	assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
	assert.False(t, gateway.SafeToRetry(err), "the same argument is refused again")
}

// rateOf is a price of a coin.
func rateOf(text string) decimal.NullDecimal {
	return decimal.NewNullDecimal(decimal.RequireFromString(text))
}

// pairOf is a pair of the listing.
func pairOf(id, coinSymbol, networkName string) gateway.CoinNetwork {
	return gateway.CoinNetwork{
		ID: id, Depositable: true, Withdrawable: true, NetworkID: networkName, CoinID: coinSymbol,
		Network: gateway.Network{ID: networkName, Name: networkName, IsActive: true},
		Coin:    gateway.Coin{ID: coinSymbol, Name: coinSymbol, Symbol: coinSymbol, Precision: 8, IsActive: true},
	}
}
