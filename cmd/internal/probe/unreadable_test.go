package probe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// A response that cannot be decoded is described as far as possible.
func TestRun_unreadable(t *testing.T) {
	for _, tt := range []struct {
		name   string
		path   string
		status int
		body   string
		shape  string // "" for none
		unread string
	}{
		{"a page of HTML", pathRates, 200, "<html>It works!</html>", "", "not understood"},
		{"an empty body", pathRates, 200, "", "", "the body is empty"},
		{"truncated JSON", pathRates, 200, enveloped(ratesJSON)[:60], "", "not understood"},
		{"more after the end", pathRates, 200, enveloped(ratesJSON) + "{", "array of 1 record (eur string, symbol string, usd string)", "there is more after the end"},
		{"a name twice", pathByID, 200, enveloped(strings.Replace(pairJSON, `"swapFee"`, `"swapFee":"1","swapFee"`, 1)), "one record", "duplicate"},
		{"no envelope", pathListing, 200, "[" + pairJSON + "]", "array of 1 record, without the envelope", "is an array, not an object"},
		{"no envelope around a record", pathByID, 200, pairJSON, "one record, without the envelope", "/result: is missing"},
		{"no envelope, and more after the end", pathListing, 200, "[" + pairJSON + "]<!-- -->", "", "not understood"},
		{"another envelope", pathListing, 200, `{"success":true,"data":[` + pairJSON + `]}`, "unknown (data array, success boolean), without the envelope", "/result: is missing"},
		{"another envelope in the envelope", pathListing, 200, enveloped(`{"items":[` + pairJSON + `],"total":1}`), "unknown (items array, total number)", "/result: is an object, not an array"},
		{"no record", pathByID, 200, enveloped(`"Tron"`), "unknown (string)", `/result: "Tron" is text, not an object`},
		{"null", pathByID, 200, enveloped(`null`), "unknown (null)", "/result: is null"},
		{"rates by symbol and in one currency", pathRates, 200, enveloped(`{"BTC":"64000","USDT":1}`), "map by symbol of 2 coins (number or string)", `/result/BTC: "64000" is text, not a record of rates`},
		{"rates under other names", pathRates, 200, enveloped(`[{"ticker":"BTC","price":"64000"}]`), "array of 1 record (price string, ticker string)", "names no coin"},
		{"rates by symbol under other names", pathRates, 200, enveloped(`{"BTC":{"price":"64000"}}`), "unknown (BTC object)", `"BTC" has no USD rate`},
		{"rates in another object", pathRates, 200, enveloped(`{"rates":[]}`), "unknown (rates array)", "/result/rates"},
		{"a balance under another name", pathBalance, 200, enveloped(`[{"symbol":"BTC","total":"1"}]`), "array of 1 record (symbol string, total string)", "has no balance, amount or available"},
		{"an error with a status of success", pathRates, 200, `{"message":"No rates today.","result":[],"meta":{}}`, "", "No rates today."},
		{"a refusal", pathWithdrawal, 404, `{"message":"Not Found","result":[],"meta":{}}`, "", `gateway: withdrawal: 404: "Not Found"`},
		{"a refusal for lack of a key", pathRates, 401, `{"message":"x-api-key header is required","result":[],"meta":{}}`, "", "x-api-key header is required"},
		{"a record in another", pathWithdrawal, 201, enveloped(`{"data":` + withdrawalJSON + `}`), "unknown (data object)", "/result/status: is missing"},
		{"a redirect", pathRates, 302, "", "", "redirect"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call, r := probed(t, tt.path, response{tt.path, tt.status, tt.body})
			require.Error(t, r.Err())
			assert.Positive(t, r.Unread)
			assert.Contains(t, call.Error, tt.unread)
			assert.Equal(t, tt.status, call.Status)
			if tt.shape == "" {
				assert.Nil(t, call.Shape)
				assert.Empty(t, call.Findings)
				return
			}
			require.NotNil(t, call.Shape)
			assert.Equal(t, tt.shape, call.Shape.String())
		})
	}
}

