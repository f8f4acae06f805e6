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
	goods     = heading("Things for life by the water")
	howToPay  = heading("How would you like to pay?")
	payNow    = heading("Pay your order")
	lookingIn = heading("We are looking into your order")
	payButton = button("Make the invoice")
)

// order goes to the order of a product at a shop and returns its address.
func (tb *tab) order(shop, product string) string {
	tb.t.Helper()
	tb.do(chromedp.Navigate(shop + "/"))
	tb.click(button("Buy " + product))
	tb.see(howToPay)
	return tb.address()
}

func (tb *tab) address() string {
	tb.t.Helper()
	return perform(tb, chromedp.Location())
}

// choose takes a coin for an order.
func (tb *tab) choose(coin, network string) {
	tb.t.Helper()
	tb.click(offered(coin, network))
	require.Equal(tb.t, true, tb.ask(found(offered(coin, network)+"/input")+".checked"))
}

func browseComplaints(t *testing.T, w *world) {
	p := w.visit(t)
	tb := p.open(w.shop + "/")
	for script, complaint := range map[string]string{
		`document.body.append(Object.assign(document.createElement("script"), {textContent: "1"}))`: "inline script violates",
		`document.body.append(Object.assign(new Image(), {src: "https://example.com/"}))`:           "https://example.com/",
		`console.error("an error")`:                          "an error",
		`setTimeout(() => { throw new Error("a mistake") })`: "a mistake",
	} {
		tb.do(chromedp.Evaluate[chromedp.Void](script))
		eventually(t, complaint, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return strings.Contains(strings.Join(p.complaints, "\n"), complaint)
		})
	}
	tb.ask("0") // all of it has been heard
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = nil
}

func browsePages(t *testing.T, w *world) {
	tb := w.visit(t).open(w.shop + "/")
	tb.look("goods")
	at := tb.order(w.shop, "Stoneware mug")
	tb.look("offers")
	tb.choose("USDT", "Tron")
	tb.click(payButton)
	tb.see(payNow)
	tb.look("payment")
	assert.Len(t, w.invoices(at), 1)
	assert.Regexp(t, `^\d+\.\d+ USDT on Tron for order [A-Z2-7]{26}$`, tb.readCode())
	assert.Contains(t, tb.text(`//*[@class="invented"]`), "Made up by the demo")
	tb.do(chromedp.Navigate(w.shop + "/nothing-here"))
	tb.look("problem")
}

// tabTo presses Tab until an element has the focus.
func (tb *tab) tabTo(element string) {
	tb.t.Helper()
	for range 60 {
		if tb.ask(found(element)+" === document.activeElement") == true {
			return
		}
		tb.do(chromedp.KeyEvent(kb.Tab))
	}
	require.Fail(tb.t, "the keyboard does not get there", element)
}

func browseByKeyboard(t *testing.T, w *world) {
	tb := w.visit(t).open(w.shop + "/")
	tb.do(chromedp.KeyEvent(kb.Tab))
	require.Equal(t, "Skip to the content", tb.ask("document.activeElement.innerText"))
	tb.do(chromedp.KeyEvent(kb.Enter))
	tb.tabTo(button("Buy Wool blanket"))
	tb.do(chromedp.KeyEvent(kb.Enter))
	tb.see(howToPay)
	tb.tabTo(`(//input[@name="pair"])[1]`)
	tb.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	coin := tb.ask(`document.querySelector("input:checked").parentNode.querySelector("strong").innerText`)
	tb.tabTo(payButton)
	tb.do(chromedp.KeyEvent(kb.Enter))
	tb.see(payNow)
	invoices := w.invoices(tb.address())
	require.Len(t, invoices, 1)
	assert.Equal(t, coin, invoices[0].CoinSymbol)
}

