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
	"github.com/cryptogw/gateway/internal/testing/leak"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // clients warn of what the tests cause
	leak.Main(m)
}

func connect(gw *gatewaytest.Server, opts ...gateway.Option) *gateway.Client {
	client, err := gateway.New(gw.URL, gw.APIKey, opts...)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// answers is a RoundTripper that responds to every request with a result, of this Age.
type answers struct {
	result, age string
	requests    []*http.Request
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	a.requests = append(a.requests, req)
	body := `{"message":"Operation was successful.","meta":{},"result":` + a.result + `}`
	return &http.Response{
		StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}, "Age": {a.age}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func (a *answers) client(t testing.TB) *gateway.Client {
	t.Helper()
	client, err := gateway.New("https://gateway.example", "", gateway.WithoutAPIKey(), gateway.WithHTTPClient(&http.Client{Transport: a}))
	require.NoError(t, err)
	return client
}

// assertRefused asserts that err is the refusal of one argument, with this text after the operation.
func assertRefused(t testing.TB, err error, op, text string) {
	t.Helper()
	var refusal *gateway.ArgumentError
	require.ErrorAs(t, err, &refusal)
	assert.EqualError(t, err, "gateway: "+op+": "+text)
	assert.Equal(t, op, refusal.Operation)
	assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
	assert.False(t, gateway.SafeToRetry(err), "the same argument is refused again")
}

func dec(text string) decimal.Decimal { return decimal.RequireFromString(text) }

// rate is the rate of a coin; an empty text is a price that the response does not have.
func rate(coinSymbol, usd, eur string) gateway.Rate {
	price := func(text string) decimal.NullDecimal {
		if text == "" {
			return decimal.NullDecimal{}
		}
		return decimal.NewNullDecimal(dec(text))
	}
	return gateway.Rate{CoinSymbol: coinSymbol, USD: price(usd), EUR: price(eur)}
}

// pairOf is a pair of the listing. The identifier of its coin is the symbol in lower case.
func pairOf(id, coinSymbol, networkName string) gateway.CoinNetwork {
	coinID := strings.ToLower(coinSymbol)
	return gateway.CoinNetwork{
		ID: id, Depositable: true, Withdrawable: true, NetworkID: networkName, CoinID: coinID,
		Network: gateway.Network{ID: networkName, Name: networkName, IsActive: true},
		Coin:    gateway.Coin{ID: coinID, Name: coinSymbol, Symbol: coinSymbol, Precision: 8, IsActive: true},
	}
}
