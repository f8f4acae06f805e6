package probe

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A profile names the members that the client cannot find, where only one can be meant.
func TestRun_members(t *testing.T) {
	const notNamed = "the profile does not name the members"
	many := `"code":[{"code":"USDT","rate":1}],` + strings.Repeat(`"deep":{"code":[{"code":"USDT","rate":1}],`, 500) + `"end":1` + strings.Repeat("}", 500)
	long := strings.Repeat(`{"from":"TRX","to":"EUR","course":"0.1"},`, 400)
	for name, tt := range map[string]struct {
		path, result string
		want         string // of the profile, beside its routes
		says         string // in the report
	}{
		"a record for each coin and currency": {
			pathRates, `[{"from":"USDT","to":"USD","course":"1.0001"},{"from":"usdt","to":"eur","course":0.92}]`,
			`"rates":{"coin":"/from","currency":"/to","price":"/course"},`, `"rates":{"coin":"/from","currency":"/to","price":"/course"}`,
		},
		"further currencies, which the client skips": {
			pathRates, `[{"from":"USDT","to":"USD","course":"1.0001"},{"from":"USDT","to":"TRX","course":9.5}]`,
			`"rates":{"coin":"/from","currency":"/to","price":"/course"},`, "the profile names the members",
		},
		"more of them than an error has": {
			pathRates, `[` + long + `{"from":"USDT","to":"USD","course":"1.0001"}]`,
			`"rates":{"coin":"/from","currency":"/to","price":"/course"},`, "the profile names the members",
		},
		"one of them is odd, and one is null": {
			pathRates, `{"data":[{"asset":{"code":"USDT"},"fiat":"USD","price":1},{"asset":{"code":"TRX"},"fiat":"USD","price":null},{"note":"no rate"},null,{"asset":{"code":"TRX"},"fiat":"EUR","price":1},{"asset":{"code":"USDT"},"fiat":"EUR","price":1}]}`,
			`"rates":{"list":"/data","coin":"/asset/code","currency":"/fiat","price":"/price"},`, "the profile names the members",
		},
		"two members have the coin": {
			pathRates, `[{"from":"USDT","base":"TRX","to":"USD","course":"1.0001"}]`,
			``, notNamed + `; write "rates" into it by hand, or use a decoder. In the list "" these can be the coin: ["/base" "/from"], the amount: ["/course"], its currency: ["/to"].`,
		},
		"the listing has not every coin": {
			pathRates, `[{"from":"USDT","to":"USD","course":"1.0001"},{"from":"DOGE","to":"USD","course":"0.1"}]`,
			``, `these can be the coin: [], the amount: ["/course"], its currency: ["/to"].`,
		},
		"prices in another currency": {
			pathRates, `[{"from":"USDT","to":"GBP","course":"1.0001"}]`,
			``, `its currency: []`,
		},
		"names that are data": {
			pathRates, `[{"From":"USDT","to":"USD","course":"1.0001"}]`,
			``, `the coin: []`,
		},
		"the price of a currency in coins": {
			pathRates, `[{"from":"EUR","to":"USDT","course":"1.08"},{"from":"EUR","to":"TRX","course":"9"}]`,
			``, notNamed + `; write "rates" into it by hand, or use a decoder. In the list "" these can be the coin: ["/to"], the amount: ["/course"], its currency: ["/from"].`,
		},
		"the same under other names": {
			pathRates, `{"list":[{"base_currency":"USD","quote":{"code":"USDT"},"rate":"0.9"}]}`,
			``, `these can be the coin: ["/quote/code"]`,
		},
		"a price beside what is none": {
			pathRates, `[{"base":"USDT","quote":"USD","price":"1.0001","volume24h":"123"}]`,
			`"rates":{"coin":"/base","currency":"/quote","price":"/price"},`, "the profile names the members",
		},
		"two that can be the price": {
			pathRates, `[{"base":"USDT","quote":"USD","price":"1.0001","last":"1.0002"}]`,
			``, `the amount: ["/last" "/price"]`,
		},
		"what is no price": {
			pathRates, `[{"ticker":"USDT","currency":"USD","volume":"123"}]`,
			``, `these can be the coin: ["/ticker"], the amount: ["/volume"], its currency: ["/currency"].`,
		},
		"rates on the first page": {
			pathRates, `{"items":[{"from":"USDT","to":"USD","course":"1.0001"}],"total":250,"page":1}`,
			``, notNamed + `; write "rates" into it by hand, or use a decoder. "" has counters, as a page of a list has.`,
		},
		"a balance that is none": {
			pathBalance, `[{"asset":"USDT","frozen":"9"},{"asset":"TRX","frozen":"1"}]`,
			``, `these can be the coin: ["/asset"], the amount: ["/frozen"].`,
		},
		"a balance that is a debt": {
			pathBalance, `{"items":[{"ticker":"USDT","debt":"5"},{"ticker":"TRX","debt":"1"}]}`,
			``, `the amount: ["/debt"].`,
		},
		"a page of a balance": {
			pathBalance, `{"data":{"items":[{"ticker":"USDT","balance":"5"}],"total":250,"page":1,"pages":3}}`,
			``, `"/data" has counters, as a page of a list has.`,
		},
		"counters beside the result": {
			pathBalance, `{"items":[{"ticker":"USDT","balance":"5"}]},"total":250`,
			``, "The envelope has counters, as that of a page of a list has.",
		},
		"lists without end": {
			pathRates, `{` + many + `}`,
			``, `In the list "/deep/deep/code"`,
		},
		"no list": {
			pathRates, `{"BTC":"64000"}`,
			``, notNamed + `; write "rates" into it by hand, or use a decoder.`,
		},
		"a balance in two wrappers": {
			pathBalance, `[{"balance":{"merchant":[{"uuid":"8b03432e","balance":"1.5","currency_code":"USDT"}],"user":[]}}]`,
			`"balance":{"list":"/0/balance/merchant","coin":"/currency_code","amount":"/balance"},`, "the profile names the members",
		},
		"a balance that is one of two lists": {
			pathBalance, `[{"balance":{"merchant":[{"balance":"1.5","currency_code":"USDT"}],"user":[{"balance":"9","currency_code":"USDT"}]}}]`,
			``, `In the list "/0/balance/merchant" these can be the coin: ["/currency_code"], the amount: ["/balance"]. In the list "/0/balance/user" these`,
		},
		"a balance whose networks are those of the listing": {
			pathBalance, `{"rows":[{"code":"USDT","chain":"tron","free":"1.5"}]}`,
			`"balance":{"list":"/rows","coin":"/code","network":"/chain","amount":"/free"},`, "the profile names the members",
		},
		"a balance in which one record is null, and one amount": {
			pathBalance, `[{"coinSymbol":"USDT","balance":"1.5"},null,{"coinSymbol":"TRX","balance":null}]`,
			``, "",
		},
		"rates that the client reads":     {pathRates, ratesJSON, ``, ""},
		"a balance that the client reads": {pathBalance, balanceJSON, ``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			listing := with(t, pairJSON, `"symbol":"USDT"`, `"symbol":"TRX"`)
			gw := serve(t, response{pathListing, 200, enveloped("[" + pairJSON + "," + listing + "]")}, response{tt.path, 200, enveloped(tt.result)})
			r, profile := recorded(t, gw.URL, gw.APIKey, requestID)
			assert.Equal(t, tt.want, beforeRoutes(t, profile))
			said := fmt.Sprint(r.Verdict.Found)
			assert.Contains(t, said, tt.says)
			assert.Less(t, len(said), 20_000)
			assert.Equal(t, tt.says != "", strings.Contains(said, "the profile"))
			assert.Equal(t, tt.says != "", r.Unread > 0)
			assert.Empty(t, r.Verdict.NotSo)
			for _, value := range []string{"1.0001", "0.92", "TRX", "8b03432e", "64000"} {
				assert.NotContains(t, string(profile), value)
			}
		})
	}
}

