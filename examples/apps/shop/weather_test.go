package main

import (
	"html"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An edit replaces a value of a response, by its JSON pointer.
type edit struct{ pointer, value string }

// edit changes the next responses of an operation.
func (h *harness) edit(op gatewaytest.Operation, times int, edits ...edit) {
	for _, e := range edits {
		h.gw.InjectFault(op, times, gatewaytest.FaultEdit(e.pointer, e.value))
	}
}

// buy orders a mug and pays with a coin, and returns the path and the text of the order's page.
func (v *visitor) buy(server, pair string) (at, text string) {
	v.t.Helper()
	at = v.order(server, "mug")
	v.pay(server, at, pair)
	return at, v.get(server + at).visibleText()
}

// oddPage returns the text of the page of what is odd.
func (v *visitor) oddPage(server string) string {
	v.t.Helper()
	return html.UnescapeString(v.get(server + "/admin/odd").visibleText())
}

// In each weather the buyer of a sound coin pays, that of an odd one sees what is true, and
// the merchant is told in one place.
func TestWeather(t *testing.T) {
	t.Parallel()
	const noAddress = "The invoice exists, but we cannot show you here where to pay."
	for name, test := range map[string]struct {
		edits []edit
		buyer string // what the buyer sees; a regular expression
		odd   string // what the merchant sees; "" for nothing. Likewise
	}{
		"a sound response": {
			nil, `Pay before .* Amount 0\.00028016 BTC .* Address invented-btc-`, ``,
		},
		"a memo that only other coins have": {
			[]edit{{"/result/tag", ``}}, `Amount 0\.00028016 BTC .* Address invented-btc-`, ``,
		},
		"a fee on top": {
			[]edit{{"/result/amount", `"0.00028576"`}},
			`Amount 0\.00028576 BTC .* asks for 0\.00028576 BTC , and our offer was 0\.00028016 BTC\.`,
			`the gateway asks for more than the offer: 0\.00028576 instead of 0\.00028016 BTC can pay ID`,
		},
		"a fee that is too great": {
			[]edit{{"/result/amount", `"0.00029"`}}, noAddress, `differs by more than SHOP_INVOICE_TOLERANCE .* are not shown where to pay ID`,
		},
		"a deadline without zone": {
			[]edit{{"/result/expiresAt", `"2026-11-25 02:31:52"`}},
			`Pay now: the payment service may end the invoice before .* Address invented-btc-`,
			`/expiresAt has no time zone: .*: 2026-11-25 02:31:52 can pay ID .* SHOP_INVOICE_ZONE`,
		},
		"a network in another spelling": {
			[]edit{{"/result/networkName", `"BIT COIN"`}}, `Network Bitcoin .* Address invented-btc-`, ``,
		},
		"a network by another name": {
			[]edit{{"/result/networkName", `"BTC Mainnet"`}},
			noAddress,
			`the response for the network Bitcoin names BTC Mainnet are not shown where to pay ID .* SHOP_NETWORK_NAMES: Bitcoin=BTC Mainnet`,
		},
		"a network by a name that is declared": {
			[]edit{{"/result/networkName", `"XBT"`}}, `Network Bitcoin .* Address invented-btc-`, ``,
		},
		"another network beside the address": {
			[]edit{{"/result/network", `{"name":"Lightning"}`}}, noAddress, `the response for the network Bitcoin names Lightning are not shown where to pay ID`,
		},
		"an orderId of the gateway's own": {
			[]edit{{"/result/orderId", `"8f14e45f-ceea-467f-9575-9a1f0c7b3c6d"`}},
			`Amount 0\.00028016 BTC .* Address invented-btc-`,
			`the orderId of the response is not that of the order: 8f14e45f-ceea-467f-9575-9a1f0c7b3c6d can pay ID`,
		},
		"another coin": {
			[]edit{{"/result/coinSymbol", `"BCH"`}}, noAddress, `the response for the coin BTC names BCH are not shown where to pay ID`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.cfg.fields.tolerance = decimal.RequireFromString("0.03")
			h.cfg.fields.networks, _ = parseNetworks("Bitcoin=XBT")
			_, server := h.open()
			v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
			h.edit(gatewaytest.OpCreateInvoice, 2, test.edits...)
			first, text := v.buy(server.URL, h.pair("BTC", "Bitcoin"))
			assert.Regexp(t, test.buyer, text)
			v.buy(server.URL, h.pair("BTC", "Bitcoin"))
			_, text = v.buy(server.URL, h.pair("XRP", "XRP Ledger"))
			assert.Regexp(t, `Address invented-xrp-.* Tag \d+ `, text)

			page, orders := anna.oddPage(server.URL), anna.get(server.URL+"/admin").visibleText()
			if test.odd == "" {
				assert.Contains(t, page, "What is odd at the gateway Nothing.")
				assert.NotContains(t, orders, "at the gateway")
				return
			}
			assert.Regexp(t, strings.Replace(test.odd, "ID", path.Base(first)+` [^ ]+ [^ ]+ 2026, ..:.. UTC`, 1), page)
			assert.Equal(t, 1, strings.Count(page, "2026, "), "each kind once")
			assert.Contains(t, orders, "1 odd thing at the gateway")
			assert.Equal(t, test.buyer == noAddress, strings.Contains(orders, "Some buyers were not shown where to pay."))
		})
	}
}

