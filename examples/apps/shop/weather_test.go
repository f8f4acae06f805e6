package main

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A weather changes the responses of the stand-in: by the path of the request, or by the coin
// of an invoice.
type weather map[string]func(body string) string

// soundly and instead are the results of invoices. ORDER, AMOUNT and MORE, which is 2 % more,
// are put in.
const sound = `{"orderId":"ORDER","address":"addr-1","amount":"AMOUNT"}`

func instead(result string) func(string) string {
	return func(string) string {
		return `{"message":"Operation was successful.","result":` + result + `,"meta":{}}`
	}
}

// behind puts the gateway behind a weather. All invoices that it does not name are sound.
func (h *harness) behind(w weather) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(h.t, err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		recorder := httptest.NewRecorder()
		h.gw.Handler().ServeHTTP(recorder, r)
		route := strings.TrimPrefix(r.URL.Path, "/gateway")
		change, values := w[route], strings.NewReplacer()
		if route == "/api/invoice/create" {
			var request gateway.InvoiceRequest
			assert.NoError(h.t, json.Unmarshal(body, &request))
			more := request.Amount.Mul(decimal.RequireFromString("1.02"))
			values = strings.NewReplacer("ORDER", request.OrderID, "AMOUNT", request.Amount.String(), "MORE", more.String())
			if change = w[request.CoinSymbol]; change == nil {
				change = instead(sound)
			}
		}
		text := recorder.Body.String()
		if change != nil {
			text = values.Replace(change(text))
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(recorder.Code)
		_, _ = io.WriteString(rw, text)
	}))
	h.t.Cleanup(server.Close)
	h.base = server.URL + "/gateway"
}

// In each weather the buyer of a sound coin pays, that of an odd one sees what is true, and
// the merchant is told in one place.
func TestWeather(t *testing.T) {
	t.Parallel()
	const noAddress = "The invoice exists, but we cannot show you here where to pay."
	for name, test := range map[string]struct {
		bitcoin string // the result of the invoice
		buyer   string // what its buyer sees; a regular expression
		odd     string // what the merchant sees; "" for nothing. Likewise.
	}{
		"a sound response": {sound, `Amount 0\.00028016 BTC .* Address addr-1 `, ``},
		"a memo that only other coins have": {
			`{"address":"addr-1","amount":"AMOUNT"}`, `Address addr-1 `, ``,
		},
		"a fee on top": {
			`{"address":"addr-1","amount":"MORE"}`,
			`Amount 0\.0002857632 BTC .* asks for 0\.0002857632 BTC , and our offer was 0\.00028016 BTC\.`,
			`the gateway asks for more than the offer: 0\.0002857632 instead of 0\.00028016 BTC can pay ID`,
		},
		"a fee that is too great": {
			`{"address":"addr-1","amount":"1"}`, noAddress, `differs by more than SHOP_INVOICE_TOLERANCE .* are not shown where to pay ID`,
		},
		"a deadline without zone": {
			`{"address":"addr-1","amount":"AMOUNT","expiresAt":"2026-11-25 02:31:52"}`,
			`Pay now: the payment service may end the invoice before .* Address addr-1 `,
			`/expiresAt has no time zone: .*: 2026-11-25 02:31:52 can pay ID .* SHOP_INVOICE_ZONE`,
		},
		"a network in another case": {
			`{"address":"addr-1","amount":"AMOUNT","networkName":"BITCOIN"}`, `Network Bitcoin .* Address addr-1 `, ``,
		},
		"a network by another name": {
			`{"address":"addr-1","amount":"AMOUNT","networkName":"BTC Mainnet"}`, noAddress,
			`the response for the network Bitcoin names BTC Mainnet are not shown where to pay ID .* SHOP_NETWORK_NAMES: Bitcoin=BTC Mainnet`,
		},
		"a network by a name that is declared": {
			`{"address":"addr-1","amount":"AMOUNT","networkName":"XBT"}`, `Network Bitcoin .* Address addr-1 `, ``,
		},
		"another coin": {
			`{"address":"addr-1","amount":"AMOUNT","coinSymbol":"BCH"}`, noAddress, `the response for the coin BTC names BCH are not shown where to pay ID`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.cfg.fields.deadline = "/expiresAt"
			h.cfg.fields.tolerance = decimal.RequireFromString("0.03")
			h.cfg.fields.networks, _ = parseNetworks("Bitcoin=XBT")
			h.behind(weather{
				"BTC": instead(strings.Replace(test.bitcoin, `{`, `{"expiresAt":null,`, map[bool]int{true: 1}[!strings.Contains(test.bitcoin, "expiresAt")])),
				"LTC": instead(`{"address":"addr-2","amount":"AMOUNT","expiresAt":null}`),
				"XRP": instead(`{"address":"addr-3","amount":"AMOUNT","expiresAt":null,"tag":"8"}`),
			})
			_, server := h.open()
			v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
			pay := func(coin, network string) (at, text string) {
				at = v.order(server.URL, "mug")
				v.pay(server.URL, at, h.pair(coin, network))
				return at, v.get(server.URL + at).visibleText()
			}
			_, text := pay("XRP", "XRP Ledger")
			assert.Contains(t, text, "Address addr-3 Copy the address Tag 8")
			first, text := pay("BTC", "Bitcoin")
			assert.Regexp(t, test.buyer, text)
			pay("BTC", "Bitcoin")
			_, text = pay("LTC", "Litecoin")
			assert.Contains(t, text, "Address addr-2")

			page, orders := anna.get(server.URL+"/admin/odd").visibleText(), anna.get(server.URL+"/admin").visibleText()
			if test.odd == "" {
				assert.Contains(t, page, "What is odd at the gateway Nothing.")
				assert.NotContains(t, orders, "at the gateway")
				return
			}
			assert.Regexp(t, strings.Replace(test.odd, "ID", path.Base(first)+` [^ ]+ [^ ]+ 2026, ..:.. UTC`, 1), page)
			assert.Equal(t, 1, strings.Count(page, "2026, "), "each kind once")
			assert.Contains(t, orders, "1 odd thing at the gateway")
			assert.Equal(t, strings.Contains(test.buyer, noAddress), strings.Contains(orders, "There are buyers who are not shown where to pay."))
		})
	}
}

