package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// TestBrowser buys in Chromium and looks an order up, without and with a fault of the gateway. Every page is
// checked by axe on a phone and on a desktop. It needs Chromium with a font, and npm.
func TestBrowser(t *testing.T) {
	h := newHarness(t)
	server, s := h.open()
	s.demo = h.gw // shows the notes of the demo
	b := newBrowser(t)
	buyer, merchant := b.newTab(), b.newTab()

	buyer.open(server)
	buyer.check("products")
	buyer.click(`//button[starts-with(@aria-label, "Buy Stoneware mug")]`)
	buyer.waitFor("How would you like to pay?")
	buyer.check("offers")
	buyer.choose("BTC", "Bitcoin")
	buyer.click(payButton)
	buyer.waitFor("Pay your order")
	buyer.check("pay")
	order := buyer.eval("location.pathname").(string)
	address := buyer.eval(`document.getElementById("pay-address").textContent`)
	buyer.eval(`navigator.clipboard.writeText = async (text) => { window.copied = text }; 0`)
	buyer.click(`//button[.="Copy the address"]`)
	buyer.waitForText("status", "Copied the address.")
	assert.Equal(t, address, buyer.eval("window.copied"))
	assert.Equal(t, true, buyer.eval(`document.querySelector(".qr").complete && document.querySelector(".qr").naturalWidth > 100`))
	buyer.open(server + order) // a reload
	buyer.waitFor("Pay your order")
	buyer.open(server) // and later
	buyer.check("products-later")
	buyer.click(`//a[.="Back to your last order"]`)
	buyer.waitFor("Pay your order")
	assert.Equal(t, address, buyer.eval(`document.getElementById("pay-address").textContent`))

	merchant.open(strings.Replace(server, "//", "//anna:"+strings.ReplaceAll(testPassword, " ", "%20")+"@", 1) + "/admin")
	merchant.waitFor("Orders")
	merchant.click(`//button[.="Mark as paid"]`)
	buyer.waitFor("Your payment has arrived") // without a click
	buyer.check("paid")

	buyer.open(server)
	buyer.click(`//button[starts-with(@aria-label, "Buy Wool blanket")]`)
	buyer.waitFor("How would you like to pay?")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(400, "not today"))
	buyer.choose("XRP", "XRP Ledger")
	buyer.click(payButton)
	buyer.waitForText("alert", "refused your last choice")
	buyer.check("offers-refused")
	buyer.click(`//button[.="Lose the next response"]`)
	buyer.waitForText("status", "will be lost")
	buyer.choose("XRP", "XRP Ledger")
	buyer.click(payButton)
	buyer.waitFor("We are checking your order")
	buyer.check("unknown")

	merchant.open(server + "/admin")
	merchant.waitFor("Orders")
	merchant.check("admin-orders")
	merchant.click(`//a[.="Look up"]`)
	merchant.waitFor("1 to look up at the gateway")
	merchant.check("admin-unknown")
	found := h.gw.InvoicesFor(path.Base(buyer.eval("location.pathname").(string)))
	require.Len(t, found, 1)
	merchant.click(`//label[contains(., "has an invoice")]/input`)
	merchant.eval(fmt.Sprintf(`document.querySelector("textarea").value = '{"address":"invented-address","tag":"77","amount":"%s"}'; 0`, found[0].Amount))
	merchant.click(`//button[.="Record"]`)
	merchant.waitFor("0 to look up at the gateway")
	merchant.check("admin-unknown-done")
	buyer.waitFor("Pay your order") // without a click
	buyer.check("pay-tag")
	assert.Len(t, h.gw.InvoicesFor(found[0].OrderID), 1)

	h.gw.SetResult(gatewaytest.OpCreateInvoice, `{"id":"7"}`)
	buyer.open(h.order(server, "lamp"))
	buyer.choose("LTC", "Litecoin")
	buyer.click(payButton)
	buyer.waitFor("Your order is saved")
	buyer.check("nodetails")
	merchant.open(server + "/admin")
	merchant.waitFor("Orders")
	merchant.check("admin-orders-trouble")

	free, sending := h.order(server, "lamp"), h.order(server, "lamp")
	_, err := s.guard.Begin(t.Context(), gateway.Order{Request: gateway.InvoiceRequest{OrderID: path.Base(sending)}})
	require.NoError(t, err)
	buyer.open(sending)
	buyer.waitFor("Your order is being sent")
	buyer.check("sending")
	_, err = s.orders.db.ExecContext(t.Context(), `UPDATE shop_orders SET made_at = made_at - 86401`)
	require.NoError(t, err)
	buyer.open(free)
	buyer.waitFor("This order has ended")
	buyer.check("expired")
	buyer.open(server + "/orders/" + found[0].OrderID)
	buyer.waitFor("The time to pay is over")
	buyer.check("late")
	buyer.open(server + "/nothing")
	buyer.check("problem")
}

