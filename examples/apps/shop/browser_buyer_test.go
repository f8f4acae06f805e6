package main

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	productsHeading = heading("Things for life by the water")
	offersHeading   = heading("How would you like to pay?")
	paymentHeading  = heading("Pay your order")
	underReview     = heading("We are checking your order")
	payButton       = button("Order and pay")
)

// order opens the order of a product at a shop and returns its URL.
func (tb *tab) order(shop, product string) string {
	tb.t.Helper()
	tb.do(chromedp.Navigate(shop + "/"))
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

func browsePageErrors(t *testing.T, h *browserHarness) {
	p := h.newSession(t)
	tb := p.open(h.shop + "/")
	for script, message := range map[string]string{
		`document.body.append(Object.assign(document.createElement("script"), {textContent: "1"}))`: "inline script violates",
		`document.body.append(Object.assign(new Image(), {src: "https://example.com/"}))`:           "https://example.com/",
		`console.error("an error")`:                      "an error",
		`setTimeout(() => { throw new Error("a bug") })`: "a bug",
	} {
		tb.do(chromedp.Evaluate[chromedp.Void](script))
		eventually(t, message, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return strings.Contains(strings.Join(p.pageErrors, "\n"), message)
		})
	}
	tb.eval("0") // all events have been received
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pageErrors = nil
}

func browsePurchase(t *testing.T, h *browserHarness) {
	buyer := h.newSession(t)
	tb := buyer.open(h.shop + "/")
	tb.checkPage("products")
	at := tb.order(h.shop, "Stoneware mug")
	tb.checkPage("offers")
	tb.choose("BTC", "Bitcoin")
	tb.click(payButton)
	tb.waitFor(paymentHeading)
	tb.checkPage("payment")
	invoices := h.invoices(at)
	require.Len(t, invoices, 1)
	address := tb.text(`//*[@id="pay-address"]`)
	assert.Regexp(t, `^invented-btc-bitcoin-`, address)
	assert.Equal(t, address, tb.readQR(), "the code has the address and nothing else")
	assert.Equal(t, invoices[0].Amount, tb.text(`//*[@id="pay-amount"]`))
	assert.Regexp(t, `^: 00:(29|30):\d\d left$`, tb.eval(`document.querySelector(".left").textContent`))
	tb.eval(`navigator.clipboard.writeText = (text) => { globalThis.copied = text; return Promise.resolve() }; 0`)
	tb.click(button("Copy the address"))
	tb.waitFor(`//*[@id="copied"][.="Copied the address."]`)
	assert.Equal(t, address, tb.eval("copied"))

	admin := logIn(t, h)
	admin.do(chromedp.Navigate(h.shop + "/admin/orders/" + path.Base(at)))
	admin.checkPage("record-created")
	for _, step := range []struct{ press, heading, page string }{
		{"Paid", "Your payment has arrived", "paid"},
		{"Shipped", "Your order is on its way", "shipped"},
		{"Paid", "Your payment has arrived", "paid"},
		{"Cancelled", "This order is cancelled", "cancelled"},
	} {
		admin.click(button(step.press))
		tb.waitFor(heading(step.heading)) // the buyer's page follows by itself
		tb.checkPage(step.page)
		admin.waitFor(`//main//li[contains(., "Anna marked the order as: ` + step.press + `")]`)
	}
	admin.checkPage("record-cancelled")
	tb.do(chromedp.Navigate(h.shop + "/nothing-here"))
	tb.checkPage("problem")
}

// A payment that needs a tag has no QR code, which would leave the tag out.
func browseTag(t *testing.T, h *browserHarness) {
	tb := h.newSession(t).newTab()
	at := tb.order(h.shop, "Stoneware mug")
	tb.choose("XRP", "XRP Ledger")
	tb.click(payButton)
	tb.waitFor(paymentHeading)
	assert.Regexp(t, `^\d+$`, tb.text(`//*[@id="pay-tag"]`))
	assert.Equal(t, true, tb.eval(`document.querySelector(".qr") === null`))
	assert.Equal(t, float64(404), tb.eval(`fetch("`+at+`/qr.png").then((r) => r.status)`))
	tb.checkPage("payment-tag")
}

