package main

import (
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/require"
)

// A browserHarness is a browser and two shops over one database, with a
// gateway that can inject faults.
type browserHarness struct {
	*harness
	browser     context.Context
	one         *shop
	shop, other string // the URLs of the two shops
	axe         string // the source of axe-core
	axeRuns     map[string]int
}

// TestBrowser runs the shop in Chromium. It needs Chromium with a font, zbarimg and npm.
func TestBrowser(t *testing.T) {
	h := newBrowserHarness(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *browserHarness)
	}{
		{"page errors are detected", browsePageErrors},
		{"a purchase up to the shipping", browsePurchase},
		{"a payment that needs a tag", browseTag},
		{"a purchase by keyboard", browseByKeyboard},
		{"double press, back and reload create one invoice", browseDoublePress},
		{"two tabs on two servers create one invoice", browseTwoTabs},
		{"amounts update themselves", browseRates},
		{"a slow gateway", browseSlowGateway},
		{"a lost response, the merchant finds the invoice", browseInvoiceFound},
		{"a lost response, the merchant finds no invoice", browseNoInvoice},
		{"a refusal", browseRefusal},
		{"orders that have ended", browseEnded},
		{"the merchant's pages", browseAdmin},
		{"without JavaScript", browseWithoutScripts},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, h) })
	}
}

func newBrowserHarness(t *testing.T) *browserHarness {
	t.Helper()
	h := newHarness(t)
	h.cfg.ratesTTL, h.cfg.ratesStaleAfter = 100*time.Millisecond, 3*time.Second
	h.cfg.invoiceTimeout = 10 * time.Second // some responses are slow
	one, first := h.open()
	two, second := h.open()
	one.demo, two.demo = h.gw, h.gw // shows the demo's labels
	require.NoError(t, one.seedDemo(t.Context()))
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--prefix", "browser", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	output, err := npm.CombinedOutput()
	require.NoError(t, err, "apt-get install nodejs npm\n%s", output)
	axe, err := os.ReadFile(filepath.Join("browser", "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(screenshots, 0o755))
	b := &browserHarness{h, startBrowser(t), one, first.URL, second.URL, string(axe), map[string]int{}}
	t.Cleanup(func() { t.Logf("axe: %d pages and states, rules passed on each: %v", len(b.axeRuns), b.axeRuns) })
	return b
}

// invoices returns the gateway's invoices for the order of a URL.
func (h *browserHarness) invoices(address string) []gatewaytest.Invoice {
	return h.gw.InvoicesFor(path.Base(address))
}

// startBrowser starts Chromium without access to other hosts. Its profile is
// a new directory. As root it runs without the sandbox, which does not start
// as root.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	program := "chromium"
	if other := os.Getenv("CHROMIUM"); other != "" {
		program = other
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], // headless, no first run, no sync, no background requests
		chromedp.ExecPath(program),
		chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	require.NoError(t, chromedp.Do(ctx), "apt-get install chromium fonts-dejavu-core")
	return ctx
}