// beforeRoutes returns what a profile has beside its version and its routes.
func beforeRoutes(t *testing.T, profile []byte) string {
	t.Helper()
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	require.NoError(t, encoder.Encode(json.RawMessage(profile)))
	before, _, found := strings.Cut(text.String(), `"routes":`)
	require.True(t, found)
	return strings.TrimPrefix(before, `{"version":1,`)
}

// The message of a success is recorded if all successes have it. In any weather the probe goes on.
func TestRun_successMessage(t *testing.T) {
	const ok, named = "OK, \u202ethanks", `"successMessage":"` + "OK, \u202ethanks" + `",`
	odd := `{"message":"` + ok + `","result":` + `[` + pairJSON + `,` + with(t, pairJSON, `"maxWithdraw":"100000"`, `"maxWithdraw":null`) + `],"meta":{}}`
	answers := func(except string) (all []response) {
		for _, path := range paths() {
			a := response{path, 200, strings.Replace(enveloped(map[string]string{
				pathListing: `[` + pairJSON + `]`, pathByID: pairJSON, pathByNetwork: pairJSON, pathBySymbol: pairJSON,
				pathRates: ratesJSON, pathBalance: balanceJSON, pathOneBalance: balanceJSON, pathWithdrawal: withdrawalJSON,
			}[path]), "Operation was successful.", ok, 1)}
			if path == except {
				a.body = strings.Replace(a.body, ok, "Done.", 1)
			}
			all = append(all, a)
		}
		return all
	}
	for name, tt := range map[string]struct {
		responses []response
		want      string
		says      string
	}{
		"it is the documented one": {nil, ``, ""},
		"every success has it":     {answers(""), named, `each success: has the message "OK, \u202ethanks", which the profile has (I-44)`},
		"a coin is odd":            {append(answers(""), response{pathListing, 200, odd}), named, "which the profile has"},
		"a refusal has another":    {append(answers(""), response{pathRates, 500, `{"message":"no","result":[],"meta":{}}`}), named, "which the profile has"},
		"a success has another":    {answers(pathRates), ``, "each success: has another message, so that the profile has none (I-44)"},
		"it is too long":           {[]response{{pathRates, 200, strings.Replace(enveloped(ratesJSON), "Operation", strings.Repeat("x", 300), 1)}}, ``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, profile := recorded(t, serve(t, tt.responses...).URL, key, requestID)
			assert.Equal(t, tt.want, beforeRoutes(t, profile))
			assert.Len(t, r.Calls, 8)
			said := fmt.Sprint(r.Verdict.Found)
			assert.Contains(t, said, tt.says)
			assert.Equal(t, tt.says != "", strings.Contains(said, "each success"))
		})
	}
}
