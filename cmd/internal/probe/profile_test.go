package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// currencies are those of the drawn gateways, as what replaces $N, $SYM, $NAME, $NET, $USD,
// $EUR and $HELD in their texts. None is one of gatewaytest's.
var currencies = [][]string{
	{"1", "QQT", "Quartz", "Quartz Main", "2.5", "2.25", "17.25"},
	{"2", "QQT", "Quartz", "Opal", "2.5", "2.25", "0.5"},
	{"3", "WWX", "Wolfram", "Wolfram Net", "1044.12", "990.01", "3"},
	{"4", "OOP", "Onyx", "Opal", "0.0004", "0.0003", "900001.000001"},
}

// about returns a text about a currency.
func about(currency []string, text string) string {
	return strings.NewReplacer(
		"$NAME", currency[2], "$NET", currency[3], "$N", currency[0], "$SYM", currency[1], "$sym", strings.ToLower(currency[1]),
		"$USD", currency[4], "$EUR", currency[5], "$HELD", currency[6],
	).Replace(text)
}

// all returns the texts about several currencies, between two brackets.
func all(brackets string, of [][]string, text string) string {
	var texts []string
	for _, currency := range of {
		texts = append(texts, about(currency, text))
	}
	return brackets[:1] + strings.Join(texts, ",") + brackets[1:]
}

// A drawnGateway is what a gateway responds, by the kind of a request: one of those that
// docs/interface.md leaves possible, or that differ from it. It is written as text, apart
// from gatewaytest.
type drawnGateway map[string]struct {
	status int
	body   string
}

