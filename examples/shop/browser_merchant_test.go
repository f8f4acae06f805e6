package main

import (
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// orderWithLostResponse makes an order whose invoice is created while the
// response is lost. It returns the buyer's tab and the URL of the order.
func orderWithLostResponse(t *testing.T, h *browserHarness, product string) (buyer *tab, at string) {
	t.Helper()
	buyer = h.newSession(t).newTab()
	at = buyer.order(h.shop, product)
	buyer.choose("BTC", "Bitcoin")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.CommitThenDrop())
	buyer.click(payButton)
	buyer.waitFor(underReview)
	return buyer, at
}

// logIn opens the merchant's pages.
func logIn(t *testing.T, h *browserHarness) *tab {
	t.Helper()
	admin := h.newSession(t).open(h.shop + "/admin")
	admin.fill("Your name", "Anna")
	admin.fill("Password", testPassword)
	admin.click(button("Log in"))
	admin.waitFor(heading("Orders"))
	return admin
}

// fill fills the field of a label.
func (tb *tab) fill(label, text string) {
	tb.t.Helper()
	tb.do(chromedp.SendKeys(chromedp.Search(field(label)), text, chromedp.NodeVisible))
}

// resolve records what the merchant found at the gateway for an order.
func (tb *tab) resolve(at, finding string) {
	tb.t.Helper()
	attention := `//*[@class="attention"]`
	tb.waitFor(attention)
	tb.checkPage("orders-unknown")
	tb.click(attention + `//a[.="` + path.Base(at) + `"]`)
	tb.click(`//label[contains(., "` + finding + `")]/input`)
	tb.fill("Note", "asked by phone")
	tb.checkPage("record")
	tb.click(button("Record as Anna"))
	tb.waitFor(`//main//*[contains(text(), "by Anna at ")][contains(., "asked by phone")]`)
}

func browseInvoiceFound(t *testing.T, h *browserHarness) {
	buyer, at := orderWithLostResponse(t, h, "Stoneware mug")
	buyer.checkPage("unknown")
	assert.EqualValues(t, 0, buyer.eval(`document.querySelectorAll("main button").length`), "no buttons")
	buyer.do(chromedp.Reload(), chromedp.Navigate(h.shop+"/"))
	buyer.click(button("Buy Stoneware mug"))
	buyer.waitFor(underReview)
	logIn(t, h).resolve(at, "has an invoice")
	buyer.do(chromedp.Reload())
	buyer.waitFor(paymentHeading)
	assert.Len(t, h.invoices(at), 1)
}

func browseNoInvoice(t *testing.T, h *browserHarness) {
	buyer, at := orderWithLostResponse(t, h, "Wool blanket")
	logIn(t, h).resolve(at, "has no invoice")
	buyer.do(chromedp.Reload())
	buyer.click(button("Try again"))
	buyer.waitFor(paymentHeading)
	assert.Len(t, h.invoices(at), 2, "sent again, because the merchant recorded that there was none")
}

// setHidden simulates a tab in the background or foreground.
func (tb *tab) setHidden(hidden bool) {
	tb.t.Helper()
	tb.eval(fmt.Sprintf(`Object.defineProperty(document, "hidden", {configurable: true, value: %t}); document.dispatchEvent(new Event("visibilitychange"))`, hidden))
}

// waitUntil waits until an expression is true.
func (tb *tab) waitUntil(expression string) {
	tb.t.Helper()
	eventually(tb.t, expression, func() bool { return tb.eval(expression) == true })
}

func browseAdmin(t *testing.T, h *browserHarness) {
	h.newSession(t).open(h.shop + "/admin/login").checkPage("login")
	admin := logIn(t, h)
	admin.waitFor(`(//td[normalize-space()="unknown field"])[1]`)
	admin.do(chromedp.WaitReady(chromedp.CSS(".lines polyline")))
	admin.checkPage("orders")
	admin.do(chromedp.Navigate(h.shop + "/admin/money"))
	row := `//tr[td[.="120 USDT on Tron"]]`
	admin.waitFor(row + `//*[.="PENDING"]`)
	admin.checkPage("money")
	h.gw.InjectFault(gatewaytest.OpWithdrawal, -1, gatewaytest.BadGateway())
	defer h.gw.ClearFaults()
	admin.do(chromedp.Reload())
	admin.waitFor(`//td[.="temporarily unavailable"]`)
	h.gw.ClearFaults()
	admin.waitFor(row + `//*[.="PENDING"]`) // a row that was unavailable is filled in later
	admin.eval(`globalThis.opened = []
		globalThis.EventSource = class extends EventSource { constructor(address) { super(address); opened.push(this) } }
		0`)
	admin.setHidden(true)
	admin.waitUntil(`fetch("/admin/metrics").then((response) => response.json()).then((numbers) => numbers.merchant_streams === 0)`)
	assert.EqualValues(t, 0, admin.eval("opened.length"), "the page is hidden")
	admin.setHidden(false)
	assert.EqualValues(t, 1, admin.eval("opened.length"))
	h.gw.Advance(time.Hour)
	admin.waitFor(row + `//*[.="COMPLETED"]`)
	for _, other := range h.gw.Withdrawals() {
		if other.Status == "PENDING" {
			require.NoError(t, h.gw.SetWithdrawalStatus(other.WithdrawRequestID, "COMPLETED"))
		}
	}
	admin.waitUntil("opened[0].readyState === EventSource.CLOSED")
	admin.setHidden(false)
	assert.EqualValues(t, 1, admin.eval("opened.length"), "all withdrawals are final")
	admin.click(button("Log out Anna"))
	admin.waitFor(productsHeading)
	admin.do(chromedp.Navigate(h.shop + "/admin/money"))
	admin.waitFor(heading("Merchant's login"))
}