func browseImpatiently(t *testing.T, w *world) {
	tb := w.visit(t).open(w.shop + "/")
	tb.do(tb.doubleClick(button("Buy Tide table print")))
	tb.see(howToPay)
	at := tb.address()
	tb.choose("BTC", "Bitcoin")
	// Chromium may send the first two clicks as one request. The answer to it is
	// slow, so that there is time for more.
	w.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.SlowBody(5*time.Millisecond))
	clicks := tb.doubleClick(payButton)
	tb.do(clicks)
	eventually(t, "the invoice is committed", func() bool { return len(w.invoices(at)) > 0 })
	tb.do(clicks)
	tb.see(payNow)
	tb.do(chromedp.NavigateBack(), chromedp.Navigate(at), chromedp.Reload())
	tb.see(payNow)
	assert.Len(t, w.invoices(at), 1)
	tb.do(chromedp.Navigate(w.shop + "/"))
	tb.click(button("Buy Tide table print"))
	tb.see(payNow)
	assert.Equal(t, at, tb.address(), "Buy leads to the order that is there")
	tb.click(button("Order another one"))
	tb.see(howToPay)
	assert.NotEqual(t, at, tb.address())
}

func browseTwice(t *testing.T, w *world) {
	buyer := w.visit(t)
	one, two := buyer.newTab(), buyer.newTab()
	at, alsoAt := one.order(w.shop, "Brass deck lamp"), two.order(w.other, "Brass deck lamp")
	assert.Equal(t, strings.TrimPrefix(at, w.shop), strings.TrimPrefix(alsoAt, w.other))
	one.choose("BTC", "Bitcoin")
	two.choose("LTC", "Litecoin")
	var clicks sync.WaitGroup
	for _, tb := range []*tab{one, two} {
		clicks.Go(func() { assert.NoError(t, chromedp.Do(tb.ctx, chromedp.Click(chromedp.Search(payButton)))) })
	}
	clicks.Wait()
	one.see(payNow)
	two.see(payNow)
	invoices := w.invoices(at)
	require.Len(t, invoices, 1)
	for _, tb := range []*tab{one, two} {
		assert.Contains(t, tb.text(`//*[@class="ticket"]`), invoices[0].CoinSymbol)
	}
}

func browseRates(t *testing.T, w *world) {
	tb := w.visit(t).newTab()
	w.gw.SetRate("DOGE", "0.12", "0.12")
	w.gw.SetRate("USDT", "1", "0.92") // more than 0.90 euros
	defer w.gw.SetRate("DOGE", "0.12", "0.12")
	tb.order(w.shop, "Postcard")
	usdt := "(//label[@data-offer][.//strong='USDT'])[1]"
	assert.Contains(t, tb.text(usdt), "nearest possible amount is 1 USDT")
	assert.Equal(t, true, tb.ask(found(usdt+"/input")+".disabled"))
	doge := offered("DOGE", "Dogecoin")
	assert.NotEqual(t, "10", tb.text(doge+`//*[@class="amount"]`))
	w.gw.SetRate("DOGE", "0.09", "0.09")
	tb.see(doge + `//*[@class="amount"][.="10"]`)
	w.gw.SetRate("DOGE", "0.2", "0.2") // less than 5 DOGE
	tb.see(doge + `//*[contains(., "nearest possible amount is 5 DOGE")]`)
	w.gw.InjectFault(gatewaytest.OpExchangeRates, -1, gatewaytest.BadGateway())
	defer w.gw.ClearFaults()
	tb.see(`//*[@id="age"][contains(@class, "stale")]`)
	tb.look("stale")
	w.gw.ClearFaults()
	tb.see(`//*[@id="age"][not(contains(@class, "stale"))]`)
}

func browseToRefusal(t *testing.T, w *world) {
	buyer := w.visit(t)
	tb := buyer.newTab()
	at := tb.order(w.shop, "Stoneware mug")
	tb.choose("SOL", "Solana")
	w.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.Refuse(400, "not today"))
	tb.click(payButton)
	tb.see(heading("The payment service said no"))
	tb.look("refused")
	late := buyer.open(at)
	tb.click(button("Choose again"))
	tb.see(howToPay)
	assert.NotEqual(t, at, tb.address())
	late.click(button("Try once more"))
	late.see(howToPay)
	assert.Equal(t, tb.address(), late.address(), "the other tab was first")
	assert.Empty(t, w.invoices(at))
}

func browseWithoutScripts(t *testing.T, w *world) {
	tb := w.visit(t).newTab()
	tb.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	at := tb.order(w.shop, "Stoneware mug")
	assert.Equal(t, "undefined", tb.ask("typeof showQuote"), "the script of the page does not run")
	tb.choose("BTC", "Bitcoin")
	tb.click(payButton)
	tb.see(payNow)
	assert.Len(t, w.invoices(at), 1)
}
