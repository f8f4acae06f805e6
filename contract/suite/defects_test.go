package suite_test

import (
	"bytes"
	"io"
	"net/http"
	"regexp"

	"github.com/cryptogw/gateway/contract/suite"
	"github.com/cryptogw/gateway/gatewaytest"
)

// A brokenGateway has a defect that at least these cases find.
type brokenGateway struct {
	name    string
	defect  defect
	foundBy []string
}

func brokenGateways() []brokenGateway {
	refuse := gatewaytest.FaultRefuse(400, "no")
	return []brokenGateway{
		{"another text of success", changeResponse(replaced("Operation was successful", "OK")), []string{envelope, asked}},
		{"a meta with something in it", changeResponse(replaced(`"meta":\{\}`, `"meta":{"a":1}`)), []string{envelope, unlisted, noKey, noKeyToo, asked, lacking}},
		{"an error with a result", changeResponse(replaced(`"result":\[\]`, `"result":null`)), []string{unlisted, noKey, noKeyToo, lacking}},
		{"an error without a text", changeResponse(replaced(`"message":"[^O][^"]*"`, `"message":""`)), []string{unlisted, noKey, noKeyToo, lacking}},
		{"names in upper case", changeResponse(replaced(`"message"`, `"Message"`)), []string{unlisted, noKey, noKeyToo, lacking}},
		{"another text for a missing key", changeResponse(replaced("x-api-key header is required", "no key")), []string{noKey, noKeyToo}},
		{"errors with the status of a success", changeResponse(func(r *http.Response, body string) string {
			r.StatusCode = min(r.StatusCode, 201)
			return body
		}), []string{noKey, noKeyToo, lacking}},
		{"errors in plain text", changeResponse(func(r *http.Response, body string) string {
			if r.StatusCode >= 400 {
				return "no"
			}
			return body
		}), []string{unlisted, noKey, noKeyToo, lacking}},

		{"a record without its fee", changeResponse(replaced(`"swapFee":"[^"]*",`, "")), []string{records}},
		{"a fee that is a number", changeResponse(replaced(`"swapFee":"([^"]*)"`, `"swapFee":$1`)), []string{records}},
		{"a minimum of too few digits", changeResponse(replaced(`("minAmount":"[^"]*)0"`, `$1"`)), []string{records}},
		{"a symbol in lower case", changeResponse(replaced(`"symbol":"BTC"`, `"symbol":"btc"`)), []string{records}},
		{"times without a zone", changeResponse(replaced(`\.000Z"`, `"`)), []string{records}},
		{"times of another zone", changeResponse(replaced(`\.000Z"`, `+02:00"`)), []string{records}},
		{"an identifier that is no UUID", changeResponse(replaced(`"id":"[^"]*"`, `"id":"17"`)), []string{records, once}},
		{"a boolean that is a number", changeResponse(replaced(`"isActive":true`, `"isActive":1`)), []string{records}},
		{"an identifier of another network", changeResponse(replaced(`"networkId":"[^"]*"`, `"networkId":"17"`)), []string{ids}},
		{"a pair that is listed twice", func(gw *gatewaytest.Server, _ *suite.Target) {
			gw.SetCatalog(append(gw.Catalog(), gw.Catalog()[0]))
		}, []string{once}},

		{"a lookup that finds nothing", faulty(gatewaytest.OpCoinNetwork, refuse), []string{byID}},
		{"a lookup that finds another pair", changeRequest(redirected("networks-coins/.*-", "/gateway/api/networks-coins/USDT/Ethereum")), []string{byID}},
		{"a name that is not decoded", changeRequest(undecoded), []string{bySymbol}},
		{"a symbol that is not looked up", faulty(gatewaytest.OpCoinNetworkBySymbol, refuse), []string{bySymbol, alone}},
		{"a symbol that finds another coin", changeRequest(redirected("networks-coins/[A-Z]+$", "/gateway/api/networks-coins/DOGE")), []string{alone}},
		{"a coin without a rate", func(gw *gatewaytest.Server, _ *suite.Target) { gw.SetRate("BTC", "", "") }, []string{rated}},
		{"rates that are refused", faulty(gatewaytest.OpExchangeRates, refuse), []string{rated}},

		{"a balance that is refused", faulty(gatewaytest.OpBalance, refuse), []string{anyBalance, own}},
		{"a balance that is no JSON", faulty(gatewaytest.OpBalance, gatewaytest.FaultMalformedJSON()), []string{anyBalance, own, narrow}},
		{"a header name that is case-sensitive", changeRequest(caseSensitive), []string{anyBalance, anyInquiry}},
		{"a key that is not required", func(gw *gatewaytest.Server, t *suite.Target) {
			changeRequest(func(r *http.Request) { r.Header["X-Api-Key"] = []string{gw.APIKey} })(gw, t)
		}, []string{noKey, noKeyToo}},
		{"a success of another status", changeResponse(func(r *http.Response, body string) string {
			r.StatusCode = min(r.StatusCode, 200)
			return body
		}), []string{asked}},
		{"a status of a withdrawal that is not listed", faulty(gatewaytest.OpWithdrawal, gatewaytest.FaultDriftStatus()), []string{asked}},
		{"a withdrawal without its fee", changeResponse(replaced(`"fee":"[^"]*",`, "")), []string{asked}},
		{"an amount that is a number", changeResponse(replaced(`"amount":"([^"]*)"`, `"amount":$1`)), []string{asked}},

		{"no key as the sample has it", changeRequest(posted(`"apiKey"`, `"key"`)), []string{sample, short}},
		{"no key as the table has it", changeRequest(posted(`"apikey"`, `"key"`)), []string{table}},
		{"an invoice that needs a network", changeRequest(posted(`("orderId":"[^"]*"),"amount"`, `$1,"amount":null,"amount"`)), []string{short}},
		{"a price that is not required", changeRequest(posted(`("orderId":"[^"]*")\}$`, `$1,"price":"1.00"}`)), []string{lacking}},
	}
}

// replaced changes a text in every response.
func replaced(pattern, by string) func(*http.Response, string) string {
	compiled := regexp.MustCompile(pattern)
	return func(_ *http.Response, body string) string { return compiled.ReplaceAllString(body, by) }
}

// posted changes a text in every request body.
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

// redirected sends the requests for some paths to another one.
func redirected(pattern, to string) func(*http.Request) {
	compiled := regexp.MustCompile(pattern)
	return func(r *http.Request) {
		if compiled.MatchString(r.URL.Path) {
			r.URL.Path, r.URL.RawPath = to, ""
		}
	}
}

// undecoded escapes a path once more.
func undecoded(r *http.Request) { r.URL.Path, r.URL.RawPath = r.URL.EscapedPath(), "" }

// caseSensitive accepts one spelling of the header only.
func caseSensitive(r *http.Request) {
	delete(r.Header, "x-api-Key")
	delete(r.Header, "X-API-KEY")
}