func drawGateway(seed uint64) drawnGateway {
	random := rand.New(rand.NewPCG(seed, 25))
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	quoted := func(text string) string { // a text that has $Q around its numbers
		return strings.ReplaceAll(text, "$Q", one(`"`, ``))
	}
	symbol := one("$SYM", "$SYM", "$sym")
	times := one(`"created_at":"2023-05-14T09:21:43.000Z","updated_at":"2023-06-01T00:00:00.000Z"`,
		`"created_at":"2023-05-14T09:21:43+00:00","updated_at":"2023-06-01T00:00:00+00:00"`,
		`"created_at":1684056103`, `"created_at":"14.05.2023","updated_at":null`)
	coinID := one("5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f4$N", "5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f4$N", "coin$N")
	networkID := one("1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d3$N", "1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d3$N", "net$N")
	coin := `{"id":"` + coinID + `","name":"$NAME","symbol":"` + symbol + `","precision":` + one(`8`, `8`, `"8"`, `8.5`) +
		`,"minAmount":` + one(`"0.00000100"`, `"0.00000100"`, `"0.000001"`, `0.000001`) + `,"isActive":` + one(`true`, `true`, `1`) + `,` + times + `}`
	network := `{"id":"` + networkID + `","name":"$NET","isActive":true,` + times + `}`
	pair := `{"id":"` + one("7c9d6d0e-2f0f-4d7e-9a53-0d1f6f1c2b1$N", "7c9d6d0e-2f0f-4d7e-9a53-0d1f6f1c2b1$N", "pair$N") + `",` +
		one(quoted(`"withdrawalFee":$Q1.5$Q,"swapFee":$Q0.5$Q`), `"withdrawalFee":null,"swapFee":"free"`, `"withdrawalFee":"1.5"`) +
		quoted(`,"minWithdraw":$Q10.1$Q,"maxWithdraw":$Q100000.1$Q,"depositable":true,"withdrawable":true,`) +
		one(``, ``, `"logo":"https://cdn.invalid/q.png","tags":["a","b"],"limits":{"daily":5,"note":null},`) +
		`"confirmation":` + one(`20`, `20`, `"20"`) + `,"arrivalTime":5,"expirationTime":60,"networkId":"` + networkID + `","coinId":"` +
		one(coinID, coinID, "00000000-1c2b-4d3e-8f4a-9b0c1d2e3f4$N") + `",` + times + `,"network":` + network + `,"coin":` + coin + `}`
	onePair := about(currencies[0], one(pair, `[`+pair+`]`, `{"coinNetwork":`+pair+`}`, `{"data":[`+pair+`]}`))
	ofSymbol := one(all("[]", currencies[:2], pair), about(currencies[0], pair), all("[]", currencies[:2], pair), `{"items":`+all("[]", currencies[:2], pair)+`}`)

	distinct := [][]string{currencies[0], currencies[2], currencies[3]}
	fiats := []string{one("usd", "USD")}
	fiats = append(fiats, strings.Replace(strings.Replace(fiats[0], "usd", "eur", 1), "USD", "EUR", 1))
	rate := quoted(`"` + fiats[0] + `":$Q$USD$Q,"` + fiats[1] + `":$Q$EUR$Q`)
	fullRate := `{` + one(``, ``, `"gbp":1.25,`) + one(`"symbol":"`+symbol+`"`, `"coinSymbol":"`+symbol+`"`, `"currency":"`+symbol+`","weight":0.5`, `"coin":`+coin) + `,` + rate + `}`
	records := all("[]", distinct, fullRate)
	rates := one(records, records, `{"rates":`+records+`}`, all("{}", distinct, `"`+symbol+`":{`+rate+`}`),
		`{"`+fiats[0]+`":`+all("{}", distinct, `"`+symbol+`":$USD`)+`,"`+fiats[1]+`":`+all("{}", distinct, `"`+symbol+`":"$EUR"`)+`}`)

	amount := quoted(`"` + one("balance", "amount", "available") + `":$Q$HELD$Q`)
	balance := one(`{"coinSymbol":"`+symbol+`","networkName":"$NET","locked":"0.5",`+amount+`}`, `{"coin":`+coin+`,"network":`+network+`,`+amount+`}`)
	balances := one(all("[]", currencies, balance), all("[]", currencies, balance), all("{}", distinct, `"`+symbol+`":"$HELD"`), all("{}", distinct, `"`+symbol+`":{`+amount+`}`))
	oneBalance := about(currencies[0], one(balance, `[`+balance+`]`, quoted("$Q$HELD$Q"), `{"`+symbol+`":"$HELD"}`))

	withdrawal := `{` + one(``, ``, `"txid":null,`) + `"status":"` + one("PENDING", "COMPLETED", "pending", "SENT_OUT") +
		quoted(`","destination":"Tdest","amount":$Q25.5$Q,"fee":`) + one(`"1.5"`, `1.5`, `null`) +
		`,"coin":"QQT","network":"Opal","withdrawRequestId":"` + requestID + `"}`

	before := `{"message":` + one(`"Operation was successful."`, `"Operation was successful."`, `"All is well at Acme"`, `""`) + `,` + one(``, ``, ``, `"traceId":"0af7651916cd43dd","page":{"next":null,"total":3},`) + `"result":`
	after := `,"meta":` + one(`{}`, `{}`, `{"page":1}`, `[]`, `null`) + `}`
	g := drawnGateway{}
	bare, refuses, broken := one("rates", "one", "", "", ""), one("rates", "balance", "one", "withdrawal", "", "", ""), one("", "", "", "", "one")
	for kind, result := range map[string]string{
		"listing": all("[]", currencies, pair), "pair": onePair, "symbol": ofSymbol, "rates": rates, "balance": balances, "one": oneBalance, "withdrawal": withdrawal,
	} {
		response := g[kind]
		response.status, response.body = 200, before+result+after
		if kind == "withdrawal" {
			response.status = 200 + random.IntN(2)
		}
		switch kind {
		case bare:
			response.body = result
		case refuses:
			response.status = []int{400, 401, 403, 404, 451}[random.IntN(5)]
			response.body = one(`{"message":"not for Acme","result":[],"meta":{}}`, `<html>denied</html>`, `{"error":"denied"}`)
		case broken:
			response.body = "<html>"
		}
		g[kind] = response
	}
	return g
}