// A listing that the client cannot read still provides what to look up.
func TestRun_goesOn(t *testing.T) {
	broken := with(t, pairJSON, `"swapFee":"0.5",`, "")
	r := report(t, serve(t, response{pathListing, 200, enveloped("[" + broken + "]")}), requestID)
	require.EqualError(t, r.Err(), "the gateway differs from the interface: 1 difference")
	assert.Equal(t, 1, r.Unread)
	for _, call := range r.Calls[1:] {
		assert.Empty(t, call.Error)
		assert.Empty(t, call.Skipped)
	}
}

// Without a pair there are no lookups; a balance may still name a coin.
func TestRun_nothingToLookUp(t *testing.T) {
	r := report(t, serve(t, response{pathListing, 200, enveloped("[]")}))
	require.NoError(t, r.Err())
	skipped := []string{}
	for _, call := range r.Calls {
		skipped = append(skipped, call.Skipped)
	}
	assert.Equal(t, []string{
		"", "no earlier response has an id to request", "no earlier response has a coin and a network to request",
		"no earlier response has a coin to request", "", "", "", "name a withdrawal",
	}, skipped)

	r = report(t, serve(t, response{pathListing, 200, enveloped("[]")}, response{pathBalance, 200, enveloped(`"0"`)}))
	require.EqualError(t, r.Err(), "1 response could not be read", "it is not known of which coin it is")
	assert.Equal(t, "bare amount (string)", r.Calls[5].Shape.String())
	assert.Equal(t, "no earlier response has a coin to request", r.Calls[6].Skipped)

	r = report(t, serve(t, response{pathBalance, 200, enveloped(`"5"`)}))
	assert.Empty(t, r.Calls[6].Skipped, "the balance names no coin, but the listing does")
}

// A gateway that does not listen.
func TestRun_noResponse(t *testing.T) {
	gw := gatewaytest.NewServer()
	gw.Close()
	r := report(t, gw)
	require.EqualError(t, r.Err(), "3 responses could not be read")
	assert.Len(t, r.Verdict.NotAsked, 8)
	assert.Contains(t, r.Calls[4].String(), "GET /api/exchange-rate\n  no response in ")
	assert.Contains(t, r.Calls[4].String(), "and 3 attempts\n  could not be read: gateway: exchange_rates: dial: ")
}

// A service that repeats the key, in a text, in a name or in place of a response.
func TestRun_echo(t *testing.T) {
	for _, body := range []string{
		`{"message":"` + key + `","result":[{"` + key + `":"` + key + `","symbol":"` + key + `","usd":"1","eur":"1"}],"` + key + `":1,"meta":{"` + key + `":1}}`,
		`{"` + key + `":"` + key + `"}`,
		`{"result":{"` + key + `":"` + key + `","` + key + `":"` + key + `"}}`,
		"key " + key,
	} {
		gw := serve(t, response{pathRates, 200, body}, response{pathBalance, 200, body}, response{pathWithdrawal, 201, body})
		text := printed(report(t, gw, requestID))
		assert.Contains(t, text, "[REDACTED]")
		assert.NotContains(t, text, key)
	}
}

// Names from the service cannot control a terminal or fill it.
func TestRun_hostileNames(t *testing.T) {
	names := strings.Builder{}
	for i := range 300 {
		names.WriteString(`"` + strings.Repeat("x", 1000+i) + `\u001b[2J\n":1,`)
	}
	body := enveloped(`[{` + names.String() + `"symbol":"USDT","usd":1,"eur":1}]`)
	gw := serve(t, response{pathRates, 200, body}, response{pathBalance, 200, strings.Replace(body, "result", "\\u001b]0;", 1)})
	r := report(t, gw)
	require.Error(t, r.Err())
	text := printed(r)
	assert.NotContains(t, text, "\x1b")
	assert.Less(t, len(text), 100_000)
	assert.Equal(t, 100, strings.Count(text, "\n  unknown field "))
}

// printed returns a report as text.
func printed(r Report) string {
	var text strings.Builder
	for _, call := range r.Calls {
		text.WriteString(call.String())
	}
	return text.String() + r.Verdict.String()
}
