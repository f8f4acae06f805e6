package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	productsHeading = heading("Things for life by the water")
	offersHeading   = heading("How would you like to pay?")
	paymentHeading  = heading("Pay your order")
	payButton       = button("Order and pay")
)

// walk buys until the goods are shipped, with a gateway that is slow, refuses, loses a response and has odd
// forms, while the merchant logs in, marks, looks up and logs out. Every page is checked once.
func (h *browserHarness) walk(t *testing.T) {
	admin := h.logIn(t)
	buyer := h.newSession(t).newTab()
	buyer.buys(t)
	buyer.isFollowed(t, admin)
	buyer = h.newSession(t).newTab()
	buyer.paysWithTag(t)
	buyer.isRefused(t)
	buyer.seesRates(t)
	for _, found := range []bool{true, false} {
		h.newSession(t).newTab().losesResponse(t, admin, found)
	}
	h.newSession(t).newTab().comesLate(t)
	admin.looksAround(t, h.newSession(t).newTab())
}

// order opens the order of a product and returns its URL.
func (tb *tab) order(product string) string {
	tb.t.Helper()
	tb.do(chromedp.Navigate(tb.server + "/"))
	tb.checkPage("products")
	tb.click(button("Buy " + product))
	tb.waitFor(offersHeading)
	return tb.address()
}

// address returns the URL of the page without its query.
func (tb *tab) address() string {
	tb.t.Helper()
	at, _, _ := strings.Cut(runAction(tb, chromedp.Location()), "?")
	return at
}

// choose selects a coin for an order.
func (tb *tab) choose(coin, network string) {
	tb.t.Helper()
	option := offerOption(coin, network)
	if tb.eval(elementExpr(option)+`.checkVisibility()`) == false { // its coin has several networks
		tb.click(fmt.Sprintf("//summary[strong=%q]", coin))
	}
	tb.click(option)
	require.Equal(tb.t, true, tb.eval(elementExpr(offerOption(coin, network)+"/input")+".checked"))
}

// pays chooses a coin for the order of the page, and waits for the payment.
func (tb *tab) pays(coin, network string) {
	tb.t.Helper()
	tb.choose(coin, network)
	tb.click(payButton)
	tb.waitFor(paymentHeading)
}

// The buyer sees the page of an order that is being sent, and then of its payment, without a click.
func (tb *tab) buys(t *testing.T) {
	at := tb.order("Stoneware mug")
	tb.checkPage("offers")
	tb.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultSlowBody(14_000_000)) // 14 ms a byte
	tb.choose("BTC", "Bitcoin")
	tb.click(payButton)
	tb.waitFor(heading("Your order is being sent"))
	tb.checkPage("sending")
	tb.waitFor(paymentHeading)
	tb.checkPage("payment")
	invoices := tb.invoices(at)
	require.Len(t, invoices, 1)
	address := tb.text(`//*[@id="pay-address"]`)
	assert.Regexp(t, `^invented-btc-bitcoin-`, address)
	assert.Equal(t, address, tb.readQR(), "the code has the address and nothing else")
	assert.Equal(t, invoices[0].Amount, tb.text(`//*[@id="pay-amount"]`))
	tb.eval(`navigator.clipboard.writeText = (text) => { globalThis.copied = text; return Promise.resolve() }; 0`)
	tb.click(button("Copy the address"))
	tb.waitFor(`//*[@id="copied"][.="Copied the address."]`)
	assert.Equal(t, address, tb.eval("copied"))
}

// The buyer's page follows what the merchant marks.
func (tb *tab) isFollowed(t *testing.T, admin *tab) {
	admin.do(chromedp.Navigate(tb.server + "/admin/orders/" + path.Base(tb.address())))
	admin.checkPage("record-created")
	for _, step := range []struct{ press, heading, page string }{
		{"Paid", "Your payment has arrived", "paid"},
		{"Shipped", "Your order is on its way", "shipped"},
		{"Paid", "Your payment has arrived", "paid"},
		{"Cancelled", "This order is cancelled", "cancelled"},
	} {
		admin.click(button(step.press))
		tb.waitFor(heading(step.heading))
		tb.checkPage(step.page)
		admin.waitFor(`//main//li[contains(., "Anna marked the order as: ` + step.press + `")]`)
	}
	admin.checkPage("record-cancelled")
}

