package gatewaytest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// exchange is a response to the exchange rates.
func exchange(status int, body string) gatewaytest.Exchange {
	return gatewaytest.Exchange{Operation: gatewaytest.OpExchangeRates, Status: status, Body: []byte(body)}
}

// withProfile returns a server that responds as in an exchange.
func withProfile(t *testing.T, exchanges ...gatewaytest.Exchange) *gatewaytest.Server {
	t.Helper()
	var p gatewaytest.Profile
	for _, e := range exchanges {
		require.NoError(t, p.Record(e))
	}
	s := gatewaytest.NewServer(gatewaytest.WithProfile(p))
	t.Cleanup(s.Close)
	s.SetState(gatewaytest.Seed{Rates: []gatewaytest.Rate{{Symbol: "BTC", USD: "64250.18", EUR: "59310"}, {Symbol: "LTC", USD: "71.08"}}})
	return s
}

// A profile has the kinds of the values and not the values.
func TestProfile_MarshalJSON(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, form string }{
		"documented members":       {`[{"symbol":"QQT","usd":"1.5"}]`, `[{"symbol":"upper","usd":"decimal"}]`},
		"a member of some records": {`[{"usd":1},{"usd":2,"eur":"-"},{"usd":null}]`, `[{"usd":"null or number","eur?":"text"}]`},
		"a map by symbol":          {`{"QQT":{"usd":1},"btc":{"usd":1.5}}`, `{"*":{"usd":"number"}}`},
		"a map by currency":        {`{"usd":{"QQT":"1"},"eur":{},"gbp":{"QQT":1}}`, `{"usd":{"*":"decimal"},"eur":{},"gbp":{"*":"number"}}`},
		"what is not documented":   {`[{"usd":1,"isNew":true,"Acme 17":{"a":[1,2.5]},"acme":"Acme","note":"Acme"}]`, `[{"usd":"number","isNew":"boolean","*":{"|":["text",{"a":["integer or number"]}]},"note":"text"}]`},
		"an array and an object":   {`[[],{"usd":""}]`, `[{"|":[{"usd":"empty"},[]]}]`},
		"records under other names": {
			`[{"from":"QQT","to":"usd","course":"1.5","kind":"Spot price"},{"from":"qQt","to":"eur","course":2.5,"kind":null}]`,
			`[{"from":"text or upper","to":"lower","course":"decimal or number","kind":"null or text"}]`,
		},
		"a record under other names": {`{"asset":"QQT","free":"1.5"}`, `{"asset":"upper","free":"decimal"}`},
		"a list in two wrappers":     {`[{"balance":{"merchant":[{"code":"QQT"}],"user":[]}}]`, `[{"balance":{"merchant":[{"code":"upper"}],"user":[]}}]`},
		"a page":                     {`{"items":[{"code":"QQT"}],"total":1,"page":1}`, `{"items":[{"code":"upper"}],"total":"integer","page":"integer"}`},
		"no envelope, but a number":  {`17`, `"number"`},
		"not JSON":                   {`<html>`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p gatewaytest.Profile
			require.NoError(t, p.Record(exchange(200, tt.body)))
			want := `{"version":1,"routes":{"exchange_rates":{"status":200,"keyed":false,"body":` + tt.form + `}}}`
			if tt.form == "" {
				want = strings.Replace(want, `,"body":`, "", 1)
			}
			assert.Equal(t, want, encode(t, p))
			read, err := gatewaytest.ReadProfile(strings.NewReader(want))
			require.NoError(t, err)
			assert.Equal(t, want, encode(t, read))
		})
	}
}

