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

// loseAnAnswer leaves a buyer with an order whose invoice was made, and with
// no answer. It returns the address of the order.
func loseAnAnswer(t *testing.T, w *world, product string) (buyer *tab, at string) {
	t.Helper()
	buyer = w.visit(t).newTab()
	at = buyer.order(w.shop, product)
	buyer.choose("BTC", "Bitcoin")
	w.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.CommitThenDrop())
	buyer.click(payButton)
	buyer.see(lookingIn)
	return buyer, at
}

// logIn opens the merchant's desk.
func logIn(t *testing.T, w *world) *tab {
	t.Helper()
	desk := w.visit(t).open(w.shop + "/admin")
	desk.write("Your name", "Anna")
	desk.write("Password", testPassword)
	desk.click(button("Log in"))
	desk.see(heading("Orders"))
	return desk
}

// write fills the field of a label.
func (tb *tab) write(label, text string) {
	tb.t.Helper()
	tb.do(chromedp.SendKeys(chromedp.Search(field(label)), text, chromedp.NodeVisible))
}

// resolve says what was found at the gateway for an order.
func (tb *tab) resolve(at, finding string) {
	tb.t.Helper()
	attention := `//*[@class="attention"]`
	tb.see(attention)
	tb.look("orders-unknown")
	tb.click(attention + `//a[.="` + path.Base(at) + `"]`)
	tb.click(`//label[contains(., "` + finding + `")]/input`)
	tb.write("Note", "asked by phone")
	tb.look("record")
	tb.click(button("Record as Anna"))
	tb.see(`//main//*[contains(text(), "by Anna at ")][contains(., "asked by phone")]`)
}

func browseToFoundInvoice(t *testing.T, w *world) {
	buyer, at := loseAnAnswer(t, w, "Stoneware mug")
	buyer.look("unknown")
	assert.EqualValues(t, 0, buyer.ask(`document.querySelectorAll("main button").length`), "nothing to press")
	buyer.do(chromedp.Reload(), chromedp.Navigate(w.shop+"/"))
	buyer.click(button("Buy Stoneware mug"))
	buyer.see(lookingIn)
	logIn(t, w).resolve(at, "has an invoice")
	buyer.do(chromedp.Reload())
	buyer.see(payNow)
	assert.Len(t, w.invoices(at), 1)
}

func browseToNoInvoice(t *testing.T, w *world) {
	buyer, at := loseAnAnswer(t, w, "Wool blanket")
	logIn(t, w).resolve(at, "has none")
	buyer.do(chromedp.Reload())
	buyer.click(button("Try once more"))
	buyer.see(payNow)
	assert.Len(t, w.invoices(at), 2, "it is sent again on the merchant's word, which was wrong")
}

// hide makes a page believe that its tab is in the background, or in front.
func (tb *tab) hide(hidden bool) {
	tb.t.Helper()
	tb.ask(fmt.Sprintf(`Object.defineProperty(document, "hidden", {configurable: true, value: %t}); document.dispatchEvent(new Event("visibilitychange"))`, hidden))
}

// comes waits until an expression is true.
func (tb *tab) comes(expression string) {
	tb.t.Helper()
	eventually(tb.t, expression, func() bool { return tb.ask(expression) == true })
}

func browseAdmin(t *testing.T, w *world) {
	w.visit(t).open(w.shop + "/admin/login").look("login")
	desk := logIn(t, w)
	desk.see(`(//td[normalize-space()="unknown field"])[1]`)
	desk.do(chromedp.WaitReady(chromedp.CSS(".lines polyline")))
	desk.look("orders")
	desk.do(chromedp.Navigate(w.shop + "/admin/money"))
	row := `//tr[td[.="120 USDT on Tron"]]`
	desk.see(row + `//*[.="PENDING"]`)
	desk.look("money")
	w.gw.InjectFault(gatewaytest.OpWithdrawal, -1, gatewaytest.BadGateway())
	defer w.gw.ClearFaults()
	desk.do(chromedp.Reload())
	desk.see(`//td[.="can not be asked for just now"]`)
	w.gw.ClearFaults()
	desk.see(row + `//*[.="PENDING"]`) // what the page did not have comes, too
	desk.ask(`globalThis.opened = []
		globalThis.EventSource = class extends EventSource { constructor(address) { super(address); opened.push(this) } }
		0`)
	desk.hide(true)
	desk.comes(`fetch("/admin/metrics").then((answer) => answer.json()).then((numbers) => numbers.merchant_streams === 0)`)
	assert.EqualValues(t, 0, desk.ask("opened.length"), "nobody sees the page")
	desk.hide(false)
	assert.EqualValues(t, 1, desk.ask("opened.length"))
	w.gw.Advance(time.Hour)
	desk.see(row + `//*[.="COMPLETED"]`)
	for _, other := range w.gw.Withdrawals() {
		if other.Status == "PENDING" {
			require.NoError(t, w.gw.SetWithdrawalStatus(other.WithdrawRequestID, "COMPLETED"))
		}
	}
	desk.comes("opened[0].readyState === EventSource.CLOSED")
	desk.hide(false)
	assert.EqualValues(t, 1, desk.ask("opened.length"), "all of it has ended")
	desk.click(button("Log out Anna"))
	desk.see(goods)
	desk.do(chromedp.Navigate(w.shop + "/admin/money"))
	desk.see(heading("Merchant's login"))
}