// A payment that needs a tag has no QR code, which would leave the tag out.
func (tb *tab) paysWithTag(t *testing.T) {
	tb.order("Stoneware mug")
	tb.pays("XRP", "XRP Ledger")
	assert.Regexp(t, `^\d+$`, tb.text(`//*[@id="pay-tag"]`))
	assert.Equal(t, true, tb.eval(`document.querySelector(".qr") === null`))
	tb.checkPage("payment-tag")
}

func (tb *tab) isRefused(t *testing.T) {
	at := tb.order("Stoneware mug")
	tb.choose("SOL", "Solana")
	tb.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(400, "not today"))
	tb.click(payButton)
	tb.waitFor(`//*[@class="alert"][contains(., "refused")]`)
	tb.checkPage("offers-refused")
	tb.pays("TRX", "Tron")
	assert.Len(t, tb.invoices(at), 1)
}

// The amounts of the page follow the rates, and keep the choice.
func (tb *tab) seesRates(t *testing.T) {
	defer tb.gw.SetRate("DOGE", "0.12", "0.12")
	tb.order("Postcard")
	tb.choose("BTC", "Bitcoin")
	doge := offerOption("DOGE", "Dogecoin")
	tb.gw.SetRate("DOGE", "0.09", "0.09")
	tb.waitFor(doge + `//*[contains(@class, "amount")][.="10"]`)
	tb.gw.SetRate("DOGE", "0.2", "0.2") // less than 5 DOGE
	tb.waitFor(doge + `//*[contains(., "the smallest amount is 5 DOGE")]`)
	assert.Equal(t, true, tb.eval(elementExpr(offerOption("BTC", "Bitcoin")+"/input")+".checked"), "the choice is kept")
	tb.gw.InjectFault(gatewaytest.OpExchangeRates, -1, gatewaytest.FaultPage(502))
	defer tb.gw.ClearFaults()
	tb.waitFor(`//*[@id="age"]/*[@class="stale"]`)
	tb.checkPage("offers-stale")
	tb.click(payButton)
	tb.waitFor(`//*[@role="alert"][contains(., "too old")]`)
	tb.checkPage("offers-problem")
}

// A response is lost. The buyer leaves an address, the merchant looks the order up, in an export and by hand,
// and the buyer's page follows.
func (tb *tab) losesResponse(t *testing.T, admin *tab, found bool) {
	tb.order("Wool blanket")
	tb.click(button("Lose the next response"))
	tb.waitFor(`//*[@role="status"][contains(., "will be lost")]`)
	at := tb.address()
	tb.choose("BTC", "Bitcoin")
	tb.click(payButton)
	tb.waitFor(heading("We are checking your order"))
	tb.checkPage("unknown")
	tb.fill("Where can we write to you?", "ida@example.org")
	tb.click(button("Save"))
	tb.waitFor(`//strong[.="ida@example.org"]`)
	tb.checkPage("unknown-contact")
	if found {
		admin.resolve(at, "has an invoice")
		tb.waitFor(heading("Your order is saved"))
		tb.checkPage("nodetails")
		assert.Len(t, tb.invoices(at), 1)
		return
	}
	admin.resolve(at, "has no invoice")
	tb.waitFor(`//*[@class="alert"][contains(., "the payment service has made no invoice")]`)
	tb.checkPage("offers-none")
	tb.click(payButton)
	tb.waitFor(paymentHeading)
	assert.Len(t, tb.invoices(at), 2, "sent again, because the merchant recorded that there was none")
}