func TestWithProfile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ recorded, served string }{
		"numbers in a wrapper": {
			`{"message":"Hi","page":{"next":null,"of":[1]},"result":{"rates":[{"currency":"qqt","USD":1.5}]}}`,
			`{"message":"Done.","page":{"next":null,"of":[0]},"result":{"rates":[{"currency":"btc","USD":64250.18},{"currency":"ltc","USD":71.08}]}}`,
		},
		"by symbol":       {`{"result":{"QQT":{"usd":"1"}}}`, `{"result":{"BTC":{"usd":"64250.18"},"LTC":{"usd":"71.08"}}}`},
		"by currency":     {`{"result":{"usd":{"QQT":1},"eur":{"QQT":"1"}}}`, `{"result":{"usd":{"BTC":64250.18,"LTC":71.08},"eur":{"BTC":"59310"}}}`},
		"no envelope":     {`[{"symbol":"Qqt","usd":"free"}]`, `[{"symbol":"Btc","usd":"none"},{"symbol":"Ltc","usd":"none"}]`},
		"no rates at all": {`{"result":[]}`, `{"result":[]}`},
		"not JSON":        {`<html>`, `<html><body>not JSON</body></html>`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withProfile(t, exchange(203, tt.recorded))
			got := get(t, s, "/api/exchange-rate")
			assert.Equal(t, 203, got.status)
			assert.Equal(t, tt.served, got.body)
			assert.Equal(t, []string{"profile"}, got.header.Values(gatewaytest.InventedHeader))
			assert.Equal(t, 200, get(t, s, "/api/balance/").status, "what was not recorded is as usual")

			s.InjectFault(gatewaytest.AnyOperation, 1, gatewaytest.FaultTruncate(3))
			assert.Equal(t, tt.served[:3], try(s, "GET", "/api/exchange-rate", "").body)
			if !strings.HasPrefix(tt.served, "{") {
				return
			}
			s.InjectFault(gatewaytest.AnyOperation, 1, gatewaytest.FaultHugeBody(10_000))
			huge := get(t, s, "/api/exchange-rate").body
			assert.Len(t, huge, 10_000)
			assert.True(t, json.Valid([]byte(huge)))
			assert.True(t, strings.HasSuffix(huge, tt.served[1:]))
			s.InjectFault(gatewaytest.AnyOperation, 1, gatewaytest.FaultDrift())
			drifted := get(t, s, "/api/exchange-rate").body
			assert.True(t, json.Valid([]byte(drifted)))
			assert.True(t, strings.HasPrefix(drifted, `{"undocumented":`), drifted)
		})
	}
}

