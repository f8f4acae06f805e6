package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	productsHeading = heading("Things for life by the water")
	offersHeading   = heading("How would you like to pay?")
	paymentHeading  = heading("Pay your order")
	underReview     = heading("Your order is being checked")
	payButton       = button("Create invoice")
)

// order opens the order of a product at a shop and returns its URL.
func (tb *tab) order(shop, product string) string {
	tb.t.Helper()
	tb.do(chromedp.Navigate(shop + "/"))
	tb.click(button("Buy " + product))
	tb.waitFor(offersHeading)
	return tb.address()
}

func (tb *tab) address() string {
	tb.t.Helper()
	return runAction(tb, chromedp.Location())
}

// choose selects a coin for an order.
func (tb *tab) choose(coin, network string) {
	tb.t.Helper()
	tb.click(offerOption(coin, network))
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
	tb := h.newSession(t).open(h.shop + "/")
	tb.checkPage("products")
	at := tb.order(h.shop, "Stoneware mug")
	tb.checkPage("offers")
	tb.choose("USDT", "Tron")
	tb.click(payButton)
	tb.waitFor(paymentHeading)
	tb.checkPage("payment")
	assert.Len(t, h.invoices(at), 1)
	assert.Regexp(t, `^\d+\.\d+ USDT on Tron for order [A-Z2-7]{26}$`, tb.readQR())
	assert.Contains(t, tb.text(`//*[@class="demo-note"]`), "Demo data")
	tb.do(chromedp.Navigate(h.shop + "/nothing-here"))
	tb.checkPage("problem")
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
	tb.tabUntilFocused(`(//input[@name="pair"])[1]`)
	tb.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	coin := tb.eval(`document.querySelector("input:checked").parentNode.querySelector("strong").innerText`)
	tb.tabUntilFocused(payButton)
	tb.do(chromedp.KeyEvent(kb.Enter))
	tb.waitFor(paymentHeading)
	invoices := h.invoices(tb.address())
	require.Len(t, invoices, 1)
	assert.Equal(t, coin, invoices[0].CoinSymbol)
}

func browseDoubleClick(t *testing.T, h *browserHarness) {
	tb := h.newSession(t).open(h.shop + "/")
	tb.do(tb.doubleClick(button("Buy Tide table print")))
	tb.waitFor(offersHeading)
	at := tb.address()
	tb.choose("BTC", "Bitcoin")
	// Chromium may send the first two clicks as one request. The response to
	// it is slow, so that there is time for more.
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.SlowBody(5*time.Millisecond))
	clicks := tb.doubleClick(payButton)
	tb.do(clicks)
	eventually(t, "the invoice is committed", func() bool { return len(h.invoices(at)) > 0 })
	tb.do(clicks)
	tb.waitFor(paymentHeading)
	tb.do(chromedp.NavigateBack(), chromedp.Navigate(at), chromedp.Reload())
	tb.waitFor(paymentHeading)
	assert.Len(t, h.invoices(at), 1)
	tb.do(chromedp.Navigate(h.shop + "/"))
	tb.click(button("Buy Tide table print"))
	tb.waitFor(paymentHeading)
	assert.Equal(t, at, tb.address(), "Buy leads to the existing order")
	tb.click(button("Order again"))
	tb.waitFor(offersHeading)
	assert.NotEqual(t, at, tb.address())
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
	usdt := "(//label[@data-offer][.//strong='USDT'])[1]"
	assert.Contains(t, tb.text(usdt), "nearest possible amount is 1 USDT")
	assert.Equal(t, true, tb.eval(elementExpr(usdt+"/input")+".disabled"))
	doge := offerOption("DOGE", "Dogecoin")
	assert.NotEqual(t, "10", tb.text(doge+`//*[@class="amount"]`))
	h.gw.SetRate("DOGE", "0.09", "0.09")
	tb.waitFor(doge + `//*[@class="amount"][.="10"]`)
	h.gw.SetRate("DOGE", "0.2", "0.2") // less than 5 DOGE
	tb.waitFor(doge + `//*[contains(., "nearest possible amount is 5 DOGE")]`)
	h.gw.InjectFault(gatewaytest.OpExchangeRates, -1, gatewaytest.BadGateway())
	defer h.gw.ClearFaults()
	tb.waitFor(`//*[@id="age"][contains(@class, "stale")]`)
	tb.checkPage("stale")
	h.gw.ClearFaults()
	tb.waitFor(`//*[@id="age"][not(contains(@class, "stale"))]`)
}

func browseRefusal(t *testing.T, h *browserHarness) {
	buyer := h.newSession(t)
	tb := buyer.newTab()
	at := tb.order(h.shop, "Stoneware mug")
	tb.choose("SOL", "Solana")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.Refuse(400, "not today"))
	tb.click(payButton)
	tb.waitFor(heading("The payment service refused the invoice"))
	tb.checkPage("refused")
	otherTab := buyer.open(at)
	tb.click(button("Choose again"))
	tb.waitFor(offersHeading)
	assert.NotEqual(t, at, tb.address())
	otherTab.click(button("Try again"))
	otherTab.waitFor(offersHeading)
	assert.Equal(t, tb.address(), otherTab.address(), "the other tab was first")
	assert.Empty(t, h.invoices(at))
}

func browseWithoutScripts(t *testing.T, h *browserHarness) {
	tb := h.newSession(t).newTab()
	tb.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	at := tb.order(h.shop, "Stoneware mug")
	assert.Equal(t, "undefined", tb.eval("typeof showQuote"), "scripts are disabled")
	tb.choose("BTC", "Bitcoin")
	tb.click(payButton)
	tb.waitFor(paymentHeading)
	assert.Len(t, h.invoices(at), 1)
}
