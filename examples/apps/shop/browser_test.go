package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// TestBrowser buys in Chromium, comes back, looks an order up whose response was lost, and is refused. The buyer has a phone.
func TestBrowser(t *testing.T) {
	h := newHarness(t)
	server, s := h.open()
	b := newBrowser(t)
	buyer, merchant := b.newTab(), b.newTab()
	do(buyer, chromedp.EmulateViewport(360, 900))

	buyer.open(server)
	buyer.click(`//button[starts-with(@aria-label, "Buy Stoneware mug")]`)
	buyer.order("BTC", "Bitcoin")
	buyer.waitFor(paying)
	address := buyer.eval(`document.getElementById("pay-address").textContent`)
	buyer.eval(`navigator.clipboard.writeText = async (text) => { window.copied = text }; 0`)
	buyer.click(`//button[.="Copy the address"]`)
	buyer.wait(`//*[@role="status"][.="Copied the address."]`)
	assert.Equal(t, address, buyer.eval("window.copied"))
	assert.Equal(t, true, buyer.eval(`document.querySelector(".qr").complete && document.querySelector(".qr").naturalWidth > 100`))
	buyer.open(server) // and later
	buyer.click(`//a[.="Back to your last order"]`)
	buyer.waitFor(paying)

	merchant.open(strings.Replace(server, "//", "//anna:"+strings.ReplaceAll(testPassword, " ", "%20")+"@", 1) + "/admin")
	merchant.click(`//button[.="Mark as paid"]`)
	buyer.waitFor("Your payment has arrived") // without a click

	buyer.open(server)
	h.loses()
	buyer.click(`//button[starts-with(@aria-label, "Buy Wool blanket")]`)
	buyer.order("XRP", "XRP Ledger")
	buyer.waitFor(checking)

	merchant.open(server + "/admin")
	merchant.click(`//a[.="Look up"]`)
	merchant.waitFor("1 to look up at the gateway")
	found := h.gw.InvoicesFor(path.Base(buyer.eval("location.pathname").(string)))
	require.Len(t, found, 1)
	merchant.click(`//label[contains(., "has an invoice")]/input`)
	merchant.eval(fmt.Sprintf(`document.querySelector("textarea").value = '{"address":"invented-address","tag":"77","amount":"%s"}'; 0`, found[0].Amount))
	merchant.click(`//button[.="Record"]`)
	merchant.waitFor("0 to look up at the gateway")
	buyer.waitFor(paying) // without a click
	assert.Len(t, h.gw.InvoicesFor(found[0].OrderID), 1)

	buyer.open(server)
	buyer.click(`//button[starts-with(@aria-label, "Buy Wool blanket")]`)
	buyer.waitFor(choosing)
	ends := s.begins(t, path.Base(buyer.eval("location.pathname").(string)))
	buyer.waitFor("Your order is being sent")
	ends(gateway.OrderRecord{Outcome: gateway.OutcomeRejected, StatusCode: 422})
	buyer.waitFor(choosing) // without a click
	buyer.wait(`//p[@class="alert"][contains(., "did not accept BTC on Bitcoin")]`)
}

// A browser is Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// newBrowser starts Chromium without access to other hosts. As root it runs without a sandbox, which root cannot start.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.DisableGPU, chromedp.Flag("no-proxy-server", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	require.NoError(t, chromedp.Do(ctx), "apt-get install chromium fonts-dejavu-core")
	return &browser{t, ctx}
}

// A tab is an open page. Its methods fail the test after 30 seconds.
type tab struct {
	*browser
	ctx context.Context
}

// newTab opens a tab with cookies of its own. Its errors, such as violations of the policy of the pages, fail the test.
func (b *browser) newTab() *tab {
	b.t.Helper()
	var mu sync.Mutex
	var problems []string
	ctx, stop := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "status of 4") {
				problems = append(problems, e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			problems = append(problems, e.ExceptionDetails.Text)
		}
	}))
	require.NoError(b.t, chromedp.Do(ctx))
	tb := &tab{b, ctx}
	b.t.Cleanup(func() {
		tb.eval("0") // every earlier event has come
		mu.Lock()
		assert.Empty(b.t, problems)
		mu.Unlock()
		stop()
	})
	return tb
}

// do runs an action and returns its result.
func do[T any](tb *tab, action chromedp.Action[T]) T {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, 30*time.Second)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		text, _ := chromedp.Run(tb.ctx, chromedp.Evaluate[string]("location + ': ' + document.body.innerText"))
		require.NoError(tb.t, err, text)
	}
	return result
}

func (tb *tab) open(address string) { do(tb, chromedp.Navigate(address)) }

// eval evaluates an expression and awaits its promise.
func (tb *tab) eval(expression string) any {
	tb.t.Helper()
	return do(tb, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
}

// wait waits until an element is visible.
func (tb *tab) wait(element string) {
	tb.t.Helper()
	do(tb, chromedp.WaitVisible(chromedp.Search(element)))
}

// waitFor waits until the page has a heading. The page must not be wider than the window.
func (tb *tab) waitFor(heading string) {
	tb.t.Helper()
	tb.wait(fmt.Sprintf("//h1[normalize-space()=%q]", heading))
	assert.Equal(tb.t, true, tb.eval("document.documentElement.scrollWidth <= innerWidth"), heading)
}

// click scrolls to an element and clicks it.
func (tb *tab) click(element string) {
	tb.t.Helper()
	tb.wait(element)
	tb.eval(fmt.Sprintf(`document.evaluate(%q, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE, null).singleNodeValue
		.scrollIntoView({block: "center", behavior: "instant"})`, element))
	do(tb, chromedp.Click(chromedp.Search(element)))
}

// order fills in the form of an order, and orders.
func (tb *tab) order(coin, network string) {
	tb.t.Helper()
	tb.waitFor(choosing)
	tb.click(fmt.Sprintf("//div[@class='offer'][.//strong=%q]//label[normalize-space()=%q]", coin, "on "+network))
	tb.eval(`document.getElementById("email").value = "ida@shop.example"; 0`)
	tb.click(`//button[.="Order and pay"]`)
}