// The members that a profile names have the data of the server.
func TestWithProfile_members(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path     string
		named    string // what the profile has beside its routes
		recorded string // the result of the gateway
		served   string
	}{
		"a record for each currency": {
			"/api/exchange-rate", `"rates":{"coin":"/from","currency":"/to","price":"/course"}`,
			`[{"from":"QQT","to":"USD","course":"1.5"}]`,
			`[{"from":"BTC","to":"USD","course":"64250.18"},{"from":"BTC","to":"EUR","course":"59310"},{"from":"LTC","to":"USD","course":"71.08"}]`,
		},
		"prices under other names, with the coin in a record": {
			"/api/exchange-rate", `"rates":{"list":"/data","coin":"/asset/code","usd":"/price_usd","eur":"/price_eur"}`,
			`{"data":[{"asset":{"code":"qqt"},"price_usd":1.5,"price_eur":1.5}]}`,
			`{"data":[{"asset":{"code":"btc"},"price_usd":64250.18,"price_eur":59310},{"asset":{"code":"ltc"},"price_usd":71.08,"price_eur":1.5}]}`,
		},
		"prices under other names, by symbol": {
			"/api/exchange-rate", `"rates":{"usd":"/price"}`,
			`{"QQT":{"price":"1.5"},"WWX":{"price":"2.5"}}`,
			`{"BTC":{"price":"64250.18"},"LTC":{"price":"71.08"}}`,
		},
		"a balance under another name": {
			"/api/balance/", `"balance":{"coin":"/currency_code","amount":"/balance"}`,
			`[{"uuid":"8b03432e-385b-4670-8d06-064591096795","balance":"1.5","currency_code":"QQT"}]`,
			`[{"uuid":"some text","balance":"0.25","currency_code":"BTC"},{"uuid":"some text","balance":"250.5","currency_code":"USDT"}]`,
		},
		"a balance in two wrappers": {
			"/api/balance/", `"balance":{"list":"/0/balance/merchant","coin":"/currency_code","amount":"/balance"}`,
			`[{"balance":{"merchant":[{"balance":"1.5","currency_code":"QQT"}],"user":[]}}]`,
			`[{"balance":{"merchant":[{"balance":"0.25","currency_code":"BTC"},{"balance":"250.5","currency_code":"USDT"}],"user":[]}}]`,
		},
		"a balance in a page, with a network": {
			"/api/balance/", `"balance":{"list":"/items","coin":"/code","network":"/chain","amount":"/free"}`,
			`{"items":[{"code":"QQT","chain":"Quartz Main","free":"1.5"}],"total":1,"page":1}`,
			`{"items":[{"code":"BTC","chain":"Bitcoin","free":"0.25"},{"code":"USDT","chain":"Tron (TRC20)","free":"250.5"}],"total":2,"page":1}`,
		},
		"a balance in a list that the gateway does not have": {
			"/api/balance/", `"balance":{"list":"/rows","coin":"/code","amount":"/balance"}`,
			`[{"balance":"1.5","code":"QQT"}]`,
			`[{"balance":"0.25","code":"BTC"},{"balance":"250.5","code":"USDT"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			op := gatewaytest.OpBalance
			if tt.path == "/api/exchange-rate" {
				op = gatewaytest.OpExchangeRates
			}
			var recorded gatewaytest.Profile
			require.NoError(t, recorded.Record(gatewaytest.Exchange{Operation: op, Status: 200, Body: []byte(`{"result":` + tt.recorded + `}`)}))
			text := strings.Replace(encode(t, recorded), `"routes"`, tt.named+`,"routes"`, 1)
			p, err := gatewaytest.ReadProfile(strings.NewReader(text))
			require.NoError(t, err)
			assert.Equal(t, text, encode(t, p))
			s := gatewaytest.NewServer(gatewaytest.WithProfile(p))
			t.Cleanup(s.Close)
			s.SetState(gatewaytest.Seed{
				Rates:    []gatewaytest.Rate{{Symbol: "BTC", USD: "64250.18", EUR: "59310"}, {Symbol: "LTC", USD: "71.08"}},
				Balances: []gatewaytest.BalanceEntry{{CoinSymbol: "BTC", NetworkName: "Bitcoin", Balance: "0.25"}, {CoinSymbol: "USDT", NetworkName: "Tron (TRC20)", Balance: "250.5"}},
			})
			assert.Equal(t, `{"result":`+tt.served+`}`, get(t, s, tt.path).body)
		})
	}
}

// What a profile names is there, also where it was not recorded: a client of the same profile reads it.
func TestWithProfile_namedByHand(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ path, named, served string }{
		"prices in records": {
			"/api/exchange-rate", `"rates":{"coin":"/asset/code","usd":"/price_usd","eur":"/price_eur"}`,
			`[{"asset":{"code":"BTC"},"price_eur":"59310","price_usd":"64250.18"}]`,
		},
		"a record for each currency, in a list": {
			"/api/exchange-rate", `"rates":{"list":"/0/list","coin":"/from","currency":"/to","price":"/course"}`,
			`[{"list":[{"course":"64250.18","from":"BTC","to":"USD"},{"course":"59310","from":"BTC","to":"EUR"}]}]`,
		},
		"prices by symbol": {
			"/api/exchange-rate", `"rates":{"list":"/rates","usd":"/in/usd"}`,
			`{"rates":{"BTC":{"in":{"usd":"64250.18"}}}}`,
		},
		"a balance in records": {
			"/api/balance/", `"balance":{"list":"/items","coin":"/code","network":"/chain","amount":"/sum"}`,
			`{"items":[{"chain":"Ethereum (ERC20)","code":"USDT","sum":"0.25"},{"chain":"Tron (TRC20)","code":"USDT","sum":"250.5"}]}`,
		},
		"a balance by symbol":      {"/api/balance/", `"balance":{"amount":"/sum"}`, `{"USDT":{"sum":"250.75"}}`},
		"amounts by symbol":        {"/api/balance/?coinSymbol=USDT", `"balance":{"list":"/all"}`, `{"all":{"USDT":"250.75"}}`},
		"the other is as it is":    {"/api/exchange-rate", `"balance":{"amount":"/sum"}`, `[{"symbol":"BTC","usd":"64250.18","eur":"59310"}]`},
		"an unnamed one, likewise": {"/api/exchange-rate", `"successMessage":"Operation was successful."`, `[{"symbol":"BTC","usd":"64250.18","eur":"59310"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := gatewaytest.ReadProfile(strings.NewReader(`{"version":1,` + tt.named + `}`))
			require.NoError(t, err)
			s := gatewaytest.NewServer(gatewaytest.WithProfile(p))
			t.Cleanup(s.Close)
			s.SetState(gatewaytest.Seed{
				Rates:    []gatewaytest.Rate{{Symbol: "BTC", USD: "64250.18", EUR: "59310"}},
				Balances: []gatewaytest.BalanceEntry{{CoinSymbol: "USDT", NetworkName: "Ethereum (ERC20)", Balance: "0.25"}, {CoinSymbol: "USDT", NetworkName: "Tron (TRC20)", Balance: "250.5"}},
			})
			assert.Equal(t, `{"message":"Operation was successful.","result":`+tt.served+`,"meta":{}}`, get(t, s, tt.path).body)
		})
	}
}

