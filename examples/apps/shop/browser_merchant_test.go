package main

import (
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// orderWithLostResponse makes an order whose invoice is created while the response is lost,
// which its identifier alone asks the stand-in for. It returns the buyer's tab and the URL of
// the order.
func orderWithLostResponse(t *testing.T, h *browserHarness, product string) (buyer *tab, at string) {
	t.Helper()
	buyer = h.newSession(t).newTab()
	buyer.order(h.shop, product)
	buyer.click(button("Lose the next response"))
	buyer.waitFor(`//*[@role="status"][contains(., "will be lost")]`)
	at = buyer.address()
	require.Contains(t, at, "/orders/mock-commit-then-drop-")
	buyer.choose("BTC", "Bitcoin")
	buyer.click(payButton)
	buyer.waitFor(underReview)
	return buyer, at
}

// logIn opens the merchant's pages.
func logIn(t *testing.T, h *browserHarness) *tab {
	t.Helper()
	admin := h.newSession(t).open(h.shop + "/admin")
	admin.fill("Name", "Anna")
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
	tb.click(attention + `//a[.="Look them up"]`)
	tb.waitFor(`//table//a[.="` + path.Base(at) + `"]`)
	tb.checkPage("pending")
	export := filepath.Join(tb.t.TempDir(), "export.csv")
	require.NoError(tb.t, os.WriteFile(export, []byte("order_id\n"+path.Base(at)+"\nnever-sent\n"), 0o600))
	tb.do(chromedp.SetUploadFiles(chromedp.Search(`//input[@type="file"]`), []string{export}))
	tb.click(`//summary[.="Names of its columns"]`)
	tb.eval(`for (const name of ["invoice_id", "created_at", "price", "amount"]) document.getElementById(name).value = ""; 0`)
	tb.click(button("Show what it says"))
	tb.waitFor(button("End 1 order as Anna"))
	tb.checkPage("reconcile")
	tb.click(`//a[.="Orders to look up"]`)
	tb.click(`//table//a[.="` + path.Base(at) + `"]`)
	tb.click(`//label[contains(., "` + finding + `")]/input`)
	tb.fill("Note", "asked by phone")
	tb.checkPage("record-unknown")
	tb.click(button("Record as Anna"))
	tb.waitFor(`//*[@class="done"]`)
	tb.checkPage("pending-done")
}

func browseInvoiceFound(t *testing.T, h *browserHarness) {
	buyer, at := orderWithLostResponse(t, h, "Stoneware mug")
	buyer.checkPage("unknown")
	buyer.fill("Where can we write to you?", "ida@example.org")
	buyer.click(button("Save"))
	buyer.waitFor(`//strong[.="ida@example.org"]`)
	buyer.checkPage("unknown-contact")
	logIn(t, h).resolve(at, "has an invoice")
	buyer.waitFor(heading("Your order is saved")) // without a click
	buyer.checkPage("nodetails")
	assert.Len(t, h.invoices(at), 1)
}

func browseNoInvoice(t *testing.T, h *browserHarness) {
	buyer, at := orderWithLostResponse(t, h, "Wool blanket")
	logIn(t, h).resolve(at, "has no invoice")
	buyer.waitFor(`//*[@class="alert"][contains(., "the payment service has made no invoice")]`)
	buyer.checkPage("offers-none")
	buyer.click(payButton)
	buyer.waitFor(paymentHeading)
	assert.Len(t, h.invoices(at), 2, "sent again, because the merchant recorded that there was none")
}

func browseAdmin(t *testing.T, h *browserHarness) {
	tb := h.newSession(t).open(h.shop + "/admin/login")
	tb.checkPage("login")
	tb.fill("Name", "Anna")
	tb.fill("Password", "wrong")
	tb.click(button("Log in"))
	tb.waitFor(`//*[@role="alert"]`)
	tb.checkPage("login-problem")
	admin := logIn(t, h)
	admin.checkPage("orders")
	admin.do(chromedp.Navigate(h.shop + "/admin/coins"))
	admin.checkPage("coins")
	h.gw.SetShape(gatewaytest.InvoiceNested)
	buyer := h.newSession(t).newTab()
	buyer.order(h.shop, "Stoneware mug")
	buyer.choose("BTC", "Bitcoin")
	buyer.click(payButton)
	buyer.waitFor(heading("Your order is saved"))
	h.gw.SetShape(gatewaytest.InvoicePayable)
	admin.do(chromedp.Navigate(h.shop + "/admin"))
	admin.checkPage("orders-odd")
	admin.click(`//a[.="See what is odd"]`)
	admin.waitFor(`//td[contains(., "there is no readable /address")]`)
	admin.checkPage("odd")
	id := h.gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "T-somewhere", Amount: "77", Fee: "1", Coin: "USDT", Network: "Tron"})
	admin.do(chromedp.Navigate(h.shop + "/admin/money"))
	admin.fill("Number of a withdrawal", id)
	admin.click(button("Add"))
	row := `//tr[td[.="77 USDT on Tron"]]`
	admin.waitFor(row + `//*[.="PENDING"]`)
	admin.checkPage("money")
	require.NoError(t, h.gw.SetWithdrawalStatus(id, "COMPLETED"))
	admin.waitFor(row + `//*[.="COMPLETED"]`) // without a click
	admin.fill("Number of a withdrawal", "none such")
	admin.click(button("Add"))
	admin.waitFor(`//*[@role="alert"]`)
	admin.checkPage("money-problem")
	admin.click(button("Log out Anna"))
	admin.waitFor(productsHeading)
	admin.do(chromedp.Navigate(h.shop + "/admin/money"))
	admin.waitFor(heading("Merchant's login"))
}