const payButton = `//button[.="Order and pay"]`

// A browser is Chromium with the source of axe.
type browser struct {
	t   *testing.T
	ctx context.Context
	axe string
	out string // the directory of the screenshots
}

// newBrowser starts Chromium without access to other hosts. As root it runs without a sandbox, which root cannot start.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--prefix", "browser", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	output, err := npm.CombinedOutput()
	require.NoError(t, err, "apt-get install nodejs npm\n%s", output)
	axe, err := os.ReadFile(filepath.Join("browser", "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	out := filepath.Join("browser", "out")
	require.NoError(t, os.MkdirAll(out, 0o755))
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
	return &browser{t, ctx, string(axe), out}
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

// waitFor waits until the page has a heading.
func (tb *tab) waitFor(heading string) {
	tb.t.Helper()
	do(tb, chromedp.WaitVisible(chromedp.Search(fmt.Sprintf("//h1[normalize-space()=%q]", heading))))
}

// waitForText waits until an element with a role, or a class, has a text.
func (tb *tab) waitForText(role, text string) {
	tb.t.Helper()
	do(tb, chromedp.WaitVisible(chromedp.Search(fmt.Sprintf("//*[@role=%[1]q or @class=%[1]q][contains(., %[2]q)]", role, text))))
}

// click scrolls to an element and clicks it.
func (tb *tab) click(element string) {
	tb.t.Helper()
	do(tb, chromedp.WaitVisible(chromedp.Search(element)))
	tb.eval(fmt.Sprintf(`document.evaluate(%q, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE, null).singleNodeValue
		.scrollIntoView({block: "center", behavior: "instant"})`, element))
	do(tb, chromedp.Click(chromedp.Search(element)))
}

// choose fills in the form of an order.
func (tb *tab) choose(coin, network string) {
	tb.t.Helper()
	tb.eval(`document.querySelectorAll("details").forEach((each) => { each.removeAttribute("name"); each.open = true })`)
	tb.click(fmt.Sprintf("//label[@class='offer'][.//strong=%q][.//small=%q]", coin, "on "+network))
	tb.eval(`document.getElementById("email").value = "ida@shop.example"; 0`)
}

// check checks a page with axe and for its width, on a phone and on a desktop, in both color schemes, and saves
// pictures.
func (tb *tab) check(name string) {
	tb.t.Helper()
	do(tb, chromedp.Evaluate[chromedp.Void](tb.axe)) // through the debugger, so that the policy of the pages need not allow it
	for _, scheme := range []string{"dark", "light"} {
		do(tb, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}))
		for _, width := range []int64{360, 1440} {
			height := tb.resize(width, 900)
			found := do(tb, chromedp.Evaluate[struct {
				Passes     int
				Violations []string
			}](`axe.run().then(({passes, violations}) => ({Passes: passes.length,
				Violations: violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.map((n) => n.html).join(" "))}))`, chromedp.EvalAwaitPromise))
			assert.Greater(tb.t, found.Passes, 5, "axe checked nothing")
			assert.Empty(tb.t, found.Violations, "%s, %s, %d pixels", name, scheme, width)
			tb.resize(width, height)
			picture := do(tb, chromedp.CaptureScreenshot())
			require.NoError(tb.t, os.WriteFile(filepath.Join(tb.out, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), picture, 0o600))
		}
	}
}

// resize waits until the page has a size, and returns the height of its content, which must not be wider.
func (tb *tab) resize(width, height int64) int64 {
	tb.t.Helper()
	do(tb, chromedp.EmulateViewport(width, height))
	content := do(tb, chromedp.Evaluate[[]int64](fmt.Sprintf(`new Promise((done) => {
		const look = () => {
			if (innerWidth !== %d || innerHeight !== %d) return requestAnimationFrame(look)
			done([document.documentElement.scrollWidth, document.documentElement.scrollHeight])
		}
		look()
	})`, width, height), chromedp.EvalAwaitPromise))
	assert.LessOrEqual(tb.t, content[0], width)
	return content[1]
}
