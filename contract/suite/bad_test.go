package suite_test

import (
	"bytes"
	"io"
	"net/http"
	"regexp"

	"github.com/cryptogw/gateway/contract/suite"
	"github.com/cryptogw/gateway/gatewaytest"
)

// A badGateway does something wrong, and at least these cases say so.
type badGateway struct {
	name     string
	spoil    spoiler
	caughtBy []string
}

func badGateways() []badGateway {
	refuse := gatewaytest.Refuse(400, "no")
	return []badGateway{
		{"another text of success", answering(replaced("Operation was successful", "OK")), []string{envelope, asked}},
		{"a meta with something in it", answering(replaced(`"meta":\{\}`, `"meta":{"a":1}`)), []string{envelope, unlisted, noKey, noKeyToo, asked, lacking}},
		{"an error with a result", answering(replaced(`"result":\[\]`, `"result":null`)), []string{unlisted, noKey, noKeyToo, lacking}},
		{"an error without a text", answering(replaced(`"message":"[^O][^"]*"`, `"message":""`)), []string{unlisted, noKey, noKeyToo, lacking}},
		{"names in upper case", answering(replaced(`"message"`, `"Message"`)), []string{unlisted, noKey, noKeyToo, lacking}},
		{"another text for a missing key", answering(replaced("x-api-key header is required", "no key")), []string{noKey, noKeyToo}},
		{"errors with the status of a success", answering(func(r *http.Response, body string) string {
			r.StatusCode = min(r.StatusCode, 201)
			return body
		}), []string{noKey, noKeyToo, lacking}},
		{"errors in plain text", answering(func(r *http.Response, body string) string {
			if r.StatusCode >= 400 {
				return "no"
			}
			return body
		}), []string{unlisted, noKey, noKeyToo, lacking}},

		{"a record without its fee", answering(replaced(`"swapFee":"[^"]*",`, "")), []string{records}},
		{"a fee that is a number", answering(replaced(`"swapFee":"([^"]*)"`, `"swapFee":$1`)), []string{records}},
		{"a minimum of too few digits", answering(replaced(`("minAmount":"[^"]*)0"`, `$1"`)), []string{records}},
		{"a symbol in lower case", answering(replaced(`"symbol":"BTC"`, `"symbol":"btc"`)), []string{records}},
		{"times without a zone", answering(replaced(`\.000Z"`, `"`)), []string{records}},
		{"times of elsewhere", answering(replaced(`\.000Z"`, `+02:00"`)), []string{records}},
		{"an identifier that is no UUID", answering(replaced(`"id":"[^"]*"`, `"id":"17"`)), []string{records, once}},
		{"a flag that is a number", answering(replaced(`"isActive":true`, `"isActive":1`)), []string{records}},
		{"an identifier of another network", answering(replaced(`"networkId":"[^"]*"`, `"networkId":"17"`)), []string{ids}},
		{"a pair that is listed twice", func(gw *gatewaytest.Server, _ *suite.Target) {
			gw.SetCatalog(append(gw.Catalog(), gw.Catalog()[0]))
		}, []string{once}},

		{"a lookup that finds nothing", troubled(gatewaytest.OpCoinNetwork, refuse), []string{byID}},
		{"a lookup that finds another pair", asking(sent("networks-coins/.*-", "/gateway/api/networks-coins/USDT/Ethereum")), []string{byID}},
		{"a name that is not decoded", asking(undecoded), []string{bySymbol}},
		{"a symbol that is not looked up", troubled(gatewaytest.OpCoinNetworkBySymbol, refuse), []string{bySymbol, alone}},
		{"a symbol that finds another coin", asking(sent("networks-coins/[A-Z]+$", "/gateway/api/networks-coins/DOGE")), []string{alone}},
		{"a coin without a rate", func(gw *gatewaytest.Server, _ *suite.Target) { gw.SetRate("BTC", "", "") }, []string{rated}},
		{"rates that are not answered", troubled(gatewaytest.OpExchangeRates, refuse), []string{rated}},

		{"a balance that is not answered", troubled(gatewaytest.OpBalance, refuse), []string{anyBalance, own}},
		{"a balance that is no JSON", troubled(gatewaytest.OpBalance, gatewaytest.MalformedJSON()), []string{anyBalance, own, narrow}},
		{"a header that is spelled in one way", asking(picky), []string{anyBalance, anyInquiry}},
		{"a key that nobody asks for", func(gw *gatewaytest.Server, t *suite.Target) {
			asking(func(r *http.Request) { r.Header["X-Api-Key"] = []string{gw.APIKey} })(gw, t)
		}, []string{noKey, noKeyToo}},
		{"a success of another status", answering(func(r *http.Response, body string) string {
			r.StatusCode = min(r.StatusCode, 200)
			return body
		}), []string{asked}},
		{"a status of a withdrawal that is not listed", troubled(gatewaytest.OpWithdrawal, gatewaytest.DriftStatus()), []string{asked}},
		{"a withdrawal without its fee", answering(replaced(`"fee":"[^"]*",`, "")), []string{asked}},
		{"an amount that is a number", answering(replaced(`"amount":"([^"]*)"`, `"amount":$1`)), []string{asked}},

		{"no key as the sample has it", asking(posted(`"apiKey"`, `"key"`)), []string{sample, short}},
		{"no key as the table has it", asking(posted(`"apikey"`, `"key"`)), []string{table}},
		{"an invoice that needs a network", asking(posted(`("orderId":"[^"]*"),"amount"`, `$1,"amount":null,"amount"`)), []string{short}},
		{"a price that nobody asks for", asking(posted(`("orderId":"[^"]*")\}$`, `$1,"price":"1.00"}`)), []string{lacking}},
	}
}

// replaced changes a text in every answer.
func replaced(pattern, by string) func(*http.Response, string) string {
	compiled := regexp.MustCompile(pattern)
	return func(_ *http.Response, body string) string { return compiled.ReplaceAllString(body, by) }
}

// posted changes a text in every body that is sent.
func posted(pattern, by string) func(*http.Request) {
	compiled := regexp.MustCompile(pattern)
	return func(r *http.Request) {
		if r.Method != http.MethodPost {
			return
		}
		body, _ := io.ReadAll(r.Body)
		body = compiled.ReplaceAll(body, []byte(by))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
}

// sent sends what is asked of some paths to another one.
func sent(pattern, to string) func(*http.Request) {
	compiled := regexp.MustCompile(pattern)
	return func(r *http.Request) {
		if compiled.MatchString(r.URL.Path) {
			r.URL.Path, r.URL.RawPath = to, ""
		}
	}
}

// undecoded escapes a path once more.
func undecoded(r *http.Request) { r.URL.Path, r.URL.RawPath = r.URL.EscapedPath(), "" }

// picky knows the header by one spelling only.
func picky(r *http.Request) {
	delete(r.Header, "x-api-Key")
	delete(r.Header, "X-API-KEY")
}