// resolve records what the merchant found at the gateway for an order.
func (tb *tab) resolve(at, finding string) {
	tb.t.Helper()
	tb.do(chromedp.Navigate(tb.server + "/admin"))
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

// Orders that have ended show no way to pay.
func (tb *tab) comesLate(t *testing.T) {
	at := tb.order("Stoneware mug")
	_, err := tb.shop.db.change(t.Context(), `UPDATE shop_orders SET made_at = '2020-01-01T00:00:00.000Z' WHERE id = $1`, path.Base(at))
	require.NoError(t, err)
	tb.do(chromedp.Reload())
	tb.waitFor(heading("This order has ended"))
	tb.checkPage("expired")
	_, err = tb.shop.guard.End(t.Context(), gateway.Order{Gateway: tb.gw.URL, Request: gateway.InvoiceRequest{OrderID: path.Base(at)}}, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded})
	require.NoError(t, err)
	tb.do(chromedp.Reload())
	tb.waitFor(heading("The time to pay is over"))
	tb.checkPage("late")
	tb.do(chromedp.Navigate(tb.server + "/nothing-here"))
	tb.checkPage("problem")
}

// logIn opens the merchant's pages, after a wrong password.
func (h *browserHarness) logIn(t *testing.T) *tab {
	t.Helper()
	admin := h.newSession(t).open(h.server + "/admin/login")
	admin.checkPage("login")
	for _, password := range []string{"wrong", testPassword} {
		admin.fill("Name", "Anna")
		admin.fill("Password", password)
		admin.click(button("Log in"))
		if password == "wrong" {
			admin.waitFor(`//*[@role="alert"]`)
			admin.checkPage("login-problem")
		}
	}
	admin.waitFor(heading("Orders"))
	admin.checkPage("orders")
	return admin
}

// fill fills the field of a label.
func (tb *tab) fill(label, text string) {
	tb.t.Helper()
	tb.do(chromedp.SetValue(chromedp.Search(field(label)), text, chromedp.NodeVisible))
}

// The merchant's other pages: the coins, what is odd, and the money.
func (tb *tab) looksAround(t *testing.T, buyer *tab) {
	tb.do(chromedp.Navigate(tb.server + "/admin/coins"))
	tb.checkPage("coins")
	tb.gw.SetShape(gatewaytest.InvoiceNested)
	buyer.order("Stoneware mug")
	buyer.choose("BTC", "Bitcoin")
	buyer.click(payButton)
	buyer.waitFor(heading("Your order is saved"))
	tb.gw.SetShape(gatewaytest.InvoicePayable)
	tb.do(chromedp.Navigate(tb.server + "/admin"))
	tb.checkPage("orders-odd")
	tb.click(`//a[.="See what is odd"]`)
	tb.waitFor(`//td[contains(., "there is no readable /address")]`)
	tb.checkPage("odd")
	id := tb.gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "T-somewhere", Amount: "77", Fee: "1", Coin: "USDT", Network: "Tron"})
	tb.do(chromedp.Navigate(tb.server + "/admin/money"))
	tb.fill("Number of a withdrawal", id)
	tb.click(button("Add"))
	row := `//tr[td[.="77 USDT on Tron"]]`
	tb.waitFor(row + `//*[.="PENDING"]`)
	tb.checkPage("money")
	require.NoError(t, tb.gw.SetWithdrawalStatus(id, "COMPLETED"))
	tb.waitFor(row + `//*[.="COMPLETED"]`) // without a click
	tb.fill("Number of a withdrawal", "none such")
	tb.click(button("Add"))
	tb.waitFor(`//*[@role="alert"]`)
	tb.checkPage("money-problem")
	tb.click(button("Log out Anna"))
	tb.waitFor(productsHeading)
	tb.do(chromedp.Navigate(tb.server + "/admin/money"))
	tb.waitFor(heading("Merchant's login"))
}

func (h *browserHarness) walkWithoutScripts(t *testing.T) {
	tb := h.newSession(t).newTab()
	tb.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	at := tb.order("Stoneware mug")
	assert.Equal(t, "undefined", tb.eval("typeof localize"), "scripts are disabled")
	tb.choose("BTC", "Bitcoin")
	tb.click(payButton)
	tb.waitFor(`//h1[.="Your order is being sent" or .="Pay your order"]`)
	eventually(t, "the invoice is created", func() bool {
		tb.do(chromedp.Navigate(at)) // as the link "Look again" does
		return tb.eval(`document.querySelector("h1").textContent`) == "Pay your order"
	})
	assert.Equal(t, true, tb.eval(`[...document.querySelectorAll("main button")].every((button) => button.form || !button.checkVisibility())`),
		"no button that needs a script")
	assert.Len(t, h.invoices(at), 1)
}