// ServeHTTP implements [http.Handler].
func (g drawnGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	segments := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
	kind := map[string]string{"exchange-rate": "rates", "balance": "balance", "withdrawal": "withdrawal", "networks-coins": "listing"}[segments[0]]
	switch {
	case kind == "balance" && r.URL.RawQuery != "":
		kind = "one"
	case kind == "listing" && len(segments) == 3, kind == "listing" && len(segments) == 2 && strings.HasSuffix(segments[1], "1"):
		kind = "pair"
	case kind == "listing" && len(segments) == 2:
		kind = "symbol"
	}
	w.WriteHeader(g[kind].status)
	_, _ = io.WriteString(w, g[kind].body)
}

// recorded probes a gateway and returns the report, and the profile as JSON.
func recorded(t *testing.T, url, apiKey, withdrawal string) (Report, []byte) {
	t.Helper()
	recorder := &Recorder{Base: http.DefaultTransport}
	p := &Probe{Withdrawal: withdrawal, Recorder: recorder}
	client, err := gateway.New(url, apiKey, gateway.WithObserver(p.Observer()), gateway.WithHTTPClient(&http.Client{Transport: recorder}))
	require.NoError(t, err)
	report := p.Run(t.Context(), client, url)
	profile, err := json.MarshalIndent(recorder.Profile, "", "  ")
	require.NoError(t, err)
	return report, profile
}

// inGeneral returns the lines of a verdict without what depends on the data: counts,
// places in a list, symbols, and quoted texts.
func inGeneral(v Verdict) string {
	var lines []string
	for i, part := range [][]Line{v.So, v.NotSo, v.Found, v.NotAsked} {
		for _, l := range part {
			text := fmt.Sprintf("%d %s", i, l)
			for _, rule := range [][2]string{
				{`of \d+ (record|coin)s?`, "of $1"},
				{`, \d+ times`, ""},
				{`/result/(\w+/)?(\d+|[A-Za-z]{3,4}|1INCH)(/|:|$)`, "/result/$1*$3"},
				{`/(data|items|rates)/\d+`, "/$1/*"},
				{`"(\\.|[^"\\])*"…?`, `"..."`},
				{`\b(integer|number), not string`, "number, not string"},
				{`\d+\.\d+`, "N"},
			} {
				text = regexp.MustCompile(rule[0]).ReplaceAllString(text, rule[1])
			}
			lines = append(lines, text)
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// Probing the stand-in of a profile gives the verdict of probing the gateway, for 24
// gateways that differ in what is not documented, and in what is. The profile of the stand-in is that
// profile again.
func TestProfile_24(t *testing.T) {
	t.Parallel()
	verdicts := map[string]bool{}
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			drawn := drawGateway(seed)
			server := httptest.NewServer(drawn)
			defer server.Close()
			report, profile := recorded(t, server.URL, key, requestID)
			for _, secret := range []string{key, requestID, "QQT", "qqt", "Quartz", "Opal", "17.25", "1044", "Tdest", "Acme", "0af7", "cdn", "7c9d6d0e", "pair1", "coin1"} {
				assert.NotContains(t, strings.ReplaceAll(string(profile), "All is well at Acme", "the message"), secret)
			}

			read, err := gatewaytest.ReadProfile(bytes.NewReader(profile))
			require.NoError(t, err)
			standIn := gatewaytest.NewServer(gatewaytest.WithProfile(read))
			defer standIn.Close()
			again, profileAgain := recorded(t, standIn.URL, standIn.APIKey, standIn.Withdrawals()[0].WithdrawRequestID)
			assert.Equal(t, inGeneral(report.Verdict), inGeneral(again.Verdict))
			assert.Equal(t, string(profile), string(profileAgain))
			verdicts[inGeneral(report.Verdict)] = true
		})
	}
	assert.Len(t, verdicts, 24, "no two of the gateways are alike")
}