// A gateway in all of this weather at once: with its zone declared, buyers see each deadline.
func TestWeather_oddInvoices(t *testing.T) {
	t.Parallel()
	for name, zone := range map[string]*time.Location{"Pay now: the payment service may end the invoice before": nil, "Pay before": time.UTC} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.gw.SetShape(gatewaytest.InvoiceOdd)
			h.cfg.fields.tolerance, h.cfg.fields.zone = decimal.RequireFromString("0.03"), zone
			_, server := h.open()
			v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
			_, text := v.buy(server.URL, h.pair("XRP", "XRP Ledger"))
			assert.Regexp(t, name+` .* Amount 34\.75434947 XRP .* Network XRP Ledger .* Address invented-xrp-.* Tag \d+ .* our offer was 34\.410247 XRP`, text)
			_, text = v.buy(server.URL, h.pair("BTC", "Bitcoin"))
			assert.Regexp(t, name+` .* Address invented-btc-`, text)
			assert.Contains(t, anna.oddPage(server.URL), "the gateway asks for more than the offer: 34.75434947 instead of 34.410247 XRP")
			assert.Equal(t, zone == nil, strings.Contains(anna.oddPage(server.URL), "/expiresAt has no time zone"))
		})
	}
}

// The coins that need a tag are known to every server and after a restart. A pointer to a tag
// that no response has is told.
func TestWeather_tag(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		_, one := h.open()
		_, two := h.open()
		v, anna := newVisitor(t), newVisitor(t).logIn(one.URL)
		withoutTag := edit{"/result/tag", ``}
		h.edit(gatewaytest.OpCreateInvoice, 1, withoutTag)
		_, text := v.buy(one.URL, h.pair("BTC", "Bitcoin"))
		assert.Contains(t, text, "Address invented-btc-", "a coin without a tag is sold")
		assert.Contains(t, anna.oddPage(one.URL), "no response has /tag can pay")

		tagged, text := v.buy(one.URL, h.pair("XRP", "XRP Ledger"))
		assert.Regexp(t, `Address invented-xrp-.* Tag \d+ `, text)
		assert.Contains(t, anna.oddPage(one.URL), "Nothing.")

		h.edit(gatewaytest.OpCreateInvoice, -1, withoutTag)
		_, text = v.buy(two.URL, h.pair("XRP", "XRP Ledger"))
		assert.Contains(t, text, "we cannot show you here where to pay")
		assert.Contains(t, anna.oddPage(two.URL),
			"the response for XRP on XRP Ledger has no tag, and that for another order has one: order "+path.Base(tagged)+" are not shown where to pay")
		_, text = v.buy(two.URL, h.pair("BTC", "Bitcoin"))
		assert.Contains(t, text, "Address invented-btc-")
	})
}

// A coin without a rate stays on the page, and says why it cannot be chosen.
func TestWeather_rates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edits []edit
		odd   string // besides that there is no rate
	}{
		"its rate is missing":      {[]edit{{"/result/BTC", ``}}, ``},
		"its rate is null":         {[]edit{{"/result/BTC/usd", `null`}, {"/result/BTC/eur", `null`}}, ``},
		"it has two rates":         {[]edit{{"/result/BTC", `{"symbol":"BTC","usd":"1","eur":"1"},{"symbol":"BTC","usd":"2","eur":"2"}`}}, ``},
		"its rate is no number":    {[]edit{{"/result/BTC/usd", `"n/a"`}, {"/result/BTC/eur", `"n/a"`}}, `left out of the list of exchange rates: usd "n/a" is not a decimal number: BTC`},
		"its rate is not positive": {[]edit{{"/result/BTC/usd", `"0"`}, {"/result/BTC/eur", `"-1"`}}, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.edit(gatewaytest.OpExchangeRates, -1, test.edits...)
			_, server := h.open()
			v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
			at := v.order(server.URL, "mug")
			assert.Contains(t, v.get(server.URL+at).visibleText(), "BTC on Bitcoin – BTC 2 confirmations · from 0.00001 BTC There is no exchange rate for it at the moment.")
			res := v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))
			assert.Contains(t, res.visibleText(), "BTC on Bitcoin: There is no exchange rate for it at the moment.")
			_, text := v.buy(server.URL, h.pair("LTC", "Litecoin"))
			assert.Contains(t, text, "Address invented-ltc-")
			for _, currency := range []string{"usd", "eur"} {
				assert.Contains(t, anna.oddPage(server.URL), "the exchange rate in "+currency+" is missing, cannot be read, or is listed with two values: BTC cannot choose it")
			}
			assert.Contains(t, anna.oddPage(server.URL), test.odd)
			assert.Contains(t, anna.get(server.URL+"/admin/coins").visibleText(), "BTC on Bitcoin cannot choose it: ")
		})
	}
}