// tabUntilFocused presses Tab until an element has the focus.
func (tb *tab) tabUntilFocused(element string) {
	tb.t.Helper()
	for range 60 {
		if tb.eval(elementExpr(element)+" === document.activeElement") == true {
			return
		}
		tb.do(chromedp.KeyEvent(kb.Tab))
	}
	require.Fail(tb.t, "not reachable by keyboard", element)
}

func browseByKeyboard(t *testing.T, h *browserHarness) {
	tb := h.newSession(t).open(h.shop + "/")
	tb.do(chromedp.KeyEvent(kb.Tab))
	require.Equal(t, "Skip to the content", tb.eval("document.activeElement.innerText"))
	tb.do(chromedp.KeyEvent(kb.Enter))
	tb.tabUntilFocused(button("Buy Wool blanket"))
	tb.do(chromedp.KeyEvent(kb.Enter))
	tb.waitFor(offersHeading)
	tb.tabUntilFocused(`//summary[strong="ETH"]`)
	tb.do(chromedp.KeyEvent(kb.Enter))
	tb.tabUntilFocused(`//details[summary/strong="ETH"]//input`)
	tb.do(chromedp.KeyEvent(" "))
	coin := tb.eval(`document.querySelector("input:checked").parentNode.querySelector("strong").innerText`)
	tb.tabUntilFocused(payButton)
	tb.do(chromedp.KeyEvent(kb.Enter))
	tb.waitFor(paymentHeading)
	invoices := h.invoices(tb.address())
	require.Len(t, invoices, 1)
	assert.Equal(t, coin, invoices[0].CoinSymbol)
}

func browseDoublePress(t *testing.T, h *browserHarness) {
	tb := h.newSession(t).open(h.shop + "/")
	tb.do(tb.doubleClick(button("Buy Tide table print")))
	tb.waitFor(offersHeading)
	at := tb.address()
	tb.do(chromedp.Reload())
	assert.Equal(t, at, tb.order(h.shop, "Tide table print"), "the first page leads to the same order again")
	tb.choose("BTC", "Bitcoin")
	tb.do(tb.doubleClick(payButton))
	tb.waitFor(paymentHeading)
	tb.do(chromedp.NavigateBack(), chromedp.Navigate(at), chromedp.Reload())
	tb.waitFor(paymentHeading)
	assert.Len(t, h.invoices(at), 1)
	next := tb.order(h.shop, "Tide table print")
	assert.NotEqual(t, at, next, "the next purchase is another order")
}

func browseTwoTabs(t *testing.T, h *browserHarness) {
	buyer := h.newSession(t)
	one, two := buyer.newTab(), buyer.newTab()
	at, sameAt := one.order(h.shop, "Brass deck lamp"), two.order(h.other, "Brass deck lamp")
	assert.Equal(t, strings.TrimPrefix(at, h.shop), strings.TrimPrefix(sameAt, h.other))
	one.choose("BTC", "Bitcoin")
	two.choose("LTC", "Litecoin")
	var clicks sync.WaitGroup
	for _, tb := range []*tab{one, two} {
		clicks.Go(func() { assert.NoError(t, chromedp.Do(tb.ctx, chromedp.Click(chromedp.Search(payButton)))) })
	}
	clicks.Wait()
	one.waitFor(paymentHeading)
	two.waitFor(paymentHeading)
	invoices := h.invoices(at)
	require.Len(t, invoices, 1)
	for _, tb := range []*tab{one, two} {
		assert.Contains(t, tb.text(`//*[@class="payment"]`), invoices[0].CoinSymbol)
	}
}