// The coins that need a tag are known to every server and after a restart. A pointer to a tag
// that no response has is told.
func TestWeather_tag(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		h.cfg.fields.deadline = ""
		w := weather{"XRP": instead(`{"address":"addr-3","amount":"AMOUNT","tag":"8"}`)}
		h.behind(w)
		_, server := h.open()
		anna := newVisitor(t).logIn(server.URL)
		pay := func(server, coin, network string) (at, text string) {
			v := newVisitor(t)
			at = v.order(server, "mug")
			v.pay(server, at, h.pair(coin, network))
			return at, v.get(server + at).visibleText()
		}
		_, text := pay(server.URL, "BTC", "Bitcoin")
		assert.Contains(t, text, "Address addr-1", "a coin without a tag is sold")
		assert.Contains(t, anna.get(server.URL+"/admin/odd").visibleText(), "no response has /tag can pay")

		tagged, text := pay(server.URL, "XRP", "XRP Ledger")
		assert.Contains(t, text, "Address addr-3 Copy the address Tag 8")
		assert.Contains(t, anna.get(server.URL+"/admin/odd").visibleText(), "Nothing.")

		w["XRP"] = instead(`{"address":"addr-3","amount":"AMOUNT"}`)
		_, other := h.open()
		_, text = pay(other.URL, "XRP", "XRP Ledger")
		assert.Contains(t, text, "we cannot show you here where to pay")
		assert.Contains(t, anna.get(other.URL+"/admin/odd").visibleText(),
			"the response for XRP on XRP Ledger has no tag, and that for another order has one: order "+path.Base(tagged)+" are not shown where to pay")
		_, text = pay(other.URL, "BTC", "Bitcoin")
		assert.Contains(t, text, "Address addr-1")
	})
}