// A profile of the environment reaches the shop.
func TestWeather_profile(t *testing.T) {
	h := newHarness(t)
	profile := filepath.Join(t.TempDir(), "profile.json")
	require.NoError(t, os.WriteFile(profile, []byte(`{"version":1,"rates":{"coin":"/from","currency":"/to","price":"/course"}}`), 0o600))
	for name, value := range map[string]string{"GATEWAY_BASE_URL": h.gw.URL, "GATEWAY_API_KEY": h.gw.APIKey, "GATEWAY_PROFILE": profile} {
		t.Setenv(name, value)
	}
	h.edit(gatewaytest.OpExchangeRates, -1, edit{"/result", `[{"from":"BTC","to":"USD","course":"60000"}]`})
	_, connect, _, err := openGateway()
	require.NoError(t, err)
	s, server := h.open()
	s.client, err = connect()
	require.NoError(t, err)
	require.NoError(t, s.addCaches())
	v := newVisitor(t)
	assert.Contains(t, v.get(server.URL+v.order(server.URL, "mug")).visibleText(), "BTC on Bitcoin 0.0003 BTC")
	t.Setenv("GATEWAY_BASE_URL", "")
	t.Setenv("GATEWAY_API_KEY", "")
	_, _, _, err = openGateway()
	assert.ErrorContains(t, err, "GATEWAY_BASE_URL is not set, but a key or GATEWAY_PROFILE is")
}

// A coin that cannot be read is left out and told, and the others are sold.
func TestWeather_coins(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit edit // of the record of USDT on Tron
		odd  string
	}{
		"its limit is null":        {edit{"/maxWithdraw", `null`}, `maxWithdraw is null, not an amount: USDT on Tron cannot choose it`},
		"its fee has a comma":      {edit{"/withdrawalFee", `"12,5"`}, `withdrawalFee "12,5" is not a decimal number: USDT on Tron cannot choose it`},
		"its network has no name":  {edit{"/network", `{}`}, `network/id is missing: USDT cannot choose it`},
		"its record names no coin": {edit{"/coin", `null`}, `coin is null, not an object: /result/5/coin on Tron cannot choose it`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.edit(gatewaytest.OpCoinNetworks, -1, edit{"/result/" + h.pair("USDT", "Tron") + test.edit.pointer, test.edit.value})
			_, server := h.open()
			v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
			at := v.order(server.URL, "mug")
			assert.NotContains(t, v.get(server.URL+at).visibleText(), "USDT on Tron")
			assert.Contains(t, v.pay(server.URL, at, h.pair("USDT", "Tron")).visibleText(), "Please choose one of the coins below.")
			_, text := v.buy(server.URL, h.pair("USDT", "Ethereum"))
			assert.Contains(t, text, "Address invented-usdt-")
			assert.Contains(t, anna.get(server.URL+"/admin").visibleText(), "1 odd thing at the gateway")
			assert.Contains(t, anna.oddPage(server.URL), "left out of the list of coins: "+test.odd)
		})
	}
}

// A balance without one of its records says so, and one in another form says what to do.
func TestWeather_balance(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`[{"coinSymbol":"BTC","balance":"0.5"},{"coinSymbol":"ETH","balance":null}]`: "BTC 0.5 Left out of the balance: ETH: ",
		`[{"currency_code":"BTC","balance":"0.5"}]`:                                  "The balance is not available at the moment: gateway: balance: 200: response not understood: ",
	} {
		h := newHarness(t)
		h.edit(gatewaytest.OpBalance, -1, edit{"/result", value})
		_, server := h.open()
		assert.Contains(t, newVisitor(t).logIn(server.URL).get(server.URL+"/admin/money").visibleText(), want)
	}
}

// A withdrawal of which a field cannot be read has a status.
func TestWeather_withdrawal(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "T-somewhere", Amount: "50", Fee: "1", Coin: "USDT", Network: "Tron"})
	h.edit(gatewaytest.OpWithdrawal, -1, edit{"/result/fee", `null`})
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
	assert.Contains(t, anna.oddPage(server.URL), "the coins or the exchange rates cannot be read: nothing can be sold")
}