func browseRates(t *testing.T, h *browserHarness) {
	tb := h.newSession(t).newTab()
	h.gw.SetRate("DOGE", "0.12", "0.12")
	h.gw.SetRate("USDT", "1", "0.92") // more than 0.90 euros
	defer h.gw.SetRate("DOGE", "0.12", "0.12")
	tb.order(h.shop, "Postcard")
	tb.choose("BTC", "Bitcoin")
	usdt := offerOption("USDT", "Tron")
	tb.click(`//summary[strong="USDT"]`)
	assert.Contains(t, tb.text(usdt), "the smallest amount is 1 USDT")
	assert.Equal(t, true, tb.eval(elementExpr(usdt+"/input")+".disabled"))
	doge := offerOption("DOGE", "Dogecoin")
	h.gw.SetRate("DOGE", "0.09", "0.09")
	tb.waitFor(doge + `//*[contains(@class, "amount")][.="10"]`)
	h.gw.SetRate("DOGE", "0.2", "0.2") // less than 5 DOGE
	tb.waitFor(doge + `//*[contains(., "the smallest amount is 5 DOGE")]`)
	assert.Equal(t, true, tb.eval(elementExpr(offerOption("BTC", "Bitcoin")+"/input")+".checked"), "the choice is kept")
	h.gw.InjectFault(gatewaytest.OpExchangeRates, -1, gatewaytest.FaultPage(502))
	defer h.gw.ClearFaults()
	tb.waitFor(`//*[@id="age"]/*[@class="stale"]`)
	tb.checkPage("offers-stale")
	tb.click(payButton)
	tb.waitFor(`//*[@role="alert"][contains(., "too old")]`)
	tb.checkPage("offers-problem")
}

func browseSlowGateway(t *testing.T, h *browserHarness) {
	tb := h.newSession(t).newTab()
	at := tb.order(h.shop, "Brass deck lamp")
	tb.choose("LTC", "Litecoin")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultSlowBody(14*time.Millisecond))
	tb.click(payButton)
	tb.waitFor(heading("Your order is being sent"))
	tb.checkPage("sending")
	tb.waitFor(paymentHeading) // without a click
	assert.Len(t, h.invoices(at), 1)
}

func browseRefusal(t *testing.T, h *browserHarness) {
	tb := h.newSession(t).newTab()
	at := tb.order(h.shop, "Stoneware mug")
	tb.choose("SOL", "Solana")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(400, "not today"))
	tb.click(payButton)
	tb.waitFor(`//*[@class="alert"][contains(., "refused")]`)
	tb.checkPage("offers-refused")
	assert.Equal(t, true, tb.eval(elementExpr(offerOption("SOL", "Solana")+"/input")+".checked"))
	tb.choose("TRX", "Tron")
	tb.click(payButton)
	tb.waitFor(paymentHeading)
	assert.Len(t, h.invoices(at), 1)
	assert.Equal(t, "TRX", h.invoices(at)[0].CoinSymbol)
}

func browseEnded(t *testing.T, h *browserHarness) {
	tb := h.newSession(t).newTab()
	at := tb.order(h.shop, "Stoneware mug")
	h.changeOrder(at, `made_at = '2020-01-01T00:00:00.000Z'`)
	tb.do(chromedp.Reload())
	tb.waitFor(heading("This order has ended"))
	tb.checkPage("expired")
	_, err := h.one.guard.End(t.Context(), gateway.Order{Gateway: h.gw.URL, Request: gateway.InvoiceRequest{OrderID: path.Base(at)}}, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded})
	require.NoError(t, err)
	tb.do(chromedp.Reload())
	tb.waitFor(heading("The time to pay is over"))
	tb.checkPage("late")
}

// changeOrder changes a stored order.
func (h *browserHarness) changeOrder(at, set string) {
	h.t.Helper()
	_, err := h.one.db.change(h.t.Context(), `UPDATE shop_orders SET `+set+` WHERE id = $1`, path.Base(at))
	require.NoError(h.t, err)
}

func browseWithoutScripts(t *testing.T, h *browserHarness) {
	tb := h.newSession(t).newTab()
	tb.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	at := tb.order(h.shop, "Stoneware mug")
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
