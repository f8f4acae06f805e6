package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// answers runs a command against a gateway whose results are these, by the ends of paths.
func answers(t *testing.T, results map[string]string, args ...string) outcome {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for end, result := range results {
			if strings.HasSuffix(r.URL.Path, end) {
				_, _ = io.WriteString(w, `{"message":"Operation was successful.","meta":{},"result":`+result+`}`)
			}
		}
	}))
	t.Cleanup(server.Close)
	setenv(t, nil)
	t.Setenv("GATEWAY_BASE_URL", server.URL)
	t.Setenv("GATEWAY_API_KEY", "key-of-the-merchant")
	var stdout, stderr strings.Builder
	code := run(t.Context(), args, cli.Console{Out: &stdout, Err: &stderr})
	return outcome{code, stdout.String(), stderr.String()}
}

// What was left out of a balance makes the command fail, after what it has printed.
func TestBalance_leftOut(t *testing.T) {
	results := map[string]string{"/balance/": `{"USDT":"5","BTC":null}`}
	assert.Equal(t, outcome{
		cli.ExitFailed, "COIN  NETWORK  AMOUNT\nUSDT           5\n",
		"left out: BTC: /result/BTC: is null, not an amount\nthe balance is not all of it: amounts were left out\n",
	}, answers(t, results, "balance"))
	got := answers(t, results, "balance", "-o", "json")
	assert.JSONEq(t, `[{"coinSymbol":"USDT","networkName":"","amount":"5"}]`, got.stdout)
	first, second, _ := strings.Cut(got.err, "\n")
	assert.JSONEq(t, `{"leftOut":{"pointer":"/result/BTC","coinSymbol":"BTC","networkName":"","reason":"is null, not an amount"}}`, first)
	assert.Contains(t, second, `"error"`)
	got = answers(t, map[string]string{"/balance/": `[{"balance":"250.5","currency_code":"USDT"},{"balance":"1","currency_code":"BTC"}]`}, "balance")
	assert.Equal(t, cli.ExitFailed, got.code)
	assert.Empty(t, got.stdout)
	assert.Contains(t, got.err, "names no coin; another form is read by the file of GATEWAY_PROFILE")
}

// A profile reads what the command alone cannot.
func TestBalance_profile(t *testing.T) {
	profile := t.TempDir() + "/profile.json"
	require.NoError(t, os.WriteFile(profile, []byte(`{"version":1,"balance":{"coin":"/currency_code","amount":"/balance"},"routes":{}}`), 0o600))
	t.Setenv("GATEWAY_PROFILE", profile)
	got := answers(t, map[string]string{"/balance/": `[{"balance":"250.5","currency_code":"USDT"}]`}, "balance")
	assert.Equal(t, outcome{stdout: "COIN  NETWORK  AMOUNT\nUSDT           250.5\n"}, got)
}

// One odd pair or rate costs itself, and stderr has why.
func TestQuote_leftOut(t *testing.T) {
	pair := func(id, symbol, most string) string {
		return `{"id":"` + id + `","withdrawalFee":"1","swapFee":"0","minWithdraw":"1","maxWithdraw":` + most + `,"depositable":true,"withdrawable":true,` +
			`"confirmation":1,"arrivalTime":1,"expirationTime":1,"networkId":"n","coinId":"c","network":{"id":"n","name":"N","isActive":true},` +
			`"coin":{"id":"c","name":"C","symbol":"` + symbol + `","precision":2,"minAmount":"0.01","isActive":true}}`
	}
	results := map[string]string{
		"/networks-coins": `[` + pair("1", "BTC", "null") + `,` + pair("2", "USDT", `"9"`) + `,` + pair("3", "ETH", `"9"`) + `]`,
		"/exchange-rate":  `[{"symbol":"ETH","usd":"2","eur":"1"},{"symbol":"USDT","usd":"1.0001","eur":"1"},{"symbol":"USDT","usd":"0.9999","eur":"1"}]`,
	}
	const oddPair = "left out: BTC on N: /result/0/maxWithdraw: is null, not an amount\n"
	const oddRate = "left out: USDT: /result/2/usd: \"0.9999\" is another USD rate than 1.0001 before it\n"
	assert.Equal(t, outcome{stdout: "COIN  NETWORK  AMOUNT\nETH   N        5.25\n", err: oddPair + oddRate}, answers(t, results, "quote", "10.50"))
	got := answers(t, results, "quote", "10.50", "--all")
	assert.Contains(t, got.stdout, `of "USDT" in usd was left out: /result/2/usd: "0.9999" is another USD rate than 1.0001 before it`)
	got = answers(t, results, "coins")
	assert.Zero(t, got.code)
	assert.Equal(t, oddPair, got.err)
	assert.NotContains(t, got.stdout, "BTC")
	assert.Equal(t, oddRate, answers(t, results, "rates").err)
	assert.Equal(t, oddRate, answers(t, results, "rates", "--coin", "USDT").err)
	assert.Empty(t, answers(t, results, "rates", "--coin", "ETH").err)
	results["/networks-coins"] = `[` + pair("3", "ETH", `"9"`) + `,` + pair("3", "ETH", "null") + `]`
	assert.NotContains(t, answers(t, results, "quote", "10.50").stdout, "5.25", "it is listed twice, and one cannot be read")
}