// A coin without a rate stays on the page, and says why it cannot be chosen.
func TestWeather_rates(t *testing.T) {
	t.Parallel()
	record := regexp.MustCompile(`{[^{}]*"BTC"[^{}]*}`)
	for name, change := range map[string]func(string) string{
		"its rate is missing": func(body string) string { return strings.ReplaceAll(body, `"BTC"`, `"BTCX"`) },
		"its rate is null": func(body string) string {
			return record.ReplaceAllString(body, `{"symbol":"BTC","usd":null,"eur":null}`)
		},
		"it has two rates": func(body string) string {
			return record.ReplaceAllString(body, `$0,{"symbol":"BTC","usd":"1","eur":"1"}`)
		},
		"its rate is no number": func(body string) string {
			return record.ReplaceAllString(body, `{"symbol":"BTC","usd":"n/a","eur":"n/a"}`)
		},
		"its rate is less than one": func(body string) string {
			return record.ReplaceAllString(body, `{"symbol":"BTC","usd":"0","eur":"-1"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.cfg.fields.deadline, h.cfg.fields.tag = "", ""
			h.behind(weather{"/api/exchange-rate": change})
			_, server := h.open()
			v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
			at := v.order(server.URL, "mug")
			assert.Contains(t, v.get(server.URL+at).visibleText(), "BTC on Bitcoin – BTC 2 confirmations · from 0.00001 BTC There is no exchange rate for it at the moment.")
			res := v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))
			assert.Contains(t, res.visibleText(), "BTC on Bitcoin: There is no exchange rate for it at the moment.")
			v.pay(server.URL, at, h.pair("LTC", "Litecoin"))
			assert.Contains(t, v.get(server.URL+at).visibleText(), "Address addr-1")
			assert.Contains(t, anna.get(server.URL+"/admin").visibleText(), "2 odd things at the gateway")
			page := anna.get(server.URL + "/admin/odd").visibleText()
			for _, currency := range []string{"usd", "eur"} {
				assert.Contains(t, page, "the exchange rate in "+currency+" is missing, cannot be read, or is listed with two values: BTC cannot choose it")
			}
			assert.Regexp(t, "BTC on Bitcoin cannot choose it: ", anna.get(server.URL+"/admin/coins").visibleText())
		})
	}
}

// A coin that cannot be read is left out and told, and the others are sold.
func TestWeather_coins(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		member, value string // of the record of USDT on Tron
		odd           string
	}{
		"its limit is null":        {"maxWithdraw", `null`, `maxWithdraw is null, not an amount: USDT on Tron cannot choose it`},
		"its fee has a comma":      {"withdrawalFee", `"12,5"`, `withdrawalFee "12,5" is not a decimal number: USDT on Tron cannot choose it`},
		"its network has no name":  {"network", `{}`, `network/id is missing: USDT on ? cannot choose it`},
		"its record names no coin": {"coin", `null`, `coin is null, not an object: /result/5/coin on Tron cannot choose it`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.cfg.fields.deadline, h.cfg.fields.tag = "", ""
			h.behind(weather{"/api/networks-coins": func(body string) string {
				var response struct {
					Message string                       `json:"message"`
					Result  []map[string]json.RawMessage `json:"result"`
					Meta    struct{}                     `json:"meta"`
				}
				assert.NoError(t, json.Unmarshal([]byte(body), &response))
				for _, record := range response.Result {
					if string(record["id"]) == `"`+h.pair("USDT", "Tron")+`"` {
						record[test.member] = json.RawMessage(test.value)
					}
				}
				text, err := json.Marshal(response)
				assert.NoError(t, err)
				return string(text)
			}})
			_, server := h.open()
			v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
			at := v.order(server.URL, "mug")
			assert.NotContains(t, v.get(server.URL+at).visibleText(), "USDT on Tron")
			res := v.pay(server.URL, at, h.pair("USDT", "Tron"))
			assert.Contains(t, res.visibleText(), "Please choose one of the coins below.")
			v.pay(server.URL, at, h.pair("USDT", "Ethereum"))
			assert.Contains(t, v.get(server.URL+at).visibleText(), "Address addr-1")
			assert.Contains(t, anna.get(server.URL+"/admin").visibleText(), "1 odd thing at the gateway")
			assert.Contains(t, html.UnescapeString(anna.get(server.URL+"/admin/odd").visibleText()), "a coin is left out of the list: "+test.odd)
		})
	}
}

// A withdrawal of which a field cannot be read has a status.
func TestWeather_withdrawal(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "T-somewhere", Amount: "50", Fee: "1", Coin: "USDT", Network: "Tron"})
	fee := regexp.MustCompile(`"fee":"1"`)
	h.behind(weather{"/api/withdrawal/inquiry/" + id: func(body string) string { return fee.ReplaceAllString(body, `"fee":null`) }})
	_, server := h.open()
	anna := newVisitor(t).logIn(server.URL)
	require.Equal(t, http.StatusSeeOther, anna.post(server.URL+"/admin/money", "id", id).status)
	assert.Contains(t, anna.get(server.URL+"/admin/money").visibleText(), "It is PENDING. The rest of the response cannot be read. "+id)
}

// A gateway that does not respond leaves the merchant's pages open.
func TestWeather_noLists(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.gw.Close()
	_, server := h.open()
	anna := newVisitor(t).logIn(server.URL)
	require.Equal(t, http.StatusOK, anna.get(server.URL+"/admin").status)
	assert.Contains(t, anna.get(server.URL+"/admin/odd").visibleText(), "the coins or the exchange rates cannot be read: nothing can be sold")
}