// The success message of a profile is that of every success, recorded or not, and of no refusal.
func TestWithProfile_successMessage(t *testing.T) {
	t.Parallel()
	p, err := gatewaytest.ReadProfile(strings.NewReader(`{"version":1,"successMessage":"OK","finalStatuses":["CANCELED"],"routes":{` +
		`"exchange_rates":{"status":200,"keyed":false,"body":{"message":"upper","result":[]}}}}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"CANCELED"}, p.FinalStatuses)
	s := gatewaytest.NewServer(gatewaytest.WithProfile(p))
	t.Cleanup(s.Close)
	assert.Equal(t, `{"message":"OK","result":[]}`, get(t, s, "/api/exchange-rate").body)
	assert.True(t, strings.HasPrefix(get(t, s, "/api/balance/").body, `{"message":"OK","result":`))
	assert.True(t, strings.HasPrefix(post(s, invoice(s, "A-17", "")).body, `{"message":"OK","result":`))
	assert.NotContains(t, try(s, "GET", "/api/balance/", "").body, "OK")
}

// A refusal of requests without a key leaves those with a key, and the other way about.
func TestWithProfile_refusals(t *testing.T) {
	t.Parallel()
	refused := exchange(403, `{"message":"no","error":{"code":17}}`)
	s := withProfile(t, refused)
	got := try(s, "GET", "/api/exchange-rate", "")
	assert.Equal(t, 403, got.status)
	assert.JSONEq(t, `{"message":"Done.","error":{"code":0}}`, got.body)
	assert.Equal(t, 200, get(t, s, "/api/exchange-rate").status)

	refused.Keyed = true
	s = withProfile(t, refused)
	assert.Equal(t, 403, get(t, s, "/api/exchange-rate").status)
	assert.Equal(t, 200, try(s, "GET", "/api/exchange-rate", "").status)
}

// What is listed in another spelling is found by it.
func TestWithProfile_lookups(t *testing.T) {
	t.Parallel()
	record := `{"id":"17x","coin":{"symbol":"qqt"},"network":{"name":"N"}}`
	var p gatewaytest.Profile
	for _, op := range []gatewaytest.Operation{gatewaytest.OpCoinNetworks, gatewaytest.OpCoinNetwork, gatewaytest.OpCoinNetworkBySymbol, gatewaytest.OpCoinNetworksOf} {
		require.NoError(t, p.Record(gatewaytest.Exchange{Operation: op, Status: 200, Body: []byte(record)}))
	}
	s := gatewaytest.NewServer(gatewaytest.WithProfile(p))
	t.Cleanup(s.Close)
	first := s.Catalog()[0]
	want := `{"id":"id-` + first.ID + `","coin":{"symbol":"btc"},"network":{"name":"Bitcoin"}}`
	for _, path := range []string{"", "/id-" + first.ID, "/" + first.ID, "/btc", "/btc/Bitcoin", "/BTC/bitcoin"} {
		got := get(t, s, "/api/networks-coins"+path)
		assert.Equal(t, 200, got.status)
		assert.Equal(t, want, got.body, path)
	}
	assert.Equal(t, 404, get(t, s, "/api/networks-coins/btcx").status)
}

func TestReadProfile_refuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 50) + strings.Repeat("]", 50)
	for text, want := range map[string]string{
		``:                                      "it is not a profile: EOF",
		`[]`:                                    "it is not a profile",
		`{"version":2}`:                         "the version of the profile is 2, and this program knows 1",
		`{"version":1} {}`:                      "there is more after the end of the profile",
		`{"version":1,"verison":1}`:             `unknown field "verison"`,
		`{"version":1,"rates":{"amount":"/a"}}`: `unknown field "amount"`,
		`{"version":1,"balance":{"coin":"currency_code"}}`:                                              `"currency_code" in the profile is not a JSON pointer`,
		`{"version":1,"routes":{"balance":null}}`:                                                       `route "balance" of the profile is not valid`,
		`{"version":1,"routes":{"rates":{"status":200}}}`:                                               `route "rates"`,
		`{"version":1,"routes":{"withdrawal of one":{"status":200}}}`:                                   `route "withdrawal of one"`,
		`{"version":1,"routes":{"create_invoice":{"status":201}}}`:                                      `route "create_invoice"`,
		`{"version":1,"routes":{"any":{"status":201}}}`:                                                 `route "any"`,
		`{"version":1,"routes":{"balance":{"status":99}}}`:                                              `route "balance"`,
		`{"version":1,"routes":{"balance":{"status":200,"body":{"result":"1.5"}}}}`:                     `"result": there is no kind "1.5", but null,`,
		`{"version":1,"routes":{"balance":{"status":200,"body":{"a":{"|":[17]}}}}}`:                     "17 is not a text of kinds",
		`{"version":1,"routes":{"balance":{"status":200,"body":["text","text"]}}}`:                      "an array has one form",
		`{"version":1,"routes":{"balance":{"status":200,"body":[[17]]}}}`:                               "17 is not",
		`{"version":1,"routes":{"balance":{"status":200,"body":` + deep + `}}}`:                         "it is nested too deeply",
		`{"version":1,"routes":{"balance":{"status":200,"body":"` + strings.Repeat(" ", 5<<20) + `"}}}`: "it is not a profile: unexpected EOF",
	} {
		_, err := gatewaytest.ReadProfile(strings.NewReader(text))
		assert.ErrorContains(t, err, want, "%.80s", text)
	}
	var p gatewaytest.Profile
	require.EqualError(t, p.Record(gatewaytest.Exchange{Operation: gatewaytest.OpCreateInvoice, Status: 201}),
		`gatewaytest: Record of operation "create_invoice", want one that reads`)
	require.EqualError(t, p.Record(exchange(99, "")), "gatewaytest: Record of status 99, want 100 to 999")
}

// A response makes a profile of at most some megabytes, whatever it is, and it is one that can be read.
func TestProfile_Record_bounds(t *testing.T) {
	t.Parallel()
	var wide strings.Builder
	for i := range 20_000 {
		if i > 0 {
			wide.WriteByte(',')
		}
		name := strings.Map(func(digit rune) rune { return digit - '0' + 'a' }, strings.Repeat("0", i%7)+strings.TrimLeft(encodeInt(i), "0"))
		wide.WriteString(`"` + name + `":{"a":[{}]}`)
	}
	for _, body := range []string{"{" + wide.String() + "}", strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)} {
		for _, op := range []gatewaytest.Operation{gatewaytest.OpBalance, gatewaytest.OpWithdrawal} {
			var p gatewaytest.Profile
			require.NoError(t, p.Record(gatewaytest.Exchange{Operation: op, Status: 200, Body: []byte(body)}))
			text := encode(t, p)
			assert.Less(t, len(text), 200_000)
			_, err := gatewaytest.ReadProfile(strings.NewReader(text))
			require.NoError(t, err)
		}
	}
}

func encodeInt(i int) string {
	text, _ := json.Marshal(i)
	return string(text)
}

// A profile does not depend on the values of a response: with another merchant's secrets in
// the same places it is the same.
func FuzzProfile_Record(f *testing.F) {
	for _, template := range []string{
		`{"message":"§","result":[{"coinSymbol":"§","networkName":"§","balance":"§"}],"meta":{"§":"§"}}`,
		`{"result":{"§":"1.5","BTC":{"balance":"§","id":"§","status":"§"}}}`,
		`{"result":{"usd":{"§":§},"eur":{"§":"§"}},"§":{"§":[§]}}`,
		`[{"coin":{"symbol":"§","name":"§"},"amount":§,"networkId":"§","network":{"id":"§"}},{"created_at":"§","a§":1}]`,
		`"§"`, `§`, `{"§§":null}`,
	} {
		f.Add(template)
	}
	secrets := [][2]string{
		{"A7X1Q9", "B2Y8Z3"},
		{"Acme Ltd.", "Blue Inc."},
		{"1234.5678", "8765.4321"},
		{"41", "53"},
		{"7c9d6d0e-2f0f-4d7e-9a53-0d1f6f1c2b11", "6d8e5c1f-3a1b-4c6d-8b42-1e2a5b3d4c22"},
	}
	f.Fuzz(func(t *testing.T, template string) {
		for _, op := range []gatewaytest.Operation{gatewaytest.OpBalance, gatewaytest.OpExchangeRates, gatewaytest.OpCoinNetworks, gatewaytest.OpWithdrawal} {
			for _, pair := range secrets {
				var texts [2]string
				for i, secret := range pair {
					var p gatewaytest.Profile
					require.NoError(t, p.Record(gatewaytest.Exchange{Operation: op, Status: 200, Body: []byte(strings.ReplaceAll(template, "§", secret))}))
					texts[i] = encode(t, p)
					_, err := gatewaytest.ReadProfile(strings.NewReader(texts[i]))
					require.NoError(t, err)
				}
				require.Equal(t, texts[0], texts[1])
			}
		}
	})
}
